"""Building and compiling take no Python loop over elements: the number of calls is that of a small model."""

import sys
import tracemalloc

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import forcopt as fo
from forcopt.backends import get_backend
from forcopt.compile import Capabilities, compile_model

CONIC = Capabilities(frozenset({"rows", "integer", "second_order", "exponential", "power_cone", "indicator"}))


def calls(function, *arguments):
    """How many Python and C functions are called."""
    count = 0

    def note(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        function(*arguments)
    finally:
        sys.setprofile(None)
    return count


def dense(n):
    """The model of linopy's benchmark."""
    m = fo.Model()
    x, y = m.variable("x", (n, n), lower=0), m.variable("y", (n, n), lower=0)
    m.subject_to(x - y >= np.arange(n)[:, None])
    m.subject_to(x + y >= 0)
    m.minimize((2 * x + y).sum())
    return m


def transport(n):
    pairs = np.arange(5 * n)
    tail, head = pairs % n, (3 * pairs + pairs // n) % n
    ones = np.ones(5 * n)
    m = fo.Model()
    flow = m.variable("flow", 5 * n, lower=0)
    m.subject_to(sp.csr_array((ones, (tail, pairs)), shape=(n, 5 * n)) @ flow <= 9)
    m.subject_to(sp.csr_array((ones, (head, pairs)), shape=(n, 5 * n)) @ flow >= 1)
    m.minimize(np.arange(5 * n) @ flow)
    return m


def assignment(n):
    """Hess's districting model."""
    m = fo.Model()
    x = m.variable("x", (n, n), binary=True)
    i, j = np.nonzero(~np.eye(n, dtype=bool))
    centre = x[np.arange(n), np.arange(n)]
    m.subject_to(x.sum(axis=1) == 1, x[i, j] <= x[j, j], np.ones(n) @ x >= 0.5 * centre, centre.sum() == 3)
    m.minimize((np.ones((n, n)) * x).sum())
    return m


def slices(n):
    m = fo.Model()
    x = m.variable("x", (n, n), lower=0, integer=True)
    parts = [
        x[1:] - x[:-1],
        x.T.reshape(n, n) + x[::-1],
        x[[0, 0, 1]] - x[:3],
        fo.stack([x, 2 * x])[:, 0],
        1 - x / 2,
    ]
    m.subject_to(fo.concatenate([p.reshape(-1) for p in parts]) <= 1, x.mean(axis=0).between(0, 5))
    m.maximize(x[x.constant == 0].sum() + (x[None] * np.ones((2, n, n))).sum())
    return m


def atoms(n):
    m = fo.Model()
    x = m.variable("x", (n, 3), lower=0.1, upper=4)
    y = m.variable("y", n, binary=True)
    curves = [
        fo.abs(x),
        fo.maximum(x, 2 * x[::-1]),
        fo.norm(x, axis=1),
        fo.norm(x, 1, axis=1),
        fo.sum_largest(x, 2),
    ]
    curves += [fo.norm(x, np.inf, axis=0), fo.sum_squares(x, axis=1), x**3, x**-0.5, fo.exp(x), -fo.log(x)]
    curves += [fo.logistic(x), fo.kl_div(x, 1), fo.inverse(x), fo.quad_over_lin(x, x[0, 0]), -fo.entropy(x)]
    m.subject_to(*(c <= 100 for c in curves[:-1]), fo.implies(y, fo.norm(x, 1, axis=1) <= 2))
    m.minimize(sum(c.sum() for c in curves) + fo.product(y[:, None], x).sum())
    return m


MODELS = {"dense": dense, "transport": transport, "assignment": assignment, "slices": slices, "atoms": atoms}


@pytest.mark.parametrize("name", MODELS)
def test_no_loop_over_elements(name):
    build = MODELS[name]

    def compiled(n):
        compile_model(build(n), CONIC)

    def judged(n):
        m = build(n)
        point = m.complete(m.columns().lower.clip(-1, 1))
        m.violations(point), m.needed_relations(), m.summary(), repr(m.constraints[0])

    small, large = (20, 60) if name == "atoms" else (20, 300)
    for function in (compiled, judged):
        function(small)  # imports and caches
        few = calls(function, small)
        assert calls(function, large) <= few + 20


def test_no_loop_over_nodes_in_a_connected_set():
    def build(n):
        m = fo.Model()
        x = m.variable("x", n, binary=True)
        graph = graphs[n]
        m.subject_to(fo.connected(graph, x))
        compile_model(m, CONIC)

    graphs = {n: nx.path_graph(n) for n in (10, 100)}
    build(10)
    few, many = calls(build, 10), calls(build, 100)
    assert many - few < 90 * 20  # networkx hands out nodes and edges one by one


def test_many_small_atoms_take_a_number_of_calls_linear_in_their_number():
    def build(n):
        m = fo.Model()
        x = m.variable("x", n, lower=0, upper=1)
        m.minimize(sum(fo.abs(x[i] - 0.5) for i in range(n)))
        compile_model(m, CONIC)

    build(5)
    base, double, large = calls(build, 20), calls(build, 40), calls(build, 200)
    assert large - base <= 1.1 * 9 * (double - base)


def test_views_of_a_large_variable_take_no_memory():
    m = fo.Model()
    x = m.variable("x", (1000, 1000), lower=0)
    tracemalloc.start()
    parts = [
        x[None, :],
        x[:, :, None] - x[:, None],
        x.T,
        3 * x + 1,
        x.sum(axis=0),
        x[::2, ::-1],
        x.broadcast_to((50, 1000, 1000)),
    ]
    rows = [p <= 1 for p in parts]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000 and len(rows) == 7  # one copy of the columns alone is 4 MB


def test_a_program_is_filled_once():
    m = dense(300)
    get_backend("highs")
    compile_model(dense(2), CONIC)
    tracemalloc.start()
    program = compile_model(m, CONIC)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    rows = program.rows
    held = sum(
        a.nbytes
        for a in (rows.indptr, rows.indices, rows.data, rows.lower, rows.upper, program.lower, program.upper)
    )
    held += program.integer.nbytes + program.stages[0].cost.nbytes
    assert peak < 1.6 * held
