"""The groups' losses as expressions, with a leximax objective; and the look at every classifier."""

from __future__ import annotations

import numpy as np

from forcopt.clock import Deadline
from forcopt.errors import DeclarationError
from forcopt.language.atoms import maximum
from forcopt.language.model import Model
from forcopt.language.objective import Objective, SortedMethod, leximax, minimize
from forcopt.models.lexifair.classification import LexifairClassification
from forcopt.models.lexifair.problem import Lexifair
from forcopt.models.lexifair.regression import LexifairRegression
from forcopt.problem import Handles, Outcome
from forcopt.status import Status


def _write(problem: Lexifair, model: Model, method: SortedMethod) -> Handles:
    losses, decision, parts = problem.write(model)
    scaled = losses / problem.loss_unit
    goal: Objective = (
        minimize(maximum(scaled, axis=0)) if problem.level_count == 1 else leximax(scaled, method)
    )
    return Handles(objective=goal, decision=decision, losses=losses, unit=problem.loss_unit, **parts)


@LexifairRegression.formulation("compact", exact=True, cites="Ogryczak and Śliwiński (2006)")
@LexifairClassification.formulation("compact", exact=True, cites="Ogryczak and Śliwiński (2006)")
def compact(problem: Lexifair, model: Model) -> Handles:
    """Stage j minimises the sum of the j largest losses, which K + 1 more columns and rows express.

    Equal to the paper's program (1) with its exponentially many rows. Convex if the class is: a linear
    program for mixtures, second-order cones for least squares; mixed-integer for a single classifier. If
    there are fewer levels than groups, the others are solved as well, except that one level is one stage.

    Returns
    -------
    Handles
        ``losses``, shape ``(K,)``; ``coefficients``, shape ``(d,)``, or ``probabilities``, shape ``(N,)``.
    """
    return _write(problem, model, "compact")


@LexifairRegression.formulation(
    "row-generation", exact=True, cites="Diana et al. (2021), program (1)", rank="published"
)
@LexifairClassification.formulation(
    "row-generation", exact=True, cites="Diana et al. (2021), program (1)", rank="published"
)
def row_generation(problem: Lexifair, model: Model) -> Handles:
    """The paper's rows, a sum of losses for each set of groups; sorting the losses finds the violated ones.

    This is the auditor of Algorithm 1 as a separation oracle; otherwise as ``compact``.

    Returns
    -------
    Handles
        As ``compact``.
    """
    return _write(problem, model, "cuts")


@LexifairRegression.formulation("saturation", exact=True, cites="Ogryczak, Pióro and Tomaszewski (2005)")
@LexifairClassification.formulation("saturation", exact=True, cites="Ogryczak, Pióro and Tomaszewski (2005)")
def saturation(problem: Lexifair, model: Model) -> Handles:
    """Lower a common level of all groups, fix the groups that cannot go below it, continue with the others.

    Needs a convex class of models. No sums: numerically the safest of the formulations.

    Returns
    -------
    Handles
        As ``compact``.
    """
    problem.check_randomized("saturation")
    return _write(problem, model, "saturation")


@LexifairClassification.algorithm(
    "enumeration", exact=True, cites="Diana et al. (2021), Definition 1", rank="oracle"
)
def enumeration(problem: LexifairClassification, *, time_limit: float | None = None) -> Outcome:
    """Sort the sorted error vectors of all classifiers: the best single one. O(N K log(N K)).

    Parameters
    ----------
    problem : LexifairClassification
        With ``randomized=False``.
    time_limit : float, optional
        Seconds, checked once the errors of all classifiers are known: after it, the classifier with the least
        largest error is returned without the sort of the other errors.
    """
    if problem.randomized:
        raise DeclarationError("method 'enumeration' finds a single classifier: declare randomized=False")
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
