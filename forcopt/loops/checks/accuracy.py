"""The point of a claim is within the accuracy that the backend documents, or it is not optimal."""

from __future__ import annotations

import numpy as np

from forcopt.arrays import Array
from forcopt.backends.base import Backend
from forcopt.compile.program import Program
from forcopt.loops.checks.claim import Claim, Confirmed, Verdict, check_of, is_checkable, verdict
from forcopt.loops.tolerances import AT_TOLERANCE, FAR
from forcopt.status import Status

__all__ = ["beyond_accuracy", "within_accuracy", "within_accuracy_at_last"]


@check_of(Status.OPTIMAL, Status.FEASIBLE)
def within_accuracy(program: Program, claim: Claim) -> Verdict:
    """Rows alone: the point violates none of them, and no bound, beyond the backend's accuracy."""
    x = claim.result.x
    if not is_checkable(claim.compiled) or x is None:
        return Confirmed()
    if claim.status is Status.FEASIBLE:  # a solver that got stuck may have scaled
        return verdict("" if program.is_integer else beyond_accuracy(program, x, claim.backend))
    reason = beyond_accuracy(program, x, claim.backend)
    if not reason and program.is_integer:
        bounded = np.isfinite(program.lower) & np.isfinite(program.upper)
        if np.abs(x).max(initial=0.0, where=~bounded) >= FAR:
            reason = "a value is beyond its range of numbers"
    return verdict(reason)


@check_of(Status.OPTIMAL)
def within_accuracy_at_last(program: Program, claim: Claim) -> Verdict:
    """Cones, conditions, or another solver's answer: the point is within the backend's accuracy."""
    compiled, x = claim.compiled, claim.result.x
    if compiled.is_staged or x is None or (is_checkable(compiled) and not claim.again):
        return Confirmed()
    return verdict(beyond_accuracy(compiled, x, claim.backend), Status.FAILED)


def beyond_accuracy(program: Program, x: Array, backend: Backend) -> str:
    """Describe a violation beyond the backend's accuracy; empty for a point within it."""
    if program.holds(x, AT_TOLERANCE * backend.accuracy):
        return ""
    off = program.violation(x)
    return f"its point violates a row or bound by {off:.2g} > {backend.accuracy:g}"
