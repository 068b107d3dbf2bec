"""Objectives: one stage, or several in order of priority."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from forcopt.errors import DeclarationError
from forcopt.language.atoms import sum_largest, sum_smallest
from forcopt.language.expression import Expression

__all__ = ["Objective", "Stage", "lexicographic", "leximax", "leximin", "maximize", "minimize"]


@dataclass(frozen=True, eq=False)
class Stage:
    """One scalar expression and its direction."""

    expression: Expression
    maximize: bool


@dataclass(frozen=True, eq=False)
class Objective:
    """Stages in order of priority: each is optimised among the optima of those before it.

    Attributes:
        stages: in order.
        tolerance: by how much (relative to the larger of 1 and the value) a later stage may worsen an
            earlier one; the slack that floating-point solvers need.
        kind: what was asked for, such as ``"minimize"`` or ``"leximin"``.
    """

    stages: tuple[Stage, ...]
    kind: str
    tolerance: float = 1e-7

    def __post_init__(self) -> None:
        if not 0 <= self.tolerance < np.inf:
            raise DeclarationError(
                f"{self.kind}: the tolerance is {self.tolerance}; it must be finite and >= 0"
            )


def _scalar(expression: Expression, verb: str) -> Expression:
    if not isinstance(expression, Expression):
        raise DeclarationError(f"{verb} needs an expression, not {expression!r}")
    if expression.size != 1:
        raise DeclarationError(f"{verb} needs a scalar expression, not shape {expression.shape}; use .sum()")
    return expression.reshape(())


def minimize(expression: Expression) -> Objective:
    """Make `expression`, a convex scalar, as small as possible."""
    return Objective((Stage(_scalar(expression, "minimize"), False),), "minimize")


def maximize(expression: Expression) -> Objective:
    """Make `expression`, a concave scalar, as large as possible."""
    return Objective((Stage(_scalar(expression, "maximize"), True),), "maximize")


def lexicographic(objectives: Iterable[Objective], tolerance: float = 1e-7) -> Objective:
    """Optimise the first, then the second among the optima of the first, and so on.

    Args:
        objectives: made by `minimize`, `maximize`, `leximin`, ...; at least one.
        tolerance: see `Objective`.

    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", shape=2, lower=0, upper=1)
    >>> _ = m.subject_to(x.sum() <= 1.5)
    >>> m.lexicographic([fo.maximize(x.sum()), fo.minimize(x[0])])
    >>> m.solve()[x].round(6).tolist()
    [0.5, 1.0]
    """
    objectives = list(objectives)
    if not objectives:
        raise DeclarationError("lexicographic needs at least one objective")
    for number, objective in enumerate(objectives, 1):
        if not isinstance(objective, Objective):
            raise DeclarationError(
                f"lexicographic: part {number} must be an objective such as fo.minimize(x), not {objective!r}"
            )
    return Objective(tuple(s for o in objectives for s in o.stages), "lexicographic", tolerance)


def leximin(utilities: Expression, tolerance: float = 1e-7) -> Objective:
    """Make the smallest utility as large as possible, then the second smallest, and so on.

    The compact form of Ogryczak and Śliwiński (2006): stage k maximises the sum of the k smallest, which has
    the same optima as the definition, also for integer models. n utilities take n stages and O(n²) rows.

    Args:
        utilities: concave; any shape.
        tolerance: see `Objective`.

    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", shape=3, lower=0)
    >>> _ = m.subject_to(x[0] <= 1, x.sum() <= 7)
    >>> m.leximin(x)
    >>> m.solve()[x].round(6).tolist()
    [1.0, 3.0, 3.0]
    """
    flat = _some(utilities, "leximin")
    stages = tuple(Stage(sum_smallest(flat, k), True) for k in range(1, flat.size + 1))
    return Objective(stages, "leximin", tolerance)


def leximax(losses: Expression, tolerance: float = 1e-7) -> Objective:
    """Make the largest loss as small as possible, then the second largest, and so on; see `leximin`."""
    flat = _some(losses, "leximax")
    stages = tuple(Stage(sum_largest(flat, k), False) for k in range(1, flat.size + 1))
    return Objective(stages, "leximax", tolerance)


def _some(values: Expression, verb: str) -> Expression:
    if not isinstance(values, Expression) or values.size == 0:
        raise DeclarationError(f"{verb} needs an expression with at least one element, not {values!r}")
    return values.ravel()
