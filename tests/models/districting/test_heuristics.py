"""Heuristics, the portfolio, and the bin packing generator."""

import random
from collections import Counter
from functools import partial
from itertools import combinations, permutations

import networkx as nx
import numpy as np
import pytest
from processor_time import spends_at_most
from scipy.stats import chi2, chi2_contingency

from forcopt.data import delaunay, grid
from forcopt.errors import DeclarationError
from forcopt.models import Districting
from forcopt.models.districting import (
    CannotLink,
    CutLimit,
    Fixed,
    MustLink,
    Plan,
    ReCom,
    SplitLimit,
    bin_packing,
)
from forcopt.problem import Outcome
from forcopt.status import Status


@pytest.mark.parametrize(
    ("values", "bins", "plans"),
    [
        ((1, 1), 2, 2),
        ((2, 1, 1), 2, 2),
        ((3, 2, 1), 2, 2),
        ((3, 3, 2), 2, 0),
        ((1, 1, 1), 3, 6),
        ((2, 2, 1, 1), 3, 6),
        ((5, 1, 1, 1), 2, 0),
        ((2, 2, 2), 2, 0),
    ],
)
def test_the_reduction_keeps_the_number_of_solutions(values, bins, plans):
    p = bin_packing(values, bins)
    n, k = len(values), bins
    assert (len(p.nodes), len(p.arrays.edges)) == ((n + 1) * k + n * (k + 1), 4 * k * n)
    assert p.count().total == plans
    assert (p.solve("set-partitioning").status == "optimal") == (plans > 0)


def test_the_smallest_reduction_in_full():
    p = bin_packing((1, 1), 2)
    assert p.arrays.weights.tolist() == [8, 8, 2, 2, 2, 1, 1, 2, 2, 2, 32, 32]
    assert p.population_bounds == (47, 47) and p.count().histogram == {4: 2}
    for bad in (((1,), 1), ((1, 2), 2), ((0, 2), 2), ((1, 1), 0)):
        with pytest.raises(DeclarationError, match="must"):
            bin_packing(*bad)


def test_local_search_repeats_with_its_seed_and_stays_feasible():
    p = Districting(delaunay(40, 2), 4, tolerance=0.05)
    one, two = p.solve("local-search", seed=7), p.solve("local-search", seed=7)
    assert one.decision == two.decision and one.status == "approximate" and one.evaluation.feasible
    best = p.solve().objective
    assert best <= one.objective <= 1.5 * best


@pytest.mark.parametrize("seed", range(6))
def test_no_three_districts_of_a_large_neighbourhood_search_improve(seed):
    p = Districting(delaunay(28, seed), 4, tolerance=0.1)
    first = p.solve("local-search", restarts=1, steps=300, seed=seed)
    s = p.solve("large-neighbourhood", start=first.decision)
    best = p.solve("set-partitioning").objective
    assert s.evaluation.feasible and s.status == "approximate" and s.bound == float("-inf")
    assert best <= s.objective <= first.objective
    for parts in combinations(s.decision.parts, 3):
        nodes = [p.nodes[v] for part in parts for v in part]
        inner = p.graph.subgraph(nodes)
        if nx.is_connected(inner):
            three = Districting(nx.Graph(inner), 3, bounds=p.population_bounds).solve("set-partitioning")
            label = {p.nodes[v]: d for d, part in enumerate(parts) for v in part}
            assert three.objective == sum(label[u] != label[v] for u, v in inner.edges)


def test_large_neighbourhood_search_finds_more_than_pairs_do():
    p = Districting(delaunay(60, 2), 4, tolerance=0.05)
    first = p.solve("local-search", restarts=1, steps=600, seed=2)
    s = p.solve("large-neighbourhood", start=first.decision)
    assert s.objective == p.solve("column-generation").objective < first.objective
    seen = [step.objective for step in s.trace]
    assert seen == sorted(seen, reverse=True) and seen[0] == first.objective and seen[-1] == s.objective
    stopped = p.solve("large-neighbourhood", start=first.decision, on_improvement=lambda step: True)
    assert stopped.objective == first.objective


def test_large_neighbourhood_search_keeps_links_and_few_districts():
    g = delaunay(24, 4)
    side = [MustLink([0, 1, 5]), CannotLink([2, 3]), Fixed(4, 2), Fixed(9, 0), CutLimit(40)]
    for k in (1, 2, 3, 4):
        p = Districting(g, k, tolerance=0.3, side_constraints=side if k > 2 else [])
        s, exact = p.solve("large-neighbourhood", seed=1), p.solve("set-partitioning")
        assert s.evaluation.feasible and exact.objective <= s.objective <= 1.3 * exact.objective
    with pytest.raises(DeclarationError, match="takes the objective cut"):
        Districting(g, 3, tolerance=0.3, objective="deviation").solve("large-neighbourhood")


def test_local_search_takes_every_objective_and_side_constraint():
    g = delaunay(20, 4)
    side = [MustLink([0, 1]), CannotLink([2, 3]), Fixed(4, 2), CutLimit(30)]
    for objective in ("cut", "inertia", "deviation"):
        p = Districting(g, 3, tolerance=0.3, objective=objective, side_constraints=side)
        s, exact = p.solve("local-search"), p.solve("set-partitioning")
        assert s.evaluation.feasible and exact.status == "optimal"
        assert exact.objective <= s.objective <= 1.3 * exact.objective + 1e-9


def test_a_heuristic_that_finds_nothing_proves_nothing():
    p = Districting(grid(1, 6, population=[3, 1, 1, 1, 1, 3]), 3, bounds=(3, 4))
    assert p.solve("local-search", restarts=1, steps=1).status in ("limit", "approximate")
    assert p.solve("set-partitioning").objective == 2 and p.count().total == 3


def test_portfolio_is_the_default_and_exact():
    p = Districting(delaunay(30, 5), 3, tolerance=0.05)
    s = p.solve()
    assert (s.method, s.status) == ("portfolio", "optimal") and s.objective == s.bound
    assert s.objective == p.solve("frontier").objective == p.solve("set-partitioning").objective
    assert [t.objective for t in s.trace] == sorted((t.objective for t in s.trace), reverse=True)


def test_portfolio_hands_over_to_the_dynamic_program(monkeypatch):
    from forcopt.models.districting import portfolio

    monkeypatch.setattr(portfolio, "_ROUNDS", ((1, 2000, 0.0),))
    p = Districting(delaunay(60, 1), 3, tolerance=0.1)
    assert p.solve().status == "optimal"


def test_portfolio_ends_with_an_integer_program_where_frontiers_are_long(monkeypatch):
    from forcopt.models.districting import portfolio

    def too_wide(problem):
        raise DeclarationError("the frontier grows to 17 vertices")

    p = Districting(delaunay(36, 1), 2, tolerance=0.1)
    optimum = p.solve("frontier").objective
    monkeypatch.setattr(portfolio, "_ROUNDS", ((1, 10, 0.0),))
    monkeypatch.setattr(portfolio, "sweep_of", too_wide)
    s = p.solve()
    assert (s.status, s.objective) == ("optimal", optimum)


@pytest.mark.parametrize(("limit", "order"), [(600.0, ["proof", "drawn", "proof"]), (None, ["proof"])])
def test_portfolio_draws_small_districts_anew_between_two_proofs(monkeypatch, limit, order):
    from forcopt.models.districting import portfolio

    p = Districting(delaunay(60, 1), 5, tolerance=0.05)
    far, near = (p.solve("local-search", restarts=1, steps=n, seed=0).decision for n in (2_000, 200_000))
    assert near.cost < far.cost
    called = []

    def proof(problem, *, start, **options):
        called.append(("proof", start, options["time_limit"]))
        return Outcome(start, 0.0, Status.FEASIBLE)

    def drawn(problem, *, start, **options):
        called.append(("drawn", start, options["time_limit"]))
        return Outcome(near)

    monkeypatch.setattr(portfolio, "_ROUNDS", ((1, 10, 1), (1, 10, 1)))
    monkeypatch.setattr(portfolio, "local_search", lambda problem, **options: Outcome(far))
    monkeypatch.setattr(portfolio, "column_generation", proof)
    monkeypatch.setattr(portfolio, "large_neighbourhood", drawn)
    s = p.solve("portfolio", time_limit=limit)
    assert [name for name, *_ in called] == order
    assert called[-1][1].cost == s.objective == (near.cost if limit else far.cost)
    if limit:  # shares of the time that is left
        assert called[0][2] < limit / 3 < called[1][2] <= called[2][2]


def test_portfolio_stops_when_told():
    p = Districting(delaunay(60, 1), 5, tolerance=0.02)
    s = p.solve(on_improvement=lambda step: True)
    assert s.status == "feasible" and len(s.trace) == 1


def test_portfolio_says_what_it_cannot_take():
    wide = Districting(grid(12, 12), 2, tolerance=0.1, objective="inertia")
    with pytest.raises(DeclarationError, match="at most 128 nodes"):
        wide.solve()


def test_long_narrow_graphs_of_many_nodes_are_solved():
    p = Districting(grid(3, 60), 5, tolerance=0)
    assert p.solve(time_limit=60).objective == 12


def test_recom():
    p = Districting(grid(6, 6), 4, tolerance=0.2)
    s = p.solve("recom", steps=300, seed=1)
    assert s.status == "approximate" and s.evaluation.feasible and s.objective >= 12
    again = p.solve("recom", steps=300, seed=1)
    assert again.objective == s.objective and again.iterations == s.iterations == 300
    bursts = p.solve("recom", steps=300, burst=10, tree="least", seed=1)
    assert bursts.evaluation.feasible and bursts.objective >= 12
    alone = Districting(grid(2, 3), 1, tolerance=0.2).solve("recom", seed=1)  # there is nothing to merge
    assert alone.objective == 0 and alone.iterations == 0


def path_of_four(population):
    graph = nx.Graph([(0, 1), (0, 2), (2, 3)])
    nx.set_node_attributes(graph, dict(enumerate(population)), "population")
    return graph


@pytest.mark.parametrize(
    ("problem", "moves"),
    [
        (Districting(grid(2, 4, population=0), 2, bounds=(0, 5)), True),
        (Districting(grid(2, 4), 2, tolerance=0), True),
        (Districting(grid(1, 6, population=[5, 1, 1, 1, 1, 5]), 2, bounds=(6, 8)), True),
        (Districting(path_of_four([3, 7, 4, 5]), 2, tolerance=0.3), True),
        (Districting(grid(1, 4), 2, tolerance=0, side_constraints=[CutLimit(0)]), False),
    ],
)
def test_a_recom_chain_says_whether_it_moves(problem, moves):
    s = problem.solve("recom", steps=10, seed=1)
    if moves:
        assert s.evaluation.feasible and s.message == "steps of the chain: 10"
    else:
        assert s.decision is None and "no plan to start" in s.reason


def next_plans(problem, labels, weight_of_tree):
    """The law of ReCom's next plan, over all spanning trees of each pair of districts."""
    graph, people = nx.Graph(problem.arrays.edges.tolist()), problem.arrays.weights
    low, high = problem.population_bounds
    cut = [(u, v) for u, v in graph.edges if labels[u] != labels[v]]
    law, known = {}, {}
    for u, v in cut:
        pair = [w for w in graph if labels[w] in (labels[u], labels[v])]
        merged, of_pair = graph.subgraph(pair), known.setdefault(frozenset(pair), {})
        for edges in combinations(merged.edges, len(pair) - 1) if not of_pair else ():
            tree = nx.Graph(edges)
            if tree.number_of_nodes() < len(pair) or not nx.is_connected(tree):
                continue
            found = []
            for e in edges:
                rest = tree.copy()
                rest.remove_edge(*e)
                sides = list(nx.connected_components(rest))
                if all(low <= sum(people[w] for w in side) <= high for side in sides):
                    found.append(frozenset(frozenset(side) for side in sides))
            for sides in found:
                of_pair[sides] = of_pair.get(sides, 0.0) + weight_of_tree(merged, tree) / len(found)
        others = {d: frozenset(w for w in graph if labels[w] == d) for d in set(labels.tolist())}
        others = frozenset(side for d, side in others.items() if d not in (labels[u], labels[v]))
        total = sum(of_pair.values())
        for sides, weight in of_pair.items():
            plan = sides | others
            law[plan] = law.get(plan, 0.0) + weight / total / len(cut)
    return law


def of_least_trees(merged, tree):
    """The chance that Kruskal's algorithm gives a tree, for random orders of the edges."""
    ends, chance = [tuple(sorted(e)) for e in tree.edges], 0.0
    for order in permutations(ends):
        joined, left, product = nx.Graph(), set(map(frozenset, merged.edges)), 1.0
        joined.add_nodes_from(merged)
        for e in order:
            left = {f for f in left if not nx.has_path(joined, *f)}
            product /= len(left)
            joined.add_edge(*e)
        chance += product
    return chance


@pytest.mark.parametrize("tree", ["uniform", "least"])
def test_a_step_of_recom_has_its_law(tree):
    p = Districting(grid(2, 4, population=[1, 2, 1, 1, 1, 1, 2, 1]), 3, bounds=(2, 5))
    start = Plan.from_labels(p, [0, 0, 1, 1, 0, 2, 2, 1])
    law = next_plans(p, start.labels, (lambda *_: 1.0) if tree == "uniform" else of_least_trees)
    assert len(law) > 6 and sum(law.values()) == pytest.approx(1)
    rng, draws, seen = np.random.default_rng(5), 20_000, Counter()
    for _ in range(draws):
        chain = ReCom(p, start, rng, tree)
        assert chain.run(1) == 1
        seen[frozenset(frozenset(np.flatnonzero(chain.labels == d).tolist()) for d in range(3))] += 1
    assert set(seen) <= set(law)
    distance = sum((seen[plan] - draws * chance) ** 2 / (draws * chance) for plan, chance in law.items())
    assert distance < chi2.isf(1e-5, len(law) - 1)


def test_a_chain_keeps_its_books():
    people = np.random.default_rng(3).integers(1, 9, 49).tolist()
    p = Districting(grid(7, 7, population=people), 5, tolerance=0.3)
    chain = ReCom(p, p.solve("local-search", seed=1).decision, seed=2)
    for _ in range(200):
        assert chain.run(3) == 3
        plan = chain.plan
        assert p.evaluate(plan).feasible and chain.cut_edges == len(plan.cut_edges)


def test_a_chain_stays_within_side_constraints():
    graph = grid(6, 6)
    for v in graph:
        graph.nodes[v]["county"] = v // 6
    p = Districting(graph, 4, tolerance=0.2, side_constraints=[SplitLimit(limit=4)])
    drawn = p.ensemble("recom", size=40, seed=1)
    assert len(drawn) == 40 and drawn.values("splits").max() <= 4


def test_the_law_is_that_of_gerrychain():
    pytest.importorskip("gerrychain", reason="the package gerrychain is not installed")
    from gerrychain.proposals import recom
    from gerrychain.tree import bipartition_tree

    p = Districting(grid(3, 4), 3, tolerance=0.25)
    start = Plan.from_labels(p, [v // 4 for v in range(12)])
    random.seed(1)
    theirs, ours, rng, draws = Counter(), Counter(), np.random.default_rng(1), 1500
    split = partial(bipartition_tree, max_attempts=1000, allow_pair_reselection=True)
    partition = start.to_gerrychain()
    for _ in range(draws):
        state = recom(partition, "population", p.mean, 0.25, bipartition_tree_fn=split)
        ids = getattr(state.graph, "internal_node_id_for_original_nx_node_id", lambda v: v)
        theirs[Plan.from_labels(p, [state.assignment[ids(v)] for v in p.nodes])] += 1
        chain = ReCom(p, start, rng, "least")
        chain.run(1)
        ours[chain.plan] += 1
    table = np.array([[ours[plan], theirs[plan]] for plan in {*ours, *theirs}])
    table = np.vstack([table[table.sum(axis=1) >= 10], table[table.sum(axis=1) < 10].sum(axis=0) + 1])
    assert chi2_contingency(table).pvalue > 1e-4


@pytest.mark.parametrize(
    "method",
    ["portfolio", "column-generation", "set-partitioning", "frontier", "sphere-cut", "local-search", "recom"],
)
@pytest.mark.parametrize("districts", [2, 5])
def test_every_method_keeps_its_time_limit(method, districts):
    p = Districting(delaunay(110, 7), districts, tolerance=0.02)
    p.solve(method, time_limit=0.0)  # compiles, plans the program
    with spends_at_most(30):
        s = p.solve(method, time_limit=0.5)
    assert s.status in ("optimal", "feasible", "limit", "approximate")
    if s.decision is not None:
        assert p.evaluate(s.decision).feasible and not s.bound > s.objective


def test_bounds_rise_from_the_start():
    p = Districting(delaunay(60, 2), 4, tolerance=0.05)
    s = p.solve("column-generation", seed=1)
    bounds = [step.bound for step in s.trace]
    assert s.status == "optimal" and bounds == sorted(bounds) and len(set(bounds)) > 3
    early = p.solve("column-generation", seed=1, on_improvement=lambda step: step.bound >= s.objective / 2)
    assert s.objective / 2 <= early.bound <= s.objective


def test_portfolio_has_a_bound_of_half_the_optimum_early():
    p = Districting(delaunay(120, 5), 3, tolerance=0.005)
    s = p.solve(seed=1, on_improvement=lambda step: step.bound >= step.objective / 2)
    assert s.bound >= s.objective / 2


def test_local_search_goes_on_from_a_start():
    p = Districting(delaunay(60, 1), 4, tolerance=0.05)
    first = p.solve("local-search", restarts=1, steps=30_000, seed=1)
    best = p.solve("local-search", start=first.decision, restarts=3, steps=30_000, seed=1)
    assert best.evaluation.feasible and best.objective <= first.objective
    kept = p.solve("local-search", start=best.decision, restarts=1, steps=1, seed=1)
    assert kept.objective <= best.objective
    with pytest.raises(DeclarationError, match="start: the plan is not feasible"):
        p.solve("local-search", start={v: min(v, 3) for v in p.graph})


@pytest.mark.parametrize("seed", range(4))
def test_among_plans_of_fewest_splits_the_cut_is_least(seed):
    graph = grid(4, 5)
    for v in graph:
        graph.nodes[v]["county"] = (v + seed) // 6
    p = Districting(graph, 4, tolerance=0.2, objective="splits")
    s = p.solve(seed=seed)
    rule = SplitLimit(limit=int(s.objective))
    within = p.replace(objective="cut", side_constraints=[rule]).solve("set-partitioning")
    assert s.status == within.status == "optimal" and s.decision.cost == within.objective
    if s.objective > 0:
        fewer = p.replace(objective="cut", side_constraints=[SplitLimit(limit=int(s.objective) - 1)])
        assert fewer.solve("set-partitioning").status == "infeasible"
