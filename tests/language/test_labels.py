"""Labels of axes: picking, aligning pandas objects, names and reading back."""

import numpy as np
import pandas as pd
import pytest

import forcopt as fo

GOODS = ["iron", "coal", "salt"]
PORTS = ["Brest", "Lorient"]


@pytest.fixture
def ship():
    m = fo.Model("ship")
    x = m.variable("x", index={"good": GOODS, "port": PORTS}, lower=0, upper=5)
    return m, x


def _columns(expression):
    return expression.linear_rows().indices.tolist()


def test_picking_by_label(ship):
    m, x = ship
    assert x.shape == (3, 2) and x.start == 0
    assert _columns(x["coal"]) == [2, 3] and _columns(x["coal", "Lorient"]) == [3]
    assert _columns(x[["salt", "iron"]]) == [4, 5, 0, 1] and _columns(x[:, "Brest"]) == [0, 2, 4]
    assert _columns(x[1:, "Brest"]) == [2, 4] and _columns(x[1:]["salt"]) == [4, 5]
    assert _columns(x.loc["salt"]) == [4, 5] and _columns(x.loc[:, ["Lorient"]]) == [1, 3, 5]
    assert _columns(x.T["Lorient", "iron"]) == [1] and _columns(x.sum(axis=1)["coal"]) == [2, 3]
    assert _columns((2 * x - 1)["iron"]) == [0, 1] and _columns(x[2]) == [4, 5]
    assert m.column_name(3) == "x[coal,Lorient]" and m["x[coal,Lorient]"].linear_rows().indices == [3]
    with pytest.raises(
        fo.DeclarationError, match=r"axis 0 \(good\) has no label 'gold'; it has 'iron', 'coal'"
    ):
        x["gold"]
    with pytest.raises(fo.DeclarationError, match="has no label 'gold', 'silver'"):
        x[["iron", "gold", "silver"]]
    assert _columns(x.loc["iron":"coal"]) == [0, 1, 2, 3]  # with both ends, as in pandas
    with pytest.raises(fo.DeclarationError, match="has no labels"):
        m.variable("y", 3).loc["a"]


def test_labels_that_are_numbers_or_tuples():
    m = fo.Model()
    year = m.variable("year", index=pd.Index([2030, 2020]))
    assert (
        _columns(year[0]) == [0]
        and _columns(year.loc[2020]) == [1]
        and _columns(year.loc[[2020, 2030]]) == [1, 0]
    )
    arc = m.variable("arc", index=[("a", "b"), ("b", "c")])
    assert _columns(arc["b", "c"]) == [3] and _columns(arc.loc["a", "b"]) == [2]
    assert _columns(arc.loc[[("b", "c")]]) == [3] and m.column_name(3) == "arc[b,c]"
    half = m.variable("half", index=(["p", "q"], 2))
    assert half.shape == (2, 2) and _columns(half["q", 1]) == [7]


def test_series_and_frames_meet_by_label(ship):
    m, x = ship
    cost = pd.DataFrame([[1.0, 2], [3, 4], [5, 6]], index=GOODS, columns=PORTS)
    mixed = cost.loc[["salt", "iron", "coal"], ["Lorient", "Brest"]]
    point = m.point({x: np.arange(6).reshape(3, 2)})
    expected = (cost.to_numpy() * np.arange(6).reshape(3, 2)).sum()
    for total in (
        (x * mixed).sum(),
        (mixed * x).sum(),
        (cost * x).sum(),
        (x * cost[["Lorient", "Brest"]]).sum(),
    ):
        assert total.evaluate(point) == expected
    by_port = pd.Series({"Lorient": 10.0, "Brest": 20.0})
    np.testing.assert_array_equal((x + by_port).constant, [[20, 10]] * 3)
    np.testing.assert_array_equal((x / by_port).evaluate(point)[0], [0, 0.1])
    np.testing.assert_array_equal((x @ by_port).evaluate(point), [10, 70, 130])
    route = pd.DataFrame({"fast": [1.0, 0], "slow": [0, 2]}, index=["Lorient", "Brest"])
    assert _columns((x @ route)["coal", "fast"]) == [3]
    need = m.subject_to(x.sum(axis=0) >= by_port, name="need")
    np.testing.assert_array_equal(need.row_bounds()[0], [20, 10])
    assert [m.row_name(i) for i in range(2)] == ["need[Brest]", "need[Lorient]"]
    cap = m.subject_to(x.between(-mixed, mixed), name="cap")
    np.testing.assert_array_equal(cap.row_bounds()[1], cost.to_numpy().ravel())
    m.fix(x, mixed / 2)
    assert m.columns().lower.tolist() == (cost.to_numpy() / 2).ravel().tolist()


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["iron", "coal"], "is missing 'salt'"),
        (["iron", "coal", "gold"], "is missing 'salt' and has labels that the variable lacks: 'gold'"),
        (["iron", "coal", "salt", "gold"], "has labels that the variable lacks: 'gold'"),
        (["iron", "coal", "salt", "salt"], "its labels repeat"),
        ([0, 1, 2], "is missing 'iron', 'coal', 'salt' and has labels that the variable lacks: 0, 1, 2"),
    ],
)
def test_a_mismatch_lists_the_labels(labels, message):
    m = fo.Model()
    x = m.variable("x", index=GOODS)
    series = pd.Series(np.arange(len(labels), dtype=float), index=labels)
    for act in (
        lambda: x + series,
        lambda: series * x,
        lambda: x <= series,
        lambda: x @ series,
        lambda: m.variable("y", index=GOODS, upper=series),
        lambda: m.solve(start={x: series}),
    ):
        with pytest.raises(fo.DeclarationError, match=message):
            act()


def test_a_series_never_goes_by_position_unseen():
    m = fo.Model()
    x = m.variable("x", 3)
    series = pd.Series([1.0, 2, 3], index=[5, 6, 7])
    for act in (
        lambda: x * series,
        lambda: x <= series,
        lambda: x @ series,
        lambda: x.reshape(3, 1) * series,
    ):
        with pytest.raises(fo.DeclarationError, match=r"index=, or pass \.to_numpy\(\)"):
            act()
    assert (x * series.to_numpy()).shape == (x * series.reset_index(drop=True)).shape == (3,)


def test_two_variables_meet_by_label():
    m = fo.Model()
    x, y = m.variable("x", index=GOODS), m.variable("y", index=GOODS[::-1])
    total = x + 10 * y
    assert sorted(_columns(total["iron"])) == [0, 5] and sorted(_columns(total[1])) == [1, 4]
    z = m.variable("z", index=["iron", "gold", "salt"])
    with pytest.raises(fo.DeclarationError, match="is missing 'coal'"):
        x - z
    assert (x + m.variable("w", 3))["salt"].shape == ()  # no labels: by position


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (["a", "b", "a"], "the label 'a' occurs twice"),
        ("ab", "must be a sequence of labels"),
        (5, "must be a sequence of labels"),
        ([["a"], ["b"]], "cannot be looked up"),
        (("a", "b"), "must be a sequence of labels"),
    ],
)
def test_bad_indices(index, message):
    with pytest.raises(fo.DeclarationError, match=message):
        fo.Model().variable("x", index=index)
    with pytest.raises(fo.DeclarationError, match="does not fit the index"):
        fo.Model().variable("x", 2, index=["a"])


def test_solutions_as_pandas(ship):
    m, x = ship
    y = m.variable(
        "y", index=pd.Index(GOODS, name="good"), lower=pd.Series([3.0, 1, 2], index=["salt", "iron", "coal"])
    )
    k = m.variable("k", 2, lower=1)
    c = m.variable("c", lower=4)
    m.minimize(x.sum() + y.sum() + k.sum() + c)
    s = m.solve()
    frame = s.to_pandas(x)
    assert list(frame.index) == GOODS and list(frame.columns) == PORTS and frame.index.name == "good"
    assert s.to_pandas("y").to_dict() == {"iron": 1, "coal": 2, "salt": 3}
    assert s.to_pandas(2 * y).loc["salt"] == 6 and s.to_pandas(c) == 4
    assert sorted(s.to_pandas()) == ["c", "k", "x", "y"] and s.to_pandas()["k"].tolist() == [1, 1]
    assert s["y[coal]"] == 2


def test_arrays_stay_as_they_were():
    m = fo.Model()
    x = m.variable("x", (3, 2))
    for e in (x + 1, x.T, x[1:], x.sum(axis=0), x @ np.ones(2), np.ones((4, 3)) @ x, x / 2):
        assert e.axes is None


def test_a_bound_with_labels_needs_labels_to_meet():
    m = fo.Model()
    with pytest.raises(fo.DeclarationError, match="has labels"):
        m.variable("x", 3, lower=pd.Series([1.0, 2, 3], index=list("abc")))
    x = m.variable("x", 3, lower=pd.Series([1.0, 2, 3]))
    m.minimize(x.sum())
    assert m.solve().objective == 6


@pytest.mark.parametrize(
    "given",
    [
        {"index": {"a"}},
        {"index": [float("nan"), 1.0]},
        {"index": "abc"},
        {"shape": 3, "labels": "abc"},
        {"shape": 2, "labels": ["a", "a"]},
        {"shape": True},
        {"shape": (2, False)},
    ],
    ids=str,
)
def test_odd_labels_and_shapes_are_refused(given):
    with pytest.raises(fo.DeclarationError):
        fo.Model().variable("x", **given)


@pytest.mark.parametrize(
    "make", [lambda x: x ** "a", lambda x: fo.huber(x, "a"), lambda x: fo.power(x, None)]
)
def test_parameters_of_atoms_are_numbers(make):
    with pytest.raises(fo.DeclarationError, match="number"):
        make(fo.Model().variable("x"))


def test_operands_with_different_labels_are_aligned_on_request():
    m = fo.Model()
    x = m.variable("x", index={"unit": ["a", "b"], "time": [1, 2]}, lower=1, upper=1)
    need = pd.DataFrame({2: [5.0, 7.0], 3: [1.0, 1.0]}, index=pd.Index(["b", "c"], name="unit"))
    need = need.rename_axis(columns="time")
    point = m.point({x: 1})
    for join, labels, total in (
        ("outer", [["a", "b", "c"], [1, 2, 3]], 4 + 14),
        ("inner", [["b"], [2]], 1 + 5),
        ("left", [["a", "b"], [1, 2]], 4 + 5),
    ):
        y, table = fo.align(x, need, join=join)
        assert [axis.labels for axis in y.axes] == labels
        assert [table.index.tolist(), table.columns.tolist()] == labels
        assert float((y + table).sum().evaluate(point)) == total
    same, untouched = fo.align(x, 2 * x, join="outer")
    assert same is x and untouched.axes == x.axes
    for call, message in (
        (lambda: fo.align(x, need, join="right"), "join is 'right'"),
        (lambda: fo.align(x, [1, 2], join="left"), "align takes expressions, series and frames"),
        (lambda: fo.where([1.5, 2], x), "is not of booleans"),
    ):
        with pytest.raises(fo.DeclarationError, match=message):
            call()


def test_a_table_of_arcs_is_an_index():
    ends = pd.DataFrame({"src": ["a", "a", "b"], "dst": ["b", "c", "c"], "km": [3, 4, 5]})
    m = fo.Model()
    goods = pd.Index(["red", "blue"], name="good")
    hours = [1, 2]
    flow = m.variable("flow", index={"arc": ends[["src", "dst"]], "good": goods, "hour": hours}, upper=2)
    assert flow.shape == (3, 2, 2) and flow.sum("arc").shape == (2, 2)
    assert repr(flow.sel(dst="c", good="red", hour=2)[1]).endswith("flow[b,c,red,2]>")
    assert flow.sel(src="a", dst="c").shape == (1, 2, 2)
    by_src = flow.groupby("src").sum()
    assert by_src.axes[0].name == "src" and by_src.rename(src="node").axes[0].name == "node"
    rows = m.subject_to(flow.sum("good") <= ends.set_index(["src", "dst"]).km, name="km")
    m.maximize(flow.sum())
    s = m.solve()
    table = s.to_pandas(rows)
    assert table.index.names == ["src", "dst", "hour"] and table.columns.tolist() == [
        "dual",
        "slack",
        "status",
    ]
    assert table.loc[("a", "b", 1), "status"] == "at upper" and table.loc[("b", "c", 2), "slack"] == 1
    assert table.loc[("a", "b", 1), "dual"] == pytest.approx(1)
    assert s.to_pandas(flow).loc[("b", "c", "red", 1)] == 2
    assert repr(m["km[b,c,2]"]).startswith("<constraint km[b,c,2] of shape (): flow[b,c,red,2]")
    assert s.dual(m["km[a,b,1]"]) == pytest.approx(1)
    with pytest.raises(fo.UnknownNameError, match=r"unknown name 'km\[b,a,2\]'"):
        m["km[b,a,2]"]
    with pytest.raises(fo.DeclarationError, match="no label has 'z' at the level 'src'"):
        flow.sel(src="z")
    with pytest.raises(fo.DeclarationError, match="occurs twice"):
        m.variable("twice", index=ends[["src"]])
