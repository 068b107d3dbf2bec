"""What a solver's claim passes before it becomes an answer: a list of checks, in the order of `CHECKS`.

1. `DECIDING`: the status is one status, and conic solvers do not take large values for infeasibility.
2. `PROVING`, for programs of rows: the point is within the accuracy; an optimum has multipliers or no better
   integers; infeasibility has multipliers or no integers; unboundedness has a ray and a point. The first
   doubt ends this part, and the program is solved again in another way (`second_opinion`). Then the bound
   of a first-order method is replaced by the one that its multipliers prove (`with_safe_bound`).
3. `CONCLUDING`: cuts exclude nothing, a ray decides where no arithmetic did, lazy families bound the model,
   the point is within the accuracy of cones and conditions, too; then the model itself evaluates the point;
   oracles that are not exact prove nothing.

A check is a function of a program and a claim that gives `Confirmed` or a `Doubt` with a reason and a remedy.
It changes nothing. A new one is a function here and a place in a list.
"""

from __future__ import annotations

from collections.abc import Sequence

from forcopt.compile.program import Program
from forcopt.errors import BackendError
from forcopt.loops.checks.claim import Act, Check, Claim, Confirmed, Doubt, Verdict
from forcopt.loops.checks.integers import no_better_integers, no_integers_found
from forcopt.loops.checks.multipliers import (
    multipliers_prove_infeasibility,
    multipliers_prove_the_optimum,
    with_safe_bound,
)
from forcopt.loops.checks.points import (
    a_relaxation_only_bounds,
    bound_meets_the_value,
    point_satisfies_the_model,
    within_accuracy,
    within_accuracy_at_last,
)
from forcopt.loops.checks.second_opinion import second_opinion
from forcopt.loops.checks.statuses import (
    a_ray_and_a_point,
    a_ray_decides,
    decides,
    finds_an_answer,
    no_point_in_the_cones,
    nothing_else_bounds_it,
    oracles_are_exact,
)
from forcopt.status import Status

__all__ = [
    "CHECKS",
    "CONCLUDING",
    "DECIDING",
    "EVALUATING",
    "PROVING",
    "Act",
    "Check",
    "Claim",
    "Confirmed",
    "Doubt",
    "Verdict",
    "examined",
    "remedied",
    "table",
]

DECIDING: tuple[Check, ...] = (decides, no_point_in_the_cones)

PROVING: tuple[Check, ...] = (
    within_accuracy,
    multipliers_prove_the_optimum,
    no_better_integers,
    multipliers_prove_infeasibility,
    no_integers_found,
    a_ray_and_a_point,
    finds_an_answer,
)

EVALUATING: tuple[Check, ...] = (point_satisfies_the_model, bound_meets_the_value)
"""Those that every answer passes, of column generation, too."""

CONCLUDING: tuple[Check, ...] = (
    a_ray_decides,
    nothing_else_bounds_it,
    a_relaxation_only_bounds,
    within_accuracy_at_last,
    *EVALUATING,
    oracles_are_exact,
)

CHECKS = DECIDING + PROVING + CONCLUDING


def examined(program: Program, claim: Claim) -> Claim:
    """Pass a claim through all checks and remedy their doubts.

    Parameters
    ----------
    program : Program
        That was solved, with the rows that the loop added.
    claim : Claim
        About it.

    Returns
    -------
    Claim
        The claim itself, or the one that the remedies led to.

    Raises
    ------
    BackendError
        If the point violates the model, or a solver of a check fails.
    """
    claim = remedied(DECIDING, program, claim)
    doubt = _first_doubt(PROVING, program, claim)
    if doubt is not None and doubt.remedy is Act.SOLVE_AGAIN:
        claim = second_opinion(program, claim, doubt.reason, _undoubted)
    elif doubt is not None:
        claim = claim.after(doubt)
    return remedied(CONCLUDING, program, with_safe_bound(program, claim))


def remedied(checks: Sequence[Check], program: Program, claim: Claim) -> Claim:
    """Pass a claim through checks whose remedies need no solver."""
    for check in checks:
        verdict = check(program, claim)
        if isinstance(verdict, Doubt):
            if verdict.remedy is Act.RAISE:
                words = f"{claim.backend.name} claims {verdict.reason}; message: {claim.result.message}"
                raise BackendError(words)
            claim = claim.after(verdict)
    return claim


def _first_doubt(checks: Sequence[Check], program: Program, claim: Claim) -> Doubt | None:
    return next((v for v in (check(program, claim) for check in checks) if isinstance(v, Doubt)), None)


def _undoubted(program: Program, claim: Claim) -> Claim | None:
    """The claim of another solver, decided; None if it settles nothing or is in doubt."""
    claim = remedied(DECIDING, program, claim)
    listed = claim.status is Status.INFEASIBLE or not claim.model.lazies
    if not listed and (claim.result.x is None or claim.is_cut_off(claim.result.x)):
        return None
    if claim.status not in _SETTLING or _first_doubt(PROVING, program, claim) is not None:
        return None
    return claim


_SETTLING = {Status.OPTIMAL, Status.INFEASIBLE, Status.UNBOUNDED}


def table() -> str:
    """The checks in their order as a Markdown table, for the guide."""
    lines = ["| check | claim | rule |", "|---|---|---|"]
    for check in CHECKS:
        every = set(check.claims) == set(Status)
        claims = "every claim" if every else ", ".join(f"`{status.name}`" for status in check.claims)
        lines.append(f"| `{check.function.__name__}` | {claims} | {check.summary} |")
    return "\n".join(lines) + "\n"
