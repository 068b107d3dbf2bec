"""Districting: balanced connected partitions of planar graphs, exact and approximate."""

from forcopt.models.districting import cluster_search, formulations, portfolio
from forcopt.models.districting.bound_certificate import BoundCertificate
from forcopt.models.districting.clustering import CountyClustering
from forcopt.models.districting.clustering_bound import ClusteringBound, NoSuchDistrict
from forcopt.models.districting.counts import PlanCounts
from forcopt.models.districting.elections import election_scores
from forcopt.models.districting.ensemble import Ensemble
from forcopt.models.districting.plan import Plan
from forcopt.models.districting.problem import Districting
from forcopt.models.districting.recom import ReCom
from forcopt.models.districting.reductions import bin_packing, rounded_populations, unit_weights
from forcopt.models.districting.side_constraints import (
    CannotLink,
    CutLimit,
    Fixed,
    MustLink,
    Share,
    SplitLimit,
)

__all__ = [
    "BoundCertificate",
    "CannotLink",
    "ClusteringBound",
    "CountyClustering",
    "CutLimit",
    "Districting",
    "Ensemble",
    "Fixed",
    "MustLink",
    "NoSuchDistrict",
    "Plan",
    "PlanCounts",
    "ReCom",
    "Share",
    "SplitLimit",
    "bin_packing",
    "cluster_search",
    "election_scores",
    "formulations",
    "portfolio",
    "rounded_populations",
    "unit_weights",
]
