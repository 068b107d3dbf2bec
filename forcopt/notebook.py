"""How objects show themselves in a notebook: small tables and pictures as HTML."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from io import StringIO
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["brief", "facts_html", "picture_html", "table_html"]

_LONGEST = 80


def brief(value: Any) -> str:
    """Describe a value on one line: arrays and collections by shape or size.

    Examples
    --------
    >>> brief(np.zeros((3, 4))), brief([1, 2]), brief("a")
    ('float64 array of shape (3, 4)', '[1, 2]', "'a'")
    """
    if isinstance(value, np.ndarray):
        return f"{value.dtype} array of shape {value.shape}" if value.ndim else f"{value[()]!r}"
    if hasattr(value, "number_of_nodes") and hasattr(value, "number_of_edges"):
        return f"graph of {value.number_of_nodes()} nodes and {value.number_of_edges()} edges"
    text = " ".join(repr(value).split())
    if len(text) <= _LONGEST:
        return text
    if hasattr(value, "shape"):
        return f"{type(value).__name__} of shape {value.shape}"
    if hasattr(value, "__len__"):
        return f"{type(value).__name__} of {len(value)} entries"
    return f"{text[: _LONGEST - 1]}…"


def facts_html(title: str, facts: Mapping[str, Any]) -> str:
    """Show a title and a table of names with values.

    Examples
    --------
    >>> facts_html("a < b", {"status": "optimal"})
    '<table><caption>a &lt; b</caption><tr><th>status</th><td>optimal</td></tr></table>'
    """
    rows = "".join(
        f"<tr><th>{html.escape(name)}</th><td>{html.escape(str(value))}</td></tr>"
        for name, value in facts.items()
    )
    return f"<table><caption>{html.escape(title)}</caption>{rows}</table>"


def table_html(title: str, headings: Iterable[str], rows: Iterable[Iterable[Any]], most: int = 20) -> str:
    """Show a table of at most `most` rows, and count the others."""
    lines = [list(row) for row in rows]
    head = "".join(f"<th>{html.escape(h)}</th>" for h in headings)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>"
        for row in lines[:most]
    )
    more = f"<p>and {len(lines) - most} more</p>" if len(lines) > most else ""
    caption = f"<caption>{html.escape(title)}</caption>"
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def picture_html(figure: Figure) -> str:
    """Give a figure as SVG within HTML."""
    text = StringIO()
    figure.savefig(text, format="svg")
    return text.getvalue()[text.getvalue().index("<svg") :]
