"""Fair learning with more than two classes: exact optima, learners, the estimators, files and refusals."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

import forcopt as fo
from forcopt.fairness import (
    BoundedGroupLoss,
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    ErrorParity,
    PairwiseFairness,
)
from forcopt.models import FairClassification
from forcopt.models.fair_classification import (
    AllFunctions,
    Finite,
    Halfspaces,
    RandomizedClassifier,
    Thresholds,
)
from forcopt.privacy import PrivacyBudget, RandomizedResponse

pytest.importorskip("sklearn")
from sklearn import config_context
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from forcopt.learning import Learner
from forcopt.models.fair_classification import FairClassifier

CLASSES = ("low", "mid", "top")


def records(seed, n=24):
    rng = np.random.default_rng(seed)
    x, a = rng.integers(0, 3, n), np.arange(n) % 2
    return x, (x + rng.integers(0, 2, n) * (1 + a)) % 3, a


def brute_force(table, labels, groups, tolerance, odds):
    """The least error of a mixture of rows of a table, as a linear program over pairs of groups."""
    rows = []
    for c in range(3):
        for given in ((labels == c), (labels != c)) if odds else (np.ones(len(labels), dtype=bool),):
            rate = [(table == c)[:, given & (groups == a)].mean(axis=1) for a in (0, 1)]
            rows += [rate[0] - rate[1], rate[1] - rate[0]]
    one = np.ones((1, len(table)))
    return linprog((table != labels).mean(axis=1), rows, [tolerance] * len(rows), one, [1.0]).fun


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("odds", [False, True])
def test_all_functions_and_tables_match_brute_force(seed, odds):
    x, y, a = records(seed)
    table = np.array(list(product(range(3), repeat=3)))[:, x]
    notion = (EqualizedOdds if odds else DemographicParity)(0.1)
    best = brute_force(table, y, a, 0.1, odds)
    p = FairClassification(x[:, None], y, a, notion, classes=CLASSES)
    for hypotheses in (AllFunctions(), Finite(table)):
        q = p.replace(hypotheses=hypotheses)
        for method in ("lp", "lp@clarabel", "column-generation"):
            name, _, backend = method.partition("@")
            s = q.solve(name, **({"backend": backend} if backend else {}))
            assert s.status == "optimal" and s.evaluation.feasible
            assert s.objective == pytest.approx(best, abs=1e-6)
            assert s.decision.probability(x[:, None]).sum(axis=1) == pytest.approx(np.ones(len(x)))
        game = q.solve("exponentiated-gradient", accuracy=0.02)
        assert game.bound <= best + 1e-9 and game.objective >= game.bound - 1e-9
        assert q.solve("milp").objective >= best - 1e-9
        gaps = q.saddle_gaps(s.decision, s.decision.multipliers)
        assert gaps.bound == pytest.approx(best, abs=1e-6)


def test_every_hypothesis_of_one_row_is_listed():
    p = FairClassification(
        [[0], [1]], [0, 2], ["u", "v"], DemographicParity(1.0), None, AllFunctions(), classes=CLASSES
    )
    assert len({tuple(h.predictions) for h in p.oracle.all()}) == 9
    s = p.solve("lp")
    assert s.objective == 0 and set(p.evaluate(s.decision).metrics) >= {
        "selection rate of class top of v",
        "error rate of u",
        "selection rate of class low",
    }
    assert p.evaluate(np.eye(3)[[0, 1]]).objective == 0.5


def test_two_classes_of_three_names_are_the_binary_problem():
    """A class without records and without hypotheses adds rates of 0."""
    x, y, a = records(5)
    y, table = y % 2, np.array(list(product(range(2), repeat=3)))[:, x]
    binary = FairClassification(x[:, None], y, a, DemographicParity(0.05), hypotheses=Finite(table))
    named = binary.replace(classes=CLASSES)
    assert named.solve().objective == pytest.approx(binary.solve().objective, abs=1e-9)


def test_error_rates_hold_once_and_groups_may_be_reported():
    x, y, a = records(1, 40)
    p = FairClassification(
        x[:, None], y, a, BoundedGroupLoss(0.7) & ErrorParity(0.05), None, AllFunctions(), classes=CLASSES
    )
    assert (
        sum(len(row.labels) for row in p.declare(fo.Model(), "lp").fairness) == 4
    )  # two groups, two notions
    s = p.solve()
    error = 1 - s.decision.probability(x[:, None])[np.arange(40), y]
    assert abs(error[a == 0].mean() - error[a == 1].mean()) <= 0.05 + 1e-7
    channel = RandomizedResponse(epsilon=50.0)
    seen = p.replace(groups=channel.observe(a), constraint=DemographicParity(0.01))
    assert seen.solve().objective == pytest.approx(
        p.replace(constraint=DemographicParity(0.01)).solve().objective, abs=1e-6
    )


def people(n=900, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 3)) + 0.7 * a[:, None]
    score = X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=n)
    return X, np.array(CLASSES)[np.digitize(score, [0.0, 1.2])], np.where(a == 1, "u", "v")


LEARNERS = [None, DecisionTreeClassifier(max_depth=3, random_state=0), SVC(decision_function_shape="ovo")]


@pytest.mark.parametrize("learner", LEARNERS)
def test_learners_give_fair_mixtures(learner):
    X, y, a = people(300)
    clf = FairClassifier(EqualizedOdds(0.05), learner, options={"rounds": 25}).fit(X, y, sensitive_features=a)
    share = clf.predict_proba(X)
    assert share.shape == (300, 3) and share.sum(axis=1) == pytest.approx(np.ones(300))
    for k, name in enumerate(clf.classes_):
        for of in (y == name, y != name):
            assert abs(share[(a == "u") & of, k].mean() - share[(a == "v") & of, k].mean()) <= 0.05 + 1e-6
    base = max((y == name).mean() for name in CLASSES)
    assert clf.report_.error < 1 - base


def test_offsets_find_what_all_offsets_find():
    """The best of a fine grid of offsets is no better than coordinate descent, up to a few percent."""
    from forcopt.learning.thresholds import Offsets

    for seed in range(5):
        rng = np.random.default_rng(seed)
        scores, costs = rng.normal(size=(30, 3)), rng.normal(size=(30, 3))
        cost, found = Offsets(scores, lambda offsets: None).best(costs.ravel())
        assert cost == pytest.approx(found.predictions @ costs.ravel())
        grid = np.linspace(-4, 4, 41)
        each = [
            costs[np.arange(30), np.argmax(scores + np.array([0, b, c]), axis=1)].sum()
            for b in grid
            for c in grid
        ]
        assert cost <= min(each) + 0.15 * abs(min(each))


def test_drawn_labels_keep_the_rates_and_repeat_with_a_seed():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 20_000)
    x = (rng.random(20_000) < 0.2 + 0.6 * a).astype(int)
    y = np.where(rng.random(20_000) < 0.8, x, 2)
    for draws in ("record", "row"):
        clf = FairClassifier(DemographicParity(0.2), AllFunctions(), draws=draws, random_state=1)
        drawn = clf.fit(x[:, None], y, sensitive_features=a).predict(x[:, None])
        assert np.array_equal(drawn, clf.predict(x[:, None]))
        if draws == "row":
            assert all(len(np.unique(drawn[x == value])) == 1 for value in (0, 1))
            continue
        share = clf.predict_proba(x[:, None])
        for k in range(3):
            for group in (0, 1):  # hypergeometric draws: six standard deviations
                realised, expected = (drawn[a == group] == k).mean(), share[a == group, k].mean()
                assert abs(realised - expected) < 6 / (2 * np.sqrt((a == group).sum()))


def test_search_weights_routing_and_files(tmp_path):
    X, y, a = people(300)
    with config_context(enable_metadata_routing=True):
        clf = FairClassifier(DemographicParity(0.5), LogisticRegression()).set_fit_request(
            sensitive_features=True, sample_weight=True
        )
        clf.set_score_request(sample_weight=False)
        search = GridSearchCV(clf, {"constraint__tolerance": [0.05, 0.9]}, cv=2)
        search.fit(X, y, sensitive_features=a, sample_weight=np.ones(300))
    assert search.best_params_["constraint__tolerance"] in (0.05, 0.9)
    weight = np.random.default_rng(0).integers(0, 3, 300)
    copies = np.repeat(np.arange(300), weight)
    exact = FairClassifier(DemographicParity(0.05), AllFunctions())
    x = np.round(X[:, :1])
    weighted = exact.fit(x, y, sensitive_features=a, sample_weight=weight).report_.error
    copied = exact.fit(x[copies], y[copies], sensitive_features=a[copies]).report_.error
    assert weighted == pytest.approx(copied, abs=1e-9)
    one = FairClassifier(DemographicParity(0.05)).fit(X, y, sensitive_features=a, sample_weight=weight)
    one.policy_.save(tmp_path / "policy.json")
    again = fo.load(tmp_path / "policy.json")
    assert again.front.classes == 3 and np.allclose(again.predict_proba(X), one.predict_proba(X))
    assert np.array_equal(again.predict(X), one.policy_.predict(X))
    one.policy_.plot(tmp_path / "policy.png")


def test_a_learner_that_meets_two_of_three_classes_is_kept_and_saved(tmp_path):
    x = np.linspace(-1, 1, 40)[:, None]
    oracle = Learner(LogisticRegression(warm_start=True)).class_oracle(x, 3)
    costs = np.zeros((40, 3))
    costs[:, 2], costs[:20, 1], costs[20:, 1] = 1.0, -1.0, 0.5
    found = oracle.best(costs.ravel())
    assert found.predictions.reshape(40, 3)[:, 2].sum() == 0
    costs[5:10, 2] = -3.0
    later = oracle.best(costs.ravel())  # now all three: no warm start from the fit of two
    policy = RandomizedClassifier((found.classifier, later.classifier), np.array([0.5, 0.5]), classes=3)
    policy.save(tmp_path / "policy.json")
    again = RandomizedClassifier.load(tmp_path / "policy.json")
    assert np.allclose(again.probability(x), policy.probability(x))


def test_bad_declarations_are_named():
    x, y, a = records(0)
    good = {"features": x[:, None], "labels": y, "groups": a, "constraint": DemographicParity(0.1)}
    for fields, message in (
        ({"classes": ("a", "b")}, "classes: a, b are not three or more different names"),
        ({"classes": ("a", "b", "b")}, "not three or more different names"),
        ({"classes": CLASSES, "labels": y + 1}, r"labels: the array\[\d+\] is 3; it must be from 0 to 2"),
        ({}, r"labels: the array\[\d+\] is 2; it must be 0 or 1"),
        ({"classes": CLASSES, "labels": y + 0.5}, "labels: the array"),
        ({"classes": CLASSES, "privacy": PrivacyBudget(1.0)}, "private learning has two classes, not 3"),
        ({"classes": CLASSES, "constraint": PairwiseFairness([(0, 1)])}, "looks at single records"),
        ({"classes": CLASSES, "hypotheses": Thresholds()}, "Thresholds has two classes, not 3"),
        ({"classes": CLASSES, "hypotheses": Halfspaces()}, "Halfspaces has two classes, not 3"),
        ({"classes": CLASSES, "hypotheses": Finite([[3] * 24])}, "it must be a whole number from 0 to 2"),
        (
            {
                "classes": (*CLASSES, "none"),
                "constraint": EqualOpportunity(0.1),
                "hypotheses": AllFunctions(),
            },
            "no records with label 1",
        ),
    ):
        with pytest.raises(fo.DeclarationError, match=message):
            FairClassification(**{**good, **fields})
    p = FairClassification(**good, classes=CLASSES, hypotheses=AllFunctions())
    assert fo.Problem.from_dict(p.to_dict()) == p
    with pytest.raises(fo.DeclarationError, match="has 2 classes; there are 3"):
        p.evaluate(
            FairClassification(**{**good, "labels": y % 2}, hypotheses=AllFunctions()).solve().decision
        )
    with pytest.raises(fo.DeclarationError, match="do not sum to 1"):
        p.evaluate(np.full((24, 3), 0.5))
    with pytest.raises(fo.DeclarationError, match="two-step has two classes"):
        p.replace(groups=RandomizedResponse(5.0).observe(a)).solve("two-step")
    with pytest.raises(fo.DeclarationError, match="Only binary classification"):
        FairClassifier(DemographicParity(0.1), Thresholds()).fit(x[:, None], y, sensitive_features=a)
