"""A comparison as a table: plain text, rich text for terminals, HTML for pages, a data frame."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from forcopt.study.columns import further_columns, identifying_columns
from forcopt.study.run import NUMBERS

if TYPE_CHECKING:
    from rich.table import Table

    from forcopt.study.columns import Column
    from forcopt.study.comparison import Comparison

__all__ = ["frame", "html_notes", "html_table", "rich_table", "text_table"]

_LEAST_NEEDED = ("MB", "gap", "bound", "to best", "proved by")
"""Columns that a narrow terminal does without, in this order."""


def _columns(comparison: Comparison) -> list[Column]:
    return identifying_columns(comparison.rows, comparison.parameters)


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
        columns += further_columns(comparison.rows, comparison.metrics)
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
    import pandas as pd

    rows = comparison.rows
    out = pd.DataFrame([row.record() for row in rows])
    out[list(NUMBERS)] = out[list(NUMBERS)].astype(float)
    out["bridges"] = [", ".join(row.bridges) for row in rows]
    out["versions"] = [", ".join(f"{k} {v}" for k, v in row.versions.items()) for row in rows]
    out = out.drop(columns=["parameters", "metrics"])
    for kind, names in (("parameters", comparison.parameters), ("metrics", comparison.metrics)):
        for name in names:  # under a longer name where a column has it already
            title = f"{kind}.{name}" if name in out else name
            out[title] = [getattr(row, kind).get(name) for row in rows]
    return out
