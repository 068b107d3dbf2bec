"""Claims about integer programs: another search finds no point against them.

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
from forcopt.loops.checks.claim import Claim, Confirmed, Verdict, check_of, is_checkable, verdict
from forcopt.loops.checks.statuses import without_objective
from forcopt.loops.leximin import hold_objective
from forcopt.loops.tolerances import BETTER, HIGHS_GAP, NODES, REFINED
from forcopt.status import Status


@check_of(Status.OPTIMAL)
def no_better_integers(program: Program, claim: Claim) -> Verdict:
    """Rows with integers: HiGHS's search without presolve finds no better point.

    The presolve of HiGHS 1.13.1 tightens coefficients by implied bounds that are no integers
    (ERGO-Code/HiGHS#3274), and so loses the optimum of a few programs with constants of big-M type; that of
    CBC 2.10 loses others (coin-or/Cbc#293). The search has some nodes, fewer in a larger program. It ends
    earlier only after a twentieth of the claim's seconds, or half a second if that is more. Lazy families are
    asked about its point.
    """
    stage, accuracy, x = program.stages[0], claim.backend.accuracy, claim.result.x
    linear = is_checkable(claim.compiled) and stage.quadratic is None and bool(stage.cost.any())
    if not linear or not program.is_integer:
        return Confirmed()
    assert x is not None
    value = stage.value(x)
    gap = max(claim.options.gap or 0.0, HIGHS_GAP)
    least = 2 * gap * abs(value) + BETTER * accuracy * max(1.0, abs(value))
    least += BETTER * REFINED * float(np.abs(stage.cost[program.integer == 0]).sum())  # what tolerances give
    work = {"presolve": "off", "mip_max_nodes": 1 + int(NODES / (1 + program.rows.data.size))}
    # Rows that are violated by the usual tolerance would make an objective look better by a multiple of it.
    work |= dict.fromkeys(("primal_feasibility_tolerance", "mip_feasibility_tolerance"), REFINED)
    try:
        session = open_session(get_backend("highs"), replace(without_objective(program), lazies=()))
        session.add_rows(hold_objective(stage, value - least, 0.0))
        found = session.solve(SolveOptions(time_limit=claim.share(1 / 20, 0.5), extra=work)).x
    except (BackendError, UnsupportedError):
        return Confirmed()
    if found is None:
        return Confirmed()
    found = np.where(program.integer == 1, np.round(found), found)
    worse = stage.value(found) > value - least / 2
    if worse or program.violation(found) > accuracy or claim.is_cut_off(found):
        return Confirmed()
    better = stage.sign * stage.value(found) + 0.0
    return verdict(f"a point of value {better:.6g} satisfies all rows, bounds and integers")


@check_of(Status.INFEASIBLE)
def no_integers_found(program: Program, claim: Claim) -> Verdict:
    """Rows with integers: a search by another solver finds no point.

    SCIP is asked about HiGHS, which SciPy runs too, and HiGHS about all others, for a twentieth of the
    claim's seconds, or half a second if that is more.
    """
    if not is_checkable(claim.compiled) or not program.is_integer:
        return Confirmed()
    own = claim.backend.name
    names = ("scip", "gscip") if "highs" in own.lower() or own.endswith(":SCIPY") else ("highs",)
    other = next((b for b in map(backends().get, names) if b is not None and b.missing() is None), None)
    if other is None:
        return Confirmed()
    search = replace(without_objective(program), lazies=())
    try:
        found = open_session(other, search).solve(SolveOptions(time_limit=claim.share(1 / 20, 0.5)))
    except (BackendError, UnsupportedError):
        return Confirmed()
    if found.x is None or program.violation(found.x) > claim.backend.accuracy:
        return Confirmed()
    return verdict(f"{other.name} finds a point that satisfies all rows, bounds and integers")
