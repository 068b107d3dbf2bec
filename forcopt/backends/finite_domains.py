"""Finite bounds for the columns of an all-integer program, for solvers that search finite domains only.

Two rules are applied in rounds until they find nothing more. A *row* bounds a column if all its others are
bounded. A column that costs nothing to decrease is *dominated* (such as the t of a row ``t >= x``):
whatever the others are, it may as well stand at its own lower bound or at the least value that some
row forces on it, so the most that any row can force bounds it from above. Both keep at least one optimum:
in a solution within the bounds found so far, moving one dominated column down to that value leaves every
row satisfied, the other columns where they are and the objective no worse. Columns that cost nothing to
increase mirror this.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forcopt.arrays import Array
from forcopt.backends.tolerances import NOISE, SUM_NOISE
from forcopt.compile.program import Program, RowBlock
from forcopt.errors import UnboundedExpressionError


def loosened(bound: Array, sign: float, scale: float = 1.0) -> Array:
    """Move bounds outwards (up for sign 1) by the possible rounding error, not to another
    integer.

    Parameters
    ----------
    bound : Array
        On something that, multiplied by `scale`, is an integer.
    sign : float
        1 for upper bounds, -1 for lower.
    scale : float, default 1.0
        See `bound`.
    """
    slack = np.minimum(NOISE * np.maximum(1.0, np.abs(bound)), 0.01 / scale)
    return np.asarray(bound + sign * slack)


@dataclass(frozen=True)
class _Entries:
    """Return the coefficients of all rows, indicator rows last, and the number of rows that always hold."""

    row: Array
    column: Array
    value: Array
    lower: Array
    upper: Array
    always: int

    def mirrored(self) -> _Entries:
        """The same rows in the negated columns."""
        return _Entries(self.row, self.column, -self.value, self.lower, self.upper, self.always)

    def others(self, low: Array, high: Array) -> tuple[Array, Array]:
        """For each coefficient the least and the most that the rest of its row can be, rounded outwards."""
        rising = self.value > 0
        return (
            self._without_own(np.where(rising, low[self.column], high[self.column]), -1.0),
            self._without_own(np.where(rising, high[self.column], low[self.column]), 1.0),
        )

    def _without_own(self, end: Array, sign: float) -> Array:
        free = ~np.isfinite(end)
        part = np.where(free, 0.0, self.value * np.where(free, 0.0, end))
        rows = len(self.lower)
        total, size = (np.bincount(self.row, p, rows)[self.row] for p in (part, np.abs(part)))
        others_free = np.bincount(self.row, free, rows)[self.row] > free
        return np.where(others_free, sign * np.inf, total - part + sign * SUM_NOISE * size)


def finite_domains(program: Program) -> tuple[Array, Array]:
    """Give integral lower and upper bounds of all columns that some optimum of the first stage keeps.

    Raises
    ------
    UnboundedExpressionError
        Naming the first column that is left without a bound.
    """
    lower = np.ceil(loosened(program.lower, -1.0))
    upper = np.floor(loosened(program.upper, 1.0))
    if not (np.isfinite(lower).all() and np.isfinite(upper).all()):
        entries = _entries([program.rows, *(i.rows for i in program.indicators)])
        cost = program.stages[0].cost
        count = -1
        while count != (count := int(np.isinf(lower).sum() + np.isinf(upper).sum())) and count:
            for bound in (_bound_by_rows, _bound_dominated):
                # One side after the other: each rule's argument needs the bounds found before it.
                upper = np.where(np.isinf(upper), bound(entries, cost, lower, upper), upper)
                below = -bound(entries.mirrored(), -cost, -upper, -lower)
                lower = np.where(np.isinf(lower), below, lower)
    for bounds, side in ((lower, "lower"), (upper, "upper")):
        if np.isinf(bounds).any():
            missing = np.isinf(bounds)
            owned = missing & (program.integer == 1)  # the user's own; others are computed from these
            first = int(np.argmax(owned if owned.any() else missing))
            raise UnboundedExpressionError(
                f"{program.column_name(first)} has no {side} bound, and none follows from the rows; give it "
                "one, or the variables that it is computed from, or use a backend that takes it without"
            )
    return lower, upper


def _entries(blocks: list[RowBlock]) -> _Entries:
    counts = [b.count for b in blocks]
    length = np.concatenate([np.diff(b.indptr) for b in blocks])
    return _Entries(
        np.repeat(np.arange(sum(counts)), length),
        np.concatenate([b.indices for b in blocks]),
        np.concatenate([b.data for b in blocks]),
        np.concatenate([b.lower for b in blocks]),
        np.concatenate([b.upper for b in blocks]),
        counts[0],
    )


def _bound_by_rows(entries: _Entries, cost: Array, lower: Array, upper: Array) -> Array:
    """Upper bounds that follow from each row by itself; infinite where none does."""
    least, most = entries.others(lower, upper)
    below, above = loosened(entries.lower, -1.0), loosened(entries.upper, 1.0)
    gap = np.where(entries.value > 0, above[entries.row] - least, below[entries.row] - most)
    reach = np.where(entries.row < entries.always, gap / entries.value, np.inf)
    out = np.full(len(lower), np.inf)
    np.minimum.at(out, entries.column, reach)
    return np.asarray(np.floor(out + NOISE * np.maximum(1.0, np.abs(out))))


def _bound_dominated(entries: _Entries, cost: Array, lower: Array, upper: Array) -> Array:
    """Upper bounds on columns that cost nothing to decrease; infinite for the others."""
    least, most = entries.others(lower, upper)
    rising = entries.value > 0
    side = np.where(rising, entries.lower[entries.row], entries.upper[entries.row])
    with np.errstate(invalid="ignore"):  # a row without this side forces nothing
        force = (side - np.where(rising, least, most)) / entries.value
    out = np.array(lower)
    np.maximum.at(out, entries.column, np.where(np.isinf(side), -np.inf, force))
    return np.where((cost >= 0) & np.isfinite(out), np.ceil(out), np.inf)
