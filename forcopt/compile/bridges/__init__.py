"""Rewritings of constraints that a backend lacks, a file a family; each says what it takes and gives."""

from forcopt.compile.bridges import (
    connected_flow,
    exponential,
    logic,
    polyhedral,
    power,
    products,
    scheduling,
    second_order,
    semidefinite,
    sets,
)
from forcopt.compile.bridges.base import Bridge, bridge, bridges

__all__ = [
    "Bridge",
    "bridge",
    "bridges",
    "connected_flow",
    "exponential",
    "logic",
    "polyhedral",
    "power",
    "products",
    "scheduling",
    "second_order",
    "semidefinite",
    "sets",
]
