"""Noisy counts of all levels by the mechanisms of `forcopt.privacy`; trees like a state; instances."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from forcopt.arrays import as_numbers
from forcopt.data.hierarchy import Hierarchy
from forcopt.errors import DeclarationError, check_choice
from forcopt.instance import Instance, by_name
from forcopt.models.census_release.problem import ConsistentRelease
from forcopt.models.census_release.release import noise_variances
from forcopt.privacy import DiscreteGaussian, DiscreteLaplace, Laplace, Ledger, Noise, Profile, randomness
from forcopt.privacy.tolerances import LAW_SUM


def measure(
    hierarchy: Hierarchy,
    epsilon: Any = None,
    *,
    rho: Any = None,
    noise: Literal["geometric", "laplace"] = "geometric",
    workload: Any = None,
    shares: Any = None,
    ledger: Ledger | None = None,
    seed: int | np.random.Generator | None = None,
    **fields: Any,
) -> ConsistentRelease:
    """Add noise to every unit's counts and declare the problem of making them consistent.

    Parameters
    ----------
    hierarchy : Hierarchy
        With counts; the problem keeps the tree only.
    epsilon : array_like, optional
        The pure budget of each level; a substitution of one person changes two counts of a level.
    rho : array_like, optional
        Or the zero-concentrated budget of each level: discrete Gaussian noise of variance 1 / rho.
    noise : Literal["geometric", "laplace"], default "geometric"
        For epsilon. Laplace noise is real and only simulated, with a seed.
    workload : array_like, optional
        See `ConsistentRelease`; the queries share the level's budget.
    shares : array_like, optional
        The queries' shares of each level's budget, which sum to 1. Queries without common types need none:
        a person is in one of them, so that each gets the whole budget.
    ledger : Ledger, optional
        Of all releases about the same people, which the measurement spends from before it is made.
    seed : int or Generator, optional
        Simulates; without it the noise is drawn securely.
    fields : Any
        Of `ConsistentRelease`.

    Returns
    -------
    ConsistentRelease
        With precision 1 / variance.

    Raises
    ------
    DeclarationError
        For a hierarchy without counts, budgets that are not above 0 or do not fit, both budgets, a workload
        that does not fit, or shares that do not sum to 1.
    BudgetSpentError
        If the ledger's budget does not allow the measurement.

    Examples
    --------
    >>> tree = Hierarchy.homogeneous([2, 3], counts=[5, 0, 2, 7, 1, 1])
    >>> p = measure(tree, epsilon=[0.5, 0.5, 1.0], seed=1, integer=True)
    >>> p.solve("tree-integer").evaluation.feasible
    True
    """
    check_choice("noise", noise, "geometric", "laplace")
    if hierarchy.counts is None:
        raise DeclarationError("the hierarchy has no counts to measure")
    counts, depth = hierarchy.counts, hierarchy.depth
    rows = np.eye(counts.shape[1], dtype=np.int64) if workload is None else as_numbers(workload, "workload")
    if rows.ndim != 2 or not len(rows) or rows.shape[1] != counts.shape[1]:
        raise DeclarationError(f"workload has shape {rows.shape}; it must be (queries, {counts.shape[1]})")
    queries = len(rows)
    if shares is None:
        if (rows.sum(axis=0) > 1).any():
            raise DeclarationError("shares must be given, since a type lies in several queries")
        split = np.ones(queries)
    else:
        split = as_numbers(shares, "shares")
        if split.shape != (queries,) or (split <= 0).any() or abs(split.sum() - 1) > LAW_SUM:
            raise DeclarationError(
                f"shares are {split.tolist()}; they must be {queries} numbers above 0 that sum to 1"
            )
    noise_variances(epsilon, rho)  # either of them, above 0
    name, budget = ("epsilon", epsilon) if rho is None else ("rho", rho)
    budget = as_numbers(budget, name)
    if budget.shape != (depth,):
        raise DeclarationError(f"{name} has shape {budget.shape}; the tree has {depth} levels")
    if rho is not None and noise == "laplace":
        raise DeclarationError("noise is 'laplace'; for rho the noise is discrete Gaussian")
    each = budget[:, None] * split
    source, noisy = randomness(seed=seed), []
    if ledger is not None:
        kind = Profile.pure if rho is None else Profile.concentrated
        spent = Profile.together(kind(float(b)) for b in budget)
        ledger.spend(spent, name="census measurement", neighbours="substitute")
    for level, values in enumerate(hierarchy.sums(counts)):
        columns = values @ rows.T
        drawn = [_law(float(b), rho is not None, noise).sample(len(columns), source) for b in each[level]]
        noisy.append(columns + np.stack(drawn, axis=1))
    variances = noise_variances(rho=each) if rho is not None else noise_variances(each, noise=noise)
    return ConsistentRelease(hierarchy, tuple(noisy), 1 / variances, workload=workload, **fields)


def _law(budget: float, concentrated: bool, noise: str) -> Noise:
    if concentrated:
        return DiscreteGaussian(scale=float(budget**-0.5))
    return Laplace(scale=2 / budget) if noise == "laplace" else DiscreteLaplace(scale=2 / budget)


TEXAS = (1, 254, 5265, 15811, 914231)
"""State, counties, tracts, block groups and blocks of 2010."""


def state_like(sizes: tuple[int, ...] = TEXAS, *, types: int = 1, seed: int = 0) -> Hierarchy:
    """Make a tree with these level sizes, units of random fan-out, and counts of which a third are 0.

    Parameters
    ----------
    sizes : tuple[int, ...], default TEXAS
        Units by level; 1 first, not falling.
    types : int, default 1
        Types of people.
    seed : int, default 0
        Repeats it.

    Examples
    --------
    >>> state_like((1, 3, 10), seed=1).sizes
    (1, 3, 10)
    """
    rng = np.random.default_rng(seed)
    parents = []
    for above, below in pairwise(sizes):
        chosen = rng.choice(above, size=below - above, p=rng.dirichlet(np.full(above, 2.0)))
        parents.append(np.sort(np.concatenate([np.arange(above), chosen])))
    people = np.where(rng.random(sizes[-1]) < 0.35, 0, 1 + rng.negative_binomial(0.8, 0.02, sizes[-1]))
    shares = rng.dirichlet(np.ones(types) * 0.5, sizes[-1])
    return Hierarchy(parents=tuple(parents), counts=rng.multinomial(people, shares))


def random_release(
    sizes: tuple[int, ...], *, epsilon: float = 1.0, types: int = 1, seed: int = 0, **fields: Any
) -> ConsistentRelease:
    """Measure such a tree with geometric noise, epsilon split equally over the levels.

    Parameters
    ----------
    sizes, types, seed
        See `state_like`.
    epsilon : float, default 1.0
        In all.
    fields : Any
        Of `ConsistentRelease`.
    """
    tree = state_like(sizes, types=types, seed=seed)
    return measure(tree, [epsilon / tree.depth] * tree.depth, seed=seed, **fields)


_SIZES = ((1, 5, 40), (1, 15, 80, 300, 2000), (1, 30, 120, 500, 8000))


def _typed(sizes: tuple[int, ...], types: int) -> ConsistentRelease:
    """Counts by type; precisions are rounded, since their last bits depend on the processor."""
    drawn = random_release(sizes, types=types, seed=sizes[-1], integer=True, order="joint")
    return drawn.replace(precision=[np.round(level, 12) for level in drawn.precision])


INSTANCES = by_name(
    [
        *(
            Instance(
                f"census/joint-{sizes[-1]}",
                partial(random_release, sizes, seed=sizes[-1], integer=True, order="joint"),
                "network-lp",
            )
            for sizes in _SIZES
        ),
        *(
            Instance(f"census/types-{types}-{sizes[-1]}", partial(_typed, sizes, types), "network-lp")
            for types, sizes in ((7, (1, 8, 50, 300)),)
        ),
    ]
)
