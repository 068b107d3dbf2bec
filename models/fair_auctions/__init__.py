"""Individually fair auctions: the best stable allocation, the rules of bids, and bounds on every rule.

Chawla, Rezvan, Sauerberg: Individually-Fair Auctions for Multi-Slot Sponsored Search, FORC 2022.
"""

from forcopt.models.fair_auctions import formulations  # noqa: F401  (register the methods)
from forcopt.models.fair_auctions.competitive_ratio import CompetitiveRatio, two_profile_bound
from forcopt.models.fair_auctions.instances import random_auction, random_segments
from forcopt.models.fair_auctions.notions import (
    OrderedValueStability,
    PiecewiseStability,
    PowerStability,
    PreferenceAligned,
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
    two_ads,
    uniform,
)

__all__ = [
    "Allocation",
    "Charges",
    "CompetitiveRatio",
    "FairAuction",
    "OrderedValueStability",
    "PiecewiseStability",
    "PowerStability",
    "PreferenceAligned",
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
    "two_ads",
    "two_profile_bound",
    "uniform",
]
