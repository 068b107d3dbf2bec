"""Noise laws and factorizations inside other problems, each on two backends."""

from itertools import product

import allocation_oracle  # noqa: F401  (registers the method enumeration)
import networkx as nx
import numpy as np
import pytest

from forcopt.data import Hierarchy, grid
from forcopt.models import (
    ConsistentRelease,
    CountingQueries,
    Districting,
    LevelBudget,
    LinearQueries,
    StratifiedAllocation,
)
from forcopt.privacy import DiscreteGaussian

COUNTS = np.array([90, 50, 30, 10])  # a total and its three parts


@pytest.fixture(scope="module")
def released():
    """Private counts: a person changes the total and one part, so each count by at most 1."""
    p = CountingQueries(queries=4, epsilon=1.0, delta=0.01, whole=True)
    law = p.solve("gaussian").decision
    assert isinstance(law, DiscreteGaussian)
    return law, np.asarray(p.mechanism(law).simulate(COUNTS, 1))


@pytest.mark.parametrize("backend", ["highs", "clarabel"])
def test_a_law_gives_the_precisions_of_a_consistent_release(released, backend):
    law, noisy = released
    precision = 1 / law.variance
    p = ConsistentRelease(Hierarchy.homogeneous([3]), (noisy[:1], noisy[1:]), [precision] * 2)
    s = p.solve("qp", backend=backend)
    # least squares: the parts take a quarter each of what they miss of the total
    missing = noisy[0] - noisy[1:].sum()
    assert s.decision.leaves[:, 0] == pytest.approx(noisy[1:] + missing / 4, abs=1e-4)
    assert s.objective == pytest.approx(precision * missing**2 / 4, rel=1e-5, abs=1e-7)


REGIONS = ([0], [0, 1], [2, 3], [0, 1, 2, 3])


@pytest.mark.parametrize("backend", ["clarabel", "scs"])
def test_factorizations_are_no_worse_than_a_budget_over_levels(backend):
    rho = 0.5
    w = np.array([[float(i in region) for i in range(4)] for region in REGIONS])
    levels = LevelBudget(Hierarchy.homogeneous([2, 2]), regions=REGIONS, rho=rho, criterion="max").solve(
        "conic", backend=backend
    )
    # a level of a tree has sensitivity sqrt(2) under a substitution and 1 under an addition
    for neighbours, budget in (("substitute", levels.objective), ("add_remove", levels.objective / 2)):
        p = LinearQueries(workload=w, epsilon=1.0, delta=1e-6, neighbours=neighbours)
        norm = p.solve("sdp", backend=backend).evaluation.metrics["factorization norm"]
        variance = norm**2 / (2 * rho)  # of Gaussian noise that is rho-zCDP
        assert variance < budget * (1 - 0.01)
    # the budget itself is a factorization: least squares err no more than the estimates level by level
    tree = np.concatenate([np.ones((1, 4)), np.kron(np.eye(2), np.ones((1, 2))), np.eye(4)])
    share = np.repeat(levels.decision, [1, 2, 4])
    strategy = np.sqrt(share)[:, None] * tree
    left = w @ np.linalg.pinv(strategy)
    assert (left**2).sum(axis=1).max() / (2 * rho) <= levels.objective / 2 * (1 + 1e-4)


@pytest.mark.parametrize("backend", ["highs", "scip"])
def test_allocation_over_private_stratum_sizes(released, backend):
    _, noisy = released
    sizes = np.maximum(noisy[1:], 1)
    deviations = [1.0, 2.0, 4.0]
    private = StratifiedAllocation(sizes=sizes, deviations=deviations, sample_size=12)
    s = private.solve("milp", backend=backend)
    assert s.objective == pytest.approx(private.solve("enumeration").objective, rel=1e-6)
    # the allocation is judged on the true sizes: no better than the best for them
    true = StratifiedAllocation(sizes=COUNTS[1:], deviations=deviations, sample_size=12)
    assert true.evaluate(s.decision).objective >= true.solve("enumeration").objective - 1e-12


@pytest.mark.parametrize("backend", ["highs", "scip"])
def test_districts_on_private_counts_keep_a_margin_for_the_noise(backend):
    rng = np.random.default_rng(2)
    people = rng.integers(800, 1200, 9)
    counts = CountingQueries(queries=9, epsilon=1.0, delta=1e-3, whole=True)
    law = counts.solve("gaussian").decision
    noisy = np.asarray(counts.mechanism(law).simulate(people, 4))
    true = Districting(graph=grid(3, 3, population=people.tolist()), districts=2, tolerance=0.15)
    low, high = true.population_bounds
    margin = int(np.ceil(3 * np.sqrt(8 * law.variance)))  # a district has at most 8 blocks
    seen = Districting(
        graph=grid(3, 3, population=noisy.tolist()), districts=2, bounds=(low + margin, high - margin)
    )
    s = seen.solve("flow", backend=backend)
    best = np.inf
    for half in product((0, 1), repeat=8):
        sides = np.array([[1, *half], [0, *(1 - h for h in half)]])
        members = [[v for v, h in zip(true.nodes, side, strict=True) if h] for side in sides]
        totals = sides @ noisy
        if (totals < low + margin).any() or (totals > high - margin).any():
            continue
        if all(part and nx.is_connected(true.graph.subgraph(part)) for part in members):
            place = dict(zip(true.nodes, sides[0], strict=True))
            best = min(best, sum(place[u] != place[v] for u, v in true.graph.edges))
    assert s.status == "optimal" and s.objective == pytest.approx(best)
    assert true.evaluate(s.decision.assignment).feasible  # also by the counts that were not released
