"""The declaration: candidates, their worth to each group, the size of the cohort, and the objective."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from pydantic import Field, field_validator, model_validator

from forcopt.arrays import Array, as_numbers, check_entries
from forcopt.declaration import Integers, Name, Numbers
from forcopt.errors import DeclarationError, require, require_shape
from forcopt.models.leximax_cohort.decision import CohortLottery
from forcopt.models.leximax_cohort.objectives import LINEAR, MINIMIZED, POSITIVE, Objective, welfare
from forcopt.models.leximax_cohort.panel import least_relaxation, reason, replacement_fields
from forcopt.models.leximax_cohort.panel_check import panel_intake
from forcopt.problem import FEASIBILITY_TOLERANCE, Evaluation, Problem

if TYPE_CHECKING:
    from pandas import DataFrame

    from forcopt.data.intake import Fixes

_SHOWN = 10
"""How many levels are listed as metrics."""


class Quotas(NamedTuple):
    """The limits on the members of each class of candidates.

    Attributes
    ----------
    members : Array
        1 where a candidate is in a class, shape ``(classes, n)``.
    least, most : Array
        Of each class.
    names : tuple[str, ...]
        Of the classes, such as ``"sex = female"``.
    """

    members: Array
    least: Array
    most: Array
    names: tuple[str, ...]


class LeximaxCohort(Problem):
    """Choose a cohort of candidates for the leximax vector of group utilities, or for another objective.

    The utility of a group is the sum of the chosen candidates' values for it. By default the smallest utility
    is maximised, then the second smallest, and so on. A candidate may be chosen by lot:
    then utilities are expectations, and the decision is the probabilities (marginals). With a whole
    size, and quotas on two features at most, every such point is the mean of a lottery over cohorts of just
    that size that all meet the quotas (the rows are totally unimodular).

    Attributes
    ----------
    utilities : Numbers
        The worth of each candidate to each group, shape ``(n, m)``; not negative, unless `signed`.
    objective : str, default "leximin"
        ``"leximin"``, ``"maximin"``, ``"nash"``, ``"goldilocks"``, ``"minimax"``, ``"linear"``,
        ``"variance"`` or ``"entropy"``, see `objectives.welfare`; or ``"uniform"``: every cohort that meets
        the demands is equally likely, which is the lottery of the greatest entropy. Groups for whom only
        forbidden candidates are of worth do not count, but for ``"leximin"``.
    weight : float, default 1.0
        Of the smallest utility in ``"goldilocks"`` and ``"linear"``.
    size : float
        Of the cohort, above 0 and at most n. A fraction is a mean size: for marginals only.
    integer : bool, default False
        Choose one cohort instead of a lottery.
    features : Mapping[str, tuple[Name, ...]], optional
        Levels of features of the candidates, such as ``{"sex": ["f", "m", "f"]}``.
    quotas : Mapping[str, Mapping[Name, tuple[float, float]]], optional
        The least and the greatest number of members with a level of a feature, such as
        ``{"sex": {"f": [1, 2]}}``. A level that no candidate has may have a least number of 0 only.
    flexible : Mapping[str, Mapping[Name, tuple[float, float]]], optional
        The ends to which quotas may be relaxed if they contradict each other (`relaxed`); without, to any.
    forced, forbidden : Integers, optional
        Positions of candidates who must, or must not, be chosen.
    slack : Numbers, default 0.0
        The allowed shortfall of each level from its optimum, a number for all levels, or for each;
        only the methods ``cumulative`` and ``recursive`` make use of it.
    households : tuple[Name, ...], optional
        The household (address) of each candidate; a cohort has at most one member of each. Empty for none; a
        candidate with the name ``""`` has a household of its own.
    groups : tuple[Name, ...], optional
        Their names; ``"0"``, ``"1"``, ... by default.
    signed : bool, default False
        Allow negative utilities.

    Raises
    ------
    DeclarationError
        Naming the field, the value and the rule.

    References
    ----------
    Henzinger, Peale, Reingold and Shen (2022), sections 2 and 3. Flanigan, Gölz, Gupta, Hennig and Procaccia,
    "Fair algorithms for selecting citizens' assemblies", Nature 596 (2021), for leximin, maximin and Nash
    welfare of panels. Baharav and Flanigan, "Fair, manipulation-robust, and transparent sortition", EC 2024,
    for minimax, Goldilocks and linear objectives.

    Examples
    --------
    >>> from forcopt.models import LeximaxCohort
    >>> p = LeximaxCohort(utilities=[[0.3, 1, 0], [0.3, 0, 1], [0, 0.5, 0.5]], size=1)
    >>> s = p.solve()
    >>> s.decision.marginals.round(6).tolist(), s.decision.utilities.round(6).tolist()
    ([0.5, 0.5, 0.0], [0.3, 0.5, 0.5])
    >>> q = LeximaxCohort(
    ...     utilities=np.eye(3), size=1, features={"sex": ["f", "m", "m"]}, quotas={"sex": {"m": [0, 1]}},
    ...     objective="minimax",
    ... )
    >>> round(q.solve().objective, 6)
    0.333333
    """

    family: ClassVar[str] = "cohort"
    default_method: ClassVar[str] = "saturation"

    utilities: Numbers
    size: float = Field(gt=0, allow_inf_nan=False)
    objective: Objective = "leximin"
    weight: float = Field(default=1.0, ge=0, allow_inf_nan=False)
    integer: bool = False
    features: Mapping[str, tuple[Name, ...]] = Field(default_factory=dict)
    quotas: Mapping[str, Mapping[Name, tuple[float, float]]] = Field(default_factory=dict)
    flexible: Mapping[str, Mapping[Name, tuple[float, float]]] = Field(default_factory=dict)
    forced: Integers = Field(default=(), validate_default=True)
    forbidden: Integers = Field(default=(), validate_default=True)
    slack: Numbers = Field(default=0.0, validate_default=True)
    households: tuple[Name, ...] = ()
    groups: tuple[Name, ...] = ()
    signed: bool = False

    @field_validator("utilities")
    @classmethod
    def _is_table(cls, utilities: Array) -> Array:
        fits = utilities.ndim == 2 and 0 not in utilities.shape
        require(fits, "the shape", utilities.shape, "be (candidates, groups), at least one of each")
        return utilities

    @model_validator(mode="after")
    def _fits(self) -> Self:
        n, m = self.utilities.shape
        if not self.signed:
            rule = "it must not be negative (see signed)"
            check_entries(self.utilities, self.utilities < 0, "utilities", rule)
        if self.size > n:
            raise DeclarationError(f"size is {self.size:g}; it must be at most the number of candidates, {n}")
        require(self.is_whole or not self.integer, "size", self.size, "be a whole number with integer=True")
        if self.groups and len(self.groups) != m:
            raise DeclarationError(f"groups: {len(self.groups)} names are given for {m} groups")
        fits = self.slack.shape in ((), (m,))
        require_shape(fits, "slack has", self.slack, f"be one number or {m}, one for each level")
        check_entries(self.slack, self.slack < 0, "slack", "it must not be negative")
        if self.households and len(self.households) != n:
            raise DeclarationError(f"households: {len(self.households)} are given for {n} candidates")
        if self.objective in POSITIVE and (self.utilities < 0).any():
            raise DeclarationError(f"objective {self.objective!r} is for utilities of at least 0")
        if self.objective == "uniform" and (self.integer or not self.is_whole):
            raise DeclarationError("objective 'uniform' is for lotteries: a whole size, and integer=False")
        self._check_positions()
        self._check_quotas()
        return self

    def _check_positions(self) -> None:
        n = len(self.utilities)
        for field in ("forced", "forbidden"):
            positions = getattr(self, field)
            require_shape(positions.ndim == 1, f"{field} has", positions, "be a list of positions")
            wrong = positions[(positions < 0) | (positions >= n)]
            if wrong.size:
                raise DeclarationError(f"{field}: {wrong[0]} is no candidate; they are 0 to {n - 1}")
        both = np.intersect1d(self.forced, self.forbidden)
        if both.size:
            raise DeclarationError(f"candidate {self.names[both[0]]} is both forced and forbidden")

    def _check_quotas(self) -> None:
        n = len(self.utilities)
        for feature, levels in self.features.items():
            if len(levels) != n:
                raise DeclarationError(f"features.{feature} has {len(levels)} entries for {n} candidates")
        for feature, bounds in self.quotas.items():
            if feature not in self.features:
                raise DeclarationError(f"quotas.{feature}: there is no such feature")
            for level, (least, most) in bounds.items():
                quota = f"quotas.{feature}.{level}"
                if least > 0 and level not in self.features[feature]:
                    raise DeclarationError(f"{quota}: no candidate has this level")
                if not 0 <= least <= most:
                    raise DeclarationError(f"{quota} is [{least:g}, {most:g}]; it must be 0 <= least <= most")
        for feature, bounds in self.flexible.items():
            for level, (low, high) in bounds.items():
                least, most = self.quotas.get(feature, {}).get(level, (np.nan, np.nan))
                if not 0 <= low <= least <= most <= high:
                    rule = f"it must hold the quota, [{least:g}, {most:g}]"
                    raise DeclarationError(f"flexible.{feature}.{level} is [{low:g}, {high:g}]; {rule}")

    # -- panels ----------------------------------------------------------------------------------------------

    @classmethod
    def from_candidates(
        cls,
        candidates: DataFrame | str | Path,
        quotas: DataFrame | str | Path | Mapping[str, Mapping[str, tuple[float, float]]],
        size: int,
        *,
        identifier: str | None = None,
        household: str | Sequence[str] | None = None,
        include: Iterable[Any] = (),
        exclude: Iterable[Any] = (),
        fixes: Fixes | None = None,
        **fields: Any,
    ) -> Self:
        """Declare a panel: every candidate is a group, and the smallest probability is maximised.

        Parameters
        ----------
        candidates : DataFrame, str or Path
            One row for each candidate, or a CSV file of it.
        quotas : DataFrame, str, Path or Mapping
            One row for each value of a feature, with the columns ``feature`` (or ``category``), ``value`` (or
            ``name``), ``min`` and ``max``, perhaps ``min_flex`` and ``max_flex``; a CSV file of it; or a
            mapping as in `quotas`. Panelot's columns ``category, feature, min, max`` are read, too.
        size : int
            Of the panel.
        identifier : str, optional
            The column that names the candidates; the index by default: the numbers of the rows, from 0.
        household : str or sequence of str, optional
            The column with the household, or those of the address: at most one member of each is chosen.
            Upper case makes no difference; whoever lacks one of the columns has a household of their own.
        include, exclude : iterable, optional
            Names of candidates who must, or must not, be chosen.
        fixes : mapping, optional
            Stated changes of the candidates, see `forcopt.data.check_table`.
        fields : Any
            Other fields of the problem.

        Returns
        -------
        LeximaxCohort
            With the candidates' names as `groups`.

        Raises
        ------
        DeclarationError
            For a size that is no whole number, a missing column, a doubled or missing identifier, a candidate
            without a value of a feature with quotas, a quota that is no number or is given twice, a level of
            a candidate without a quota, or a quota that demands members of a level that no candidate has. The
            error names the rows and the nearest level.

        Warns
        -----
        UserWarning
            For a quota of a level that no candidate has if its least is 0: it has no effect. Pools often lack
            a level that the quotas list, and the lists stay comparable. A misspelt level of a candidate is an
            error in any case.

        Examples
        --------
        >>> import pandas as pd
        >>> from forcopt.models import LeximaxCohort
        >>> pool = pd.DataFrame({"name": list("ABCDE"), "sex": list("ffmmm"), "home": [1, 2, 2, 3, 4]})
        >>> quotas = pd.DataFrame({"feature": "sex", "value": ["f", "m"], "min": [1, 1], "max": [1, 1]})
        >>> p = LeximaxCohort.from_candidates(pool, quotas, 2, identifier="name", household="home")
        >>> s = p.solve()
        >>> s.decision.table().probability.round(3).to_dict()
        {'A': 0.5, 'B': 0.5, 'C': 0.333, 'D': 0.333, 'E': 0.333}
        """
        read, found = panel_intake(
            candidates, quotas, identifier=identifier, household=household, fixes=fixes
        )
        found.refuse()
        for note in found.notes:
            if not note.row:
                warnings.warn(f"{note}; its quota has no effect", UserWarning, stacklevel=2)
        made = cls(size=size, **{**read, **fields})
        if not made.is_whole:
            raise DeclarationError(f"size is {size!r}; a panel has a whole number of members")
        return made.after_dropouts(include, exclude)

    def after_dropouts(self, kept: Iterable[Any], dropped: Iterable[Any]) -> Self:
        """Declare the same panel with the staying members, and without the dropouts.

        Parameters
        ----------
        kept, dropped : iterable
            Names of candidates (positions, if the problem has no names).

        Returns
        -------
        LeximaxCohort
            With more candidates forced and forbidden. Its solution fills the free places by a fair lottery.

        Raises
        ------
        DeclarationError
            For a candidate that does not exist, or is both kept and dropped.
        """
        own = {name: getattr(self, name) for name in type(self).model_fields}
        return type(self)(**{**own, **replacement_fields(self, kept, dropped)})

    def relaxed(self, *, time_limit: float | None = None) -> Self:
        """Declare the same panel with the least relaxation of its quotas, the one that the reason proposes.

        Parameters
        ----------
        time_limit : float, optional
            Seconds.

        Raises
        ------
        DeclarationError
            If no relaxation is enough, or none is found in time.

        Examples
        --------
        >>> from forcopt.models import LeximaxCohort
        >>> fields = {"features": {"sex": list("ffmm")}, "quotas": {"sex": {"f": [3, 3]}}}
        >>> LeximaxCohort(utilities=np.eye(4), size=3, **fields).relaxed().quotas
        {'sex': {'f': (2.0, 3.0)}}
        """
        found = least_relaxation(self, time_limit=time_limit)
        if found is None:
            raise DeclarationError(self.infeasibility_reason(time_limit))
        quotas = {feature: dict(levels) for feature, levels in self.quotas.items()}
        for change in found:
            quotas[change.feature][change.level] = change.needed
        return self.replace(quotas=quotas)

    # -- derived from the fields -----------------------------------------------------------------------------

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The candidates' names: the groups', if each candidate is one; else their positions."""
        n = len(self.utilities)
        return self.groups if len(self.groups) == n else tuple(map(str, range(n)))

    @property
    def sense(self) -> Literal["min", "max"]:  # type: ignore[override]
        """Whether the objective is minimised or maximised."""
        return "min" if self.objective in MINIMIZED else "max"

    @cached_property
    def counted(self) -> Array:
        """The positions of the groups that count in the objective."""
        _, upper = self.bounds
        lost = (self.utilities != 0).any(axis=0) & ~(self.utilities[upper > 0] != 0).any(axis=0)
        return np.flatnonzero(~lost | (self.objective == "leximin") | lost.all())

    @property
    def even(self) -> float:
        """The probability of an equal chance: the size by the number of candidates who are not forbidden."""
        return self.size / max(float((self.bounds[1] > 0).sum()), 1.0)

    @property
    def is_whole(self) -> bool:
        """Whether the size is an integer."""
        return float(self.size).is_integer()

    @property
    def slacks(self) -> Array:
        """The slack of each level, shape ``(m,)``."""
        return np.broadcast_to(self.slack, self.utilities.shape[1:])

    @cached_property
    def unit(self) -> float:
        """The unit in which methods count utilities: 1, or a power of two near the largest, if that is tiny
        or huge, since tolerances of solvers are absolute."""
        top = float(np.abs(self.utilities).max())
        if self.objective not in LINEAR or top == 0.0 or 1e-2 <= top <= 1e4:
            return 1.0
        return float(2.0 ** np.round(np.log2(top)))

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        """The least and the greatest probability of each candidate, each of shape ``(n,)``."""
        lower, upper = np.zeros(len(self.utilities)), np.ones(len(self.utilities))
        lower[self.forced] = 1.0
        upper[self.forbidden] = 0.0
        return lower, upper

    @cached_property
    def classes(self) -> Quotas:
        """The quotas as rows."""
        listed = [(f, level, *ends) for f, bounds in self.quotas.items() for level, ends in bounds.items()]
        members = [np.array(self.features[f]) == level for f, level, _, _ in listed]
        return Quotas(
            np.array(members, dtype=float).reshape(len(listed), len(self.utilities)),
            np.array([least for _, _, least, _ in listed]),
            np.array([most for _, _, _, most in listed]),
            tuple(f"{f} = {level}" for f, level, _, _ in listed),
        )

    @cached_property
    def household_rows(self) -> sp.csr_array:
        """1 where a candidate is in a household with several candidates, shape ``(households, n)``."""
        names, place, sizes = np.unique(self.households, return_inverse=True, return_counts=True)
        shared = np.flatnonzero((sizes > 1) & (names != ""))
        n = len(self.utilities)
        if not len(shared):
            return sp.csr_array((0, n))
        member = np.isin(place, shared)
        rows = np.searchsorted(shared, place[member])
        return sp.csr_array((np.ones(len(rows)), (rows, np.flatnonzero(member))), shape=(len(shared), n))

    @cached_property
    def mixes(self) -> bool:
        """Whether all marginals within the rows are known to be means of lotteries over cohorts.

        With quotas on two features at most the rows describe two laminar families, and so are totally
        unimodular; households count as one more feature. A fractional size has no cohorts: its marginals
        stand for themselves.
        """
        ends = np.concatenate([self.classes.least, self.classes.most])
        families = len(self.quotas) + (self.household_rows.shape[0] > 0)
        return not self.is_whole or (families <= 2 and bool((ends == np.round(ends)).all()))

    def infeasibility_reason(self, time_limit: float | None = None) -> str:
        """Explain why no cohort is feasible, with the least relaxation of the quotas; empty if one is.

        Parameters
        ----------
        time_limit : float, optional
            Seconds.

        Examples
        --------
        >>> from forcopt.models import LeximaxCohort
        >>> fields = {"features": {"sex": list("ffmm")}, "quotas": {"sex": {"f": [3, 3]}}}
        >>> p = LeximaxCohort(utilities=np.eye(4), size=3, **fields)
        >>> p.infeasibility_reason()
        'the quotas contradict each other; the least relaxation: 1 fewer of sex = f (at least 3 -> 2)'
        """
        return reason(self, time_limit)

    def choose_method(self) -> str:
        """Choose a method that is exact for these fields."""
        if self.objective == "uniform":
            return "uniform"
        if self.objective != "leximin" and (self.integer or self.mixes):
            return "convex-program"
        return "compact" if self.integer else "saturation" if self.mixes else "column-generation"

    # -- judging ---------------------------------------------------------------------------------------------

    def lottery(self, marginals: Any, cohorts: Array | None = None, weights: Array | None = None) -> Any:
        """The decision with these probabilities, shape ``(n,)``; and, if known, a lottery that has them.

        Parameters
        ----------
        marginals : Any
            Clipped to [0, 1].
        cohorts : Array, optional
            Rows of 0 and 1, shape ``(cohorts, n)``.
        weights : Array, optional
            Their probabilities.
        """
        return CohortLottery(self, np.clip(as_numbers(marginals, "marginals"), 0.0, 1.0), cohorts, weights)

    def evaluate(self, decision: CohortLottery | Any) -> Evaluation:
        """Evaluate a decision: its smallest group utility, its violations, its levels.

        Parameters
        ----------
        decision : CohortLottery or Any
            A `CohortLottery` of this problem, or marginals of shape ``(n,)``.

        Returns
        -------
        Evaluation
            The objective; violations of ``"probability"``, ``"size"``, quotas by name, ``"forced"``,
            ``"forbidden"``, ``"households"`` and ``"integrality"``; as metrics the mean utility and the
            lowest levels.
        """
        x = self.read(decision)
        levels = np.sort(self.utilities.T @ x)
        lower, upper = self.bounds
        classes = self.classes
        counts = classes.members @ x
        violations = {
            "probability": float(np.maximum(-x, x - 1.0).max()),
            "size": abs(float(x.sum()) - self.size),
            "forced": float((lower - x).max()),
            "forbidden": float((x - upper).max(initial=0.0, where=upper == 0.0)),
            "integrality": float(np.abs(x - np.round(x)).max()) if self.integer else 0.0,
        }
        if self.household_rows.shape[0]:
            violations["households"] = float((self.household_rows @ x).max() - 1.0)
        over = np.maximum(classes.least - counts, counts - classes.most)
        violations |= dict(zip(classes.names, over.tolist(), strict=True))
        metrics = {"mean": float(levels.mean())}
        if self.objective == "uniform":
            if not isinstance(decision, CohortLottery):
                raise DeclarationError("objective 'uniform' is of a lottery over cohorts, not of marginals")
            value = decision.entropy
        else:
            value = self.value(self.utilities.T[self.counted] @ x)
        metrics |= {f"level {r}": float(v) for r, v in enumerate(levels[:_SHOWN], 1)}
        return Evaluation(
            objective=value,
            violations={name: v for name, v in violations.items() if v > FEASIBILITY_TOLERANCE},
            metrics=metrics,
        )

    def value(self, utilities: Array, counts: Array | None = None) -> float:
        """The objective at utilities of the counted groups, each of which stands for `counts` groups."""
        counts = np.ones(len(utilities)) if counts is None else counts
        return float(welfare(self.objective, utilities, counts, self.weight, self.even))

    def read(self, decision: CohortLottery | Any) -> Array:
        """The marginals of a decision.

        Raises
        ------
        DeclarationError
            For another shape, or entries that are no numbers.
        """
        given = decision.marginals if isinstance(decision, CohortLottery) else decision
        x = as_numbers(given, "the decision")
        require_shape(x.shape == (len(self.utilities),), "decision has", x, f"be ({len(self.utilities)},)")
        return x
