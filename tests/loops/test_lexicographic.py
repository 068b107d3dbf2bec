"""Objectives in order of priority: against brute force, sorted vectors, and hand-made cases."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import forcopt as fo
from forcopt.backends.base import RawResult, Session, SolveOptions
from forcopt.compile.compiler import Capabilities, compile_model
from forcopt.loops.lexicographic import lexicographic


def test_order_matters():
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=1)
    m.subject_to(x.sum() <= 1.5)
    m.lexicographic([fo.maximize(x[0]), fo.maximize(x[1])])
    s = m.solve()
    np.testing.assert_allclose(s[x], [1, 0.5], atol=1e-6)
    np.testing.assert_allclose(s.stages, [1, 0.5], atol=1e-6)
    assert s.objective == s.stages[0]
    assert s.bound == pytest.approx(1)
    m.lexicographic([fo.maximize(x[1]), fo.maximize(x[0])])
    np.testing.assert_allclose(m.solve()[x], [0.5, 1], atol=1e-6)
    with pytest.raises(fo.DeclarationError, match="duals"):
        m.solve().dual(m.constraints[0])  # the duals of the last stage are not those of the model


@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.integers(0, 10**6))
def test_integer_programs_against_enumeration(seed):
    rng = np.random.default_rng(seed)
    n, k = 5, 3
    weight, worth = rng.integers(1, 9, n), rng.integers(-5, 9, (k, n))
    signs = rng.choice([-1, 1], k)
    m = fo.Model()
    x = m.variable("x", n, binary=True)
    m.subject_to(weight @ x <= weight.sum() // 2)
    values = worth @ x
    m.lexicographic([fo.maximize(values[i]) if signs[i] > 0 else fo.minimize(values[i]) for i in range(k)])
    s = m.solve()
    points = [p for p in itertools.product((0, 1), repeat=n) if weight @ p <= weight.sum() // 2]
    best = max(tuple(signs * (worth @ p)) for p in points)
    assert s.status == "optimal"
    assert tuple(signs * np.round(s.stages)) == best
    np.testing.assert_allclose(s[values], s.stages)


def test_quadratic_last():
    m = fo.Model()
    x = m.variable("x", 3, lower=0, upper=4)
    m.lexicographic([fo.minimize(fo.abs(x.sum() - 3)), fo.minimize(fo.sum_squares(x - [2, 1, 3]))])
    s = m.solve()
    np.testing.assert_allclose(s[x], [1, 0, 2], atol=1e-4)  # each less 1
    np.testing.assert_allclose(s.stages, [0, 3], atol=1e-5)
    assert "quadratic_objective" in s.bridges


def test_stages_of_both_senses_keep_their_values():
    m = fo.Model()
    x = m.variable("x", 2, lower=-5, upper=5)
    m.subject_to(x[0] + x[1] <= 3, x[0] - x[1] <= 1)
    m.lexicographic([fo.minimize(-2 * x[0] - x[1] + 10), fo.maximize(x[0] - 7)])
    s = m.solve()
    np.testing.assert_allclose(s.stages, [5, -5], atol=1e-6)
    np.testing.assert_allclose(s[x], [2, 1], atol=1e-6)


def allocations(worth):
    """All ways to give each of n things to one of k people, as vectors of their worth to them."""
    n, k = worth.shape
    for owners in itertools.product(range(k), repeat=n):
        yield np.bincount(owners, weights=worth[np.arange(n), owners], minlength=k)


@settings(max_examples=12, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.booleans())
def test_leximin_and_leximax_of_integers(seed, largest):
    worth = np.random.default_rng(seed).integers(1, 50, (5, 3)).astype(float)
    m = fo.Model()
    x = m.variable("x", (5, 3), binary=True)
    m.subject_to(x.sum(axis=1) == 1)
    values = (worth * x).sum(axis=0)
    if largest:
        m.leximax(values)
        best = min(tuple(sorted(v, reverse=True)) for v in allocations(worth))
    else:
        m.leximin(values)
        best = max(tuple(sorted(v)) for v in allocations(worth))
    s = m.solve()
    assert s.status == "optimal"
    assert tuple(sorted(np.round(s[values]), reverse=largest)) == best


def water_level(caps, total):
    """The leximin split of a total among people who can take up to their caps: fill all equally."""
    out = np.zeros(len(caps))
    left, open_ = total, set(range(len(caps)))
    while open_:
        level = left / len(open_)
        full = {i for i in open_ if caps[i] <= level}
        if not full:
            out[list(open_)] = level
            break
        for i in full:
            out[i] = caps[i]
        left -= sum(caps[i] for i in full)
        open_ -= full
    return out


@settings(max_examples=12, deadline=None, derandomize=True)
@given(st.integers(0, 10**6))
def test_leximin_of_a_linear_program(seed):
    rng = np.random.default_rng(seed)
    caps = rng.integers(1, 12, 5) / 2
    total = caps.sum() * rng.uniform(0.3, 0.95)
    m = fo.Model()
    x = m.variable("x", 5, lower=0, upper=caps)
    m.subject_to(x.sum() == total)
    m.leximin(x)
    np.testing.assert_allclose(m.solve()[x], water_level(caps, total), atol=1e-5)
    m.leximax(caps - x)  # the largest shortfall as small as possible
    short = np.sort(caps - m.solve()[x])[::-1]
    np.testing.assert_allclose(short, np.sort(water_level(caps, caps.sum() - total))[::-1], atol=1e-5)


def test_leximin_of_a_convex_model():
    m = fo.Model()
    x = m.variable("x", 2, lower=0)
    m.subject_to(fo.norm(x, 1) <= 4, x[0] <= 1)
    m.leximin(fo.minimum(2 * x, x + 1))
    s = m.solve()
    np.testing.assert_allclose(np.sort(np.minimum(2 * s[x], s[x] + 1)), [2, 4], atol=1e-6)


def test_infeasible_and_unbounded_stages():
    m = fo.Model()
    x = m.variable("x", 2, lower=0)
    m.subject_to(x[0] >= 3, x[0] <= 2)
    m.lexicographic([fo.minimize(x[0]), fo.minimize(x[1])])
    assert m.solve().status == "infeasible"
    m = fo.Model()
    x = m.variable("x", 2, lower=0)
    m.subject_to(x[0] <= 2)
    m.lexicographic([fo.maximize(x[0]), fo.maximize(x[1])])
    s = m.solve()
    assert s.status == "unbounded"
    assert s.point is None
    assert s.reason == "the objective improves forever along x[1]"


class Told(Session):
    """Answers as it is told."""

    def __init__(self, program, answers):
        super().__init__(program)
        self.answers = list(answers)

    def solve(self, options):
        return self.answers.pop(0)


def run(*answers):
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=1)
    m.lexicographic([fo.minimize(x[0]), fo.minimize(x[1])])
    program = compile_model(m, Capabilities(frozenset({"rows"})))
    session = Told(program, answers)
    return lexicographic(session, program, lambda current, last: current.solve(SolveOptions()))


def point(status, x):
    return RawResult(status, x=np.array(x, dtype=float), objective=float(x[0]), bound=float(x[0]))


def test_what_stages_that_end_badly_leave():
    optimal, limit = fo.Status.OPTIMAL, fo.Status.LIMIT
    best, results = run(point(optimal, [0, 1]), RawResult(limit, message="time"))
    assert (best.status, best.x.tolist(), len(results)) == ("feasible", [0, 1], 2)
    assert "stage 2" in best.message
    best, _ = run(point(optimal, [0, 1]), RawResult(fo.Status.INFEASIBLE))  # wrong: a point is known
    assert (best.status, best.x.tolist()) == ("feasible", [0, 1])
    best, _ = run(point(optimal, [0, 1]), RawResult(fo.Status.INFEASIBLE, ambiguous=True))
    assert (best.status, best.ambiguous, best.x) == ("unbounded", False, None)
    best, results = run(point(fo.Status.FEASIBLE, [1, 1]))  # no later stage without a proof of the first
    assert (best.status, len(results)) == ("feasible", 1)
    best, _ = run(RawResult(limit))
    assert best.status == "limit"
    best, _ = run(point(optimal, [0, 1]), point(fo.Status.FEASIBLE, [0, 0.5]))
    assert (best.status, best.x.tolist()) == ("feasible", [0, 0.5])
