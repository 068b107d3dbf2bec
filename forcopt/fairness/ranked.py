"""Candidates for a ranking, and the exposures and counts that a ranking gives to their groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.errors import DeclarationError

__all__ = ["Candidates", "GroupLimit", "Ranked"]


class Candidates:
    """The facts about candidates that a notion reads.

    Parameters
    ----------
    groups : Mapping[str, tuple[str, ...]]
        The level of each candidate, by attribute.
    weights : Array
        Of the positions, shape ``(k,)``.
    scores : Array, optional
        Shape ``(n,)``; None if utilities depend on positions.
    count : int
        The number n of candidates.
    """

    def __init__(
        self, groups: Mapping[str, tuple[str, ...]], weights: Array, scores: Array | None, count: int
    ) -> None:
        self.groups, self.weights, self.scores, self.count = groups, weights, scores, count
        self._cells: dict[tuple[str, ...], tuple[list[str], Array, Array]] = {}

    @property
    def mean_exposure(self) -> float:
        """The exposure of each candidate if all were equal."""
        return float(self.weights.sum()) / self.count

    def cells(self, by: tuple[str, ...] | None) -> tuple[list[str], Array, Array]:
        """The groups by attributes: names, the group of each candidate, sizes.

        Parameters
        ----------
        by : tuple[str, ...], optional
            Attributes, whose levels are intersected; None for all, empty for one group of everybody.

        Raises
        ------
        DeclarationError
            For an attribute that does not exist.
        """
        chosen = tuple(self.groups) if by is None else by
        for name in chosen:
            if name not in self.groups:
                raise DeclarationError(
                    f"constraint: there is no attribute {name!r}; "
                    f"there are {', '.join(self.groups) or 'none'}"
                )
        if chosen not in self._cells:
            if not chosen:
                found = (["all"], np.zeros(self.count, dtype=int), np.array([self.count]))
            else:
                labels = list(zip(*(self.groups[name] for name in chosen), strict=True))
                distinct = sorted(set(labels))
                place = {cell: at for at, cell in enumerate(distinct)}
                codes = np.array([place[cell] for cell in labels])
                found = ([", ".join(cell) for cell in distinct], codes, np.bincount(codes))
            self._cells[chosen] = found
        return self._cells[chosen]


@dataclass(frozen=True, eq=False)
class GroupLimit:
    """Bounds on sums over groups: ``low <= factor * (sum over the members of a group) <= high``.

    Attributes
    ----------
    codes : Array
        The group of each candidate, shape ``(n,)``.
    factor, low, high : Array
        One entry for each group.
    prefix : int, optional
        The sums are of the probabilities to be among the first `prefix`; of exposures if None.
    name : str
        Of the demand.
    labels : list[str]
        Of the groups.
    """

    codes: Array = field(repr=False)
    factor: Array
    low: Array
    high: Array
    prefix: int | None
    name: str
    labels: list[str]

    @cached_property
    def written(self) -> GroupLimit:
        """The same for a model: with factors of 1, so that coefficients have no rounding errors."""
        one = np.ones(len(self.factor))
        return replace(self, factor=one, low=self.low / self.factor, high=self.high / self.factor)

    @property
    def needed(self) -> Array:
        """The groups whose bounds a model needs: where all are equations, the total implies the last.

        With rounded right-hand sides all of them would contradict each other in exact arithmetic.
        """
        groups = np.arange(len(self.factor))
        return groups[:-1] if (self.low == self.high).all() else groups


@dataclass(frozen=True, eq=False)
class Ranked:
    """A ranking or a lottery, as numbers or as expressions of a model.

    Attributes
    ----------
    candidates : Candidates
        Who is ranked.
    exposures : Any
        The expected weights of position of the candidates `kept`.
    counts : Callable[[Array, int], Any]
        ``counts(codes, groups)`` are the expected numbers of members of each group among the first 1, ..., k,
        shape ``(groups, k)``, for codes of the candidates `kept`.
    kept : Array
        The positions of the candidates that a model has columns for; all others get no position.
    chosen : Any
        Whether a candidate is ranked at all: numbers or an expression of shape ``(len(kept),)``; None if
        that is not known.
    """

    candidates: Candidates
    exposures: Any
    counts: Callable[[Array, int], Any]
    kept: Array
    chosen: Any = None

    @cached_property
    def _found(self) -> dict[int, Any]:
        return {}

    def sums(self, limit: GroupLimit) -> Any:
        """The bounded quantity of each group."""
        groups, codes = len(limit.factor), limit.codes[self.kept]
        if limit.prefix is None:
            member = sp.csr_array(
                (limit.factor[codes], (codes, np.arange(len(codes)))), shape=(groups, len(codes))
            )
            return member @ self.exposures
        if id(limit.codes) not in self._found:
            self._found[id(limit.codes)] = self.counts(codes, groups)
        return self._found[id(limit.codes)][:, limit.prefix - 1] * limit.factor
