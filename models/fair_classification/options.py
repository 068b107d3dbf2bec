"""The checks of options that several methods share."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from forcopt.errors import DeclarationError

__all__ = ["check_options", "is_whole"]


def is_whole(value: Any) -> bool:
    """Whether a value is an integer of Python or numpy, and no truth value."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def check_options(
    *, accuracy: float = 0.0, bound: float | None = None, rounds: int | None = None, beta: float = 0.5
) -> None:
    """Check the options that are given.

    Parameters
    ----------
    accuracy : float, default 0.0
        At least 0.
    bound : float, optional
        On the sum of the multipliers, above 0.
    rounds : int, optional
        At least 1.
    beta : float, default 0.5
        A probability of failure, strictly between 0 and 1.

    Raises
    ------
    DeclarationError
        Naming the option.
    """
    if not 0 <= accuracy < inf:
        raise DeclarationError(f"accuracy is {accuracy!r}; it must be at least 0 and finite")
    if bound is not None and not 0 < bound < inf:
        raise DeclarationError(f"bound is {bound!r}; it must be positive and finite")
    if rounds is not None and (not is_whole(rounds) or rounds < 1):
        raise DeclarationError(f"rounds is {rounds!r}; it must be a whole number of at least 1")
    if not 0 < beta < 1:
        raise DeclarationError(f"beta is {beta!r}; it must be strictly between 0 and 1")
