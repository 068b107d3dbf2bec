"""Claims about integer programs: another search, or one without the user's cuts, finds no point against them.

Such a search proves nothing if it finds no point; `forcopt.loops.certify` proves cases.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from forcopt.backends.base import SolveOptions
from forcopt.backends.conditioned import open_session
from forcopt.backends.registry import backends, get_backend
from forcopt.compile.program import Program
from forcopt.errors import BackendError, UnsupportedError
from forcopt.loops.checks.claim import Claim, Confirmed, Doubt, Verdict, check_of, is_checkable, verdict
from forcopt.loops.checks.statuses import without_objective
from forcopt.loops.leximin import hold_objective
from forcopt.loops.tolerances import BETTER, HIGHS_GAP, NODES, REFUTED
from forcopt.status import Status


@check_of(Status.OPTIMAL)
def no_better_integers(program: Program, claim: Claim) -> Verdict:
    """Rows with integers: HiGHS's search without presolve finds no better point.

    The presolve of HiGHS 1.13.1 tightens coefficients by implied bounds that are no integers
    (ERGO-Code/HiGHS#3274), and so loses the optimum of a few programs with constants of big-M type; that of
    CBC 2.10 loses others (coin-or/Cbc#293). The search has some nodes, fewer in a larger program. It ends
    earlier only after a twentieth of the claim's seconds, or half a second if that is more.
    """
    stage, accuracy, x = program.stages[0], claim.backend.accuracy, claim.result.x
    linear = is_checkable(claim.compiled) and stage.quadratic is None and bool(stage.cost.any())
    if not linear or not program.is_integer or claim.model.lazies:
        return Confirmed()
    assert x is not None
    value = stage.value(x)
    gap = max(claim.options.gap or 0.0, HIGHS_GAP)
    least = 2 * gap * abs(value) + BETTER * accuracy * max(1.0, abs(value))
    nodes = 1 + int(NODES / (1 + program.rows.data.size))
    work = {"presolve": "off", "mip_max_nodes": nodes}
    try:
        session = open_session(get_backend("highs"), replace(without_objective(program), callbacks=()))
        session.add_rows(hold_objective(stage, value - least, 0.0))
        found = session.solve(SolveOptions(time_limit=claim.share(1 / 20, 0.5), extra=work)).x
    except (BackendError, UnsupportedError):
        return Confirmed()
    if found is None:
        return Confirmed()
    found = np.where(program.integer == 1, np.round(found), found)
    if program.violation(found) > accuracy or stage.value(found) > value - least / 2:
        return Confirmed()
    better = stage.sign * stage.value(found) + 0.0
    return verdict(f"a point of value {better:.6g} satisfies all rows, bounds and integers")


@check_of(Status.INFEASIBLE)
def no_integers_found(program: Program, claim: Claim) -> Verdict:
    """Rows with integers: a search by another solver finds no point.

    SCIP is asked about HiGHS, and HiGHS about all others, for a twentieth of the claim's seconds, or half a
    second if that is more.
    """
    if not is_checkable(claim.compiled) or not program.is_integer:
        return Confirmed()
    names = ("scip", "gscip") if _is_highs(claim.backend.name) else ("highs",)
    other = next((b for b in map(backends().get, names) if b is not None and b.missing() is None), None)
    if other is None:
        return Confirmed()
    search = replace(without_objective(program), lazies=(), callbacks=())
    try:
        found = open_session(other, search).solve(SolveOptions(time_limit=claim.share(1 / 20, 0.5)))
    except (BackendError, UnsupportedError):
        return Confirmed()
    if found.x is None or program.violation(found.x) > claim.backend.accuracy:
        return Confirmed()
    return verdict(f"{other.name} finds a point that satisfies all rows, bounds and integers")


def _is_highs(backend: str) -> bool:
    """Whether a backend runs HiGHS, by itself or through another library (SciPy's solver is HiGHS)."""
    return "highs" in backend.lower() or backend.endswith(":SCIPY")


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
