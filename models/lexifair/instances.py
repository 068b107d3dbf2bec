"""Seeded instances: stumps, and regressions by conflicting groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from forcopt.arrays import Seed
from forcopt.errors import require
from forcopt.instance import by_name, family
from forcopt.learning import Stumps
from forcopt.models.lexifair.classification import LexifairClassification
from forcopt.models.lexifair.regression import LexifairRegression


def random_regression(
    records: int,
    features: int,
    groups: int,
    *,
    conflict: float = 0.5,
    noise: float = 0.1,
    overlap: float = 0.0,
    seed: Seed = None,
    **fields: Any,
) -> LexifairRegression:
    """Draw groups whose labels follow coefficients of their own.

    Features are normal, scaled into the unit ball. Group k's coefficients lie on a sphere around common ones.

    Parameters
    ----------
    records, features, groups : int
        How many; at least one record for each group.
    conflict : float, default 0.5
        The radius of the sphere; with 0 all groups follow the same coefficients.
    noise : float, default 0.1
        The standard deviation of the labels.
    overlap : float, default 0.0
        The probability that a record is also in another given group.
    seed : int or numpy.random.Generator, optional
        An int or a generator.
    fields : Any
        Of the problem, such as ``radius`` or ``levels``.

    Returns
    -------
    LexifairRegression
        With features of shape ``(records, features)``.

    Examples
    --------
    >>> p = random_regression(60, 3, 4, seed=0)
    >>> fair, mean = p.solve().decision, p.best_response(np.full(4, 0.25))
    >>> bool(fair.losses.max() < mean.losses.max())
    True
    """
    require(1 <= groups <= records, "groups", groups, f"be from 1 to {records}, the number of records")
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(records, features))
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0)
    own = rng.normal(size=(groups, features))
    own = 0.5 + conflict * own / np.linalg.norm(own, axis=1, keepdims=True)
    of = np.append(np.arange(groups), rng.integers(0, groups, records - groups))
    labels = (X * own[of]).sum(axis=1) + noise * rng.normal(size=records)
    member = rng.random((records, groups)) < overlap
    member[np.arange(records), of] = True
    members = tuple(tuple(np.flatnonzero(column).tolist()) for column in member.T)
    return LexifairRegression(features=X, labels=labels, groups=members, **fields)


def _conflict(records: int, features: int, groups: int) -> LexifairClassification:
    """Each group's labels follow a feature of its own, and noise; features take 50 values."""
    rng = np.random.default_rng(records)
    values = rng.integers(0, 50, (records, features)).astype(float)
    group = np.concatenate([np.arange(groups), rng.integers(0, groups, records - groups)])
    above = values[np.arange(records), group % features] + rng.normal(0, 8, records) > 25
    members = tuple(tuple(np.flatnonzero(group == k).tolist()) for k in range(groups))
    stumps = Stumps(features=values)
    return LexifairClassification(labels=above.astype(int), groups=members, hypotheses=stumps, levels=1)


_STUMPS = (200, 3, 4), (2000, 10, 20), (20000, 40, 100)
INSTANCES = by_name(family("lexifair/stumps-{}-{}-{}", _conflict, "compact", *_STUMPS))
