"""Certificates: what they prove is checked again here, by plain fractions; what is wrong must be rejected."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import forcopt as fo
from forcopt.clock import Deadline
from forcopt.compile.compiler import Capabilities, compile_model
from forcopt.loops.certify.evaluation import ExactPoint
from forcopt.loops.certify.linear import Effort, certify_without_point

LINEAR = Capabilities(frozenset({"rows", "integer"}))


def exact(values):
    return [Fraction(float(v)) if np.isfinite(v) else None for v in values]


def check(model, c):
    """Recompute from the compiled arrays what a certificate of a linear program without bridges says."""
    p = compile_model(model, LINEAR)
    a = p.matrix().toarray()
    point = c.point
    sign = -1 if p.stages[0].maximize else 1
    cost = exact(p.stages[0].cost)
    offset = Fraction(p.stages[0].offset)
    activity = [
        sum((Fraction(v) * x for v, x in zip(row, point, strict=True) if v), Fraction(0)) for row in a
    ]
    for values, lower, upper in ((point, p.lower, p.upper), (activity, p.rows.lower, p.rows.upper)):
        for value, low, high in zip(values, exact(lower), exact(upper), strict=True):
            assert low is None or low <= value
            assert high is None or value <= high
    assert c.objective == sign * (offset + sum(x * y for x, y in zip(cost, point, strict=True)))
    if c.dual is not None:
        reduced = [
            cost[j] - sum((y * Fraction(a[i, j]) for i, y in enumerate(c.dual)), Fraction(0))
            for j in range(len(cost))
        ]
        bound = offset
        for weights, lower, upper in ((c.dual, p.rows.lower, p.rows.upper), (reduced, p.lower, p.upper)):
            for weight, low, high in zip(weights, exact(lower), exact(upper), strict=True):
                if weight:
                    end = low if weight > 0 else high
                    assert end is not None
                    bound += weight * end
        assert c.bound == sign * bound


def postprocessing(gamma):
    """Equalised odds by post-processing (Jagielski et al. 2019), over the integers."""
    counts = {(1, 0, 0): 4, (0, 0, 0): 36, (1, 0, 1): 16, (0, 0, 1): 4}
    counts |= {(1, 1, 0): 6, (0, 1, 0): 9, (1, 1, 1): 20, (0, 1, 1): 5}
    m = fo.Model("W1")
    p = m.variable("p", (2, 2), lower=0, upper=1)  # by predicted label and group
    error = m.variable("error")
    wrong = sum(c * (p[yh, a] if y == 0 else 1 - p[yh, a]) for (yh, a, y), c in counts.items())
    m.subject_to(100 * error == wrong)
    for y in (0, 1):
        total = [counts[0, a, y] + counts[1, a, y] for a in (0, 1)]
        ones = [counts[0, a, y] * p[0, a] + counts[1, a, y] * p[1, a] for a in (0, 1)]
        slack = gamma * total[0] * total[1]
        m.subject_to((ones[0] * total[1] - ones[1] * total[0]).between(-slack, slack))
    m.minimize(error)
    return m, p


@pytest.mark.parametrize("backend", ["highs", "highs:ipm", "highs:pdlp"])
def test_known_rational_optimum(backend):
    m, p = postprocessing(0)
    c = m.solve(backend).certify()
    assert c.feasible
    assert c.optimal is True
    assert c.objective == c.bound == Fraction(31, 100)
    assert c[p].tolist() == [[Fraction(12, 35), 0], [Fraction(32, 35), 1]]
    assert 0 < c.violation < Fraction(1, 10**3)  # 12/35 is no float
    assert "31/100" in str(c)
    check(m, c)
    m, p = postprocessing(0.5)
    assert m.solve(backend).certify().objective == Fraction(19, 100)


def test_data_are_the_floats_that_they_are():
    m = fo.Model()
    x = m.variable("x", lower=0)
    m.subject_to(x >= 0.1)
    m.minimize(3 * x)
    c = m.solve().certify()
    assert c.objective == 3 * Fraction(0.1) != Fraction(3, 10)
    assert c.optimal is True


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.booleans())
def test_random_programs(seed, integers):
    rng = np.random.default_rng(seed)
    n, rows = int(rng.integers(2, 9)), int(rng.integers(1, 8))
    sample = (lambda size: rng.integers(-5, 6, size).astype(float)) if integers else rng.normal
    a = sp.random_array((rows, n), density=0.6, rng=rng, data_sampler=sample)
    inside = rng.integers(0, 4, n) / 3
    m = fo.Model()
    x = m.variable(
        "x",
        n,
        lower=np.where(rng.random(n) < 0.8, 0, -np.inf),
        upper=np.where(rng.random(n) < 0.5, 3, np.inf),
    )
    value = a @ inside
    m.subject_to((a @ x).between(value - rng.choice([0, 1], rows), value + rng.choice([0, 2, np.inf], rows)))
    m.subject_to(x.between(-10, 10))
    cost = rng.integers(-5, 6, n) if integers else rng.normal(size=n)
    (m.minimize if rng.random() < 0.5 else m.maximize)(cost @ x + 1)
    s = m.solve()
    c = s.certify()
    if s.status == "infeasible":  # by the rounding of `value` only
        assert not c.feasible
        assert "Farkas" in c.how
        return
    if not c.optimal:  # equations that floats cannot meet exactly
        assert not c.feasible or abs(c.objective - c.bound) < 1e-12
        return
    assert c.optimal is True
    assert c.objective == c.bound
    assert float(c.objective) == pytest.approx(s.objective, abs=1e-6)
    check(m, c)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_larger_program(seed):
    rng = np.random.default_rng(seed)  # its basis has triangles before and after a kernel
    n, rows = 90, 60
    a = sp.random_array((rows, n), density=4 / n, rng=rng, data_sampler=rng.normal)
    m = fo.Model()
    x = m.variable("x", n, lower=0, upper=np.where(rng.random(n) < 0.5, 1, np.inf))
    value = a @ rng.random(n)
    m.subject_to(a @ x >= value - 0.1, a @ x <= value + 0.1)
    m.minimize(rng.random(n) @ x)
    s = m.solve()
    c = s.certify()
    assert c.optimal is True
    assert float(c.objective) == pytest.approx(s.objective)
    assert len(str(c.objective)) > 1000
    check(m, c)


def test_generated_columns():
    from forcopt.loops.column_generation import Column, column_generation

    m = fo.Model()
    cover = m.subject_to(m.lift(np.zeros(3)) == 1, name="cover")
    sets = [Column(1, {cover: row}) for row in ([1, 1, 0], [0, 1, 1], [1, 0, 1])]
    found = column_generation(m, lambda dual: [min(sets, key=dual.reduced_cost)])
    c = found.solution.certify()
    assert (c.optimal, c.objective) == (True, Fraction(3, 2))
    check(m, c)


def test_degenerate():
    m = fo.Model("Beale")  # on which the simplex method can cycle
    x = m.variable("x", 4, lower=0)
    m.subject_to(
        0.25 * x[0] - 60 * x[1] - x[2] / 25 + 9 * x[3] <= 0,
        0.5 * x[0] - 90 * x[1] - x[2] / 50 + 3 * x[3] <= 0,
        x[2] <= 1,
    )
    m.minimize(-0.75 * x[0] + 150 * x[1] - x[2] / 50 + 6 * x[3])
    c = m.solve().certify()
    assert c.optimal is True
    check(m, c)
    assert float(c.objective) == pytest.approx(-0.05)
    m = fo.Model("square")  # many bases at one vertex, and many vertices on the optimal face
    x = m.variable("x", (3, 3), lower=0)
    m.subject_to(x.sum(axis=0) == 1, x.sum(axis=1) == 1, x <= 1)
    m.minimize(x.sum() + np.eye(3)[0] @ x[0])
    c = m.solve().certify()
    assert (c.optimal, c.objective) == (True, 3)
    check(m, c)


def test_an_inner_point_of_the_optimal_face_is_kept_near():
    m = fo.Model()
    x = m.variable("x", 3, lower=0)
    m.subject_to(3 * x.sum() == 1)
    m.maximize(x.sum())
    s = m.solve()
    s.point[:] = 1 / 9  # optimal, no vertex, and 1/9 is no float
    c = s.certify()
    assert c.optimal is True
    assert c.objective == Fraction(1, 3)
    assert 0 < c.violation < Fraction(1, 10**15)
    assert 0 < c.moved < Fraction(1, 10**15)
    check(m, c)


def test_slightly_wrong_by_rounding():
    m = fo.Model()
    x, y = m.variable("x"), m.variable("y")  # free: no safe bound without the exact multipliers
    m.subject_to(3 * x + 7 * y == 1, 0.1 * x - 0.3 * y <= 0.7)
    m.maximize(x - y)
    s = m.solve()
    s.point[0] += 1e-12
    c = s.certify()
    assert c.feasible
    assert c.optimal is True
    assert c.violation > 0
    check(m, c)


def test_infeasible_only_in_exact_arithmetic():
    m = fo.Model()
    x = m.variable("x")
    m.subject_to(x <= 1, x >= 1 + 1e-9)
    m.maximize(x)
    s = m.solve()
    assert s.status == "optimal"  # within HiGHS's tolerance
    c = s.certify()
    assert not c.feasible
    assert c.optimal is False
    assert "Farkas" in c.how


@pytest.mark.parametrize("change", [0.1, -0.1, 1e-3])
def test_a_wrong_point_is_rejected(change):
    m, p = postprocessing(0)
    s = m.solve()
    s.point[p.start] += change
    c = s.certify()
    assert not c.feasible
    assert c.optimal is False
    assert c.violation > Fraction(1, 100)
    assert c.bound == Fraction(31, 100)


def test_rounding_that_was_repaired_is_no_violation():
    c = fo.load("postprocessing/compas").solve().certify()
    assert c.feasible and "violates" not in c.how


def test_a_feasible_point_that_is_not_optimal_is_rejected():
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=4)
    m.subject_to(x.sum() <= 5)
    m.maximize(x[0] + 2 * x[1])
    s = m.solve()
    s.point[:] = [1, 3.5]
    c = s.certify()
    assert c.feasible
    assert c.optimal is False
    assert (c.objective, c.bound) == (8, 9)
    assert "a better point has the objective 9" in c.how
    s.point[:] = np.nan
    with pytest.raises(fo.DeclarationError, match="finite"):
        s.certify()


def test_infeasible_and_unbounded():
    m = fo.Model()
    x = m.variable("x", 2)
    m.subject_to(x[0] + x[1] >= 2, 3 * x[0] + 3 * x[1] <= 1, x[0] >= 0)
    m.maximize(x[0])
    c = m.solve().certify()
    assert not c.feasible
    assert c.optimal is None
    assert c.how == "infeasibility proved by a Farkas certificate"
    y = c.dual  # 0 x >= y b > 0
    assert y[0] * 1 + y[1] * 3 + y[2] == y[0] + 3 * y[1] == 0
    assert y[0] > 0 > y[1]
    assert 2 * y[0] + y[1] > 0
    with pytest.raises(fo.DeclarationError, match="no point"):
        c[x]
    m = fo.Model()
    x = m.variable("x", 2)
    m.subject_to(x[0] + x[1] >= 2, x[0] - x[1] <= 1)
    m.maximize(x[0] + 2 * x[1])
    c = m.solve().certify()
    assert c.feasible
    assert c.optimal is None
    assert "ray" in c.how
    m = fo.Model()
    x = m.variable("x", 2, integer=True, lower=0, upper=5)
    m.subject_to(2 * x[0] + 4 * x[1] == 7)
    m.minimize(x.sum())
    c = m.solve().certify()
    assert not c.feasible
    assert "infeasibility proved by branch and bound" in c.how


def test_a_wrong_status_is_found_out():
    m = fo.Model()
    x = m.variable("x", lower=0, upper=1)
    m.minimize(x)
    s = m.solve()
    s.point, s.status = None, fo.Status.INFEASIBLE
    c = s.certify()
    assert c.feasible
    assert "the status is wrong" in c.how
    s.status = fo.Status.LIMIT
    assert "no point to check" in s.certify().how


def knapsack(seed, n=10):
    rng = np.random.default_rng(seed)
    m = fo.Model("knapsack")
    x = m.variable("x", n, integer=True, lower=0, upper=2)
    y = m.variable("y", lower=0)
    m.subject_to(rng.integers(5, 30, n) @ x + 3 * y <= 60, y <= x[0] / 3)
    worth = rng.integers(5, 40, n)
    m.maximize(worth @ x + y)
    return m, x


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_integer_programs(seed):
    m, x = knapsack(seed)
    s = m.solve(gap=0)
    c = s.certify()
    assert c.feasible
    assert c.optimal is True
    assert c.objective == c.bound
    assert float(c.objective) == pytest.approx(s.objective)
    assert "branch and bound" in c.how
    assert all(v.denominator == 1 for v in c[x])
    check(m, c)
    lesser = np.argmax(s.point[:10])
    s.point[lesser] -= 1
    c = s.certify()
    assert c.optimal is False
    assert c.objective is not None
    assert c.objective < c.bound


def test_integer_program_with_bridges():
    m = fo.Model()
    x = m.variable("x", 3, lower=0, upper=7)
    b = m.variable("b", 3, binary=True)
    m.subject_to(fo.implies(b, 3 * x <= 1), fo.implies(1 - b, x >= 2), fo.abs(x[0] - x[1]) <= 5)
    m.minimize(fo.maximum(3 * x, axis=0) - 2 * x.sum() + fo.product(b[0], x[1]) + 3 * b.sum())
    s = m.solve(gap=0)
    c = s.certify()
    assert c.feasible
    assert c.optimal is True
    assert float(c.objective) == pytest.approx(s.objective)
    s.point[b.start] = 1 - s.point[b.start]
    c = s.certify()
    assert not (c.feasible and c.optimal)
    assert c.violation > 0 or c.objective > c.bound


def test_lexicographic():
    m = fo.Model()
    x = m.variable("x", 3, lower=0)
    m.subject_to(x[0] <= 1, 3 * x.sum() <= 20)
    m.leximin(x)
    c = m.solve().certify()
    assert c.optimal is True
    assert c.stages == (1, Fraction(23, 6), Fraction(20, 3))
    assert c[x].tolist() == [1, Fraction(17, 6), Fraction(17, 6)]
    m = fo.Model()
    x = m.variable("x", 3, lower=0, integer=True)
    m.subject_to(x[0] <= 1, 3 * x.sum() <= 20)
    m.leximin(x)
    s = m.solve()
    c = s.certify()
    assert c.optimal is True
    assert c.stages == (1, 3, 6)
    s.point[: x.size] = [0, 3, 3]
    c = s.certify()
    assert c.feasible
    assert c.optimal is False


def test_lazy_families():
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=10)

    def separate(value):
        for k in (1, 2, 3):
            if k * value(x)[0] + value(x)[1] > 3 * k + 1e-7:
                yield k * x[0] + x[1] <= 3 * k

    m.lazy(separate, name="family")
    m.maximize(x[0] + x[1])
    s = m.solve()
    c = s.certify()
    assert c.optimal is True
    assert c.objective == 3
    assert "floating point" in c.how
    assert "family" in c.how
    s.point[:] = [2, 2]
    c = s.certify()
    assert not c.feasible
    assert c.violation == 1


def test_quadratic():
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=4)
    m.subject_to(3 * x.sum() == 8)
    m.minimize(fo.sum_squares(x - [1, 2]) + x[0])
    s = m.solve()  # by hand: x = (7/12, 25/12) and 0.764
    c = s.certify()
    assert c.feasible
    assert 0 <= c.objective - c.bound < Fraction(1, 10**6)
    best = Fraction(25, 144) + Fraction(1, 144) + Fraction(7, 12)
    assert c.bound <= best <= c.objective
    s.point[:2] = [8 / 3, 0]
    c = s.certify()
    assert c.optimal is not True
    assert c.bound < best < c.objective - 1
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=4)
    m.maximize(3 - fo.sum_squares(x - 1))
    s = m.solve()
    s.point[:2] = 1
    c = s.certify()
    assert (c.optimal, c.objective, c.bound) == (True, 3, 3)


def test_conic_models_say_what_is_exact():
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=4)
    m.subject_to(fo.norm(x) <= 5, x.sum() >= 2)
    m.minimize(fo.exp(x[0]) + x[1])
    c = solution_at(m, x, [1.0, 1.0]).certify()
    assert c.feasible
    assert c.optimal is None
    assert 3 - 1e-6 < c.bound <= 3
    assert "interval arithmetic" in c.how
    assert "norm_2#1" in c.how
    assert "exp#1" in c.how
    c = solution_at(m, x, [1.0, 0.5]).certify()
    assert not c.feasible
    assert c.violation == Fraction(1, 2)
    m.minimize(-fo.log(x[0]))
    c = solution_at(m, x, [0.0, 2.0]).certify()  # a point nearby is inside the domain
    assert c.feasible and c.objective > 15 and 0 < c.point[0] < 1e-5
    c = solution_at(m, x, [0.0, 2.0]).certify(rounding=0)
    assert not c.feasible
    assert "domain of log#1" in c.how


def test_constants_of_bridges_do_not_prove_what_they_round():
    # With y = 0 the optimum is 0.05; a big-M row of size 7e14 loses it.
    m = fo.Model()
    x = m.variable("x", lower=-1, upper=0.06)
    y, off = m.variable("y", lower=0, upper=0.9), m.variable("off", binary=True)
    m.subject_to(fo.implies(1 - off, x + 8e14 * y <= 0.05), off == 0)
    m.maximize(x)
    with pytest.raises(fo.UnboundedExpressionError, match="too large for solvers"):
        m.solve("highs")
    c = solution_at(m, x, 0.0).certify()
    assert c.feasible and c.optimal is not True
    assert m.solve("scip").objective == pytest.approx(0.05)
    # Below that size the constants are rounded outward: the true optimum is never cut off.
    rng = np.random.default_rng(0)
    for _ in range(40):
        size, limit = 10.0 ** rng.uniform(3, 11), rng.random()
        m = fo.Model()
        x = m.variable("x", lower=-1, upper=2)
        y, b = m.variable("y", lower=0, upper=rng.random()), m.variable("b", binary=True)
        m.subject_to(fo.implies(b, x + size * y <= limit), b == 1)
        m.maximize(x)
        c = m.solve("highs").certify()
        assert c.bound is None or c.bound >= Fraction(limit)


def test_forms_say_that_they_were_factorized():
    m = fo.Model()
    x = m.variable("x", 2, lower=-1, upper=1)
    m.minimize(fo.quad_form(x, np.array([[1.0, 0.3], [0.3, 0.7]])) - x.sum())
    c = m.solve().certify()
    assert c.bound is not None and "is the sum of squares of its form, up to" in c.how
    m = fo.Model()
    x = m.variable("x", 2, lower=-1, upper=1)
    m.minimize(fo.quad_form(x, np.array([[1.0, 1], [1, 1 - 1e-9]])) - x.sum())
    assert "not proved to be convex" in m.solve().certify().how
    m = fo.Model()
    x = m.variable("x", 2, lower=-1, upper=1)
    m.minimize(fo.quad_form(x, np.diag([4.0, 1])) - x.sum())
    assert "granted" not in m.solve().certify().how


def solution_at(model, x, values):
    from forcopt.loops import ModelSolution

    return ModelSolution(
        model, fo.Status.FEASIBLE, 0.0, 0.0, (0.0,), model.point({x: values}), 0.0, "highs", ()
    )


def test_connected():
    import networkx as nx

    m = fo.Model()
    x = m.variable("x", 5, binary=True)
    m.subject_to(fo.connected(nx.path_graph(5), x), x[0] == 1, x[3] == 1)
    m.minimize(x.sum())
    s = m.solve(gap=0)
    c = s.certify()
    assert c.feasible
    assert (c.optimal, c.objective) == (True, 4)
    s.point[1] = 0
    c = s.certify()
    assert not c.feasible


def test_large_program_gets_a_safe_bound(monkeypatch):
    from forcopt.loops import exact_lp

    monkeypatch.setattr(exact_lp, "_LARGEST_BLOCK", 0)
    rng = np.random.default_rng(0)
    m = fo.Model()
    x = m.variable("x", 30, lower=0, upper=1)
    m.subject_to(rng.random((20, 30)) @ x >= 3)
    m.minimize(rng.random(30) @ x)
    s = m.solve()
    c = s.certify()
    assert c.optimal is None or c.optimal is False
    assert c.bound is not None
    assert abs(float(c.bound) - s.objective) < 1e-6


def test_certificates_do_not_mind_how_many_threads_were_used_before():
    m = fo.Model()
    x = m.variable("x", 2, lower=0)
    m.subject_to(3 * x[0] + x[1] >= 1, x[0] + 3 * x[1] >= 1)
    m.minimize(x.sum())
    for threads in (2, 1):  # HiGHS refuses another number than its scheduler has
        assert m.solve(threads=threads).certify().optimal is True


@pytest.mark.parametrize("integer", [False, True])
def test_a_model_without_columns_is_proved(integer):
    """HiGHS calls it empty and gives no basis."""
    m = fo.Model()
    x = m.variable("x", 0, lower=0, integer=integer)
    row = m.subject_to(x.sum() <= 1, name="row")
    m.minimize(x.sum() + 3)
    found = m.solve().certify()
    assert found.optimal and found.objective == found.bound == 3
    m.remove(row)
    m.subject_to(x.sum() >= 1, name="too much")
    assert m.solve().status == "infeasible" and "Farkas" in m.solve().certify().how


def test_numbers_may_count_as_decimals():
    m = fo.Model()
    x = m.variable("x", 2, lower=0)
    m.subject_to(0.1 * x[0] == 0.3, x[0] == 3, x.sum() >= 3.1)
    m.minimize(0.1 * x.sum())
    s = m.solve("highs")
    assert s.certify().feasible is False  # the float next to 0.1 times 3 is not the one next to 0.3
    c = s.certify(decimals=True)
    assert (c.optimal, c.objective, c.bound) == (True, Fraction(31, 100), Fraction(31, 100))
    m.minimize(fo.abs(x[0] - 0.1))
    with pytest.raises(fo.DeclarationError, match="decimals=True, but model 'model' has atoms"):
        m.solve("highs").certify(decimals=True)


@pytest.mark.parametrize("seed", range(10))
def test_a_basis_that_is_wrong_by_rounding_is_corrected(seed):
    # Costs differ by less than simplex sees, on rows and columns whose multipliers are large.
    rng = np.random.default_rng(seed)
    grain, n = 2.0**-46, 12
    steps = rng.permuted(np.tile(np.arange(n), (4, 1)), axis=1)
    m = fo.Model()
    x = m.variable("x", (4, n), lower=0, upper=3)
    m.subject_to(x.sum(axis=1) >= [1, 2, 3, 4], (x * 1e4).sum(axis=0) <= 4e4)
    m.minimize(((1 + grain * steps) * x).sum())
    c = m.solve("highs").certify()
    assert c.optimal is True
    assert 10 <= c.objective <= 10 + 10 * Fraction(grain)


def test_a_fraction_of_many_digits_is_shown():
    from forcopt.loops.certify.certificate import as_text

    assert as_text(Fraction(10**5000 + 1, 3 * 10**5000)) == "0.33333333333333331 (a fraction of 10002 digits)"
    assert as_text(Fraction(1, 3)) == "1/3"
    assert as_text(Fraction(10**24, 7)).endswith("(a fraction of 26 digits)")


def test_multipliers_outside_of_the_dual_cone_are_refused():
    """(3, 1, 2) lies in the second-order cone, (2, 1, 2) and (-3, 1, 2) do not."""
    from flint import fmpq

    from forcopt.loops.certify.convex import _in_dual

    cone = SimpleNamespace(kind="second_order", size=3)
    for first, inside in ((3, True), (2, False), (-3, False)):
        assert _in_dual(cone, [fmpq(first), fmpq(1), fmpq(2)]) == inside


def test_a_fraction_is_no_whole_value():
    from flint import fmpq

    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=3, integer=True)
    m.minimize(x.sum())
    point = ExactPoint(m, [fmpq(1, 3), fmpq(1)])
    assert point.violations == {"integrality of x": fmpq(1, 3)}


def test_unboundedness_needs_a_ray_along_which_the_objective_falls():
    """A false claim about a bounded program with points is not proved."""
    m = fo.Model()
    x = m.variable("x", lower=0)
    m.subject_to(x >= 1)
    m.minimize(x)
    s = m.solve()
    program = compile_model(m, Capabilities(frozenset({"rows"})))
    found = certify_without_point(
        replace(s, status=fo.Status.UNBOUNDED, point=None), program, Effort(Deadline(30.0))
    )
    assert "proved" not in found.how and found.optimal is None
