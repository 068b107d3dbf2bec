"""Allocation: how many records of each stratum a stratified sample takes.

Neyman (1934) and after; with privacy, Bun, Drechsler, Gaboardi, McMillan, Sarathy: Controlling privacy loss
in sampling schemes: an analysis of stratified and cluster sampling, FORC 2022, section 6.
"""

from forcopt.models.allocation import formulations, greedy, rounding  # noqa: F401  (register the methods)
from forcopt.models.allocation.precision import PrecisionAllocation
from forcopt.models.allocation.private import AllocationLoss, PrivateAllocation
from forcopt.models.allocation.problem import Allocation, StratifiedAllocation
from forcopt.models.allocation.rules import AllocationRules, RuleNoise

__all__ = [
    "Allocation",
    "AllocationLoss",
    "AllocationRules",
    "PrecisionAllocation",
    "PrivateAllocation",
    "RuleNoise",
    "StratifiedAllocation",
]
