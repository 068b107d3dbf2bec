"""The estimates of a repeated study: means, quantiles and intervals of its metrics, by Student's law."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from forcopt.arrays import Array, lists_by_key
from forcopt.errors import check_known, require, required
from forcopt.notebook import new_figure

if TYPE_CHECKING:
    from forcopt.study.comparison import Comparison


class Mean(NamedTuple):
    """A mean and an interval for the expectation.

    Attributes
    ----------
    mean : Array or float
        Of the values.
    low, high : Array or float
        The ends of the interval; NaN below two values.
    deviation : Array or float
        The standard deviation of the values (``ddof=1``); NaN below two values.
    """

    mean: Any
    low: Any
    high: Any
    deviation: Any


def check_level(level: float) -> None:
    """Refuse a confidence level that does not lie between 0 and 1.

    Raises
    ------
    DeclarationError
        With the level.
    """
    require(0 < level < 1, "level", level, "lie between 0 and 1")


def mean_interval(values: Array, level: float = 0.95) -> Mean:
    """Give the mean of independent repetitions and Student's interval for the expectation.

    The interval holds the expectation with probability `level`: exactly for normal values, in the limit for
    all others of finite variance.

    Parameters
    ----------
    values : Array
        One repetition a row, shape ``(n, ...)``.
    level : float, default 0.95
        Between 0 and 1.

    Returns
    -------
    Mean
        Each part has the shape of one repetition.

    Raises
    ------
    DeclarationError
        If the level does not lie between 0 and 1.

    Examples
    --------
    >>> mean, low, high, deviation = mean_interval(np.array([1.0, 2.0, 3.0]))
    >>> round(float(low), 4), float(mean), round(float(high), 4)
    (-0.4841, 2.0, 4.4841)
    """
    from scipy.stats import t

    check_level(level)
    n = len(values)
    unknown = np.full(values.shape[1:], np.nan)
    if n < 2:
        return Mean(values.mean(axis=0) if n else unknown, unknown, unknown, unknown)
    mean, deviation = values.mean(axis=0), values.std(axis=0, ddof=1)
    reach = float(t.ppf((1 + level) / 2, n - 1)) * deviation / np.sqrt(n)
    return Mean(mean, mean - reach, mean + reach, deviation)


def summary(comparison: Comparison, value: str, level: float, among: Array | None = None) -> Any:
    """Give the mean of a number for each instance, point of a sweep and method; see `Comparison.summary`.

    Parameters
    ----------
    comparison, value, level
        As there.
    among : Array, optional
        Which rows to take, shape ``(rows,)``; all by default. The values of the others count as unknown.
    """
    pd = required("pandas", "a table of means")

    check_level(level)
    rows = enumerate(comparison.rows)
    groups = lists_by_key(((row.instance, row.method, row.backend), at) for at, row in rows)
    every = comparison.numbers(value)
    if among is not None:
        every = np.where(among, every, np.nan)
    out = []
    for (instance, method, backend), places in groups.items():
        values = every[places]
        values = values[np.isfinite(values)]
        mean, low, high, deviation = map(float, mean_interval(values, level))
        least, median, greatest = np.quantile(values, [0, 0.5, 1]) if len(values) else [np.nan] * 3
        out.append(
            {"instance": instance, **comparison.rows[places[0]].parameters, "method": method}
            | {"backend": backend, "runs": len(places), "known": len(values), "mean": mean}
            | {"low": low, "high": high, "deviation": deviation}
            | {"least": least, "median": median, "greatest": greatest}
        )
    return pd.DataFrame(out)


@dataclass(frozen=True, eq=False)
class Estimates:
    """The metrics of every repetition, and estimates of their expectation.

    Attributes
    ----------
    values : Mapping[str, Array]
        By metric, one repetition a row, shape ``(runs, ...)``.
    seed : int
        Of the study.
    level : float
        Of the intervals.
    message : str, default ""
        Why there are fewer repetitions than asked for; empty if there are not.

    Examples
    --------
    >>> e = Estimates({"error": np.array([1.0, 2.0, 3.0])}, seed=0, level=0.95)
    >>> e
    <3 repetitions (simulated, seed 0): error 2 ± 2.5>
    >>> e.mean("error"), e.quantile("error", 0.5)
    (2.0, 2.0)
    """

    values: Mapping[str, Array] = field(repr=False)
    seed: int
    level: float
    message: str = ""

    @property
    def runs(self) -> int:
        """The number of repetitions."""
        return len(next(iter(self.values.values())))

    def _of(self, name: str) -> Array:
        check_known("metric", name, self.values)
        return self.values[name]

    def mean(self, name: str) -> Any:
        """Give the mean of a metric.

        Raises
        ------
        UnknownNameError
            If there is no such metric.
        """
        return _plain(mean_interval(self._of(name), self.level).mean)

    def interval(self, name: str) -> tuple[Any, Any]:
        """Give Student's interval for the expectation of a metric; see `mean`.

        Parameters
        ----------
        name : str
            Of the metric.

        Returns
        -------
        tuple
            The lower and the upper end, at the study's level; arrays for a metric with several entries.

        Raises
        ------
        UnknownNameError
            For another name.

        Examples
        --------
        >>> import numpy as np
        >>> import forcopt as fo
        >>> from forcopt.privacy import AdditiveMechanism, DiscreteLaplace
        >>> noise = AdditiveMechanism(DiscreteLaplace(scale=2.0))
        >>> error = {"error": lambda release, data: float(abs(release - data).max())}
        >>> study = fo.replicate(np.array([10, 20]), noise, np.asarray, error, runs=50, rng=1)
        >>> low, high = study.interval("error")
        >>> low < study.mean("error") < high
        True
        """
        found = mean_interval(self._of(name), self.level)
        return _plain(found.low), _plain(found.high)

    def standard_error(self, name: str) -> Any:
        """Give the standard error of the mean of a metric; see `mean`."""
        return _plain(mean_interval(self._of(name), self.level).deviation / np.sqrt(self.runs))

    def quantile(self, name: str, q: float) -> Any:
        """Give the quantile of a metric over the repetitions; see `mean`."""
        return _plain(np.quantile(self._of(name), q, axis=0))

    def to_pandas(self) -> Any:
        """Give a `pandas.DataFrame` with a line for each metric and entry.

        Its columns are metric, entry (empty for a number), runs, mean, low, high, deviation, and the 5, 50
        and 95 % quantiles over the repetitions.
        """
        pd = required("pandas", "to_pandas")

        lines = []
        for name, values in self.values.items():
            found = mean_interval(values, self.level)
            quantiles = np.quantile(values, [0.05, 0.5, 0.95], axis=0)
            for entry in np.ndindex(values.shape[1:]):
                parts = [part[entry] for part in (*found, *quantiles)]
                lines.append([name, ", ".join(map(str, entry)), len(values), *map(float, parts)])
        columns = ["metric", "entry", "runs", "mean", "low", "high", "deviation", "q05", "q50", "q95"]
        return pd.DataFrame(lines, columns=columns)

    def plot(self, name: str, ax: Any = None) -> Any:
        """Draw a metric: a histogram of a number, or means with intervals of the entries of an array.

        Parameters
        ----------
        name : str
            Of the metric.
        ax : Any, optional
            Matplotlib axes to draw into; new ones if left out.

        Returns
        -------
        Any
            The matplotlib axes.
        """
        values = self._of(name)
        if ax is None:
            ax = new_figure(6, 3.5).subplots()
        found = mean_interval(values.reshape(len(values), -1), self.level)
        if values.ndim == 1:
            ax.hist(values, bins="auto", color="#0072B2", alpha=0.5)
            ax.axvline(found.mean[0], color="#D55E00")
            ax.axvspan(found.low[0], found.high[0], color="#D55E00", alpha=0.3)
            ax.set_xlabel(name)
            ax.set_ylabel("repetitions")
        else:
            at = np.arange(found.mean.size)
            ax.errorbar(at, found.mean, found.high - found.mean, fmt="o", color="#0072B2", capsize=3)
            ax.set_xlabel("entry")
            ax.set_ylabel(name)
        ax.set_title(f"{self.runs} repetitions, {self.level:.0%} interval of the mean", fontsize=10)
        return ax

    def __repr__(self) -> str:
        parts = []
        for name, values in self.values.items():
            found = mean_interval(values, self.level)
            if values.ndim == 1:
                parts.append(f"{name} {found.mean:.4g} ± {found.high - found.mean:.2g}")
            else:
                parts.append(f"{name} of shape {values.shape[1:]}")
        note = f"; {self.message}" if self.message else ""
        return f"<{self.runs} repetitions (simulated, seed {self.seed}): {', '.join(parts)}{note}>"


def _plain(value: Any) -> Any:
    """A number instead of an array without axes."""
    return float(value) if np.ndim(value) == 0 else value
