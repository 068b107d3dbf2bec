"""Planar duals, flow sums and window cycles against brute force over all vertex sets."""

import random

import networkx as nx
import numpy as np
import pytest

from forcopt.data import delaunay
from forcopt.errors import DeclarationError
from forcopt.graphs.planar_dual import PlanarDual, flow_sums
from forcopt.graphs.walk_bounds import from_tree
from forcopt.graphs.weighted import WeightedGraph
from forcopt.graphs.window_cycles import WindowCycles


def planar_graph(rng, most=9):
    """A connected planar graph, often with bridges, cut vertices, weights of 0 and costs of 0."""
    n = rng.randint(2, most)
    if n >= 4 and rng.random() < 0.7:
        edges = list(nx.convert_node_labels_to_integers(delaunay(n, rng.randrange(10**6))).edges)
        tree = {frozenset(e) for e in nx.minimum_spanning_edges(nx.Graph(edges), data=False)}
        edges = [e for e in edges if set(e) in tree or rng.random() < rng.choice([0.3, 0.7, 1.0])]
    else:
        edges = [(rng.randrange(v), v) for v in range(1, n)]
    edges += [rng.choice(edges) for _ in range(rng.choice([0, 0, 2]))]  # parallel edges
    top = rng.choice([1, 1, 3, 10])
    costs = [rng.randint(rng.choice([0, 1]), top) for _ in edges]
    weights = [rng.randint(0, rng.choice([1, 5, 9])) for _ in range(n)]
    return WeightedGraph.of(weights, edges, costs)


def bonds(graph):
    """Each vertex set without the vertex 0 whose cut is a bond, with the positions of the cut edges."""
    u, v = graph.edges.T
    for code in range(1, 2 ** (graph.size - 1)):
        side = np.array([0, *(code >> i & 1 for i in range(graph.size - 1))])
        members = np.flatnonzero(side).tolist()
        if len(graph.components(members)) == len(graph.components(set(graph) - set(members))) == 1:
            yield side, np.flatnonzero(side[u] != side[v])


@pytest.mark.parametrize("block", range(10))
def test_cycles_are_the_bonds_in_the_window(block):
    for seed in range(30 * block, 30 * block + 30):
        rng = random.Random(seed)
        graph = planar_graph(rng)
        dual = PlanarDual.of(graph)
        assert graph.size - len(graph.edges) + dual.faces == 2
        low = rng.randint(0, graph.total)
        high = rng.randint(low, graph.total)
        symmetric = rng.random() < 0.6
        if symmetric:
            low, high = min(low, graph.total - high), max(high, graph.total - low)
        pairs = [rng.sample(range(graph.size), 2) for _ in range(rng.choice([0, 0, 1, 3]))]
        links, others = pairs[: len(pairs) // 2], pairs[len(pairs) // 2 :]
        expected = []
        for side, cut in bonds(graph):
            weight = int(graph.weights[side == 1].sum())
            fits = [low <= w <= high for w in (weight, graph.total - weight)]
            linked = all(side[a] == side[b] for a, b in links) and all(side[a] != side[b] for a, b in others)
            if linked:
                times = int(any(fits)) if symmetric else sum(fits)
                expected += [(int(graph.costs[cut].sum()), cut.tolist())] * times
        most = rng.choice([int(graph.costs.sum()), rng.randint(0, max(1, int(graph.costs.sum())))])
        expected = sorted(e for e in expected if e[0] <= most)
        search = WindowCycles(dual, low, high, symmetric=symmetric, must_link=links, cannot_link=others)
        separator = rng.sample(range(len(graph.edges)), rng.randint(0, min(3, len(graph.edges))))
        found = sorted((c, e.tolist()) for c, e in search.search(most, every=True, separator=separator))
        assert found == expected, seed
        cheapest = [c for c, _ in search.search(most)]
        assert cheapest == sorted(set(cheapest), reverse=True)
        assert cheapest[-1:] == [c for c, _ in expected[:1]], seed


def test_half_of_the_cost_may_be_more_than_half_of_the_edges():
    """The cycle around the hub of a wheel has 5 edges, and 4 of them cost 4 of 13."""
    wheel = nx.wheel_graph(6)
    costs = [(9 if v == 3 else 1) if u == 0 else 50 for u, v in wheel.edges]
    dual = PlanarDual.of(WeightedGraph.of([1, 2, 2, 2, 2, 2], wheel.edges, costs))
    search = WindowCycles(dual, 1, 1)
    for edge in range(10):
        assert [cost for cost, _ in search.search(100, every=True, separator=[edge])] == [13]


def test_flow_sums_are_antisymmetric_and_tell_the_weight_of_each_bond():
    rng = random.Random(1)
    for _ in range(20):
        graph = planar_graph(rng)
        dual = PlanarDual.of(graph)
        prizes = np.array([rng.uniform(-1, 1) for _ in graph])
        for root in (0, graph.size - 1):
            flow = flow_sums(dual, prizes, root)
            assert np.allclose(flow[::2], -flow[1::2])
            for side, cut in bonds(graph):
                inward = [2 * e + (side[graph.edges[e, 1]] != 1) for e in cut]
                expected = prizes[side == 1].sum() - (prizes.sum() if side[root] else 0.0)
                assert np.isclose(flow[inward].sum(), expected)


@pytest.mark.parametrize(
    ("graph", "words"),
    [(nx.complete_graph(5), "not planar"), (nx.empty_graph(2), "disconnected")],
)
def test_graphs_without_a_dual_are_named(graph, words):
    with pytest.raises(DeclarationError, match=words):
        PlanarDual.of(WeightedGraph.of([1] * len(graph), graph.edges, [1] * graph.number_of_edges()))


def test_paths_beyond_memory_are_an_error(monkeypatch):
    from forcopt.graphs import window_cycles

    monkeypatch.setattr(window_cycles, "_LARGEST", 1 << 16)
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(14, 14))
    weighted = WeightedGraph.of([1] * 196, graph.edges, [1] * graph.number_of_edges())
    with pytest.raises(MemoryError, match="one start face"):
        list(WindowCycles(PlanarDual.of(weighted), 98, 98, symmetric=True).search(60, every=True))


@pytest.mark.parametrize("seed", range(30))
def test_flows_from_a_tree_keep_all_sums_around_vertices(seed):
    """So they keep the sums of all closed walks, whose duals are made of the faces around vertices."""
    rng = random.Random(seed)
    graph = planar_graph(rng, most=12)
    dual = PlanarDual.of(graph)
    flow = flow_sums(dual, graph.weights)
    source = rng.randrange(dual.faces)
    moved = from_tree(*dual.links, dual.face, np.zeros(dual.faces, bool), source, flow)
    assert (moved[::2] == -moved[1::2]).all()
    assert (moved == 0).sum() >= 2 * (dual.faces - 1)  # a tree has faces - 1 edges
    u, v = graph.edges.T
    around = np.zeros(graph.size, np.int64)
    np.add.at(around, u, (moved - flow)[::2])
    np.add.at(around, v, (moved - flow)[1::2])
    assert not around.any()


@pytest.mark.parametrize("buckets", [(), (250,), (3,), (2, 7)])
@pytest.mark.parametrize("block", range(5))
def test_sets_of_small_reduced_cost_are_those_of_the_bonds(block, buckets, monkeypatch):
    from forcopt.graphs import window_cycles

    monkeypatch.setattr(window_cycles, "_FINER", [(0, number) for number in buckets])
    for seed in range(20 * block, 20 * block + 20):
        rng = random.Random(seed)
        graph = planar_graph(rng)
        low = rng.randint(0, graph.total)
        high = rng.randint(low, graph.total)
        prizes = np.array([rng.uniform(-1, 3) for _ in graph])
        threshold, most = rng.uniform(-4, 8), rng.randint(0, int(graph.costs.sum()))
        expected = set()
        for side, cut in bonds(graph):
            for half in (side, 1 - side):
                cost = int(graph.costs[cut].sum())
                fits = low <= graph.weights[half == 1].sum() <= high
                if fits and cost <= most and cost - prizes[half == 1].sum() <= threshold:
                    expected.add((cost, tuple(np.flatnonzero(half).tolist())))
        found = [
            (int(c), tuple(np.flatnonzero(s).tolist()))
            for sets, costs in WindowCycles(PlanarDual.of(graph), low, high).sets(most, prizes, threshold)
            for s, c in zip(sets, costs, strict=True)
        ]
        assert len(found) == len(set(found)) and set(found) == expected, seed


def test_a_window_without_districts_leaves_the_bounds_of_the_others(monkeypatch):
    """A limit of minus infinity excludes a window; the others still prune paths."""
    from forcopt.graphs import window_cycles

    monkeypatch.setattr(window_cycles, "_FINER", [(0, 250)])
    bounded = 0
    for seed in range(60):
        rng = random.Random(seed)
        graph = planar_graph(rng)
        cuts = sorted(rng.randint(0, graph.total) for _ in range(4))
        if cuts[1] == cuts[2]:
            continue
        windows = [(cuts[0], cuts[1]), (cuts[2], cuts[3])]
        prizes = np.array([rng.uniform(-1, 3) for _ in graph])
        limits = np.array([rng.uniform(-4, 4), rng.uniform(-4, 4)])
        limits[rng.randrange(2)] = -np.inf
        expected = set()
        for side, cut in bonds(graph):
            for half in (side, 1 - side):
                cost, weight = int(graph.costs[cut].sum()), graph.weights[half == 1].sum()
                for (low, high), limit in zip(windows, limits, strict=True):
                    if low <= weight <= high and cost - prizes[half == 1].sum() <= limit:
                        expected.add(tuple(np.flatnonzero(half).tolist()))
        counts = []
        for bounds in ([], [(0, 250)]):
            monkeypatch.setattr(window_cycles, "_FINER", bounds)
            cycles = WindowCycles(PlanarDual.of(graph), *windows[0], more=windows[1:])
            batches = cycles.sets(int(graph.costs.sum()), prizes, limits)
            found = [tuple(np.flatnonzero(s).tolist()) for sets, _ in batches for s in sets]
            inside = [f for f in found if f in expected]
            assert len(found) == len(set(found)) and set(inside) == expected, seed
            counts.append(cycles.paths)
        bounded += counts[1] < counts[0]
    assert bounded > 10
