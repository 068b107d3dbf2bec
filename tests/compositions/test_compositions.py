"""Problems of different papers in one model, each on two backends and against brute force."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

import forcopt as fo
from forcopt.data import grid
from forcopt.fairness import SELECTION, DemographicParity, EqualizedOdds, GroupRates, PairwiseFairness
from forcopt.models import (
    Districting,
    FairClassification,
    FairPostprocessing,
    LexifairClassification,
    LexifairRegression,
    MulticlassPostprocessing,
    ScorePostprocessing,
    StratifiedAllocation,
)
from forcopt.models.fair_classification import FairClassifier, Thresholds
from forcopt.models.fair_postprocessing import ThresholdPostprocessor
from forcopt.models.lexifair import Stumps, groups_of
from forcopt.models.strategic.instances import random_discrete
from forcopt.privacy import Laplace, PureDP, RandomizedResponse, calibrate


@pytest.mark.parametrize("backend", ["highs", "scip"])
def test_leximax_over_the_deviations_of_districts(backend):
    """The plan whose worst district is as near to the mean as can be, then the second worst, and so on."""
    people = np.random.default_rng(3).integers(50, 150, 9)
    p = Districting(graph=grid(3, 3, population=people), districts=3, tolerance=0.4)
    m = fo.Model("even districts")
    plan = p.declare(m)
    m.leximax(abs(plan.population - p.mean))
    s = m.solve(backend)
    assert s.status == "optimal"
    found = plan.decision(s)
    assert p.evaluate(found).feasible

    def deviations(some):
        return sorted((abs(x - p.mean) for x in some.populations), reverse=True)

    best = min(deviations(some) for some in p.count().iterate())
    assert deviations(found) == pytest.approx(best)
    assert s.levels == pytest.approx(best, abs=1e-5)


@pytest.mark.parametrize("backend", ["highs", "clarabel", "scip"])
def test_pairwise_fairness_with_private_groups(backend):
    """Elicited pairs and equal odds at once, for groups that are known by randomized response only."""
    rng = np.random.default_rng(5)
    n, channel = 300, RandomizedResponse(2.0)
    group, label = rng.integers(0, 2, n), rng.integers(0, 2, n)
    x = (rng.normal(size=n) + label + 0.7 * group).round(1)
    reports = channel.privatize(group, 2, seed=1)
    pairs = rng.integers(0, n, (40, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    odds, elicited = EqualizedOdds(0.08), PairwiseFairness(pairs, gamma=0.1, budget=0.02)
    p = FairClassification(
        x[:, None], label, channel.observe(reports), odds & elicited, hypotheses=Thresholds()
    )
    s = p.solve("lp", backend=backend)
    assert s.status == "optimal"

    # The same from the mixture's predictions alone: tables of reports, inverted afterwards.
    chance = s.decision.probability(x[:, None])

    def odds_of(chance):
        tables = [np.zeros((2, 2)), np.zeros((2, 2))]
        for table, amount in zip(tables, (chance, np.ones(n)), strict=True):
            np.add.at(table, (reports, label), amount)
        positive, mass = (channel.debias(table) for table in tables)
        return positive / mass

    assert np.ptp(odds_of(chance), axis=0).max() <= 0.08 + 1e-6
    unfair = np.maximum(chance[pairs[:, 0]] - chance[pairs[:, 1]] - 0.1, 0).mean()
    assert unfair == pytest.approx(0.02, abs=1e-6)  # it binds

    # Brute force: a linear program over all thresholds, either way round, by scipy.
    cuts = np.append(np.unique(x), np.inf)
    table = np.array([side * (x >= c) + (1 - side) * (x < c) for c in cuts for side in (0, 1)], dtype=float)
    rates = np.array([odds_of(row) for row in table])
    gaps = rates[:, 0] - rates[:, 1]
    better = table[:, pairs[:, 0]] - table[:, pairs[:, 1]]
    h, q = len(table), len(pairs)
    errors = np.abs(table - label).mean(axis=1)
    rows = [np.c_[np.vstack([gaps.T, -gaps.T]), np.zeros((4, q))], np.c_[better.T, -np.eye(q)]]
    rows.append(np.r_[np.zeros(h), np.full(q, 1 / q)][None, :])
    limits = np.r_[np.full(4, 0.08), np.full(q, 0.1), 0.02]
    one = np.r_[np.ones(h), np.zeros(q)][None, :]
    best = linprog(np.r_[errors, np.zeros(q)], np.vstack(rows), limits, one, [1.0])
    assert s.objective == pytest.approx(best.fun, abs=1e-6)


@pytest.mark.parametrize("backend", ["highs", "scip"])
def test_neyman_allocation_under_a_leximax_of_variances(backend):
    """Three variables, each with an allocation of its own that is best for it; the worst off goes first."""
    rng = np.random.default_rng(2)
    sizes, spread = rng.integers(5, 40, 4), rng.uniform(1, 9, (4, 3)).round(1)
    p = StratifiedAllocation(sizes=sizes, deviations=spread, sample_size=14)
    m = fo.Model("three variables")
    parts = p.declare(m)
    relative = 1 / (sizes @ spread**2 / sizes.sum())  # of each variable: no unit of measurement counts
    m.subject_to(parts.sizes[0] + parts.sizes[1] >= 6, name="two regions share a team")
    m.leximax(parts.variances * relative)
    s = m.solve(backend)
    assert s.status == "optimal"

    def losses(drawn):
        shares = (sizes / sizes.sum())[:, None] ** 2 * spread**2
        return sorted(relative * (shares * (1 / drawn - 1 / sizes)[:, None]).sum(axis=0), reverse=True)

    every = (np.array(d) for d in product(range(1, 12), repeat=4) if sum(d) == 14 and d[0] + d[1] >= 6)
    best = min(losses(d) for d in every if (d <= sizes).all())
    assert s.levels == pytest.approx(best, abs=1e-7)
    assert losses(np.round(s[parts.sizes])) == pytest.approx(best, abs=1e-7)


@pytest.mark.parametrize("backend", ["highs", "scip"])
def test_post_processing_inside_a_strategic_model(backend):
    """Publish criteria, and let an acceptance stand only with a probability that depends on the group."""
    fairness = DemographicParity(0.05)
    for seed in range(3):
        p = random_discrete(12, 5, seed=seed, groups=[0, 1] * 6, max_false_positives=None)
        size = np.bincount(p.group_of)

        def judge(model, true, accepted, size=size):
            """Two true positives are worth a false one; selection rates are nearly equal."""
            rates = GroupRates(fo.stack([accepted - true, true], axis=1), np.c_[size, 0 * size])
            model.subject_to(fairness.rows(rates))
            model.maximize(3 * true.sum() - 2 * accepted.sum())
            return rates

        m = fo.Model("publish and remix")
        parts = p.declare(m)
        stands = m.variable("stands", 2, lower=0, upper=1)
        accepted, improved = (m.variable(name, p.agents, binary=True) for name in ("accepted", "improved"))
        m.subject_to(accepted == parts.accepted, improved == parts.improved)
        of_group = np.eye(2)[p.group_of].T
        kept = [of_group @ fo.product(who, stands[p.group_of]) for who in (improved, accepted)]
        rates = judge(m, *kept)
        s = m.solve(backend)
        assert s.status == "optimal"
        selected = s[rates.rate(SELECTION)]
        assert abs(selected[0] - selected[1]) <= 0.05 + 1e-6
        # the model's agents do what agents do
        responses = p.simulate(np.flatnonzero(s[parts.is_open] > 0.5))
        assert (s[accepted] > 0.5).tolist() == (responses.choice >= 0).tolist()
        assert (s[improved] > 0.5).tolist() == responses.true_positive.tolist()

        best = -np.inf
        for chosen in product([False, True], repeat=p.criteria):
            said = p.simulate(np.flatnonzero(chosen))
            true, all_of = of_group @ said.true_positive, of_group @ (said.choice >= 0)
            inner = fo.Model()
            stands = inner.variable("stands", 2, lower=0, upper=1)
            judge(inner, true * stands, all_of * stands)
            best = max(best, inner.solve().objective)
        assert s.objective == pytest.approx(best, abs=1e-6)


def noisy_plan(true, epsilon, seed, deviations, backend="highs"):
    """Districts drawn on noisy counts, with a margin of so many standard deviations on either side."""
    mechanism = calibrate(Laplace, PureDP(epsilon))
    seen = mechanism.simulate(true.arrays.weights, seed).values.round().clip(0)
    graph = true.graph.copy()
    for node, people in zip(true.nodes, seen, strict=True):
        graph.nodes[node]["population"] = int(people)
    low, high = true.population_bounds
    p = Districting(graph=graph, districts=true.districts, bounds=(0, int(seen.sum())))
    m = fo.Model("districts on noisy counts")
    plan = p.declare(m)
    # The noise of n nodes has the deviation sqrt(2 n) / epsilon; sqrt(n) lies below its tangent.
    usual = len(true.nodes) / true.districts
    root = (plan.member.sum(axis=0) + usual) / (2 * np.sqrt(usual))
    margin = deviations * np.sqrt(2) * mechanism.noise.scale * root
    m.subject_to(plan.population - margin >= low, plan.population + margin <= high)
    m.minimize(plan.objective)
    s = m.solve(backend)
    return s, (plan.decision(s) if s.status == "optimal" else None)


def town(seed):
    rng = np.random.default_rng(seed)
    graph = grid(4, 4, population=rng.integers(50, 250, 16))
    for (_, _, data), cost in zip(graph.edges(data=True), rng.integers(1, 10, 24), strict=True):
        data["cost"] = int(cost)
    return Districting(graph=graph, districts=2, tolerance=0.1)


@pytest.mark.parametrize("backend", ["highs", "scip"])
def test_districting_on_noisy_counts(backend):
    """With a margin of two deviations the true districts hold their bounds; without, they may not."""
    holds = {0.0: [], 2.0: []}
    for seed in (3, 4, 50):
        for deviations, found in holds.items():
            s, plan = noisy_plan(town(seed), 0.1, 100 + seed, deviations, backend)
            assert s.status == "optimal"
            found.append(town(seed).evaluate(plan.assignment).feasible)
    assert holds == {0.0: [True, False, False], 2.0: [True, True, True]}
    s, _ = noisy_plan(town(2), 0.1, 102, 2.0, backend)
    assert s.status == "infeasible"  # the margins leave no plan


def test_the_guide_names_the_problems_that_take_reports_through_a_channel():
    """Whoever does not estimate rates from reports says why not; a column that is no group's, who does."""
    rng, channel = np.random.default_rng(0), RandomizedResponse(1.5)
    groups, labels = rng.integers(0, 2, 60), rng.integers(0, 2, 60)
    score = rng.normal(size=60).round(2) + labels
    seen, odds = channel.observe(channel.privatize(groups, 2, seed=1)), EqualizedOdds(0.3)
    takers = {
        "FairClassification": lambda g: FairClassification(
            score[:, None], labels, g, odds, hypotheses=Thresholds()
        ),
        "FairClassifier": lambda g: FairClassifier(odds).fit(score[:, None], labels, sensitive_features=g),
        "FairPostprocessing.from_predictions": lambda g: FairPostprocessing.from_predictions(
            (score > 0.5).astype(int), g, labels, odds
        ),
        "MulticlassPostprocessing.from_predictions": lambda g: MulticlassPostprocessing.from_predictions(
            labels, g, labels, odds
        ),
        "ScorePostprocessing": lambda g: ScorePostprocessing(score, labels, g, odds),
        "LexifairClassification": lambda g: LexifairClassification(
            labels=labels, hypotheses=Stumps(score[:, None]), **groups_of(G=g)
        ),
    }
    others = [
        lambda g: LexifairRegression(features=score[:, None], labels=labels, **groups_of(G=g)),
        lambda g: random_discrete(60, 5, seed=1, groups=g, max_false_positives=None),
    ]
    page = (Path(__file__).parents[2] / "docs" / "composing.md").read_text(encoding="utf-8")
    for name, declare in takers.items():
        declare(seen)
        assert f"`{name}`" in page
    for declare in others:
        declare(groups)
        with pytest.raises(fo.DeclarationError, match=r"takes no groups seen through a channel: \w"):
            declare(seen)
    clf = ThresholdPostprocessor(constraint=odds)
    for read in (np.asarray, list, lambda g: clf.fit(score[:, None], labels, sensitive_features=g)):
        with pytest.raises(fo.DeclarationError, match="reports through a channel; only") as error:
            read(seen)
        assert all(name in str(error.value) for name in takers)
