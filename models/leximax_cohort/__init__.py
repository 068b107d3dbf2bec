"""Representative cohorts: marginals, lotteries and cohorts with leximax group utilities.

Henzinger, Peale, Reingold, Shen: Leximax Approximations and Representative Cohort Selection, FORC 2022.
"""

from forcopt.models.leximax_cohort import column_generation, formulations  # noqa: F401  (register the methods)
from forcopt.models.leximax_cohort.decision import CohortLottery
from forcopt.models.leximax_cohort.instances import random_block, random_cohort, random_panel
from forcopt.models.leximax_cohort.notions import FeasibleCohorts, SolutionSet
from forcopt.models.leximax_cohort.problem import LeximaxCohort
from forcopt.models.leximax_cohort.rounding import PublicLottery, round_lottery, verify_lottery

__all__ = [
    "CohortLottery",
    "FeasibleCohorts",
    "LeximaxCohort",
    "PublicLottery",
    "SolutionSet",
    "random_block",
    "random_cohort",
    "random_panel",
    "round_lottery",
    "verify_lottery",
]
