"""Time against size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from forcopt.errors import DeclarationError
from forcopt.study.charts.chart import Chart, Series, all_solved, methods, naming

if TYPE_CHECKING:
    from forcopt.study.comparison import Comparison

__all__ = ["scaling"]


def scaling(
    comparison: Comparison,
    *,
    size: str = "size",
    measure: str = "seconds",
    tolerance: float = 1e-4,
    level: float = 0.95,
) -> Chart:
    """The cost of solved runs against the size of their problems, and the power that fits best.

    The exponent comes from least squares in the logarithms, with Student's interval. An unsolved problem is
    not in it, so where only the easy large instances are solved it comes out too small.

    Parameters
    ----------
    comparison : Comparison
        Of instances of at least two sizes, and for an interval three runs.
    size : str, default "size"
        A number of each run: ``size`` (numbers in the declaration), ``columns``, ``nonzeros``, or a parameter
        of a sweep.
    measure : str, default "seconds"
        The fitted quantity.
    tolerance : float, default 0.0001
        How far, relative to it, an objective may be from the instance's best to count as solved.
    level : float, default 0.95
        Of the intervals of the exponents.

    Returns
    -------
    Chart
        Points and a fitted line for each method.

    Raises
    ------
    DeclarationError
        If no run that solved has both numbers, positive.

    Examples
    --------
    >>> from forcopt.status import Status
    >>> from forcopt.study import Comparison, Run
    >>> known = {"exact": True, "violation": 0.0, "objective": 4.0}
    >>> runs = [
    ...     Run(f"n{n}", "a", "", Status.OPTIMAL, "min", size=n, seconds=float(n**2), **known)
    ...     for n in (1, 2, 4)
    ... ]
    >>> scaling(Comparison(runs)).note
    'Fitted (95% intervals): a: size^2.00 ± 0.'
    """
    from scipy.stats import linregress, t

    x, y = comparison.numbers(size), comparison.numbers(measure)
    fit = all_solved(comparison, tolerance)
    fine = np.array([fit[id(r)] for r in comparison.rows], np.bool_) & (x > 0) & (y > 0)
    fine &= np.isfinite(x) & np.isfinite(y)
    if not fine.any():
        raise DeclarationError(f"no run that solved its problem has a positive {size} and {measure}")
    label = naming(comparison)
    series, fits = [], []
    for name in methods(comparison):
        own = [i for i, r in enumerate(comparison.rows) if label(r) == name and fine[i]]
        if not own:
            continue
        tips = tuple(f"{name} on {comparison.rows[i].instance}: {x[i]:g}, {y[i]:.4g}" for i in own)
        series.append(Series(name, x[own], y[own], "points", tips))
        sizes = np.unique(x[own])
        if len(sizes) < 2:
            continue
        line_fit = linregress(np.log(x[own]), np.log(y[own]))
        reach = t.ppf((1 + level) / 2, len(own) - 2) * line_fit.stderr if len(own) > 2 else np.nan
        spread = f" ± {reach:.2g}" if np.isfinite(reach) else ""
        text = f"{name}: {size}^{line_fit.slope:.2f}{spread}"
        ends = sizes[[0, -1]]
        line = np.exp(line_fit.intercept + line_fit.slope * np.log(ends))
        series.append(Series(name, ends, line, "line", (text, text), dashed=True))
        fits.append(text)
    note = f"Fitted ({level:.0%} intervals): {'; '.join(fits)}." if fits else "One size only: nothing to fit."
    return Chart(
        f"{measure.capitalize()} against {size}", size, measure, series, log_x=True, log_y=True, note=note
    )
