import warnings
from itertools import combinations, pairwise

import numpy as np
import pytest

from forcopt.errors import DeclarationError
from forcopt.models.fair_decisions import Dawa, audit
from forcopt.privacy import Simulated

COUNTS = np.array([20, 9, 10, 11, 60, 25, 15, 26.0])


def means(x, starts):
    """The mean of its bucket for each count, in a list for each bucket."""
    return [np.full(len(part), part.mean()) for part in np.split(x, starts[1:])]


def cost(x, starts, penalty):
    """The deviations from the means, and the penalty of each bucket."""
    return np.abs(x - np.concatenate(means(x, starts))).sum() + penalty * len(starts)


def best_cost(x, penalty, lengths):
    """The least cost of all partitions into buckets of these lengths."""
    n = len(x)
    every = ([0, *cuts] for m in range(n) for cuts in combinations(range(1, n), m))
    allowed = [s for s in every if all(b - a in lengths for a, b in pairwise([*s, n]))]
    return min(cost(x, np.array(s), penalty) for s in allowed)


@pytest.mark.parametrize("lengths", ["all", "powers of two"])
def test_with_much_budget_the_partition_is_the_optimal_one(lengths):
    rng = np.random.default_rng(0)
    for _ in range(20):
        x = rng.integers(0, 30, int(rng.integers(1, 12))).astype(float)
        dawa = Dawa(epsilon=1e7, ratio=1 - 1e-6, order="as given", lengths=lengths)  # the penalty is .1
        starts = dawa.partition(x, Simulated(1))
        allowed = range(1, 12) if lengths == "all" else (1, 2, 4, 8)
        assert cost(x, starts, 0.1) == pytest.approx(best_cost(x, 0.1, allowed), abs=1e-4)
        values = dawa.simulate(x, 1).values
        assert values == pytest.approx(np.concatenate(means(x, starts)), abs=3.0)


def test_buckets_can_invert_two_districts():
    """At a penalty of 20 the district with 15 gets 22, the one with 20 gets 12.5."""
    dawa = Dawa(epsilon=1e6, ratio=1 - 5e-8, order="as given")
    starts = dawa.partition(COUNTS, Simulated(1))
    assert cost(COUNTS, starts, 20) == pytest.approx(89)
    assert np.concatenate(means(COUNTS, starts)).tolist() == [12.5] * 4 + [60] + [22] * 3


def test_an_order_is_a_permutation_and_is_undone():
    order = np.random.default_rng(1).permutation(8)
    mine = Dawa(epsilon=5.0, order=order).simulate(COUNTS, 3).values
    given = Dawa(epsilon=5.0, order="as given").simulate(COUNTS[order], 3).values
    assert (mine[order] == given).all()
    assert Dawa(epsilon=2.0, order="as given").profile(2).epsilon(0.0) == 4.0


def test_privacy_of_the_partition_on_a_pair_of_neighbours():
    """Frequencies of every partition of three counts, 6,000 draws each; six standard errors."""
    dawa = Dawa(epsilon=2.0, ratio=0.5, order="as given")
    laws = []
    for x in ([0.0, 1.0, 1.0], [0.0, 1.0, 2.0]):
        rng = Simulated(5)
        found = [tuple(dawa.partition(x, rng).tolist()) for _ in range(6000)]
        laws.append({key: found.count(key) / 6000 for key in set(found)})
    for key in set(laws[0]) | set(laws[1]):
        a, b = laws[0].get(key, 0.0), laws[1].get(key, 0.0)
        slack = 6 * np.sqrt(max(a, b) / 6000)
        assert max(a, b) <= np.exp(1.0) * min(a, b) + 4 * slack


def test_buckets_pull_counts_to_their_mean():
    """Audited by trials: a large outlier loses, its neighbors gain."""
    x = np.array([10.0] * 6 + [40.0] + [10.0] * 6)
    found = audit(lambda noisy: noisy, x, Dawa(epsilon=0.5, order="as given"), trials=300, seed=0)
    assert found.ratio[6] < 0.9 and (found.ratio[[5, 7]] > 1.05).all()


def test_warnings_and_refusals():
    with pytest.warns(UserWarning, match="without an order"):
        Dawa(epsilon=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one = Dawa(epsilon=1.0, order=[0])
    assert one.simulate([7.0], 0).values.shape == (1,)
    with pytest.raises(DeclarationError, match="permutation"):
        Dawa(epsilon=1.0, order=[0, 0, 1])
    with pytest.raises(DeclarationError, match="order has 1"):
        one.simulate([7.0, 8.0], 0)
    for bad in ({"epsilon": 0.0}, {"epsilon": np.nan}, {"ratio": 1.0}, {"ratio": 0.0}):
        with pytest.raises(DeclarationError):
            Dawa(**{"epsilon": 1.0, "order": "as given", **bad})
    with pytest.raises(DeclarationError, match="at least one"):
        one.simulate([], 0)
