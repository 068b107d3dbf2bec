"""The point of a claim is within the backend's accuracy, and the model itself evaluates it."""

from __future__ import annotations

import numpy as np

from forcopt.arrays import Array
from forcopt.backends.base import Backend
from forcopt.compile.program import Program
from forcopt.loops.checks.claim import Act, Claim, Confirmed, Doubt, Verdict, check_of, is_checkable, verdict
from forcopt.loops.tolerances import APART, AT_TOLERANCE, FAR, REFUTED
from forcopt.status import Status


@check_of(Status.OPTIMAL, Status.FEASIBLE)
def a_relaxation_only_bounds(program: Program, claim: Claim) -> Verdict:
    """A relaxation: its value is a bound, and its point counts only where it satisfies the model."""
    if not claim.compiled.relaxed or claim.point is None:
        return Confirmed()
    if max(claim.violations.values(), default=0.0) > claim.backend.accuracy:
        return Doubt("its point satisfies the relaxation only", Status.LIMIT)
    if claim.status is Status.FEASIBLE:
        return Confirmed()
    proved = not claim.compiled.is_staged and not isinstance(bound_meets_the_value(program, claim), Doubt)
    return verdict("" if proved else "the relaxation's optimum is a bound only", Status.FEASIBLE)


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
    return f"its point violates a row or bound by {program.violation(x):.2g} > {backend.accuracy:g}"


@check_of(*Status)
def point_satisfies_the_model(program: Program, claim: Claim) -> Verdict:
    """The point satisfies the constraints as declared; otherwise the call raises `BackendError`."""
    x, most = claim.result.x, REFUTED * claim.backend.accuracy
    if x is None:
        return verdict("")
    whole = x[claim.integers] if claim.compiled.is_integer else x[:0]
    off = np.abs(whole - np.round(whole)).max(initial=0.0)
    if off > most:
        return verdict(f"a point with an integer off by {off:.3g}", Act.RAISE)
    worst = max(claim.violations, key=lambda name: claim.violations[name], default="")
    violation = claim.violations.get(worst, 0.0)
    words = f"a point that violates {worst!r} by {violation:.3g}" if violation > most else ""
    return verdict(words, Act.RAISE)


@check_of(Status.OPTIMAL)
def bound_meets_the_value(program: Program, claim: Claim) -> Verdict:
    """The bound is the value of the point in the model, within the gap or 1e-3."""
    bound = claim.results[0].bound
    if not claim.stages or not np.isfinite(bound):
        return verdict("")
    value, shown = claim.stages[0], claim.compiled.stages[0].sign * bound
    apart = abs(value - shown) / max(1.0, abs(value)) > max(claim.options.gap or 0.0, APART)
    return verdict(f"its bound {shown:.6g} does not prove {value:.6g}" if apart else "", Status.FAILED)
