"""The policy that is served is the one that was proved: any learner, any table, any way to ask."""

import os
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from typer.testing import CliRunner

import forcopt as fo
from forcopt.cli import app
from forcopt.fairness import DemographicParity, EqualizedOdds
from forcopt.learning import Learner, Schema, Stumps
from forcopt.learning.tables import row_numbers
from forcopt.models import (
    AdaptiveRobustClassification,
    FairClassification,
    FairPostprocessing,
    LexifairClassification,
    MulticlassPostprocessing,
    ScorePostprocessing,
)
from forcopt.models.fair_classification import FairClassifier
from forcopt.models.fair_postprocessing import ThresholdPostprocessor
from forcopt.models.lexifair import FairRegressor

N = 300


def people(seed=0):
    """A table with text, categories, truth values and blanks, in which rows repeat."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": rng.integers(2, 6, N) * 10.0,
            "job": rng.choice(["cook", "nurse", "clerk"], N),
            "town": pd.Categorical(rng.choice(["Rome", "Oslo"], N)),
            "owner": rng.random(N) < 0.5,
        }
    )
    X.loc[rng.random(N) < 0.1, "age"] = np.nan
    X.loc[rng.random(N) < 0.1, "job"] = None
    sex = pd.Series(rng.choice(["f", "m"], N), name="sex")
    score = X["age"].fillna(40) / 20 + (X["job"] == "nurse") + (sex == "m") + rng.normal(size=N)
    return X, np.where(score > 3, "yes", "no"), sex


def encoded(learner):
    """A learner on the encoded table."""
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    codes = OneHotEncoder(handle_unknown="ignore")
    return make_pipeline(
        make_column_transformer((numbers, ["age"]), (codes, ["job", "town"]), remainder="passthrough"),
        learner,
    )


LEARNERS = {
    "pipeline": lambda: encoded(LogisticRegression()),
    "forest": lambda: encoded(RandomForestClassifier(10, max_depth=3, random_state=0, n_jobs=2)),
    "tree": lambda: encoded(DecisionTreeClassifier(max_depth=3)),
    "boosting": lambda: HistGradientBoostingClassifier(max_iter=5, categorical_features="from_dtype"),
    "numbers": lambda: LogisticRegression(),
}
ESTIMATORS = {
    "classifier": lambda learner: FairClassifier(EqualizedOdds(0.05), learner, draws="row", random_state=5),
    "thresholds": lambda learner: ThresholdPostprocessor(
        learner, EqualizedOdds(0.05), draws="row", random_state=5
    ),
}
CELLS = [(estimator, learner) for estimator in ESTIMATORS for learner in LEARNERS]


def table_for(learner, X):
    if learner == "boosting":
        return X.assign(job=X["job"].astype("category"))
    return X[["age", "owner"]].fillna(0.0) if learner == "numbers" else X


def ask(policy, X, sex):
    """Probabilities and drawn labels, as one table."""
    groups = sex if policy.needs_groups else None
    return np.column_stack(
        [policy.predict_proba(X, groups), policy.predict(X, groups) == policy.pos_label]
    ).astype(float)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """All cells, fitted, and the answers of their files in another process."""
    path = tmp_path_factory.mktemp("policies")
    X, y, sex = people()
    cells = {}
    for estimator, learner in CELLS:
        table = table_for(learner, X)
        fitted = ESTIMATORS[estimator](LEARNERS[learner]()).fit(table, y, sensitive_features=sex)
        fitted.policy_.save(path / f"{estimator}-{learner}.json")
        cells[estimator, learner] = fitted, table
    asked = {f"{e}-{m}": (table, sex) for (e, m), (_, table) in cells.items()}
    (path / "asked.pickle").write_bytes(pickle.dumps(asked))
    program = (
        "import pickle, sys, forcopt as fo; from pathlib import Path; path = Path(sys.argv[1])\n"
        "from tests.learning.test_deployed_policy import ask\n"
        "asked = pickle.loads((path / 'asked.pickle').read_bytes())\n"
        "found = {name: ask(fo.load(path / f'{name}.json'), *given) for name, given in asked.items()}\n"
        "(path / 'answers.pickle').write_bytes(pickle.dumps(found))"
    )
    kernels = {**os.environ, "OPENBLAS_CORETYPE": "Prescott"}  # of another processor
    subprocess.run([sys.executable, "-c", program, str(path)], check=True, timeout=300, env=kernels)
    return cells, pickle.loads((path / "answers.pickle").read_bytes()), y, sex


@pytest.mark.parametrize(("estimator", "learner"), CELLS)
def test_every_way_to_ask_gives_the_probabilities_of_training(served, estimator, learner):
    cells, elsewhere, y, sex = served
    fitted, X = cells[estimator, learner]
    extra = {"sensitive_features": sex} if estimator == "thresholds" else {}
    policy, rng = fitted.policy_, np.random.default_rng(1)
    batch = ask(policy, X, sex)
    assert np.array_equal(batch[:, :2], fitted.predict_proba(X, **extra))
    assert np.array_equal(batch[:, 2] == 1, fitted.predict(X, **extra) == "yes")
    order, copies = rng.permutation(N), rng.integers(0, N, N)
    for rows in (order, copies):  # permuted, and a bootstrap
        np.testing.assert_allclose(ask(policy, X.iloc[rows], sex.iloc[rows]), batch[rows], atol=1e-12)
    for i in rng.choice(N, 8, replace=False):
        np.testing.assert_allclose(ask(policy, X.iloc[[i]], sex.iloc[[i]])[0], batch[i], atol=1e-12)
        if not policy.needs_groups:
            assert np.allclose(policy.predict_proba(X.iloc[i].to_dict()), batch[i, :2], atol=1e-12)
    missing = X.astype(object).where(X.notna(), None)
    for other in (X[X.columns[::-1]], missing, X.convert_dtypes()):  # None, NaN and NA are one
        np.testing.assert_allclose(ask(policy, other, sex), batch, atol=1e-12)
    np.testing.assert_allclose(elsewhere[f"{estimator}-{learner}"], batch, atol=1e-12)
    for label in ("no", "yes"):  # the constraint holds for the served probabilities
        rates = [batch[(y == label) & (sex == s), 1].mean() for s in "fm"]
        assert abs(rates[0] - rates[1]) <= 0.05 + 1e-7
    gap = policy.promise["gap"]
    assert max(gap.values()) <= 0.05 + 1e-7 and policy.promise["violations"] == {}
    error = np.where(y == "yes", batch[:, 0], batch[:, 1]).mean()
    assert error == pytest.approx(policy.promise["error"], abs=1e-9)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("learner", LEARNERS)
def test_records_of_weight_zero_are_as_if_left_out_of_any_table(estimator, learner):
    X, y, sex = people(1)
    kept = (X["job"] != "clerk").to_numpy()
    X = table_for(learner, X)
    make = ESTIMATORS[estimator]
    whole = make(LEARNERS[learner]()).fit(X, y, sensitive_features=sex, sample_weight=kept * 1.0)
    ones = np.ones(kept.sum())  # a forest draws by given weights in another way than without
    part = make(LEARNERS[learner]()).fit(X[kept], y[kept], sensitive_features=sex[kept], sample_weight=ones)
    for policy in (whole.policy_, part.policy_):
        policy.promise.clear()
    np.testing.assert_allclose(
        ask(whole.policy_, X[kept], sex[kept]), ask(part.policy_, X[kept], sex[kept]), atol=1e-9
    )


def test_learners_see_one_missing_value():
    """They tell None, NaN and that of pandas apart."""
    X, y, sex = people()
    for make in ESTIMATORS.values():
        want = ask(make(LEARNERS["pipeline"]()).fit(X, y, sensitive_features=sex).policy_, X, sex)
        for table in (X.astype(object).where(X.notna(), None), X.convert_dtypes()):
            policy = make(LEARNERS["pipeline"]()).fit(table, y, sensitive_features=sex).policy_
            for other in (table, X):
                np.testing.assert_allclose(ask(policy, other, sex), want, atol=1e-12)


@pytest.mark.parametrize("missing", ["", "NA", "None"])
def test_the_command_reads_the_file_that_pandas_read(missing, tmp_path):
    X, y, _ = people()
    X.assign(age=X["age"].fillna(0.0), town=np.arange(N) % 3).to_csv(
        tmp_path / "x.csv", index=False, na_rep=missing
    )
    table = pd.read_csv(tmp_path / "x.csv").astype({"town": "category"})
    command = ["predict", str(tmp_path / "p.json"), str(tmp_path / "x.csv"), "-o", str(tmp_path / "out.csv")]
    fair = FairClassifier(None, LEARNERS["pipeline"]()).fit(table, y)
    fair.policy_.save(tmp_path / "p.json")
    assert CliRunner().invoke(app, [*command, "--trusted"]).exit_code == 0
    found = pd.read_csv(tmp_path / "out.csv")["probability of yes"]
    assert found.to_numpy() == pytest.approx(fair.predict_proba(table)[:, 1], abs=1e-12)
    spaced = FairClassifier(None, LEARNERS["pipeline"]()).fit(table.assign(job=" " + table["job"]), y)
    spaced.policy_.save(tmp_path / "p.json")
    refused = CliRunner().invoke(app, [*command, "--trusted"])
    assert "column job: the policy was learnt from blanks around its words" in refused.output


def test_what_cannot_be_placed_is_refused(served):
    cells, _, _, sex = served
    fitted, X = cells["thresholds", "pipeline"]
    policy = fitted.policy_
    together = X.assign(sex=sex)
    assert np.array_equal(policy.predict_proba(together), policy.predict_proba(X, sex))
    for table, groups, words in (
        (X.to_numpy(), sex, "X is an array; the policy was learnt from a frame"),
        (X.drop(columns="age"), sex, "X lacks column 'age'"),
        (X.assign(age="old"), sex, "column 'age' holds 'old' in row 0; the policy was learnt from numbers"),
        (X.assign(job=1), sex, "column 'job' holds 1 in row 0; the policy was learnt from text"),
        (X.assign(town="Paris"), sex, "holds 'Paris' in row 0; the categories are Oslo, Rome"),
        (X.assign(owner=2), sex, "column 'owner' holds 2 in row 0; the policy was learnt from truth values"),
        (X, None, "sensitive_features is None; the thresholds differ by group"),
        (X, sex.replace("f", "x"), "column 'sex': groups holds 'x'"),
        (X, sex.iloc[::-1], "in another order"),
        (X, sex.iloc[:5], "sensitive_features has 5 entries for 300 records"),
        (X, sex.where(sex == "m"), "a record misses its group"),
    ):
        with pytest.raises(fo.DeclarationError, match=words):
            policy.predict_proba(table, groups)
    array = FairClassifier(DemographicParity(0.1)).fit(
        X[["age", "owner"]].fillna(0).to_numpy(), y_of(X), sensitive_features=sex
    )
    with pytest.raises(fo.DeclarationError, match="X is a frame; the policy was learnt from an array"):
        array.policy_.predict(X[["age", "owner"]])
    with pytest.raises(fo.DeclarationError, match=r"X has shape \(300, 3\); it must be \(n, 2\)"):
        array.policy_.predict(np.zeros((300, 3)))


def y_of(X):
    return (X["job"] == "nurse").to_numpy()


def test_no_sensitive_column_is_asked_for_when_it_is_unused():
    X, y, sex = people()
    plain = X[["age"]].fillna(40.0)
    together = plain.assign(sex=sex)
    for front, labels in (
        (FairClassifier(DemographicParity(0.1), sensitive="sex"), y),
        (ThresholdPostprocessor(constraint=DemographicParity(1.0), sensitive="sex"), plain["age"] > 35),
    ):
        policy = front.fit(together, labels).policy_  # the same thresholds for both groups
        assert np.array_equal(policy.predict(plain), policy.predict(together)) and not policy.needs_groups
        assert front.predict_proba(plain).tolist() == policy.predict_proba(plain).tolist()


def test_an_unknown_group_gets_the_mixture_if_asked():
    X, y, sex = people()
    X = table_for("numbers", X)
    front = ThresholdPostprocessor(LogisticRegression(), DemographicParity(0.0), unknown="mixture")
    policy = front.fit(X, y, sensitive_features=sex).policy_
    with pytest.warns(UserWarning, match="'x' gets their mixture"):
        found = policy.predict_proba(X, ["x"] * N)
    laws = [policy.predict_proba(X, [s] * N) for s in "fm"]
    np.testing.assert_allclose(found, np.average(laws, axis=0, weights=[(sex == s).sum() for s in "fm"]))


def test_lotteries_draw_from_the_row_and_the_salt():
    X, _, _ = people()
    numbers = row_numbers(X, 7)
    assert len(set(numbers)) == len(X.drop_duplicates()) < N and (numbers != row_numbers(X, 8)).all()
    assert row_numbers(X.iloc[[9]], 7) == numbers[9]
    many = pd.DataFrame(
        {"a": np.repeat(np.arange(100.0), 100), "b": np.tile([str(k) for k in range(100)], 100)}
    )
    spread = np.sort(row_numbers(many))
    assert np.abs(spread - (np.arange(10_000) + 0.5) / 10_000).max() < 0.02  # Kolmogorov-Smirnov, 0.1 %


def test_every_decision_of_fair_learning_is_a_policy(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"debt": rng.normal(size=60), "age": rng.normal(size=60)})
    group, y = rng.choice(["a", "b"], 60), (X["debt"] > 0).astype(int).to_numpy()
    guess, score = (X["age"] > 0).astype(int).to_numpy(), X["age"].round(1).to_numpy()
    members = [np.flatnonzero(group == g).tolist() for g in "ab"]
    fair = DemographicParity(0.05)
    words = np.array(["low", "mid", "top"])[rng.integers(0, 3, 60)]
    remix = MulticlassPostprocessing.from_predictions(words, group, words[::-1], fair)
    cases = {
        "fair": (FairClassification(X, y, group, fair), X, None, lambda d: d.probability(X)),
        "frame": (
            FairClassification(X, y, group, fair, hypotheses=Learner(DecisionTreeClassifier())),
            X,
            None,
            lambda d: d.probability(X),
        ),
        "scores": (
            ScorePostprocessing(score, y, group, fair),
            score,
            group,
            lambda d: d.probability(score, group),
        ),
        "labels": (
            FairPostprocessing.from_predictions(guess, group, y, fair),
            guess,
            group,
            lambda d: d.probabilities[guess, (group == "b").astype(int)],
        ),
        "lexifair": (
            LexifairClassification(labels=y, groups=members, hypotheses=Stumps(X)),
            X,
            None,
            lambda d: d.probability(X),
        ),
        "robust": (
            AdaptiveRobustClassification(X, y, fraction=0.4, norm="linf"),
            X,
            None,
            lambda d: d.predict(X).astype(float),
        ),
        "remix": (remix, words, group, lambda d: d.probability(words, group)),
    }
    for name, (problem, table, groups, read) in cases.items():
        solution = problem.solve()
        policy = fo.Policy.of(solution)
        policy.save(tmp_path / "p.json")
        for served in (policy, fo.load(tmp_path / "p.json")):
            given = table if hasattr(table, "iloc") else np.asarray(table)[:, None]
            chance = served.predict_proba(given, groups)
            own = read(solution.decision)
            np.testing.assert_allclose(
                chance if own.ndim == 2 else chance[:, 1], own, atol=1e-12, err_msg=name
            )
            assert set(served.predict(given, groups)) <= set(served.labels)


def test_a_regression_is_a_policy_of_numbers(tmp_path):
    X, _, sex = people()
    X = table_for("numbers", X)
    fair = FairRegressor().fit(X, X["age"] + X["owner"], sensitive_features=sex)
    fair.policy_.save(tmp_path / "p.json")
    again = fo.load(tmp_path / "p.json")
    assert np.array_equal(again.predict(X[["owner", "age"]]), fair.predict(X))
    with pytest.raises(fo.DeclarationError, match="the policy predicts numbers"):
        again.predict_proba(X)


def test_a_declaration_with_text_is_a_file(tmp_path):
    X, y, sex = people()
    learner = Learner(HistGradientBoostingClassifier(max_iter=2, categorical_features="from_dtype"))
    X = table_for("boosting", X)
    p = FairClassification(X, y == "yes", sex, DemographicParity(0.1), hypotheses=learner)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        objective = p.solve(rounds=3).objective
        p.save(tmp_path / "p.json")
        again = fo.load(tmp_path / "p.json")
    assert again == p and again.solve(rounds=3).objective == pytest.approx(objective)
    assert Schema.of(again.features) == Schema.of(X)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_frames_of_polars_are_frames(estimator):
    polars = pytest.importorskip("polars")
    X, y, sex = people()
    X = table_for("boosting", X)
    given = polars.DataFrame({name: [None if v != v else v for v in X[name].tolist()] for name in X})
    given = given.with_columns(polars.col("job", "town").cast(polars.Categorical))
    ours = ESTIMATORS[estimator](LEARNERS["boosting"]()).fit(X, y, sensitive_features=sex)
    theirs = ESTIMATORS[estimator](LEARNERS["boosting"]())
    theirs.fit(given, polars.Series(y), sensitive_features=polars.DataFrame({"sex": sex.tolist()}))
    groups = polars.DataFrame({"sex": sex.tolist()})
    for policy in (ours.policy_, theirs.policy_):
        for table, who in ((X, sex), (given, groups), (given.select(given.columns[::-1]), groups)):
            np.testing.assert_allclose(ask(policy, table, who), ask(ours.policy_, X, sex), atol=1e-12)
    extra = {"sensitive_features": groups} if estimator == "thresholds" else {}
    assert np.array_equal(
        theirs.predict(given, **extra) == "yes", ask(theirs.policy_, given, groups)[:, 2] == 1
    )


def test_a_fitted_classifier_of_other_labels_is_refused():
    X, y, sex = people()
    X = table_for("numbers", X)
    base = LogisticRegression().fit(X, y == "yes")
    with pytest.raises(fo.DeclarationError, match="estimator has labels"):
        ThresholdPostprocessor(base, prefit=True).fit(X, y, sensitive_features=sex)


def test_the_file_keeps_the_test_on_fresh_records(tmp_path):
    X, y, sex = people(0)
    fresh, truth, group = people(1)
    policy = ESTIMATORS["thresholds"](LEARNERS["pipeline"]()).fit(X, y, sensitive_features=sex).policy_
    tested = policy.tested(fresh, truth, group, confidence=0.9)
    tested.save(tmp_path / "p.json")
    again = fo.load(tmp_path / "p.json")
    drawn = policy.predict(fresh, group) == "yes"
    found, low, high = again.promise["fresh"]["gap"]["selection rate"]
    assert found == pytest.approx(abs(drawn[group == "f"].mean() - drawn[group == "m"].mean()))
    assert low <= found <= high and again.promise["fresh"]["records"] == N
    tail = 0.1 / (2 * 4 * 2)  # two groups, four rates, two sides: own Clopper-Pearson intervals
    ends = []
    for s in "fm":
        k, n = drawn[group == s].sum(), (group == s).sum()
        ends.append((beta.ppf(tail, k, n - k + 1), beta.ppf(1 - tail, k + 1, n - k)))
    assert high == pytest.approx(max(ends[0][1] - ends[1][0], ends[1][1] - ends[0][0]))
    assert "on fresh records" in repr(again) and "fresh" not in policy.promise
