"""Pujol, McKenna, Kuppam, Hay, Machanavajjhala, Miklau: Fair decision making using privacy-protected data,
FAT* 2020."""

import numpy as np
import pytest

from forcopt.models import Apportionment
from forcopt.models.fair_decisions.tables import INDIA_1971

# -- seats -------------------------------------------------------------------------------------------------

INDIA = Apportionment(list(INDIA_1971.values()), seats=543, names=tuple(INDIA_1971))


def test_seats_of_india_as_printed():
    """Table 3 hands out 551 seats instead of 543."""
    s = INDIA.replace(criterion="total").solve("as-printed")
    printed = "43 1 14 42 12 1 26 10 3 5 14 29 21 30 50 1 1 1 1 22 13 26 1 41 2 4 83 44 1 1 1 1 4 1 1"
    assert s.decision.seats.tolist() == list(map(int, printed.split()))
    assert s.decision.seats.sum() == 551 and s.evaluation.violations == {"seats": 8.0}
    assert s.evaluation.metrics["mean deviation"] == pytest.approx(0.3853541, abs=1e-7)
    assert s.evaluation.metrics["range of ratios"] == pytest.approx(30.671614, abs=1e-6)


@pytest.mark.parametrize(
    ("criterion", "optimum"), [("total", 15.846654), ("minimax", 0.968301), ("range", 30.582160)]
)
def test_least_deviations_of_india(criterion, optimum):
    assert INDIA.replace(criterion=criterion).solve().objective == pytest.approx(optimum, abs=1e-6)


def test_divisor_methods_for_india():
    same = "43 1 14 41 11 1 26 10 3 5 14 29 21 29 49 1 1 1 1 22 13 25 1 40 2 4 82 43 1 1 1 1 4 1 1"
    for criterion in ("webster", "hill", "dean"):
        s = INDIA.replace(criterion=criterion).solve()
        assert s.decision.seats.tolist() == list(map(int, same.split()))
        assert s.evaluation.metrics["mean deviation"] == pytest.approx(0.508712, abs=1e-6)
    assert INDIA.solve("largest-remainder").decision.seats.tolist() == list(map(int, same.split()))
    jefferson = INDIA.replace(criterion="jefferson").solve().evaluation
    assert jefferson.metrics["mean deviation"] == pytest.approx(0.460207, abs=1e-6)


@pytest.mark.parametrize(
    ("populations", "seats", "printed"),
    [
        ([10, 20, 30, 45], 7, [1, 1, 2, 3]),
        ([10, 20, 30, 45], 10, [1, 2, 3, 4]),
        ([100, 200, 300], 5, [1, 2, 3]),  # one half up: six seats
    ],
)
def test_rounded_quotas(populations, seats, printed):
    assert Apportionment(populations, seats).solve("as-printed").decision.seats.tolist() == printed


@pytest.mark.parametrize("census", [1970, 1980, 1990, 2000, 2010, 2020])
def test_official_seats(shared_data, census):
    pd = pytest.importorskip("pandas")
    table = pd.read_csv(shared_data / "us" / "apportionment.csv")
    table = table[table.census == census]
    p = Apportionment.from_table(table, seats=435)
    s = p.solve()
    assert s.decision.seats.tolist() == table.seats.tolist() and s.decision.tied == ()
    if census == 2020:
        from forcopt.models import StratifiedAllocation

        sizes = table.population.to_numpy()
        sample = StratifiedAllocation(sizes=sizes, deviations=np.ones(50), sample_size=435).solve("greedy")
        assert sample.decision.sizes.tolist() == table.seats.tolist()
