"""Why a model has no optimum: an irreducible infeasible subset of its constraints, or an unbounded ray."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from forcopt.arrays import Array
from forcopt.backends.base import SolveOptions
from forcopt.backends.conditioned import open_session
from forcopt.backends.registry import get_backend
from forcopt.compile.compiler import compile_model
from forcopt.compile.program import Program, RowBlock, StageCost, recession
from forcopt.errors import DeclarationError
from forcopt.language.constraint import Condition, Constraint
from forcopt.language.model import Model
from forcopt.loops.exact_lp import LARGEST_EXACT, LinearProgram, exact_optimum
from forcopt.loops.leximin import hold_objective
from forcopt.loops.tolerances import FALLS, MOVES
from forcopt.status import Status

if TYPE_CHECKING:
    from forcopt.loops.solution import ModelSolution


_PROBE_SECONDS = 10.0
"""The time limit of each feasibility check; a check that runs out counts as feasible."""


def explain(solution: ModelSolution) -> str:
    """Give in a sentence the reason why there is no optimum; empty if none is known."""
    if not solution.status.has_solution and (changed := solution.change()):
        return changed
    if solution.status is Status.INFEASIBLE:
        found = irreducible_subset(solution.model, solution.backend)
        if found is not None:
            return found.describe()
        families = ", ".join(family.name for family in solution.model.lazies)
        return f"the constraints cannot hold together with the lazy families {families}" if families else ""
    if solution.status is Status.UNBOUNDED:
        names = ray(solution.model, solution.backend)
        return "the objective improves forever along " + ", ".join(names) if names else ""
    return ""


@dataclass(frozen=True)
class IrreducibleSubset:
    """Constraints and bounds that cannot hold together; without any one of the constraints they can.

    Attributes
    ----------
    constraints : tuple[Constraint or Condition, ...]
        Of a constraint with several rows only the relevant ones stand here, each as a constraint of one row
        with a name such as ``need[2]``, if there are at most 2,000 rows to try; else the whole constraint.
    bounds : tuple[str, ...], default ()
        The bounds of variables that take part, such as ``"x[1] <= 3"``; without any one of them the others
        can hold, too. Empty if the subset has conditions or nonlinear constraints, for which it is not known.

    Notes
    -----
    The integrality of variables holds throughout.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", 2, lower=0, upper=1)
    >>> _ = m.subject_to(x.sum() >= 3, name="need")
    >>> _ = m.subject_to(x[0] <= 0.5, name="cap")
    >>> found = m.irreducible_subset()
    >>> found.names, found.bounds
    (['need'], ('x[0] <= 1', 'x[1] <= 1'))
    """

    constraints: tuple[Any, ...]
    bounds: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """The names of the constraints."""
        return [c.name for c in self.constraints]

    def save_proof(self, path: str | Path) -> None:
        """Write the certificate ``irreducible``, in rationals, which ``python -m forcopt.check`` reads.

        Parameters
        ----------
        path : str or Path
            The file.

        Raises
        ------
        DeclarationError
            If the subset is empty, has integers, conditions or cones, or is not one in exact arithmetic.
        """
        from forcopt.loops.certify.certificate import write_irreducible

        if not self.constraints:
            raise DeclarationError("the subset has no constraint, whose multipliers a file would state")
        names = [row.name for item in self.constraints for row in _rows(item)]
        chosen = list(self.constraints)
        write_irreducible(Path(path), _subset(chosen[0].model, chosen, "highs"), names)

    def describe(self) -> str:
        """Give the subset as a sentence."""
        if not self.constraints:
            return "the bounds and integrality of the variables alone cannot be met"
        only = self.constraints[0]
        if len(self.constraints) == 1 and isinstance(only, Constraint) and only.expression.is_constant:
            return f"the constraint {self.names[0]} compares two numbers, and is false"
        with_bounds = f" (with {', '.join(self.bounds)})" if 0 < len(self.bounds) <= _MOST_NAMED else ""
        return "these constraints cannot hold together: " + ", ".join(self.names) + with_bounds


def irreducible_subset(model: Model, backend: str = "highs") -> IrreducibleSubset | None:
    """Find constraints and bounds that cannot hold together, while without any one of them the others can.

    Parameters
    ----------
    model : Model
        Infeasible.
    backend : str, default "highs"
        Solves the checks.

    Returns
    -------
    IrreducibleSubset or None
        Without constraints if bounds and integrality alone cannot be met. None if there is no such subset:
        if the constraints only contradict a lazy family, or if the checks take too long.

    Notes
    -----
    QuickXplain: for k names among n constraints O(k log(n / k)) feasibility checks, then as many for bounds.

    References
    ----------
    U. Junker, "QuickXplain: preferred explanations and relaxations for over-constrained problems", AAAI 2004.

    Examples
    --------
    >>> from forcopt import Model
    >>> m = Model()
    >>> x = m.variable("x", 2, lower=0, upper=[1, 5])
    >>> need = m.subject_to(x[0] >= 2, name="need")
    >>> m.irreducible_subset().names, m.irreducible_subset().bounds
    (['need'], ('x[0] <= 1',))
    """
    items: list[Any] = [*model.constraints]
    items += [r for r in model.relations if isinstance(r, Condition)]

    def infeasible(chosen: list[Any]) -> bool:
        return _status(_subset(model, chosen, backend), backend) is Status.INFEASIBLE

    if infeasible([]):
        return IrreducibleSubset(())
    if not infeasible(items):
        return None
    found = _quick_explain([], items, True, infeasible)
    rows = [row for item in found for row in _rows(item)]
    if len(rows) <= _MOST_ROWS:
        found = rows if len(rows) == len(found) else _quick_explain([], rows, True, infeasible)
    return IrreducibleSubset(tuple(found), _bounds(model, _subset(model, found, backend)))


def _bounds(model: Model, program: Program) -> tuple[str, ...]:
    """Name the bounds of an irreducible part of a linear program; by HiGHS, since it needs no bounds."""
    if program.columns > model.column_count or program.cones or program.is_conditional:
        return ()
    items: list[Any] = [(int(c), side) for c in np.unique(program.rows.indices) for side in (0, 1)]
    ends = np.stack([program.lower, program.upper])
    items = [item for item in items if np.isfinite(ends[item[1], item[0]])]
    if len(items) > _MOST_ROWS:
        return ()

    def infeasible(chosen: list[Any]) -> bool:
        kept = np.array([np.full(program.columns, -np.inf), np.full(program.columns, np.inf)])
        for column, side in chosen:
            kept[side, column] = ends[side, column]
        return _status(replace(program, lower=kept[0], upper=kept[1]), "highs") is Status.INFEASIBLE

    if not items or infeasible([]):
        return ()
    if not infeasible(items):  # the bounds of unused columns contradict each other, or a check ran out
        return ()
    found = sorted(_quick_explain([], items, False, infeasible))
    return tuple(f"{model.column_name(c)} {'<=' if side else '>='} {ends[side, c]:g}" for c, side in found)


_MOST_NAMED = 10
"""A sentence names at most this number of bounds."""

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


def _quick_explain(
    base: list[Any], items: list[Any], changed: bool, infeasible: Callable[[list[Any]], bool]
) -> list[Any]:
    """The least part of `items` that is infeasible together with `base`; `changed` if base grew."""
    if base and changed and infeasible(base):
        return []
    if len(items) == 1:
        return items
    half = len(items) // 2
    left, right = items[:half], items[half:]
    from_right = _quick_explain(base + left, right, True, infeasible)
    return _quick_explain(base + from_right, left, bool(from_right), infeasible) + from_right


def _subset(model: Model, chosen: list[Any], backend: str) -> Program:
    """The program of some of a model's constraints and conditions, without an objective."""
    return compile_model(model, get_backend(backend).capabilities, backend, only=chosen)


def _status(program: Program, backend: str) -> Status:
    """Whether a program without an objective has a point."""
    result = open_session(get_backend(backend), program).solve(SolveOptions(time_limit=_PROBE_SECONDS))
    # A model without an objective is not unbounded, so "infeasible or unbounded" is infeasible.
    return Status.INFEASIBLE if result.ambiguous else result.status


def ray(model: Model, backend: str = "highs") -> list[str]:
    """Names of the variables that can grow forever while the objective improves.

    Minimises the objective over the recession cone within the unit box; integrality is left aside, which is
    right for rational data. Of several objectives it is the first that has such a direction among the
    directions that leave those before it as they are.
    """
    chosen = get_backend(backend)
    program = compile_model(model, chosen.capabilities, backend, sorted_by="compact").with_all_rows()
    cone = recession(program)
    for stage in program.stages:
        cone = _aimed(cone, stage)
        result = open_session(chosen, cone).solve(SolveOptions(time_limit=_PROBE_SECONDS))
        if result.x is not None and result.objective < FALLS:
            return _names(model, result.x)
        cone = cone.with_rows(hold_objective(cone.stages[0], 0.0, 0.0))
    return []


def improves_forever(program: Program) -> bool:
    """Whether the first objective of a program of rows improves forever in a direction that all rows allow.

    In rational arithmetic for programs of up to 200,000 entries: in floating point a cost of 1e-9 beside
    others of 1 counts as zero, and a coefficient of 1e-9 holds nothing back.

    Parameters
    ----------
    program : Program
        Linear or convex quadratic, without cones; its integrality is left aside.
    """
    cone = _aimed(recession(program), program.stages[0])
    if cone.rows.data.size <= LARGEST_EXACT:
        found = exact_optimum(LinearProgram.of(cone))
        if found.value is not None and (found.proved or found.value < 0):
            return bool(found.value < 0)
    result = open_session(get_backend("highs"), cone).solve(SolveOptions(time_limit=_PROBE_SECONDS))
    return result.x is not None and result.objective < FALLS


def _aimed(cone: Program, stage: StageCost) -> Program:
    """Minimise the linear part of an objective over a cone's directions that leave the square as it is."""
    if stage.quadratic is not None:  # a convex quadratic only falls forever where it is flat
        flat = stage.quadratic.tocsr()
        # Rows near 1, by powers of two: solvers drop entries that are small by the unit of the variables.
        powers = np.frexp(abs(flat).max(axis=1).toarray().reshape(-1))[1]
        data = np.ldexp(flat.data, np.repeat(-powers, np.diff(flat.indptr)))
        zero = np.zeros(flat.shape[0])
        cone = cone.with_rows(RowBlock(flat.indptr, flat.indices, data, zero, zero))
    return cone.with_stage(StageCost(stage.cost, 0.0, stage.maximize))


def _names(model: Model, direction: Array) -> list[str]:
    """Name the variables' columns that move along a direction, or the first ten and the variables of all."""
    names: list[str] = []
    moving: list[str] = []
    for v in model.variables:
        columns = v.start + np.flatnonzero(np.abs(direction[v.start : v.start + v.size]) > MOVES)
        names += [model.column_name(int(c)) for c in columns]
        moving += [v.name] if columns.size else []
    return names if len(names) <= 10 else [*names[:10], f"... ({len(names)} columns of {', '.join(moving)})"]
