"""Privacy mechanisms and channels: what is done to data first, and how to see through it."""

from forcopt.privacy.accounting import PrivacyBudget, composed_epsilon
from forcopt.privacy.amplification import PrivacyLoss
from forcopt.privacy.designs import (
    ClusterSample,
    PoissonSample,
    ProportionalAllocation,
    RandomizedRounding,
    SimpleRandomSample,
    StratifiedSample,
    draw,
)
from forcopt.privacy.exponential import exponential_mechanism
from forcopt.privacy.laplace import Laplace, add_laplace
from forcopt.privacy.randomized_response import ObservedGroups, RandomizedResponse

__all__ = [
    "ClusterSample",
    "Laplace",
    "ObservedGroups",
    "PoissonSample",
    "PrivacyBudget",
    "PrivacyLoss",
    "ProportionalAllocation",
    "RandomizedResponse",
    "RandomizedRounding",
    "SimpleRandomSample",
    "StratifiedSample",
    "add_laplace",
    "composed_epsilon",
    "draw",
    "exponential_mechanism",
]
