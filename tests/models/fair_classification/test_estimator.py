import json
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.optimize import linprog

pytest.importorskip("sklearn")
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

import forcopt as fo
from forcopt.fairness import DemographicParity, EqualizedOdds, PairwiseFairness
from forcopt.models.fair_classification import FairClassification, FairClassifier, Learner, Thresholds
from forcopt.privacy import PrivacyBudget, RandomizedResponse


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
    pipe = make_pipeline(StandardScaler(), FairClassifier(DemographicParity(0.02), random_state=0))
    pipe.fit(X, y, fairclassifier__sensitive_features=a)
    share = pipe.predict_proba(X)[:, 1]
    assert abs(share[a == "u"].mean() - share[a == "v"].mean()) <= 0.02 + 1e-6
    drawn = pipe.predict(X)
    assert set(drawn) == {"no", "yes"} and np.array_equal(drawn, pipe.predict(X))
    assert abs((drawn == "yes").mean() - share.mean()) < 5 * np.sqrt(0.25 / len(X))
    assert (drawn == y).mean() > 0.6


def test_row_numbers_are_uniform_and_change_with_the_seed():
    from forcopt.learning.tables import row_numbers

    X = np.arange(20000.0)[:, None] // 1 / 7
    lots = row_numbers(X, 0)
    assert np.abs(np.sort(lots) - (np.arange(20000) + 0.5) / 20000).max() < 0.014  # Kolmogorov-Smirnov, 0.1 %
    assert np.corrcoef(lots, row_numbers(X, 1))[0, 1] == pytest.approx(0, abs=0.03)
    assert np.corrcoef(lots[1:], lots[:-1])[0, 1] == pytest.approx(0, abs=0.03)


def test_the_metrics_of_fairlearn_agree():
    from fairlearn import metrics

    X, y, a = people()
    clf = FairClassifier(EqualizedOdds(0.0), learner=Thresholds(), keep_solution=True)
    clf.fit(X, y, sensitive_features=a)
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
    with pytest.raises(fo.DeclarationError, match="y has 1 class among the records of positive weight"):
        FairClassifier(DemographicParity(0.1)).fit(X, y, sensitive_features=a, sample_weight=y == "yes")
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


def by_sign(X):
    return np.sin(50 * np.asarray(X, dtype=float)[:, 0]) > 0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("draws", ["record", "row"])
def test_it_is_an_estimator_with_a_constraint(draws):
    """With a limit that draws no lots: a check asks for predictions of the largest probability."""
    check_estimator(FairClassifier(DemographicParity(0.2), sensitive=by_sign, draws=draws))


def binary_feature(n=20_000):
    """One binary feature that tells the groups apart, and labels that follow it."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, n)
    x = (rng.random(n) < 0.2 + 0.6 * a).astype(float)
    y = rng.random(n) < 0.15 + 0.7 * x
    return x[:, None], y, a


@pytest.mark.parametrize("constraint", [DemographicParity(0.25), EqualizedOdds(0.25)])
def test_realised_rates_keep_the_tolerance_on_discrete_features(constraint):
    """Systematic draws: a group's realised rate is within 6 / (2 sqrt(n)) of its probability."""
    X, y, a = binary_feature()
    worst = {}
    for draws in ("record", "row"):
        found = []
        for seed in range(20):
            clf = FairClassifier(constraint, Thresholds(), draws=draws, random_state=seed, keep_solution=True)
            rates = clf.fit(X, y, sensitive_features=a).solution_.problem.rates(clf.predict(X).astype(float))
            found.append(max(constraint.disparity(rates).values()))
        worst[draws] = max(found)
    assert worst["record"] <= 0.25 + 0.05
    assert worst["row"] > 0.35  # the price of the same answer for the same row


def test_the_same_row_gets_the_same_answer_if_asked():
    X, y, a = binary_feature(2000)
    clf = FairClassifier(DemographicParity(0.05), Thresholds(), draws="row", random_state=3)
    drawn = clf.fit(X, y, sensitive_features=a).predict(X)
    assert all(len(set(drawn[X[:, 0] == v])) == 1 for v in (0, 1))
    assert clf.predict(X[:5]).tolist() == drawn[:5].tolist()


def test_fresh_draws_differ_and_an_int_repeats():
    X, y, a = binary_feature(2000)
    clf = FairClassifier(DemographicParity(0.05), Thresholds()).fit(X, y, sensitive_features=a)
    assert (clf.predict(X) != clf.predict(X)).any()
    clf.set_params(random_state=1)
    assert (clf.predict(X) == clf.predict(X)).all()


def test_a_pickle_holds_no_training_record():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)) + 0.123456789
    y, a = X[:, 0] + rng.normal(size=300) > 0, np.where(rng.random(300) < 0.5, "secretA", "secretB")
    for learner in (None, Thresholds(), LogisticRegression()):
        for method in ("column-generation", "exponentiated-gradient"):
            clf = FairClassifier(DemographicParity(0.1), learner, method=method)
            data = pickle.dumps(clf.fit(X, y, sensitive_features=a))
            assert not any(v.tobytes() in data for v in X.ravel())
            assert len(data) < 300 * 8 + 30_000 and y.tobytes() not in data
            again = pickle.loads(data)
            assert again.predict_proba(X).tolist() == clf.predict_proba(X).tolist()
            assert not hasattr(clf, "solution_")
    kept = FairClassifier(DemographicParity(0.1), Thresholds(), keep_solution=True)
    kept.fit(X, y, sensitive_features=a)
    assert pickle.loads(pickle.dumps(kept)).solution_.objective == kept.report_.error


def test_constraints_are_parameters():
    from sklearn.model_selection import GridSearchCV

    X, y, a = people(300)
    table = np.column_stack([X, a == "u"])
    grid = GridSearchCV(
        FairClassifier(DemographicParity(0.5), Thresholds(), sensitive=3, random_state=0),
        {"constraint__tolerance": [0.0, 0.3]},
        cv=2,
    ).fit(table, y)
    assert grid.best_params_ == {"constraint__tolerance": 0.3}
    clf = FairClassifier(DemographicParity(0.1)).set_params(constraint__tolerance=0.2, method="lp")
    assert clf.constraint == DemographicParity(0.2) and clf.get_params()["constraint__tolerance"] == 0.2
    with pytest.raises(fo.DeclarationError, match="has no parameter tolerance"):
        FairClassifier().set_params(constraint__tolerance=0.2)
    with pytest.raises(ValueError, match="unknown field"):
        clf.set_params(constraint__bound=1.0)


def test_weights_count_like_copies():
    X, y, a = people(80)
    weight = np.random.default_rng(0).integers(0, 4, 80)
    weight[:4] = 1
    copies = np.repeat(np.arange(80), weight)
    by_weight = FairClassifier(EqualizedOdds(0.05), Thresholds())
    by_weight.fit(X, y, sensitive_features=a, sample_weight=weight)
    by_copy = FairClassifier(EqualizedOdds(0.05), Thresholds())
    by_copy.fit(X[copies], y[copies], sensitive_features=a[copies])
    assert by_weight.report_.error == pytest.approx(by_copy.report_.error, abs=1e-9)
    assert not by_weight.report_.violations


def test_metadata_is_routed():
    from sklearn import config_context
    from sklearn.linear_model import Perceptron
    from sklearn.model_selection import cross_val_score

    X, y, a = people(200)
    with config_context(enable_metadata_routing=True):
        clf = FairClassifier(DemographicParity(0.1), random_state=0)
        clf.fit(X, y, sensitive_features=a)
        routed = clf.set_fit_request(sensitive_features=True, sample_weight=True)
        routed.set_score_request(sample_weight=False)
        scores = cross_val_score(
            routed, X, y, cv=2, params={"sensitive_features": a, "sample_weight": np.ones(200)}
        )
        assert scores.min() > 0.5
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        make_pipeline(scaler, routed).fit(X, y, sensitive_features=a, sample_weight=np.ones(200))
        FairClassifier(DemographicParity(0.1), Perceptron()).fit(X, y, sensitive_features=a)


def test_sensitive_columns_are_named_and_crossed():
    X, y, a = people(400)
    frame = pd.DataFrame(X, columns=["x", "y", "z"]).assign(group=a, half=np.arange(400) % 2)
    by_name = FairClassifier(DemographicParity(0.05), Thresholds(), sensitive="group").fit(frame, y)
    given = FairClassifier(DemographicParity(0.05), Thresholds())
    given.fit(frame.drop(columns="group"), y, sensitive_features=a)
    assert by_name.report_.error == pytest.approx(given.report_.error)
    assert by_name.predict_proba(frame).shape == (400, 2)
    crossed = FairClassifier(DemographicParity(0.05), Thresholds(), sensitive=["group", "half"]).fit(frame, y)
    named = {"selection rate of group=u & half=0", "selection rate of group=v & half=1"}
    assert named <= set(crossed.report_.metrics)
    with pytest.raises(fo.DeclarationError, match="sensitive is 'sex'; X has no such column"):
        FairClassifier(DemographicParity(0.05), Thresholds(), sensitive="sex").fit(frame, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"learner": LogisticRegression}, "not an instance such as LogisticRegression"),
        ({"learner": LinearRegression()}, "an estimator is given that is no classifier"),
        ({"learner": StandardScaler()}, "that is no classifier"),
        ({"random_state": "seven"}, "random_state is 'seven'"),
        ({"random_state": -1}, "random_state is -1"),
        ({"random_state": 1.5}, "random_state is 1.5"),
        ({"draws": "both"}, "draws is 'both'"),
        ({"constraint": 0.1}, "constraint is 0.1; it must be a fairness notion"),
        ({"options": {"rounds": 1.5}}, "rounds is 1.5; it must be a whole number"),
        ({"method": "exponentiated-gradient", "options": {"rounds": 1.5}}, "rounds is 1.5"),
        ({"method": "no-regret", "options": {"rounds": 1.5}}, "rounds is 1.5"),
    ],
)
def test_odd_parameters_are_refused_at_fit(parameters, message):
    X, y, a = people(60)
    with pytest.raises(fo.DeclarationError, match=message):
        FairClassifier(**{"constraint": DemographicParity(0.1), **parameters}).fit(X, y, sensitive_features=a)


def test_one_named_group_and_missing_ones_cannot_be_compared():
    X, y, _ = people(60)
    groups = [None if i % 2 else "a" for i in range(60)]
    with pytest.raises(fo.DeclarationError, match="'a' is the only named group"):
        FairClassifier(EqualizedOdds(0.1), Thresholds()).fit(X, y, sensitive_features=groups)
    table = pd.DataFrame({"sex": groups, "race": ["p", "q", "q"] * 20})
    with pytest.raises(fo.DeclarationError, match="groups by sex: 'a' is the only named group"):
        FairClassifier(EqualizedOdds(0.1), Thresholds(), combine="each").fit(X, y, sensitive_features=table)


def test_crossed_groups_never_merge():
    """Values that hold the separator keep their groups apart: else one group would satisfy any parity."""
    X, y, a = people(200)
    values = {"u": ("a & b", "c"), "v": ("a", "b & c")}
    table = np.array([values[g] for g in a], dtype=object)
    two = FairClassifier(DemographicParity(0.05), Thresholds()).fit(X, y, sensitive_features=table)
    one = FairClassifier(DemographicParity(0.05), Thresholds()).fit(X, y, sensitive_features=a)
    assert two.report_.error == pytest.approx(one.report_.error)
    twins = np.array([["0 & column 1=1", "2"], ["0", "1 & column 1=2"]], dtype=object)[[0, 1] * 100]
    with pytest.raises(fo.DeclarationError, match="two groups have the name"):
        FairClassifier(DemographicParity(0.05), Thresholds()).fit(X, y, sensitive_features=twins)


@pytest.mark.parametrize("kind", [DemographicParity, EqualizedOdds])
def test_each_sensitive_column_for_itself(kind):
    """The least error over all mixtures, by a linear program with the rates of either column."""
    rng = np.random.default_rng(4)
    X, y, a = people(300, 4)
    table = pd.DataFrame({"sex": a, "race": rng.choice(["p", "q", "r"], 300)})
    table.loc[::50, "race"] = None  # such records count for sex and for the error
    clf = FairClassifier(kind(0.03), Thresholds(column=0), combine="each")
    clf.fit(X, y, sensitive_features=table)
    cuts = np.unique(X[:, 0])
    up = np.array([X[:, 0] >= c for c in [*cuts, np.inf]])
    votes, truth = np.vstack([up, ~up]).astype(float), y == "yes"
    rows = []
    for given in (np.ones(300, bool),) if kind is DemographicParity else (truth, ~truth):
        for name in table:
            known = table[name].dropna().unique()
            rates = [votes[:, given & (table[name] == v)].mean(axis=1) for v in known]
            rows += [p - q for p in rates for q in rates if p is not q]
    error = np.abs(votes - truth).mean(axis=1)
    best = linprog(error, rows, [0.03] * len(rows), np.ones((1, len(votes))), [1])
    assert clf.report_.status == "optimal" and not clf.report_.violations
    assert clf.report_.error == pytest.approx(best.fun, abs=1e-7)
    assert any(name.endswith("by race") for name in clf.report_.metrics)
    crossed = FairClassifier(kind(0.03), Thresholds(column=0)).fit(X, y, sensitive_features=table)
    assert crossed.report_.error >= 0 and not any("by race" in name for name in crossed.report_.metrics)
    with pytest.raises(
        fo.DeclarationError, match="combine is 'both'; it must be 'cross', 'each' or 'subgroups'"
    ):
        FairClassifier(kind(0.03), Thresholds(), combine="both").fit(X, y, sensitive_features=table)


def test_pairs_name_records_by_position_also_with_weights_of_zero():
    X, y = np.arange(5.0)[:, None], [0, 1, 0, 1, 1]
    pairs = PairwiseFairness([(4, 1)])  # the second is treated at least as well as the last
    share = (
        FairClassifier(pairs, Thresholds()).fit(X, y, sample_weight=[0, 1, 1, 1, 1]).predict_proba(X)[:, 1]
    )
    assert share[1] >= share[4] - 1e-9


@pytest.mark.parametrize("learner", [LogisticRegression(), DecisionTreeClassifier(max_depth=3)])
@pytest.mark.parametrize("draws", ["record", "row"])
def test_sparse_features_are_learnt_like_dense_ones(learner, draws):
    X, y, a = people(300)
    rng = np.random.default_rng(1)
    dense = np.where(rng.random((300, 8)) < 0.3, rng.normal(size=(300, 8)), 0.0)
    dense[:, :3] += X
    table = sparse.csr_matrix(dense)
    front = FairClassifier(EqualizedOdds(0.05), learner, draws=draws, random_state=0, sensitive=7)
    dense[:, 7] = a == "u"
    table = sparse.csr_matrix(dense)
    share = front.fit(table, y).predict_proba(table)[:, 1]
    drawn = front.predict(table)
    assert (drawn == front.predict(table)).all() and abs((drawn == "yes").mean() - share.mean()) < 0.2
    assert front.fit(dense, y).predict_proba(dense)[:, 1] == pytest.approx(share)
    p = FairClassification(table, y == "yes", a, EqualizedOdds(0.05), None, Learner(learner))
    again = fo.Problem.from_dict(json.loads(json.dumps(p.to_dict())))
    assert again == p and hash(again) == hash(p)
    with pytest.raises(fo.DeclarationError, match="features is sparse; Thresholds takes dense features"):
        FairClassification(table, y == "yes", a, EqualizedOdds(0.05), None, Thresholds())


def test_missing_values_go_to_a_learner_that_takes_them():
    X, y, a = people(300)
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    tree = DecisionTreeClassifier(max_depth=4)
    for draws in ("record", "row"):
        clf = FairClassifier(EqualizedOdds(0.05), tree, draws=draws, random_state=0)
        clf.fit(X, y, sensitive_features=a)
        assert not clf.report_.violations and (clf.predict(X) == clf.predict(X)).all()
    p = FairClassification(X, y == "yes", a, EqualizedOdds(0.05), None, Learner(tree))
    assert fo.Problem.from_dict(json.loads(json.dumps(p.to_dict()))) == p
    with pytest.raises(ValueError, match="contains NaN"):
        FairClassifier(EqualizedOdds(0.05), LogisticRegression()).fit(X, y, sensitive_features=a)
    with pytest.raises(fo.DeclarationError, match=r"features\[\d+, \d\] is nan; Thresholds takes"):
        FairClassification(X, y == "yes", a, EqualizedOdds(0.05), None, Thresholds())


def test_a_private_front_reports_released_numbers_only():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 40_000)
    X = rng.integers(0, 5, 40_000)[:, None].astype(float)
    y = X[:, 0] + rng.normal(size=40_000) > 2
    clf = FairClassifier(
        EqualizedOdds(0.1),
        Thresholds(direction="above"),
        privacy=PrivacyBudget(epsilon=8.0, delta=1e-6, floor=5000),
        options={"bound": 2.0, "seed": 0},
    ).fit(X, y, sensitive_features=a)
    assert clf.report_.status == "approximate" and clf.report_.method == "dp-oracle-learner"
    assert np.isnan(clf.report_.error) and clf.report_.metrics == {} == clf.report_.violations
    assert clf.predict_proba(X).shape == (40_000, 2)
    true = FairClassifier(EqualizedOdds(0.1), Thresholds(direction="above")).fit(X, y, sensitive_features=a)
    data = pickle.dumps(clf).decode("latin-1") + repr(clf.report_)
    for name, value in true.report_.metrics.items():
        assert name not in data
        assert value == 0 or np.float64(value).tobytes().decode("latin-1") not in data


def test_the_mixture_is_drawn_with_its_classifiers(tmp_path):
    X, y, a = people(200)
    p = FairClassification(X, y == "yes", a, EqualizedOdds(0.02), hypotheses=Thresholds())
    s = p.solve()
    bars = s.plot(tmp_path / "weights.png").axes[0]
    assert sorted(bar.get_width() for bar in bars.patches) == pytest.approx(sorted(s.decision.weights))
    axes = s.plot(tmp_path / "front.png", problem=p).axes[0]
    points, star = (part.get_offsets() for part in axes.collections)
    assert star.tolist()[0] == pytest.approx([0.02, s.objective], abs=1e-6)
    assert len(points) == len(s.decision.weights) and s.objective <= points[:, 1].max() + 1e-9
    assert s.decision.weights @ points[:, 1] == pytest.approx(s.objective)
    pairs = FairClassification(X, y == "yes", a, PairwiseFairness([(0, 1)]), hypotheses=Thresholds())
    assert pairs.solve().decision.plot().axes[0].patches
