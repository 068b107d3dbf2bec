"""Stability over pairs: similar individuals are treated alike, ``|y_i - y_j| <= D_ij`` for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.fairness.tolerances import SLACK
from forcopt.language.atoms import positive_part
from forcopt.language.constraint import Constraint
from forcopt.language.expression import Expression

__all__ = ["Excess", "PairwiseStability", "PairwiseTotalVariation"]


class Excess(NamedTuple):
    """The pair that comes nearest to breaking a demand, or breaks it most.

    Attributes
    ----------
    amount : float
        The difference minus the distance allowed; at most 0 where all pairs hold; ``-inf`` without any pair.
    pair : tuple[int, int]
        Positions of the two individuals; the first has the larger value.
    column : int
        Position of the value.
    """

    amount: float
    pair: tuple[int, int]
    column: int


class PairwiseStability:
    """``|y_ic - y_jc| <= D_ij`` for all pairs (i, j) and columns c.

    Parameters
    ----------
    values : Expression or array_like
        Shape ``(T, m)``: m values of each of T individuals. An expression gives constraints, numbers give the
        excess.
    distances : Array
        Symmetric, at least 0, may be infinite; shape ``(T, T)``.
    span : float, default inf
        The largest difference that values can have: pairs with at least this distance demand nothing.

    Raises
    ------
    DeclarationError
        If the shapes do not fit.

    Notes
    -----
    All rows are ``T (T - 1) / 2 * m``. `separate` scans them all in O(T² m). Of each column it yields, for
    every individual, the pair that the point violates most in either direction.

    References
    ----------
    Dwork, Hardt, Pitassi, Reingold and Zemel: Fairness through awareness. ITCS 2012, Definition 2.1 (the
    Lipschitz condition).

    Examples
    --------
    >>> D = np.array([[0.0, 0.2], [0.2, 0.0]])
    >>> PairwiseStability([[0.9, 0.1], [0.4, 0.6]], D).worst()
    Excess(amount=0.3, pair=(0, 1), column=0)
    """

    def __init__(self, values: Any, distances: Array, span: float = np.inf) -> None:
        self.values: Any = values if isinstance(values, Expression) else np.asarray(values, dtype=float)
        self.distances, self.span = distances, span
        if len(self.values.shape) != 2 or distances.shape != (self.values.shape[0],) * 2:
            raise DeclarationError(
                f"values have shape {self.values.shape} and distances {distances.shape}; they must be (T, m) "
                "and (T, T)"
            )
        self.found: list[tuple[Array, Array, Array]] = []
        """The pairs that `separate` has yielded: first and second individuals, and columns."""

    def rows(self) -> list[Constraint]:
        """All pairs that demand anything, as one constraint with both ends; none if there are none."""
        first, second = np.nonzero(np.triu(self.distances < self.span, 1))
        m = self.values.shape[1]
        if not len(first) or not m:
            return []
        return [self.between(np.repeat(first, m), np.repeat(second, m), np.tile(np.arange(m), len(first)))]

    def between(self, first: Array, second: Array, columns: Array) -> Constraint:
        """The rows of given pairs and columns.

        Parameters
        ----------
        first, second, columns : Array
            Positions, shape ``(rows,)``.
        """
        limit = self.distances[first, second]
        row: Constraint = (self.values[first, columns] - self.values[second, columns]).between(-limit, limit)
        return row

    def separate(self, value: Callable[[Expression], Array]) -> Iterator[Constraint]:
        """Yield the most violated pairs of every individual in each column: for `Model.lazy`."""
        y = value(self.values)
        everyone = np.arange(len(y))
        firsts, seconds, columns = [], [], []
        for c in range(y.shape[1]):
            over = y[:, c, None] - y[None, :, c] - self.distances
            low, high = over.argmax(axis=1), over.argmax(axis=0)
            above, below = over[everyone, low] > SLACK, over[high, everyone] > SLACK
            first = np.concatenate([everyone[above], high[below]])
            second = np.concatenate([low[above], everyone[below]])
            if len(first):
                codes = np.unique(np.minimum(first, second) * len(y) + np.maximum(first, second))
                firsts.append(codes // len(y))
                seconds.append(codes % len(y))
                columns.append(np.full(len(codes), c))
        if firsts:
            found = np.concatenate(firsts), np.concatenate(seconds), np.concatenate(columns)
            self.found.append(found)
            yield self.between(*found)

    def worst(self) -> Excess:
        """The largest excess, for values that are numbers."""
        best = Excess(-np.inf, (0, 0), 0)
        apart = self.distances + np.where(np.eye(len(self.distances), dtype=bool), np.inf, 0.0)
        if len(apart) < 2:
            return best
        for c in range(self.values.shape[1]):
            y = self.values[:, c]
            over = y[:, None] - y[None, :] - apart
            i, j = (int(at) for at in np.unravel_index(int(over.argmax()), over.shape))
            if over[i, j] > best.amount:
                best = Excess(float(over[i, j]), (i, j), c)
        return best


class PairwiseTotalVariation:
    """``sum over c of max(0, y_ibc - y_jbc) <= D_ij`` for all ordered pairs (i, j) and blocks b.

    Of two distributions this is their total variation: no set of outcomes has probabilities that differ by
    more than the distance.

    Parameters
    ----------
    values : Expression or array_like
        Shape ``(T, blocks, m)``: of each individual some vectors of m values.
    distances : Array
        Symmetric, at least 0, may be infinite; shape ``(T, T)``.
    span : float, default inf
        The largest total variation that values can have.

    Notes
    -----
    `rows` needs an auxiliary variable for every pair, block and value. `separate` needs none: the set of
    values in which i exceeds j is the most violated one. It yields for every individual and block the worst
    pair in either direction; O(T² blocks m).

    Examples
    --------
    >>> D = np.array([[0.0, 0.4], [0.4, 0.0]])
    >>> PairwiseTotalVariation([[[0.6, 0.4, 0.0]], [[0.2, 0.2, 0.6]]], D).worst()  # doctest: +ELLIPSIS
    Excess(amount=0.1999..., pair=(0, 1), column=0)
    """

    def __init__(self, values: Any, distances: Array, span: float = np.inf) -> None:
        self.values: Any = values if isinstance(values, Expression) else np.asarray(values, dtype=float)
        self.distances, self.span = distances, span

    def rows(self) -> list[Constraint]:
        """All ordered pairs that demand anything, with the positive parts as auxiliary variables."""
        demands = (self.distances < self.span) & ~np.eye(len(self.distances), dtype=bool)
        first, second = np.nonzero(demands)
        if not len(first) or 0 in self.values.shape:
            return []
        over = positive_part(self.values[first] - self.values[second]).sum(axis=2)
        return [over <= self.distances[first, second][:, None]]

    def separate(self, value: Callable[[Expression], Array]) -> Iterator[Constraint]:
        """Yield, for every individual and block, the worst set of values against the worst other."""
        y = value(self.values)
        everyone = np.arange(len(y))
        for b in range(y.shape[1]):
            over = self._variation(y[:, b]) - self.distances
            low, high = over.argmax(axis=1), over.argmax(axis=0)
            above, below = over[everyone, low] > SLACK, over[high, everyone] > SLACK
            first = np.concatenate([everyone[above], high[below]])
            second = np.concatenate([low[above], everyone[below]])
            if not len(first):
                continue
            codes = np.unique(first * len(y) + second)
            first, second = codes // len(y), codes % len(y)
            chosen = (y[first, b] > y[second, b]).astype(float)
            gap = ((self.values[first, b] - self.values[second, b]) * chosen).sum(axis=1)
            yield gap <= self.distances[first, second]

    def worst(self) -> Excess:
        """The largest excess, for values that are numbers; the column is the block."""
        best = Excess(-np.inf, (0, 0), 0)
        apart = self.distances + np.where(np.eye(len(self.distances), dtype=bool), np.inf, 0.0)
        if len(apart) < 2:
            return best
        for b in range(self.values.shape[1]):
            over = self._variation(self.values[:, b]) - apart
            i, j = (int(at) for at in np.unravel_index(int(over.argmax()), over.shape))
            if over[i, j] > best.amount:
                best = Excess(float(over[i, j]), (i, j), b)
        return best

    @staticmethod
    def _variation(y: Array) -> Array:
        """The sum of positive differences of every ordered pair, shape ``(T, T)``."""
        total = np.zeros((len(y), len(y)))
        for c in range(y.shape[1]):
            total += np.maximum(y[:, c, None] - y[None, :, c], 0.0)
        return total
