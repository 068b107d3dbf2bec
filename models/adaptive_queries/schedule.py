"""The declaration: which announced queries to answer within the privacy budget of each window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import lcm
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from forcopt.arrays import Array, as_numbers
from forcopt.declaration import Integers, Numbers
from forcopt.errors import DeclarationError, require
from forcopt.models.adaptive_queries.data_models import DataModel
from forcopt.models.adaptive_queries.tolerances import SHOWN_EXCESS
from forcopt.notebook import new_figure
from forcopt.problem import Evaluation, Problem
from forcopt.problem.drawing import COLOURS, finished, panel, titled, whole_ticks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LARGEST = 2**62
_DIGITS = 12


@dataclass(frozen=True, eq=False)
class Schedule:
    """The queries to answer, in an order that the stream allows.

    Attributes
    ----------
    queries : Array
        Numbers of the queries from 0, shape ``(answered,)``.
    intervals : Array
        Their first and last positions, shape ``(answered, 2)``.
    spent : Array
        The share of the budget that each window has spent, shape ``(windows,)``.

    Examples
    --------
    >>> from forcopt.models import QuerySchedule
    >>> from forcopt.models.adaptive_queries import DecayingCorrelation
    >>> data = DecayingCorrelation(attributes=12, independence=0.5, width=1)
    >>> schedule = QuerySchedule(data, [[i, i] for i in range(1, 13)]).solve("min-cost-flow").decision
    >>> len(schedule.queries), schedule.intervals.shape, schedule.spent.max().item() <= 1
    (3, (3, 2), True)
    """

    queries: Array
    intervals: Array = field(repr=False)
    spent: Array = field(repr=False)

    def __len__(self) -> int:
        return len(self.queries)

    def __repr__(self) -> str:
        return f"<{len(self)} queries answered; the fullest window has spent {self.spent.max():.4g}>"

    def plot(self, path: str | Path | None = None, *, ax: Any = None) -> Figure:
        """Draw the answered queries over the positions, and the share of the budget spent by each window.

        Parameters
        ----------
        path : str or Path, optional
            The file to save the picture to; its ending gives the format.
        ax : matplotlib.axes.Axes, optional
            The axes to draw the queries on, without the budget; a new figure with both if left out.
        """
        below: Any = None
        if ax is None:
            figure = new_figure(6.5, 3.2)
            above, below = figure.subplots(2, 1, height_ratios=(2, 1))
        else:
            figure, above = panel(ax, (0, 0))
        for row, (first, last) in enumerate(self.intervals):
            ends = [first - 0.4, last + 0.4]
            above.plot(ends, [row, row], linewidth=4, solid_capstyle="butt", color=COLOURS[0])
        above.set(ylabel="query", yticks=range(len(self)), yticklabels=self.queries.tolist())
        titled(above, f"{len(self)} queries are answered")
        for axes in (above,) if below is None else (above, below):
            whole_ticks(axes.xaxis)
        if below is None:
            above.set(xlabel="position")
            return finished(figure, path)
        below.bar(np.arange(1, len(self.spent) + 1), self.spent, color="0.7")
        below.axhline(1, color="#D55E00", linewidth=1)
        below.set(xlabel="window", ylabel="spent", ylim=(0, 1.1))
        return finished(figure, path)


class QuerySchedule(Problem):
    """Choose which announced queries to answer, for the largest total weight.

    Each window of the data model has a budget; a query costs every window that it touches. Windows follow
    from the data model: see `DataModel.touched`.

    Attributes
    ----------
    data_model : DataModel
        The data model.
    intervals : Integers
        First and last position of each query, from 1, shape ``(Q, 2)``.
    weights : Numbers, default 1
        The worth of an answer, at least 0; one for all or shape ``(Q,)``.
    costs : Numbers, default 1
        The epsilon that an answer spends, above 0; one for all or shape ``(Q,)``. With `delta`, shape
        ``(2,)`` or ``(Q, 2)``: epsilon and delta.
    epsilon : float, default 1
        The budget of each window, above 0.
    delta : float, optional
        The budget of each window for the sum of deltas, above 0.

    Raises
    ------
    DeclarationError
        For an interval that is reversed or outside of the data, or a query that the data model refuses.

    Notes
    -----
    Sums are exact: five queries of cost .2, or six of cost 1 / 6, fit a budget of 1; see `whole_units`.
    A query that costs more than the budget is never answered: see `unanswerable`.

    References
    ----------
    Du and Dwork (2022), conditions of Theorems 10, 12, 14 and 17.

    Examples
    --------
    >>> from forcopt.models import QuerySchedule
    >>> from forcopt.models.adaptive_queries import DecayingCorrelation
    >>> data = DecayingCorrelation(attributes=12, independence=0.5, width=1)
    >>> p = QuerySchedule(data, [[i, i] for i in range(1, 13)])
    >>> p.solve("min-cost-flow").objective
    3.0
    """

    family: ClassVar[str] = "queries"
    sense: ClassVar[Literal["min", "max"]] = "max"
    default_method: ClassVar[str] = "milp"

    data_model: DataModel
    intervals: Integers
    weights: Numbers = Field(default=1.0, validate_default=True)
    costs: Numbers = Field(default=1.0, validate_default=True)
    epsilon: float = Field(default=1.0, gt=0.0, allow_inf_nan=False)
    delta: float | None = Field(default=None, gt=0.0, lt=1.0)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        check_intervals(self.data_model, self.intervals)
        q, shape = len(self.intervals), self.weights.shape
        if shape not in ((), (q,)) or (self.weights < 0).any():
            raise DeclarationError(f"weights: the shape is {shape}; one weight, or {q}, none negative")
        one, each = ((), (q,)) if self.delta is None else ((2,), (q, 2))
        require(self.costs.shape in (one, each), "costs: the shape", self.costs.shape, f"be {one} or {each}")
        spends = self.costs if self.delta is None else self.costs[..., 0]
        if (spends <= 0).any() or (self.costs < 0).any():
            raise DeclarationError("costs: epsilons must be above 0 and deltas at least 0")
        return self

    @property
    def query_weights(self) -> Array:
        """The weight of each query, shape ``(Q,)``."""
        return np.broadcast_to(self.weights, len(self.intervals))

    @cached_property
    def units(self) -> tuple[Array, Array]:
        """Costs, shape ``(R, Q)``, and budgets, shape ``(R,)``, in whole units of each of the R budgets."""
        q = len(self.intervals)
        if self.delta is None:
            columns, budgets = [np.broadcast_to(self.costs, q)], [self.epsilon]
        else:
            columns, budgets = list(np.broadcast_to(self.costs, (q, 2)).T), [self.epsilon, self.delta]
        found = [whole_units(c, b) for c, b in zip(columns, budgets, strict=True)]
        return np.stack([c for c, _ in found]), np.array([b for _, b in found], dtype=np.int64)

    @cached_property
    def touched(self) -> tuple[Array, Array]:
        """First and last window of each query, from 0, shape ``(Q,)`` each."""
        return self.data_model.touched(self.intervals)

    @property
    def answerable(self) -> Array:
        """Whether each query costs no more than the whole budget, shape ``(Q,)``."""
        costs, budgets = self.units
        return np.asarray((costs <= budgets[:, None]).all(axis=0))

    @property
    def unanswerable(self) -> list[int]:
        """The queries that cost more than the whole budget."""
        return np.flatnonzero(~self.answerable).tolist()

    @property
    def capacity(self) -> int | None:
        """The number of queries that one window can answer, if all cost the same; else None."""
        costs, budgets = self.units
        if not costs.size or (costs != costs[:, :1]).any():
            return None if costs.size else 0
        paid = costs[:, 0] > 0
        return int((budgets[paid] // costs[paid, 0]).min())

    @cached_property
    def groups(self) -> list[Array]:
        """Queries of which the order of the stream allows one at most, for each such interval."""
        alone = np.flatnonzero(self.data_model.exclusive(self.intervals))
        if not len(alone):
            return []
        _, group = np.unique(self.intervals[alone], axis=0, return_inverse=True)
        found = [alone[group.ravel() == g] for g in range(int(group.max()) + 1)]
        return [g for g in found if len(g) > 1]

    @cached_property
    def group_of_each(self) -> Array:
        """The number of each query's group in `groups`, or -1, shape ``(Q,)``."""
        out = np.full(len(self.intervals), -1)
        for g, members in enumerate(self.groups):
            out[members] = g
        return out

    def one_of_each(self, values: Array) -> Array:
        """Whether each query has the largest value in its group of `groups`, or is in none."""
        keep = np.ones(len(self.intervals), dtype=bool)
        for group in self.groups:
            keep[group] = False
            keep[group[int(np.argmax(values[group]))]] = True
        return keep

    def loads(self, queries: Array) -> Array:
        """The spent budget of each window, in the units of `units`, shape ``(R, windows)``."""
        costs, _ = self.units
        first, last = (ends[queries] for ends in self.touched)
        out = np.zeros((len(costs), self.data_model.windows + 1), dtype=np.int64)
        for r, each in enumerate(costs[:, queries]):
            np.add.at(out[r], first, each)
            np.subtract.at(out[r], last + 1, each)
        return np.asarray(np.cumsum(out, axis=1)[:, :-1])

    def schedule(self, queries: Any) -> Schedule:
        """The decision that answers these queries, in an order that the stream allows.

        Parameters
        ----------
        queries : array_like
            Numbers of queries, or a bool for each.
        """
        chosen = np.asarray(queries)
        chosen = np.flatnonzero(chosen) if chosen.dtype == bool else chosen.astype(np.int64)
        return self._made(chosen[self.data_model.order(self.intervals[chosen])])

    def _made(self, queries: Array) -> Schedule:
        share = (self.loads(queries) / self.units[1][:, None]).max(axis=0)
        return Schedule(queries, self.intervals[queries], share)

    def evaluate(self, decision: Schedule | Sequence[int] | Array) -> Evaluation:
        """Add up the weight of the answered queries.

        Parameters
        ----------
        decision : Schedule, sequence of int or Array
            The queries in the order of asking.

        Returns
        -------
        Evaluation
            Violations: ``"budget of window i"`` for the window that is overspent most, as a share of the
            budget; ``"order"``, the number of queries that come too late.

        Raises
        ------
        DeclarationError
            For a number that is no query, or one that is given twice.
        """
        given = decision.queries if isinstance(decision, Schedule) else decision
        numbers = as_numbers(given, "the queries").ravel()
        queries = numbers.astype(np.int64)
        count = len(self.intervals)
        if (queries != numbers).any() or ((queries < 0) | (queries >= count)).any():
            raise DeclarationError(f"the queries must be whole numbers from 0 to {count - 1}")
        if len(np.unique(queries)) < len(queries):
            raise DeclarationError("a query is answered twice; each may be answered once")
        violations: dict[str, float] = {}
        budgets = self.units[1]
        over = (self.loads(queries) - budgets[:, None]) / budgets[:, None]
        if (over > 0).any():
            r, window = np.unravel_index(int(np.argmax(over)), over.shape)
            name = ("epsilon", "delta")[int(r)]
            # a unit is the least amount: it may be below the tolerance for rounding
            violations[f"{name} of window {int(window) + 1}"] = max(float(over.max()), SHOWN_EXCESS)
        late = int(self.data_model.late(self.intervals[queries]).sum())
        if late:
            violations["order"] = float(late)
        counts = {"answered": float(len(queries)), "unanswerable": float(len(self.unanswerable))}
        return Evaluation(float(self.query_weights[queries].sum()), violations, counts)


def check_intervals(model: DataModel, intervals: Array) -> None:
    """Check that all intervals are pairs of positions and that the data model refuses none.

    Raises
    ------
    DeclarationError
        Naming the query and the rule.
    """
    if intervals.ndim != 2 or intervals.shape[1:] != (2,) or not len(intervals):
        raise DeclarationError(f"intervals: the shape is {intervals.shape}; it must be (Q, 2), Q at least 1")
    refused = model.refusals(intervals)
    if refused:
        j, rule = min(refused.items())
        first, last = intervals[j].tolist()
        raise DeclarationError(f"intervals: query {j} is [{first}, {last}]; {rule}")


def whole_units(costs: Array, budget: float) -> tuple[Array, int]:
    """Costs and a budget in a common whole unit, so that their sums are exact.

    Parameters
    ----------
    costs : Array
        Not negative, shape ``(Q,)``.
    budget : float
        Above 0.

    Returns
    -------
    tuple[Array, int]
        Whole costs, and the whole budget. A cost that is, but for the rounding of floats, p / q of the budget
        with q up to 10,000 is read as that; other numbers are read as decimals of 12 digits. If the common
        unit does not fit 64 bits, costs are rounded to a coarser one, and the budget is larger by ``1e-12``
        of itself.

    Examples
    --------
    >>> whole_units(np.array([0.2, 0.1]), 1.0)
    (array([2, 1]), 10)
    >>> whole_units(np.array([0.7 / 6]), 0.7)
    (array([1]), 6)
    """
    values, inverse = np.unique(costs, return_inverse=True)
    shares = [_share(float(v), budget) for v in values]
    unit = 1
    largest = max(float(np.sum(costs)) / budget, 1.0)
    for share in shares:
        unit = lcm(unit, share.denominator)
        if unit * largest >= _LARGEST:
            unit = int(_LARGEST / (4 * largest))
            scaled = [min(round(share * unit), _LARGEST) for share in shares]
            return np.array(scaled, dtype=np.int64)[inverse.ravel()], unit + unit // 10**_DIGITS
    scaled = [min(int(share * unit), _LARGEST) for share in shares]
    return np.array(scaled, dtype=np.int64)[inverse.ravel()], unit


def _share(cost: float, budget: float) -> Fraction:
    """The cost as a share of the budget."""
    share = cost / budget
    ratio = Fraction(share).limit_denominator(10_000)
    if abs(float(ratio) - share) <= 4 * np.finfo(float).eps * share:
        return ratio
    return Fraction(f"{cost:.{_DIGITS}g}") / Fraction(f"{budget:.{_DIGITS}g}")
