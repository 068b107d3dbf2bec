"""Leximin by all methods, on all backends: against each other, brute force, and solvers that stumble."""

from __future__ import annotations

import itertools
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import forcopt as fo
from forcopt.backends import backends, get_backend
from forcopt.backends.base import RawResult, Session, SolveOptions
from forcopt.compile.compiler import compile_model
from forcopt.loops.lexicographic import lexicographic
from forcopt.loops.leximin import Floors, SaturationLayout, SubsetCuts

LINEAR = [
    name
    for name, backend in backends().items()
    if backend.missing() is None and not backend.capabilities.only_integer and name != "pyscipopt"
]
CONVEX = ["saturation", "compact", "cuts"]


def shares(worth, total, method=None, **options):
    """A model that divides `total` among candidates, each at most 1, whose worth to groups is given."""
    m = fo.Model()
    x = m.variable("x", len(worth), lower=0, upper=1)
    m.subject_to(x.sum() == total)
    m.leximin(worth.T @ x, method, **options)
    return m


def exact_levels(worth, total):
    """By fixing what cannot rise, each asked for by a linear program of scipy's."""
    from scipy.optimize import linprog

    n, count = worth.shape
    fixed = {}

    def best(aim, floor):
        rows = [[*-worth[:, j], 0.0 if j in fixed or aim is not None else 1.0] for j in range(count)]
        limits = [-fixed.get(j, floor if aim is not None else 0.0) for j in range(count)]
        cost = [0.0] * n + [-1.0] if aim is None else [*-worth[:, aim], 0.0]
        bounds = [(0, 1)] * n + [(None, None) if aim is None else (0, 0)]
        r = linprog(cost, rows, np.array(limits) + 1e-11, [[1.0] * n + [0.0]], [total], bounds)
        assert r.status == 0, r.message
        return -r.fun

    while len(fixed) < count:
        floor = best(None, 0.0)
        rises = {j: best(j, floor) for j in range(count) if j not in fixed}
        stuck = [j for j, most in rises.items() if most <= floor + 1e-8]
        assert stuck
        fixed |= dict.fromkeys(stuck, floor)
    return np.sort(list(fixed.values()))


@pytest.mark.parametrize("method", CONVEX)
def test_maximin_is_not_all(method):
    worth = np.array([[0.3, 1, 0], [0.3, 0, 1], [0, 0.5, 0.5]])
    s = shares(worth, 1, method).solve()
    np.testing.assert_allclose(s.levels, [0.3, 0.5, 0.5], atol=1e-7)
    np.testing.assert_allclose(s.stages, [0.3, 0.8, 1.3], atol=1e-7)
    assert (s.status, s.objective, s.bound) == ("optimal", pytest.approx(0.3), pytest.approx(0.3))


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(0, 10**6))
def test_all_methods_agree_with_fixing_by_hand(seed):
    rng = np.random.default_rng(seed)
    n, count = int(rng.integers(2, 8)), int(rng.integers(1, 6))
    worth = rng.integers(0, 11, (n, count)) / 10  # ties and degenerate faces
    total = float(rng.integers(1, n + 1))
    expected = exact_levels(worth, total)
    for method in CONVEX:
        s = shares(worth, total, method).solve()
        assert s.status == "optimal"
        np.testing.assert_allclose(s.levels, expected, atol=1e-6)


@pytest.mark.parametrize("backend", LINEAR)
@pytest.mark.parametrize("method", CONVEX)
def test_every_backend(backend, method):
    if method == "cuts" and backend.startswith("pyomo:"):
        pytest.skip("a process for each of its many solves")
    worth = np.random.default_rng(5).integers(0, 6, (6, 4)) / 5
    s = shares(worth, 2, method).solve(backend)
    tolerance = 1e-6 if get_backend(backend).accuracy <= 1e-6 else 2e-3
    np.testing.assert_allclose(s.levels, exact_levels(worth, 2), atol=tolerance)


@pytest.mark.parametrize("method", CONVEX)
def test_larger_than_rounding_forgives(method):
    """At default tolerances and with the solver's own sums, the later stages become infeasible."""
    rng = np.random.default_rng(0)
    worth = rng.random((40, 14))
    s = shares(worth, 10, method).solve()
    assert s.status == "optimal" and "slack" not in s.message
    expected = shares(worth, 10, "saturation").solve()
    np.testing.assert_allclose(s.levels, expected.levels, atol=1e-6)


@pytest.mark.parametrize("method", ["compact", "cuts", "ordered-values"])
@pytest.mark.parametrize("backend", ["highs", "cp-sat"])
def test_integers_against_enumeration(method, backend):
    for seed in range(2):
        worth = np.random.default_rng(seed).integers(0, 6, (7, 5))
        m = fo.Model()
        x = m.variable("x", 7, binary=True)
        m.subject_to(x.sum() == 3)
        m.leximin(worth.T @ x, method)
        s = m.solve(backend)
        sums = [sorted(worth[list(c)].sum(axis=0)) for c in itertools.combinations(range(7), 3)]
        best = max(map(tuple, sums))
        assert s.status == "optimal"
        assert tuple(s.levels) == best
        assert s.bound == pytest.approx(best[0])
        m.leximax(worth.T @ x, method)
        assert tuple(m.solve(backend).levels) == min(tuple(s[::-1]) for s in sums)


def test_outcomes():
    m = fo.Model()
    x = m.variable("x", (3, 2), binary=True)
    m.subject_to(x.sum(axis=1) <= 1, x.sum() <= 4)
    values = x @ np.array([0.5, 1.25])
    m.leximin(values, "ordered-values", outcomes=[1.25, 0, 0.5, 0.5])
    assert m.solve().levels.tolist() == [1.25, 1.25, 1.25]
    m.leximin(values, "ordered-values")
    with pytest.raises(fo.DeclarationError, match="needs all values that can be taken"):
        m.solve()
    m.leximin(values, "ordered-values", outcomes=[0, 1])
    s = m.solve()
    assert s.status == "failed"
    assert "takes the value 1.25, which is no outcome" in s.message
    y = m.variable("y", 2, lower=0, upper=2000, integer=True)
    m.leximin(y, "ordered-values")
    with pytest.raises(fo.DeclarationError, match="2001 outcomes; it takes at most 1000"):
        m.solve()


def test_convex_models():
    m = fo.Model()
    x = m.variable("x", 3, lower=0.1)
    m.subject_to(x[0] <= 1, fo.norm(x) <= 5)
    for method in CONVEX:
        m.leximin(fo.log(x), method)
        s = m.solve("clarabel")
        np.testing.assert_allclose(s[x], [1, np.sqrt(12), np.sqrt(12)], atol=1e-4)
        np.testing.assert_allclose(s.levels, [0, np.log(12) / 2, np.log(12) / 2], atol=1e-4)
        m.leximax((x - [3, 3, 1]) ** 2, method)
        s = m.solve("clarabel")
        np.testing.assert_allclose(s.levels, [4, 0, 0], atol=1e-4)


def test_interior_points_say_where_they_got_stuck():
    rng = np.random.default_rng(0)
    worth = rng.random((200, 60))
    exact = shares(worth, 30, "saturation").solve("highs:simplex").levels
    s = shares(worth, 30, "saturation").solve("clarabel")
    assert np.abs(s.levels - exact).max() < 1e-4
    stuck = re.search(r"(\d+) of \d+ solves ended above the tolerance", s.message)
    assert (s.status == "feasible") == (stuck is not None)
    assert s.bound == pytest.approx(exact[0], abs=1e-7)


def test_what_is_above_the_level_is_not_tight_for_a_small_multiplier():
    levels = SaturationLayout(values=np.arange(3), rows=0)
    found = RawResult(fo.Status.OPTIMAL, row_dual=np.array([0.9, 1e-4, 1e-4]))
    assert levels.tight(found, np.array([0.0, 1e-3, 1e-6]), 1e-6).tolist() == [True, False, True]
    fixed = np.array([0.0, np.inf, 0.0])  # the second is none of the free ones
    assert levels.tight(found, fixed, 1e-6).tolist() == [True, False, True]
    found.row_dual = None
    assert not levels.tight(found, fixed, 1e-6).any()


@pytest.mark.parametrize("method", ["compact", "cuts"])
def test_mixed_integer_conic(method):
    if get_backend("scip").missing() or "second_order" not in get_backend("scip").capabilities.kinds:
        pytest.skip("needs a solver of mixed-integer cone programs")
    m = fo.Model()
    x = m.variable("x", 3, lower=0, upper=6, integer=True)
    m.subject_to(fo.norm(x) <= 5.2, x[0] <= 1)
    m.leximin(x, method)
    assert m.solve("scip").levels == pytest.approx([1, 3, 4], abs=1e-5)


@pytest.mark.parametrize("method", CONVEX)
def test_among_other_objectives(method):
    m = fo.Model()
    x = m.variable("x", 4, lower=0, upper=3)
    m.subject_to(x.sum() <= 6)
    m.lexicographic(
        [fo.maximize(x[0] + x[1]), fo.leximin(x[:3], method), fo.minimize(fo.sum_squares(x[3] - 1))],
        tolerance=1e-9,
    )
    s = m.solve()
    np.testing.assert_allclose(s[x], [3, 3, 0, 0], atol=1e-5)
    np.testing.assert_allclose(s.stages, [6, 0, 3, 6, 1], atol=1e-5)
    m.lexicographic([fo.leximin(x[:2], method), fo.leximax(x[2:], method), fo.maximize(x[3])])
    s = m.solve()
    np.testing.assert_allclose(s[x], [3, 3, 0, 0], atol=1e-5)
    np.testing.assert_allclose(s.levels, [3, 3], atol=1e-6)


@pytest.mark.parametrize("method", CONVEX)
def test_infeasible_and_unbounded(method):
    m = fo.Model()
    x = m.variable("x", 3, lower=0)
    m.leximin(x, method)
    assert m.solve().status == "unbounded"
    m.subject_to(x[0] <= 1)
    m.leximin(x, method)
    s = m.solve()
    assert s.status == "unbounded" and "forever along" in s.reason
    with pytest.raises(fo.DeclarationError, match="no levels to read"):
        _ = s.levels
    m.subject_to(x[1] >= 4, x.sum() <= 3)
    s = m.solve()
    assert s.status == "infeasible" and "cannot hold together" in s.reason


@pytest.mark.parametrize("method", CONVEX)
def test_exact_levels(method):
    worth = np.array([[1, 0, 1, 0], [0, 1, 0, 0.5], [0.5, 0.5, 0, 0]])
    c = shares(worth, 1, method).solve().certify()
    assert c.optimal is True
    assert c.stages == (Fraction(1, 3), Fraction(2, 3), 1, Fraction(5, 3))


def test_saturation_is_for_convex_models():
    m = fo.Model()
    x = m.variable("count", 2, integer=True, lower=0, upper=3)
    m.leximin(x, "saturation")
    with pytest.raises(fo.DeclarationError, match=r"needs a convex model, and count\[0\] is integer"):
        m.solve()
    m.minimize(x.sum())
    with pytest.raises(fo.DeclarationError, match="levels belong to a leximin or leximax objective"):
        _ = m.solve().levels


def test_oracle():
    m = fo.Model()
    x = m.variable("x", 3)
    m.leximin(x, "cuts")
    levels = compile_model(m, get_backend("highs").capabilities).stages[0].leximin
    cuts = SubsetCuts(levels)
    found = cuts.violated(np.array([0.5, 0.2, 0.4]), np.array([0.25, 0.65]), 0.0)
    assert [s.tolist() for s in found] == [[1], [1, 2]]
    assert cuts.violated(np.array([0.5, 0.2, 0.4]), np.array([0.2, 0.6]), 1e-12) == []
    rows = cuts.rows(found)
    assert rows.count == 1  # the singletons are there from the start
    assert rows.indices.tolist() == [*levels.values[[1, 2]], levels.sums[1]]
    assert cuts.rows(found) is None


class Stumbling(Session):
    """A solver that calls programs infeasible until their bounds have enough slack."""

    def __init__(self, program, needed):
        super().__init__(program)
        self.inner, self.needed = get_backend("highs").session(program), needed
        self.first = True

    def add_rows(self, rows):
        self.inner.add_rows(rows)
        super().add_rows(rows)

    def set_stage(self, stage):
        self.inner.set_stage(stage)
        super().set_stage(stage)

    def set_bounds(self, lower, upper):
        self.inner.set_bounds(lower, upper)
        super().set_bounds(lower, upper)

    def solve(self, options):
        result = self.inner.solve(options)
        if not self.first and self.slack() < self.needed:
            return RawResult(fo.Status.INFEASIBLE, message="rounding")
        self.first = False
        return result

    def slack(self):
        low = self.program.lower
        held = low[np.isfinite(low) & (low > 0.5)]
        return float(np.min(-held % 1.0, initial=1.0))  # all that is held is whole


@pytest.mark.parametrize("method", CONVEX)
@pytest.mark.parametrize(("needed", "status"), [(5e-7, "optimal"), (1e-2, "feasible")])
def test_a_stage_that_stumbles_is_given_way(method, needed, status):
    m = fo.Model()
    x = m.variable("x", 3, lower=0)
    m.subject_to(x[0] <= 1, x[1] <= 2, x[2] <= 3)
    m.leximin(x, method)
    program = compile_model(m, get_backend("highs").capabilities)
    session = Stumbling(program, needed)
    best, _ = lexicographic(session, program, lambda current, last: current.solve(SolveOptions()))
    assert best.status == status
    assert best.x[0] == pytest.approx(1, abs=1e-4)
    if status == "optimal":
        assert "rounding took a slack of 1e-06 in the levels" in best.message
        np.testing.assert_allclose(best.x[:3], [1, 2, 3], atol=1e-5)
    else:
        said = best.message.partition(";")[0]  # cuts say how many there are
        assert said == f"stage {1 if method == 'saturation' else 2}: rounding"


def test_the_time_limit_is_for_all_stages_together(monkeypatch):
    clock = iter(range(1000))
    monkeypatch.setattr("forcopt.clock.time.perf_counter", lambda: float(next(clock)))
    s = shares(np.random.default_rng(0).random((12, 6)), 4, "compact").solve(time_limit=6)
    assert s.status == "feasible"
    assert "the time limit of 6 s passed" in s.message
    assert s.levels.size == 6


@pytest.mark.parametrize("seconds", range(0, 40, 2))
def test_a_bound_of_a_stopped_run_excludes_no_point(monkeypatch, seconds):
    """By 'ordered-values' a stage counts shortfalls; their bound is none on the smallest value."""
    m = fo.Model()
    x = m.variable("x", 4, lower=0, upper=6, integer=True)
    m.subject_to(x.sum() <= 20)
    m.leximin(x, "ordered-values")
    clock = iter(range(1000))
    monkeypatch.setattr("forcopt.clock.time.perf_counter", lambda: float(next(clock)))
    s = m.solve(time_limit=seconds)
    assert s.bound >= 5
    assert np.isnan(s.objective) or s.objective <= s.bound


def test_floors_give_way_only_so_far():
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=1)
    m.minimize(x.sum())
    session = get_backend("highs").session(compile_model(m, get_backend("highs").capabilities))
    floors = Floors(session, 0.0)
    assert not floors.relax()
    floors.hold({0: 1.0 + 1e-12})  # never above the upper bound
    assert session.program.lower.tolist() == [1.0, 0.0]
    steps = 0
    while floors.relax():
        steps += 1
    assert steps == 8
    assert session.program.lower[0] == pytest.approx(1 - 1e-4)
