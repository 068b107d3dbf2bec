import re

import networkx as nx
import numpy as np
import pytest

import forcopt as fo
from forcopt.language.constraint import Condition


@pytest.fixture
def model():
    m = fo.Model("m")
    return m, m.variable("x", 3, lower=-9, upper=9), m.variable("b", 2, binary=True)


def test_two_models_of_one_name_are_told_apart():
    stale = fo.Model("m").variable("x")
    with pytest.raises(fo.DeclarationError, match="model 'm', not to this model of the same name"):
        fo.Model("m").subject_to(stale >= 0)


@pytest.mark.parametrize(
    ("make", "sense", "lower", "upper"),
    [
        (lambda x: x <= [1, 2, 3], "<=", [-np.inf] * 3, [1, 2, 3]),
        (lambda x: x + 1 >= [1, 2, 3], ">=", [0, 1, 2], [np.inf] * 3),
        (lambda x: 2 * x + 1 == 4, "==", [3] * 3, [3] * 3),
        (lambda x: 5 >= x - 1, "<=", [-np.inf] * 3, [6] * 3),  # noqa: SIM300
        (lambda x: np.array([1, 2, 3]) <= x, ">=", [1, 2, 3], [np.inf] * 3),
        (lambda x: np.float64(2) == x, "==", [2] * 3, [2] * 3),
        (lambda x: (x + 1).between(0, [4, 5, 6]), "between", [-1] * 3, [3, 4, 5]),
        (lambda x: x.between(1, 1), "==", [1] * 3, [1] * 3),
        (lambda x: x.between(-np.inf, 3), "<=", [-np.inf] * 3, [3] * 3),
        (lambda x: x.between(-np.inf, np.inf), "free", [-np.inf] * 3, [np.inf] * 3),
        (lambda x: x.between([0, -np.inf, 1], [1, 2, np.inf]), "between", [0, -np.inf, 1], [1, 2, np.inf]),
    ],
)
def test_senses_and_bounds_of_rows(model, make, sense, lower, upper):
    constraint = make(model[1])
    assert constraint.shape == (3,) and constraint.sense == sense
    low, high = constraint.row_bounds()
    np.testing.assert_array_equal(low, lower)
    np.testing.assert_array_equal(high, upper)


def test_comparisons_broadcast(model):
    _, x, _ = model
    constraint = x <= np.arange(6).reshape(2, 3)
    assert constraint.shape == (2, 3)
    np.testing.assert_array_equal(constraint.row_bounds()[1], np.arange(6))
    assert (x[:, None] <= x[None, :]).shape == (3, 3)
    assert x[0].between(np.zeros((2, 2)), 1).shape == (2, 2)


def test_violations_are_measured(model):
    m, x, _ = model
    point = m.point({x: [3, -4, 0]})
    assert (x <= [1, 2, 3]).violation(point).tolist() == [2, 0, 0]
    assert (x == 0).violation(point).tolist() == [3, 4, 0]
    assert x.between(-1, 1).violation(point).tolist() == [2, 3, 0]
    assert (x <= -10).relative_violation(point).tolist() == [1.3, 0.6, 1.0]
    assert x.between(-100, -2).relative_violation(point).tolist() == [2.5, 0, 1.0]


def test_constraints_join_a_model_once(model):
    m, x, b = model
    first = m.subject_to(x <= 1, name="first")
    assert (first.name, first.start, m.row_count) == ("first", 0, 3)
    second = m.subject_to(x[0] >= 0)
    assert (second.name, second.start, m.row_count) == ("c2", 3, 4)
    when = m.subject_to(fo.implies(b[0], x <= 0))
    assert when.name == "c3" and m.row_count == 4
    for again in (first, when):
        with pytest.raises(
            fo.DeclarationError, match=f"the constraint '{again.name}' already is in the model"
        ):
            m.subject_to(again)
    with pytest.raises(fo.DeclarationError, match="the name 'first' is already in use in model 'm'"):
        m.subject_to(x >= -1, name="first")
    with pytest.raises(fo.DeclarationError, match="the name 'x' is already in use"):
        m.subject_to(x >= -1, name="x")
    assert [c.name for c in m.constraints] == ["first", "c2"]


def test_names_that_a_user_took_are_not_given_again(model):
    m, x, _ = model
    m.subject_to(x[0] <= 1, name="c2")
    assert m.subject_to(x[1] <= 1).name == "c2#2"
    fo.abs(x)
    assert m.subject_to(x[2] <= 1).name == "c3"


def test_several_at_once(model):
    m, x, b = model
    alone = m.subject_to(x <= 1)
    assert isinstance(alone, fo.Constraint)
    pair = m.subject_to(x[0] >= 0, x[1] >= 0, name="pair")
    assert [c.name for c in pair] == ["pair[0]", "pair[1]"]
    one = m.subject_to([x[2] >= 0], name="one")
    assert [c.name for c in one] == ["one[0]"]
    made = m.subject_to((x[i] <= i for i in range(2)), fo.implies(b[0], x[0] <= 0), name="mix")
    assert [c.name for c in made] == ["mix[0]", "mix[1]", "mix[2]"]
    assert m.subject_to([]) == [] and m.subject_to(x[i] <= 1 for i in range(0)) == []
    assert m.row_name(0) == "c1[0]" and m.row_name(2) == "c1[2]"
    assert m.row_name(3) == "pair[0]" and m.row_name(7) == "mix[1]"


def test_a_comparison_of_numbers_adds_nothing_or_makes_the_model_infeasible(model):
    m, x, _ = model
    arcs = {"a": [0], "b": [], "c": [1, 2]}
    rows = m.subject_to((sum(x[i] for i in arcs[k]) <= np.float64(5) for k in arcs), name="out")
    assert [r.shape for r in rows] == [(), (0,), ()] and m.row_count == 2
    m.subject_to(fo.sum([]) == 0, x >= 0)
    m.minimize(x.sum())
    s = m.solve()
    assert s.objective == 0 and s.slack(rows[1]).shape == (0,)
    bad = m.subject_to((sum(x[i] for i in arcs[k]) >= 2 for k in arcs), name="need")
    s = m.solve()
    assert s.status is fo.Status.INFEASIBLE
    assert s.reason == "the constraint need[1] compares two numbers, and is false"
    m.remove(bad[1])
    assert m.solve().objective == 4


def test_row_labels(model):
    m, x, _ = model
    rows = m.subject_to(x <= 1)
    rows.labels = ["north", "south", "west"]
    assert m.row_name(1) == "south"


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        (lambda x: np.ones(2) <= 1, "subject_to needs constraints, not array([ True,  True])"),
        (lambda x: x, "subject_to needs constraints, not <variable x of shape (3,)>"),
        (lambda x: "x <= 1", "subject_to needs constraints, not 'x <= 1'"),
        (lambda x: [x <= 1, 3], "subject_to needs constraints, not 3"),
        (lambda x: fo.minimize(x[0]), "subject_to needs constraints, not Objective"),
        (lambda x: fo.Model("other").variable("z") <= 1, "belongs to model 'other', not to model 'm'"),
    ],
)
def test_what_is_no_constraint(model, condition, message):
    m, x, _ = model
    with pytest.raises(fo.DeclarationError, match=re.escape(message)):
        m.subject_to(condition(x))


def test_truth_and_text(model):
    m, x, _b = model
    c = m.subject_to(2 * x - 1 <= 3, name="cap")
    with pytest.raises(TypeError, match="the truth of a constraint is known only after solving"):
        bool(c)
    assert repr(c) == "<constraint cap of shape (3,): 2 x[0] <= 4, ...>"
    assert repr(x[0] == x[1]) == "<constraint of shape (): x[0] - x[1] == 0>"
    assert repr(x[:1].between(0, 1)) == "<constraint of shape (1,): 0 <= x[0] <= 1>"
    assert repr(x[0].between(-np.inf, np.inf)) == "<constraint of shape (): x[0] free>"
    assert repr(x[:0] >= 1) == "<constraint of shape (0,): 0>"
    assert c._repr_latex_() == r"$2\,x_{0} \le 4,\ \dots$"
    assert (x[0] >= 1)._repr_latex_() == r"$x_{0} \ge 1$"
    assert x[0].between(0, 1)._repr_latex_() == r"$0 \le x_{0} \le 1$"


# -- conditions --------------------------------------------------------------------------------------------


def test_implications(model):
    m, x, b = model
    each = fo.implies(b[:, None], np.ones((2, 1)) * x <= 3)
    assert each.condition.shape == (2, 3) and each.kind == "implication" and each.model is m
    m.subject_to(each, name="each")
    assert m.violations(m.point({x: [4, 0, 0], b: [0, 0]})) == {}
    assert m.violations(m.point({x: [6, 0, 0], b: [0, 1]})) == {"each": 1.0}
    assert fo.implies(1 - b[0], x == 0).condition.shape == (3,)
    assert fo.implies(b.sum() * 0.5 + 0.5 * (b[0] - b[1]), x == 0).constraint.sense == "=="


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda x, b: fo.implies(x[0], x <= 1),
            "the condition of implies must be binary: x[0] ranges over [-9, 9] and is not integer",
        ),
        (
            lambda x, b: fo.implies(b + b[::-1], x[0] <= 1),
            "the condition of implies[0] must be binary: b[0] + b[1] ranges over [0, 2]",
        ),
        (lambda x, b: fo.implies(0.5 * b[0], x <= 1), "0.5 b[0] ranges over [0, 0.5] and is not integer"),
        (
            lambda x, b: fo.implies(True, x <= 1),
            "the condition of implies must be an expression of a binary variable, not True",
        ),
        (
            lambda x, b: fo.implies(b[0] == 1, x <= 1),
            "must be an expression of a binary variable, not <constraint",
        ),
        (lambda x, b: fo.implies(b[0], x), "implies(b, constraint) needs a constraint, not <variable x"),
        (
            lambda x, b: fo.implies(b, x <= 1),
            "implies: the condition's shape (2,) does not broadcast to (3,)",
        ),
        (
            lambda x, b: fo.implies(b, x[0] <= 1),
            "implies: the condition's shape (2,) does not broadcast to ()",
        ),
        (
            lambda x, b: fo.implies(fo.Model("o").variable("c", binary=True), x <= 1),
            "model 'm' is used in one of model 'o'",
        ),
    ],
)
def test_bad_implications(model, make, message):
    _, x, b = model
    with pytest.raises(fo.DeclarationError, match=re.escape(message)):
        make(x, b)


def test_connected_counts_pieces():
    m = fo.Model()
    x = m.variable("x", 6, binary=True)
    graph = nx.MultiGraph(nx.cycle_graph(6))
    graph.add_edge(0, 1)
    graph.add_edge(2, 2)
    together = m.subject_to(fo.connected(graph, x), name="together")
    assert together.kind == "connected" and together.model is m
    for chosen, pieces in [([], 1), ([3], 1), ([0, 5, 4], 1), ([0, 2], 2), ([0, 2, 4], 3), (range(6), 1)]:
        point = m.point({x: np.isin(range(6), list(chosen))})
        assert together.pieces(point) == pieces
        assert m.violations(point) == ({} if pieces == 1 else {"together": pieces - 1})


@pytest.mark.parametrize(
    ("graph", "member", "message"),
    [
        ([(0, 1)], lambda x, b: b, "connected: graph is a list; it must be a networkx graph"),
        (nx.path_graph(4), lambda x, b: b, "connected: member has shape (2,), the graph 4 nodes"),
        (
            nx.path_graph(3),
            lambda x, b: x,
            "the member expression of connected[0] must be binary: x[0] ranges over [-9, 9]",
        ),
        (
            nx.path_graph(2, create_using=nx.DiGraph),
            lambda x, b: b,
            "connected: the graph is directed; it must be undirected",
        ),
        (nx.path_graph(2), lambda x, b: [0, 1], "must be an expression of a binary variable, not [0, 1]"),
    ],
)
def test_bad_graphs(model, graph, member, message):
    _, x, b = model
    with pytest.raises(fo.DeclarationError, match=re.escape(message)):
        fo.connected(graph, member(x, b))


class Alternating(Condition):
    """No two neighbours in a row of values are both positive."""

    kind = "alternating"

    def __init__(self, row):
        self.row = row

    @property
    def operands(self):
        return (self.row,)

    def violation(self, point):
        value = self.row.evaluate(point)
        return np.minimum(value[1:], value[:-1])


def test_conditions_of_ones_own(model):
    m, x, _ = model
    own = m.subject_to(Alternating(x), name="alternating")
    assert m.relations == [own] and own.model is m
    assert m.violations(m.point({x: [1, 2, -1]})) == {"alternating": 1}
    assert m.violations(m.point({x: [1, -2, 1]})) == {}
    with pytest.raises(fo.CurvatureError, match="constraint c2: the expression must be affine, but abs#1"):
        m.subject_to(Alternating(fo.abs(x)))
    with pytest.raises(fo.DeclarationError, match="belongs to model 'other', not to model 'm'"):
        m.subject_to(Alternating(fo.Model("other").variable("z", 3)))
    with pytest.raises(TypeError, match="abstract"):
        Condition()


def test_lazy_families(model):
    m, x, _ = model

    def separate(value):
        if value(x).sum() > 3:
            yield x.sum() <= 3

    family = m.lazy(separate, name="caps")
    assert m.lazy(separate).name == "lazy2" and family.model is m
    m.lazies.pop()
    assert m.violations(m.point({x: [1, 2, 6]})) == {"caps": 2.0}
    assert m.violations(m.point({x: 1})) == {}
    with pytest.raises(fo.DeclarationError, match="the name 'caps' is already in use"):
        m.lazy(separate, name="caps")
    with pytest.raises(fo.DeclarationError, match="lazy needs a function of a point, not <constraint"):
        m.lazy(x <= 1)
