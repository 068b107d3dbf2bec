from itertools import combinations

import numpy as np
import pytest
import strategic_oracle  # noqa: F401  (registers the oracle)
from hypothesis import given, settings
from hypothesis import strategies as st
from processor_time import spends_at_most

import forcopt as fo
from forcopt.backends.registry import backends
from forcopt.models.strategic import LeastEffortClassification, OpenCriteria, StrategicClassification
from forcopt.models.strategic.criteria import largest_gaming_free_set
from forcopt.models.strategic.instances import max_cover, random_discrete

LP_BACKENDS = [n for n, b in backends().items() if not b.missing() and not b.capabilities.only_integer]
MILP_BACKENDS = [n for n, b in backends().items() if not b.missing() and "integer" in b.capabilities.kinds]

W2 = [
    (0, 0, 1, 0),
    (0, 1, 2, 1),
    (0, 2, 3, 1),
    (1, 0, 1, 1),
    (2, 1, 1, 1),
    (2, 2, 2, 0),
    (3, 3, 1, 0),
    (3, 2, 2, 1),
]


def w2(**fields):
    return StrategicClassification(**{"agents": 4, "criteria": 4, "edges": W2, "value": 3, **fields})


@st.composite
def graphs(draw, most_agents=7, most_criteria=5, weighted=True):
    n, m = draw(st.integers(1, most_agents)), draw(st.integers(1, most_criteria))
    seed = draw(st.integers(0, 10**6))
    rng = np.random.default_rng(seed)
    p = random_discrete(n, m, density=rng.choice([0.4, 0.7, 1.0]), seed=rng)
    edges = p.edges.copy()
    if draw(st.booleans()):  # many ties, some at the value
        edges[:, 2] = rng.integers(1, 4, len(edges))
    return StrategicClassification(
        agents=n,
        criteria=m,
        edges=edges,
        value=draw(st.sampled_from([3, 60, 100])),
        weights=rng.integers(0, 4, n) if weighted and draw(st.booleans()) else None,
        ties=draw(st.sampled_from(["improvement", "gaming", "listed"])),
        zero_utility=draw(st.sampled_from(["take", "improve", "refuse"])),
    )


def changed(problem, **fields):
    kept = {name: getattr(problem, name) for name in type(problem).model_fields}
    return type(problem)(**{**kept, **fields})


def responses_by_definition(problem, decision):
    """Each agent's best edge, by a plain reading of the declaration."""
    found = {}
    for place, (i, p, cost, improves) in enumerate(problem.edges.tolist()):
        value = float(np.broadcast_to(problem.value, problem.agents)[int(i)])
        at_value = {"take": True, "improve": improves == 1, "refuse": False}[problem.zero_utility]
        if int(p) not in decision or cost > value or (cost == value and not at_value):
            continue
        tie = {"improvement": (1 - improves, p), "gaming": (improves, p), "listed": (place,)}[problem.ties]
        found.setdefault(int(i), []).append(((cost, *tie), int(p), cost, improves))
    return {i: min(edges)[1:] for i, edges in found.items()}


def subsets(m):
    return [set(c) for k in range(m + 1) for c in combinations(range(m), k)]


# -- responses -----------------------------------------------------------------------------------------------


@given(graphs(), st.sets(st.integers(0, 4)))
@settings(max_examples=60, deadline=None)
def test_agents_respond_as_defined(p, decision):
    decision = {q for q in decision if q < p.criteria}
    r = p.simulate(decision)
    expected = responses_by_definition(p, decision)
    for i in range(p.agents):
        choice, cost, improves = expected.get(i, (-1, 0.0, None))
        assert (r.choice[i], r.cost[i]) == (choice, cost)
        assert (r.true_positive[i], r.false_positive[i]) == (improves == 1, improves == 0)
    weights = p.agent_weights
    e = p.evaluate(decision)
    assert e.metrics["true_positives"] == sum(weights[i] for i, v in expected.items() if v[2] == 1)
    assert e.metrics["false_positives"] == sum(weights[i] for i, v in expected.items() if v[2] == 0)
    assert e.metrics["effort"] == pytest.approx(sum(weights[i] * v[1] for i, v in expected.items()))
    assert e.violation == e.metrics["false_positives"]


def test_ties_are_broken_as_declared():
    edges = [(0, 2, 1, 1), (0, 0, 1, 0), (0, 1, 1, 1)]
    choice = {
        t: w2(agents=1, criteria=3, edges=edges, ties=t).simulate({0, 1, 2}).choice[0]
        for t in ("improvement", "gaming", "listed")
    }
    assert choice == {"improvement": 1, "gaming": 0, "listed": 2}


def test_zero_utility_is_taken_as_declared():
    edges = [(0, 0, 3, 1), (1, 0, 3, 0)]
    accepted = {
        z: (w2(agents=2, criteria=1, edges=edges, zero_utility=z).simulate({0}).choice >= 0).tolist()
        for z in ("take", "improve", "refuse")
    }
    assert accepted == {"take": [True, True], "improve": [True, False], "refuse": [False, False]}


def test_values_differ_by_agent():
    p = w2(value=[2, 0, 1, 3])
    assert p.simulate({1, 2}).choice.tolist() == [1, -1, 1, 2]
    assert p.simulate({0}).choice.tolist() == [0, -1, -1, -1]


# -- methods agree -------------------------------------------------------------------------------------------


@given(graphs())
@settings(max_examples=25, deadline=None)
def test_without_false_positives_four_methods_agree(p):
    best = p.solve("enumeration")
    assert best.status == fo.Status.OPTIMAL and best.evaluation.feasible
    greedy = p.solve("greedy-deletion")
    assert greedy.status == fo.Status.OPTIMAL and greedy.evaluation.feasible
    assert greedy.objective == best.objective
    milp = p.solve("milp")
    assert milp.status == fo.Status.OPTIMAL and milp.objective == pytest.approx(best.objective)
    lp = p.solve("lp")
    assert lp.evaluation.feasible and lp.objective == pytest.approx(best.objective)
    assert lp.bound == pytest.approx(best.objective, abs=1e-5)


@given(graphs(), st.sampled_from([1, 2, None]), st.sampled_from([0, 0.5, 2]))
@settings(max_examples=25, deadline=None)
def test_with_false_positives_the_milp_finds_what_enumeration_finds(p, limit, penalty):
    p = changed(p, max_false_positives=limit, penalty=penalty)
    best, milp, lp = p.solve("enumeration"), p.solve("milp"), p.solve("lp")
    assert milp.status == fo.Status.OPTIMAL and milp.objective == pytest.approx(best.objective)
    assert lp.evaluation.feasible and lp.objective <= best.objective + 1e-9
    assert lp.bound >= best.objective - 1e-6
    assert p.solve("greedy-deletion").objective <= best.objective


@given(graphs(weighted=False), st.sampled_from([0, 1, 2]), st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_groups_are_raised_from_the_smallest(p, limit, seed):
    groups = np.random.default_rng(seed).integers(0, 3, p.agents)
    groups = np.unique(groups, return_inverse=True)[1]
    p = changed(p, max_false_positives=limit, groups=groups)

    def profile(decision):
        r = p.simulate(decision)
        return tuple(np.sort(np.bincount(groups, r.true_positive, groups.max() + 1)))

    allowed = [q for q in subsets(p.criteria) if p.evaluate(q).feasible]
    best = max(profile(q) for q in allowed)
    for method in ("enumeration", "milp"):
        s = p.solve(method)
        assert s.evaluation.feasible and profile(s.decision) == best, method
        assert s.objective == best[0]
    if limit == 0:
        assert profile(p.solve("greedy-deletion").decision) == best
        assert profile(p.solve("lp").decision) == best


@given(graphs(), st.sampled_from([0, 1, None]), st.integers(0, 5))
@settings(max_examples=20, deadline=None)
def test_least_effort(p, limit, wanted):
    kept = {n: getattr(p, n) for n in LeastEffortClassification.model_fields if n != "min_true_positives"}
    q = LeastEffortClassification(**{**kept, "max_false_positives": limit, "min_true_positives": wanted})
    best, milp = q.solve("enumeration"), q.solve("milp")
    efforts = [e.objective for e in map(q.evaluate, subsets(q.criteria)) if e.feasible]
    assert best.status == milp.status == (fo.Status.OPTIMAL if efforts else fo.Status.INFEASIBLE)
    if efforts:
        assert best.objective == pytest.approx(min(efforts)) and milp.objective == pytest.approx(min(efforts))
    else:
        assert "min_true_positives" in best.reason and milp.reason == best.reason


@pytest.mark.parametrize("backend", MILP_BACKENDS)
@pytest.mark.parametrize("limit", [0, 1, 2])
def test_every_milp_backend_agrees(backend, limit):
    for seed in range(3):
        p = random_discrete(7, 5, seed=seed, max_false_positives=limit)
        assert p.solve("milp", backend=backend).objective == pytest.approx(p.solve("enumeration").objective)


@pytest.mark.parametrize("limit", [0, 1])
@pytest.mark.parametrize("method", ["milp", "lp"])
def test_the_optimum_is_certified_in_exact_arithmetic(method, limit):
    found = w2(max_false_positives=limit).solve(method).certify()
    assert found.feasible and found.optimal and found.objective == 3


@pytest.mark.parametrize("backend", MILP_BACKENDS)
def test_every_milp_backend_agrees_on_groups_and_effort(backend):
    p = w2(groups=[0, 1, 0, 1], max_false_positives=1)
    s = p.solve("milp", backend=backend)
    values = sorted(s.evaluation.metrics[f"group {h}"] for h in (0, 1))
    best = p.solve("enumeration").evaluation.metrics
    assert values == sorted(best[f"group {h}"] for h in (0, 1))
    cheap = LeastEffortClassification(4, 4, W2, value=3, min_true_positives=2)
    assert cheap.solve("milp", backend=backend).objective == 3


@pytest.mark.parametrize("backend", LP_BACKENDS)
def test_every_lp_backend_agrees_where_the_relaxation_is_exact(backend):
    p = random_discrete(8, 5, seed=3)
    s = p.solve("lp", backend=backend)
    assert s.objective == p.solve("enumeration").objective and s.bound == pytest.approx(s.objective, abs=1e-3)


def test_the_formulation_composes():
    m = fo.Model()
    a, b = w2().declare(m, "milp"), w2(max_false_positives=1).declare(m, "milp")
    m.subject_to(a.is_open[2] + b.is_open[2] <= 1)
    m.maximize(a.values.sum() + b.values.sum())
    assert m.solve().objective == 5


# -- what the paper claims of greedy deletion ----------------------------------------------------------------


@given(graphs())
@settings(max_examples=40, deadline=None)
def test_the_greedy_set_holds_every_gaming_free_set(p):
    """Theorem 2 and property a, and that gaming-free sets are closed under union (weights of 0 do not
    count)."""
    is_open, passes = largest_gaming_free_set(p)
    largest = set(np.flatnonzero(is_open).tolist())
    assert passes <= p.criteria  # Proposition 1
    counted = p.agent_weights > 0
    served = p.simulate(largest).true_positive
    free = [q for q in subsets(p.criteria) if not p.simulate(q).false_positives]
    assert largest in free
    assert set().union(*free) == largest
    for q in free:
        r = p.simulate(q)
        assert not (r.true_positive & ~served & counted).any()
        again = p.simulate(largest)
        assert (again.cost <= r.cost)[r.true_positive & counted].all()  # property e


@given(graphs(), st.randoms(use_true_random=False))
@settings(max_examples=20, deadline=None)
def test_the_order_of_agents_does_not_matter(p, random):
    p = changed(p, ties="improvement")
    order = list(range(p.agents))
    random.shuffle(order)
    edges = p.edges.copy()
    edges[:, 0] = np.array(order)[edges[:, 0].astype(int)]
    weights = None if p.weights is None else p.weights[np.argsort(order)]
    q = changed(p, edges=edges[::-1], weights=weights)
    assert p.solve("greedy-deletion").decision == q.solve("greedy-deletion").decision


def test_greedy_deletion_cascades_and_counts_passes():
    """Agent i games on criterion i once i + 1 is gone."""
    m = 50
    edges = (
        [(m - 1, m - 1, 1, 0)]
        + [(i, i + 1, 1, 1) for i in range(m - 1)]
        + [(i, i, 2, 0) for i in range(m - 1)]
    )
    s = StrategicClassification(agents=m, criteria=m, edges=edges, value=2).solve("greedy-deletion")
    assert s.decision == set() and s.iterations == m and s.status == fo.Status.OPTIMAL


def test_two_hundred_thousand_edges_are_quick():
    p = random_discrete(20_000, 200, density=0.05, gaming=0.5, gameable=0.3, seed=1)
    with spends_at_most(30):
        s = p.solve("greedy-deletion")
    assert s.decision == set(range(60, 200)) and s.evaluation.feasible


def test_any_weight_below_the_lightest_agent_means_none():
    p = w2(weights=[2, 3, 0, 2], max_false_positives=1.5)
    assert p.solve("greedy-deletion").status == fo.Status.OPTIMAL
    assert p.solve("greedy-deletion").objective == p.solve("enumeration").objective
    assert w2(max_false_positives=1).solve("greedy-deletion").status == fo.Status.APPROXIMATE


# -- the reduction, and edge cases ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_max_cover(seed):
    rng = np.random.default_rng(seed)
    triples = list(combinations(range(6), 3))
    sets = [triples[k] for k in rng.choice(len(triples), 4, replace=False)]
    for most in range(4):
        cover = max(len(set().union(*c)) for c in combinations(sets, most))
        assert max_cover(sets, 6, most).solve().objective == cover


def test_nobody_nothing_and_only_gaming():
    for p in (
        StrategicClassification(agents=0, criteria=3, edges=[]),
        StrategicClassification(agents=3, criteria=0, edges=[]),
        StrategicClassification(agents=3, criteria=2, edges=[]),
        w2(agents=4, edges=[(i, 0, 1, 0) for i in range(4)], criteria=1),
    ):
        for method in ("milp", "lp", "greedy-deletion", "enumeration"):
            s = p.solve(method)
            assert s.objective == 0 and s.evaluation.feasible and s.evaluation.metrics["false_positives"] == 0
    assert p.solve("greedy-deletion").decision == set()


def test_a_decision_prints_plots_and_is_checked(tmp_path):
    p = w2()
    s = p.solve()
    assert repr(s.decision) == "OpenCriteria({1, 2})" and s.decision == OpenCriteria([2, 1])
    p.simulate(s.decision).plot(tmp_path / "who.png")
    assert (tmp_path / "who.png").stat().st_size > 1000
    for bad in ([4], [-1], [0.5], [True, False]):
        with pytest.raises(fo.DeclarationError, match="decision holds"):
            p.evaluate(bad)


def test_the_declaration_is_a_file(tmp_path):
    p = w2(weights=[1, 2, 3, 4], groups=[0, 0, 1, 1], max_false_positives=None, ties="listed")
    assert StrategicClassification.from_dict(p.to_dict()) == p
    q = LeastEffortClassification(agents=4, criteria=4, edges=W2, min_true_positives=2)
    assert LeastEffortClassification.from_dict(q.to_dict()) == q


def test_inherited_fields_are_described():
    from forcopt.cli.catalogue import _documentation

    meanings = _documentation(StrategicClassification)[2]
    assert set(StrategicClassification.model_fields) <= set(meanings)
    assert meanings["max_false_positives"].startswith("The weight of false positives")


# -- features ------------------------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.booleans())
@settings(max_examples=30, deadline=None)
def test_edges_of_the_linear_model(seed, exact):
    rng = np.random.default_rng(seed)
    n, m, d = rng.integers(1, 6, 3)
    X, P = rng.integers(0, 5, (n, d)).astype(float), rng.integers(0, 6, (m, d)).astype(float)
    a, b, c = rng.integers(0, 3, d).astype(float), float(rng.integers(1, 12)), rng.choice([0.2, 0.5, 1.0], d)
    improvable = rng.random(d) < 0.5
    p = StrategicClassification.from_features(X, P, (a, b), c, improvable, exact_target=exact)
    found = {(int(i), int(q)): (w, g) for i, q, w, g in p.edges.tolist()}
    for i in range(n):
        for q in range(m):
            cost = sum(c[j] * max(P[q, j] - X[i, j], 0) for j in range(d))
            seen = P[q] if exact else np.maximum(X[i], P[q])
            true = np.where(improvable, seen, X[i])
            if cost <= 1 + 1e-12:
                assert found.pop((i, q)) == (pytest.approx(cost), float(a @ true >= b - 1e-12))
    assert not found


def test_exact_targets_may_lower_an_improvable_feature():
    fields = {
        "X": [[5, 0]],
        "targets": [[3, 1]],
        "truth": ([1, 1], 5),
        "costs": [1, 1],
        "improvable": [True, False],
    }
    assert StrategicClassification.from_features(**fields).simulate({0}).false_positives == 1
    kept = StrategicClassification.from_features(**fields, exact_target=False)
    assert kept.simulate({0}).true_positives == 1


# -- bad input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"edges": [(0, 0, -1, 0)]}, r"edges\[0\]: the cost is -1"),
        ({"edges": [(0, 0, np.nan, 0)]}, "edges: the array.0, 2. is nan"),
        ({"edges": [(0, 4, 1, 0)]}, r"edges\[0\]: the criterion is 4.*0 to 3"),
        ({"edges": [(0, 0, 1, 1), (7, 0, 1, 0)]}, r"edges\[1\]: the agent is 7.*0 to 3"),
        ({"edges": [(0.5, 0, 1, 0)]}, r"the agent is 0.5"),
        ({"edges": [(0, 0, 1, 1), (0, 1, 1, 1), (0, 0, 2, 0)]}, r"edges\[2\]: agent 0 and criterion 0.*once"),
        ({"edges": [(0, 0, 1)]}, r"edges: the shape is \(1, 3\)"),
        ({"edges": [(0, 0, 1, 2)]}, "improves is 2"),
        ({"edges": [(0, 0, 1, "red")]}, "edges: the array must be numbers"),
        ({"max_false_positives": -1}, "max_false_positives is -1"),
        ({"penalty": -1}, "penalty is -1"),
        ({"agents": -1}, "agents is -1"),
        ({"value": [1, 2]}, r"value: the shape is \(2,\)"),
        ({"weights": [1, 2]}, r"weights: the shape is \(2,\)"),
        ({"weights": [1, 2, -3, 1]}, r"weights: the array\[2\] is -3"),
        ({"groups": [0, 1]}, r"groups: the shape is \(2,\)"),
        ({"groups": [0, 2, 2, 0]}, r"groups: the numbers are \[0, 2\]"),
        ({"ties": "random"}, "ties is 'random'"),
        ({"zero_utility": "no"}, "zero_utility is 'no'"),
        ({"colour": 1}, "unknown field 'colour' of StrategicClassification"),
    ],
)
def test_bad_declarations_are_refused(fields, words):
    with pytest.raises(ValueError, match=words):
        w2(**fields)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"targets": [[1, 2, 3]]}, r"targets has shape \(1, 3\)"),
        ({"truth": ([1, -1], 5)}, r"truth\[0\]: the array\[1\] is -1"),
        ({"truth": ([1], 5)}, r"truth\[0\]: the shape is \(1,\)"),
        ({"costs": [1, 0]}, r"costs: the array\[1\] is 0; it must be positive"),
        ({"costs": [1]}, r"costs: the shape is \(1,\)"),
        ({"improvable": [2, 0]}, "must be true or false"),
        ({"improvable": [0]}, r"improvable: the shape is \(1,\)"),
        ({"X": [1, 2]}, r"X: the shape is \(2,\)"),
    ],
)
def test_bad_features_are_refused(fields, words):
    good = {
        "X": [[5, 0]],
        "targets": [[3, 1]],
        "truth": ([1, 1], 5),
        "costs": [1, 1],
        "improvable": [True, False],
    }
    with pytest.raises(fo.DeclarationError, match=words):
        StrategicClassification.from_features(**{**good, **fields})


def test_enumeration_refuses_what_it_cannot_list():
    with pytest.raises(fo.DeclarationError, match="criteria is 21"):
        StrategicClassification(agents=1, criteria=21, edges=[]).solve("enumeration")


@pytest.mark.parametrize("ties", ["improvement", "gaming", "listed"])
def test_a_refused_edge_plays_no_part_in_ties(ties):
    """Gaming for all that it brings is refused; improving at the same cost is not."""
    edges = [(0, 0, 1, False), (0, 1, 1, True)]
    p = StrategicClassification(agents=1, criteria=2, edges=edges, ties=ties, zero_utility="improve")
    assert p.simulate([0, 1]).true_positive.all() and p.simulate([0]).false_positives == 0
    assert all(p.solve(method).objective == 1 for method in p.methods)
