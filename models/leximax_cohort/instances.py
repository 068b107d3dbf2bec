"""Seeded cohorts and panels, and the instances of the library."""

from __future__ import annotations

from typing import Any

import numpy as np

from forcopt.arrays import Seed
from forcopt.errors import require
from forcopt.instance import by_name, family
from forcopt.models.leximax_cohort.problem import LeximaxCohort


def random_cohort(
    candidates: int, groups: int, size: float, *, grid: int | None = None, seed: Seed = None, **fields: Any
) -> LeximaxCohort:
    """Draw utilities uniformly from [0, 1].

    Parameters
    ----------
    candidates, groups, size
        How many.
    grid : int, optional
        Draw from ``0, 1 / grid, ..., 1`` instead: many ties, degenerate faces.
    seed : int or numpy.random.Generator, optional
        An int or a generator.
    fields : Any
        Of the problem.

    Returns
    -------
    LeximaxCohort
        With utilities of shape ``(candidates, groups)``.

    Examples
    --------
    >>> random_cohort(4, 2, 2, grid=10, seed=0).utilities.tolist()
    [[0.9, 0.7], [0.5, 0.2], [0.3, 0.0], [0.0, 0.0]]
    """
    rng = np.random.default_rng(seed)
    shape = (candidates, groups)
    V = rng.random(shape) if grid is None else rng.integers(0, grid + 1, shape) / grid
    return LeximaxCohort(utilities=V, size=size, **fields)


def random_block(
    candidates: int, groups: int, size: float, *, share: float = 0.2, seed: Seed = None, **fields: Any
) -> LeximaxCohort:
    """Let each candidate serve a few groups: worth 1 with probability `share`, else 0.

    As in the reduction from hitting set (Henzinger et al., 2022, Lemma 20): groups are sets, candidates are
    elements, and a cohort gives every group 1 if it hits every set.

    Parameters
    ----------
    candidates, groups, size
        How many.
    share : float, default 0.2
        From 0 to 1.
    seed : int or numpy.random.Generator, optional
        An int or a generator.
    fields : Any
        Of the problem.

    Returns
    -------
    LeximaxCohort
        With utilities of shape ``(candidates, groups)``.

    Examples
    --------
    >>> random_block(4, 3, 2, seed=0).utilities.shape
    (4, 3)
    """
    require(0 <= share <= 1, "share", share, "be from 0 to 1")
    V = (np.random.default_rng(seed).random((candidates, groups)) < share).astype(float)
    return LeximaxCohort(utilities=V, size=size, **fields)


def random_panel(
    candidates: int, size: int, *, features: int = 3, levels: int = 3, seed: Seed = None, **fields: Any
) -> LeximaxCohort:
    """Draw a pool for a citizens' panel: everyone is a group, and features have quotas.

    The levels of a feature are unevenly frequent in the pool, as among volunteers; the quotas are those of a
    population in which they are more even, rounded down and up, and widened until the pool can meet them
    feature by feature.

    Parameters
    ----------
    candidates, size : int
        How many.
    features, levels : int, default 3
        How many, and of each.
    seed : int or numpy.random.Generator, optional
        An int or a generator.
    fields : Any
        Of the problem.

    Returns
    -------
    LeximaxCohort
        With quotas that the pool meets feature by feature.

    Examples
    --------
    >>> p = random_panel(30, 6, seed=1)
    >>> sum(least for least, _ in p.quotas["feature 1"].values()) <= 6
    True
    """
    rng = np.random.default_rng(seed)
    table: dict[str, tuple[str, ...]] = {}
    quotas: dict[str, dict[str, tuple[float, float]]] = {}
    for f in range(1, features + 1):
        population = rng.dirichlet(np.full(levels, 8.0))
        volunteers = population * rng.uniform(0.3, 1.0, levels)
        drawn = rng.choice(levels, candidates, p=volunteers / volunteers.sum())
        drawn[:levels] = np.arange(levels)  # none is missing
        names = [f"level {k + 1}" for k in range(levels)]
        table[f"feature {f}"] = tuple(names[k] for k in drawn)
        there = np.bincount(drawn, minlength=levels)
        target = population * size
        quotas[f"feature {f}"] = {
            name: (float(min(np.floor(t), n)), float(np.ceil(t) + 1))
            for name, t, n in zip(names, target.tolist(), there.tolist(), strict=True)
        }
    return LeximaxCohort(utilities=np.eye(candidates), size=size, features=table, quotas=quotas, **fields)


def _lottery(candidates: int, groups: int) -> LeximaxCohort:
    return random_cohort(candidates, groups, candidates // 10, seed=candidates, objective="maximin")


def _panel(candidates: int, size: int) -> LeximaxCohort:
    return random_panel(candidates, size, features=2, seed=candidates, objective="maximin")


def _whole(candidates: int, groups: int) -> LeximaxCohort:
    fields: dict[str, Any] = {"seed": candidates, "integer": True, "objective": "maximin"}
    return random_cohort(candidates, groups, candidates // 5, grid=20, **fields)


def _hitting(candidates: int, groups: int, size: int) -> LeximaxCohort:
    return random_block(candidates, groups, size, seed=candidates, integer=True, objective="maximin")


_WHOLE = (20, 5), (40, 10), (100, 20), (200, 60)
_HITTING = (30, 20, 5), (60, 100, 10), (150, 400, 12), (300, 1500, 15)

INSTANCES = by_name(
    family("cohort/lottery-{}-{}", _lottery, "convex-program", (50, 10), (500, 50), (5000, 200)),
    family("cohort/panel-{}-{}", _panel, "convex-program", (100, 20), (1000, 80)),
    family("cohort/whole-{}-{}", _whole, "convex-program", *_WHOLE),
    family("cohort/hitting-{}-{}-{}", _hitting, "convex-program", *_HITTING),
)
