"""Rewritings of constraints that a backend lacks, a file a family; each says what it takes and gives."""

from forcopt.compile.bridge_context import Bridge, bridge, bridges
from forcopt.compile.bridges import cones, linear_rows, products, sets

__all__ = ["Bridge", "bridge", "bridges", "cones", "linear_rows", "products", "sets"]
