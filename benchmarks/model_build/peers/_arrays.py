"""The models as row-wise arrays, built with numpy alone: what the two raw peers hand over."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..instances import Dense, FloatArray, Hess, IntArray, Transport


@dataclass(frozen=True)
class Arrays:
    """A row-wise linear program; `integrality` is 0 for a continuous and 1 for an integer column."""

    cost: FloatArray
    col_lower: FloatArray
    col_upper: FloatArray
    row_lower: FloatArray
    row_upper: FloatArray
    start: IntArray
    index: IntArray
    value: FloatArray
    integrality: IntArray


def starts(counts: NDArray[np.integer]) -> IntArray:
    """Row starts, with the final one, from the numbers of entries in the rows."""
    start = np.zeros(len(counts) + 1, dtype=np.int32)
    np.cumsum(counts, out=start[1:])
    return start


def dense(data: Dense) -> Arrays:
    """Columns x then y, rows x - y then x + y."""
    n = data.n
    m = n * n
    cost = np.empty(2 * m)
    cost[:m] = 2.0
    cost[m:] = 1.0
    index = np.empty((2, m, 2), dtype=np.int32)
    index[:, :, 0] = np.arange(m, dtype=np.int32)
    index[:, :, 1] = np.arange(m, 2 * m, dtype=np.int32)
    value = np.ones((2, m, 2))
    value[0, :, 1] = -1.0
    row_lower = np.zeros(2 * m)
    row_lower[:m] = np.repeat(np.arange(n, dtype=np.float64), n)
    return Arrays(
        cost=cost,
        col_lower=np.zeros(2 * m),
        col_upper=np.full(2 * m, np.inf),
        row_lower=row_lower,
        row_upper=np.full(2 * m, np.inf),
        start=np.arange(0, 4 * m + 1, 2, dtype=np.int32),
        index=index.reshape(-1),
        value=value.reshape(-1),
        integrality=np.zeros(2 * m, dtype=np.int32),
    )


def transport(data: Transport) -> Arrays:
    """One column per arc, the rows of the sources, then those of the sinks."""
    arcs, sources, sinks = data.n_arcs, data.n_sources, data.n_sinks
    index = np.empty(2 * arcs, dtype=np.int32)
    index[:arcs] = np.arange(arcs, dtype=np.int32)  # the arcs are sorted by tail
    index[arcs:] = np.argsort(data.head, kind="stable")
    counts = np.concatenate(
        [np.bincount(data.tail, minlength=sources), np.bincount(data.head, minlength=sinks)]
    )
    return Arrays(
        cost=data.cost,
        col_lower=np.zeros(arcs),
        col_upper=np.full(arcs, np.inf),
        row_lower=np.concatenate([np.full(sources, -np.inf), data.demand]),
        row_upper=np.concatenate([data.supply, np.full(sinks, np.inf)]),
        start=starts(counts),
        index=index,
        value=np.ones(2 * arcs),
        integrality=np.zeros(arcs, dtype=np.int32),
    )


def hess(data: Hess) -> Arrays:
    """Columns x[i,j], j fastest; rows: assignment, links, lower and upper balance, number of centres."""
    n = data.n
    columns = np.arange(n * n, dtype=np.int32).reshape(n, n)
    diagonal = np.diagonal(columns)
    off = ~np.eye(n, dtype=bool)
    links = n * (n - 1)

    link_index = np.empty((links, 2), dtype=np.int32)
    link_index[:, 0] = columns[off]
    link_index[:, 1] = np.broadcast_to(diagonal, (n, n))[off]
    link_value = np.empty((links, 2))
    link_value[:, 0] = 1.0
    link_value[:, 1] = -1.0

    balance_index = columns.T.reshape(-1)  # row j has x[i,j] for every i
    balance_value = np.empty((2, n, n))
    balance_value[:] = data.population
    np.einsum("ii->i", balance_value[0])[:] -= data.lower
    np.einsum("ii->i", balance_value[1])[:] -= data.upper

    counts = np.concatenate([np.full(n, n), np.full(links, 2), np.full(2 * n, n), [n]])
    return Arrays(
        cost=data.cost.reshape(-1),
        col_lower=np.zeros(n * n),
        col_upper=np.ones(n * n),
        row_lower=np.concatenate(
            [np.ones(n), np.full(links, -np.inf), np.zeros(n), np.full(n, -np.inf), [data.districts]]
        ),
        row_upper=np.concatenate(
            [np.ones(n), np.zeros(links), np.full(n, np.inf), np.zeros(n), [data.districts]]
        ),
        start=starts(counts),
        index=np.concatenate(
            [columns.reshape(-1), link_index.reshape(-1), balance_index, balance_index, diagonal]
        ),
        value=np.concatenate([np.ones(n * n), link_value.reshape(-1), balance_value.reshape(-1), np.ones(n)]),
        integrality=np.ones(n * n, dtype=np.int32),
    )
