"""Measure unfairness from groups that were only seen through randomized response."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from forcopt.arrays import Array, as_numbers
from forcopt.errors import DeclarationError, check_choice, require, required
from forcopt.fairness import EqualizedOdds, Notion, Rate, read_binary, read_groups
from forcopt.fairness.records import same_length
from forcopt.privacy import RandomizedResponse

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class AuditedRate:
    """One rate of all K groups: estimated for the true groups, and as it looks by the reports.

    Attributes
    ----------
    values : Array
        Estimates, without bias in numerator and denominator; may leave [0, 1]; shape ``(K,)``.
    intervals : Array
        That hold each with the asked-for confidence, shape ``(K, 2)``.
    naive : Array
        The rates by reported group, shape ``(K,)``.
    disparity : float
        The largest estimate minus the smallest.
    disparity_interval : tuple[float, float]
        That holds the true disparity, with the asked-for confidence.
    naive_disparity : float
        The same of the naive rates. With two groups it is too small on average, for any epsilon (Mozannar et
        al. 2020, equation (23)).
    """

    values: Array
    intervals: Array
    naive: Array
    disparity: float
    disparity_interval: tuple[float, float]
    naive_disparity: float


@dataclass(frozen=True, eq=False)
class Audit:
    """The estimate of each rate; prints itself as a table.

    Attributes
    ----------
    groups : tuple[str, ...]
        Their names.
    rates : dict[str, AuditedRate]
        By the name of the rate.
    confidence : float
        Of the intervals.
    """

    groups: tuple[str, ...]
    rates: dict[str, AuditedRate]
    confidence: float

    def to_pandas(self) -> pd.DataFrame:
        """A row for each rate and group, and one for each disparity (group ``"disparity"``)."""
        pd = required("pandas", "to_pandas")

        rows = []
        for name, rate in self.rates.items():
            found = zip(self.groups, rate.values, rate.intervals, rate.naive, strict=True)
            rows += [(name, group, v, low, high, naive) for group, v, (low, high), naive in found]
            rows.append((name, "disparity", rate.disparity, *rate.disparity_interval, rate.naive_disparity))
        return pd.DataFrame(rows, columns=["rate", "group", "estimate", "low", "high", "naive"])

    def __repr__(self) -> str:
        return str(self.to_pandas().to_string(index=False, float_format=lambda v: f"{v:.4f}"))


def audit(
    predictions: Any,
    labels: Any,
    reports: Any,
    channel: RandomizedResponse,
    *,
    notion: Notion | None = None,
    confidence: float = 0.95,
    method: Literal["normal", "hoeffding"] = "normal",
) -> Audit:
    """Estimate the rates of the true groups, though only reports of them are known.

    Counts by reported group are turned into counts by true group by the inverse of the channel, which is
    unbiased. That needs predictions that depend on the group at most through features, not through the
    report itself: otherwise the inversion is wrong, and the data do not show it. O(n K^2).

    Parameters
    ----------
    predictions : Any
        0 or 1 for each record, or the probability of 1; shape ``(n,)``.
    labels : Any
        0 or 1 for each record.
    reports : Any
        The group that each record reports.
    channel : RandomizedResponse
        The channel of the true groups.
    notion : Notion, optional
        Whose rates; `EqualizedOdds` by default.
    confidence : float, default 0.95
        Of the intervals, strictly between 0 and 1.
    method : Literal["normal", "hoeffding"], default "normal"
        ``"normal"`` intervals by the delta method, right for many records; ``"hoeffding"`` ones for any
        number of independent records, wider.

    Returns
    -------
    Audit
        The rates of the true groups with intervals, and their disparities.

    Raises
    ------
    DeclarationError
        For columns that do not fit, and if the estimated number of records over which a rate is taken is not
        positive, naming the group.

    References
    ----------
    Mozannar, Ohannessian and Srebro (2020), section 4 and Lemma 1. (There the range of a debiased record is
    taken for C; it is C + abs(C'), the difference of the two entries of the inverse. The bound is of the
    order of C^2 / P^2, for P the share of the smallest cell; ``"hoeffding"`` here is of order C / P.).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> true, labels = rng.integers(0, 2, (2, 20000))
    >>> predictions = rng.random(20000) < 0.2 + 0.3 * true
    >>> channel = RandomizedResponse(1.0)
    >>> a = audit(predictions, labels, channel.privatize(true, 2, seed=1), channel)
    >>> fpr = a.rates["false positive rate"]
    >>> fpr.disparity_interval[0] < 0.3 < fpr.disparity_interval[1], fpr.naive_disparity < 0.2
    (True, True)
    """
    notion = notion or EqualizedOdds()
    require(0 < confidence < 1, "confidence", confidence, "be strictly between 0 and 1")
    check_choice("method", method, "normal", "hoeffding")
    predicted = as_numbers(predictions, "predictions").astype(float)
    actual = read_binary(labels, "labels")
    codes, names = read_groups(reports)
    same_length(predictions=predicted, labels=actual, reports=codes)
    if predicted.min() < 0 or predicted.max() > 1:
        ends = f"{predicted.min():g} and {predicted.max():g}"
        raise DeclarationError(f"predictions hold {ends}; they must be from 0 to 1")
    unbiased = channel.inverse(len(names))[:, codes]
    given = predicted, actual, codes, unbiased, names, 1 - confidence, method
    return Audit(names, {rate.name: _audited(rate, *given) for rate in notion.rates}, confidence)


def _audited(
    rate: Rate,
    predicted: Array,
    actual: Array,
    codes: Array,
    unbiased: Array,
    names: tuple[str, ...],
    miss: float,
    method: str,
) -> AuditedRate:
    tables = [np.array(table)[:, actual] for table in (rate.event, rate.given)]
    event, given = (predicted * table[1] + (1 - predicted) * table[0] for table in tables)
    n, count = len(actual), len(names)
    mass = unbiased @ given / n
    by_report = np.bincount(codes, given, count)
    for subject, cell in (("an estimated", mass * n), ("a reported", by_report)):
        if (cell <= 0).any():
            a = int(np.argmin(cell))
            has = f"{names[a]!r} has {subject} {cell[a]:.6g} records over which its {rate.name} is taken"
            raise DeclarationError(f"group {has}; this number must be positive: gather more")
    values = unbiased @ event / n / mass
    influence = unbiased * (event - values[:, None] * given) / mass[:, None]
    pairs = np.array(list(combinations(range(count), 2)))
    apart = values[pairs[:, 0]] - values[pairs[:, 1]]
    if method == "normal":
        from scipy.stats import norm

        half = norm.isf(miss / 2) * influence.std(axis=1) / np.sqrt(n)
        between = influence[pairs[:, 0]] - influence[pairs[:, 1]]
        either = norm.isf(miss / 2 / len(pairs)) * between.std(axis=1) / np.sqrt(n)
    else:
        width = float(unbiased.max() - unbiased.min())
        half = width * np.sqrt(np.log(2 / miss) / (2 * n)) / mass
        at_once = width * np.sqrt(np.log(2 * count / miss) / (2 * n)) / mass
        either = at_once[pairs].sum(axis=1)
    naive = np.bincount(codes, event, count) / by_report
    distance = np.abs(apart)
    ends = float(max((distance - either).max(), 0.0)), float((distance + either).max())
    intervals, naive_gap = np.column_stack([values - half, values + half]), float(np.ptp(naive))
    return AuditedRate(values, intervals, naive, float(np.ptp(values)), ends, naive_gap)
