"""Problems with as many districts as the graph has components: there is one plan at most."""

from __future__ import annotations

from forcopt.models.districting.plan import Plan
from forcopt.models.districting.problem import Districting
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["only_plan"]


def only_plan(problem: Districting) -> Outcome | None:
    """Give the plan whose districts are the components, or the reason why it is infeasible.

    Parameters
    ----------
    problem : Districting
        The problem.

    Returns
    -------
    Outcome or None
        None if the graph has fewer components than districts.
    """
    pieces = problem.arrays.components()
    if problem.districts != len(pieces):
        return None
    plan = Plan.of(problem, pieces)
    violations = problem.evaluate(plan).violations
    if not violations:
        return Outcome(plan)
    message = f"the components of the graph are the only plan, and it violates: {', '.join(violations)}"
    return Outcome(None, status=Status.INFEASIBLE, message=message)
