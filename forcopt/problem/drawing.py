"""The style of all figures: one palette, markers beside colours, axes that a caller may give."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from forcopt.errors import DeclarationError
from forcopt.notebook import new_figure, write_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000", "#999999")
"""Okabe and Ito's palette, whose colours colour-blind readers can distinguish."""

MARKERS = "osD^vP*X"
"""One marker for each colour, for readers who see no colours."""


def panel(ax: Any, size: tuple[float, float]) -> tuple[Figure, Any]:
    """Give a figure and axes to draw on.

    Parameters
    ----------
    ax : matplotlib.axes.Axes or None
        The axes that the caller gave; None for a new figure.
    size : tuple of float
        Width and height of a new figure, in inches.

    Returns
    -------
    tuple
        The figure and its axes, with the palette set and without a frame on the upper and right side.

    Examples
    --------
    >>> figure, axes = panel(None, (4.0, 3.0))
    >>> panel(axes, (9.0, 9.0)) == (figure, axes)
    True
    """
    axes: Any = new_figure(*size).subplots() if ax is None else ax
    axes.set_prop_cycle(color=COLOURS)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)
    return axes.figure, axes


def whole_ticks(axis: Any) -> None:
    """Put ticks at whole numbers alone, for things that are counted."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True))


def finished(figure: Figure, path: str | Path | None) -> Figure:
    """Write a figure to a file, if one is named, and return it.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        The figure.
    path : str or Path, optional
        A file whose ending names the format, such as ``.png``, ``.svg`` or ``.pdf``.
    """
    write_figure(figure, path)
    return figure


_LARGEST = 40
"""The longest row that is drawn as bars; a longer one is a line."""


def draw_arrays(value: Any, ax: Any = None) -> Figure:
    """Draw the numbers that an object holds: bars or a line for a row of numbers, a heat map for a table.

    Parameters
    ----------
    value : Any
        A number, an array, a mapping of numbers, or an object with such fields.
    ax : matplotlib.axes.Axes, optional
        The axes to draw on; then the largest array alone is drawn.

    Raises
    ------
    DeclarationError
        If the object holds no numbers.

    Examples
    --------
    >>> figure = draw_arrays({"a": 1.0, "b": 2.0})
    >>> [float(bar.get_height()) for bar in figure.axes[0].patches]
    [1.0, 2.0]
    """
    parts = _parts(value)
    if not parts:
        raise DeclarationError(f"a {type(value).__name__} holds no numbers to draw")
    if ax is not None:
        name = max(parts, key=lambda n: parts[n][1].size)
        _draw_part(panel(ax, (0, 0))[1], name, *parts[name])
        return panel(ax, (0, 0))[0]
    figure = new_figure(6.0, 0.4 + 2.8 * len(parts))
    panels = figure.subplots(len(parts), squeeze=False)[:, 0]
    for axes, (name, part) in zip(panels, parts.items(), strict=True):
        _draw_part(panel(axes, (0, 0))[1], name, *part)
    return figure


def _parts(value: Any) -> dict[str, tuple[list[str] | None, Any]]:
    """The arrays of an object by the names of their fields, each with the labels of its entries."""
    own = _labelled(value)
    if own is not None:
        return {_words(type(value).__name__) if dataclasses.is_dataclass(value) else "value": own}
    if dataclasses.is_dataclass(value):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    else:
        fields = {k: v for k, v in getattr(value, "__dict__", {}).items() if not k.startswith("_")}
    for name, v in list(fields.items()):  # rows of different lengths
        if isinstance(v, list | tuple) and _labelled(v) is None:
            fields |= {f"{name}[{i}]": row for i, row in enumerate(v)}
    found = {name: _labelled(v) for name, v in fields.items()}
    arrays = {name: part for name, part in found.items() if part is not None and part[1].size}
    return {name: part for name, part in arrays.items() if part[1].size > 1} or arrays


def _labelled(value: Any) -> tuple[list[str] | None, Any] | None:
    if isinstance(value, dict):
        if value and all(isinstance(v, int | float | np.number) for v in value.values()):
            return [str(k) for k in value], np.array(list(value.values()), dtype=float)
        return None
    if isinstance(value, str | bytes) or dataclasses.is_dataclass(value):
        return None
    try:
        numbers = np.asarray(sorted(value) if isinstance(value, set | frozenset) else value, dtype=float)
    except (TypeError, ValueError):
        return None
    return None, np.where(np.isfinite(numbers), numbers, np.nan)


def _draw_part(axes: Any, name: str, labels: list[str] | None, numbers: Any) -> None:
    numbers = np.atleast_1d(numbers)
    if numbers.ndim > 1:
        table = numbers.reshape(len(numbers), -1)
        image = axes.imshow(table, aspect="auto", cmap="viridis")
        axes.figure.colorbar(image, ax=axes, label=_words(name))
        for axis in (axes.xaxis, axes.yaxis):
            whole_ticks(axis)
        axes.set(xlabel="column", ylabel="row")
        return
    places = np.arange(len(numbers))
    if len(numbers) <= _LARGEST:
        axes.bar(places, numbers, color=COLOURS[0])
        axes.set_xticks(places, labels or places, rotation=90 if labels and max(map(len, labels)) > 4 else 0)
    else:
        axes.plot(places, numbers, color=COLOURS[0])
        whole_ticks(axes.xaxis)
    axes.set_ylabel(_words(name))
    if not labels:
        axes.set_xlabel("position")


def _words(name: str) -> str:
    """A name of a field or class as words."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", name).lower()
