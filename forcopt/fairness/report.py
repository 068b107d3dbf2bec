"""Metrics of predictions in each group, with intervals: a report of groups like fairlearn's MetricFrame."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from forcopt.arrays import Array, as_numbers, check_entries, check_label_order
from forcopt.errors import DeclarationError, check_choice, required
from forcopt.fairness.rates import EVERY, STATED, Rate, binomial_interval
from forcopt.fairness.records import read_binary, same_length
from forcopt.notebook import new_figure, picture_html, write_figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Metric = Rate | Callable[..., float]


@dataclass(frozen=True, eq=False)
class GroupReport:
    """Metrics of predictions in each group and overall, with confidence intervals.

    Made by `from_predictions`, or by `from_fairlearn` of a ``MetricFrame``.

    Attributes
    ----------
    metrics : dict[str, Rate or callable]
        The M metrics by name.
    rows : pandas.DataFrame
        The control features and groups of each row: the crossings that occur, then a row without groups for
        all records of each of the L control levels. R rows in all.
    samples : Array
        The metrics of each row, then those of B bootstrap samples, shape ``(1 + B, R, M)``; NaN where a rate
        has no records.
    levels : Array
        The number of the control level of each row, shape ``(R,)``; all 0 without control features.
    controls : tuple[str, ...]
        The names of the control features.
    tables : Array, optional
        The weight of each row by prediction and label, shape ``(R, 2, 2)``; None if no metric is a `Rate`.
    sampled : {"drawn", "expected", "weighted"}
        Predictions of 0 and 1, probabilities, or records with weights.
    confidence : float
        Of the intervals.

    Notes
    -----
    A `Rate` of records without weights has an exact interval: Clopper and Pearson's of drawn predictions,
    Chernoff's of probabilities. It covers the rate of the population that the records are drawn from. All
    other metrics have the percentile interval of the bootstrap over all records, which is approximate; its
    interval of a difference is biased upwards where groups hardly differ.

    References
    ----------
    Clopper and Pearson (1934); Hoeffding (1963), Theorem 1; Efron (1979), Bootstrap methods.

    Examples
    --------
    >>> from forcopt.fairness import SELECTION
    >>> r = GroupReport.from_predictions([1, 0, 1, 1], ["a", "a", "b", "b"], [1, 0, 0, 1], metrics=SELECTION)
    >>> r.frame().round(3)
               metric    group  records  estimate    low   high
    0  selection rate        a      2.0      0.50  0.013  0.987
    1  selection rate        b      2.0      1.00  0.158  1.000
    2  selection rate  overall      4.0      0.75  0.194  0.994
    >>> r.difference().to_dict(), r.ratio().to_dict()
    ({'selection rate': 0.5}, {'selection rate': 0.5})
    """

    metrics: dict[str, Metric]
    rows: Any
    samples: Array
    levels: Array
    controls: tuple[str, ...] = ()
    tables: Array | None = None
    sampled: Literal["drawn", "expected", "weighted"] = "weighted"
    confidence: float = 0.95

    @classmethod
    def from_predictions(
        cls,
        predictions: Any,
        groups: Any,
        labels: Any,
        *,
        metrics: Metric | Sequence[Metric] | Mapping[str, Metric] = EVERY,
        controls: Any = None,
        weights: Any = None,
        positive: Any = None,
        confidence: float = 0.95,
        resamples: int = 0,
        seed: Any = 0,
    ) -> Self:
        """Measure records.

        Parameters
        ----------
        predictions : array_like
            A label for each record, or the probability of `positive`; any number for regression.
        groups : array_like
            The group of each record: a column, or a frame, mapping or table of several columns, whose values
            are crossed. A record that misses a value counts in the overall metrics alone.
        labels : array_like
            The true label or number of each record.
        metrics : Rate, callable, sequence or mapping of these
            A callable takes labels and predictions, as those of ``sklearn.metrics`` do, and with `weights`
            also ``sample_weight``. By default selection, error, false and true positive rate and both
            predictive values.
        controls : array_like, optional
            Control features, as `groups`: groups are compared within each of their crossings.
        weights : array_like, optional
            Of the records, at least 0.
        positive : Any, optional
            The label that counts as 1 in a `Rate`; needed for labels other than 0 and 1. All others count as
            0. Numbers with a fraction, or for labels of text, are probabilities of it.
        confidence : float, default 0.95
            Of each interval for itself in `frame`, and of all differences and ratios together in `summary`.
        resamples : int, default 0
            The number of bootstrap samples, for intervals of metrics without an exact one.
        seed : int or numpy.random.Generator, default 0
            Of the bootstrap.

        Raises
        ------
        DeclarationError
            For columns of different length or order of labels, a missing control feature, no known group,
            and labels or predictions that a `Rate` cannot take.
        """
        pd = required("pandas", "GroupReport")

        columns = {"predictions": predictions, "groups": groups, "labels": labels, "weights": weights}
        check_label_order("records", columns | {"controls": controls})
        binomial_interval(0, 1, confidence)  # refuses a wrong one
        named = _named(metrics)
        truth, guess = np.asarray(labels), np.asarray(predictions)
        weight = np.ones(len(truth)) if weights is None else as_numbers(weights, "weights")
        keys = sensitive = _features(groups, "group")
        control = sensitive[[]] if controls is None else _features(controls, "control")
        same_length(predictions=guess, labels=truth, groups=sensitive, controls=control, weights=weight)
        check_entries(weight, weight < 0, "weights", "it must not be negative")
        level = np.zeros(len(truth), dtype=np.int64)
        if controls is not None:
            keys, level = pd.concat([control, sensitive], axis=1), _numbers(control)
        cell = _numbers(keys)
        if level.min() < 0 or cell.max() < 0:
            raise DeclarationError("groups: at least one record must have a group, and each its controls")
        first, own = (np.unique(codes, return_index=True) for codes in (cell[cell >= 0], level))
        cells = len(first[0])
        shown = keys.iloc[np.concatenate([np.flatnonzero(cell >= 0)[first[1]], own[1]])].astype(object)
        shown = shown.reset_index(drop=True)
        shown.loc[cells:, list(sensitive)] = None
        actual, chance = np.zeros((2, len(truth)))
        if any(isinstance(metric, Rate) for metric in named.values()):
            actual, chance = _coded(truth, guess, positive)

        def measured(at: Array) -> tuple[Array, Array]:
            """The metrics of each row over these records, and their tables."""
            of = [cell[at], cells + level[at]]
            place = (np.concatenate(of) * 2 + np.tile(actual[at], 2)).astype(np.int64)
            known, size = place >= 0, 2 * len(shown)
            mass = (np.tile(weight[at] * share[at], 2)[known] for share in (1.0 - chance, chance))
            table = np.stack([np.bincount(place[known], m, size).reshape(-1, 2) for m in mass], axis=1)
            found = np.full((len(shown), len(named)), np.nan)
            for j, metric in enumerate(named.values()):
                if isinstance(metric, Rate):
                    events, trials = _counted(table, metric)
                    np.divide(events, trials, out=found[:, j], where=trials > 0)
                    continue
                for row in range(len(shown)):
                    chosen = at[of[row >= cells] == row]
                    more = {} if weights is None else {"sample_weight": weight[chosen]}
                    if len(chosen):
                        found[row, j] = metric(truth[chosen], guess[chosen], **more)
            return found, table

        rng, records = np.random.default_rng(seed), np.arange(len(truth))
        estimates, tables = measured(records)
        replicates = [measured(rng.choice(records, len(records)))[0] for _ in range(resamples)]
        drawn: Literal["drawn", "expected"] = "drawn" if np.isin(chance, (0, 1)).all() else "expected"
        return cls(
            metrics=named,
            rows=shown,
            samples=np.array([estimates, *replicates]),
            levels=np.append(level[cell >= 0][first[1]], own[0]),
            controls=tuple(control),
            tables=tables,
            sampled=drawn if weights is None else "weighted",
            confidence=confidence,
        )

    @classmethod
    def from_fairlearn(cls, frame: Any) -> Self:
        """Take the estimates of a fairlearn ``MetricFrame`` that was given a mapping of metrics."""
        pd = required("pandas", "GroupReport")

        controls, own = list(frame.control_levels or ()), frame.by_group.index.to_frame(index=False)
        overall = frame.overall if controls else frame.overall.to_frame().T
        whole = overall.index.to_frame(index=False)[controls]
        levels = [own[controls].eq(whole.iloc[i]).all(axis=1) for i in range(len(whole))]
        return cls(
            metrics=dict.fromkeys(frame.by_group.columns, lambda *_: np.nan),
            rows=pd.concat([own, whole.reindex(columns=own.columns)], ignore_index=True),
            samples=np.vstack([frame.by_group, overall]).astype(float)[None],
            levels=np.append(np.argmax(levels, axis=0), np.arange(len(whole))),
            controls=tuple(controls),
        )

    def to_fairlearn(self) -> Any:
        """Give a fairlearn ``MetricFrame`` of these estimates; its records are the rows of groups."""
        from fairlearn.metrics import MetricFrame

        at, cells = np.arange(self._cells), self.rows.iloc[: self._cells]

        def metric(column: int) -> Callable[[Any, Any], Any]:
            whole = self._cells + self.levels
            return lambda rows, _: self.samples[0, rows[0] if len(rows) == 1 else whole[rows[0]], column]

        sensitive, control = cells.drop(columns=list(self.controls)), cells[list(self.controls)]
        metrics = {name: metric(j) for j, name in enumerate(self.metrics)}
        held = control if self.controls else None
        return MetricFrame(
            metrics=metrics, y_true=at, y_pred=at, sensitive_features=sensitive, control_features=held
        )

    # -- tables ----------------------------------------------------------------------------------------------

    @property
    def _cells(self) -> int:
        """The number of rows of groups."""
        return len(self.rows) - int(self.levels.max()) - 1

    @property
    def by_group(self) -> pd.DataFrame:
        """The metrics (columns) of each crossing of control features and groups (index)."""
        import pandas as pd

        found = pd.DataFrame(self.samples[0, : self._cells], columns=list(self.metrics))
        return pd.concat([self.rows.iloc[: self._cells], found], axis=1).set_index(list(self.rows))

    @property
    def overall(self) -> Any:
        """The metrics of all records: a series, or with control features a frame, a row for each level."""
        return self._by_level(self.samples[0, self._cells :])

    def _by_level(self, values: Array) -> Any:
        import pandas as pd

        if not self.controls:
            return pd.Series(values[0], index=list(self.metrics))
        keys = self.rows.iloc[self._cells :][list(self.controls)].reset_index(drop=True)
        found = pd.DataFrame(values, columns=list(self.metrics))
        return pd.concat([keys, found], axis=1).set_index(list(self.controls))

    def difference(self, method: Literal["between_groups", "to_overall"] = "between_groups") -> Any:
        """The largest difference of each metric between two groups, or of a group to all records.

        A series, or with control features a frame with a row for each of their levels. Groups for which a
        metric is not defined are left out.
        """
        return self._by_level(self._compared(method)[0][0])

    def ratio(self, method: Literal["between_groups", "to_overall"] = "between_groups") -> Any:
        """The smallest ratio of each metric between two groups, or of a group and all records; as above."""
        return self._by_level(self._compared(method)[1][0])

    def _compared(self, method: str) -> tuple[Array, Array]:
        """Differences and ratios of all samples, each of shape ``(1 + B, L, M)``."""
        check_choice("method", method, "between_groups", "to_overall")
        differences, ratios = [], []
        for level, whole in enumerate(self.samples[:, self._cells :].transpose(1, 0, 2)):
            own = self.samples[:, np.flatnonzero(self.levels[: self._cells] == level)]
            one = np.fmax.reduce(own, axis=1) if method == "between_groups" else whole
            one = one[:, None]
            differences.append(np.fmax.reduce(np.abs(own - one), axis=1))
            share = np.divide(own, one, out=np.where(own == one, 1.0, np.inf), where=one != 0)
            inverse = np.divide(1.0, share, out=np.full_like(share, np.inf), where=share > 0)
            ratios.append(np.fmin.reduce(np.fmin(share, inverse), axis=1))
        return np.stack(differences, axis=1), np.stack(ratios, axis=1)

    def intervals(self, tests: int = 1) -> tuple[Array, Array]:
        """The ends of an interval for each row and metric, each of shape ``(R, M)``; NaN if unknown.

        Parameters
        ----------
        tests : int, default 1
            So many exact intervals hold together with the report's confidence (Bonferroni).
        """
        low, high = self._quantiles(self.samples)
        for j, rate in self._exact():
            events, trials = _counted(self.tables, rate)
            how = "clopper-pearson" if self.sampled == "drawn" else "chernoff"
            low[:, j], high[:, j] = binomial_interval(events, trials, 1 - (1 - self.confidence) / tests, how)
        return low, high

    def _exact(self) -> list[tuple[int, Rate]]:
        """The metrics with exact intervals."""
        rates = [(j, m) for j, m in enumerate(self.metrics.values()) if isinstance(m, Rate)]
        drawn, weighted = self.sampled == "drawn", self.sampled == "weighted"
        return [(j, m) for j, m in rates if drawn or (m.is_linear and not weighted)]

    def _quantiles(self, samples: Array) -> Array:
        """The ends of the percentile interval over bootstrap samples, which follow the estimates."""
        if len(samples) == 1:
            return np.full((2, *samples.shape[1:]), np.nan)
        tail = (1.0 - self.confidence) / 2.0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of entries that are NaN throughout
            return np.asarray(np.nanquantile(samples[1:], [tail, 1.0 - tail], axis=0))

    def frame(self) -> pd.DataFrame:
        """A line for each metric and row: its records (or their weight), the estimate and its interval."""
        import pandas as pd

        groups = [name for name in self.rows if name not in self.controls]
        shown = self.rows.copy()
        shown.loc[self._cells :, groups] = ["overall"] + [""] * (len(groups) - 1)
        low, high = self.intervals()
        parts = []
        for j, (name, metric) in enumerate(self.metrics.items()):
            part = shown.copy()
            part.insert(0, "metric", name)
            if self.tables is not None:
                part["records"] = _counted(self.tables, metric if isinstance(metric, Rate) else EVERY[0])[1]
            parts.append(part.assign(estimate=self.samples[0, :, j], low=low[:, j], high=high[:, j]))
        return pd.concat(parts, ignore_index=True)

    def summary(self) -> pd.DataFrame:
        """For each metric (and control level) the largest difference and smallest ratio between groups.

        Their exact intervals hold with the confidence for all rates, groups and levels together, over groups
        that have records. So a finished policy, tested on fresh records, keeps a tolerance of
        ``difference_high`` in the population with that probability.
        """
        import pandas as pd

        found = self._compared("between_groups")
        ends = np.stack([self._quantiles(values) for values in found])  # difference or ratio, low or high
        low, high = self.intervals(self._cells * len(self._exact()))
        for (j, _), level in product(self._exact(), range(len(self.rows) - self._cells)):
            known = (self.levels == level) & np.isfinite(self.samples[0, :, j])
            own = np.flatnonzero(known[: self._cells])
            ends[:, :, level, j] = _spread(low[own, j], high[own, j])
        parts = []
        for j, name in enumerate(self.metrics):
            part = self.rows.iloc[self._cells :][list(self.controls)]
            part.insert(0, "metric", name)
            for what, values, (least, most) in zip(("difference", "ratio"), found, ends, strict=True):
                part[[what, f"{what}_low", f"{what}_high"]] = np.stack(
                    [values[0, :, j], least[:, j], most[:, j]], axis=1
                )
            parts.append(part)
        return pd.concat(parts, ignore_index=True)

    # -- files -----------------------------------------------------------------------------------------------

    def save_proof(self, path: str | Path) -> None:
        """Write the records and their rates as the certificate ``rates``, to be counted again by others.

        Parameters
        ----------
        path : str or Path
            The file, which ``python -m forcopt.check`` reads. It holds group, label and prediction of each
            record, and the selection, true and false positive rates of the report.

        Raises
        ------
        DeclarationError
            If the report has none of these rates, or other predictions than drawn ones.
        """
        names = [" & ".join(map(str, row)) for row in self.rows.to_numpy().tolist()[: self._cells]]
        stated = [
            [STATED[rate], name, str(Fraction(int(event), int(trial)))]
            for _, rate in self._exact()
            if rate in STATED and self.sampled == "drawn"
            for name, event, trial in zip(names, *_counted(self.tables, rate)[:, : self._cells], strict=True)
            if trial
        ]
        if not stated:
            raise DeclarationError("rates has no selection, true or false positive rate of drawn predictions")
        rows = [
            [name, label, predicted]
            for name, table in zip(names, np.asarray(self.tables), strict=False)
            for predicted, label in product((0, 1), (0, 1))
            for _ in range(int(table[predicted, label]))
        ]
        Path(path).write_text(json.dumps({"kind": "rates", "table": rows, "rates": stated}), encoding="utf-8")

    def __repr__(self) -> str:
        return str(self.frame().to_string(index=False, float_format="{:.4f}".format))

    def to_html(self, path: str | Path, title: str = "Report of groups") -> None:
        """Write a page with both tables and the picture, which needs no other file.

        Parameters
        ----------
        path : str or Path
            The file; it is replaced.
        title : str, default "Report of groups"
            Of the page.
        """
        text = [f"<!doctype html><meta charset=utf-8><title>{escape(title)}</title><h1>{escape(title)}</h1>"]
        text += [f"<p>Confidence of the intervals: {self.confidence:g}; predictions: {self.sampled}.</p>"]
        text += [t.to_html(index=False, float_format="{:.4f}".format) for t in (self.summary(), self.frame())]
        text += [picture_html(self.plot())]
        Path(path).write_text("\n".join(text) + "\n", encoding="utf-8")

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the metrics of all groups with their intervals, a panel for each metric.

        Parameters
        ----------
        path : str or Path, optional
            The file to save the picture to; its ending gives the format.
        """
        titles = self.frame()[list(self.rows)].head(len(self.rows)).astype(str).agg(" ".join, axis=1)
        figure = new_figure(1.5 + 2.2 * len(self.metrics), 1.2 + 0.4 * len(titles))
        panels = figure.subplots(1, len(self.metrics), sharey=True, squeeze=False)[0]
        reach = np.nan_to_num(np.abs(np.array(self.intervals()) - self.samples[0]))
        at = np.arange(len(titles))
        for j, (axes, (name, metric)) in enumerate(zip(panels, self.metrics.items(), strict=True)):
            axes.errorbar(self.samples[0, :, j], at, xerr=reach[:, :, j], fmt="o", capsize=3)
            axes.set(title=name, yticks=at, yticklabels=titles)
            if isinstance(metric, Rate):
                axes.set_xlim(0, 1)
            axes.invert_yaxis()
        write_figure(figure, path)
        return figure


def _counted(tables: Any, rate: Rate) -> Array:
    """The events and the trials of a rate in each row, shape ``(2, R)``."""
    return np.stack([np.tensordot(tables, np.array(cells), 2) for cells in (rate.event, rate.given)])


def _named(metrics: Any) -> dict[str, Metric]:
    """Metrics by name."""
    if not isinstance(metrics, Mapping):
        several = [metrics] if isinstance(metrics, Rate) or callable(metrics) else metrics
        metrics = {m.name if isinstance(m, Rate) else m.__name__: m for m in several}
    return dict(metrics)


def _features(given: Any, title: str) -> Any:
    """Columns of features as a frame with names, and without its index."""
    import pandas as pd

    frame = pd.DataFrame(given if hasattr(given, "iloc") or isinstance(given, Mapping) else np.asarray(given))
    alone = len(frame.columns) == 1
    names = [(title if alone else f"{title} {c}") if isinstance(c, int) else str(c) for c in frame.columns]
    return frame.set_axis(names, axis=1).reset_index(drop=True)


def _numbers(frame: Any) -> Array:
    """The number of each row's crossing, in their order; -1 where a value is missing."""
    return np.asarray(frame.groupby(list(frame), observed=True).ngroup().fillna(-1).astype(np.int64))


def _coded(labels: Array, predictions: Array, positive: Any) -> tuple[Array, Array]:
    """Whether each label is positive, and the probability that each prediction is."""
    if positive is not None:
        if not (labels == positive).any():
            raise DeclarationError(f"positive is {positive!r}; no record has that label")
        texts = [column.dtype.kind in "OUST" for column in (labels, predictions)]
        if texts[0] == texts[1] and (texts[1] or not (predictions % 1 != 0).any()):
            predictions = predictions == positive
        labels = labels == positive
    if predictions.dtype.kind in "OUST":
        read_binary(predictions, "predictions")  # refuses them
    chance = as_numbers(predictions, "predictions")
    check_entries(chance, (chance < 0) | (chance > 1), "predictions", "it must be a label or a probability")
    return read_binary(labels, "labels"), chance


def _spread(low: Array, high: Array) -> Array:
    """The ends of the largest difference and of the smallest ratio of rates in these intervals."""
    apart = ~np.eye(len(low), dtype=bool)
    if not apart.any():
        return np.array([[0.0, 0.0], [1.0, 1.0]])
    difference = max((low[:, None] - high)[apart].max(), 0.0), (high[:, None] - low)[apart].max()
    tiny = np.finfo(float).tiny
    ratio = [(a[:, None] / np.maximum(b, tiny))[apart].min() for a, b in ((low, high), (high, low))]
    return np.array([difference, np.minimum(ratio, 1.0)])
