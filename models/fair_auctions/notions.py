"""What fairness between users demands: stability functions, and the notions built on them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, NamedTuple, Protocol

import numpy as np
from pydantic import BeforeValidator, Field

from forcopt.arrays import Array
from forcopt.declaration import Declared
from forcopt.errors import DeclarationError
from forcopt.fairness.pairwise import Excess, PairwiseStability, PairwiseTotalVariation
from forcopt.language.atoms import minimum
from forcopt.language.constraint import Constraint
from forcopt.language.expression import Expression
from forcopt.language.joins import concatenate
from forcopt.models.fair_auctions.tolerances import SLACK, TIE


class StabilityFunction(Declared):
    """A nondecreasing function f of the ratio ``lambda >= 1`` of two users' values, with f(1) = 0."""

    @abstractmethod
    def __call__(self, ratios: Any) -> Array:
        """The difference allowed at ratios of values, each from 1 to infinity."""


class PowerStability(StabilityFunction):
    """``f(lambda) = 1 - lambda ** (-2 ell)``, the function that both rules of the paper keep to.

    Attributes
    ----------
    ell : float
        Above 0; the larger it is, the more the allocations of users may differ.

    References
    ----------
    Chawla, Rezvan and Sauerberg (2022), Theorems 9, 11 and 23.

    Examples
    --------
    >>> PowerStability(1.0)([1, 1.5, np.inf]).round(6).tolist()
    [0.0, 0.555556, 1.0]
    """

    ell: float = Field(gt=0, allow_inf_nan=False)

    def __call__(self, ratios: Any) -> Array:
        """See the class."""
        with np.errstate(under="ignore", over="ignore"):
            return np.asarray(-np.expm1(-2.0 * self.ell * np.log(np.asarray(ratios, dtype=float))))


def _read(value: Any) -> Any:
    return PowerStability(ell=value) if isinstance(value, int | float) else value


Function = Annotated[StabilityFunction, BeforeValidator(_read)]
"""A field of a stability function; a number stands for `PowerStability` with this ell."""


def value_ratios(values: Array) -> Array:
    """The largest ratio of two users' values over all ads, for all pairs.

    Parameters
    ----------
    values : Array
        At least 0, shape ``(T, n)``.

    Returns
    -------
    Array
        ``lambda_st = max_i max(v_si / v_ti, v_ti / v_si)``, shape ``(T, T)``; infinite where one of two
        values is 0, and 1 for two zeros. O(T² n).

    Examples
    --------
    >>> value_ratios(np.array([[1.0, 2.0, 0.0], [2.0, 2.0, 0.0], [1.0, 1.0, 1.0]])).tolist()
    [[1.0, 2.0, inf], [2.0, 1.0, inf], [inf, inf, 1.0]]
    """
    out = np.ones((len(values), len(values)))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        for column in values.T:
            quotient = column[:, None] / column[None, :]
            np.fmax(out, quotient, out=out)  # fmax passes over the NaN of 0 / 0
            np.fmax(out, quotient.T, out=out)
    return out


class Place(NamedTuple):
    """Where a notion is nearest to its limit, or breaks it most.

    Attributes
    ----------
    amount : float
        The difference minus the limit.
    users : tuple[int, int]
        The two.
    ad : int or None
        None for a notion on sets of ads.
    slot : int
        Position.
    """

    amount: float
    users: tuple[int, int]
    ad: int | None
    slot: int


@dataclass(frozen=True, eq=False)
class Users:
    """Values and ad factors of all users, and how far each pair is apart.

    Attributes
    ----------
    values, ad_factors : Array
        Shape ``(T, n)``.
    """

    values: Array
    ad_factors: Array

    @cached_property
    def ratios(self) -> Array:
        """The largest ratios of effective values, shape ``(T, T)``."""
        return value_ratios(self.values * self.ad_factors)

    @cached_property
    def bare_ratios(self) -> Array:
        """The largest ratios of values alone, shape ``(T, T)``."""
        return value_ratios(self.values)


class Family(Protocol):
    """Constraints on all pairs: all rows, the rows that a point violates, and the largest excess."""

    def rows(self) -> list[Constraint]:
        """All."""

    def separate(self, value: Callable[[Expression], Array]) -> Iterator[Constraint]:
        """Yield the rows that a point violates most."""

    def worst(self) -> Excess:
        """For numbers: the largest excess."""


class StabilityNotion(Declared):
    """A demand on the allocations of all pairs of users. Notions combine with ``&``."""

    label: ClassVar[str] = ""
    by_ad: ClassVar[bool] = False
    """Whether each column of the family is of an ad and a slot, and not of a slot alone."""

    @property
    def parts(self) -> tuple[StabilityNotion, ...]:
        """The notions that it joins: itself, for a single one."""
        return (self,)

    @abstractmethod
    def family(self, users: Users, cumulative: Any) -> Family:
        """The demand as a family of constraints.

        Parameters
        ----------
        users : Users
            T of them.
        cumulative : Expression or Array
            Cumulative shares, shape ``(T, n, k)``.
        """

    def place(self, excess: Excess, slots: int) -> Place:
        """Where the excess of the family is."""
        ad, slot = divmod(excess.column, slots) if self.by_ad else (None, excess.column)
        return Place(excess.amount, excess.pair, ad, slot)

    def __and__(self, other: StabilityNotion) -> AllNotions:
        if not isinstance(other, StabilityNotion):
            return NotImplemented
        return AllNotions(notions=(*self.parts, *other.parts))


class AllNotions(StabilityNotion):
    """Several notions at once.

    Attributes
    ----------
    notions : tuple[StabilityNotion, ...]
        At least one.
    """

    notions: tuple[StabilityNotion, ...] = Field(min_length=1)

    @property
    def parts(self) -> tuple[StabilityNotion, ...]:
        """The single notions, of joined notions too."""
        return tuple(part for notion in self.notions for part in notion.parts)

    def family(self, users: Users, cumulative: Any) -> Family:
        """Each part has its own."""
        raise DeclarationError("joined notions have no family; take the families of their parts")


def entries(cumulative: Any) -> Any:
    """The allocation M of cumulative shares, for numbers or expressions of shape ``(T, n, k)``."""
    if isinstance(cumulative, Expression):
        if cumulative.shape[2] < 2:
            return cumulative
        return concatenate([cumulative[:, :, :1], cumulative[:, :, 1:] - cumulative[:, :, :-1]], axis=2)
    return np.diff(cumulative, axis=2, prepend=0.0)


def _flat(array: Any) -> Any:
    """One row for each user."""
    return array.reshape((array.shape[0], array.shape[1] * array.shape[2]))


class ValueStability(StabilityNotion):
    """Definition 6: ``|M_ij - M'_ij| <= factor * f(lambda)`` for every ad and slot.

    Attributes
    ----------
    f : StabilityFunction or float
        A number stands for `PowerStability`.
    factor : float, default 2.0
        As in the paper; above 0.

    Examples
    --------
    >>> from forcopt.models import FairAuction
    >>> from forcopt.models.fair_auctions import ValueStability
    >>> p = FairAuction(values=[[4.0, 1.0], [1.0, 4.0]], slots=[1.0], constraint=ValueStability(0.1))
    >>> round(p.solve().objective, 3), p.replace(constraint=None).solve().objective
    (6.453, 8.0)
    """

    label: ClassVar[str] = "value stability"
    by_ad: ClassVar[bool] = True

    f: Function
    factor: float = Field(default=2.0, gt=0, allow_inf_nan=False)

    def family(self, users: Users, cumulative: Any) -> Family:
        """See the base."""
        return PairwiseStability(_flat(entries(cumulative)), self.factor * self.f(users.ratios), 1.0)


class OrderedValueStability(StabilityNotion):
    """Definition 7: ``|A_ij - A'_ij| <= f(lambda)`` for every ad's cumulative share of the first j slots.

    Definition 7 asks for ``|sum_j h_j (M_ij - M'_ij)| <= f(lambda)`` for all h with
    ``1 >= h_1 >= ... >= h_k >= 0``. These are the convex combinations of 0 and the prefixes, so that the
    prefixes suffice.

    Attributes
    ----------
    f : StabilityFunction or float
        A number stands for `PowerStability`.
    """

    label: ClassVar[str] = "ordered value stability"
    by_ad: ClassVar[bool] = True

    f: Function

    def family(self, users: Users, cumulative: Any) -> Family:
        """See the base."""
        return PairwiseStability(_flat(cumulative), self.f(users.ratios), 1.0)


class TotalVariationStability(StabilityNotion):
    """Definition 8: ``|sum over S of (M_ij - M'_ij)| <= f(lambda)`` for every slot and set S of ads.

    Attributes
    ----------
    f : StabilityFunction or float
        A number stands for `PowerStability`.

    Examples
    --------
    >>> from forcopt.models import FairAuction
    >>> from forcopt.models.fair_auctions import TotalVariationStability
    >>> stability = TotalVariationStability(0.25)
    >>> p = FairAuction(values=[[4.0, 1.0], [1.0, 4.0]], slots=[1.0], constraint=stability)
    >>> round(p.solve().objective, 3), p.replace(constraint=None).solve().objective
    (6.5, 8.0)
    """

    label: ClassVar[str] = "total variation stability"

    f: Function

    def family(self, users: Users, cumulative: Any) -> Family:
        """See the base."""
        return PairwiseTotalVariation(entries(cumulative).transpose((0, 2, 1)), self.f(users.ratios), 1.0)


class PreferenceAligned(StabilityNotion):
    """Definitions 15 and 16: ads that click better with a user than with another are shown more to that user.

    For users s and t, ads sorted by ``alpha_s / alpha_t``, falling: the first i ads together have at least
    the cumulative shares with s that they have with t, less ``i * slack(lambda)``, with lambda the ratio of
    bare values. It holds for every order of ads with equal quotients.

    Attributes
    ----------
    slack : StabilityFunction or float, optional
        Of Definition 16; None for Definition 15, which looks only at users with the same values.
    """

    label: ClassVar[str] = "preference alignment"

    slack: Function | None = None

    def family(self, users: Users, cumulative: Any) -> Family:
        """See the base."""
        if self.slack is None:
            distances = np.where(users.bare_ratios == 1.0, 0.0, np.inf)
        else:
            distances = np.asarray(self.slack(users.bare_ratios))
        return _PreferenceFamily(users.ad_factors, cumulative, distances)


class _PreferenceFamily:
    """``sum over r in R of (A_sr - A_tr + D_st) >= 0`` for all sets R of ads that some order begins with.

    With tie blocks, R is all blocks before one, and any part of that block. The worst part holds the negative
    terms.
    """

    def __init__(self, ad_factors: Array, cumulative: Any, distances: Array) -> None:
        self.factors, self.shares, self.distances = ad_factors, cumulative, distances
        T = len(ad_factors)
        self.first, self.second = np.nonzero((distances < 1.0) & ~np.eye(T, dtype=bool))
        quotient = ad_factors[self.first] / ad_factors[self.second]
        self.order = np.argsort(-quotient, axis=1, kind="stable")
        ranked = np.take_along_axis(quotient, self.order, axis=1)
        n = ranked.shape[1]
        # Equal quotients of floats may differ by rounding.
        ties = np.isclose(ranked[:, 1:], ranked[:, :-1], rtol=TIE, atol=0.0)
        starts = np.concatenate([np.ones((len(ranked), 1), dtype=bool), ~ties], axis=1)
        self.begin = np.maximum.accumulate(np.where(starts, np.arange(n), 0), axis=1)
        self.ends = np.concatenate([~ties, np.ones((len(ranked), 1), dtype=bool)], axis=1)

    def _gaps(self, shares: Array) -> Array:
        """The terms of each pair, in its order of ads; shape ``(pairs, n, k)``."""
        gap = shares[self.first] - shares[self.second] + self.distances[self.first, self.second, None, None]
        return np.take_along_axis(gap, self.order[:, :, None], axis=1)

    def _sums(self, gaps: Array) -> Array:
        """For each pair, rank and slot: all terms before its tie block, and the negative ones in it."""
        total = np.concatenate([np.zeros_like(gaps[:, :1]), np.cumsum(gaps, axis=1)], axis=1)
        low = np.minimum(gaps, 0.0)
        fallen = np.concatenate([np.zeros_like(low[:, :1]), np.cumsum(low, axis=1)], axis=1)
        begin = self.begin[:, :, None]
        before = np.take_along_axis(total, begin, axis=1) - np.take_along_axis(fallen, begin, axis=1)
        return np.asarray(before + fallen[:, 1:])

    def rows(self) -> list[Constraint]:
        """All, with the negative part as an auxiliary variable where quotients tie."""
        k = self.shares.shape[2]
        if not len(self.first) or not k:
            return []
        out = []
        n = self.order.shape[1]
        limit = self.distances[self.first, self.second]
        for i in range(n):
            # Pairs whose block of rank i ends there.
            for size in np.unique(i - self.begin[self.ends[:, i], i]).tolist():
                chosen = np.flatnonzero(self.ends[:, i] & (self.begin[:, i] == i - size))
                s, t, d = self.first[chosen, None], self.second[chosen, None], limit[chosen, None, None]
                before, block = self.order[chosen, : i - size], self.order[chosen, i - size : i + 1]
                gap = self.shares[s, block] - self.shares[t, block] + d
                total = (minimum(gap, 0.0) if size else gap).sum(axis=1)
                if i > size:
                    total = total + (self.shares[s, before] - self.shares[t, before] + d).sum(axis=1)
                out.append(total >= 0)
        return out

    def separate(self, value: Callable[[Expression], Array]) -> Iterator[Constraint]:
        """For each user and slot, the worst set of ads against the worst other user."""
        if not len(self.first) or not self.shares.shape[2]:
            return
        gaps = self._gaps(value(self.shares))
        sums = self._sums(gaps)
        rank = sums.argmin(axis=1)
        worst = sums.min(axis=1)
        for j in range(worst.shape[1]):
            chosen = np.flatnonzero(worst[:, j] < -SLACK)
            # The worst pair of each first user.
            chosen = chosen[np.lexsort((worst[chosen, j], self.first[chosen]))]
            chosen = chosen[np.unique(self.first[chosen], return_index=True)[1]]
            if not len(chosen):
                continue
            at = rank[chosen, j]
            ranks = np.arange(self.order.shape[1])
            begin = self.begin[chosen, at]
            inside = ranks < begin[:, None]
            inside |= (ranks >= begin[:, None]) & (ranks <= at[:, None]) & (gaps[chosen, :, j] < 0)
            members = np.zeros(inside.shape)
            np.put_along_axis(members, self.order[chosen], inside.astype(float), axis=1)
            s, t = self.first[chosen], self.second[chosen]
            gap = (self.shares[s, :, j] - self.shares[t, :, j]) * members
            yield gap.sum(axis=1) >= -self.distances[s, t] * members.sum(axis=1)

    def worst(self) -> Excess:
        """The largest excess, for numbers; the column is the slot."""
        if not len(self.first) or not self.shares.shape[2]:
            return Excess(-np.inf, (0, 0), 0)
        sums = self._sums(self._gaps(self.shares))
        pair, _, slot = (int(a) for a in np.unravel_index(int(sums.argmin()), sums.shape))
        return Excess(-float(sums.min()), (int(self.first[pair]), int(self.second[pair])), slot)
