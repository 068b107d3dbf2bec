"""Groups, their rates, and fairness constraints on them, shared by every learning problem."""

from forcopt.fairness.calibration import calibration_gaps
from forcopt.fairness.classwise import ClassRates, Classwise
from forcopt.fairness.merged import Merged
from forcopt.fairness.notions import (
    AllOf,
    BoundedGroupLoss,
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    ErrorParity,
    FalsePositiveParity,
    Notion,
    PredictiveValues,
    RateParity,
)
from forcopt.fairness.pairwise import PairwiseFairness
from forcopt.fairness.ranking import (
    AllRankingNotions,
    CounterfactualOrder,
    ExposureParity,
    InGroupFairness,
    PrefixQuotas,
    ProportionalExposure,
    RankingNotion,
    SelectionParity,
)
from forcopt.fairness.rates import (
    ERROR,
    FALSE_POSITIVE,
    NEGATIVE_PREDICTIVE,
    POSITIVE_PREDICTIVE,
    SELECTION,
    TRUE_POSITIVE,
    CountNoise,
    GroupRates,
    Rate,
)
from forcopt.fairness.ratios import (
    DemographicParityRatio,
    EqualizedOddsRatio,
    EqualOpportunityRatio,
    RateRatio,
)
from forcopt.fairness.records import read_binary, read_groups, tabulate
from forcopt.fairness.stability import Excess, PairwiseStability, PairwiseTotalVariation
from forcopt.fairness.table import RateTable, binomial_interval

__all__ = [
    "ERROR",
    "FALSE_POSITIVE",
    "NEGATIVE_PREDICTIVE",
    "POSITIVE_PREDICTIVE",
    "SELECTION",
    "TRUE_POSITIVE",
    "AllOf",
    "AllRankingNotions",
    "BoundedGroupLoss",
    "ClassRates",
    "Classwise",
    "CountNoise",
    "CounterfactualOrder",
    "DemographicParity",
    "DemographicParityRatio",
    "EqualOpportunity",
    "EqualOpportunityRatio",
    "EqualizedOdds",
    "EqualizedOddsRatio",
    "ErrorParity",
    "Excess",
    "ExposureParity",
    "FalsePositiveParity",
    "GroupRates",
    "InGroupFairness",
    "Merged",
    "Notion",
    "PairwiseFairness",
    "PairwiseStability",
    "PairwiseTotalVariation",
    "PredictiveValues",
    "PrefixQuotas",
    "ProportionalExposure",
    "RankingNotion",
    "Rate",
    "RateParity",
    "RateRatio",
    "RateTable",
    "SelectionParity",
    "binomial_interval",
    "calibration_gaps",
    "read_binary",
    "read_groups",
    "tabulate",
]
