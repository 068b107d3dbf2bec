"""The decision, classifiers and their probabilities; and the columns of the records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, Self, runtime_checkable

import numpy as np
import scipy.sparse as sp
from pydantic import PlainSerializer, PlainValidator, WithJsonSchema

from forcopt.arrays import Array, as_numbers, is_missing
from forcopt.errors import DeclarationError, NotInstalledError, require, require_shape
from forcopt.fairness import GroupRates, read_groups
from forcopt.learning import Classifier, Hypothesis, Learner, RandomizedPolicy, Schema
from forcopt.learning.files import PolicyFile, classifier_from_dict, classifier_to_dict
from forcopt.learning.hypotheses import aligned, as_cells, names_of
from forcopt.learning.policy import mixed
from forcopt.learning.tolerances import NEGLIGIBLE, SUM
from forcopt.privacy import ObservedGroups, RandomizedResponse
from forcopt.problem.drawing import Sketch, finished, panel, titled

if TYPE_CHECKING:
    from matplotlib.figure import Figure


KEYS = ("shape", "rows", "columns", "values")


def as_table(X: Any) -> Any:
    """Features as classifiers take them: a float array, or a sparse array by rows.

    Parameters
    ----------
    X : Any
        An array, a frame of numbers, or a sparse array or matrix of scipy; shape ``(n, d)``.
    """
    return sp.csr_array(X, dtype=float) if sp.issparse(X) else np.asarray(X, dtype=float)


def _read_features(value: Any) -> Any:
    if isinstance(value, RawTable):
        return value.frame
    if isinstance(value, Mapping):
        if set(value) != set(KEYS):
            raise DeclarationError(f"the keys are {', '.join(value)}; they must be {', '.join(KEYS)}")
        entries = _with_missing(value["values"])
        value = sp.csr_array((entries, (value["rows"], value["columns"])), shape=tuple(value["shape"]))
    if not sp.issparse(value):
        out = _with_missing(value)
        out.flags.writeable = False
        return out
    table = sp.csr_array(value, dtype=float, copy=True)
    table.sum_duplicates()
    table.data = _with_missing(table.data)
    for part in (table.data, table.indices, table.indptr):
        part.flags.writeable = False
    return table


def _with_missing(value: Any) -> Array:
    """Numbers, of which some may be NaN or None."""
    given = np.asarray(value)
    if given.dtype == object:
        missing = np.array([is_missing(entry) for entry in given.flat], dtype=bool).reshape(given.shape)
    else:
        missing = given != given
    numbers = as_numbers(np.where(missing, 0.0, given) if missing.any() else value, "the array")
    numbers[missing] = np.nan
    return numbers


@dataclass(frozen=True, eq=False)
class RawTable:
    """A frame that reaches the learner as it is, with text and categories."""

    frame: Any

    @property
    def columns(self) -> Any:
        """The names of its columns."""
        return self.frame.columns

    @classmethod
    def of(cls, given: Any) -> Self:
        """A copy of a frame; or the frame of plain data, which `to_dict` wrote."""
        if hasattr(given, "iloc"):
            return cls(Schema.of(given).cast(given.copy()))
        import pandas as pd

        kinds = tuple(tuple(k) if isinstance(k, list) else k for k in given["kinds"])
        frame = pd.DataFrame(dict(zip(given["names"], given["columns"], strict=True)))
        return cls(Schema(tuple(given["names"]), kinds).cast(frame))

    def to_dict(self) -> dict[str, Any]:
        """The columns, their names and kinds."""
        schema, frame = Schema.of(self.frame), self.frame.astype(object)
        columns = [frame[name].where(frame[name].notna(), None).tolist() for name in schema.names]
        kinds = [list(kind) if isinstance(kind, tuple) else kind for kind in schema.kinds]
        return {"names": list(schema.names), "kinds": kinds, "columns": columns}


def take_raw(data: Any, learns: bool) -> Any:
    """Let a frame reach a learner as it is, also from a file; see `RawTable`."""
    given = data.get("features")
    frame = bool(names_of(given)) and hasattr(given, "iloc") and learns
    if frame or (isinstance(given, Mapping) and "kinds" in given):
        return {**data, "features": RawTable.of(given)}
    return data


def as_hypotheses(value: Any) -> Any:
    """A class of hypotheses: an estimator of scikit-learn stands for the `Learner` that fits it."""
    return Learner(value) if hasattr(value, "fit") and hasattr(value, "get_params") else value


def default_hypotheses(features: Any, weights: Array) -> Learner:
    """Logistic regression on features that are standardised once, by the weights of the records."""
    try:
        from sklearn.frozen import FrozenEstimator
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
    except ImportError:
        raise NotInstalledError(
            "the default learner is scikit-learn's, which is not installed: pip install scikit-learn; or "
            "name other hypotheses, such as Thresholds()"
        ) from None

    scaler = FrozenEstimator(StandardScaler().fit(features, sample_weight=weights))
    return Learner(make_pipeline(scaler, LogisticRegression(max_iter=1000, warm_start=True)))


def _plain(features: Any) -> Any:
    if hasattr(features, "iloc"):
        return RawTable(features).to_dict()
    if sp.issparse(features):
        entries: Any = features.tocoo()
        row, column = entries.coords
        values: Any = np.where(np.isnan(entries.data), None, entries.data)
        plain = (list(features.shape), row.tolist(), column.tolist(), values.tolist())
        return dict(zip(KEYS, plain, strict=True))
    missing = np.isnan(features)
    plain_or_none: Any = np.where(missing, None, features) if missing.any() else features
    return plain_or_none.tolist()


Features = Annotated[
    Any,
    PlainValidator(_read_features),
    PlainSerializer(_plain),
    WithJsonSchema(
        {
            "description": "numbers by record and feature, null where missing, or entries of a sparse table",
            "anyOf": [{"type": "array", "items": {}}, {"type": "object"}],
        }
    ),
]
"""A field that takes a table of numbers, dense or sparse, with NaN or None where a value is missing."""


@dataclass(frozen=True, eq=False)
class GroupColumn:
    """n records and the groups that they report.

    Attributes
    ----------
    codes : Array
        The position in `names` of each record's report, -1 where it is missing; shape ``(n,)``.
    names : tuple[str, ...]
        Of the K groups.
    channel : RandomizedResponse, optional
        The channel between the true groups and the reports; None if the reports are true.
    proxy : Array, optional
        The probability of each group for each record, see `GroupProxy`; `codes` then are the likeliest ones.
    """

    codes: Array
    names: tuple[str, ...]
    channel: RandomizedResponse | None = None
    proxy: Array | None = None

    @property
    def shares(self) -> Array:
        """How much each record counts to each true group, shape ``(n, K)``.

        Sums over records are then the counts of the true groups, or unbiased estimates of them: 0 or 1 if
        groups are known; a column of the inverted channel for each report, which may be negative (Mozannar
        et al. 2020, Lemma 1); 0 throughout where the report is missing; the probabilities of a proxy.
        """
        if self.proxy is not None:
            return self.proxy
        count = len(self.names)
        of_report = np.eye(count) if self.channel is None or count < 2 else self.channel.inverse(count).T
        return np.vstack([of_report, np.zeros(count)])[self.codes]

    def to_dict(self) -> Any:
        """The column as plain data: a list, with None where missing; with a channel, both by name."""
        if self.proxy is not None:
            return {"proxy": self.proxy.tolist(), "names": list(self.names)}
        reports = [None if code < 0 else self.names[code] for code in self.codes.tolist()]
        return reports if self.channel is None else {"reports": reports, "channel": self.channel.to_dict()}


@dataclass(frozen=True, eq=False)
class GroupProxy:
    """Groups that nobody reported, of which a model knows the probabilities.

    Attributes
    ----------
    probabilities : array_like
        ``P(group = a | features, label)`` of each record, rows that sum to 1; shape ``(n, K)``. If they do
        not depend on the label, rates given the label are wrong in the limit (Lemma 4 needs it).
    names : tuple[str, ...]
        Of the K groups.

    References
    ----------
    Mozannar, Ohannessian and Srebro (2020), section 6, equation (16) and Lemma 4.

    Examples
    --------
    >>> from forcopt.fairness import SELECTION, DemographicParity
    >>> from forcopt.models.fair_classification import FairClassification, Thresholds
    >>> seen = GroupProxy([[0.5, 0.5], [0.8, 0.2], [0.1, 0.9]], ("a", "b"))
    >>> p = FairClassification([[0], [1], [2]], [0, 1, 1], seen, DemographicParity(0.1),
    ...     hypotheses=Thresholds())
    >>> p.rates(np.array([0.0, 1.0, 1.0])).rate(SELECTION).round(4).tolist()
    [0.6429, 0.6875]
    """

    probabilities: Any
    names: tuple[str, ...]

    def column(self) -> GroupColumn:
        """The column of a declaration.

        Raises
        ------
        DeclarationError
            For entries that are no probabilities, naming the first wrong row.
        """
        chance = as_numbers(self.probabilities, "proxy")
        names = tuple(map(str, self.names))
        shape, count = chance.shape, len(names)
        if len(shape) != 2 or not shape[0] or shape[1] != count or len(set(names)) < count:
            given = f"shape {shape} for the groups {', '.join(names)}"
            raise DeclarationError(f"proxy has {given}; it must be (n, K), with K different names")
        wrong = (chance < 0).any(axis=1) | (np.abs(chance.sum(axis=1) - 1.0) > SUM)
        if wrong.any():
            at = int(np.argmax(wrong))
            law = chance[at].tolist()
            raise DeclarationError(f"proxy[{at}] is {law}; it must be probabilities, which sum to 1")
        return GroupColumn(chance.argmax(axis=1), names, proxy=chance)


def _read_groups(value: Any) -> GroupColumn:
    if isinstance(value, GroupColumn):
        return value
    if isinstance(value, GroupProxy):
        return value.column()
    if isinstance(value, Mapping) and set(value) == {"proxy", "names"}:
        return GroupProxy(value["proxy"], tuple(value["names"])).column()
    channel = None
    if isinstance(value, ObservedGroups):
        value, channel = value.reports, value.channel
    elif isinstance(value, Mapping):
        if set(value) != {"reports", "channel"}:
            raise DeclarationError(f"the keys are {', '.join(value)}; they must be reports and channel")
        value, channel = value["reports"], RandomizedResponse.from_dict(value["channel"])
    column = np.asarray(value, dtype=object)
    require(column.ndim == 1, "the shape", column.shape, "be one column")
    known = np.array([not is_missing(v) for v in column.tolist()], dtype=bool)
    if not known.any():
        raise DeclarationError("no record has a group; at least one must")
    codes = np.full(len(column), -1, dtype=np.int64)
    codes[known], names = read_groups(column[known].tolist())
    codes.flags.writeable = False
    return GroupColumn(codes, names, channel)


Groups = Annotated[
    GroupColumn,
    PlainValidator(_read_groups),
    PlainSerializer(GroupColumn.to_dict),
    WithJsonSchema(
        {
            "description": "the group of each record, null where missing; or reports and the channel they "
            "came through",
            "anyOf": [{"type": "array", "items": {}}, {"type": "object"}],
        }
    ),
]
"""A field that takes a column of groups, with None or NaN where missing, or a channel's reports."""


SHOWN = 12


@runtime_checkable
class SeesGroups(Protocol):
    """A decision that also reads the groups, so that features alone do not determine its predictions."""

    def predicted_for(self, problem: Any, /) -> Array:
        """The probability that each record of the problem is predicted 1."""

    def rates_for(self, problem: Any, /) -> GroupRates:
        """The rates of each group."""


@dataclass(frozen=True, eq=False)
class RandomizedClassifier(RandomizedPolicy, PolicyFile):
    """Draws one of its classifiers for each record.

    Attributes
    ----------
    classifiers : tuple[Classifier, ...]
        The support of the mixture.
    weights : Array
        The probability of each, at least 0, with sum 1; shape ``(len(classifiers),)``.
    multipliers : Array, optional
        Prices of the inequalities of the constraint under which it was found, if any, as
        `FairClassification.lagrangian` orders them; `FairClassification.evaluate` then reports how far both
        are from a saddle point.
    multiplier_bound : float, optional
        On the sum of the multipliers; their own sum if None.
    classes : int, default 2
        The number of classes, C, which are numbered from 0.
    features : tuple[str, ...], optional
        The names of the features, in order: a frame is aligned by them.
    raw : bool, default False
        Whether the classifiers take a frame, as their learner did; else an array of numbers.

    Raises
    ------
    DeclarationError
        For weights that are no probabilities.
    """

    classifiers: tuple[Classifier, ...]
    weights: Array
    multipliers: Array | None = field(default=None, repr=False)
    multiplier_bound: float | None = field(default=None, repr=False)
    classes: int = 2
    features: tuple[str, ...] = field(default=(), repr=False)
    raw: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        weights = as_numbers(self.weights, "weights")
        object.__setattr__(self, "classifiers", tuple(self.classifiers))
        count = len(self.classifiers)
        require_shape(
            weights.shape == (count,) and count, "weights has", weights, f"be ({count},), at least one"
        )
        if weights.min() < -NEGLIGIBLE or abs(weights.sum() - 1.0) > SUM:
            given = f"least entry {weights.min():g} and sum {weights.sum():g}"
            raise DeclarationError(f"weights has {given}; they must be probabilities")
        weights = np.maximum(weights, 0.0)
        total = weights.sum()
        if abs(total - 1.0) > len(weights) * np.finfo(float).eps:  # what was divided stays as it is
            weights = weights / total
        object.__setattr__(self, "weights", weights)

    @classmethod
    def of(cls, weights: Any, hypotheses: Sequence[Hypothesis], *fields: Any, **named: Any) -> Self:
        """A mixture of hypotheses; equal ones are joined, and ones without weight left out.

        A solver may leave probabilities by its tolerance: weights below 0 are taken for 0. The other fields
        follow as they are, from `multipliers` on.
        """
        joined: dict[bytes, tuple[Classifier, float]] = {}
        for weight, h in zip(np.asarray(weights, dtype=float), hypotheses, strict=True):
            if weight > NEGLIGIBLE:
                seen = h.predictions
                key = (seen if seen.dtype.kind == "f" else np.packbits(seen.astype(bool))).tobytes()
                first, before = joined.get(key, (h.classifier, 0.0))
                joined[key] = first, before + float(weight)
        total = np.array([w for _, w in joined.values()])
        return cls(tuple(c for c, _ in joined.values()), total / total.sum(), *fields, **named)

    def votes(self, X: Any) -> Array:
        """The prediction of each classifier for each row of X, shape ``(len(classifiers), n)``.

        Raises
        ------
        DeclarationError
            For a frame that lacks a feature, or has another column, by its name.
        """
        table = aligned(X, self.features)
        features = table if self.raw and hasattr(table, "iloc") else as_table(table)  # as in training
        return np.array([np.asarray(c.predict(features), dtype=float) for c in self.classifiers])

    def probability(self, records: Any) -> Array:
        """The probability that each row of features is predicted 1, shape ``(n,)``.

        With C classes, above two, the probability of each, shape ``(n, C)``.
        """
        chance = np.clip(mixed(self.weights, as_cells(self.votes(records), self.classes)), 0.0, 1.0)
        return np.asarray(chance if self.classes == 2 else chance.reshape(-1, self.classes))

    def to_dict(self) -> dict[str, Any]:
        """The classifiers, weights and names as plain data; multipliers are left out.

        Raises
        ------
        DeclarationError
            For a classifier without a plain form, which is no learner.
        """
        found: dict[str, Any] = {"classifiers": [classifier_to_dict(c) for c in self.classifiers]}
        known = {"classes": self.classes, "features": list(self.features), "raw": self.raw}
        usual = {"classes": 2, "features": [], "raw": False}
        found["weights"] = self.weights.tolist()
        return found | {k: v for k, v in known.items() if v != usual[k]}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The policy of plain data."""
        classifiers = tuple(map(classifier_from_dict, data["classifiers"]))
        classes, features = int(data.get("classes", 2)), tuple(data.get("features", ()))
        weights, raw = np.asarray(data["weights"]), bool(data.get("raw", False))
        return cls(classifiers, weights, classes=classes, features=features, raw=raw)

    def plot(self, path: str | Path | None = None, *, ax: Any = None, problem: Any = None) -> Figure:
        """Draw the probability of each classifier; with the problem, its error against its disparity.

        Parameters
        ----------
        path : str or Path, optional
            The file to save the picture to; its ending gives the format.
        ax : matplotlib.axes.Axes, optional
            The axes to draw on; a new figure if left out.
        problem : FairClassification, optional
            The records on which to measure. Each classifier is a circle whose area grows with its
            probability, and the mixture a star.
        """
        if problem is None:
            order = np.argsort(-self.weights, kind="stable")
            names = [repr(self.classifiers[k]).partition("(")[0] for k in order]
            title = f"{len(names)} classifiers are drawn, the first with probability {self.weights.max():.2g}"
            return Sketch(title, self.weights[order], names, unit="probability").plot(path, ax=ax)
        figure, axes = panel(ax, (5.0, 4.0))
        judged = [problem.evaluate(decision) for decision in [*self.classifiers, self]]
        names = list(problem.demand.disparity(problem.rates(as_cells(problem.labels, self.classes))))
        if not names:
            raise DeclarationError(f"problem: {problem.constraint!r} measures no disparity to draw against")
        spread = np.array([max(e.metrics[name] for name in names) for e in judged])
        error = np.array([e.objective for e in judged])
        axes.scatter(spread[:-1], error[:-1], s=20 + 400 * self.weights, alpha=0.6, label="classifiers")
        axes.scatter(spread[-1:], error[-1:], s=160, marker="*", zorder=3, label="their mixture")
        axes.set(xlabel="largest disparity", ylabel="error")
        titled(axes, f"The mixture has error {error[-1]:.3g} and disparity {spread[-1]:.3g}")
        axes.legend()
        return finished(figure, path)

    def __repr__(self) -> str:
        order = np.argsort(-self.weights, kind="stable")
        lines = [f"{self.weights[k]:.4f}  {self.classifiers[k]!r}" for k in order[:SHOWN]]
        if len(order) > SHOWN:
            lines.append(f"... and {len(order) - SHOWN} more")
        return "\n".join(lines)
