"""Claims of infeasibility by conic solvers, which take large values for that."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from forcopt.backends.base import SolveOptions
from forcopt.backends.conditioned import open_session
from forcopt.backends.registry import get_backend
from forcopt.compile.program import Program
from forcopt.language.model import Model
from forcopt.language.relations import AtomRelation
from forcopt.loops.checks.claim import Claim, Confirmed, Verdict, check_of, verdict
from forcopt.loops.checks.undecided import decided, without_objective
from forcopt.status import Status

__all__ = ["no_point_in_the_cones"]


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
