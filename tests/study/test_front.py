"""The front of a fair estimator, its tests on held-out records, and the scorer."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split

import forcopt as fo
from forcopt.fairness import BoundedGroupLoss, DemographicParity, EqualizedOdds, GroupReport
from forcopt.models.fair_classification import FairClassifier, Thresholds
from forcopt.models.fair_postprocessing import ThresholdPostprocessor
from forcopt.study import FairScorer, fair_front


def records(n, seed=0):
    rng = np.random.default_rng(seed)
    a = pd.Series(rng.choice(["f", "m"], n))
    X = pd.DataFrame({"x": rng.normal(size=n) + (a == "m"), "z": rng.normal(size=n)})
    return X, pd.Series(X["x"] + rng.normal(size=n) > 0.5), a


@pytest.mark.parametrize("wrapped", [False, True])
def test_the_front_is_measured_on_both_parts(wrapped, tmp_path):
    X, y, a = records(1500)
    notion = EqualizedOdds()
    clf = ThresholdPostprocessor(constraint=notion) if wrapped else FairClassifier(notion, Thresholds())
    front = fair_front(clf, [0.3, 0.0, 0.1], X, y, sensitive_features=a)
    assert front.table["limit"].tolist() == [0.0, 0.1, 0.3]
    assert (front.table["gap"] <= front.table["limit"] + 1e-6).all()
    assert front.table["error"].is_monotonic_decreasing
    assert (front.table["low"] <= front.table["held-out gap"]).all()
    assert (front.table["held-out gap"] <= front.table["high"]).all()
    held = train_test_split(np.arange(len(y)), test_size=0.3, random_state=0, stratify=y)[1]
    least = pd.crosstab(a.iloc[held], y.iloc[held]).to_numpy().min()
    reach = 2 * np.sqrt(np.log(2 * 4 / 0.05) / (2 * least))  # Hoeffding's, of two rates of four
    assert (front.table["high"] <= front.table["held-out gap"] + reach).all()
    front.plot(tmp_path / "front.png")
    assert (tmp_path / "front.png").stat().st_size > 1000


def test_a_certified_policy_keeps_the_tolerance_in_the_population():
    """Of policies that passed the test on held-out records, at most 10 % break the tolerance."""
    fresh = records(60_000, seed=99)
    clf, broken = FairClassifier(DemographicParity(), Thresholds(0)), []
    for seed in range(15):
        X, y, a = records(2000, seed)
        front = fair_front(
            clf, np.arange(8) / 30, X, y, sensitive_features=a, held_out=0.5, confidence=0.9, seed=seed
        )
        best = front.certified(0.2)
        law = best.predict_proba(fresh[0])[:, 1]
        gap = GroupReport.from_predictions(
            law, fresh[2], fresh[1], metrics=DemographicParity().rates
        ).difference()
        broken.append(float(gap.iloc[0]) > 0.2)
        assert best.constraint.tolerance < 0.2
    assert sum(broken) <= 3  # Binomial(15, .1) is above 3 with probability .056; the bounds leave far more
    with pytest.raises(fo.DeclarationError, match="hold out more"):
        front.certified(0.01)


def test_the_scorer_prefers_what_keeps_the_notion():
    X, y, a = records(900)
    plain, fair = LogisticRegression().fit(X, y), FairClassifier(DemographicParity(), Thresholds())
    fair.fit(X, y, sensitive_features=a)
    scorer = FairScorer(DemographicParity(0.1), a)
    drawn = plain.predict(X)
    gap = GroupReport.from_predictions(drawn, a, y, metrics=DemographicParity().rates).difference().iloc[0]
    assert scorer(plain, X, y) == pytest.approx(-1 - (gap - 0.1))
    assert scorer(fair, X, y) == pytest.approx(-fair.report_.error)
    priced = FairScorer(DemographicParity(0.1), a, price=0.5)
    assert priced(plain, X, y) == pytest.approx(-(drawn != y).mean() - 0.5 * (gap - 0.1))
    assert priced(plain, X.sample(frac=1, random_state=0), y.sample(frac=1, random_state=0)) == pytest.approx(
        priced(plain, X, y)
    )


def test_searches_with_columns_of_the_table():
    X, y, a = records(600)
    table = X.assign(sex=a)
    clf = ThresholdPostprocessor(constraint=DemographicParity(), sensitive="sex")
    scorer = FairScorer(DemographicParity(0.2), "sex")
    found = GridSearchCV(clf, {"constraint__tolerance": [0.02, 0.9]}, scoring=scorer, cv=3).fit(table, y)
    assert found.best_params_ == {"constraint__tolerance": 0.02}
    array = np.column_stack([X, a == "f"])
    clf = ThresholdPostprocessor(constraint=DemographicParity(0.02), sensitive=2)
    assert (cross_val_score(clf, array, y, scoring=FairScorer(DemographicParity(0.2), 2), cv=3) > -1).all()


def test_a_notion_without_tolerance_has_no_front():
    X, y, a = records(100)
    with pytest.raises(fo.DeclarationError, match="must have a tolerance"):
        fair_front(FairClassifier(BoundedGroupLoss(0.4)), [0.1], X, y, sensitive_features=a)
