"""The model: declarations, solving, exchange with files and other libraries."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from inspect import signature
from typing import TYPE_CHECKING, Any

from forcopt.clock import interrupted, stop_on_interrupt, watches_interrupts
from forcopt.errors import counterpart, unknown
from forcopt.language.builder import Builder
from forcopt.language.guarded import Guarded
from forcopt.language.variable import Variable
from forcopt.memory import memory_limited
from forcopt.status import Status

if TYPE_CHECKING:
    from pathlib import Path

    from forcopt.loops.diagnose import IrreducibleSubset
    from forcopt.loops.feasibility_relaxation import FeasibilityRelaxation
    from forcopt.loops.ranging import Ranging
    from forcopt.loops.solution import ModelSolution

__all__ = ["Model", "Variable"]


@cache
def _options(function: Callable[..., Any]) -> list[str]:
    """The names of the options after the model and the backend."""
    return list(signature(function).parameters)[2:]


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


class Model(Guarded, Builder):
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
        ("name", "constraints", "relations", "lazies", "callbacks", "row_count", "parameters", "prepared")
    )

    if not TYPE_CHECKING:  # type checkers still report a wrong name

        def __getattr__(self, name: str) -> Any:
            raise counterpart(self, name, _COUNTERPARTS)

    def solve(
        self, backend: str | None = None, *, memory_limit: float | str | None = None, **options: Any
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
        options : Any
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

        known = _options(solve_model) if options else []
        for option in options:
            if option not in known:
                raise unknown("option", option, [*known, "memory_limit"])
        outer = watches_interrupts()
        with memory_limited(memory_limit), stop_on_interrupt():
            found = solve_model(self, backend, **options)
            if interrupted() and not outer and found.status is Status.LIMIT:
                raise KeyboardInterrupt
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
