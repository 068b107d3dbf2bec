"""The loss of one statistic with Laplace noise under a design."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np

from forcopt.arrays import as_numbers
from forcopt.errors import DeclarationError

__all__ = [
    "noisy_statistic",
]


def noisy_statistic(
    values: Any, probabilities: Any, other_values: Any, other_probabilities: Any, scale: float
) -> float:
    """The exact loss of releasing a random number with Laplace noise, between two laws of that number.

    With the values of a statistic over all samples of two neighbouring populations, this is the real privacy
    loss of that statistic under the design.

    Parameters
    ----------
    values, probabilities : Any
        Of the number under one population, shape ``(a,)``.
    other_values, other_probabilities : Any
        Under the other, shape ``(b,)``.
    scale : float
        Of the noise.

    Returns
    -------
    float
        The larger of both directions. Between two values of the statistic the ratio of the densities is
        monotone, so that only the values need a look: O((a + b)^2).

    Examples
    --------
    >>> round(noisy_statistic([14], [1.0], [15], [1.0], scale=2.0), 9)
    0.5
    """
    if not (isfinite(scale) and scale > 0):
        raise DeclarationError(f"scale is {scale:g}; it must be positive and finite")
    laws = []
    for name, points, weights in (
        ("probabilities", values, probabilities),
        ("other_probabilities", other_values, other_probabilities),
    ):
        at, p = as_numbers(points, "values").ravel(), as_numbers(weights, name).ravel()
        if at.shape != p.shape or (p < 0).any() or abs(p.sum() - 1) > 1e-9:
            raise DeclarationError(f"{name} must be {len(at)} nonnegative numbers that sum to 1")
        laws.append((at[p > 0], np.log(p[p > 0])))
    kinks = np.unique(np.concatenate([laws[0][0], laws[1][0]]))
    one, other = (
        np.logaddexp.reduce(logs - np.abs(kinks[:, None] - at) / scale, axis=1) for at, logs in laws
    )
    return float(np.abs(one - other).max())
