"""Census releases: counts on a hierarchy made private, consistent, nonnegative and whole.

Cohen, Duchin, Matthews, Suwal: Census TopDown: The Impacts of Differential Privacy on Redistricting.
FORC 2021.
"""

from forcopt.models.census_release import baselines, formulations, tree_integer, tree_real  # noqa: F401  (register the methods)
from forcopt.models.census_release.budget import LevelBudget
from forcopt.models.census_release.district import StableDistrict
from forcopt.models.census_release.margins_of_error import margins
from forcopt.models.census_release.measurement import measure
from forcopt.models.census_release.problem import ConsistentRelease, Invariant, Measurement
from forcopt.models.census_release.regression import EcologicalRegression, Rates
from forcopt.models.census_release.release import Region, Release, deviation_factor, noise_variances
from forcopt.models.census_release.samplers import disconnected_districts, recombined_districts

__all__ = [
    "ConsistentRelease",
    "EcologicalRegression",
    "Invariant",
    "LevelBudget",
    "Measurement",
    "Rates",
    "Region",
    "Release",
    "StableDistrict",
    "deviation_factor",
    "disconnected_districts",
    "margins",
    "measure",
    "noise_variances",
    "recombined_districts",
]
