"""At least one of several alternatives holds: a binary for each, which implies its constraints.

Takes ``disjunction``, gives ``implication``, rows and integers: for K alternatives K binaries and one row
(for each element, if every element chooses for itself). Exact; backends without indicator rows then need
bounds on the variables, see the bridge ``big_m``.
"""

from __future__ import annotations

from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.bridges.base import bridge
from forcopt.language.constraint import Implication
from forcopt.language.logic import Disjunction


@bridge("disjunction", gives=("implication", "rows", "integer"))
def disjunction_implications(relation: Disjunction, draft: BridgeContext) -> None:
    """Choose one alternative at least."""
    shape = (len(relation.alternatives), *relation.shape)
    holds = draft.column("holds", shape, 0.0, 1.0, integer=True)
    draft.row(holds.sum(axis=0) >= 1)
    for number, constraints in enumerate(relation.alternatives):
        for constraint in constraints:
            wide = constraint.broadcast_to(relation.shape) if relation.shape else constraint
            draft.relation(Implication(holds[number].broadcast_to(wide.shape), wide))
