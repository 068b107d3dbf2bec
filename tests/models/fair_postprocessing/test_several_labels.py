"""The scikit-learn front of post-processing with more than two labels."""

import numpy as np
import pandas as pd
import pytest

import forcopt as fo
from forcopt.fairness import DemographicParity, EqualizedOdds
from forcopt.models import MulticlassPostprocessing
from forcopt.models.fair_postprocessing import RandomizedRemix
from forcopt.privacy import PrivacyBudget

pytest.importorskip("sklearn")
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from forcopt.models.fair_postprocessing import ThresholdPostprocessor

LABELS = np.array([2, 10, 1])  # as text they are sorted otherwise


def people(n=800, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 2)) + a[:, None]
    return X, LABELS[np.digitize(X.sum(axis=1) + rng.normal(size=n), [0.0, 1.5])], np.where(a == 1, "u", "v")


@pytest.mark.parametrize("weighted", [False, True])
def test_the_front_gives_the_optimum_of_the_problem(weighted, tmp_path):
    X, y, a = people()
    weight = np.random.default_rng(1).random(len(y)) if weighted else None
    base = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    clf = ThresholdPostprocessor(base, EqualizedOdds(0.03), prefit=True, random_state=0)
    clf.fit(X, y, sensitive_features=a, sample_weight=weight)
    p = MulticlassPostprocessing.from_predictions(
        base.predict(X), a, y, EqualizedOdds(0.03), classes=list(map(str, clf.classes_)), weights=weight
    )
    assert clf.report_.status == "optimal"
    assert clf.report_.error == pytest.approx(p.solve("lp", backend="clarabel").objective, abs=1e-6)
    share = clf.predict_proba(X, sensitive_features=a)
    w = np.ones(len(y)) if weight is None else weight
    for k, label in enumerate(clf.classes_):
        for of in (y == label, y != label):
            rates = [np.average(share[(a == g) & of, k], weights=w[(a == g) & of]) for g in ("u", "v")]
            assert abs(rates[0] - rates[1]) <= 0.03 + 1e-6
    drawn = clf.predict(X, sensitive_features=a)
    assert set(drawn) <= set(LABELS.tolist())
    for k, label in enumerate(clf.classes_):  # systematic draws, five standard deviations
        assert abs((drawn == label).mean() - share[:, k].mean()) < 5 / (2 * np.sqrt(len(y)))
    again = ThresholdPostprocessor(base, EqualizedOdds(0.03), prefit=True, draws="row", random_state=0)
    again.fit(X, y, sensitive_features=a, sample_weight=weight)
    part = again.predict(X[:7], sensitive_features=a[:7])
    assert np.array_equal(part, again.predict(X, sensitive_features=a)[:7])  # whatever the batch
    clf.policy_.save(tmp_path / "remix.json")
    policy = fo.load(tmp_path / "remix.json")
    assert isinstance(policy.law, RandomizedRemix) and policy.law.classes == ("1", "2", "10")
    assert np.array_equal(policy.predict_proba(X, a), share)


def test_several_sensitive_columns_and_refusals():
    X, y, a = people()
    columns = pd.DataFrame({"team": a, "half": np.arange(len(y)) % 2})
    for combine in ("cross", "each"):
        clf = ThresholdPostprocessor(LogisticRegression(), DemographicParity(0.02), combine=combine)
        clf.fit(X, y, sensitive_features=columns)
        share = clf.predict_proba(X, sensitive_features=columns)
        for name in columns if combine == "each" else ():
            rates = pd.DataFrame(share).groupby(columns[name].to_numpy()).mean()
            assert (rates.max() - rates.min()).max() <= 0.02 + 1e-6
    with pytest.raises(fo.DeclarationError, match="Only binary classification"):
        ThresholdPostprocessor(privacy=PrivacyBudget(1.0)).fit(X, y, sensitive_features=a)
    other = DecisionTreeClassifier().fit(X, y + 1)
    with pytest.raises(fo.DeclarationError, match="which is no label of y"):
        ThresholdPostprocessor(other, prefit=True).fit(X, y, sensitive_features=a)
    with pytest.raises(fo.DeclarationError, match=r"weights\[0\] is -1"):
        MulticlassPostprocessing.from_predictions(y, a, y, DemographicParity(), weights=-np.ones(len(y)))
