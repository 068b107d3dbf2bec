import warnings

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("sklearn")
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import forcopt as fo
from forcopt.fairness import DemographicParity, EqualizedOdds, PairwiseFairness
from forcopt.models.fair_classification import FairClassification, FairClassifier, Thresholds
from forcopt.privacy import RandomizedResponse


def people(n=600, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 3)) + 0.8 * a[:, None]
    y = np.where(X[:, 0] + X[:, 1] > 0.8 + rng.normal(size=n), "yes", "no")
    return X, y, np.where(a == 1, "u", "v")


@pytest.mark.filterwarnings("ignore")
def test_it_is_an_estimator():
    check_estimator(FairClassifier(learner=LogisticRegression()))


def test_it_learns_in_a_pipeline_and_is_fair_on_the_records():
    X, y, a = people()
    pipe = make_pipeline(StandardScaler(), FairClassifier(DemographicParity(0.02)))
    pipe.fit(X, y, fairclassifier__sensitive_features=a)
    share = pipe.predict_proba(X)[:, 1]
    assert abs(share[a == "u"].mean() - share[a == "v"].mean()) <= 0.02 + 1e-6
    drawn = pipe.predict(X)
    assert set(drawn) == {"no", "yes"} and np.array_equal(drawn, pipe.predict(X))
    assert abs((drawn == "yes").mean() - share.mean()) < 5 * np.sqrt(0.25 / len(X))
    assert (drawn == y).mean() > 0.6


def test_lots_are_uniform_and_change_with_the_seed():
    from forcopt.models.fair_classification.estimator import _lots

    X = np.arange(20000.0)[:, None] // 1 / 7
    lots = _lots(X, 0)
    assert np.abs(np.sort(lots) - (np.arange(20000) + 0.5) / 20000).max() < 0.014  # Kolmogorov-Smirnov, 0.1 %
    assert np.corrcoef(lots, _lots(X, 1))[0, 1] == pytest.approx(0, abs=0.03)
    assert np.corrcoef(lots[1:], lots[:-1])[0, 1] == pytest.approx(0, abs=0.03)


def test_the_metrics_of_fairlearn_agree():
    from fairlearn import metrics

    X, y, a = people()
    clf = FairClassifier(EqualizedOdds(0.0), learner=Thresholds()).fit(X, y, sensitive_features=a)
    drawn = clf.predict(X)
    rates = clf.solution_.problem.rates((drawn == "yes").astype(float))
    ours = max(EqualizedOdds().disparity(rates).values())
    theirs = metrics.equalized_odds_difference(y == "yes", drawn == "yes", sensitive_features=a)
    assert ours == pytest.approx(theirs)
    by_group = metrics.MetricFrame(
        metrics=metrics.selection_rate, y_true=y == "yes", y_pred=drawn == "yes", sensitive_features=a
    ).by_group
    assert by_group["u"] == pytest.approx((drawn[a == "u"] == "yes").mean())


def test_what_it_needs_is_named():
    X, y, a = people(50)
    with pytest.raises(fo.DeclarationError, match="sensitive_features is None"):
        FairClassifier(DemographicParity(0.1)).fit(X, y)
    with pytest.raises(fo.DeclarationError, match="cannot be met"):
        from forcopt.fairness import BoundedGroupLoss

        FairClassifier(BoundedGroupLoss(0.0), Thresholds()).fit(X, y, sensitive_features=a)
    pairs = PairwiseFairness([(0, 1), (1, 0)])
    share = FairClassifier(pairs, Thresholds()).fit(X, y).predict_proba(X)[:, 1]
    assert share[0] == pytest.approx(share[1])


def test_methods_whose_predictions_need_the_groups_are_refused():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 2000)
    X, y = rng.normal(size=(2000, 1)) + a[:, None], rng.integers(0, 2, 2000)
    reports = RandomizedResponse(2.0).observe(RandomizedResponse(2.0).privatize(a, 2, seed=1))
    front = FairClassifier(EqualizedOdds(0.1), Thresholds(), method="two-step", options={"seed": 0})
    with pytest.raises(fo.DeclarationError, match="method is 'two-step', whose predictions need the group"):
        front.fit(X, y, sensitive_features=reports)


def test_a_decision_takes_the_frame_that_it_was_learnt_from():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.normal(size=60), "owner": rng.random(60) < 0.5})
    labels, groups = frame["age"] > 0, ["a", "b"] * 30
    p = FairClassification(frame.astype(float), labels, groups, DemographicParity(0.1))
    decision = p.solve().decision
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        share = decision.probability(frame)
    assert share.tolist() == decision.probability(frame.to_numpy(dtype=float)).tolist()
