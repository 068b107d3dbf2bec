"""Models whose operands have labels and axes in random orders, against all points of the same numbers.

The operands of every statement are permuted by themselves: the order of the labels, the order of the axes,
and the order in which the statement names them. The oracle works on arrays by position, in one order.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

import forcopt as fo
from benchmarks.fuzz.case import ModelCase

Random = np.random.Generator
LABELS = (["a", "b", "c"], [30, 10, 20], ["a ", "A", "a"], [(1, "x"), (1, "y"), (2, "x")], [True, False])
"""Labels that sorting, stripping or counting would confuse."""


class Draft:
    """A labelled model that is written beside the values of its statements at all points."""

    def __init__(self, rng: Random) -> None:
        self.rng, self.model = rng, fo.Model("labels")
        kinds = [LABELS[i] for i in rng.permutation(len(LABELS))[:2]]
        self.labels = {
            name: labels[: int(rng.integers(1, 4))]
            for name, labels in zip(("unit", "time"), kinds, strict=True)
        }
        if rng.random() < 0.5 or self.size > 4:
            self.labels["time"] = self.labels["time"][:1] if self.size > 4 else self.labels["time"]
        self.x, self.b = self.variable(2), self.variable(1)
        one = list(product(range(3), repeat=self.size)), list(product(range(2), repeat=self.size))
        shape = [len(v) for v in self.labels.values()]
        self.at_x = np.repeat(np.array(one[0]), len(one[1]), axis=0).reshape(-1, *shape).astype(float)
        self.at_b = np.tile(np.array(one[1]), (len(one[0]), 1)).reshape(-1, *shape).astype(float)
        self.holds = np.ones(len(self.at_x), dtype=bool)

    @property
    def size(self) -> int:
        """The number of entries of a table."""
        return int(np.prod([len(v) for v in self.labels.values()]))

    def order(self) -> list[str]:
        """The axes, in a random order."""
        return [str(name) for name in self.rng.permutation(["unit", "time"])]

    def shuffled(self, name: str) -> list[Any]:
        """The labels of an axis, in a random order."""
        return [self.labels[name][i] for i in self.rng.permutation(len(self.labels[name]))]

    def variable(self, upper: int) -> Any:
        """A variable over both axes."""
        index = {name: self.shuffled(name) for name in self.order()}
        return self.model.variable(f"v{upper}", index=index, lower=0, upper=upper, integer=True)

    def table(self, low: int, high: int) -> tuple[Any, np.ndarray]:
        """Random numbers over both axes: as a frame, or a series of pairs, or a parameter; and in order."""
        numbers = self.rng.integers(low, high + 1, [len(v) for v in self.labels.values()])
        rows, columns = (pd.Index(v, name=n, tupleize_cols=False) for n, v in self.labels.items())
        frame = pd.DataFrame(numbers, rows, columns)
        take = [self.rng.permutation(n) for n in numbers.shape]
        frame = frame.iloc[take[0], take[1]]
        frame = frame if self.rng.random() < 0.5 else frame.T
        if self.rng.random() < 0.3:
            axes = {frame.index.name: list(frame.index), frame.columns.name: list(frame.columns)}
            name = self.model.unused_name("p")
            return self.model.parameter(name, index=axes, value=frame, lower=-9, upper=9), numbers.astype(
                float
            )
        return frame, numbers.astype(float)

    def column(self, low: int, high: int) -> tuple[Any, np.ndarray, str]:
        """Random numbers over one axis, as a series; in order, and spread over the other axis."""
        name = self.order()[0]
        numbers = self.rng.integers(low, high + 1, len(self.labels[name]))
        series = pd.Series(numbers, pd.Index(self.labels[name], name=name, tupleize_cols=False))
        series = series.iloc[self.rng.permutation(len(series))]
        return series, (numbers[:, None] if name == "unit" else numbers[None, :]).astype(float), name

    def affine(self) -> tuple[Any, np.ndarray]:
        """An expression over both axes, and its values at all points."""
        (first, one), (second, two), (series, spread, _) = (
            self.table(-2, 2),
            self.table(-2, 2),
            self.column(-2, 2),
        )
        parts = [
            (first * self.x, one * self.at_x),
            (second * self.b, two * self.at_b),
            (series * self.x, spread * self.at_x),
            (self.x - self.b, self.at_x - self.at_b),
        ]
        parts = [parts[i] for i in self.rng.permutation(4)[: int(self.rng.integers(1, 4))]]
        shift = (first, one) if self.rng.random() < 0.5 else (series, spread)
        e, values = parts[0]
        for more, also in (*parts[1:], shift):
            e, values = (e + more if self.rng.random() < 0.5 else more + e), values + also
        return e, values

    def demand(self, met: np.ndarray) -> None:
        """Keep the points that meet a statement."""
        self.holds &= met.reshape(len(met), -1).all(axis=1)

    # -- statements ----------------------------------------------------------------------------------------

    def row(self) -> None:
        """A row for each entry, against a table."""
        (e, values), (limit, right) = self.affine(), self.table(0, 4)
        if self.rng.random() < 0.5:
            self.model.subject_to(e <= limit)
        else:
            self.model.subject_to(limit >= e)
        self.demand(values <= right)

    def total(self) -> None:
        """A row for each label of an axis, of the sums over the other, against a series."""
        (e, values), (limit, right, name) = self.affine(), self.column(0, 6)
        over = "time" if name == "unit" else "unit"
        self.model.subject_to(limit >= e.sum(over))
        self.demand(values.sum(axis=1 + (over == "time"), keepdims=True) <= right)

    def condition(self) -> None:
        """A binary of each entry that demands a row of it."""
        (e, values), (limit, right) = self.affine(), self.table(0, 3)
        self.model.subject_to(fo.implies(self.b, e <= limit))
        self.demand((self.at_b == 0) | (values <= right))

    def atom(self) -> None:
        """An absolute value, a maximum or a product, entry by entry."""
        (e, values), (f, others), (limit, right) = self.affine(), self.affine(), self.table(1, 6)
        which = int(self.rng.integers(0, 3))
        made = (lambda: fo.abs(e), lambda: fo.maximum(f, e), lambda: fo.product(self.b, e))[which]()
        at = (np.abs(values), np.maximum(values, others), self.at_b * values)[which]
        self.model.subject_to(made <= limit)
        self.demand(at <= right)

    def logic(self) -> None:
        """A formula over the binaries and a table of bits."""
        bits, of = self.table(0, 1)
        while not isinstance(bits, pd.DataFrame):
            bits, of = self.table(0, 1)
        self.model.subject_to((self.b & bits).sum() <= (limit := int(self.rng.integers(0, 4))))
        self.demand((self.at_b * of).sum(axis=(1, 2))[:, None] <= limit)


def labelled(rng: Random) -> ModelCase:
    """One to three statements about two labelled variables, and a weighed sum."""
    d = Draft(rng)
    kinds: list[Callable[[], None]] = [d.row, d.total, d.condition, d.atom, d.logic]
    for i in rng.integers(0, len(kinds), int(rng.integers(1, 4))):
        kinds[i]()
    (e, values), (weights, on), (prices, of) = d.affine(), d.table(-5, 5), d.table(-5, 5)
    goal = e.sum() + (weights * d.x).sum() + (d.b * prices).sum()
    at = (values + on * d.at_x + of * d.at_b).sum(axis=(1, 2))
    d.model.minimize(goal)
    if not d.holds.any():
        return ModelCase(d.model, ("highs", "scip", "cp-sat"), "infeasible")
    return ModelCase(d.model, ("highs", "scip", "cp-sat"), "optimal", float(at[d.holds].min()))


CAMPAIGNS = {"labelled": labelled}
