"""Many groups: seconds, error and largest difference, beside fairlearn's ExponentiatedGradient."""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import numpy as np
from fairlearn.reductions import DemographicParity as TheirParity
from fairlearn.reductions import EqualizedOdds as TheirOdds
from fairlearn.reductions import ExponentiatedGradient
from sklearn.linear_model import LogisticRegression

from benchmarks.report import Page, progress, table
from forcopt.fairness import DemographicParity, EqualizedOdds, GroupRates
from forcopt.models.fair_classification import FairClassifier
from forcopt.models.fair_postprocessing import ThresholdPostprocessor

BOUND = 0.05
RECORDS = 12_000
HEAD = ["groups", "notion", "method", "error", "difference", "CPU seconds"]


def records(groups: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    g = rng.integers(0, groups, RECORDS)
    X = rng.normal(size=(RECORDS, 10)) + 0.5 * rng.normal(size=(groups, 10))[g]
    return X, (X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=RECORDS) > 0).astype(int), g


def ours(X: np.ndarray, y: np.ndarray, g: np.ndarray, notion: str) -> np.ndarray:
    return (
        FairClassifier(NOTIONS[notion][0], LogisticRegression())
        .fit(X, y, sensitive_features=g)
        .predict_proba(X)[:, 1]
    )


def thresholds(X: np.ndarray, y: np.ndarray, g: np.ndarray, notion: str) -> np.ndarray:
    clf = ThresholdPostprocessor(LogisticRegression(), NOTIONS[notion][0]).fit(X, y, sensitive_features=g)
    return clf.predict_proba(X, sensitive_features=g)[:, 1]


def theirs(X: np.ndarray, y: np.ndarray, g: np.ndarray, notion: str) -> np.ndarray:
    peer = ExponentiatedGradient(LogisticRegression(), NOTIONS[notion][1](difference_bound=BOUND))
    peer.fit(X, y, sensitive_features=g)
    return np.clip(peer._pmf_predict(X)[:, 1], 0.0, 1.0)


NOTIONS = {
    "parity": (DemographicParity(BOUND, undefined="drop"), TheirParity),
    "odds": (EqualizedOdds(BOUND, undefined="drop"), TheirOdds),
}
METHODS = {
    "FairClassifier": ours,
    "ThresholdPostprocessor": thresholds,
    "fairlearn ExponentiatedGradient": theirs,
}


def main(quick: bool, out: Path) -> None:
    warnings.filterwarnings("ignore")
    page = Page(
        "Many groups", out, "numpy", "scipy", "highspy", "scikit-learn", "fairlearn", note="One thread."
    )
    rows: list[list[str]] = []
    for groups in (10, 60) if quick else (10, 60, 200, 500):
        X, y, g = records(groups)
        for notion, (judge, _) in NOTIONS.items():
            for name, method in METHODS.items():
                began = time.process_time()
                law = method(X, y, g, notion)
                spent = time.process_time() - began
                gap = max(judge.disparity(GroupRates.from_records(law, g, y)).values())
                error = np.where(y == 1, 1.0 - law, law).mean()
                rows.append([f"{groups}", notion, name, f"{error:.4f}", f"{gap:.4f}", f"{spent:.2f}"])
                progress(*rows[-1])
                page.write(results(rows))


def results(rows: list[list[str]]) -> str:
    text = (
        f"{RECORDS:,} made-up records with 10 features; logistic regression. The rates of any two groups may "
        f"differ by {BOUND:g}; fairlearn compares each group with all records, so that two may differ by "
        "twice the bound. A group without a label has no row for that rate. Error and largest difference are "
        "those of the law on the training records; CPU seconds are those of fit and law.\n\n"
    )
    return text + table(HEAD, rows)
