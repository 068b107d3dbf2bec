"""Several objectives in order of priority: solve, hold the value, solve the next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from forcopt.backends.base import RawResult, Session
from forcopt.compile.program import Program, RowBlock, StageCost
from forcopt.loops.leximin import Floors, SubsetCuts, realised, saturate
from forcopt.status import Status

__all__ = ["lexicographic"]


def lexicographic(
    session: Session,
    program: Program,
    solve: Callable[[Session, bool], RawResult],
    accuracy: float = 1e-6,
) -> tuple[RawResult, list[RawResult]]:
    """Solve the stages of a program in order.

    After each stage but the last a row keeps its objective within the program's tolerance of the value found;
    the levels of a leximin objective are held by bounds (see `forcopt.loops.leximin`).

    Parameters
    ----------
    session : Session
        Holds the program.
    program : Program
        Whose stages to run.
    solve : Callable[[Session, bool], RawResult]
        Solves the session once; told whether this is the last stage.
    accuracy : float, default 1e-06
        The backend's.

    Returns
    -------
    tuple[RawResult, list[RawResult]]
        The last result with a point (or the first failure), and those of all solves. A stage that ends
        without proof ends the loop: the result is then FEASIBLE, not OPTIMAL. The bound of the first is that
        on the first objective.
    """
    results: list[RawResult] = []
    best: RawResult | None = None
    floors = Floors(session, program.tolerance)
    pools: dict[int, SubsetCuts] = {}

    def attempt() -> RawResult:
        nonlocal best
        result = solve(session, last)
        # The point of the solve before is feasible here: solve again until the solver sees that, too.
        while not result.status.has_solution and _stumbled(result) and floors.relax():
            result = solve(session, last)
        results.append(result)
        if result.status.has_solution:
            best = result
        return result

    for number, stage in enumerate(program.stages):
        if number:
            session.set_stage(stage)
        if stage.rows is not None:
            session.add_rows(stage.rows)
        last = number == len(program.stages) - 1
        levels = stage.levels
        if levels is not None and levels.method == "saturation":
            result = saturate(session, stage, floors, attempt, accuracy)
            best = result if result.status.has_solution else best
        elif levels is not None and levels.method == "cuts":
            cuts = pools.setdefault(id(levels), SubsetCuts(levels))
            at = None if best is None or best.x is None else levels.at(best.x)
            result = cuts.run(session, stage.rank, at, attempt, program.tolerance)
        else:
            result = attempt()
        if not result.status.has_solution:
            return _cut_short(result, best, number), results
        if result.status is not Status.OPTIMAL:
            break
        assert result.x is not None
        if levels is not None and levels.sums.size:
            worst = np.sort(realised(levels, session.program, result.x))
            floors.hold({int(levels.sums[stage.rank - 1]): float(worst[: stage.rank].sum())})
        elif not last and (levels is None or levels.method != "saturation"):
            session.add_rows(_hold(stage, stage.value(result.x), program.tolerance))
    assert best is not None
    if any(stage.levels is not None for stage in program.stages):
        best.message += f"; {len(results)} solves"
    for cuts in pools.values():
        best.message += f"; {len(cuts.pool)} of 2**{len(cuts.levels.values)} - 1 subsets"
    if loose := sum(result.loose for result in results):
        best.message += f"; {loose} of {len(results)} solves got stuck short of the tolerance for stages"
        best.status = Status.FEASIBLE
    if floors.relaxed:
        best.message += f"; rounding took a slack of {floors.slack:.0e} in the levels"
    _bound_by_outcomes(program, best, results)
    return best, results


def _stumbled(result: RawResult) -> bool:
    return result.status in (Status.INFEASIBLE, Status.FAILED)


def _cut_short(result: RawResult, best: RawResult | None, number: int) -> RawResult:
    """What is left if a solve gives no point."""
    if best is None:
        return result
    # The point of the stage before is feasible here: "infeasible or unbounded" is unbounded.
    if result.status is Status.UNBOUNDED or result.ambiguous:
        return replace(result, status=Status.UNBOUNDED, ambiguous=False)
    # Otherwise a limit was hit, or the solver failed on rounding. Keep that point, without the proof.
    best.status = Status.FEASIBLE
    best.message = f"stage {number + 1}: {result.message}"
    return best


def _bound_by_outcomes(program: Program, best: RawResult, results: list[RawResult]) -> None:
    """Shortfalls are no bound on the smallest value; once they all are minimal, it is its own."""
    levels = program.stages[0].levels
    if levels is None or levels.method != "ordered-values":
        return
    assert best.x is not None and levels.outcomes is not None
    values = realised(levels, program, best.x)
    results[0].trace = []
    results[0].bound = -float(values.min()) if best.status is Status.OPTIMAL else -np.inf
    off = np.abs(values[:, None] - levels.outcomes).min(axis=1)
    if (off > _OFF * np.maximum(1.0, np.abs(values))).any():
        at = int(np.argmax(off))
        best.status = Status.FAILED
        best.message = f"element {at} takes the value {abs(values[at]):.6g}, which is not among the outcomes"


_OFF = 1e-4
"""How far, relative to the larger of 1 and the value, a value may be from an outcome by rounding."""


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
