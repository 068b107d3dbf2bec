"""Representative cohorts: marginals, lotteries and cohorts with leximax group utilities.

Henzinger, Peale, Reingold, Shen: Leximax Approximations and Representative Cohort Selection, FORC 2022.
"""

from forcopt.data.intake import Finding
from forcopt.models.leximax_cohort import column_generation, formulations  # noqa: F401  (register methods)
from forcopt.models.leximax_cohort.chain import CohortDraws, draw_cohorts
from forcopt.models.leximax_cohort.decision import CohortLottery
from forcopt.models.leximax_cohort.instances import random_block, random_cohort, random_panel
from forcopt.models.leximax_cohort.notions import FeasibleCohorts, SolutionSet
from forcopt.models.leximax_cohort.panel_check import panel_findings, panel_intake
from forcopt.models.leximax_cohort.problem import LeximaxCohort
from forcopt.models.leximax_cohort.recruitment import Letters, compare_with_census, draw_letters
from forcopt.models.leximax_cohort.reserves import Reserves, choose_reserves, dropout_scenarios
from forcopt.models.leximax_cohort.rounding import PublicLottery, round_lottery, verify_lottery
from forcopt.models.leximax_cohort.uniform import UniformLottery

__all__ = [
    "CohortDraws",
    "CohortLottery",
    "FeasibleCohorts",
    "Finding",
    "Letters",
    "LeximaxCohort",
    "PublicLottery",
    "Reserves",
    "SolutionSet",
    "UniformLottery",
    "choose_reserves",
    "compare_with_census",
    "draw_cohorts",
    "draw_letters",
    "dropout_scenarios",
    "panel_findings",
    "panel_intake",
    "random_block",
    "random_cohort",
    "random_panel",
    "round_lottery",
    "verify_lottery",
]
