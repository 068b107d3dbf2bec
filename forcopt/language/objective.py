"""Objectives: one stage, or several in order of priority."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from forcopt.arrays import Array, as_numbers
from forcopt.errors import DeclarationError, require
from forcopt.language.expression import Expression

SortedMethod = Literal["saturation", "compact", "cuts", "ordered-values"]
_METHODS = ("saturation", "compact", "cuts", "ordered-values")


@dataclass(frozen=True, eq=False)
class Stage:
    """One scalar expression and its direction."""

    expression: Expression
    maximize: bool

    def values(self, point: Array) -> tuple[float, ...]:
        """Its value at a point (all columns, completed)."""
        return (float(self.expression.evaluate(point)),)


@dataclass(frozen=True, eq=False)
class Sorted(Stage):
    """The smallest element of a flat expression as large as possible, then the next, and so on.

    If it is not maximised: the largest as small as possible, then the next.

    Attributes
    ----------
    method : SortedMethod, optional
        See `leximin`; None to choose by whether the model is integer.
    outcomes : Array, optional
        All values that an element can take, rising, if they are given.
    """

    method: SortedMethod | None = None
    outcomes: Array | None = None

    def levels(self, point: Array) -> Array:
        """The elements at a point, worst first."""
        found = np.sort(self.expression.evaluate(point))
        return found if self.maximize else found[::-1]

    def values(self, point: Array) -> tuple[float, ...]:
        """The sums of the one, two, ... worst elements, which are optimized in turn."""
        return tuple(np.cumsum(self.levels(point)).tolist())


@dataclass(frozen=True, eq=False)
class Objective:
    """Stages in order of priority: each is optimized among the optima of the earlier ones.

    Attributes
    ----------
    stages : tuple[Stage, ...]
        In order.
    tolerance : float, default 1e-07
        By how much (relative to the larger of 1 and the value) a later stage may worsen an earlier one; the
        slack that floating-point solvers need.
    kind : str
        The kind of the objective, such as ``"minimize"`` or ``"leximin"``.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", 2)
    >>> goal = fo.lexicographic([fo.maximize(x.sum()), fo.minimize(x[0])])
    >>> goal.kind, [stage.maximize for stage in goal.stages]
    ('lexicographic', [True, False])
    """

    stages: tuple[Stage, ...]
    kind: str
    tolerance: float = 1e-7

    def __post_init__(self) -> None:
        require(
            0 <= self.tolerance < np.inf, f"{self.kind}: the tolerance", self.tolerance, "be finite and >= 0"
        )

    def __getitem__(self, part: Expression) -> Array:
        """The coefficient of each element of a variable, in an objective of one scalar stage.

        Parameters
        ----------
        part : Expression
            A variable or a part of one, such as ``x[0]``. Assigning numbers that broadcast to its shape
            changes the coefficients; the next solve compiles anew.

        Raises
        ------
        DeclarationError
            For any other expression, for several stages, and for an objective that its model has replaced.

        Examples
        --------
        >>> import forcopt as fo
        >>> m = fo.Model()
        >>> x = m.variable("x", 2, upper=1)
        >>> m.maximize(2 * x[0] + x[1])
        >>> m.objective[x] = [3, 5]
        >>> m.objective[x].tolist(), m.solve().objective
        ([3.0, 5.0], 8.0)
        """
        expression = self._only_scalar().expression
        if not isinstance(part, Expression):
            raise DeclarationError(f"the objective: ask for the coefficient of a variable, not of {part!r}")
        columns = expression.model.columns_of(part, "the objective")
        matrix = expression.linear_rows().matrix(expression.model.column_count)
        return np.asarray(matrix[np.zeros_like(columns), columns]).reshape(part.shape)

    def __setitem__(self, part: Expression, values: Any) -> None:
        stage = self._only_scalar()
        change = as_numbers(part.aligned(values, "the objective") - self[part], "the objective")
        if change.shape != part.shape:
            raise DeclarationError(f"the objective: {change.shape} coefficients for shape {part.shape}")
        moved = replace(stage, expression=stage.expression + (change * part).sum())
        object.__setattr__(self, "stages", (moved,))
        stage.expression.model.note_edit()

    def _only_scalar(self) -> Stage:
        if len(self.stages) != 1 or isinstance(self.stages[0], Sorted):
            raise DeclarationError(f"coefficients are of one stage; the objective is {self.kind}")
        if self.stages[0].expression.model.objective is not self:
            raise DeclarationError("the model has another objective now; write m.objective[x]")
        return self.stages[0]

    @property
    def count(self) -> int:
        """How many numbers are optimised in turn."""
        return sum(stage.expression.size for stage in self.stages)


def _scalar(expression: Expression, verb: str) -> Expression:
    if not isinstance(expression, Expression):
        raise DeclarationError(f"{verb} needs an expression, not {expression!r}")
    if expression.size != 1:
        raise DeclarationError(f"{verb} needs a scalar expression, not shape {expression.shape}; use .sum()")
    return expression.reshape(())


def minimize(expression: Expression) -> Objective:
    """Make `expression`, a convex scalar, as small as possible.

    Parameters
    ----------
    expression : Expression
        Convex, with one element.

    Returns
    -------
    Objective
        One stage.

    Raises
    ------
    DeclarationError
        If it is not an expression with one element.

    Examples
    --------
    >>> import forcopt as fo
    >>> x = fo.Model().variable("x")
    >>> fo.minimize(2 * x).kind
    'minimize'
    """
    return Objective((Stage(_scalar(expression, "minimize"), False),), "minimize")


def maximize(expression: Expression) -> Objective:
    """Make `expression`, a concave scalar, as large as possible.

    Parameters
    ----------
    expression : Expression
        Concave, with one element.

    Returns
    -------
    Objective
        One stage.

    Raises
    ------
    DeclarationError
        If it is not an expression with one element.

    Examples
    --------
    >>> import forcopt as fo
    >>> x = fo.Model().variable("x")
    >>> fo.maximize(2 * x).kind
    'maximize'
    """
    return Objective((Stage(_scalar(expression, "maximize"), True),), "maximize")


def lexicographic(objectives: Iterable[Objective], tolerance: float = 1e-7) -> Objective:
    """Optimise the first, then the second among the optima of the first, and so on.

    Parameters
    ----------
    objectives : Iterable[Objective]
        Made by `minimize`, `maximize`, `leximin`, ...; at least one.
    tolerance : float, default 1e-07
        See `Objective`.

    Returns
    -------
    Objective
        The stages of all objectives, in order.

    Raises
    ------
    DeclarationError
        If there is no objective, or a part is not one.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", shape=2, lower=0, upper=1)
    >>> _ = m.subject_to(x.sum() <= 1.5)
    >>> m.lexicographic([fo.maximize(x.sum()), fo.minimize(x[0])])
    >>> m.solve()[x].round(6).tolist()
    [0.5, 1.0]
    """
    if isinstance(objectives, Objective):
        raise DeclarationError("lexicographic needs a list of objectives, not a single one")
    objectives = list(objectives)
    if not objectives:
        raise DeclarationError("lexicographic needs at least one objective")
    for number, objective in enumerate(objectives, 1):
        if not isinstance(objective, Objective):
            raise DeclarationError(
                f"lexicographic: part {number} must be an objective such as fo.minimize(x), not {objective!r}"
            )
    return Objective(tuple(s for o in objectives for s in o.stages), "lexicographic", tolerance)


def leximin(
    utilities: Expression, method: SortedMethod | None = None, *, outcomes: Any = None, tolerance: float = 0.0
) -> Objective:
    """Make the smallest utility as large as possible, then the second smallest, and so on.

    The optimal sorted vector is unique. All methods but ``"saturation"`` also work for integer models:

    - ``"saturation"``: raise a common floor as far as it goes, fix the utilities whose multipliers show that
      they cannot rise above it, go on with the others (Potters and Tijs, 1992). At most n linear programs of
      n rows, for convex models only; numerically the safest, and the default for them.
    - ``"compact"``: stage k maximises the sum of the k smallest, written as its linear programming dual
      (Ogryczak and Śliwiński, 2006). n stages, O(n²) rows; the default for integer models.
    - ``"cuts"``: the same stages over the sums of all 2ⁿ - 1 subsets, separated by sorting (Henzinger, Peale,
      Reingold and Shen, 2022, Algorithm 2): only the subsets that matter become rows.
    - ``"ordered-values"``: for utilities that only take a few values v_1 < ... < v_K: stage k minimises the
      total shortfall from v_(k+1) (Ogryczak and Śliwiński, 2006). K - 1 stages of n rows.

    Parameters
    ----------
    utilities : Expression
        Concave; any shape.
    method : SortedMethod, optional
        See above.
    outcomes : Any, optional
        For ``"ordered-values"``, all values that a utility can take; may be left out if the utilities are
        integral and bounded.
    tolerance : float, default 0.0
        See `Objective`; none by default, since later levels may gain 10,000 times the amount that earlier
        ones give away. A stage that fails on rounding all the same is solved again with 1e-10 more, then ten
        times as much, and so on; the solution's message then reports it.

    Returns
    -------
    Objective
        One stage of all utilities.

    Raises
    ------
    DeclarationError
        For an unknown method, outcomes without ``"ordered-values"``, or no utilities.
    CurvatureError
        If a utility is not concave.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", shape=3, lower=0)
    >>> _ = m.subject_to(x[0] <= 1, x.sum() <= 7)
    >>> m.leximin(x)
    >>> s = m.solve()
    >>> s[x].round(6).tolist(), s.levels.round(6).tolist()
    ([1.0, 3.0, 3.0], [1.0, 3.0, 3.0])
    """
    return _sorted(utilities, True, "leximin", method, outcomes, tolerance)


def leximax(
    losses: Expression, method: SortedMethod | None = None, *, outcomes: Any = None, tolerance: float = 0.0
) -> Objective:
    """Make the largest loss as small as possible, then the second largest, and so on; see `leximin`.

    Parameters
    ----------
    losses : Expression
        Convex; any shape.
    method : SortedMethod, optional
        See `leximin`.
    outcomes : Any, optional
        For ``"ordered-values"``, all values that a loss can take.
    tolerance : float, default 0.0
        See `leximin`.

    Returns
    -------
    Objective
        One stage of all losses.

    Raises
    ------
    DeclarationError
        For an unknown method, outcomes without ``"ordered-values"``, or no losses.
    CurvatureError
        If a loss is not convex.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", shape=3, lower=0)
    >>> _ = m.subject_to(x[0] >= 3, x.sum() >= 7)
    >>> m.leximax(x)
    >>> m.solve()[x].round(6).tolist()
    [3.0, 2.0, 2.0]
    """
    return _sorted(losses, False, "leximax", method, outcomes, tolerance)


def _sorted(
    values: Expression, maximize: bool, verb: str, method: Any, outcomes: Any, tolerance: float
) -> Objective:
    if not isinstance(values, Expression) or values.size == 0:
        raise DeclarationError(f"{verb} needs an expression with at least one element, not {values!r}")
    if method is not None and method not in _METHODS:
        raise DeclarationError(f"{verb}: the method is {method!r}; it must be one of {', '.join(_METHODS)}")
    known = None
    if outcomes is not None:
        if method != "ordered-values":
            raise DeclarationError(f"{verb}: outcomes are for the method 'ordered-values', not {method!r}")
        known = np.unique(as_numbers(outcomes, f"{verb}: outcomes"))
        if not known.size:
            raise DeclarationError(f"{verb}: outcomes is empty; it must list the values that can be taken")
    flat = values.ravel()
    flat.model.check_curvature(flat, -1 if maximize else 1, verb)
    return Objective((Sorted(flat, maximize, method, known),), verb, tolerance)
