"""Adaptive queries on restricted data: privacy budgets that are spent anew on every block.

Du and Dwork: Improved generalization guarantees in restricted data models, FORC 2022. Private noise keeps
adaptively chosen queries from overfitting; privacy of the records is not claimed.
"""

from forcopt.models.adaptive_queries.bit_populations import (
    BitPopulation,
    BitQuery,
    BitSample,
    MarkovBits,
    NeighborAnds,
    best_pairs,
)
from forcopt.models.adaptive_queries.data_models import (
    DataModel,
    DecayingCorrelation,
    IndependentBlocks,
    NaiveComposition,
    StreamedBlocks,
    run_probability,
)
from forcopt.models.adaptive_queries.plan import AccuracyPlan, Plan
from forcopt.models.adaptive_queries.schedule import QuerySchedule, Schedule
from forcopt.models.adaptive_queries.schedule_methods import Ledger, QueryRefusedError
from forcopt.models.adaptive_queries.sessions import (
    AdaptiveSession,
    Population,
    Query,
    Sample,
    Thresholdout,
    Transcript,
    across_blocks,
    membership,
)
from forcopt.models.adaptive_queries.theorems import (
    Guarantee,
    combine_labels,
    guarantee,
    label_split,
    transfer,
)

__all__ = [
    "AccuracyPlan",
    "AdaptiveSession",
    "BitPopulation",
    "BitQuery",
    "BitSample",
    "DataModel",
    "DecayingCorrelation",
    "Guarantee",
    "IndependentBlocks",
    "Ledger",
    "MarkovBits",
    "NaiveComposition",
    "NeighborAnds",
    "Plan",
    "Population",
    "Query",
    "QueryRefusedError",
    "QuerySchedule",
    "Sample",
    "Schedule",
    "StreamedBlocks",
    "Thresholdout",
    "Transcript",
    "across_blocks",
    "best_pairs",
    "combine_labels",
    "guarantee",
    "label_split",
    "membership",
    "run_probability",
    "transfer",
]
