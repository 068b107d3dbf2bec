"""All single classifiers, for the tests: registers the method "enumeration" of LexifairClassification."""

from __future__ import annotations

import numpy as np

from forcopt.clock import Deadline
from forcopt.errors import DeclarationError
from forcopt.models import LexifairClassification
from forcopt.problem import Outcome
from forcopt.status import Status


@LexifairClassification.algorithm(
    "enumeration", exact=True, cites="Diana et al. (2021), Definition 1", rank="oracle"
)
def enumeration(problem: LexifairClassification, *, time_limit: float | None = None) -> Outcome:
    """Sort the sorted error vectors of all classifiers: the best single one. O(N K log(N K)).

    Parameters
    ----------
    problem : LexifairClassification
        With ``randomized=False``, a class that can be listed, and no constraint.
    time_limit : float, optional
        Seconds, checked once the errors of all classifiers are known: after it, the classifier with the least
        largest error is returned without the sort of the other errors.
    """
    if problem.randomized or problem.constraint is not None:
        raise DeclarationError(
            "method 'enumeration' finds a single classifier without a constraint: declare randomized=False"
        )
    deadline = Deadline(time_limit)
    table = problem.error_table
    if deadline.passed:
        largest = table.max(axis=1)
        best = int(largest.argmin())
        return Outcome(
            problem.mixture([best], [1.0]),
            bound=float(largest[best]),
            status=Status.FEASIBLE,
            iterations=len(table),
            message=f"{deadline.end}: only the largest errors were compared",
        )
    ordered = -np.sort(-table, axis=1)[:, : problem.level_count]
    best = int(np.lexsort(ordered.T[::-1])[0])
    return Outcome(problem.mixture([best], [1.0]), iterations=len(ordered))
