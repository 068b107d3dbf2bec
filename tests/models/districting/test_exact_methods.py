"""Exact methods against published and computed figures, brute force, and each other."""

import random
from collections import Counter
from math import comb

import networkx as nx
import numpy as np
import pytest
from districting_oracle import all_plans, brute_histogram, label_of
from hypothesis import given, settings
from hypothesis import strategies as st
from processor_time import spends_at_most
from scipy.stats import chi2

from forcopt.data import delaunay, grid
from forcopt.errors import DeclarationError
from forcopt.graphs.planar_dual import PlanarDual
from forcopt.graphs.weighted import WeightedGraph
from forcopt.graphs.window_cycles import WindowCycles
from forcopt.models import Districting
from forcopt.models.districting import CannotLink, CutLimit, Fixed, MustLink, Plan
from forcopt.models.districting.cycle_districts import CycleDistricts
from forcopt.models.districting.exact_cover import cheapest_cover

EXACT = ["set-partitioning", "frontier", "sphere-cut", "column-generation"]
COUNTING = ["frontier", "sphere-cut"]


def unit(graph):
    nx.set_node_attributes(graph, 1, "population")
    return graph


# Grids: rows, columns, districts, bounds, number of plans by cost.
GRIDS = [
    (2, 2, 2, (2, 2), {2: 2}),
    (2, 3, 3, (2, 2), {4: 3}),
    (3, 3, 3, (3, 3), {6: 10}),
    (3, 4, 2, (6, 6), {3: 1, 5: 8, 6: 6, 7: 4}),
    (3, 4, 3, (4, 4), {6: 2, 7: 6, 8: 15}),
    (3, 4, 6, (2, 2), {11: 11}),
    (3, 4, 3, (3, 5), {6: 6, 7: 70, 8: 83}),
    (3, 3, 3, (2, 4), {6: 50, 5: 8}),
    (4, 4, 2, (8, 8), {4: 2, 6: 12, 7: 24, 8: 16, 9: 8, 10: 8}),
    (4, 4, 2, (7, 9), {4: 2, 5: 8, 6: 40, 7: 56, 8: 52, 9: 24, 10: 24}),
    (4, 4, 4, (4, 4), {8: 1, 10: 14, 11: 24, 12: 78}),
    (4, 4, 4, (3, 5), {8: 1, 9: 16, 10: 122, 11: 784, 12: 1030}),
    (4, 4, 8, (2, 2), {16: 36}),
    (5, 5, 5, (5, 5), {16: 170, 17: 296, 18: 1164, 19: 1432, 20: 944}),
    (5, 5, 2, (12, 13), {6: 8, 7: 36, 8: 80, 9: 160, 10: 296, 11: 352, 12: 432, 13: 436, 14: 440, 15: 240, 16: 288, 17: 36}),  # noqa: E501
    (5, 5, 3, (8, 9), {9: 8, 10: 48, 11: 168, 12: 592, 13: 1224, 14: 2166, 15: 2384, 16: 2168, 17: 1000, 18: 514}),  # noqa: E501
    (6, 6, 6, (6, 6), {18: 2, 20: 120, 21: 128, 22: 1804, 23: 4400, 24: 15748, 25: 34424, 26: 69156, 27: 102200, 28: 114402, 29: 79788, 30: 29034}),  # noqa: E501
]  # fmt: skip

ANY = (1, 10**6)
SOLIDS = [
    (nx.complete_graph(4), 2, ANY, {3: 4, 4: 3}),
    (nx.complete_graph(4), 3, ANY, {5: 6}),
    (nx.complete_graph(4), 4, ANY, {6: 1}),
    (nx.octahedral_graph(), 2, (3, 3), {6: 4, 8: 6}),
    (nx.octahedral_graph(), 3, ANY, {7: 12, 8: 27, 9: 32}),
    (nx.octahedral_graph(), 5, ANY, {11: 12}),
    (nx.icosahedral_graph(), 2, (6, 6), {10: 6, 12: 40, 14: 60, 16: 90, 18: 130, 20: 30}),
    (nx.icosahedral_graph(), 3, (4, 4), {15: 20, 17: 120, 18: 100, 19: 120, 21: 80}),
    (nx.icosahedral_graph(), 4, (3, 3), {18: 10, 20: 210, 21: 40, 22: 90}),
    (nx.path_graph(5), 3, ANY, {2: 6}),
    (nx.cycle_graph(5), 2, ANY, {2: 10}),
    (nx.cycle_graph(3), 1, ANY, {0: 1}),
    (nx.cycle_graph(3), 2, ANY, {2: 3}),
    (nx.star_graph(3), 2, (2, 2), {}),
    (nx.Graph([(0, 1), (2, 3)]), 3, ANY, {1: 2}),
    (nx.complete_graph(5), 3, ANY, {7: 10, 8: 15}),  # not planar
    (nx.complete_bipartite_graph(3, 3), 2, (3, 3), {5: 9}),  # not planar
]


@pytest.mark.parametrize(("rows", "columns", "districts", "bounds", "counts"), GRIDS)
def test_grids_by_cost(rows, columns, districts, bounds, counts):
    p = Districting(grid(rows, columns), districts, bounds=bounds)
    for method in COUNTING if len(p.nodes) <= 25 else ["frontier"]:
        assert p.count(method=method).histogram == dict(sorted(counts.items()))
    for method in EXACT if len(p.nodes) <= 25 else EXACT[:2]:
        assert p.solve(method).objective == min(counts)


@pytest.mark.parametrize(("graph", "districts", "bounds", "counts"), SOLIDS)
def test_solids_and_others_by_cost(graph, districts, bounds, counts):
    p = Districting(unit(graph.copy()), districts, bounds=bounds)
    for method in COUNTING:
        assert p.count(method=method).histogram == counts
    for method in EXACT:
        s = p.solve(method)
        assert s.objective == min(counts) if counts else s.status == "infeasible"


@pytest.mark.parametrize(
    ("side", "counts"),
    [
        (3, [1, 53, 258, 440, 395, 208, 66, 12, 1]),
        (
            4,
            [
                1,
                627,
                10830,
                62741,
                183945,
                328732,
                395728,
                340198,
                216073,
                103198,
                37242,
                10077,
                1997,
                276,
                24,
                1,
            ],
        ),
    ],
)
def test_all_connected_partitions(side, counts):
    for k, count in enumerate(counts, 1):
        assert Districting(grid(side, side), k, bounds=ANY).count().total == count


@pytest.mark.parametrize("n", [4, 5, 6])
def test_closed_forms(n):
    tree, cycle, complete = nx.random_labeled_tree(n, seed=n), nx.cycle_graph(n), nx.complete_graph(n)
    for k in range(2, n + 1):
        assert Districting(unit(tree), k, bounds=ANY).count().histogram == {k - 1: comb(n - 1, k - 1)}
        assert Districting(unit(cycle), k, bounds=ANY).count().histogram == {k: comb(n, k)}
        stirling = sum((-1) ** i * comb(k, i) * (k - i) ** n for i in range(k + 1))
        factorial = np.prod(range(1, k + 1))
        assert Districting(unit(complete), k, bounds=ANY).count().total == stirling // factorial


S21_COUNTS = {
    0.2: {6: 1, 7: 8, 8: 24, 9: 148, 10: 311, 11: 436, 12: 395, 13: 276, 14: 155},
    0.1: {7: 2, 8: 6, 9: 33, 10: 84, 11: 99, 12: 93, 13: 51, 14: 36},
    0.05: {8: 2, 9: 7, 10: 26, 11: 30, 12: 33, 13: 14, 14: 14},
    0.01: {10: 1, 11: 1, 12: 3, 13: 2},
}


def test_the_stand_in_for_sarthe(s21):
    best, count = 0.0, np.inf
    for tolerance, counts in S21_COUNTS.items():
        p = Districting(s21, 3, tolerance=tolerance)
        assert p.count().histogram == p.count(method="sphere-cut").histogram == counts
        values = {p.solve(method).objective for method in EXACT}
        assert values == {min(counts)}
        assert best <= min(values) and sum(counts.values()) <= count  # monotone in the tolerance
        best, count = min(values), sum(counts.values())
    p = Districting(s21, 3, bounds=(150000, 200000))
    assert p.count().histogram == {7: 4, 8: 10, 9: 50, 10: 133, 11: 157, 12: 155, 13: 92, 14: 56}
    assert Districting(s21, 4, bounds=(150000, 200000)).count().total == 0


def weighted_grid(rows, columns, people):
    return grid(rows, columns, population=people)


def test_weights_and_costs():
    g = weighted_grid(3, 3, list(range(1, 10)))
    assert Districting(g, 3, bounds=(14, 16)).count().histogram == {5: 1}
    plan = Districting(g, 3, bounds=(15, 15)).solve("frontier").decision
    assert plan.parts == ((0, 1, 2, 3, 4), (5, 8), (6, 7))
    assert Districting(g, 2, bounds=(20, 25)).count().histogram == {3: 1, 4: 4, 5: 4}
    h = grid(2, 3)
    for (u, v), c in {(0, 1): 5, (1, 2): 1, (3, 4): 5, (4, 5): 1, (0, 3): 2, (1, 4): 2, (2, 5): 2}.items():
        h.edges[u, v]["cost"] = c
    assert Districting(h, 2, bounds=(3, 3)).count().histogram == {6: 1, 8: 2}
    assert Districting(h, 2, bounds=(2, 4)).count().histogram == {2: 1, 5: 2, 6: 1, 8: 2, 9: 2, 10: 1}
    assert Districting(h, 3, bounds=(2, 2)).count().histogram == {6: 1, 12: 1, 14: 1}


def test_contiguity_matters():
    a = weighted_grid(3, 4, [2, 5, 5, 5, 1, 8, 2, 3, 3, 8, 1, 8])
    b = weighted_grid(3, 4, [1, 2, 8, 5, 1, 3, 3, 5, 1, 1, 8, 2])
    assert Districting(a, 3, bounds=(16, 18)).count().histogram == {8: 8}
    assert Districting(b, 3, bounds=(13, 14)).count().histogram == {8: 6}


def test_zero_weights_and_a_lower_bound_of_zero():
    g = weighted_grid(2, 3, [0, 0, 3, 0, 0, 3])
    p = Districting(g, 3, bounds=(0, 3))
    assert p.count().histogram == brute_histogram(p)
    assert {p.solve(m).objective for m in EXACT} == {min(brute_histogram(p))}


@st.composite
def instances(draw):
    seed = draw(st.integers(0, 10**6))
    rng = random.Random(seed)
    g = delaunay(rng.randint(4, 9), seed, keep=rng.choice([0.5, 0.8, 1.0]), population=(0, 9))
    if rng.random() < 0.4:  # leaves, articulation points, components
        g.remove_edges_from([e for e in list(g.edges) if rng.random() < 0.3])
    for e in g.edges:
        g.edges[e]["cost"] = rng.randint(0, 4)
    k = rng.randint(1, min(4, len(g)))
    total = sum(d for _, d in g.nodes(data="population"))
    low = rng.randint(0, max(0, total // k))
    side = []
    if rng.random() < 0.5:
        u, v, w, x = rng.sample(list(g), 4)
        side = [rng.choice([MustLink([u, v]), CannotLink([u, v]), Fixed(u, k - 1)]), CannotLink([w, x])]
    return Districting(g, k, bounds=(low, rng.randint(-(-total // k), total)), side_constraints=side)


@settings(max_examples=40, deadline=None)
@given(instances())
def test_exact_methods_agree_with_brute_force(p):
    expected = brute_histogram(p)
    assert p.count(method="sphere-cut").histogram == expected
    counts = p.count()
    assert counts.histogram == expected
    for method in EXACT:
        s = p.solve(method)
        if not expected:
            assert s.status == "infeasible"
            continue
        assert (s.status, s.objective, s.bound) == ("optimal", min(expected), min(expected))
        assert s.evaluation.feasible
    plans = list(counts.iterate())
    assert len(set(map(repr, (plan.parts for plan in plans)))) == sum(expected.values())
    assert all(p.evaluate(plan).feasible for plan in plans)
    assert [plan.cost for plan in plans] == sorted(plan.cost for plan in plans)


@settings(max_examples=25, deadline=None)
@given(instances(), st.sampled_from(["inertia", "deviation"]), st.integers(0, 12))
def test_other_objectives_and_the_cut_limit(p, objective, limit):
    q = Districting(
        p.graph,
        p.districts,
        bounds=p.bounds,
        objective=objective,
        side_constraints=[*p.side_constraints, CutLimit(limit)],
    )
    values = [e.objective for parts in all_plans(q) if (e := q.evaluate(Plan.of(q, parts))).feasible]
    s = q.solve("set-partitioning")
    if values:
        assert s.status == "optimal" and np.isclose(s.objective, min(values))
    else:
        assert s.status == "infeasible"


def test_a_district_with_nothing_left_to_rule_out_still_keeps_the_cut_limit():
    g = unit(nx.complete_graph(4))
    for objective, limit, status in (("deviation", 3, "infeasible"), ("deviation", 4, "optimal")):
        p = Districting(g, 2, bounds=(2, 2), objective=objective, side_constraints=[CutLimit(limit)])
        assert p.solve("set-partitioning").status == status


def test_max_cost_counts_only_so_far():
    p = Districting(grid(4, 4), 4, bounds=(3, 5))
    assert p.count(max_cost=10).histogram == {8: 1, 9: 16, 10: 122}
    assert p.count(max_cost=7).histogram == {}


def test_every_rank_is_another_plan():
    for p in (Districting(grid(4, 4), 4, tolerance=0), Districting(grid(3, 4), 3, bounds=(3, 5))):
        for method in COUNTING:
            counts = p.count(method=method)
            plans = {plan.parts for plan in counts.iterate()}
            assert len(plans) == counts.total
            assert plans == {Plan.of(p, parts).parts for parts in all_plans(p)}
        assert p.evaluate(label_of(p, next(iter(plans)))).feasible


def test_samples_are_uniform():
    # 155 plans at cost 14, 3100 draws: the chi-square test errs once in 10,000 runs; the seed is fixed.
    counts = Districting(grid(4, 4), 4, tolerance=0).count()
    draws = counts.sample(3120, cost=12, seed=5)
    seen = {}
    for plan in draws:
        seen[plan.parts] = seen.get(plan.parts, 0) + 1
    expected = 3120 / 78
    statistic = sum((n - expected) ** 2 / expected for n in seen.values()) + (78 - len(seen)) * expected
    assert statistic < chi2.isf(1e-4, 77)


@pytest.mark.parametrize("method", COUNTING)
def test_samples_of_all_costs_are_uniform(method):
    # 23 plans, 100 draws for each: see above.
    counts = Districting(grid(3, 4), 3, tolerance=0).count(method=method)
    seen = Counter(plan.parts for plan in counts.sample(100 * counts.total, seed=5))
    statistic = sum((n - 100) ** 2 / 100 for n in seen.values()) + (counts.total - len(seen)) * 100
    assert statistic < chi2.isf(1e-4, counts.total - 1)
    assert {plan.cost for plan in counts.sample(200, seed=1)} == set(counts.histogram)


def test_no_plan_to_draw():
    none = Districting(unit(nx.path_graph(4)), 2, bounds=(3, 3)).count()
    with pytest.raises(DeclarationError, match="no plan to draw"):
        none.sample(3)


@pytest.mark.parametrize("method", COUNTING)
def test_a_count_stops_at_its_time_limit(method, capsys):
    p = Districting(grid(7, 7), 2, tolerance=0.2)
    with pytest.raises(TimeoutError, match="the plans are not counted: the time limit of 0 s passed"):
        p.count(12, method, time_limit=0)
    counts = p.count(12, method, time_limit=600, progress=True)
    assert f"count with {method}" in capsys.readouterr().err
    assert counts.histogram == p.count(12).histogram


def test_ranks_and_costs_out_of_range():
    counts = Districting(grid(3, 3), 3, tolerance=0).count()
    with pytest.raises(DeclarationError, match="no plan costs 5; costs that occur: 6"):
        counts.sample(cost=5)
    with pytest.raises(DeclarationError, match="from 0 to 9"):
        counts.unrank(6, 10)


def test_a_rounded_cost_is_no_cost_of_a_plan():
    counts = Districting(grid(3, 4), 3, tolerance=0).count()
    for cost in (6.4, float("nan"), float("inf")):
        with pytest.raises(DeclarationError, match=f"no plan costs {cost:g}; costs that occur: 6, 7, 8"):
            counts.unrank(cost, 0)
    with pytest.raises(DeclarationError, match="max_cost is nan"):
        Districting(grid(3, 4), 3, tolerance=0).count(max_cost=float("nan"))
    assert Districting(grid(3, 4), 3, tolerance=0).count(max_cost=float("inf")).total == counts.total


@pytest.mark.parametrize("method", COUNTING)
def test_components_are_the_only_plan_to_count(method):
    for graph in (grid(1, 1), grid(2, 2), nx.disjoint_union(grid(1, 2), grid(1, 2))):
        k = nx.number_connected_components(graph)
        p = Districting(graph, k, tolerance=0)
        assert p.count(method=method).histogram == {0: 1}
        assert p.count(max_cost=-1, method=method).total == 0
        assert p.evaluate(p.count(method=method).unrank(0, 0)).feasible


def test_counts_may_exceed_a_machine_word():
    g = unit(nx.path_graph(110))
    p = Districting(g, 40, bounds=(1, 110))
    assert p.count().total == p.count(method="sphere-cut").total == comb(109, 39) > 2**98


def test_a_start_must_be_feasible():
    p = Districting(grid(2, 2), 2, tolerance=0)
    bad = Plan.of(p, [[0, 3], [1, 2]])
    for method in EXACT:
        with pytest.raises(DeclarationError, match="start: the plan is not feasible: contiguity of district"):
            p.solve(method, start=bad)
        assert p.solve(method, start=Plan.of(p, [[0, 1], [2, 3]])).objective == 2
        assert p.solve(method, start={0: 1, 1: 1, 2: 0, 3: 0}).objective == 2


def test_time_limits_leave_a_plan_without_proof():
    p = Districting(delaunay(60, 3), 5, tolerance=0.02)
    for method in EXACT:
        s = p.solve(method, time_limit=0.01)
        assert s.status in ("feasible", "limit") and not s.bound > s.objective


def test_limits_of_the_methods():
    with pytest.raises(DeclarationError, match="at most 128 nodes"):
        Districting(grid(12, 12), 2, tolerance=0).solve("set-partitioning")
    with pytest.raises(DeclarationError, match="grow beyond 16 vertices"):
        Districting(unit(nx.complete_graph(18)), 2, tolerance=0).solve("frontier")
    with pytest.raises(DeclarationError, match="takes the objective cut"):
        Districting(grid(2, 2), 2, tolerance=0, objective="deviation").solve("frontier")


def test_traces_rise_to_the_optimum_and_can_stop_the_run():
    p = Districting(delaunay(30, 5), 3, tolerance=0.05)
    plan = p.solve("local-search", seed=1).decision
    for method in ("frontier", "sphere-cut", "column-generation"):
        s = p.solve(method, start=plan)
        bounds = [step.bound for step in s.trace]
        assert bounds == sorted(bounds) and bounds[-1] == s.objective == s.bound
        told = p.solve(method, start=plan, on_improvement=lambda step: True)
        assert told.status == "feasible" and told.bound <= s.objective and told.decision == plan


def test_columns_find_more_than_a_bad_plan():
    p = Districting(grid(5, 6), 5, tolerance=0.2)
    worst = max(p.count().histogram)
    start = p.count().unrank(worst, 0)
    assert start.cost > p.solve("column-generation", start=start).objective == min(p.count().histogram)


def random_two_districts(seed):
    """Two districts on a random planar graph with bridges, cut nodes, populations and costs of 0, links."""
    rng = random.Random(seed)
    n = rng.randint(4, 10)
    g = delaunay(n, seed, keep=rng.choice([0.3, 0.7, 1.0]), population=(0, rng.choice([1, 9])))
    tree = {frozenset(e) for e in nx.minimum_spanning_edges(g, data=False)}
    share = rng.choice([0.2, 0.8, 1.0])
    g.remove_edges_from([e for e in list(g.edges) if set(e) not in tree and rng.random() > share])
    for e in g.edges:
        g.edges[e]["cost"] = rng.choice([1, 1, 0, 0.5, 3])
    if rng.random() < 0.3:  # parallel edges
        g = nx.MultiGraph(g)
        g.add_edges_from(
            (u, v, {"cost": rng.choice([0, 1, 2])}) for u, v in rng.choices(list(g.edges()), k=2)
        )
    total = sum(p for _, p in g.nodes(data="population"))
    low = rng.randint(0, total // 2)
    u, v, w, x = rng.sample(list(g), 4)
    sides = [[], [], [MustLink([u, v])], [CannotLink([u, v]), MustLink([w, x])], [Fixed(u, 1), Fixed(w, 1)]]
    side = [*rng.choice(sides), *rng.choice([[], [CutLimit(rng.randint(1, 6))]])]
    return Districting(g, 2, bounds=(low, rng.randint(total - total // 2, total)), side_constraints=side)


def cost_of(p, plan):
    """The cost of a plan by the edges of the given graph, where parallel edges stand alone."""
    at = plan.assignment
    return sum(cost for u, v, cost in p.graph.edges(data="cost") if at[u] != at[v])


@pytest.mark.parametrize(
    "block", [*range(2), *(pytest.param(b, marks=pytest.mark.nightly) for b in range(2, 10))]
)
def test_two_districts_counts_and_samples_agree_with_brute_force(block):
    statistic = freedom = 0
    for seed in range(30 * block, 30 * block + 30):
        p = random_two_districts(seed)
        plans = [plan for parts in all_plans(p) if p.evaluate(plan := Plan.of(p, parts)).feasible]
        costs = [cost_of(p, plan) for plan in plans]
        for method in ("column-generation", "portfolio", "set-partitioning"):
            s = p.solve(method)
            assert s.status == ("optimal" if costs else "infeasible"), (seed, method)
            assert not costs or s.objective == min(costs), (seed, method)
            assert not costs or s.bound == s.objective
        counts = p.count(method=COUNTING[seed % 2])
        assert counts.histogram == dict(sorted(Counter(costs).items())), seed
        assert sorted(map(repr, (plan.parts for plan in counts.iterate()))) == sorted(
            repr(plan.parts) for plan in plans
        )
        if plans:
            drawn = Counter(counts.sample(3 * len(plans), seed=seed))
            assert set(drawn) <= set(plans)
            statistic += sum((drawn[plan] - 3) ** 2 / 3 for plan in plans)
            freedom += len(plans) - 1
    assert statistic < chi2.isf(1e-5, freedom)


def test_two_districts_keep_the_time_limit_and_the_bound():
    p = Districting(grid(16, 16), 2, tolerance=0)
    with spends_at_most(30):
        s = p.solve("column-generation", time_limit=0.5)
    assert s.bound <= 16 and not s.objective < s.bound
    bounds = [step.bound for step in s.trace]
    assert bounds == sorted(bounds)
    whole = Districting(grid(12, 12), 2, tolerance=0).solve()
    assert whole.status == "optimal" and whole.objective == whole.bound == 12


def test_two_districts_end_before_the_paths_outgrow_memory(monkeypatch):
    from forcopt.graphs import window_cycles

    monkeypatch.setattr(window_cycles, "_LARGEST", 1 << 16)
    wide = Districting(
        grid(14, 14, population=3), 2, bounds=(293, 295), side_constraints=[CannotLink([0, 1])]
    )
    s = wide.solve("column-generation", time_limit=60)
    assert s.status in ("limit", "feasible") and s.message and s.bound > 0


@pytest.mark.parametrize("block", range(4))
def test_all_districts_of_small_reduced_cost_even_with_disconnected_complements(block):
    several = 0
    for seed in range(15 * block, 15 * block + 15):
        rng = random.Random(seed)
        n, k = rng.randint(4, 9), rng.randint(2, 5)
        g = delaunay(n, seed, keep=0.4, population=(0, 4))
        tree = {frozenset(e) for e in nx.minimum_spanning_edges(g, data=False)}
        g.remove_edges_from([e for e in list(g.edges) if set(e) not in tree and rng.random() < 0.5])
        for e in g.edges:
            g.edges[e]["cost"] = rng.choice([1, 1, 2, 0])
        k = min(k, n)
        p = Districting(g, k, tolerance=rng.choice([0.3, 0.6, 1.0]))
        low, high = p.population_bounds
        if p.infeasibility_reason():
            continue
        graph = p.arrays
        prizes = np.array([rng.uniform(-1, 3) for _ in range(n)])
        threshold = rng.uniform(-3, 4)
        batches = list(CycleDistricts(graph, low, high, k).sets(threshold, prizes))
        found = [tuple(np.flatnonzero(s).tolist()) for sets, _ in batches for s in sets]
        costs = [c for _, some in batches for c in some.tolist()]
        assert len(found) == len(set(found))
        for members, cost in zip(found, costs, strict=True):
            inside = np.isin(np.arange(n), members)
            assert graph.cut_cost(inside) == cost <= threshold + prizes[inside].sum() + 2e-6
            assert low <= graph.weights[inside].sum() <= high and len(graph.components(members)) == 1
        needed = {tuple(sorted(part)) for parts in all_plans(p) for part in parts}
        for members in needed:
            inside = np.isin(np.arange(n), members)
            if graph.cut_cost(inside) - prizes[inside].sum() <= threshold:
                assert members in found, seed
                several += len(graph.components(set(range(n)) - set(members))) > 1
    assert several > 0


def test_a_cut_limit_with_edge_costs():
    for seed in range(12):
        rng = random.Random(seed)
        g = delaunay(9, seed, population=(1, 5))
        for e in g.edges:
            g.edges[e]["cost"] = rng.choice([1, 4, 9])
        k = rng.choice([2, 3])
        free = Districting(g, k, tolerance=0.6)
        best = free.solve("set-partitioning").decision
        limit = len(best.cut_edges) - 1
        p = Districting(g, k, tolerance=0.6, side_constraints=[CutLimit(limit)])
        plans = [Plan.of(p, parts) for parts in all_plans(p)]
        costs = [plan.cost for plan in plans if len(plan.cut_edges) <= limit]
        for method in ["portfolio", "column-generation", "set-partitioning"]:
            s = p.solve(method)
            assert s.status == ("optimal" if costs else "infeasible"), (seed, method)
            assert not costs or s.objective == min(costs), (seed, method)


def random_districting(seed):
    """Trees and thinned Delaunay graphs: often a district encloses others or falls between them."""
    rng = random.Random(seed)
    n = rng.randint(4, 9)
    graph = nx.convert_node_labels_to_integers(delaunay(n, seed))
    if rng.random() < 0.5:
        graph = nx.Graph(list(nx.minimum_spanning_edges(graph, data=False)))
    if rng.random() < 0.3:
        graph = nx.star_graph(n - 1)
    for v in graph:
        graph.nodes[v]["population"] = rng.randint(0, 4)
    for edge in graph.edges:
        graph.edges[edge]["cost"] = rng.choice([1, 1, 1, 2, 5])
    total = sum(graph.nodes[v]["population"] for v in graph)
    districts = rng.randint(2, min(5, n))
    low = rng.randint(0, max(1, total // districts))
    return Districting(graph, districts, bounds=(low, rng.randint(low, max(low, total))))


def test_pricing_beyond_memory_goes_on_nearer_to_the_best_prices(monkeypatch):
    from forcopt.models.districting.column_generation import _Run

    p = Districting(delaunay(50, seed=3), 3, tolerance=0.1)
    known = p.solve("set-partitioning").objective
    listing, refused = _Run.districts, []

    def scarce(self, threshold, prizes=None, *args):
        if prizes is not None and self.share > 0.1:
            refused.append(self.share)
            raise MemoryError("no space")
        yield from listing(self, threshold, prizes, *args)

    monkeypatch.setattr(_Run, "districts", scarce)
    s = p.solve("column-generation")
    assert refused and s.status == "optimal" and s.objective == s.bound == known


@pytest.mark.parametrize("block", range(4))
def test_the_cheapest_plan_of_a_list_that_may_lack_one_district_agrees_with_brute_force(block):
    lacked = missed = 0
    for seed in range(25 * block, 25 * block + 25):
        p = random_districting(seed)
        g, k, plans = p.arrays, p.districts, list(all_plans(p))
        u, v = g.edges.T
        rng = np.random.default_rng(seed)
        names = sorted({tuple(sorted(part)) for parts in plans for part in parts})
        if not names:
            continue
        sets = np.array([np.isin(np.arange(g.size), part) for part in names], bool)
        costs = (sets[:, u] != sets[:, v]) @ g.costs
        prizes = rng.uniform(-1, 1, g.size)
        fee = (costs - sets @ prizes).min(initial=0.0)
        reduced, paid = costs - sets @ prizes - fee, prizes.sum() + k * fee
        a, b = rng.choice(g.size, 2, replace=False).tolist()
        links = [[], [(a, b, True)], [(a, b, False)]][seed % 3]
        label = [Plan.of(p, parts).labels for parts in plans]
        value = [2 * g.cut_cost(of) for of in label if all((of[a] == of[b]) == same for _, _, same in links)]
        allowed = np.array(
            [all(s[a] == s[b] if same else not (s[a] and s[b]) for a, b, same in links) for s in sets]
        )
        optimum = min(value, default=None)
        for most in (2 * int(g.costs.sum()), *([optimum, optimum - 1] if optimum is not None else [])):
            slack = most - paid
            for above in (slack / 2, 0.7 * slack, np.inf):
                few = allowed & (reduced <= above)
                plan = cheapest_cover(
                    g, sets[few], costs[few], reduced[few], k, *p.population_bounds, most, slack,
                    above=above, links=links,
                )  # fmt: skip
                if optimum is None or most < optimum:
                    assert plan is None, (seed, above)
                    missed += 1
                else:
                    parts = [np.flatnonzero(s).tolist() for s in plan]
                    assert p.evaluate(Plan.of(p, parts)).feasible, (seed, above)
                    assert sum(int(g.costs[s[u] != s[v]].sum()) for s in plan) == optimum, (seed, above)
                    lacked += not {tuple(part) for part in parts} <= {
                        name for name, kept in zip(names, few, strict=True) if kept
                    }
    assert lacked > 3 and missed > 10


def test_plans_of_more_vertices_than_a_word_holds():
    rng = np.random.default_rng(0)
    solved = 0
    for _ in range(40):
        n, k = int(rng.integers(60, 140)), int(rng.integers(2, 6))
        path = WeightedGraph.of(
            [1] * n, [(v, v + 1) for v in range(n - 1)], rng.integers(1, 20, n - 1).tolist()
        )
        ends = [0, *sorted(rng.choice(np.arange(1, n), 8, replace=False).tolist()), n]
        spans = [(a, b) for a in ends for b in ends if 5 <= b - a <= 50]
        sets = np.array([[a <= v < b for v in range(n)] for a, b in spans])
        u, v = path.edges.T
        costs = (sets[:, u] != sets[:, v]) @ path.costs
        least = {(0, 0): 0}  # of the covers of the first vertices by a number of spans
        for end in ends[1:]:
            for count in range(1, k + 1):
                options = [
                    least[a, count - 1] + int(cost)
                    for (a, b), cost in zip(spans, costs, strict=True)
                    if b == end and (a, count - 1) in least
                ]
                if options:
                    least[end, count] = min(options)
        plan = cheapest_cover(path, sets, costs, costs.astype(float), k, 5, 50, 1000, 1000.0)
        paid = None if plan is None else sum(int(path.costs[s[u] != s[v]].sum()) for s in plan)
        assert paid == least.get((n, k))
        solved += paid is not None
    assert solved > 5


def test_an_integer_program_replaces_a_long_search_for_plans(monkeypatch):
    from forcopt.models.districting import column_generation

    path = WeightedGraph.of([1] * 2, [(0, 1)], [1])
    with pytest.raises(OverflowError, match="exact cover takes too long"):
        cheapest_cover(
            path, np.eye(2, dtype=bool), np.ones(2, np.int64), np.zeros(2), 2, 1, 1, 2, 0.0, looks=0
        )
    p = Districting(delaunay(40, seed=3), 5, tolerance=0.1)
    optimum = p.solve("column-generation").objective

    def too_long(*args, **options):
        raise OverflowError

    monkeypatch.setattr(column_generation, "cheapest_cover", too_long)
    s = p.solve("column-generation")
    assert s.status == "optimal" and s.objective == optimum == p.solve("set-partitioning").objective


def test_costs_of_many_digits_take_few_targets():
    wheel, rng = unit(nx.wheel_graph(9)), random.Random(4)
    for *_, edge in wheel.edges(data=True):
        edge["cost"] = rng.randint(10**6, 10**7)
    p = Districting(wheel, 3, bounds=(0, 5))
    rounds = []

    def enough(step):
        rounds.append(step)
        return len(rounds) > 500

    s = p.solve("column-generation", seed=0, on_improvement=enough)
    assert s.status.name == "OPTIMAL"
    assert s.objective == min(brute_histogram(p))


def test_integer_programs_take_boundaries_beyond_the_coefficients_of_solvers():
    ring = unit(nx.cycle_graph(6))
    for u, _, edge in ring.edges(data=True):
        edge["cost"] = 6 * 10**14 + u
    p = Districting(ring, 3, tolerance=0.5, side_constraints=[CutLimit(4)])
    s = p.solve("column-generation", seed=0)
    assert (s.status.name, s.objective) == ("OPTIMAL", 18 * 10**14 + 2)


def test_cycles_refuse_costs_that_overflow_beside_costs_of_zero():
    path = unit(nx.path_graph(1200))
    nx.set_edge_attributes(path, 1, "cost")
    path.edges[0, 1]["cost"], path.edges[599, 600]["cost"] = 0, 2**53 - 2400
    p = Districting(path, 2, tolerance=0)
    with pytest.raises(DeclarationError, match="too large beside costs of 0"):
        WindowCycles(PlanarDual.of(p.arrays), *p.population_bounds)


@pytest.mark.parametrize("districts", [3, 5])
def test_a_complete_list_improves_the_linear_bound(districts):
    """Prices with a fee that is too low: the least reduced cost of the list proves a better bound."""
    from forcopt.clock import Deadline, Trace
    from forcopt.models.districting.column_generation import _Run

    p = Districting(delaunay(36, seed=2), districts, tolerance=0.15)
    run = _Run(p, None, "highs", Trace(Deadline(None), None))
    prizes = np.full(run.graph.size, 0.4)
    sets, costs = (np.concatenate(column) for column in zip(*run.districts(np.inf, prizes), strict=True))
    least = float((costs - sets @ prizes).min())
    run.improve(prizes, least - 3)
    assert run.linear == pytest.approx(prizes.sum() + districts * (least - 3))
    run.list_up_to(least + 1, np.inf, 10**6)
    assert run.linear == pytest.approx(prizes.sum() + districts * least)
    assert run.bound <= p.solve("set-partitioning").objective


def test_the_next_threshold_is_estimated_from_the_growth_of_a_list():
    from forcopt.models.districting.column_generation import _estimate

    values = np.log2(np.arange(1, 65))  # the number up to t is 2**t
    assert _estimate(values, 6.0, 256, 1.0) == pytest.approx(8.0, abs=0.1)
    assert _estimate(values, 6.0, 16, 1.0) < 6.0
    assert _estimate(np.zeros(0), 6.0, 256, 1.0) == 7.0
