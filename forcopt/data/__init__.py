"""Loaders of public data files, seeded generators, and the small tables that papers print.

The files are not shipped: a loader takes the path of a copy.
"""

from forcopt.data.dataset import Dataset
from forcopt.data.graphs import delaunay, grid, load_graph
from forcopt.data.hierarchy import Hierarchy
from forcopt.data.intake import Expected, Finding, Findings, check_table, read_rows, typed
from forcopt.data.maps import read_map
from forcopt.data.tables import (
    COMPAS_DECILES,
    compas_counts,
    load_adult,
    load_communities,
    load_compas,
    load_lawschool,
)

__all__ = [
    "COMPAS_DECILES",
    "Dataset",
    "Expected",
    "Finding",
    "Findings",
    "Hierarchy",
    "check_table",
    "compas_counts",
    "delaunay",
    "grid",
    "load_adult",
    "load_communities",
    "load_compas",
    "load_graph",
    "load_lawschool",
    "read_map",
    "read_rows",
    "typed",
]
