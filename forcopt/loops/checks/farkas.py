"""Infeasibility of a linear program has multipliers of its rows as a proof (Farkas).

The check reads every coefficient, including the ones that the solver dropped. It is in floating point, with
bounds on the rounding errors; `forcopt.loops.certify` proves the same in rational arithmetic.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from forcopt.arrays import Array
from forcopt.backends.base import SolveOptions
from forcopt.backends.conditioned import open_session
from forcopt.backends.registry import get_backend
from forcopt.compile.program import Program, elastic, row_scales
from forcopt.loops.checks.claim import Claim, Confirmed, Verdict, check_of, is_checkable, verdict
from forcopt.loops.checks.multipliers import dual_bound
from forcopt.loops.exact_lp import LARGEST_EXACT, LinearProgram, farkas
from forcopt.loops.tolerances import NOISE
from forcopt.status import Status

__all__ = ["infeasibility_doubt", "multipliers_prove_infeasibility"]


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
