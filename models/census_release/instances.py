"""Seeded instances: whole releases by linear programs of unit steps; level problems with nested queries."""

from __future__ import annotations

from functools import partial

import numpy as np

from forcopt.instance import Instance, by_name
from forcopt.models.census_release.generators import measure, random_release, state_like
from forcopt.models.census_release.problem import ConsistentRelease, Invariant

_SIZES = ((1, 5, 40), (1, 15, 80, 300, 2000), (1, 30, 120, 500, 8000))


def nested_release(children: int, types: int, *, seed: int = 0) -> ConsistentRelease:
    """Draw a level problem of TopDown: the parent's counts are invariant, queries are types, pairs and all.

    Parameters
    ----------
    children, types : int
        Units below the root; types of people, an even number.
    seed : int, default 0
        Repeats it.
    """
    tree = state_like((1, children), types=types, seed=seed)
    pairs = np.kron(np.eye(types // 2, dtype=int), np.ones((1, 2), dtype=int))
    rows = np.vstack([np.eye(types, dtype=int), pairs, np.ones((1, types), dtype=int)])
    assert tree.counts is not None
    fixed = tuple(Invariant(0, 0, float(v), (t,)) for t, v in enumerate(tree.counts.sum(axis=0)))
    shares = np.repeat([0.1, 0.3, 0.6], [types, types // 2, 1]) / np.repeat(
        [types, types // 2, 1], [types, types // 2, 1]
    )
    return measure(tree, [1.0, 1.0], workload=rows, shares=shares, seed=seed, integer=True, invariants=fixed)


def _typed(sizes: tuple[int, ...], types: int) -> ConsistentRelease:
    """Counts by type; precisions are rounded, since their last bits depend on the processor."""
    drawn = random_release(sizes, types=types, seed=sizes[-1], integer=True, order="joint")
    return drawn.replace(precision=[np.round(level, 12) for level in drawn.precision])


INSTANCES = by_name(
    [
        *(
            Instance(
                f"census/joint-{sizes[-1]}",
                partial(random_release, sizes, seed=sizes[-1], integer=True, order="joint"),
                "network-lp",
            )
            for sizes in _SIZES
        ),
        *(
            Instance(f"census/types-{types}-{sizes[-1]}", partial(_typed, sizes, types), "network-lp")
            for types, sizes in ((7, (1, 8, 50, 300)),)
        ),
    ]
)
