"""Sets that need new columns: semicontinuous, ordered, piecewise linear, connected.

All are exact.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from forcopt.compile.bridge_context import BridgeContext, bridge
from forcopt.language.constraint import Connected
from forcopt.language.joins import concatenate
from forcopt.language.relations import AtomRelation
from forcopt.language.special_sets import Semicontinuous, SpecialOrderedSet


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
    draft.row(x >= lower * on)
    draft.row(x <= upper * on)


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
    draft.row(x >= low * on)
    draft.row(x <= high * on)


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
    draft.row(x == low + filled.sum(axis=1))
    draft.row(relation.result == values[:, 0] + (slope * filled).sum(axis=1))
    if len(used) > 1:
        full = draft.column("full", (len(low), len(used) - 1), 0.0, 1.0, integer=True)
        draft.row(filled[:, :-1] >= length[:, :-1] * full)
        draft.row(filled[:, 1:] <= length[:, 1:] * full)


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
    draft.row(root.sum() <= 1)
    draft.row(supply <= nodes * root)
    if count == 0:
        draft.row(supply == member)
        return
    flow = draft.column("flow", count, 0.0, float(nodes - 1), implied_integer=True)
    draft.row(into @ flow - out_of @ flow + supply == member)
    draft.row(flow <= (nodes - 1) * member[arcs[:, 1]])
    draft.row(flow <= (nodes - 1) * member[arcs[:, 0]])
