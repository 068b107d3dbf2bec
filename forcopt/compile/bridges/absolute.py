"""``t >= |x|`` as ``t >= x`` and ``t >= -x``.

Takes ``abs``, gives rows: two for each element. Exact, since the result is only used where smaller is better.
"""

from __future__ import annotations

from forcopt.compile.bridges.base import bridge
from forcopt.compile.draft import Draft
from forcopt.language.relations import AtomRelation


@bridge("abs")
def absolute(relation: AtomRelation, draft: Draft) -> None:
    """Bound the result from below by both signs of the argument."""
    (x,) = relation.arguments
    draft.row(relation.result >= x)
    draft.row(relation.result >= -x)
