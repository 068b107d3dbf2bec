"""Counting queries: the noise that answers many of them best, and private mechanisms by linear programs.

Ganesh and Zhao: Privately answering counting queries with generalized Gaussian mechanisms, FORC 2021.
"""

from forcopt.models.counting_queries import (  # noqa: F401  (register the methods)
    bounded,
    classical,
    fisher,
    ganesh_zhao,
    shape_search,
)
from forcopt.models.counting_queries.problem import CountingQueries

__all__ = ["CountingQueries"]
