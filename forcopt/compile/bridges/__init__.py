"""Rewritings of constraints that a backend lacks, a file a family; each says what it takes and gives."""

from forcopt.compile.bridges import (
    cones,
    connected_flow,
    logic,
    polyhedral,
    products,
    scheduling,
    semidefinite,
    sets,
)
from forcopt.compile.bridges.base import Bridge, bridge, bridges

__all__ = [
    "Bridge",
    "bridge",
    "bridges",
    "cones",
    "connected_flow",
    "logic",
    "polyhedral",
    "products",
    "scheduling",
    "semidefinite",
    "sets",
]
