"""Private thresholds: against the exact optimum over the same thresholds, and their bounds."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from sklearn.linear_model import LogisticRegression

import forcopt as fo
from forcopt.errors import DeclarationError
from forcopt.fairness import (
    BoundedGroupLoss,
    DemographicParity,
    DemographicParityRatio,
    EqualizedOdds,
    EqualizedOddsRatio,
    EqualOpportunity,
    ErrorParity,
    PredictiveValues,
)
from forcopt.models import ScorePostprocessing
from forcopt.models.fair_postprocessing import ThresholdPostprocessor
from forcopt.privacy import Ledger, PrivacyBudget, PureDP
from forcopt.privacy.ledger import BudgetSpentError

EDGES = [-1.0, -0.5, 0.0, 0.5, 1.0]


def problem(n=4000, constraint=None, epsilon=1.0, groups="ab", **fields):
    rng = np.random.default_rng(0)
    group = rng.choice(list(groups), n)
    score = rng.normal(size=n) + 0.4 * (group == "a")
    label = (score + rng.normal(size=n) > 0.5).astype(int)
    notion, names = constraint or EqualizedOdds(0.02), tuple(groups)
    return ScorePostprocessing(
        score, label, group, notion, names=names, privacy=PrivacyBudget(epsilon), **fields
    )


def optimum(p, tolerance=0.02):
    """The best fair mixture of the edges, by scipy: a column for every group and threshold."""
    names, cuts = p.group_names, [-np.inf, *EDGES, np.inf]
    groups = np.array(p.groups)
    part = np.zeros((len(names), 2, len(names) * len(cuts)))
    for a, name in enumerate(names):
        for k, cut in enumerate(cuts):
            chosen = (groups == name) & (p.scores >= cut)
            part[a, :, a * len(cuts) + k] = [(chosen & (p.labels == y)).sum() for y in (0, 1)]
    mass = np.array([[((groups == g) & (p.labels == y)).sum() for y in (0, 1)] for g in names])
    rows = [
        part[a, y] / mass[a, y] - part[b, y] / mass[b, y]
        for y in (0, 1)
        for a in range(len(names))
        for b in range(len(names))
        if a != b
    ]
    one = np.kron(np.eye(len(names)), np.ones(len(cuts)))
    cost = (part[:, 0] - part[:, 1]).sum(axis=0)
    found = linprog(cost, rows, [tolerance] * len(rows), one, np.ones(len(names)))
    return (found.fun + mass[:, 1].sum()) / len(p.scores)


@pytest.mark.parametrize("groups", ["ab", "abc"])
def test_a_huge_epsilon_gives_the_exact_optimum_of_the_thresholds(groups):
    p = problem(groups=groups, epsilon=1e9)
    s = p.solve(edges=EDGES, seed=0)
    assert s.method == "dp-thresholds" and s.status == "approximate"
    assert s.objective == pytest.approx(optimum(p), abs=1e-6)
    assert s.objective >= p.replace(privacy=None).solve().objective - 1e-9
    assert s.evaluation.feasible


@pytest.mark.parametrize("constraint", [EqualizedOdds(0.02), EqualOpportunity(), DemographicParity(0.01)])
def test_the_bounds_hold(constraint):
    """The error and the disparities stay within the bounds of the notes, in nearly every run."""
    epsilon, beta, bins = 1.0, 0.1, len(EDGES) + 1
    p = problem(constraint=constraint, epsilon=epsilon, n=20_000)
    noise = 2 / epsilon * np.log(2 * 2 * bins / beta)
    best = p.replace(privacy=PrivacyBudget(1e9)).solve(edges=EDGES, seed=0).objective
    groups, failed = np.array(p.groups), 0
    for seed in range(30):
        s = p.solve(edges=EDGES, beta=beta, seed=seed)
        allowed = {}
        for rate in constraint.rates:
            labels = [y for y in (0, 1) if rate.given[0][y]]
            records = [
                np.isin(p.labels, labels)[groups == g].sum() - bins * len(labels) * noise for g in "ab"
            ]
            allowed[rate.name] = sum(2 * (bins * len(labels) - 1) * noise / r for r in records)
        excess = {k: v > allowed[k] for k, v in s.evaluation.violations.items()}
        failed += any(excess.values()) or s.objective > best + 2 * 2 * bins * noise / len(p.scores)
    assert failed <= 30 * beta


NOTIONS = [
    BoundedGroupLoss(0.33),
    DemographicParityRatio(0.9),
    EqualizedOddsRatio(0.95),
    PredictiveValues(0.74, 0.72),
    ErrorParity(0.01) & PredictiveValues(0.6, 0.6),
    EqualizedOdds(0.01).by("kind", {"a": "x", "b": "y", "c": "y"}) & DemographicParityRatio(0.5),
]


def binned(p):
    """The same problem without noise, on scores that only the edges divide."""
    scores = np.searchsorted(EDGES, p.scores, side="right")
    return p.replace(scores=scores, privacy=None)


@pytest.mark.parametrize("constraint", NOTIONS, ids=repr)
def test_any_notion_is_exact_at_a_huge_epsilon(constraint):
    p = problem(constraint=constraint, groups="abc", epsilon=1e9)
    s, exact = p.solve(edges=EDGES, seed=0), binned(p).solve()
    assert exact.status == "optimal" and s.evaluation.feasible
    assert s.objective == pytest.approx(exact.objective, abs=2e-6)
    free = binned(p.replace(constraint=DemographicParity(1.0))).solve().objective
    if constraint != BoundedGroupLoss(0.33):  # each group alone keeps it or not
        assert exact.objective > free + 1e-4


@pytest.mark.parametrize("constraint", NOTIONS, ids=repr)
def test_the_bounds_of_any_notion_hold(constraint):
    """Rows of the true counts are broken by at most twice the slack, and the error is within its bound."""
    epsilon, beta, bins, groups = 1.0, 0.1, len(EDGES) + 1, "abc"
    p = problem(constraint=constraint, groups=groups, epsilon=epsilon, n=20_000)
    noise = 2 / epsilon * np.log(2 * len(groups) * bins / beta)
    best, a, y, failed = binned(p).solve().objective, np.array(p.groups), p.labels, 0
    parts = getattr(constraint, "notions", (constraint,))
    for seed in range(20):
        s = p.solve(edges=EDGES, beta=beta, seed=seed)
        chance = s.decision.probability(p.scores, a)
        bad = s.objective > best + 2 * len(groups) * bins * noise / len(a)
        for part in parts:
            values = getattr(part, "values", {g: g for g in groups})
            member = [
                np.isin(a, [g for g in groups if values[g] == v]) for v in dict.fromkeys(values.values())
            ]
            cells = [bins * sum(values[g] == v for g in groups) for v in dict.fromkeys(values.values())]
            own = getattr(part, "notion", part)
            if isinstance(own, PredictiveValues):
                for m, c in zip(member, cells, strict=True):
                    one, zero = chance[m] @ y[m], chance[m] @ (1 - y[m])
                    bad |= own.positive * (one + zero) - one > 2 * c * noise
                    one, zero = (1 - chance[m]) @ y[m], (1 - chance[m]) @ (1 - y[m])
                    bad |= own.negative * (one + zero) - zero > 2 * c * noise
                continue
            for rate in own.rates:
                over = [m & np.isin(y, [k for k in (0, 1) if rate.given[0][k]]) for m in member]
                event = np.where(y == 1, 1 - chance, chance) if rate.name == "error rate" else chance
                found = np.array([event[o].mean() for o in over])
                c = np.array(cells) * sum(rate.given[0])
                slack = (
                    (c - 1) * noise / np.array([o.sum() - k * noise for o, k in zip(over, c, strict=True)])
                )
                if isinstance(own, BoundedGroupLoss):
                    bad |= (found > own.bound + 2 * slack).any()
                elif hasattr(own, "ratio"):
                    bad |= (own.ratio * (found - 2 * slack).max() > found + 2 * slack).any()
                else:
                    bad |= (found - 2 * slack).max() - (found + 2 * slack).min() > own.tolerance
        failed += bool(bad)
    assert failed <= 20 * beta


def test_a_constraint_that_no_thresholds_meet_is_a_failure_with_its_probability():
    s = problem(constraint=BoundedGroupLoss(0.01)).solve(edges=EDGES, seed=0)
    assert s.status == "failed" and s.private and s.decision is None
    assert s.message == "with probability 0.95 no mixture of these thresholds meets the constraint"


def test_without_a_seed_the_noise_is_drawn_securely():
    s = problem().solve(edges=EDGES, ledger=Ledger(PureDP(1.0)))
    assert s.decision is not None and "simulation" not in s.message
    assert "1-differentially private" in s.message


def test_only_the_edges_are_thresholds():
    s = problem().solve(edges=EDGES, seed=3)
    for cuts in s.decision.thresholds:
        assert set(cuts.tolist()) <= {-np.inf, *EDGES, np.inf}


def test_noise_that_empties_a_group_is_a_failure_that_spends():
    account = Ledger(PureDP(1.0))
    p = ScorePostprocessing(
        [0, 1, 0, 1],
        [0, 1, 1, 0],
        list("aabb"),
        EqualizedOdds(),
        names=("a", "b"),
        privacy=PrivacyBudget(0.1),
    )
    found = {p.solve(edges=[0.5], seed=seed, ledger=account).status for seed in range(10)}
    assert "failed" in found and account.remaining() == 0.0
    with pytest.raises(BudgetSpentError):
        p.solve(edges=[0.5], seed=0, ledger=account)


@pytest.mark.parametrize(
    ("fields", "options", "message"),
    [
        ({}, {}, "needs edges"),
        ({}, {"edges": EDGES, "beta": 0.0}, "beta is 0"),
        ({"weights": np.ones(4000)}, {"edges": EDGES}, "takes none"),
    ],
)
def test_what_is_refused(fields, options, message):
    with pytest.raises(fo.DeclarationError, match=message):
        problem(**fields).solve(**options)


def test_a_budget_with_delta_or_floor_is_refused():
    for budget in (PrivacyBudget(1.0, 1e-6), PrivacyBudget(1.0, floor=3)):
        with pytest.raises(fo.DeclarationError, match="no delta and no floor"):
            problem().replace(privacy=budget)


def test_a_private_policy_tells_no_crossing_that_occurs(tmp_path):
    """Neighbours, of which one lacks a crossing: the policies know the same groups, the public ones."""
    rng = np.random.default_rng(0)
    X, titles = rng.normal(size=(400, 2)), [f"sex={s} & race={r}" for s in "fm" for r in "pq"]
    y = (X[:, 0] + rng.normal(size=400) > 0).astype(int)
    first = pd.DataFrame({"sex": rng.choice(["f", "m"], 400), "race": rng.choice(["p", "q"], 400)})
    first.loc[first.sex == "f", "race"] = "p"
    second = first.copy()
    second.loc[(first.sex == "f").idxmax(), "race"] = "q"
    Ledger(PureDP(10000.0), path=(path := str(tmp_path / "ledger.json")))
    known = []
    for groups in (first, second):
        model = ThresholdPostprocessor(
            LogisticRegression(), DemographicParity(1.0), privacy=PrivacyBudget(20.0), names=titles,
            ledger=path,
        )  # fmt: skip
        for _ in range(200):
            try:
                policy = model.fit(X, y, sensitive_features=groups).policy_
            except ValueError:  # the noise left no records of the small group
                continue
            break
        known.append(policy.to_dict()["groups"]["known"])
        assert len(policy.predict(X[:3], second.iloc[:3])) == 3
    assert known[0] == known[1] == [[[s, r], 1.0] for s in "fm" for r in "pq"]
    model = ThresholdPostprocessor(
        LogisticRegression(), DemographicParity(1.0), privacy=PrivacyBudget(5.0), names=["f", "m"],
        ledger=path,
    )  # fmt: skip
    with pytest.raises(DeclarationError, match=r"sex"):
        model.fit(X, y, sensitive_features=first)
