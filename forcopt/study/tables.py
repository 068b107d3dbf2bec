"""A comparison as a table with its columns: plain text, rich text, HTML pages, a data frame."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from forcopt.errors import required
from forcopt.study.run import NUMBERS, Run
from forcopt.study.tolerances import SAME

if TYPE_CHECKING:
    from rich.table import Table

    from forcopt.study.comparison import Comparison


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
    if abs(value) < SAME:
        return "0%"
    if abs(value) > _LARGEST_PERCENT:  # the best is about 0: a share of it means nothing
        return f">{_LARGEST_PERCENT:.0%}" if value > 0 else f"<-{_LARGEST_PERCENT:.0%}"
    return f"{value:.2%}" if abs(value) >= 5e-5 else "<0.01%"


def _seconds(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else _number(value, ".3g")


def _plain(name: str, form: Callable[[Any], Any] = lambda value: value) -> Callable[[Run], Any]:
    return lambda run: form(getattr(run, name))


def _metric(name: str, form: Callable[[float], Any] = float) -> Callable[[Run], Any]:
    return lambda run: form(run.metrics.get(name, float("nan")))


def _parameter(name: str) -> Callable[[Run], Any]:
    return lambda run: str(run.parameters.get(name, ""))


def _numeric(title: str, name: str, form: Callable[[float], str], shown: bool = False) -> Column:
    """A column of numbers; left out where no row has one, unless always `shown`."""
    return Column(
        title,
        _plain(name),
        _plain(name, lambda value: form(float(value))),
        shown=lambda run: shown or bool(np.isfinite(getattr(run, name))),
    )


def _counted(name: str) -> Column:
    """A column of counts, which algorithms do not have."""
    return Column(
        name,
        _plain(name),
        _plain(name, lambda count: "-" if count is None else str(count)),
        shown=lambda run: getattr(run, name) is not None,
    )


_YES = ("-", "no", "yes")
"""Whether a checker accepts the proof: there is none, no, yes."""

_COLUMNS = [
    Column("method", _plain("label"), _plain("label"), number=False),
    Column("status", lambda r: r.status, lambda r: str(r.status or "not run"), number=False),
    Column(
        "proved by", _plain("proved_by"), lambda r: r.proved_by or "-", False, lambda r: bool(r.proved_by)
    ),
    Column("checked", _plain("checked"), lambda r: _YES[r.certified + r.checked], False, _plain("certified")),
    _numeric("objective", "objective", _number, shown=True),
    _numeric("bound", "bound", _number, shown=True),
    _numeric("gap", "gap", _percent, shown=True),
    _numeric("to best", "gap_to_best", _percent),
    _numeric("gap to best bound", "gap_to_bound", _percent),
    Column(
        "guarantee",
        _plain("guarantee", lambda g: float("nan") if g is None else g),
        _plain("guarantee", lambda g: "-" if g is None else _number(g)),
        shown=lambda r: r.guarantee is not None,
    ),
    _numeric("violation", "violation", lambda v: "0" if v == 0 else _number(v, ".2g"), shown=True),
    _numeric("seconds", "seconds", _seconds, shown=True),
    _numeric("MB", "peak_memory", lambda v: _number(v / 1e6, ".0f")),
]

_MORE = [
    _numeric("build seconds", "build_seconds", _seconds),
    _numeric("solve seconds", "solve_seconds", _seconds),
    Column("iterations", _plain("iterations"), _plain("iterations", str)),
    Column("size", _plain("size"), _plain("size", str)),
    *map(_counted, ("rows", "columns", "nonzeros", "integers")),
    Column("bridges", _plain("bridges", ", ".join), _plain("bridges", ", ".join), number=False),
    Column("message", _plain("message"), _plain("message"), number=False),
    Column(
        "versions",
        lambda r: r.versions.get(r.backend, ""),
        lambda r: ", ".join(f"{k} {v}" for k, v in r.versions.items()),
        number=False,
    ),
]


def _columns(comparison: Comparison) -> list[Column]:
    """Give the columns that distinguish the rows, then the columns that some row fills."""
    rows = comparison.rows
    swept = all(row.parameters for row in rows)  # then the parameters distinguish the instances
    found: list[Column] = []
    if len({row.instance for row in rows}) > 1 and not swept:
        found = [Column("instance", _plain("instance"), _plain("instance"), number=False)]
    found += [Column(name, _parameter(name), _parameter(name)) for name in comparison.parameters]
    found += [
        Column(name, _plain(name), _plain(name, str))
        for name in ("seed", "repeat")
        if len({getattr(row, name) for row in rows}) > 1
    ]
    return found + [c for c in _COLUMNS if any(map(c.shown, rows))]


_LEAST_NEEDED = ("MB", "gap", "bound", "to best", "guarantee", "gap to best bound", "proved by")
"""Columns that a narrow terminal does without, in this order."""


def text_table(comparison: Comparison) -> str:
    """Write a line for each run."""
    columns = _columns(comparison)
    lines = [[c.title for c in columns], *([c.text(row) for c in columns] for row in comparison.rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    pads = [str.rjust if c.number else str.ljust for c in columns]
    return "\n".join(
        "  ".join(pad(cell, width) for pad, cell, width in zip(pads, line, widths, strict=True)).rstrip()
        for line in lines
    )


def rich_table(comparison: Comparison, width: int) -> Table:
    """Write a line for each run, for a terminal of this width; the best run is bold, lost ones are dim."""
    from rich import box
    from rich.table import Table

    columns = _columns(comparison)
    for title in _LEAST_NEEDED:
        widths = [max(len(c.title), *(len(c.text(row)) for row in comparison.rows)) for c in columns]
        if sum(widths) + 3 * len(columns) > width:
            columns = [c for c in columns if c.title != title]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column.title, justify="right" if column.number else "left")
    best = comparison.best
    for row in comparison.rows:
        style = "bold" if row is best else "" if row.solved else "dim"
        table.add_row(*(column.text(row) for column in columns), style=style)
    return table


def html_table(comparison: Comparison, full: bool) -> str:
    """Write an HTML table with a line for each run.

    Parameters
    ----------
    comparison : Comparison
        The runs.
    full : bool
        Whether to add sizes, messages, versions, metrics, and buttons that open the declarations.
    """
    columns = _columns(comparison)
    if full:
        columns += [c for c in _MORE if any(map(c.shown, comparison.rows))]
        columns += [
            Column(m, _metric(m), _metric(m, lambda v: _number(v, ".6g"))) for m in comparison.metrics
        ]
    head = "".join(f"<th>{html.escape(c.title)}</th>" for c in columns)
    head += "<th>declaration</th>" if full and comparison.problems else ""
    best = {id(row) for row in comparison.winners}
    body = []
    for row in comparison.rows:
        cells = "".join(
            f'<td data-value="{html.escape(str(c.value(row)))}"{" class=number" if c.number else ""}>'
            f"{html.escape(c.text(row))}</td>"
            for c in columns
        )
        title = html.escape(f"{row.instance}, {row.label}")
        if full and row.fingerprint in comparison.problems:
            button = f'<button type="button" data-declaration="{row.fingerprint}" data-title="{title}">open'
            cells += f'<td data-value="{row.fingerprint}">{button}</button></td>'
        kind = "best" if id(row) in best else "solved" if row.solved else "lost"
        body.append(f'<tr class="{kind}" data-title="{title}">{cells}</tr>')
    return "\n".join(["<table>", f"<thead><tr>{head}</tr></thead>", "<tbody>", *body, "</tbody>", "</table>"])


def html_notes(comparison: Comparison) -> str:
    """Write the notes below the table, each a paragraph."""
    return "".join(f"<p>{html.escape(note)}</p>\n" for note in comparison.notes)


def frame(comparison: Comparison) -> Any:
    """Give a `pandas.DataFrame` with a line for each run; see `Comparison.to_pandas`."""
    pd = required("pandas", "to_pandas")

    rows = comparison.rows
    out = pd.DataFrame([row.record() for row in rows])
    out[list(NUMBERS)] = out[list(NUMBERS)].astype(float)
    out["bridges"] = [", ".join(row.bridges) for row in rows]
    out["versions"] = [", ".join(f"{k} {v}" for k, v in row.versions.items()) for row in rows]
    out = out.drop(columns=["parameters", "metrics", "parts"])
    for kind, names in (("parameters", comparison.parameters), ("metrics", comparison.metrics)):
        for name in names:  # under a longer name where a column has it already
            title = f"{kind}.{name}" if name in out else name
            out[title] = [getattr(row, kind).get(name) for row in rows]
    return out
