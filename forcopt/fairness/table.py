"""A table of the rates of each group with confidence intervals, for an audit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.fairness.rates import (
    ERROR,
    FALSE_POSITIVE,
    NEGATIVE_PREDICTIVE,
    POSITIVE_PREDICTIVE,
    SELECTION,
    TRUE_POSITIVE,
    Rate,
    Table,
)
from forcopt.fairness.records import tabulate
from forcopt.notebook import new_figure, write_figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["RateTable", "binomial_interval"]

_STATED = {
    SELECTION: "acceptance",
    TRUE_POSITIVE: "true positive",
    FALSE_POSITIVE: "false positive",
}
"""Rates that a certificate states, and their names there."""

EVERY = (SELECTION, ERROR, FALSE_POSITIVE, TRUE_POSITIVE, POSITIVE_PREDICTIVE, NEGATIVE_PREDICTIVE)


def binomial_interval(
    events: Any, trials: Any, confidence: float = 0.95, method: str = "clopper-pearson"
) -> tuple[Array, Array]:
    """Two-sided confidence intervals for probabilities, from counts.

    Parameters
    ----------
    events, trials : array_like
        How often the event happened, and how often it could; of one shape.
    confidence : float, default 0.95
        The probability with which the interval holds the true one.
    method : str, default "clopper-pearson"
        ``"clopper-pearson"`` covers with at least the confidence, for every number of trials; ``"wilson"`` is
        shorter, and covers with nearly the confidence on average.

    Returns
    -------
    tuple[Array, Array]
        Lower and upper ends; 0 and 1 without a trial.

    Raises
    ------
    DeclarationError
        For a confidence that is not strictly between 0 and 1, or another method.

    References
    ----------
    Clopper and Pearson (1934); Wilson (1927); Brown, Cai and DasGupta (2001), Interval estimation for a
    binomial proportion.

    Examples
    --------
    >>> low, high = binomial_interval([0, 8], [10, 10])
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.0, 0.4439], [0.3085, 0.9748])
    """
    from scipy.special import ndtri
    from scipy.stats import beta

    if not 0.0 < confidence < 1.0:
        raise DeclarationError(f"confidence is {confidence:g}; it must be strictly between 0 and 1")
    k, n = np.asarray(events, dtype=float), np.asarray(trials, dtype=float)
    tail = (1.0 - confidence) / 2.0
    if method == "clopper-pearson":
        low = np.where(k > 0, beta.ppf(tail, np.maximum(k, 1), n - k + 1), 0.0)
        high = np.where(k < n, beta.ppf(1.0 - tail, k + 1, np.maximum(n - k, 1)), 1.0)
    elif method == "wilson":
        z, some = float(ndtri(1.0 - tail)), np.maximum(n, 1)
        share = k / some
        middle = (share + z**2 / (2 * some)) / (1 + z**2 / some)
        half = z / (1 + z**2 / some) * np.sqrt(share * (1 - share) / some + z**2 / (4 * some**2))
        low, high = np.where(k > 0, middle - half, 0.0), np.where(k < n, middle + half, 1.0)
    else:
        raise DeclarationError(f"the method is {method!r}; it must be 'clopper-pearson' or 'wilson'")
    nobody = n == 0
    return np.where(nobody, 0.0, low), np.where(nobody, 1.0, high)


@dataclass(frozen=True, eq=False)
class RateTable:
    """Rates of predictions in each group and overall, with confidence intervals.

    Attributes
    ----------
    groups : tuple[str, ...]
        Names of the K groups.
    rates : tuple[Rate, ...]
        The R rates.
    counts : Array
        Records by group, prediction and label; shape ``(K, 2, 2)``.
    confidence : float, default 0.95
        Of each interval for itself, not of all together.
    method : str, default "clopper-pearson"
        See `binomial_interval`.

    Examples
    --------
    >>> t = RateTable.from_predictions([1, 0, 1, 1], ["a", "a", "b", "b"], [1, 0, 0, 1], rates=(SELECTION,))
    >>> t.frame().round(3)
                     rate    group  records  estimate    low   high
    0  selection rate        a        2      0.50  0.013  0.987
    1  selection rate        b        2      1.00  0.158  1.000
    2  selection rate  overall        4      0.75  0.194  0.994
    >>> t.summary().round(3)
                     rate  difference  ratio
    0  selection rate         0.5    0.5
    """

    groups: tuple[str, ...]
    rates: tuple[Rate, ...]
    counts: Array
    confidence: float = 0.95
    method: Literal["clopper-pearson", "wilson"] = "clopper-pearson"

    @classmethod
    def from_predictions(
        cls,
        predictions: Any,
        groups: Any,
        labels: Any,
        *,
        rates: Sequence[Rate] = EVERY,
        confidence: float = 0.95,
        method: Literal["clopper-pearson", "wilson"] = "clopper-pearson",
    ) -> Self:
        """Count records.

        Parameters
        ----------
        predictions : array_like
            0 or 1 for each record: drawn ones, if the classifier is randomised.
        groups : array_like
            The group of each record.
        labels : array_like
            0 or 1 for each record.
        rates : Sequence[Rate], optional
            Selection, error, false and true positive rate and both predictive values by default.
        confidence : float, default 0.95
            Of the intervals.
        method : Literal["clopper-pearson", "wilson"], default "clopper-pearson"
            See `binomial_interval`.

        Raises
        ------
        DeclarationError
            For columns of different length, or other values than 0 and 1.
        """
        counts, names = tabulate(predictions, groups, labels)
        binomial_interval(0, 1, confidence, method)  # refuses both, if they are wrong
        return cls(names, tuple(rates), counts.transpose(1, 0, 2), confidence, method)

    @property
    def events(self) -> Array:
        """How many records of each group have the event of each rate, shape ``(K, R)``."""
        return self._totals([rate.event for rate in self.rates])

    @property
    def trials(self) -> Array:
        """How many records of each group each rate counts, shape ``(K, R)``."""
        return self._totals([rate.given for rate in self.rates])

    def _totals(self, tables: Sequence[Table]) -> Array:
        return np.asarray(np.tensordot(self.counts, np.array(tables), ((1, 2), (1, 2))))

    def save_proof(self, path: str | Path) -> None:
        """Write the records and their rates as the certificate ``rates``, to be counted again by others.

        Parameters
        ----------
        path : str or Path
            The file, which ``python -m forcopt.check`` reads. It holds group, label and prediction of each
            record, and the selection, true and false positive rates of the table.

        Raises
        ------
        DeclarationError
            If the table has none of these rates.
        """
        stated = [
            [_STATED[rate], name, str(Fraction(int(event), int(trial)))]
            for name, events, trials in zip(self.groups, self.events, self.trials, strict=True)
            for rate, event, trial in zip(self.rates, events, trials, strict=True)
            if rate in _STATED and trial
        ]
        if not stated:
            raise DeclarationError("rates has no selection, true positive or false positive rate")
        rows = [
            [self.groups[k], int(label), int(predicted)]
            for (k, predicted, label), count in np.ndenumerate(self.counts)
            for _ in range(int(count))
        ]
        data = {"kind": "rates", "table": rows, "rates": stated}
        Path(path).write_text(json.dumps(data), encoding="utf-8")

    def frame(self) -> pd.DataFrame:
        """A row for each rate and group, and for each rate overall; NaN without a record."""
        import pandas as pd

        events = np.vstack([self.events, self.events.sum(axis=0)])
        trials = np.vstack([self.trials, self.trials.sum(axis=0)])
        low, high = binomial_interval(events, trials, self.confidence, self.method)
        share = np.where(trials > 0, events / np.maximum(trials, 1), np.nan)
        names = [*self.groups, "overall"]
        return pd.DataFrame(
            {
                "rate": np.repeat([rate.name for rate in self.rates], len(names)),
                "group": names * len(self.rates),
                "records": trials.T.ravel(),
                "estimate": share.T.ravel(),
                "low": low.T.ravel(),
                "high": high.T.ravel(),
            }
        )

    def summary(self) -> pd.DataFrame:
        """For each rate the largest difference and the smallest ratio between groups that have records."""
        import pandas as pd

        rows = []
        for r, rate in enumerate(self.rates):
            some = self.trials[:, r] > 0
            shares = self.events[some, r] / self.trials[some, r]
            spread = (np.nan, np.nan)
            if len(shares):
                largest = float(shares.max())
                spread = largest - float(shares.min()), float(shares.min()) / largest if largest else 1.0
            rows.append({"rate": rate.name, "difference": spread[0], "ratio": spread[1]})
        return pd.DataFrame(rows)

    def __repr__(self) -> str:
        return str(self.frame().to_string(index=False, float_format="{:.4f}".format))

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the rates of all groups with their intervals, a panel for each rate.

        Parameters
        ----------
        path : str or Path, optional
            The file to save the picture to; its ending gives the format.
        """
        frame = self.frame()
        figure = new_figure(1.5 + 2.2 * len(self.rates), 1.2 + 0.4 * len(self.groups))
        panels = figure.subplots(1, len(self.rates), sharey=True, squeeze=False)[0]
        for axes, rate in zip(panels, self.rates, strict=True):
            rows = frame[frame["rate"] == rate.name]
            middle = rows["estimate"].to_numpy()
            reach = np.abs(np.stack([middle - rows["low"], rows["high"] - middle]))
            axes.errorbar(middle, np.arange(len(rows)), xerr=reach, fmt="o", capsize=3)
            axes.set(title=rate.name, xlim=(0, 1), yticks=np.arange(len(rows)), yticklabels=rows["group"])
            axes.invert_yaxis()
        write_figure(figure, path)
        return figure
