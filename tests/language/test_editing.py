"""Models that change after they were written: all or nothing, removing, fixing, relaxing."""

import re

import numpy as np
import pandas as pd
import pytest

import forcopt as fo


def _diet():
    m = fo.Model("diet")
    x = m.variable("x", shape=3, lower=0, upper=10, integer=True)
    need = m.subject_to(x[0] + 2 * x[1] + x[2] >= 7, name="need")
    m.minimize(x[0] + 3 * x[1] + 2 * x[2])
    return m, x, need


def test_subject_to_is_all_or_nothing():
    m = fo.Model("m")
    x = m.variable("x", lower=0)
    right = x <= 3
    with pytest.raises(fo.CurvatureError):
        m.subject_to(right, fo.abs(x) >= 1)
    with pytest.raises(fo.DeclarationError, match="not 5"):
        m.subject_to([x <= 1, 5])
    with pytest.raises(fo.DeclarationError, match="given twice"):
        m.subject_to(right, right)
    with pytest.raises(fo.DeclarationError, match="belongs to model"):
        m.subject_to(right, fo.Model("n").variable("y") <= 1, name="both")
    assert (m.row_count, m.constraints, m.relations[1:], right.name, right.start) == (0, [], [], "", -1)
    m.subject_to(right, name="cap")  # as if nothing had been tried
    assert [c.name for c in m.constraints] == ["cap"] and "c1" not in m
    with pytest.raises(fo.DeclarationError, match="the name is 5"):
        m.subject_to(x <= 2, name=5)


def test_an_atom_that_fails_or_is_unused_leaves_no_column(tmp_path):
    m = fo.Model("m")
    x = m.variable("x", 2, lower=1, upper=2)
    with pytest.raises(fo.CurvatureError):
        m.subject_to(fo.norm(x, 1) >= 1)
    with pytest.raises(fo.CurvatureError):
        fo.exp(fo.log(x))
    m.maximize(x.sum())
    assert repr(m) == "<model m: 2 columns, 0 rows, maximize>"
    assert m.summary().splitlines()[1] == "  columns    2 (0 integer, of these 0 binary)"
    for suffix in ("lp", "mps"):
        m.write(tmp_path / f"m.{suffix}")
        assert fo.read(tmp_path / f"m.{suffix}").column_count == 2
    assert m.to_highs().getNumCol() == 2
    assert m.solve().objective == 4


def test_removed_rows_and_variables():
    m, x, need = _diet()
    cap = m.subject_to(x[1] <= 1, name="cap")
    y = m.variable("y", lower=1)
    link = m.subject_to(y >= x.sum(), name="link")
    unused = fo.abs(y)
    old = m.solve()
    assert old.objective == 7
    with pytest.raises(fo.DeclarationError, match="y cannot go: link uses it"):
        m.remove(y)
    m.remove(need, "link")
    assert [c.name for c in m.constraints] == ["cap"] and (cap.start, m.row_count, need.start) == (0, 1, -1)
    m.remove(y)
    assert [v.name for v in m.variables] == ["x"] and m.solve().objective == 0
    for expression in (y, unused, y + 1):
        with pytest.raises(fo.DeclarationError, match="was removed from model"):
            m.subject_to(expression <= 3)
    with pytest.raises(fo.DeclarationError, match="is not in model"):
        m.remove(link)
    m.subject_to(need)  # may come back, under its own name
    assert m.solve().objective == 7 and need.name == "need" and old[x].sum() == 7 - old[x][1]
    y = m.variable("y", binary=True)  # the name is free again
    m.subject_to(y <= x[0])
    assert m.solve("cp-sat").objective == 7


def test_an_old_solution_keeps_its_duals_after_a_removal():
    m = fo.Model()
    x = m.variable("x", 2, lower=0)
    low = m.subject_to(x[0] >= 1, name="low")
    high = m.subject_to(x[1] >= 2, name="high")
    m.minimize(2 * x[0] + 3 * x[1])
    s = m.solve()
    m.remove(low)
    z = m.variable("z")
    assert s.dual(high) == pytest.approx(3) and m.solve().dual(high) == pytest.approx(3)
    with pytest.raises(fo.DeclarationError, match="was added after"):
        s[z]


def test_fixed_values():
    m, x, _ = _diet()
    free = m.solve().objective
    m.fix(x, [np.nan, 3, 0])
    s = m.solve()
    assert s[x].tolist() == [1, 3, 0] and s.objective == 10
    assert m.solve("cp-sat").objective == 10 and s.certify().optimal
    m.unfix(x[1])
    assert m.solve()[x].tolist() == [7, 0, 0]
    m.unfix(x)
    assert m.solve().objective == free == 7
    for part, value, message in (
        (x, 11, "fix: x[0] is 11; it must be within its bounds [0, 10]"),
        (x[1:], 0.5, "fix: x[1] is 0.5; it must be an integer"),
        (x + 1, 0, "must be a variable or a part of one"),
        (fo.abs(x), 0, "must be a variable or a part of one"),
        (x, np.inf, "it must be finite"),
        (3, 0, "fix needs a variable"),
    ):
        with pytest.raises(fo.DeclarationError, match=re.escape(message)):
            m.fix(part, value)
    assert m.solve().objective == free


def test_what_is_built_on_fixed_variables_holds_when_they_are_free_again():
    m = fo.Model()
    x, b = m.variable("x", lower=-5, upper=5), m.variable("b", binary=True)
    m.fix(x, 2)
    m.fix(b, 1)
    z = fo.product(b, x)
    m.maximize(z)
    assert m.solve().objective == 2
    m.unfix(x)
    assert m.solve().objective == 5
    m.minimize(z)  # an objective is replaced
    assert m.solve().objective == -5
    with pytest.raises(fo.CurvatureError):
        m.subject_to(fo.maximum(fo.abs(x - 3), 1) >= 2)


def test_relaxing_and_undoing():
    m = fo.Model()
    b = m.variable("b", 3, binary=True)
    m.subject_to(2 * b.sum() <= 3)
    m.maximize(b.sum())
    undo = m.relax()
    s = m.solve()
    assert s.objective == pytest.approx(1.5) and s[b].sum() == pytest.approx(1.5)
    undo()
    assert m.solve().objective == 1
    rule = m.subject_to(fo.implies(b[0], b[1] <= 0), name="rule")
    with pytest.raises(fo.UnsupportedError, match="rule"):
        m.relax()
    m.remove(rule)
    m.relax()
    assert m.solve().objective == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda m, x: m.solve(timelimit=3), "did you mean 'time_limit'"),
        (lambda m, x: m.variable("b", binary=True, upper=4), "upper is 4, but a binary variable is 0 or 1"),
        (lambda m, x: m.variable("b", binary=True, lower=-1), "lower is -1, but a binary variable"),
        (lambda m, x: m.variable("b", 2, binary="no"), "binary is 'no'; it must be True, False"),
        (lambda m, x: m.variable("b", 2, integer="yes"), "integer is 'yes'; it must be True, False"),
        (lambda m, x: m.variable("b", 2, binary=[True, False, True]), "does not broadcast"),
        (lambda m, x: m.variable("b", 2, labels=["a", "a"]), "the label 'a' occurs twice"),
        (lambda m, x: m.variable("b", 2, labels=["a", 3]), "the label 3 must be a string"),
        (lambda m, x: m.variable("b", 2, lower=np.array(["1", "2"], dtype=object)), "must be numbers"),
        (lambda m, x: m.variable("b", 2, lower=np.array([None, 1], dtype=object)), "must be"),
        (lambda m, x: x + np.array(["1", "2"], dtype=object), "must be numbers"),
        (lambda m, x: m.solve(start={x: np.inf}), "start: the value of x is inf; it must be finite"),
        (lambda m, x: m.solve(start={x: ["a", "b"]}), "start: the value of x must be numbers"),
        (lambda m, x: fo.Model(5), "the name of a model is 5"),
        (lambda m, x: m.lazy(lambda value: [], name=5), "the name is 5"),
        (lambda m, x: m["z"], "unknown name 'z'"),
        (lambda m, x: m[3], "3 is no name"),
    ],
)
def test_odd_inputs_are_refused(act, message):
    m = fo.Model("m")
    x = m.variable("x", 2, lower=0, upper=1)
    with pytest.raises(ValueError, match=re.escape(message)):
        act(m, x)
    assert [v.name for v in m.variables] == ["x"]


def test_binary_can_be_said_of_some_entries():
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=[1, 4], binary=[True, False])
    m.subject_to(2 * x <= 7)
    m.maximize(x.sum())
    assert m.solve()[x].tolist() == [1, 3.5]


@pytest.mark.parametrize("suffix", ["lp", "mps"])
def test_read_variables_keep_names_and_shapes(suffix, tmp_path):
    m = fo.Model("place")
    opened = m.variable("open", 3, binary=True)
    serve = m.variable("serve", (3, 2), lower=0)
    inflow = m.variable("inflow", lower=0, upper=7)
    nan_rate = m.variable("nan_rate", lower=0, upper=2)
    m.subject_to(serve <= opened[:, None], name="only open")
    m.subject_to(serve.sum(axis=0) == 1, name="served")
    m.maximize((serve * [[3, 1], [2, 2], [1, 3]]).sum() - 1.5 * opened.sum() + inflow + nan_rate)
    path = tmp_path / f"place.{suffix}"
    m.write(path)
    again = fo.read(path)
    shapes = {v.name.lstrip("_"): v.shape for v in again.variables}
    assert shapes == {"open": (3,), "serve": (3, 2), "inflow": (), "nan_rate": ()}
    s, t = m.solve(), again.solve()
    assert t.objective == pytest.approx(s.objective)
    assert t["open"].tolist() == s[opened].tolist() and t["open[1]"] == s[opened[1]]
    assert t["serve[2,1]"] == pytest.approx(s["serve[2,1]"])
    assert s["inflow"] == 7 == s[inflow] and s[nan_rate] == 2
    again.fix(again["open"], [1, 0, 0])
    assert again.solve().objective == pytest.approx(4 - 1.5 + 9)


def test_fix_leaves_parameters_free():
    m = fo.Model()
    x, p = m.variable("x", lower=0, upper=5), m.parameter("p", value=2)
    late = m.parameter("late")
    m.subject_to(x >= p)
    m.minimize(x)
    m.fix(x, 3)
    late.value = 0
    assert m.solve().objective == 3
    m.unfix(x)
    p.value = 1
    assert m.solve().objective == 1


def test_only_variables_can_be_fixed():
    m = fo.Model()
    x, b, p = m.variable("x", lower=0, upper=5), m.variable("b", binary=True), m.parameter("p", value=2)
    for other in (p, fo.product(b, x), p * x, fo.abs(x)):
        with pytest.raises(fo.DeclarationError, match="must be a variable"):
            m.fix(other, 1)
        with pytest.raises(fo.DeclarationError, match="must be a variable"):
            m.solve(start={other: 1})


def test_a_list_of_conditions_goes_as_it_came():
    m = fo.Model()
    b, k = m.variable("b", binary=True), m.variable("k", lower=0, upper=3, integer=True)
    both = m.subject_to(fo.iff(b, k >= 2), k <= 2)
    m.minimize(b - k)
    assert m.solve().objective == -1
    m.remove(both)
    assert m.solve().objective == -3
    with pytest.raises(fo.DeclarationError, match="not in model"):
        m.remove(None)


def test_coefficients_are_read_and_set():
    m = fo.Model()
    goods, ports = ["iron", "coal"], ["Brest", "Lorient"]
    x = m.variable("x", index={"good": goods, "port": ports}, lower=0, upper=5)
    cap = m.subject_to(2 * x.sum("good") <= 8, name="cap")
    m.maximize(3 * x.sum() - 1)
    assert m.solve().objective == pytest.approx(23)
    assert cap[x["iron"]].tolist() == [2, 2]
    cap[x["iron"]] = pd.Series({"Lorient": 1.0, "Brest": 4.0}).rename_axis("port")
    assert repr(cap).endswith("4 x[iron,Brest] + 2 x[coal,Brest] <= 8, ...>")
    old = m.solve()
    assert old.objective == pytest.approx(3 * (4 + 5 + 1.5) - 1)
    m.objective[x["coal"]] = [0.0, 7.0]
    assert m.objective[x].tolist() == [[3, 3], [0, 7]]
    assert m.solve().objective == pytest.approx(3 * 2 + 7 * 4 - 1)
    assert old.objective == pytest.approx(30.5) and "changed" in old.change()
    single = m.subject_to(x["iron", "Brest"] - x["coal", "Brest"] >= 0)
    single[x["coal", "Brest"]] = -2
    assert repr(single).endswith("x[iron,Brest] - 2 x[coal,Brest] >= 0>")
    price = m.parameter("price", value=2)
    m.maximize(price * x["coal"].sum())
    assert m.solve().objective == pytest.approx(2 * (0.8 + 4))
    cap[x["coal"]] = 4
    assert m.solve().objective == pytest.approx(2 * (2 / 3 + 2))


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda m, c, x: c.__setitem__(2 * x[0], 3), "must be a variable or a part of one"),
        (lambda m, c, x: c.__setitem__(x, 3), "broadcast"),
        (lambda m, c, x: c.__setitem__("x", 3), "ask for the coefficient of a variable, not of 'x'"),
        (lambda m, c, x: c.__setitem__(x[0], np.nan), "nan"),
        (lambda m, c, x: m.objective.__setitem__(x, [1, 2, 3]), "broadcast|coefficients for shape"),
        (lambda m, c, x: m.objective[3], "not of 3"),
        (lambda m, c, x: m.objective.__class__.__getitem__(fo.minimize(x[0]), x), "another objective now"),
        (lambda m, c, x: m.leximin(x) or m.objective[x], "the objective is leximin"),
        (lambda m, c, x: setattr(m["rows[1]"], "rhs", 3), "is a row of a constraint"),
    ],
)
def test_wrong_coefficients_are_refused(act, message):
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=1)
    c = m.subject_to(x.sum() <= 1, name="c")
    m.subject_to(x >= 0, name="rows")
    m.minimize(x.sum())
    with pytest.raises((fo.DeclarationError, ValueError), match=message):
        act(m, c, x)
    assert c.expression.linear_rows().data.tolist() == [1, 1]


@pytest.mark.parametrize("backend", ["highs", "scip", "clarabel"])
@pytest.mark.parametrize("integer", [False, True])
def test_an_edited_model_is_solved_as_one_declared_with_its_numbers(backend, integer):
    """Solver sessions are kept over edits; here is the same model, declared anew after each edit."""
    if integer and backend == "clarabel":
        pytest.skip("clarabel takes no integers")
    rng = np.random.default_rng(4)
    a, cost, rhs = rng.integers(1, 9, (4, 6)), rng.integers(-5, 9, 6), rng.integers(20, 40, 4)
    upper, kind = np.full(6, 5.0), "continuous"

    def declared(edited=None):
        m = fo.Model()
        x = m.variable("x", 6, lower=0, upper=upper, integer=integer and kind != "relaxed")
        budget = m.parameter("budget", value=3.0) if edited else 3.0
        c = m.subject_to((a * x).sum(axis=1) <= rhs)
        m.subject_to(x[0] + x[1] <= budget)
        m.maximize((cost * x).sum())
        return m, x, c

    for parametric in (False, True):
        m, x, c = declared(parametric)
        for turn in range(12):
            at, value = int(rng.integers(4)), int(rng.integers(1, 9))
            if turn % 4 == 0:
                rhs[at] = 3 * value + 2
                c.rhs = rhs
            elif turn % 4 == 1:
                upper[at] = float(value % 5)
                x.upper = upper
            elif turn % 4 == 2:
                cost[at] = -value if turn % 8 == 2 else value
                m.objective[x] = cost
            else:
                a[:, at] = value
                c[x[at]] = a[:, at]
            s, fresh = m.solve(backend), declared()[0].solve("highs")
            assert s.status is fresh.status
            assert s.objective == pytest.approx(fresh.objective, abs=1e-5)
            if backend == "highs" and turn == 1:
                session = m.prepared["highs"].session
        assert backend != "highs" or m.prepared["highs"].session is session is not None
    kind = "relaxed"
    m.relax()
    assert m.solve(backend).objective == pytest.approx(declared()[0].solve("highs").objective, abs=1e-5)
