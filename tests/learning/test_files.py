import json

import numpy as np
import pytest

import forcopt as fo
from forcopt.fairness import DemographicParity, EqualizedOdds
from forcopt.learning import AllFunctions, Halfspaces, Learner, Thresholds
from forcopt.models import FairClassification, ScorePostprocessing
from forcopt.models.fair_classification import RandomizedClassifier
from forcopt.models.fair_postprocessing import RandomizedThresholds

pytest.importorskip("sklearn")
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier


def records(d=2):
    rng = np.random.default_rng(0)
    a = np.arange(80) % 2
    X = rng.integers(0, 6, (80, d)) + 1.5 * a[:, None]
    return X, (X[:, 0] + rng.normal(0, 2, 80) > 4).astype(int), a


@pytest.mark.parametrize(
    "hypotheses",
    [
        None,
        Thresholds(),
        Halfspaces(),
        AllFunctions(),
        Learner(LogisticRegression()),
        Learner(make_pipeline(StandardScaler(with_std=False), Perceptron())),
    ],
    ids=str,
)
def test_a_policy_survives_a_file(hypotheses, tmp_path):
    X, y, a = records()
    policy = FairClassification(X, y, a, DemographicParity(0.05), hypotheses=hypotheses).solve().decision
    policy.save(tmp_path / "policy.json")
    again = RandomizedClassifier.load(tmp_path / "policy.json")
    assert again.probability(X) == pytest.approx(policy.probability(X), abs=1e-12)
    assert json.loads((tmp_path / "policy.json").read_text())["version"] == 1


def test_thresholds_survive_a_file(tmp_path):
    X, y, a = records()
    policy = ScorePostprocessing(X[:, 0], y, a, EqualizedOdds(0.02)).solve().decision
    policy.save(tmp_path / "policy.json")
    again = RandomizedThresholds.load(tmp_path / "policy.json")
    assert again.probability(X[:, 0], a).tolist() == policy.probability(X[:, 0], a).tolist()
    assert again.groups == policy.groups


def test_what_cannot_be_written_or_read_is_named(tmp_path):
    X, y, a = records()
    tree = Learner(DecisionTreeClassifier(max_depth=3), cut="default")
    policy = FairClassification(X, y, a, DemographicParity(0.2), hypotheses=tree).solve().decision
    path = tmp_path / "policy.json"
    with pytest.raises(fo.DeclarationError, match="no plain form"):
        policy.save(path)
    assert not path.exists()
    for text, message in (
        ("{", "is no JSON file"),
        ("[]", "holds policy None"),
        ('{"policy": "RandomizedThresholds", "version": 1}', "holds policy 'RandomizedThresholds'"),
        ('{"policy": "RandomizedClassifier", "version": 2}', "has version 2; this one reads up to 1"),
        ('{"policy": "RandomizedClassifier", "version": 1}', "is incomplete"),
        (
            '{"policy": "RandomizedClassifier", "version": 1, "classifiers": [{"type": "Tree"}],'
            ' "weights": [1]}',
            "a classifier has type 'Tree'",
        ),
    ):
        path.write_text(text)
        with pytest.raises(fo.DeclarationError, match=message):
            RandomizedClassifier.load(path)
