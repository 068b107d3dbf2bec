"""Cohorts and lotteries over cohorts, against all cohorts."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.optimize import linprog

import forcopt as fo
from benchmarks.fuzz.case import ProblemCase
from forcopt.models.leximax_cohort import LeximaxCohort

Array = np.ndarray


def declared(rng: np.random.Generator) -> tuple[dict[str, object], Array, list[tuple[int, ...]]]:
    """The fields of a problem, its utilities, and the cohorts that meet all demands."""
    n, groups = int(rng.integers(1, 7)), int(rng.integers(1, 5))
    size = int(rng.integers(1, n + 1))
    utilities = rng.integers(0, 4, size=(n, groups)).astype(float)
    fields: dict[str, object] = {"utilities": utilities.tolist(), "size": size}
    cohorts = list(combinations(range(n), size))
    if rng.random() < 0.5:
        level = rng.integers(0, 2, size=n)
        least, most = np.sort(rng.integers(0, size + 1, size=2))
        if (level == 0).any():
            fields["features"] = {"sex": ["fm"[k] for k in level]}
            fields["quotas"] = {"sex": {"f": [int(least), int(most)]}}
            cohorts = [c for c in cohorts if least <= sum(level[i] == 0 for i in c) <= most]
    if rng.random() < 0.3:
        fields["forced"] = [0]
        cohorts = [c for c in cohorts if 0 in c]
    return fields, utilities, cohorts


def one(rng: np.random.Generator) -> ProblemCase:
    """One cohort: all levels are compared."""
    fields, utilities, cohorts = declared(rng)
    problem = LeximaxCohort(**fields, integer=True)
    if not cohorts:
        return ProblemCase(problem, "infeasible")
    best = max(tuple(np.sort(utilities[list(c)].sum(axis=0))) for c in cohorts)

    def check(s: fo.Solution) -> str:
        levels = np.sort(np.asarray(s.decision.utilities, dtype=float))
        return "" if np.abs(levels - best).max() < 1e-6 else f"levels {levels}, not {best}"

    return ProblemCase(problem, "optimal", best[0], skip=NOT_LEXIMAX, check=check)


def lottery(rng: np.random.Generator) -> ProblemCase:
    """Probabilities: the smallest expected utility over lotteries, and the second after it."""
    fields, utilities, cohorts = declared(rng)
    problem = LeximaxCohort(**fields)
    if not cohorts:
        return ProblemCase(problem, "infeasible")
    worth = np.array([utilities[list(c)].sum(axis=0) for c in cohorts])
    levels = leximax(worth)

    def check(s: fo.Solution) -> str:
        found = np.sort(np.asarray(s.decision.utilities, dtype=float))
        return "" if np.abs(found - levels).max() < 1e-4 else f"levels {found}, not {levels}"

    return ProblemCase(problem, "optimal", float(levels[0]), skip=NOT_LEXIMAX, check=check, tolerance=1e-4)


NOT_LEXIMAX = ("maximin", "ellipsoid", "cumulative", "recursive")
"""Methods with other claims."""


def leximax(worth: Array) -> Array:
    """The leximax levels over mixtures of rows: raise a floor, fix the groups that no optimum raises."""
    groups = worth.shape[1]
    fixed: dict[int, float] = {}
    while len(fixed) < groups:
        free = [g for g in range(groups) if g not in fixed]
        floor = _solve(worth, fixed, free, None, 0.0)
        for g in free:
            if _solve(worth, fixed, free, g, floor) <= floor + 1e-7:
                fixed[g] = floor
    return np.sort(list(fixed.values()))


def _solve(worth: Array, fixed: dict[int, float], free: list[int], raised: int | None, floor: float) -> float:
    """The largest floor of the free groups; or the largest utility of one, all others at the floor."""
    count, groups = worth.shape
    cost = np.zeros(count + 1)
    rows, sides = [], []
    for g in range(groups):
        row = np.append(-worth[:, g], 0.0)
        if g in fixed:
            sides.append(-fixed[g] + 1e-9)
        elif raised is None:
            row[-1] = 1.0
            sides.append(0.0)
        else:
            sides.append(-floor + 1e-9)
        rows.append(row)
    cost[-1] = -1.0
    if raised is not None:
        cost[:count], cost[-1] = -worth[:, raised], 0.0
    equal = np.append(np.ones(count), 0.0)[None]
    bounds = [(0, None)] * count + [(None, None) if raised is None else (0, 0)]
    return -float(linprog(cost, rows, sides, equal, [1.0], bounds).fun)


CAMPAIGNS = {"one-cohort": one, "lottery-of-cohorts": lottery}
