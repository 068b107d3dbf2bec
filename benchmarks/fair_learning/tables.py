"""What the parts of the benchmark share: data, tables, and the line that says what was used."""

from __future__ import annotations

import datetime
import os
import platform
from importlib.metadata import version
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

import forcopt as fo

TABULAR = Path(__file__).resolve().parents[3] / "shared" / "data" / "tabular"
Records = tuple[np.ndarray, np.ndarray, np.ndarray]


def load(name: str) -> Records:
    """Features, labels and groups (two, so that each has enough records of either label)."""
    if name == "compas":
        d = fo.data.load_compas(TABULAR / "compas-scores-two-years.csv")
        d = d.of_groups("African-American", "Caucasian")
        return d.features, d.labels, d.groups
    loader = {"adult": fo.data.load_adult, "communities": fo.data.load_communities}
    d = loader.get(name, fo.data.load_lawschool)(TABULAR / f"{name}.csv")
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


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def publish(text: str, out: Path | None) -> None:
    """Write a page of results, or show it."""
    if out is None:
        print(text)
    else:
        out.write_text(text)


def heading(title: str, command: str, *packages: str) -> str:
    """The title of a page of results, and what made it, where, and under what load."""
    used = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "highspy", *packages))
    return (
        f"# {title}\n\n{datetime.date.today()}, Python {platform.python_version()}, {used}, "
        f"{platform.machine()}, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} at the start, "
        f"one thread. Made by `{command}`.\n\n"
    )
