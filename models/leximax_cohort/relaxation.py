"""Quotas that contradict each other: the least relaxation, and the reason in the problem's words."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forcopt.language.model import Model
from forcopt.status import Status

if TYPE_CHECKING:
    from forcopt.models.leximax_cohort.problem import LeximaxCohort

__all__ = ["QuotaRelaxation", "least_relaxation"]


_DIGITS = 6
"""Decimals of the bounds that quotas on the marginals of a fractional size would need."""

_SAME = 1e-3
"""Of the last digit: the rounding of a solver."""


class QuotaRelaxation(NamedTuple):
    """One quota with the bounds that it would need.

    Attributes
    ----------
    quota : str
        The name, such as ``"sex = female"``.
    bounds : tuple[float, float]
        As declared.
    needed : tuple[float, float]
        As they must be.
    """

    quota: str
    bounds: tuple[float, float]
    needed: tuple[float, float]

    def __str__(self) -> str:
        sides = [
            f"{side} {old:g} -> {new:g}"
            for side, old, new in zip(("at least", "at most"), self.bounds, self.needed, strict=True)
            if old != new
        ]
        return f"{self.quota} ({', '.join(sides)})"


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
        forced or forbidden, or the households are too few), or none was found in time.

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
    down, up = model.variable("down", count, lower=0), model.variable("up", count, lower=0)
    sums = chosen @ classes.members.T
    model.subject_to(sums + down >= classes.least, sums - up <= classes.most)
    model.minimize(down.sum() + up.sum())
    result = model.solve(backend, time_limit=time_limit)
    if result.point is None or result.status not in (Status.OPTIMAL, Status.FEASIBLE):
        return None
    counts, digits = classes.members @ result[chosen], 0 if problem.is_whole else _DIGITS
    short, over = np.round(counts, digits) < classes.least, np.round(counts, digits) > classes.most
    # outwards, so that the rounded bounds suffice
    counts = np.where(short, np.floor(counts * 10**digits + _SAME), np.ceil(counts * 10**digits - _SAME))
    counts /= 10**digits
    counts = np.where(short | over, counts, np.clip(counts, classes.least, classes.most))
    return [
        QuotaRelaxation(name, (float(a), float(b)), (float(min(a, c)), float(max(b, c))))
        for name, a, b, c in zip(classes.names, classes.least, classes.most, counts, strict=True)
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
        if problem.household_rows.shape[0]:
            return "no cohort of the size has at most one member of each household, whatever the quotas are"
        return "no cohort of the size meets the demands"
    if not found:
        return ""
    return "the quotas contradict each other; the least relaxation: " + "; ".join(map(str, found))
