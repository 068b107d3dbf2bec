"""Claims about integer programs: another search, or one without the user's cuts, finds no point against them.

Such a search proves nothing if it finds no point; `forcopt.loops.certify` proves cases.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from forcopt.arrays import Array
from forcopt.backends.base import SolveOptions
from forcopt.backends.conditioned import open_session
from forcopt.backends.registry import backends, get_backend
from forcopt.compile.program import Program, RowBlock
from forcopt.errors import BackendError, UnsupportedError
from forcopt.loops.checks.claim import Claim, Confirmed, Doubt, Verdict, check_of, is_checkable, verdict
from forcopt.loops.checks.statuses import without_objective
from forcopt.loops.leximin import hold_objective
from forcopt.loops.tolerances import BETTER, HIGHS_GAP, NODES, REFUTED
from forcopt.status import Status


@check_of(Status.OPTIMAL)
def no_better_integers(program: Program, claim: Claim) -> Verdict:
    """Rows with integers, by HiGHS: its search without presolve finds no better point."""
    if not is_checkable(claim.compiled) or not program.is_integer or claim.model.lazies:
        return Confirmed()
    assert claim.result.x is not None
    name, accuracy = claim.backend.name, claim.backend.accuracy
    seconds, x = claim.deadline.seconds, claim.result.x
    return verdict(integer_optimality_doubt(program, name, x, claim.left, seconds, accuracy))


@check_of(Status.INFEASIBLE)
def no_integers_found(program: Program, claim: Claim) -> Verdict:
    """Rows with integers: a search by another solver finds no point."""
    if not is_checkable(claim.compiled) or not program.is_integer:
        return Confirmed()
    name, accuracy = claim.backend.name, claim.backend.accuracy
    seconds = claim.deadline.seconds
    return verdict(integer_infeasibility_doubt(program, name, claim.left, seconds, accuracy))


def integer_infeasibility_doubt(
    program: Program, backend: str, options: SolveOptions, seconds: float, accuracy: float
) -> str:
    """Return a reason if another solver finds a point of an integer program; else empty.

    Parameters
    ----------
    program : Program
        Whose relaxation has points, so that no multipliers prove it.
    backend : str
        Claims it; SCIP is asked about HiGHS, and HiGHS about all others.
    options : SolveOptions
        Its time limit is kept.
    seconds : float
        The seconds of the claim; the search may take a twentieth of it, or half a second if that is more.
    accuracy : float
        The tolerance of a row.
    """
    if not program.is_integer or program.cones or program.schedules:
        return ""
    names = ("scip", "gscip") if _is_highs(backend) else ("highs",)
    other = next((b for b in map(backends().get, names) if b is not None and b.missing() is None), None)
    needed = {"indicator"} if program.indicators else set()
    needed |= {"nonconvex"} if program.products else set()
    if other is None or not needed <= other.capabilities.kinds:
        return ""
    limit = min(max(0.5, seconds / 20), np.inf if options.time_limit is None else options.time_limit)
    search = replace(without_objective(program), lazies=(), callbacks=())
    try:
        found = open_session(other, search).solve(SolveOptions(time_limit=limit))
    except (BackendError, UnsupportedError):
        return ""
    if found.x is None or program.violation(found.x) > accuracy:
        return ""
    return f"{other.name} finds a point that satisfies all rows, bounds and integers"


def integer_optimality_doubt(
    program: Program, backend: str, x: Array, options: SolveOptions, seconds: float, accuracy: float
) -> str:
    """Return a reason if HiGHS without its presolve finds a better point of an integer program; else empty.

    The presolve of HiGHS 1.13.1 tightens coefficients by implied bounds that are no integers
    (ERGO-Code/HiGHS#3274), and so loses the optimum of a few programs with constants of big-M type.

    Parameters
    ----------
    program : Program
        Linear.
    backend : str
        Claims the point to be optimal; only HiGHS is asked again.
    x : Array
        The point.
    options : SolveOptions
        Its gap and time limit are kept.
    seconds : float
        The seconds of the claim. The search has some nodes, fewer in a larger program; it ends earlier only
        after a twentieth of these seconds, or half a second if that is more.
    accuracy : float
        The tolerance of a row.
    """
    stage = program.stages[0]
    if (
        not _is_highs(backend)
        or program.is_conditional
        or stage.quadratic is not None
        or not stage.cost.any()
    ):
        return ""
    value = stage.value(x)
    least = 2 * max(options.gap or 0.0, HIGHS_GAP) * abs(value) + BETTER * accuracy * max(1.0, abs(value))
    columns = np.flatnonzero(stage.cost)
    better = RowBlock(
        np.array([0, len(columns)], np.int32),
        columns.astype(np.int32),
        stage.cost[columns],
        np.array([-np.inf]),
        np.array([value - least - stage.offset]),
    )
    limit = min(max(0.5, seconds / 20), np.inf if options.time_limit is None else options.time_limit)
    work = {"presolve": "off", "mip_max_nodes": 1 + int(NODES / (1 + program.rows.data.size))}
    try:
        session = open_session(get_backend("highs"), replace(without_objective(program), callbacks=()))
        session.add_rows(better)
        found = session.solve(SolveOptions(time_limit=limit, extra=work)).x
    except (BackendError, UnsupportedError):
        return ""
    if found is None:
        return ""
    found = np.where(program.integer == 1, np.round(found), found)
    if program.violation(found) > accuracy or stage.value(found) > value - least / 2:
        return ""
    better_value = stage.sign * stage.value(found) + 0.0
    return f"a point of value {better_value:.6g} satisfies all rows, bounds and integers"


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
