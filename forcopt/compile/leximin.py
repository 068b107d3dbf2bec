"""Write a leximin objective into a program, by the strategy that the model names.

A leximax of losses is a leximin of the losses with their signs changed. See `forcopt.leximin` for the
strategies and their sources. Each strategy stands in `forcopt.loops.leximin` and writes its columns
and rows, runs its stages, and registers its writer here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from forcopt.arrays import Array
from forcopt.compile.assemble import assemble, cost_vector
from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.program import LeximinLayout, RowBlock, StageCost
from forcopt.errors import DeclarationError, UnsupportedError
from forcopt.language.constraint import Constraint
from forcopt.language.expression import Expression
from forcopt.language.objective import Sorted
from forcopt.language.relations import only_columns


@dataclass(frozen=True, eq=False)
class Utilities:
    """The utilities of a leximin objective, as a strategy's writer sees them.

    Attributes
    ----------
    stage : Sorted
        The objective.
    values : Expression
        Flat; columns held at or below the utilities.
    lower, upper : Array
        Bounds on the utilities, infinite where none are worth having.
    integral : bool
        Whether all utilities can only be integers.
    """

    stage: Sorted
    values: Expression
    lower: Array
    upper: Array
    integral: bool


@dataclass(frozen=True, eq=False)
class LeximinStages:
    """The stages of a leximin objective, before the number of columns is known.

    Attributes
    ----------
    layout : LeximinLayout
        Without its matrix.
    targets : list of Expression
        The scalar that each stage maximizes.
    rows : list of list of Constraint
        The rows that each stage adds; the first stage's rows are in the program already.
    utilities : Expression, optional
        The sorted expression; `write_leximin` fills it in.
    """

    layout: LeximinLayout
    targets: list[Expression]
    rows: list[list[Constraint]]
    utilities: Expression | None = None

    def stages(self, maximize: bool, width: int) -> list[StageCost]:
        """Give the stages over `width` columns."""
        assert self.utilities is not None
        layout = replace(
            self.layout,
            matrix=self.utilities.linear_rows().matrix(width),
            offset=np.array(self.utilities.constant),
        )
        out = []
        for rank, (target, rows) in enumerate(zip(self.targets, self.rows, strict=True), 1):
            cost, held = -cost_vector(target, width), _assembled(rows)
            out.append(StageCost(cost, -float(target.constant), maximize, None, held, layout, rank))
        return out


def _assembled(rows: Sequence[Constraint]) -> RowBlock | None:
    return assemble([(c.expression, *c.row_bounds()) for c in rows]) if rows else None


_LEAST = 2.0**-18
"""Solvers count 1e-6 as zero."""

Writer = Callable[[Utilities, BridgeContext], LeximinStages]

_WRITERS: dict[str, tuple[Writer, bool]] = {}


def register_leximin(method: str, *, convex_only: bool = False) -> Callable[[Writer], Writer]:
    """Register the writer of a leximin strategy under its name.

    Parameters
    ----------
    method : str
        The name that `forcopt.leximin` takes.
    convex_only : bool, default False
        Whether the strategy is wrong for models that are integer or not convex.
    """

    def register(writer: Writer) -> Writer:
        _WRITERS[method] = writer, convex_only
        return writer

    return register


def write_leximin(stage: Sorted, context: BridgeContext, method: str | None = None) -> LeximinStages:
    """Write columns and rows for a leximin objective.

    Parameters
    ----------
    stage : Sorted
        The objective.
    context : BridgeContext
        Receives the columns and rows; its integer columns are known.
    method : str, optional
        The strategy, instead of the objective's own.

    Raises
    ------
    DeclarationError
        If the strategy does not fit the model.
    UnsupportedError
        If no strategy of that name is registered: `forcopt.loops.leximin` is not imported.
    """
    integer = bool((context.integer == 1).any())
    chosen = method or stage.method or ("saturation" if context.convex and not integer else "compact")
    if chosen not in _WRITERS:
        raise UnsupportedError(
            f"no leximin strategy {chosen!r} is registered; known: {', '.join(sorted(_WRITERS)) or 'none'}"
        )
    writer, convex_only = _WRITERS[chosen]
    if convex_only and (integer or not context.convex):
        name = context.name_of(int(np.argmax(context.integer == 1)))
        reason = f"{name} is integer" if integer else "it has products that are not"
        raise DeclarationError(
            f"leximin by {chosen!r} needs a convex model, and {reason}; use 'compact' or 'cuts'"
        )
    utilities = stage.expression if stage.maximize else -stage.expression
    low, high = context.reach(utilities)
    reach = np.maximum(np.abs(low), np.abs(high))
    sizes = reach if np.isfinite(reach).all() else np.abs(utilities.linear_rows().data)
    if 0 < (most := float(sizes.max(initial=0.0))) < _LEAST:
        raise UnsupportedError(
            f"leximin: values of the size {most:g} are too small for solvers to tell apart; multiply all by "
            f"{2.0 ** -np.round(np.log2(most)):g}, which keeps the order of decisions"
        )
    whole = context.is_integral(utilities)
    values = context.column("value", utilities.shape, low, high, implied_integer=whole)
    context.row(values <= utilities)
    out = writer(Utilities(stage, values, low, high, whole), context)
    return replace(out, utilities=utilities, layout=replace(out.layout, values=only_columns(values)))
