"""Prove the optimum of a linear or integer program, stage by stage, or that it has none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from forcopt.clock import Deadline
from forcopt.compile.program import Program, StageCost
from forcopt.loops.certify.certificate import Certificate, as_text, certificate_of
from forcopt.loops.certify.evaluation import ExactPoint, distance
from forcopt.loops.exact_lp import (
    Exact,
    LinearProgram,
    Rational,
    exact_optimum,
    farkas,
    fraction,
    nearest_point,
    rational,
    recession,
)
from forcopt.loops.exact_milp.prove import Tree, branch_and_bound
from forcopt.loops.leximin import SaturationLayout
from forcopt.loops.solution import ModelSolution
from forcopt.rationals import fmpq
from forcopt.status import Status


@dataclass(frozen=True)
class Effort:
    """How long branch and bound may take, and where its proof goes.

    Attributes
    ----------
    deadline : Deadline
        Of all searches together.
    save : Path, optional
        The VIPR file to write.
    progress : Callable[[int, int], None], optional
        Called now and then with the subproblems done and the depth.
    """

    deadline: Deadline
    save: Path | None = None
    progress: Callable[[int, int], None] | None = None

    def search(
        self,
        program: Program,
        lp: LinearProgram,
        cutoff: Rational | None,
        point: Sequence[Rational] | None = None,
    ) -> Tree:
        """Search the integral points of a program; `lp` is its relaxation."""
        integer = np.flatnonzero(program.integer == 1).tolist()
        names = [program.column_name(j) for j in range(program.columns)] if self.save is not None else []
        shown: dict[str, Any] = {"names": names, "save": self.save, "progress": self.progress}
        return branch_and_bound(lp, integer, cutoff, self.deadline, point=point, **shown)

    def told(self, tree: Tree) -> str:
        """What became of the file, in words."""
        if self.save is None:
            return ""
        return f"; the proof is in {self.save}" if tree.exhausted else "; no proof was written"


def certify_linear(program: Program, own: ExactPoint, tolerance: Rational, effort: Effort) -> Certificate:
    """Repair the point if it needs to be, then prove the optimum stage by stage."""
    stages = program.stages
    lp, integer = LinearProgram.of(program, own.number), np.flatnonzero(program.integer == 1).tolist()
    near = fixed(lp, [j for j in integer if j < own.model.column_count], own.x)
    face, found = _stagewise(near, stages)
    point, better = _optimum_near(face, found, own, tolerance)
    if not point.holds:
        point = repaired(near, own, tolerance)
    if integer and point.holds:
        return _certify_integer(program, lp, (point, better, own), tolerance, effort)
    if integer:
        bound = exact_optimum(lp.aiming(stages[0])).bound
        return _concluded((point, better, own), [bound], "the relaxation is solved exactly")
    if found[0].status == "infeasible" and (certificate := farkas(lp)) is not None:
        words = "no point is feasible, by a Farkas certificate"
        return _concluded((point, better, own), [None], words, certificate)
    how = "multipliers of the rows prove the bound"
    if effort.save is not None and point.holds and len(stages) == 1:
        how += effort.told(_searched(program, lp, point, effort)[1])
    return _concluded((point, better, own), [e.bound for e in found], how, found[0].dual)


def _optimum_near(
    face: LinearProgram, found: Sequence[Exact], own: ExactPoint, tolerance: Rational
) -> tuple[ExactPoint, ExactPoint | None]:
    """The exact optimum whose rounding a point is, or the point itself; and the vertex that was found."""
    values, vertex, count = [e.value for e in found], found[-1].point, own.model.column_count
    settled = len(found) == len(own.values) and found[-1].proved
    if not settled or vertex is None or (own.holds and own.values == values):
        return own, None
    point = better = ExactPoint(own.model, vertex[:count], own.number)
    if distance(point, own) > tolerance:
        nearest = nearest_point(face, own.x)
        point = better if nearest is None else ExactPoint(own.model, nearest[:count], own.number)
    if point.holds and point.values == values and _agree(point, own, tolerance):
        return point, better
    return own, better


_Points = tuple[ExactPoint, ExactPoint | None, ExactPoint]
"""The point to certify, another that may be better, and the point given."""


def _certify_integer(
    program: Program, lp: LinearProgram, points: _Points, tolerance: Rational, effort: Effort
) -> Certificate:
    """Prove the optimum by branch and bound from a feasible point."""
    point, better, own = points
    best = point if better is None or not better.holds or better.values >= point.values else better
    bounds, tree = _searched(program, lp, best, effort)
    if bounds[0] is None:  # no time for more than the relaxation
        bounds[0] = exact_optimum(lp.aiming(program.stages[0])).bound
    better = None if best is point else best
    if tree.better is not None:
        better = ExactPoint(own.model, tree.better[: own.model.column_count], own.number)
    if better is not None and better.holds and better.values == bounds and _agree(better, own, tolerance):
        point = better  # the given point is a rounding of the optimum
    how = f"branch and bound over {tree.subproblems} subproblems, each bounded in rational arithmetic"
    return _concluded((point, better, own), bounds, how + effort.told(tree))


def _concluded(
    points: _Points, bounds: list[Rational | None], how: str, dual: list[Rational] | None = None
) -> Certificate:
    """What bounds of the stages and the points prove."""
    point, better, own = points
    if point.holds and bounds == point.values:
        return certificate_of(point, own, bounds[0], True, how, dual)
    if better is not None and better.holds and (not point.holds or better.values < point.values):
        kind = "a better point" if point.holds else "a feasible point farther away"
        how += f"; {kind} has the objective {_first_gain(better, point)}"
        return certificate_of(point, own, bounds[0], False, how, dual)
    if bounds[0] is None and dual is None:
        how = "no bound could be proved"
    return certificate_of(point, own, bounds[0], None if point.holds else False, how, dual)


def _agree(point: ExactPoint, own: ExactPoint, tolerance: Rational) -> bool:
    """Whether the given point may pass for a rounding of an exact optimum.

    Every column is near, within the tolerance; or the given point satisfies the model within it, and its
    objectives agree to a hundredth of it: an ill-conditioned vertex moves farther than its rows do.
    """
    if distance(point, own) <= tolerance:
        return True
    violation = max(own.model.violations(np.array([float(v) for v in own.x])).values(), default=0.0)
    apart = (abs(a - b) / max(fmpq(1), abs(a)) for a, b in zip(point.values, own.values, strict=True))
    return bool(rational(violation) <= tolerance and 100 * max(apart, default=fmpq(0)) <= tolerance)


def _first_gain(better: ExactPoint, point: ExactPoint) -> str:
    """Return the least gain of a better point in the first stage in which it differs."""
    differ = (i for i, pair in enumerate(zip(better.values, point.values, strict=True)) if pair[0] != pair[1])
    stage = next(differ, 0)
    worth = as_text(fraction(better.signs[stage] * better.values[stage]))
    return f"{worth} in the model's units" + (f", stage {stage + 1}" if len(better.values) > 1 else "")


def repaired(near: LinearProgram, own: ExactPoint, tolerance: Rational) -> ExactPoint:
    """A point within the tolerance of `own` that satisfies everything; `own` if no such point is found."""
    nearest = nearest_point(near, own.x)
    if nearest is None:
        return own
    candidate = ExactPoint(own.model, nearest[: len(own.x)], own.number)
    return candidate if candidate.holds and distance(candidate, own) <= tolerance else own


def fixed(lp: LinearProgram, columns: Sequence[int], x: Sequence[Rational]) -> LinearProgram:
    """The program with columns held at their values in `x`."""
    lower, upper = list(lp.lower), list(lp.upper)
    for j in columns:
        lower[j] = upper[j] = x[j]
    return replace(lp, lower=lower, upper=upper)


def _stagewise(lp: LinearProgram, stages: Sequence[StageCost]) -> tuple[LinearProgram, list[Exact]]:
    """Solve the stages in order, each on the optimal face of the earlier ones; also give the last face."""
    found = []
    for stage in stages:
        lp = lp.aiming(stage)
        if isinstance(stage.leximin, SaturationLayout):
            lp, levels = stage.leximin.prove(lp)
            found += levels
        else:
            found.append(exact_optimum(lp))
            lp = lp.holding(found[-1].value) if found[-1].proved else lp
        if not found[-1].proved:
            break
    return lp, found


def _searched(
    program: Program, lp: LinearProgram, point: ExactPoint, effort: Effort
) -> tuple[list[Rational | None], Tree]:
    """Prove the values of all stages at a point by branch and bound, as far as that goes."""
    bounds: list[Rational | None] = []
    subproblems = 0
    columns = _completed(program, lp, point, effort) if effort.save is not None else None
    for stage, value in zip(program.stages, point.values, strict=True):
        lp = lp.aiming(stage)
        tree = effort.search(program, lp, value, columns)
        subproblems += tree.subproblems
        bounds.append(tree.bound)
        if tree.better is not None or tree.bound != value:
            break
        lp = lp.holding(value)
    return bounds, replace(tree, subproblems=subproblems)


def _completed(
    program: Program, lp: LinearProgram, point: ExactPoint, effort: Effort
) -> Sequence[Rational] | None:
    """The values of all columns of a program at a point of its model; None if they are not found."""
    if len(point.x) == program.columns:
        return point.x
    return replace(effort, save=None).search(program, fixed(lp, range(len(point.x)), point.x), None).better


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
