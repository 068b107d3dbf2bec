"""Connected sets by reduced cost against brute force."""

import random
from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from forcopt.data import delaunay
from forcopt.graphs.connected_sets import ConnectedSets
from forcopt.graphs.weighted import WeightedGraph


def brute(graph, low, high, parts, threshold, prizes):
    """All connected sets whose complement's components allow the other parts, by their members."""
    found = {}
    for size in range(1, graph.size + 1):
        for members in combinations(range(graph.size), size):
            labels = np.isin(np.arange(graph.size), members)
            cost = graph.cut_cost(labels)
            inside = low <= graph.weights[labels].sum() <= high and len(graph.components(members)) == 1
            if not inside or cost - prizes[labels].sum() > threshold:
                continue
            fewest = most = 0
            for piece in graph.components(set(range(graph.size)) - set(members)):
                weight = graph.weights[piece].sum()
                fits = [d for d in range(1, len(piece) + 1) if d * low <= weight <= d * high]
                fewest, most = fewest + min(fits, default=99), most + max(fits, default=-99)
            if fewest <= parts - 1 <= most:
                found[members] = cost
    return found


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_all_sets_of_small_reduced_cost_and_no_other(seed):
    rng = random.Random(seed)
    g = delaunay(rng.randint(4, 8), seed, keep=rng.choice([0.4, 1.0]), population=(0, 9))
    nodes = list(g)
    edges = [(nodes.index(u), nodes.index(v)) for u, v in g.edges]
    people = [g.nodes[v]["population"] for v in nodes]
    graph = WeightedGraph.of(people, edges, [rng.randint(0, 5) for _ in edges])
    parts = rng.randint(1, 3)
    low = rng.randint(0, graph.total // parts)
    high = rng.randint(-(-graph.total // parts), graph.total)
    prizes = np.array([rng.uniform(-2, 5) for _ in people])
    threshold = rng.uniform(-5, 10)
    expected = brute(graph, low, high, parts, threshold, prizes)
    search = ConnectedSets(graph, low, high, parts, threshold, prizes)
    found = []
    while not search.done:
        sets, costs = search.step(budget=rng.randint(1, 50), most=rng.randint(1, 4))
        found += [(tuple(np.flatnonzero(s).tolist()), c) for s, c in zip(sets, costs.tolist(), strict=True)]
    assert len(found) == len(dict(found))
    assert dict(found) == expected
