"""The model itself evaluates the point of every answer."""

from __future__ import annotations

import numpy as np

from forcopt.compile.program import Program
from forcopt.loops.checks.claim import Act, Claim, Confirmed, Doubt, Verdict, check_of, verdict
from forcopt.loops.tolerances import APART, REFUTED
from forcopt.status import Status

__all__ = ["a_relaxation_only_bounds", "bound_meets_the_value", "point_satisfies_the_model"]


@check_of(Status.OPTIMAL, Status.FEASIBLE)
def a_relaxation_only_bounds(program: Program, claim: Claim) -> Verdict:
    """A relaxation: its value is a bound, and its point counts only where it satisfies the model."""
    if not claim.compiled.relaxed or claim.point is None:
        return Confirmed()
    if max(claim.violations.values(), default=0.0) > claim.backend.accuracy:
        return Doubt("its point satisfies the relaxation only", Status.LIMIT)
    if claim.status is Status.FEASIBLE:
        return Confirmed()
    words = "the relaxation's optimum is a bound only"
    proved = not claim.compiled.is_staged and not isinstance(bound_meets_the_value(program, claim), Doubt)
    return verdict("" if proved else words, Status.FEASIBLE)


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
    return verdict(
        f"a point that violates {worst!r} by {violation:.3g}" if violation > most else "", Act.RAISE
    )


@check_of(Status.OPTIMAL)
def bound_meets_the_value(program: Program, claim: Claim) -> Verdict:
    """The bound is the value of the point in the model, within the gap or 1e-3."""
    bound = claim.results[0].bound
    if not claim.stages or not np.isfinite(bound):
        return verdict("")
    value, shown = claim.stages[0], claim.compiled.stages[0].sign * bound
    apart = abs(value - shown) / max(1.0, abs(value)) > max(claim.options.gap or 0.0, APART)
    return verdict(f"its bound {shown:.6g} does not prove {value:.6g}" if apart else "", Status.FAILED)
