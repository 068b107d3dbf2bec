"""Check by independent arithmetic the claims of a solver on a linear or convex quadratic program.

OPTIMAL needs multipliers of the rows that bound the optimum near the value; INFEASIBLE needs multipliers
that prove that no point exists (Farkas); UNBOUNDED needs a ray and a point. The checks read every
coefficient, including the ones that the solver dropped. They are in floating point, with bounds on the
rounding errors of Farkas proofs; `forcopt.loops.certify` proves the same in rational arithmetic.

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
from forcopt.backends.registry import backends, get_backend
from forcopt.compile.elastic import elastic, row_scales
from forcopt.compile.program import Program, RowBlock, StageCost
from forcopt.errors import BackendError, UnsupportedError
from forcopt.loops.diagnose import improves_forever
from forcopt.loops.exact_lp import LARGEST_EXACT, LinearProgram, exact_optimum, farkas, fraction
from forcopt.status import Status

__all__ = [
    "IMPROVES_FOREVER",
    "dual_bound",
    "infeasibility_doubt",
    "integer_infeasibility_doubt",
    "integer_optimality_doubt",
    "is_checkable",
    "optimality_doubt",
]

_EPS = float(np.finfo(float).eps)

IMPROVES_FOREVER = "the objective improves forever in a direction that all rows and bounds allow"
"""The doubt about an optimum that proves the program unbounded, if the point is feasible."""

_NOISE = 1e-9
"""A multiplier this small, relative to the terms that it is the difference of, counts as zero."""


def is_checkable(program: Program) -> bool:
    """Whether these checks fit: linear rows, a linear or quadratic objective of one stage."""
    return not (program.cones or program.is_conditional or program.is_staged)


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
    noise = ~np.isfinite(ends) & (np.abs(reduced) <= _NOISE * size)
    row_ends = np.where(y > 0, rows.lower, rows.upper)
    used, moved = y != 0, (reduced != 0) & ~noise
    if not np.isfinite(ends[moved]).all():
        return -np.inf, 0.0
    terms = np.concatenate([y[used] * row_ends[used], reduced[moved] * ends[moved]])
    per_column = np.bincount(rows.indices, minlength=program.columns)
    rounding = _EPS * (per_column + 2) * size
    error = float(rounding[moved] @ np.abs(ends[moved])) + _EPS * (terms.size + 2) * float(
        np.abs(terms).sum()
    )
    return float(terms.sum()), error


def optimality_doubt(
    program: Program,
    result: RawResult,
    tolerance: float,
    seconds: float = np.inf,
    activity: Array | None = None,
) -> str:
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
    activity : Array, optional
        The values of the rows at the point, if they are known.
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
        (y, program.matrix() @ x if activity is None else activity, program.rows.lower, program.rows.upper),
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
        settings = {"dual_feasibility_tolerance": 1e-10, **extra}
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
    if not program.is_integer or program.cones:
        return ""
    names = ("scip", "gscip") if _is_highs(backend) else ("highs",)
    other = next((b for b in map(backends().get, names) if b is not None and b.missing() is None), None)
    needed = {"indicator"} if program.indicators else set()
    if other is None or not needed <= other.capabilities.kinds:
        return ""
    limit = min(max(0.5, seconds / 20), np.inf if options.time_limit is None else options.time_limit)
    empty = StageCost(np.zeros(program.columns), 0.0, False)
    search = replace(program.with_stage(empty), lazies=(), callbacks=())
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
        The seconds of the claim; the search may take a twentieth of it, or 0.05 seconds if that is more.
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
    least = 2 * max(options.gap or 0.0, _HIGHS_GAP) * abs(value) + 10 * accuracy * max(1.0, abs(value))
    columns = np.flatnonzero(stage.cost)
    better = RowBlock(
        np.array([0, len(columns)], np.int32),
        columns.astype(np.int32),
        stage.cost[columns],
        np.array([-np.inf]),
        np.array([value - least - stage.offset]),
    )
    limit = min(max(0.05, seconds / 20), np.inf if options.time_limit is None else options.time_limit)
    empty = StageCost(np.zeros(program.columns), 0.0, False)
    try:
        session = open_session(get_backend("highs"), replace(program.with_stage(empty), callbacks=()))
        session.add_rows(better)
        found = session.solve(SolveOptions(time_limit=limit, extra={"presolve": "off"})).x
    except (BackendError, UnsupportedError):
        return ""
    if found is None:
        return ""
    found = np.where(program.integer == 1, np.round(found), found)
    if program.violation(found) > accuracy or stage.value(found) > value - least / 2:
        return ""
    better_value = stage.sign * stage.value(found) + 0.0
    return f"a point of value {better_value:.6g} satisfies all rows, bounds and integers"


_HIGHS_GAP = 1e-4
"""The relative gap at which HiGHS stops a search, unless another is asked for."""


def _is_highs(backend: str) -> bool:
    """Whether a backend runs HiGHS, by itself or through another library (SciPy's solver is HiGHS)."""
    return "highs" in backend.lower() or backend.endswith(":SCIPY")


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
        short = (program.rows.lower - most > _NOISE * size) | (least - program.rows.upper > _NOISE * size)
    return bool(short.any())
