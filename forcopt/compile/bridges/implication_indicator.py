"""``condition = 1`` implies rows, for any binary expression as condition, as indicator rows on columns.

Takes ``implication``, gives ``indicator`` (and rows, where a condition is neither an integer column nor its
complement and so needs a new binary column equal to it). Exact.
"""

from __future__ import annotations

import numpy as np

from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.bridges.base import bridge
from forcopt.language.constraint import Implication
from forcopt.language.expression import Expression
from forcopt.language.relations import Indicator
from forcopt.language.terms import Gather


@bridge("implication", gives=("indicator", "rows"))
def implication_indicator(relation: Implication, draft: BridgeContext) -> None:
    """Find the column and the value that switch the rows on."""
    constraint = relation.constraint
    lower, upper = (
        np.broadcast_to(b, constraint.shape).reshape(-1) for b in (constraint.lower, constraint.upper)
    )
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
