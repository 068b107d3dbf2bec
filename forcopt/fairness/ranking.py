"""Candidates, and demands of fairness on rankings and on lotteries over rankings, joined by ``&``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from pydantic import Field, field_validator

from forcopt.arrays import Array
from forcopt.declaration import Declared, Numbers
from forcopt.errors import DeclarationError, require, require_shape
from forcopt.fairness.notions import labelled, largest
from forcopt.fairness.tolerances import SAME_SCORE, WHOLE
from forcopt.language.constraint import Constraint
from forcopt.language.variable import Variable


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
            entries = limit.factor[codes], (codes, np.arange(len(codes)))
            return sp.csr_array(entries, shape=(groups, len(codes))) @ self.exposures
        if id(limit.codes) not in self._found:
            self._found[id(limit.codes)] = self.counts(codes, groups)
        return self._found[id(limit.codes)][:, limit.prefix - 1] * limit.factor


class RankingNotion(Declared):
    """A demand on rankings. Notions combine with ``&``.

    Attributes
    ----------
    groupwise : bool
        Whether the demand treats the members of a group alike, and is given by `limits`.
    """

    groupwise: ClassVar[bool] = True

    def limits(self, candidates: Candidates) -> list[GroupLimit]:
        """The demand as bounds on sums over groups; none for a demand on single candidates."""
        return []

    def attributes(self, candidates: Candidates) -> tuple[str, ...]:
        """The attributes that it looks at."""
        by = getattr(self, "by", ())
        return tuple(candidates.groups) if by is None else by

    def rows(self, ranked: Ranked) -> list[Constraint]:
        """The demand as constraints of a model."""
        found = []
        for limit in self.limits(ranked.candidates):
            own, kept = limit.written, limit.needed
            if not len(kept):
                continue
            row = ranked.sums(own)[kept].between(own.low[kept], own.high[kept])
            name = row.expression.model.unused_name(limit.name.replace(" ", "_"))
            of = "" if limit.prefix is None else f", first {limit.prefix}"
            found.append(labelled(row, name, [limit.labels[group] + of for group in kept]))
        return found

    def violation(self, ranked: Ranked) -> dict[str, float]:
        """For each demand by its name: by how much it is broken; for numbers."""
        sums = [(limit, ranked.sums(limit)) for limit in self.limits(ranked.candidates)]
        return largest(
            [(limit.name, float(np.maximum(limit.low - value, value - limit.high).max(initial=0.0)))]
            for limit, value in sums
        )

    def check(self, candidates: Candidates) -> None:
        """Refuse candidates whom the demand does not fit."""
        self.limits(candidates)

    def __and__(self, other: RankingNotion) -> AllRankingNotions:
        if not isinstance(other, RankingNotion):
            return NotImplemented
        return AllRankingNotions(notions=(self, other))


By = tuple[str, ...] | None


class _OfGroups(RankingNotion):
    """A notion on the groups that attributes make."""

    @field_validator("by", mode="before", check_fields=False)
    @classmethod
    def _several(cls, by: Any) -> Any:
        return (by,) if isinstance(by, str) else by


class ExposureParity(_OfGroups):
    """The mean exposure of each group equals the mean over all candidates, up to a relative tolerance.

    Attributes
    ----------
    tolerance : float, default 0.0
        Of the quotient of the two means from 1.
    by : tuple[str, ...], optional
        The attributes whose levels, intersected, make the groups; all by default.

    References
    ----------
    Singh, Joachims (KDD 2018), section 4.1 (demographic parity).

    Examples
    --------
    >>> ExposureParity(0.1) & PrefixQuotas(by="sex")
    AllRankingNotions(notions=(ExposureParity(tolerance=0.1, by=None),
        PrefixQuotas(least=None, most=None, by=('sex',))))
    """

    tolerance: float = Field(default=0.0, ge=0.0, allow_inf_nan=False)
    by: By = None

    def limits(self, candidates: Candidates) -> list[GroupLimit]:
        """One bound for each group."""
        names, codes, sizes = candidates.cells(self.by)
        aim = self._aim(candidates, codes, sizes)
        factor = 1.0 / (sizes * candidates.mean_exposure)
        name = f"{self._name} ({', '.join(self.attributes(candidates))})"
        return [GroupLimit(codes, factor, aim - self.tolerance, aim + self.tolerance, None, name, names)]

    _name: ClassVar[str] = "exposure parity"

    def _aim(self, candidates: Candidates, codes: Array, sizes: Array) -> Array:
        return np.ones(len(sizes))


class ProportionalExposure(ExposureParity):
    """The mean exposure of each group is proportional to its mean score, up to a tolerance.

    Attributes
    ----------
    tolerance : float, default 0.0
        In units of the mean exposure of all.
    by : tuple[str, ...], optional
        The attributes whose levels, intersected, make the groups; all by default.

    References
    ----------
    Singh, Joachims (KDD 2018), section 4.2 (disparate treatment).

    Examples
    --------
    >>> ProportionalExposure(0.1)
    ProportionalExposure(tolerance=0.1, by=None)
    """

    _name: ClassVar[str] = "proportional exposure"

    def _aim(self, candidates: Candidates, codes: Array, sizes: Array) -> Array:
        if candidates.scores is None:
            raise DeclarationError("constraint: proportional exposure needs scores, no utilities by position")
        means = np.bincount(codes, candidates.scores, minlength=len(sizes)) / sizes
        if (means < 0).any() or candidates.scores.mean() <= 0:
            raise DeclarationError(
                f"constraint: a group has the mean score {means.min():g}; exposure proportional to it would "
                "be negative (shift the scores)"
            )
        return np.asarray(means / candidates.scores.mean())


class SelectionParity(_OfGroups):
    """Each group's share of the first `at` positions is its share of the candidates, up to a tolerance.

    Attributes
    ----------
    tolerance : float, default 0.0
        Of the selection rate (the quotient of the two shares) from 1.
    at : int, optional
        How many positions; all by default.
    by : tuple[str, ...], optional
        The attributes whose levels, intersected, make the groups; all by default.

    References
    ----------
    Yang, Loftus, Stoyanovich (FORC 2021), section 3.

    Examples
    --------
    >>> SelectionParity(0.1, at=10)
    SelectionParity(tolerance=0.1, at=10, by=None)
    """

    tolerance: float = Field(default=0.0, ge=0.0, allow_inf_nan=False)
    at: int | None = Field(default=None, ge=1)
    by: By = None

    def limits(self, candidates: Candidates) -> list[GroupLimit]:
        """One bound for each group."""
        names, codes, sizes = candidates.cells(self.by)
        k = len(candidates.weights)
        at = self.at or k
        require(at <= k, "constraint.at", at, f"be at most the number of positions, {k}")
        one, factor = np.ones(len(sizes)), candidates.count / (at * sizes)
        name = f"selection parity ({', '.join(self.attributes(candidates))})"
        return [GroupLimit(codes, factor, one - self.tolerance, one + self.tolerance, at, name, names)]


class PrefixQuotas(_OfGroups):
    """The members of each group among the first j are in proportion, rounded down and up, for all j.

    Attributes
    ----------
    least, most : Mapping[str, float], optional
        The least and the greatest share by group; the shares of the candidates by default. Groups of several
        attributes are named with a comma, ``"Black, Female"``. A mapping bounds the groups that it names.
    by : tuple[str, ...], optional
        The attributes whose levels, intersected, make the groups; all by default.

    References
    ----------
    Celis, Straszak, Vishnoi (ICALP 2018). The default bounds are from Geyik, Ambler, Kenthapadi (KDD
    2019).

    Examples
    --------
    >>> PrefixQuotas(least={"f": 0.4})
    PrefixQuotas(least={'f': 0.4}, most=None, by=None)
    """

    least: Mapping[str, float] | None = None
    most: Mapping[str, float] | None = None
    by: By = None

    @field_validator("least", "most")
    @classmethod
    def _are_shares(cls, shares: Mapping[str, float] | None) -> Mapping[str, float] | None:
        for group, share in (shares or {}).items():
            require(0 <= share <= 1, f"the share of {group}", share, "be from 0 to 1")
        return shares

    def limits(self, candidates: Candidates) -> list[GroupLimit]:
        """One bound for each group and each prefix."""
        names, codes, sizes = candidates.cells(self.by)
        low, high = (
            self._shares(given, names, sizes / candidates.count, rest)
            for given, rest in ((self.least, 0.0), (self.most, 1.0))
        )
        name = f"prefix quotas ({', '.join(self.attributes(candidates))})"
        found = []
        for j in range(1, len(candidates.weights) + 1):
            floor, ceiling = np.floor(low * j + WHOLE), np.ceil(high * j - WHOLE)
            least, most = np.minimum(floor, sizes), np.minimum(ceiling, sizes)
            for group in np.flatnonzero(floor > np.minimum(sizes, ceiling)):
                raise DeclarationError(
                    f"constraint: the first {j} need {floor[group]:g} of {names[group]}, but at most "
                    f"{most[group]:g} are possible"
                )
            if least.sum() > j or most.sum() < j:
                ends = f"{least.sum():g} at least" if least.sum() > j else f"{most.sum():g} at most"
                whose = ", ".join(self.attributes(candidates)) or "all"
                raise DeclarationError(
                    f"constraint: the quotas of {whose} cannot hold together in the first {j}: they "
                    f"sum to {ends}"
                )
            found.append(GroupLimit(codes, np.ones(len(sizes)), least, most, j, name, names))
        return found

    def _shares(self, given: Mapping[str, float] | None, names: list[str], own: Array, rest: float) -> Array:
        if given is None:
            return own
        for group in given:
            if group not in names:
                raise DeclarationError(f"constraint: no group {group!r}; there are {'; '.join(names)}")
        return np.array([given.get(name, rest) for name in names])


def _behind(values: Any, held: Array, ahead: Array, floor: Variable, name: str) -> list[Constraint]:
    """No held value exceeds the least of those ahead of it, which `floor` falls along."""
    last = floor.size
    rows = [floor <= values[:last], values[held] <= floor[ahead[held] - 1]]
    if last > 1:
        rows.append(floor[1:] <= floor[:-1])
    for number, row in enumerate(rows):
        row.name = floor.model.unused_name(f"{name}_{number}")
    return rows


class InGroupFairness(_OfGroups):
    """Of each group, the worst who is ranked has at least `ratio` times the score of the best who is not.

    Only for one ranking (``integer=True``), and for scores that are not negative.

    Attributes
    ----------
    ratio : float, default 1.0
        From 0 to 1; with 1 each group's best are ranked.
    by : tuple[str, ...], optional
        The attributes whose levels, intersected, make the groups; all by default.

    References
    ----------
    Yang, Gkatzelis, Stoyanovich (IJCAI 2019), the measure IGF-Ratio.

    Examples
    --------
    >>> InGroupFairness(0.9, by=("sex",))
    InGroupFairness(ratio=0.9, by=('sex',))
    """

    groupwise: ClassVar[bool] = False

    ratio: float = Field(default=1.0, ge=0.0, le=1.0, allow_inf_nan=False)
    by: By = None

    def check(self, candidates: Candidates) -> None:
        """Refuse negative scores, and utilities by position."""
        candidates.cells(self.by)
        if candidates.scores is None or candidates.scores.min() < 0:
            raise DeclarationError("constraint: the in-group ratio needs scores that are not negative")

    def rows(self, ranked: Ranked) -> list[Constraint]:
        """O(n) rows: a candidate is ranked at most if all are who are better by more than the ratio."""
        scores, chosen = ranked.candidates.scores, ranked.chosen
        assert scores is not None
        names, codes, _ = ranked.candidates.cells(self.by)
        model, found = chosen.model, []
        for group, name in enumerate(names):
            own = np.flatnonzero(codes[ranked.kept] == group)
            own = own[np.argsort(-scores[ranked.kept[own]], kind="stable")]
            values = scores[ranked.kept[own]]
            better = np.searchsorted(-values * self.ratio, -values * (1 + SAME_SCORE), side="left")
            held = np.flatnonzero(better > 0)
            if not len(held):
                continue
            floor = model.variable(model.unused_name("all_better"), len(own), lower=0.0, upper=1.0)
            found += _behind(chosen[own], held, better, floor, f"in_group_{name}".replace(" ", "_"))
        return found

    def violation(self, ranked: Ranked) -> dict[str, float]:
        """By how much the least ratio of a group falls short; over all rankings of a lottery."""
        worst = 1.0
        for ratio in self.ratios(ranked.candidates, ranked.chosen).values():
            worst = min(worst, ratio) if ratio == ratio else worst
        return {"in-group fairness": max(self.ratio - worst, 0.0)}

    def ratios(self, candidates: Candidates, chosen: Array) -> dict[str, float]:
        """The in-group ratio by group; NaN if nobody of it is ranked.

        Parameters
        ----------
        candidates : Candidates
            All.
        chosen : Array
            Whether each is ranked, shape ``(n,)`` or ``(rankings, n)``; the least over rankings.
        """
        names, codes, _ = candidates.cells(self.by)
        scores = candidates.scores
        assert scores is not None
        found = {}
        for group, name in enumerate(names):
            own, ratio = codes == group, np.nan
            for row in np.atleast_2d(np.asarray(chosen) > 0.5):
                if (row & own).any():
                    best = scores[own & ~row].max(initial=-np.inf)
                    value = 1.0 if best <= 0 else min(1.0, float(scores[own & row].min() / best))
                    ratio = value if ratio != ratio else min(ratio, value)
            found[name] = ratio
        return found


class CounterfactualOrder(RankingNotion):
    """Who is ahead by more than the slack in counterfactual score expects no less exposure.

    Attributes
    ----------
    scores : Numbers
        The counterfactual scores, shape ``(n,)``.
    slack : float, default 0.0
        In units of the scores, at least 0.
    """

    groupwise: ClassVar[bool] = False

    scores: Numbers
    slack: float = Field(default=0.0, ge=0.0, allow_inf_nan=False)

    def check(self, candidates: Candidates) -> None:
        """Refuse scores of another length."""
        n = candidates.count
        require_shape(self.scores.shape == (n,), "constraint.scores has", self.scores, f"be ({n},)")

    def _ahead(self, kept: Array) -> tuple[Array, Array]:
        """The candidates by falling score, and for each the number of candidates ahead of it by the slack."""
        order = np.argsort(-self.scores[kept], kind="stable")
        values = self.scores[kept][order]
        return order, np.searchsorted(-values, -(values + self.slack), side="left")

    def rows(self, ranked: Ranked) -> list[Constraint]:
        """O(n) rows: the exposure is at most the least among all who are ahead by more than the slack."""
        order, ahead = self._ahead(ranked.kept)
        held = np.flatnonzero(ahead > 0)
        if not len(held):
            return []
        e = ranked.exposures[order]
        floor = e.model.variable(e.model.unused_name("least_ahead"), int(ahead.max()), lower=0.0)
        return _behind(e, held, ahead, floor, "counterfactual_order")

    def violation(self, ranked: Ranked) -> dict[str, float]:
        """By how much somebody ahead has less exposure, in units of the first position's weight."""
        order, ahead = self._ahead(ranked.kept)
        e = np.asarray(ranked.exposures)[order]
        least = np.minimum.accumulate(e)
        held = ahead > 0
        over = float((e[held] - least[ahead[held] - 1]).max(initial=0.0))
        return {"counterfactual order": over / float(ranked.candidates.weights[0])}


class AllRankingNotions(RankingNotion):
    """Several notions at once; made by ``&``.

    Parameters
    ----------
    notions : tuple[RankingNotion, ...]
        At least one; nested ones are flattened.
    """

    notions: tuple[RankingNotion, ...] = Field(min_length=1)

    @field_validator("notions")
    @classmethod
    def _flat(cls, notions: tuple[RankingNotion, ...]) -> tuple[RankingNotion, ...]:
        return tuple(
            n
            for notion in notions
            for n in (notion.notions if isinstance(notion, AllRankingNotions) else (notion,))
        )

    def limits(self, candidates: Candidates) -> list[GroupLimit]:
        """The bounds of all of them."""
        return [limit for notion in self.notions for limit in notion.limits(candidates)]

    def attributes(self, candidates: Candidates) -> tuple[str, ...]:
        """The attributes of all of them."""
        return tuple(dict.fromkeys(a for notion in self.notions for a in notion.attributes(candidates)))

    def rows(self, ranked: Ranked) -> list[Constraint]:
        """The rows of all of them."""
        return [row for notion in self.notions for row in notion.rows(ranked)]

    def violation(self, ranked: Ranked) -> dict[str, float]:
        """The violations of all of them; the largest where two have one name."""
        return largest(notion.violation(ranked).items() for notion in self.notions)

    def check(self, candidates: Candidates) -> None:
        """Refuse candidates whom one of the demands does not fit."""
        for notion in self.notions:
            notion.check(candidates)
