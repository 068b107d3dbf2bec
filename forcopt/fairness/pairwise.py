"""Elicited fairness: of two individuals, one must be treated at least as well as the other."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any, ClassVar, Self

import numpy as np
from pydantic import Field, ValidationInfo, field_validator

from forcopt.arrays import Array
from forcopt.declaration import Integers, Numbers
from forcopt.errors import DeclarationError
from forcopt.fairness.notions import Notion
from forcopt.fairness.rates import GroupRates, Rate
from forcopt.language.atoms import positive_part
from forcopt.language.constraint import Constraint
from forcopt.language.expression import Expression

__all__ = ["PairwiseFairness"]

_ANSWERS = {
    "none": (),
    "second_at_least": ((0, 1),),
    "first_at_least": ((1, 0),),
    "same": ((0, 1), (1, 0)),
}


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
        if (pairs < 0).any():
            entry = [int(i) for i in np.argwhere(pairs < 0)[0]]
            raise DeclarationError(f"the array{entry} is {pairs[tuple(entry)]}; it must not be negative")
        alone = int((pairs[:, 0] == pairs[:, 1]).sum())
        if alone:
            warnings.warn(f"{alone} pairs compare a record with itself; they always hold", stacklevel=2)
        return pairs

    @field_validator("weights")
    @classmethod
    def _are_shares(cls, weights: Array | None, info: ValidationInfo) -> Array | None:
        if weights is None or "pairs" not in info.data:
            return weights
        if weights.shape != (len(info.data["pairs"]),):
            raise DeclarationError(
                f"the shape is {weights.shape}; it must be ({len(info.data['pairs'])},), one for each pair"
            )
        bad = (weights < 0) | (weights > 1)
        if bad.any():
            at = int(np.argmax(bad))
            raise DeclarationError(f"the array[{at}] is {weights[at]:g}; it must be from 0 to 1")
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
            if answer not in _ANSWERS:
                raise DeclarationError(f"an answer is {answer!r}; it must be one of {', '.join(_ANSWERS)}")
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
        return [_named(row, "pair", [f"pair[{i},{j}]" for i, j in self.pairs[binding]])]

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
        labels = [f"pair[{i},{j}]" for i, j in self.pairs[binding]]
        mean = allowed @ self.shares[binding] <= self.budget
        return [_named(excess - allowed <= 0, "pair", labels), _named(mean, "budget", None)]

    @property
    def _binding(self) -> Array:
        """The pairs that demand anything."""
        demands = (self.shares > 0) & (self.pairs[:, 0] != self.pairs[:, 1]) & (self.gamma < 1.0)
        return np.flatnonzero(demands)

    def disparity(self, rates: GroupRates) -> dict[str, Any]:
        """The mean violation, as ``"pairwise unfairness"``; for expressions, a convex one."""
        excess = self.excess(rates)
        if isinstance(excess, Expression):
            return {"pairwise unfairness": self.shares @ positive_part(excess)}
        return {"pairwise unfairness": float(self.shares @ np.maximum(excess, 0.0))}

    def violation(self, rates: GroupRates) -> dict[str, float]:
        """By how much the mean violation is above the budget, or 0."""
        return {name: max(d - self.budget, 0.0) for name, d in self.disparity(rates).items()}


def _named(row: Constraint, name: str, labels: list[str] | None) -> Constraint:
    row.name, row.labels = name, labels
    return row
