"""Several objectives in order of priority: solve, hold the value, solve the next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from forcopt.backends.base import RawResult, Session
from forcopt.compile.program import Program
from forcopt.loops.leximin import Floors, Layout, StageRun, hold_objective
from forcopt.status import Status


def lexicographic(
    session: Session,
    program: Program,
    solve: Callable[[Session, RawResult | None], RawResult],
    accuracy: float = 1e-6,
) -> tuple[RawResult, list[RawResult]]:
    """Solve the stages of a program in order.

    After each stage but the last a row keeps its objective within the program's tolerance of the value found.
    The stages of a leximin objective are run by their strategy (see `forcopt.loops.leximin`).

    Parameters
    ----------
    session : Session
        Holds the program.
    program : Program
        Its stages are run.
    solve : Callable[[Session, RawResult or None], RawResult]
        Solves the session once; its second argument is the last result with a point.
    accuracy : float, default 1e-06
        The backend's.

    Returns
    -------
    result : RawResult
        The last result with a point, or the first failure. It is FEASIBLE, not OPTIMAL, if a stage ended
        without proof; no stage follows that one.
    results : list of RawResult
        The results of all solves. The first one's bound is a bound on the first objective.
    """
    run = StageRun(session, Floors(session, program.tolerance), solve, accuracy, program.tolerance)
    results = run.results
    for number, stage in enumerate(program.stages):
        if number:
            session.set_stage(stage)
        if stage.rows is not None:
            session.add_rows(stage.rows)
        run.last = number == len(program.stages) - 1
        layout = stage.leximin
        if layout is None:
            result = run.solve()
        else:
            assert isinstance(layout, Layout)
            result = layout.run(stage, run)
        if not result.status.has_solution:
            answer = _cut_short(result, run.best, number)
            if isinstance(layout, Layout):
                layout.conclude(program, run, results)
            return answer, results
        run.best = result
        if result.status is not Status.OPTIMAL:
            break
        assert result.x is not None
        if isinstance(layout, Layout):
            layout.hold(stage, run, result.x, run.last)
        elif not run.last:
            session.add_rows(hold_objective(stage, stage.value(result.x), program.tolerance))
    best = run.best
    assert best is not None
    layouts = {id(s.leximin): s.leximin for s in program.stages if isinstance(s.leximin, Layout)}
    if layouts:
        best.message += f"; {len(results)} solves"
    if loose := sum(result.loose for result in results):
        best.message += f"; {loose} of {len(results)} solves ended above the tolerance for stages"
        best.status = Status.FEASIBLE
    if run.floors.relaxed:
        best.message += f"; rounding took a slack of {run.floors.slack:.0e} in the levels"
    for finished in layouts.values():
        finished.conclude(program, run, results)
    return best, results


def _cut_short(result: RawResult, best: RawResult | None, number: int) -> RawResult:
    """The answer if a solve gives no point."""
    if best is None:
        return result
    # The point of the stage before is feasible here: "infeasible or unbounded" is unbounded.
    if result.status is Status.UNBOUNDED or result.ambiguous:
        return replace(result, status=Status.UNBOUNDED, ambiguous=False)
    # Otherwise a limit was hit, or the solver failed on rounding. Keep that point, without the proof.
    best.status = Status.FEASIBLE
    best.message = f"stage {number + 1}: {result.message}"
    return best
