"""Decide exactly whether a rational symmetric matrix is positive semidefinite."""

from __future__ import annotations

from collections.abc import Sequence

from flint import fmpz

from forcopt.loops.exact_lp import Rational

__all__ = ["is_semidefinite"]


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
