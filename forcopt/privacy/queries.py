"""Queries of a private table: the sensitivity follows from the schema, a ledger pays for the release."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from forcopt.arrays import Array, as_numbers
from forcopt.errors import DeclarationError, require, required
from forcopt.privacy.amplification.design import Design, Population
from forcopt.privacy.budget import Budget, calibrate
from forcopt.privacy.ledger import Ledger, pay
from forcopt.privacy.losses import Neighbours
from forcopt.privacy.mechanism import ABLE, EXACT, AdditiveMechanism, ExponentialMechanism, Mechanism
from forcopt.privacy.noises import Noise
from forcopt.privacy.profile import Profile
from forcopt.privacy.randomness import Randomness, Secure
from forcopt.privacy.release import TableRelease
from forcopt.privacy.schema import Bounded, Schema
from forcopt.privacy.tolerances import CALIBRATED

if TYPE_CHECKING:
    from forcopt.privacy.table import Table

Rows = Mapping[str, Array]
"""Rows by column, as whole numbers; NaN is missing."""

MOST_CELLS = 10**7
"""Of a query; their index takes about a gigabyte."""

MOST_WEIGHT = 2**20
"""Of a linear query, so that its sums over 2^32 rows are exact floats."""


class Sensitivity(NamedTuple):
    """The largest change of the numbers of a query by one unit, in steps.

    Attributes
    ----------
    l1, l2, linf : float
        In the norm of this name.

    Examples
    --------
    >>> from forcopt.privacy import Categories, Schema, Table
    >>> table = Table({"town": ["a"]}, Schema(town=Categories("a", "b")), neighbours="substitute")
    >>> table.group_by("town").count().sensitivity.l1
    2.0
    """

    l1: float
    l2: float
    linf: float


@dataclass(frozen=True)
class View:
    """What a query looks at: the public part of a table with conditions and groups; see `Table`."""

    schema: Schema
    unit: str | None
    rows_per_unit: int
    neighbours: Neighbours
    design: Design | None = None
    population: Population = None
    conditions: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()

    def describe(self) -> dict[str, Any]:
        """The view as plain data."""
        return {
            **vars(self),
            "schema": self.schema.to_dict(),
            "design": None if self.design is None else self.design.to_dict(),
        }


class Axis(NamedTuple):
    """One column of a group: its labels, which are categories, or intervals between edges in steps."""

    name: str
    labels: tuple[Any, ...]
    edges: Any = None

    def places(self, values: Array) -> Array:
        """The place of each value among the labels; NaN for a value without."""
        if self.edges is None:
            return values
        at = np.searchsorted(self.edges, values, side="right") - 1.0
        return np.where((at >= 0) & (values < self.edges[-1]), at, np.nan)


def _cells(axes: Sequence[Axis]) -> int:
    return prod(len(axis.labels) for axis in axes)


def _places(axes: Sequence[Axis], rows: Rows, count: int) -> Array:
    """The cell of each row, the last axis the fastest; NaN for a row without one."""
    at = np.zeros(count)
    for axis in axes:
        at = at * len(axis.labels) + axis.places(rows[axis.name])
    return at


class Statistic(ABC):
    """Numbers of a table, described without its rows."""

    view: View
    name: str

    @property
    def parts(self) -> tuple[Statistic, ...]:
        """Those that get noise of their own."""
        return (self,)

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Of `answer`."""

    @property
    @abstractmethod
    def sensitivity(self) -> Sensitivity:
        """See `Sensitivity`."""

    @abstractmethod
    def answer(self, rows: Rows) -> Array:
        """The numbers that a mechanism takes, in steps."""

    def index(self) -> Any:
        """The labels of the results, as a pandas index; by default their numbers."""
        return range(self.shape[0])

    def table(self, values: Sequence[Any], mechanisms: Sequence[Any], level: float) -> dict[str, Array]:
        """The results from the released values of the parts, and how far the noise may move each."""
        wide = [np.full(len(v), m.margin(level)) for v, m in zip(values, mechanisms, strict=True)]
        return {self.name: np.concatenate(values), "margin": np.concatenate(wide)}


def _index(blocks: Sequence[Sequence[Axis]]) -> Any:
    pd = required("pandas", "a query")

    names = list(dict.fromkeys(axis.name for axes in blocks for axis in axes))
    if not names:
        return pd.Index(["all"])
    labels = []
    for axes in blocks:
        for cell in product(*(axis.labels for axis in axes)):
            chosen = dict(zip((axis.name for axis in axes), cell, strict=True))
            labels.append(tuple(chosen.get(name, "all") for name in names))
    if len(names) == 1:
        return pd.Index([label for (label,) in labels], name=names[0])
    return pd.MultiIndex.from_tuples(labels, names=names)


@dataclass(frozen=True, eq=False)
class Total(Statistic):
    """Counts, or sums of a column, over the cells of some groupings, or linear combinations of counts.

    Attributes
    ----------
    blocks : tuple
        The groupings; a row is in at most one cell of each.
    column : str, optional
        What is summed, or whose missing values are not counted.
    values : bool
        Whether to sum the column, rather than count its values.
    offset : int
        Subtracted from each value, in steps.
    workload : Array, optional
        Shape ``(sums, cells)``.
    """

    view: View
    name: str
    blocks: tuple[tuple[Axis, ...], ...]
    column: str | None = None
    values: bool = True
    offset: int = 0
    workload: Array | None = None
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self._size > MOST_CELLS:
            raise DeclarationError(f"the query has {self._size} cells; it may have {MOST_CELLS}")

    @classmethod
    def linear(cls, view: View, keys: tuple[Axis, ...], workload: Any, names: Sequence[str] | None) -> Total:
        """See `Table.linear`."""
        matrix, cells = as_numbers(workload, "workload"), _cells(keys)
        if matrix.ndim != 2 or matrix.shape[1] != cells or not len(matrix):
            raise DeclarationError(f"workload has shape {matrix.shape}; it must be (sums, {cells})")
        if np.abs(matrix).max() > MOST_WEIGHT:
            raise DeclarationError(f"workload holds {np.abs(matrix).max():g}; the most is {MOST_WEIGHT}")
        labels = tuple(names or map(str, range(len(matrix))))
        if len(labels) != len(matrix):
            raise DeclarationError(f"names are {len(labels)}; the workload has {len(matrix)} rows")
        return cls(view, "linear queries", (keys,), workload=matrix, names=labels)

    @property
    def _size(self) -> int:
        return sum(map(_cells, self.blocks))

    @property
    def shape(self) -> tuple[int, ...]:
        """See `Statistic`."""
        return (self._size if self.workload is None else len(self.workload),)

    @property
    def _summed(self) -> Bounded | None:
        """The column, if it is summed."""
        column = self.view.schema[self.column] if self.values and self.column else None
        assert column is None or isinstance(column, Bounded)
        return column

    @property
    def step(self) -> float:
        """The unit of the answer."""
        return 1.0 if self._summed is None else self._summed.step

    @property
    def sensitivity(self) -> Sensitivity:
        """See `Statistic`: a unit has k rows, of which each is in a cell of each of m blocks, or in none."""
        k, m, change = self.view.rows_per_unit, len(self.blocks), self.view.neighbours == "substitute"
        if self.workload is not None:
            return Sensitivity(*(k * norm for norm in _column_norms(self.workload, change)))
        low, high = (0, 1) if self._summed is None else (end - self.offset for end in self._summed.ends)
        most, span = max(abs(low), abs(high)), max(high, 0) - min(low, 0)
        if not change:
            return Sensitivity(float(m * k * most), sqrt(m) * k * most, float(k * most))
        apart = max(map(_cells, self.blocks)) > 1  # a row may leave one cell and enter another
        l1, l2 = max(2 * most * apart, span), max(sqrt(2) * most * apart, span)
        return Sensitivity(float(m * k * l1), sqrt(m) * k * l2, float(k * span))

    def answer(self, rows: Rows) -> Array:
        """See `Statistic`: exact, and moved to 2^53 if beyond, which raises no sensitivity."""
        count = len(next(iter(rows.values())))
        weights = np.ones(count) if self.column is None else rows[self.column] - self.offset
        if not self.values:
            weights = np.where(np.isnan(weights), np.nan, 1.0)
        total, start = np.zeros(self._size, dtype=np.int64), 0
        for axes in self.blocks:
            at = _places(axes, rows, count)
            known = ~np.isnan(at + weights)
            np.add.at(total, start + at[known].astype(np.int64), weights[known].astype(np.int64))
            start += _cells(axes)
        total = np.clip(total, -int(EXACT), int(EXACT))
        return total if self.workload is None else np.clip(self.workload @ total, -EXACT, EXACT)

    def index(self) -> Any:
        """See `Statistic`."""
        pd = required("pandas", "a query")

        return _index(self.blocks) if self.workload is None else pd.Index(self.names)

    def table(self, values: Sequence[Any], mechanisms: Sequence[Any], level: float) -> dict[str, Array]:
        """See `Statistic`."""
        step = int(self.step) if self.step == int(self.step) else self.step
        margin = np.full(self.shape, mechanisms[0].margin(level) * self.step)
        return {self.name: np.asarray(values[0]) * step, "margin": margin}


def _column_norms(matrix: Array, change: bool) -> tuple[float, float, float]:
    """The largest norms of a column, or of the difference of two columns, of which one may be 0.

    Up to 400 columns are compared in pairs; of more, twice the largest norm counts in l1 and l2.
    """
    columns = np.column_stack([matrix, np.zeros(len(matrix))]).T
    each = np.array([[np.linalg.norm(column, p) for p in (1, 2, np.inf)] for column in columns])
    l1, l2, linf = (float(norm) for norm in each.max(axis=0))
    if not change:
        return l1, l2 * (1 + CALIBRATED), linf
    spread = float((columns.max(axis=0) - columns.min(axis=0)).max())
    if len(columns) > 401:
        return 2 * l1, 2 * l2, spread
    pairs = [np.abs(columns - column) for column in columns]
    l1, l2 = (max(float((p**power).sum(axis=1).max()) for p in pairs) for power in (1, 2))
    return l1, sqrt(l2) * (1 + CALIBRATED), spread


@dataclass(frozen=True, eq=False)
class Mean(Statistic):
    """Means of a column: sums of the distances from the middle of its bounds, over counts.

    Notes
    -----
    A distance is at most half as long as the bounds are apart, so that its noise is less than that of a sum.
    """

    view: View
    name: str
    keys: tuple[Axis, ...]
    column: str

    @property
    def _bounds(self) -> Bounded:
        column = self.view.schema[self.column]
        assert isinstance(column, Bounded)
        return column

    @property
    def _middle(self) -> int:
        return sum(self._bounds.ends) // 2

    @property
    def parts(self) -> tuple[Statistic, ...]:
        """See `Statistic`."""
        total = Total(self.view, f"sum of {self.column}", (self.keys,), self.column, offset=self._middle)
        return total, Total(self.view, "count", (self.keys,), self.column, values=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """See `Statistic`."""
        return (2 * _cells(self.keys),)

    @property
    def sensitivity(self) -> Sensitivity:
        """See `Statistic`: of the sum, in steps; the count has its own."""
        return self.parts[0].sensitivity

    def answer(self, rows: Rows) -> Array:
        """See `Statistic`."""
        return np.concatenate([part.answer(rows) for part in self.parts])

    def index(self) -> Any:
        """See `Statistic`."""
        return _index((self.keys,))

    def table(self, values: Sequence[Any], mechanisms: Sequence[Any], level: float) -> dict[str, Array]:
        """See `Statistic`: both noises are within the margins of half the error each."""
        total, count = (np.asarray(v, dtype=float) for v in values)
        low, high = self._bounds.ends
        most, more = (mechanism.margin((1 + level) / 2) for mechanism in mechanisms)

        def mean(total: Array, count: Array) -> Array:
            return np.clip(total / np.maximum(count, 1.0) + self._middle, low, high)

        corners = [mean(total + a, count + b) for a in (-most, most) for b in (-more, more)]
        found = mean(total, count)
        margin = np.maximum(np.max(corners, axis=0) - found, found - np.min(corners, axis=0))
        margin = np.where(count > more, margin, high - low)
        return {self.name: found * self._bounds.step, "margin": margin * self._bounds.step}


@dataclass(frozen=True, eq=False)
class Quantile(Statistic):
    """Quantiles by the exponential mechanism; the loss of a candidate is its distance in rank.

    `q` counts to 20 bits, so that the losses of up to 2^32 rows are exact floats.
    """

    view: View
    name: str
    keys: tuple[Axis, ...]
    column: str
    q: float
    candidates: int

    def __post_init__(self) -> None:
        require(0 < self.q < 1, "q", self.q, "be strictly between 0 and 1")
        if not (isinstance(self.candidates, int) and self.candidates >= 2):
            raise DeclarationError(f"candidates is {self.candidates!r}; it must be a whole number from 2 up")

    @property
    def _share(self) -> float:
        return round(self.q * 2**20) / 2**20

    @property
    def _candidates(self) -> Array:
        """Values in steps."""
        column = self.view.schema[self.column]
        assert isinstance(column, Bounded)
        return np.unique(np.rint(np.linspace(*column.ends, self.candidates)))

    @property
    def shape(self) -> tuple[int, ...]:
        """See `Statistic`."""
        return _cells(self.keys), len(self._candidates)

    @property
    def sensitivity(self) -> Sensitivity:
        """See `Statistic`: of the losses of all groups together, as the noises of the groups compose."""
        k, one = self.view.rows_per_unit, max(self._share, 1 - self._share)
        if self.view.neighbours == "substitute":
            one = 2 * one if _cells(self.keys) > 1 else 1.0
        return Sensitivity(k * one, k * one, k * one)

    def answer(self, rows: Rows) -> Array:
        """See `Statistic`: the losses of the candidates of each group."""
        values = rows[self.column]
        at, losses = _places(self.keys, rows, len(values)), []
        for cell in range(self.shape[0]):
            own = np.sort(values[(at == cell) & ~np.isnan(values)])
            below = np.searchsorted(own, self._candidates, side="left")
            above = len(own) - np.searchsorted(own, self._candidates, side="right")
            losses.append(np.abs((1 - self._share) * below - self._share * above))
        return np.array(losses)

    def index(self) -> Any:
        """See `Statistic`."""
        return _index((self.keys,))

    def table(self, values: Sequence[Any], mechanisms: Sequence[Any], level: float) -> dict[str, Array]:
        """See `Statistic`: the margin is of the rank, in rows."""
        column, chosen = self.view.schema[self.column], np.asarray(values[0])
        assert isinstance(column, Bounded)
        mechanism = mechanisms[0]
        rank = 2 * mechanism.sensitivity / mechanism.epsilon * np.log(self.shape[1] / (1 - level))
        margin = np.full(len(chosen), rank)
        return {self.name: self._candidates[chosen] * column.step, "margin of the rank": margin}


@dataclass(frozen=True)
class Calibrated:
    """The least noise of a family within a budget, for the sensitivity of the query that it is put on.

    Parameters
    ----------
    family : type of Noise, or ExponentialMechanism
        The family.
    budget : Budget
        For the whole query. Its parts, as the sum and the count of a mean, get equal shares. On a table with
        a sampling design it is the budget of the sample, and the ledger charges less.
    fixed : mapping
        The other fields of the family.
    """

    family: Any
    budget: Budget
    fixed: Mapping[str, Any] = field(default_factory=dict)

    def mechanism(self, part: Statistic, parts: int) -> Mechanism:
        """The mechanism for one of several parts of a query."""
        require(isinstance(self.budget, Budget), "budget", self.budget, "be a budget, such as PureDP(1.0)")
        by = {"epsilon": parts, "delta": parts, "rho": parts, "mu": sqrt(parts)}
        share = {n: getattr(self.budget, n) / by[n] for n in by if n in type(self.budget).model_fields}
        budget = self.budget.replace(**share)
        if self.family is ExponentialMechanism:
            return ExponentialMechanism(_largest_epsilon(budget), part.sensitivity.l1)
        given = _change(self.family, part)
        if clash := sorted({*given} & {*self.fixed}):
            raise DeclarationError(f"{clash[0]} follows from the query; leave it out")
        return calibrate(self.family, budget, **given, **self.fixed)


def _largest_epsilon(budget: Budget) -> float:
    """The largest epsilon of pure privacy within a budget, by bisection."""
    low, high = 0.0, 1.0
    while budget.holds(Profile.pure(high)):
        low, high = high, 2 * high
    while high - low > CALIBRATED * high:
        middle = (low + high) / 2
        low, high = (middle, high) if budget.holds(Profile.pure(middle)) else (low, middle)
    return float(f"{low:.10g}") if budget.holds(Profile.pure(float(f"{low:.10g}"))) else low


def _change(family: type[Noise], part: Statistic) -> dict[str, Any]:
    """The sensitivity in the norm that suits a family, as `AdditiveMechanism` takes it."""
    if len(part.shape) > 1:
        raise DeclarationError(f"{part.name} takes ExponentialMechanism.calibrated(budget), no noise")
    size, change = part.shape[0], part.sensitivity
    if size > 1 and issubclass(family, ABLE["l2"]):
        return {"sensitivity": change.l2, "norm": "l2", "dimension": size}
    if size == 1 or issubclass(family, ABLE["l1"]):
        return {"sensitivity": change.l1, "norm": "l1", "dimension": size}
    return {"sensitivity": change.linf, "norm": "linf", "dimension": size}


@dataclass(frozen=True, eq=False)
class Query:
    """Numbers of a table, before noise: ``query >> noise`` is what a ledger releases.

    `Table` makes queries. The right side of ``>>`` is calibrated noise
    (``DiscreteGaussian.calibrated(budget)``), a noise with a scale in steps, or a mechanism whose declared
    sensitivity covers that of the query.

    Attributes
    ----------
    statistic : Statistic
        The public description.

    Examples
    --------
    >>> from forcopt.privacy import Bounded, Categories, DiscreteLaplace, PureDP, Schema, Table
    >>> table = Table({"town": ["a", "b", "a"]}, Schema(town=Categories("a", "b", "c")))
    >>> counts = table.group_by("town").count()
    >>> counts
    <count by town: 3 numbers, add_remove>
    >>> (counts >> DiscreteLaplace.calibrated(PureDP(0.5))).mechanisms[0].noise
    DiscreteLaplace(scale=2.0)
    """

    statistic: Statistic
    _table: Table = field(repr=False)

    @property
    def sensitivity(self) -> Sensitivity:
        """The largest change of the numbers by one unit, which follows from the schema."""
        return self.statistic.sensitivity

    @property
    def neighbours(self) -> Neighbours:
        """The relation between tables for which the sensitivity holds."""
        return self.statistic.view.neighbours

    @property
    def name(self) -> str:
        """What is asked."""
        view = self.statistic.view
        by = f" by {', '.join(view.keys)}" if view.keys else ""
        where = f" where {' and '.join(view.conditions)}" if view.conditions else ""
        return self.statistic.name + by + where

    def __rshift__(self, mechanism: Calibrated | Noise | Mechanism) -> Measurement:
        parts = self.statistic.parts
        return Measurement(self, tuple(_fitted(mechanism, part, len(parts)) for part in parts))

    def __repr__(self) -> str:
        return f"<{self.name}: {prod(self.statistic.shape)} numbers, {self.neighbours}>"


def _fitted(given: Any, part: Statistic, parts: int) -> Any:
    """The mechanism for one part of a query, if it covers its sensitivity."""
    if isinstance(given, Calibrated):
        made: Mechanism = given.mechanism(part, parts)
    elif isinstance(given, Noise):
        made = AdditiveMechanism(given, **_change(type(given), part))
    else:
        made = given
    covered = getattr(made, "covers", None)
    if covered is None or isinstance(made, ExponentialMechanism) != isinstance(part, Quantile):
        raise DeclarationError(f"{part.name} does not take {given!r}; give calibrated noise, such as "
                               "DiscreteGaussian.calibrated(ZCDP(0.1))")  # fmt: skip
    covered(part.sensitivity, part.shape)
    whole = not isinstance(part, Total) or part.workload is None or (part.workload % 1 == 0).all()
    if isinstance(made, AdditiveMechanism) and made.noise.whole and not whole:
        raise DeclarationError("the workload has fractions, and the noise is whole: scale it")
    return made


@dataclass(frozen=True, eq=False)
class Measurement:
    """A query with its noise, which a ledger releases.

    Attributes
    ----------
    query : Query
        What is asked.
    mechanisms : tuple of Mechanism
        The noise of each part; two for a mean.
    """

    query: Query
    mechanisms: tuple[Any, ...]

    def __post_init__(self) -> None:
        self.profile()  # refuses a design that amplifies another kind of privacy

    @property
    def neighbours(self) -> Neighbours:
        """The relation between tables for which `profile` holds."""
        return self.query.neighbours

    def profile(self) -> Profile:
        """The privacy profile of the release; each part draws a sample of its own."""
        view = self.query.statistic.view
        found: Iterable[Profile] = [mechanism.profile() for mechanism in self.mechanisms]
        if view.design is not None:
            found = [view.design.amplify(profile, view.population) for profile in found]
        return Profile.together(found)

    def describe(self) -> dict[str, Any]:
        """The declaration of query and noise as plain data."""
        own = {"type": "Measurement", "query": self.query.name, **self.query.statistic.view.describe()}
        return {**own, "noise": [mechanism.describe() for mechanism in self.mechanisms]}

    def release(
        self,
        ledger: Ledger | str | Path | None,
        rng: Randomness | None = None,
        *,
        windows: Iterable[str] | None = None,
        name: str = "",
    ) -> TableRelease:
        """Spend from a ledger, then look at the table, and draw.

        Parameters
        ----------
        ledger : Ledger, str or Path, or None
            Of all releases about the same units, or its file; None for a simulation only.
        rng : Secure or Simulated
            `Secure` by default; with ``Simulated(seed)`` the release is marked as a simulation.
        windows, name
            See `Ledger.spend`; the name of the query by default.

        Raises
        ------
        BudgetSpentError
            If the ledger does not allow the release: then nothing is looked at.
        DeclarationError
            Without a ledger, and for noise that is not drawn securely; nothing is spent then.
        """
        rng = Secure() if rng is None else rng
        require(hasattr(rng, "simulated"), "rng", rng, "be Secure() or Simulated(seed)")
        statistic = self.query.statistic
        pairs = list(zip(statistic.parts, self.mechanisms, strict=True))
        if not rng.simulated:  # what cannot be drawn is refused before the ledger is charged
            for part, mechanism in pairs:
                mechanism._send(np.zeros(part.shape), rng)
        entry = pay(ledger, self.profile(), rng, name or self.query.name, self.neighbours, windows)
        drawn = [m._send(part.answer(self.query._table._drawn(rng)), rng) for part, m in pairs]
        off = [m.total_variation(out) for (_, m), out in zip(pairs, drawn, strict=True)]
        values = tuple(map(np.asarray, drawn))
        return TableRelease(
            values if len(values) > 1 else values[0],
            self.describe(),
            rng.simulated,
            0.0 if rng.simulated else sum(off),
            statistic=statistic,
            mechanisms=self.mechanisms,
            profile=self.profile(),
            entry=None if entry is None else entry.to_dict(),
        )

    def __repr__(self) -> str:
        return f"<{self.query.name} with {', '.join(map(repr, self.mechanisms))}>"
