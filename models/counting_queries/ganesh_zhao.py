"""Generalized Gaussian noise: the paper's, the best shape, and corrections by sparse vectors."""

from __future__ import annotations

from functools import cached_property
from math import inf, log, sqrt

import numpy as np
import scipy
from pydantic import Field
from scipy.special import gammainc, gammaincc, gammaln

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.declaration import Declared
from forcopt.errors import DeclarationError
from forcopt.models.counting_queries.calibration import gaussian, is_number, laplace, least_size
from forcopt.models.counting_queries.problem import CountingQueries
from forcopt.models.counting_queries.tolerances import INERT, SIZE, TRIED_SHAPE, WHOLE_SIZE
from forcopt.privacy.losses import gaussian_shift
from forcopt.privacy.noises import GeneralizedGaussian, Noise
from forcopt.problem import Outcome
from forcopt.status import Status


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
        return f"delta = {delta:g} must be at least twice the tail of Gamma(k / p) beyond 2, {tail:.4g}"
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
    shape : int, optional
        An even number, at least 2.

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


LEAST_SHAPE = 1.1
"""Between this and 1 profiles of more than three draws are slow; 1 itself is tried where the best is near."""

FEW = 3
"""Up to this number of queries whole noise has a search of its own, beyond it the shape of real noise."""


def fisher_information(shape: float) -> float:
    """Of the location of generalized Gaussian noise of scale 1: ``p^2 Gamma(2 - 1/p) / Gamma(1/p)``.

    >>> round(fisher_information(2.0), 12)
    2.0
    """
    return float(shape**2 * np.exp(gammaln(2 - 1 / shape) - gammaln(1 / shape)))


@CountingQueries.algorithm("shape-search", cites="Ganesh and Zhao (2021), section 2; scales exact")
def shape_search(
    problem: CountingQueries, *, shapes: tuple[float, float] = (1.0, 32.0), time_limit: float | None = None
) -> Outcome:
    """Search the shape of generalized Gaussian noise; the scale of each is exact.

    The error is a unimodal function of the shape in all cases seen. The search starts where it is least if
    the losses' sum were Gaussian (``E max * sqrt(Fisher information)``), and is by Brent's method. Whole
    noise for more than three queries has the shape that is best for real noise, and a scale of its own. With
    delta 0 only shape 1 has a bounded loss.

    Parameters
    ----------
    shapes : tuple of float, optional
        The least and the greatest shape, from 1 up.

    Returns
    -------
    Outcome
        The noise, without a bound.
    """
    pair = isinstance(shapes, tuple | list) and len(shapes) == 2 and all(map(is_number, shapes))
    if not (pair and 1 <= shapes[0] < shapes[1]):
        raise DeclarationError(f"shapes is {shapes}; it must be two numbers from 1 up, the smaller first")
    low, high = shapes
    if problem.delta == 0:
        found = laplace(problem, time_limit=time_limit)
        found.message = "delta is 0: of these shapes only p = 1 has a bounded loss"
        return found
    deadline = Deadline(time_limit)
    k = problem.queries if problem.error == "max" else 1
    mu = gaussian_shift(problem.epsilon, problem.delta)
    whole = problem.whole and problem.queries <= FEW
    searched = problem if whole else problem.replace(whole=False)
    correction, count = 0.0, 0
    best: tuple[float, float, float] | None = None

    def law(p: float, scale: float, on_integers: bool) -> Noise:
        noise = GeneralizedGaussian(shape=p, scale=scale)
        return noise.on_integers() if on_integers else noise

    def limit(log_shape: float) -> float:
        p = float(np.exp(log_shape))
        return GeneralizedGaussian(shape=p, scale=1.0).expected_max(k) * sqrt(fisher_information(p))

    def at(p: float, tolerance: float) -> tuple[float, float, float]:
        nonlocal correction, count
        guess = log(sqrt(problem.queries * fisher_information(p)) / mu)
        start = float(np.exp(guess + correction))
        scale = least_size(searched, lambda s: law(p, s, whole), start, deadline, tolerance)
        correction, count = log(scale) - guess, count + 1
        return law(p, scale, whole).expected_max(k), p, scale

    def objective(log_shape: float) -> float:
        nonlocal best
        found = at(float(np.exp(log_shape)), TRIED_SHAPE)
        if best is None or found[0] < best[0]:
            best = found
        return found[0]

    ends = (log(max(low, LEAST_SHAPE) if problem.queries > FEW else low), log(high))
    near = scipy.optimize.minimize_scalar(limit, bounds=ends, method="bounded", options={"xatol": 1e-3}).x
    message = ""
    try:
        reach = 0.35
        while True:
            bounds = (max(ends[0], near - reach), min(ends[1], near + reach))
            options = {"xatol": 4e-3}
            found = scipy.optimize.minimize_scalar(
                objective, bounds=bounds, method="bounded", options=options
            )
            away = min(found.x - bounds[0], bounds[1] - found.x)
            if away > 0.02 or (bounds[0] == ends[0] and bounds[1] == ends[1]) or reach > 3:
                break
            near, reach = found.x, 2 * reach
        assert best is not None
        if low == 1.0 and best[1] < 1.2:
            objective(0.0)
        _, p, scale = best
        if problem.whole:
            scale = least_size(problem, lambda s: law(p, s, True), scale, deadline, WHOLE_SIZE)
        else:
            _, _, scale = at(p, SIZE)
        return Outcome(law(p, scale, problem.whole), iterations=count)
    except TimeoutError as error:
        message = str(error)
    if best is None or problem.whole != whole:
        return Outcome(None, status=Status.LIMIT, message=message, iterations=count)
    return Outcome(law(best[1], best[2], whole), iterations=count, message=message)


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
    _check_correction("sparse-vector", k, t, multiplier)
    p = even_shape(problem) if shape is None else shape
    broken = out_of_range(k, epsilon / 2, delta / 3, p)
    if broken:
        raise DeclarationError(f"sparse-vector: Theorem 17 fails at epsilon / 2 and delta / 3: {broken}")
    noise = GeneralizedGaussian(shape=float(p), scale=theorem17_scale(k, epsilon / 2, delta / 3, p))
    law = noise.on_integers() if problem.whole else noise
    return _inert("sparse-vector", noise, law, k, t, multiplier, epsilon / 2, delta / 3)


@CountingQueries.algorithm(
    "steinke-ullman",
    cites="Steinke and Ullman (2017); Ganesh and Zhao (2021), equation (3)",
    rank="published",
)
def steinke_ullman(
    problem: CountingQueries, *, t: float = 1.0, multiplier: float = 12.0, time_limit: float | None = None
) -> Outcome:
    """Gaussian noise whose largest entries sparse vectors correct, each with half of epsilon and of delta.

    Threshold and number of corrections are those of Theorem 20 for p = 2, at the exact scale.

    Parameters
    ----------
    problem : CountingQueries
        With at least 16 queries.
    t, multiplier : float
        See `sparse_vector`.
    time_limit : float, optional
        Of the calibration of whole noise.

    Returns
    -------
    Outcome
        The noise alone, if no entry reaches the threshold.

    Raises
    ------
    DeclarationError
        As `sparse_vector`, but for any delta above 0.

    Examples
    --------
    >>> from forcopt.models import CountingQueries
    >>> p = CountingQueries(queries=1000, epsilon=1.0, delta=1e-6)
    >>> [round(p.solve(method).objective, 1) for method in ("gaussian", "steinke-ullman")]
    [459.0, 906.9]
    """
    _check_correction("steinke-ullman", problem.queries, t, multiplier)
    half = problem.replace(epsilon=problem.epsilon / 2, delta=problem.delta / 2)
    found = gaussian(half, time_limit=time_limit)
    if found.decision is None:
        return found
    noise = GeneralizedGaussian(shape=2.0, scale=sqrt(2) * found.decision.scale)
    told = (problem.queries, t, multiplier, half.epsilon, half.delta)
    return _inert("steinke-ullman", noise, found.decision, *told)


def _check_correction(method: str, queries: int, t: float, multiplier: float) -> None:
    if queries < 16:
        raise DeclarationError(f"{method}: k = {queries} must be at least 16, so that log log k > 1")
    if not (is_number(t) and t > 0 and is_number(multiplier) and multiplier > 0):
        raise DeclarationError(f"t is {t!r} and multiplier {multiplier!r}; both must be positive and finite")


def _inert(
    method: str,
    noise: GeneralizedGaussian,
    law: Noise,
    queries: int,
    t: float,
    multiplier: float,
    epsilon: float,
    delta: float,
) -> Outcome:
    """The law, if the sparse vector technique with this budget corrects no entry of the noise."""
    k = queries
    alpha = multiplier * t * log(log(k)) ** (1 / noise.shape) * noise.scale
    corrections = min(k, int(4 * k / log(k) ** (2 + 2 * t)))
    chance = -np.expm1(k * np.log1p(-2 * float(noise.cdf(-alpha / 2))))
    if corrections and chance > INERT:
        sv = SparseVector(corrections=corrections, threshold=0.75 * alpha, epsilon=epsilon, delta=delta)
        raise DeclarationError(
            f"{method}: with multiplier {multiplier:g} an entry is above alpha / 2 with probability "
            f"{chance:.3g}, and {corrections} may be corrected, with noise of scale "
            f"{sv.scales[1]:.4g}: simulate it with {sv!r}"
        )
    why = f"c = {4 * k / log(k) ** (2 + 2 * t):.3g} < 1" if not corrections else f"chance {chance:.2g}"
    return Outcome(law, message=f"sparse vector is inert at these constants ({why}): no entry is corrected")
