"""The groups' losses as expressions, with a leximax objective."""

from __future__ import annotations

from forcopt.language.atoms import maximum
from forcopt.language.model import Model
from forcopt.language.objective import Objective, leximax, minimize
from forcopt.models.lexifair.classification import LexifairClassification
from forcopt.models.lexifair.problem import Lexifair
from forcopt.models.lexifair.regression import LexifairRegression
from forcopt.problem import Handles

__all__ = ["compact"]


def _write(problem: Lexifair, model: Model) -> Handles:
    losses, decision, parts = problem.write(model)
    goal: Objective = minimize(maximum(losses, axis=0)) if problem.level_count == 1 else leximax(losses)
    return Handles(objective=goal, decision=decision, losses=losses, **parts)


@LexifairRegression.formulation("compact", exact=True, cites="Ogryczak and Śliwiński (2006)")
@LexifairClassification.formulation("compact", exact=True, cites="Ogryczak and Śliwiński (2006)")
def compact(problem: Lexifair, model: Model) -> Handles:
    """Stage j minimises the sum of the j largest losses, which K + 1 more columns and rows express.

    Equal to the paper's program (1) with its exponentially many rows. Convex if the class is: a linear
    program for mixtures, second-order cones for least squares; mixed-integer for a single classifier. If
    there are fewer levels than groups, the others are solved as well, except that one level is one stage.

    Returns:
        ``losses``, shape ``(K,)``; ``coefficients``, shape ``(d,)``, or ``probabilities``, shape ``(N,)``.
    """
    return _write(problem, model)
