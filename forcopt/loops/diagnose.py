"""Why a model has no optimum: an irreducible infeasible subset of its constraints, or an unbounded ray."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from forcopt.backends.base import RawResult, SolveOptions
from forcopt.backends.registry import get_backend
from forcopt.compile.compiler import compile_model
from forcopt.compile.program import Program, RowBlock, StageCost
from forcopt.language.constraint import Condition
from forcopt.language.model import Model
from forcopt.status import Status

if TYPE_CHECKING:
    from forcopt.loops.solution import ModelSolution

__all__ = ["explain", "irreducible_subset", "ray"]

_PROBE_SECONDS = 10.0
"""The time limit of each feasibility check; a check that runs out counts as feasible."""


def explain(solution: ModelSolution) -> str:
    """Say in a sentence why there is no optimum; empty if there is nothing to say."""
    if solution.status is Status.INFEASIBLE:
        names = irreducible_subset(solution.model, solution.backend)
        if not names:
            return "the bounds and integrality of the variables alone cannot be met"
        return "these constraints cannot hold together: " + ", ".join(names)
    if solution.status is Status.UNBOUNDED:
        names = ray(solution.model, solution.backend)
        return "the objective improves forever along " + ", ".join(names) if names else ""
    return ""


def irreducible_subset(model: Model, backend: str = "highs") -> list[str]:
    """Names of constraints that cannot hold together, while leaving out any one of them they can.

    QuickXplain (Junker, 2004): for k names among n constraints O(k log(n / k)) feasibility checks. Bounds and
    integrality of the variables always hold.

    Args:
        model: infeasible.
        backend: solves the checks.
    """
    items: list[Any] = [*model.constraints]
    items += [r for r in model.relations if isinstance(r, Condition)]

    def infeasible(chosen: list[Any]) -> bool:
        return _subset_status(model, chosen, backend) is Status.INFEASIBLE

    if infeasible([]) or not items:
        return []
    return [item.name for item in _quick_explain([], items, True, infeasible)]


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
    part = copy.copy(model)
    kept = {id(c) for c in chosen}
    part.constraints = [c for c in model.constraints if id(c) in kept]
    part.relations = [r for r in model.relations if not isinstance(r, Condition) or id(r) in kept]
    part.objective = None
    part.lazies = []
    return _solve(part, backend, None).status


def _solve(model: Model, backend: str, change: Any) -> RawResult:
    chosen = get_backend(backend)
    program = compile_model(model, chosen.capabilities, backend)
    return chosen.session(change(program) if change else program).solve(
        SolveOptions(time_limit=_PROBE_SECONDS)
    )


def ray(model: Model, backend: str = "highs") -> list[str]:
    """Names of the variables that can grow forever while the objective improves.

    Minimises the objective over the recession cone within the unit box; integrality is left aside, which is
    right for rational data.
    """
    result = _solve(model, backend, _recession)
    if result.x is None or result.objective > -1e-9:
        return []
    moving = np.flatnonzero(np.abs(result.x[: model.column_count]) > 1e-7)
    blocks = {b.name: None for c in moving for b in model.blocks if b.start <= c < b.start + b.size}
    names = [model.column_name(int(c)) for c in moving]
    return names if len(names) <= 10 else [*names[:10], f"... ({len(names)} columns of {', '.join(blocks)})"]


def _recession(program: Program) -> Program:
    """The directions along which every constraint keeps holding, cut to the unit box."""

    def homogeneous(lower: Any, upper: Any, far: float) -> tuple[Any, Any]:
        return np.where(np.isfinite(lower), 0.0, -far), np.where(np.isfinite(upper), 0.0, far)

    lower, upper = homogeneous(program.lower, program.upper, 1.0)
    row_lower, row_upper = homogeneous(program.rows.lower, program.rows.upper, np.inf)
    rows = RowBlock(program.rows.indptr, program.rows.indices, program.rows.data, row_lower, row_upper)
    stage = program.stages[0]
    out = replace(
        program,
        lower=lower,
        upper=upper,
        integer=np.zeros_like(program.integer),
        rows=rows,
        stages=(StageCost(stage.cost, 0.0, stage.maximize),),
        cones=tuple(replace(c, offset=np.zeros_like(c.offset)) for c in program.cones),
        indicators=(),
        lazies=(),
    )
    if stage.quadratic is not None:  # a convex quadratic only falls forever where it is flat
        flat = stage.quadratic.tocsr()
        zero = np.zeros(flat.shape[0])
        out = out.with_rows(RowBlock(flat.indptr, flat.indices, flat.data, zero, zero))
    return out
