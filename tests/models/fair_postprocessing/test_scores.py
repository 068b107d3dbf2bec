import json
from itertools import product

import numpy as np
import pytest

import forcopt as fo
from forcopt.fairness import (
    BoundedGroupLoss,
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    ErrorParity,
    PairwiseFairness,
    PredictiveValues,
)
from forcopt.models import ScorePostprocessing
from forcopt.models.fair_postprocessing import RandomizedThresholds

pytest.importorskip("sklearn")
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from forcopt.models.fair_postprocessing import ThresholdPostprocessor

NOTIONS = [
    DemographicParity(0.05),
    EqualizedOdds(0.0),
    EqualizedOdds(0.1),
    EqualOpportunity(0.02) & ErrorParity(0.1),
    BoundedGroupLoss(0.45),
    PredictiveValues(0.4, 0.4),
]


def instance(seed, constraint, groups=3, n=30, **fields):
    rng = np.random.default_rng(seed)
    a = np.concatenate([np.repeat(np.arange(groups), 2), rng.integers(0, groups, n - 2 * groups)])
    y = np.concatenate([np.tile([0, 1], groups), rng.integers(0, 2, n - 2 * groups)])
    score = rng.integers(0, 8, n) + (1 + a) * y
    return ScorePostprocessing(scores=score, labels=y, groups=a, constraint=constraint, **fields)


def all_thresholds(p):
    """Independently: a column for every threshold of every group, and the rows by hand, in one LP."""
    groups = np.array(p.groups)
    model, parts = fo.Model("all"), []
    weights = np.ones(len(p.labels)) if p.weights is None else p.weights
    chance = model.lift(np.zeros(len(p.labels)))
    for name in p.group_names:
        cuts = np.append(np.unique(p.scores), np.inf)
        w = model.variable(f"w{name}", len(cuts), lower=0)
        model.subject_to(w.sum() == 1)
        members = (groups == name)[:, None]
        chance = chance + ((p.scores[:, None] >= cuts[None, :]) & members).astype(float) @ w
        parts.append(w)
    rates = fo.fairness.GroupRates.from_records(chance, list(p.groups), p.labels, weights)
    model.subject_to(p.constraint.rows(rates))
    model.minimize(rates.overall(fo.fairness.ERROR))
    return model.solve()


@pytest.mark.parametrize("constraint", NOTIONS, ids=str)
@pytest.mark.parametrize("seed", range(6))
def test_the_optimum_over_all_thresholds(seed, constraint):
    fields = {"weights": np.random.default_rng(seed).integers(1, 4, 30)} if seed % 2 else {}
    p = instance(seed, constraint, groups=2 + seed % 3, **fields)
    s, expected = p.solve(), all_thresholds(p)
    assert s.status == expected.status
    if s.decision is not None:
        assert s.objective == pytest.approx(expected.objective, abs=1e-7)
        assert s.evaluation.feasible and s.bound == pytest.approx(s.objective, abs=1e-6)


@pytest.mark.parametrize("backend", ["glop", "clarabel", "pdlp", "scs", "osqp"])
def test_backends_agree(backend):
    for constraint in NOTIONS:
        p = instance(1, constraint)
        s, exact = p.solve(backend=backend), p.solve()
        if s.status == "failed":  # GLOP refuses coefficients that are rounding dust
            assert backend == "glop" and "IMPRECISE" in s.message
        elif exact.decision is not None:
            assert s.objective == pytest.approx(exact.objective, abs=2e-4)


@pytest.mark.parametrize("seed", range(4))
def test_no_grid_of_mixtures_is_better(seed):
    """Brute force: two thresholds a group, mixed in tenths."""
    p = instance(seed, EqualizedOdds(0.2), groups=2, n=10)
    best = p.solve()
    cuts = [*np.unique(p.scores).tolist(), np.inf]
    laws = [((s, t), (w, 1 - w)) for s, t in product(cuts, cuts) for w in (0.0, 0.3, 0.5)]
    found = []
    for first, second in product(laws[::3], laws[::2]):
        d = RandomizedThresholds(p.group_names, (first[0], second[0]), (first[1], second[1]))
        e = p.evaluate(d)
        if e.feasible:
            found.append(e.objective)
    assert found and min(found) >= best.objective - 1e-9


@pytest.mark.parametrize(
    ("constraint", "theirs"),
    [
        (DemographicParity(), "demographic_parity"),
        (EqualizedOdds(), "equalized_odds"),
        (EqualOpportunity(), "true_positive_rate_parity"),
    ],
)
def test_it_is_never_worse_than_fairlearn(constraint, theirs):
    """ThresholdOptimizer searches a grid of rates; ours is the optimum, so it errs no more."""
    from fairlearn.postprocessing import ThresholdOptimizer

    rng = np.random.default_rng(0)
    a = rng.integers(0, 3, 1500)
    X = rng.normal(size=(1500, 2)) + 0.5 * a[:, None]
    y = (X[:, 0] + rng.normal(size=1500) > 0.6).astype(int)
    base = LogisticRegression().fit(X, y)
    ours = ThresholdPostprocessor(base, constraint, prefit=True).fit(X, y, sensitive_features=a)
    other = ThresholdOptimizer(
        estimator=base, constraints=theirs, prefit=True, predict_method="predict_proba", grid_size=2000
    ).fit(X, y, sensitive_features=a)
    chance = other._pmf_predict(X, sensitive_features=a)[:, 1]
    error = float(np.abs(chance - y).mean())
    assert ours.report_.error <= error + 1e-6
    assert error - ours.report_.error < 0.01
    assert not ours.report_.violations
    mine = ours.predict_proba(X, sensitive_features=a)[:, 1]
    assert np.abs(mine - y).mean() == pytest.approx(ours.report_.error)


def test_realised_rates_follow():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 20_000)
    X = (rng.random(20_000) < 0.2 + 0.6 * a).astype(float)[:, None]
    y = rng.random(20_000) < 0.15 + 0.7 * X[:, 0]
    clf = ThresholdPostprocessor(constraint=EqualizedOdds(0.05)).fit(X, y, sensitive_features=a)
    drawn = clf.predict(X, sensitive_features=a)
    for label in (False, True):
        rates = [drawn[(a == g) & (y == label)].mean() for g in (0, 1)]
        assert abs(rates[0] - rates[1]) <= 0.05 + 0.05


def by_sign(X):
    return np.sin(50 * np.asarray(X, dtype=float)[:, 0]) > 0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("draws", ["record", "row"])
def test_it_is_an_estimator(draws):
    drawn = {"check_classifiers_train": "predictions are drawn, so they are no argmax of the probabilities"}
    estimator = ThresholdPostprocessor(constraint=DemographicParity(0.1), sensitive=by_sign, draws=draws)
    check_estimator(estimator, expected_failed_checks=drawn)
    check_estimator(ThresholdPostprocessor())


def test_pipelines_columns_and_weights():
    import pandas as pd

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(300, 2)), columns=["x", "z"]).assign(
        sex=rng.choice(["f", "m"], 300)
    )
    y = frame["x"] + rng.normal(size=300) > 0
    base = make_pipeline(StandardScaler(), Perceptron())
    clf = ThresholdPostprocessor(base, EqualizedOdds(0.05), sensitive="sex", random_state=0)
    clf.fit(frame, y, sample_weight=rng.integers(0, 3, 300))
    assert clf.policy_.groups == ("f", "m") and clf.n_features_in_ == 2
    assert clf.predict(frame).tolist() == clf.predict(frame).tolist()
    assert clf.set_params(constraint__tolerance=0.2).constraint == EqualizedOdds(0.2)
    assert "predicts 1 from a score of" in repr(clf.policy_)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"scores": []}, "scores: the shape is"),
        ({"labels": [0, 1]}, "labels has 2 entries; scores has 4"),
        ({"labels": [0, 1, 2, 0]}, "it must be 0 or 1"),
        ({"groups": ["a", "b", None, "a"]}, r"groups\[2\] is missing"),
        ({"groups": ["a", "a", "a", "b"]}, "group 'b' has no records with label 0"),
        ({"weights": [1, -1, 1, 1]}, "weights: they must not be negative"),
        ({"constraint": PairwiseFairness([(0, 1)])}, "looks at single records"),
    ],
)
def test_bad_input_is_named(fields, message):
    good = {"scores": [1, 2, 3, 4], "labels": [0, 1, 0, 1], "groups": list("aabb")}
    with pytest.raises(fo.DeclarationError, match=message):
        ScorePostprocessing(**{"constraint": EqualizedOdds(0.1), **good, **fields})


def test_what_the_front_refuses():
    X, y = np.arange(8.0)[:, None], np.arange(8) % 2
    a = np.repeat(["u", "v"], 4)
    front = ThresholdPostprocessor(LogisticRegression(), EqualizedOdds(0.1))
    with pytest.raises(fo.DeclarationError, match="sensitive_features is None"):
        front.fit(X, y)
    front.fit(X, y, sensitive_features=a)
    with pytest.raises(fo.DeclarationError, match="sensitive_features is None"):
        front.predict(X)
    with pytest.raises(fo.DeclarationError, match="groups holds 'w'"):
        front.predict(X, sensitive_features=["w"] * 8)
    with pytest.raises(fo.DeclarationError, match="prefit is True, but estimator is not fitted"):
        ThresholdPostprocessor(LogisticRegression(), prefit=True).fit(X, y)
    with pytest.raises(fo.DeclarationError, match="random_state is 'x'"):
        ThresholdPostprocessor(random_state="x").fit(X, y)


def test_a_declaration_is_a_file():
    p = instance(0, EqualizedOdds(0.1), weights=np.arange(1, 31))
    again = fo.Problem.from_dict(json.loads(json.dumps(p.to_dict())))
    assert again == p and again.solve().objective == pytest.approx(p.solve().objective)


def test_a_solution_is_certified():
    assert instance(0, EqualizedOdds(0.1)).solve().certify().optimal
