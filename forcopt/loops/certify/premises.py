"""The premises of a proof: roundings before exact arithmetic began; and which forms are convex, exactly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from flint import fmpq, fmpz

from forcopt.language.model import Model
from forcopt.language.relations import AtomRelation, ParameterProduct
from forcopt.loops.exact_lp import Rational, rational

NOT_CONVEX = "which is not proved to be convex"
"""Stands in a premise that keeps an optimum from being proved."""

_LARGEST = 60
"""Forms of more variables are not proved to be convex: too slow."""


def premises(model: Model) -> Iterator[str]:
    """List the roundings: forms into sums of squares, slopes into numbers, parameters into products."""
    relations = model.needed_relations()
    for relation in relations:
        if not isinstance(relation, AtomRelation):
            continue
        name = model.block_of(int(relation.result_columns[0])).name
        if relation.kind == "sum_squares" and relation.parameter is not None:
            form, root = relation.parameter
            apart = (root.T @ root - form).tocsr()
            off = float(np.abs(apart.data).max(initial=0.0))
            if off:
                proved = _is_convex(form)
                words = "" if proved else f", {NOT_CONVEX}"
                yield f"{name} is the sum of squares of its form{words}, up to {off:.1g} in a coefficient"
        elif relation.kind == "piecewise_linear":
            yield f"{name} has the slopes that its points have in floating point"
    if any(isinstance(r, ParameterProduct) for r in relations):
        yield "products with parameters are computed in floating point"


def _is_convex(form: object) -> bool:
    """Whether a quadratic form has no negative eigenvalue, decided exactly."""
    dense = np.asarray(form.toarray())  # type: ignore[attr-defined]
    if len(dense) > _LARGEST:
        return False
    lower = [
        (rational(dense[i, j]) + rational(dense[j, i])) / fmpq(2)
        for i in range(len(dense))
        for j in range(i + 1)
    ]
    return is_semidefinite(lower, len(dense))


def is_semidefinite(triangle: Sequence[Rational], order: int) -> bool:
    """Whether a symmetric matrix has no negative eigenvalue: LDL' without division (Bareiss).

    O(n**3) products of whole numbers, which grow to n times the digits of an entry.

    Parameters
    ----------
    triangle : Sequence[Rational]
        The lower triangle, row by row.
    order : int
        Rows of the matrix.

    References
    ----------
    E. H. Bareiss, "Sylvester's identity and multistep integer-preserving Gaussian elimination", Mathematics
    of Computation 22 (1968).

    Examples
    --------
    >>> from flint import fmpq
    >>> is_semidefinite([fmpq(1), fmpq(2), fmpq(4)], 2), is_semidefinite([fmpq(1), fmpq(2), fmpq(3)], 2)
    (True, False)
    """
    common = fmpz(1)
    for value in triangle:
        common *= value.q // common.gcd(value.q)
    rows, at = [], 0
    for i in range(order):
        rows.append([value.p * (common // value.q) for value in triangle[at : at + i + 1]])
        at += i + 1
    before = fmpz(1)
    for k in range(order):
        pivot = rows[k][k]
        if pivot < 0:
            return False
        if pivot == 0:  # then all that stands below must be zero
            if any(rows[i][k] for i in range(k + 1, order)):
                return False
            continue
        for i in range(k + 1, order):
            row, factor = rows[i], rows[i][k]
            for j in range(k + 1, i + 1):
                row[j] = (pivot * row[j] - factor * rows[j][k]) // before
        before = pivot
    return True
