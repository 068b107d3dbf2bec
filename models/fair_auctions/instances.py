"""Seeded auctions, and the instances of the library."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from forcopt.arrays import Seed
from forcopt.errors import require
from forcopt.instance import Instance, by_name
from forcopt.models.fair_auctions.notions import (
    OrderedValueStability,
    PowerStability,
    TotalVariationStability,
    ValueStability,
)
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


def _segments(*size: int, **fields: Any) -> FairAuction:
    """Values are rounded: their last bits depend on the processor."""
    drawn = random_segments(*size, **fields)
    return drawn.replace(values=drawn.values.round(9))


def _instance(
    name: str, draw: Callable[..., FairAuction], size: tuple[int, int, int], **fields: Any
) -> Instance:
    """Of users, ads and slots."""
    full = f"auctions/{name}-{'-'.join(map(str, size))}"
    return Instance(full, partial(draw, *size, seed=size[0], **fields), "lp")


_ORDERED = OrderedValueStability(f=PowerStability(ell=1.0))
_HALF = PowerStability(ell=0.5)

INSTANCES = by_name(
    (
        _instance("welfare", random_auction, size, constraint=_ORDERED)
        for size in ((10, 4, 2), (30, 5, 3), (60, 5, 3))
    ),
    (
        _instance("ratio", _segments, size, constraint=_ORDERED, objective="ratio")
        for size in ((10, 4, 2), (40, 5, 2))
    ),
    [
        _instance("entries", _segments, (20, 5, 3), constraint=ValueStability(f=_HALF)),
        _instance("variation", random_auction, (12, 5, 2), constraint=TotalVariationStability(f=_HALF)),
    ],
)
