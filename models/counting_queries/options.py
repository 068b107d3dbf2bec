"""The checks of options that several methods share."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np

__all__ = ["is_number", "is_whole"]


def is_whole(value: Any) -> bool:
    """Whether a value is an integer of Python or numpy, and no truth value."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Whether a value is a finite real number, and no truth value."""
    real = isinstance(value, int | float | np.integer | np.floating)
    return real and not isinstance(value, bool) and isfinite(value)
