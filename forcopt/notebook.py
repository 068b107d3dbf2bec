"""How objects show themselves: small tables and pictures as HTML in a notebook, figures in files."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from functools import cache
from io import BytesIO, StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from forcopt.errors import DeclarationError, required

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LONGEST = 80


@cache
def _picture() -> type[Figure]:
    """The class of figures that a notebook shows, made when matplotlib is first needed."""
    required("matplotlib", "a picture")
    from matplotlib.figure import Figure

    class Picture(Figure):
        def _repr_png_(self) -> bytes:
            drawn = BytesIO()
            self.savefig(drawn, format="png", dpi=100)
            return drawn.getvalue()

        def __reduce__(self) -> Any:
            return _unpickled, (), self.__getstate__()

    return Picture


def _unpickled() -> Figure:
    kind = _picture()
    return kind.__new__(kind)


def new_figure(width: float | None = None, height: float = 4.8) -> Figure:
    """Make a figure of matplotlib that a notebook shows as a picture, whether or not pyplot is loaded.

    Parameters
    ----------
    width, height : float
        In inches; matplotlib's own by default.

    Examples
    --------
    >>> figure = new_figure(4.0, 3.0)
    >>> _ = figure.subplots()
    >>> figure._repr_png_()[1:4], figure.get_size_inches().tolist()
    (b'PNG', [4.0, 3.0])
    """
    return _picture()(figsize=None if width is None else (width, height), layout="constrained")


def writable(path: str | Path) -> Path:
    """Give the path of a file to write.

    Raises
    ------
    DeclarationError
        If its folder does not exist.

    Examples
    --------
    >>> writable("plan.html").name
    'plan.html'
    """
    target = Path(path)
    if not target.absolute().parent.is_dir():
        raise DeclarationError(f"cannot write {path}: there is no folder {target.parent}")
    return target


def write_figure(figure: Any, path: str | Path | None, **options: Any) -> None:
    """Write a figure of matplotlib to a file, if one is named.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        The figure.
    path : str or Path, optional
        Its ending names the format.
    options : Any
        Of ``figure.savefig``.

    Raises
    ------
    DeclarationError
        For an ending that is no format, or a folder that does not exist.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> write_figure(Figure(), "plan.xyz")
    Traceback (most recent call last):
    forcopt.errors.DeclarationError: cannot write plan.xyz: the name must end in .png, .svg, .pdf, or the like
    """
    if path is None:
        return
    target = writable(path)
    ending = target.suffix.lower().removeprefix(".")
    if ending not in figure.canvas.get_supported_filetypes():
        raise DeclarationError(f"cannot write {path}: the name must end in .png, .svg, .pdf, or the like")
    figure.savefig(target, **options)


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
