"""Numerical building blocks that several problems share: each topic is one file, none needs a solver.

A projection (`project_box`), water-filling (`water_fill`, `least_reciprocals`), apportionment (`apportion`,
`largest_remainder`, `signpost`), lotteries (`birkhoff`, `decompose_permutahedron`, `laminar_lottery`,
`decompose`) and random rounding (`dependent_rounding`, `systematic_rounding`, `controlled_rounding`).
"""

from forcopt.numeric.apportionment import Apportionment, DivisorMethod, apportion, largest_remainder, signpost
from forcopt.numeric.birkhoff import MatchingLottery, RankingWeights, birkhoff, decompose_permutahedron
from forcopt.numeric.lotteries import SetLottery, Vertex, decompose, laminar_lottery
from forcopt.numeric.rounding import controlled_rounding, dependent_rounding, systematic_rounding
from forcopt.numeric.water_filling import Filled, Limit, least_reciprocals, project_box, water_fill

__all__ = [
    "Apportionment",
    "DivisorMethod",
    "Filled",
    "Limit",
    "MatchingLottery",
    "RankingWeights",
    "SetLottery",
    "Vertex",
    "apportion",
    "birkhoff",
    "controlled_rounding",
    "decompose",
    "decompose_permutahedron",
    "dependent_rounding",
    "laminar_lottery",
    "largest_remainder",
    "least_reciprocals",
    "project_box",
    "signpost",
    "systematic_rounding",
    "water_fill",
]
