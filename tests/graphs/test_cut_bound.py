"""Bounds by minimum cuts against all vertex sets."""

from itertools import product

import numpy as np
import pytest

from forcopt.data import delaunay
from forcopt.graphs.cut_bound import largest_boundary, least_value
from forcopt.graphs.weighted import WeightedGraph


@pytest.mark.parametrize("seed", range(40))
def test_bounds_hold_for_all_vertex_sets(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 10))
    graph = delaunay(n, seed=seed)
    weights = rng.integers(0, 6, size=n)
    edges = [(u, v) for u, v in graph.edges]
    arrays = WeightedGraph.of(weights, edges, rng.integers(0, 5, size=len(edges)))
    prizes = np.round(rng.normal(size=n) * rng.choice([0.1, 2, 1000]), 3)
    low = int(rng.integers(0, weights.sum() + 1))
    high = int(rng.integers(low, weights.sum() + 1))
    threshold = float(rng.normal())
    sets = np.array(list(product([False, True], repeat=n)))
    costs = np.array([arrays.cut_cost(s) for s in sets])
    people = sets @ weights
    inside = (people >= low) & (people <= high) & (costs - sets @ prizes <= threshold)
    bound = largest_boundary(arrays, prizes, threshold, low, high, 1e9)
    assert not inside.any() or costs[inside].max() <= bound + 1e-6
    heavy = people >= low
    assert least_value(arrays, prizes, low) <= (costs + sets @ prizes)[heavy].min() + 1e-6
    # Without a lower bound on the weight the minimum cut itself is the answer.
    assert least_value(arrays, prizes, 0) == pytest.approx((costs + sets @ prizes).min(), rel=1e-5, abs=1e-3)
