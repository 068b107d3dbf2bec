"""Several objectives in order of priority: solve, hold the value, solve the next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from forcopt.backends.base import RawResult, Session
from forcopt.compile.program import Program, RowBlock, StageCost
from forcopt.status import Status

__all__ = ["lexicographic"]


def lexicographic(
    session: Session, program: Program, solve: Callable[[Session, bool], RawResult]
) -> tuple[RawResult, list[RawResult]]:
    """Solve the stages of a program in order.

    After each stage but the last a row keeps its objective within the program's tolerance of the value found.

    Args:
        session: holds the program.
        program: whose stages to run.
        solve: solves the session once; told whether this is the last stage.

    Returns:
        The last result with a point (or the first failure), and those of all stages that were run. A stage
        that ends without proof ends the loop: the result is then FEASIBLE, not OPTIMAL.
    """
    results: list[RawResult] = []
    best: RawResult | None = None
    for number, stage in enumerate(program.stages):
        if number:
            session.set_stage(stage)
        last = number == len(program.stages) - 1
        result = solve(session, last)
        results.append(result)
        if not result.status.has_solution:
            if best is None:
                return result, results
            # The point of the stage before is feasible here: "infeasible or unbounded" is unbounded.
            if result.status is Status.UNBOUNDED or result.ambiguous:
                return replace(result, status=Status.UNBOUNDED, ambiguous=False), results
            # Otherwise a limit was hit, or the solver failed on rounding. Keep that point, without the proof.
            best.status = Status.FEASIBLE
            best.message = f"stage {number + 1}: {result.message}"
            return best, results
        best = result
        if result.status is not Status.OPTIMAL:
            break
        if not last:
            assert result.x is not None
            session.add_rows(_hold(stage, stage.value(result.x), program.tolerance))
    assert best is not None
    return best, results


def _hold(stage: StageCost, value: float, tolerance: float) -> RowBlock:
    row = sp.csr_array(stage.cost.reshape(1, -1))
    limit = value - stage.offset + tolerance * max(1.0, abs(value))
    return RowBlock(
        row.indptr.astype(np.int32),
        row.indices.astype(np.int32),
        row.data,
        np.array([-np.inf]),
        np.array([limit]),
    )
