"""Seeded instances: fair allocations for users, bounds on every rule, and truthful stable mechanisms."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from forcopt.instance import Instance, by_name
from forcopt.models.fair_auctions.competitive_ratio import CompetitiveRatio
from forcopt.models.fair_auctions.generators import random_auction, random_segments
from forcopt.models.fair_auctions.mechanism import FairMechanism
from forcopt.models.fair_auctions.notions import (
    OrderedValueStability,
    TotalVariationStability,
    ValueStability,
)
from forcopt.models.fair_auctions.problem import FairAuction
from forcopt.models.fair_auctions.stability import PowerStability

__all__ = ["INSTANCES"]


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


def _mechanism(bidders: int, values: int, ell: float | None, fill: bool = False) -> FairMechanism:
    return FairMechanism(
        grid=np.arange(1.0, values + 1),
        prior=np.full((bidders, values), 1.0 / values),
        slots=np.ones(1),
        stability=None if ell is None else PowerStability(ell=ell),
        fill=fill,
    )


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
        Instance("auctions/revenue-2-5", partial(_mechanism, 2, 5, 1.0), "lp"),
        Instance("auctions/revenue-3-4", partial(_mechanism, 3, 4, 0.5, True), "lp"),
    ]
)
