"""Unboundedness needs a direction in which the objective improves forever, and a point."""

from __future__ import annotations

from forcopt.backends.base import SolveOptions
from forcopt.backends.registry import get_backend
from forcopt.compile.program import Program
from forcopt.loops.checks.claim import Claim, Confirmed, Doubt, Verdict, check_of, is_checkable, verdict
from forcopt.loops.checks.undecided import decided
from forcopt.loops.diagnose import ray
from forcopt.status import Status

__all__ = ["a_ray_and_a_point", "a_ray_decides", "nothing_else_bounds_it"]

_NO_RAY = "there is no direction in which the objective improves forever"


@check_of(Status.UNBOUNDED)
def a_ray_and_a_point(program: Program, claim: Claim) -> Verdict:
    """Rows alone: the objective improves forever in a direction that they allow, and a point exists."""
    if not is_checkable(claim.compiled) or claim.model.lazies or claim.compiled.relaxed:
        return Confirmed()
    if not ray(claim.model):
        return verdict(_NO_RAY)
    plain = SolveOptions(claim.left.time_limit)
    infeasible = decided(get_backend("highs"), program, plain, claim.deadline) is Status.INFEASIBLE
    return verdict("no point is feasible" if infeasible else "")


@check_of(Status.UNBOUNDED, Status.FAILED)
def a_ray_decides(program: Program, claim: Claim) -> Verdict:
    """Stages, conditions, or a failed quadratic solver: a direction of improvement exists or does not."""
    compiled, unbounded = claim.compiled, claim.status is Status.UNBOUNDED
    # Solvers of quadratic programs take rays for optima; rays with cones are no linear programs.
    failed = not unbounded and compiled.stages[-1].quadratic is not None
    curved = compiled.cones or compiled.products or compiled.relaxed
    if curved or claim.model.lazies or not (failed or (unbounded and not is_checkable(compiled))):
        return Confirmed()
    name = claim.backend.name if compiled.is_conditional else "highs"
    if not ray(claim.model, name):
        return verdict(_NO_RAY if unbounded else "", Status.FAILED)
    if unbounded:
        return Confirmed()
    plain = SolveOptions(claim.left.time_limit)  # there is a ray; is there a point?
    return Doubt("", decided(get_backend(name), program, plain, claim.deadline))


@check_of(Status.UNBOUNDED)
def nothing_else_bounds_it(program: Program, claim: Claim) -> Verdict:
    """Lazy families, products or a relaxation: the status is `FAILED`, since a ray does not prove it."""
    relaxed, reason = claim.compiled.products or claim.compiled.relaxed, ""
    if claim.model.lazies or relaxed:
        what = "its products that are not convex" if relaxed else "its lazy families"
        reason = f"without {what} the model is unbounded: give the variables bounds"
    return verdict(reason, Status.FAILED)
