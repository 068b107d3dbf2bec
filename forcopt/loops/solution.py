"""The solution of a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Improvement
from forcopt.errors import DeclarationError, check_known, required
from forcopt.language.constraint import Condition, Constraint
from forcopt.language.expression import Expression
from forcopt.language.labels import product_index
from forcopt.language.model import Model
from forcopt.language.objective import Sorted
from forcopt.language.structure import same_marks
from forcopt.language.variable import Variable
from forcopt.loops.tolerances import AT_BOUND, LEAST_VALUE
from forcopt.notebook import facts_html
from forcopt.status import Status

if TYPE_CHECKING:
    from forcopt.loops.certify import Certificate


def relative_gap(objective: float, bound: float) -> float:
    """``|objective - bound| / max(1e-9, |objective|)``; 0 if they are equal, infinite without a bound.

    Examples
    --------
    >>> relative_gap(10.0, 9.0), relative_gap(0.0, 0.0), relative_gap(1.0, float("-inf"))
    (0.1, 0.0, inf)
    """
    if objective == bound:
        return 0.0
    if not (np.isfinite(objective) and np.isfinite(bound)):
        return float("inf")
    return abs(objective - bound) / max(LEAST_VALUE, abs(objective))


@dataclass(eq=False)
class ModelSolution:
    """The solution of a model; ``s[x]`` gives the value of a variable or any expression.

    Attributes
    ----------
    model : Model
        Which.
    status : Status
        See `Status`.
    objective : float
        Of the first (or only) stage, in the model's own sense; NaN without a point.
    bound : float
        On the optimum of the first stage; infinite if none is known.
    stages : tuple[float, ...]
        The values of all stages; for leximin (leximax) the sums of the one, two, ... worst values.
    point : Array
        The values of all columns, or None.
    seconds : float
        Wall time of compiling, passing and solving.
    backend : str
        Its name.
    bridges : tuple[str, ...]
        The rewritings that were applied.
    violation : float, default 0.0
        The largest violation of a constraint by the point, re-evaluated by the model.
    iterations, nodes, message, log
        The solver's own.
    trace : list[Improvement], optional
        Objective and bound over time.
    parts : dict[str, float], optional
        Of the seconds: ``compile`` and hand over what the solver takes beforehand, ``call`` the solver,
        ``checks`` of its claim; and ``solver``, by its own clock within the call, NaN if it reports none.
    row_dual, reduced_costs : Array, optional
        Multipliers of the program's rows and columns, for linear programs; read them by `dual` and
        `reduced_cost`.
    certificate : Certificate, optional
        What was proved, if ``solve(certify=True)`` asked for it.
    solved : Solved, optional
        The compiled program and its options, for certificates and ranging.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", 2, lower=0)
    >>> need = m.subject_to(x[0] + 2 * x[1] >= 4, name="need")
    >>> m.minimize(3 * x.sum())
    >>> s = m.solve()
    >>> s.status.value, s.objective, s[x].tolist(), s[x.sum()].item()
    ('optimal', 6.0, [0.0, 2.0], 2.0)
    >>> s.dual(need).item(), s.reduced_cost(x).tolist()
    (1.5, [1.5, 0.0])
    """

    model: Model
    status: Status
    objective: float
    bound: float
    stages: tuple[float, ...]
    point: Array | None
    seconds: float
    backend: str
    bridges: tuple[str, ...]
    violation: float = 0.0
    iterations: int = 0
    nodes: int = 0
    message: str = ""
    log: str = field(default="", repr=False)
    trace: list[Improvement] = field(default_factory=list, repr=False)
    parts: dict[str, float] = field(default_factory=dict, repr=False)
    row_dual: Array | None = field(default=None, repr=False)
    reduced_costs: Array | None = field(default=None, repr=False)
    certificate: Certificate | None = field(default=None, repr=False)
    solved: tuple[Any, ...] = field(default=(), repr=False)  # `Model.marks` and parameters' values then

    def __post_init__(self) -> None:
        self.solved = self.solved or (self.model.marks(), [p._value for p in self.model.parameters])
        # `Model.remove` makes new lists, so that this one keeps the order of the rows that were solved.
        self._constraints = self.solved[0][1]

    @property
    def levels(self) -> Array:
        """The values of a leximin or leximax objective (the first, of several), worst first.

        Raises
        ------
        DeclarationError
            If there is no such objective, or no point.
        """
        objective = self.solved[0][0]
        for stage in objective.stages if objective else ():
            if isinstance(stage, Sorted):
                if self.point is None:
                    raise DeclarationError(f"there are no levels to read: the status is {self.status}")
                return stage.levels(self.point)
        raise DeclarationError("levels belong to a leximin or leximax objective; this model has another")

    @property
    def gap(self) -> float:
        """The relative gap between objective and bound."""
        return relative_gap(self.objective, self.bound)

    @cached_property
    def reason(self) -> str:
        """Why there is no optimum: an irreducible infeasible subset, or the variables of a ray; else empty.

        Computed when first asked for, by a few more solves. If the model has changed by then, it says so.
        """
        from forcopt.loops.diagnose import explain

        return explain(self)

    def __getitem__(self, expression: Expression | str) -> Array:
        if self.point is None:
            raise DeclarationError(f"there is no solution to read: status {self.status} ({self.message})")
        if isinstance(expression, str):
            expression = self.model[expression]
        lifted = self.model.lift(expression)
        try:
            value = lifted.evaluate(self.point)
        except (IndexError, ValueError):  # beyond the end of the point
            raise DeclarationError(
                f"{lifted._short()} was added after this solution was found; solve again"
            ) from None
        return np.round(value) if isinstance(expression, Variable) and expression.integer else value

    def dual(self, constraint: Constraint | str) -> Array:
        """The shadow prices of a constraint: the change of the optimum per unit of right-hand side.

        Parameters
        ----------
        constraint : Constraint or str
            Rows, or their name.

        Returns
        -------
        Array
            One number for each row, in the constraint's shape.

        Raises
        ------
        DeclarationError
            If there are none: an integer model, a backend that gives none, or a condition such as `implies`.

        Examples
        --------
        >>> import forcopt as fo
        >>> m = fo.Model()
        >>> x = m.variable("x", lower=0)
        >>> need = m.subject_to(2 * x >= [4, 2])
        >>> m.minimize(3 * x)
        >>> m.solve().dual(need).round(6).tolist() == [1.5, 0]
        True
        """
        if self.row_dual is None:
            raise DeclarationError(
                f"backend {self.backend!r} gave no duals for this model (status {self.status}); they exist "
                "for continuous models with one objective, if the backend reports them"
            )
        if isinstance(constraint, str):
            constraint = self._named(constraint)
        if not isinstance(constraint, Constraint):
            raise DeclarationError(f"dual needs a constraint of rows, not {constraint!r}")
        if constraint.start < 0 or constraint.model is not self.model:
            raise DeclarationError(f"the constraint {constraint.name!r} is not in model {self.model.name!r}")
        start = constraint.start
        if self._constraints is not self.model.constraints:
            before = takewhile(lambda c: c is not constraint, self._constraints)
            start = sum(c.expression.size for c in before)
        if start + constraint.expression.size > len(self.row_dual):
            raise DeclarationError(f"constraint {constraint.name!r} was added after this solution was found")
        return self.row_dual[start : start + constraint.expression.size].reshape(constraint.shape)

    def _named(self, name: str) -> Any:
        """The constraint or condition of a name."""
        conditions = [r for r in self.model.relations if isinstance(r, Condition)]
        listed: list[Any] = [*self.model.constraints, *conditions]
        named = {c.name: c for c in listed if c.name}
        check_known("constraint", name, named)
        return named[name]

    def slack(self, constraint: Constraint) -> Array:
        """The distance of each row of a constraint from its nearer bound; negative where it is violated.

        Parameters
        ----------
        constraint : Constraint
            A result of `Model.subject_to`; it may have been removed since.

        Raises
        ------
        DeclarationError
            If there is no point, for a condition such as `implies`, and for a constraint of another model.

        Examples
        --------
        >>> from forcopt import Model
        >>> m = Model()
        >>> x = m.variable("x", 2, lower=0, upper=3)
        >>> need = m.subject_to(x.sum() >= 4)
        >>> m.minimize(x[0] + 2 * x[1])
        >>> s = m.solve()
        >>> s.slack(need).item(), s.slack(m.subject_to(x <= 5)).tolist()
        (0.0, [2.0, 4.0])
        """
        if not isinstance(constraint, Constraint):
            raise DeclarationError(f"slack needs a constraint of rows, not {constraint!r}")
        value = self[constraint.expression]
        return np.asarray(np.minimum(value - constraint.lower, constraint.upper - value))

    def reduced_cost(self, variable: Variable) -> Array:
        """The change of the optimum per unit of a variable that is held at its bound.

        Parameters
        ----------
        variable : Variable
            A whole variable; the result has an entry for each of its entries.

        Returns
        -------
        Array
            Shaped like the variable.

        Raises
        ------
        DeclarationError
            If there are none, or for an entry of a variable.
        """
        if not isinstance(variable, Variable):
            raise DeclarationError(f"reduced_cost takes a whole variable, not {variable!r}")
        self.model.lift(variable)
        if self.reduced_costs is None:
            raise DeclarationError(f"backend {self.backend!r} gave no reduced costs (status {self.status})")
        if variable.start + variable.size > len(self.reduced_costs):
            raise DeclarationError(f"{variable.name} was added after this solution was found; solve again")
        return self.reduced_costs[variable.start : variable.start + variable.size].reshape(variable.shape)

    def to_pandas(self, expression: Expression | Constraint | str | None = None) -> Any:
        """The values as pandas objects, with the names and labels of the axes.

        Parameters
        ----------
        expression : Expression or Constraint or str, optional
            All variables by default.

        Returns
        -------
        Any
            A number, a `pandas.Series` (one axis, or more than two as levels of its index) or a
            `pandas.DataFrame` (two); for all variables a dict of these by name. For a constraint a frame with
            a row for each of its own: ``dual`` (NaN if there are none), ``slack``, and ``status``, one of
            ``equal``, ``at lower``, ``at upper``, ``between`` and ``violated``.

        Examples
        --------
        >>> from forcopt import Model
        >>> m = Model()
        >>> x = m.variable("x", index=["iron", "coal"], lower=[1, 2])
        >>> cap = m.subject_to(x <= 2, name="cap")
        >>> m.minimize(x.sum())
        >>> s = m.solve()
        >>> s.to_pandas(x).to_dict()
        {'iron': 1.0, 'coal': 2.0}
        >>> s.to_pandas(cap)["status"].to_dict()
        {'iron': 'between', 'coal': 'at upper'}
        """
        pd = required("pandas", "to_pandas")
        if expression is None:
            return {v.name: self.to_pandas(v) for v in self._variables()}
        if isinstance(expression, str):
            expression = self.model[expression]
        if isinstance(expression, Constraint):
            return self._rows_table(expression)
        values, axes = self[expression], getattr(expression, "axes", None)
        if values.ndim == 0:
            return float(values)
        if values.ndim == 2:
            index = [axis.index() if axis is not None else None for axis in axes or (None,) * values.ndim]
            return pd.DataFrame(values, index=index[0], columns=index[1])
        index = product_index(axes, values.shape)
        return pd.Series(values.reshape(-1), index=index, name=getattr(expression, "name", None))

    def to_xarray(self, expression: Expression | str) -> Any:
        """The values as an array of xarray, with the names and labels of the axes.

        Parameters
        ----------
        expression : Expression or str
            An expression, or the name of a variable.

        Returns
        -------
        Any
            A `xarray.DataArray`; axes without names are ``dim_0``, ``dim_1``, ...

        Raises
        ------
        NotInstalledError
            Without xarray.

        Examples
        --------
        >>> from forcopt import Model
        >>> m = Model()
        >>> x = m.variable("x", index={"good": ["iron", "coal"]}, lower=[1, 2])
        >>> m.minimize(x.sum())
        >>> values = m.solve().to_xarray(x)  # doctest: +SKIP
        >>> float(values.sel(good="coal"))  # doctest: +SKIP
        2.0
        """
        xarray = required("xarray", "to_xarray")
        chosen = self.model[expression] if isinstance(expression, str) else expression
        values = self[chosen]
        axes = getattr(chosen, "axes", None) or (None,) * values.ndim
        names = [(axis and axis.name) or f"dim_{number}" for number, axis in enumerate(axes)]
        coords = {name: axis.index() for name, axis in zip(names, axes, strict=True) if axis is not None}
        return xarray.DataArray(values, coords, names, name=getattr(chosen, "name", None))

    def _rows_table(self, constraint: Constraint) -> Any:
        import pandas as pd

        value = self[constraint.expression]
        low, high = (np.broadcast_to(end, value.shape) for end in (constraint.lower, constraint.upper))
        slack = np.minimum(value - low, high - value)
        near = AT_BOUND * np.maximum(1.0, np.abs(value))
        status = np.select(
            [slack < -near, low == high, value - low <= near, high - value <= near],
            ["violated", "equal", "at lower", "at upper"],
            "between",
        )
        dual = np.full(value.shape, np.nan) if self.row_dual is None else self.dual(constraint)
        columns = {"dual": dual.reshape(-1), "slack": slack.reshape(-1), "status": status.reshape(-1)}
        return pd.DataFrame(columns, index=product_index(constraint.axes, value.shape))

    def values(self) -> dict[str, Any]:
        """The value of every variable by its name.

        Examples
        --------
        >>> import forcopt as fo
        >>> m = fo.Model()
        >>> x = m.variable("x", 2, lower=[1, 2])
        >>> m.minimize(x.sum())
        >>> {name: value.tolist() for name, value in m.solve().values().items()}
        {'x': [1.0, 2.0]}
        """
        return {v.name: self[v] for v in self._variables()}

    def _variables(self) -> list[Variable]:
        """The model's variables that existed when this solution was found."""
        end = np.inf if self.point is None else len(self.point)
        return [v for v in self.model.variables if v.start + v.size <= end]

    def change(self) -> str:
        """What has changed in the model or its parameters since this solution was found; empty if nothing.

        Examples
        --------
        >>> import forcopt as fo
        >>> m = fo.Model()
        >>> x = m.variable("x", lower=0)
        >>> m.minimize(x)
        >>> s = m.solve()
        >>> m.maximize(-x)
        >>> s.change()
        'the model has changed since this solution was found; solve again'
        """
        marks, values = self.solved
        if not same_marks(marks, self.model.marks()):
            return "the model has changed since this solution was found; solve again"
        for p, value in zip(self.model.parameters, values, strict=True):
            if not np.array_equal(value, p.value, equal_nan=True):
                name = f"parameter {p.name}"
                return f"{name} has changed since this solution was found; set it to {value} again"
        return ""

    def certify(
        self,
        rounding: float | None = None,
        *,
        decimals: bool = False,
        time_limit: float | None = 60.0,
        save: str | Path | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Certificate:
        """Check the solution in exact rational arithmetic; see `forcopt.loops.certify.certify_model`.

        Parameters
        ----------
        rounding : float, optional
            The largest distance of an exact point whose rounding the solver's point may be.
        decimals : bool, default False
            Take each number of a linear model for the shortest decimal that rounds to it.
        time_limit : float, default 60
            Seconds for the branch and bound of an integer model; None for no limit.
        save : str or Path, optional
            The file to write the proof to: VIPR, or JSON for quadratic and conic models; see `forcopt.check`.
        progress : Callable[[int, int], None], optional
            Called now and then with the subproblems done and the depth of the search.

        Returns
        -------
        Certificate
            The proved facts: feasibility, a bound, optimality.

        Examples
        --------
        >>> import forcopt as fo
        >>> m = fo.Model()
        >>> x = m.variable("x", 2, lower=0)
        >>> _ = m.subject_to(3 * x[0] + x[1] >= 1, x[0] + 3 * x[1] >= 1)
        >>> m.minimize(x.sum())
        >>> print(m.solve().certify())
        feasible   yes; the point given is 5.6e-17 away
        objective  1/2
        bound      1/2
        optimal    yes
        how        multipliers of the rows prove the bound
        """
        from forcopt.loops.certify import certify_model

        how: dict[str, Any] = {"time_limit": time_limit, "save": save, "progress": progress}
        return certify_model(self, rounding, decimals=decimals, **how)

    def _repr_html_(self) -> str:
        facts = {"status": self.status, "objective": f"{self.objective:.8g}", "bound": f"{self.bound:.8g}"}
        facts |= {"gap": f"{self.gap:.2%}"} if self.status is Status.FEASIBLE else {}
        facts |= {"backend": self.backend, "seconds": f"{self.seconds:.3g}"}
        facts |= {"bridges": ", ".join(self.bridges)} if self.bridges else {}
        facts |= {"reason": self.reason} if not self.status.has_solution and self.reason else {}
        return facts_html(f"solution of {self.model.name}", facts)

    def __repr__(self) -> str:
        gap = f", gap {self.gap:.2g}" if self.status is Status.FEASIBLE else ""
        return (
            f"<{self.status} solution of {self.model.name} by {self.backend}: "
            f"objective {self.objective:.8g}{gap}, {self.seconds:.3g} s>"
        )
