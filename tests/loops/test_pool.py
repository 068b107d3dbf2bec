"""The feasible points that a search found."""

import numpy as np
import pytest

import forcopt as fo


def knapsack(sense="max"):
    rng = np.random.default_rng(5)
    worth, weight = rng.integers(5, 60, 25), rng.integers(5, 60, 25)
    m = fo.Model("knapsack")
    x = m.variable("x", 25, binary=True)
    m.subject_to(weight @ x <= weight.sum() // 2 if sense == "max" else weight @ x >= weight.sum() // 2)
    m.optimize(fo.maximize(worth @ x) if sense == "max" else fo.minimize(worth @ x))
    return m, x, worth


@pytest.mark.parametrize("backend", ["highs", "scip", "cp-sat"])
@pytest.mark.parametrize("sense", ["max", "min"])
def test_points_are_feasible_distinct_and_in_order(backend, sense):
    m, x, worth = knapsack(sense)
    s = m.solve(backend, pool=5, seed=1)
    assert s.status == "optimal" and 1 <= len(s.pool) <= 5
    assert s.pool[0].objective == pytest.approx(s.objective)
    values = [p.objective for p in s.pool]
    assert values == sorted(values, reverse=sense == "max")
    assert len({tuple(p[x]) for p in s.pool}) == len(s.pool)
    for p in s.pool:
        assert p.status == "feasible" and p.objective == pytest.approx(float(worth @ p[x]))
        assert not m.violations(p.point)


def test_no_pool_unless_asked_for():
    m, *_ = knapsack()
    assert m.solve().pool == []
    with pytest.raises(fo.DeclarationError, match="pool is -1"):
        m.solve(pool=-1)
