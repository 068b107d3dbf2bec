"""Seeded auctions, and the instances of the library."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from forcopt.arrays import Seed
from forcopt.errors import require
from forcopt.instance import by_name, family
from forcopt.models.fair_auctions import notions
from forcopt.models.fair_auctions.problem import FairAuction


def random_auction(users: int, ads: int, slots: int, *, seed: Seed = None, **fields: Any) -> FairAuction:
    """Draw independent log-normal values; slot j has the factor ``1 / log2(1 + j)``.

    Parameters
    ----------
    users, ads, slots : int
        How many.
    seed : int or numpy.random.Generator, optional
        An int or a generator.
    fields : Any
        Of the problem.

    Returns
    -------
    FairAuction
        Values of shape ``(users, ads)``.

    Examples
    --------
    >>> p = random_auction(3, 2, 1, seed=0)
    >>> p.values.round(2).tolist(), p.slots.tolist()
    ([[1.13, 0.88], [1.9, 1.11], [0.59, 1.44]], [1.0])
    """
    return random_segments(users, ads, slots, segments=users, spread=0.0, seed=seed, **fields)


def random_segments(
    users: int,
    ads: int,
    slots: int,
    *,
    segments: int = 10,
    spread: float = 0.2,
    seed: Seed = None,
    **fields: Any,
) -> FairAuction:
    """Draw segments with log-normal values, and users whose values are near their segment's.

    Parameters
    ----------
    users, ads, slots : int
        How many.
    segments : int, default 10
        At least 1; users are spread over them evenly.
    spread : float, default 0.2
        A user's values are the segment's times ``exp(spread * N(0, 1))``.
    seed : int or numpy.random.Generator, optional
        An int or a generator.
    fields : Any
        Of the problem.

    Returns
    -------
    FairAuction
        Values of shape ``(users, ads)``.

    Examples
    --------
    >>> random_segments(100, 5, 3, seed=0).values.shape
    (100, 5)
    """
    require(segments >= 1, "segments", segments, "be at least 1")
    rng = np.random.default_rng(seed)
    base = rng.lognormal(size=(segments, ads))
    values = base[np.arange(users) % segments] * np.exp(spread * rng.normal(size=(users, ads)))
    return FairAuction(values=values, slots=1.0 / np.log2(1.0 + np.arange(1, slots + 1)), **fields)


def _auction(users: int, ads: int, slots: int, **fields: Any) -> FairAuction:
    return random_auction(users, ads, slots, seed=users, **fields)


def _segments(users: int, ads: int, slots: int, **fields: Any) -> FairAuction:
    """Values are rounded: their last bits depend on the processor."""
    drawn = random_segments(users, ads, slots, seed=users, **fields)
    return drawn.replace(values=drawn.values.round(9))


_ORDERED = notions.OrderedValueStability(f=notions.PowerStability(ell=1.0))
_HALF = notions.PowerStability(ell=0.5)

_WELFARE = partial(_auction, constraint=_ORDERED)
_RATIO = partial(_segments, constraint=_ORDERED, objective="ratio")
_ENTRIES = partial(_segments, constraint=notions.ValueStability(f=_HALF))
_VARIATION = partial(_auction, constraint=notions.TotalVariationStability(f=_HALF))

INSTANCES = by_name(
    family("auctions/welfare-{}-{}-{}", _WELFARE, "lp", (10, 4, 2), (30, 5, 3), (60, 5, 3)),
    family("auctions/ratio-{}-{}-{}", _RATIO, "lp", (10, 4, 2), (40, 5, 2)),
    family("auctions/entries-{}-{}-{}", _ENTRIES, "lp", (20, 5, 3)),
    family("auctions/variation-{}-{}-{}", _VARIATION, "lp", (12, 5, 2)),
)
