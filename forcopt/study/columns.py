"""The columns of a table of runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from forcopt.study.run import Run

__all__ = ["Column", "further_columns", "identifying_columns"]


class Column(NamedTuple):
    """A column of the table.

    Attributes
    ----------
    title : str
        Its heading.
    value : Callable[[Run], Any]
        The value of a row, to sort by.
    text : Callable[[Run], str]
        The same as it is shown.
    number : bool, default True
        Whether it stands to the right.
    shown : Callable[[Run], bool], default lambda _: True
        Whether a row has something to show; a column that no row fills is left out.
    """

    title: str
    value: Callable[[Run], Any]
    text: Callable[[Run], str]
    number: bool = True
    shown: Callable[[Run], bool] = lambda _: True


_LARGEST_PERCENT = 100.0
"""Shares above it are not spelled out."""


def _number(value: float, form: str = ".8g") -> str:
    return f"{value:{form}}" if np.isfinite(value) else "-"


def _percent(value: float) -> str:
    if not np.isfinite(value):
        return "-"
    if abs(value) < 1e-9:  # rounding
        return "0%"
    if abs(value) > _LARGEST_PERCENT:  # the best is about 0: a share of it means nothing
        return f">{_LARGEST_PERCENT:.0%}" if value > 0 else f"<-{_LARGEST_PERCENT:.0%}"
    return f"{value:.2%}" if abs(value) >= 5e-5 else "<0.01%"


def _seconds(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else _number(value, ".3g")


def _plain(name: str) -> Callable[[Run], Any]:
    return lambda run: getattr(run, name)


def _as_text(name: str) -> Callable[[Run], str]:
    return lambda run: str(getattr(run, name))


def _metric(name: str) -> Callable[[Run], Any]:
    return lambda run: run.metrics.get(name, float("nan"))


def _metric_text(name: str) -> Callable[[Run], str]:
    return lambda run: _number(run.metrics.get(name, float("nan")), ".6g")


def _parameter(name: str) -> Callable[[Run], Any]:
    return lambda run: str(run.parameters.get(name, ""))


def _numeric(title: str, name: str, form: Callable[[float], str], shown: bool = False) -> Column:
    """A column of numbers; left out where no row has one, unless always `shown`."""
    return Column(
        title,
        _plain(name),
        lambda run: form(float(getattr(run, name))),
        shown=lambda run: shown or bool(np.isfinite(getattr(run, name))),
    )


def _counted(name: str) -> Column:
    """A column of counts, which algorithms do not have."""
    return Column(
        name,
        _plain(name),
        lambda run: "-" if getattr(run, name) is None else str(getattr(run, name)),
        shown=lambda run: getattr(run, name) is not None,
    )


def _megabytes(value: float) -> str:
    return _number(value / 1e6, ".0f")


_COLUMNS = [
    Column("method", _plain("label"), _plain("label"), number=False),
    Column("status", lambda r: r.status, lambda r: str(r.status or "not run"), number=False),
    Column(
        "proved by",
        _plain("proved_by"),
        lambda r: r.proved_by or "-",
        number=False,
        shown=lambda r: bool(r.proved_by),
    ),
    Column(
        "checked",
        _plain("checked"),
        lambda r: "yes" if r.checked else "no" if r.certified else "-",
        number=False,
        shown=lambda r: r.certified,
    ),
    _numeric("objective", "objective", _number, shown=True),
    _numeric("bound", "bound", _number, shown=True),
    _numeric("gap", "gap", _percent, shown=True),
    _numeric("to best", "gap_to_best", _percent),
    _numeric("violation", "violation", lambda v: "0" if v == 0 else _number(v, ".2g"), shown=True),
    _numeric("seconds", "seconds", _seconds, shown=True),
    _numeric("MB", "peak_memory", _megabytes),
]

_MORE = [
    _numeric("build seconds", "build_seconds", _seconds),
    _numeric("solve seconds", "solve_seconds", _seconds),
    Column("iterations", _plain("iterations"), lambda r: str(r.iterations)),
    Column("size", _plain("size"), lambda r: str(r.size)),
    _counted("rows"),
    _counted("columns"),
    _counted("nonzeros"),
    _counted("integers"),
    Column("bridges", lambda r: ", ".join(r.bridges), lambda r: ", ".join(r.bridges), number=False),
    Column("message", _plain("message"), _plain("message"), number=False),
    Column(
        "versions",
        lambda r: r.versions.get(r.backend, ""),
        lambda r: ", ".join(f"{k} {v}" for k, v in r.versions.items()),
        number=False,
    ),
]


def identifying_columns(rows: Sequence[Run], parameters: Sequence[str]) -> list[Column]:
    """Give the columns that distinguish the rows, then the columns that some row fills."""
    several = len({row.instance for row in rows}) > 1
    swept = all(row.parameters for row in rows)  # then the parameters distinguish the instances
    found = [Column("instance", _plain("instance"), _plain("instance"), number=False)]
    found = found if several and not swept else []
    found += [Column(name, _parameter(name), _parameter(name)) for name in parameters]
    found += [
        Column(name, _plain(name), _as_text(name))
        for name in ("seed", "repeat")
        if len({getattr(row, name) for row in rows}) > 1
    ]
    return found + [c for c in _COLUMNS if any(map(c.shown, rows))]


def further_columns(rows: Sequence[Run], metrics: Sequence[str]) -> list[Column]:
    """Give the columns for which only the page has room: sizes, messages, versions and metrics."""
    filled = [c for c in _MORE if any(map(c.shown, rows))]
    return filled + [Column(name, _metric(name), _metric_text(name)) for name in metrics]
