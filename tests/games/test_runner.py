import numpy as np
import pytest

import forcopt as fo
from forcopt.clock import Deadline, Trace
from forcopt.games import Measurement, checkpoints, run_game


class Halving:
    """A game whose gap is 1 / rounds."""

    def __init__(self):
        self.rounds, self.prepared, self.measured = 0, [], []

    def prepare(self, rounds):
        self.prepared.append(rounds)

    def step(self):
        self.rounds += 1

    def measure(self):
        self.measured.append(self.rounds)
        gap = 1 / self.rounds
        return Measurement(1 + gap, 1.0, gap)


@pytest.mark.parametrize("rounds", [1, 2, 7, 100, 1000])
def test_checkpoints_rise_to_the_last_round(rounds):
    for first, factor in ((1, 1.5), (500, 2), (3, 1.0)):
        found = list(checkpoints(rounds, first, factor))
        assert found[-1] == rounds and (np.diff(found) > 0).all()


def test_it_ends_by_gap_rounds_time_or_caller():
    game = Halving()
    end = run_game(game, rounds=1000, accuracy=0.1, trace=Trace(Deadline()))
    assert (end.reason, end.rounds, end.measurement.gap) == ("gap", 13, 1 / 13)
    assert game.measured == [1, 2, 3, 4, 6, 9, 13] and game.prepared == game.measured
    end = run_game(Halving(), rounds=5, accuracy=0.0, trace=Trace(Deadline()))
    assert (end.reason, end.rounds) == ("rounds", 5)
    trace = Trace(Deadline(0.0))
    end = run_game(Halving(), rounds=1000, accuracy=0.0, trace=trace, first=500)
    assert (end.reason, end.rounds, len(trace.steps)) == ("time", 1, 1)
    trace = Trace(Deadline(), lambda step: step.objective < 1.3)
    end = run_game(Halving(), rounds=1000, accuracy=0.0, trace=trace)
    assert (end.reason, end.rounds) == ("caller", 4)
    game, trace = Halving(), Trace(Deadline())
    game.prepare = lambda rounds: setattr(trace, "deadline", Deadline(None if rounds == 1 else 0.0))
    end = run_game(
        game, rounds=10, accuracy=0.0, trace=trace
    )  # the time ends between a measurement and a round
    assert (end.reason, end.rounds, game.measured) == ("time", 1, [1])


@pytest.mark.parametrize("rounds", [0, -1, 1.5, True, "10"])
def test_rounds_are_whole(rounds):
    with pytest.raises(fo.DeclarationError, match="a whole number, at least 1"):
        run_game(Halving(), rounds=rounds, accuracy=0.0, trace=Trace(Deadline()))
