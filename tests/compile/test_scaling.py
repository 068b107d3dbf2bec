"""Programs of small units are those of usual units: rows, columns, costs, edits and stages."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import forcopt as fo

INTEGER = ["highs", "scip", "gscip"]


@pytest.mark.parametrize("backend", INTEGER)
def test_one_small_entry_leaves_other_rows_scaled(backend):
    """An entry that must be read asks for geometric scaling, which comes after that of small rows."""
    for other in (False, True):
        m = fo.Model()
        x = m.variable("x", 2, lower=0, upper=9, integer=True)
        w = m.variable("w", lower=0, upper=1e9)
        m.subject_to(1e-7 * (2 * x[0] + x[1]) >= 7e-7)
        if other:
            m.subject_to(9e-10 * w + x[0] <= 9)
        m.minimize(x.sum())
        assert m.solve(backend).objective == pytest.approx(4)


@pytest.mark.parametrize("backend", INTEGER)
@pytest.mark.parametrize("unit", [1.0, 1e-5, 1e-6, 1e-7])
def test_dust_is_judged_in_the_units_of_its_row(backend, unit):
    m = fo.Model()
    x, z = m.variable("x", lower=0, upper=3, integer=True), m.variable("z", lower=2e-9, upper=8e-9)
    m.subject_to(unit * z == unit * 1e-9 * x)
    m.minimize(x)
    assert m.solve(backend).objective == 2


@pytest.mark.parametrize("backend", INTEGER)
@pytest.mark.parametrize("value", [1e-5, 1e-8, 1e-10])
def test_an_edit_is_scaled_like_a_new_model(backend, value):
    m = fo.Model()
    p = m.parameter("p", value=1.0, lower=0)
    x = m.variable("x", 2, lower=0, upper=10, integer=True)
    m.subject_to(p * (2 * x[0] + 4 * x[1]) == 7 * p)
    m.minimize(x.sum())
    assert m.solve(backend).status == "infeasible"
    p.value = value
    assert m.solve(backend).status == "infeasible"
    m = fo.Model()
    p = m.parameter("p", value=1.0, lower=0)
    x = m.variable("x", 2, lower=0, upper=10, integer=True)
    m.subject_to(x.sum() >= 3)
    m.minimize(p * (2 * x[0] + x[1]))
    assert m.solve(backend).objective == 3
    p.value = value
    assert m.solve(backend).objective == pytest.approx(3 * value)
    p.value = 1.0
    assert m.solve(backend).objective == 3


@pytest.mark.parametrize("backend", ["highs", "scip", "gscip", "glop"])
@pytest.mark.parametrize("unit", [1e-4, 1e-6, 1e-8])
def test_each_stage_is_scaled_by_itself(backend, unit):
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=10)
    m.subject_to(x.sum() >= 3)
    m.lexicographic([fo.minimize(unit * (2 * x[0] + x[1])), fo.maximize(x[0])])
    s = m.solve(backend)
    assert s.status == "optimal" and s[x].tolist() == pytest.approx([0, 3], abs=1e-5)


@pytest.mark.parametrize("cost", [1e3, 1e5, 1e9])
def test_tolerances_times_large_costs_are_no_better_point(cost):
    m = fo.Model()
    y, t = m.variable("y", lower=0, upper=3, integer=True), m.variable("t", lower=-10, upper=10)
    m.subject_to(3 * t >= y - 1, 3 * t >= 1 - y)
    m.minimize(cost * t)
    s = m.solve("highs")
    assert s.status == "optimal" and s.objective == pytest.approx(0, abs=1e-6)


CENTRE = np.array([1.2, 0.4, 2.5])


@pytest.mark.parametrize("backend", [*INTEGER, "clarabel"])
@pytest.mark.parametrize("unit", [1e-8, 1e-6, 1e-4, 1e4, 1e5, 1e6])
def test_norms_and_squares_hold_in_their_unit(backend, unit):
    m = fo.Model()
    x = m.variable("x", 3, lower=0, upper=9)
    m.subject_to(fo.norm(unit * (x - CENTRE)) <= 4 * unit)
    m.maximize(3 * x[0] + 2 * x[1] + x[2])
    assert m.solve(backend).objective == pytest.approx(6.9 + 4 * 14**0.5, abs=1e-3)
    if backend == "gscip" and unit > 1:
        return  # SCIP ends with an error of its own on squares of 1e6
    m = fo.Model()
    x = m.variable("x", 3, lower=0, upper=9)
    m.subject_to(x.sum() >= 7)
    m.minimize(unit * fo.sum_squares(x - CENTRE))
    assert m.solve(backend).objective / unit == pytest.approx(2.9**2 / 3, rel=1e-3)


@pytest.mark.parametrize("backend", INTEGER)
@pytest.mark.parametrize("unit", [1e-8, 1e-5, 1e4])
def test_norms_of_integers_hold_in_their_unit(backend, unit):
    points = np.array(list(product(range(10), repeat=3)))
    near = points[((points - CENTRE) ** 2).sum(axis=1) <= 16]
    m = fo.Model()
    x = m.variable("x", 3, lower=0, upper=9, integer=True)
    m.subject_to(fo.norm(unit * (x - CENTRE)) <= 4 * unit)
    m.maximize(3 * x[0] + 2 * x[1] + x[2])
    assert m.solve(backend).objective == pytest.approx((near @ [3, 2, 1]).max())


def test_multipliers_of_small_cones_prove_the_optimum():
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=9)
    m.subject_to(fo.semidefinite(1e-7 * fo.stack([3 - x[0], x[1], x[1], 1 + 0 * x[0]]).reshape((2, 2))))
    m.maximize(x[0] + 2 * x[1])
    s = m.solve("clarabel")
    assert s.objective == pytest.approx(4, abs=1e-4)
    assert float(s.certify().bound) == pytest.approx(4, abs=1e-3)


@pytest.mark.parametrize("integer", [False, True])
def test_leximin_of_values_that_solvers_cannot_tell_apart_is_refused(integer):
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=10, integer=integer)
    m.subject_to(x[0] + 2 * x[1] <= 9)
    m.leximin(1e-8 * x)
    with pytest.raises(fo.UnsupportedError, match="multiply all by"):
        m.solve("highs")
    m.leximin(2.0**27 * (1e-8 * x))
    assert m.solve("highs")[x].tolist() == pytest.approx([3, 3])
