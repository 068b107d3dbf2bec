"""Costs of wrong predictions: against enumeration, own programs, and scikit-learn's metrics."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.tree import DecisionTreeClassifier

import forcopt as fo
from forcopt.fairness import DemographicParity, EqualizedOdds, cost_table
from forcopt.learning import AllFunctions
from forcopt.models import FairPostprocessing, MulticlassPostprocessing, ScorePostprocessing
from forcopt.models.fair_classification import FairClassification, FairClassifier
from forcopt.models.fair_postprocessing import ThresholdPostprocessor
from forcopt.privacy import PrivacyBudget

COSTS = np.array([[0.0, 1.0], [4.0, 0.0]])


def people(seed=0, n=60):
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b"], n)
    x = rng.integers(0, 4, n) + (group == "b")
    y = (x + rng.normal(size=n) > 2).astype(int)
    return x[:, None].astype(float), y, group


def least_cost(X, y, group, weights, costs, tolerance, by_group):
    """Own linear program over the probability of predicting 1 of each distinct row."""
    key = np.column_stack([X, group == "b"]) if by_group else X
    _, place = np.unique(key, axis=0, return_inverse=True)
    place = place.ravel()
    size = place.max() + 1
    w = weights / weights.sum()
    price = np.bincount(place, w * (costs[y, 1] - costs[y, 0]), size)
    share = [np.bincount(place[group == g], w[group == g], size) / w[group == g].sum() for g in "ab"]
    gap = share[0] - share[1]
    found = linprog(price, np.stack([gap, -gap]), [tolerance, tolerance], bounds=(0, 1))
    return found.fun + (w * costs[y, 0]).sum()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("tolerance", [0.0, 0.1, 1.0])
def test_all_functions_and_scores_reach_the_least_cost(weighted, tolerance):
    X, y, group = people()
    weights = np.random.default_rng(1).integers(1, 4, len(y)).astype(float) if weighted else np.ones(len(y))
    given = weights if weighted else None
    notion = DemographicParity(tolerance)
    p = FairClassification(X, y, group, notion, given, AllFunctions(), costs=COSTS)
    exact = least_cost(X, y, group, weights, COSTS, tolerance, by_group=False)
    for method in ("lp", "column-generation"):
        assert p.solve(method).objective == pytest.approx(exact, abs=1e-7)
    labels = FairPostprocessing.from_predictions((X[:, 0] > 2).astype(int), group, y, notion, costs=COSTS)
    assert labels.solve().objective == pytest.approx(
        least_cost(X > 2, y, group, np.ones(len(y)), COSTS, tolerance, by_group=True), abs=1e-7
    )
    if tolerance == 1.0:  # each group takes its best threshold
        s = ScorePostprocessing(X[:, 0], y, group, notion, given, costs=COSTS).solve()
        best = 0.0
        for g in "ab":
            m = group == g
            cuts = [(X[m, 0] >= t).astype(int) for t in range(7)]
            best += min((weights[m] * COSTS[y[m], h]).sum() for h in cuts)
        assert s.objective == pytest.approx(best / weights.sum(), abs=1e-9)


def test_several_classes_pay_what_the_table_says():
    rng = np.random.default_rng(2)
    counts = rng.integers(1, 20, (3, 2, 3))
    costs = np.array([[0, 1, 3], [2, 0, 1], [5, 1, 0]])
    p = MulticlassPostprocessing(counts, DemographicParity(1.0), costs=costs)
    paid = counts @ costs  # [prediction, group, new class]
    s = p.solve()
    assert s.objective == pytest.approx(paid.min(axis=2).sum() / counts.sum(), abs=1e-8)
    plain = MulticlassPostprocessing(counts, DemographicParity(0.1))
    ones = plain.replace(costs=1.0 - np.eye(3))
    assert plain.solve().objective == pytest.approx(ones.solve().objective, abs=1e-9)
    X = rng.integers(0, 3, (40, 1)).astype(float)
    y, group = rng.integers(0, 3, 40), ["a", "b"] * 20
    names = ("x", "y", "z")
    q = FairClassification(
        X, y, group, DemographicParity(1.0), None, AllFunctions(), classes=names, costs=costs
    )
    best = min(
        sum(costs[label, rule[int(v)]] for label, v in zip(y, X[:, 0], strict=True))
        for rule in product(range(3), repeat=3)
    )
    assert q.solve().objective == pytest.approx(best / 40, abs=1e-8)


@pytest.mark.parametrize("make", [FairClassifier, ThresholdPostprocessor])
def test_estimators_take_costs_by_name_by_table_and_balanced(make):
    X, y, group = people(3, 400)
    words = np.where(y == 1, "yes", "no")

    def fitted(costs, labels=words):
        learner = {"learner": DecisionTreeClassifier(max_depth=3, random_state=0)}
        if make is ThresholdPostprocessor:
            learner = {"estimator": LogisticRegression()}
        return make(constraint=EqualizedOdds(0.1), costs=costs, **learner).fit(
            X, labels, sensitive_features=group
        )

    def law(clf):
        return clf.policy_.predict_proba(X, group)[:, 1]

    named, table = fitted({"fp": 1.0, "fn": 4.0}), fitted(COSTS)
    assert np.array_equal(law(named), law(table))
    p = law(named)
    paid = np.where(y == 1, 4.0 * (1 - p), p).mean()
    assert named.report_.error == pytest.approx(paid, abs=1e-9) and named.report_.violations == {}
    assert paid <= np.where(y == 1, 4.0 * (1 - law(fitted(None))), law(fitted(None))).mean() + 1e-9
    even = fitted("balanced")
    chance = law(even)
    score = (
        sum(
            w * balanced_accuracy_score(y, chance >= t)  # a lottery is a mixture of its levels
            for t, w in zip(np.unique(chance), np.diff(np.append(0.0, np.unique(chance))), strict=True)
        )
        + (1.0 - chance.max()) * 0.5
    )
    assert even.report_.error == pytest.approx(1.0 - score, abs=1e-9)


def test_bad_costs_are_refused():
    X, y, group = people()
    for costs, words in (
        ([[0, 1]], r"shape \(1, 2\); it must be \(2, 2\)|costs"),
        ([[0, -1], [1, 0]], "not negative for a wrong one"),
        ([[1, 1], [1, 0]], "0 for a right prediction"),
        ([[0, 0], [0, 0]], "positive for one of them"),
        ([[0, np.nan], [1, 0]], "costs"),
        ([[0, 1e-10], [0, 0]], "the largest is 1e-10"),
        ([[0, 1], [1e9, 0]], "choose another unit"),
        ("accuracy", 'it must be "balanced" or a table'),
        ({"fp": 1}, "it must have fp and fn"),
    ):
        with pytest.raises(fo.DeclarationError, match=words):
            FairClassifier(DemographicParity(0.1), AllFunctions(), costs=costs).fit(
                X, y, sensitive_features=group
            )
    with pytest.raises(fo.DeclarationError, match="every label must occur"):
        cost_table("balanced", [0, 0])
    for make in (FairPostprocessing.from_predictions, ScorePostprocessing):
        with pytest.raises(fo.DeclarationError, match="takes no costs"):
            order = (y, group, y) if make is not ScorePostprocessing else (X[:, 0], y, group)
            make(*order, DemographicParity(), names=("a", "b"), privacy=PrivacyBudget(1.0), costs=COSTS)
    with pytest.raises(fo.DeclarationError, match="takes no costs"):
        budget = PrivacyBudget(1.0, delta=1e-6, floor=1)
        FairClassification(X, y, group, DemographicParity(), privacy=budget, costs=COSTS)


def test_costs_are_part_of_the_file(tmp_path):
    X, y, group = people()
    p = FairClassification(X, y, group, DemographicParity(0.1), None, AllFunctions(), costs=COSTS)
    p.save(tmp_path / "p.json")
    assert fo.load(tmp_path / "p.json") == p
