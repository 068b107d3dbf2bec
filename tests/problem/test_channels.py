"""Groups seen through a channel: every problem with groups takes them, or refuses them with one message."""

import numpy as np
import pytest

import forcopt as fo
from forcopt.data import Hierarchy
from forcopt.fairness import DemographicParity, EqualizedOdds
from forcopt.models import (
    FairClassification,
    FairPostprocessing,
    MulticlassPostprocessing,
    ScorePostprocessing,
)
from forcopt.models.calibrated_errors import Recalibration
from forcopt.models.census_release import measure
from forcopt.models.fair_classification import Thresholds
from forcopt.privacy import Categories, Ledger, PrivacyBudget, PureDP, RandomizedResponse, Schema, Table

CHANNEL = RandomizedResponse(1.5)
EDGES = [-1.0, 0.0, 1.0, 2.0]


def classes():
    """An example of each problem class that has groups."""
    found = {}
    for name in fo.examples():
        problem = fo.load(name)
        if "groups" in type(problem).model_fields:
            found.setdefault(type(problem).__name__, problem)
    return found


@pytest.mark.parametrize("name", sorted(classes()))
def test_a_problem_takes_a_channel_or_says_why_not(name):
    problem = classes()[name]
    if type(problem).refuses_channel:
        wrong = rf"groups: {name} takes no groups seen through a channel: \w"
        with pytest.raises(fo.DeclarationError, match=wrong):
            problem.replace(groups=CHANNEL.observe(["a", "b"]))
        with pytest.raises(fo.DeclarationError, match=wrong):  # also as one of several columns
            problem.replace(groups={"g": CHANNEL.observe(["a", "b"])})
        return
    labels = [0, 1] * 200
    reports = CHANNEL.observe(["a", "a", "b", "b"] * 100)
    fields = {"features": np.arange(400.0)[:, None] % 7, "scores": np.arange(400.0) % 7, "weights": None}
    fields |= {"labels": labels, "groups": reports, "constraint": DemographicParity(0.1)}
    if name == "LexifairClassification":
        fields |= {"names": (), "constraint": None}
    fields |= {"hypotheses": Thresholds()} if "hypotheses" in type(problem).model_fields else {}
    kept = {k: v for k, v in fields.items() if k in type(problem).model_fields}
    solution = problem.replace(**kept).solve()
    assert solution.status == "optimal" and solution.evaluation.feasible


def records(n=6000, seed=0):
    rng = np.random.default_rng(seed)
    true = rng.integers(0, 3, n)
    labels = (rng.random(n) < 0.3 + 0.15 * true).astype(int)
    scores = np.clip(np.round(2 * labels + 0.7 * true + rng.normal(size=n), 1), -2, 4)
    seen = CHANNEL.observe(CHANNEL.privatize(true, 3, seed=seed + 1))
    return true, labels, scores, seen


def test_thresholds_by_report_are_fair_by_estimate_and_nearly_so_in_truth():
    """Against an own linear program over all thresholds, written as dense arrays."""
    from scipy.optimize import linprog

    true, labels, scores, seen = records()
    notion = EqualizedOdds(0.05)
    p = ScorePostprocessing(scores, labels, seen, notion)
    s = p.solve()
    cuts = np.append(np.unique(scores), np.inf)
    passes = scores[:, None] >= cuts[None]  # shape (n, T)
    moved = CHANNEL.transition(3)
    inverse = np.linalg.inv(moved)
    reports = np.asarray(seen.reports)
    sums = np.array([[passes[(reports == z) & (labels == y)].sum(axis=0) for y in (0, 1)] for z in range(3)])
    sizes = np.array([[((reports == z) & (labels == y)).sum() for y in (0, 1)] for z in range(3)])
    estimated = np.einsum("az,zyt->ayt", inverse, sums)
    mass = inverse @ sizes
    rate = np.einsum("ayt,za->ayzt", estimated / mass[:, :, None], moved).reshape(3, 2, -1)  # columns (z, t)
    rows = [rate[a, y] - rate[b, y] for y in (0, 1) for a in range(3) for b in range(3) if a != b]
    cost = (sums[:, 0] - sums[:, 1]).reshape(-1)  # the error counts every record by its report
    one = np.kron(np.eye(3), np.ones(len(cuts)))
    own = linprog(cost, rows, [0.05] * len(rows), one, np.ones(3))
    assert s.status == "optimal" and s.evaluation.feasible
    assert s.objective == pytest.approx((own.fun + labels.sum()) / len(labels), abs=1e-7)
    law = s.decision.for_true_groups()
    chance = law.probability(scores, true)
    for y in (0, 1):
        rates = [chance[(true == a) & (labels == y)].mean() for a in range(3)]
        assert np.ptp(rates) <= 0.05 + 0.12  # the estimates' standard errors are about .03
    with pytest.raises(fo.DeclarationError, match="these groups may be reports"):
        s.decision.probability(scores, true)
    again = type(s.decision).from_dict(s.decision.to_dict())
    np.testing.assert_array_equal(again.probability(scores, seen), s.decision.probability(scores, seen))
    # the mean over the reports of a person is what the law for true groups gives
    by_report = np.stack([s.decision.law(z, scores) for z in range(3)], axis=1)
    np.testing.assert_allclose((by_report @ moved)[np.arange(len(true)), true], chance, atol=1e-12)


def test_two_classes_are_the_binary_problem():
    _true, labels, scores, seen = records(seed=3)
    guess = (scores > 1).astype(int)
    binary = FairPostprocessing.from_predictions(guess, seen, labels, EqualizedOdds(0.05)).solve()
    several = MulticlassPostprocessing.from_predictions(guess, seen, labels, EqualizedOdds(0.05)).solve()
    assert several.status == "optimal" and several.evaluation.feasible
    assert several.objective == pytest.approx(binary.objective, abs=1e-6)
    cut = ScorePostprocessing(guess, labels, seen, EqualizedOdds(0.05)).solve()
    assert cut.objective == pytest.approx(binary.objective, abs=2e-3)  # remixes of 0 to 1 and 1 to 0 are more
    assert cut.objective >= binary.objective - 1e-7
    law = several.decision.for_true_groups()
    mixed = np.einsum("hzc,za->hac", several.decision.probabilities, CHANNEL.transition(3))
    np.testing.assert_allclose(law.probabilities, mixed)
    again = type(several.decision).from_dict(several.decision.to_dict())
    assert again.channel == CHANNEL


def test_too_few_reports_are_refused_by_group():
    reports = CHANNEL.observe(["a"] * 20 + ["b"])
    with pytest.raises(fo.DeclarationError, match=r"groups: seen through the channel.*group 'b'.*negative"):
        ScorePostprocessing(np.arange(21.0), [0, 1] * 10 + [0], reports, EqualizedOdds(0.1))
    with pytest.raises(fo.DeclarationError, match="counts: seen through the channel"):
        MulticlassPostprocessing.from_predictions(
            [0, 1] * 10 + [0], reports, [0, 1] * 10 + [0], EqualizedOdds(0.1)
        )
    with pytest.raises(fo.DeclarationError, match="CalibratedEqualErrors takes no groups"):
        Recalibration.fit(np.arange(21.0), reports, [0, 1] * 10 + [0])


def test_one_ledger_passes_through_a_pipeline():
    """A census measurement, a private classifier and private thresholds spend from one budget."""
    rng = np.random.default_rng(0)
    ledger = Ledger(PureDP(3.0))
    tree = Hierarchy(parents=([0] * 4, np.arange(12) // 3))
    leaves = [str(k) for k in range(12)]
    people = Table(
        {"leaf": np.repeat(leaves, np.arange(100, 112))},
        Schema(leaf=Categories(*leaves)),
        neighbours="substitute",
    )
    measure(people.group_by("leaf").count(), epsilon=[0.2, 0.4, 0.4], tree=tree, ledger=ledger)
    group, labels = rng.integers(0, 2, 4000), rng.integers(0, 2, 4000)
    scores = np.round(rng.normal(size=4000) + labels, 1)
    p = FairClassification(
        scores[:, None],
        labels,
        group,
        DemographicParity(0.1),
        None,
        Thresholds(),
        PrivacyBudget(1.0, floor=900),
    )
    p.solve("dp-oracle-learner", ledger=ledger, allow_vacuous=True, rounds=2, bound=1.0, seed=1)
    q = ScorePostprocessing(
        scores, labels, group, DemographicParity(0.2), privacy=PrivacyBudget(0.9), names=("0", "1")
    )
    q.solve(ledger=ledger, seed=1, edges=EDGES)
    assert [e.name for e in ledger.entries] == ["census measurement", "dp-oracle-learner", "dp-thresholds"]
    with pytest.raises(fo.privacy.BudgetSpentError):
        q.solve(ledger=ledger, seed=1, edges=EDGES)
