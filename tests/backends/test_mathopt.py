from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from processor_time import spends_at_most, with_a_point

import forcopt as fo
from forcopt.backends import SolveOptions, get_backend
from forcopt.backends.base import SolveMonitor
from forcopt.backends.mathopt import MathOpt, _read
from forcopt.clock import Improvement
from forcopt.compile import compile_model

LINEAR = ["glop", "pdlp", "gscip"]


def small(sense: str = "max") -> tuple[Any, Any, list[Any]]:
    m = fo.Model()
    x = m.variable("x", 2, lower=0)
    rows = [m.subject_to(x[0] + x[1] <= 4, name="a"), m.subject_to((x[0] + 3 * x[1]).between(1, 6), name="b")]
    if sense == "max":
        m.maximize(x[0] + 2 * x[1] + 10)
    else:
        m.minimize(-x[0] - 2 * x[1] - 10)
    return m, x, rows


def knapsack(n: int = 100) -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    m = fo.Model()
    x = m.variable("x", n, binary=True)
    weights = rng.integers(1, 60, (n // 3, n))
    m.subject_to(weights @ x <= 0.4 * weights.sum(axis=1))
    m.maximize(rng.integers(5, 60, n) @ x)
    return m, x


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("sense", ["max", "min"])
def test_optimum_with_offset_and_range(name: str, sense: str) -> None:
    m, x, _ = small(sense)
    s = m.solve(name, seed=3, threads=1)
    assert s.status is fo.Status.OPTIMAL
    assert s.objective == pytest.approx(15 if sense == "max" else -15, abs=1e-4)
    assert s.bound == pytest.approx(s.objective, abs=1e-4)
    assert s[x] == pytest.approx([3, 1], abs=1e-4)
    assert s.backend == name
    assert s.log


@pytest.mark.parametrize("name", ["glop", "pdlp"])
def test_duals_follow_the_sense(name: str) -> None:
    m, x, rows = small("max")
    s = m.solve(name)
    assert [float(s.dual(r)) for r in rows] == pytest.approx([0.5, 0.5], abs=1e-4)
    m, x, rows = small("min")
    s = m.solve(name)
    assert [float(s.dual(r)) for r in rows] == pytest.approx([-0.5, -0.5], abs=1e-4)
    m.minimize(x[0] - 2 * x[1])
    assert m.solve(name).reduced_cost(x) == pytest.approx([1 + 2 / 3, 0], abs=1e-4)


@pytest.mark.parametrize("name", LINEAR)
def test_infeasible_and_unbounded(name: str) -> None:
    m = fo.Model()
    x = m.variable("x", 2, lower=0)
    m.subject_to(x[0] - x[1] == 1)
    m.maximize(x.sum())
    assert m.solve(name).status is fo.Status.UNBOUNDED
    m.subject_to(x[0] <= 0.5)
    assert m.solve(name).status is fo.Status.INFEASIBLE


def test_a_point_of_infinite_value_is_unbounded() -> None:
    m = fo.Model()  # MathOpt itself fails on it: "Expected no NaN or inf but found value: -inf"
    x = m.variable("x", 1)
    m.maximize(x.sum())
    assert m.solve("gscip").status is fo.Status.UNBOUNDED


@pytest.mark.parametrize("name", LINEAR)
def test_no_rows_and_no_columns(name: str) -> None:
    m = fo.Model()
    m.variable("x", 0)
    assert m.solve(name).status is fo.Status.OPTIMAL
    y = m.variable("y", 3, lower=[0, 1, 2], upper=4)
    m.minimize(y.sum())
    assert m.solve(name).objective == pytest.approx(3)


@pytest.mark.parametrize("name", LINEAR)
def test_no_time_is_no_answer(name: str) -> None:
    s = small()[0].solve(name, time_limit=0)
    assert s.status is fo.Status.LIMIT
    assert np.isinf(s.bound)


def test_what_glop_cannot_take_is_refused_by_name() -> None:
    m, _ = knapsack(9)
    with pytest.raises(fo.UnsupportedError, match=r"'glop' cannot take integer .*gscip"):
        m.solve("glop")


def test_the_solvers_own_refusal_is_an_error_in_its_words() -> None:
    # By itself MathOpt raises an AttributeError here.
    m, _ = knapsack(9)
    claims_too_much = MathOpt("glop", "glop", ["rows", "integer"])
    session = claims_too_much.session(compile_model(m, claims_too_much.capabilities))
    with pytest.raises(fo.BackendError, match="Glop does not support integer variables"):
        session.solve(SolveOptions())


def test_gscip_stops_at_a_limit_with_its_best_point() -> None:
    m, _ = knapsack()
    with spends_at_most(60):
        s = with_a_point(lambda limit: m.solve("gscip", time_limit=limit))
    assert s.status is fo.Status.FEASIBLE
    assert s.objective < s.bound < np.inf
    assert 0 < s.gap < 1
    assert m.solve("gscip", gap=0.5).status is fo.Status.OPTIMAL


def test_gscip_tells_of_improvements_and_stops_when_asked() -> None:
    m, _ = knapsack()
    told: list[Improvement] = []

    def second(step: Improvement) -> bool:
        told.append(step)
        return len(told) >= 2

    s = m.solve("gscip", on_improvement=second)
    assert s.status is fo.Status.FEASIBLE
    assert told[0].objective < told[1].objective  # it maximises
    assert s.trace[:2] == told[:2]
    assert s.objective >= told[1].objective


def test_an_error_in_the_callers_function_comes_through() -> None:
    m, _ = knapsack(30)

    def fails(step: Improvement) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        m.solve("gscip", on_improvement=fails)


def test_gscip_starts_from_a_given_point() -> None:
    m, x = knapsack()
    good = m.solve("highs", time_limit=1)
    weak = {"heuristics": "OFF", "long_params": {"limits/nodes": 1}}
    alone = m.solve("gscip", options=weak)
    assert np.isnan(alone.objective) or alone.objective < good.objective
    s = m.solve("gscip", start={x: good[x]}, options=weak)
    assert s.status is fo.Status.FEASIBLE
    assert s.objective >= good.objective - 1e-6


def test_indicators_of_both_values_and_with_ranges() -> None:
    m = fo.Model()
    x = m.variable("x", lower=-50, upper=50)
    b = m.variable("b", binary=True)
    m.subject_to(fo.implies(b, x.between(2, 3)), fo.implies(1 - b, x <= -1))
    m.maximize(x - 10 * b)
    s = m.solve("gscip")
    assert s.bridges == ("implication_indicator", "big_m")
    assert (s.objective, s[b]) == (pytest.approx(-1), 0)
    m.maximize(x - b)
    assert m.solve("gscip").objective == pytest.approx(2)
    m.minimize(x + 100 * (1 - b))
    assert m.solve("gscip").objective == pytest.approx(2)
    y = m.variable("y", lower=0)  # without an upper bound there is no big-M row
    m.subject_to(fo.implies(b, y <= x), x + y <= 50)
    m.maximize(y - 100 * (1 - b))
    assert m.solve("gscip").bridges == ("implication_indicator", "big_m")
    assert m.solve("gscip").objective == pytest.approx(3)


@pytest.mark.parametrize("backend", ["scip", "gscip"])
def test_scip_gets_no_indicators_where_bounds_give_big_m_rows(backend):
    """SCIP 10.0 told 9 as the optimum of this schedule in 12 of 60 runs with indicators."""
    for seed in range(12):
        m = fo.Model()
        s = m.variable("s", 3, lower=0, upper=3, integer=True)
        m.subject_to(fo.cumulative(m.interval(s, np.array([3, 3, 1])), np.array([2, 2, 3]), 4))
        m.maximize([3, 3, 2] @ s)
        assert m.solve(backend, seed=seed).objective == 22


def test_gscip_takes_quadratic_objectives_with_integers() -> None:
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=9, integer=True)
    m.minimize(fo.sum_squares(x - [1.4, 2.6]) + fo.quad_form(x - 1, [[2, 1], [1, 2]]))
    s = m.solve("gscip")
    grid = [(a, b) for a in range(10) for b in range(10)]
    value = [
        (a - 1.4) ** 2 + (b - 2.6) ** 2 + 2 * (a - 1) ** 2 + 2 * (a - 1) * (b - 1) + 2 * (b - 1) ** 2
        for a, b in grid
    ]
    assert s.objective == pytest.approx(min(value), abs=1e-5)
    assert s.bound == pytest.approx(min(value), abs=1e-4)


def test_options_by_the_solvers_own_names() -> None:
    m, _, _ = small()
    assert m.solve("glop", options={"use_preprocessing": False}).status is fo.Status.OPTIMAL
    tight = {"termination_criteria": {"simple_optimality_criteria": {"eps_optimal_relative": 1e-9}}}
    assert m.solve("pdlp", options=tight).objective == pytest.approx(15, abs=1e-6)
    assert m.solve("pdlp", options={"termination_criteria": {"iteration_limit": 1}}).status is fo.Status.LIMIT
    with pytest.raises(fo.BackendError, match="no_such_option"):
        m.solve("glop", options={"no_such_option": 1})


def test_lexicographic_and_lazy_loops_run_on_it() -> None:
    m = fo.Model()
    x = m.variable("x", 3, lower=0, upper=10)
    m.lazy(lambda value: [x.sum() <= 7] if value(x).sum() > 7 else [])
    m.subject_to(x[0] <= 1)
    m.leximin(x)
    for name in ("glop", "gscip"):
        assert m.solve(name)[x] == pytest.approx([1, 3, 3], abs=1e-5)


def test_cuts_within_the_accuracy_end_the_loop() -> None:
    direction = np.array([1.0, 2.0, 3.0])
    m = fo.Model()
    x = m.variable("x", 3, lower=-2, upper=2)
    asked = 0

    def tangent(value: Any) -> Any:
        nonlocal asked
        asked += 1
        assert asked < 200, "the same cut over and over"
        point = value(x)
        if np.linalg.norm(point) > 1:
            yield (point / np.linalg.norm(point)) @ x <= 1

    m.lazy(tangent)
    m.maximize(direction @ x)
    for name in ("glop", "pdlp"):
        asked = 0
        assert m.solve(name).objective == pytest.approx(np.linalg.norm(direction), abs=1e-3)


def test_to_mathopt_keeps_names_sense_and_offset() -> None:
    from ortools.math_opt.python import mathopt

    m = fo.Model("small")
    x = m.variable("x", 3, lower=0, upper=5, integer=True)
    b = m.variable("b", binary=True)
    m.subject_to(x.sum() <= 7.5, name="cap")
    m.subject_to(fo.implies(b, x[1] <= 2))
    m.maximize(x[0] + 2 * x[1] + 3 * b + 4)
    out = m.to_mathopt()
    assert out.objective.is_maximize
    assert out.objective.offset == 4
    assert [v.name for v in out.variables()] == ["x[0]", "x[1]", "x[2]", "b"]
    assert [c.name for c in out.linear_constraints()] == ["cap"]
    result = mathopt.solve(out, mathopt.SolverType.GSCIP)
    assert result.objective_value() == pytest.approx(m.solve("highs").objective)


@pytest.mark.parametrize(
    ("reason", "limit", "feasible", "status", "ambiguous"),
    [
        ("IMPRECISE", "UNSPECIFIED", True, fo.Status.FEASIBLE, False),
        ("IMPRECISE", "UNSPECIFIED", False, fo.Status.FAILED, False),
        ("FEASIBLE", "ITERATION", True, fo.Status.FEASIBLE, False),
        ("NO_SOLUTION_FOUND", "SLOW_PROGRESS", False, fo.Status.LIMIT, False),
        ("INFEASIBLE_OR_UNBOUNDED", "UNSPECIFIED", False, fo.Status.INFEASIBLE, True),
        ("NUMERICAL_ERROR", "UNSPECIFIED", False, fo.Status.FAILED, False),
        ("OTHER_ERROR", "UNSPECIFIED", False, fo.Status.FAILED, False),
    ],
)
def test_every_end_is_told_as_it_is(
    reason: str, limit: str, feasible: bool, status: fo.Status, ambiguous: bool
) -> None:
    from ortools.math_opt import result_pb2, solution_pb2

    m, _, _ = small("min")
    program = compile_model(m, get_backend("glop").capabilities)
    answer = result_pb2.SolveResultProto()
    answer.termination.reason = result_pb2.TerminationReasonProto.Value(f"TERMINATION_REASON_{reason}")
    answer.termination.limit = result_pb2.LimitProto.Value(f"LIMIT_{limit}")
    answer.termination.detail = "the solver's own words"
    point = answer.solutions.add().primal_solution
    point.variable_values.ids.extend([0, 1])
    point.variable_values.values.extend([1.0, 2.0])
    claim = "FEASIBLE" if feasible else "UNDETERMINED"
    point.feasibility_status = solution_pb2.SolutionStatusProto.Value(f"SOLUTION_STATUS_{claim}")
    result = _read(answer, program, SolveMonitor(program, SolveOptions()), "glop")
    assert (result.status, result.ambiguous) == (status, ambiguous)
    assert reason in result.message
    assert "the solver's own words" in result.message
    if feasible:
        assert result.x.tolist() == [1, 2]
        assert result.objective == -15
    else:
        assert result.x is None


def test_scip_is_always_there() -> None:
    assert get_backend("scip").missing() is None
    assert get_backend("gscip").through == "ortools"


def test_a_bound_that_scip_does_not_have_yet_is_not_zero() -> None:
    """At a first point MathOpt's field of the bound reads as 0, below the optimum of a maximization."""
    rng = np.random.default_rng(9)
    for _ in range(30):
        m = fo.Model()
        x = m.variable("x", 4, lower=0, upper=3, integer=True)
        m.subject_to(rng.integers(-5, 9, (2, 4)) @ x <= rng.integers(3, 16, 2))
        m.maximize(rng.integers(1, 8, 4) @ x)
        seen: list[Improvement] = []
        s = m.solve("gscip", start={x: np.zeros(4)}, on_improvement=seen.append)
        assert s.objective is not None and all(step.bound >= s.objective - 1e-6 for step in seen)
