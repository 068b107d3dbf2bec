"""County clusterings against enumeration; the districts that meet a share; fewest splits."""

import random
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from districting_oracle import all_plans

from forcopt.clock import Deadline
from forcopt.data import delaunay, grid
from forcopt.models import CountyClustering, Districting
from forcopt.models.districting import ClusteringBound, NoSuchDistrict, Plan, Share, SplitLimit
from forcopt.models.districting.screen import districts_meeting, least_splits


def partitions(nodes):
    """All partitions of a list into sets."""
    if not nodes:
        yield []
        return
    first, *rest = nodes
    for others in partitions(rest):
        yield [{first}, *others]
        for i, part in enumerate(others):
            yield [*others[:i], part | {first}, *others[i + 1 :]]


def most_clusters(problem):
    """The most clusters by trying all partitions; None if there is no clustering."""
    graph, (low, high), k = problem.graph, problem.window, problem.districts
    best = None
    for parts in partitions(list(graph)):
        people = [sum(graph.nodes[v]["population"] for v in part) for part in parts]
        numbers = [[s for s in range(1, k + 1) if s * low <= p <= s * high] for p in people]
        if not all(numbers) or not all(nx.is_connected(graph.subgraph(part)) for part in parts):
            continue
        if sum(map(min, numbers)) <= k <= sum(map(max, numbers)):
            best = max(best or 0, len(parts))
    return best


def drawn(seed):
    rng = random.Random(seed)
    n = rng.randint(4, 8)
    graph = nx.convert_node_labels_to_integers(delaunay(n, seed))
    if rng.random() < 0.3:
        graph = nx.path_graph(n)
    for v in graph:
        graph.nodes[v]["population"] = rng.choice([0, 3, 7, 12, 20, 45, 60])
    total = max(2, sum(graph.nodes[v]["population"] for v in graph))
    k = rng.randint(1, 9)
    return graph, k, max(1, int(total / k * 0.9)), int(total / k * rng.choice([1.0, 1.05, 1.15])) + 1


@pytest.mark.parametrize("block", range(4))
def test_clusterings_agree_with_enumeration(block):
    feasible = 0
    for seed in range(30 * block, 30 * block + 30):
        graph, k, low, high = drawn(seed)
        if low > high:
            continue
        p = CountyClustering(graph, districts=k, bounds=(low, high))
        known, s = most_clusters(p), p.solve(seed=seed)
        if known is None:
            assert s.status == "infeasible" and s.reason, seed
            continue
        feasible += 1
        assert s.status == "optimal" and s.objective == s.bound == known and s.evaluation.feasible, seed
        near = p.solve("recombination", steps=2000, seed=seed)
        assert near.evaluation.feasible and near.objective <= known <= near.bound, seed
        if s.proof is not None:
            assert s.certify().optimal, seed
            wrong = replace(s.proof, price=tuple(x + s.proof.unit for x in s.proof.price))
            assert not wrong.check(p).optimal, seed
    assert feasible > 8


def test_relabelled_counties_give_the_same_clusters():
    p = CountyClustering(grid(4, 5, population=[(7 * i) % 23 + 1 for i in range(20)]), 9, tolerance=0.1)
    turned = nx.relabel_nodes(p.graph, {v: f"c{(7 * v) % 20}" for v in p.graph})
    assert p.solve(seed=1).objective == p.replace(graph=turned).solve(seed=2).objective


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"districts": 2}, "either tolerance or bounds"),
        ({"districts": 2, "bounds": (0, 3)}, "1 <= lower <= upper"),
        ({"districts": 9, "tolerance": 0.0}, "1 <= lower <= upper"),
        ({"districts": 2, "bounds": (1, 3), "population": "people"}, "people"),
    ],
)
def test_bad_declarations_are_refused(fields, words):
    with pytest.raises(ValueError, match=words):
        CountyClustering(grid(1, 4), **fields)


def test_what_breaks_a_clustering_is_named():
    p = CountyClustering(grid(1, 4, population=[10, 4, 7, 9]), districts=3, tolerance=0.1)
    assert p.evaluate({0: 0, 1: 1, 2: 1, 3: 1}).feasible
    assert set(p.evaluate({0: 0, 1: 1, 2: 1, 3: 0}).violations) == {"contiguity of cluster 0"}
    assert "population of cluster 0" in p.evaluate({0: 0, 1: 0, 2: 1, 3: 1}).violations
    assert p.replace(districts=9, tolerance=None, bounds=(10, 11)).solve().status == "infeasible"


def connected_sets(graph):
    nodes = list(graph)
    for mask in range(1, 2 ** len(nodes)):
        part = [v for i, v in enumerate(nodes) if mask >> i & 1]
        if nx.is_connected(graph.subgraph(part)):
            yield frozenset(part)


@pytest.mark.parametrize("block", range(3))
def test_districts_that_meet_a_share_agree_with_enumeration(block):
    none = 0
    for seed in range(20 * block, 20 * block + 20):
        rng = random.Random(seed)
        graph = nx.convert_node_labels_to_integers(delaunay(rng.randint(5, 9), seed))
        for v in graph:
            graph.nodes[v].update(population=rng.randint(1, 9), vap=rng.randint(1, 20))
            graph.nodes[v]["black"] = rng.randint(0, graph.nodes[v]["vap"])
        share = Share(attribute="black", total="vap", at_least=rng.choice([0.4, 0.5, 0.7, 0.9]))
        share = share.model_copy(update={"districts": 1 + seed % 2})
        p = Districting(graph, 2 + seed // 2 % 2, tolerance=0.3, side_constraints=[share])
        low, high = p.population_bounds
        known = {
            part
            for part in connected_sets(graph)
            if low <= sum(graph.nodes[v]["population"] for v in part) <= high
            and sum(
                10 * graph.nodes[v]["black"] - round(10 * share.at_least) * graph.nodes[v]["vap"]
                for v in part
            )
            >= 0
        }
        sets, every = districts_meeting(p, share, 5000, Deadline(None))
        assert every and {frozenset(np.flatnonzero(s).tolist()) for s in sets} == known, seed
        s = p.solve(seed=1)
        if not known:
            none += 1
            assert s.status == "infeasible", seed
            if s.proof is not None:
                assert "no connected set" in s.reason and s.certify().feasible is False, seed
        plans = (Plan.of(p, parts) for parts in all_plans(p))
        costs = [e.objective for e in map(p.evaluate, plans) if e.feasible]
        assert s.status == ("optimal" if costs else "infeasible"), seed
        assert not costs or s.objective == s.bound == min(costs), seed
    assert none >= 1


def test_the_fewest_splits_agree_with_enumeration():
    for seed in range(6):
        rng = random.Random(seed)
        graph = nx.convert_node_labels_to_integers(delaunay(9, seed))
        for v in graph:
            graph.nodes[v].update(population=rng.randint(1, 5), county="abc"[v // 3])
        p = Districting(graph, 3, tolerance=0.3, objective="splits")
        plans = [
            p.evaluate(
                Plan.from_labels(p, [next(i for i, part in enumerate(parts) if v in part) for v in graph])
            )
            for parts in partitions(list(graph))
            if len(parts) == 3
        ]
        values = [(e.objective, e.metrics["cut_edges"]) for e in plans if e.feasible]
        s = p.solve(seed=1)
        if not values:
            assert s.status == "infeasible", seed
            continue
        assert s.status == "optimal" and s.objective == min(values)[0] == s.bound, seed
        assert s.evaluation.metrics["cut_edges"] == min(values)[1], seed
        assert least_splits(p, Deadline(None)) <= s.objective


def test_populations_bound_the_splits():
    graph = grid(3, 6)
    for v in graph:
        graph.nodes[v]["county"] = "big" if v % 6 < 4 else v
    p = Districting(graph, 6, tolerance=0, objective="splits")  # 12 people in districts of 3
    assert least_splits(p, Deadline(None)) == 3
    fixed = p.replace(side_constraints=[SplitLimit(limit=2)])
    assert fixed.solve(seed=1).status == "infeasible"


def test_a_limit_on_splits_below_the_bound_is_infeasible():
    graph = grid(10, 10)
    for v in graph:
        graph.nodes[v]["side"] = "west" if v % 10 < 5 else "east"
    p = Districting(graph, 4, tolerance=0.05, side_constraints=[SplitLimit(limit=1, attribute="side")])
    s = p.solve(time_limit=60)
    words = "every plan has at least 2 splits of 'side', by populations; SplitLimit(limit=1"
    assert s.status == "infeasible" and words in s.reason and s.seconds < 30
    with pytest.raises(ValueError, match=r"no plan to start .* was found; every plan has at least 2 splits"):
        p.ensemble("recom", size=5)
    within = p.replace(side_constraints=[SplitLimit(limit=2, attribute="side")])
    assert within.solve("local-search", seed=1, restarts=1).evaluation.feasible


def test_a_share_where_nobody_lives():
    """Sets were weighed by the upper bound, here 0, so none met a share."""
    graph = grid(1, 4, population=[0] * 4)
    for v in graph:
        graph.nodes[v].update(black=1, vap=2)
    share = Share(attribute="black", total="vap", at_least=0.5)
    p = Districting(graph, 2, tolerance=0, side_constraints=[share])
    assert p.solve().objective == 1 and NoSuchDistrict(share).check(p).feasible is None


def test_proofs_of_clusterings_and_shares_are_kept_in_files(tmp_path):
    counties = CountyClustering(grid(1, 3, population=[15, 5, 10]), districts=3, bounds=(10, 10))
    graph = grid(3, 3)
    for v in graph:
        graph.nodes[v].update(black=1, vap=4)
    none = Districting(
        graph, 3, tolerance=0, side_constraints=[Share(attribute="black", total="vap", at_least=0.5)]
    )
    for p in (counties, none):
        s = p.solve(seed=1)
        s.proof.write(tmp_path / "proof.json")
        again = type(s.proof).read(tmp_path / "proof.json")
        assert again == s.proof and again.check(p).how == s.proof.check(p).how
    assert again.check(none).feasible is False
    with pytest.raises(ValueError, match=r"share is Share\(.*; it must be the problem's"):
        again.check(none.replace(side_constraints=()))
    less = Share(attribute="black", total="vap", at_least=0.25)
    named = nx.relabel_nodes(graph, "abcdefghi".__getitem__)
    check = NoSuchDistrict(less).check(Districting(named, 3, tolerance=0, side_constraints=[less]))
    assert check.feasible is None and check.how.startswith("a district of ['a', 'b', 'd'] meets Share")
    (tmp_path / "proof.json").write_text('{"price": [1], "sigma": 1, "unit": 1.5, "labels": [0]}')
    with pytest.raises(ValueError, match=r"unit is 1.5; Input should be a valid integer"):
        ClusteringBound.read(tmp_path / "proof.json")
    with pytest.raises(ValueError, match=r"price and labels is \(1, 1\); it must have 3 entries each"):
        ClusteringBound((1,), 1, 1, (0,)).check(counties)
