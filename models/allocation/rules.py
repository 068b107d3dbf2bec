"""Sizes that depend on the data: the noise that they cost, and the best rule on a small universe."""

from __future__ import annotations

from functools import cached_property
from itertools import product
from math import comb
from typing import Any, NamedTuple, Self

import numpy as np
from pydantic import Field, model_validator

from forcopt.arrays import Array, as_numbers
from forcopt.declaration import Declared, Integers, Numbers
from forcopt.errors import DeclarationError, require
from forcopt.language.model import Model
from forcopt.models.allocation.tolerances import LEAST_SCALE

_MOST = 500
"""Populations that are listed, at most."""


class RuleNoise(NamedTuple):
    """What a rule costs.

    Attributes
    ----------
    noise_scale : float
        The least scale of Laplace noise with which the estimate is private, equation (4).
    worst_variance : float
        The largest variance of the estimate with this noise over the populations of interest, equation (5).
    """

    noise_scale: float
    worst_variance: float


class AllocationRules(Declared):
    """All rules that choose the sizes of a stratified sample by the population, on a small universe.

    The estimate is the weighted mean of the sample with Laplace noise. Nobody's substitution by another
    record of the same stratum may show in it by more than `epsilon`. The loss of a rule is exact: it is that
    of the law of the noisy estimate, not of the sample.

    Attributes
    ----------
    sizes : Integers
        The records of each stratum, shape ``(k,)``.
    values : Numbers
        The values that a record may have, shape ``(v,)``.
    sample_size : int
        How many records may be sampled in all.
    epsilon : Numbers
        The privacy loss that is allowed, above 0; a number, or one for each stratum (Definition 10).
    interest : Integers, optional
        The positions in `populations` of those of interest, whose worst variance counts; all by default.
        Privacy holds for all.

    Raises
    ------
    DeclarationError
        For fields out of range, and more than 500 populations.

    References
    ----------
    Bun, Drechsler, Gaboardi, McMillan, Sarathy (2022), equations (3) to (5).

    Notes
    -----
    The density of a noisy estimate is a mixture of Laplace densities. Between two neighbouring points of two
    such mixtures the ratio of densities is monotone, and constant beyond the last point. So the loss is the
    largest logarithm of the ratio at the points.

    Examples
    --------
    >>> rules = AllocationRules(sizes=[3, 3], values=[0, 1], sample_size=4, epsilon=4.0)
    >>> one = [i for i, p in enumerate(rules.populations) if sum(min(counts) > 0 for counts in p) <= 1]
    >>> rules = rules.replace(interest=one)  # at most one stratum varies
    >>> for rule in (rules.constant(), rules.neyman(), rules.best()):
    ...     cost = rules.cost(rule)
    ...     print(round(cost.noise_scale, 4), round(cost.worst_variance, 5))
    0.0568 0.02035
    0.077 0.01186
    0.077 0.01186
    """

    sizes: Integers
    values: Numbers
    sample_size: int = Field(ge=1)
    epsilon: Numbers
    interest: Integers | None = None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.sizes.ndim != 1 or not len(self.sizes) or (self.sizes < 1).any():
            raise DeclarationError(f"sizes is {self.sizes.tolist()}; it must be one number from 1 a stratum")
        if self.values.ndim != 1 or len(np.unique(self.values)) != len(self.values) or len(self.values) < 2:
            raise DeclarationError(f"values is {self.values.tolist()}; it must be two or more numbers")
        fits = self.epsilon.shape in ((), self.sizes.shape) and (self.epsilon > 0).all()
        require(fits, "epsilon", self.epsilon.tolist(), "be above 0, a number or one for each stratum")
        if self.sample_size < (k := len(self.sizes)):
            raise DeclarationError(f"sample_size is {self.sample_size}; {k} strata need a record each")
        count = np.prod([comb(int(n) + len(self.values) - 1, int(n)) for n in self.sizes], dtype=float)
        if count > _MOST:
            raise DeclarationError(f"there are {count:.0f} populations; at most {_MOST} are listed")
        if self.interest is not None and not set(self.interest.tolist()) <= set(range(int(count))):
            raise DeclarationError(f"interest has positions beyond the {count:.0f} populations")
        return self

    @cached_property
    def populations(self) -> list[tuple[tuple[int, ...], ...]]:
        """How many records of each stratum have each value, for each population."""
        return list(product(*(_parts(int(n), len(self.values)) for n in self.sizes)))

    @cached_property
    def choices(self) -> Array:
        """The sizes of a sample to choose from, shape ``(c, k)``."""
        found = product(*(range(1, int(n) + 1) for n in self.sizes))
        return np.array([m for m in found if sum(m) <= self.sample_size])

    @cached_property
    def laws(self) -> list[list[tuple[Array, Array]]]:
        """The estimates and their probabilities, by population and choice."""
        return [[self._law(p, m) for m in self.choices] for p in self.populations]

    @cached_property
    def variances(self) -> Array:
        """The variance of the estimate without noise, shape ``(populations, c)``."""
        return np.array([[w @ x**2 - (w @ x) ** 2 for x, w in row] for row in self.laws])

    @cached_property
    def neighbours(self) -> list[tuple[int, int, Array]]:
        """Populations that differ in a record, with the scale that each pair of choices needs."""
        at = {population: i for i, population in enumerate(self.populations)}
        loss = np.broadcast_to(self.epsilon, self.sizes.shape)
        found = []
        for population, i in at.items():
            for stratum, counts in enumerate(population):
                for old, new in product(range(len(counts)), repeat=2):
                    if old < new and counts[old]:
                        moved = list(counts)
                        moved[old], moved[new] = moved[old] - 1, moved[new] + 1
                        other = (*population[:stratum], tuple(moved), *population[stratum + 1 :])
                        j, epsilon = at[other], float(loss[stratum])
                        pairs = [[least_scale(a, b, epsilon) for b in self.laws[j]] for a in self.laws[i]]
                        found.append((i, j, np.array(pairs)))
        return found

    def cost(self, rule: Any) -> RuleNoise:
        """The noise that a rule needs, and the largest variance with it.

        Parameters
        ----------
        rule : array_like
            For each population the position of its sizes in `choices`, shape ``(populations,)``.
        """
        chosen, n, most = as_numbers(rule, "rule"), len(self.populations), len(self.choices) - 1
        if chosen.shape != (n,) or not np.isin(chosen, range(most + 1)).all():
            raise DeclarationError(f"rule must be {n} positions of choices, 0 to {most}")
        m = chosen.astype(np.int64)
        scale = max(float(needs[m[i], m[j]]) for i, j, needs in self.neighbours)
        counted = slice(None) if self.interest is None else self.interest
        return RuleNoise(scale, float(self.variances[np.arange(len(m)), m][counted].max() + 2 * scale**2))

    def neyman(self) -> Array:
        """The sizes of least variance for each population, equation (3); the first of equal ones."""
        return np.asarray(self.variances.argmin(axis=1))

    def constant(self) -> Array:
        """The best sizes that do not depend on the population."""
        rules = [np.full(len(self.populations), c) for c in range(len(self.choices))]
        return min(rules, key=lambda rule: self.cost(rule).worst_variance)

    def best(self, backend: str | None = None) -> Array:
        """The rule of least worst variance, equation (5), by an integer program.

        Parameters
        ----------
        backend : str, optional
            Of the program.
        """
        model, shape = Model("allocation rule"), self.variances.shape
        chosen = model.variable("chosen", shape, binary=True)
        worst, squared = model.variable("worst", lower=0), model.variable("squared_scale", lower=0)
        unit = self.cost(self.constant()).worst_variance or 1.0
        counted = slice(None) if self.interest is None else self.interest
        variance = (chosen * (self.variances / unit)).sum(axis=1)
        model.subject_to(chosen.sum(axis=1) == 1, worst >= variance[counted])
        for i, j, needs in self.neighbours:
            for one, other, square in ((i, j, needs**2 / unit), (j, i, needs.T**2 / unit)):
                most = square.max(axis=1)
                model.subject_to(squared >= square @ chosen[other] - most * (1 - chosen[one]))
        model.minimize(worst + 2 * squared)
        found = model.solve(backend)
        if not found.status.has_solution:
            raise DeclarationError(f"the program ended {found.status}: {found.message}")
        return np.asarray(np.asarray(found[chosen]).argmax(axis=1))

    def _law(self, population: tuple[tuple[int, ...], ...], sizes: Array) -> tuple[Array, Array]:
        points, weights = np.zeros(1), np.ones(1)
        for counts, m, n in zip(population, sizes, self.sizes, strict=True):
            drawn = [
                d for d in _parts(int(m), len(counts)) if all(a <= b for a, b in zip(d, counts, strict=True))
            ]
            ways = np.array([np.prod([comb(c, a) for c, a in zip(counts, d, strict=True)]) for d in drawn])
            means = np.array(drawn) @ self.values * (n / (m * self.sizes.sum()))
            points = np.add.outer(points, means).ravel()
            weights = np.multiply.outer(weights, ways / ways.sum()).ravel()
        return points, weights


def _parts(total: int, kinds: int) -> list[tuple[int, ...]]:
    """All ways to write a number as an ordered sum of `kinds` numbers from 0."""
    if kinds == 1:
        return [(total,)]
    return [(first, *rest) for first in range(total + 1) for rest in _parts(total - first, kinds - 1)]


def least_scale(one: tuple[Array, Array], other: tuple[Array, Array], epsilon: float) -> float:
    """The least scale of Laplace noise with which two laws differ by at most a loss.

    Parameters
    ----------
    one, other : tuple of two Arrays
        Points and their probabilities.
    epsilon : float
        The loss.

    Notes
    -----
    More Laplace noise never shows more: noise of a larger scale is noise of a smaller one plus independent
    noise. So bisection finds the least scale.
    """
    points = np.concatenate([one[0], other[0]])
    high = float(np.ptp(points)) / epsilon
    if high == 0:
        return 0.0
    low = high * LEAST_SCALE

    def private(scale: float) -> bool:
        near = [np.exp(-np.abs(points[:, None] - x) / scale) @ w for x, w in (one, other)]
        with np.errstate(divide="ignore", invalid="ignore"):
            return bool((np.abs(np.log(near[0]) - np.log(near[1])) <= epsilon).all())

    if private(low):
        return 0.0
    for _ in range(60):  # to the last bit
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if private(middle) else (middle, high)
    return high
