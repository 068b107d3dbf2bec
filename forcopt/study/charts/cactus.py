"""Cactus plots."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from forcopt.errors import DeclarationError
from forcopt.study.charts.chart import Chart, Series, methods, times

if TYPE_CHECKING:
    from forcopt.study.comparison import Comparison

__all__ = ["cactus"]


def cactus(comparison: Comparison, *, measure: str = "seconds", tolerance: float = 1e-4) -> Chart:
    """The number of tests that a method solves within a given amount for each.

    Parameters
    ----------
    comparison : Comparison
        Tests are its instances, with each seed and repeat.
    measure : str, default "seconds"
        A number of each run of which less is better.
    tolerance : float, default 0.0001
        How far, relative to it, an objective may be from the instance's best to count as solved.

    Returns
    -------
    Chart
        One line for each method.

    Raises
    ------
    DeclarationError
        If no method solves any test.

    Examples
    --------
    >>> from forcopt.status import Status
    >>> from forcopt.study import Comparison, Run
    >>> known = {"exact": True, "violation": 0.0, "objective": 4.0}
    >>> runs = [Run(f"n{i}", "a", "", Status.OPTIMAL, "min", seconds=float(i), **known) for i in (1, 3)]
    >>> cactus(Comparison(runs)).series[0].y.tolist()
    [1.0, 3.0]
    """
    values = comparison.numbers(measure)
    taken = times(comparison, tolerance, measure)
    if not np.isfinite(taken).any():
        raise DeclarationError(f"no method solves any test, or none reports its {measure}")
    series = []
    for column, name in enumerate(methods(comparison)):
        costs = np.sort(taken[np.isfinite(taken[:, column]), column])
        count = np.arange(1.0, len(costs) + 1)
        tips = tuple(
            f"{name}: {int(n)} tests, each in at most {c:.4g}" for n, c in zip(count, costs, strict=True)
        )
        series.append(Series(name, count, costs, "line", tips))
    note = f"{len(taken)} tests; solved means within {tolerance:g} of the best objective, relative."
    positive = bool((values[np.isfinite(values)] > 0).all())
    return Chart(
        "Cactus plot", "tests solved", f"{measure}, for each at most", series, log_y=positive, note=note
    )
