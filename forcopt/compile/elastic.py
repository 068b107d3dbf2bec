"""Elastic programs: rows that may be violated at a cost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.compile.program import Cone, Program, RowBlock, StageCost

__all__ = ["elastic", "row_scales"]


def row_scales(rows: RowBlock) -> Array:
    """Return for each row the power of two nearest to its largest entry; 1 for an empty row."""
    sizes = np.ones(rows.count)
    filled = np.flatnonzero(np.diff(rows.indptr))
    if filled.size:
        sizes[filled] = np.maximum.reduceat(np.abs(rows.data), rows.indptr[filled])
    return np.asarray(np.exp2(np.round(np.log2(np.where(sizes > 0, sizes, 1.0)))))


def elastic(program: Program, scales: Array, weights: Array) -> tuple[Program, Array, Array]:
    """Minimize the weighted sum of row violations instead of the objective.

    Parameters
    ----------
    program : Program
        Of any kind; cones, indicators and integrality stay hard.
    scales : Array
        For each row the violation that one unit of its slack columns allows, shape ``(rows,)``.
    weights : Array
        For each row the cost of one unit of slack; infinite for a row that stays hard.

    Returns
    -------
    program : Program
        With slack columns after the program's own, ``scales`` times a slack added to its row.
    rows : Array
        The row of each slack column.
    signs : Array
        1 for a slack that repairs the row's lower side, -1 for its upper side.
    """
    rows, n = program.rows, program.columns
    soft = np.isfinite(weights)
    lacking, excess = (np.flatnonzero(soft & np.isfinite(side)) for side in (rows.lower, rows.upper))
    at, signs = np.concatenate([lacking, excess]), np.repeat([1.0, -1.0], [len(lacking), len(excess)])
    count = len(at)
    slack = sp.csr_array((signs * scales[at], (at, np.arange(count))), shape=(rows.count, count))
    wide = sp.csr_array(sp.hstack([program.matrix(), slack], format="csr"))
    block = RowBlock(
        wide.indptr.astype(np.int32), wide.indices.astype(np.int32), wide.data, rows.lower, rows.upper
    )
    cost = np.concatenate([np.zeros(n), weights[at]])
    softened = replace(
        program,
        lower=np.concatenate([program.lower, np.zeros(count)]),
        upper=np.concatenate([program.upper, np.full(count, np.inf)]),
        integer=np.concatenate([program.integer, np.zeros(count, dtype=np.int8)]),
        rows=block,
        cones=tuple(_widened(c, n + count) for c in program.cones),
        stages=(StageCost(cost, 0.0, False),),
        lazies=(),
        callbacks=(),
    )
    return softened, at, signs


def _widened(cone: Cone, columns: int) -> Cone:
    matrix = sp.csr_array(cone.matrix)
    shape = (matrix.shape[0], columns)
    return replace(cone, matrix=sp.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=shape))
