"""Fair thresholds on scores against fairlearn's ThresholdOptimizer: same classifier, equal rates."""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import numpy as np
from fairlearn.postprocessing import ThresholdOptimizer
from sklearn.linear_model import LogisticRegression

from benchmarks.fair_learning.records import load, split
from benchmarks.report import Page, progress, table
from forcopt.fairness import DemographicParity, EqualizedOdds
from forcopt.models import FairPostprocessing
from forcopt.models.fair_classification import FairClassification
from forcopt.models.fair_postprocessing import ThresholdPostprocessor

DATA = ("compas", "communities", "lawschool", "adult")
NOTIONS = {"odds": (EqualizedOdds(), "equalized_odds"), "parity": (DemographicParity(), "demographic_parity")}
HEAD = ["data", "notion", "who", "error", "difference", "held-out error", "held-out difference", "seconds"]


def measure(name: str, notion: str, rows: list[list[str]]) -> None:
    train, held = split(load(name))
    ours, theirs = NOTIONS[notion]
    base = LogisticRegression(max_iter=1000).fit(train[0], train[1])
    problems = [FairClassification(*records, ours) for records in (train, held)]

    def note(who: str, shares: list[np.ndarray], seconds: float) -> None:
        cells = [name, notion, who]
        for problem, share in zip(problems, shares, strict=True):
            e = problem.evaluate(np.clip(share, 0.0, 1.0))
            cells += [f"{e.objective:.5f}", f"{max(e.metrics[r.name] for r in ours.rates):.5f}"]
        rows.append([*cells, f"{seconds:.2f}"])
        progress(*rows[-1])

    began = time.perf_counter()
    peer = ThresholdOptimizer(estimator=base, constraints=theirs, prefit=True, predict_method="predict_proba")
    peer.fit(train[0], train[1], sensitive_features=train[2])
    seconds = time.perf_counter() - began
    shares = [peer._pmf_predict(r[0], sensitive_features=r[2])[:, 1] for r in (train, held)]
    note("fairlearn, thresholds", shares, seconds)
    began = time.perf_counter()
    we = ThresholdPostprocessor(base, ours, prefit=True).fit(train[0], train[1], sensitive_features=train[2])
    seconds = time.perf_counter() - began
    shares = [we.predict_proba(r[0], sensitive_features=r[2])[:, 1] for r in (train, held)]
    note("forcopt, thresholds", shares, seconds)
    began = time.perf_counter()
    s = FairPostprocessing.from_predictions(base.predict(train[0]), train[2], train[1], ours).solve()
    seconds = time.perf_counter() - began
    codes = [s.decision.codes(r[2]) for r in (train, held)]
    shares = [
        s.decision.probabilities[base.predict(r[0]).astype(int), c]
        for r, c in zip((train, held), codes, strict=True)
    ]
    note("forcopt, labels", shares, seconds)


def main(quick: bool, out: Path) -> None:
    warnings.filterwarnings("ignore")
    used = ("numpy", "scipy", "highspy", "scikit-learn", "fairlearn")
    page = Page("Fair thresholds on scores", out, *used, note="One thread; logistic regression.")
    rows: list[list[str]] = []
    for name in DATA[:1] if quick else DATA:
        for notion in NOTIONS:
            measure(name, notion, rows)
            page.write(results(rows))


def results(rows: list[list[str]]) -> str:
    text = (
        "The score of a given logistic regression gets thresholds by group for equal rates (tolerance 0). "
        "fairlearn's `ThresholdOptimizer` has its defaults, a grid of 1000 rates; forcopt's thresholds are "
        "the optimum over ROC hulls; its labels post-process the predictions at 0.5. Errors and differences "
        "are those of expected predictions; seconds are those of the fit of thresholds only.\n\n"
    )
    return text + table(HEAD, rows)
