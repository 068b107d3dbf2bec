"""Margins of error of published counts: exact if the estimate is linear in normal noise, else simulated."""

from __future__ import annotations

from typing import Literal

import numpy as np
import scipy

from forcopt.arrays import Array
from forcopt.errors import DeclarationError, check_choice, require
from forcopt.models.census_release.common import quickest
from forcopt.models.census_release.problem import ConsistentRelease
from forcopt.models.census_release.release import Release
from forcopt.models.census_release.tolerances import FREE


def unit_variances(problem: ConsistentRelease) -> list[Array]:
    """The variance of each unit's count by level, shapes ``(units, types)``, if counts may be negative.

    Upwards, the variance of a unit given what was measured in it and below it; downwards, the children of a
    unit share its variance as `passes.least_squares` shares its deficit. For types measured one by one; in
    top-down order without invariants. O(n).

    Examples
    --------
    >>> from forcopt.data import Hierarchy
    >>> tree = Hierarchy(parents=([0, 0],))
    >>> p = ConsistentRelease(tree, ([9], [4, 6]), precision=[1, 1], nonnegative=False)
    >>> [level.ravel().round(4).tolist() for level in unit_variances(p)]
    [[0.6667], [0.6667, 0.6667]]
    """
    h, given, sums = problem.hierarchy, list[Array](), list[Array]()
    for level in range(h.depth - 1, -1, -1):
        own = np.broadcast_to(1 / problem.weights[level], (h.sizes[level], problem.types))
        if given:
            sums.append(h.up(level + 1, given[-1]))
            if problem.order == "joint":
                own = own * sums[-1] / (own + sums[-1])
        given.append(np.where(np.isnan(problem.held[level]), own, 0.0))
    found = [given.pop()]
    for parent in h.parents:
        own, total = given.pop(), sums.pop()[parent]
        share = np.divide(own, total, out=np.zeros_like(own), where=total > 0)
        found.append(own * (1 - share) + share**2 * found[-1][parent])
    return found


def margins(
    problem: ConsistentRelease,
    release: Release,
    confidence: float = 0.95,
    *,
    noise: Literal["gaussian", "laplace"] = "gaussian",
    draws: int = 200,
    seed: int | np.random.Generator = 0,
    method: str | None = None,
) -> tuple[Array, ...]:
    """The margin of error of every published count: how far it is from the true one, with a given chance.

    Parameters
    ----------
    problem : ConsistentRelease
        With precision 1 / variance.
    release : Release
        A solution of the problem.
    confidence : float, default 0.95
        The chance, for each count by itself, above 0 and below 1.
    noise : Literal["gaussian", "laplace"], default "gaussian"
        The law of the noise, or a real law like it: ``"laplace"`` for geometric noise.
    draws : int, default 200
        Releases to simulate, where the margins have no formula.
    seed : int or Generator, default 0
        Of the simulation.
    method : str, optional
        Of the simulation; by default the quickest of the problem.

    Returns
    -------
    tuple of Array
        By level, shapes ``(units, types)``; for `Release.to_pandas`.

    Raises
    ------
    DeclarationError
        For a confidence or a number of draws out of range, or a method that does not suit.

    Notes
    -----
    For normal noise on types measured one by one the estimate is linear, and so the margin exact, if counts
    may be negative, or if every count is more than `FREE` standard deviations above 0, where the bound does
    not bind. Elsewhere the release stands for the truth: it gets new noise and is solved again. The margin
    is the quantile of the distances from the release (the parametric bootstrap), which holds
    approximately. Either way it is a function of the release and of public numbers, and costs no privacy.

    Examples
    --------
    >>> from forcopt.data import Hierarchy
    >>> tree = Hierarchy(parents=([0, 0],))
    >>> p = ConsistentRelease(tree, ([103], [58, 44]), precision=[1, 1])
    >>> release = p.solve().decision
    >>> found = margins(p, release)
    >>> [level.ravel().round(2).tolist() for level in found]
    [[1.6], [1.6, 1.6]]
    >>> release.to_pandas(margins=found).columns.tolist()
    ['level', 'unit', 'type 0', 'type 0 margin']
    """
    check_choice("noise", noise, "gaussian", "laplace")
    require(0 < confidence < 1, "confidence", confidence, "be above 0 and below 1")
    require(draws >= 1, "draws", draws, "be at least 1")
    counts = problem.read(release)
    linear = noise == "gaussian" and problem.separable and not problem.integer
    if linear and (problem.order == "joint" or not (problem.invariants or problem.zeros.size)):
        deviations = [np.sqrt(v) for v in unit_variances(problem)]
        pairs = zip(counts, deviations, strict=True)
        if not problem.nonnegative or all(((x > FREE * d) | (d == 0)).all() for x, d in pairs):
            return tuple(float(scipy.stats.norm.ppf((1 + confidence) / 2)) * d for d in deviations)
    rng, rows = np.random.default_rng(seed), problem.queries.T

    def noisy(truth: Array, precision: Array) -> Array:
        law = rng.normal if noise == "gaussian" else rng.laplace
        factor = 1.0 if noise == "gaussian" else np.sqrt(0.5)
        exact = truth @ rows
        return np.asarray(exact + factor * law(size=exact.shape) / precision**0.5)

    found = []
    for _ in range(draws):
        again = problem.replace(
            noisy=[noisy(x, w) for x, w in zip(counts, problem.weights, strict=True)],
            extra=[
                m.replace(noisy=noisy(counts[-1][m.leaves].sum(axis=0), m.precision)) for m in problem.extra
            ],
        )
        s = again.solve(method or quickest(problem))
        if s.decision is None:
            raise DeclarationError(f"method {s.method} finds no release of simulated noise: {s.status}")
        found.append([np.abs(x - y) for x, y in zip(again.read(s.decision), counts, strict=True)])
    levels = zip(*found, strict=True)
    return tuple(np.quantile(level, confidence, axis=0, method="higher") for level in levels)
