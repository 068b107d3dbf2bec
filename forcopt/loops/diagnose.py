"""Why a model has no optimum: an irreducible infeasible subset of its constraints, or an unbounded ray."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from forcopt.arrays import Array
from forcopt.backends.base import SolveOptions
from forcopt.backends.conditioned import open_session
from forcopt.backends.registry import get_backend
from forcopt.compile.compiler import compile_model
from forcopt.compile.program import Program, RowBlock, StageCost
from forcopt.language.constraint import Condition, Constraint
from forcopt.language.model import Model
from forcopt.status import Status

if TYPE_CHECKING:
    from forcopt.loops.solution import ModelSolution

__all__ = ["explain", "irreducible_subset", "ray"]

_PROBE_SECONDS = 10.0
"""The time limit of each feasibility check; a check that runs out counts as feasible."""


def explain(solution: ModelSolution) -> str:
    """Give in a sentence the reason why there is no optimum; empty if none is known."""
    if solution.status is Status.INFEASIBLE:
        names = irreducible_subset(solution.model, solution.backend)
        if names:
            return "these constraints cannot hold together: " + ", ".join(names)
        if names is not None:
            return "the bounds and integrality of the variables alone cannot be met"
        families = ", ".join(family.name for family in solution.model.lazies)
        return f"the constraints cannot hold together with the lazy families {families}" if families else ""
    if solution.status is Status.UNBOUNDED:
        names = ray(solution.model, solution.backend)
        return "the objective improves forever along " + ", ".join(names) if names else ""
    return ""


def irreducible_subset(model: Model, backend: str = "highs") -> list[str] | None:
    """Names of constraints that cannot hold together, while leaving out any one of them they can.

    Of a constraint with several rows only the relevant ones are named, such as ``need[2]``, if there are at
    most 2,000 rows to look at; else the constraint as a whole.

    Empty if the variables' bounds and integrality alone cannot be met; None if no such subset is found: if
    the constraints only contradict a lazy family, or the checks take too long.

    QuickXplain (Junker, 2004): for k names among n constraints O(k log(n / k)) feasibility checks. Bounds and
    integrality of the variables always hold.

    Parameters
    ----------
    model : Model
        Infeasible.
    backend : str, default "highs"
        Solves the checks.
    """
    items: list[Any] = [*model.constraints]
    items += [r for r in model.relations if isinstance(r, Condition)]

    def infeasible(chosen: list[Any]) -> bool:
        return _subset_status(model, chosen, backend) is Status.INFEASIBLE

    if infeasible([]):
        return []
    if not infeasible(items):
        return None
    found = _quick_explain([], items, True, infeasible)
    rows = [row for item in found for row in _rows(item)]
    if len(rows) <= _MOST_ROWS:
        found = rows if len(rows) == len(found) else _quick_explain([], rows, True, infeasible)
    return [item.name for item in found]


_MOST_ROWS = 2_000


def _rows(item: Any) -> list[Any]:
    """A constraint's rows, each as a constraint under the row's name; other conditions as they are."""
    if not isinstance(item, Constraint):
        return [item]
    flat = item.expression.ravel()
    lower, upper = (np.broadcast_to(side, item.shape).reshape(-1) for side in (item.lower, item.upper))
    return [
        Constraint(flat[i], lower[i], upper[i], item.model.row_name(item.start + i)) for i in range(flat.size)
    ]


def _quick_explain(base: list[Any], items: list[Any], changed: bool, infeasible: Any) -> list[Any]:
    """The least part of `items` that is infeasible together with `base`; `changed` if base grew."""
    if base and changed and infeasible(base):
        return []
    if len(items) == 1:
        return items
    half = len(items) // 2
    left, right = items[:half], items[half:]
    from_right = _quick_explain(base + left, right, True, infeasible)
    from_left = _quick_explain(base + from_right, left, bool(from_right), infeasible)
    return from_left + from_right


def _subset_status(model: Model, chosen: list[Any], backend: str) -> Status:
    """Whether some of a model's constraints and conditions can hold together."""
    solver = get_backend(backend)
    program = compile_model(model, solver.capabilities, backend, only=chosen)
    result = open_session(solver, program).solve(SolveOptions(time_limit=_PROBE_SECONDS))
    # Nothing is unbounded without an objective, so "infeasible or unbounded" is infeasible.
    return Status.INFEASIBLE if result.ambiguous else result.status


def ray(model: Model, backend: str = "highs") -> list[str]:
    """Names of the variables that can grow forever while the objective improves.

    Minimises the objective over the recession cone within the unit box; integrality is left aside, which is
    right for rational data. Of several objectives it is the first that has such a direction among the
    directions that leave those before it as they are.
    """
    chosen = get_backend(backend)
    program = compile_model(model, chosen.capabilities, backend, sorted_by="compact").with_all_rows()
    cone = _recession(program)
    for stage in program.stages:
        if stage.quadratic is not None:  # a convex quadratic only falls forever where it is flat
            flat = stage.quadratic.tocsr()
            zero = np.zeros(flat.shape[0])
            cone = cone.with_rows(RowBlock(flat.indptr, flat.indices, flat.data, zero, zero))
        linear = StageCost(stage.cost, 0.0, stage.maximize)
        result = open_session(chosen, cone.with_stage(linear)).solve(SolveOptions(time_limit=_PROBE_SECONDS))
        if result.x is not None and result.objective < -1e-9:
            return _names(model, result.x)
        used = np.flatnonzero(stage.cost).astype(np.int32)
        ends = np.array([0, len(used)], dtype=np.int32)
        cone = cone.with_rows(RowBlock(ends, used, stage.cost[used], np.array([-np.inf]), np.zeros(1)))
    return []


def _names(model: Model, direction: Array) -> list[str]:
    """Name the variables' columns that move along a direction, or the first ten and the variables of all."""
    names: list[str] = []
    moving: list[str] = []
    for v in model.variables:
        columns = v.start + np.flatnonzero(np.abs(direction[v.start : v.start + v.size]) > 1e-7)
        names += [model.column_name(int(c)) for c in columns]
        moving += [v.name] if columns.size else []
    return names if len(names) <= 10 else [*names[:10], f"... ({len(names)} columns of {', '.join(moving)})"]


def _recession(program: Program) -> Program:
    """The directions along which every constraint keeps holding, cut to the unit box."""

    def homogeneous(lower: Any, upper: Any, far: float) -> tuple[Any, Any]:
        return np.where(np.isfinite(lower), 0.0, -far), np.where(np.isfinite(upper), 0.0, far)

    lower, upper = homogeneous(program.lower, program.upper, 1.0)
    row_lower, row_upper = homogeneous(program.rows.lower, program.rows.upper, np.inf)
    rows = RowBlock(program.rows.indptr, program.rows.indices, program.rows.data, row_lower, row_upper)
    return replace(
        program,
        lower=lower,
        upper=upper,
        integer=np.zeros_like(program.integer),
        rows=rows,
        cones=tuple(replace(c, offset=np.zeros_like(c.offset)) for c in program.cones),
        indicators=(),
        lazies=(),
    )
