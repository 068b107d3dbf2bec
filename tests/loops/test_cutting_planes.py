"""Lazy families: solved by cutting planes as if all their constraints were written down."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import forcopt as fo
from forcopt.backends.base import SolveOptions
from forcopt.backends.registry import get_backend
from forcopt.clock import Deadline
from forcopt.compile.compiler import compile_model
from forcopt.loops.cutting_planes import cutting_planes


@pytest.mark.parametrize("backend", ["highs", "glop", "clarabel", "scip", "gscip"])
def test_a_lazy_family_that_leaves_no_point(backend):
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=10)

    def separate(value):
        if value(x).sum() > 3 + 1e-6:
            yield x.sum() <= 3

    m.lazy(separate)
    m.subject_to(x.sum() >= 5)
    m.maximize(x[0])
    assert m.solve(backend).status is fo.Status.INFEASIBLE


def test_a_disc_from_its_tangents():
    m = fo.Model("disc")
    x = m.variable("x", 2, lower=-2, upper=2)
    asked = []

    def separate(value):
        asked.append(value(x))
        size = np.hypot(*value(x))
        if size > 1 + 1e-7:
            yield value(x) / size @ x <= 1

    m.lazy(separate)
    m.maximize(3 * x[0] + 4 * x[1])
    s = m.solve()
    assert s.status == "optimal"
    assert s.objective == pytest.approx(5, abs=1e-5)
    np.testing.assert_allclose(s[x], [0.6, 0.8], atol=1e-2)
    assert s.bound >= s.objective - 1e-6
    assert len(asked) > 3
    with pytest.raises(fo.DeclarationError, match="not in model"):
        s.dual(x[0] <= 1)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.booleans())
def test_against_all_constraints_written_down(seed, whole):
    rng = np.random.default_rng(seed)
    n = 4
    a = rng.integers(0, 6, (40, n))
    b = a.sum(axis=1) * rng.uniform(0.5, 2, 40).round(1) + 1
    cost = rng.integers(1, 9, n)

    def declare():
        m = fo.Model()
        x = m.variable("x", n, lower=0, upper=5, integer=whole)
        m.maximize(cost @ x)
        return m, x

    m, x = declare()
    m.subject_to(a @ x <= b)
    right = m.solve(gap=0)
    m, x = declare()

    def separate(value):
        excess = a @ value(x) - b
        worst = int(np.argmax(excess))
        if excess[worst] > 1e-7:
            yield a[worst] @ x <= b[worst]

    m.lazy(separate, name="rows")
    s = m.solve(gap=0)
    assert s.status == right.status == "optimal"
    assert s.objective == pytest.approx(right.objective, abs=1e-6)
    assert "rows" not in m.violations(s.point) or m.violations(s.point)["rows"] < 1e-6


def tour(n, seed):
    rng = np.random.default_rng(seed)
    at = rng.integers(0, 100, (n, 2))
    distance = np.hypot(*(at[:, None] - at[None]).transpose(2, 0, 1)).round()
    m = fo.Model("tour")
    edges = list(itertools.combinations(range(n), 2))
    x = m.variable("x", len(edges), binary=True)
    touches = np.array([[v in e for e in edges] for v in range(n)], dtype=float)
    m.subject_to(touches @ x == 2)

    def separate(value):
        chosen = [e for e, used in zip(edges, value(x), strict=True) if used > 0.5]
        left = set(range(n))
        while left:
            part = {left.pop()}
            while grown := {v for e in chosen for v in e if part & set(e)} - part:
                part |= grown
            left -= part
            if len(part) < n:
                inside = [set(e) <= part for e in edges]
                yield np.array(inside, dtype=float) @ x <= len(part) - 1

    m.lazy(separate)
    m.minimize(np.array([distance[e] for e in edges]) @ x)
    return m, distance


@pytest.mark.parametrize("seed", [0, 1])
def test_tours(seed):
    m, distance = tour(7, seed)
    best = min(
        sum(distance[a, b] for a, b in itertools.pairwise((0, *order, 0)))
        for order in itertools.permutations(range(1, 7))
    )
    s = m.solve(gap=0)
    assert s.objective == pytest.approx(best)
    assert s.status == "optimal"


def test_with_stages_products_and_several_families():
    m = fo.Model()
    x = m.variable("x", 3, lower=0, upper=10)
    b = m.variable("b", binary=True)
    both = fo.product(b, x[0])

    def pairs(value):
        for i in range(3):
            if value(x)[i] + value(x)[i - 1] > 8 + 1e-7:
                yield x[i] + x[i - 1] <= 8

    def gated(value):
        if value(both) > 3 + 1e-7:
            yield both <= 3

    m.lazy(pairs)
    m.lazy(gated)
    m.lexicographic([fo.maximize(x.sum() + 2 * b), fo.maximize(x[0])])
    s = m.solve()
    assert s.status == "optimal"
    np.testing.assert_allclose(s.stages, [13, 3], atol=1e-5)  # b = 1, x = (3, 4 or 5, ...) sums to 11


def test_infeasible_unbounded_and_slow():
    m = fo.Model()
    x = m.variable("x", lower=0, upper=1)
    m.lazy(lambda value: [x >= 2] if value(x) < 2 else [], name="two")
    m.subject_to(x <= 0.5)
    m.minimize(x)
    s = m.solve()
    assert s.status == "infeasible"
    assert s.reason == "the constraints cannot hold together with the lazy families two"
    m = fo.Model()
    x = m.variable("x", lower=0)
    m.lazy(lambda value: [x <= 3] if value(x) > 3 else [])
    m.maximize(x)
    s = m.solve()  # bounded by the family, which cannot be asked
    assert s.status == "failed"
    assert "give the variables bounds" in s.message
    m, _ = tour(7, 0)
    s = m.solve(time_limit=0.0)
    assert s.status in ("limit", "infeasible") or s.status.has_solution
    assert s.status != "infeasible"


def test_rounds_run_out():
    m = fo.Model()
    x = m.variable("x", lower=0, upper=1)
    m.lazy(lambda value: [x >= value(x) + 1e-5])  # never satisfied
    m.minimize(x)
    highs = get_backend("highs")
    session = highs.session(compile_model(m, highs.capabilities))
    with pytest.raises(fo.BackendError, match=r"each of 5 rounds"):
        cutting_planes(session, m, SolveOptions(), Deadline(), 1e-6, rounds=5)


def test_bounds_hold_when_stopped(monkeypatch):
    m = fo.Model()
    x = m.variable("x", 2, lower=-2, upper=2)

    def separate(value):
        size = np.hypot(*value(x))
        if size > 1 + 1e-7:
            yield value(x) / size @ x <= 1

    m.lazy(separate)
    m.minimize(x.sum())
    highs = get_backend("highs")
    session = highs.session(compile_model(m, highs.capabilities))
    now = itertools.count()
    monkeypatch.setattr("forcopt.clock.time.perf_counter", lambda: float(next(now)))
    options = SolveOptions(time_limit=8.0)
    result = cutting_planes(session, m, options, Deadline(8.0), 1e-6)
    assert result.status in ("limit", "feasible")
    assert -4.0 <= result.bound <= -np.sqrt(2) + 1e-6


def test_bad_oracles():
    m = fo.Model("mine")
    x = m.variable("x", lower=0, upper=1)
    other = fo.Model("other").variable("y")
    m.minimize(x)
    for yielded, rule in ((3, "not a constraint"), (other <= 1, "'other'"), (fo.abs(x) >= 1, "affine")):
        m.lazies.clear()
        m.lazy(lambda value, subject=yielded: [subject], name=f"family {rule}")
        with pytest.raises((fo.DeclarationError, fo.CurvatureError), match=rule):
            m.solve()


@pytest.mark.parametrize("backend", ["clarabel", "scs", "scip"])
@pytest.mark.parametrize("reach, status", [(5, "infeasible"), (4, "optimal")])
def test_a_lazy_family_over_a_cone(backend, reach, status):
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=5)
    m.subject_to(fo.norm(x) <= 3)

    def separate(value):
        if value(x).sum() < reach - 1e-6:
            yield x.sum() >= reach

    m.lazy(separate)
    m.maximize(x[1])
    s = m.solve(backend)
    assert s.status == status
    if status == "optimal":  # on the circle and the line
        assert s.objective == pytest.approx(2 + 0.5**0.5, abs=1e-3)


@pytest.mark.parametrize("backend", ["highs", "scip"])
def test_a_side_is_measured_by_its_own_size(backend):
    """A large bound on the other side does not hide a violation."""
    m = fo.Model()
    x = m.variable("x", 3, lower=0, upper=5, integer=True)
    m.lazy(lambda value: [x.sum().between(-1e9, 4)])
    m.maximize([1, 2, 3] @ x)
    s = m.solve(backend)
    assert s.objective == 12
    row = m.subject_to(x.sum().between(-1e9, 1e3))
    assert row.relative_violation(np.array([2e3, 0, 0])) == 1
    assert row.relative_violation(np.array([-2e9, 0, 0])) == 1


def oracle_of_a_disc(m, radius, **options):
    """A variable in a disc, by tangents."""
    x = m.variable("x", 2, lower=-2, upper=2)

    def separate(value):
        size = np.hypot(*value(x))
        if size > radius + 1e-6:
            yield value(x) / size @ x <= radius

    return x, m.lazy(separate, **options)


def test_a_family_that_is_not_exact_proves_nothing():
    m = fo.Model()
    x, family = oracle_of_a_disc(m, 1.0, exact=False)
    m.maximize(x.sum())
    s = m.solve()
    assert s.status is fo.Status.APPROXIMATE and s.bound == np.inf and not family.exact
    assert s.objective == pytest.approx(np.sqrt(2), abs=1e-5)
    assert s.message.endswith("but only if the answers of its oracles are optimal: no proof")
    assert s.certify().optimal is None and s.certify().bound is None
    m.subject_to(x.sum() >= 1.5)
    s = m.solve()
    assert s.status is fo.Status.LIMIT and s.point is None and "no proof" in s.message
    assert not s.certify().optimal and s.certify().feasible is None


@pytest.mark.parametrize("backend", ["highs", "clarabel", "pyscipopt"])
def test_constraints_that_are_withdrawn(backend):
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=2)
    limits, asked = [1.0], []

    def separate(value):
        asked.append(limits[-1])
        if limits[-1] == 1.0 and len(asked) > 1:  # it was wrong
            limits.append(3.0)
            family.withdrawn = True
        return [x.sum() <= limits[-1]] if value(x).sum() > limits[-1] + 1e-6 else []

    family = m.lazy(separate, exact=False)
    m.maximize(x.sum())
    s = m.solve(backend)
    assert s.objective == pytest.approx(3.0, abs=1e-5) and asked[0] == 1.0
    assert not family.withdrawn


def test_an_oracle_out_of_time():
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=2)
    left = []

    def separate(value):
        left.append(family.deadline.left)
        if len(left) > 1:
            raise TimeoutError
        return [x.sum() <= 3]

    family = m.lazy(separate)
    m.maximize(x.sum())
    s = m.solve(time_limit=30)
    assert s.status is fo.Status.LIMIT and s.bound == pytest.approx(3.0)
    assert all(0 < seconds <= 30 for seconds in left)
    left.clear()
    m.violations(np.zeros(2))
    assert left == [None]  # the deadline belonged to that solve


@pytest.mark.parametrize("backend", ["highs", "scip", "gscip"])
@pytest.mark.parametrize("unit", [1e-7, 1e-9])
def test_rows_of_small_coefficients_count(backend, unit):
    """A violation below every tolerance counts if the entries of its row are as small."""
    m = fo.Model()
    x = m.variable("x", 3, lower=0, upper=[2, 3, 1], integer=True)
    row = (unit * np.array([6.0, 5.0, -3.0])) @ x <= 7 * unit
    m.lazy(lambda value: [row])
    m.maximize([-2, 7, 6] @ x)
    s = m.solve(backend)
    assert s.status == "optimal" and s[x].tolist() == [0, 2, 1]


def test_a_better_point_than_a_claim_beside_lazy_rows():
    """CBC 2.10 says 14 of the program with this row; the oracle accepts the point of 15."""
    if get_backend("pyomo:cbc").missing():
        pytest.skip("needs CBC")
    m = fo.Model()
    x = m.variable("x", 3, lower=0, upper=[1, 3, 3], integer=True)
    row = 5 * x[1] - 2 * x[2] <= 9
    m.lazy(lambda value: [row] if 5 * value(x)[1] - 2 * value(x)[2] > 9 else [])
    m.maximize([5, 7, -4] @ x)
    s = m.solve("pyomo:cbc")
    assert s.status == "optimal" and s.objective == pytest.approx(15)


def test_a_solver_that_ignores_its_rows_is_asked_once():
    """GLPK 5.0's preprocessor returns the same point after each cut."""
    if get_backend("pyomo:glpk").missing():
        pytest.skip("needs GLPK")
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=[3, 1], integer=True)
    y = m.variable("y", lower=0, upper=2e-4)
    asked = []

    def separate(value):
        asked.append(value(y))
        return [8 * y <= 12e-4] if 8 * value(y) > 12e-4 + 1e-9 else []

    m.lazy(separate)
    m.maximize(7 * x[0] - 4 * x[1] + 6e4 * y)
    s = m.solve("pyomo:glpk")
    assert s.status == "optimal" and s.objective == pytest.approx(30)
    assert s.bound == pytest.approx(30) and len(asked) < 12


@pytest.mark.parametrize("backend", ["highs", "scip", "gscip"])
def test_no_point_is_told_that_a_family_cuts_off(backend):
    rng = np.random.default_rng(3)
    weights, values = rng.integers(5, 40, (3, 12)).astype(float), rng.integers(5, 60, 12).astype(float)
    room = weights.sum(axis=1) * 0.4

    def knapsack(stop, told):
        m = fo.Model()
        x = m.variable("x", 12, binary=True)
        m.lazy(
            lambda at: [weights[i] @ x <= room[i] for i in range(3) if weights[i] @ at(x) > room[i] + 1e-6]
        )
        m.maximize(values @ x)
        return x, m.solve(backend, on_improvement=lambda step: told.append(step) or stop)

    told = []
    _, s = knapsack(False, told)
    assert all(step.objective <= s.objective + 1e-6 and step.bound >= s.objective - 1e-6 for step in told)
    x, s = knapsack(True, [])
    assert not s.status.has_solution or (weights @ s[x] <= room + 1e-6).all()
