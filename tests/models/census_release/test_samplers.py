"""Random districts of whole units, and the distance of a release from the true counts."""

import networkx as nx
import numpy as np
import pytest

from forcopt.data import Hierarchy, grid
from forcopt.errors import DeclarationError
from forcopt.models.census_release import (
    Region,
    Release,
    disconnected_districts,
    measure,
    recombined_districts,
)


def county(seed=0):
    """A square of 6 by 6 tracts of 2 by 2 blocks, as a tree and as two graphs."""
    place = {}
    for i in range(12):
        for j in range(12):
            place[i, j] = 4 * (i // 2 * 6 + j // 2) + i % 2 * 2 + j % 2
    counts = np.random.default_rng(seed).integers(5, 60, (144, 2))
    tree = Hierarchy.homogeneous([36, 4], counts=counts)
    blocks = nx.relabel_nodes(nx.grid_2d_graph(12, 12), place)
    return tree, nx.convert_node_labels_to_integers(grid(6, 6)), blocks


def whole_units(tree, level, region):
    inside = np.bincount(tree.ancestors(level)[region.leaves], minlength=tree.sizes[level])
    return [u for u in np.flatnonzero(inside).tolist() if inside[u] != tree.below[level][u]] == []


@pytest.mark.parametrize("level", [1, 2])
def test_units_in_any_places_keep_the_bounds(level):
    tree, _, _ = county()
    people = tree.counts.sum(axis=1)
    bounds = (people.sum() * 0.24, people.sum() * 0.26)
    drawn = list(disconnected_districts(tree, level, bounds, 30, seed=1))
    assert len({tuple(r.leaves.tolist()) for r in drawn}) == 30
    for region in drawn:
        assert bounds[0] <= people[region.leaves].sum() <= bounds[1] and region.types == 2
        assert whole_units(tree, level, region)
    again = list(disconnected_districts(tree, level, bounds, 30, seed=1))
    assert all((a.leaves == b.leaves).all() for a, b in zip(drawn, again, strict=True))
    few = disconnected_districts(tree, level, (1, 400), 20, units=[3, 7], seed=0)
    assert {int(u) for r in few for u in np.unique(tree.ancestors(level)[r.leaves])} <= {3, 7}


@pytest.mark.parametrize("level", [1, 2])
def test_recombined_districts_are_connected_and_balanced(level):
    pytest.importorskip("gerrychain")
    tree, tracts, blocks = county()
    graph, people = (tracts, blocks)[level - 1], tree.counts.sum(axis=1)
    start = None if level == 1 else {b: b // 4 // 6 // 3 * 2 + b // 4 % 6 // 3 for b in blocks}
    drawn = list(recombined_districts(tree, level, graph, 4, 0.15, 5, start=start, thin=2, seed=0))
    assert len(drawn) == 20
    for plan in range(5):
        parts = drawn[4 * plan : 4 * plan + 4]
        assert sorted(np.concatenate([r.leaves for r in parts]).tolist()) == list(range(144))
    for region in drawn:
        assert abs(people[region.leaves].sum() / (people.sum() / 4) - 1) <= 0.15 + 1e-9
        assert whole_units(tree, level, region)
        assert nx.is_connected(graph.subgraph(set(tree.ancestors(level)[region.leaves].tolist())))
    assert len({tuple(r.leaves.tolist()) for r in drawn}) > 4


def test_smaller_and_scattered_units_are_fragmented():
    """The order of Figure 4: tracts before blocks, and connected blocks before scattered ones."""
    pytest.importorskip("gerrychain")
    tree, tracts, blocks = county()
    total = float(tree.counts.sum())
    start = {b: b // 4 // 6 // 3 * 2 + b // 4 % 6 // 3 for b in blocks}
    samples = (
        disconnected_districts(tree, 1, (total * 0.22, total * 0.28), 40, seed=0),
        recombined_districts(tree, 1, tracts, 4, 0.15, 10, thin=3, seed=0),
        recombined_districts(tree, 2, blocks, 4, 0.15, 10, start=start, thin=3, seed=0),
        disconnected_districts(tree, 2, (total * 0.22, total * 0.28), 40, seed=0),
    )
    scattered, whole, connected, blocks_anywhere = (
        np.mean([r.fragmentation() for r in sample]) for sample in samples
    )
    assert scattered == pytest.approx(whole, rel=0.1)
    assert 1.1 * whole < connected < 0.9 * blocks_anywhere


def test_what_cannot_be_drawn_is_named():
    tree, _, _ = county()
    for level in (-1, 3):
        with pytest.raises(DeclarationError, match="levels 0 to 2"):
            next(disconnected_districts(tree, level, (1, 2)))
    with pytest.raises(DeclarationError, match="no counts"):
        next(disconnected_districts(Hierarchy.homogeneous([2, 2]), 1, (1, 2)))
    with pytest.raises(DeclarationError, match="end at"):
        next(disconnected_districts(tree, 1, (10, 11), seed=0))
    with pytest.raises(DeclarationError, match="positions of level 1, 0 to 35"):
        next(disconnected_districts(tree, 1, (1, 500), units=[36]))
    with pytest.raises(DeclarationError, match="positions of level 1"):
        next(recombined_districts(tree, 1, nx.path_graph(40), 2, 0.1))


def test_the_error_of_a_release():
    tree, _, _ = county()
    exact = Release.of_leaves(tree, tree.counts.astype(float))
    assert exact.l1_error(tree.counts) == 0.0
    moved = tree.counts.copy()
    moved[0, 0], moved[5, 1] = moved[0, 0] - 3, moved[5, 1] + 3
    assert exact.l1_error(moved) == pytest.approx(3 / tree.counts.sum())
    noisy = measure(tree, [1.0, 1.0, 1.0], seed=0, order="top-down").solve("simplex").decision
    off = sum(abs(float(a) - float(b)) for a, b in zip(noisy.leaves.flat, tree.counts.flat, strict=True))
    assert noisy.l1_error(tree.counts) == pytest.approx(off / (2 * tree.counts.sum()))
    with pytest.raises(DeclarationError, match="shape"):
        exact.l1_error(tree.counts[:, 0])
    with pytest.raises(DeclarationError, match="sum to 0"):
        exact.l1_error(np.zeros_like(tree.counts))


def test_a_region_has_the_types_of_its_tree():
    tree, _, _ = county()
    (one,) = disconnected_districts(tree, 0, (1, 1e9))
    assert one.fragmentation() == 0 and one.leaves.tolist() == list(range(144)) and one.types == 2
    assert one.variance([0.5] * 3) == Region(tree, np.arange(144), types=2).variance([0.5] * 3)
