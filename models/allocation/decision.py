"""The decision: how many records of each stratum are sampled."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from forcopt.arrays import Array, as_numbers
from forcopt.errors import DeclarationError
from forcopt.models.allocation.tolerances import SUM
from forcopt.problem.drawing import finished, panel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Allocation"]

MOST_SHOWN = 20


@dataclass(frozen=True, eq=False)
class Allocation:
    """Sizes of the samples within strata.

    Attributes
    ----------
    sizes : Array
        How many records are sampled, shape ``(k,)``; whole numbers unless fractions are allowed.
    names : tuple[str, ...]
        Of the strata.
    strata : Array
        How many records there are, shape ``(k,)``.
    variances : Array
        Of the estimated mean of each variable, shape ``(V,)``.
    variance : float
        Their sum, each times its weight; of the one variable, if there is one.
    design_effect : float, optional
        `variance` over that of a simple random sample of the same size; None if the means of the strata are
        not known, or the sample is a census.
    noise_scale : float, optional
        Of the Laplace noise that privacy needs; None without privacy.

    Examples
    --------
    >>> from forcopt.models import StratifiedAllocation
    >>> p = StratifiedAllocation(sizes=[100, 50, 50], deviations=[1, 4, 2], sample_size=40)
    >>> found = p.solve().decision
    >>> found.sizes.tolist(), found.size, found.rates.tolist()
    ([10.0, 20.0, 10.0], 40.0, [0.1, 0.4, 0.2])
    >>> print(found)
    stratum    records     sample    rate
    0              100         10  0.1000
    1               50         20  0.4000
    2               50         10  0.2000
    40 records, variance 0.0725
    """

    sizes: Array
    names: tuple[str, ...] = field(repr=False)
    strata: Array = field(repr=False)
    variances: Array
    variance: float
    design_effect: float | None = None
    noise_scale: float | None = None

    def __post_init__(self) -> None:
        self.sizes.flags.writeable = False
        self.variances.flags.writeable = False

    @property
    def size(self) -> float:
        """How many records are sampled in all."""
        return float(self.sizes.sum())

    @property
    def rates(self) -> Array:
        """The share of each stratum that is sampled, shape ``(k,)``."""
        return np.asarray(self.sizes / self.strata)

    @property
    def weighting_effect(self) -> float:
        """Kish's effect of unequal weights, ``n sum(w^2) / sum(w)^2`` over the sample; 1 if proportional."""
        return float(self.size * (self.strata**2 / self.sizes).sum() / self.strata.sum() ** 2)

    def issued(self, response_rates: Any) -> Array:
        """Give how many records to draw of each stratum, so that the expected respondents are the sizes.

        Parameters
        ----------
        response_rates : array_like
            Above 0 and at most 1; one number or one for each stratum.

        Returns
        -------
        Array
            Whole numbers, shape ``(k,)``. For the least variance at a cost for each record that is drawn,
            declare the problem with ``costs / response_rates``, which is the cost of a respondent.

        Raises
        ------
        DeclarationError
            For rates out of range, or a stratum with too few records; it names the stratum.
        """
        rates = np.broadcast_to(as_numbers(response_rates, "response_rates"), self.sizes.shape)
        if (rates <= 0).any() or (rates > 1).any():
            raise DeclarationError("response_rates must be above 0 and at most 1")
        needed = np.ceil(self.sizes / rates * (1 - SUM))
        if (needed > self.strata).any():
            at = int(np.argmax(needed - self.strata))
            raise DeclarationError(
                f"stratum {self.names[at]} has {self.strata[at]} records; {needed[at]:g} must be drawn for "
                f"{self.sizes[at]:g} respondents"
            )
        return np.asarray(needed, dtype=np.int64)

    def by_stratum(self) -> dict[str, int]:
        """The sizes by name, as `forcopt.privacy.StratifiedSample` takes them.

        Raises
        ------
        ValueError
            For sizes that are not whole.
        """
        if (self.sizes != np.round(self.sizes)).any():
            raise ValueError("the sizes are not whole; solve with integer=True to draw a sample")
        return dict(zip(self.names, map(int, self.sizes), strict=True))

    def __repr__(self) -> str:
        width = max(len("stratum"), *map(len, self.names))
        lines = [f"{'stratum':{width}}    records     sample    rate"]
        for i in range(min(len(self.names), MOST_SHOWN)):
            size = f"{self.sizes[i]:10.10g}" if self.sizes[i] % 1 == 0 else f"{self.sizes[i]:10.4f}"
            lines.append(f"{self.names[i]:{width}} {self.strata[i]:10d} {size} {self.rates[i]:7.4f}")
        if len(self.names) > MOST_SHOWN:
            lines.append(f"... and {len(self.names) - MOST_SHOWN} more")
        lines.append(f"{self.size:.10g} records, variance {self.variance:.6g}")
        return "\n".join(lines)

    def plot(self, path: str | Path | None = None, *, ax: Any = None) -> Figure:
        """Draw how many records each stratum has and how many are sampled, on a logarithmic scale.

        Parameters
        ----------
        path : str or Path, optional
            The file to save the picture to; its ending gives the format.
        ax : matplotlib.axes.Axes, optional
            The axes to draw on; a new figure if left out.
        """
        count = len(self.names)
        figure, axes = panel(ax, (6.5, 1.4 + 0.26 * min(count, 40)))
        places = np.arange(count)
        axes.barh(places, self.strata, color="#d9d9d9", label="records")
        axes.barh(places, self.sizes, color="#0072B2", label="sample")
        if count <= 40:
            axes.set_yticks(places, self.names)
        axes.set(xscale="log", xlabel="records", xlim=(0.8, None), ylim=(count - 0.5, -0.5))
        axes.set_title(f"{self.size:.10g} of {self.strata.sum():.10g} records", loc="left", fontsize=11)
        if ax is None:
            figure.legend(loc="outside lower center", ncols=2, frameon=False)
        else:
            axes.legend(frameon=False)
        return finished(figure, path)
