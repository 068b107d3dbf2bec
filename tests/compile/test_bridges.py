"""Every bridge that leads to rows, against brute force, on HiGHS."""

import itertools
import re

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import forcopt as fo
from forcopt.backends import SolveOptions, get_backend
from forcopt.compile import compile_model
from forcopt.compile.program import Cone

INF = float("inf")
GRID = np.array(list(itertools.product(range(-2, 4), repeat=2)), dtype=float)


def largest(v, k):
    return np.sort(v, axis=-1)[..., -k:].sum(axis=-1)


# name: a convex atom of a vector expression, its value by numpy (along the last axis), and its bridge
ATOMS = {
    "abs": (lambda e: fo.abs(e).sum(), lambda v: np.abs(v).sum(-1), "absolute"),
    "maximum": (lambda e: fo.maximum(e, axis=0), lambda v: v.max(-1), "maximum_rows"),
    "maximum with numbers": (
        lambda e: fo.maximum(e, [1, -1, 0, 2], 0.5).sum(),
        lambda v: np.maximum(np.maximum(v, [1, -1, 0, 2]), 0.5).sum(-1),
        "maximum_rows",
    ),
    "minus minimum": (lambda e: -fo.minimum(e, axis=0), lambda v: -v.min(-1), "maximum_rows"),
    "positive_part": (
        lambda e: fo.positive_part(e).sum(),
        lambda v: np.maximum(v, 0).sum(-1),
        "maximum_rows",
    ),
    "sum_largest 1": (lambda e: fo.sum_largest(e, 1), lambda v: largest(v, 1), "sum_largest_rows"),
    "sum_largest 3": (lambda e: fo.sum_largest(e, 3), lambda v: largest(v, 3), "sum_largest_rows"),
    "sum_largest 4": (lambda e: fo.sum_largest(e, 4), lambda v: largest(v, 4), "sum_largest_rows"),
    "minus sum_smallest": (lambda e: -fo.sum_smallest(e, 2), lambda v: largest(-v, 2), "sum_largest_rows"),
    "norm 1": (lambda e: fo.norm(e, 1), lambda v: np.abs(v).sum(-1), "norm_1_rows"),
    "norm inf": (lambda e: fo.norm(e, INF), lambda v: np.abs(v).max(-1), "norm_inf_rows"),
    "nested": (
        lambda e: fo.maximum(fo.abs(e), 2 * fo.norm(e, INF) - 3).sum(),
        lambda v: np.maximum(np.abs(v), 2 * np.abs(v).max(-1, keepdims=True) - 3).sum(-1),
        "norm_inf_rows",
    ),
}


@pytest.mark.parametrize("integer", [False, True])
@pytest.mark.parametrize("name", ATOMS)
def test_polyhedral_atoms(name, integer):
    atom, value, rewriting = ATOMS[name]
    rng = np.random.default_rng(len(name))
    matrix, offset = rng.integers(-3, 4, size=(4, 2)) + 0.5 * (not integer), rng.integers(-4, 5, size=4)
    m = fo.Model()
    x = m.variable("x", 2, lower=-2, upper=3, integer=integer)
    f = atom(matrix @ x + offset)
    values = value(GRID @ matrix.T + offset)
    for at in (3, 20):  # held at a point, the atom's result is its value
        held = m.subject_to(x == GRID[at])
        m.minimize(f)
        s = m.solve()
        assert rewriting in s.bridges
        np.testing.assert_allclose([s.objective, float(s[f])], values[at], atol=1e-7)
        m.constraints.remove(held)
        m.row_count -= 2
    if integer:  # over all points, in the objective and in a constraint
        cost = rng.integers(-3, 4, size=2)
        m.minimize(f + cost @ x)
        np.testing.assert_allclose(m.solve().objective, (values + GRID @ cost).min(), atol=1e-7)
        limit = float(np.median(values))
        m.subject_to(f <= limit)
        m.maximize(cost @ x)
        np.testing.assert_allclose(m.solve().objective, (GRID @ cost)[values <= limit].max(), atol=1e-7)


def test_atoms_of_many_elements_and_axes():
    m = fo.Model()
    rng = np.random.default_rng(3)
    data = rng.integers(-5, 6, size=(2, 3, 4)).astype(float)
    x = m.variable("x", (2, 3, 4))
    m.subject_to(x == data)
    parts = [
        fo.abs(x),
        fo.norm(x, 1, axis=1),
        fo.norm(x, INF, axis=0),
        fo.maximum(x, axis=2),
        fo.sum_largest(x, 2, axis=1),
    ]
    m.minimize(sum(p.sum() for p in parts))
    s = m.solve()
    wanted = [
        np.abs(data),
        np.abs(data).sum(axis=1),
        np.abs(data).max(axis=0),
        data.max(axis=2),
        np.sort(data, axis=1)[:, -2:].sum(axis=1),
    ]
    np.testing.assert_allclose(s.objective, sum(w.sum() for w in wanted))
    for part, value in zip(parts, wanted, strict=True):
        np.testing.assert_allclose(s[part], value)


@pytest.mark.parametrize(("low", "high"), [(0, 4), (-3, 2), (-5, -1), (1, 6), (2, 2)])
@pytest.mark.parametrize("binary", [lambda b: b, lambda b: 1 - b])
def test_products_are_exact_in_both_directions(low, high, binary):
    for bit, value in itertools.product((0, 1), {low, high, (low + high) / 2}):
        m = fo.Model()
        b, x = m.variable("b", binary=True), m.variable("x", lower=low, upper=high)
        z = fo.product(binary(b), 2 * x - 1)
        m.subject_to(b == bit, x == value)
        wanted = float(binary(bit)) * (2 * value - 1)
        for objective in (fo.minimize(z), fo.maximize(z)):
            m.optimize(objective)
            s = m.solve()
            assert s.bridges == ("product_rows",)
            np.testing.assert_allclose(s.objective, wanted, atol=1e-7)


def test_products_broadcast_and_nest():
    m = fo.Model()
    b = m.variable("b", (3, 1), binary=True)
    x = m.variable("x", 2, lower=-1, upper=2)
    both = fo.product(b[:2], fo.product(b[1:], x))
    assert both.shape == (2, 2)
    m.maximize((both * [[1, -3], [-1, 1]]).sum() - 0.5 * b.sum())
    best = max(
        -0.5 * sum(bits)
        + sum(bits[i] * bits[i + 1] * w for i, w in enumerate(v @ np.array([[1, -1], [-3, 1]])))
        for bits in itertools.product((0, 1), repeat=3)
        for v in np.array(list(itertools.product((-1, 2), repeat=2)))
    )
    np.testing.assert_allclose(m.solve().objective, best, atol=1e-7)


CONDITIONS = {
    "b": (lambda b: b[0], lambda p, q: p),
    "not b": (lambda b: 1 - b[0], lambda p, q: 1 - p),
    "scaled": (lambda b: 2 * b[0] - b[0], lambda p, q: p),
    "sum": (lambda b: b[0] + b[2], lambda p, q: p),
    "difference": (lambda b: b[3] - b[1], lambda p, q: 1 - q),
    "and": (lambda b: fo.product(b[0], b[1]), lambda p, q: p * q),
    "or": (lambda b: fo.maximum(b[0], b[1]), lambda p, q: max(p, q)),
}
LIMITS = {
    "<=": (lambda e: e <= 3, -INF, 3),
    ">=": (lambda e: e >= -1, -1, INF),
    "==": (lambda e: e == 2, 2, 2),
    "between": (lambda e: e.between(-2, 1), -2, 1),
    "holds anyway": (lambda e: e.between(-50, 50), -INF, INF),
    "free": (lambda e: e.between(-INF, INF), -INF, INF),
}


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_implications_bind_exactly_where_the_condition_is_one(condition, limit):
    made, truth = CONDITIONS[condition]
    row, low, high = LIMITS[limit]
    m = fo.Model()
    x = m.variable("x", 2, lower=[-4, -1], upper=[6, 1])
    b = m.variable("b", 4, binary=True, lower=[0, 0, 0, 1], upper=[1, 1, 0, 1])  # the last two are 0 and 1
    m.subject_to(fo.implies(made(b), row(x[0] + x[1])))
    program = compile_model(m, get_backend("highs").capabilities)
    session = get_backend("highs").session(program)
    for p, q in itertools.product((0, 1), repeat=2):
        lower, upper = program.lower.copy(), program.upper.copy()
        lower[[2, 3]] = upper[[2, 3]] = p, q
        session.set_bounds(lower, upper)
        on = truth(p, q)
        for sign, end in ((1.0, min(7, high) if on else 7), (-1.0, max(-5, low) if on else -5)):
            cost = np.zeros(program.columns)
            cost[:2] = -sign
            session.set_stage(type(program.stages[0])(cost, 0.0, False))
            result = session.solve(SolveOptions())
            np.testing.assert_allclose(result.x[:2].sum(), end, atol=1e-6)


def test_implications_row_by_row():
    m = fo.Model()
    x, b = m.variable("x", 3, lower=-1, upper=9), m.variable("b", 3, binary=True)
    m.subject_to(fo.implies(b, x.between([-INF, 2, 4], [3, INF, 4])))
    m.maximize(x @ [1, -1, 1] + 2 * b.sum())
    s = m.solve()
    assert s[x].tolist() == [9, -1, 9] and s[b].tolist() == [0, 0, 0]
    m.maximize(x @ [1, -1, 1] + 7 * b.sum())
    s = m.solve()
    assert s[x].tolist() == [3, 2, 4] and s[b].tolist() == [1, 1, 1]


def test_implications_over_atoms_need_no_further_bounds():
    m = fo.Model()
    x, b = m.variable("x", 2, lower=-10, upper=10), m.variable("b", 2, binary=True)
    m.subject_to(fo.implies(b[0], fo.abs(x[0] - x[1]) <= 3), fo.implies(b[1], fo.norm(x, 1) <= 4))
    m.maximize(x @ [2, -1] + 20 * b[0] + 5 * b[1])
    s = m.solve()
    assert s.objective == 10 * 2 - 7 + 20 and s[b].tolist() == [1, 0]


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        (lambda x, y, z: x <= 3, "big_m needs bounds on x: variable x has no upper bound; give it one"),
        (lambda x, y, z: x + z >= 3, "big_m needs bounds on -x - z: variable z has no lower bound"),
        (
            lambda x, y, z: y - x + z[None] <= 3,
            "big_m needs bounds on -x + y[0] + z: variable y[0] has no upper bound",
        ),
        (lambda x, y, z: z - y.sum() <= 3, "variable y[1] has no lower bound"),
        (lambda x, y, z: fo.stack([z, x]) <= 3, "big_m needs bounds on x: variable x has no upper bound"),
        (lambda x, y, z: fo.exp(x) <= 3, "big_m needs bounds on exp#1: variable x has no upper bound"),
        (
            lambda x, y, z: fo.abs(fo.stack([z, x])) <= 3,
            "big_m needs bounds on abs#1[0]: variable z has no lower",
        ),
        (
            lambda x, y, z: fo.maximum(fo.norm(y, 1), z) <= 3,
            "maximum#1: variable y[0] has no upper bound",
        ),
        (
            lambda x, y, z: fo.inverse(x) <= 3,
            "big_m needs bounds on inverse#1: variable inverse#1 has no upper",
        ),
    ],
)
def test_an_unbounded_implication_names_the_variable_and_the_side(constraint, message):
    m = fo.Model()
    x, y = m.variable("x", lower=0), m.variable("y", 2, lower=[0, -INF])
    z, b = m.variable("z", upper=9), m.variable("b", binary=True)
    m.subject_to(fo.implies(b, constraint(x, y, z)))
    capabilities = type(get_backend("highs").capabilities)(
        frozenset({"rows", "integer", "exponential", "second_order"})
    )
    with pytest.raises(fo.UnboundedExpressionError, match=re.escape(message)):
        compile_model(m, capabilities)


def test_an_unbounded_product_names_the_variable():
    m = fo.Model()
    x, b = m.variable("x", 2, lower=0, upper=[1, INF]), m.variable("b", binary=True)
    m.minimize(fo.product(b, 3 - x).sum())
    message = "product_rows needs bounds on x[1] - 3: variable x[1] has no upper bound; give it one, or use"
    with pytest.raises(fo.UnboundedExpressionError, match=re.escape(message)):
        m.solve()


GRAPHS = {
    "path": nx.path_graph(5),
    "cycle": nx.cycle_graph(5),
    "star": nx.star_graph(4),
    "two pieces": nx.Graph([(0, 1), (2, 3), (3, 4)]),
    "no edges": nx.empty_graph(3),
    "one node": nx.empty_graph(1),
    "several edges and a loop": nx.MultiGraph([("a", "b"), ("b", "a"), ("b", "b"), ("b", "c"), ("d", "c")]),
    "random": nx.gnp_random_graph(5, 0.5, seed=7),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_connected_allows_exactly_the_connected_subsets(name):
    graph = GRAPHS[name]
    nodes = list(graph.nodes)
    m = fo.Model()
    x = m.variable("x", len(nodes), binary=True)
    together = m.subject_to(fo.connected(graph, x))
    program = compile_model(m, get_backend("highs").capabilities)
    assert program.bridges == ("connected_flow",)
    session = get_backend("highs").session(program)
    for bits in itertools.product((0.0, 1.0), repeat=len(nodes)):
        lower, upper = program.lower.copy(), program.upper.copy()
        lower[: len(nodes)] = upper[: len(nodes)] = bits
        session.set_bounds(lower, upper)
        chosen = graph.subgraph(n for n, bit in zip(nodes, bits, strict=True) if bit)
        allowed = len(chosen) == 0 or nx.is_connected(nx.Graph(chosen))
        status = session.solve(SolveOptions()).status
        assert status is (fo.Status.OPTIMAL if allowed else fo.Status.INFEASIBLE)
        assert (together.pieces(np.array(bits)) == 1) == allowed


def test_connected_finds_the_smallest_tree():
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(3, 4))
    m = fo.Model()
    x = m.variable("x", 12, binary=True)
    m.subject_to(fo.connected(graph, x), x[[0, 3, 8]] == 1)
    m.minimize(x.sum())
    assert m.solve().objective == 6


def test_the_members_of_connected_may_be_any_binary_expression():
    m = fo.Model()
    x = m.variable("x", (2, 5), binary=True)
    m.subject_to(fo.connected(nx.path_graph(5), 1 - x[0]), fo.connected(nx.path_graph(5), x[1]))
    m.subject_to(x[0, [0, 4]] == 0, x[1] >= x[0], x[1, 0] == 1)
    m.maximize(x[0].sum() - 0.1 * x[1].sum())
    s = m.solve()
    assert s[x].tolist() == [[0, 0, 0, 0, 0], [1, 0, 0, 0, 0]]


@pytest.mark.parametrize("backend", ["clarabel", "scip"])
def test_exponential_cones_at_their_edge(backend):
    """At x = 0, the edge of the cone, a small violation is not an infinite one."""
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=3)
    m.subject_to(x == [0, 2])
    m.maximize(fo.entropy(x).sum() - fo.kl_div(x, x + 1).sum())
    expected = -2 * np.log(2) - (1 + 2 * np.log(2 / 3) + 1)
    s = m.solve(backend)
    assert (s.status, s.objective) == (fo.Status.OPTIMAL, pytest.approx(expected, abs=1e-5))


def test_violations_of_exponential_cones():
    """(a, b, c) violates b exp(a / b) <= c by the least step of a or c that mends it."""
    entries = np.array([[1, 1, 2.0], [4e-7, 1e-9, 1], [1e-3, 0, 1], [-1, 0, -0.5], [0, -0.25, 1], [0, 1, 2]])
    cone = Cone("exponential", 3, sp.csr_array(np.eye(18)), np.zeros(18))
    expected = [(1 - np.log(2)) / 2, 4e-7 + 1e-9 * np.log(1e-9), 1e-3, 0.5, 0.25, 0]
    assert cone.excess(entries.ravel()) == pytest.approx(expected, rel=1e-6)
