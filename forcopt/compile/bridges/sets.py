"""Sets that need new columns: semicontinuous, ordered, all different, piecewise linear, connected, schedules.

All are exact.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.compile.bridge_context import BridgeContext, bridge
from forcopt.compile.program import Schedule
from forcopt.errors import UnsupportedError
from forcopt.language.constraint import Connected, Implication
from forcopt.language.expression import Expression
from forcopt.language.joins import concatenate
from forcopt.language.relations import AtomRelation
from forcopt.language.scheduling import Cumulative, NoOverlap
from forcopt.language.special_sets import AllDifferent, Semicontinuous, SpecialOrderedSet


@bridge("semicontinuous", gives=("rows", "integer"))
def semicontinuous_binaries(relation: Semicontinuous, draft: BridgeContext) -> None:
    """``x = 0`` or ``lower <= x <= upper``, by a binary: ``lower b <= x <= upper b``.

    An infinite upper end is replaced by the bound that follows from the columns. Takes
    ``semicontinuous``, gives rows and integers: two rows and one binary for each element. Exact.
    """
    x = relation.expression
    lower, upper = relation.lower, relation.upper
    if not (np.isfinite(lower).all() and np.isfinite(upper).all()):
        low, high = draft.finite_interval(x, "semicontinuous_binaries")
        lower, upper = np.maximum(lower, low), np.minimum(upper, high)
    on = draft.column("on", x.shape, 0.0, 1.0, integer=True)
    draft.row(x >= lower * on, x <= upper * on)


@bridge("special_ordered_set", gives=("rows", "integer"))
def special_ordered_set_binaries(relation: SpecialOrderedSet, draft: BridgeContext) -> None:
    """At most one element, or two neighbours, may differ from 0: special ordered sets (Beale and Tomlin,
    1970).

    With ``L <= x <= U`` from the bounds of the columns. Type 1: ``L_j b_j <= x_j <= U_j b_j``, ``sum_j
    b_j <= 1`` with d binaries and 2 d + 1 rows for each set. Type 2: a binary for each pair of
    neighbours, of which at most one is chosen: d - 1 binaries, 2 d + 1 rows. Takes
    ``special_ordered_set``, gives rows and integers. Exact.
    """
    x = relation.expression
    count, dim = x.shape
    if dim <= relation.order:
        return
    low, high = draft.finite_interval(x, "special_ordered_set_binaries")
    low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
    chosen = draft.column("chosen", (count, dim - relation.order + 1), 0.0, 1.0, integer=True)
    draft.row(chosen.sum(axis=1) <= 1)
    on = chosen
    if relation.order == 2:
        none = np.zeros((count, 1))
        on = concatenate([chosen, none], axis=1) + concatenate([none, chosen], axis=1)
    draft.row(x >= low * on, x <= high * on)


@bridge("all_different", gives=("rows", "integer"))
def all_different_assignment(relation: AllDifferent, draft: BridgeContext) -> None:
    """Integers that are all different, as an assignment of values.

    ``x_i = sum_v v y_iv``, ``sum_v y_iv = 1``, ``sum_i y_iv <= 1`` for the values v between the bounds
    of the columns. Takes ``all_different``, gives rows and integers: for n elements and V values n V
    binaries and 2 n + V rows. Exact.
    """
    x = relation.expression
    low, high = draft.finite_interval(x, "all_different_assignment")
    values = np.arange(np.ceil(low.min()), np.floor(high.max()) + 1)
    able = (low[:, None] <= values) & (values <= high[:, None])
    takes = draft.column("takes", able.shape, 0.0, able.astype(float), integer=True)
    draft.row(takes.sum(axis=1) == 1, takes.sum(axis=0) <= 1, takes @ values == x)


@bridge("piecewise_linear", gives=("rows", "integer"))
def piecewise_linear_binaries(relation: AtomRelation, draft: BridgeContext) -> None:
    """``t = f(x)`` for a piecewise linear f of any shape, by filling its segments one after the other.

    ``x = L + sum_k d_k`` and ``t = f(L) + sum_k slope_k d_k`` with ``0 <= d_k <= length_k``, where a
    binary marks that segment k is full before the next may begin: ``length_k z_k <= d_k`` and ``d_(k+1)
    <= length_(k+1) z_k`` (the incremental formulation of Markowitz and Manne, 1957, which is locally
    ideal: Padberg, 2000). The ends ``L <= x <= U`` come from the bounds of the columns. Takes
    ``piecewise_linear``, gives rows and integers: for K segments within the bounds K columns, K - 1
    binaries and 2 K rows for each element. Exact.
    """
    (x,) = relation.arguments
    low, high = draft.finite_interval(x, "piecewise_linear_binaries")
    inner = np.clip(relation.parameter[0], low[:, None], high[:, None])
    ends = np.concatenate([low[:, None], inner, high[:, None]], axis=1)
    values = relation.atom.evaluate([ends], relation.parameter)
    used = np.flatnonzero((np.diff(ends, axis=1) > 0).any(axis=0))
    length = np.diff(ends, axis=1)[:, used]
    slope = np.divide(np.diff(values, axis=1)[:, used], length, out=np.zeros_like(length), where=length > 0)
    filled = draft.column("filled", length.shape, 0.0, length)
    draft.row(x == low + filled.sum(axis=1), relation.result == values[:, 0] + (slope * filled).sum(axis=1))
    if len(used) > 1:
        full = draft.column("full", (len(low), len(used) - 1), 0.0, 1.0, integer=True)
        draft.row(filled[:, :-1] >= length[:, :-1] * full, filled[:, 1:] <= length[:, 1:] * full)


@bridge("connected")
def connected_flow(relation: Connected, draft: BridgeContext) -> None:
    """A connected set of nodes, as a single-commodity flow from one root among them.

    One chosen node may be the root; it sends one unit to every chosen node, through chosen nodes only: flow
    into a node, plus its supply as the root, equals its membership plus the outflow, and arcs that touch a
    node not chosen carry nothing. For n nodes and m edges: takes ``connected``, gives 2 n + 4 m + 1 rows
    with n new binaries and n + 2 m other new columns. Exact; a weak relaxation (each arc's capacity is
    n - 1).
    """
    member = relation.member
    nodes = member.size
    arcs = np.concatenate([relation.edges, relation.edges[:, ::-1]])
    count = len(arcs)
    into = sp.csr_array((np.ones(count), (arcs[:, 1], np.arange(count))), shape=(nodes, count))
    out_of = sp.csr_array((np.ones(count), (arcs[:, 0], np.arange(count))), shape=(nodes, count))
    root = draft.column("root", nodes, 0.0, 1.0, integer=True)
    supply = draft.column("supply", nodes, 0.0, float(nodes), implied_integer=True)
    draft.row(root.sum() <= 1, supply <= nodes * root)
    if count == 0:
        draft.row(supply == member)
        return
    flow = draft.column("flow", count, 0.0, float(nodes - 1), implied_integer=True)
    draft.row(into @ flow - out_of @ flow + supply == member, flow <= (nodes - 1) * member[arcs[:, 1]])
    draft.row(flow <= (nodes - 1) * member[arcs[:, 0]])


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
    relation: NoOverlap | Cumulative, draft: BridgeContext, demands: Array | None = None, capacity: int = 1
) -> Schedule:
    """Write the intervals with one column for each start, and one for each duration and end that varies."""
    fixed = relation.duration.is_constant
    size = np.asarray(relation.duration.constant)
    if fixed and (size != np.round(size)).any():
        raise UnsupportedError("an interval's duration is no integer; a backend of schedules needs integers")
    always = relation.present.is_constant and bool(relation.present.constant.all())
    known = {"duration": fixed, "end": fixed, "present": always}
    parts = (None if k else _columns(getattr(relation, name), draft, name) for name, k in known.items())
    duration, end, present = parts
    start = _columns(relation.start, draft, "start")
    return Schedule(start, duration, end, present, size, demands, capacity)


def _columns(expression: Expression, draft: BridgeContext, label: str) -> Array:
    """A bounded integer column equal to each element: its own, or a new one."""
    low, high = draft.finite_interval(expression, f"a schedule's {label}")
    return draft.columns_of(expression, label, np.ceil(low), np.floor(high), integer=True)


@bridge("no_overlap", gives=("implication", "rows", "integer"), cost=_MANY)
def no_overlap_pairs(relation: NoOverlap, draft: BridgeContext) -> None:
    """For each pair a binary for its order (Manne, 1960), which implies that one ends as the other starts.

    One binary a pair, 1 for one order and 0 for the other. Where intervals may be absent there are two, with
    ``before_ij + before_ji >= present_i + present_j - 1``. Takes ``no_overlap``, gives ``implication``, rows
    and integers: two implications a pair. Exact; backends without indicator rows need bounds on the times,
    see the bridge ``big_m``.
    """
    i, j = np.triu_indices(relation.start.size, 1)
    if not i.size:
        return
    first = draft.column("before", i.shape, 0.0, 1.0, integer=True)
    present = relation.present
    if present.is_constant and bool(present.constant.all()):
        second = 1 - first
    else:
        second = draft.column("after", i.shape, 0.0, 1.0, integer=True)
        draft.row(first + second >= present[i] + present[j] - 1)
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
    draft.relation(Implication(later, start[i] - start[j] >= 1), Implication(ended, end[i] <= start[j]))
    draft.row(runs >= present[i] + present[j] - 1 - later - ended)
    at_start = np.zeros((n, i.size))
    at_start[j, np.arange(i.size)] = demand[i]
    draft.row(own + at_start @ runs <= relation.capacity)
