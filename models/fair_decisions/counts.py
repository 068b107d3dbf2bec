"""The check of counts that something is divided in proportion to."""

from __future__ import annotations

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError

__all__ = ["check_counts"]


def check_counts(counts: Array, name: str) -> None:
    """Check that counts form a list of numbers >= 0 with a positive sum.

    Parameters
    ----------
    counts : Array
        Finite numbers.
    name : str
        The field, for messages.

    Raises
    ------
    DeclarationError
        With the field, the value and the rule.

    Examples
    --------
    >>> check_counts(np.array([3.0, -1.0]), "populations")
    Traceback (most recent call last):
    forcopt.errors.DeclarationError: populations[1] is -1; it must be at least 0
    """
    if counts.ndim != 1 or not counts.size:
        raise DeclarationError(f"{name} has shape {counts.shape}; it must be a list of at least one number")
    if (counts < 0).any():
        at = int(np.argmax(counts < 0))
        raise DeclarationError(f"{name}[{at}] is {counts[at]:g}; it must be at least 0")
    if not counts.any():
        raise DeclarationError(f"{name} is 0 everywhere; one number must be above 0")
