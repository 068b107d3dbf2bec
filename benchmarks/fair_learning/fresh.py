"""Error and gap on training and on fresh data over many splits, beside fairlearn and aif360; and promises.

aif360 is measured where it can be imported; ``pip install --no-deps aif360`` into any folder on the path is
enough. Each library has its defaults; a method that knows a bound gets it.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from fairlearn.postprocessing import ThresholdOptimizer
from fairlearn.reductions import DemographicParity as TheirParity
from fairlearn.reductions import EqualizedOdds as TheirOdds
from fairlearn.reductions import ExponentiatedGradient, GridSearch
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks.fair_learning.records import Records, load, split
from benchmarks.report import Page, progress, table
from forcopt.errors import DeclarationError
from forcopt.fairness import DemographicParity, EqualizedOdds, GroupRates, Notion
from forcopt.models.fair_classification import FairClassifier
from forcopt.models.fair_postprocessing import ThresholdPostprocessor
from forcopt.study import fair_front

try:
    from aif360.algorithms.postprocessing import CalibratedEqOddsPostprocessing, EqOddsPostprocessing
    from aif360.datasets import BinaryLabelDataset
except ImportError:
    EqOddsPostprocessing = CalibratedEqOddsPostprocessing = None

DATA = ("compas", "lawschool", "german-like", "adult")
SLOW = {"adult": 3}
"""The splits of fairlearn's reductions, which take a minute each there."""
ODDS = 0.05
PARITY = {"compas": 0.15, "lawschool": 0.25, "german-like": 0.3, "adult": 0.1}
"""Tolerances that the sizes of the held-out groups allow to promise."""
LIMITS = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25)
HEAD = ["data", "notion", "method", "splits", "error", "gap", "fresh error", "fresh gap", "largest fresh gap"]
HEAD += ["fresh gap above the bound", "CPU seconds"]

Laws = tuple[np.ndarray, np.ndarray]
Method = Callable[[Records, Records], Laws]


def german_like(seed: int, share: float = 0.3) -> tuple[Records, Records]:
    """A split of 1,000 made-up applicants: columns of text, missing values, encoded on the training part."""
    rng = np.random.default_rng(1)
    n, sex = 1000, rng.choice(["female", "male"], 1000, p=[0.31, 0.69])
    job = rng.choice(["unskilled", "skilled", "manager"], n, p=[0.25, 0.6, 0.15])
    months = np.where(rng.random(n) < 0.1, np.nan, rng.gamma(4.0, 5.0, n))
    amount = rng.lognormal(7.5 + 0.3 * (job == "manager"), 0.7)
    savings = np.where(
        rng.random(n) < 0.18, None, rng.choice(["none", "some", "much"], n, p=[0.6, 0.25, 0.15])
    )
    age = rng.gamma(9.0, 4.0, n) + 18 - 3 * (sex == "female")
    score = 1.3 - 0.05 * np.nan_to_num(months, nan=20.0) + 0.9 * (savings == "much") + 0.03 * (age - 35)
    y = (score + 0.5 * (sex == "male") + rng.logistic(size=n) > 0).astype(int)
    X = pd.DataFrame(
        {"months": months, "amount": amount, "age": age, "job": job, "savings": savings, "sex": sex}
    )
    held = np.random.default_rng(seed).permutation(n) < share * n
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    words = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder())
    encode = make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (words, make_column_selector(dtype_exclude="number")),
        sparse_threshold=0.0,
    ).fit(X[~held])
    kept, fresh = ((encode.transform(X[part]), y[part], sex[part]) for part in (~held, held))
    return kept, fresh


def learner() -> LogisticRegression:
    return LogisticRegression(max_iter=1000)


def fair(constraint: Notion, kept: Records, fresh: Records) -> Laws:
    clf = FairClassifier(constraint).fit(kept[0], kept[1], sensitive_features=kept[2])
    return tuple(clf.predict_proba(r[0])[:, 1] for r in (kept, fresh))


def thresholds(constraint: Notion, kept: Records, fresh: Records, **options: float) -> Laws:
    clf = ThresholdPostprocessor(learner(), constraint, random_state=0, **options)
    clf.fit(kept[0], kept[1], sensitive_features=kept[2])
    return tuple(clf.predict_proba(r[0], sensitive_features=r[2])[:, 1] for r in (kept, fresh))


def certified(tolerance: float, kept: Records, fresh: Records) -> Laws:
    clf = FairClassifier(DemographicParity())
    front = fair_front(clf, LIMITS, kept[0], kept[1], sensitive_features=kept[2], held_out=0.4)
    return tuple(front.certified(tolerance).predict_proba(r[0])[:, 1] for r in (kept, fresh))


def reduction(constraint: object, kept: Records, fresh: Records) -> Laws:
    peer = ExponentiatedGradient(learner(), constraint)
    peer.fit(kept[0], kept[1], sensitive_features=kept[2])
    return tuple(np.clip(peer._pmf_predict(r[0])[:, 1], 0, 1) for r in (kept, fresh))


def grid(constraint: object, kept: Records, fresh: Records) -> Laws:
    peer = GridSearch(learner(), constraint).fit(kept[0], kept[1], sensitive_features=kept[2])
    return tuple(np.asarray(peer.predict(r[0]), dtype=float) for r in (kept, fresh))


def optimizer(notion: str, kept: Records, fresh: Records) -> Laws:
    peer = ThresholdOptimizer(estimator=learner(), constraints=notion, predict_method="predict_proba")
    peer.fit(kept[0], kept[1], sensitive_features=kept[2])
    return tuple(peer._pmf_predict(r[0], sensitive_features=r[2])[:, 1] for r in (kept, fresh))


def aif360(kind: type, kept: Records, fresh: Records) -> Laws:
    clf, groups = learner().fit(kept[0], kept[1]), np.unique(kept[2])

    def dataset(records: Records, labels: np.ndarray, scores: np.ndarray) -> object:
        frame = pd.DataFrame({"group": (records[2] == groups[1]) * 1.0, "label": labels * 1.0})
        made = BinaryLabelDataset(df=frame, label_names=["label"], protected_attribute_names=["group"])
        made.scores = scores.reshape(-1, 1)
        return made

    parts = []
    for r in (kept, fresh):
        scores = clf.predict_proba(r[0])[:, 1]
        parts.append((dataset(r, r[1], scores), dataset(r, scores > 0.5, scores)))
    post = kind([{"group": 0.0}], [{"group": 1.0}], seed=0).fit(*parts[0])
    return tuple(post.predict(predicted).labels.ravel() for _, predicted in parts)


def methods(name: str) -> list[tuple[str, float, str, Method, bool]]:
    """Notion, bound, name, function, and whether it is slow."""
    parity = PARITY[name]
    odds, own = EqualizedOdds(ODDS), DemographicParity(parity)
    promised = own.model_copy(update={"confidence": 0.95})
    found: list[tuple[str, float, str, Method, bool]] = [
        ("odds", ODDS, "FairClassifier", lambda *r: fair(odds, *r), False),
        ("odds", ODDS, "ThresholdPostprocessor", lambda *r: thresholds(odds, *r), False),
        (
            "odds",
            ODDS,
            "fairlearn ExponentiatedGradient",
            lambda *r: reduction(TheirOdds(difference_bound=ODDS), *r),
            True,
        ),
        ("odds", ODDS, "fairlearn GridSearch", lambda *r: grid(TheirOdds(difference_bound=ODDS), *r), True),
        ("odds", 0.0, "fairlearn ThresholdOptimizer", lambda *r: optimizer("equalized_odds", *r), False),
    ]
    if EqOddsPostprocessing is not None:
        for kind in (EqOddsPostprocessing, CalibratedEqOddsPostprocessing):
            found.append(
                ("odds", 0.0, f"aif360 {kind.__name__}", lambda *r, kind=kind: aif360(kind, *r), False)
            )
    found += [
        ("parity", parity, "FairClassifier", lambda *r: fair(own, *r), False),
        ("parity", parity, "FairClassifier, certified", lambda *r: certified(parity, *r), False),
        ("parity", parity, "ThresholdPostprocessor", lambda *r: thresholds(own, *r), False),
        (
            "parity",
            parity,
            "ThresholdPostprocessor, confidence=0.95",
            lambda *r: thresholds(promised, *r, held_out=0.5),
            False,
        ),
        (
            "parity",
            parity,
            "fairlearn ExponentiatedGradient",
            lambda *r: reduction(TheirParity(difference_bound=parity), *r),
            True,
        ),
    ]
    return found


def measure(name: str, notion: str, bound: float, title: str, method: Method, splits: int) -> list[str]:
    rates = {"odds": EqualizedOdds(), "parity": DemographicParity()}[notion]
    found, refused, seconds = [], 0, 0.0
    for seed in range(splits):
        parts = german_like(seed) if name == "german-like" else split(load(name), seed)
        began = time.process_time()
        try:
            laws = method(*parts)
        except DeclarationError:
            refused += 1
            continue
        finally:
            seconds += time.process_time() - began
        line = []
        for law, (_, y, a) in zip(laws, parts, strict=True):
            line.append(float(np.where(y == 1, 1.0 - law, law).mean()))
            line.append(max(rates.disparity(GroupRates.from_records(np.clip(law, 0, 1), a, y)).values()))
        found.append(line)
    title = f"{title} ({refused} refused)" if refused else title
    label = f"{notion} {bound:g}"
    if not found:
        return [name, label, title, f"{splits}", *["-"] * 6, f"{seconds / splits:.2f}"]
    mean, top = np.mean(found, axis=0), np.max(found, axis=0)
    over = np.mean([line[3] > bound + 1e-9 for line in found])
    cells = [name, label, title, f"{splits}", f"{mean[0]:.4f}", f"{mean[1]:.4f}", f"{mean[2]:.4f}"]
    return [
        *cells,
        f"{mean[3]:.4f}",
        f"{top[3]:.4f}",
        f"{over:.0%}" if bound else "-",
        f"{seconds / splits:.2f}",
    ]


def main(quick: bool, out: Path) -> None:
    warnings.filterwarnings("ignore")
    used = ["numpy", "scipy", "highspy", "scikit-learn", "fairlearn"]
    used += ["aif360"] if EqOddsPostprocessing is not None else []
    page = Page("Fair classifiers on fresh data", out, *used, note="One thread; logistic regression.")
    rows: list[list[str]] = []
    for name in DATA[:1] if quick else DATA:
        for notion, bound, title, method, slow in methods(name):
            splits = 2 if quick else min(20, SLOW.get(name, 20) if slow else 20)
            rows.append(measure(name, notion, bound, title, method, splits))
            progress(*rows[-1])
            page.write(results(rows))


def results(rows: list[list[str]]) -> str:
    text = (
        "Each split has 70 % training data; the rest is fresh. Errors and gaps are those of the law of a "
        "randomised policy, means over the splits; a gap is the largest difference between groups of a rate "
        "of the notion. Bound 0 stands for methods that demand equal rates. The gap of the population is "
        "not known: a fresh gap has a sampling error of its own, so that a policy whose population gap is "
        "at the bound is above it on about half of the splits. `confidence=0.95` leaves a margin for the "
        "size of the groups and fits thresholds on one half of the training data. `certified` tests the "
        "policies of seven limits on 40 % of the training data, and takes the last that passes. A refusal "
        "says that the records do not suffice for the promise. CPU seconds are those of one split, with the "
        "predictions. aif360's post-processors draw labels.\n\n"
    )
    return text + table(HEAD, rows)
