"""A policy takes the columns of a frame by name, before and after it was written to a file."""

import json

import numpy as np
import pandas as pd
import pytest

import forcopt as fo
from forcopt.fairness import DemographicParity
from forcopt.learning import Stumps, Thresholds
from forcopt.models import (
    BoundedLossRegression,
    FairClassification,
    LexifairClassification,
    LexifairRegression,
)
from forcopt.models.fair_classification import FairClassifier
from forcopt.models.fair_postprocessing import ThresholdPostprocessor
from forcopt.models.lexifair import FairRegressor

RNG = np.random.default_rng(0)
X = pd.DataFrame({"income": RNG.normal(size=60), "debt": RNG.normal(size=60), "age": RNG.normal(size=60)})
Y = (X["income"] - X["debt"] + 0.3 * RNG.normal(size=60) > 0).astype(int)
GROUP = RNG.choice(["a", "b"], 60)
GROUPS = [np.flatnonzero(g == GROUP).tolist() for g in "ab"]

POLICIES = {
    "fair": lambda X: FairClassification(X, Y, GROUP, DemographicParity(0.1)),
    "thresholds": lambda X: FairClassification(
        X, Y, GROUP, DemographicParity(0.1), hypotheses=Thresholds(column=list(X).index("income"))
    ),
    "lexifair": lambda X: LexifairClassification(labels=Y, groups=GROUPS, hypotheses=Stumps(X)),
    "regression": lambda X: LexifairRegression(labels=Y, groups=GROUPS, features=X),
    "bounded": lambda X: BoundedLossRegression(X, Y, groups=GROUPS, bound=2.0),
}


def answers(policy, table):
    return policy.probability(table) if hasattr(policy, "probability") else policy.predict(table)


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_takes_columns_by_name(name, tmp_path):
    problem = POLICIES[name](X)
    decision = problem.solve().decision
    decision.save(tmp_path / "policy.json")
    assert json.loads((tmp_path / "policy.json").read_text())["features"] == list(X)
    for policy in (decision, type(decision).load(tmp_path / "policy.json")):
        own = answers(policy, X)
        np.testing.assert_allclose(answers(policy, X[["age", "debt", "income"]]), own)
        np.testing.assert_allclose(answers(policy, X.to_numpy()), own)
        np.testing.assert_allclose(answers(policy, X.iloc[[7]]), own[[7]])
        for table, message in (
            (X.rename(columns={"debt": "debts"}), "X lacks column 'debt'"),
            (X.assign(tax=1.0), "X has the unknown column 'tax'"),
            (X[["debt", *X]], "X has twice the column 'debt'"),
            (X.to_numpy()[:, :2], "X has 2 columns; the policy has 3: income, debt, age"),
        ):
            with pytest.raises(fo.DeclarationError, match=message):
                answers(policy, table)


@pytest.mark.parametrize("name", ["fair", "thresholds", "regression"])
def test_a_decision_is_evaluated_by_name(name):
    problem = POLICIES[name](X)
    s = problem.solve()
    swapped = POLICIES[name](X[["age", "debt", "income"]])
    assert swapped.evaluate(s.decision).objective == pytest.approx(s.objective)
    renamed = POLICIES[name](X.rename(columns={"age": "years"}))
    with pytest.raises(fo.DeclarationError, match=r"'(age|years)'"):
        renamed.evaluate(s.decision)


def test_a_declaration_keeps_the_names_in_its_file(tmp_path):
    problem = POLICIES["fair"](X)
    problem.save(tmp_path / "p.json")
    assert fo.load(tmp_path / "p.json").feature_names == tuple(X)
    with pytest.raises(fo.DeclarationError, match="they must be 3 different names"):
        problem.replace(feature_names=["a", "b"])


def test_a_policy_of_the_estimator_keeps_labels(tmp_path):
    labels = np.where(Y, "granted", "refused")
    fitted = FairClassifier(DemographicParity(0.1)).fit(X, labels, sensitive_features=GROUP)
    fitted.policy_.save(tmp_path / "policy.json")
    again = type(fitted.policy_).load(tmp_path / "policy.json")
    assert again.labels == ("granted", "refused") and again.schema.names == tuple(X)
    assert again.pos_label == "refused"
    assert set(again.predict(X[["age", "debt", "income"]]).tolist()) == {"granted", "refused"}
    assert (again.predict(X) == fitted.policy_.predict(X)).all()


@pytest.mark.parametrize("make", [FairClassifier, ThresholdPostprocessor, FairRegressor])
def test_an_estimator_takes_columns_by_name(make):
    fitted = make().fit(X, Y, sensitive_features=GROUP)
    extra = {"sensitive_features": GROUP} if make is ThresholdPostprocessor else {}
    ask = fitted.predict if make is FairRegressor else fitted.predict_proba
    np.testing.assert_allclose(ask(X[["debt", "age", "income"]], **extra), ask(X, **extra))
    numbered = X.set_axis([2, 0, 1], axis=1)
    by_number = make().fit(numbered, Y, sensitive_features=GROUP)
    again = by_number.predict if make is FairRegressor else by_number.predict_proba
    np.testing.assert_allclose(again(numbered[[0, 1, 2]], **extra), ask(X, **extra))
    with pytest.raises(ValueError, match="each must have its own name"):
        make().fit(
            X, Y, sensitive_features=pd.DataFrame({"a": GROUP, "b": GROUP}).set_axis(["a", "a"], axis=1)
        )
    with pytest.raises(ValueError, match="'debt'"):
        ask(X.drop(columns="debt"), **extra)
    with pytest.raises(ValueError, match="'tax'"):
        ask(X.assign(tax=0.0), **extra)
