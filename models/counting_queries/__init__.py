"""Counting queries: the noise that answers many of them best, and private mechanisms by linear programs.

Ganesh and Zhao: Privately answering counting queries with generalized Gaussian mechanisms, FORC 2021.
"""

from forcopt.models.counting_queries import calibration, fisher, ganesh_zhao  # noqa: F401  (register the methods)
from forcopt.models.counting_queries.lattice import LatticeLaw, LatticeNoise
from forcopt.models.counting_queries.linear_queries import Factorization, LinearQueries
from forcopt.models.counting_queries.private_mechanism import PrivateMechanism
from forcopt.models.counting_queries.problem import CountingQueries

__all__ = [
    "CountingQueries",
    "Factorization",
    "LatticeLaw",
    "LatticeNoise",
    "LinearQueries",
    "PrivateMechanism",
]
