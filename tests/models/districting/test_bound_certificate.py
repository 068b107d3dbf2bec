"""Certificates of lower bounds, against brute force; tampered ones are refused."""

import json
import pickle
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from districting_oracle import all_plans
from scipy.optimize import linprog

from forcopt.data import delaunay, grid
from forcopt.errors import DeclarationError
from forcopt.graphs.weighted import WeightedGraph
from forcopt.models import Districting
from forcopt.models.districting import bond_list
from forcopt.models.districting.bond_list import BondList, greatest_cost, split_districts
from forcopt.models.districting.bound_certificate import BoundCertificate


def planar(rng, nodes):
    """A connected planar graph: a triangulation with edges left out, bridges, and some costs of 0."""
    g = nx.Graph(delaunay(nodes, seed=int(rng.integers(1000))))
    for u, v in rng.permutation(list(g.edges)).tolist():
        if rng.random() < 0.45:
            g.remove_edge(u, v)
            if not nx.is_connected(g):
                g.add_edge(u, v)
    for v in list(g)[: int(rng.integers(0, 4))]:
        g.add_edge(v, len(g))  # a leaf
    for v in g:
        g.nodes[v]["population"] = int(rng.choice([0, 1, 2, 3, 7]))
    for u, v in g.edges:
        g.edges[u, v]["cost"] = int(rng.choice([0, 1, 1, 1, 2, 3]))
    return g


def subsets(graph):
    """All vertex sets but the empty one and the whole."""
    numbers = np.arange(1, 2**graph.size - 1)
    return (numbers[:, None] >> np.arange(graph.size) & 1).astype(bool)


def boundary(graph, sets):
    u, v = graph.edges.T
    return (sets[:, u] != sets[:, v]) @ graph.costs


def is_connected(graph, members):
    return len(graph.components(np.flatnonzero(members).tolist())) == 1


@pytest.mark.parametrize("seed", range(60))
def test_bonds_are_those_of_brute_force(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(bond_list, "_BUCKETS", (500, 5, 2)[seed % 3])  # of sums, wide ones too
    monkeypatch.setattr(bond_list, "_HUB", (20, 4)[seed % 2])
    monkeypatch.setattr(bond_list, "_BATCH", (2000, 3)[seed % 2])
    monkeypatch.setattr(bond_list, "_STEPS", (2000, 7)[seed % 2])
    graph = Districting(planar(rng, int(rng.integers(4, 12))), 1, bounds=(0, 999)).arrays
    prices = rng.integers(-3, 9, graph.size)
    low, high = sorted(rng.integers(0, graph.total + 1, 2).tolist())
    limit = int(rng.integers(0, 25))
    inside = int(rng.integers(graph.size)) if seed % 4 > 1 else None
    sets, people = subsets(graph), subsets(graph) @ graph.weights
    value = 3 * boundary(graph, sets) - sets @ prices
    low_, high_ = max(low, 1), min(high, graph.total - 1)
    right = {
        s.tobytes()
        for s in sets[(people >= low_) & (people <= high_) & (value <= limit)]
        if is_connected(graph, s) and is_connected(graph, ~s) and (inside is None or s[inside])
    }
    bonds = BondList(graph, 3, prices)
    found = [s.tobytes() for batch in bonds.within(low, high, limit, inside=inside) for s in batch]
    least = min(
        (int(3 * boundary(graph, s[None])[0] - s @ prices) for s in sets if s.tobytes() in right),
        default=limit + 1,
    )
    assert bonds.least(low, high, limit, inside=inside) <= least
    assert len(found) == len(set(found))
    assert set(found) == right


def instance(seed, most=4):
    """A problem, its least cost by brute force, and the prices of the linear bound over all districts."""
    rng = np.random.default_rng(seed)
    while True:
        graph = planar(rng, int(rng.integers(5, 10)))
        for v in graph:
            graph.nodes[v]["population"] += 1
        k = int(rng.integers(2, most + 1))
        p = Districting(graph, k, tolerance=float(rng.choice([0.2, 0.4, 0.6])))
        plans = list(all_plans(p)) if p.population_bounds[0] >= 1 else []
        if plans:
            break
    labels = [
        np.array([next(d for d in range(k) if v in plan[d]) for v in range(len(p.nodes))]) for plan in plans
    ]
    costs = [p.arrays.cut_cost(some) for some in labels]
    sets = subsets(p.arrays)
    people = sets @ p.arrays.weights
    low, high = p.population_bounds
    sets = sets[(people >= low) & (people <= high)]
    sets = sets[[is_connected(p.arrays, s) for s in sets]]
    rows = np.column_stack([sets, np.ones(len(sets))])
    dual = linprog(-np.append(np.ones(sets.shape[1]), k), rows, boundary(p.arrays, sets), bounds=(None, None))
    assert dual.status == 0
    best = int(np.argmin(costs))
    return p, costs[best], labels[best], dual.x[:-1], dual.x[-1] - 1e-4


@pytest.mark.parametrize("seed", range(40))
def test_the_optimum_is_proved_and_no_more(seed):
    p, cost, labels, prices, fee = instance(seed)
    proof = BoundCertificate.of(p, cost, prices, fee, plan=labels, scale=2**12)
    found = proof.check(p)
    assert found.optimal and found.objective == found.bound == cost, found.how
    assert not replace(proof, plan=None).check(p).optimal
    for more in (1, 2, 5):  # also where the plans found are not among the districts of half the room
        refused = replace(proof, bound=cost + more).check(p)
        assert refused.bound is None and not refused.optimal and "not proved" in refused.how
    # Worse prices, of larger rooms.
    rng = np.random.default_rng(seed)
    lower = BoundCertificate.of(
        p, cost, prices - rng.random(len(prices)), fee - rng.random(), plan=labels, scale=2**12
    )
    assert lower.check(p).optimal
    assert replace(lower, bound=cost + 1).check(p).bound is None


def test_the_optimum_has_a_district_with_a_disconnected_complement():
    g = nx.path_graph(3)
    nx.set_node_attributes(g, 1, "population")
    p = Districting(g, 3, bounds=(1, 1))
    proof = BoundCertificate.of(p, 2, [0.0] * 3, 0.0, plan=[0, 1, 2])
    assert proof.check(p).optimal
    assert replace(proof, bound=3).check(p).bound is None
    star = nx.star_graph(3)
    nx.set_node_attributes(star, 1, "population")
    p = Districting(star, 4, bounds=(1, 1))
    proof = BoundCertificate.of(p, 3, [0.0] * 4, 0.0)
    assert proof.check(p).bound == 3
    assert replace(proof, bound=4).check(p).bound is None


@pytest.mark.parametrize("seed", range(10))
def test_tampered_certificates_are_refused(seed, tmp_path):
    p, cost, labels, prices, fee = instance(seed)
    proof = BoundCertificate.of(p, cost, prices, fee, plan=labels, scale=2**12, name="a graph")
    proof.write(tmp_path / "proof.json")
    assert BoundCertificate.read(tmp_path / "proof.json") == proof
    # A price so high that a district of the plan has a negative reduced cost.
    v = 0
    higher = list(proof.prices)
    district = np.flatnonzero(labels == labels[v])
    inside = np.isin(np.arange(len(labels)), district)
    higher[v] += 2**12 * int(boundary(p.arrays, inside[None])[0]) - proof.fee + 1
    higher[v] -= sum(proof.prices[u] for u in district)
    found = replace(proof, prices=tuple(higher)).check(p)
    assert found.bound is None and "negative reduced cost" in found.how
    fee = replace(proof, fee=proof.fee + 2**12 * 99).check(p)
    assert fee.bound is None and "negative reduced cost" in fee.how
    # A plan without a district, with one that is too large, or with a number beyond 64 bits.
    fewer = [min(label, p.districts - 2) for label in labels.tolist()]
    for plan in ([0] * len(labels), fewer, [10**30, *labels.tolist()[1:]]):
        found = replace(proof, plan=tuple(plan)).check(p)
        assert found.feasible is False and not found.optimal and found.bound == cost
    other = labels.copy()
    other[district[0]] = (labels[district[0]] + 1) % p.districts
    found = replace(proof, plan=tuple(other.tolist())).check(p)
    assert not found.optimal or p.evaluate(dict(zip(p.nodes, other.tolist(), strict=True))).feasible
    for change in ({"fingerprint": "0"}, {"districts": 1}, {"bounds": (1, 2)}, {"prices": (1,)}):
        with pytest.raises(DeclarationError, match="that of the problem is"):
            replace(proof, **change).check(p)


def test_files_of_the_wrong_form_are_refused(tmp_path):
    p, cost, labels, prices, fee = instance(0)
    proof, path = BoundCertificate.of(p, cost, prices, fee, plan=labels), tmp_path / "proof.json"
    proof.write(path)
    right = json.loads(path.read_text())
    for change, words in (
        ({"fee": 0.5}, "fee is 0.5; Input should be a valid integer"),
        ({"prices": [0.5]}, "prices.0 is 0.5; Input should be a valid integer"),
        ({"more": 1}, "more is 1; Unexpected keyword argument"),
        ({"fingerprint": None}, "fingerprint is None; Input should be a valid string"),
        ({"bounds": [1]}, "bounds.1 is .*; Field required"),
    ):
        path.write_text(json.dumps(right | change))
        with pytest.raises(DeclarationError, match=words):
            BoundCertificate.read(path)


@pytest.mark.parametrize("seed", range(20))
def test_no_set_of_a_weight_has_a_greater_sum(seed):
    rng = np.random.default_rng(seed)
    values, weights = rng.integers(-5, 30, 8), rng.choice([0, 0, 1, 2, 5], 8)
    sets = (np.arange(2**8)[:, None] >> np.arange(8) & 1).astype(bool)
    for limit in range(-1, weights.sum() + 1):
        fits = sets[sets @ weights <= limit]
        assert bond_list.greatest(values, weights, limit) >= (fits @ values).max(initial=0)


def test_a_node_without_people_belongs_to_the_cheapest_plan():
    g = nx.cycle_graph(3)
    for v, people in enumerate((1, 0, 1)):
        g.nodes[v]["population"] = people
    p = Districting(g, 2, bounds=(1, 1))
    proof = BoundCertificate.of(p, 2, [2.0, 1.0, 2.0], -1.0, scale=1, plan=[0, 0, 1])
    assert proof.check(p).optimal
    assert replace(proof, bound=3).check(p).bound is None


def test_a_problem_without_a_plan_is_no_error():
    g = nx.path_graph(4)
    for v, people in enumerate((0, 3, 3, 2)):
        g.nodes[v]["population"] = people
    p = Districting(g, 4, bounds=(5, 5))
    assert BoundCertificate.of(p, 1, [1.0] * 4, -9.0).check(p).bound == 1


@pytest.mark.parametrize(
    "change", [{"fee": 2**63}, {"fee": -(2**63)}, {"fee": 2**70}, {"bound": 10**30}, {"prices": (2**70,) * 9}]
)
def test_numbers_beyond_64_bits_are_refused(change):
    p = Districting(grid(3, 3), 3, tolerance=0)
    proof = BoundCertificate.of(p, 6, [0.0] * 9, 0.0)
    assert proof.check(p).bound == 6
    assert "too large for 64-bit integers" in replace(proof, **change).check(p).how


def test_many_districts_take_no_longer_than_their_components():
    g = nx.path_graph(60)  # the complement of a district divides in a million ways by number
    nx.set_node_attributes(g, 1, "population")
    p = Districting(g, 60, bounds=(1, 1))
    proof = BoundCertificate.of(p, 59, [0.0] * 60, 0.0)
    assert proof.check(p).bound == 59
    assert replace(proof, bound=60).check(p).bound is None


def test_a_limit_on_time_proves_nothing():
    p, cost, labels, prices, fee = instance(3)
    proof = BoundCertificate.of(p, cost, prices, fee, plan=labels)
    found = proof.check(p, time_limit=0)
    assert found.bound is None and found.optimal is None and found.objective == cost
    assert "not proved: the time limit of 0 s passed" in found.how


def test_graphs_that_no_certificate_takes():
    five = nx.complete_graph(5)
    nx.set_node_attributes(five, 1, "population")
    p = Districting(five, 2, bounds=(1, 4))
    assert "not planar" in BoundCertificate.of(p, 1, [0.0] * 5, 0.0).check(p).how
    with pytest.raises(DeclarationError, match="2 districts or more"):
        q = Districting(nx.freeze(five), 1, bounds=(1, 5))
        BoundCertificate.of(q, 1, [0.0] * 5, 0.0).check(q)
    for weight, scale in ((1, 2**60), (2**55, 1)):
        path = WeightedGraph.of([weight] * 3, [(0, 1), (1, 2)], [1, 1])
        with pytest.raises(DeclarationError, match="too large"):
            BondList(path, scale, [0, 0, 0])


def districts_of_plans(p, sets):
    """Those whose complement's components have weights of whole numbers of districts, with the right sum."""
    low, high = p.population_bounds
    for s in sets:
        if not low <= s @ p.arrays.weights <= high or not is_connected(p.arrays, s):
            continue
        least = most = 0
        for piece in p.arrays.components(np.flatnonzero(~s).tolist()):
            people = int(p.arrays.weights[piece].sum())
            numbers = [j for j in range(1, p.districts) if j * low <= people <= j * high]
            if not numbers:
                break
            least, most = least + min(numbers), most + max(numbers)
        else:
            if least <= p.districts - 1 <= most:
                yield s


@pytest.mark.parametrize("seed", range(60))
def test_all_districts_up_to_a_reduced_cost_are_listed(seed):
    p, cost, _, prices, fee = instance(seed, most=5)
    rng = np.random.default_rng(seed)
    proof = BoundCertificate.of(p, cost, prices - rng.random() * rng.random(len(prices)), fee, scale=2**8)
    bonds = BondList(p.arrays, proof.scale, proof.prices)
    sets = subsets(p.arrays)
    values = bonds.values(sets) - proof.fee
    for share in (0.1, 0.5, 1.5):
        half = int(share * 2**8 * cost)
        right = {s.tobytes() for s in districts_of_plans(p, sets[values <= half])}
        numbers = proof.districts, half + proof.fee, proof.fee
        split = split_districts(bonds, *proof.bounds, *numbers, lambda: None)
        kinds = (proof._simple(bonds, half, lambda: None), split)
        listed = [s for kind in kinds for batch in kind for s in batch]
        assert len(listed) == len({s.tobytes() for s in listed})
        assert right <= {s.tobytes() for s in listed}
        assert all(is_connected(p.arrays, s) for s in listed)
        assert all(bonds.values(s[None])[0] - proof.fee <= half for s in listed)


@pytest.mark.parametrize("seed", range(20))
def test_no_set_of_a_value_and_a_weight_costs_more(seed):
    rng = np.random.default_rng(seed)
    graph = Districting(planar(rng, int(rng.integers(5, 12))), 1, bounds=(0, 999)).arrays
    bonds = BondList(graph, 4, rng.integers(-3, 12, graph.size))
    sets, limit, heaviest = subsets(graph), int(rng.integers(0, 20)), int(rng.integers(1, graph.total + 1))
    sets = sets[(bonds.values(sets) <= limit) & (sets @ graph.weights <= heaviest)]
    assert greatest_cost(bonds, limit, heaviest) >= boundary(graph, sets).max(initial=0)


def test_the_clock_is_read_before_each_minimum_cut():
    class Stop(Exception):
        pass

    def stop():
        raise Stop

    graph = Districting(grid(3, 3), 3, tolerance=0).arrays
    bonds = BondList(graph, 4, [5] * 9)
    with pytest.raises(Stop):
        greatest_cost(bonds, 10, 3, stop)
    assert list(split_districts(bonds, 1, 8, 2, 100, 0, stop)) == []  # two districts: no cuts at all


@pytest.mark.parametrize("districts", [3, 4])
def test_column_generation_keeps_its_proof(districts, tmp_path):
    p = Districting(delaunay(50, seed=districts), districts, tolerance=0.1)
    s = p.solve("column-generation", seed=0)
    found = s.certify()
    assert s.status == "optimal" and found.optimal and found.objective == s.objective
    assert pickle.loads(pickle.dumps(s)).certify().bound == s.bound
    assert s.certify(time_limit=0).bound is None


def test_a_plan_whose_districts_are_not_connected_is_none():
    p = Districting(grid(2, 2), districts=2, tolerance=0)
    proof = BoundCertificate.of(p, 2, [2.0] * 4, -2.0, scale=2, plan=[0, 1, 1, 0])
    found = proof.check(p)
    assert found.feasible is False and "contiguity of district 0" in found.how
    assert BoundCertificate.of(p, 2, [2.0] * 4, -2.0, scale=2, plan=[0, 0, 1, 1]).check(p).optimal
