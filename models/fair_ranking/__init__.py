"""Fair rankings: exposure, quotas, and the order of counterfactual scores, as lotteries or single rankings.

Yang, Loftus, Stoyanovich: Causal Intersectionality and Fair Ranking, FORC 2021; the optimization around it is
by Singh and Joachims (KDD 2018) and Celis, Straszak and Vishnoi (ICALP 2018).
"""

from forcopt.models.fair_ranking import baselines, column_generation, dynamic, formulations, prefix_counts  # noqa: F401  (register the methods)
from forcopt.models.fair_ranking.instances import moving_company, random_ranking
from forcopt.models.fair_ranking.listnet import ListNet, rank_relevance
from forcopt.models.fair_ranking.measures import (
    average_precision,
    in_group_ratio,
    selection_rates,
    sensitivity,
    utility_loss,
)
from forcopt.models.fair_ranking.problem import FairRanking, Ranking, RankingLottery

__all__ = [
    "FairRanking",
    "ListNet",
    "Ranking",
    "RankingLottery",
    "average_precision",
    "in_group_ratio",
    "moving_company",
    "random_ranking",
    "rank_relevance",
    "selection_rates",
    "sensitivity",
    "utility_loss",
]
