"""Eigenvalues, determinants and nuclear norms as semidefinite cones.

All are exact.
"""

from __future__ import annotations

import numpy as np

from forcopt.compile.bridge_context import BridgeContext
from forcopt.compile.bridges.base import bridge
from forcopt.language.joins import concatenate
from forcopt.language.matrices import Semidefinite, asymmetric_entries
from forcopt.language.relations import AtomRelation, ExponentialCone, SemidefiniteCone


@bridge("semidefinite", gives=("semidefinite_cone", "rows"))
def semidefinite_cone(relation: Semidefinite, draft: BridgeContext) -> None:
    """Symmetric semidefinite matrices as cones over their lower triangles.

    Takes ``semidefinite``, gives ``semidefinite_cone`` and rows: one cone for each matrix, and one row
    for each pair of entries across the diagonal that are different expressions. Exact.
    """
    matrices = relation.expression
    rows, columns = np.tril_indices(matrices.shape[1])
    draft.relation(SemidefiniteCone(matrices[:, rows, columns], matrices.shape[1], relation))
    which, i, j = asymmetric_entries(matrices)
    if which.size:
        draft.row(matrices[which, i, j] == matrices[which, j, i])


@bridge("lambda_max", gives=("semidefinite_cone",))
def lambda_max_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """``t >= lambda_max(M)`` as: ``t I - M`` is positive semidefinite.

    Takes ``lambda_max``, gives ``semidefinite_cone``: one of order n for each element. Exact.
    """
    (flat,) = relation.arguments
    order = round(flat.shape[1] ** 0.5)
    rows, columns = np.tril_indices(order)
    top = relation.result[:, None] * (rows == columns).astype(float)
    draft.relation(SemidefiniteCone(top - flat[:, rows * order + columns], order))


@bridge("nuclear_norm", gives=("semidefinite_cone", "rows"))
def nuclear_norm_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """``t >= ||M||_*`` as: ``[[U, M], [M', V]]`` is positive semidefinite and ``tr U + tr V <= 2 t``.

    The least such t is the sum of the singular values (Fazel, Hindi and Boyd, 2001, Lemma 1). Takes
    ``nuclear_norm``, gives ``semidefinite_cone`` and rows: for each p-by-q element one cone of order p +
    q and one row, with columns for the lower triangles of U and V. Exact.
    """
    (flat,) = relation.arguments
    p, q = relation.parameter
    count = flat.shape[0]
    left = draft.column("left", (count, p * (p + 1) // 2))
    right = draft.column("right", (count, q * (q + 1) // 2))
    everything = concatenate([left, right, flat], axis=1)
    rows, columns = np.tril_indices(p + q)
    first = left.shape[1]
    place = np.where(
        rows < p,
        rows * (rows + 1) // 2 + columns,
        np.where(
            columns < p,
            first + right.shape[1] + columns * q + (rows - p),  # M' stands below the diagonal
            first + (rows - p) * (rows - p + 1) // 2 + (columns - p),
        ),
    )
    draft.relation(SemidefiniteCone(everything[:, place], p + q))
    diagonals = [np.arange(1, n + 1) * np.arange(2, n + 2) // 2 - 1 for n in (p, q)]
    draft.row(left[:, diagonals[0]].sum(axis=1) + right[:, diagonals[1]].sum(axis=1) <= 2 * relation.result)


@bridge("log_det", gives=("semidefinite_cone", "exponential", "rows"))
def log_det_cones(relation: AtomRelation, draft: BridgeContext) -> None:
    """``t <= log det M`` by a triangular factor: ``[[M, Z], [Z', diag Z]]`` semidefinite, ``t <= sum log
    Z_ii``.

    Z is lower triangular; ``Z = L D`` for ``M = L D L'`` gives the greatest sum (Ben-Tal and Nemirovski,
    2001, section 4.2). Takes ``log_det``, gives ``semidefinite_cone``, ``exponential`` and rows: for
    each element of order n one cone of order 2 n, n exponential cones and one row, with n (n + 3) / 2
    new columns. Exact.
    """
    (flat,) = relation.arguments
    count, n = flat.shape[0], round(flat.shape[1] ** 0.5)
    factor = draft.column("factor", (count, n * (n + 1) // 2))
    logs = draft.column("log", (count, n))
    diagonal = factor[:, np.arange(1, n + 1) * np.arange(2, n + 2) // 2 - 1]
    everything = concatenate([flat, factor, 0 * flat[:, :1]], axis=1)
    rows, columns = np.tril_indices(2 * n)
    below, zero = rows - n, n * n + factor.shape[1]
    # The block below the diagonal is Z', whose entry (i, j) is Z[j, i]; the last one is diag Z.
    turned = np.where(columns >= below, n * n + columns * (columns + 1) // 2 + below, zero)
    last = np.where(rows == columns, n * n + below * (below + 1) // 2 + below, zero)
    place = np.where(rows < n, rows * n + columns, np.where(columns < n, turned, last))
    draft.relation(SemidefiniteCone(everything[:, place], 2 * n))
    one = 0 * diagonal + 1.0
    draft.relation(ExponentialCone(logs.ravel(), one.ravel(), diagonal.ravel()))
    draft.row(relation.result <= logs.sum(axis=1))
