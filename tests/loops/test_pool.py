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


def test_points_of_a_model_with_parameters_have_the_columns_of_the_parameters():
    m = fo.Model()
    x, p = m.variable("x", 2, upper=5, lower=0, integer=True), m.parameter("p", value=2, lower=0, upper=4)
    m.subject_to(x.sum() <= 4 + p, p * x[0] <= 5)
    m.maximize(3 * x[0] + x[1])
    for value, best in ((2, [2, 4]), (1, [5, 0])):
        p.value = value
        s = m.solve("highs", pool=4)
        assert [s.pool[0][x].tolist(), s.pool[0][p]] == [best, value]
        assert s.pool[0].objective == s.objective


def test_points_keep_the_objective_of_their_search():
    m, x, _ = knapsack()
    s = m.solve(pool=3)
    m.minimize(x.sum())
    assert s.pool[0].objective == s.objective > 0
