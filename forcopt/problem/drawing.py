"""The style of all figures: one palette, markers beside colours, axes that a caller may give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill, shorten
from typing import TYPE_CHECKING, Any

import numpy as np

from forcopt.notebook import new_figure, write_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000")
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


def titled(axes: Any, finding: str) -> None:
    """Put a sentence above the axes, in lines that the figure has room for."""
    room = axes.figure.get_size_inches()[0] / axes.get_gridspec().ncols
    axes.set_title(fill(finding, max(20, int(11 * room))), loc="left", fontsize=11)


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


class Drawn:
    """What draws itself on axes: `plot` makes a figure of them, or takes the axes of a caller."""

    _figure_size: tuple[float, float]

    def _draw(self, axes: Any) -> None:
        raise NotImplementedError

    def plot(self, path: str | Path | None = None, *, ax: Any = None) -> Figure:
        """Draw the decision.

        Parameters
        ----------
        path : str or Path, optional
            The file to save the picture to; its ending gives the format.
        ax : matplotlib.axes.Axes, optional
            The axes to draw on; a new figure if left out.
        """
        figure, axes = panel(ax, self._figure_size)
        self._draw(axes)
        return finished(figure, path)


_LARGEST = 60
"""The longest row that is drawn as bars; a longer one is a line."""

_NOTHING = 1e-6
"""The part of the largest number below which another one is drawn as 0."""

_CELLS = 100
"""The most cells of a table that hold their numbers."""


@dataclass(frozen=True)
class Sketch:
    """The picture of a decision: a sentence, and a row of numbers as bars or a table of them as colours.

    Attributes
    ----------
    title : str
        The sentence: what was found.
    values : Any, optional
        Shape ``(n,)`` or ``(n, m)``; without them the sentence is all.
    rows, columns : str or sequence of str
        The names of rows and columns, or what they are, such as ``"feature"``: these are numbered from 0.
    unit : str, default ""
        What the numbers are.
    labels : sequence of str, optional
        What stands beside the bars; the numbers by default.

    Examples
    --------
    >>> figure = Sketch("Bo has two votes of three", [1, 2], ["Ann", "Bo"], unit="votes").plot()
    >>> [float(bar.get_width()) for bar in figure.axes[0].patches]
    [1.0, 2.0]
    """

    title: str
    values: Any = None
    rows: str | Sequence[str] = ""
    columns: str | Sequence[str] = ""
    unit: str = ""
    labels: Sequence[str] = ()

    def plot(self, path: str | Path | None = None, *, ax: Any = None) -> Figure:
        """Draw it, on the given axes or on a new figure, and write it to a file if one is named."""
        numbers = np.array([] if self.values is None else self.values, dtype=float)
        short = len(numbers) <= _LARGEST
        if len(numbers):  # what a solver leaves of 0
            numbers[np.abs(numbers) < _NOTHING * np.nanmax(np.abs(numbers))] = 0.0
        height = 1.2 + 0.3 * len(numbers) if short else 4.0
        figure, axes = panel(ax, (6.0, height if len(numbers) else 0.8))
        titled(axes, self.title)
        if not len(numbers):
            axes.set_axis_off()
        elif numbers.ndim > 1:
            image = axes.imshow(numbers, aspect="auto", cmap="cividis")
            if numbers.size <= _CELLS:
                dark = numbers < np.nanmean([np.nanmin(numbers), np.nanmax(numbers)])
                for (i, j), value in np.ndenumerate(numbers):
                    colour = "white" if dark[i, j] else "black"
                    axes.text(j, i, f"{value:.3g}", ha="center", va="center", color=colour, fontsize=9)
            else:
                figure.colorbar(image, ax=axes, label=self.unit)
            _name(axes.xaxis, self.columns, numbers.shape[1])
            _name(axes.yaxis, self.rows, len(numbers))
        elif short:
            bars = axes.barh(np.arange(len(numbers)), numbers, color=COLOURS[0])
            axes.bar_label(bars, self.labels or [f"{v:.4g}" for v in numbers], padding=3, fontsize=9)
            axes.margins(x=0.25)
            if (numbers == np.round(numbers)).all():
                whole_ticks(axes.xaxis)
            axes.set(xlabel=self.unit, ylim=(len(numbers) - 0.5, -0.5))
            _name(axes.yaxis, self.rows, len(numbers))
        else:
            axes.plot(numbers, color=COLOURS[0])
            axes.set(xlabel=self.rows if isinstance(self.rows, str) else "", ylabel=self.unit)
            whole_ticks(axes.xaxis)
        return finished(figure, path)


def _name(axis: Any, names: str | Sequence[str], count: int) -> None:
    """The names along an axis, or numbers and what they number."""
    if isinstance(names, str) or count > _LARGEST:
        axis.set_label_text(names if isinstance(names, str) else "")
        whole_ticks(axis)
        axis.get_major_locator().set_params(steps=[1, 2, 5, 10], min_n_ticks=1)
    else:
        axis.set_ticks(np.arange(count), [shorten(str(name), 28) for name in names])
