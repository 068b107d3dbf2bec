"""``condition = 1`` implies rows, with a condition that is any binary expression, as indicator rows on columns.

Takes ``implication``, gives ``indicator`` (and rows, where a condition is more than one column or its complement and
so needs a new binary column equal to it). Exact.
"""

from __future__ import annotations

import numpy as np

from forcopt.compile.bridges.base import bridge
from forcopt.compile.draft import Draft
from forcopt.language.constraint import Implication
from forcopt.language.expression import Expression
from forcopt.language.relations import Indicator
from forcopt.language.terms import Gather


@bridge("implication", gives=("indicator", "rows"))
def implication_indicator(relation: Implication, draft: Draft) -> None:
    """Find the column and the value that switch the rows on."""
    row = relation.constraint.expression.ravel()
    condition = relation.condition.ravel()
    shape = relation.constraint.shape
    lower = np.broadcast_to(relation.constraint.lower, shape).reshape(-1)
    upper = np.broadcast_to(relation.constraint.upper, shape).reshape(-1)
    binary, active = _as_column(condition, draft)
    draft.relation(Indicator(binary, active, row, lower, upper))


def _as_column(condition: Expression, draft: Draft) -> tuple[Expression, int]:
    term = condition.terms[0] if len(condition.terms) == 1 else None
    if isinstance(term, Gather) and term.width == 1:
        column = Expression(condition.model, condition.shape, (Gather(term.columns, np.ones((1, 1)), False),), np.zeros(()))
        if (term.values == 1).all() and (condition.constant == 0).all():
            return column, 1
        if (term.values == -1).all() and (condition.constant == 1).all():
            return column, 0
    column = draft.column("condition", condition.shape, 0.0, 1.0, integer=True)
    draft.row(column == condition)
    return column, 1
