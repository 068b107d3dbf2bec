"""Seeded auctions, and the instances of the library."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from forcopt.errors import DeclarationError
from forcopt.instance import Instance, by_name
from forcopt.models.fair_auctions.competitive_ratio import CompetitiveRatio
from forcopt.models.fair_auctions.notions import (
    OrderedValueStability,
    PowerStability,
    TotalVariationStability,
    ValueStability,
)
from forcopt.models.fair_auctions.problem import FairAuction


def random_auction(
    users: int,
    ads: int,
    slots: int,
    *,
    seed: int | np.random.Generator | None = None,
    **fields: Any,
) -> FairAuction:
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
    rng = np.random.default_rng(seed)
    beta = 1.0 / np.log2(1.0 + np.arange(1, slots + 1))
    return FairAuction(values=rng.lognormal(size=(users, ads)), slots=beta, **fields)


def random_segments(
    users: int,
    ads: int,
    slots: int,
    *,
    segments: int = 10,
    spread: float = 0.2,
    seed: int | np.random.Generator | None = None,
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
    if segments < 1:
        raise DeclarationError(f"segments is {segments}; it must be at least 1")
    rng = np.random.default_rng(seed)
    base = rng.lognormal(size=(segments, ads))
    values = base[np.arange(users) % segments] * np.exp(spread * rng.normal(size=(users, ads)))
    beta = 1.0 / np.log2(1.0 + np.arange(1, slots + 1))
    return FairAuction(values=values, slots=beta, **fields)


def _ratio(ads: int, slots: int, levels: int) -> CompetitiveRatio:
    return CompetitiveRatio(
        ads=ads,
        slots=np.ones(slots),
        stability=PowerStability(ell=1.0),
        levels=np.geomspace(0.2, 1.0, levels).round(6),
    )


def _segments(users: int, ads: int, slots: int, **fields: Any) -> FairAuction:
    """Values are rounded: their last bits depend on the processor."""
    drawn = random_segments(users, ads, slots, seed=users, **fields)
    return drawn.replace(values=drawn.values.round(9))


_ORDERED = OrderedValueStability(f=PowerStability(ell=1.0))

INSTANCES = by_name(
    [
        *(
            Instance(
                f"auctions/welfare-{users}-{ads}-{slots}",
                partial(random_auction, users, ads, slots, seed=users, constraint=_ORDERED),
                "lp",
            )
            for users, ads, slots in ((10, 4, 2), (30, 5, 3), (60, 5, 3))
        ),
        *(
            Instance(
                f"auctions/ratio-{users}-{ads}-{slots}",
                partial(_segments, users, ads, slots, constraint=_ORDERED, objective="ratio"),
                "lp",
            )
            for users, ads, slots in ((10, 4, 2), (40, 5, 2))
        ),
        Instance(
            "auctions/entries-20-5-3",
            partial(_segments, 20, 5, 3, constraint=ValueStability(f=PowerStability(ell=0.5))),
            "lp",
        ),
        Instance(
            "auctions/variation-12-5-2",
            partial(
                random_auction,
                12,
                5,
                2,
                seed=12,
                constraint=TotalVariationStability(f=PowerStability(ell=0.5)),
            ),
            "lp",
        ),
        *(
            Instance(f"auctions/beat-{ads}-{slots}-{levels}", partial(_ratio, ads, slots, levels), "lp")
            for ads, slots, levels in ((2, 1, 9), (3, 2, 6), (4, 1, 5))
        ),
    ]
)
