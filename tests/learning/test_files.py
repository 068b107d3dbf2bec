import json
from functools import cache

import numpy as np
import pytest

import forcopt as fo
from forcopt.fairness import DemographicParity, EqualizedOdds
from forcopt.learning import AllFunctions, Finite, Halfspaces, Learner, Stumps, Thresholds
from forcopt.models import FairClassification, ScorePostprocessing
from forcopt.models.fair_classification import RandomizedClassifier
from forcopt.models.fair_postprocessing import RandomizedThresholds
from forcopt.models.lexifair import ClassifierMixture
from forcopt.problem.policy import Policy

pytest.importorskip("sklearn")
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, Perceptron, RidgeClassifier
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


def test_what_cannot_be_read_is_named(tmp_path):
    path = tmp_path / "policy.json"
    for text, message in (
        ("{", "is no JSON file"),
        ("[]", "holds policy None"),
        ('{"policy": "RandomizedThresholds", "version": 1}', "holds policy 'RandomizedThresholds'"),
        ('{"policy": "RandomizedClassifier", "version": 2}', "has version 2; this reads up to 1"),
        (
            '{"policy": "RandomizedClassifier", "version": 1}',
            "is incomplete: the field 'classifiers' is missing",
        ),
        (
            '{"policy": "RandomizedClassifier", "version": 1, "classifiers": [{"type": "Forest"}],'
            ' "weights": [1]}',
            "a classifier has type 'Forest'",
        ),
    ):
        path.write_text(text)
        with pytest.raises(fo.DeclarationError, match=message):
            RandomizedClassifier.load(path)


DECISIONS = [
    "postprocessor",
    "private postprocessor",
    "postprocessor of reports",
    "a group without label 1",
    "two-step",
    "rows of a table",
    "calibrated scores",
    "kernel",
    "recalibration",
    "linear model",
    "mixture of stumps",
    "remix of classes",
]


@cache
def decisions():
    """Every kind of decision of the fairness packages, with the probabilities or scores that it gives."""
    return {name: (decision, reading) for name, decision, reading in _decisions()}


def _decisions():
    from forcopt.models import (
        CalibratedEqualErrors,
        FairPostprocessing,
        LexifairClassification,
        LexifairRegression,
        MulticlassPostprocessing,
    )
    from forcopt.models.calibrated_errors import Recalibration
    from forcopt.privacy import PrivacyBudget, RandomizedResponse

    X, y, a = records()
    groups = a.astype(str)
    guess = (X[:, 0] > 3).astype(int)
    channel = RandomizedResponse(epsilon=2.0)
    reports = channel.privatize(np.repeat(a, 50), 2, seed=1)
    seen = channel.observe(reports)
    many, wide = np.repeat(y, 50), np.repeat(X, 50, axis=0)

    plain = FairPostprocessing.from_predictions(guess, groups, y, EqualizedOdds(0.1))
    yield "postprocessor", plain.solve().decision, lambda d: d.probabilities
    private = plain.replace(privacy=PrivacyBudget(epsilon=1.0), counts=plain.counts * 100)
    yield "private postprocessor", private.solve(seed=0).decision, lambda d: d.rates
    blurred = FairPostprocessing.from_predictions(np.repeat(guess, 50), seen, many, EqualizedOdds(0.1))
    yield "postprocessor of reports", blurred.solve().decision, lambda d: d.for_true_groups().probabilities
    one = plain.replace(counts=np.array([[[3, 0]], [[2, 0]]]), groups=(), constraint=DemographicParity())
    yield "a group without label 1", one.solve().decision, lambda d: np.nan_to_num(d.base_rates, nan=-1.0)
    learnt = FairClassification(wide, many, seen, DemographicParity(0.2), hypotheses=Thresholds())
    two_step = learnt.solve("two-step", seed=0, allow_vacuous=True).decision
    yield "two-step", two_step, lambda d: d.probability(wide, seen)
    table = Finite([(X[:, 0] > c).astype(int) for c in range(9)])
    rows = FairClassification(X, y, a, DemographicParity(0.1), hypotheses=table).solve().decision
    yield "rows of a table", rows, lambda d: d.probability(X)
    scores = CalibratedEqualErrors(
        scores={"L": ([0.2, 0.6], [0.5, 0.5]), "H": ([0.4, 0.8], [0.5, 0.5])}, cutoff=0.5
    ).solve()
    yield "calibrated scores", scores.decision, lambda d: d.transform([0.2, 0.8], ["L", "H"], seed=3)
    yield "kernel", scores.decision.kernels["L"], lambda d: d.joint
    cut = Recalibration.fit(X[:, 0], groups, y, bins=3)
    yield "recalibration", cut, lambda d: d.transform(X[:, 0], groups)
    members = [np.flatnonzero(a == k).tolist() for k in (0, 1)]
    linear = LexifairRegression(features=X, labels=y, groups=members).solve().decision
    yield "linear model", linear, lambda d: d.predict(X)
    learnt = LexifairRegression(features=X, labels=y, groups=members, learner=LinearRegression()).solve()
    yield "mean of regressors", learnt.decision, lambda d: d.predict(X)
    mixed = LexifairClassification(labels=y, groups=members, hypotheses=Stumps(X)).solve().decision
    yield "mixture of stumps", mixed, lambda d: d.probability(X + 0.25)
    three = np.random.default_rng(0).integers(1, 20, (3, 2, 3))
    remix = MulticlassPostprocessing(three, DemographicParity(0.01)).solve().decision
    yield "remix of classes", remix, lambda d: d.probabilities


@pytest.mark.parametrize("name", DECISIONS)
def test_every_decision_survives_a_file(name, tmp_path):
    decision, reading = decisions()[name]
    path = tmp_path / "decision.json"
    decision.save(path)
    again = type(decision).load(path)
    np.testing.assert_allclose(reading(again), reading(decision), atol=1e-12)
    again.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == path.read_text()
    data = json.loads(path.read_text())
    assert data["policy"] == type(decision).__name__ and data["version"] == 1
    for field in set(data) - {"policy", "version"}:
        path.write_text(json.dumps({k: v for k, v in data.items() if k != field}))
        with pytest.raises(fo.DeclarationError, match="is incomplete"):
            type(decision).load(path)
    path.write_text(json.dumps({**data, "version": 2}))
    with pytest.raises(fo.DeclarationError, match="reads up to 1"):
        type(decision).load(path)


@pytest.mark.parametrize("name", DECISIONS)
def test_a_wrong_or_missing_field_of_a_policy_is_refused_by_name(name, tmp_path):
    decision, _ = decisions()[name]
    path = tmp_path / "policy.json"
    decision.save(path)
    data = json.loads(path.read_text())
    for field in data.keys() - {"policy", "version", "channel"}:
        for wrong in (None, "text", {}, 5, [None], [{}], "left out"):
            changed = {k: v for k, v in data.items() if k != field}
            path.write_text(json.dumps(changed if wrong == "left out" else data | {field: wrong}))
            try:
                read = type(decision).load(path)
            except fo.DeclarationError as error:
                assert field in str(error) or "shape" in str(error) or "a classifier has type" in str(error)
            else:
                again = read.to_dict()
                assert again.get(field) == wrong or (wrong == "left out" and again == decision.to_dict())


@pytest.mark.parametrize(
    "change, words",
    [
        ({"above": None}, r"classifiers\[0\].above is None, which would be read as False"),
        ({"column": 0.5}, r"classifiers\[0\].column is 0.5, which would be read as 0"),
        ({"column": -1}, "column is -1; it must be at least 0"),
        ({"cut": "1.5"}, r"classifiers\[0\].cut is '1.5', which would be read as 1.5"),
        ({"probability": 0.5}, "probabilities must not be negative and add up to 1, not to 0.5"),
    ],
)
def test_a_classifier_is_read_as_it_is_written_or_not_at_all(change, words, tmp_path):
    stump = {"type": "Threshold", "column": 0, "cut": 1.5, "above": True, "probability": 1.0}
    data = {"policy": "ClassifierMixture", "version": 1, "names": ["a"], "losses": [0.5]}
    path = tmp_path / "policy.json"
    path.write_text(json.dumps({**data, "classifiers": [stump]}))
    assert ClassifierMixture.load(path).probability([[2.0], [1.0]]).tolist() == [1, 0]
    path.write_text(json.dumps({**data, "classifiers": [stump | change]}))
    with pytest.raises(fo.DeclarationError, match=words):
        ClassifierMixture.load(path)


def test_every_decision_of_the_fairness_packages_is_tested():
    import importlib
    import inspect
    import pkgutil

    from forcopt.learning.files import PolicyFile

    found = set()
    for name in ("fair_classification", "fair_postprocessing", "calibrated_errors", "lexifair"):
        package = importlib.import_module(f"forcopt.models.{name}")
        for module in pkgutil.iter_modules(package.__path__):
            inside = importlib.import_module(f"{package.__name__}.{module.name}")
            found |= {c for c in vars(inside).values() if inspect.isclass(c) and issubclass(c, PolicyFile)}
    tested = {type(decision) for decision, _ in decisions().values()} | {RandomizedThresholds, Policy}
    assert {
        c for c in found if not inspect.isabstract(c) and c.__name__ not in ("PolicyFile", "GroupModel")
    } == tested


def test_a_private_file_holds_released_numbers_only(tmp_path):
    decision = decisions()["private postprocessor"][0]
    text_path = tmp_path / "private.json"
    decision.save(text_path)
    X, y, a = records()
    guess = (X[:, 0] > 3).astype(int)
    for group in (0, 1):
        for label in (0, 1):
            true = float(guess[(a == group) & (y == label)].mean())
            assert repr(true) not in text_path.read_text()


@pytest.mark.parametrize("cut", ["best", "default"])
@pytest.mark.parametrize("classes", [(), ("low", "mid", "top")])
def test_learners_survive_a_file_to_the_last_digit(cut, classes, tmp_path):
    rng = np.random.default_rng(0)
    X, a = rng.normal(size=(200, 3)) * [1.0, 1e4, 1e-4] + [0.0, 1e5, 0.0], rng.integers(0, 2, 200)
    y = (X[:, 0] + 0.5 * a + rng.normal(size=200) > 0).astype(int) + (X[:, 0] > 1) * bool(classes)
    for learner in (
        LogisticRegression(),
        make_pipeline(StandardScaler(with_mean=False), RidgeClassifier()),
        RandomForestClassifier(5, max_depth=3, random_state=0),
        GradientBoostingClassifier(n_estimators=3),
        HistGradientBoostingClassifier(max_iter=3),
    ):
        problem = FairClassification(
            X, y, a, DemographicParity(0.05), hypotheses=Learner(learner, cut=cut), classes=classes
        )
        decision = problem.solve(rounds=5).decision
        decision.save(tmp_path / "policy.json")
        again = RandomizedClassifier.load(tmp_path / "policy.json")
        fresh = X + rng.normal(size=X.shape) * X.std(axis=0)
        assert (again.probability(fresh) == decision.probability(fresh)).all()


class Squared(LogisticRegression):
    """A class that is not scikit-learn's own."""

    def decision_function(self, X):
        return super().decision_function(np.square(X))


def test_a_learner_of_another_package_is_a_pickle_that_must_be_trusted(tmp_path):
    rng = np.random.default_rng(0)
    X, a = rng.normal(size=(200, 3)), rng.integers(0, 2, 200)
    y = (np.square(X[:, 0]) > 0.5).astype(int)
    path = tmp_path / "policy.json"
    decision = (
        FairClassification(X, y, a, DemographicParity(0.5), hypotheses=Learner(Squared())).solve().decision
    )
    with pytest.warns(UserWarning, match="Squared has no plain form; the file holds a pickle of it"):
        decision.save(path)
    with pytest.raises(fo.DeclarationError, match="the file holds a pickle, which may run any code"):
        RandomizedClassifier.load(path)
    again = RandomizedClassifier.load(path, trusted=True)
    assert (again.probability(X) == decision.probability(X)).all()


@pytest.mark.parametrize(
    "change, words",
    [
        ({"object": "os.system"}, "the object is os.system; a file may name classes of sklearn only"),
        ({"object": "sklearn.utils.validation.check_array"}, "which is no class"),
        ({"state": {"estimator": {"ufunc": "save"}}}, "'ufunc' 'save' is no part of a fitted estimator"),
        (
            {"state": {"estimator": {"function": "exec"}}},
            "'function' 'exec' is no part of a fitted estimator",
        ),
    ],
)
def test_a_file_runs_no_code(change, words, tmp_path):
    X, y, a = records()
    learner = Learner(DecisionTreeClassifier(max_depth=2))
    path = tmp_path / "policy.json"
    FairClassification(X, y, a, DemographicParity(0.5), hypotheses=learner).solve().decision.save(path)
    data = json.loads(path.read_text())
    next(c for c in data["classifiers"] if "estimator" in c)["estimator"] |= change
    path.write_text(json.dumps(data))
    with pytest.raises(fo.DeclarationError, match=words):
        RandomizedClassifier.load(path)
