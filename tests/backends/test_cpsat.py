from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import forcopt as fo
from forcopt.backends.base import SolveOptions
from forcopt.backends.cpsat import CpSat, finite_domains, loosened, rational
from forcopt.clock import Improvement
from forcopt.compile import compile_model
from forcopt.compile.program import StageCost


def solve(m: fo.Model, **options: Any) -> Any:
    return m.solve("cp-sat", threads=1, seed=1, **options)


def knapsack(n: int = 120) -> tuple[fo.Model, Any]:
    rng = np.random.default_rng(1)
    m = fo.Model()
    x = m.variable("x", n, binary=True)
    weights = rng.integers(1, 60, (n // 3, n))
    m.subject_to(weights @ x <= np.floor(0.4 * weights.sum(axis=1)))
    m.maximize(rng.integers(5, 60, n) @ x)
    return m, x


# -- numbers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "fraction"),
    [
        (0.1, Fraction(1, 10)),
        (0.19, Fraction(19, 100)),
        (1 / 3, Fraction(1, 3)),
        (-22 / 7, Fraction(-22, 7)),
        (123456.789012345, Fraction(123456789012345, 10**9)),
        (0.0, Fraction(0)),
        (3e15, Fraction(3 * 10**15)),
        (1e-9, Fraction(1, 10**9)),
        (0.1 + 0.2, Fraction(3, 10)),  # 0.30000000000000004 is within two units in the last place
        (0.3 + 3 * 2**-54, None),  # this is not
        (1e5 / 3, Fraction(100000, 3)),
        (4096.9704478601925, None),  # 568266189 / 138704 is as near by chance
        (2**0.5, None),
        (np.pi, None),
        (1e-12, None),
    ],
)
def test_floats_are_read_as_what_they_stand_for(value: float, fraction: Fraction | None) -> None:
    assert rational(value) == fraction


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.floats(-1e6, 1e6, allow_subnormal=False))
def test_what_is_read_is_within_two_units_in_the_last_place(value: float) -> None:
    found = rational(value)
    assert found is None or abs(found - Fraction(value)) <= 2 * Fraction(math.ulp(value))


@pytest.mark.parametrize("size", [1, 1e3])
def test_few_floats_are_taken_for_rational_by_chance(size: float) -> None:
    values = size * np.random.default_rng(0).random(2000)
    assert sum(rational(v) is not None for v in values.tolist()) <= 2


def test_bounds_are_loosened_but_not_to_another_integer() -> None:
    assert np.floor(loosened(np.array(2.9999999999), 1.0)) == 3
    assert np.floor(loosened(np.array(2.99), 1.0)) == 2
    assert loosened(np.array(1e15), 1.0) == 1e15  # 0.01 is below its precision
    assert loosened(np.array(1e9), -1.0) == pytest.approx(1e9 - 0.01, abs=1e-6)
    assert loosened(np.array(np.inf), 1.0) == np.inf


def test_decimal_rows_are_exact() -> None:
    m = fo.Model()
    x = m.variable("x", 3, lower=0, upper=9, integer=True)
    m.subject_to(0.1 * x[0] + 0.2 * x[1] <= 0.3, name="tenths")
    m.subject_to((x[0] + x[1] + x[2]) / 3 == 2, name="thirds")
    m.subject_to(x[2] >= 0.7 - 0.4 + 3, name="noisy")  # 3.3 but for rounding
    m.maximize(0.25 * x[0] + 0.6 * x[1] + 0.05 * x[2] + 0.125)
    s = solve(m)
    assert s.status is fo.Status.OPTIMAL
    assert s[x].tolist() == [1, 1, 4]
    assert s.objective == pytest.approx(0.25 + 0.6 + 0.2 + 0.125)
    assert s.bound == pytest.approx(s.objective)


def test_a_side_that_only_rounding_moved_still_holds() -> None:
    for side, holds in ((0.1 * 3, 1.0), (0.3, 1.0), (0.29, 0.0)):
        m = fo.Model()
        x = m.variable("x", binary=True)
        m.subject_to(0.3 * x <= side)
        m.maximize(x)
        assert solve(m).objective == holds
    m = fo.Model()
    x = m.variable("x", binary=True)
    m.subject_to(0.3 * x >= 0.1 * 3)  # 0.30000000000000004
    m.maximize(-x)
    assert solve(m).objective == -1


def test_irrational_data_is_refused_and_named() -> None:
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=5, integer=True)
    m.subject_to(x[0] + 2**0.5 * x[1] <= 4, name="root")
    m.minimize(x[0])
    with pytest.raises(fo.UnsupportedError, match=r"row root: the coefficient 1\.41421356237\d*"):
        solve(m)
    m = fo.Model()
    x, b = m.variable("x", lower=0, upper=5, integer=True), m.variable("b", binary=True)
    m.subject_to(fo.implies(b, np.e * x <= 4))
    with pytest.raises(fo.UnsupportedError, match=r"row 0 of indicator 0: the coefficient 2\.718"):
        solve(m)


def test_irrational_costs_are_rounded_and_their_error_bounded() -> None:
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=5, integer=True)
    m.subject_to(x.sum() >= 7)
    m.minimize(np.pi * x[0] + np.sqrt(10) * x[1])
    s = solve(m)
    assert s.status is fo.Status.OPTIMAL
    assert s[x].tolist() == [5, 2]
    assert s.objective == pytest.approx(5 * np.pi + 2 * np.sqrt(10), abs=1e-12)
    assert s.bound <= s.objective and s.bound == pytest.approx(s.objective, abs=1e-9)


def test_costs_whose_error_is_too_large_are_refused() -> None:
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=10**12, integer=True)
    m.minimize(np.pi * x[0] + x[1])
    with pytest.raises(fo.UnsupportedError, match=r"the objective: scaled by .* its value could be off by"):
        solve(m)


def test_what_does_not_fit_into_64_bits_is_refused_and_named() -> None:
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=10**12, integer=True)
    m.subject_to(1e8 * x[0] + x[1] <= 4, name="wide")
    with pytest.raises(fo.UnsupportedError, match=r"row wide: .* could reach 1e\+20"):
        solve(m)
    m = fo.Model()
    y = m.variable("y", 8, binary=True)
    m.subject_to(y @ [1 / p for p in (997, 991, 983, 977, 971, 967, 953, 947)] <= 0.5, name="primes")
    with pytest.raises(fo.UnsupportedError, match="row primes: scaled by"):
        solve(m)


def test_large_integers_are_exact() -> None:
    m = fo.Model()
    x = m.variable("x", lower=0, upper=2**50, integer=True)
    m.subject_to(3 * x <= 3 * 2**49 + 1)
    m.maximize(x)
    assert solve(m).objective == 2.0**49


# -- finite domains ----------------------------------------------------------------------------------------


def domains(m: fo.Model) -> tuple[list[float], list[float]]:
    lower, upper = finite_domains(compile_model(m, CpSat.capabilities, "cp-sat"))
    return lower.tolist(), upper.tolist()


def test_rows_bound_columns() -> None:
    m = fo.Model()
    x = m.variable("x", 3, lower=0, integer=True)
    m.subject_to(2 * x[0] + 3 * x[1] <= 10, x[2] - x[1] == 1)
    m.maximize(x.sum())
    assert domains(m) == ([0, 0, 0], [5, 3, 4])


def test_results_of_atoms_are_capped_by_what_forces_them() -> None:
    m = fo.Model()
    x = m.variable("x", 2, lower=-3, upper=4, integer=True)
    m.minimize(fo.abs(x).sum() + fo.maximum(x[0], x[1] - 9))
    lower, upper = domains(m)
    assert lower[2:] == [0, 0, -3]  # |x| >= 0; max >= x[0]
    assert upper[2:] == pytest.approx([4, 4, 4], abs=1)  # rounded outwards
    assert min(upper[2:]) >= 4


def test_columns_that_cost_nothing_to_increase_mirror_it() -> None:
    m = fo.Model()
    x = m.variable("x", 2, lower=-3, upper=4, integer=True)
    t = m.variable("t", integer=True)
    m.subject_to(t <= x)
    m.maximize(t - x[0])
    lower, upper = domains(m)
    assert upper[2] == 4
    assert -4 <= lower[2] <= -3
    assert solve(m).objective == 0
    m = fo.Model()
    x = m.variable("x", integer=True, upper=3)
    m.maximize(fo.minimum(x, 2))
    assert solve(m).objective == 2


def test_a_free_column_between_two_demands_keeps_a_point() -> None:
    # t costs nothing and both rows alone would push it past the other.
    m = fo.Model()
    y = m.variable("y", 2, lower=0, upper=1, integer=True)
    t = m.variable("t", integer=True)
    m.subject_to(t >= y[0], t <= y[1] + 10)
    m.maximize(y.sum())
    assert solve(m).objective == 2


def test_covering_needs_no_bounds() -> None:
    rng = np.random.default_rng(2)
    a = rng.integers(0, 4, (4, 5))
    m = fo.Model()
    x = m.variable("x", 5, lower=0, integer=True)
    m.subject_to(a @ x >= [5, 7, 6, 9])
    m.minimize(rng.integers(1, 9, 5) @ x)
    assert solve(m).objective == m.solve("scip").objective


def test_a_column_without_bounds_is_named() -> None:
    m = fo.Model()
    x = m.variable("x", 2, lower=0, integer=True)
    m.subject_to(x[0] - x[1] <= 3)
    m.maximize(x[0])
    with pytest.raises(fo.UnboundedExpressionError, match=r"x\[0\] has no upper bound"):
        solve(m)
    m = fo.Model()
    x, y = m.variable("x", integer=True, upper=3), m.variable("y", integer=True)
    m.subject_to(x - y == 3)
    with pytest.raises(fo.UnboundedExpressionError, match="x has no lower bound"):
        solve(m)


def test_sums_of_the_largest_are_bounded_through_their_arguments() -> None:
    m = fo.Model()
    x = m.variable("x", 4, lower=-2, upper=5, integer=True)
    m.subject_to(x.sum() == 7, x[0] >= 4)
    m.minimize(fo.sum_largest(x, 2) + fo.sum_largest(-x, 1))
    s = solve(m)
    points = [p for p in itertools.product(range(-2, 6), repeat=4) if sum(p) == 7 and p[0] >= 4]
    assert s.objective == min(sum(sorted(p)[2:]) - min(p) for p in points)


# -- models ------------------------------------------------------------------------------------------------


def test_continuous_columns_are_refused_and_named() -> None:
    m = fo.Model()
    x = m.variable("x", 2, integer=True, lower=0, upper=1)
    y = m.variable("y", 2, lower=0, upper=1)
    m.minimize(x.sum() - y[1])
    with pytest.raises(fo.UnsupportedError, match=r"cannot take the continuous variable y\[1\]"):
        solve(m)
    m.subject_to(fo.implies(x[0], y[0] <= 0.5))
    m.minimize(x.sum())
    with pytest.raises(fo.UnsupportedError, match=r"cannot take the continuous variable y\[0\]"):
        solve(m)


def test_continuous_columns_that_only_rows_read_are_eliminated() -> None:
    m = fo.Model()
    x = m.variable("x", 3, integer=True, lower=0, upper=4)
    y = m.variable("y", 2, lower=0, upper=2.5)
    m.subject_to(y[0] >= x[0] - x[1], y[0] <= 0.5 * x[2], y[0] + y[1] == 2.25, x.sum() == 7)
    m.maximize(3 * x[0] + x[2])
    s, expected = solve(m), m.solve("scip")
    assert s.status is fo.Status.OPTIMAL and s.objective == pytest.approx(expected.objective)
    assert s[y].sum() == pytest.approx(2.25) and s[y][0] >= s[x][0] - s[x][1] - 1e-9
    m.subject_to(y[1] >= x[0] + 0.5)  # so x[0] <= 1
    least = solve(m).objective
    assert least == pytest.approx(m.solve("scip").objective) and least < s.objective


@pytest.mark.parametrize("value", [0, -3, 3])
def test_a_continuous_column_that_a_parameter_may_give_a_cost_is_refused(value: float) -> None:
    """At the value 0 it has none yet; it was eliminated, and its cost left out of later optima."""
    m = fo.Model()
    x, y = m.variable("x", integer=True, lower=0, upper=4), m.variable("y", lower=0, upper=1)
    p, q = m.parameter("p", value=value), m.parameter("q", value=2)
    m.subject_to(y <= x)
    m.minimize(x + q * (p * y))
    with pytest.raises(fo.UnsupportedError, match="cannot take the continuous variable y in"):
        solve(m)
    m.minimize(x)
    m.subject_to(p * y <= 3 * x - 3)  # in rows it may be scaled
    assert solve(m).objective == m.solve("scip").objective


def test_a_session_refuses_a_cost_of_a_continuous_column() -> None:
    m = fo.Model()
    x, y = m.variable("x", integer=True, lower=0, upper=4), m.variable("y", lower=0, upper=1)
    m.subject_to(y <= x)
    m.minimize(x)
    session = CpSat().session(compile_model(m, CpSat().capabilities))
    assert session.solve(SolveOptions()).objective == 0
    session.set_stage(StageCost(np.array([1.0, -3.0]), 0.0, False))
    with pytest.raises(fo.UnsupportedError, match="the continuous variable y has a cost"):
        session.solve(SolveOptions())


def test_infeasible_by_rows_bounds_and_empty_rows() -> None:
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=4, integer=True)
    m.subject_to(2 * x[0] + 4 * x[1] == 7)
    assert solve(m).status is fo.Status.INFEASIBLE
    m = fo.Model()
    x = m.variable("x", lower=0.3, upper=0.7, integer=True)
    s = solve(m)
    assert s.status is fo.Status.INFEASIBLE
    assert "within the bounds of x" in s.message
    m = fo.Model()
    x = m.variable("x", lower=0, upper=1, integer=True)
    m.subject_to(0 * x >= 1)
    assert solve(m).status is fo.Status.INFEASIBLE
    m = fo.Model()
    x, b = m.variable("x", lower=0, upper=4, integer=True), m.variable("b", binary=True)
    m.subject_to(fo.implies(b, 2 * x == 3))
    m.maximize(x + 10 * b)
    assert solve(m).objective == 4


def test_indicators_are_taken_as_they_are() -> None:
    m = fo.Model()
    x = m.variable("x", lower=-50, upper=50, integer=True)
    b = m.variable("b", binary=True)
    m.subject_to(fo.implies(b, x.between(2, 3)), fo.implies(1 - b, x <= -1))
    m.maximize(x - 10 * b)
    s = solve(m)
    assert s.bridges == ("implication_indicator",)
    assert s.objective == -1
    m.maximize(x - b)
    assert solve(m).objective == 2


def test_connected_sets_through_their_flow() -> None:
    m = fo.Model()
    x = m.variable("x", 12, binary=True)
    m.subject_to(
        fo.connected(nx.grid_2d_graph(3, 4), x), x[0] == 1, x[11] == 1, x[1] + x[5] + x[9] == 1, x[9] == 0
    )
    m.minimize(x @ np.arange(1, 13))
    assert solve(m).objective == m.solve("scip").objective


def test_no_objective_and_no_columns() -> None:
    m = fo.Model()
    assert solve(m).status is fo.Status.OPTIMAL
    x = m.variable("x", 2, lower=1, upper=3, integer=True)
    m.subject_to(x[0] >= x[1] + 1)
    s = solve(m)
    assert s.status is fo.Status.OPTIMAL
    assert s[x][0] > s[x][1]


def test_lexicographic_stages_hold_exactly() -> None:
    m = fo.Model()
    x = m.variable("x", 3, lower=0, upper=9, integer=True)
    m.subject_to(0.3 * x[0] + 0.5 * x[1] + 0.7 * x[2] <= 4.1)
    m.lexicographic([fo.maximize(0.3 * x[0] + 0.7 * x[2]), fo.minimize(x[0]), fo.maximize(x[1])])
    s = solve(m)
    points = [p for p in itertools.product(range(10), repeat=3) if 3 * p[0] + 5 * p[1] + 7 * p[2] <= 41]
    best = max(points, key=lambda p: (3 * p[0] + 7 * p[2], -p[0], p[1]))
    assert s[x].tolist() == list(best)


def test_lazy_rows_are_scaled_too() -> None:
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=10, integer=True)
    m.lazy(lambda value: [0.5 * x[0] + 0.1 * x[1] <= 3.3] if 5 * value(x[0]) + value(x[1]) > 33 else [])
    m.maximize(x[0] + x[1])
    assert solve(m).objective == 14  # 4 and 10


# -- running -----------------------------------------------------------------------------------------------


def test_limits_with_and_without_a_point() -> None:
    m, _ = knapsack()
    s = solve(m, on_improvement=lambda step: True)  # a point, however slow the machine
    assert s.status is fo.Status.FEASIBLE
    assert s.objective < s.bound < np.inf
    assert s.log and s.trace
    s = solve(m, time_limit=0.5)
    assert s.status is fo.Status.LIMIT or (s.status is fo.Status.FEASIBLE and s.objective < s.bound)
    s = solve(m, time_limit=0)
    assert s.status is fo.Status.LIMIT
    assert np.isinf(s.bound)  # not the zero of an answer that was never filled in
    assert solve(m, gap=0.5).status is fo.Status.OPTIMAL


def test_improvements_are_told_in_the_models_sense_and_can_stop_it() -> None:
    m, _ = knapsack()
    told: list[Improvement] = []

    def second(step: Improvement) -> bool:
        told.append(step)
        return len(told) >= 2

    s = solve(m, on_improvement=second)
    assert s.status is fo.Status.FEASIBLE
    assert told[0].objective < told[1].objective <= s.objective
    assert all(step.bound >= step.objective for step in told)


def test_an_error_in_the_callers_function_comes_through() -> None:
    def fails(step: Improvement) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        solve(knapsack(30)[0], on_improvement=fails)


def test_it_starts_from_a_given_point() -> None:
    m, x = knapsack()
    good = solve(m, time_limit=1)
    told: list[Improvement] = []
    solve(m, start={x: good[x]}, on_improvement=lambda step: told.append(step) or True, time_limit=10)
    assert told[0].objective == pytest.approx(good.objective)


def test_options_by_its_own_names() -> None:
    m, _ = knapsack(30)
    assert solve(m, options={"cp_model_presolve": False}).status is fo.Status.OPTIMAL
    with pytest.raises(fo.BackendError, match="no_such_option"):
        solve(m, options={"no_such_option": 1})
    with pytest.raises(fo.BackendError, match="max_number_of_conflicts='many'"):
        solve(m, options={"max_number_of_conflicts": "many"})
