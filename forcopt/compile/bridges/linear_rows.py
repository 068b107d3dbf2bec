"""Maxima, absolute values, sums of the largest, implications, disjunctions and conjunctions as linear rows.

All are exact.
"""

from __future__ import annotations

import numpy as np

from forcopt.compile.bridge_context import BridgeContext, adds_exactly, bridge
from forcopt.errors import UnboundedExpressionError
from forcopt.language.constraint import Implication
from forcopt.language.expression import Expression
from forcopt.language.logic import Disjunction
from forcopt.language.relations import AtomRelation, Indicator
from forcopt.language.terms import Gather


@bridge("abs")
def absolute(relation: AtomRelation, draft: BridgeContext) -> None:
    """``t >= |x|`` as ``t >= x`` and ``t >= -x``.

    Takes ``abs``, gives rows: two for each element. Exact, since the result is only used where smaller
    is better.
    """
    (x,) = relation.arguments
    draft.row(relation.result >= x, relation.result >= -x)


@bridge("maximum")
def maximum_rows(relation: AtomRelation, draft: BridgeContext) -> None:
    """``t >= max(x_1, ..., x_d)`` as ``t >= x_j`` for every j.

    Takes ``maximum``, gives rows: d for each element. Exact, since the result is only used where smaller
    is better.
    """
    (x,) = relation.arguments
    draft.row(relation.result[:, None] >= x)


@bridge("norm_1")
def norm_1_rows(relation: AtomRelation, draft: BridgeContext) -> None:
    """``t >= |x_1| + ... + |x_d|`` with one absolute value a coordinate.

    Takes ``norm_1``, gives rows: 2 d + 1 for each element, with d new columns. Exact.
    """
    (x,) = relation.arguments
    low, high = draft.reach(x)
    size = draft.column("size", x.shape, 0.0, np.maximum(-low, high), implied_integer=draft.is_integral(x))
    draft.row(size >= x, size >= -x, relation.result >= size.sum(axis=1))


@bridge("norm_inf")
def norm_inf_rows(relation: AtomRelation, draft: BridgeContext) -> None:
    """``t >= max_j |x_j|`` as ``t >= x_j`` and ``t >= -x_j`` for every j.

    Takes ``norm_inf``, gives rows: 2 d for each element. Exact.
    """
    (x,) = relation.arguments
    draft.row(relation.result[:, None] >= x, relation.result[:, None] >= -x)


@bridge("sum_largest")
def sum_largest_rows(relation: AtomRelation, draft: BridgeContext) -> None:
    """``t >=`` the sum of the k largest of d numbers, by its linear programming dual.

    The sum of the k largest x_j is the least ``k q + sum_j s_j`` with ``s_j >= x_j - q``, ``s_j >= 0``
    (Ogryczak and Tamir, 2003). Takes ``sum_largest``, gives rows: d + 1 for each element, with d + 1 new
    columns. Exact; for integral arguments q and s are integral at an optimum (q is the k-th largest).
    """
    (x,) = relation.arguments
    whole = draft.is_integral(x)
    low, high = draft.reach(x)
    least = low.min(axis=1, keepdims=True)
    threshold = draft.column("threshold", x.shape[0], least[:, 0], high.max(axis=1), implied_integer=whole)
    excess = draft.column("excess", x.shape, 0.0, np.maximum(high - least, 0.0), implied_integer=whole)
    draft.row(excess >= x - threshold[:, None])
    draft.row(relation.result >= relation.parameter * threshold + excess.sum(axis=1))


_LARGEST = 1e12
"""Beyond it, doubles next to each other are more than 1e-4 apart."""


@bridge("implication", gives=("indicator", "rows"))
def implication_indicator(relation: Implication, draft: BridgeContext) -> None:
    """``condition = 1`` implies rows, for any binary expression as condition, as indicator rows on columns.

    Takes ``implication``, gives ``indicator`` (and rows, where a condition is neither an integer column
    nor its complement and so needs a new binary column equal to it). Exact.
    """
    constraint = relation.constraint
    ends = (constraint.lower, constraint.upper)
    lower, upper = (np.broadcast_to(end, constraint.shape).reshape(-1) for end in ends)
    binary, active = _as_column(relation.condition.ravel(), draft)
    draft.relation(Indicator(binary, active, constraint.expression.ravel(), lower, upper))


def _as_column(condition: Expression, draft: BridgeContext) -> tuple[Expression, int]:
    """Integer columns, and the value of them at which the condition is 1."""
    term = condition.terms[0] if len(condition.terms) == 1 else None
    if isinstance(term, Gather) and term.width == 1 and (draft.integer[term.columns] == 1).all():
        unit = Gather(term.columns, np.ones((1, 1)), term.distinct)
        column = Expression(condition.model, condition.shape, (unit,), np.zeros(()))
        if (term.values == 1).all() and (condition.constant == 0).all():
            return column, 1
        if (term.values == -1).all() and (condition.constant == 1).all():
            return column, 0
    column = draft.column("condition", condition.shape, 0.0, 1.0, integer=True)
    draft.row(column == condition)
    return column, 1


@bridge("indicator")
def big_m(relation: Indicator, draft: BridgeContext) -> None:
    """``b = 1`` implies ``lower <= x <= upper``, by rows that the least sufficient constants switch off.

    ``x <= upper + (U - upper) (1 - b)`` and ``x >= lower - (lower - L) (1 - b)``, with ``L <= x <= U``
    derived from the columns' bounds, never guessed. Takes ``indicator``, gives rows: one for each finite
    side that the bounds do not guarantee anyway. Exact.
    """
    off = 1 - relation.binary if relation.active else relation.binary
    x = relation.row
    for sign, bound in ((1, relation.upper), (-1, -np.asarray(relation.lower))):
        side = np.broadcast_to(bound, x.shape)
        at = np.flatnonzero(np.isfinite(side) & (draft.interval(sign * x)[1] > side))  # others hold anyway
        if at.size:
            row = sign * x[at]
            constant = draft.greatest(row, "big_m") - side[at]
            if draft.outward:
                constant = np.where(constant == np.round(constant), constant, np.nextafter(constant, np.inf))
            if constant.max() > _LARGEST:
                worst = int(constant.argmax())
                raise UnboundedExpressionError(
                    f"big_m needs the constant {constant[worst]:g} for {row[worst]._short()}, too large for "
                    "solvers to resolve; tighten the bounds of its variables, or use a "
                    "backend that takes the constraint as it is, such as scip"
                )
            draft.row(
                row - off[at] * constant <= side[at],
                rounded=not adds_exactly(side[at], constant, row.constant),
            )


@bridge("disjunction", gives=("implication", "rows", "integer"))
def disjunction_implications(relation: Disjunction, draft: BridgeContext) -> None:
    """At least one of several alternatives holds: a binary for each, which implies its constraints.

    Takes ``disjunction``, gives ``implication``, rows and integers: for K alternatives K binaries and
    one row (for each element, if every element chooses for itself). Exact; backends without indicator
    rows then need bounds on the variables, see the bridge ``big_m``.
    """
    holds = draft.column("holds", (len(relation.alternatives), *relation.shape), 0.0, 1.0, integer=True)
    draft.row(holds.sum(axis=0) >= 1)
    for number, constraints in enumerate(relation.alternatives):
        for constraint in constraints:
            wide = constraint.broadcast_to(relation.shape) if relation.shape else constraint
            draft.relation(Implication(holds[number].broadcast_to(wide.shape), wide))


@bridge("all_of")
def all_of_rows(relation: AtomRelation, draft: BridgeContext) -> None:
    """``z = min(b_1, ..., b_d)`` for binaries: ``z <= b_j`` for every j and ``z >= sum_j b_j - (d - 1)``.

    Takes ``all_of``, gives rows: d + 1 for each element. Exact for binary b; the rows are the convex
    hull.
    """
    (b,) = relation.arguments
    draft.row(relation.result[:, None] <= b, relation.result >= b.sum(axis=1) - (b.shape[1] - 1))
    draft.row(relation.result >= 0)
