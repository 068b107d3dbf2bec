"""The quadratic, network and integer programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.language.atoms import sum_squares
from forcopt.language.model import Model
from forcopt.language.objective import lexicographic, minimize
from forcopt.loops.solution import ModelSolution
from forcopt.models.census_release.common import demand
from forcopt.models.census_release.problem import ConsistentRelease
from forcopt.models.census_release.release import Release
from forcopt.problem import Handles

__all__ = ["miqp", "network_lp", "qp", "unit_steps"]


def _counts(problem: ConsistentRelease, model: Model, integer: bool) -> list[Any]:
    """A variable for each level, tied by the sums; shapes ``(units, types)``."""
    h = problem.hierarchy
    found = []
    for level, size in enumerate(h.sizes):
        last = level == h.depth - 1
        low = 0.0 if problem.nonnegative else -np.inf
        held = problem.held[level]
        lower, upper = np.where(np.isnan(held), low, held), np.where(np.isnan(held), np.inf, held)
        name = model.unused_name(f"counts_{level}")
        found.append(
            model.variable(name, (size, problem.types), lower=lower, upper=upper, integer=integer and last)
        )
    for level in range(1, h.depth):
        parent, above = h.parents[level - 1], h.sizes[level - 1]
        adds = sp.csr_array(
            (np.ones(len(parent)), (parent, np.arange(len(parent)))), shape=(above, len(parent))
        )
        model.subject_to(adds @ found[level] == found[level - 1], name=model.unused_name(f"sums_{level}"))
    for number, item in enumerate(problem.invariants):
        types = list(item.types or range(problem.types))
        if len(types) > 1:
            unit = h.find(item.level, item.unit)
            name = model.unused_name(f"invariant_{number}")
            model.subject_to(found[item.level][unit, types].sum() == item.value, name=name)
    return found


def _off(problem: ConsistentRelease, counts: list[Any]) -> list[list[tuple[Any, Array, Array]]]:
    """By level: expressions of query counts, noisy counts and precision, each flat."""
    rows = problem.queries.T.astype(float)
    found = []
    for level, noisy, w in zip(counts, problem.noisy, problem.weights, strict=True):
        found.append([(level @ rows, noisy, np.broadcast_to(w, noisy.shape))])
    for item in problem.extra:
        total = counts[-1][item.leaves].sum(axis=0) @ rows
        found[-1].append((total, item.noisy, np.broadcast_to(item.precision, item.noisy.shape)))
    return found


def _objective(problem: ConsistentRelease, stages: list[Any], tolerance: float) -> Any:
    if problem.order == "joint":
        return sum(stages[1:], stages[0])
    return lexicographic([minimize(stage) for stage in stages], tolerance=tolerance)


def _handles(
    problem: ConsistentRelease, objective: Any, counts: list[Any], read: Any, unit: float
) -> Handles:
    def start(decision: Any) -> dict[Any, Array]:
        return dict(zip(counts, problem.read(decision), strict=True))

    return Handles(objective=objective, decision=read, start=start, unit=unit, counts=counts)


def _quadratic(problem: ConsistentRelease, model: Model, integer: bool) -> Handles:
    counts = _counts(problem, model, integer)
    unit = float(np.median(problem.weights))  # solvers' tolerances are absolute
    stages: list[Any] = [
        sum(
            (sum_squares((value - noisy) * np.sqrt(w / unit)) for value, noisy, w in parts[1:]),
            sum_squares((parts[0][0] - parts[0][1]) * np.sqrt(parts[0][2] / unit)),
        )
        for parts in _off(problem, counts)
    ]

    def read(said: ModelSolution) -> Release:
        leaves = np.asarray(said[counts[-1]])
        held = problem.held[-1]
        leaves = np.round(leaves) if integer else np.maximum(leaves, 0.0) if problem.nonnegative else leaves
        return Release.of_leaves(problem.hierarchy, np.where(np.isnan(held), leaves, held))

    return _handles(problem, _objective(problem, stages, 1e-6), counts, read, unit)


@ConsistentRelease.formulation("qp", exact=True, cites="Cohen et al. (2021), problems of section 3.3")
def qp(problem: ConsistentRelease, model: Model) -> Handles:
    """Real counts: a convex quadratic program, or one a level in top-down order.

    Top-down order holds the value of a level by a cone, so that it needs a backend for second-order cones.

    Returns
    -------
    Handles
        ``counts``, by level, shapes ``(units, types)``.
    """
    demand(problem, "qp", separable=False)
    return _quadratic(problem, model, integer=False)


@ConsistentRelease.formulation("miqp", exact=True, cites="Cohen et al. (2021), Algorithm 1, line 7")
def miqp(problem: ConsistentRelease, model: Model) -> Handles:
    """Whole counts for any workload: a mixed-integer quadratic program, or one a level in top-down order.

    Returns
    -------
    Handles
        ``counts``, by level, shapes ``(units, types)``.
    """
    demand(problem, "miqp", integer=True, separable=False)
    return _quadratic(problem, model, integer=True)


@ConsistentRelease.formulation(
    "network-lp", exact=True, cites="unit steps of convex separable flows; Minoux (1984)"
)
def network_lp(problem: ConsistentRelease, model: Model, reach: int = 3) -> Handles:
    """Whole counts by a linear program, if `ConsistentRelease.is_network`: its vertices are whole.

    Each squared distance is linear between whole counts within `reach` of the real optimum, and goes on with
    its last slope beyond, below the square. So the bound always holds; a count beyond the window is an error
    that asks for a larger reach. A backend that stops inside a face (without crossover) may give fractions.

    Parameters
    ----------
    problem, model
        The problem must be a network.
    reach : int, default 3
        Half the width of the window of unit steps.

    Returns
    -------
    Handles
        ``counts``, by level, shapes ``(units, types)``.
    """
    demand(problem, "network-lp", integer=True, separable=False)
    if not problem.is_network:
        raise DeclarationError(
            "network-lp: the workload, or what is invariant, is not known to be a network: use miqp"
        )
    return unit_steps(problem, model, reach)


def unit_steps(problem: ConsistentRelease, model: Model, reach: int = 3) -> Handles:
    """The linear program of `network_lp` for any workload: a relaxation if that is no network.

    Parameters
    ----------
    problem, model, reach
        See `network_lp`.

    Returns
    -------
    Handles
        See `network_lp`.
    """
    counts = _counts(problem, model, integer=False)
    centre = real_optimum(problem)
    unit = float(np.median(problem.weights))
    stages, values, windows = [], [], []
    middles = _off(problem, list(centre))
    for parts, middle in zip(_off(problem, counts), middles, strict=True):
        terms = []
        for (value, noisy, w), (near, _, _) in zip(parts, middle, strict=True):
            base = np.floor(np.asarray(near) + 1e-9)
            terms.append(_steps(model, value, noisy, w / unit, base, reach))
            values.append(value)
            windows.append((base - reach, base + reach))
        stages.append(sum(terms[1:], terms[0]))

    def read(said: ModelSolution) -> Release:
        leaves = np.asarray(said[counts[-1]])
        whole = np.round(leaves)
        leaves = whole if np.abs(leaves - whole).max(initial=0.0) < 1e-3 else leaves
        for value, (low, high) in zip(values, windows, strict=True):
            found = np.asarray(said[value])
            beyond = max(float((low - found).max()), float((found - high).max()))
            if beyond > 1e-3:
                raise DeclarationError(
                    f"network-lp: a count lies {beyond:g} beyond its window; "
                    f"give reach={reach + int(np.ceil(beyond)) + 1}"
                )
        return Release.of_leaves(problem.hierarchy, leaves)

    return _handles(problem, _objective(problem, stages, 1e-9), counts, read, unit)


def _steps(model: Model, value: Any, noisy: Array, w: Array, base: Array, reach: int) -> Any:
    """The cost of `value`, linear between whole numbers near `base`; ``w (k - noisy)^2`` at those."""
    shape = noisy.shape
    first = base - reach
    up = model.variable(model.unused_name("steps"), (2 * reach, *shape), lower=0, upper=1)
    more = model.variable(model.unused_name("more"), shape, lower=0)
    less = model.variable(model.unused_name("less"), shape, lower=0)
    at = first + np.arange(2 * reach).reshape(-1, *(1,) * len(shape))
    slopes = w * (2 * (at - noisy) + 1)
    model.subject_to(value == first + up.sum(axis=0) + more - less)
    ends = (w * (2 * (first + 2 * reach - noisy) - 1), w * (2 * (first - noisy) + 1))
    # Beyond the window the slopes must keep the function convex: the last step's, and the first one's.
    return (
        (slopes * up).sum()
        + (ends[0] * more).sum()
        - (ends[1] * less).sum()
        + float((w * (first - noisy) ** 2).sum())
    )


def real_optimum(problem: ConsistentRelease) -> tuple[Array, ...]:
    """The counts of the optimum without wholeness, by level; infeasible problems give the noisy counts."""
    real = problem.replace(integer=False)
    if problem.separable:
        joint, signed = problem.order == "joint", not problem.nonnegative
        method = ("tree-wls" if signed else "tree-nnls") if joint else ("toydown" if signed else "simplex")
        found = real.solve(method)
    elif problem.order == "joint":
        found = real.solve("qp")
    else:
        found = real.solve("qp", backend="clarabel")
    if found.decision is None:
        pseudo = np.linalg.pinv(problem.queries.T.astype(float))
        return tuple(level @ pseudo for level in problem.noisy)
    return tuple(found.decision.counts)
