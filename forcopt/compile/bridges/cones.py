"""Atoms as cones: logarithms and exponentials, powers and means, norms and squares, matrices.

All are exact. Cones that a solver of rows is given are cut by tangents, see `forcopt.backends.outer`.
"""

from __future__ import annotations

import numpy as np

from forcopt.compile.bridge_context import BridgeContext, bridge
from forcopt.compile.scaling import unit_of
from forcopt.language.atom import SUM_SQUARES
from forcopt.language.joins import concatenate, stack
from forcopt.language.matrices import Semidefinite, asymmetric_entries
from forcopt.language.relations import (
    AtomRelation,
    ExponentialCone,
    OuterSecondOrderCone,
    OuterSemidefiniteCone,
    PowerCone,
    SecondOrderCone,
    SemidefiniteCone,
)


@bridge("log", gives=("exponential",))
def log_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """``t <= log(x)`` as ``(t, 1, x)`` in the exponential cone.

    Takes ``log``, gives ``exponential``: one cone for each element. Exact.
    """
    (x,) = relation.arguments
    draft.relation(ExponentialCone(relation.result, 0 * x + 1.0, x))


@bridge("exp", gives=("exponential",))
def exp_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """``t >= exp(x)`` as ``(x, 1, t)`` in the exponential cone.

    Takes ``exp``, gives ``exponential``: one cone for each element. Exact.
    """
    (x,) = relation.arguments
    draft.relation(ExponentialCone(x, 0 * x + 1.0, relation.result))


@bridge("entropy", gives=("exponential",))
def entropy_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """``t <= -x log(x)`` as ``(t, x, 1)`` in the exponential cone: ``x exp(t / x) <= 1``.

    Takes ``entropy``, gives ``exponential``: one cone for each element. Exact on the closure (``0 log 0
    = 0``).
    """
    (x,) = relation.arguments
    draft.relation(ExponentialCone(relation.result, x, 0 * x + 1.0))


@bridge("kl_div", gives=("exponential",))
def kl_div_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """``t >= x log(x / y) - x + y`` as ``x exp(-(t + x - y) / x) <= y``.

    Takes ``kl_div``, gives ``exponential``: one cone for each element. Exact on the closure.
    """
    x, y = relation.arguments
    draft.relation(ExponentialCone(y - x - relation.result, x, y))


@bridge("logistic", gives=("exponential", "rows"))
def logistic_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """``t >= log(1 + exp(x))`` as ``exp(-t) + exp(x - t) <= 1``.

    Takes ``logistic``, gives ``exponential`` and rows: two cones and one row for each element, with two
    new columns. Exact.
    """
    (x,) = relation.arguments
    t = relation.result
    one = 0 * x + 1.0
    first = draft.column("logistic", x.shape, lower=0.0, upper=1.0)
    second = draft.column("logistic", x.shape, lower=0.0, upper=1.0)
    draft.relation(ExponentialCone(-t, one, first), ExponentialCone(x - t, one, second))
    draft.row(first + second <= 1)


@bridge("log_sum_exp", gives=("exponential", "rows"))
def log_sum_exp_cones(relation: AtomRelation, draft: BridgeContext) -> None:
    """``t >= log(sum_j exp(x_j))`` as ``exp(x_j - t) <= u_j`` for every j and ``sum_j u_j <= 1``.

    Takes ``log_sum_exp``, gives ``exponential`` and rows: d cones and one row for each element, with d
    new columns. Exact.
    """
    (x,) = relation.arguments
    share = draft.column("share", x.shape, 0.0, 1.0)
    inside = (x - relation.result[:, None]).ravel()
    draft.relation(ExponentialCone(inside, 0 * inside + 1.0, share.ravel()))
    draft.row(share.sum(axis=1) <= 1)


@bridge("even_power", gives=("power_cone",))
def even_power_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """Write ``t >= |x|**p`` as ``t**(1/p) * 1**(1 - 1/p) >= |x|``."""
    (x,) = relation.arguments
    draft.relation(PowerCone(relation.result, 0 * x + 1.0, x, 1.0 / relation.parameter))


@bridge("convex_power", gives=("power_cone", "rows"))
def convex_power_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """Write ``t >= x**p``, p > 1, ``x >= 0``, as for even powers."""
    even_power_cone(relation, draft)
    draft.row(relation.arguments[0] >= 0)


@bridge("concave_power", gives=("power_cone",))
def concave_power_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """Write ``t <= x**p``, 0 < p < 1, as ``x**p * 1**(1 - p) >= |t|``; more of t never hurts."""
    (x,) = relation.arguments
    draft.relation(PowerCone(x, 0 * x + 1.0, relation.result, relation.parameter))


@bridge("negative_power", gives=("power_cone",))
def negative_power_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """Write ``t >= x**p``, p < 0, as ``t**a * x**(1 - a) >= 1`` with ``a = 1 / (1 - p)``."""
    (x,) = relation.arguments
    draft.relation(PowerCone(relation.result, x, 0 * x + 1.0, 1.0 / (1.0 - relation.parameter)))


@bridge("norm_p", gives=("power_cone", "rows"))
def norm_p_cones(relation: AtomRelation, draft: BridgeContext) -> None:
    """``t >= (sum_j |x_j|**p)**(1/p)`` as ``r_j**(1/p) * t**(1 - 1/p) >= |x_j|`` and ``sum_j r_j <= t``.

    Takes ``norm_p`` (p > 1), gives ``power_cone`` and rows: d cones and one row for each element, with d
    new columns. Exact.
    """
    (x,) = relation.arguments
    share = draft.column("share", x.shape, 0.0)
    whole = relation.result[:, None].broadcast_to(x.shape)
    draft.relation(PowerCone(share.ravel(), whole.ravel(), x.ravel(), 1.0 / relation.parameter))
    draft.row(share.sum(axis=1) <= relation.result)


@bridge("geometric_mean", gives=("power_cone", "rows"))
def geometric_mean_cones(relation: AtomRelation, draft: BridgeContext) -> None:
    """``t <= x_1**w_1 * ... * x_d**w_d``, weights that sum to one, as a chain of power cones.

    ``y_1 = x_1`` and ``y_k <= y_(k-1)**a * x_k**(1 - a)`` with ``a = (w_1 + ... + w_(k-1)) / (w_1 + ...
    + w_k)``; ``t = y_d``. Takes ``geometric_mean``, gives ``power_cone`` and rows: d - 1 cones for each
    element, with d - 2 new columns (two rows and no cone if d is 1). Exact, since a larger t is never
    worse.
    """
    (x,) = relation.arguments
    count, dim = x.shape
    if dim == 1:
        draft.row(relation.result <= x[:, 0], x[:, 0] >= 0)
        return
    total = np.cumsum(relation.parameter)
    mean = x[:, 0]
    for k in range(1, dim):
        longer = relation.result if k == dim - 1 else draft.column("mean", count, 0.0)
        draft.relation(PowerCone(mean, x[:, k], longer, float(total[k - 1] / total[k])))
        mean = longer


@bridge("norm_2", gives=("second_order",))
def norm_2_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """``t >= norm2(x)`` is the second-order cone itself.

    Takes ``norm_2``, gives ``second_order``: one cone for each element. Exact.
    If the largest entry is far from 1, all are given in its unit.
    """
    vector = relation.arguments[0]
    unit = unit_of(vector.linear_rows().data)
    draft.relation(SecondOrderCone(relation.result / unit, vector / unit))


@bridge("sum_squares", gives=("second_order",))
def sum_squares_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """``t >= sum_j x_j**2`` as ``norm2(2 x, t - 1) <= t + 1``.

    Takes ``sum_squares``, gives ``second_order``: one cone for each element. Exact. A sum of squares
    that occurs in the objective only is passed to quadratic backends as it is; then this bridge is not
    used.
    """
    t = relation.result
    draft.relation(SecondOrderCone(t + 1, concatenate([2 * relation.arguments[0], (t - 1)[:, None]], axis=1)))


@bridge("quad_over_lin", gives=("second_order",))
def quad_over_lin_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """``t >= sum_j x_j**2 / y``, ``y >= 0``, as ``norm2(2 x, t - y) <= t + y``.

    Takes ``quad_over_lin``, gives ``second_order``: one cone for each element. Exact on the closure (y
    may be 0 if x is).
    """
    x, y = relation.arguments
    t = relation.result
    draft.relation(SecondOrderCone(t + y, concatenate([2 * x, (t - y)[:, None]], axis=1)))


@bridge("inverse", gives=("second_order",))
def inverse_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """``t >= 1 / x``, ``x > 0``, as ``norm2(2, t - x) <= t + x``.

    Takes ``inverse``, gives ``second_order``: one cone for each element. Exact.
    """
    (x,) = relation.arguments
    t = relation.result
    draft.relation(SecondOrderCone(t + x, stack([0 * x + 2.0, t - x], axis=1)))


@bridge("huber", gives=("sum_squares", "rows"))
def huber_cone(relation: AtomRelation, draft: BridgeContext) -> None:
    """``t >= huber(x)`` as ``t >= q + 2 M s`` with ``|x| <= n + s``, ``q >= n**2``, ``n, s >= 0``.

    The least such t has n = min(|x|, M) and s = |x| - n. Takes ``huber``, gives ``sum_squares`` and
    rows: one square and three rows for each element, with three new columns. Exact.
    """
    (x,) = relation.arguments
    near = draft.column("near", x.shape, 0.0)
    far = draft.column("far", x.shape, 0.0)
    square = draft.column("square", x.shape, 0.0)
    draft.relation(AtomRelation(SUM_SQUARES, square, (near[:, None],)))
    draft.row(near + far >= x, near + far >= -x, relation.result >= square + 2 * relation.parameter * far)


@bridge("semidefinite", gives=("semidefinite_cone", "rows"))
def semidefinite_cone(relation: Semidefinite, draft: BridgeContext) -> None:
    """Symmetric semidefinite matrices as cones over their lower triangles.

    Takes ``semidefinite``, gives ``semidefinite_cone`` and rows: one cone for each matrix, and one row
    for each pair of entries across the diagonal that are different expressions. Exact.
    """
    matrices = relation.expression
    rows, columns = np.tril_indices(matrices.shape[1])
    draft.relation(SemidefiniteCone(matrices[:, rows, columns], matrices.shape[1]))
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
    draft.relation(ExponentialCone(logs.ravel(), (0 * diagonal + 1.0).ravel(), diagonal.ravel()))
    draft.row(relation.result <= logs.sum(axis=1))


_LAST = 100.0
"""The cost of bridges to cones by tangents: only for solvers that take no cones."""


@bridge("second_order", gives=("tangents", "rows"), cost=_LAST)
def second_order_tangents(relation: SecondOrderCone, draft: BridgeContext) -> None:
    """``norm2(x) <= t`` as ``x_i**2 <= y_i t`` for every i and ``sum_i y_i <= t``, to be cut by tangents.

    A tangent of one of these cones of three entries bounds many choices of the others (Vielma, Dunning,
    Huchette and Lubin, 2017). Takes ``second_order``, gives ``tangents`` and rows: for each element of size d
    > 2 d cones and one row, with d new columns. Exact up to the tolerance of the tangents.
    """
    count, dim = relation.vector.shape
    unit = min(1.0, unit_of(relation.bound.linear_rows().data))  # tangents keep to the rows' own accuracy
    relation = SecondOrderCone(relation.bound / unit, relation.vector / unit)
    if dim <= 2:
        draft.relation(OuterSecondOrderCone(relation.bound, relation.vector))
        return
    share = draft.column("share", (count, dim), 0.0)
    draft.row(share.sum(axis=1) <= relation.bound)
    whole = relation.bound[:, None].broadcast_to((count, dim)).ravel()
    sides = stack([2 * relation.vector.ravel(), share.ravel() - whole], axis=1)
    draft.relation(OuterSecondOrderCone(share.ravel() + whole, sides))


@bridge("semidefinite_cone", gives=("tangents",), cost=_LAST)
def semidefinite_tangents(relation: SemidefiniteCone, draft: BridgeContext) -> None:
    """A semidefinite matrix M, to be cut by rows ``u' M u >= 0`` for eigenvectors u of negative eigenvalues.

    Takes ``semidefinite_cone``, gives ``tangents``. Exact up to the tolerance of the tangents; the number of
    rounds grows fast with the order.
    """
    draft.relation(OuterSemidefiniteCone(relation.entries, relation.order))
