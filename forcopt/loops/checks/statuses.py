"""Statuses that a solver left open, took large values for, or that need a direction and a point."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from forcopt.backends.base import Backend, SolveOptions
from forcopt.backends.conditioned import open_session
from forcopt.backends.registry import get_backend
from forcopt.clock import Deadline
from forcopt.compile.program import Program, StageCost
from forcopt.language.model import Model
from forcopt.language.relations import AtomRelation
from forcopt.loops.checks.claim import Claim, Confirmed, Doubt, Verdict, check_of, is_checkable, verdict
from forcopt.loops.diagnose import ray
from forcopt.status import Status


@check_of(*Status)
def decides(program: Program, claim: Claim) -> Verdict:
    """ "Infeasible or unbounded" is decided by a solve without the objective."""
    if not claim.result.ambiguous:
        return Confirmed()
    return Doubt("", decided(claim.backend, program, claim.options, claim.deadline))


@check_of(Status.FAILED)
def finds_an_answer(program: Program, claim: Claim) -> Verdict:
    """Linear rows, with integers or without: some solver finds an answer."""
    linear = is_checkable(claim.compiled) and program.stages[0].quadratic is None
    return verdict("it found no answer" if linear else "")


def without_objective(program: Program) -> Program:
    """The program of which any point is an optimum."""
    return program.with_stage(StageCost(np.zeros(program.columns), 0.0, False))


def decided(backend: Backend, program: Program, options: SolveOptions, deadline: Deadline) -> Status:
    """Distinguish infeasible from unbounded by a solve without an objective."""
    result = open_session(backend, without_objective(program)).solve(options.within(deadline.seconds))
    if result.status.has_solution:
        return Status.UNBOUNDED
    # A model without an objective is not unbounded, so a solver that reports it found no feasible point.
    return Status.INFEASIBLE if result.ambiguous or result.status is Status.UNBOUNDED else result.status


@check_of(Status.INFEASIBLE)
def no_point_in_the_cones(program: Program, claim: Claim) -> Verdict:
    """Cones: neither a solve without the objective nor the linear rows give a point of the model."""
    if not claim.compiled.cones:
        return Confirmed()
    if decided(claim.backend, program, claim.options, claim.deadline) is Status.UNBOUNDED:
        return verdict("without the objective there is a feasible point", Status.FAILED)
    if _refuted(claim.model, claim.compiled, claim.left):
        return verdict("a point of the linear rows satisfies the model", Status.FAILED)
    return Confirmed()


def _refuted(model: Model, program: Program, options: SolveOptions) -> bool:
    """Whether a point of the linear rows, with the atoms' true values there, satisfies a whole model.

    The point is sought by HiGHS, first without the cones, then with the atoms' arguments held and with their
    values; if none is found, that proves nothing.
    """
    outside = (np.isposinf(program.lower) | np.isneginf(program.upper)).any()  # an atom's value is finite
    if program.is_conditional or model.lazies or outside:
        return False
    highs, wide = get_backend("highs"), model.column_count
    rows = replace(without_objective(program), cones=())
    held = np.zeros(program.columns, dtype=bool)
    for relation in model.needed_relations():
        if isinstance(relation, AtomRelation):
            held[relation.result_columns] = True
            for argument in relation.arguments:
                held[argument.linear_rows().indices] = True
    for _ in range(2):
        found = open_session(highs, rows).solve(replace(options, start=None, extra={}, log=False)).x
        if found is None:
            return False
        point = model.complete(found[:wide])
        if np.isfinite(point).all() and max(model.violations(point).values(), default=0.0) <= highs.accuracy:
            return True
        values = np.append(point, found[wide:])
        if not np.isfinite(values[held]).all():  # outside an atom's domain
            return False
        lower, upper = np.where(held, values, rows.lower), np.where(held, values, rows.upper)
        rows = replace(rows, lower=lower, upper=upper)
    return False


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


@check_of(Status.OPTIMAL, Status.FEASIBLE, Status.INFEASIBLE)
def oracles_are_exact(program: Program, claim: Claim) -> Verdict:
    """Lazy families of oracles that are not exact: the answer is `APPROXIMATE`, and nothing is proved."""
    if all(family.exact for family in claim.model.lazies):
        return Confirmed()
    status = Status.LIMIT if claim.status is Status.INFEASIBLE else Status.APPROXIMATE
    return Doubt("only if the answers of its oracles are optimal: no proof", status, refutes_bound=True)


@check_of(Status.UNBOUNDED)
def nothing_else_bounds_it(program: Program, claim: Claim) -> Verdict:
    """Lazy families, products or a relaxation: the status is `FAILED`, since a ray does not prove it."""
    relaxed, reason = claim.compiled.products or claim.compiled.relaxed, ""
    if claim.model.lazies or relaxed:
        what = "its products that are not convex" if relaxed else "its lazy families"
        reason = f"without {what} the model is unbounded: give the variables bounds"
    return verdict(reason, Status.FAILED)
