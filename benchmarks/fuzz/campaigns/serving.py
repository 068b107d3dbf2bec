"""Answers of learned decisions: a record gets the same alone, in other orders, and from a file."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from benchmarks.fuzz.case import DoorCase
from forcopt.fairness import DemographicParity, EqualizedOdds
from forcopt.learning import Stumps, Thresholds
from forcopt.models import (
    AdaptiveRobustClassification,
    FairClassification,
    LexifairClassification,
    LexifairRegression,
    StrategicLinearClassifier,
)
from forcopt.models.fair_classification import FairClassifier
from forcopt.models.fair_postprocessing import ThresholdPostprocessor
from forcopt.models.lexifair import FairRegressor

Random = np.random.Generator
Ask = Callable[[Any, Any, Any], np.ndarray]
"""The answers of a decision for features and groups, one row a record."""

NEAR = 1e-9
ALONE = 6
"""Records that are asked one at a time."""


def people(rng: Random) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Features of few kinds of people, in units of very different size; labels and groups."""
    n, d = int(rng.integers(12, 40)), int(rng.integers(1, 4))
    kinds = rng.normal(size=(int(rng.integers(2, 8)), d)) * 10.0 ** rng.integers(-3, 4, d)
    if rng.random() < 0.5:
        kinds = kinds.round(1)
    kind = np.r_[np.arange(len(kinds)), rng.integers(0, len(kinds), n - len(kinds))]
    chance = rng.uniform(0.1, 0.9, len(kinds))
    labels = (rng.random(n) < chance[kind]).astype(int)
    groups = rng.permutation(np.resize(["a", "b"], n))
    for group in "ab":
        labels[np.flatnonzero(groups == group)[:2]] = 0, 1
    names = rng.permutation(["x1", "x10", "X1", "x 1"])[:d].tolist()
    return pd.DataFrame(kinds[kind], columns=names), labels, groups


def error_of(found: np.ndarray, wanted: np.ndarray) -> str:
    """The first record that gets another answer; empty if there is none."""
    off = np.abs(found - wanted).reshape(len(wanted), -1).max(axis=1)
    at = int(np.argmax(off > NEAR))
    return f"record {at} gets {found[at]}, not {wanted[at]}" if off[at] > NEAR else ""


def served(rng: Random, made: Any, ask: Ask, stored: Any, X: pd.DataFrame, groups: np.ndarray) -> DoorCase:
    """All ways of asking, against the answers of the batch."""
    order, alone = rng.permutation(len(X)), rng.choice(len(X), ALONE, replace=False)
    columns = rng.permutation(X.columns).tolist()

    def batch() -> np.ndarray:
        return ask(made, X, groups)

    def nudged() -> str:
        # No threshold lies at the score of a record, so that its last digit decides nothing.
        ends = [ask(made, X.map(lambda v, e=e: np.nextafter(v, e)), groups) for e in (-np.inf, np.inf)]
        return error_of(ends[0], batch()) or error_of(ends[1], batch())

    return DoorCase(
        {
            "one row": lambda: error_of(
                np.concatenate([ask(made, X.iloc[[i]], groups[[i]]) for i in alone]), batch()[alone]
            ),
            "order of rows": lambda: error_of(ask(made, X.iloc[order], groups[order]), batch()[order]),
            "order of columns": lambda: error_of(ask(made, X[columns], groups), batch()),
            "file": lambda: error_of(ask(stored(made), X[columns], groups), batch()),
            "last digit": nudged,
        }
    )


def from_json(made: Any) -> Any:
    """What is read from the JSON file of a decision."""
    return type(made).from_dict(json.loads(json.dumps(made.to_dict())))


def from_pickle(made: Any) -> Any:
    """What another process would get."""
    return pickle.loads(pickle.dumps(made))


def policy(rng: Random) -> DoorCase:
    """A decision of a problem with features."""
    X, y, groups = people(rng)
    halves = [np.flatnonzero(groups == g) for g in "ab"]
    which = int(rng.integers(0, 6))
    if which == 0:
        notion = (DemographicParity if rng.random() < 0.5 else EqualizedOdds)(float(rng.choice([0.02, 0.2])))
        class_ = Thresholds() if X.shape[1] == 1 else Stumps(X)
        problem: Any = FairClassification(X, y, groups, notion, hypotheses=class_)
    elif which == 1:
        problem = LexifairClassification(labels=y, groups=halves, hypotheses=Stumps(X))
    elif which in (2, 3):
        target = X.to_numpy() @ rng.normal(size=X.shape[1]) + rng.normal(size=len(X))
        problem = LexifairRegression(features=X, labels=target, groups=halves)
    elif which == 4:
        radii = np.zeros(len(X))
        problem = AdaptiveRobustClassification(X.iloc[:, :2], y, radii=radii, norm="linf")
        X = X.iloc[:, :2]
    else:
        d, spread = X.shape[1], X.abs().max().to_numpy() + 1e-3
        problem = StrategicLinearClassifier(
            X=X, truth=(rng.integers(0, 3, d) / spread, 1.0), costs=2 / spread, improvable=rng.random(d) < 0.5
        )
    made = problem.solve("milp" if which == 4 else None, time_limit=20).decision
    linear = which == 5
    return served(rng, made, _answers, from_pickle if linear else from_json, X, groups)


def _answers(made: Any, X: Any, groups: Any) -> np.ndarray:
    ask = getattr(made, "probability", made.predict)
    return np.asarray(ask(X), dtype=float)


def estimator(rng: Random) -> DoorCase:
    """A fitted estimator."""
    X, y, groups = people(rng)
    learner = [
        Thresholds() if X.shape[1] == 1 else Stumps(X.to_numpy()),
        LogisticRegression(),
        DecisionTreeClassifier(max_depth=2),
    ][int(rng.integers(0, 3))]
    notion = (DemographicParity if rng.random() < 0.5 else EqualizedOdds)(float(rng.choice([0.0, 0.02, 0.2])))
    which = int(rng.integers(0, 3))
    if which == 0:
        made: Any = FairClassifier(notion, learner, draws="row", random_state=1)
    elif which == 1:
        scores = learner if hasattr(learner, "fit") else LogisticRegression()
        made = ThresholdPostprocessor(scores, notion, draws="row", random_state=1)
    else:
        made = FairRegressor()
    made.fit(X, y, sensitive_features=groups)

    def ask(fitted: Any, X: Any, groups: Any) -> np.ndarray:
        sees = {"sensitive_features": groups} if which == 1 else {}
        answers = np.asarray(fitted.predict(X, **sees), dtype=float)
        if which == 2:
            return answers
        return np.column_stack([fitted.predict_proba(X, **sees)[:, 1], answers])

    case = served(rng, made, ask, from_pickle, X, groups)
    # Draws hash the features themselves: a record with another last digit is another one.
    kept = {name: check for name, check in case.checks.items() if name != "last digit"}
    return DoorCase(kept)


CAMPAIGNS = {"served-policies": policy, "served-estimators": estimator}
