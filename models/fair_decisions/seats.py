"""The decision of an apportionment: how many seats each state gets."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from forcopt.arrays import Array
from forcopt.problem.drawing import finished, panel

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

__all__ = ["Seats"]

_SHOWN = 60


@dataclass(frozen=True, eq=False)
class Seats:
    """Seats by state.

    Attributes
    ----------
    seats : Array
        Whole numbers, shape ``(k,)``.
    names : tuple[str, ...]
        Of the states.
    quotas : Array
        The proportional share of each state, shape ``(k,)``.
    tied : tuple[str, ...]
        States with equal claims to the last seat, of which some went without; empty if there is no tie.

    Examples
    --------
    >>> from forcopt.models import Apportionment
    >>> seats = Apportionment([3, 3], seats=3, names=("A", "B")).solve().decision
    >>> seats.seats.tolist(), seats.deviations.tolist(), seats.tied
    ([2, 1], [0.5, -0.5], ('A', 'B'))
    """

    seats: Array
    names: tuple[str, ...] = field(repr=False)
    quotas: Array = field(repr=False)
    tied: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.seats.flags.writeable = False
        self.quotas.flags.writeable = False

    @property
    def deviations(self) -> Array:
        """Seats less quota, shape ``(k,)``."""
        return np.asarray(self.seats - self.quotas)

    def table(self) -> DataFrame:
        """One row for each state: seats, quota, deviation."""
        from pandas import DataFrame

        columns = {"seats": self.seats, "quota": self.quotas, "deviation": self.deviations}
        return DataFrame(columns, index=list(self.names))

    def __repr__(self) -> str:
        width = max(5, *map(len, self.names))
        lines = [f"{'state':{width}}  seats      quota"]
        for name, s, q in list(zip(self.names, self.seats, self.quotas, strict=True))[:_SHOWN]:
            lines.append(f"{name:{width}} {s:6.10g} {q:10.4f}")
        if len(self.names) > _SHOWN:
            lines.append(f"... and {len(self.names) - _SHOWN} more")
        lines.append(f"{self.seats.sum():.10g} seats")
        if self.tied:
            lines.append(f"equal claims to the last seat: {', '.join(self.tied)}")
        return "\n".join(lines)

    def plot(self, path: str | Path | None = None, *, ax: Any = None) -> Figure:
        """Draw seats and quotas by state.

        Parameters
        ----------
        path : str or Path, optional
            The file to save the picture to; its ending gives the format.
        ax : matplotlib.axes.Axes, optional
            The axes to draw on; a new figure if left out.
        """
        order = np.argsort(-self.quotas, kind="stable")[:_SHOWN]
        places = np.arange(len(order))
        figure, axes = panel(ax, (max(5.0, 1.2 + 0.2 * len(order)), 3.6))
        axes.bar(places, self.seats[order], color="#9ecae1", label="seats")
        axes.plot(places, self.quotas[order], "_", color="#000000", label="quota")
        axes.set_xticks(places, [self.names[i] for i in order], rotation=90)
        axes.legend(frameon=False)
        return finished(figure, path)
