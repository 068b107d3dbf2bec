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
from forcopt.loops.checks.claim import Claim, Confirmed, Doubt, Verdict, check_of, is_checkable, verdict
from forcopt.loops.diagnose import improves_forever
from forcopt.loops.exact_lp import LARGEST_EXACT, LinearProgram, exact_optimum, farkas, fraction
from forcopt.loops.tolerances import EPS, HIGHS_DUAL, NOISE, PROOF, QUADRATIC_PROOF
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


def dual_bound(program: Program, y: Array, cost: Array) -> tuple[float, float]:
    """The bound that multipliers of the rows prove on ``cost @ x`` over a program's rows and column bounds.

    Rows enter with their multipliers, columns with the reduced costs, each at the worse of its bounds. A
    multiplier that would need an infinite bound of a row is set to zero. A reduced cost that would need an
    infinite bound of a column counts as zero if it is noise; otherwise the bound is minus infinity.

    Parameters
    ----------
    program : Program
        Without its integrality.
    y : Array
        The change of the optimum per unit of each row's right-hand side, shape ``(rows,)``.
    cost : Array
        Shape ``(columns,)``.

    Returns
    -------
    bound, error : float
        The bound, and a bound on its rounding error.
    """
    rows, matrix = program.rows, program.matrix()
    y = np.where(np.isfinite(np.where(y > 0, rows.lower, rows.upper)), y, 0.0)
    reduced = cost - matrix.T @ y
    size = np.abs(cost) + abs(matrix).T @ np.abs(y)
    ends = np.where(reduced > 0, program.lower, program.upper)
    noise = ~np.isfinite(ends) & (np.abs(reduced) <= NOISE * size)
    row_ends = np.where(y > 0, rows.lower, rows.upper)
    used, moved = y != 0, (reduced != 0) & ~noise
    if not np.isfinite(ends[moved]).all():
        return -np.inf, 0.0
    terms = np.concatenate([y[used] * row_ends[used], reduced[moved] * ends[moved]])
    rounding = EPS * (np.bincount(rows.indices, minlength=program.columns) + 2) * size
    error = float(rounding[moved] @ np.abs(ends[moved])) + EPS * (terms.size + 2) * float(np.abs(terms).sum())
    return float(terms.sum()), error


def optimality_doubt(program: Program, result: RawResult, tolerance: float, seconds: float = np.inf) -> str:
    """Give the reason why the multipliers do not prove the optimum; empty if they do, or if there are none.

    A multiplier toward an infinite bound proves nothing, unless it is noise: points that are far enough are
    better by any amount. Then other multipliers must prove the value, of HiGHS or else in rational
    arithmetic; for a quadratic program it is checked that no direction improves it forever.

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
    stage = program.stages[0]
    if result.x is None or result.row_dual is None:
        return ""
    x, y = result.x, np.asarray(result.row_dual[: program.rows.count])
    slope = stage.cost if stage.quadratic is None else stage.cost + stage.quadratic @ x
    reduced = slope - program.rows.weighted_sum(y, program.columns)
    gap, unbounded = 0.0, False
    for multiplier, value, lower, upper in (
        (reduced, x, program.lower, program.upper),
        (y, program.matrix() @ x, program.rows.lower, program.rows.upper),
    ):
        room = np.abs(value - np.where(multiplier > 0, lower, upper))
        far = np.isinf(room)
        if far.any():  # toward an infinite bound, the point is compared with one that is farther by its size
            room[far] = np.maximum(1.0, np.abs(value[far]))
            unbounded = unbounded or bool(multiplier[far].any())
        gap += float(np.abs(multiplier) @ room)
    value = stage.value(x)
    largest = tolerance * max(1.0, abs(value), float(np.abs(slope) @ np.abs(x)))
    if gap > largest:
        return f"its multipliers leave a gap of {gap:.2g} at the value {stage.sign * value:.6g}"
    if not unbounded:
        return ""
    bound, error = dual_bound(program, y, slope)  # farther points are better by any amount, unless by noise
    if float(slope @ x) - bound <= largest + error:
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
    matrix = program.matrix()
    positive, negative = matrix.maximum(0.0), matrix.minimum(0.0)

    def extreme(first: Array, second: Array) -> Array:
        finite = (np.where(np.isfinite(end), end, 0.0) for end in (first, second))
        ends = [part @ end for part, end in zip((positive, negative), finite, strict=True)]
        open_ends = sum(
            (abs(part) @ (~np.isfinite(end)).astype(float) > 0).astype(int)
            for part, end in zip((positive, negative), (first, second), strict=True)
        )
        return np.where(open_ends > 0, np.nan, ends[0] + ends[1])

    most, least = extreme(program.upper, program.lower), extreme(program.lower, program.upper)
    size = np.maximum(1.0, np.maximum(np.abs(most), np.abs(least)))
    with np.errstate(invalid="ignore"):
        short = (program.rows.lower - most > NOISE * size) | (least - program.rows.upper > NOISE * size)
    return bool(short.any())
