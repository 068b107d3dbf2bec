"""Prove the optimum of a linear or integer program, stage by stage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from flint import fmpq

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
)
from forcopt.loops.exact_milp import Tree, branch_and_bound
from forcopt.loops.leximin import SaturationLayout

__all__ = ["Effort", "certify_linear", "fixed", "repaired"]


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
        return branch_and_bound(
            lp,
            integer,
            cutoff,
            self.deadline,
            point=point,
            names=names,
            save=self.save,
            progress=self.progress,
        )

    def told(self, tree: Tree) -> str:
        """What became of the file, in words."""
        if self.save is None:
            return ""
        return f"; the proof is in {self.save}" if tree.exhausted else "; no proof was written"


def certify_linear(program: Program, own: ExactPoint, tolerance: Rational, effort: Effort) -> Certificate:
    """Repair the point if it needs to be, then prove the optimum stage by stage."""
    model, count, stages = own.model, own.model.column_count, program.stages
    lp, integer = LinearProgram.of(program, own.number), np.flatnonzero(program.integer == 1).tolist()
    near = fixed(lp, [j for j in integer if j < count], own.x)
    face, found = _stagewise(near, stages)
    settled = len(found) == len(own.values) and found[-1].proved
    values, dual, better, point = [e.value for e in found], None, None, own
    vertex = found[-1].point
    if settled and vertex is not None and not (own.holds and own.values == values):
        better = ExactPoint(model, vertex[:count], own.number)
        point = better
        if distance(point, own) > tolerance:
            nearest = nearest_point(face, own.x)
            point = better if nearest is None else ExactPoint(model, nearest[:count], own.number)
        if not (point.holds and point.values == values and _agree(point, own, tolerance)):
            point = own
    if not point.holds:
        point = repaired(near, own, tolerance)
    if not integer:
        bounds, dual, how = [e.bound for e in found], found[0].dual, "multipliers of the rows prove the bound"
        if found[0].status == "infeasible" and (certificate := farkas(lp)) is not None:
            bounds, dual, how = [None], certificate, "no point is feasible, by a Farkas certificate"
        elif effort.save is not None and point.holds and len(stages) == 1:
            how += effort.told(_searched(program, lp, point, effort)[1])
    elif point.holds:
        best = point if better is None or not better.holds or better.values >= point.values else better
        bounds, tree = _searched(program, lp, best, effort)
        found_better = None if tree.better is None else ExactPoint(model, tree.better[:count], own.number)
        if bounds[0] is None:  # no time for more than the relaxation
            bounds[0] = exact_optimum(lp.aiming(stages[0])).bound
        better = found_better or (None if best is point else best)
        if better is not None and better.holds and better.values == bounds and _agree(better, own, tolerance):
            point = better  # the given point is a rounding of the optimum
        how = f"branch and bound over {tree.subproblems} subproblems, each bounded in rational arithmetic"
        how += effort.told(tree)
    else:
        bounds, how = [exact_optimum(lp.aiming(stages[0])).bound], "the relaxation is solved exactly"
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
    floats = np.array([float(v) for v in own.x])
    violation = max(own.model.violations(floats).values(), default=0.0)
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
    held = fixed(lp, range(len(point.x)), point.x)
    return replace(effort, save=None).search(program, held, None).better
