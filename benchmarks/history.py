"""Timings over time: ``history.csv`` keeps each measured headline, ``history.svg`` draws one of each.

`forcopt benchmark` adds what is new in the headlines. A row is a measurement on a day: the first time in the
cell ``ours``, in seconds, and the first number of ``ratio``, which is how often the peer's time it is.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.report import QUIET

_UNITS = {"ms": 1e-3, "s": 1.0}
_NUMBER = r"(\d+(?:\.\d+)?(?:e[+-]?\d+)?)"


class Measured(NamedTuple):
    """A row of ``history.csv``; `ratio` and `load` are empty where the headline gives none."""

    date: str
    benchmark: str
    measurement: str
    seconds: str
    ratio: str
    load: str


def measured(name: str, headline: Mapping[str, Any]) -> list[Measured]:
    """The rows of a headline that have a date and a time.

    Examples
    --------
    >>> row = {"what": "10 areas", "ours": "flow 50 ms, proved", "peers": "-", "ratio": "2.5, 3"}
    >>> facts = {"conditions": "2026-11-28; 2 cores; load 0.5 by other processes.", "rows": [row]}
    >>> measured("maps", facts)[0][3:]
    ('0.05', '2.5', '0.5')
    """
    day = re.match(r"\d{4}-\d\d-\d\d", headline["conditions"])
    load = re.search(rf"load (?:average )?{_NUMBER}", headline["conditions"])
    rows = []
    for row in headline["rows"] if day else ():
        time = re.search(rf"{_NUMBER} (ms|s)\b", row["ours"])
        if time:
            seconds = f"{float(time[1]) * _UNITS[time[2]]:.4g}"
            ratio = re.match(_NUMBER, row["ratio"])
            rows.append(
                Measured(
                    day[0], name, row["what"], seconds, ratio[1] if ratio else "", load[1] if load else ""
                )
            )
    return rows


def record(folder: Path) -> None:
    """Add what is new in the headlines of a folder to its ``history.csv``, and draw ``history.svg`` anew."""
    headlines = {
        p.parent.name: json.loads(p.read_text(encoding="utf-8")) for p in folder.glob("*/headline.json")
    }
    found = {row for name, headline in headlines.items() for row in measured(name, headline)}
    file = folder / "history.csv"
    if file.exists():
        with file.open(encoding="utf-8", newline="") as lines:
            found |= {Measured(**row) for row in csv.DictReader(lines)}
    rows = sorted(found)
    with file.open("w", encoding="utf-8", newline="") as lines:
        table = csv.writer(lines, lineterminator="\n")
        table.writerows([Measured._fields, *rows])
    draw(rows, {name: headline["title"] for name, headline in headlines.items()}, folder / "history.svg")


def draw(rows: Iterable[Measured], titles: Mapping[str, str], file: Path) -> None:
    """A small plot for each benchmark: its measurement with the most days, in seconds."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot, rc_context

    lines: dict[tuple[str, str], dict[str, Measured]] = {}
    for row in sorted(rows, key=lambda row: -float(row.load or "inf")):
        lines.setdefault((row.benchmark, row.measurement), {})[row.date] = row  # of a day, the quietest
    best: dict[str, list[Measured]] = {}
    for (name, _), line in lines.items():
        if len(line) > max(1, len(best.get(name, ()))):
            best[name] = [line[day] for day in sorted(line)]
    columns = 3
    height = max(1, -(-len(best) // columns))
    with rc_context(
        {"svg.hashsalt": "history", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    ):
        figure, axes = pyplot.subplots(
            height, columns, figsize=(11, 1.9 * height), squeeze=False, layout="constrained"
        )
        for axis in axes.ravel()[len(best) :]:
            axis.set_axis_off()
        for axis, (name, line) in zip(axes.ravel(), sorted(best.items()), strict=False):
            seconds = [float(row.seconds) for row in line]
            axis.plot(seconds, color="#3b6ea5", linewidth=1)
            for at, row in enumerate(line):
                fill = "#3b6ea5" if row.load and float(row.load) <= QUIET else "white"
                axis.plot(at, seconds[at], "o", color="#3b6ea5", markersize=4, markerfacecolor=fill)
            axis.set_ylim(0, 1.2 * max(seconds))
            axis.set_title(f"{titles.get(name, name)}\n{_short(line[0].measurement)}", loc="left", fontsize=9)
            axis.set_ylabel("seconds")
            axis.set_xticks([0, len(line) - 1], [row.date for row in (line[0], line[-1])])
            axis.margins(x=0.15)
        figure.savefig(file, metadata={"Date": None})
        pyplot.close(figure)


def _short(text: str, most: int = 44) -> str:
    return text if len(text) <= most else f"{text[: most - 3].rstrip()}..."
