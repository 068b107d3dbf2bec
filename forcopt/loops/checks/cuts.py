"""A user's cut excludes no feasible point."""

from __future__ import annotations

import numpy as np

from forcopt.backends.base import SolveOptions
from forcopt.backends.conditioned import open_session
from forcopt.compile.program import Program
from forcopt.loops.checks.claim import Claim, Confirmed, Doubt, Verdict, check_of
from forcopt.loops.leximin import hold_objective
from forcopt.loops.tolerances import REFUTED
from forcopt.status import Status

__all__ = ["cuts_exclude_nothing"]


@check_of(Status.OPTIMAL, Status.INFEASIBLE, Status.FEASIBLE)
def cuts_exclude_nothing(program: Program, claim: Claim) -> Verdict:
    """Cuts of the user: a search without them finds no point beyond the bound.

    Of objectives in order, each is searched for with the claimed values of the earlier ones held. The search
    without cuts may take a twentieth of the time, or half a second if that is more. No such point is no
    proof.
    """
    model, backend, result = claim.model, claim.backend, claim.result
    used = any(c.kind == "cut" for c in model.callbacks) and "cut" in backend.capabilities.kinds
    stopped = claim.status is Status.FEASIBLE and program.is_staged
    sorted_stages = any(stage.leximin is not None for stage in program.stages)
    if not used or not program.is_integer or sorted_stages or stopped:
        return Confirmed()
    start, wide = claim.options.start, model.column_count
    known = np.full(program.columns, np.nan)
    known[:wide] = np.nan if start is None else start[:wide]
    limit = claim.share(1 / 20, 0.5) / len(program.stages)
    plain = SolveOptions(limit, start=None if np.isnan(known).all() else known)
    session = open_session(backend, program)
    for number, stage in enumerate(program.stages, 1):
        if number > 1:
            session.set_stage(stage)
        found = session.solve(plain)
        if found.x is None or program.violation(found.x) > backend.accuracy:
            return Confirmed()
        completed = claim.completed(found.x)
        if max(model.violations(completed).values(), default=0.0) > backend.accuracy:
            return Confirmed()
        value, bound = stage.value(found.x), result.bound
        if claim.status is Status.INFEASIBLE:
            bound = np.inf
        elif program.is_staged:
            assert result.x is not None
            bound = stage.value(result.x)
        if value < bound - REFUTED * backend.accuracy * max(1.0, abs(value)):
            place = f" in stage {number}" if program.is_staged else ""
            better = f"a point of value {stage.sign * value:.6g}{place} is feasible"
            reason = f"without the cuts {better}: a cut excludes it"
            return Doubt(reason, Status.FAILED, refutes_bound=True)
        if number < len(program.stages):
            session.add_rows(hold_objective(stage, bound, program.tolerance))
    return Confirmed()
