"""Write a leximin objective into a program: utilities as columns, and what its method needs beside them.

A leximax of losses is a leximin of the losses with their signs changed. See `forcopt.leximin` for the methods
and their sources; `forcopt.loops.leximin` and `forcopt.loops.lexicographic` run them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.compile.assemble import assemble, cost_vector
from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.program import LeximinLayout, RowBlock, StageCost
from forcopt.errors import DeclarationError
from forcopt.language.constraint import Constraint
from forcopt.language.expression import Expression
from forcopt.language.objective import Sorted
from forcopt.language.relations import only_columns

__all__ = ["LeximinStages", "write_sorted"]

_MOST_OUTCOMES = 1000
"""More values than this that integral utilities could take are not few."""


@dataclass(frozen=True, eq=False)
class LeximinStages:
    """The stages of a leximin objective, before the number of columns is known.

    Attributes
    ----------
    utilities : Expression
        What is sorted.
    levels : LeximinLayout
        Without its matrix.
    targets : list[Expression]
        What each stage maximises.
    rows : list[list[Constraint]]
        What each stage adds; those of the first are in the program already.
    """

    utilities: Expression
    levels: LeximinLayout
    targets: list[Expression]
    rows: list[list[Constraint]]

    def stages(self, maximize: bool, width: int) -> list[StageCost]:
        """Give the stages over `width` columns."""
        levels = replace(
            self.levels,
            matrix=self.utilities.linear_rows().matrix(width),
            offset=np.array(self.utilities.constant),
        )
        return [
            StageCost(
                -cost_vector(target, width),
                -float(target.constant),
                maximize,
                rows=_assembled(rows),
                levels=levels,
                rank=rank,
            )
            for rank, (target, rows) in enumerate(zip(self.targets, self.rows, strict=True), 1)
        ]


def _assembled(rows: Sequence[Constraint]) -> RowBlock | None:
    return assemble([(c.expression, *c.row_bounds()) for c in rows]) if rows else None


def write_sorted(stage: Sorted, draft: BridgeContext, method: str | None) -> LeximinStages:
    """Write columns and rows for a leximin objective.

    Parameters
    ----------
    stage : Sorted
        Which.
    draft : BridgeContext
        To write to; integer columns are known.
    method : str
        Instead of the stage's own, if given.

    Raises
    ------
    DeclarationError
        If the method does not fit the model.
    """
    chosen = method or stage.method
    integer = bool((draft.integer == 1).any())
    if chosen is None:
        chosen = "compact" if integer else "saturation"
    if chosen == "saturation" and integer:
        name = draft.name_of(int(np.argmax(draft.integer == 1)))
        raise DeclarationError(
            f"leximin by 'saturation' needs a convex model, and {name} is integer; use 'compact' or 'cuts'"
        )
    utilities = stage.expression if stage.maximize else -stage.expression
    low, high = draft.reach(utilities)
    whole = draft.is_integral(utilities)
    values = draft.column("value", utilities.shape, low, high, implied_integer=whole)
    draft.row(values <= utilities)
    out = _WRITERS[chosen](stage, draft, values, low, high, whole)
    return replace(out, utilities=utilities, levels=replace(out.levels, values=only_columns(values)))


def _levels(method: str, sums: Expression | None = None) -> LeximinLayout:
    """LeximinLayout whose utilities are filled in later."""
    columns = np.empty(0, dtype=np.int32) if sums is None else only_columns(sums)
    return LeximinLayout(method, sp.csr_array((0, 0)), np.empty(0), np.empty(0), columns)


def _sums(draft: BridgeContext, low: Array, high: Array, whole: bool) -> Expression:
    """Columns for the sums of the 1, 2, ... smallest values."""
    return draft.column(
        "sum", low.size, np.cumsum(np.sort(low)), np.cumsum(np.sort(high)), implied_integer=whole
    )


def _compact(
    stage: Sorted, draft: BridgeContext, values: Expression, low: Array, high: Array, whole: bool
) -> LeximinStages:
    """The sum of the k smallest is the greatest ``k q - sum_j d_j`` with ``d_j >= q - value_j, d >= 0``."""
    count = values.size
    sums = _sums(draft, low, high, whole)
    draft.row(values >= sums[0])
    rows: list[list[Constraint]] = [[]]
    for k in range(2, count):
        most = np.maximum(high.max() - low, 0.0)
        floor = draft.column("threshold", (), low.min(), high.max(), implied_integer=whole)
        short = draft.column("shortfall", count, 0.0, most, implied_integer=whole)
        rows.append([short + values >= floor, k * floor - short.sum() >= sums[k - 1]])
    if count > 1:
        rows.append([values.sum() >= sums[count - 1]])
    return LeximinStages(values, _levels("compact", sums), [sums[k] for k in range(count)], rows)


def _cuts(
    stage: Sorted, draft: BridgeContext, values: Expression, low: Array, high: Array, whole: bool
) -> LeximinStages:
    """Sums below those of all subsets of their size: singletons and the full set now, others when needed."""
    count = values.size
    sums = _sums(draft, low, high, whole)
    draft.row(values >= sums[0])
    rows: list[list[Constraint]] = [[] for _ in range(count)]
    if count > 1:
        rows[-1] = [values.sum() >= sums[count - 1]]
    return LeximinStages(values, _levels("cuts", sums), [sums[k] for k in range(count)], rows)


def _saturation(
    stage: Sorted, draft: BridgeContext, values: Expression, low: Array, high: Array, whole: bool
) -> LeximinStages:
    """A common level below all values; a spare lets a value out of that once it is fixed."""
    level = draft.column("level", ())
    spare = draft.column("spare", values.size, 0.0, 0.0)
    first = draft.model.row_count + sum(row.expression.size for row in draft.rows)
    draft.row(values + spare - level >= 0)
    levels = replace(
        _levels("saturation"), level=int(only_columns(level)[0]), spares=only_columns(spare), rows=first
    )
    return LeximinStages(values, levels, [level], [[]])


def _ordered_values(
    stage: Sorted, draft: BridgeContext, values: Expression, low: Array, high: Array, whole: bool
) -> LeximinStages:
    """The total shortfall from each outcome but the least; few at the least outcome matters first."""
    if stage.outcomes is not None:
        outcomes = stage.outcomes if stage.maximize else -stage.outcomes[::-1]
    elif whole and np.isfinite(low).all() and np.isfinite(high).all():
        outcomes = np.arange(low.min(), high.max() + 1)
    else:
        raise DeclarationError(
            "leximin by 'ordered-values' needs all values that can be taken: give outcomes=..., or make the "
            "expression integral and bounded"
        )
    if len(outcomes) > _MOST_OUTCOMES:
        raise DeclarationError(
            f"leximin by 'ordered-values': there are {len(outcomes)} outcomes; more than {_MOST_OUTCOMES} "
            "are not few, use 'compact'"
        )
    whole = whole and bool((outcomes == np.round(outcomes)).all())
    targets: list[Expression] = []
    rows: list[list[Constraint]] = []
    for outcome in outcomes[1:]:
        short = draft.column("shortfall", values.size, 0.0, outcome - outcomes[0], implied_integer=whole)
        rows.append([short + values >= outcome])
        targets.append(-short.sum())
    for row in rows[0] if rows else ():
        draft.row(row)
    rows[:1] = [[]]
    levels = replace(_levels("ordered-values"), outcomes=outcomes)
    if not targets:  # only one value can be taken
        return LeximinStages(values, levels, [values[0] * 0.0], [[]])
    return LeximinStages(values, levels, targets, rows)


_WRITERS = {
    "saturation": _saturation,
    "compact": _compact,
    "cuts": _cuts,
    "ordered-values": _ordered_values,
}
