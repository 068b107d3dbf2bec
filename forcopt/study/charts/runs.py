"""Each run of a comparison on a line of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from forcopt.status import Status
from forcopt.study.run import TOLERANCE, Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_runs"]

# Okabe and Ito's palette, which colour-blind readers can tell apart.
_COLOURS = {Status.OPTIMAL: "#009E73", Status.FEASIBLE: "#0072B2", Status.APPROXIMATE: "#E69F00"}
_GREY = "#777777"
_VIOLATES = "violates a demand"


def plot_runs(rows: Sequence[Run]) -> Figure:
    """Draw each run on a line: a dot for its objective, an interval to its bound, its seconds beside them."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 1.6 + 0.36 * len(rows)), layout="constrained")
    values, times = figure.subplots(1, 2, sharey=True, width_ratios=[3, 1])
    _draw_values(values, rows)
    _draw_seconds(times, rows)
    values.set_yticks(range(len(rows)), [row.label for row in rows])
    values.set_ylim(len(rows) - 0.5, -0.5)
    for axes in (values, times):
        axes.grid(axis="x", color="#e5e5e5")
        axes.set_axisbelow(True)
        axes.tick_params(axis="y", length=0)
        axes.spines[["top", "right", "left"]].set_visible(False)
    return figure


def _draw_values(axes: Any, rows: Sequence[Run]) -> None:
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
            said = str(row.status or "not run")
            place = {"xycoords": ("axes fraction", "data"), "ha": "center", "va": "center"}
            clear = {"facecolor": "white", "edgecolor": "none", "pad": 2}
            axes.annotate(said, (0.5, at), color=_GREY, bbox=clear, **place)
    sense = {"min": "less is better", "max": "more is better"}
    axes.set_xlabel(f"objective ({sense[rows[0].sense]})" if rows else "objective")
    axes.margins(x=0.06)
    axes.ticklabel_format(axis="x", useOffset=False)
    axes.set_title(", ".join(dict.fromkeys(row.instance for row in rows)), loc="left", fontsize=11)
    if shown:
        order = [k for k in (*map(str, _COLOURS), _VIOLATES, "bound") if k in shown]
        marks = [shown[k] for k in order]
        axes.figure.legend(marks, order, loc="outside lower center", ncols=5, frameon=False)


def _draw_seconds(axes: Any, rows: Sequence[Run]) -> None:
    known = [(at, row.seconds) for at, row in enumerate(rows) if np.isfinite(row.seconds) and row.seconds > 0]
    axes.set_xlabel("seconds")
    if not known:
        return
    places, seconds = zip(*known, strict=True)
    wide = max(seconds) > 10 * min(seconds)
    least = min(seconds) / 2 if wide else 0.0
    axes.hlines(places, least, seconds, color="#bbbbbb", linewidth=2)
    axes.plot(seconds, places, "o", color="#555555", markersize=5)
    if wide:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlim(least, max(seconds) * (2 if wide else 1.15))
