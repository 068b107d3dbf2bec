"""Trees like a state, and instances."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from forcopt.data.hierarchy import Hierarchy
from forcopt.instance import by_name, family
from forcopt.models.census_release.measurement import measure
from forcopt.models.census_release.problem import ConsistentRelease

TEXAS = (1, 254, 5265, 15811, 914231)
"""State, counties, tracts, block groups and blocks of 2010."""


def state_like(sizes: tuple[int, ...] = TEXAS, *, types: int = 1, seed: int = 0) -> Hierarchy:
    """Make a tree with these level sizes, units of random fan-out, and counts of which a third are 0.

    Parameters
    ----------
    sizes : tuple[int, ...], default TEXAS
        Units by level; 1 first, not falling.
    types : int, default 1
        Types of people.
    seed : int, default 0
        Repeats it.

    Examples
    --------
    >>> state_like((1, 3, 10), seed=1).sizes
    (1, 3, 10)
    """
    rng = np.random.default_rng(seed)
    parents = []
    for above, below in pairwise(sizes):
        chosen = rng.choice(above, size=below - above, p=rng.dirichlet(np.full(above, 2.0)))
        parents.append(np.sort(np.concatenate([np.arange(above), chosen])))
    people = np.where(rng.random(sizes[-1]) < 0.35, 0, 1 + rng.negative_binomial(0.8, 0.02, sizes[-1]))
    shares = rng.dirichlet(np.ones(types) * 0.5, sizes[-1])
    return Hierarchy(parents=tuple(parents), counts=rng.multinomial(people, shares))


def random_release(
    sizes: tuple[int, ...], *, epsilon: float = 1.0, types: int = 1, seed: int = 0, **fields: Any
) -> ConsistentRelease:
    """Measure such a tree with geometric noise, epsilon split equally over the levels.

    Parameters
    ----------
    sizes, types, seed
        See `state_like`.
    epsilon : float, default 1.0
        In all.
    fields : Any
        Of `ConsistentRelease`.
    """
    tree = state_like(sizes, types=types, seed=seed)
    return measure(tree, [epsilon / tree.depth] * tree.depth, seed=seed, **fields)


_SIZES = ((1, 5, 40), (1, 15, 80, 300, 2000), (1, 30, 120, 500, 8000))


def _joint(leaves: int, sizes: tuple[int, ...], **fields: Any) -> ConsistentRelease:
    return random_release(sizes, seed=leaves, integer=True, order="joint", **fields)


def _typed(types: int, leaves: int, sizes: tuple[int, ...]) -> ConsistentRelease:
    """Counts by type; precisions are rounded, since their last bits depend on the processor."""
    drawn = _joint(leaves, sizes, types=types)
    return drawn.replace(precision=[np.round(level, 12) for level in drawn.precision])


INSTANCES = by_name(
    family("census/joint-{}", _joint, "network-lp", *((sizes[-1], sizes) for sizes in _SIZES)),
    family("census/types-{}-{}", _typed, "network-lp", (7, 300, (1, 8, 50, 300))),
)
