"""Bounds of first-order methods are proved: never beyond the exact optimum, and near it where they can be."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import forcopt as fo
from forcopt.compile.compiler import Capabilities, compile_model
from forcopt.loops.checks.multipliers import safe_bound, with_implied_bounds

METHODS = ("pdlp", "highs:pdlp", "highs[solver=pdlp]", "scs", "osqp")


def program_of(model):
    return compile_model(model, Capabilities(frozenset({"rows"})))


def random_model(seed):
    """A bounded model of 3 columns that has a point: free columns, equations, ranges."""
    rng = np.random.default_rng(seed)
    rows, point = rng.integers(-4, 5, (5, 3)) / 7, rng.integers(-3, 4, 3)
    middle = rows @ point
    low = np.where(rng.random(5) < 0.6, middle - rng.integers(0, 3, 5), -np.inf)
    high = np.where(rng.random(5) < 0.6, middle + rng.integers(0, 3, 5), np.inf)
    low[:1] = high[:1] = middle[:1]
    m = fo.Model()
    x = m.variable("x", 3, lower=np.where(rng.random(3) < 0.4, -3, -np.inf))
    m.subject_to((rows @ x).between(low, high), (x + x[::-1] / 3).between(-8, 8))
    m.minimize((rng.integers(-5, 6, 3) / 3) @ x + 1 / 3)
    return m


def solved(a, b):
    """The solution of three equations over the rationals by Cramer's rule; None if they are dependent."""

    def det(m):
        return sum(
            m[0][i] * (m[1][(i + 1) % 3] * m[2][(i + 2) % 3] - m[1][(i + 2) % 3] * m[2][(i + 1) % 3])
            for i in range(3)
        )

    whole = det(a)
    if not whole:
        return None
    swapped = ([[b[k] if c == j else a[k][c] for c in range(3)] for k in range(3)] for j in range(3))
    return [det(m) / whole for m in swapped]


def exact_minimum(program):
    """The least value over all vertices, over the rationals; None without a vertex."""
    matrix = np.vstack([program.matrix().toarray(), np.eye(3)])
    ends = zip(
        np.concatenate([program.rows.lower, program.lower]),
        np.concatenate([program.rows.upper, program.upper]),
        strict=True,
    )
    planes = [[Fraction(a) for a in row] for row in matrix.tolist()]
    ends = [tuple(Fraction(e) if np.isfinite(e) else None for e in pair) for pair in ends]
    sides = [(row, e) for row, pair in zip(planes, ends, strict=True) for e in set(pair) - {None}]
    cost, offset = [Fraction(c) for c in program.stages[0].cost.tolist()], program.stages[0].offset
    best = None
    for three in combinations(sides, 3):
        x = solved([row for row, _ in three], [e for _, e in three])
        if x is None:
            continue
        activity = [sum(a * v for a, v in zip(row, x, strict=True)) for row in planes]
        if any(
            (low is not None and v < low) or (high is not None and v > high)
            for v, (low, high) in zip(activity, ends, strict=True)
        ):
            continue
        value = sum(c * v for c, v in zip(cost, x, strict=True)) + Fraction(offset)
        best = value if best is None else min(best, value)
    return best


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.0, 1e-9, 1e-5, 1e-1, 10.0]), st.floats(-1, 1))
def test_no_bound_is_beyond_the_exact_optimum(seed, scale, off):
    """Multipliers and values that are off by any amount prove too little, never too much."""
    program = program_of(random_model(seed))
    truth = exact_minimum(program)
    if truth is None:  # rounding left no exact point
        return
    rows, stage = program.rows, program.stages[0]
    a, sides = program.matrix().toarray(), np.concatenate([rows.upper, -rows.lower])
    bounds = list(zip(program.lower, program.upper, strict=True))
    found = linprog(
        stage.cost, np.vstack([a, -a])[np.isfinite(sides)], sides[np.isfinite(sides)], bounds=bounds
    )
    y = np.zeros(2 * rows.count)
    y[np.isfinite(sides)] = found.ineqlin.marginals
    y = y[: rows.count] - y[rows.count :] + scale * np.random.default_rng(seed).standard_normal(rows.count)
    for near in (-np.inf, np.inf):  # with a repair and without
        bound = safe_bound(program, y, float(truth) + off, near)
        assert bound == -np.inf or Fraction(bound) <= truth
        if off >= 0 and scale <= 1e-5 and near < 0:
            assert float(truth) - bound <= 1e-10 + 1e3 * scale


@pytest.mark.parametrize("backend", METHODS)
@pytest.mark.parametrize("seed", range(4))
def test_first_order_answers_have_a_proved_bound_and_a_small_gap(backend, seed):
    model = random_model(seed)
    s, truth = model.solve(backend), exact_minimum(program_of(model))
    assert s.status is fo.Status.OPTIMAL
    assert Fraction(s.bound) <= truth
    assert float(truth) - s.bound <= 1e-3 * max(1.0, abs(float(truth)))
    assert s.gap > 0 or s.bound == s.objective


def absolute_deviations(free=3):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((30, free))
    m = fo.Model()
    w = m.variable("w", free)
    m.minimize(fo.abs(rows @ w - rng.standard_normal(30)).sum())
    return m


@pytest.mark.parametrize("backend", METHODS)
def test_multipliers_of_columns_without_bounds_are_repaired(backend):
    m = absolute_deviations()
    s, truth = m.solve(backend), m.solve("highs").certify().bound
    assert s.status is fo.Status.OPTIMAL and Fraction(s.bound) <= truth and s.gap < 1e-4


def test_a_maximum_is_bounded_from_above():
    m = fo.Model()
    x = m.variable("x", 2, lower=0)
    m.subject_to(3 * x[0] + x[1] <= 1, x[0] + 3 * x[1] <= 1)
    m.maximize(x.sum())
    for backend in METHODS:
        assert 0 <= Fraction(m.solve(backend).bound) - Fraction(1, 2) < Fraction(1, 1000)


def test_an_optimum_without_a_proved_bound_is_only_feasible(monkeypatch):
    monkeypatch.setattr("forcopt.loops.checks.multipliers.LARGEST_REPAIR", 0)
    s = absolute_deviations().solve("highs:pdlp")
    assert s.status is fo.Status.FEASIBLE and s.gap == np.inf and "prove no bound" in s.message


def test_an_unbounded_program_has_no_bound():
    m = fo.Model()
    x = m.variable("x", 2, lower=0)
    m.subject_to(x[0] - x[1] == 1)
    m.minimize(-x.sum())
    program = program_of(m)
    for y in (-1.0, 0.0, 1.0):
        assert safe_bound(program, np.array([y]), -5.0, 0.0) == -np.inf


def test_rows_imply_bounds_one_after_the_other():
    m = fo.Model()
    s = m.variable("s", 4)
    m.subject_to(s[0].between(1, 2), s[1:] == 2 * s[:-1])
    tight = with_implied_bounds(program_of(m))
    assert tight.lower == pytest.approx([1, 2, 4, 8]) and tight.upper == pytest.approx([2, 4, 8, 16])
    assert (tight.lower <= [1, 2, 4, 8]).all() and (tight.upper >= [2, 4, 8, 16]).all()


def test_mpax_answers_have_a_proved_bound():
    pytest.importorskip("mpax")
    m = absolute_deviations()
    s, truth = m.solve("cvxpy:MPAX"), m.solve("highs").certify().bound
    assert s.status is fo.Status.OPTIMAL and "highs" not in s.message
    assert Fraction(s.bound) <= truth and s.gap < 1e-3
