"""The records that parts of the benchmark learn from, and a learner that counts."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression

import forcopt as fo
from benchmarks.report import data

Records = tuple[np.ndarray, np.ndarray, np.ndarray]


def load(name: str) -> Records:
    """Features, labels and groups (two, so that each has enough records of either label)."""
    if name == "compas":
        d = fo.data.load_compas(data("tabular/compas-scores-two-years.csv"))
        d = d.of_groups("African-American", "Caucasian")
        return d.features, d.labels, d.groups
    loader = {"adult": fo.data.load_adult, "communities": fo.data.load_communities}
    d = loader.get(name, fo.data.load_lawschool)(data(f"tabular/{name}.csv"))
    groups = np.where(d.groups == "White", "White", "other") if name == "lawschool" else d.groups
    return d.features, d.labels, groups


def split(records: Records, seed: int = 0, share: float = 0.3) -> tuple[Records, Records]:
    """Records to learn from and records held out, features standardised by the former."""
    X, y, a = records
    order = np.random.default_rng(seed).permutation(len(y))
    held, kept = np.split(order, [int(share * len(y))])
    center, spread = X[kept].mean(axis=0), X[kept].std(axis=0)
    Z = (X - center) / np.where(spread > 0, spread, 1.0)
    return (Z[kept], y[kept], a[kept]), (Z[held], y[held], a[held])


class Counted(LogisticRegression):
    """Logistic regression that counts its fits, whoever asks for them."""

    fits = 0

    def fit(self, *args, **kwargs):
        """Count, then fit."""
        Counted.fits += 1
        return super().fit(*args, **kwargs)
