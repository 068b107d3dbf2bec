"""Orders, branch decompositions and bit sets."""

import networkx as nx
import pytest

from forcopt.data import delaunay, grid
from forcopt.graphs import WeightedGraph
from forcopt.graphs.branch_decomposition import BranchDecomposition
from forcopt.graphs.kernels import mask, members
from forcopt.graphs.weighted import frontier_order, spectral_order


def arrays(graph):
    place = {v: i for i, v in enumerate(graph)}
    return WeightedGraph.of(
        [1] * len(graph), [(place[u], place[v]) for u, v in graph.edges], [1] * graph.number_of_edges()
    )


@pytest.mark.parametrize("side", [2, 3, 4, 5, 6])
def test_grids_have_width_and_hops_of_their_side(side):
    d = BranchDecomposition.of(arrays(grid(side, side)))
    assert (d.width, d.hops, d.planar) == (side, side, True)


def check(d):
    everything = (1 << len(d.edges)) - 1
    assert d.root.edges == everything and d.root.boundary == ()
    assert sum(c.children is None for c in d.clusters) == len(d.edges)
    for c in d.clusters:
        if c.children:
            a, b = c.children
            assert a.edges & b.edges == 0 and a.edges | b.edges == c.edges
        inside = {v for i, e in enumerate(d.edges) if c.edges >> i & 1 for v in e}
        outside = {v for i, e in enumerate(d.edges) if not c.edges >> i & 1 for v in e}
        assert set(c.boundary) == inside & outside


@pytest.mark.parametrize("seed", range(12))
def test_random_planar_graphs_have_width_at_most_hops(seed):
    d = BranchDecomposition.of(arrays(delaunay(5 + seed, seed)))
    check(d)
    assert d.planar and d.real == len(d.edges) and d.width <= max(2, d.hops)


@pytest.mark.parametrize(
    "graph",
    [
        nx.path_graph(4),
        nx.star_graph(5),
        nx.Graph([(0, 1), (2, 3)]),
        nx.barbell_graph(4, 2),
        nx.empty_graph(5),
    ],
)
def test_phantom_edges_make_a_graph_planar_and_two_connected(graph):
    d = BranchDecomposition.of(arrays(graph))
    check(d)
    whole = nx.Graph(d.edges)
    assert nx.is_biconnected(whole) and nx.check_planarity(whole)[0]


def test_nonplanar_graphs_are_decomposed_along_an_order():
    d = BranchDecomposition.of(arrays(nx.complete_graph(6)))
    check(d)
    assert not d.planar


def test_orders_hold_every_vertex_once():
    g = arrays(delaunay(30, 3))
    for order in (frontier_order(g), spectral_order(g)):
        assert sorted(order) == list(range(30))
    order, graph = frontier_order(arrays(grid(4, 9))), grid(4, 9)
    heads = [set(order[:at]) for at in range(1, 37)]
    assert max(len(nx.node_boundary(graph, set(graph) - head)) for head in heads) == 4
    two = nx.disjoint_union(nx.path_graph(3), nx.path_graph(4))
    assert sorted(spectral_order(arrays(two))) == list(range(7))


def test_bit_sets_hold_128_vertices():
    for group in ([], [0], [63, 64], [5, 127], list(range(128))):
        assert members(mask(group)) == group
