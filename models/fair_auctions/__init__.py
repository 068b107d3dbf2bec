"""Individually fair auctions: the best stable allocation, and the rules of bids.

Chawla, Rezvan, Sauerberg: Individually-Fair Auctions for Multi-Slot Sponsored Search, FORC 2022.
"""

from forcopt.models.fair_auctions import formulations  # noqa: F401  (register the methods)
from forcopt.models.fair_auctions.instances import random_auction, random_segments
from forcopt.models.fair_auctions.notions import (
    OrderedValueStability,
    PowerStability,
    PreferenceAligned,
    StabilityFunction,
    TotalVariationStability,
    ValueStability,
)
from forcopt.models.fair_auctions.payments import Charges, payments
from forcopt.models.fair_auctions.problem import Allocation, FairAuction
from forcopt.models.fair_auctions.rules import (
    best_welfare,
    highest_bid,
    inverse_proportional,
    inverse_proportional_guarantee,
    proportional,
    proportional_guarantee,
    uniform,
)

__all__ = [
    "Allocation",
    "Charges",
    "FairAuction",
    "OrderedValueStability",
    "PowerStability",
    "PreferenceAligned",
    "StabilityFunction",
    "TotalVariationStability",
    "ValueStability",
    "best_welfare",
    "highest_bid",
    "inverse_proportional",
    "inverse_proportional_guarantee",
    "payments",
    "proportional",
    "proportional_guarantee",
    "random_auction",
    "random_segments",
    "uniform",
]
