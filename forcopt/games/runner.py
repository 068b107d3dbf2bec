"""Runs a two-player zero-sum game until its exact gap is small, or rounds, time or the caller end it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from forcopt.clock import Trace
from forcopt.errors import DeclarationError


@dataclass(frozen=True)
class Measurement:
    """The value that one player has secured, and the bound that the other has proved.

    Attributes
    ----------
    objective : float
        The value of the best play found so far, for the minimiser.
    bound : float
        No play of the minimiser has a smaller value.
    gap : float
        The distance from a saddle point, at least 0, in the units of the accuracy.
    """

    objective: float
    bound: float
    gap: float


class TwoPlayerGame(Protocol):
    """A repeated game whose gap can be measured, by a best response of either player."""

    def prepare(self, rounds: int) -> None:
        """Expect this many rounds in all until the next measurement."""

    def step(self) -> None:
        """Play one round: both players play, and both learn."""

    def measure(self) -> Measurement:
        """Measure the gap of the plays so far, by best responses."""


@dataclass(frozen=True)
class GameEnd:
    """How a game ended.

    Attributes
    ----------
    rounds : int
        The number of rounds played.
    reason : str
        ``"gap"``, ``"rounds"``, ``"time"`` or ``"caller"``.
    measurement : Measurement
        The last one.
    """

    rounds: int
    reason: Literal["gap", "rounds", "time", "caller"]
    measurement: Measurement


def checkpoints(rounds: int, first: int = 1, factor: float = 1.5) -> Iterator[int]:
    """The rounds after which the gap is measured: geometrically fewer as the game goes on.

    Parameters
    ----------
    rounds : int
        The last round of the game, at least 1.
    first : int, default 1
        The first round to measure.
    factor : float, default 1.5
        Above 1: the ratio of a measured round to the one before.

    Yields
    ------
    int
        Rounds in rising order; `rounds` is the last.

    Examples
    --------
    >>> list(checkpoints(20))
    [1, 2, 3, 4, 6, 9, 13, 19, 20]
    >>> list(checkpoints(3000, first=500, factor=2))
    [500, 1000, 2000, 3000]
    """
    at = min(first, rounds)
    while at < rounds:
        yield at
        at = max(at + 1, int(factor * at))
    yield rounds


def run_game(
    game: TwoPlayerGame, *, rounds: int, accuracy: float, trace: Trace, first: int = 1, factor: float = 1.5
) -> GameEnd:
    """Play rounds until the measured gap is at most the accuracy.

    Parameters
    ----------
    game : TwoPlayerGame
        The players and their measurement.
    rounds : int
        The largest number of rounds, at least 1.
    accuracy : float
        The gap at which to stop.
    trace : Trace
        Its deadline is looked at after every round; it gets every measurement, and lets the caller stop.
    first : int, default 1
        The number of rounds before the first measurement.
    factor : float, default 1.5
        The growth of the number of rounds from one measurement to the next.

    Returns
    -------
    GameEnd
        The game is always measured after its last round, so that the measurement describes the result.

    Raises
    ------
    DeclarationError
        If `rounds` is not a whole number of at least 1.

    Examples
    --------
    Matching pennies, exponentiated gradient against best responses:

    >>> from forcopt.clock import Deadline
    >>> from forcopt.games import ExponentiatedGradient
    >>> class Pennies:
    ...     payoff = np.array([[2.0, 0.0], [0.0, 2.0]])
    ...     def __init__(self):
    ...         self.row, self.plays, self.answers = ExponentiatedGradient(2, 1.0, 0.02), [], []
    ...     def prepare(self, rounds): pass
    ...     def step(self):
    ...         self.plays.append(self.row.play())
    ...         self.answers.append(np.eye(2)[np.argmin(self.plays[-1] @ self.payoff)])
    ...         self.row.learn(self.payoff @ self.answers[-1])
    ...     def measure(self):
    ...         most = float((self.payoff @ np.mean(self.answers, axis=0)).max())
    ...         least = float((np.mean(self.plays, axis=0) @ self.payoff).min())
    ...         return Measurement(most, least, most - least)
    >>> run_game(Pennies(), rounds=1000, accuracy=0.1, trace=Trace(Deadline())).reason
    'gap'
    """
    if not isinstance(rounds, int | np.integer) or isinstance(rounds, bool) or rounds < 1:
        raise DeclarationError(f"rounds is {rounds!r}; it must be a whole number of at least 1")
    played = 0
    for until in checkpoints(int(rounds), first, factor):
        game.prepare(until)
        while played < until and not (played and trace.over):
            game.step()
            played += 1
        found = game.measure()
        trace.add(found.objective, found.bound)
        if found.gap <= accuracy:
            return GameEnd(played, "gap", found)
        if trace.over:
            return GameEnd(played, "caller" if trace.stopped else "time", found)
    return GameEnd(played, "rounds", found)
