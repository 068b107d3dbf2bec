"""The generalized Gaussian mechanism with the paper's own scale, and its guarantee."""

from __future__ import annotations

from math import inf, log, sqrt

from scipy.special import gammainc, gammaincc

from forcopt.errors import DeclarationError
from forcopt.models.counting_queries.problem import CountingQueries
from forcopt.privacy.noises import GeneralizedGaussian
from forcopt.problem import Outcome

__all__ = ["even_shape", "ganesh_zhao", "out_of_range", "theorem17_error", "theorem17_scale"]


def theorem17_scale(queries: int, epsilon: float, delta: float, shape: float) -> float:
    """``185 sqrt(k p log(1 / delta)) / epsilon``.

    >>> round(theorem17_scale(1000, 1.0, 1e-6, 4), 3)
    43489.578
    """
    return 185 * sqrt(queries * shape * log(1 / delta)) / epsilon


def theorem17_error(queries: int, epsilon: float, delta: float, shape: float, t: float = 1.0) -> float:
    """``1480 t sqrt(k p log(1 / delta)) log^(1/p) k / epsilon``, as the proof has it.

    >>> round(theorem17_error(1000, 1.0, 1e-6, 4), 2)
    564039.37
    """
    return float(8 * t * theorem17_scale(queries, epsilon, delta, shape) * log(queries) ** (1 / shape))


def out_of_range(queries: int, epsilon: float, delta: float, shape: float) -> str:
    """The condition of Theorem 17 that does not hold, as its proof needs it; empty if all do.

    The lower limit on delta is explicit: twice the probability that ``Gamma(k / p)`` is not within a factor
    2 of its mean, which is below ``2 e^(-.001 k / p)``.
    """
    k, p = queries, shape
    if not (p >= 4 and p % 2 == 0):
        return f"the shape p = {p:g} must be even and at least 4"
    if p > log(k):
        return f"the shape p = {p:g} must be at most log k = {log(k):.4g}"
    if k < 4 * p * p:
        return f"k = {k} must be at least 4 p^2 = {4 * p * p:g} (Fact 12)"
    if delta <= 0:
        return "delta = 0 must be positive: the loss is unbounded"
    if delta > 1 / k:
        return f"delta = {delta:g} must be at most 1 / k = {1 / k:.4g}"
    if log(1 / delta) > k / 36:
        return f"log(1 / delta) = {log(1 / delta):.4g} must be at most k / 36 = {k / 36:.4g}"
    tail = 2 * float(gammainc(k / p, k / p / 2) + gammaincc(k / p, 2 * k / p))
    if delta < tail:
        return (
            f"delta = {delta:g} must be at least twice the tail of Gamma(k / p) beyond a factor 2, {tail:.4g}"
        )
    # Lemma 14: the loss is at most epsilon
    power = (epsilon / (185 * sqrt(p * log(1 / delta)))) ** p  # k^(p/2) / scale^p
    if 128 * p ** (1 / p) / 185 * epsilon + 4 * p * p * power > epsilon:
        return f"epsilon = {epsilon:g} is too large for Lemma 14"
    return ""


def even_shape(problem: CountingQueries) -> int:
    """The even shape from 4 to log k with the least error in Theorem 17; 4 for log k below 4."""
    candidates = range(4, max(5, int(log(problem.queries)) + 1), 2)
    return min(candidates, key=lambda p: sqrt(p) * log(max(problem.queries, 2)) ** (1 / p))


def _guarantee(problem: CountingQueries) -> float:
    """The proved error; infinite where the theorem does not apply."""
    budget = problem.queries, problem.epsilon, problem.delta
    shape = even_shape(problem)
    return inf if out_of_range(*budget, shape) else theorem17_error(*budget, shape)


@CountingQueries.algorithm(
    "ganesh-zhao", guarantee=_guarantee, cites="Ganesh and Zhao (2021), Theorem 17", rank="published"
)
def ganesh_zhao(
    problem: CountingQueries, *, shape: int | None = None, time_limit: float | None = None
) -> Outcome:
    """The paper's scale for an even shape, by default the one with the least proved error.

    It is refused where the theorem's proof does not apply, with the condition that fails. The exact scale of
    the same shape is smaller by a factor of more than a hundred. It takes no time worth a limit.

    Parameters
    ----------
    problem : CountingQueries
        The problem.
    shape : int, optional
        An even number, at least 2.
    time_limit : float, optional
        Seconds.

    Returns
    -------
    Outcome
        The noise, without a bound.
    """
    p = even_shape(problem) if shape is None else shape
    k, epsilon, delta = problem.queries, problem.epsilon, problem.delta
    broken = out_of_range(k, epsilon, delta, p)
    if broken:
        raise DeclarationError(f"ganesh-zhao: Theorem 17 does not apply: {broken}")
    if problem.error == "mean":
        raise DeclarationError('ganesh-zhao: Theorem 17 bounds the largest error; error must be "max"')
    noise = GeneralizedGaussian(shape=float(p), scale=theorem17_scale(k, epsilon, delta, p))
    law = noise.on_integers() if problem.whole else noise
    return Outcome(law, guarantee=theorem17_error(k, epsilon, delta, p))
