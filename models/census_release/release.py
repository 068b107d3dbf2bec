"""The decision: counts of every unit and type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from forcopt.arrays import Array
from forcopt.data.hierarchy import Hierarchy
from forcopt.models.census_release.region import Region
from forcopt.problem.drawing import MARKERS, finished, panel

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

__all__ = ["Release"]


@dataclass(frozen=True, eq=False)
class Release:
    """Published counts of a hierarchy.

    Attributes
    ----------
    hierarchy : Hierarchy
        The tree, without the private counts.
    counts : tuple[Array, ...]
        By level, root first; shapes ``(units, types)``, read-only.

    Examples
    --------
    >>> from forcopt.data import Hierarchy
    >>> from forcopt.models import ConsistentRelease
    >>> tree = Hierarchy(parents=([0, 0], [0, 0, 1, 1, 1]))
    >>> noisy = ([103], [58, 44], [36, 20, 24, 13, 2])
    >>> p = ConsistentRelease(tree, noisy, precision=[1, 1, 1], integer=True)
    >>> release = p.solve("tree-integer").decision
    >>> [level.ravel().tolist() for level in release.counts]
    [[102], [58, 44], [37, 21, 26, 15, 3]]
    """

    hierarchy: Hierarchy = field(repr=False)
    counts: tuple[Array, ...] = field(repr=False)

    def __post_init__(self) -> None:
        for level in self.counts:
            level.flags.writeable = False

    @classmethod
    def of_leaves(cls, hierarchy: Hierarchy, leaves: Array) -> Release:
        """Make a release of the leaves' counts, which all other counts are sums of.

        Parameters
        ----------
        hierarchy : Hierarchy
            The tree.
        leaves : Array
            Shape ``(leaves, types)``.
        """
        return cls(hierarchy.bare, tuple(hierarchy.sums(leaves)))

    @property
    def leaves(self) -> Array:
        """The leaves' counts, shape ``(leaves, types)``."""
        return self.counts[-1]

    def estimate(self, region: Region | Sequence[int] | Array) -> Array:
        """The count of a region by type, shape ``(types,)``.

        Parameters
        ----------
        region : Region or array_like
            A region, or its leaves' positions.
        """
        leaves = region.leaves if isinstance(region, Region) else np.asarray(region, dtype=np.int64)
        return np.asarray(self.leaves[leaves].sum(axis=0))

    def to_pandas(self) -> DataFrame:
        """The counts as a table with columns level, unit, and one for each type."""
        import pandas as pd

        h = self.hierarchy
        types = h.types or tuple(f"type {t}" for t in range(self.leaves.shape[1]))
        frames = []
        for level, counts in enumerate(self.counts):
            units = h.names[level] if h.names else tuple(map(str, range(len(counts))))
            columns: dict[str, Any] = {"level": h.level_name(level), "unit": units}
            frames.append(pd.DataFrame(columns | dict(zip(types, counts.T, strict=True))))
        return pd.concat(frames, ignore_index=True)

    def plot(self, path: str | Path | None = None, *, ax: Any = None) -> Figure:
        """Draw the distribution of the units' totals on each level.

        Parameters
        ----------
        path : str or Path, optional
            The file to save the picture to; its ending gives the format.
        ax : matplotlib.axes.Axes, optional
            The axes to draw on; a new figure if left out.
        """
        figure, axes = panel(ax, (6.5, 3.4))
        for level, counts in enumerate(self.counts):
            total = np.sort(counts.sum(axis=1))[::-1]
            style = {"marker": MARKERS[level % len(MARKERS)], "markersize": 3}
            label = self.hierarchy.level_name(level)
            axes.plot(np.arange(1, len(total) + 1), total, label=label, **style)
        axes.set(xscale="log", yscale="symlog", xlabel="rank of the unit on its level", ylabel="people")
        axes.legend(frameon=False)
        return finished(figure, path)

    def __repr__(self) -> str:
        total = self.counts[0].sum()
        h = self.hierarchy
        return f"<Release of {h.leaves:,} leaves on {h.depth} levels, {total:,.6g} people>"
