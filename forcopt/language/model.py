"""The model as a modeller writes it: declarations, changes, solving, exchange with files and libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Never, TypedDict, Unpack

import numpy as np

from forcopt.clock import OnImprovement, interrupted, stop_on_interrupt, watches_interrupts
from forcopt.errors import DeclarationError, Guarded, check_known, counterpart, unexpected
from forcopt.language import editing
from forcopt.language import objective as objectives
from forcopt.language.alignment import Operand
from forcopt.language.columns import read_block, read_shape
from forcopt.language.constraint import Condition, Constraint, Lazy, Separator
from forcopt.language.expression import Expression
from forcopt.language.objective import Objective, SortedMethod
from forcopt.language.scheduling import Interval, interval_of
from forcopt.language.structure import Structure
from forcopt.language.variable import Parameter, Variable
from forcopt.memory import claim_memory, memory_limited
from forcopt.status import Status

if TYPE_CHECKING:
    from pathlib import Path

    from forcopt.loops.diagnose import IrreducibleSubset
    from forcopt.loops.feasibility_relaxation import FeasibilityRelaxation
    from forcopt.loops.ranging import Ranging
    from forcopt.loops.solution import ModelSolution


_ARGUMENTS = {
    **dict.fromkeys(("lb", "low", "lowbound", "min"), "lower=..."),
    **dict.fromkeys(("ub", "up", "upbound", "max"), "upper=..."),
    **dict.fromkeys(("vtype", "cat", "domain", "within", "boolean"), "binary=True or integer=True"),
    **dict.fromkeys(("nonneg", "pos"), "lower=0"),
    **dict.fromkeys(("coords", "dims", "indices"), "index={name of the axis: labels, ...}"),
    "obj": "m.minimize(...) or m.maximize(...)",
    "symmetric": "fo.symmetric(m.variable(...))",
    "psd": "m.subject_to(fo.semidefinite(x))",
    "initialize": "value=..., or m.solve(start={x: ...})",
}
"""Arguments of other modelling languages, in small letters without underscores."""


def _is_several(condition: Any) -> bool:
    return isinstance(condition, Iterable) and not isinstance(condition, str | Expression | np.ndarray)


class SolveKeywords(TypedDict, total=False):
    """The options of `Model.solve` after the backend, as `forcopt.loops.solve.solve_model` takes them."""

    time_limit: float | None
    gap: float | None
    seed: int | np.random.Generator | None
    rng: int | np.random.Generator | None
    threads: int | None
    log: bool
    start: Mapping[Variable, Any] | None
    on_improvement: OnImprovement | None
    mccormick: int
    options: Mapping[str, Any] | None


_COUNTERPARTS = {
    **dict.fromkeys(("addvar", "addvars", "addmvar", "addvariable", "addvariables"), "m.variable(...)"),
    **dict.fromkeys(("addconstr", "addconstrs", "addconstraint", "addconstraints"), "m.subject_to(...)"),
    **dict.fromkeys(("constraint", "add"), "m.subject_to(...)"),
    **dict.fromkeys(("setobjective", "addobjective", "objective"), "m.minimize(...) or m.maximize(...)"),
    "minimise": "m.minimize(...)",
    "maximise": "m.maximize(...)",
    **dict.fromkeys(("objval", "value", "status"), "s = m.solve(), and then s.objective and s.status"),
    "computeiis": "m.irreducible_subset()",
}
_SETTERS = {
    **_COUNTERPARTS,
    **{name.replace("_", ""): f"m.solve({name}=...)" for name in ("time_limit", "gap", "seed", "threads")},
    **dict.fromkeys(("params", "options", "mipgap", "loglevel"), "m.solve(time_limit=..., gap=...)"),
    **dict.fromkeys(("sense", "modelsense"), "m.minimize(...) or m.maximize(...)"),
    **dict.fromkeys(("constraints", "rowcount"), "m.subject_to(...) or m.remove(...)"),
    **dict.fromkeys(("variables", "parameters"), "m.variable(...) or m.parameter(...)"),
}
"""Names of other modelling languages, in small letters without underscores."""


class Model(Guarded, Structure):
    """An optimization model.

    Parameters
    ----------
    name : str, default "model"
        Used in messages and files.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model("diet")
    >>> x = m.variable("x", shape=2, lower=0)
    >>> need = m.subject_to(x[0] + 2 * x[1] >= 4, name="need")
    >>> m.minimize(3 * x[0] + 4 * x[1])
    >>> s = m.solve()
    >>> s.status, s.objective, s[x].tolist(), s.dual(need).item()
    (<Status.OPTIMAL: 'optimal'>, 8.0, [0.0, 2.0], 2.0)
    """

    _hints = _SETTERS
    _settable = frozenset(
        ("name", "constraints", "relations", "lazies", "row_count", "parameters", "prepared")
    )

    if not TYPE_CHECKING:  # type checkers still report a wrong name

        def __getattr__(self, name: str) -> Any:
            raise counterpart(self, name, _COUNTERPARTS)

    # -- variables ---------------------------------------------------------------------------------------

    def variable(
        self,
        name: str = "",
        shape: int | tuple[int, ...] = (),
        *,
        lower: Any = -np.inf,
        upper: Any = np.inf,
        integer: Any = False,
        binary: Any = False,
        index: Any = None,
        labels: Sequence[str] | None = None,
        **others: Never,
    ) -> Variable:
        """Add a variable.

        Parameters
        ----------
        name : str, default ""
            Unique in the model; ``x1``, ``x2``, ... if left out.
        shape : int | tuple[int, ...], optional
            Its numpy shape; ``()`` for a scalar.
        lower : Any, default -np.inf
            Numbers that broadcast to the shape; free by default.
        upper : Any, default np.inf
            Numbers that broadcast to the shape; free by default.
        integer : Any, default False
            Only integers; or booleans that broadcast to the shape, true where only integers.
        binary : Any, default False
            Only 0 or 1; or booleans that broadcast to the shape, true where only 0 or 1.
        index : Any, optional
            Labels of the axes instead of a shape: a list or a `pandas.Index` for one axis, a tuple with one
            for each axis (an int for an axis without labels), or a mapping from the names of the axes to
            their labels. Then ``x["a"]`` and ``x.loc[...]`` pick by label, and series and frames meet the
            variable by label, in bounds as in arithmetic.
        labels : Sequence[str], optional
            A name for each column, in C order; ``name[i,j]`` by default.

        Raises
        ------
        DeclarationError
            For a name in use, for labels that repeat, and for bounds that are NaN, crossed, of another shape,
            or beyond 0 and 1 for a binary variable.

        Examples
        --------
        >>> import pandas as pd
        >>> import forcopt as fo
        >>> m = fo.Model()
        >>> cost = pd.Series({"iron": 3.0, "coal": 1.0})
        >>> x = m.variable("x", index=cost.index, lower=1)
        >>> m.minimize((cost[["coal", "iron"]] * x).sum())
        >>> m.objective.stages[0].expression
        <expression of shape (), 2 coefficients: 3 x[iron] + x[coal]>
        >>> x["coal"]
        <expression of shape (), 1 coefficients: x[coal]>
        """
        for other in others:
            raise unexpected("variable", other, _ARGUMENTS)
        self._check_name(name, "variable")
        full, axes = read_shape(shape, index, "variable", name)
        name = self._fresh_name(name) if name else self.unused_name(f"x{len(self.blocks) + 1}")
        block = read_block(name, self.column_count, full, axes, lower, upper, integer, binary, labels)
        return self._declare(block)

    def parameter(
        self,
        name: str = "",
        shape: int | tuple[int, ...] = (),
        value: Any = None,
        *,
        lower: Any = -np.inf,
        upper: Any = np.inf,
        index: Any = None,
        **others: Never,
    ) -> Parameter:
        """Add a parameter: numbers that may change between solves, without compiling the model again.

        It stands wherever numbers may: in right-hand sides, costs and coefficients, and inside atoms. A
        product with an affine expression is affine; a product with an atom needs ``lower=0``.

        Parameters
        ----------
        name : str, default ""
            Unique in the model.
        shape : int | tuple[int, ...], optional
            Its numpy shape; ``()`` for a scalar.
        value : Any, optional
            Numbers that broadcast to the shape; may be given later, as ``p.value = ...``.
        lower, upper : Any, optional
            The range of its values, which bridges that need bounds read.
        index : Any, optional
            Labels of the axes, see `variable`.

        Raises
        ------
        DeclarationError
            For a name in use, and for values outside the range.

        Notes
        -----
        The next `solve` on the same backend changes only the numbers: HiGHS continues from the last basis,
        OSQP and SCS from the last point, and searches start from the last solution. A solution keeps the
        values that it was found with: ``s[p]``.

        Examples
        --------
        >>> import forcopt as fo
        >>> m = fo.Model()
        >>> demand = m.parameter("demand", value=4)
        >>> price = m.parameter("price", 2, value=[3, 4])
        >>> x = m.variable("x", shape=2, lower=0)
        >>> _ = m.subject_to(x[0] + 2 * x[1] >= demand)
        >>> m.minimize(price @ x)
        >>> m.solve().objective
        8.0
        >>> demand.value = 6
        >>> m.solve().objective
        12.0
        >>> price.value = [1, 4]
        >>> m.solve().objective
        6.0
        """
        for other in others:
            raise unexpected("parameter", other, _ARGUMENTS)
        self._check_name(name, "parameter")
        full, axes = read_shape(shape, index, "parameter", name)
        name = self._fresh_name(name) if name else self.unused_name(f"p{len(self.parameters) + 1}")
        self._store.add(read_block(name, self.column_count, full, axes, lower, upper, kind="parameter"))
        out = Parameter(self._model, len(self.blocks) - 1)
        self._names[name] = out
        self.parameters.append(out)
        self.note_parametric(out)
        if value is not None:
            out.value = value
        return out

    def interval(
        self, start: Operand, duration: Operand, end: Operand = None, *, present: Operand = None
    ) -> Interval:
        """Declare intervals of time, for `forcopt.no_overlap` and `forcopt.cumulative`.

        Parameters
        ----------
        start : Operand
            When they begin, usually integer variables.
        duration : Operand
            How long they last: numbers, or expressions that are never negative.
        end : Operand, optional
            When they end; by default ``start + duration``. If it is given, the equation becomes a constraint.
        present : Operand, optional
            Binary: where it is 0, an interval takes no part, and its end is free. All are present by default.

        Returns
        -------
        Interval
            The shape to which all broadcast, with the labels of all.

        Raises
        ------
        DeclarationError
            For durations that can be negative, and for `present` that is not binary.

        Examples
        --------
        >>> import forcopt as fo
        >>> m = fo.Model()
        >>> start = m.variable("start", 2, lower=0, upper=9, integer=True)
        >>> task = m.interval(start, [3, 4])
        >>> _ = m.subject_to(fo.no_overlap(task))
        >>> m.minimize(task.end.max())
        >>> m.solve("cp-sat").objective
        7.0
        """
        return interval_of(self._model, start, duration, end, present)

    # -- constraints -------------------------------------------------------------------------------------

    def subject_to(self, *conditions: Constraint | Condition | Iterable[Any], name: str = "") -> Any:
        """Add constraints.

        Parameters
        ----------
        conditions : Constraint | Condition | Iterable[Any]
            Comparisons, `implies`, `connected`, or iterables of them. A comparison of two numbers, such as
            ``sum([]) <= 5``, is a bool: True adds no row, and False makes the model infeasible.
        name : str, default ""
            For messages, files and duals; numbered (``name[0]``, ...) unless one constraint is given by
            itself. Without it a condition keeps the name that it brings, or is numbered.

        Returns
        -------
        Any
            The constraint that was given, or a list of all of them.
        """
        claim_memory()
        flat: list[Any] = []
        for condition in conditions:
            several: Any = condition if _is_several(condition) else [condition]
            flat.extend(self._constant(c) if isinstance(c, bool | np.bool_) else c for c in several)
        alone = len(conditions) == 1 and not _is_several(conditions[0])
        self._check_name(name, "subject_to")
        for condition, free in zip(flat, self._check_conditions(flat, name, alone), strict=True):
            condition.name = free
            self._names[free] = condition
            if isinstance(condition, Constraint):
                condition.start = self.row_count
                self.row_count += condition.expression.size
                self.constraints.append(condition)
            else:
                self.relations.append(condition)
        self._condition_count += len(flat)
        return flat[0] if alone else flat

    def _constant(self, holds: bool | np.bool_) -> Constraint:
        """No row for a comparison of numbers that holds, else one that cannot hold."""
        nothing = Expression(self._model, (0,) if holds else (), (), np.zeros(()))
        return Constraint(nothing, np.ones(()), np.full((), np.inf))

    def _check_conditions(self, conditions: Sequence[Any], name: str, alone: bool) -> list[str]:
        """Check all conditions and choose their names; nothing is added before all are found right."""
        taken: dict[str, Any] = {}
        shrunk = bool(self._removed.any())
        for position, condition in enumerate(conditions):
            wanted = name if alone or not name else f"{name}[{position}]"
            if not isinstance(condition, Constraint | Condition):
                raise DeclarationError(f"subject_to needs constraints, not {condition!r}")
            operands = (condition.expression,) if isinstance(condition, Constraint) else condition.operands
            for operand in operands:
                if operand.model is not self:
                    self.lift(operand, f"the constraint {wanted!r}" if wanted else "the constraint")
                if shrunk:
                    self._check_present(operand)
            if condition.name and (
                self._names.get(condition.name) is condition or taken.get(condition.name) is condition
            ):
                raise DeclarationError(f"the constraint {condition.name!r} already is in the model")
            if wanted:
                self._fresh_name(wanted)
                if wanted in taken:
                    raise DeclarationError(f"the name {wanted!r} is already in use in model {self.name!r}")
            else:
                wanted = condition.name or f"c{self._condition_count + position + 1}"
                free, number = wanted, 1
                while free in self._names or free in taken:
                    number += 1
                    free = f"{wanted}#{number}"
                wanted = free
            condition.check(f"constraint {wanted}")
            taken[wanted] = condition
        if len({id(c) for c in conditions}) < len(conditions):
            raise DeclarationError("subject_to: the same constraint is given twice")
        return list(taken)

    def lazy(self, separate: Separator, name: str = "", *, exact: bool = True) -> Lazy:
        """Add a family of constraints too large to list.

        Parameters
        ----------
        separate : Separator
            Called with a function ``value(expression)`` at a candidate point; yields the affine constraints
            that the point violates, or nothing. It must cut off every point that is not allowed; a point for
            which it yields nothing is accepted.
        name : str, default ""
            For messages.
        exact : bool, default True
            Whether every allowed point satisfies what `separate` yields. If that is not known, the answer is
            APPROXIMATE, without a bound, and no model is proved to be infeasible.

        Examples
        --------
        >>> import forcopt as fo
        >>> m = fo.Model()
        >>> x = m.variable("x", shape=2, lower=0, upper=10)
        >>> def separate(value):
        ...     if value(x).sum() > 3 + 1e-6:
        ...         yield x.sum() <= 3
        >>> _ = m.lazy(separate)
        >>> m.maximize(x[0] + 2 * x[1])
        >>> m.solve().objective
        6.0
        """
        if not callable(separate):
            raise DeclarationError(f"lazy needs a function of a point, not {separate!r}")
        self._check_name(name, "lazy")
        name = self._fresh_name(name) if name else self.unused_name(f"lazy{len(self.lazies) + 1}")
        family = Lazy(self._model, separate, name, exact)
        self.lazies.append(family)
        self._names[name] = family
        return family

    # -- objectives --------------------------------------------------------------------------------------

    def optimize(self, objective: Objective | None = None) -> None:
        """Set the objective, replacing any other; `solve` looks for the optimum.

        Parameters
        ----------
        objective : Objective
            Made by `forcopt.minimize`, `forcopt.lexicographic`, `forcopt.leximin`, ...

        Raises
        ------
        DeclarationError
            If it is no objective, or of another model.
        CurvatureError
            If its curvature does not fit, naming the atom and the place.
        """
        if not isinstance(objective, Objective):
            raise DeclarationError(
                f"optimize needs an objective such as fo.minimize(x), not {objective!r}; m.solve() solves"
            )
        for number, stage in enumerate(objective.stages, 1):
            self._check_present(self.lift(stage.expression, "the objective"))
            place = objective.kind + (f" (stage {number})" if len(objective.stages) > 1 else "")
            self.check_curvature(stage.expression, -1 if stage.maximize else 1, place)
        self._objective = objective

    def minimize(self, expression: Expression) -> None:
        """Make a convex scalar expression as small as possible.

        Parameters
        ----------
        expression : Expression
            Of one element, affine or convex.

        Raises
        ------
        CurvatureError
            If its curvature does not fit, naming the atom and the place.
        """
        self.optimize(objectives.minimize(expression))

    def maximize(self, expression: Expression) -> None:
        """Make a concave scalar expression as large as possible.

        Parameters
        ----------
        expression : Expression
            Of one element, affine or concave.

        Raises
        ------
        CurvatureError
            If its curvature does not fit, naming the atom and the place.
        """
        self.optimize(objectives.maximize(expression))

    def lexicographic(self, parts: Sequence[Objective], tolerance: float = 1e-7) -> None:
        """Optimise several objectives in order of priority; see `forcopt.lexicographic`.

        Parameters
        ----------
        parts : Sequence[Objective]
            The most important first.
        tolerance : float, default 1e-07
            How much a later objective may take from an earlier one; see `Objective`.

        Raises
        ------
        CurvatureError
            If its curvature does not fit, naming the atom and the place.
        """
        self.optimize(objectives.lexicographic(parts, tolerance))

    def leximin(
        self,
        utilities: Expression,
        method: SortedMethod | None = None,
        *,
        outcomes: Any = None,
        tolerance: float = 0.0,
    ) -> None:
        """Raise the smallest utility first, then the next; see `forcopt.leximin`.

        Parameters
        ----------
        utilities : Expression
            Concave; any shape.
        method : SortedMethod, optional
            The strategy; by default the one that fits the model.
        outcomes : Any, optional
            For ``"ordered-values"``, all values that an entry can take.
        tolerance : float, default 0.0
            See `Objective`.

        Raises
        ------
        CurvatureError
            If its curvature does not fit, naming the atom and the place.
        """
        self.optimize(objectives.leximin(utilities, method, outcomes=outcomes, tolerance=tolerance))

    def leximax(
        self,
        losses: Expression,
        method: SortedMethod | None = None,
        *,
        outcomes: Any = None,
        tolerance: float = 0.0,
    ) -> None:
        """Lower the largest loss first, then the next; see `forcopt.leximax`.

        Parameters
        ----------
        losses : Expression
            Convex; any shape.
        method : SortedMethod, optional
            The strategy; by default the one that fits the model.
        outcomes : Any, optional
            For ``"ordered-values"``, all values that an entry can take.
        tolerance : float, default 0.0
            See `Objective`.

        Raises
        ------
        CurvatureError
            If its curvature does not fit, naming the atom and the place.
        """
        self.optimize(objectives.leximax(losses, method, outcomes=outcomes, tolerance=tolerance))

    # -- editing -----------------------------------------------------------------------------------------

    def remove(self, *things: Any) -> None:
        """Take constraints, conditions, lazy families or variables out of the model; all or none of them.

        A variable can go once no constraint, condition or objective uses it. Its columns keep their numbers,
        fixed at 0; files and other libraries' objects do not show them.

        Parameters
        ----------
        things : Variable or Constraint or Condition or Lazy or str, or a list of these
            Results of `variable`, `subject_to` and `lazy`, or their names.

        Raises
        ------
        DeclarationError
            For an object that is not in the model, and for a variable in use, naming a user.

        Examples
        --------
        >>> import forcopt as fo
        >>> m = fo.Model()
        >>> x = m.variable("x", lower=0, upper=5)
        >>> cap = m.subject_to(x <= 3, name="cap")
        >>> m.maximize(x)
        >>> m.solve().objective
        3.0
        >>> m.remove(cap)
        >>> m.solve().objective
        5.0
        """
        editing.remove(self, things)

    def fix(self, part: Expression, values: Any) -> None:
        """Hold a variable, or a part of one, at given values; `unfix` restores its bounds.

        Parameters
        ----------
        part : Expression
            A variable ``x``, or a part such as ``x[0]``.
        values : Any
            Numbers that broadcast to its shape (or a series or frame with its labels); NaN where it stays
            free.

        Raises
        ------
        DeclarationError
            For values outside the declared bounds, or not integer where the variable is.

        Examples
        --------
        >>> import forcopt as fo
        >>> m = fo.Model()
        >>> x = m.variable("x", shape=2, lower=0, upper=5)
        >>> m.maximize(x.sum())
        >>> m.fix(x[0], 1)
        >>> m.solve().objective
        6.0
        >>> m.unfix(x)
        >>> m.solve().objective
        10.0
        """
        editing.fix(self, part, values)

    def unfix(self, part: Expression) -> None:
        """Give a variable, or a part of one, its declared bounds back; see `fix`.

        Parameters
        ----------
        part : Expression
            A variable, or entries of one.
        """
        editing.unfix(self, part)

    def relax(self) -> Callable[[], None]:
        """Let integer variables take any value within their bounds; give a function that undoes it.

        Returns
        -------
        Callable[[], None]
            Makes the same variables integer again.

        Raises
        ------
        UnsupportedError
            If a condition or a product means something for integers only, such as `implies`.

        Examples
        --------
        >>> import forcopt as fo
        >>> m = fo.Model()
        >>> x = m.variable("x", shape=2, binary=True)
        >>> _ = m.subject_to(2 * x.sum() <= 3)
        >>> m.maximize(x.sum())
        >>> undo = m.relax()
        >>> m.solve().objective
        1.5
        >>> undo()
        >>> m.solve().objective
        1.0
        """
        return editing.relax(self)

    # -- solving and exchange -----------------------------------------------------------------------------

    def solve(
        self,
        backend: str | None = None,
        *,
        memory_limit: float | str | None = None,
        certify: bool = False,
        **options: Unpack[SolveKeywords],
    ) -> ModelSolution:
        """Solve on a backend; see `forcopt.loops.solve.solve_model` for the options.

        Parameters
        ----------
        backend : str, optional
            A name that ``forcopt backends`` lists; by default one that fits the kind of model.
        memory_limit : float or str, optional
            Bytes that the run may take beyond what the process holds when it begins, or text such as
            ``"4 GB"``; by default half of what the machine or its container has free. HiGHS (with integers),
            SCIP and CP-SAT end their searches there, with their best point and bound and this reason; the
            other solvers have no such limit.
        certify : bool, default False
            Prove the answer in exact arithmetic, too, for at most 60 s; `s.certificate` has what is proved.
        **options : SolveKeywords
            ``time_limit``, ``gap``, ``seed``, ``threads``, ``log``, ``start``, ...

        Raises
        ------
        UnknownNameError
            For an option that does not exist; it suggests the nearest.
        KeyboardInterrupt
            After Ctrl-C, if no feasible point was found, or at the second Ctrl-C. Otherwise a search that is
            interrupted returns its best point and bound, and ``s.message`` says so.
        """
        from forcopt.loops.solve import solve_model

        for option in options:
            check_known("option", option, [*SolveKeywords.__annotations__, "memory_limit", "certify"])
        outer = watches_interrupts()
        with memory_limited(memory_limit), stop_on_interrupt():
            found = solve_model(self, backend, **options)
            if interrupted() and not outer and found.status is Status.LIMIT:
                raise KeyboardInterrupt
            found.certificate = found.certify() if certify else None
        return found

    def irreducible_subset(self, backend: str = "highs") -> IrreducibleSubset | None:
        """Find constraints and bounds that contradict each other.

        See `forcopt.loops.diagnose.irreducible_subset`.
        """
        from forcopt.loops.diagnose import irreducible_subset

        return irreducible_subset(self, backend)

    def feasibility_relaxation(self, **options: Any) -> FeasibilityRelaxation:
        """Find the least changes of right-hand sides that make the model feasible.

        See `forcopt.loops.feasibility_relaxation.feasibility_relaxation` for the options.
        """
        from forcopt.loops.feasibility_relaxation import feasibility_relaxation

        return feasibility_relaxation(self, **options)

    def ranging(self) -> Ranging:
        """Compute sensitivity ranges of a linear model; see `forcopt.loops.ranging.ranging`.

        Returns
        -------
        Ranging
            The costs and right-hand sides between which the optimal basis stays.

        Examples
        --------
        >>> import forcopt as fo
        >>> m = fo.Model()
        >>> x = m.variable("x", 2, lower=0)
        >>> time = m.subject_to(x[0] + 2 * x[1] <= 8, name="time")
        >>> _ = m.subject_to(3 * x[0] + x[1] <= 9)
        >>> m.maximize(2 * x[0] + 3 * x[1])
        >>> found = m.ranging().right_hand_side(time)
        >>> round(float(found.lower), 6), round(float(found.upper), 6)
        (3.0, 18.0)
        """
        from forcopt.loops.ranging import ranging

        return ranging(self)

    def write(self, path: str | Path) -> None:
        """Write an ``.mps`` or ``.lp`` file.

        Parameters
        ----------
        path : str or Path
            Ends in ``.mps`` or ``.lp``; ``.gz`` or ``.bz2`` may follow.

        Raises
        ------
        DeclarationError
            For another ending.
        UnsupportedError
            For several objectives, lazy families, and relations that such files cannot hold.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> import forcopt as fo
        >>> m = fo.Model("sack")
        >>> x = m.variable("x", 2, binary=True)
        >>> m.maximize(x.sum())
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     m.write(pathlib.Path(folder, "sack.mps"))
        ...     back = fo.read(pathlib.Path(folder, "sack.mps"))
        >>> back.variables, back.solve().objective
        ([<integer variable x of shape (2,)>], 2.0)
        """
        from forcopt.loops.exchange import write

        write(self, path)

    def to_highs(self, *, first_stage: bool = False) -> Any:
        """Give a `highspy.Highs` that holds the model (see `forcopt.loops.exchange.to_native`), not run."""
        from forcopt.loops.exchange import to_native

        return to_native(self, "highs", first_stage=first_stage)

    def to_cvxpy(self, *, first_stage: bool = False) -> Any:
        """Give a `cvxpy.Problem`.

        Parameters
        ----------
        first_stage : bool, default False
            Take the first of several objectives and leave the others out; else several are refused.

        Examples
        --------
        >>> import forcopt as fo
        >>> m = fo.Model()
        >>> x = m.variable("x", 2, lower=1)
        >>> m.minimize(fo.sum_squares(x))
        >>> round(float(m.to_cvxpy().solve()), 4)
        2.0
        """
        from forcopt.loops.exchange import to_native

        return to_native(self, "cvxpy", first_stage=first_stage)

    def to_pyomo(self, *, first_stage: bool = False) -> Any:
        """Give a `pyomo.environ.ConcreteModel`."""
        from forcopt.loops.exchange import to_native

        return to_native(self, "pyomo", first_stage=first_stage)

    def to_mathopt(self, *, first_stage: bool = False) -> Any:
        """Give an `ortools.math_opt.python.mathopt.Model`."""
        from forcopt.loops.exchange import to_native

        return to_native(self, "mathopt", first_stage=first_stage)

    def summary(self) -> str:
        """Describe the model in a few lines: rows, columns, nonzeros, relations, coefficient range.

        Examples
        --------
        >>> import forcopt as fo
        >>> m = fo.Model("sack")
        >>> x = m.variable("x", 2, binary=True)
        >>> _ = m.subject_to(10 * x[0] + 20 * x[1] <= 25)
        >>> print(m.summary().splitlines()[1].strip())
        columns    2 (2 integer, of these 2 binary)
        """
        from forcopt.language.display import model_summary

        return model_summary(self)

    def __repr__(self) -> str:
        kind = self.objective.kind if self.objective else "no objective"
        columns = self.column_count - len(self.unused_columns())
        return f"<model {self.name}: {columns} columns, {self.row_count} rows, {kind}>"

    def _repr_html_(self) -> str:
        from forcopt.language.display import model_html

        return model_html(self)
