"""Reversible ReCom and sequential Monte Carlo against the spanning-tree law, by enumeration."""

from collections import Counter
from itertools import combinations
from math import inf, log, nan

import networkx as nx
import numpy as np
import pytest
from scipy.stats import chi2

from forcopt.data import delaunay, grid
from forcopt.errors import DeclarationError
from forcopt.models import Districting
from forcopt.models.districting import CutLimit, Ensemble, Plan, ReCom, Share, smc

SMALL = {
    "nine": Districting(grid(3, 3), 3, tolerance=0),
    "squares": Districting(grid(3, 4), 3, tolerance=0),
    "wide": Districting(grid(3, 4), 3, tolerance=0.25),
    "populations": Districting(grid(2, 4, population=[1, 2, 1, 1, 1, 1, 2, 1]), 3, bounds=(2, 5)),
    "zeros": Districting(grid(2, 4, population=[0, 2, 1, 1, 3, 0, 2, 1]), 3, bounds=(2, 5)),
    "triangles": Districting(delaunay(9, 4, population=(1, 4)), 3, tolerance=0.5),
}


def numbers_of_trees(problem, plan):
    """The product over the districts, by Kirchhoff's theorem."""
    product = 1.0
    for part in plan.parts:
        laplacian = nx.laplacian_matrix(problem.graph.subgraph(part)).toarray()
        product *= np.linalg.det(laplacian[1:, 1:])
    return product


def law_of(problem, rho=1.0, kept=lambda plan: True):
    """The spanning-tree law to a power, over all plans."""
    weights = {p: numbers_of_trees(problem, p) ** rho for p in problem.count().iterate() if kept(p)}
    total = sum(weights.values())
    return {plan: weight / total for plan, weight in weights.items()}


def distance(seen, law):
    """Chi-square of weights of plans against a law, for one draw."""
    assert set(seen) <= set(law)
    total = sum(seen.values())
    return sum((seen[plan] / total - chance) ** 2 / chance for plan, chance in law.items())


def steps_of(problem, plan, known):
    """The law of the next plan of the reversible chain, over all spanning trees of each pair of districts."""
    graph, people = problem.graph, dict(zip(problem.nodes, problem.arrays.weights.tolist(), strict=True))
    low, high = problem.population_bounds
    law = Counter()
    for a, b in combinations(range(len(plan.parts)), 2):
        pair = [*plan.parts[a], *plan.parts[b]]
        crossing = nx.cut_size(graph, plan.parts[a], plan.parts[b])
        merged, key = graph.subgraph(pair), frozenset(pair)
        if crossing and key not in known:
            trees, met = 0, Counter()
            spare, light = sum(people[v] for v in pair) - 2 * low, sorted(people[v] for v in pair)
            most = 1 + max(r for r in range(len(pair) + 1) if sum(light[:r]) <= spare)
            for edges in combinations(merged.edges, len(pair) - 1):
                tree = nx.Graph(edges)
                if tree.number_of_nodes() < len(pair) or not nx.is_connected(tree):
                    continue
                trees, ways = trees + 1, 0
                for e in edges:
                    sides = list(nx.connected_components(nx.restricted_view(tree, [], [e])))
                    if all(low <= sum(people[v] for v in side) <= high for side in sides):
                        met[frozenset(map(frozenset, sides))] += 1
                        ways += 1
                assert ways <= most
            known[key] = {sides: count / trees / most for sides, count in met.items()}
        others = [part for d, part in enumerate(plan.parts) if d not in (a, b)]
        for sides, chance in known[key].items() if crossing else ():
            law[Plan.of(problem, [*others, *sides])] += crossing / len(graph.edges) * chance
    law[plan] += 1 - sum(law.values())
    return law


@pytest.mark.parametrize("name", ["nine", "populations", "zeros", "triangles"])
def test_the_reversible_steps_keep_the_spanning_tree_law(name):
    p, known = SMALL[name], {}
    law = law_of(p)
    steps = {plan: steps_of(p, plan, known) for plan in law}
    assert len(law) > 8 and min(min(step.values()) for step in steps.values()) >= 0
    for one, chance in law.items():
        for two in law:
            assert chance * steps[one][two] == pytest.approx(law[two] * steps[two][one], abs=1e-12)
    moves = nx.DiGraph([(one, two) for one, step in steps.items() for two in step if step[two] > 0])
    assert nx.is_strongly_connected(moves)

    start, rng, draws, seen = max(law, key=law.get), np.random.default_rng(4), 4000, Counter()
    for _ in range(draws):
        chain = ReCom(p, start, rng, reversible=True)
        assert chain.run(1) == 1
        seen[chain.plan] += 1
    expected = {plan: chance for plan, chance in steps[start].items() if chance > 1e-12}
    assert draws * distance(seen, expected) < chi2.isf(1e-5, len(expected) - 1)


@pytest.mark.parametrize("name", ["wide", "zeros"])
def test_a_long_reversible_chain_has_the_spanning_tree_law(name):
    p, draws = SMALL[name], 5000
    law = law_of(p)
    drawn = p.ensemble("reversible-recom", size=draws, thin=60, seed=7)
    seen = Counter(drawn.plans)
    bound = chi2.isf(1e-5, len(law) - 1)
    assert len(drawn) == draws and draws * distance(seen, law) < bound
    assert draws * distance(seen, law_of(p, 0)) > 2 * bound


def test_the_reversible_chain_stays_where_a_constraint_is_broken():
    free = SMALL["wide"]
    p = free.replace(side_constraints=[CutLimit(7)])
    law = law_of(free, kept=lambda plan: plan.cost <= 7)
    start = min(law, key=lambda plan: plan.cost)
    chain, seen = ReCom(p, start, seed=2, reversible=True), Counter()
    for _ in range(700):
        assert chain.run(60) == 60
        seen[chain.plan] += 1
    assert 10 < len(law) < 100 and 700 * distance(seen, law) < chi2.isf(1e-5, len(law) - 1)


def test_the_reversible_chain_keeps_its_books_and_its_trees_are_uniform():
    p = Districting(delaunay(60, 3, population=(1, 9)), 5, tolerance=0.3)
    start = p.solve("local-search", seed=1).decision
    chain = ReCom(p, start, seed=2, reversible=True)
    for _ in range(60):
        assert chain.run(100) == 100
        assert p.evaluate(chain.plan).feasible and chain.cut_edges == len(chain.plan.cut_edges)
    assert chain.plan != start
    with pytest.raises(ValueError, match="tree is 'least'; it must be 'uniform' in the reversible chain"):
        ReCom(p, start, tree="least", reversible=True)
    alone = Districting(grid(2, 2), 1, tolerance=0)
    assert ReCom(alone, Plan.from_labels(alone, [0] * 4), reversible=True).run(5) == 0


def weights_of(drawn):
    seen = Counter()
    for plan, weight in zip(drawn.plans, drawn.weights, strict=True):
        seen[plan] += weight
    return seen


@pytest.mark.parametrize(
    ("name", "rho"),
    [
        ("squares", 1), ("squares", 0), ("wide", 1), ("wide", 0), ("populations", 1), ("zeros", 0.5),
        ("triangles", 1), ("triangles", -0.5), ("path", 1),
    ],
)  # fmt: skip
def test_weighted_plans_have_the_law_of_their_power(name, rho):
    p = SMALL[name] if name in SMALL else Districting(grid(1, 12), 4, bounds=(2, 4))
    drawn, law = p.ensemble("smc", size=1000, seed=3, rho=rho), law_of(p, rho)
    # Common ancestors make the variances 1.3 to 1.6 times those of independent plans.
    size, bound = drawn.effective_size / 1.6, chi2.isf(1e-4, len(law) - 1)
    assert drawn.weights.sum() == pytest.approx(1) and len(drawn) == 1000
    assert size * distance(weights_of(drawn), law) < bound
    if name in ("squares", "wide"):  # neither another power nor other weights pass
        assert size * distance(weights_of(drawn), law_of(p, 1 - rho)) > bound
        assert rho == 1 or size * distance(Counter(drawn.plans), law) > bound


def test_weighted_plans_in_four_districts_are_uniform_or_compact():
    p = Districting(grid(4, 4), 4, tolerance=0)
    laws = {power: law_of(p, power) for power in (0, 1)}
    assert len(laws[0]) == 117
    for rho in laws:
        seen = weights_of(p.ensemble("smc", size=1000, seed=1, rho=rho))
        off = {power: sum(abs(seen[x] - y) for x, y in law.items()) / 2 for power, law in laws.items()}
        assert off[rho] < 0.25 and off[1 - rho] > 0.5


def test_weighted_plans_keep_constraints():
    graph = grid(3, 4)
    for v in graph:
        graph.nodes[v].update(some=int(v < 4), all=1)
    free = Districting(graph, 3, tolerance=0.25)
    share = Share(attribute="some", total="all", at_least=0.5)
    p = free.replace(side_constraints=[CutLimit(7), share])
    law = law_of(free, kept=lambda plan: p.evaluate(plan).feasible)
    drawn = p.ensemble("smc", size=500, seed=5)
    assert 8 < len(law) < 100
    assert drawn.effective_size / 1.6 * distance(weights_of(drawn), law) < chi2.isf(1e-4, len(law) - 1)


def test_numbers_of_trees_are_determinants():
    graph = delaunay(40, 2)
    p, rng = Districting(graph, 4, tolerance=1), np.random.default_rng(1)
    for size in (1, 2, 3, 12, 40):
        for _ in range(5):
            part = [int(rng.integers(40))]
            while len(part) < size:
                part.append(int(rng.choice(sorted(nx.node_boundary(graph, part)))))
            inside = np.isin(np.arange(40), [p.place[v] for v in part])
            laplacian = nx.laplacian_matrix(graph.subgraph(part)).toarray()
            trees = round(np.linalg.det(laplacian[1:, 1:]))
            assert smc._log_trees(p.arrays.edges, inside) == pytest.approx(log(trees))


def test_scores_of_weighted_plans_use_their_weights(tmp_path):
    p = SMALL["wide"]
    few = [p.count().unrank(cost, 0) for cost in (6, 7, 8)]
    drawn = Ensemble(p, tuple(few), "smc", np.array([0.5, 0.3, 0.2]))
    assert drawn.share_at_most("cut_edges", few[1]) == pytest.approx(0.8)
    assert drawn.effective_size == pytest.approx(1 / 0.38)
    assert drawn.scores()["weight"].tolist() == [0.5, 0.3, 0.2]
    axes = drawn.plot("cut_edges", few[0], tmp_path / "weighted.png").axes[0]
    assert [bar.get_height() for bar in axes.patches] == pytest.approx([0.5, 0.3, 0.2])
    assert axes.get_ylabel() == "weight of plans"
    with pytest.raises(ValueError, match="weighted plans are no chain"):
        drawn.convergence()
    assert Ensemble(p, tuple(few), "recom").effective_size == 3
    one, two = (p.ensemble("smc", size=30, seed=8) for _ in range(2))
    assert one.plans == two.plans and one.weights.tolist() == two.weights.tolist()


@pytest.mark.parametrize(
    ("problem", "options", "words"),
    [
        (Districting(grid(2, 4), 2, tolerance=0, seats=(1, 3)), {}, "'smc' does not take seats"),
        (Districting(grid(2, 4), 1, tolerance=0), {}, "districts is 1; it must be at least 2"),
        (
            Districting(nx.disjoint_union(grid(1, 2), grid(1, 2)), 2, tolerance=0),
            {},
            "2 components.*must be connected",
        ),
        (SMALL["wide"], {"rho": nan}, "rho is nan; it must be finite"),
        (SMALL["wide"], {"rho": inf}, "rho is inf; it must be finite"),
        (SMALL["wide"], {"rho": 0, "method": "recom"}, "rho is 0; it must be 1 for methods other than smc"),
        (Districting(grid(1, 3), 2, bounds=(2, 2)), {}, "plans of 2 districts .* trees is 0; it must be 9"),
    ],
)
def test_weighted_plans_that_cannot_be_drawn_are_refused(monkeypatch, problem, options, words):
    monkeypatch.setattr(smc, "_TREES", 100)
    with pytest.raises(ValueError, match=words):
        problem.ensemble(**{"method": "smc", "size": 9, "seed": 1, **options})


def test_what_does_not_fit_is_refused():
    p = Districting(grid(2, 4), districts=3, bounds=(1, 4))
    many = Plan.from_labels(p, range(8))
    for reversible in (False, True):  # the chain would write beyond its lists
        with pytest.raises(DeclarationError, match="the plan is not feasible: districts 0 to 2"):
            ReCom(p, many, seed=1, reversible=reversible)
    with pytest.raises(DeclarationError, match="districts of the plan is 8; it must be at most those"):
        many.scores()
    for method, option in (
        ("smc", {"thin": 3}),
        ("smc", {"start": many}),
        ("reversible-recom", {"max_cost": 4}),
    ):
        with pytest.raises(DeclarationError, match=next(iter(option))):
            p.ensemble(method, size=5, **option)
