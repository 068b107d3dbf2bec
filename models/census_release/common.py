"""Of all methods: the demands on a problem, and a whole point near the optimum."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.data.hierarchy import Hierarchy
from forcopt.errors import DeclarationError
from forcopt.models.census_release.problem import ConsistentRelease
from forcopt.models.census_release.release import Release
from forcopt.models.census_release.tolerances import WHOLE
from forcopt.problem import Outcome
from forcopt.status import Status


def demand(problem: ConsistentRelease, method: str, *, separable: bool = True, **fields: object) -> None:
    """Refuse a problem that a method is not for.

    Raises
    ------
    DeclarationError
        Naming the field and another method.
    """
    other = quickest(problem) or ("milp" if problem.integer else "qp")
    if separable and problem.extra:
        raise DeclarationError(f"{method}: extra lies off the spine: use {other}")
    if separable and not problem.separable:
        raise DeclarationError(f"{method}: workload or invariants add types up: use {other}")
    for field, wanted in fields.items():
        if (given := getattr(problem, field)) != wanted:
            raise DeclarationError(f"{method}: {field} is {given!r}; it must be {wanted!r}: use {other}")


def demand_formulation(problem: ConsistentRelease, method: str) -> None:
    """Refuse a problem that a formulation is not for, before a model is written.

    Raises
    ------
    DeclarationError
        Naming the field and another method.
    """
    demand(problem, method, separable=False, integer=method != "qp")
    if method == "network-lp" and not problem.is_network:
        raise DeclarationError(
            "network-lp: the workload or an invariant adds types up in a way that is not known to be a "
            "network: use milp"
        )


def answered(problem: ConsistentRelease, leaves: Callable[[], Array]) -> Outcome:
    """The outcome of a method that computes the leaves' counts, and raises `TimeoutError` out of time."""
    try:
        return Outcome(Release.of_leaves(problem.hierarchy, leaves()))
    except TimeoutError as error:
        return out_of_time(error)


def out_of_time(error: TimeoutError | Deadline) -> Outcome:
    """The outcome of a run that the time limit ended before it had a decision."""
    passed = error.end if isinstance(error, Deadline) else str(error)
    return Outcome(None, status=Status.LIMIT, message=passed)


class Column(NamedTuple):
    """One type of a separable problem, by level: noisy counts, precision, and the values held (NaN: free)."""

    noisy: list[Array]
    weights: list[float]
    held: list[Array]


def column_of(problem: ConsistentRelease, t: int) -> Column:
    """The measurements and fixed counts of type t."""
    return Column(
        [np.array(level[:, t]) for level in problem.noisy],
        [float(w[t]) for w in problem.weights],
        [np.array(level[:, t]) for level in problem.held],
    )


def quickest(problem: ConsistentRelease) -> str | None:
    """The method for a problem that solves many: a pass over the tree if there is one, else the default."""
    joint, signed = problem.order == "joint", not problem.nonnegative
    if not problem.separable or (problem.integer and not joint):
        return None
    if problem.integer:
        return "tree-integer"
    return ("tree-wls" if signed else "tree-nnls") if joint else ("toydown" if signed else "simplex")


def real_optimum(problem: ConsistentRelease, time_limit: float | None = None) -> tuple[Array, ...]:
    """The counts of the optimum without wholeness, by level.

    Without an optimum, for a problem that is infeasible or out of time, these are estimates from the noisy
    counts, which need not add up.
    """
    real = problem.replace(integer=False)
    found = real.solve(quickest(real), time_limit=time_limit)
    return tuple(_by_type(problem)) if found.decision is None else tuple(found.decision.counts)


def centre(problem: ConsistentRelease) -> tuple[Array, ...]:
    """Whole counts that add up, within 1 of the optimum for separate types; by level.

    Solvers' tolerances are relative to the largest numbers of a program. Counts of millions with noise of ten
    leave them no digits, but differences from this centre do.

    Notes
    -----
    The optimum is that of the real problem whose types are measured one by one, with estimates of the types
    where the workload measures sums, and without `extra` and invariants of several types. O(n depth log n).
    """
    single = tuple(item for item in problem.invariants if len(item.types or range(problem.types)) == 1)
    separate = problem.replace(
        noisy=tuple(_by_type(problem)),
        precision=problem.weights.mean(axis=1),
        workload=None,
        integer=False,
        invariants=single,
        extra=(),
    )
    h = problem.hierarchy
    if separate.infeasibility_reason():
        return tuple(h.sums(np.round(_by_type(problem)[-1])))
    return Release.of_leaves(h, round_by_remainders(h, real_optimum(separate))).counts


def round_by_remainders(hierarchy: Hierarchy, real: tuple[Array, ...]) -> Array:
    """Round counts that add up from the root down: floors, and one more for the largest remainders.

    Parameters
    ----------
    hierarchy : Hierarchy
        The tree.
    real : tuple[Array, ...]
        By level, shapes ``(units, types)``.

    Returns
    -------
    Array
        The leaves, shape ``(leaves, types)``; all units lie within 1 of `real`.
    """
    h = hierarchy
    found = np.round(real[0])
    for level in range(1, h.depth):
        counts, nearest = real[level], np.round(real[level])
        near = np.where(np.abs(counts - nearest) < WHOLE, nearest, counts)
        floors, parent = np.floor(near), h.parents[level - 1]
        missing = np.round(found - h.up(level, floors)).astype(np.int64)
        out, begin = floors.copy(), h.children[level - 1][1]
        for t in range(found.shape[1]):
            order = np.lexsort((-(near - floors)[:, t], parent))
            rank = np.arange(len(order)) - begin[parent[order]]
            out[order, t] += rank < missing[parent[order], t]
        found = out
    return np.asarray(found)


def _by_type(problem: ConsistentRelease) -> list[Array]:
    """Least squares estimates of the types' counts from each unit's own queries."""
    if problem.workload is None:
        return list(problem.noisy)
    estimate = np.linalg.pinv(problem.queries.T.astype(float))
    return [level @ estimate for level in problem.noisy]
