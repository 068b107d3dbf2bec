from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forcopt.errors import DeclarationError
from forcopt.models.fair_decisions import IntervalPartition
from forcopt.status import Status


def every(counts, penalty):
    """The costs of all partitions, straight from the definition."""
    n = len(counts)
    for m in range(n):
        for cuts in combinations(range(1, n), m):
            ends = [0, *cuts, n]
            parts = [np.array(counts[a:b], dtype=float) for a, b in pairwise(ends)]
            yield sum(np.abs(x - x.mean()).sum() for x in parts) + penalty * len(parts)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-5, 30), min_size=1, max_size=8), st.sampled_from([0.0, 0.5, 3.0, 50.0]))
def test_dynamic_program_lp_and_enumeration_agree(counts, penalty):
    p = IntervalPartition(counts, penalty)
    best = min(every(counts, penalty))
    for method in ("dynamic", "lp"):
        s = p.solve(method)
        assert s.status is Status.OPTIMAL and s.objective == pytest.approx(best, abs=1e-7)
    assert p.solve("powers-of-two").objective >= best - 1e-9


@pytest.mark.parametrize(
    ("penalty", "cost", "buckets"), [(2, 34 / 3, 3), (0.5, 3.5, 7), (20, 65.3333333, 3), (60, 185.3333333, 3)]
)
def test_worked_example(penalty, cost, buckets):
    s = IntervalPartition([10, 11, 9, 50, 52, 3, 3, 4], penalty=penalty).solve()
    assert s.objective == pytest.approx(cost) and len(s.decision.starts) == buckets


def test_buckets_invert_two_districts():
    """The district with 15 gets 22, the one with 20 gets 12.5."""
    s = IntervalPartition([20, 9, 10, 11, 60, 25, 15, 26], penalty=20.0).solve()
    assert s.objective == pytest.approx(89)
    assert s.decision.estimates.tolist() == [12.5] * 4 + [60] + [22] * 3


def test_bad_input():
    for bad in ({"counts": []}, {"penalty": -1.0}, {"penalty": np.nan}, {"counts": [[1]]}):
        with pytest.raises(DeclarationError):
            IntervalPartition(**{"counts": [1, 2], "penalty": 1.0, **bad})
    with pytest.raises(DeclarationError, match="increase"):
        IntervalPartition([1, 2], 1.0).evaluate([1])


@pytest.mark.parametrize("method", ["dynamic", "powers-of-two"])
def test_many_counts_end_at_the_time_limit(method):
    counts = np.random.default_rng(0).integers(0, 100, 6000)
    s = IntervalPartition(counts, penalty=30.0).solve(method, time_limit=0.2)
    assert s.status in (Status.LIMIT, Status.APPROXIMATE)  # all costs take minutes, and give an optimum


def test_too_many_counts_for_all_buckets_are_refused():
    p = IntervalPartition(np.zeros(20_000), penalty=1.0)
    for method in ("dynamic", "lp"):
        with pytest.raises(DeclarationError, match="counts has 20000 numbers; it may have 10000"):
            p.solve(method)


@pytest.mark.parametrize("starts", [[0, 1.5], [1], [0, 9], [0, 0], []])
def test_starts_must_be_whole_and_rise(starts):
    with pytest.raises(DeclarationError, match="the starts are"):
        IntervalPartition([1, 2, 3], penalty=1.0).evaluate(starts)
