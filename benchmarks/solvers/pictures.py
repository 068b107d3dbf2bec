"""The performance profile of a class of instances, as a drawing in a page."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pandas import DataFrame

WIDTH, HEIGHT, EDGE = 560, 260, 40
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")

SHIFT = 0.01
"""Seconds that are added to all times, so that clocks and the system do not decide the ratios."""


def profile(runs: DataFrame, limit: float) -> dict[str, list[tuple[float, float]]]:
    """For each solver the share of runs that it solves within a factor of the quickest one.

    Parameters
    ----------
    runs : DataFrame
        Of one class, see `benchmarks.solvers.rules.classes`.
    limit : float
        Seconds of each run.

    Returns
    -------
    dict[str, list[tuple[float, float]]]
        Steps of factor and share, by solver.

    References
    ----------
    E. D. Dolan and J. J. Moré, "Benchmarking optimization software with performance profiles",
    Mathematical Programming 91, 2002.

    Examples
    --------
    >>> import pandas as pd
    >>> known = {"variant": "0,0", "solved": True}
    >>> two = [("a", "x", 0.99), ("a", "y", 3.99), ("b", "x", 1.99), ("b", "y", 1.99)]
    >>> runs = pd.DataFrame([{"backend": b, "instance": i, "seconds": t, **known} for b, i, t in two])
    >>> profile(runs, 60.0)["a"]
    [(1.0, 0.5), (2.0, 1.0)]
    """
    times = runs.assign(t=np.where(runs["solved"], runs["seconds"].clip(upper=limit) + SHIFT, np.inf))
    keys = ["instance", "variant"]
    best = times.groupby(keys)["t"].transform("min")
    times = times.assign(ratio=times["t"] / best.where(np.isfinite(best)))
    found = {}
    for name, own in times.groupby("backend"):
        ratios, counts = np.unique(own["ratio"][np.isfinite(own["ratio"])].round(6), return_counts=True)
        shares = np.cumsum(counts) / len(own)
        found[str(name)] = [(float(r), float(s)) for r, s in zip(ratios, shares, strict=True)]
    return found


def drawing(steps: dict[str, list[tuple[float, float]]], label: str = "Performance profile") -> str:
    """A profile as SVG, factors in logarithms.

    Examples
    --------
    >>> "polyline" in drawing({"a": [(1.0, 0.5), (2.0, 1.0)]})
    True
    """
    last = max([ratio for own in steps.values() for ratio, _ in own], default=1.0) * 1.1
    last = max(last, 2.0)

    def at(ratio: float, share: float) -> str:
        x = EDGE + (WIDTH - 2 * EDGE) * np.log(ratio) / np.log(last)
        return f"{x:.1f},{HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * share:.1f}"

    parts = [
        f'<svg role="img" aria-label="{html.escape(label)}" width="{WIDTH + 160}" height="{HEIGHT}" '
        'font-family="sans-serif" font-size="12">'
    ]
    for share in (0.0, 0.5, 1.0):
        (x, y), (end, _) = (at(ratio, share).split(",") for ratio in (1.0, last))
        parts.append(f'<line x1="{x}" y1="{y}" x2="{end}" y2="{y}" stroke="#ccc"/>')
        parts.append(f'<text x="{EDGE - 6}" y="{y}" text-anchor="end">{share:g}</text>')
    ticks = np.unique(np.geomspace(1.0, last, 5).round(1))
    for ratio in ticks[ticks <= last]:
        x, y = at(float(ratio), 0.0).split(",")
        parts.append(f'<text x="{x}" y="{float(y) + 16}" text-anchor="middle">{ratio:g}</text>')
    words = "factor of the quickest solver's seconds"
    parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 6}" text-anchor="middle">{words}</text>')
    for position, (name, own) in enumerate(steps.items()):
        colour, height, points = COLOURS[position % len(COLOURS)], 0.0, [at(1.0, 0.0)]
        for ratio, share in own:
            points += [at(ratio, height), at(ratio, share)]
            height = share
        points.append(at(last, height))
        parts.append(
            f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{" ".join(points)}"/>'
        )
        x, y = WIDTH - EDGE + 12, EDGE + 18 * position
        parts.append(f'<text x="{x}" y="{y}" fill="{colour}">{html.escape(name)}</text>')
    return "".join([*parts, "</svg>"])
