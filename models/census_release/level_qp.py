"""Top-down order with real counts: one quadratic program a level, the optima above being fixed."""

from __future__ import annotations

from typing import Any

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.language.model import Model
from forcopt.loops.solve import default_backend
from forcopt.models.census_release.centre import centre
from forcopt.models.census_release.formulations import Counts, measured, objective_unit, squares
from forcopt.models.census_release.problem import ConsistentRelease
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["level_qp"]


def level_qp(problem: ConsistentRelease, common: dict[str, Any], deadline: Deadline) -> tuple[Outcome, str]:
    """Solve the lexicographic problem by one quadratic program for each level, root first.

    Parameters
    ----------
    problem : ConsistentRelease
        Real, in top-down order; any workload, invariants and `extra`.
    common : dict[str, Any]
        Options of `Model.solve`; `start` is a decision.
    deadline : Deadline
        The clock of the run.

    Returns
    -------
    tuple[Outcome, str]
        The outcome, and the backend.

    Notes
    -----
    The squares of a level are strictly convex in its query counts, so that all optima of the level have the
    same query counts. The next programs fix these. Each program contains all levels, so that invariants of
    descendants always can be met. No tolerance is spent on a level's value, and no cone is needed: any
    backend for convex quadratic programs will do. A start is dropped after the first level.
    """
    common = dict(common)
    backend = common.pop("backend", None)
    start, rows = common.pop("start", None), _basis(problem.queries.astype(float))
    near, best = centre(problem), None
    above: list[Array] = []
    status, message, iterations = Status.OPTIMAL, "", 0
    last_bound = 0.0
    for level in range(problem.hierarchy.depth):
        model = Model(f"{type(problem).__name__}, level {level}")
        complete = len(rows) == problem.types
        counts = Counts(problem, model, integer=False, near=near, fixed=above if complete else ())
        for upper, values in enumerate(above):
            if not complete:
                model.subject_to(
                    counts.levels[upper] @ (rows.T / counts.unit) == values @ (rows.T / counts.unit)
                )
        parts = measured(problem, counts.levels)[level]
        unit = objective_unit(counts, parts, float(problem.residuals(near)[level]))
        model.minimize(squares(parts, unit))
        backend = backend or default_backend(model)
        if level == 0 and start is not None:
            common["start"] = counts.start(start)
        if deadline.passed:
            status, message = Status.LIMIT, deadline.end
            break
        result = model.solve(backend, **{**common, "time_limit": deadline.left})
        common.pop("start", None)
        iterations += result.iterations
        if not result.status.has_solution:
            status, message = result.status, result.reason or result.message
            break
        best = counts.release(result, integer=False)
        above.append(best.counts[level])
        last_bound = result.bound * unit
        if result.status is not Status.OPTIMAL:
            status, message = result.status, result.message
            break
    if best is None:
        return Outcome(None, status=status, message=message), backend or ""
    evaluation = problem.evaluate(best)
    if status is Status.OPTIMAL and not evaluation.feasible:
        worst = max(evaluation.violations, key=lambda key: evaluation.violations[key])
        status, message = Status.FAILED, f"the answer violates {worst} by {evaluation.violation:.3g}"
    elif status is not Status.OPTIMAL:
        status, message = Status.FEASIBLE, f"level {level}: {message}"
    done = float(problem.residuals(best)[: len(above) - 1].sum())
    bound = min(done + max(last_bound, 0.0), evaluation.objective)
    return Outcome(best, bound, status, iterations, message), backend or ""


def _basis(rows: Array) -> Array:
    """A largest set of independent rows."""
    kept: list[Array] = []
    for row in rows:
        if np.linalg.matrix_rank(np.array([*kept, row])) > len(kept):
            kept.append(row)
    return np.array(kept)
