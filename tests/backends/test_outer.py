"""Cones by tangents on solvers of rows: the same optima as solvers of cones, with bounds that hold."""

import itertools

import numpy as np
import pytest

import forcopt as fo
from forcopt.backends import get_backend
from forcopt.backends.base import SolveOptions
from forcopt.backends.conditioned import open_session
from forcopt.backends.outer import with_tangents
from forcopt.backends.registry import backends
from forcopt.compile.compiler import Capabilities, compile_model
from forcopt.compile.tangents import first_tangents, outside, tangents

LINEAR = ["highs", "glop", "gscip", "pyomo:glpk", "pyomo:cbc"]
SEARCHES = ["highs", "gscip", "pyomo:glpk", "pyomo:cbc"]


def ready(names):
    found = backends()
    return [
        pytest.param(name, marks=pytest.mark.skipif(found[name].missing() is not None, reason="no solver"))
        for name in names
    ]


def second_order(seed, integer):
    """Norms in the objective and in rows, and squares; the cones have 3 to 8 entries."""
    rng = np.random.default_rng(seed)
    m = fo.Model()
    x = m.variable("x", 5, lower=-4, upper=4, integer=integer)
    y = m.variable("y", 3, lower=-4, upper=4)
    far = rng.normal(size=(4, 5)) @ x - 3 * rng.normal(size=4)
    m.subject_to(fo.norm(y - x[:3]) <= 1.5, fo.norm(y[:2]) <= 2, y.sum() <= rng.normal())
    m.minimize(fo.norm(far) + 0.1 * x.sum() + 0.3 * fo.sum_squares(y))
    return m


def matrices(seed):
    return np.array([(b + b.T) / 2 for b in np.random.default_rng(seed).normal(size=(4, 3, 3))])


def semidefinite(seed, integer):
    """The least largest eigenvalue of a pencil under a semidefinite condition."""
    parts = matrices(seed)
    m = fo.Model()
    x = m.variable("x", 3, lower=-2, upper=2, integer=integer)
    pencil = parts[0] + sum(x[k] * parts[k + 1] for k in range(3))
    m.subject_to(fo.semidefinite(pencil + 3 * np.eye(3)))
    m.minimize(fo.lambda_max(pencil) + 0.1 * x.sum())
    return m


def check(found, want):
    assert found.status is fo.Status.OPTIMAL and found.violation < 1e-5
    assert found.objective == pytest.approx(want, rel=1e-5, abs=1e-5)
    assert found.bound <= want + 1e-5 and found.gap < 1e-4
    assert any(name.endswith("_tangents") for name in found.bridges) and "tangents of cones" in found.message


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("backend", ready(LINEAR))
def test_second_order_cones_agree_with_clarabel(backend, seed):
    m = second_order(seed, False)
    check(m.solve(backend), m.solve("clarabel").objective)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("backend", ready(SEARCHES))
def test_second_order_cones_with_integers_agree_with_scip(backend, seed):
    m = second_order(seed, True)
    check(m.solve(backend), m.solve("scip").objective)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("backend", ready(LINEAR))
def test_semidefinite_cones_agree_with_clarabel(backend, seed):
    m = semidefinite(seed, False)
    check(m.solve(backend), m.solve("clarabel").objective)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("backend", ready(SEARCHES))
def test_semidefinite_cones_with_integers_agree_with_enumeration(backend, seed):
    parts, values = matrices(seed), []
    for point in itertools.product(range(-2, 3), repeat=3):
        eigenvalues = np.linalg.eigvalsh(parts[0] + np.tensordot(point, parts[1:], 1))
        if eigenvalues[0] >= -3:
            values.append(eigenvalues[-1] + 0.1 * sum(point))
    check(semidefinite(seed, True).solve(backend), min(values))


def test_tangents_hold_in_the_cone_and_exclude_the_point():
    rng = np.random.default_rng(4)
    for m in (second_order(1, False), semidefinite(1, False)):
        capabilities = Capabilities(frozenset({"rows", "tangents"}))
        program = compile_model(m, capabilities)
        inside = open_session(get_backend("clarabel"), program).solve(SolveOptions()).x
        for cone in program.cones:
            held = (cone.matrix @ inside + cone.offset).reshape(-1, cone.size)
            for _ in range(20):
                x = inside + rng.normal(size=program.columns)
                entries = (cone.matrix @ x + cone.offset).reshape(-1, cone.size)
                cones, weights = tangents(cone, x, 1e-9)
                assert set(cones) == set(np.flatnonzero(outside(cone, x) > 1e-9))
                assert ((weights * entries[cones]).sum(axis=1) < 0).all()
                first = first_tangents(cone)
                for at, by in ((cones, weights), first):
                    assert ((by * held[at]).sum(axis=1) >= -1e-5).all()


def test_infeasible_and_unbounded_models():
    m = fo.Model()
    x, t = m.variable("x", 3), m.variable("t")
    far = m.subject_to(fo.norm(x) <= 1, x.sum() >= 2)
    m.minimize(x[0])
    assert m.solve("highs").status is fo.Status.INFEASIBLE
    for row in far:
        m.remove(row)
    m.subject_to(fo.norm(x) <= t)
    m.minimize(0.5 * t - x[0])
    assert m.solve("highs").status is fo.Status.UNBOUNDED
    m.subject_to(x[1] >= 3)
    m.minimize(t - 0.95 * x[0])  # bounded, though not by the first tangents
    assert m.solve("highs").objective == pytest.approx(3 * (1 - 0.95**2) ** 0.5, abs=1e-5)


def test_multipliers_of_rows_beside_a_cone():
    m = fo.Model()
    x = m.variable("x", 2)
    m.subject_to(fo.norm(x) <= 5)
    row = m.subject_to(x[0] <= 3)
    m.minimize(-2 * x[0] - x[1])
    found, want = m.solve("highs"), m.solve("clarabel")
    assert found.dual(row) == pytest.approx(want.dual(row), abs=1e-3)
    assert found.certify().bound == pytest.approx(want.objective, abs=1e-5)


def test_stages_lazy_families_and_a_limit():
    m = second_order(0, True)
    x = m["x"]
    m.lexicographic([fo.minimize(fo.norm(x - 1.5)), fo.maximize(x[0] - x[1])])
    assert m.solve("highs").stages == pytest.approx(m.solve("scip").stages, abs=1e-5)
    lazy = second_order(1, True)

    def separate(value):
        if value(lazy["x"]).sum() > 2 + 1e-6:
            yield lazy["x"].sum() <= 2

    lazy.lazy(separate)
    check(lazy.solve("highs"), lazy.solve("scip").objective)
    stopped = second_order(0, True).solve("highs", time_limit=0)
    assert stopped.status is fo.Status.LIMIT


def test_other_objects_and_inaccurate_solvers_get_no_tangents():
    m = second_order(0, False)
    with pytest.raises(fo.UnsupportedError, match="able: clarabel"):
        m.to_highs()
    for name in ("highs:pdlp", "osqp", "cp-sat", "scip"):
        assert "tangents" not in with_tangents(backends()[name]).kinds


def test_large_entries_are_held_as_far_as_the_rows_of_the_model_ask():
    m = fo.Model()
    x = m.variable("x", 3, lower=-3, upper=3, integer=True)
    t = m.variable("t")
    m.subject_to(fo.norm(5000 * (x - [0.3, 1.6, -2.2])) <= t, fo.norm(x[:2] - 1) <= 0)
    m.minimize(t / 5000)
    check(m.solve("highs"), (0.7**2 + 0.6**2 + 0.2**2) ** 0.5)


def test_levels_of_norms():
    m = fo.Model()
    y, z = m.variable("y", 2, lower=-3, upper=3), m.variable("z", 2)
    m.subject_to(fo.norm(y) <= 2, z[0] <= y[0], z[1] <= y.sum())
    m.leximin(z)
    assert m.solve("highs").levels == pytest.approx(
        [2, 2], abs=1e-4
    )  # the second magnifies what the first is off


@pytest.mark.parametrize("backend", ready(["highs", "gscip"]))
def test_conditions_and_cones_together(backend):
    m = fo.Model()
    x, on = m.variable("x", 2, lower=-5, upper=5), m.variable("on", 2, binary=True)
    m.subject_to(fo.implies(on, x >= [1.5, 2.5]), fo.norm(x) <= 4)
    m.maximize(3 * on.sum() - fo.norm(x - [-1, 0.5]) - x[0])
    check(m.solve(backend), m.solve("scip").objective)
