import re
from dataclasses import dataclass

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import forcopt as fo
from forcopt.backends import registry
from forcopt.backends.base import Backend
from forcopt.compile import Capabilities, bridge, bridge_context, compile_model
from forcopt.language.constraint import Condition
from forcopt.language.expression import Expression

EVERYTHING = ("rows", "integer", "quadratic", "second_order", "exponential", "power_cone", "indicator")


def taking(*kinds, **more):
    return Capabilities(frozenset({"rows", *kinds}), **more)


@pytest.fixture
def own_bridges(monkeypatch):
    """Bridges registered in a test are gone after it."""
    monkeypatch.setattr(bridge_context, "_BRIDGES", dict(bridge_context._BRIDGES))


@pytest.fixture
def own_backends(monkeypatch):
    """Only the backends that a test registers are known in it."""
    registry.backends()
    monkeypatch.setattr(registry, "_BACKENDS", {"highs": registry._BACKENDS["highs"]})


# -- the program -------------------------------------------------------------------------------------------


def test_a_program_holds_the_model():
    m = fo.Model("small")
    x, k = m.variable("x", 2, lower=[0, -1], upper=5), m.variable("k", integer=True, upper=9)
    m.subject_to(x + k + 1 <= [3, 4], name="low")
    m.subject_to((x[0] - k).between(-2, 2), name="mid")
    m.maximize(2 * x.sum() - k + 7)
    p = compile_model(m, taking("integer"))
    assert (p.name, p.columns, p.is_integer, p.bridges) == ("small", 3, True, ())
    assert (
        p.lower.tolist() == [0, -1, -np.inf]
        and p.upper.tolist() == [5, 5, 9]
        and p.integer.tolist() == [0, 0, 1]
    )
    np.testing.assert_array_equal(p.matrix().toarray(), [[1, 0, 1], [0, 1, 1], [1, 0, -1]])
    assert p.rows.lower.tolist() == [-np.inf, -np.inf, -2] and p.rows.upper.tolist() == [2, 3, 2]
    (stage,) = p.stages
    assert (stage.cost.tolist(), stage.offset, stage.maximize, stage.sign) == ([-2, -2, 1], -7, True, -1)
    assert stage.value(np.array([1.0, 2, 3])) == -(2 * 3 - 3 + 7)
    assert [p.column_name(i) for i in range(3)] == ["x[0]", "x[1]", "k"]
    assert [p.row_name(i) for i in range(3)] == ["low[0]", "low[1]", "mid"]


def test_a_model_without_objective_rows_or_columns():
    p = compile_model(fo.Model(), taking())
    assert (p.columns, p.rows.count, len(p.stages)) == (0, 0, 1)
    m = fo.Model()
    m.variable("x", 2)
    assert compile_model(m, taking()).stages[0].cost.tolist() == [0, 0]


def test_stages_and_tolerance():
    m = fo.Model()
    x = m.variable("x", 2)
    m.lexicographic([fo.minimize(x[0]), fo.maximize(x[1] - 2)], tolerance=1e-3)
    p = compile_model(m, taking())
    assert [(s.cost.tolist(), s.offset, s.maximize) for s in p.stages] == [
        ([1, 0], 0, False),
        ([0, -1], 2, True),
    ]
    assert p.tolerance == 1e-3


def test_bridges_add_named_rows_and_columns_after_those_of_the_model():
    m = fo.Model()
    x = m.variable("x", 2)
    m.minimize(fo.norm(x - 1, 1))
    m.subject_to(x.sum() == 5, name="sum")
    p = compile_model(m, taking())
    assert p.bridges == ("norm_1_rows",)
    assert [p.column_name(i) for i in range(p.columns)] == [
        "x[0]",
        "x[1]",
        "norm_1#1",
        "size@3[0,0]",
        "size@3[0,1]",
    ]
    assert [p.row_name(i) for i in range(p.rows.count)] == ["sum", *(f"bridge[{i}]" for i in range(5))]


def test_compiling_does_not_change_the_model():
    m = fo.Model()
    x, b = m.variable("x", 3, lower=0, upper=4), m.variable("b", 3, binary=True)
    m.subject_to(fo.implies(b, x <= 1), fo.product(b, x).sum() >= 1, fo.norm(x, 1) <= 9)
    m.minimize(fo.sum_squares(x))
    before = (m.column_count, m.row_count, len(m.relations), len(m.constraints))
    lower = m.columns().lower.copy()
    first = compile_model(m, taking("integer", "quadratic"))
    second = compile_model(m, taking("integer", "quadratic"))
    assert before == (m.column_count, m.row_count, len(m.relations), len(m.constraints))
    np.testing.assert_array_equal(lower, m.columns().lower)
    np.testing.assert_array_equal(first.matrix().toarray(), second.matrix().toarray())


def test_helper_columns_are_bounded_in_a_search_only():
    m = fo.Model()
    x = m.variable("x", 2, lower=[-3, 0], upper=[1, 4])
    m.minimize(fo.norm(x, 1) + fo.sum_largest(x, 1) + fo.maximum(x[0], 2))
    m.subject_to(fo.abs(x - 1) <= 9)
    loose = compile_model(m, taking())
    assert loose.upper[2:].tolist() == [np.inf] * (loose.columns - 2)
    m.variable("k", binary=True)
    tight = compile_model(m, taking("integer"))
    bounds = {tight.column_name(i): (tight.lower[i], tight.upper[i]) for i in range(2, tight.columns)}
    assert bounds == {
        "norm_1#1": (0, 7),
        "sum_largest#1": (0, 4),
        "maximum#1": (2, 2),
        "abs#1[0]": (0, 4),
        "abs#1[1]": (0, 3),
        "k": (0, 1),
        "size@8[0,0]": (0, 3),
        "size@8[0,1]": (0, 4),
        "threshold@10[0]": (-3, 4),
        "excess@11[0,0]": (0, 4),
        "excess@11[0,1]": (0, 7),
    }


def test_reduced_costs_stay_with_the_variables():
    m = fo.Model()
    x = m.variable("x", 2, lower=[7, -9], upper=[9, 9])
    m.minimize(fo.maximum(x[0], 5) + 2 * fo.abs(x[1] - 20))
    s = m.solve()
    assert s.objective == 7 + 22 and s.reduced_cost(x).tolist() == [1, -2]


def test_what_nothing_uses_is_left_out():
    m = fo.Model()
    x = m.variable("x", lower=-1, upper=1)
    m.minimize(fo.exp(x))
    with pytest.raises(fo.UnsupportedError):
        m.solve("highs")
    m.minimize(x)
    s = m.solve("highs")
    assert s.objective == -1 and s.bridges == ()
    p = compile_model(m, taking())
    assert (p.lower[1], p.upper[1], p.integer[1]) == (0, 0, 2)


# -- plans -------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Odd(Condition):
    """A third-party condition: the expression is an odd integer."""

    expression: Expression
    kind = "odd"

    @property
    def operands(self):
        return (self.expression,)

    def violation(self, point):
        return abs(self.expression.evaluate(point) % 2 - 1)


def test_a_condition_and_a_bridge_of_ones_own(own_bridges):
    @bridge("odd", gives=("rows",))
    def odd_rows(relation, draft):
        """Write it as twice an integer plus one."""
        low, high = draft.finite_interval(relation.expression, "odd_rows")
        half = draft.column("half", relation.expression.shape, (low - 1) // 2, high, integer=True)
        draft.row(relation.expression == 2 * half + 1)

    m = fo.Model()
    x = m.variable("x", 3, lower=[-4, 0.5, 2], upper=[4, 2.5, 9])
    m.subject_to(Odd(x), name="odd")
    m.maximize(x @ [-1, 1, 1])
    s = m.solve()
    assert s[x].tolist() == [-3, 1, 9] and s.bridges == ("odd_rows",)
    free = m.variable("free", lower=0)
    m.subject_to(Odd(free))
    with pytest.raises(
        fo.UnboundedExpressionError, match="odd_rows needs bounds on free: variable free has no upper bound"
    ):
        m.solve()


def test_a_kind_without_a_bridge():
    m = fo.Model()
    m.subject_to(Odd(m.variable("x")))
    with pytest.raises(
        fo.UnsupportedError,
        match="backend 'highs' cannot take odd in model 'model'; able: no registered backend",
    ):
        m.solve()
    with pytest.raises(
        fo.UnsupportedError, match="a backend claims to take 'odd', which a program cannot hold"
    ):
        compile_model(m, taking("odd"))


def test_the_cheapest_chain_is_taken(own_bridges):
    used = []

    def stepping(name, takes, gives, cost=1.0):
        def rewrite(relation, draft):
            used.append(name)
            for kind in gives:
                if kind != "rows":
                    step = Odd(relation.expression)
                    step.kind = kind
                    draft.relation(step)

        rewrite.__name__ = name
        bridge(takes, gives=gives, cost=cost)(rewrite)

    stepping("dear", "odd", ("rows",), cost=4.0)
    stepping("first", "odd", ("even",))
    stepping("second", "even", ("prime", "rows"))
    stepping("round", "prime", ("odd",))
    stepping("third", "prime", ("rows",))
    m = fo.Model()
    m.subject_to(Odd(m.variable("x")))
    assert compile_model(m, taking()).bridges == ("first", "second", "third")
    assert used == ["first", "second", "third"]
    stepping("cheap", "odd", ("rows",), cost=2.5)
    assert compile_model(m, taking()).bridges == ("cheap",)
    assert bridge_context.bridges()[-1].cost == 2.5


def test_every_shipped_kind_has_a_chain_to_what_backends_take():
    m = fo.Model()
    x, b = m.variable("x", 3, lower=0.1, upper=2), m.variable("b", binary=True)
    y = m.variable("y", 3, binary=True)
    convex = [
        fo.abs(x),
        fo.maximum(x, 1),
        fo.norm(x, 1),
        fo.norm(x),
        fo.norm(x, np.inf),
        fo.sum_largest(x, 2),
    ]
    convex += [fo.sum_squares(x), fo.quad_over_lin(x, x[0]), fo.inverse(x), fo.exp(x), fo.logistic(x)]
    convex += [fo.kl_div(x, 1), x**1.5, x**4, x**-2, -(x**0.5), -fo.log(x), -fo.entropy(x)]
    m.minimize(sum(e.sum() for e in convex) + fo.product(b, x).sum())
    m.subject_to(fo.implies(b, x <= 1), fo.connected(nx.path_graph(3), y))
    m.subject_to(convex[6] <= 100)
    p = compile_model(m, taking("integer", "second_order", "exponential", "power_cone"))
    assert {c.kind for c in p.cones} == {"second_order", "exponential", "power_cone"} and not p.indicators
    names = {b.name for b in bridge_context.bridges()}
    assert set(p.bridges) <= names and len(p.bridges) == 22
    assert set(compile_model(m, taking(*EVERYTHING)).bridges) == set(p.bridges) - {"big_m"}


def test_indicators_are_handed_over_where_they_are_taken():
    m = fo.Model()
    x, b = m.variable("x", 2), m.variable("b", 2, binary=True)
    m.subject_to(fo.implies(1 - b, x + 3 <= [1, 2]))
    p = compile_model(m, taking("integer", "indicator"))
    (rows,) = p.indicators
    assert p.bridges == ("implication_indicator",)
    assert (rows.columns.tolist(), rows.active) == ([2, 3], 0)
    np.testing.assert_array_equal(rows.rows.matrix(4).toarray(), np.eye(2, 4))
    assert rows.rows.upper.tolist() == [-2, -1] and np.isneginf(rows.rows.lower).all()


def test_an_implied_integer_as_a_condition_gets_a_column_of_its_own():
    m = fo.Model()
    b = m.variable("b", 2, binary=True)
    m.subject_to(fo.implies(fo.product(b[0], b[1]), b.sum() <= 1))
    p = compile_model(m, taking("integer", "indicator"))
    (rows,) = p.indicators
    assert p.integer[rows.columns].tolist() == [1] and p.column_name(int(rows.columns[0])) == "condition@3[0]"


# -- quadratic objectives ------------------------------------------------------------------------------------


@pytest.fixture
def least_squares():
    m = fo.Model()
    x = m.variable("x", 3, lower=-9, upper=9)
    return m, x, fo.sum_squares(np.array([[1.0, 2, 0], [0, 1, -1]]) @ x - [1, 2])


def quadratic_value(program, x):
    point = np.zeros(program.columns)
    point[: len(x)] = x
    return program.stages[0].sign * program.stages[0].value(point)


def test_squares_in_the_objective_alone_become_its_quadratic_part(least_squares):
    m, x, squares = least_squares
    each = (x - 1) ** 2
    form = fo.quad_form(x, -np.diag([1.0, 2, 3]))
    m.maximize(-2 * squares + form - each @ [1, 0, 5] + x.sum() + 4)
    p = compile_model(m, taking("quadratic"))
    assert p.bridges == ("quadratic_objective",) and not p.cones
    assert sp.issparse(p.stages[0].quadratic) and (p.stages[0].quadratic != p.stages[0].quadratic.T).nnz == 0
    assert p.lower[3:].tolist() == p.upper[3:].tolist() == [0] * (p.columns - 3)
    for v in np.random.default_rng(1).normal(size=(4, 3)):
        wanted = float(m.objective.stages[0].expression.evaluate(m.point({x: v})))
        np.testing.assert_allclose(quadratic_value(p, v), wanted)


@pytest.mark.parametrize(
    "elsewhere",
    [
        lambda m, x, s: m.subject_to(s <= 100),
        lambda m, x, s: m.subject_to(fo.implies(m.variable("b", binary=True), s <= 100)),
        lambda m, x, s: m.minimize(s + fo.maximum(s, x[0])),
        lambda m, x, s: m.minimize(s + fo.exp(s)),
        lambda m, x, s: m.lexicographic([fo.minimize(s), fo.minimize(x[0] + s)]),
    ],
)
def test_squares_that_something_else_reads_become_cones(least_squares, elsewhere):
    m, x, squares = least_squares
    alone = fo.sum_squares(x)
    m.minimize(squares + alone)
    everything = taking(*EVERYTHING)
    assert compile_model(m, everything).bridges == ("quadratic_objective",)
    elsewhere(m, x, squares)
    assert "sum_squares_cone" in compile_model(m, everything).bridges


def test_squares_of_the_last_stage_only(least_squares):
    m, x, squares = least_squares
    m.lexicographic([fo.minimize(x[0]), fo.minimize(squares)])
    p = compile_model(m, taking("quadratic"))
    assert p.stages[0].quadratic is None and p.stages[1].quadratic is not None
    m.lexicographic([fo.minimize(squares), fo.minimize(x[0])])
    with pytest.raises(fo.UnsupportedError, match="cannot take sum_squares"):
        compile_model(m, taking("quadratic"))


def test_squares_become_cones_where_a_quadratic_objective_conflicts(least_squares):
    m, x, squares = least_squares
    m.minimize(squares)
    m.subject_to(fo.norm(x) <= 3)
    conflicts = (frozenset({"quadratic", "second_order"}),)
    p = compile_model(m, taking("quadratic", "second_order", conflicts=conflicts))
    assert set(p.bridges) == {"sum_squares_cone", "norm_2_cone"} and p.stages[0].quadratic is None


def test_squares_with_integers_on_highs(least_squares):
    m, _x, squares = least_squares
    m.minimize(squares + m.variable("k", integer=True, lower=0))
    s = m.solve("highs")
    assert "second_order_tangents" in s.bridges and "quadratic_objective" not in s.bridges
    assert s.objective == pytest.approx(m.solve("scip").objective, abs=1e-5)
    with pytest.raises(
        fo.UnsupportedError, match="'highs' cannot take integer with quadratic in model 'model'"
    ):
        compile_model(m, registry.get_backend("highs").capabilities, "highs")


# -- refusals ----------------------------------------------------------------------------------------------


class Pretended(Backend):
    through = install = "nothing"

    def __init__(self, name, capabilities):
        self.name, self.capabilities = name, capabilities

    def missing(self):
        return None

    def version(self):
        return "0"

    def session(self, program):
        raise AssertionError("it should not come to this")


def test_refusals_name_the_backends_that_are_able(own_backends):
    registry.register_backend(Pretended("cones", taking("second_order", "exponential")))
    registry.register_backend(Pretended("powers", taking("power_cone", "second_order")))
    registry.register_backend(Pretended("mixed", taking("second_order", "integer")))
    registry.register_backend(Pretended("whole", taking("integer", only_integer=True)))
    m = fo.Model("curved")
    x = m.variable("x", 2, lower=0, upper=1)
    m.subject_to(fo.norm(x) <= 1)
    assert m.solve("highs").status == "optimal"  # by tangents
    with pytest.raises(fo.UnsupportedError) as error:
        m.solve("whole")
    assert (
        str(error.value) == "backend 'whole' cannot take norm_2 in model 'curved'; able: cones, powers, mixed"
    )
    m.subject_to(m.variable("k", integer=True) <= x[0])
    with pytest.raises(
        fo.UnsupportedError, match=re.escape("cannot take integer variables in model 'curved'; able: mixed")
    ):
        m.solve("cones")
    m.maximize(fo.log(x).sum() + (x[0] ** 0.3))
    with pytest.raises(
        fo.UnsupportedError, match=r"cannot take concave_power, log in .* able: no registered backend"
    ):
        m.solve("highs")


def test_an_unbounded_indicator_is_taken_by_those_that_take_indicators(own_backends):
    registry.register_backend(Pretended("logical", taking("integer", "indicator")))
    registry.register_backend(Pretended("plain", taking("integer")))
    registry.register_backend(Pretended("whole", taking("integer", "indicator", only_integer=True)))
    m = fo.Model()
    x, b = m.variable("x", lower=0), m.variable("b", binary=True)
    m.subject_to(fo.implies(b, x <= 1))
    with pytest.raises(fo.UnboundedExpressionError, match="variable x has no upper bound"):
        m.solve("plain")
    m.minimize(fo.exp(x))
    registry.register_backend(Pretended("logical cones", taking("integer", "indicator", "exponential")))
    registry.register_backend(Pretended("mixed cones", taking("integer", "exponential")))
    with pytest.raises(fo.UnsupportedError, match=r"cannot take exp in model 'model'; able: logical cones$"):
        m.solve("logical")


def test_pure_integer_backends(own_backends):
    whole = taking("integer", only_integer=True)
    registry.register_backend(Pretended("whole", whole))
    m = fo.Model("sizes")
    k = m.variable("k", 3, integer=True, lower=-4, upper=4)
    m.minimize(fo.abs(k).sum() + fo.sum_largest(k, 2) + fo.norm(k, 1))
    p = compile_model(m, whole, "whole")
    assert np.isfinite(p.lower).all() and np.isfinite(p.upper).all() and p.integer.all()
    m.subject_to(fo.maximum(k, 0.5).sum() <= 9)
    p = compile_model(m, whole, "whole")  # only rows read the maxima
    assert p.integer.tolist().count(0) == 3
    m.minimize(k.sum() + fo.maximum(k, 0.5).sum())
    message = "backend 'whole' cannot take the continuous variable maximum#2[0] in model 'sizes'; able: highs"
    with pytest.raises(fo.UnsupportedError, match=re.escape(message)):
        m.solve("whole")


def test_idle_columns_do_not_bother_pure_integer_backends():
    m = fo.Model()
    k = m.variable("k", integer=True, lower=0, upper=4)
    fo.exp(k)
    m.minimize(k)
    assert compile_model(m, taking("integer", only_integer=True)).integer.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("capabilities", "text"),
    [
        (taking(), "LP"),
        (taking("integer"), "LP, MILP"),
        (taking("integer", "quadratic"), "LP, MILP, QP, MIQP"),
        (taking("integer", "quadratic", conflicts=(frozenset({"integer", "quadratic"}),)), "LP, MILP, QP"),
        (taking("quadratic", "second_order", "exponential", "power_cone"), "LP, QP, SOCP, EXP, POW"),
        (taking("integer", "second_order", "lazy"), "LP, MILP, SOCP, MISOCP, lazy"),
        (taking("integer", only_integer=True), "pure integer"),
    ],
)
def test_capabilities_in_words(capabilities, text):
    assert capabilities.describe() == text


def test_a_parameter_without_a_bound_is_named():
    m = fo.Model()
    x, on = m.variable("x", lower=0, upper=5), m.variable("on", binary=True)
    price = m.parameter("price", value=2.0)
    m.subject_to(fo.implies(on, price * x <= 3))
    m.maximize(x + on)
    with pytest.raises(fo.UnboundedExpressionError, match="parameter price has no upper bound"):
        m.solve("highs")
