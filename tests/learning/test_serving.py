"""Every learned policy answers a record alike in a batch, alone, in another order, and in another process."""

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import forcopt as fo
from forcopt.fairness import DemographicParity, EqualizedOdds
from forcopt.learning import Halfspaces, Thresholds
from forcopt.learning.halfspaces import Halfspace
from forcopt.learning.thresholds import Cuts, Offsets, levels, lowest_cut
from forcopt.learning.tolerances import ROUNDING
from forcopt.models import AdaptiveRobustClassification, ScorePostprocessing, StrategicLinearClassifier
from forcopt.models.fair_classification import FairClassifier, RandomizedClassifier
from forcopt.models.fair_postprocessing import ThresholdPostprocessor
from forcopt.models.lexifair import FairRegressor

N, D = 600, 12


@pytest.fixture(scope="module", autouse=True)
def enumeration():
    """Registers the oracle; the processes that import this file for their helpers do without."""
    import robustness_oracle  # noqa: F401


def people(seed, several=False):
    """Four kinds of people with 12 features: the score of a kind has another last digit in another batch."""
    rng = np.random.default_rng(seed)
    kinds = rng.normal(size=(4, D))
    kind = rng.integers(0, 4, N)
    X = pd.DataFrame(kinds[kind], columns=[f"x{j}" for j in range(D)])
    group = rng.choice(["a", "b"], N)
    chance = np.array([0.2, 0.4, 0.6, 0.8])[kind] + 0.15 * (group == "a") - 0.05
    y = (rng.random(N) < chance).astype(int)
    return X, y + (several & (rng.random(N) < 0.3)), group


CASES = {
    "default": lambda: FairClassifier(EqualizedOdds(0.02), draws="row", random_state=1),
    "pipeline": lambda: FairClassifier(
        EqualizedOdds(0.02), make_pipeline(StandardScaler(), LogisticRegression()), draws="row"
    ),
    "thresholds": lambda: FairClassifier(DemographicParity(0.0), Thresholds(), draws="row"),
    "regression": lambda: FairClassifier(
        DemographicParity(0.0), Halfspaces(search="regression"), draws="row"
    ),
    "several": lambda: FairClassifier(DemographicParity(0.01), LogisticRegression(), draws="row"),
    "scores": lambda: ThresholdPostprocessor(LogisticRegression(), EqualizedOdds(0.02), draws="row"),
    "margins": lambda: ThresholdPostprocessor(
        make_pipeline(StandardScaler(), LogisticRegression()), DemographicParity(0.0), draws="row"
    ),
    "forest": lambda: ThresholdPostprocessor(
        RandomForestClassifier(20, max_depth=3, random_state=0, n_jobs=2), EqualizedOdds(0.02), draws="row"
    ),
    "remix": lambda: ThresholdPostprocessor(LogisticRegression(), DemographicParity(0.0), draws="row"),
    "regressor": FairRegressor,
}
SEES_GROUPS = {"scores", "margins", "forest", "remix"}


def answers(name, fitted, X, group):
    """The probabilities, and the drawn labels, as one table."""
    extra = {"sensitive_features": group} if name in SEES_GROUPS else {}
    predicted = np.asarray(fitted.predict(X, **extra), dtype=float)
    if name == "regressor":
        return predicted[:, None]
    return np.column_stack([fitted.predict_proba(X, **extra), predicted])


@pytest.fixture(scope="module", params=[6, 20])
def served(request, tmp_path_factory):
    """All cases, fitted; and what they answer in another process, where they are read from files."""
    path = tmp_path_factory.mktemp("served")
    fitted = {}
    for name, make in CASES.items():
        X, y, group = people(request.param, several=name in ("several", "remix"))
        fitted[name] = make().fit(X, y, sensitive_features=group), X, group
    (path / "fitted.pickle").write_bytes(pickle.dumps(fitted))
    program = (
        "import pickle, sys; from pathlib import Path; import tests.learning.test_serving as t\n"
        "path = Path(sys.argv[1]); fitted = pickle.loads((path / 'fitted.pickle').read_bytes())\n"
        "found = {name: t.answers(name, *case) for name, case in fitted.items()}\n"
        "(path / 'answers.pickle').write_bytes(pickle.dumps(found))"
    )
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", program, str(path)], check=True, cwd=root, timeout=300)
    return fitted, pickle.loads((path / "answers.pickle").read_bytes())


@pytest.mark.parametrize("name", CASES)
def test_a_record_gets_the_same_answer_however_it_is_asked(served, name):
    fitted, elsewhere = served
    model, X, group = fitted[name]
    batch = answers(name, model, X, group)
    order = np.random.default_rng(0).permutation(N)
    permuted = np.empty_like(batch)
    permuted[order] = answers(name, model, X.iloc[order], group[order])
    asked = np.random.default_rng(1).choice(N, 60, replace=False)
    alone = np.vstack([answers(name, model, X.iloc[[i]], group[[i]]) for i in asked])
    reordered = answers(name, model, X[X.columns[::-1]], group)
    for other, own in (
        (reordered, batch),
        (permuted, batch),
        (alone, batch[asked]),
        (elsewhere[name], batch),
    ):
        np.testing.assert_allclose(other, own, rtol=1e-9, atol=1e-12)


def test_a_cut_lies_between_scores_that_differ_by_more_than_rounding():
    scores = np.array([0.3, np.nextafter(0.3, 1), 0.1 + 0.2, 0.6, np.nextafter(0.6, 0)])
    assert levels(scores, ROUNDING)[2].tolist() == [0, 0, 0, 1, 1]
    made = []
    Cuts(scores, made.append).best(np.array([1.0, 1.0, 1.0, -1.0, -1.0]))[1].classifier
    for cut in (made[0], lowest_cut(scores, np.array([1.0, 1.0, 1.0, -1.0, -1.0]), ROUNDING)):
        assert cut == pytest.approx(0.45)
    assert levels(np.array([0.0, 1e-17, 1.0, -1.0]), ROUNDING)[2].tolist() == [1, 1, 2, 0]
    assert levels(np.array([1e-17, 2e-17, 1.0]), ROUNDING)[2].tolist() == [0, 1, 2]


def test_offsets_leave_no_record_at_a_tie():
    """Two classes tie for a quarter of the records; which of them is predicted there does not matter."""
    scores = np.array([[0.3, 0.3, -1.0], [1.0, 0.0, -1.0], [0.0, 1.0, -1.0], [-1.0, -1.0, 1.0]])
    costs = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    made = []
    cost, found = Offsets(scores, made.append).best(costs.ravel())
    found.classifier
    total = np.sort(scores + made[0], axis=1)
    assert cost == 0.0 and (total[:, -1] - total[:, -2] > 1e-6).all()


def test_thresholds_on_given_scores_lie_between_them():
    """Of neighbouring floats the larger is the threshold: whoever reaches it is predicted 1."""
    near = np.nextafter(2.0, 3.0)
    s = ScorePostprocessing(
        scores=[1.0, 2.0, near, 3.0] * 2,
        labels=[0, 0, 1, 1, 0, 1, 1, 1],
        groups=["a"] * 4 + ["b"] * 4,
        constraint=DemographicParity(1.0),
    ).solve()
    assert s.objective == 0.0
    assert [t.tolist() for t in s.decision.thresholds] == [[near], [1.5]]


@pytest.mark.parametrize("method", ["enumeration", "milp", "misocp"])
def test_no_point_lies_on_the_border_of_a_robust_halfspace(method):
    """Points of radius 0 may lie on it in an optimum."""
    X = np.array([[0.1, 0.7], [0.3, 0.7], [0.7, 0.1], [0.9, 0.3], [0.2, 0.4], [0.6, 0.6]])
    y = np.array([0, 0, 1, 1, 0, 1])
    norm = "linf" if method == "milp" else "l2"
    p = AdaptiveRobustClassification(X, y, radii=np.zeros(6), norm=norm)
    found = p.solve(method).decision
    for move in (1e-12, -1e-12):
        assert (found.predict(X + move) == found.predict(X)).all()
    assert p.evaluate(found).objective == 0.0


def test_one_unit_in_the_last_place_moves_no_strategic_agent():
    X = np.array([[6, 4], [12, 1], [8, 0], [7, 1], [2, 1], [0, 3]], dtype=float)
    given = {"truth": ([1, 2], 12), "costs": [0.2, 0.2], "improvable": [True, False]}
    p = StrategicLinearClassifier(X=X, **given)
    found = p.solve().decision
    for end in (np.inf, -np.inf):
        moved = StrategicLinearClassifier(X=np.nextafter(X, end), **given)
        assert (moved.simulate(found).choice == p.simulate(found).choice).all()


def named(frame, y):
    """The linear decisions whose columns have names, by problem: each predicts frames and has a file."""
    robust = AdaptiveRobustClassification(frame, y, fraction=0.4, norm="linf")
    strategic = StrategicLinearClassifier(
        X=frame, truth=([1.0, 2.0, 0.5], 1.0), costs=[2.0, 3.0, 1.0], improvable=[True, False, True]
    )
    return {
        "robust": (robust, robust.solve("milp").decision),
        "hinge": (robust, robust.solve("hinge").decision),
        "tree": (robust, robust.solve("augmented", learner=DecisionTreeClassifier(), seed=0).decision),
        "strategic": (strategic, strategic.solve().decision),
        "truth": (strategic, strategic.solve("truth").decision),
    }


def test_linear_decisions_know_their_features_by_name():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.normal(size=(20, 3)) * [1, 5, 25], columns=["debt", "age", "rate"])
    y = (frame.debt + frame.age > 0).astype(int)
    turned = frame[["rate", "debt", "age"]]
    for name, (problem, decision) in named(frame, y).items():
        want = decision.predict(frame)
        assert (decision.predict(turned) == want).all(), name
        assert (decision.predict(frame.to_numpy()) == want).all(), name
        assert len(set(want)) == 2, name  # else any order gives the same
        with pytest.raises(ValueError, match="X lacks column 'age'; the features are debt, age, rate"):
            decision.predict(frame.rename(columns={"age": "Age"}))
        order = [2, 0, 1]
        fields = {"features": turned} if "features" in type(problem).model_fields else {"X": turned}
        if "truth" in type(problem).model_fields:
            a, b = problem.truth
            fields |= {"truth": (a[order], b), "costs": problem.costs[order]}
            fields |= {"improvable": problem.improvable[order]}
        other = problem.replace(**fields, feature_names=tuple(turned.columns))
        assert other.evaluate(decision).objective == problem.evaluate(decision).objective, name
        assert "age" in repr(decision) or name == "tree"
    for name in ("robust", "tree"):
        decision = named(frame, y)[name][1]
        again = type(decision).from_dict(decision.to_dict())
        assert (again.predict(turned) == decision.predict(frame)).all()


def test_the_model_of_a_fair_regressor_knows_its_features_by_name():
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(rng.normal(size=(40, 3)) * [1, 5, 25], columns=["debt", "age", "rate"])
    y = frame @ [1.0, 2.0, 3.0] + 1.0
    fair = FairRegressor().fit(frame, y, sensitive_features=rng.choice(["a", "b"], 40))
    assert fair.model_.features == ("debt", "age", "rate", "intercept")
    again = type(fair.model_).from_dict(fair.model_.to_dict())
    turned = frame[["rate", "debt", "age"]].assign(intercept=1.0)
    assert again.predict(turned) == pytest.approx(fair.predict(frame), abs=1e-12)
    with pytest.raises(ValueError, match="X lacks column 'intercept'"):
        again.predict(frame)
    taken = FairRegressor().fit(frame.rename(columns={"age": "intercept"}), y)
    assert taken.model_.features == ("debt", "intercept", "rate", "_intercept")
    assert FairRegressor(fit_intercept=False).fit(frame, y).model_.features == ("debt", "age", "rate")
    assert FairRegressor().fit(frame.to_numpy(), y).model_.features == ()


def test_points_without_balls_leave_a_short_normal_that_is_no_constant():
    """The default program of the plane was read as a constant: status FAILED."""
    X = np.repeat([[0.0, -0.1], [0.0, 0.0], [0.0, 0.1]], [15, 7, 14], axis=0)
    y = np.r_[np.arange(15) < 4, np.arange(7) < 6, np.arange(14) < 5].astype(int)
    p = AdaptiveRobustClassification(X, y, radii=np.zeros(36))
    for method in ("misocp", "enumeration"):
        s = p.solve(method)
        assert s.status == "optimal" and s.objective == pytest.approx(14 / 36)
        assert s.decision.predict([[0.0, -0.1], [0.0, 0.0], [0.0, 0.1]]).tolist() == [0, 1, 1]


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize(
    ("kinds", "labels"),
    [
        ([[1, 0.1], [1.8, 0], [0.5, 0], [-1.4, -0.1], [0.1, -0.1], [-0.2, 0.1]], [0, 0, 0, 0, 0, 1]),
        ([[-0.6, 0], [-21.3, 0], [8.3, 0], [-5.4, 0]], [0, 1, 0, 1]),
        ([[0.1, 0.2], [0.2, 0.4], [0.3, 0.6]], [1, 0, 0]),
        ([[0.0, -0.1], [0.0, 0.2], [0.0, 0.1], [0.0, 0.0]], [0, 1, 0, 0]),
    ],
)
def test_enumeration_prefers_halfspaces_without_a_point_on_the_border(kinds, labels, norm):
    """Directions at which two points tie rest on the last digit of their scores."""
    X, y = np.repeat(np.array(kinds, dtype=float), 2, axis=0), np.repeat(labels, 2)
    p = AdaptiveRobustClassification(X, y, radii=np.zeros(len(X)), norm=norm)
    found = p.solve("enumeration").decision
    assert p.evaluate(found).objective == 0.0
    for end in (-np.inf, np.inf):
        assert (found.predict(np.nextafter(X, end)) == y).all()


@pytest.mark.parametrize("estimator", [FairClassifier, ThresholdPostprocessor, FairRegressor])
def test_names_that_are_text_of_numpy_are_names(estimator):
    """scikit-learn takes such columns by position."""
    rng = np.random.default_rng(0)
    values, group = rng.normal(size=(80, 2)), rng.choice(["a", "b"], 80)
    X = pd.DataFrame(values, columns=list(np.array(["income", "debt"])))
    y = (values[:, 0] + rng.normal(size=80) > 0).astype(int)
    fitted = estimator().fit(X, y, sensitive_features=group)
    asked = {"sensitive_features": group} if estimator is ThresholdPostprocessor else {}
    answer = fitted.predict if estimator is FairRegressor else fitted.predict_proba
    assert np.array_equal(answer(X[["debt", "income"]], **asked), answer(X, **asked))
    with pytest.raises(ValueError, match="lacks column 'debt'"):
        answer(X[["income"]], **asked)


def test_a_mixture_of_many_classifiers_adds_its_weights_in_one_order():
    rng = np.random.default_rng(0)
    halfspaces = [Halfspace(rng.normal(size=2), float(rng.normal())) for _ in range(30)]
    mixture = RandomizedClassifier(tuple(halfspaces), rng.dirichlet(np.ones(30)))
    X = rng.normal(size=(200, 2))
    together = mixture.probability(X)
    assert [float(mixture.probability(x[None])[0]) for x in X] == together.tolist()


@pytest.mark.parametrize(
    "made", [FairClassifier, ThresholdPostprocessor, FairRegressor], ids=lambda c: c.__name__
)
def test_a_frame_without_rows_columns_or_names_is_refused(made):
    X = pd.DataFrame({"a": np.arange(20.0), "b": np.arange(20.0) % 3})
    y, groups = np.arange(20) % 2, ["u", "v"] * 10
    limit = DemographicParity(0.1)
    parts = {FairClassifier: (limit,), ThresholdPostprocessor: (LogisticRegression(), limit)}
    new = lambda: made() if made is FairRegressor else made(*parts[made])  # noqa: E731
    for wrong in (X[:0], X[[]], pd.DataFrame(), X.a, X.set_axis(["a", "a"], axis=1)):
        with pytest.raises(
            fo.DeclarationError, match=f"{made.__name__}: X is a .* of shape .* a row at least"
        ):
            new().fit(wrong, y[: len(wrong)], sensitive_features=groups[: len(wrong)])
    fitted = new().fit(X, y, sensitive_features=groups)
    with pytest.raises(fo.DeclarationError, match=r"X has the shape \(0, 2\)"):
        fitted.policy_.predict(X[:0], []) if made is not FairRegressor else fitted.policy_.predict(X[:0])
    with pytest.raises(fo.DeclarationError, match="a row at least"):
        fitted.predict(X[:0])
