"""Means over repetitions, with Student's intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError

if TYPE_CHECKING:
    from forcopt.study.comparison import Comparison

__all__ = ["Mean", "check_level", "mean_interval", "summary"]


class Mean(NamedTuple):
    """A mean and an interval for the expectation.

    Attributes
    ----------
    mean : Array or float
        Of the values.
    low, high : Array or float
        The ends of the interval; NaN below two values.
    deviation : Array or float
        The standard deviation of the values (``ddof=1``); NaN below two values.
    """

    mean: Any
    low: Any
    high: Any
    deviation: Any


def check_level(level: float) -> None:
    """Refuse a confidence level that does not lie between 0 and 1.

    Raises
    ------
    DeclarationError
        With the level.
    """
    if not 0 < level < 1:
        raise DeclarationError(f"level is {level!r}; it must lie between 0 and 1")


def mean_interval(values: Array, level: float = 0.95) -> Mean:
    """Give the mean of independent repetitions and Student's interval for the expectation.

    The interval holds the expectation with probability `level`: exactly for normal values, in the limit for
    all others of finite variance.

    Parameters
    ----------
    values : Array
        One repetition a row, shape ``(n, ...)``.
    level : float, default 0.95
        Between 0 and 1.

    Returns
    -------
    Mean
        Each part has the shape of one repetition.

    Raises
    ------
    DeclarationError
        If the level does not lie between 0 and 1.

    Examples
    --------
    >>> mean, low, high, deviation = mean_interval(np.array([1.0, 2.0, 3.0]))
    >>> round(float(low), 4), float(mean), round(float(high), 4)
    (-0.4841, 2.0, 4.4841)
    """
    from scipy.stats import t

    check_level(level)
    n = len(values)
    unknown = np.full(values.shape[1:], np.nan)
    if n < 2:
        return Mean(values.mean(axis=0) if n else unknown, unknown, unknown, unknown)
    mean, deviation = values.mean(axis=0), values.std(axis=0, ddof=1)
    reach = float(t.ppf((1 + level) / 2, n - 1)) * deviation / np.sqrt(n)
    return Mean(mean, mean - reach, mean + reach, deviation)


def summary(comparison: Comparison, value: str, level: float, among: Array | None = None) -> Any:
    """Give the mean of a number for each instance, point of a sweep and method; see `Comparison.summary`.

    Parameters
    ----------
    comparison, value, level
        As there.
    among : Array, optional
        Which rows to take, shape ``(rows,)``; all by default. The values of the others count as unknown.
    """
    import pandas as pd

    check_level(level)
    groups: dict[tuple[str, ...], list[int]] = {}
    for at, row in enumerate(comparison.rows):
        groups.setdefault((row.instance, row.method, row.backend), []).append(at)
    every = comparison.numbers(value)
    if among is not None:
        every = np.where(among, every, np.nan)
    out = []
    for (instance, method, backend), places in groups.items():
        values = every[places]
        values = values[np.isfinite(values)]
        mean, low, high, deviation = map(float, mean_interval(values, level))
        least, median, greatest = np.quantile(values, [0, 0.5, 1]) if len(values) else [np.nan] * 3
        out.append(
            {"instance": instance, **comparison.rows[places[0]].parameters, "method": method}
            | {"backend": backend, "runs": len(places), "known": len(values), "mean": mean}
            | {"low": low, "high": high, "deviation": deviation}
            | {"least": least, "median": median, "greatest": greatest}
        )
    return pd.DataFrame(out)
