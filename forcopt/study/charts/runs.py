"""Each run of a comparison on a line of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from forcopt.notebook import new_figure
from forcopt.status import Status
from forcopt.study.run import TOLERANCE, Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_runs"]

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
    groups: dict[str, list[Run]] = {}
    for row in rows:
        groups.setdefault("" if sweep else row.instance, []).append(row)
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
            text = str(row.status or "not run")
            place = {"xycoords": ("axes fraction", "data"), "ha": "center", "va": "center"}
            clear = {"facecolor": "white", "edgecolor": "none", "pad": 2}
            axes.annotate(text, (0.5, at), color=_GREY, bbox=clear, **place)
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
