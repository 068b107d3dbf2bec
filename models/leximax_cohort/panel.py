"""Citizens' panels: tables of quotas, replacements, and the least relaxation of quotas."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from forcopt.arrays import Array
from forcopt.data.intake import nearest_hint
from forcopt.errors import DeclarationError, required
from forcopt.language.model import Model
from forcopt.models.leximax_cohort.tolerances import SAME
from forcopt.status import Status

if TYPE_CHECKING:
    from pandas import DataFrame

    from forcopt.models.leximax_cohort.problem import LeximaxCohort


def quota_table(problem: LeximaxCohort) -> DataFrame:
    """The quotas as StratifySelect and sortition-algorithms read them, a row for each value of a feature.

    Returns
    -------
    DataFrame
        With the columns ``feature``, ``value``, ``min``, ``max``, and, if the problem has flexible quotas,
        ``min_flex`` and ``max_flex``.

    Examples
    --------
    >>> from forcopt.models import LeximaxCohort
    >>> fields = {"features": {"sex": list("ffmm")}, "quotas": {"sex": {"f": [1, 2], "m": [1, 1]}}}
    >>> print(quota_table(LeximaxCohort(utilities=np.eye(4), size=2, **fields)).to_string(index=False))
    feature value  min  max
        sex     f    1    2
        sex     m    1    1
    """
    pd = required("pandas", "quota_table")

    classes, (low, high) = problem.classes, flexible_ends(problem)
    keys = [(feature, level) for feature, levels in problem.quotas.items() for level in levels]
    table = pd.DataFrame(keys, columns=["feature", "value"]).assign(min=classes.least, max=classes.most)
    if problem.flexible:
        table = table.assign(min_flex=low, max_flex=np.minimum(high, problem.size))
    return table.convert_dtypes()


def flexible_ends(problem: LeximaxCohort) -> tuple[Array, Array]:
    """The ends to which each quota may be relaxed: 0 and no end, where none are declared."""
    ends = [
        problem.flexible.get(feature, {}).get(level, (0.0, np.inf))
        for feature, levels in problem.quotas.items()
        for level in levels
    ]
    low, high = np.array(ends).reshape(-1, 2).T
    return low, high


def positions(problem: LeximaxCohort, members: Iterable[Any], where: str = "") -> Array:
    """The positions of named candidates, rising and each once.

    Raises
    ------
    DeclarationError
        For a candidate that does not exist; it begins with `where`.
    """
    places = {name: i for i, name in enumerate(problem.names)}
    for name in (names := list(map(str, members))):
        if name not in places:
            raise DeclarationError(f"{where}{name!r} is no candidate{nearest_hint(name, places)}")
    return np.unique(np.array([places[name] for name in names], dtype=np.int64))


def replacement_fields(
    problem: LeximaxCohort, kept: Iterable[Any], dropped: Iterable[Any]
) -> dict[str, Array]:
    """The forced and forbidden positions after some members of a panel dropped out.

    Raises
    ------
    DeclarationError
        For a candidate that does not exist, or is both kept and dropped.
    """
    forced = np.union1d(problem.forced, positions(problem, kept)).astype(np.int64)
    forbidden = np.union1d(problem.forbidden, positions(problem, dropped)).astype(np.int64)
    return {"forced": forced, "forbidden": forbidden}


def gini(values: Array) -> float:
    """The Gini coefficient of numbers of at least 0: 0 if all are equal, near 1 if one has all.

    ``sum_ij |x_i - x_j| / (2 n sum_i x_i)``, from the sorted values. O(n log n).

    Examples
    --------
    >>> round(gini(np.array([1.0, 1.0, 1.0, 1.0])), 9), gini(np.array([0.0, 0.0, 0.0, 1.0]))
    (0.0, 0.75)
    """
    x = np.sort(values)
    n, total = len(x), float(x.sum())
    return 0.0 if total == 0 else float((2 * np.arange(1, n + 1) - n - 1) @ x / (n * total))


_DIGITS = 6
"""Decimals of the bounds that quotas on the marginals of a fractional size would need."""


class QuotaRelaxation(NamedTuple):
    """One quota with the bounds that it would need.

    Attributes
    ----------
    feature, level : str
        Such as ``"sex"`` and ``"female"``.
    bounds : tuple[float, float]
        As declared.
    needed : tuple[float, float]
        As they must be.
    """

    feature: str
    level: str
    bounds: tuple[float, float]
    needed: tuple[float, float]

    def __str__(self) -> str:
        return " and ".join(
            f"{abs(new - old):g} {word} of {self.feature} = {self.level} ({side} {old:g} -> {new:g})"
            for word, side, old, new in zip(
                ("fewer", "more"), ("at least", "at most"), self.bounds, self.needed, strict=True
            )
            if old != new
        )


def least_relaxation(
    problem: LeximaxCohort, *, backend: str = "highs", time_limit: float | None = None
) -> list[QuotaRelaxation] | None:
    """Find the quotas to relax, by the least number of places in all, for a cohort to exist.

    Parameters
    ----------
    problem : LeximaxCohort
        Which.
    backend : str, default "highs"
        Takes mixed-integer linear programs.
    time_limit : float, optional
        Seconds.

    Returns
    -------
    list[QuotaRelaxation] or None
        Empty if the quotas hold together. None if no relaxation of quotas is enough (too many candidates are
        forced or forbidden, the households are too few, or `flexible` quotas end it), or none was found in
        time.

    Notes
    -----
    An elastic program: each quota may be broken by a number of places, and the sum of these numbers is
    minimized over all cohorts, or over all marginals of a fractional size. O(quotas) more columns than the
    program for one cohort.

    References
    ----------
    Flanigan, Goelz, Gupta, Hennig, Procaccia: Fair algorithms for selecting citizens' assemblies. Nature 596,
    2021, for the quota relaxation of their tool.
    """
    classes, (lower, upper) = problem.classes, problem.bounds
    model = Model("relaxation")
    chosen = model.variable("chosen", len(lower), lower=lower, upper=upper, integer=problem.is_whole)
    model.subject_to(chosen.sum() == problem.size)
    if problem.household_rows.shape[0]:
        model.subject_to(problem.household_rows @ chosen <= 1)
    count = len(classes.names)
    low, high = flexible_ends(problem)
    down = model.variable("down", count, lower=0, upper=classes.least - low)
    up = model.variable("up", count, lower=0, upper=high - classes.most)
    sums = chosen @ classes.members.T
    model.subject_to(sums + down >= classes.least, sums - up <= classes.most)
    model.minimize(down.sum() + up.sum())
    result = model.solve(backend, time_limit=time_limit)
    if result.point is None or result.status not in (Status.OPTIMAL, Status.FEASIBLE):
        return None
    counts, digits = classes.members @ result[chosen], 0 if problem.is_whole else _DIGITS
    short, over = np.round(counts, digits) < classes.least, np.round(counts, digits) > classes.most
    # outwards, so that the rounded bounds suffice
    counts = np.where(short, np.floor(counts * 10**digits + SAME), np.ceil(counts * 10**digits - SAME))
    counts /= 10**digits
    counts = np.where(short | over, counts, np.clip(counts, classes.least, classes.most))
    keys = [(feature, level) for feature, levels in problem.quotas.items() for level in levels]
    return [
        QuotaRelaxation(*key, (float(a), float(b)), (float(min(a, c)), float(max(b, c))))
        for key, a, b, c in zip(keys, classes.least, classes.most, counts, strict=True)
        if not a <= c <= b
    ]


def reason(problem: LeximaxCohort, time_limit: float | None = None) -> str:
    """Explain why no cohort meets the demands, with the least relaxation; empty if one does."""
    lower, upper = problem.bounds
    if lower.sum() > problem.size:
        return f"{lower.sum():g} candidates are forced; size is {problem.size:g}"
    if upper.sum() < problem.size:
        return f"{upper.sum():g} candidates are not forbidden; size is {problem.size:g}"
    found = least_relaxation(problem, time_limit=time_limit)
    if found is None:
        if problem.flexible:
            return "no cohort of the size meets the demands, even with all quotas at their flexible ends"
        if problem.household_rows.shape[0]:
            return "no cohort of the size has at most one member of each household, whatever the quotas are"
        return "no cohort of the size meets the demands"
    if not found:
        return ""
    return "the quotas contradict each other; the least relaxation: " + "; ".join(map(str, found))
