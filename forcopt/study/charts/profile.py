"""Performance profiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from forcopt.errors import DeclarationError
from forcopt.study.charts.chart import Chart, Series, methods, times

if TYPE_CHECKING:
    from forcopt.study.comparison import Comparison

__all__ = ["profile"]


def profile(comparison: Comparison, *, measure: str = "seconds", tolerance: float = 1e-4) -> Chart:
    """The share of the tests on which a method takes at most a given multiple of the best one's amount.

    At 1 stands how often a method is the best, at the right how often it solves at all. The curves of more
    than two methods depend on each other: leave one out, and two others may change places (Gould and Scott,
    "A Note on Performance Profiles for Benchmarking Software", 2016); so it shows the best, not a ranking.

    Parameters
    ----------
    comparison : Comparison
        Tests are its instances, with each seed and repeat.
    measure : str, default "seconds"
        A number of each run of which less is better: ``seconds``, ``peak_memory``, ``iterations``.
    tolerance : float, default 0.0001
        How far, relative to it, an objective may be from the instance's best to count as solved.

    Returns
    -------
    Chart
        One step function for each method.

    Raises
    ------
    DeclarationError
        If no method solves any test, or a measure is negative.

    References
    ----------
    Dolan and Moré, "Benchmarking optimization software with performance profiles", Mathematical Programming
    91, 2002, section 2.

    Examples
    --------
    >>> from forcopt.status import Status
    >>> from forcopt.study import Comparison, Run
    >>> runs = [
    ...     Run("i", m, "", Status.OPTIMAL, "min", exact=True, violation=0.0, objective=4.0, seconds=s)
    ...     for m, s in [("a", 1.0), ("b", 2.0)]
    ... ]
    >>> profile(Comparison(runs)).series[1].x.round(3).tolist()
    [1.0, 2.0, 2.2]
    """
    comparison.numbers(measure)  # raises without a number
    taken = times(comparison, tolerance, measure)
    if (taken < 0).any():
        raise DeclarationError(f"{measure} is negative for some run; a profile divides by the least")
    least = taken.min(axis=1, initial=np.inf)
    if not np.isfinite(least).any():
        raise DeclarationError(f"no method solves any test, or none reports its {measure}")
    # Of two zeros none is worse; a result that one method gets at cost 0 costs the others infinitely more.
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(taken == least[:, None], 1.0, taken / least[:, None])
    ratios[~np.isfinite(taken)] = np.inf
    end = 1.1 * max(float(ratios[np.isfinite(ratios)].max()), 1.1)
    series = []
    for column, name in enumerate(methods(comparison)):
        finite = np.sort(ratios[np.isfinite(ratios[:, column]), column])
        shares = np.arange(1, len(finite) + 1) / len(ratios)
        x = np.concatenate([[1.0], finite, [end]])
        y = np.concatenate([[0.0], shares, [shares[-1] if len(finite) else 0.0]])
        tips = tuple(f"{name}: within {r:.4g} times the best on {s:.1%}" for r, s in zip(x, y, strict=True))
        series.append(Series(name, x, y, "steps", tips))
    return Chart(
        "Performance profile",
        f"{measure}, as a multiple of the best method's",
        "share of the tests",
        series,
        log_x=True,
        note=f"{len(ratios)} tests; solved means within {tolerance:g} of the best objective, relative. "
        "Of more than two methods it shows the best, but does not rank the others.",
    )
