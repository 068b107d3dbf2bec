import copy
import re
from html.parser import HTMLParser
from typing import get_type_hints

import numpy as np
import pytest

import forcopt as fo
from forcopt.language.model import SolveKeywords
from forcopt.loops.solve import solve_model

INF = float("inf")


def test_variables_and_their_columns():
    m = fo.Model("m")
    x = m.variable("x", (2, 3), lower=[[0], [1]], upper=[4, 5, 6])
    y = m.variable("y", lower=-1, integer=True)
    b = m.variable("b", np.int64(2), binary=True, lower=[0, 1])
    z = m.variable(shape=[2])
    empty = m.variable("empty", (2, 0))
    assert [v.name for v in m.variables] == ["x", "y", "b", "x4", "empty"]
    assert [(v.start, v.size, v.integer) for v in (x, y, b, z, empty)] == [
        (0, 6, False),
        (6, 1, True),
        (7, 2, True),
        (9, 2, False),
        (11, 0, False),
    ]
    columns = m.columns()
    assert columns.lower.tolist() == [0, 0, 0, 1, 1, 1, -1, 0, 1, -INF, -INF]
    assert columns.upper.tolist() == [4, 5, 6, 4, 5, 6, INF, 1, 1, INF, INF]
    assert columns.integer.tolist() == [0] * 6 + [1] * 3 + [0, 0]
    assert not columns.curvature.any()
    assert [m.column_name(i) for i in (0, 5, 6, 8, 9, 10)] == [
        "x[0,0]",
        "x[1,2]",
        "y",
        "b[1]",
        "x4[0]",
        "x4[1]",
    ]
    after = m.variable("after")
    assert m.column_name(11) == "after" and m.columns().lower[11] == -INF and after.start == 11


def test_columns_given_out_never_change():
    m = fo.Model()
    m.variable("x", 3, lower=0)
    before = m.columns().lower
    for i in range(50):
        m.variable(f"y{i}", 7, lower=i)
    assert (
        before.tolist() == [0, 0, 0]
        and m.columns().lower[3:].tolist() == np.repeat(np.arange(50), 7).tolist()
    )
    twin = copy.copy(m)
    m.variable("late", 2, lower=-1)
    assert m.columns().lower[-2:].tolist() == twin.columns().lower[-2:].tolist() == [-1, -1]


def test_labels_name_columns():
    m = fo.Model()
    x = m.variable("x", 2, labels=["north", "south & west"])
    assert [m.column_name(i) for i in range(2)] == ["north", "south & west"]
    assert repr(x.sum()).endswith("north + south & west>")


def test_names_are_unique_and_free_ones_are_found():
    m = fo.Model("m")
    m.variable("x2")
    assert m.variable().name == "x2#2"
    assert m.variable().name == "x3"
    with pytest.raises(fo.DeclarationError, match="the name 'x3' is already in use in model 'm'"):
        m.variable("x3")
    assert len(m.variables) == 3 and m.column_count == 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda m: m.variable("x", 3, lower=[0, 1]),
            "variable x: lower has shape (2,), which does not broadcast to (3,)",
        ),
        (
            lambda m: m.variable("x", 3, upper=np.ones((2, 3))),
            "variable x: upper has shape (2, 3), which does not broadcast to (3,)",
        ),
        (
            lambda m: m.variable("x", upper=[1]),
            "variable x: upper has shape (1,), which does not broadcast to ()",
        ),
        (
            lambda m: m.variable("x", 3, lower=[0, np.nan, 0]),
            "variable x: lower[1] is nan; it must be a number",
        ),
        (
            lambda m: m.variable("x", (2, 2), upper=[[1, 2], [3, -INF]]),
            "variable x: upper[1, 1] is -inf; it must be a number or inf",
        ),
        (lambda m: m.variable("x", lower=INF), "variable x: lower is inf; it must be a number or -inf"),
        (lambda m: m.variable("x", 3, lower=[0, 2, 0], upper=1), "variable x[1]: lower 2 is above upper 1"),
        (lambda m: m.variable("x", lower=2, binary=True), "variable x: lower 2 is above upper 1"),
        (lambda m: m.variable("x", lower="low"), "variable x: lower must be numbers"),
        (lambda m: m.variable("x", lower=m.variable("y")), "variable x: lower must be numbers"),
        (lambda m: m.variable("x", upper=1j), "variable x: upper must be numbers, not complex128"),
        (lambda m: m.variable("x", (3, -1)), "variable x: shape (3, -1) has a negative length"),
        (lambda m: m.variable("x", 2.5), "variable x: shape 2.5 must be an integer or several"),
        (lambda m: m.variable("x", (2, "3")), "variable x: shape (2, '3') must be an integer or several"),
        (lambda m: m.variable((3, 4)), "variable: the name is (3, 4); it must be a string"),
        (lambda m: m.variable("x", 3, labels=["a", "b"]), "variable x: 2 labels for shape (3,)"),
        (lambda m: m.variable("x", 2**31), "x: a model holds at most 2147483647 columns"),
    ],
)
def test_bad_variables(make, message):
    m = fo.Model()
    with pytest.raises(fo.DeclarationError, match=re.escape(message)):
        make(m)
    assert "x" not in [v.name for v in m.variables]


def test_points_and_completion():
    m = fo.Model()
    x, b = m.variable("x", (2, 2)), m.variable("b", 2, binary=True)
    size = fo.norm(x, 1, axis=1)
    chosen = fo.product(b, size.model.variable("w", 2, lower=0, upper=5))
    double = fo.maximum(size, 3)
    w = m.variables[-1]
    point = m.point({x: [1, -3], b: [0, 1], w: 2})
    assert point[x.start : x.start + 4].tolist() == [1, -3, 1, -3]
    assert size.evaluate(point).tolist() == [4, 4]
    assert chosen.evaluate(point).tolist() == [0, 2]
    assert double.evaluate(point).tolist() == [4, 4]
    raw = np.zeros(m.column_count, dtype=int)
    assert m.complete(raw)[double.terms[0].columns[:, 0]].tolist() == [3, 3] and not raw.any()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (lambda x, e: {x: [1, 2]}, "the value of x has shape (2,), which does not broadcast to (3,)"),
        (lambda x, e: {x: [1, np.nan, 1]}, "the value of x[1] is nan; it must be finite"),
        (lambda x, e: {e: 1}, "a point: x[0] + 1 must be a variable or a part of one"),
        (
            lambda x, e: {fo.Model("other").variable("z"): 1},
            "a point: z belongs to model 'other', not to model 'm'",
        ),
    ],
)
def test_bad_points(values, message):
    m = fo.Model("m")
    x = m.variable("x", 3)
    with pytest.raises(fo.DeclarationError, match=re.escape(message)):
        m.point(values(x, x + 1))


def test_violations_name_what_is_violated():
    m = fo.Model()
    x = m.variable("x", 3, lower=0, upper=[1, 2, 3])
    k = m.variable("k", integer=True)
    m.subject_to(x.sum() <= 5, name="cap")
    m.subject_to(x[0] == k, name="same")
    assert m.violations(m.point({x: [1, 2, 2], k: 1})) == {}
    assert m.violations(m.point({x: [1, 2.5, 3], k: 0.75})) == {
        "bounds of x": 0.5,
        "integrality of k": 0.25,
        "cap": 0.3,
        "same": 0.25,
    }
    assert m.violations(np.full(4, np.nan)) == dict.fromkeys(
        ["bounds of x", "bounds of k", "integrality of k", "cap", "same"], INF
    )


def test_relations_that_nothing_uses_are_not_needed():
    m = fo.Model()
    x = m.variable("x", 2, lower=-1, upper=4)
    b = m.variable("b", binary=True)
    idle, used, inner = fo.log(x), fo.abs(x - 1), fo.exp(x)
    outer = fo.maximum(inner, 2)
    product = fo.product(b, x[0])
    assert m.needed_relations() == []
    m.minimize(outer.sum())
    m.subject_to(used[0] <= 2)
    assert [r.kind for r in m.needed_relations()] == ["abs", "exp", "maximum"]
    assert m.violations(m.point({x: [-1, 1]})) == {}
    m.subject_to(product >= 0)
    assert [r.kind for r in m.needed_relations()] == ["abs", "exp", "maximum", "product"]
    m.maximize(idle.sum())
    assert [r.kind for r in m.needed_relations()] == ["log", "abs", "product"]
    assert m.violations(m.point({x: [-1, 1]})) == {"domain of log#1": INF}


def test_lazy_families_keep_products():
    m = fo.Model()
    b, x = m.variable("b", binary=True), m.variable("x", upper=3, lower=0)
    fo.product(b, x)
    assert m.needed_relations() == []
    m.lazy(lambda value: [])
    assert [r.kind for r in m.needed_relations()] == ["product"]


def test_the_types_of_options_are_those_of_a_solve():
    """Editors complete `Model.solve` by a TypedDict, which must not differ from what takes the options."""
    takes = get_type_hints(solve_model)
    for hidden in ("model", "backend", "return"):
        del takes[hidden]
    assert get_type_hints(SolveKeywords) == takes


def test_unknown_backends_and_options():
    m = fo.Model()
    m.minimize(m.variable("x", lower=0))
    with pytest.raises(fo.UnknownNameError, match="unknown backend 'hihgs'; did you mean 'highs'\\? known: "):
        m.solve("hihgs")
    with pytest.raises(
        fo.UnknownNameError, match=r"unknown backend 'xyzzy'; known: .*pyomo:xyzzy for a solver"
    ):
        m.solve("xyzzy")


# -- reading -----------------------------------------------------------------------------------------------


@pytest.fixture
def shown():
    m = fo.Model("<shown>")
    x = m.variable("x_1", (2, 2), lower=0)
    b = m.variable("b", 2, binary=True)
    k = m.variable("k&<>", integer=True)
    m.subject_to(x.sum(axis=0) - x[0] + x[1] + 0 * b <= 4, name="<cap>")
    m.subject_to(0.25 * k + 1000 * b == 3, fo.implies(b[0], x[0] <= 1))
    m.lazy(lambda value: [])
    m.lexicographic([fo.minimize(fo.abs(x - 1).sum() + 3), fo.maximize(1e-7 * k)])
    return m


def test_summary(shown):
    assert shown.summary().splitlines() == [
        "model <shown>",
        "  columns    11 (3 integer, of these 2 binary)",
        "  rows       4",
        "  nonzeros   6",
        "  relations  1 implication, 1 abs, 1 lazy",
        "  range      0.25 to 1000",
        "  objective  lexicographic, 2 stages",
    ]
    assert repr(shown) == "<model <shown>: 11 columns, 4 rows, lexicographic>"
    assert repr(fo.Model()) == "<model model: 0 columns, 0 rows, no objective>"
    assert "relations  none" in fo.Model().summary()


class Balanced(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.text = [], ""

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def balanced_latex(text):
    plain = re.sub(r"\\[{}$&%#_\\]", "", text)
    depth = 0
    for c in plain:
        depth += {"{": 1, "}": -1}.get(c, 0)
        assert depth >= 0
    assert depth == 0 and plain.count("$") % 2 == 0
    assert not re.search(r"(?<!\\)[&%#]", text)


def test_html_and_latex_are_well_formed(shown):
    page = Balanced()
    page.feed(shown._repr_html_())
    assert not page.open
    assert "model <shown>" in page.text and "<cap>: $" in page.text
    balanced_latex(page.text)
    assert r"$$\min\quad \mathrm{abs\#1}_{0,0} + " in page.text
    assert r"$$\max\quad 1 \cdot 10^{-7}\,\mathrm{k\&<>}$$" in page.text
    assert r"2\,\mathrm{x\_1}_{1,0} \le 4,\ \dots$" in page.text
    many = fo.Model()
    x = many.variable("x", 20)
    many.subject_to([x[i] <= 1 for i in range(12)])
    page = Balanced()
    page.feed(many._repr_html_())
    assert "and 4 more" in page.text and "c9" not in page.text


@pytest.mark.parametrize(
    "label", ["a_b", "50%", "#1", "a{b}", "x^2", "~", "back\\slash", "$", "a[0][1]", "[", "é", ""]
)
def test_any_name_is_well_formed_in_latex(label):
    m = fo.Model()
    x = m.variable("x", 1, labels=[label])
    balanced_latex((2 * x + 1)._repr_latex_())
    balanced_latex((x >= -1)._repr_latex_())


def test_latex_of_long_and_special_expressions():
    m = fo.Model()
    x = m.variable("x", 9)
    assert x.sum()._repr_latex_() == r"$x_{0} + x_{1} + x_{2} + x_{3} + x_{4} + x_{5} + \dots$"
    assert (-x[0] + 2.5)._repr_latex_() == r"$-x_{0} + 2.5$"
    assert x._repr_latex_() == r"$x_{0},\ \dots$"
    assert m.lift(0.0)._repr_latex_() == "$0$"
    assert x[:0]._repr_latex_() == "$0$"
    assert (1.5e20 * x[0] - 1e-9)._repr_latex_() == r"$1.5 \cdot 10^{20}\,x_{0} - 1 \cdot 10^{-9}$"
