import json
import pickle
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
from forcopt.models import FairPostprocessing, ScorePostprocessing
from forcopt.models.fair_postprocessing import RandomizedThresholds
from forcopt.privacy import BudgetSpentError, Ledger, PrivacyBudget, PureDP

pytest.importorskip("sklearn")
from sklearn.base import BaseEstimator, ClassifierMixin, clone
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
    """With a limit that draws no lots: a check asks for predictions of the largest probability."""
    check_estimator(ThresholdPostprocessor(constraint=DemographicParity(0.2), sensitive=by_sign, draws=draws))
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
    assert clf.policy_.law.groups == ("f", "m") and clf.n_features_in_ == 2
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


def test_private_thresholds_by_the_front(tmp_path):
    """The thresholds are those of dp-thresholds on the same scores; no number of the true groups is kept."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 20_000)
    X = rng.normal(size=(20_000, 2)) + 0.5 * a[:, None]
    y = X.sum(axis=1) + rng.normal(size=20_000) > 1
    budget, names = PrivacyBudget(1e6), ("0", "1")
    ledger = Ledger(PureDP(1.5e6), path=tmp_path / "ledger.json")
    front = ThresholdPostprocessor(
        constraint=EqualizedOdds(0.02), privacy=budget, names=names, ledger=str(tmp_path / "ledger.json")
    )
    front.fit(X, y, sensitive_features=a)
    cuts = np.concatenate([cut[np.isfinite(cut)] for cut in front.policy_.law.thresholds])
    assert np.isin(cuts.round(9), np.arange(1, 20) / 20).all()
    score = front.estimator_.predict_proba(X)[:, 1]
    own = ScorePostprocessing(score, y, a, EqualizedOdds(0.02), names=names, privacy=budget)
    other = own.solve(edges=np.arange(1, 20) / 20, seed=0)
    judged = own.evaluate(front.policy_.law)
    assert judged.objective == pytest.approx(other.objective, abs=1e-4)
    assert ledger.spent() == 1e6
    with pytest.raises(BudgetSpentError, match="'dp-thresholds' takes"):
        clone(front).fit(X, y, sensitive_features=a)
    assert front.report_.method == "dp-thresholds" and np.isnan(front.report_.error)
    assert front.report_.metrics == {} == front.report_.violations
    data = pickle.dumps(front)
    for value in (*judged.metrics.values(), judged.objective):
        assert np.float64(value).tobytes() not in data and repr(float(value)).encode() not in data
    with pytest.raises(fo.DeclarationError, match="it takes none"):
        front.fit(X, y, sensitive_features=a, sample_weight=np.ones(len(y)))
    with pytest.raises(fo.DeclarationError, match="edges is None; with privacy"):
        ThresholdPostprocessor(Perceptron(), EqualizedOdds(0.1), privacy=budget, names=names).fit(
            X, y, sensitive_features=a
        )
    with pytest.raises(fo.DeclarationError, match="edges is given without privacy"):
        ThresholdPostprocessor(constraint=EqualizedOdds(0.1), edges=[0.5]).fit(X, y, sensitive_features=a)


def test_a_private_front_has_the_groups_that_are_named(tmp_path):
    """The names alone decide the groups, whether or not somebody is in each."""
    rng = np.random.default_rng(1)
    a = rng.choice(["a", "b"], 4000)
    X = rng.normal(size=(4000, 2))
    y = X.sum(axis=1) + rng.normal(size=4000) > 0
    demand, path = PredictiveValues(0.0, 0.0), str(tmp_path / "ledger.json")
    Ledger(PureDP(2.0), path=path)
    front = ThresholdPostprocessor(
        constraint=demand, privacy=PrivacyBudget(1.0), names=["a", "b", "c"], random_state=0, ledger=path
    )
    front.fit(X, y, sensitive_features=a)
    assert front.policy_.law.groups == ("a", "b", "c")
    assert front.predict(X[:2], sensitive_features=["a", "c"]).shape == (2,)
    assert clone(front).get_params()["names"] == ["a", "b", "c"]
    with pytest.raises(fo.DeclarationError, match="groups holds 'b'; the groups are a, c"):
        clone(front).set_params(names=["a", "c"]).fit(X, y, sensitive_features=a)
    for fields, rule in (
        ({"privacy": None}, "names is given without privacy"),
        ({"combine": "each"}, "combine is 'each'; the crossings that occur are private"),
        ({"names": None}, "names is missing; with privacy it must list all groups"),
    ):
        with pytest.raises(fo.DeclarationError, match=rule):
            clone(front).set_params(**fields).fit(X, y, sensitive_features=a)
    blind = clone(front).set_params(names=None, constraint=None).fit(X, y)
    assert blind.policy_.law.groups == ("all",) and not blind.policy_.needs_groups


def test_labels_sparse_tables_and_several_columns():
    import pandas as pd
    from scipy.sparse import csr_array
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.tree import DecisionTreeClassifier

    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 3))
    table = pd.DataFrame({"sex": rng.choice(["f", "m"], 400), "race": rng.choice(["p", "q"], 400)})
    y = X[:, 0] + (table["sex"] == "m") + rng.normal(size=400) > 0.5
    fronts = {}
    for combine in ("cross", "each"):
        clf = ThresholdPostprocessor(constraint=DemographicParity(0.01), combine=combine, random_state=0)
        fronts[combine] = clf.fit(X, y, sensitive_features=table)
        assert clf.policy_.law.groups == tuple(f"sex={s} & race={r}" for s in "fm" for r in "pq")
        share = clf.predict_proba(X, sensitive_features=table)[:, 1]
        by = [share[table["sex"] == s].mean() for s in "fm"], [share[table["race"] == r].mean() for r in "pq"]
        assert max(map(np.ptp, by)) <= 0.01 + 1e-6
        assert clf.score(X, y, sensitive_features=table) == pytest.approx(1 - clf.report_.error, abs=0.05)
    assert fronts["each"].report_.error <= fronts["cross"].report_.error + 1e-9
    tree = DecisionTreeClassifier(max_depth=3)
    dense, sparse = (
        ThresholdPostprocessor(tree, DemographicParity(0.05)).fit(Z, y, sensitive_features=table["sex"])
        for Z in (X, csr_array(X))
    )
    assert dense.report_.error == pytest.approx(sparse.report_.error)
    missing = np.where(X > 1, np.nan, X)
    assert ThresholdPostprocessor(tree).fit(missing, y).predict(missing).shape == (400,)
    with pytest.raises(fo.DeclarationError, match="its fit takes no sample_weight"):
        ThresholdPostprocessor(KNeighborsClassifier()).fit(X, y, sample_weight=np.ones(400))


class Labels(ClassifierMixin, BaseEstimator):
    """A classifier without a score."""

    def fit(self, X, y):
        self.classes_, self.cut_ = np.unique(y), np.median(X[:, 0])
        return self

    def predict(self, X):
        return self.classes_[(X[:, 0] > self.cut_).astype(int)]


def test_a_classifier_without_a_score_is_postprocessed_by_its_labels():
    rng = np.random.default_rng(3)
    a = rng.integers(0, 2, 600)
    X = rng.normal(size=(600, 1)) + a[:, None]
    y = X[:, 0] + rng.normal(size=600) > 0.8
    clf = ThresholdPostprocessor(Labels(), EqualizedOdds(0.05)).fit(X, y, sensitive_features=a)
    guess = clf.estimator_.predict(X)
    by_count = FairPostprocessing.from_predictions(guess, a, y, EqualizedOdds(0.05)).solve()
    assert clf.report_.error == pytest.approx(by_count.objective, abs=1e-8)


def test_the_plot_has_a_rising_line_for_each_group(tmp_path):
    s = instance(1, EqualizedOdds(0.05)).solve()
    axes = s.plot(tmp_path / "thresholds.png").axes[0]
    names = [line.get_label() for line in axes.lines]
    assert names == list(s.decision.groups) and (tmp_path / "thresholds.png").stat().st_size > 1000
    for line, name in zip(axes.lines, names, strict=True):
        scores, chance = line.get_xdata(), line.get_ydata()
        assert (np.diff(chance) >= 0).all()
        assert chance == pytest.approx(s.decision.probability(scores, [name] * len(scores)))
    never = RandomizedThresholds(("a",), (np.array([np.inf]),), (np.array([1.0]),))
    assert never.plot().axes[0].lines[0].get_ydata().max() == 0


def test_sensitive_columns_are_served_by_name():
    """Both columns have the same values, so that another order of columns is another group."""
    import pandas as pd

    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 2))
    table = pd.DataFrame({"self": rng.choice(["f", "m"], 400), "boss": rng.choice(["f", "m"], 400)})
    y = X[:, 0] + (table["self"] == "m") + rng.normal(size=400) > 0.5
    for combine in ("cross", "each"):
        clf = ThresholdPostprocessor(constraint=DemographicParity(0.01), combine=combine)
        chance = clf.fit(X, y, sensitive_features=table).predict_proba(X, sensitive_features=table)
        swapped = table[["boss", "self"]]
        assert np.array_equal(clf.predict_proba(X, sensitive_features=swapped), chance)
        assert np.array_equal(clf.predict_proba(X, sensitive_features=table.to_numpy()), chance)
        for wrong in (table.assign(age=1), table[["self"]], table.rename(columns={"boss": "age"})):
            with pytest.raises(fo.DeclarationError, match=r"sensitive_features has .*the thresholds know"):
                clf.predict_proba(X, sensitive_features=wrong)
        with pytest.raises(fo.DeclarationError, match="the thresholds know self, boss"):
            clf.predict_proba(X, sensitive_features=table["self"])


def test_decisions_refuse_groups_in_another_order():
    import pandas as pd

    from forcopt.models.fair_postprocessing import RandomizedPostprocessor, RandomizedRemix

    one, other = pd.Series([0, 1], index=["p", "q"]), pd.Series(["a", "b"], index=["q", "p"])
    table = np.array([[0.2, 0.3], [0.7, 0.8]])
    thresholds = RandomizedThresholds(("a", "b"), (np.zeros(1), np.ones(1)), (np.ones(1), np.ones(1)))
    remix = RandomizedRemix(np.stack([1 - table, table], axis=2), ("0", "1"), ("a", "b"))
    for answer in (
        RandomizedPostprocessor(table, ("a", "b"), np.zeros((2, 2))).predict,
        thresholds.probability,
        remix.probability,
    ):
        assert len(answer(one, other.to_numpy())) == 2
        with pytest.raises(fo.DeclarationError, match=r"groups has the labels of .* in another order"):
            answer(one, other)
