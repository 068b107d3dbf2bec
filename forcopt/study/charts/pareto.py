"""Pareto fronts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError, unknown
from forcopt.study.charts.chart import Chart, Series, methods
from forcopt.study.estimates import summary

if TYPE_CHECKING:
    from forcopt.study.comparison import Comparison


def front(x: Array, y: Array) -> Array:
    """The positions of the points that no other beats, less being better in both, by rising x; O(n log n).

    Examples
    --------
    >>> front(np.array([1.0, 2.0, 3.0, 2.0]), np.array([5.0, 3.0, 4.0, 6.0])).tolist()
    [0, 1]
    """
    order = np.lexsort((y, x))
    least = np.minimum.accumulate(np.concatenate([[np.inf], y[order]]))
    return order[y[order] < least[:-1]]


def pareto(
    comparison: Comparison,
    x: str = "seconds",
    y: str = "objective",
    *,
    better: tuple[Literal["less", "more"], Literal["less", "more"]] | None = None,
    level: float = 0.95,
    along: Sequence[str] | None = None,
) -> Chart:
    """Two numbers of each run against each other, and the front of the points that no other beats in both.

    Each point is the mean over the seeds and repeats of an instance and method, with Student's interval for
    the mean of `y`. A front joins points that can replace each other: of one instance, or of instances that
    differ in parameters of `along` only.

    Parameters
    ----------
    comparison : Comparison
        Runs without one of the numbers are left out.
    x, y
        Fields, parameters of a sweep or metrics, such as ``violation``, ``epsilon``, ``objective``.
    better : tuple[Literal["less", "more"], Literal["less", "more"]], optional
        Whether less or more of x and of y is better; less, but for the objective of a problem that maximises,
        if left out.
    level : float, default 0.95
        Of the intervals.
    along : Sequence[str], optional
        Parameters of a sweep whose values are alternatives, such as a tolerance. By default `x` and `y`, if
        they are parameters, and the parameter of a sweep over one.

    Returns
    -------
    Chart
        The points of each method, and a line for each front.

    Raises
    ------
    DeclarationError
        If no run has both numbers.
    UnknownNameError
        If `along` names no parameter.

    Examples
    --------
    >>> from forcopt.status import Status
    >>> from forcopt.study import Comparison, Run
    >>> runs = [
    ...     Run("i", m, "", Status.FEASIBLE, "min", exact=True, violation=0.0, objective=v, seconds=4 - v)
    ...     for m, v in [("a", 1.0), ("b", 2.0)]
    ... ]
    >>> chart = pareto(Comparison(runs))
    >>> [s.name for s in chart.series if s.kind == "points"]
    ['a', 'b']
    """
    known = np.isfinite(comparison.numbers(x)) & np.isfinite(comparison.numbers(y))
    a, b = (summary(comparison, name, level, known) for name in (x, y))
    fine = np.isfinite(a["mean"].to_numpy()) & np.isfinite(b["mean"].to_numpy())
    if not fine.any():
        raise DeclarationError(f"no run has both {x} and {y}")
    a, b = a[fine], b[fine]
    if better is None:
        more = "more" if comparison.rows[0].sense == "max" else "less"
        better = tuple(more if name in ("objective", "bound") else "less" for name in (x, y))  # type: ignore[assignment]
    assert better is not None
    if set(better) - {"less", "more"} or len(better) != 2:
        raise DeclarationError(f"better is {better!r}; it must be two of 'less' and 'more'")
    at, value = a["mean"].to_numpy(), b["mean"].to_numpy()
    labels = (b["method"] + np.where(b["backend"] != "", "@", "") + b["backend"]).to_numpy()
    series = []
    for name in methods(comparison):
        own = labels == name
        if own.any():
            texts = tuple(
                f"{name} on {i}: {x} {u:.6g}, {y} {v:.6g}"
                for i, u, v in zip(b["instance"][own], at[own], value[own], strict=True)
            )
            low, high = b["low"].to_numpy()[own], b["high"].to_numpy()[own]
            series.append(Series(name, at[own], value[own], "points", texts, low, high))
    signs = [1.0 if way == "less" else -1.0 for way in better]
    for group, places in _comparable(comparison, b, x, y, along).items():
        best = places[front(signs[0] * at[places], signs[1] * value[places])]
        where = f" on {group}" if group else ""
        tips = tuple(f"{labels[i]}{where}: {x} {at[i]:.6g}, {y} {value[i]:.6g}" for i in best)
        series.append(Series("front", at[best], value[best], "line", tips, dashed=True))
    note = f"{better[0]} {x} and {better[1]} {y} is better; points of the front are beaten by none in both."
    return Chart(f"{y} against {x}", x, y, series, note=note)


def _comparable(
    comparison: Comparison, frame: Any, x: str, y: str, along: Sequence[str] | None
) -> dict[str, Array]:
    """Give the positions of the points of each front, by the common part of their instances."""
    parameters = comparison.parameters
    for name in along or ():
        if name not in parameters:
            raise unknown("parameter of the sweep", name, list(parameters))
    if along is None:
        along = parameters if len(parameters) == 1 else [name for name in parameters if name in (x, y)]
    fixed = [name for name in parameters if name not in along]
    if not parameters:
        keys = [str(name) for name in frame["instance"]]
    else:
        keys = [", ".join(f"{n} {row[n]}" for n in fixed) for _, row in frame.iterrows()]
    several = len(set(keys)) > 1
    return {key if several else "": np.flatnonzero(np.array(keys) == key) for key in dict.fromkeys(keys)}
