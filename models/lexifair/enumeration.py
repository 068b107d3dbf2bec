"""Look at every classifier."""

from __future__ import annotations

import numpy as np

from forcopt.errors import DeclarationError
from forcopt.models.lexifair.classification import LexifairClassification
from forcopt.problem import Outcome

__all__ = ["enumeration"]


@LexifairClassification.algorithm("enumeration", exact=True, cites="Diana et al. (2021), Definition 1")
def enumeration(problem: LexifairClassification) -> Outcome:
    """Sort the sorted error vectors of all classifiers: the best single one. O(N K log(N K))."""
    if problem.randomized:
        raise DeclarationError("method 'enumeration' finds a single classifier: declare randomized=False")
    ordered = -np.sort(-problem.error_table, axis=1)[:, : problem.level_count]
    best = np.lexsort(ordered.T[::-1])[0]
    return Outcome(problem.mixture([best], [1.0]), iterations=len(ordered))
