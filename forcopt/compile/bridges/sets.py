"""Sets that need new columns: semicontinuous, connected.

All are exact.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from forcopt.compile.bridge_context import BridgeContext, bridge
from forcopt.language.constraint import Connected
from forcopt.language.semicontinuous import Semicontinuous


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
