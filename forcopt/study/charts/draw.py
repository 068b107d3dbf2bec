"""Charts on paper, by matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from forcopt.arrays import Array
from forcopt.notebook import new_figure
from forcopt.problem.drawing import COLOURS, MARKERS
from forcopt.study.charts.chart import Chart, Series

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw"]

_DASHES = ("solid", "dashed", "dotted", "dashdot")

_MARKED = 12
"""About how many points of a line carry its marker."""


def draw(chart: Chart) -> Figure:
    """Draw a chart."""
    names = list(dict.fromkeys(series.name for series in chart.series))
    figure = new_figure(9.0, max(5.0, 1.2 + 0.21 * len(names)))
    axes = figure.subplots()
    for at, series in enumerate(chart.series):
        _draw(axes, series, names.index(series.name), _covering(series, chart.series[at + 1 :]))
    if chart.log_x:
        axes.set_xscale("log")
        _plain_ticks(axes.xaxis)
    if chart.log_y:
        axes.set_yscale("log")
        _plain_ticks(axes.yaxis)
    for axis, key in ((axes.xaxis, "x"), (axes.yaxis, "y")):
        _count_whole(axis, [getattr(series, key) for series in chart.series])
    axes.set_xlabel(chart.x)
    axes.set_ylabel(chart.y)
    axes.set_title(chart.title, loc="left", fontsize=11)
    axes.grid(color="#e5e5e5")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(frameon=False, fontsize=9, loc="outside right upper")
    if chart.note:
        figure.supxlabel(chart.note, fontsize=8, color="#555555", wrap=True)
    return figure


def _plain_ticks(axis: Any) -> None:
    """Set ticks at powers of ten; at 2 and 5 times these on short axes, at even steps on shorter ones."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

    low, high = axis.get_view_interval()
    if high < 6 * low:
        axis.set_major_locator(MaxNLocator(5))
    else:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 200 * low else (1.0,)))
    axis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_minor_formatter(NullFormatter())


def _count_whole(axis: Any, values: list[Array]) -> None:
    """No ticks between whole numbers where there are no others, as of tests."""
    from matplotlib.ticker import MaxNLocator

    if axis.get_scale() == "linear" and all((v == np.round(v)).all() for v in values):
        axis.set_major_locator(MaxNLocator(integer=True))


def _covering(series: Series, later: Sequence[Series]) -> int:
    """The number of later series with a point in the place of one of these; they are drawn above it."""
    places = set(zip(series.x.tolist(), series.y.tolist(), strict=True))
    others = [
        zip(other.x.tolist(), other.y.tolist(), strict=True) for other in later if other.kind == "points"
    ]
    return sum(not places.isdisjoint(other) for other in others)


def _draw(axes: Any, series: Series, at: int, covering: int) -> None:
    colour = "black" if series.name == "front" else COLOURS[at % len(COLOURS)]
    line = "dashed" if series.dashed else _DASHES[at // len(COLOURS) % len(_DASHES)]
    drawn = axes.get_legend_handles_labels()[1]
    label = "_" if series.name in drawn or (series.dashed and series.name != "front") else series.name
    if series.kind == "points":
        mark = MARKERS[at % len(MARKERS)]
        axes.plot(series.x, series.y, mark, color=colour, label=label, markersize=5 + 3 * covering, alpha=0.8)
        if series.low is not None and series.high is not None and np.isfinite(series.low).any():
            axes.vlines(series.x, series.low, series.high, color=colour, alpha=0.5)
    else:
        style = "steps-post" if series.kind == "steps" else "default"
        axes.plot(
            series.x,
            series.y,
            color=colour,
            linestyle=line,
            drawstyle=style,
            label=label,
            marker=None if series.dashed or series.name == "front" else MARKERS[at % len(MARKERS)],
            markevery=max(1, len(series.x) // _MARKED),
            markersize=4,
        )
