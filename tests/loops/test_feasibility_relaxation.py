"""The least changes that make a model feasible, against a linear program of scipy, and on all backends."""

import numpy as np
import pytest
from scipy.optimize import linprog

import forcopt as fo


def infeasible(seed, whole=False):
    rng = np.random.default_rng(seed)
    n, rows = int(rng.integers(2, 5)), int(rng.integers(3, 7))
    a, b = rng.integers(-3, 4, (rows, n)).astype(float), rng.integers(-6, 3, rows).astype(float)
    m = fo.Model()
    x = m.variable("x", n, lower=0, upper=3, integer=whole)
    need = m.subject_to(a @ x <= b, name="need")
    m.minimize(x.sum())
    return m, need, a, b


@pytest.mark.parametrize("backend", ["highs", "glop", "clarabel", "scip"])
@pytest.mark.parametrize("seed", range(6))
def test_the_sum_of_changes_is_least(seed, backend):
    m, need, a, b = infeasible(seed)
    weight = np.arange(1.0, len(b) + 1)
    found = m.feasibility_relaxation(backend=backend, weights={need: weight})
    rows, n = a.shape
    true = linprog(
        np.append(np.zeros(n), weight),
        np.hstack([a, -np.eye(rows)]),
        b,
        bounds=[(0, 3)] * n + [(0, None)] * rows,
    )
    assert found.status == "optimal"
    assert found.total == pytest.approx(true.fun, abs=1e-5)
    changed = b.copy()
    for c in found.changes:
        assert c.side == "<=" and c.bound == b[int(c.name[5:-1])]
        changed[int(c.name[5:-1])] = c.needed
    assert (a @ found.point[:n] <= changed + 1e-5).all()


def test_integers_stay_whole_and_bounds_may_change():
    m = fo.Model()
    x = m.variable("x", lower=0, upper=1, integer=True)
    y = m.variable("y", lower=0, upper=1)
    m.subject_to(2 * x + y >= 6, name="need")
    found = m.feasibility_relaxation()
    assert found.total == pytest.approx(3) and [str(c) for c in found.changes] == [
        "lower need >= 6 by 3, to 3"
    ]
    found = m.feasibility_relaxation(bounds=True, constraints=[])
    assert found.total == pytest.approx(2) and 2 * found.point[0] + found.point[1] >= 6 - 1e-6
    assert {(c.name, c.side) for c in found.changes} <= {("x", "<="), ("y", "<=")}


def test_a_feasible_model_needs_no_change_and_hard_rows_stay():
    m = fo.Model()
    x = m.variable("x", lower=0)
    low = m.subject_to(x >= 2, name="low")
    assert str(m.feasibility_relaxation()) == "the model is feasible"
    m.subject_to(x <= 1, name="high")
    assert [c.name for c in m.feasibility_relaxation(constraints=[low]).changes] == ["low"]
    assert m.feasibility_relaxation(constraints=[]).status == "infeasible"


def test_cones_are_hard():
    m = fo.Model()
    x = m.variable("x", 2)
    m.subject_to(fo.norm(x) <= 1)
    m.subject_to(x[0] >= 3, name="far")
    found = m.feasibility_relaxation()
    assert found.total == pytest.approx(2, abs=1e-5) and found.changes[0].name == "far"


def test_refusals():
    m = fo.Model()
    x = m.variable("x")
    row = m.subject_to(x >= 1)
    with pytest.raises(fo.DeclarationError, match="above 0"):
        m.feasibility_relaxation(weights={row: 0})
    with pytest.raises(fo.DeclarationError, match="not a constraint of the model"):
        fo.Model("other").feasibility_relaxation(constraints=[row])


def test_weights_of_other_things_are_refused():
    m, other = fo.Model(), fo.Model()
    x, y = m.variable("x", lower=0, upper=1), other.variable("y")
    m.subject_to(x >= 2, x >= 4)
    elsewhere = other.subject_to(y >= 1)
    gone = m.subject_to(x <= 0)
    m.remove(gone)
    for weights in ({elsewhere: 1.0}, {gone: 1.0}, {"c1": 1.0}):
        with pytest.raises(fo.DeclarationError, match=r"weights: .* is not a constraint of the model"):
            m.feasibility_relaxation(weights=weights)
    for weights in (2.0, 0, "c1"):
        with pytest.raises(fo.DeclarationError, match=r"weights is .*; it must give numbers to constraints"):
            m.feasibility_relaxation(weights=weights)


@pytest.mark.parametrize("unit", [1.0, 1e-6, 1e-10])
def test_rows_of_small_coefficients_are_changed_too(unit):
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=10, integer=True)
    m.subject_to(unit * (2 * x[0] + 4 * x[1]) == 7 * unit, name="row")
    m.minimize(x.sum())
    found = m.feasibility_relaxation()
    assert found.status == "optimal" and found.total == pytest.approx(unit) and len(found.changes) == 1
