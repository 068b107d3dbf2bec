"""Reserves for members who drop out: as many as are wanted, such that the quotas hold best after dropouts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from forcopt.arrays import Array, Seed, as_numbers
from forcopt.errors import BackendError, DeclarationError, require
from forcopt.language.model import Model
from forcopt.models.leximax_cohort.classes import Classes
from forcopt.models.leximax_cohort.panel import positions
from forcopt.models.leximax_cohort.problem import LeximaxCohort
from forcopt.status import Status


@dataclass(frozen=True)
class Reserves:
    """Reserves of a panel.

    Attributes
    ----------
    names : tuple[str, ...]
        Of the reserves, in the order of the pool.
    missed, missed_without : float
        The mean number of places by which quotas and the size are missed over the scenarios, when reserves
        fill the places best; and without reserves.
    bound : float
        No choice of so many reserves misses fewer places on average over these scenarios.
    """

    names: tuple[str, ...]
    missed: float
    missed_without: float
    bound: float


def dropout_scenarios(
    problem: LeximaxCohort, members: Iterable[Any], attendance: Any, count: int, seed: Any = None
) -> Array:
    """Draw who attends: a row for each scenario, 1 for each member who comes; independent members.

    Parameters
    ----------
    problem : LeximaxCohort
        Of the panel.
    members : iterable
        Names of the drawn panel.
    attendance : float or array_like
        The probability that a candidate attends, one for all or one for each of the pool.
    count : int
        Of scenarios.
    seed : int or numpy.random.Generator, optional
        An int or a generator.

    Returns
    -------
    Array
        Shape ``(count, n)``.

    Examples
    --------
    >>> from forcopt.models import LeximaxCohort
    >>> p = LeximaxCohort(utilities=np.eye(3), size=2, groups=("Ann", "Bo", "Cy"))
    >>> dropout_scenarios(p, ["Ann", "Cy"], attendance=1.0, count=2).tolist()
    [[1.0, 0.0, 1.0], [1.0, 0.0, 1.0]]
    """
    chance = np.broadcast_to(as_numbers(attendance, "attendance"), len(problem.names))
    if ((chance < 0) | (chance > 1)).any():
        raise DeclarationError(f"attendance is {chance.min():g} to {chance.max():g}; it must be from 0 to 1")
    chosen = np.zeros(len(chance))
    chosen[positions(problem, members)] = 1.0
    return chosen * (np.random.default_rng(seed).random((count, len(chance))) < chance)


def choose_reserves(
    problem: LeximaxCohort,
    members: Iterable[Any],
    count: int,
    attendance: Any = 0.9,
    *,
    scenarios: int | Array = 100,
    seed: Seed = None,
    backend: str = "highs",
    time_limit: float | None = 60.0,
) -> Reserves:
    """Choose reserves such that the panel misses as few places of its quotas as possible after dropouts.

    In each scenario some members stay away, and reserves fill at most as many places. The choice minimizes
    the mean number of places that are then missing of a quota, beyond a quota, or empty. Candidates with the
    same features have the same chance to become a reserve.

    Parameters
    ----------
    problem : LeximaxCohort
        Of the panel.
    members : iterable
        Names of the drawn panel.
    count : int
        Of reserves.
    attendance : float or array_like, default 0.9
        See `dropout_scenarios`.
    scenarios : int or Array, default 100
        How many to draw; or scenarios of your own: 1 for members who come, shape ``(scenarios, n)``.
    seed : int or numpy.random.Generator, optional
        Of the scenarios and of the draw among candidates with the same features.
    backend : str, default "highs"
        Takes mixed-integer linear programs.
    time_limit : float, optional
        Seconds; the best choice found by then is taken.

    Returns
    -------
    Reserves
        Proved to be best for the scenarios if `Reserves.missed` equals its bound.

    Raises
    ------
    DeclarationError
        For an unknown member, an attendance that is no probability, or fewer candidates than reserves.
    BackendError
        If no choice is found in time.

    Notes
    -----
    Sample average approximation: one integer program with the number of reserves of each class of
    interchangeable candidates and, for each distinct set of dropouts by class, the numbers who are called.
    Nobody with a member's address becomes a reserve.

    References
    ----------
    A. Assos, C. Baharav, B. Flanigan and A. Procaccia, "Alternates, assemble! Selecting optimal alternates
    for citizens' assemblies", EC 2025.

    Examples
    --------
    >>> from forcopt.models import LeximaxCohort
    >>> features = {"sex": list("ffffmm")}
    >>> p = LeximaxCohort(
    ...     utilities=np.eye(6), size=2, features=features, quotas={"sex": {"f": [1, 1], "m": [1, 1]}}
    ... )
    >>> found = choose_reserves(p, ["0", "4"], 1, [0.5] * 4 + [1.0] * 2, seed=0)
    >>> found.names[0] in {"1", "2", "3"}, found.missed
    (True, 0.0)
    """
    rng = np.random.default_rng(seed)
    chosen = positions(problem, members)
    attended = scenarios
    if isinstance(attended, int):
        attended = dropout_scenarios(problem, chosen_names(problem, chosen), attendance, attended, rng)
    free = np.ones(len(problem.names))
    free[chosen] = 0.0
    homes = problem.household_rows
    free[(homes.T @ (homes[:, chosen].sum(axis=1) > 0)) > 0] = 0.0
    free *= problem.bounds[1]
    require(0 <= count <= free.sum(), "count", count, f"be 0 to {free.sum():g}, the other candidates")
    classes = Classes(problem)
    member = np.eye(len(classes.sizes))[classes.of]
    kept, times = np.unique(np.asarray(attended) @ member, axis=0, return_counts=True)
    weight, cases = times / times.sum(), len(kept)

    rows = problem.classes.members[:, classes.first]
    least, most = problem.classes.least, problem.classes.most
    out = (problem.size - kept.sum(axis=1))[:, None]
    model = Model("reserves")
    held = model.variable("held", len(free @ member), lower=0, upper=free @ member, integer=True)
    called = model.variable("called", kept.shape, lower=0, integer=True)
    short = model.variable("short", (cases, len(rows)), lower=0)
    over = model.variable("over", (cases, len(rows)), lower=0)
    empty = model.variable("empty", (cases, 1), lower=0)
    counts = called @ rows.T + kept @ rows.T
    filled = called.sum(axis=1).reshape((cases, 1)) + empty == out
    model.subject_to(held.sum() == count, called <= held, filled)
    model.subject_to(counts + short >= least, counts - over <= most)
    if homes.shape[0]:
        model.subject_to(homes[:, classes.first] @ held <= 1)
    model.minimize(((short + 0.0).sum(axis=1) + over.sum(axis=1) + empty.sum(axis=1)) @ weight)
    result = model.solve(backend, time_limit=time_limit)
    if result.point is None or result.status not in (Status.OPTIMAL, Status.FEASIBLE):
        raise BackendError(f"{backend} finds no reserves: {result.message}")
    counts_alone = kept @ rows.T
    alone = np.maximum(least - counts_alone, 0).sum(axis=1) + np.maximum(counts_alone - most, 0).sum(axis=1)
    drawn = [
        rng.permutation(np.flatnonzero((classes.of == c) & (free > 0)))[:number]
        for c, number in enumerate(np.round(result[held]).astype(int).tolist())
    ]
    names, missing = chosen_names(problem, np.sort(np.concatenate(drawn))), weight @ (alone + out[:, 0])
    return Reserves(names, float(result.objective), float(missing), float(result.bound))


def chosen_names(problem: LeximaxCohort, at: Array) -> tuple[str, ...]:
    """The names of candidates at positions."""
    return tuple(np.array(problem.names)[at].tolist())
