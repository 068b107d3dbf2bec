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
    features, quotas = {}, {}
    for name in ("sex", "age", "town")[: int(rng.choice([0, 1, 1, 2, 3]))]:
        level = rng.integers(0, 2, size=n)
        least, most = np.sort(rng.integers(0, size + 1, size=2))
        if (level == 0).any():
            features[name] = ["fm"[k] for k in level]
            quotas[name] = {"f": [int(least), int(most)]}
            cohorts = [c for c in cohorts if least <= sum(level[i] == 0 for i in c) <= most]
    if features:
        fields |= {"features": features, "quotas": quotas}
    if rng.random() < 0.2:
        homes = rng.integers(0, n + 1, size=n)
        fields["households"] = [str(h) if h else "" for h in homes]
        cohorts = [c for c in cohorts if len({h for h in homes[list(c)] if h}) == sum(homes[list(c)] > 0)]
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
    levels = leximax(
        worth, np.ones((0, len(worth))), np.zeros(0), np.ones(len(worth)), 1.0, [(0, None)] * len(worth)
    )

    def check(s: fo.Solution) -> str:
        found = np.sort(np.asarray(s.decision.utilities, dtype=float))
        return "" if np.abs(found - levels).max() < 1e-4 else f"levels {found}, not {levels}"

    return ProblemCase(problem, "optimal", float(levels[0]), skip=NOT_LEXIMAX, check=check, tolerance=1e-4)


def mean_size(rng: np.random.Generator) -> ProblemCase:
    """Marginals of a fractional mean size, with a quota of fractions: a linear program."""
    n, groups = int(rng.integers(1, 7)), int(rng.integers(1, 5))
    size = float(rng.choice([0.25, 0.5, 1 / 3, 1.0])) * n
    size = size if not size.is_integer() else size - 0.3
    utilities = rng.integers(0, 4, size=(n, groups)).astype(float)
    if rng.random() < 0.3:
        utilities *= float(rng.choice([1e-3, 1e3]))
    fields: dict[str, object] = {"utilities": utilities.tolist(), "size": size}
    rows, sides = np.zeros((0, n)), np.zeros(0)
    level = rng.integers(0, 2, size=n)
    if rng.random() < 0.6 and (level == 0).any():
        least, most = np.sort(rng.choice([0.0, 0.2, 0.5, 0.8, 1.0, 1.2], size=2) * size)
        fields |= {"features": {"sex": ["fm"[k] for k in level]}, "quotas": {"sex": {"f": [least, most]}}}
        member = (level == 0).astype(float)
        rows, sides = np.stack([member, -member]), np.array([most, -least])
    problem = LeximaxCohort(**fields)
    found = linprog(np.zeros(n), rows, sides, np.ones((1, n)), [size], [(0, 1)] * n)
    if found.status == 2:
        return ProblemCase(problem, "infeasible")
    levels = leximax(utilities, rows, sides, np.ones(n), size, [(0, 1)] * n)
    scale = max(1.0, float(levels.max()))

    def check(s: fo.Solution) -> str:
        found = np.sort(np.asarray(s.decision.utilities, dtype=float))
        return "" if np.abs(found - levels).max() < 1e-4 * scale else f"levels {found}, not {levels}"

    return ProblemCase(problem, "optimal", float(levels[0]), skip=NOT_LEXIMAX, check=check, tolerance=1e-4)


def slack(rng: np.random.Generator) -> ProblemCase:
    """Slack schemes with a slack of 0 are leximax, for lotteries and for one cohort."""
    fields, utilities, cohorts = declared(rng)
    fields["integer"] = bool(rng.random() < 0.5)
    problem = LeximaxCohort(**fields)
    skip = tuple(name for name in problem.methods if name not in ("cumulative", "recursive"))
    if not cohorts:
        return ProblemCase(problem, "infeasible", skip=skip)
    worth = np.array([utilities[list(c)].sum(axis=0) for c in cohorts])
    if fields["integer"]:
        levels = np.array(max(tuple(np.sort(w)) for w in worth))
    else:
        count = len(worth)
        levels = leximax(worth, np.ones((0, count)), np.zeros(0), np.ones(count), 1.0, [(0, None)] * count)

    def check(s: fo.Solution) -> str:
        found = np.sort(np.asarray(s.decision.utilities, dtype=float))
        return "" if np.abs(found - levels).max() < 1e-4 else f"levels {found}, not {levels}"

    return ProblemCase(problem, "optimal", float(levels[0]), skip=skip, check=check, tolerance=1e-4)


NOT_LEXIMAX = ("convex-program", "uniform", "cumulative", "recursive")
"""Methods with other claims."""


def leximax(
    worth: Array,
    rows: Array,
    sides: Array,
    total: Array,
    amount: float,
    ends: list[tuple[float, float | None]],
) -> Array:
    """The leximax levels of ``worth.T @ x``: raise a floor, fix the groups that no optimum raises.

    The points satisfy ``rows @ x <= sides``, ``total @ x == amount`` and the bounds `ends`.
    """
    groups = worth.shape[1]
    scale = max(1.0, float(np.abs(worth).max()))
    fixed: dict[int, float] = {}

    def best(raised: int | None, floor: float) -> float:
        """The largest floor of the free groups; or the largest utility of one, all others at the floor."""
        least = np.array([fixed.get(g, floor) for g in range(groups)])
        rising = np.array([raised is None and g not in fixed for g in range(groups)])
        upper = np.vstack([np.c_[-worth.T, rising], np.c_[rows, np.zeros(len(rows))]])
        cost = np.append(
            np.zeros(len(worth)) if raised is None else -worth[:, raised], -float(raised is None)
        )
        bounds = [*ends, (None, None) if raised is None else (0, 0)]
        for slack in (1e-9, 1e-8, 1e-7):  # floors are optima of programs before, up to rounding
            below = np.where(rising, 0.0, least - slack * scale)
            limits = np.concatenate([np.where(rising, 0.0, -below), sides])
            found = linprog(cost, upper, limits, np.append(total, 0.0)[None], [amount], bounds)
            if found.status == 0:
                return -float(found.fun)
        raise RuntimeError(f"no slack was enough: {found.message}")

    while len(fixed) < groups:
        floor = best(None, 0.0)
        stuck = [g for g in range(groups) if g not in fixed and best(g, floor) <= floor + 1e-7 * scale]
        fixed |= dict.fromkeys(stuck, floor)
    return np.sort(list(fixed.values()))


CAMPAIGNS = {
    "one-cohort": one,
    "lottery-of-cohorts": lottery,
    "mean-size-of-a-cohort": mean_size,
    "slack-schemes": slack,
}
