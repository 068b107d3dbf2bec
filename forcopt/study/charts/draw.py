"""Drawings by matplotlib: a chart, and each run of a comparison on a line of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from forcopt.arrays import lists_by_key
from forcopt.notebook import new_figure
from forcopt.problem.drawing import COLOURS, MARKERS, whole_ticks
from forcopt.status import Status
from forcopt.study.charts.chart import Chart, Series
from forcopt.study.run import Run
from forcopt.study.tolerances import TOLERANCE

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
    for axis, key, log in ((axes.xaxis, "x", chart.log_x), (axes.yaxis, "y", chart.log_y)):
        values = [getattr(series, key) for series in chart.series]
        if log:
            axes.set(**{f"{key}scale": "log"})
            _plain_ticks(axis)
        elif all((v == np.round(v)).all() for v in values):  # as of tests
            whole_ticks(axis)
    axes.set_xlabel(chart.x)
    axes.set_ylabel(chart.y)
    axes.set_title(chart.title, loc="left", fontsize=11)
    axes.grid(color="#e5e5e5")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(frameon=False, fontsize=9, loc="outside right upper")
    if chart.note:
        figure.supxlabel(chart.note, fontsize=9, color="#555555", wrap=True)
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


def _covering(series: Series, later: Sequence[Series]) -> int:
    """The number of later series with a point in the place of one of these; they are drawn above it."""
    places = set(zip(series.x.tolist(), series.y.tolist(), strict=True))
    others = [zip(s.x.tolist(), s.y.tolist(), strict=True) for s in later if s.kind == "points"]
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
        marker = None if series.dashed or series.name == "front" else MARKERS[at % len(MARKERS)]
        marks = {"marker": marker, "markevery": max(1, len(series.x) // _MARKED), "markersize": 4}
        axes.plot(series.x, series.y, color=colour, linestyle=line, drawstyle=style, label=label, **marks)


# Okabe and Ito's palette, which colour-blind readers can distinguish.
_COLOURS = {Status.OPTIMAL: "#009E73", Status.FEASIBLE: "#0072B2", Status.APPROXIMATE: "#E69F00"}
_GREY = "#777777"
_VIOLATES = "violates a demand"


def plot_runs(rows: Sequence[Run]) -> Figure:
    """Draw each run on a line: a dot for its objective, an interval to its bound, its seconds beside them.

    Instances, whose objectives have nothing to do with each other, stand one below the other; the points of a
    sweep are drawn together.
    """
    sweep = all(row.parameters for row in rows)
    groups = lists_by_key(("" if sweep else row.instance, row) for row in rows)
    counts = [len(group) for group in groups.values()] or [1]
    figure = new_figure(9.0, 0.6 + sum(1.0 + 0.3 * n for n in counts))
    heights = [n + 0.5 for n in counts]
    panels = figure.subplots(
        len(counts), 2, sharey="row", squeeze=False, width_ratios=[3, 1], height_ratios=heights
    )
    shown: dict[str, Any] = {}
    for (values, times), (instance, group) in zip(panels, groups.items(), strict=False):
        shown |= _draw_values(values, group)
        values.set_title(instance, loc="left", fontsize=11)
        _draw_seconds(times, group)
        values.set_yticks(range(len(group)), _labels(group))
        values.set_ylim(len(group) - 0.5, -0.5)
    for axes in panels.ravel():
        axes.grid(axis="x", color="#e5e5e5")
        axes.set_axisbelow(True)
        axes.tick_params(axis="y", length=0)
        axes.spines[["top", "right", "left"]].set_visible(False)
    if shown:
        order = [k for k in (*map(str, _COLOURS), _VIOLATES, "bound") if k in shown]
        figure.legend([shown[k] for k in order], order, loc="outside lower center", ncols=5, frameon=False)
    return figure


def _labels(rows: Sequence[Run]) -> list[str]:
    """The distinction of the runs of a panel: the method, then point, seed and repeat where they differ."""
    parts = [
        [", ".join(f"{name} {value}" for name, value in row.parameters.items()) for row in rows],
        [f"seed {row.seed}" for row in rows],
        [f"repeat {row.repeat}" for row in rows],
    ]
    columns = [[row.label for row in rows], *(part for part in parts if len(set(part)) > 1)]
    return [", ".join(words) for words in zip(*columns, strict=True)]


def _draw_values(axes: Any, rows: Sequence[Run]) -> dict[str, Any]:
    """Give a mark of each kind that was drawn, for the legend."""
    shown: dict[str, Any] = {}
    for at, row in enumerate(rows):
        colour = _COLOURS.get(row.status, _GREY) if row.status else _GREY
        if np.isfinite(row.bound):
            low, high = sorted((row.bound, row.objective if row.solved else row.bound))
            axes.plot([low, high], [at, at], color=colour, linewidth=2, alpha=0.6)
            shown["bound"] = axes.plot(row.bound, at, "|", color="#333333", markersize=12)[0]
        if row.solved:
            name, inside = (str(row.status), colour) if row.violation <= TOLERANCE else (_VIOLATES, "white")
            style = {"color": colour, "markerfacecolor": inside, "markersize": 7}
            shown[name] = axes.plot(row.objective, at, "o", **style)[0]
        else:
            place = {"xycoords": ("axes fraction", "data"), "ha": "center", "va": "center"}
            clear = {"facecolor": "white", "edgecolor": "none", "pad": 2}
            axes.annotate(str(row.status or "not run"), (0.5, at), color=_GREY, bbox=clear, **place)
    sense = {"min": "less is better", "max": "more is better"}
    axes.set_xlabel(f"objective ({sense[rows[0].sense]})")
    axes.margins(x=0.06)
    low, high = axes.get_xlim()
    least = 1e-4 * max(abs(low), abs(high))  # closer values, such as an optimum and its bound, look equal
    if high - low < least:
        axes.set_xlim((low + high - least) / 2, (low + high + least) / 2)
    axes.locator_params(axis="x", nbins=6)
    axes.ticklabel_format(axis="x", useOffset=False)
    return shown


def _draw_seconds(axes: Any, rows: Sequence[Run]) -> None:
    known = [(at, row.seconds) for at, row in enumerate(rows) if np.isfinite(row.seconds) and row.seconds > 0]
    axes.set_xlabel("seconds")
    if not known:
        return
    places, seconds = zip(*known, strict=True)
    wide = max(seconds) > 10 * min(seconds)
    least = min(seconds) / 2 if wide else 0.0
    if not wide:  # a logarithmic axis has no zero at which a bar could begin
        axes.hlines(places, least, seconds, color="#bbbbbb", linewidth=2)
    axes.plot(seconds, places, "o", color="#555555", markersize=5)
    if wide:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlim(least, max(seconds) * (2 if wide else 1.15))
