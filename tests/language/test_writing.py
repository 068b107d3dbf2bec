"""Writing to a model in place: what can be assigned reaches every solve, and all else is refused."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest

import forcopt as fo
from forcopt.language.variable import Variable


def knapsack(parameter=False):
    m = fo.Model("m")
    x = m.variable("x", 2, lower=0, upper=50)
    weight = m.parameter("weight", value=1.0) if parameter else 1.0
    cap = m.subject_to(x + 2 <= [7, 8], name="cap")
    m.maximize((weight * x).sum())
    return m, x, cap


@pytest.mark.parametrize("parameter", [False, True])
@pytest.mark.parametrize("backend", ["highs", "clarabel", "scip"])
def test_new_bounds_of_rows_reach_the_next_solve(parameter, backend):
    m, _, cap = knapsack(parameter)
    assert m.solve(backend).objective == pytest.approx(11)
    cap.upper = 10  # as the constraint shows itself: x <= 10
    assert m.solve(backend).objective == pytest.approx(20)
    cap.rhs = [1, 2]
    assert m.solve(backend).objective == pytest.approx(3)
    cap.upper = 3
    cap.lower = 1.5
    assert m.solve(backend).objective == pytest.approx(6)
    assert cap.sense == "between"
    assert m.violations(m.point({m["x"]: 5})) == {"cap": pytest.approx(2 / 3)}


def test_new_bounds_of_a_variable_reach_the_next_solve_with_parameters():
    m, x, _ = knapsack(parameter=True)
    assert m.solve().objective == 11
    x.upper = [1, 3]
    assert m.solve().objective == 4
    m["weight"].value = -1
    x.lower = 0.5
    assert m.solve().objective == -1


def test_new_bounds_of_a_variable_reach_the_next_solve():
    m, x, cap = knapsack()
    first = m.solve()
    x.upper = [1, 60]
    assert m.solve().objective == 7
    x.upper = 100
    m.remove(cap)
    x.lower = -5
    assert m.solve().objective == 200
    assert x.lower.tolist() == [-5, -5] and x.upper.tolist() == [100, 100]
    assert first.objective == 11  # an older solution stays as it was


def test_rows_within_a_condition_can_be_changed():
    m = fo.Model()
    x, b = m.variable("x", lower=0, upper=50), m.variable("b", binary=True)
    row = x <= 3
    m.subject_to(fo.implies(b, row), b == 1)
    m.maximize(x)
    assert m.solve().objective == 3
    row.rhs = 4
    assert m.solve().objective == 4


def test_bounds_meet_series_by_label():
    m = fo.Model()
    x = m.variable("x", index=["a", "b"], lower=0, upper=9)
    cap = m.subject_to(x <= 5)
    m.maximize(x.sum())
    cap.rhs = pd.Series({"b": 2.0, "a": 1.0})
    x.lower = pd.Series({"b": 1.5, "a": 0.0})
    assert m.solve()[x].tolist() == [1, 2] and x.lower.tolist() == [0, 1.5]


def test_fixed_entries_stay_fixed_and_restoring_gives_the_new_bounds():
    m, x, cap = knapsack()
    m.remove(cap)
    m.fix(x[0], 4)
    x.upper = 6
    assert m.solve()[x].tolist() == [4, 6]
    with pytest.raises(fo.DeclarationError, match="variable x: an entry is fixed outside the new bounds"):
        x.upper = 3
    m.unfix(x)
    assert m.solve()[x].tolist() == [6, 6]


def test_tighter_bounds_reach_the_constants_of_rewritings():
    m = fo.Model()
    x, b = m.variable("x", lower=0, upper=1e6), m.variable("b", binary=True)
    m.subject_to(fo.implies(b, x >= 30), b == 1)
    m.minimize(x)
    x.upper = 40
    s = m.solve()
    assert s.objective == pytest.approx(30)
    assert m.span_of(x)[1] == 40


@pytest.mark.parametrize(
    "use",
    [
        lambda m, x, b: m.subject_to(fo.abs(x) <= 70),
        lambda m, x, b: m.subject_to(fo.product(b, x[0]) <= 3),
        lambda m, x, b: m.subject_to(fo.semicontinuous(x, 2, 3)),
    ],
)
def test_bounds_in_use_do_not_widen(use):
    m, x, _ = knapsack()
    use(m, x, m.variable("b", binary=True))
    x.upper = 20
    with pytest.raises(fo.DeclarationError, match="variable x: its bounds cannot widen"):
        x.upper = 21


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda c, x: setattr(c, "upper", np.nan), r"constraint cap: upper is nan"),
        (lambda c, x: setattr(c, "upper", [1, 2, 3]), "do not broadcast"),
        (lambda c, x: setattr(c, "lower", [3, 9]), r"constraint cap\[1\]: lower 9 is above upper 6"),
        (lambda c, x: setattr(x, "upper", -1), r"variable x\[0\]: lower 0 is above upper -1"),
        (lambda c, x: setattr(x, "lower", [[0, 0], [1, 1]]), "does not broadcast"),
        (lambda c, x: setattr(x, "lower", None), "lower is nan; it must be"),
        (
            lambda c, x: setattr(x.model.subject_to(x.between(0, 1), name="two"), "rhs", 1),
            "constraint two: no eq",
        ),
    ],
)
def test_bad_bounds_are_refused_and_change_nothing(write, message):
    m, x, cap = knapsack()
    with pytest.raises(fo.DeclarationError, match=message):
        write(cap, x)
    assert m.solve().objective == (11 if "two" not in m else 2)


def test_a_bound_that_curvature_forbids_is_refused():
    m = fo.Model()
    x = m.variable("x", 2)
    ball = m.subject_to(fo.norm(x) <= 5, name="ball")
    m.maximize(x[0])
    with pytest.raises(fo.CurvatureError, match="constraint ball: the expression must be affine"):
        ball.lower = 1
    ball.rhs = 2
    assert m.solve("clarabel").objective == pytest.approx(2, abs=1e-5)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("RHS", ""),
        ("ub", "; write c.upper"),
        ("lb", "; write c.lower"),
        ("Pi", "; write s.dual(c)"),
        ("tag", ""),
    ],
)
def test_a_constraint_refuses_unknown_attributes(name, hint):
    _, _, cap = knapsack()
    with pytest.raises(AttributeError) as refused:
        setattr(cap, name, 3)
    assert f"{name!r} to set{hint}" in str(refused.value)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("time_limit", "m.solve(time_limit=...)"),
        ("sense", "m.minimize(...) or m.maximize(...)"),
        ("objective", "m.minimize(...) or m.maximize(...)"),
        ("Params", "m.solve(time_limit=..., gap=...)"),
        ("tag", None),
    ],
)
def test_a_model_refuses_unknown_attributes(name, hint):
    m, _, _ = knapsack()
    with pytest.raises(AttributeError) as refused:
        setattr(m, name, 3)
    assert str(refused.value).endswith(f"; write {hint}" if hint else "to set")
    m.name = "other"


@pytest.mark.parametrize("name", ["start", "integer", "name", "shape", "axes", "terms", "ub", "VType", "tag"])
def test_a_variable_and_a_parameter_refuse_what_they_cannot_change(name):
    m, x, _ = knapsack(parameter=True)
    for thing in (x, m["weight"]):
        with pytest.raises(AttributeError, match=name):
            setattr(thing, name, 3)
    assert m.solve().objective == 11


def test_written_models_are_copied_and_pickled():
    m, _, cap = knapsack(parameter=True)
    cap.rhs = 4
    for other in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        assert other.solve().objective == 8
        other["cap"].rhs = 5
        assert isinstance(other["x"], Variable) and other.solve().objective == 10
    assert m.solve().objective == 8


@pytest.mark.parametrize(
    ("argument", "hint"),
    [
        ("lb", "lower=..."),
        ("ub", "upper=..."),
        ("vtype", "binary=True"),
        ("coords", "index="),
        ("frobnicate", "'"),
    ],
)
def test_arguments_of_other_languages_name_ours(argument, hint):
    m = fo.Model()
    for declare in (m.variable, m.parameter):
        with pytest.raises(TypeError, match=argument) as refused:
            declare("x", **{argument: 0})
        assert hint in str(refused.value)
    assert "x" not in m


def test_optimize_without_an_objective_names_solve():
    with pytest.raises(fo.DeclarationError, match=r"optimize needs an objective .*; m.solve\(\) solves"):
        fo.Model().optimize()


def test_pandas_on_the_left_of_a_product_names_the_right_call():
    x = fo.Model().variable("x", index=["a", "b"])
    for left in (pd.Series({"a": 1.0, "b": 2.0}), pd.DataFrame([[1.0, 2.0]], columns=["a", "b"])):
        with pytest.raises(fo.DeclarationError, match=r"write x @ series, or x @ frame\.T"):
            left @ x
