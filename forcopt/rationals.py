"""Exact rational numbers: those of python-flint, or of Python's ``fractions`` where that is not installed.

They give the same results. Those of python-flint are ten to a hundred times as fast.
"""

# mypy: disable-error-code="no-redef"
import math

try:
    from flint import fmpq, fmpq_mat, fmpz
except ImportError:
    from fractions import Fraction as fmpq

    fmpq_mat, fmpz = None, int

__all__ = ["ceil", "floor", "fmpq", "fmpz", "solve_dense"]


def floor(value: fmpq) -> int:
    """The largest whole number that is no larger, as Python's."""
    return int(math.floor(value))  # noqa: RUF046 - of python-flint it is no int


def ceil(value: fmpq) -> int:
    """The smallest whole number that is no smaller, as Python's."""
    return int(math.ceil(value))  # noqa: RUF046


def solve_dense(matrix: list[list[fmpq]], target: list[fmpq]) -> list[fmpq] | None:
    """Solve a square system of equations by elimination.

    Parameters
    ----------
    matrix : list of list of fmpq
        The rows of coefficients.
    target : list of fmpq
        The right-hand sides.

    Returns
    -------
    list of fmpq or None
        The solution; None if the matrix is singular.

    Examples
    --------
    >>> solve_dense([[fmpq(3), fmpq(2)], [fmpq(2), fmpq(3)]], [fmpq(1), fmpq(0)]) == [fmpq(3, 5), fmpq(-2, 5)]
    True
    """
    size = len(matrix)
    if fmpq_mat is not None:
        try:
            found = fmpq_mat(size, size, [a for row in matrix for a in row]).solve(fmpq_mat(size, 1, target))
        except ZeroDivisionError:
            return None
        return [found[k, 0] for k in range(size)]
    rows = [[*row, b] for row, b in zip(matrix, target, strict=True)]
    for k in range(size):
        at = next((i for i in range(k, size) if rows[i][k]), None)
        if at is None:
            return None
        rows[k], rows[at] = rows[at], rows[k]
        rows[k] = [a / rows[k][k] for a in rows[k]]
        for i in range(size):
            if i != k and (factor := rows[i][k]):
                rows[i] = [a - factor * b for a, b in zip(rows[i], rows[k], strict=True)]
    return [row[size] for row in rows]
