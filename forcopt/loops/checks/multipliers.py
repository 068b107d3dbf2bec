"""Optima and infeasibility of linear and convex quadratic programs have multipliers of the rows as a proof.

Multipliers bound an optimum near its value, and no point exists if they bound 0 above 0 (Farkas). The checks
read every coefficient, including the ones that the solver dropped. They are in floating point, with bounds on
the rounding errors; `forcopt.loops.certify` proves the same in rational arithmetic.

References
----------
A. Neumaier and O. Shcherbina, "Safe bounds in linear and mixed-integer linear programming", Mathematical
Programming 99 (2004).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from forcopt.arrays import Array
from forcopt.backends.base import RawResult, SolveOptions
from forcopt.backends.conditioned import open_session
from forcopt.backends.registry import get_backend
from forcopt.compile.program import Program, elastic, row_scales
from forcopt.loops.certify.convex import repaired_multipliers
from forcopt.loops.checks.claim import Claim, Confirmed, Doubt, Verdict, check_of, is_checkable, verdict
from forcopt.loops.checks.points import bound_meets_the_value
from forcopt.loops.diagnose import improves_forever
from forcopt.loops.exact_lp import LARGEST_EXACT, LinearProgram, exact_optimum, farkas, fraction
from forcopt.loops.leximin import hold_objective
from forcopt.loops.tolerances import EPS, HIGHS_DUAL, LARGEST_REPAIR, NOISE, PASSES, PROOF, QUADRATIC_PROOF
from forcopt.status import Status

IMPROVES_FOREVER = "the objective improves forever in a direction that all rows and bounds allow"
"""The doubt about an optimum that proves the program unbounded, if the point is feasible."""


@check_of(Status.OPTIMAL)
def multipliers_prove_the_optimum(program: Program, claim: Claim) -> Verdict:
    """Rows without integers: multipliers of the rows bound the optimum near its value."""
    if not is_checkable(claim.compiled) or program.is_integer:
        return Confirmed()
    factor = PROOF if program.stages[0].quadratic is None else QUADRATIC_PROOF
    reason = optimality_doubt(program, claim.result, factor * claim.backend.accuracy, claim.share(1.0, 1.0))
    if reason == IMPROVES_FOREVER and not claim.model.lazies:  # from the point that the solver gives
        return Doubt(reason, Status.UNBOUNDED, refutes_bound=True)
    return verdict(reason)


def dual_bound(program: Program, y: Array, cost: Array, noise: float = NOISE) -> tuple[float, float]:
    """The bound that multipliers of the rows prove on ``cost @ x`` over a program's rows and column bounds.

    Rows enter with their multipliers, columns with the reduced costs, each at the worse of its bounds. A
    multiplier that would need an infinite bound of a row is set to zero. A reduced cost that would need an
    infinite bound of a column, or whose sign rounding may have changed, counts as zero if it is noise;
    otherwise the bound is minus infinity.

    Parameters
    ----------
    program : Program
        Without its integrality.
    y : Array
        The change of the optimum per unit of each row's right-hand side, shape ``(rows,)``.
    cost : Array
        Shape ``(columns,)``.
    noise : float, default 1e-9
        Relative to the terms of a reduced cost. With 0, ``bound - error`` is proved.

    Returns
    -------
    bound, error : float
        The bound, and a bound on its rounding error.
    """
    rows, matrix = program.rows, program.matrix()
    y = np.where(np.isfinite(np.where(y > 0, rows.lower, rows.upper)), y, 0.0)
    reduced = cost - matrix.T @ y
    size = np.abs(cost) + abs(matrix).T @ np.abs(y)
    rounding = EPS * (np.bincount(rows.indices, minlength=program.columns) + 2) * size
    ends = np.where(reduced > 0, program.lower, program.upper)
    reach = np.where(
        np.abs(reduced) > rounding, abs(ends), np.maximum(abs(program.lower), abs(program.upper))
    )
    used, moved = y != 0, np.isfinite(reach) | ((np.abs(reduced) >= noise * size) & (size > 0))
    if not np.isfinite(reach[moved]).all():
        return -np.inf, 0.0
    row_ends = np.where(y > 0, rows.lower, rows.upper)
    terms = np.concatenate([y[used] * row_ends[used], reduced[moved] * ends[moved]])
    error = float(rounding[moved] @ reach[moved]) + EPS * (terms.size + 2) * float(np.abs(terms).sum())
    return float(terms.sum()), error


def safe_bound(program: Program, y: Array, value: float, near: float) -> float:
    """The bound that multipliers of the rows prove on a linear program's first stage, rounded down.

    Columns without a bound get the ones that rows imply, also a row that keeps the objective below a value
    that is worse than `value`: either the optimum satisfies it, or the bound holds anyway. If that proves
    nothing near `value`, the multipliers of a small program are repaired in rational arithmetic.

    Parameters
    ----------
    program : Program
        Linear; integrality is left aside.
    y : Array
        Multipliers of the rows, shape ``(rows,)``, need not be accurate.
    value : float
        Near the optimum.
    near : float
        The largest distance of value and bound without a repair.
    """
    stage = program.stages[0]
    row = hold_objective(stage, value, 1.0)
    cut = float(row.upper[0])
    bounded = replace(with_implied_bounds(program.with_rows(row)), rows=program.rows)
    bound, error = dual_bound(bounded, y, stage.cost, noise=0.0)
    best = _below(min(cut, _below(bound - error)) + stage.offset)
    for held in (bounded, program):
        open_ended = ~(np.isfinite(held.lower) & np.isfinite(held.upper))
        if value - best > near and open_ended.sum() * program.rows.count <= LARGEST_REPAIR:
            exact = LinearProgram.of(held)
            multipliers = repaired_multipliers(exact, held, y, [])
            proved = None if multipliers is None else exact.bound(multipliers)
            if proved is not None:
                best = max(best, _below(min(cut + stage.offset, float(fraction(proved)))))
    return best


def _below(value: float) -> float:
    return float(np.nextafter(value, -np.inf))


def with_safe_bound(program: Program, claim: Claim) -> Claim:
    """The claim with a proved bound in the place of the one that a first-order method claims.

    For linear programs of one stage; minus infinity where its multipliers prove none. An optimum that is not
    near its bound is FEASIBLE. For other programs and solvers the bound stays as claimed.
    """
    first, linear = claim.results[0], program.stages[0].quadratic is None and not program.is_integer
    if not (claim.is_first_order and linear and is_checkable(claim.compiled)):
        return claim
    bound, found = -np.inf, Doubt("its multipliers prove no bound", Status.FEASIBLE)
    if first.x is not None and first.row_dual is not None:
        near = PROOF * claim.backend.accuracy * max(1.0, abs(first.objective))
        bound = safe_bound(program, first.row_dual[: program.rows.count], first.objective, near)
    claim = replace(claim, results=(replace(first, bound=bound), *claim.results[1:]))
    doubt = bound_meets_the_value(program, claim) if np.isfinite(bound) else found
    if claim.status is not Status.OPTIMAL or not isinstance(doubt, Doubt):
        return claim
    return claim.after(replace(doubt, remedy=Status.FEASIBLE))


def with_implied_bounds(program: Program) -> Program:
    """The program with bounds of columns that had none, as the rows imply them, rounded outward."""
    rows = program.rows
    rounding = EPS * (np.diff(rows.indptr) + 3)
    for _ in range(2 + int(PASSES / (1 + rows.data.size))):
        lower, upper = program.lower.copy(), program.upper.copy()
        for sign, side in ((1.0, rows.upper), (-1.0, -rows.lower)):
            i, j, a, least, far, total, size, open_ends = _least_activity(program, sign)
            room = side + rounding * (size + np.abs(side)) - total
            room = np.where(open_ends[i] == far, room[i] + least, np.inf)
            end = np.nextafter(room / a, np.copysign(np.inf, a))
            rises, falls = (a > 0) & np.isinf(program.upper[j]), (a < 0) & np.isinf(program.lower[j])
            np.minimum.at(upper, j[rises], end[rises])
            np.maximum.at(lower, j[falls], end[falls])
        if np.array_equal(lower, program.lower) and np.array_equal(upper, program.upper):
            break
        program = replace(program, lower=lower, upper=upper)
    return program


def _least_activity(program: Program, sign: float) -> tuple[Array, ...]:
    """The rows, columns and values of the entries of ``sign * A``; of each entry the least term within the
    column's bounds, 0 where that is infinite, and whether it is; of each row the sums of the least terms, of
    their sizes, and of the infinite ones.
    """
    rows, entry = program.rows, np.flatnonzero(program.rows.data)
    i = np.repeat(np.arange(rows.count), np.diff(rows.indptr))[entry]
    j, a = rows.indices[entry], sign * rows.data[entry]
    least = a * np.where(a > 0, program.lower[j], program.upper[j])
    far = np.isinf(least)
    least[far] = 0.0
    total, size, open_ends = (np.bincount(i, w, rows.count) for w in (least, np.abs(least), far))
    return i, j, a, least, far, total, size, open_ends


def optimality_doubt(program: Program, result: RawResult, tolerance: float, seconds: float = np.inf) -> str:
    """Give the reason why the multipliers do not prove the optimum; empty if they do.

    A multiplier toward an infinite bound proves nothing, unless it is noise: points that are far enough are
    better by any amount. Then, and where a linear program has no multipliers, others must prove the value, of
    HiGHS or else in rational arithmetic; for a quadratic program it is checked that no direction improves it
    forever.

    Parameters
    ----------
    program : Program
        Without integers and cones; a convex quadratic objective is replaced by its tangent at the point.
    result : RawResult
        With a point.
    tolerance : float
        The largest distance of value and bound, relative to the larger of 1 and the value.
    seconds : float, default inf
        How long HiGHS may look for other multipliers; a search that runs out leaves no doubt.
    """
    stage, x = program.stages[0], result.x
    if x is None or (result.row_dual is None and stage.quadratic is not None):
        return ""
    slope = stage.cost if stage.quadratic is None else stage.cost + stage.quadratic @ x
    value = stage.value(x)
    largest = tolerance * max(1.0, abs(value), float(np.abs(slope) @ np.abs(x)))
    if result.row_dual is None:
        return _unproved(program, value, largest, seconds)
    y = np.asarray(result.row_dual[: program.rows.count])
    reduced = slope - program.rows.weighted_sum(y, program.columns)
    gap, unbounded = 0.0, False
    for multiplier, at, lower, upper in (
        (reduced, x, program.lower, program.upper),
        (y, program.matrix() @ x, program.rows.lower, program.rows.upper),
    ):
        room = np.abs(at - np.where(multiplier > 0, lower, upper))
        far = np.isinf(room)
        if far.any():  # toward an infinite bound, the point is compared with one that is farther by its size
            room[far] = np.maximum(1.0, np.abs(at[far]))
            unbounded = unbounded or bool(multiplier[far].any())
        gap += float(np.abs(multiplier) @ room)
    if gap > largest:
        return f"its multipliers leave a gap of {gap:.2g} at the value {stage.sign * value:.6g}"
    if not unbounded:
        return ""
    bound, error = dual_bound(program, y, slope)  # farther points are better by any amount, unless by noise
    if float(slope @ x) - bound <= largest + error:
        return ""
    if stage.quadratic is None and value - safe_bound(program, y, value, largest) <= largest:
        return ""
    if stage.quadratic is not None:  # without a ray the curvature ends what a slope near zero gains
        return IMPROVES_FOREVER if improves_forever(program) else ""
    return _unproved(program, value, largest, seconds)


def _unproved(program: Program, value: float, largest: float, seconds: float) -> str:
    """Give the reason why no multipliers prove an optimum of a linear program near a value; else empty."""
    stage, bound = program.stages[0], -np.inf
    for extra in ({}, {"presolve": "off"}):
        settings = {"dual_feasibility_tolerance": HIGHS_DUAL, **extra}
        limit = seconds if np.isfinite(seconds) else None
        found = open_session(get_backend("highs"), program).solve(SolveOptions(limit, extra=settings))
        if found.status in (Status.LIMIT, Status.FEASIBLE):
            return ""
        if found.row_dual is not None:
            proved, error = dual_bound(program, found.row_dual, stage.cost)
            bound = max(bound, proved + stage.offset)
            if abs(value - bound) <= largest + error:
                return ""
    if improves_forever(program):
        return IMPROVES_FOREVER
    if program.rows.data.size <= LARGEST_EXACT:
        exact = exact_optimum(LinearProgram.of(program)).bound
        bound = -np.inf if exact is None else float(fraction(exact))
        if abs(value - bound) <= largest:
            return ""
    return f"other multipliers prove no more than {stage.sign * bound:.6g} of {stage.sign * value:.6g}"


@check_of(Status.INFEASIBLE)
def multipliers_prove_infeasibility(program: Program, claim: Claim) -> Verdict:
    """Rows alone: multipliers prove that no point exists, unless the integers are the reason."""
    if not is_checkable(claim.compiled):
        return Confirmed()
    return verdict(infeasibility_doubt(program, claim.left, claim.backend.accuracy))


def infeasibility_doubt(program: Program, options: SolveOptions, accuracy: float) -> str:
    """Give the reason why a linear program does not seem infeasible; empty if it is, or if integers decide.

    First rows that contradict the column bounds are looked for; then HiGHS minimizes the sum of the rows'
    violations, and its multipliers must prove that this is positive; if they do so only up to rounding,
    multipliers are computed in rational arithmetic.

    Parameters
    ----------
    program : Program
        Integrality is left aside.
    options : SolveOptions
        Its time limit is kept; a check that runs out leaves no doubt.
    accuracy : float
        The tolerance of a row.
    """
    if (program.lower > program.upper).any() or _contradicted(program):
        return ""
    relaxed = replace(program, integer=np.zeros_like(program.integer))
    softened, *_ = elastic(relaxed, row_scales(program.rows), np.ones(program.rows.count))
    highs, plain = get_backend("highs"), SolveOptions(time_limit=options.time_limit)
    zero = np.zeros(program.columns)
    for extra in ({}, {"presolve": "off"}):
        result = open_session(highs, softened).solve(replace(plain, extra=extra))
        if result.status is Status.LIMIT:
            return ""
        if result.x is None:
            continue
        if result.row_dual is not None:
            bound, error = dual_bound(program, result.row_dual, zero)
            if bound > error:
                return ""
        x = result.x[: program.columns]
        if relaxed.violation(x) <= accuracy:
            return "" if program.is_integer else "a point satisfies all rows and bounds"
    if program.is_integer or (
        program.rows.data.size <= LARGEST_EXACT and farkas(LinearProgram.of(relaxed)) is not None
    ):
        return ""
    return "no multipliers of the rows prove it"


def _contradicted(program: Program) -> bool:
    """Whether a single row contradicts the column bounds, beyond rounding."""
    for sign, side in ((1.0, program.rows.upper), (-1.0, -program.rows.lower)):
        *_, least, size, open_ends = _least_activity(program, sign)
        if ((open_ends == 0) & (least - side > NOISE * np.maximum(1.0, size))).any():
            return True
    return False
