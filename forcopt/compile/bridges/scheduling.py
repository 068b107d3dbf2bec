"""Intervals that share machines: as CP-SAT takes them, or as rows with binaries.

All are exact.
"""

from __future__ import annotations

import numpy as np

from forcopt.arrays import Array
from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.bridges.base import bridge
from forcopt.compile.program import Schedule
from forcopt.errors import UnsupportedError
from forcopt.language.constraint import Implication
from forcopt.language.expression import Expression
from forcopt.language.scheduling import Cumulative, NoOverlap

_MANY = 10.0
"""The cost of a rewriting with binaries, which a backend that takes intervals avoids."""


@bridge("no_overlap", gives=("schedule", "rows", "integer"))
def no_overlap_intervals(relation: NoOverlap, draft: BridgeContext) -> None:
    """Intervals over single integer columns, as a solver of schedules takes them.

    A time that is no column becomes one. Takes ``no_overlap``, gives ``schedule``, rows and integers. Exact.
    """
    draft.relation(_schedule(relation, draft))


@bridge("cumulative", gives=("schedule", "rows", "integer"))
def cumulative_intervals(relation: Cumulative, draft: BridgeContext) -> None:
    """The same as `no_overlap_intervals`, with demands and a capacity, which must be integers.

    Takes ``cumulative``, gives ``schedule``, rows and integers. Exact.
    """
    if (relation.demands != np.round(relation.demands)).any():
        raise UnsupportedError("cumulative: a demand is no integer; multiply demands and capacity")
    draft.relation(_schedule(relation, draft, relation.demands, int(np.floor(relation.capacity))))


def _schedule(
    relation: NoOverlap | Cumulative,
    draft: BridgeContext,
    demands: Array | None = None,
    capacity: int = 1,
) -> Schedule:
    """Write the intervals with one column for each start, and one for each duration and end that varies."""
    fixed = relation.duration.is_constant
    size = np.asarray(relation.duration.constant)
    if fixed and (size != np.round(size)).any():
        raise UnsupportedError("an interval's duration is no integer; a backend of schedules needs integers")
    always = relation.present.is_constant and bool(relation.present.constant.all())
    return Schedule(
        _columns(relation.start, draft, "start"),
        None if fixed else _columns(relation.duration, draft, "duration"),
        None if fixed else _columns(relation.end, draft, "end"),
        None if always else _columns(relation.present, draft, "present"),
        size,
        demands,
        capacity,
    )


def _columns(expression: Expression, draft: BridgeContext, label: str) -> Array:
    """A bounded integer column equal to each element: its own, or a new one."""
    low, high = draft.finite_interval(expression, f"a schedule's {label}")
    return draft.columns_of(expression, label, np.ceil(low), np.floor(high), integer=True)


@bridge("no_overlap", gives=("implication", "rows", "integer"), cost=_MANY)
def no_overlap_pairs(relation: NoOverlap, draft: BridgeContext) -> None:
    """For each pair a binary for either order (Manne, 1960), which implies that one ends as the other starts.

    ``before_ij + before_ji = 1``, or ``>= present_i + present_j - 1`` where intervals may be absent. Takes
    ``no_overlap``, gives ``implication``, rows and integers: two binaries and three rows a pair. Exact;
    backends without indicator rows need bounds on the times, see the bridge ``big_m``.
    """
    i, j = np.triu_indices(relation.start.size, 1)
    if not i.size:
        return
    first = draft.column("before", i.shape, 0.0, 1.0, integer=True)
    second = draft.column("after", i.shape, 0.0, 1.0, integer=True)
    both = relation.present[i] + relation.present[j] - 1
    draft.row(first + second >= both)
    draft.relation(Implication(first, relation.end[i] <= relation.start[j]))
    draft.relation(Implication(second, relation.end[j] <= relation.start[i]))


@bridge("cumulative", gives=("implication", "rows", "integer"), cost=_MANY)
def cumulative_starts(relation: Cumulative, draft: BridgeContext) -> None:
    """Within the capacity at the start of each interval, since only there the demand rises.

    At the start of j, interval i runs unless a binary says that it starts later, ``start_i >= start_j + 1``
    (times are integers), or another that it has ended, ``end_i <= start_j``. ``runs_ij >= present_i +
    present_j - 1 - later_ij - ended_ij`` and ``sum_i demand_i runs_ij + demand_j present_j <= capacity``.
    Takes ``cumulative``, gives ``implication``, rows and integers: for n intervals with a demand 2 n (n - 1)
    binaries, as many implications, and n^2 rows. Exact; backends without indicator rows need bounds on the
    times, see the bridge ``big_m``.
    """
    used = np.flatnonzero(relation.demands)
    n, demand = len(used), relation.demands[used]
    start, end, present = (part[used] for part in (relation.start, relation.end, relation.present))
    i, j = (at.reshape(-1) for at in np.nonzero(~np.eye(n, dtype=bool)))
    own = present * demand
    if not i.size:
        draft.row(own <= relation.capacity)
        return
    later = draft.column("later", i.shape, 0.0, 1.0, integer=True)
    ended = draft.column("ended", i.shape, 0.0, 1.0, integer=True)
    runs = draft.column("runs", i.shape, 0.0, 1.0)
    draft.relation(Implication(later, start[i] - start[j] >= 1))
    draft.relation(Implication(ended, end[i] <= start[j]))
    draft.row(runs >= present[i] + present[j] - 1 - later - ended)
    at_start = np.zeros((n, i.size))
    at_start[j, np.arange(i.size)] = demand[i]
    draft.row(own + at_start @ runs <= relation.capacity)
