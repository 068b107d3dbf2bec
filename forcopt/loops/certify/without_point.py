"""Prove that a model has no feasible point, or no optimum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from forcopt.compile.program import Program
from forcopt.loops.certify.certificate import Certificate, certificate_of
from forcopt.loops.certify.evaluation import ExactPoint
from forcopt.loops.certify.linear import Effort
from forcopt.loops.exact_lp import (
    LinearProgram,
    Rational,
    exact_optimum,
    farkas,
    fraction,
    rational,
    recession,
)
from forcopt.loops.solution import ModelSolution
from forcopt.status import Status

__all__ = ["certify_without_point"]


def certify_without_point(
    solution: ModelSolution,
    program: Program | None,
    effort: Effort,
    number: Callable[[float], Rational] = rational,
) -> Certificate:
    """Prove that there is no point, or no optimum."""
    model, status = solution.model, solution.status
    nothing = Certificate(None, None, None, None, None, f"there is no point to check: the status is {status}")
    if program is None or status not in (Status.INFEASIBLE, Status.UNBOUNDED):
        return nothing
    lp = LinearProgram.of(program, number)
    tree = effort.search(program, lp, None)
    if status is Status.INFEASIBLE and tree.exhausted:
        none, dual = replace(nothing, feasible=False), farkas(lp)
        words = (
            f"branch and bound, {tree.subproblems} subproblems" if dual is None else "a Farkas certificate"
        )
        return replace(
            none,
            how=f"infeasibility proved by {words}{effort.told(tree)}",
            dual=None if dual is None else tuple(fraction(v) for v in dual),
        )
    point = ExactPoint(model, tree.better[: model.column_count], number) if tree.better else None
    if point is None or not point.holds:
        return nothing
    if status is Status.INFEASIBLE:
        words = "the status is wrong: this point satisfies everything"
        return certificate_of(point, point, None, None, words)
    if program.stages[0].quadratic is not None:
        return nothing
    ray = exact_optimum(recession(lp))
    if ray.value is not None and ray.value < 0:
        return certificate_of(point, point, None, None, "unboundedness proved by a point and a ray from it")
    return nothing
