"""Solvers count small reduced costs and violations as zero; answers are optimal and hold all the same."""

import itertools

import numpy as np
import pytest

import forcopt as fo
from forcopt.backends.registry import backends

COSTS = np.array([-7.2e-6, -6.8e-6, 1.3e-6, 1e-7])


def least(costs):
    """The optimum of the model below, by enumeration."""
    points = itertools.product((0, 1), (0, 1), (0, 1), range(-4, 7))
    return min(costs @ p for p in points if p[0] + p[1] - p[2] <= 1 and p[3] - 2 * p[0] >= -5)


@pytest.mark.parametrize("factor", [1.0, 1e-3, 1e3])
@pytest.mark.parametrize("backend", ["highs", "scip"])
def test_the_cheapest_column_decides_too(backend, factor):
    costs = COSTS * factor
    m = fo.Model()
    b = m.variable("b", 3, binary=True)
    z = m.variable("z", lower=-4, upper=6, integer=True)
    m.subject_to(b[0] + b[1] - b[2] <= 1)
    m.subject_to(z - 2 * b[0] >= -5)
    m.minimize(costs[:3] @ b + costs[3] * z)
    seen = []
    s = m.solve(backend, on_improvement=lambda step: seen.append((step.objective, step.bound)))
    optimum = least(costs)
    assert s.status == fo.Status.OPTIMAL
    assert s.objective == pytest.approx(optimum, rel=1e-9, abs=0)
    assert s.bound == pytest.approx(optimum, rel=1e-6, abs=0)
    assert all(abs(value) <= 2 * np.abs(costs).sum() * 7 for value, _ in seen)


@pytest.mark.parametrize("maximize", [False, True])
def test_duals_are_in_units_of_the_objective(maximize):
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=4)
    row = m.subject_to(x.sum() <= 5)
    value = 3e-6 * x[0] + 2e-6 * x[1]
    m.maximize(value) if maximize else m.minimize(-value)
    s = m.solve()
    assert abs(s.objective) == pytest.approx(14e-6, rel=1e-9, abs=0)
    assert abs(s.dual(row)) == pytest.approx(2e-6, rel=1e-6, abs=0)
    assert np.abs(s.reduced_cost(x)) == pytest.approx([1e-6, 0], rel=1e-6, abs=1e-15)


@pytest.mark.parametrize("factor", [5e-6, 1e-7, 1e-8, 3e-9])
@pytest.mark.parametrize("backend", ["highs", "scip", "gscip", "cp-sat", "pyomo:glpk", "pyomo:cbc"])
def test_rows_of_small_coefficients_hold_for_integers(backend, factor):
    """Tolerances of rows are absolute, so a solver takes 1e-7 more than the sack holds for nothing."""
    if backends()[backend].missing():
        pytest.skip(f"{backend} is not installed")
    weights, values = [5, 3, 7, 2], [9, 5, 13, 3]
    points = [p for p in itertools.product(range(4), repeat=4) if np.dot(weights, p) <= 21]
    m = fo.Model()
    x = m.variable("x", 4, lower=0, upper=3, integer=True)
    m.subject_to(np.round(np.multiply(weights, factor), 12) @ x <= round(21 * factor, 12))
    m.maximize(values @ x)
    s = m.solve(backend)
    assert (s.status, s.objective) == (fo.Status.OPTIMAL, max(np.dot(values, p) for p in points))


LINEAR = ["highs", "highs:pdlp", "scip", "gscip", "glop", "pdlp", "scs", "osqp", "pyomo:glpk", "pyomo:cbc"]


@pytest.mark.parametrize("backend", LINEAR)
@pytest.mark.parametrize("tiny", ["row", "bound"])
def test_small_rows_and_bounds_decide_linear_programs(backend, tiny):
    """SCIP and CBC give no multipliers, which would show that their optimum is none; HiGHS's do."""
    if backends()[backend].missing():
        pytest.skip(f"{backend} is not installed")
    m = fo.Model()
    if tiny == "row":
        x = m.variable("x", 2, lower=0, upper=8)
        m.subject_to(np.array([5e-9, 3e-9]) @ x <= 2e-9)
        m.maximize(x.sum())
    else:
        x = m.variable("x", 2, lower=0, upper=[1e-9, 5])
        m.subject_to(1e9 * x[0] + x[1] <= 5.5)
        m.maximize(5e9 * x[0] + x[1])
    s = m.solve(backend)
    assert s.status is fo.Status.OPTIMAL
    assert s.objective == pytest.approx(2 / 3 if tiny == "row" else 9.5, rel=1e-4)


@pytest.mark.parametrize("backend", ["highs", "scip", "gscip", "pyomo:glpk", "pyomo:cbc"])
@pytest.mark.parametrize("unit", [1e-5, 1e-7, 1e-9])
def test_small_bounds_hold_beside_integers(backend, unit):
    """A violation of 1e-6 would be many times the range of the continuous variable."""
    if backends()[backend].missing():
        pytest.skip(f"{backend} is not installed")
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=2, integer=True)
    y = m.variable("y", 2, lower=0, upper=[3 * unit, 1.0])
    m.subject_to(2 * x[0] + 6 * x[1] - 5 / unit * y[0] + 2 * y[1] <= 1)
    m.maximize(x[0] + 7 * x[1] - 3 / unit * y[0] + y[1])
    points = itertools.product(range(3), range(3), (0.0, 1.0))  # y[0] is as small as the row allows
    least = [(a, b, c, max(0, 2 * a + 6 * b + 2 * c - 1) / 5) for a, b, c in points]
    s = m.solve(backend)
    best = max(a + 7 * b - 3 * d + c for a, b, c, d in least if d <= 3)
    halves = max(a + 7 * b - 3 * 0 + (1 - 2 * a - 6 * b) / 2 for a, b, c, d in least if 2 * a + 6 * b <= 1)
    assert s.status is fo.Status.OPTIMAL and s.objective == pytest.approx(max(best, halves), rel=1e-6)
