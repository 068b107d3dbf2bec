"""Limits at both ends (all, none, one more) and targets near a census, over all methods and brute force."""

from __future__ import annotations

from itertools import product

import allocation_oracle  # noqa: F401  (registers the method enumeration)
import numpy as np
import pytest

import forcopt as fo
from forcopt.models import PrecisionAllocation, PrivateAllocation, StratifiedAllocation


def variance(sizes, deviations, m):
    n = sum(sizes)
    terms = zip(sizes, deviations, m, strict=True)
    return sum((N / n * s) ** 2 * (1 / x - 1 / N) for N, s, x in terms if N > 1)


def test_a_census_up_to_rounding():
    fields = {
        "sizes": [12, 12, 12, 5],
        "deviations": [3.157784713372434, 0.4716749749021182, 1.2359025787852718, 4.490857562860773],
        "minimum": 2,
        "sample_size": 41,
    }
    p = StratifiedAllocation(**fields)
    for method in ("milp", "greedy", "neyman", "proportional"):
        s = p.solve(method)
        assert s.decision.sizes.tolist() == [12, 12, 12, 5] and s.objective == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("seed", range(60))
def test_every_method_at_both_ends(seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 5))
    sizes, minimum = rng.integers(1, 8, k).tolist(), int(rng.integers(1, 4))
    deviations = (rng.random(k) * rng.choice([0, 1, 5], k)).tolist()
    floors = [min(minimum, n) for n in sizes]
    total = float(
        rng.choice(
            [sum(floors) - 1, sum(floors), sum(floors) + 1, sum(sizes) - 1, sum(sizes), sum(sizes) + 1]
        )
    )
    if total <= 0:
        return
    p = StratifiedAllocation(sizes=sizes, deviations=deviations, minimum=minimum, sample_size=total)
    ranges = [range(a, b + 1) for a, b in zip(floors, sizes, strict=True)]
    best = min((variance(sizes, deviations, m) for m in product(*ranges) if sum(m) <= total), default=None)
    for method in ("milp", "greedy", "neyman", "proportional", "enumeration"):
        s = p.solve(method, time_limit=30)
        if best is None:
            assert s.status == fo.Status.INFEASIBLE and "minimum of all strata needs" in s.reason
            continue
        assert s.evaluation.feasible and s.bound <= best + 1e-9 <= s.objective + 2e-9
        if s.status == fo.Status.OPTIMAL:
            assert s.objective == pytest.approx(best, abs=1e-9)
    if best is not None:
        q = PrivateAllocation(
            sizes=sizes, deviations=deviations, minimum=minimum, sample_size=total, epsilon=1, value_bound=3
        )
        values = [q.solve(m, time_limit=30).objective for m in ("sweep", "enumeration", "milp")]
        np.testing.assert_allclose(values, values[0], rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("seed", range(30))
def test_targets_near_a_census(seed):
    """Whole sizes against brute force."""
    rng = np.random.default_rng(seed)
    k, v = int(rng.integers(1, 4)), int(rng.integers(1, 3))
    sizes = rng.integers(1, 8, k).tolist()
    deviations = rng.random((k, v)) * rng.choice([0, 1, 5], (k, 1))
    at = [int(rng.integers(max(1, n - 1), n + 1)) for n in sizes]
    tight = np.array([variance(sizes, deviations[:, j], at) for j in range(v)])
    targets = np.where(tight > 0, tight, 1e-6)
    p = PrecisionAllocation(sizes=sizes, deviations=deviations, targets=targets)
    feasible = [
        sum(m)
        for m in product(*[range(1, n + 1) for n in sizes])
        if all(variance(sizes, deviations[:, j], m) <= targets[j] * (1 + 1e-6) for j in range(v))
    ]
    for method in ("milp", "enumeration"):
        s = p.solve(method)
        assert s.evaluation.feasible and s.bound <= min(feasible) + 1e-6
        if s.status == fo.Status.OPTIMAL:
            assert s.objective == pytest.approx(min(feasible))


@pytest.mark.parametrize("seed", range(40))
def test_the_largest_samples_bind_in_every_method(seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 5))
    sizes, minimum = rng.integers(1, 8, k).tolist(), int(rng.integers(1, 3))
    maximum = np.maximum(minimum, rng.integers(1, 8, k))
    deviations = (rng.random(k) * rng.choice([0, 1, 5], k)).tolist()
    ends = [(min(minimum, n), min(int(most), n)) for n, most in zip(sizes, maximum, strict=True)]
    every = list(product(*[range(low, high + 1) for low, high in ends]))
    fields = {"sizes": sizes, "deviations": deviations, "minimum": minimum, "maximum": maximum}
    total = int(rng.integers(sum(low for low, _ in ends), sum(sizes) + 2))
    p = StratifiedAllocation(**fields, sample_size=total)
    best = min(variance(sizes, deviations, m) for m in every if sum(m) <= total)
    for method in p.methods:
        s = p.solve(method, time_limit=30)
        assert s.evaluation.feasible and s.bound <= best + 1e-7 <= s.objective + 2e-7
        if s.status == fo.Status.OPTIMAL:
            assert s.objective == pytest.approx(best, abs=1e-7)
    private = PrivateAllocation(**fields, sample_size=total, epsilon=1, value_bound=3)
    values = [private.solve(m, time_limit=30).objective for m in ("sweep", "enumeration", "milp")]
    np.testing.assert_allclose(values, values[0], rtol=1e-6, atol=1e-12)

    least = variance(sizes, deviations, [high for _, high in ends])
    target = max(least, 1e-3) * float(rng.choice([0.5, 1.0, 1.5]))
    q = PrecisionAllocation(**fields, targets=target)
    sums = [sum(m) for m in every if variance(sizes, deviations, m) <= target * (1 + 1e-9)]
    for method in q.methods:
        s = q.solve(method, time_limit=30)
        if not sums:
            assert s.status == fo.Status.INFEASIBLE and "the largest samples leave variable 0" in s.reason
        else:
            assert s.evaluation.feasible and s.bound <= min(sums) + 1e-5 <= s.objective + 2e-5
            assert s.status != fo.Status.OPTIMAL or s.objective == pytest.approx(min(sums))


def test_bad_maximum():
    fields = {"sizes": [3, 5], "deviations": [1, 1], "minimum": 2, "sample_size": 6}
    for maximum in (1, [2, 1], [2, 2, 2]):
        with pytest.raises(fo.DeclarationError, match="maximum is"):
            StratifiedAllocation(**fields, maximum=maximum)
    p = StratifiedAllocation(**fields, maximum=[2, 4])
    assert p.evaluate([3, 3]).violations == {"maximum": 1.0}


@pytest.mark.parametrize("seed", range(30))
def test_deviations_of_all_magnitudes_near_a_census(seed):
    """The variance is far below its terms, which the program must not subtract from each other."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 7))
    sizes = rng.integers(1, 30, k)
    deviations = rng.random(k) * 10.0 ** rng.integers(-6, 7, k)
    spare = int(rng.integers(0, 3))
    p = StratifiedAllocation(sizes=sizes, deviations=deviations, sample_size=max(int(sizes.sum()) - spare, k))
    best = p.solve("greedy")
    s = p.solve("milp")
    assert best.status == s.status == fo.Status.OPTIMAL
    assert s.objective == pytest.approx(best.objective, rel=1e-9) and s.bound <= s.objective * (1 + 1e-9)


def test_a_target_that_an_allocation_attains_exactly():
    p = PrecisionAllocation(
        sizes=[6, 4],
        deviations=[[0.0, 2.953], [4.66, 2.649]],
        targets=[1.1292112, 0.8039005799999999],
        costs=[2, 1],
    )
    s = p.solve("milp")
    assert s.status == fo.Status.OPTIMAL and s.objective == s.bound == 8
    assert s.decision.sizes.tolist() == [3, 2] == p.solve("enumeration").decision.sizes.tolist()


def test_the_sweep_lists_noise_scales_within_its_limit():
    """At least one of 20,000 steps is left when the limit has passed; the bound is valid all the same."""
    rng = np.random.default_rng(0)
    fields = {"sizes": rng.integers(1, 500, 200), "deviations": rng.random(200)}
    p = PrivateAllocation(**fields, sample_size=20_000, epsilon=1, value_bound=5)
    s, best = p.solve("sweep", time_limit=0), p.solve("sweep")
    assert s.status == fo.Status.FEASIBLE and s.evaluation.feasible
    assert 0 < s.bound <= best.objective <= s.objective


@pytest.mark.parametrize("unit", [2.0**-30, 2.0**40])
def test_budgets_hold_in_any_unit_of_money(unit):
    fields = {"sizes": [3, 5, 2], "deviations": [2.0, 4.0, 1.0]}
    ordinary = StratifiedAllocation(**fields, costs=[1.5, 1.0, 2.0], budget=9.0)
    p = StratifiedAllocation(**fields, costs=np.array([1.5, 1.0, 2.0]) * unit, budget=9.0 * unit)
    best = ordinary.solve("enumeration").decision.sizes
    for method in ("milp", "milp@scip", "milp@cp-sat", "milp@glop", "enumeration"):
        try:
            assert (p.solve(method).decision.sizes == best).all(), method
        except fo.UnsupportedError:
            continue
    over = p.evaluate([3, 5, 2]).violations["budget"]
    assert not p.evaluate([3, 5, 2]).feasible
    assert over == pytest.approx(13.5 / 9 - 1 if unit < 1 else 4.5 * unit)
    broke = p.replace(budget=4.0 * unit)  # one of each costs 4.5
    for method in ("milp", "milp@scip", "milp@glop", "enumeration", "greedy", "neyman", "proportional"):
        try:
            s = broke.solve(method)
        except fo.UnsupportedError:
            continue
        assert s.status is fo.Status.INFEASIBLE, method
        assert s.reason.startswith("the minimum of all strata needs"), method


@pytest.mark.parametrize("criterion", ["weighted", "leximax"])
def test_a_sample_without_a_choice_of_huge_deviations(criterion):
    fields = {"sizes": [20], "costs": [1.0], "budget": 2.0, "minimum": 2, "criterion": criterion}
    p = StratifiedAllocation(deviations=[[4e12, 0.0]], **fields)
    for backend in ("highs", "clarabel", "scip"):
        s = p.solve("milp", backend=backend)
        assert s.status is fo.Status.OPTIMAL and s.objective == pytest.approx(1.6e25 * (1 / 2 - 1 / 20))
        assert s.bound == pytest.approx(s.objective)


@pytest.mark.parametrize("unit", [1e-9, 1e12])
def test_precision_at_least_cost_in_any_unit_of_money(unit):
    p = PrecisionAllocation(
        sizes=[5, 4, 4],
        deviations=[1.0, 2.0, 1.0],
        costs=np.array([2.0, 2.0, 3.5]) * unit,
        targets=0.0591715976331361,
    )
    best = p.solve("enumeration").objective
    assert best == pytest.approx(21 * unit)
    for backend in ("highs", "scip", "cp-sat"):
        try:
            s = p.solve("milp", backend=backend)
        except fo.UnsupportedError:
            continue
        assert s.status is fo.Status.OPTIMAL and s.objective == pytest.approx(best)
        assert s.bound == pytest.approx(best)


def test_a_table_with_a_column_twice_is_refused():
    import pandas as pd

    table = pd.DataFrame([[5, 1.0, 9], [6, 2.0, 9]], columns=["size", "deviation", "size"])
    with pytest.raises(fo.DeclarationError, match="the table has 2 columns 'size', not one"):
        StratifiedAllocation.from_table(table, sample_size=4)
