"""Checks of the operands of an expression: numbers, arrays, sparse matrices, axes and indices."""

from __future__ import annotations

from types import EllipsisType
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.lib.array_utils import normalize_axis_tuple

from forcopt.arrays import as_numbers, check_real
from forcopt.errors import DeclarationError

__all__ = ["Operand", "check_matmul", "dense", "matrix_operand", "normalized_axes", "repeats_nothing"]

Operand = Any
"""An expression, a number, or anything numpy reads as an array of numbers."""


def is_sparse(data: Any) -> bool:
    """Whether `data` is a sparse matrix or array of scipy."""
    return bool(sp.issparse(data))


def dense(data: Operand) -> Any:
    """Give an elementwise operand as something numpy reads."""
    return data.toarray() if is_sparse(data) else data


def matrix_operand(data: Any) -> Any:
    """Read one side of ``@``: a dense vector, or a canonical CSR matrix (which may share memory)."""
    subject = "the multiplying array"
    if not is_sparse(data) or data.ndim != 2:
        values = as_numbers(dense(data), subject)
        return sp.csr_array(values) if values.ndim == 2 else values
    check_real(data.dtype, subject)
    rows = sp.csr_array(data, dtype=float)
    if not np.isfinite(rows.data).all():
        entries = rows.tocoo()
        at = int(np.argmax(~np.isfinite(entries.data)))
        where = f"[{entries.row[at]}, {entries.col[at]}]"
        raise DeclarationError(f"{subject}{where} is {entries.data[at]}; it must be finite")
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def normalized_axes(axes: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Read one or several axes of an array of that shape."""
    try:
        return tuple(int(a) for a in normalize_axis_tuple(axes, len(shape)))
    except (TypeError, ValueError) as error:
        raise DeclarationError(f"axis {axes} does not fit shape {shape}: {error}") from None


def repeats_nothing(key: Any) -> bool:
    """Whether the type of an index shows that it picks no element twice."""
    return isinstance(key, int | np.integer | slice | EllipsisType | None) or (
        isinstance(key, np.ndarray) and key.dtype == bool
    )


def check_matmul(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    """Check that two shapes fit ``@``.

    Raises
    ------
    DeclarationError
        Showing both shapes.
    """
    if not (1 <= len(left) <= 2 and 1 <= len(right) <= 2):
        raise DeclarationError(f"@ takes one or two axes on each side, not shapes {left} and {right}")
    if left[-1] != right[0]:
        raise DeclarationError(f"@: shapes {left} and {right} do not match ({left[-1]} against {right[0]})")
