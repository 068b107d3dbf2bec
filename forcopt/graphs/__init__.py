"""Planar graphs, branch decompositions, noncrossing partitions, connected sets."""

from forcopt.graphs.weighted import WeightedGraph

__all__ = ["WeightedGraph"]
