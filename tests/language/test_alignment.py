"""Alignment: no public function may depend on the order of labels or axes, and labels are never lost."""

import inspect
import itertools
import pickle
import re
import sys

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import forcopt as fo
from forcopt import language
from forcopt.language.expression import Expression

UNITS, TIMES = ["a", "b", "c"], ["t1", "t2"]
FIRST = {(u, t): 1.0 + 2 * i + 5 * j for i, u in enumerate(UNITS) for j, t in enumerate(TIMES)}
SECOND = {key: 9.0 - value / 2 for key, value in FIRST.items()}
BITS = {key: float(n % 2) for n, key in enumerate(FIRST)}
OTHER_BITS = {key: float(n % 3 == 0) for n, key in enumerate(FIRST)}


class Side:
    """One operand: the same numbers by label, in an order of labels and axes of its own."""

    def __init__(self, model, axes, orders):
        self.model, self.axes, self.orders = model, axes, orders

    def frame(self, numbers):
        table = pd.Series(numbers).unstack().loc[self.orders["unit"], self.orders["time"]]
        table = table.rename_axis(index="unit", columns="time")
        return table if self.axes[0] == "unit" else table.T

    def series(self, numbers):
        return self.frame(numbers).xs("t1", axis=1 if self.axes[0] == "unit" else 0).rename_axis("unit")

    def index(self):
        return {name: self.orders[name] for name in self.axes}

    def variable(self, numbers, **options):
        frame = self.frame(numbers)
        made = self.model.variable("", index=self.index(), **options)
        self.model.fix(made, frame)
        return made

    def column(self, numbers, **options):
        series = self.series(numbers)
        made = self.model.variable("", index={"unit": self.orders["unit"]}, **options)
        self.model.fix(made, series)
        return made

    def matrix(self, diagonal):
        """A symmetric matrix times a variable held at 1; rows in this order of labels, columns in another."""
        table = pd.DataFrame(np.diag(diagonal) + 1.0, UNITS, UNITS)
        table = table.loc[self.orders["unit"], UNITS].rename_axis(index="row", columns="column")
        one = self.model.variable("", lower=1, upper=1)
        return table * one

    def parameter(self, numbers, **options):
        return self.model.parameter("", index=self.index(), value=self.frame(numbers), **options)


def boxed(side, numbers=FIRST):
    return side.variable(numbers, lower=0.0, upper=50.0)


def bits(side, numbers):
    return side.variable(numbers, binary=True)


def weighed(value):
    """A number that tells where each entry is."""
    weights = pd.Series({key: 1.0 + n * n for n, key in enumerate(FIRST)}).unstack()
    weights = weights.rename_axis(index="unit", columns="time")
    if isinstance(value, Expression) and value.ndim == 1:
        weights = weights.loc["a"] if value.axes[0].name == "time" else weights["t1"]
    return (weights * value).sum() if isinstance(value, Expression) else value


VALUES = {
    "sum": lambda p, q: boxed(p) + boxed(q, SECOND),
    "difference": lambda p, q: boxed(p) - boxed(q, SECOND),
    "sum with a frame": lambda p, q: boxed(p) + q.frame(SECOND),
    "a frame minus": lambda p, q: q.frame(SECOND) - boxed(p),
    "product with a frame": lambda p, q: q.frame(SECOND) * boxed(p),
    "product with a series": lambda p, q: q.series(SECOND) * boxed(p),
    "quotient": lambda p, q: boxed(p) / q.frame(SECOND),
    "parameter": lambda p, q: q.parameter(SECOND, lower=0.0) * boxed(p),
    "parameter added": lambda p, q: q.parameter(SECOND) + boxed(p),
    "parameter times an atom": lambda p, q: q.parameter(SECOND, lower=0.0) * fo.abs(boxed(p)),
    "by one axis": lambda p, q: boxed(p) - q.column(SECOND),
    "times one axis": lambda p, q: q.column(BITS, binary=True) + boxed(p),
    "matrix and vector": lambda p, q: boxed(p).transpose("time", "unit") @ q.series(SECOND),
    "matrix and parameter": lambda p, q: (
        q.parameter(SECOND)[:, "t1"] @ boxed(p)
        if q.axes[0] == "unit"
        else q.parameter(SECOND)["t1"] @ boxed(p)
    ),
    "maximum": lambda p, q: fo.maximum(boxed(p), boxed(q, SECOND), 3.0),
    "maximum with a frame": lambda p, q: fo.maximum(q.frame(SECOND), boxed(p)),
    "minimum": lambda p, q: -fo.minimum(boxed(p), q.frame(SECOND)),
    "maximum along an axis": lambda p, q: fo.maximum(boxed(p) - q.frame(SECOND), axis="time"),
    "abs": lambda p, q: fo.abs(boxed(p) - boxed(q, SECOND)),
    "positive_part": lambda p, q: fo.positive_part(boxed(p) - boxed(q, SECOND)),
    "huber": lambda p, q: fo.huber(boxed(p) - q.frame(SECOND), 2.0),
    "power": lambda p, q: fo.power(boxed(p) - q.frame(SECOND), 2),
    "sum_squares": lambda p, q: fo.sum_squares(boxed(p) - q.frame(SECOND), axis="time"),
    "norm": lambda p, q: fo.norm(boxed(p) - boxed(q, SECOND), 1, axis="time"),
    "sum_largest": lambda p, q: fo.sum_largest(boxed(p) - boxed(q, SECOND), 1, axis="time"),
    "sum_smallest": lambda p, q: -fo.sum_smallest(boxed(p) - boxed(q, SECOND), 1, axis="time"),
    "exp": lambda p, q: fo.exp((boxed(p) - boxed(q, SECOND)) / 10),
    "log": lambda p, q: -fo.log(boxed(p) + boxed(q, SECOND)),
    "kl_div": lambda p, q: fo.kl_div(boxed(p), q.frame(SECOND)),
    "entropy": lambda p, q: -fo.entropy(boxed(p) + q.frame(SECOND)),
    "logistic": lambda p, q: fo.logistic((boxed(p) - q.frame(SECOND)) / 10),
    "inverse": lambda p, q: fo.inverse(boxed(p) + q.frame(SECOND)),
    "log_sum_exp": lambda p, q: fo.log_sum_exp((boxed(p) - q.frame(SECOND)) / 10, axis="time"),
    "geometric_mean": lambda p, q: (
        -fo.geometric_mean(p.column(FIRST, lower=0, upper=9), weights=q.series(SECOND))
    ),
    "quad_form": lambda p, q: fo.quad_form(
        p.column(FIRST),
        pd.DataFrame(np.diag([1.0, 10.0, 100.0]), UNITS, UNITS).loc[q.orders["unit"], q.orders["unit"]],
    ),
    "quad_over_lin": lambda p, q: fo.quad_over_lin(boxed(p) - q.frame(SECOND), 2.0),
    "piecewise_linear": lambda p, q: fo.piecewise_linear(boxed(p) - q.frame(SECOND), [-9, 0, 9], [9, 0, 20]),
    "product": lambda p, q: fo.product(bits(p, BITS), boxed(q)),
    "and": lambda p, q: bits(p, BITS) & bits(q, OTHER_BITS),
    "and a frame": lambda p, q: bits(p, BITS) & q.frame(OTHER_BITS),
    "or": lambda p, q: bits(p, BITS) | bits(q, OTHER_BITS),
    "or a frame": lambda p, q: bits(p, BITS) | q.frame(OTHER_BITS),
    "not": lambda p, q: ~bits(p, BITS) + bits(q, OTHER_BITS),
    "all_of": lambda p, q: fo.all_of(bits(p, BITS) | bits(q, OTHER_BITS), axis="time"),
    "any_of": lambda p, q: fo.any_of(bits(p, BITS) & bits(q, OTHER_BITS), axis="time"),
    "mean": lambda p, q: (boxed(p) - boxed(q, SECOND)).mean("time"),
    "stack": lambda p, q: fo.stack([boxed(p), boxed(q, SECOND)])[1],
    "concatenate": lambda p, q: fo.concatenate([boxed(p), boxed(q, SECOND)], "time").sum(
        p.axes.index("time")
    ),
    "sum of many": lambda p, q: fo.sum([boxed(p), q.frame(SECOND), boxed(q, SECOND)]),
    "where": lambda p, q: fo.where(q.frame(FIRST) > 4, boxed(p), boxed(q, SECOND) + 1),
    "align": lambda p, q: sum(
        fo.align(boxed(p), q.frame(SECOND).drop("b", axis=q.axes.index("unit")), join="left")
    ),
    "trace": lambda p, q: fo.trace(p.matrix([3, 4, 5]) + q.matrix([1, 1, 2])),
    "diag": lambda p, q: fo.diag(p.matrix([3, 4, 5]) + q.matrix([1, 1, 2])).rename(row="unit"),
    "lambda_max": lambda p, q: fo.lambda_max(p.matrix([3, 4, 5]) + q.matrix([1, 1, 2])),
    "lambda_min": lambda p, q: -fo.lambda_min(p.matrix([3, 4, 5]) + q.matrix([1, 1, 2])),
    "log_det": lambda p, q: -fo.log_det(p.matrix([3, 4, 5]) + q.matrix([1, 1, 2])),
    "nuclear_norm": lambda p, q: fo.nuclear_norm(boxed(p) - q.frame(SECOND)),
    "max": lambda p, q: (boxed(p) - boxed(q, SECOND)).max("time"),
    "min": lambda p, q: -(boxed(p) - boxed(q, SECOND)).min("time"),
    "sel": lambda p, q: boxed(p).sel(time="t1") - boxed(q, SECOND).sel(time="t2"),
    "groupby": lambda p, q: (
        boxed(p) - boxed(q).groupby((q.series(SECOND) > 4).rename("zone")).sum().sum("zone")
    ),
    "transpose": lambda p, q: boxed(p).transpose("unit", "time") + boxed(q).T,
    "broadcast": lambda p, q: p.column(FIRST) + boxed(q, SECOND) * 0.5,
}
"""Values of two operands, each in an order of its own."""

FIXED = {
    "cumsum": lambda p, q: fo.cumsum(boxed(p) - q.frame(SECOND), "time"),
    "shift": lambda p, q: (boxed(p) - q.frame(SECOND)).shift(time=1),
    "diff": lambda p, q: boxed(p) - (boxed(p) - q.frame(SECOND)).diff("time").sum("time"),
    "rolling": lambda p, q: (boxed(p) - q.frame(SECOND)).rolling(time=2).sum(),
    "block": lambda p, q: fo.block([[boxed(p), boxed(q, SECOND)]]).sum(1),
    "reshape": lambda p, q: (boxed(p) - q.frame(SECOND)).reshape(*boxed(p).shape, 1)[..., 0],
    "rename": lambda p, q: (
        boxed(p).rename(unit="u") - q.frame(SECOND).rename_axis(index={"unit": "u"}, columns={"unit": "u"})
    ).rename(u="unit"),
}
"""Values in which the order of the first operand counts; it is held, and that of the second changes."""

NUMBERS = {
    "geometric_mean",
    "lambda_max",
    "lambda_min",
    "log_det",
    "nuclear_norm",
    "quad_form",
    "quad_over_lin",
    "trace",
}
"""Those that are one number."""

ROWS = {
    "<=": lambda p, q, x: x <= boxed(q),
    "== a frame": lambda p, q, x: x == q.frame(FIRST),
    "a series >=": lambda p, q, x: q.series(SECOND) >= x,
    "between": lambda p, q, x: x.between(-1.0, q.frame(FIRST)),
    "abs": lambda p, q, x: fo.abs(x - 3.0) <= boxed(q),
    "implies": lambda p, q, x: fo.implies(bits(q, BITS), x <= 1.5),
    "iff": lambda p, q, x: fo.iff(bits(q, BITS), x <= 4) if x.integer else [x <= 4],
    "either": lambda p, q, x: fo.either(x <= 1, x + 10 * bits(q, BITS) <= 12, elementwise=True),
    "semicontinuous": lambda p, q, x: fo.semicontinuous(x, 0.5, q.frame(FIRST)),
    "exactly": lambda p, q, x: at_bits(q, x, fo.exactly, 2),
    "at_most": lambda p, q, x: at_bits(q, x, fo.at_most, 2),
    "at_least": lambda p, q, x: at_bits(q, x, fo.at_least, 4),
    "connected": lambda p, q, x: connected_units(q, x),
    "all_different": lambda p, q, x: (
        fo.all_different(x - q.frame(BITS).astype(int)) if x.integer else [x <= q.frame(FIRST)]
    ),
    "no_overlap": lambda p, q, x: fo.no_overlap(q.model.interval(x, q.frame(FIRST)), by=q.frame(BITS)),
    "cumulative": lambda p, q, x: (
        fo.cumulative(q.model.interval(x.sel(time="t1"), q.series(FIRST)), q.series(BITS) + 1, 2)
        if x.integer
        else [x <= q.frame(FIRST)]
    ),
    "semidefinite": lambda p, q, x: (
        [x <= q.frame(FIRST)]
        + ([] if x.integer else [fo.semidefinite(q.matrix([3, 4, 5]) - p.matrix([1, 1, 2]))])
    ),
    "max along an axis": lambda p, q, x: x.max("time") <= q.series(FIRST),
}
"""Rows and conditions on a free operand, whose weighed sum is maximised."""

FIXED_ROWS = {
    "sos1": lambda p, q, x: fo.sos1(x - 0 * q.frame(FIRST)),
    "sos2": lambda p, q, x: fo.sos2(x.transpose("time", "unit") - 0 * q.frame(FIRST)),
}

OBJECTIVES = {
    "minimize": lambda q, x: fo.minimize(fo.abs(x - q.frame(FIRST)).sum()),
    "maximize": lambda q, x: fo.maximize((q.frame(SECOND) * x).sum()),
    "lexicographic": lambda q, x: fo.lexicographic(
        [fo.maximize((q.frame(SECOND) * x).sum()), fo.minimize((q.frame(FIRST) * x).sum())]
    ),
    "leximin": lambda q, x: fo.leximin(x - q.frame(FIRST)),
    "leximax": lambda q, x: fo.leximax(q.frame(FIRST) - x),
}

WITHOUT = {"symmetric"}
"""Functions that take entries by position."""


def at_bits(side, x, count, k):
    on = side.model.variable("", index=side.index(), binary=True)
    return [count(k, on), x <= 20 * (1 - on if count is fo.at_least else on)]


def connected_units(side, x):
    on = side.model.variable("", index={"unit": side.orders["unit"]}, binary=True)
    return [fo.connected(path(), on), fo.at_most(2, on), x <= 20 * on]


def path():
    graph = nx.Graph()
    nx.add_path(graph, UNITS)
    return graph


def sides(model):
    orders = [{"unit": UNITS, "time": TIMES}, {"unit": ["c", "a", "b"], "time": ["t2", "t1"]}]
    for axes, order in itertools.product((("unit", "time"), ("time", "unit")), orders):
        yield Side(model, axes, order)


def optima(solve, first=range(4)):
    """The optima of all pairs of orders."""
    found = []
    for i, j in itertools.product(first, range(4)):
        m = fo.Model()
        p, q = list(sides(m))[i], list(sides(m))[j]
        found.append(solve(m, p, q))
    return found


@pytest.mark.parametrize("name", [*VALUES, *FIXED])
def test_no_value_depends_on_the_order_of_labels_or_axes(name):
    def solve(m, p, q):
        value = {**VALUES, **FIXED}[name](p, q)
        if name not in NUMBERS:
            assert all(axis is not None for axis in value.axes), "the result has lost its labels"
        return float(weighed(value).evaluate(m.point(fixed(m))))

    for first in [range(4)] if name in VALUES else [[i] for i in range(4)]:
        found = optima(solve, first)
        assert found == pytest.approx([found[0]] * len(found), rel=1e-12)


def fixed(model):
    """The values at which all variables are held."""
    columns = model.columns()
    return {v: columns.lower[v.start : v.start + v.size].reshape(v.shape) for v in model.variables}


@pytest.mark.parametrize("integer", [False, True])
@pytest.mark.parametrize("name", [*ROWS, *FIXED_ROWS])
def test_no_optimum_depends_on_the_order_of_labels_or_axes(name, integer):
    def solve(m, p, q):
        x = m.variable("x", index=p.index(), lower=0, upper=20, integer=integer)
        m.subject_to({**ROWS, **FIXED_ROWS}[name](p, q, x))
        m.maximize(weighed(x))
        return m.solve("cp-sat" if name == "cumulative" and integer else None).objective

    for first in [range(4)] if name in ROWS else [[0], [3]]:
        found = optima(solve, first)
        assert found[0] < 20 * 61 and found == pytest.approx([found[0]] * len(found))


@pytest.mark.parametrize("name", OBJECTIVES)
def test_no_objective_depends_on_the_order_of_labels_or_axes(name):
    def solve(m, p, q):
        x = m.variable("x", index=p.index(), lower=0, upper=20)
        m.subject_to(weighed(x) <= 60)
        m.optimize(OBJECTIVES[name](q, x))
        return m.solve().objective

    found = optima(solve)
    assert found == pytest.approx([found[0]] * len(found))


def test_every_public_function_and_method_has_a_case():
    text = inspect.getsource(sys.modules[__name__])
    functions = {name for name in language.__all__ if inspect.isfunction(getattr(fo, name))}
    assert not {name for name in functions - WITHOUT if not re.search(rf"fo\.{name}[(,]", text)}
    methods = {name for name, kind in vars(Expression).items() if inspect.isfunction(kind)}
    inner = {"aligned", "arranged", "axes_at", "broadcast_to", "evaluate", "extend", "labelled", "linear"}
    inner |= {"linear_rows", "plain", "ravel"}  # without a second operand, or beneath the others
    assert not {n for n in methods - inner if not n.startswith("_") and f".{n}(" not in text}


def test_starts_bounds_fixes_and_values_meet_by_name_and_label():
    for p, q in itertools.product(range(4), range(4)):
        m = fo.Model()
        one, two = list(sides(m))[p], list(sides(m))[q]
        x = m.variable("x", index=one.index(), lower=two.frame(BITS), upper=two.frame(FIRST))
        weight = m.parameter("weight", index=one.index(), value=two.frame(SECOND))
        m.maximize((weight * x).sum())
        want = sum(FIRST[key] * SECOND[key] for key in FIRST)
        assert m.solve().objective == pytest.approx(want)
        assert m.point({x: two.frame(FIRST)})[x.start : x.start + 6].sum() == sum(FIRST.values())
        row = m.subject_to(x <= 100)
        row.rhs = two.frame(BITS)
        assert m.solve().objective == pytest.approx(sum(BITS[key] * SECOND[key] for key in FIRST))


def test_names_outrank_positions():
    m = fo.Model()
    x = m.variable("x", index={"from": ["a", "b"], "to": ["a", "b"]})
    y = m.variable("y", index={"to": ["a", "b"], "from": ["a", "b"]})
    difference = x - y
    assert repr(difference["a", "b"]).endswith("x[a,b] - y[b,a]>")
    assert repr(difference["b", "a"]).endswith("x[b,a] - y[a,b]>")
    unit = pd.Series([1.0, 10.0], index=pd.Index(["a", "b"], name="from"))
    assert repr((unit * x)["b"].sum()).endswith("10 x[b,a] + 10 x[b,b]>")
    assert repr(unit.to_numpy() @ x)  # arrays go by position


def test_axes_of_different_names_are_crossed_unless_they_share_labels():
    m = fo.Model()
    u = m.variable("u", index={"unit": ["a", "b"]})
    t = m.variable("t", index={"time": ["x", "y", "z"]})
    assert (u + t).shape == (2, 3) and repr((u + t)["b", "z"]).endswith("u[b] + t[z]>")
    v = m.variable("v", index={"node": ["a", "b"]})
    with pytest.raises(fo.DeclarationError, match=r"an axis 'node'.*'unit'.*cross them by x\[:, None\]"):
        u + v
    assert (u[:, None] + v).shape == (2, 2)
    assert [axis.name for axis in (u[:, None] + v).axes] == ["unit", "node"]


def test_one_label_each_is_compared():
    m = fo.Model()
    x, y = m.variable("x", index=["a"]), m.variable("y", index=["b"])
    for act in (lambda: x <= y, lambda: x + y, lambda: fo.maximum(x, y), lambda: x @ y):
        with pytest.raises(
            fo.DeclarationError, match="is missing 'a' and has labels that the variable lacks: 'b'"
        ):
            act()


def test_levels_keep_their_names():
    m = fo.Model()
    arcs = pd.MultiIndex.from_tuples([("a", "b"), ("b", "c")], names=["from", "to"])
    x = m.variable("x", index=arcs, lower=pd.Series([1.0, 2.0], index=arcs[::-1]))
    m.minimize(x.sum())
    table = m.solve().to_pandas(2 * x)
    assert table.index.names == ["from", "to"] and table.to_dict() == {("a", "b"): 4.0, ("b", "c"): 2.0}


def test_picking_keeps_labels_as_numpy_places_axes():
    m = fo.Model()
    x = m.variable("x", index={"unit": UNITS, "time": TIMES})
    assert [axis and axis.name for axis in x[:, None].axes] == ["unit", None, "time"]
    assert [axis.name for axis in x[..., [0, 1]].axes] == ["unit", "time"]
    assert x[np.array([True, False, True])].axes[0].labels == ["a", "c"]
    assert x[[2, 0], 1].axes[0].labels == ["c", "a"] and x[[0, 1], [0, 1]].axes is None
    mask = pd.Series({"c": True, "a": False, "b": True})
    assert x[mask].axes[0].labels == ["b", "c"]
    assert x.loc["b":"c"].axes[0].labels == ["b", "c"] and x[1:].axes[0].labels == ["b", "c"]
    assert x.reshape(3, 1, 2).axes[2] is x.axes[1]
    assert fo.cumsum(x, "time").axes == x.axes and fo.diag(x.sum("time")).axes[0].labels == UNITS


def test_many_terms_add_up_in_chunks():
    m = fo.Model()
    x = [m.variable(f"x{i}") for i in range(1000)]
    y = m.variable("y", (3, 2))
    point = m.point({v: i + 1 for i, v in enumerate(x)} | {y: 1})
    total = 0
    for i, v in enumerate(x):
        total += v * (i % 7) - 1
    want = sum((i + 1) * (i % 7) - 1 for i in range(1000))
    terms = [v * (i % 7) - 1 for i, v in enumerate(x)]
    for found in (total, sum(terms), fo.sum(terms)):
        assert found.evaluate(point) == want and found.coefficient_count == 1000 and len(found.terms) < 40
    wide = sum(y * k for k in range(100)) + sum(x[k] + y for k in range(50))
    assert np.array_equal(wide.evaluate(point), np.full((3, 2), 4950 + 50 + sum(range(1, 51))))
    assert fo.sum([]) == 0 and fo.sum([1, 2]) == 3 and fo.sum(y).evaluate(point) == 6
    with pytest.raises(fo.DeclarationError, match="must belong to the same model"):
        fo.sum([x[0], fo.Model("other").variable("z")])


def test_sums_that_share_a_beginning_stay_apart():
    m = fo.Model()
    x = [m.variable(f"x{i}") for i in range(6)]
    point = m.point({v: 10.0**i for i, v in enumerate(x)})
    start = 2 * x[0] + x[1]
    left, right = start + x[2], start - 3 * x[3] + 7
    wide, doubled = left + right + x[4], start + start
    values = [float(e.evaluate(point)) for e in (start, left, right, wide, doubled)]
    assert values == [12, 112, 12 - 3000 + 7, 112 + 12 - 3000 + 7 + 10000, 24]
    row = start <= x[5]
    assert float((start + 1).evaluate(point)) == 13 and row.expression.coefficient_count == 3
    assert float(start.evaluate(point)) == 12 and repr(start - start).endswith("coefficients: 0>")
    again = pickle.loads(pickle.dumps([m, start, left]))
    assert [repr(e) for e in again[1:]] == [repr(start), repr(left)] and again[1].model is again[0]
    total = 0
    for k in range(3):
        total = total + x[k]
        m.subject_to(total <= k)
    m.maximize(total)
    assert m.solve().objective == 2
    h = m.to_highs().getLp()
    assert np.diff(h.a_matrix_.start_)[:3].sum() == 6


def test_operations_along_a_named_axis():
    m = fo.Model()
    x = m.variable("x", index={"unit": UNITS, "time": [1, 2, 3]})
    numbers = np.arange(9.0).reshape(3, 3) ** 2
    point = m.point({x: numbers})
    frame = pd.DataFrame(numbers, pd.Index(UNITS, name="unit"), pd.Index([1, 2, 3], name="time"))
    for found, want in (
        (x.shift(time=1), frame.shift(1, axis=1).fillna(0)),
        (x.shift(unit=-1), frame.shift(-1).fillna(0)),
        (x.shift(time=7), frame * 0),
        (x.diff("time"), frame.diff(axis=1).iloc[:, 1:]),
        (x.rolling(time=2).sum(), frame.T.rolling(2, min_periods=1).sum().T),
        (x.rolling(unit=9).sum(), frame.cumsum()),
        (x.sel(unit=["c", "a"], time=slice(2, 3)), frame.loc[["c", "a"], 2:3]),
        (x.groupby(pd.Series({"c": "k", "a": "k", "b": "l"})).sum(), frame.groupby(["k", "l", "k"]).sum()),
    ):
        assert np.array_equal(found.evaluate(point), want.to_numpy())
        assert [axis.labels for axis in found.axes] == [want.index.tolist(), want.columns.tolist()]
    ramp = m.subject_to(
        x.diff("time") <= pd.Series([1.0, 2, 3], index=pd.Index(UNITS, name="unit")), name="ramp"
    )
    assert m.row_name(ramp.start + 5) == "ramp[c,3]"


def test_labels_that_are_equal_meet_in_a_union():
    x = fo.Model().variable("x", index=[1, 0, 2])
    for index in ([True, False], [1.0, 0.0], pd.array([1, 0], dtype="Int64")):
        _, found = fo.align(x, pd.Series([5, 6], index=index), join="outer")
        assert found.to_dict() == {1: 5, 0: 6, 2: 0}


@pytest.mark.parametrize("labels", [["a", pd.NA], pd.array([1, None], dtype="Int64"), ["a", float("nan")]])
def test_a_missing_label_is_refused(labels):
    with pytest.raises(fo.DeclarationError, match="cannot be a label of its index"):
        fo.Model().variable("x", index=pd.Index(labels))


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda x: x.sum("good"), "there is no one axis 'good'; the names are 'unit', 'time'"),
        (lambda x: x.sel(unit="z"), "has no label 'z'"),
        (lambda x: x.shift(time=1.5), "shift: 1.5 is no integer"),
        (lambda x: x.rolling(time=0), "the width is 0"),
        (lambda x: x.rolling(), "rolling takes one axis"),
        (lambda x: x.groupby("zone"), "no axis has a level 'zone'"),
        (lambda x: x.groupby(pd.Series([1, 2])), "not those of one axis"),
        (lambda x: x.groupby([1, 2]), "groupby takes a series"),
        (lambda x: x.groupby(pd.Series({"a": 1.0, "b": np.nan, "c": np.nan})), "no group for the label 'b'"),
        (lambda x: x[pd.Series({"a": 1.0, "b": 0.0, "c": 0.0})], "a table of float64; it must hold truth"),
        (
            lambda x: x[pd.Series({"a": True, "b": None, "c": True}, dtype="boolean")],
            "must hold truth values or positions",
        ),
        (lambda x: fo.align(x, pd.Series([1, 2], index=["a", "a"]), join="outer"), "the labels .* repeat"),
        (lambda x: x[:, 1:] - x[:, :-1], "is missing"),
        (
            lambda x: x[1:] - x[:-1],
            r"is missing 'c' and has .*: 'a'; x.shift and x.diff take the entry before",
        ),
    ],
)
def test_wrong_names_and_labels_are_refused(act, message):
    x = fo.Model().variable("x", index={"unit": UNITS, "time": TIMES})
    with pytest.raises(fo.DeclarationError, match=message):
        act(x)
