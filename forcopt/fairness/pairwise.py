"""Fairness over pairs of individuals: elicited (one at least as well as the other), or stability."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from pydantic import Field, ValidationInfo, field_validator

from forcopt.arrays import Array, check_entries
from forcopt.declaration import Integers, Numbers
from forcopt.errors import DeclarationError, require
from forcopt.fairness.notions import Notion, labelled
from forcopt.fairness.rates import GroupRates, Rate
from forcopt.fairness.tolerances import SLACK
from forcopt.language.atoms import positive_part
from forcopt.language.constraint import Constraint
from forcopt.language.expression import Expression

_ANSWERS = {"none": (), "second_at_least": ((0, 1),), "first_at_least": ((1, 0),), "same": ((0, 1), (1, 0))}


class PairwiseFairness(Notion):
    """Elicited constraints: for a pair (i, j), record j must be treated at least as well as record i.

    Being predicted 1 counts as the better treatment. A pair is violated by as much as
    ``P(i is predicted 1) - P(j is predicted 1)`` exceeds `gamma`; the mean of this over all `presented`
    pairs, each with its weight, must be at most `budget`. With a budget of 0, every pair of positive weight
    must hold.

    Attributes
    ----------
    pairs : Integers
        Positions of records, rows ``(i, j)``, shape ``(q, 2)``; a row that occurs twice counts twice.
    gamma : float, default 0.0
        How much better i may be treated, >= 0; from 1 on, no pair demands anything.
    budget : float, default 0.0
        The mean violation that is allowed, >= 0; eta in the paper.
    weights : Numbers, optional
        The share of stakeholders who hold each pair, from 0 to 1, shape ``(q,)``; 1 each by default.
    presented : int, optional
        How many ordered pairs the stakeholders were shown, if more than q (they may have answered that there
        is no constraint); q by default. The budget is a mean over these.

    References
    ----------
    Jung et al. (FORC 2021), equations (1) to (3). (Section 2 there once states the pairs in reverse order;
    section 2.1 and equation (2) are as here.).

    Examples
    --------
    >>> notion = PairwiseFairness(pairs=[(0, 1)], gamma=0.1, budget=0.05)
    >>> rates = GroupRates.from_records([0.8, 0.5], ["a", "a"], [1, 0])
    >>> round(notion.violation(rates)["pairwise unfairness"], 6)
    0.15
    """

    pairs: Integers
    gamma: float = Field(default=0.0, ge=0.0, allow_inf_nan=False)
    budget: float = Field(default=0.0, ge=0.0, allow_inf_nan=False)
    weights: Numbers | None = None
    presented: int | None = None

    rates: ClassVar[tuple[Rate, ...]] = ()

    @field_validator("pairs")
    @classmethod
    def _are_pairs(cls, pairs: Array) -> Array:
        if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs):
            raise DeclarationError(f"the shape is {pairs.shape}; it must be (q, 2) with at least one pair")
        check_entries(pairs, pairs < 0, "the array", "it must not be negative")
        alone = int((pairs[:, 0] == pairs[:, 1]).sum())
        if alone:
            warnings.warn(f"{alone} pairs compare a record with itself; they always hold", stacklevel=2)
        return pairs

    @field_validator("weights")
    @classmethod
    def _are_shares(cls, weights: Array | None, info: ValidationInfo) -> Array | None:
        if weights is None or "pairs" not in info.data:
            return weights
        q = len(info.data["pairs"])
        require(weights.shape == (q,), "the shape", weights.shape, f"be ({q},), one for each pair")
        check_entries(weights, (weights < 0) | (weights > 1), "the array", "it must be from 0 to 1")
        return weights

    @field_validator("presented")
    @classmethod
    def _is_no_less(cls, presented: int | None, info: ValidationInfo) -> int | None:
        if presented is not None and "pairs" in info.data and presented < len(info.data["pairs"]):
            raise DeclarationError(f"it must be at least {len(info.data['pairs'])}, the number of pairs")
        return presented

    @classmethod
    def from_answers(
        cls, answers: Iterable[tuple[Any, int, int, str]], *, gamma: float = 0.0, budget: float = 0.0
    ) -> Self:
        """Count the answers of stakeholders to the pairs that they were shown.

        Parameters
        ----------
        answers : Iterable[tuple[Any, int, int, str]]
            One ``(stakeholder, i, j, answer)`` for each pair shown; the answer is ``"none"`` (no constraint),
            ``"second_at_least"`` (j must be treated at least as well as i), ``"first_at_least"`` or
            ``"same"`` (both).
        gamma : float, default 0.0
            See the class.
        budget : float, default 0.0
            See the class.

        Returns
        -------
        Self
            Each pair that anybody holds, once, with the share of all stakeholders who hold it. Both orders of
            each pair shown count as presented.

        Raises
        ------
        DeclarationError
            For another answer, or if nobody holds any pair.

        Examples
        --------
        >>> asked = [("u", 0, 1, "same"), ("v", 0, 1, "second_at_least"), ("w", 0, 1, "none")]
        >>> notion = PairwiseFairness.from_answers(asked)
        >>> notion.pairs.tolist(), notion.weights.round(3).tolist(), notion.presented
        ([[0, 1], [1, 0]], [0.667, 0.333], 2)
        """
        people, shown, held = set(), set(), set()
        for who, i, j, answer in answers:
            require(answer in _ANSWERS, "an answer", answer, f"be one of {', '.join(_ANSWERS)}")
            people.add(who)
            shown |= {(i, j), (j, i)}
            held |= {(who, (i, j)[a], (i, j)[b]) for a, b in _ANSWERS[answer]}
        if not held:
            raise DeclarationError("answers: no stakeholder holds any pair; at least one is needed")
        pairs, count = np.unique(np.array([pair for _, *pair in held]), axis=0, return_counts=True)
        return cls(pairs=pairs, gamma=gamma, budget=budget, weights=count / len(people), presented=len(shown))

    @property
    def shares(self) -> Array:
        """The share of each pair in the mean violation: its weight over the number presented."""
        presented = self.presented or len(self.pairs)
        return (np.ones(len(self.pairs)) if self.weights is None else self.weights) / presented

    @property
    def records(self) -> Array:
        """The positions of the records in pairs."""
        return np.unique(self.pairs)

    def excess(self, rates: GroupRates) -> Any:
        """``predicted[i] - predicted[j] - gamma`` for each pair, shape ``(q,)``; positive where violated."""
        predicted = rates.predicted
        if predicted is None:
            raise DeclarationError("pairs of records are constrained, but only the cells of groups are known")
        return predicted[self.pairs[:, 0]] - predicted[self.pairs[:, 1]] - self.gamma

    def rows(self, rates: GroupRates) -> list[Constraint]:
        """A row for each pair of positive weight; with a budget, also a column for each and one more row."""
        if self.budget > 0.0:
            return self.rows_with_allowance(rates)
        binding = self._binding
        if not len(binding):
            return []
        row = self.excess(rates)[binding] <= 0
        return [labelled(row, "pair", [f"{i},{j}" for i, j in self.pairs[binding]])]

    def rows_with_allowance(self, rates: GroupRates) -> list[Constraint]:
        """The same with a column for the allowance of each pair, also if the budget is 0.

        This is how equations (1) to (3) of the paper, and its game, state it.
        """
        binding = self._binding
        if not len(binding):
            return []
        excess = self.excess(rates)[binding]
        model = excess.model
        allowed = model.variable(model.unused_name("allowed"), len(binding), lower=0.0, upper=1.0)
        mean = allowed @ self.shares[binding] <= self.budget
        mean.name = "budget"
        return [labelled(excess - allowed <= 0, "pair", [f"{i},{j}" for i, j in self.pairs[binding]]), mean]

    @property
    def _binding(self) -> Array:
        """The pairs that demand anything."""
        return np.flatnonzero((self.shares > 0) & (self.pairs[:, 0] != self.pairs[:, 1]) & (self.gamma < 1.0))

    def disparity(self, rates: GroupRates) -> dict[str, Any]:
        """The mean violation, as ``"pairwise unfairness"``; for expressions, a convex one."""
        excess = self.excess(rates)
        if isinstance(excess, Expression):
            return {"pairwise unfairness": self.shares @ positive_part(excess)}
        return {"pairwise unfairness": float(self.shares @ np.maximum(excess, 0.0))}

    def violation(self, rates: GroupRates) -> dict[str, float]:
        """By how much the mean violation is above the budget, or 0."""
        return {name: max(d - self.budget, 0.0) for name, d in self.disparity(rates).items()}


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


class _Pairwise:
    """The common part of demands on all pairs: the pairs that break them most, column by column."""

    def __init__(self, values: Any, distances: Array, span: float = np.inf) -> None:
        self.values: Any = values if isinstance(values, Expression) else np.asarray(values, dtype=float)
        self.distances, self.span = distances, span

    @abstractmethod
    def _apart(self, values: Array, column: int) -> Array:
        """How much the first individual of every ordered pair is above the second, shape ``(T, T)``."""

    def _broken(self, values: Array, column: int) -> tuple[Array, Array]:
        """The most violated pairs of every individual, in either direction."""
        everyone, over = np.arange(len(values)), self._apart(values, column) - self.distances
        low, high = over.argmax(axis=1), over.argmax(axis=0)
        above, below = over[everyone, low] > SLACK, over[high, everyone] > SLACK
        return np.concatenate([everyone[above], high[below]]), np.concatenate([low[above], everyone[below]])

    def worst(self) -> Excess:
        """The largest excess, for values that are numbers."""
        best = Excess(-np.inf, (0, 0), 0)
        apart = self.distances + np.where(np.eye(len(self.distances), dtype=bool), np.inf, 0.0)
        for c in range(self.values.shape[1]) if len(apart) > 1 else ():
            over = self._apart(self.values, c) - apart
            i, j = (int(at) for at in np.unravel_index(int(over.argmax()), over.shape))
            if over[i, j] > best.amount:
                best = Excess(float(over[i, j]), (i, j), c)
        return best


class PairwiseStability(_Pairwise):
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
        super().__init__(values, distances, span)
        if len(self.values.shape) != 2 or distances.shape != (self.values.shape[0],) * 2:
            raise DeclarationError(
                f"values have shape {self.values.shape} and distances {distances.shape}; they must be (T, m) "
                "and (T, T)"
            )

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
        firsts, seconds, columns = [], [], []
        for c in range(y.shape[1]):
            first, second = self._broken(y, c)
            if len(first):
                codes = np.unique(np.minimum(first, second) * len(y) + np.maximum(first, second))
                firsts.append(codes // len(y))
                seconds.append(codes % len(y))
                columns.append(np.full(len(codes), c))
        if firsts:
            yield self.between(*map(np.concatenate, (firsts, seconds, columns)))

    def _apart(self, values: Array, column: int) -> Array:
        return np.asarray(values[:, column, None] - values[None, :, column])


class PairwiseTotalVariation(_Pairwise):
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

    def rows(self) -> list[Constraint]:
        """All ordered pairs that demand anything, with the positive parts as auxiliary variables."""
        first, second = np.nonzero((self.distances < self.span) & ~np.eye(len(self.distances), dtype=bool))
        if not len(first) or 0 in self.values.shape:
            return []
        over = positive_part(self.values[first] - self.values[second]).sum(axis=2)
        return [over <= self.distances[first, second][:, None]]

    def separate(self, value: Callable[[Expression], Array]) -> Iterator[Constraint]:
        """Yield, for every individual and block, the worst set of values against the worst other."""
        y = value(self.values)
        for b in range(y.shape[1]):
            first, second = self._broken(y, b)
            if not len(first):
                continue
            codes = np.unique(first * len(y) + second)
            first, second = codes // len(y), codes % len(y)
            chosen = (y[first, b] > y[second, b]).astype(float)
            gap = ((self.values[first, b] - self.values[second, b]) * chosen).sum(axis=1)
            yield gap <= self.distances[first, second]

    def _apart(self, values: Array, column: int) -> Array:
        """The sum of positive differences."""
        total = np.zeros(self.distances.shape)
        for y in values[:, column].T:
            total += np.maximum(y[:, None] - y[None, :], 0.0)
        return total
