"""Generalized Gaussian noise whose largest values are corrected by the sparse vector technique."""

from __future__ import annotations

from functools import cached_property
from math import log, sqrt

import numpy as np
from pydantic import Field

from forcopt.arrays import Array
from forcopt.declaration import Declared
from forcopt.errors import DeclarationError
from forcopt.models.counting_queries.calibration import is_number
from forcopt.models.counting_queries.ganesh_zhao import even_shape, out_of_range, theorem17_scale
from forcopt.models.counting_queries.problem import CountingQueries
from forcopt.models.counting_queries.tolerances import INERT
from forcopt.privacy.noises import GeneralizedGaussian
from forcopt.problem import Outcome


class SparseVector(Declared):
    """The numeric sparse vector technique on realised noise (Theorem 19; Dwork and Roth 2014, Algorithm 3).

    Parameters
    ----------
    corrections : int
        The largest number of corrected entries, c.
    threshold : float
        On the absolute value of an entry.
    epsilon, delta : float
        The budget of the technique.

    Notes
    -----
    An absolute value above the noisy threshold is answered with fresh Laplace noise, others with 0. For delta
    above 0 the scales are ``sqrt(32 c log(2 / delta)) / epsilon_i`` with
    ``epsilon_1 : epsilon_2 = sqrt(512) : 2``.

    References
    ----------
    Dwork and Roth (2014), The algorithmic foundations of differential privacy, Algorithm 3 (NumericSparse).

    Examples
    --------
    >>> technique = SparseVector(corrections=1, threshold=500.0, epsilon=1.0, delta=0.1)
    >>> noise = np.array([[0.0, 0.0, 2000.0, 0.0]])
    >>> np.flatnonzero(technique.estimate(noise, np.random.default_rng(0))).tolist()
    [2]
    """

    corrections: int = Field(ge=0)
    threshold: float = Field(gt=0.0)
    epsilon: float = Field(gt=0.0)
    delta: float = Field(gt=0.0, lt=1.0)

    @cached_property
    def scales(self) -> tuple[float, float]:
        """The scale of the noise of the threshold, and of an answer."""
        whole = sqrt(512) + 1
        base = sqrt(32 * self.corrections * log(2 / self.delta))
        return base / (sqrt(512) / whole * self.epsilon), base / (2 / whole * self.epsilon)

    def estimate(self, noise: Array, generator: np.random.Generator) -> Array:
        """Simulate the answers.

        Parameters
        ----------
        noise : Array
            Rows of realised noise, shape ``(rows, k)``.
        generator : numpy.random.Generator
            Of the technique's own noise.

        Returns
        -------
        Array
            An estimate of each entry, 0 where it is not corrected; shape ``(rows, k)``.
        """
        out = np.zeros_like(noise)
        if self.corrections == 0:
            return out
        first, second = self.scales
        for row, answers in zip(noise, out, strict=True):
            left, limit = self.corrections, self.threshold + generator.laplace(scale=first)
            seen = np.abs(row) + generator.laplace(scale=2 * first, size=len(row))
            at = 0
            while left:
                above = np.flatnonzero(seen[at:] >= limit)
                if not len(above):
                    break
                at += int(above[0])
                answers[at] = row[at] + generator.laplace(scale=second)
                left, at, limit = left - 1, at + 1, self.threshold + generator.laplace(scale=first)
        return out


@CountingQueries.algorithm("sparse-vector", cites="Ganesh and Zhao (2021), Theorem 20", rank="published")
def sparse_vector(
    problem: CountingQueries,
    *,
    t: float = 1.0,
    multiplier: float = 12.0,
    shape: int | None = None,
    time_limit: float | None = None,
) -> Outcome:
    """The composed mechanism of Theorem 20, with half of epsilon and a third of delta for the noise.

    It takes no time worth a limit.

    Parameters
    ----------
    problem : CountingQueries
        With at least 16 queries, so that log log k is above 1.
    t : float
        The error is above the bound with probability ``exp(-log^t k)`` at most.
    multiplier : float
        Of the threshold; 12 in the paper.
    shape : int, optional
        Even; by default the one with the least error in Theorem 17.
    time_limit : float, optional
        Not needed.

    Returns
    -------
    Outcome
        The noise alone, if no entry reaches the threshold; the message gives the reason. With multiplier 12
        this holds for every k up to e^12000.

    Raises
    ------
    DeclarationError
        Outside of the theorem's range, naming the condition; and for a multiplier at which entries would be
        corrected, since the corrected noise is not independent: simulate it with `SparseVector`.

    Examples
    --------
    >>> from forcopt.models import CountingQueries
    >>> s = CountingQueries(queries=10**5, epsilon=1.0, delta=1e-6).solve("sparse-vector")
    >>> s.message
    'sparse vector is inert at these constants (chance 0): no entry is corrected'
    """
    k, epsilon, delta = problem.queries, problem.epsilon, problem.delta
    if k < 16:
        raise DeclarationError(f"sparse-vector: k = {k} must be at least 16, so that log log k > 1")
    if not (is_number(t) and t > 0 and is_number(multiplier) and multiplier > 0):
        raise DeclarationError(f"t is {t!r} and multiplier {multiplier!r}; both must be positive and finite")
    p = even_shape(problem) if shape is None else shape
    broken = out_of_range(k, epsilon / 2, delta / 3, p)
    if broken:
        raise DeclarationError(
            f"sparse-vector: Theorem 17 does not apply with half of epsilon and a third of delta: {broken}"
        )
    scale = theorem17_scale(k, epsilon / 2, delta / 3, p)
    alpha = multiplier * t * log(log(k)) ** (1 / p) * scale
    corrections = min(k, int(4 * k / log(k) ** (2 + 2 * t)))
    noise = GeneralizedGaussian(shape=float(p), scale=scale)
    law = noise.on_integers() if problem.whole else noise
    chance = -np.expm1(k * np.log1p(-2 * float(noise.cdf(-alpha / 2))))
    if corrections and chance > INERT:
        sv = SparseVector(
            corrections=corrections, threshold=0.75 * alpha, epsilon=epsilon / 2, delta=delta / 3
        )
        raise DeclarationError(
            f"sparse-vector: with multiplier {multiplier:g} an entry is above alpha / 2 with probability "
            f"{chance:.3g}, and {corrections} may be corrected, with noise of scale {sv.scales[1]:.4g}: "
            f"simulate it with {sv!r}"
        )
    why = f"c = {4 * k / log(k) ** (2 + 2 * t):.3g} < 1" if not corrections else f"chance {chance:.2g}"
    return Outcome(law, message=f"sparse vector is inert at these constants ({why}): no entry is corrected")
