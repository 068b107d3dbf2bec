"""The least size of a law that keeps a budget; classical laws, k-norm noise, and bounded noise."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, isfinite, log, sqrt
from typing import Any

import numpy as np
import scipy

from forcopt.clock import Deadline
from forcopt.errors import DeclarationError, require
from forcopt.models.counting_queries import tolerances as tol
from forcopt.models.counting_queries.problem import CountingQueries
from forcopt.privacy import BoundedNoise, DiscreteGaussian, DiscreteLaplace
from forcopt.privacy.losses import gaussian_shift
from forcopt.privacy.noises import Gaussian, KNorm, Laplace, Noise
from forcopt.problem import Outcome
from forcopt.status import Status


def is_whole(value: Any) -> bool:
    """Whether a value is an integer of Python or numpy, and no truth value."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Whether a value is a finite real number, and no truth value."""
    real = isinstance(value, int | float | np.integer | np.floating)
    return real and not isinstance(value, bool) and isfinite(value)


def least_size(
    problem: CountingQueries,
    law: Callable[[float], Noise],
    start: float,
    deadline: Deadline,
    tolerance: float = tol.SIZE,
) -> float:
    """The least size of a family of laws that is private enough.

    Parameters
    ----------
    problem : CountingQueries
        With delta above 0.
    law : callable
        The law of a size; delta falls as it grows.
    start : float
        A guess.
    deadline : Deadline
        The clock of the run.
    tolerance : float
        Of the logarithm of the size.

    Returns
    -------
    float
        A size that keeps the budget; about 8 evaluations of the profile from a good guess.

    Raises
    ------
    TimeoutError
        Once the time limit has passed.
    DeclarationError
        If no size up to e^40 times the guess is private enough.

    Examples
    --------
    >>> from forcopt.models import CountingQueries
    >>> from forcopt.privacy import Gaussian
    >>> p = CountingQueries(queries=16, epsilon=1.0, delta=1e-5)
    >>> scale = least_size(p, lambda s: Gaussian(scale=s), start=10.0, deadline=Deadline())
    >>> round(scale, 6), round(4 / gaussian_shift(1.0, 1e-5), 6)
    (14.922527, 14.922527)
    """
    target = log(problem.delta)
    seen: dict[float, float] = {}

    def over(log_size: float) -> float:
        if log_size not in seen:
            if deadline.passed:
                raise TimeoutError(f"{deadline.end} during the calibration")
            seen[log_size] = max(problem.log_delta(law(exp(log_size))), tol.LEAST_LOG_DELTA) - target
        return seen[log_size]

    slope = -max(1.0, (problem.epsilon / gaussian_shift(problem.epsilon, problem.delta)) ** 2)
    low = high = log(start)
    step = float(np.clip(-over(low) / slope, -0.7, 0.7)) or tolerance
    for k in range(80):
        there = low + step * (1.05 if k == 0 else 1.7**k)
        if over(there) * over(high) <= 0:
            low, high = sorted((there, high))
            break
        high = there
        if abs(there - log(start)) > 40:
            kind = type(law(start)).__name__
            raise DeclarationError(f"no {kind} gives delta {problem.delta:g} at epsilon {problem.epsilon:g}")
    root = float(scipy.optimize.brentq(over, low, high, xtol=tolerance, rtol=1e-15)) if low < high else low
    grow = tolerance
    while over(root) > 0:
        root, grow = root + grow, 2 * grow
    return exp(root)


def needs_delta(problem: CountingQueries, law: str) -> None:
    """Refuse pure privacy for a law whose loss is unbounded."""
    if problem.delta == 0:
        raise DeclarationError(f"delta is 0, and {law} noise has no bound: use laplace (p = 1) or k-norm")


def calibrated(
    problem: CountingQueries, law: Callable[[float], Noise], start: float, time_limit: float | None
) -> Outcome:
    """The least law of a family; status LIMIT once the time has passed."""
    tolerance = tol.WHOLE_SIZE if problem.whole else tol.SIZE
    try:
        return Outcome(law(least_size(problem, law, start, Deadline(time_limit), tolerance)))
    except TimeoutError as error:
        return Outcome(None, status=Status.LIMIT, message=str(error))


@CountingQueries.algorithm("laplace", cites="Dwork, McSherry, Nissim and Smith (2006)", rank="published")
def laplace(problem: CountingQueries, *, time_limit: float | None = None) -> Outcome:
    """Laplace noise, discrete if it must be whole: scale k / epsilon for delta 0, else the exact one."""
    family = DiscreteLaplace if problem.whole else Laplace
    pure = problem.queries / problem.epsilon
    if problem.delta == 0:
        return Outcome(family(scale=pure))
    start = min(pure, sqrt(problem.queries) / gaussian_shift(problem.epsilon, problem.delta))
    found = calibrated(problem, lambda s: family(scale=s), start, time_limit)
    if found.decision is not None and found.decision.scale > pure:
        found.decision = family(scale=pure)
    return found


@CountingQueries.algorithm("gaussian", cites="Balle and Wang (2018), Theorem 8", rank="published")
def gaussian(problem: CountingQueries, *, time_limit: float | None = None) -> Outcome:
    """Gaussian noise at its analytic scale; the discrete Gaussian if it must be whole."""
    needs_delta(problem, "Gaussian")
    scale = sqrt(problem.queries) / gaussian_shift(problem.epsilon, problem.delta)
    if problem.whole:
        return calibrated(problem, lambda s: DiscreteGaussian(scale=s), scale, time_limit)
    law = Gaussian(scale=scale)
    step = tol.SAFE_STEP
    while problem.log_delta(law) > log(problem.delta):  # on the safe side of rounding
        law, step = Gaussian(scale=scale * exp(step)), 2 * step
    return Outcome(law)


@CountingQueries.algorithm("k-norm", cites="Hardt and Talwar (2010), section 4", rank="published")
def k_norm(problem: CountingQueries, *, time_limit: float | None = None) -> Outcome:
    """The k-norm mechanism: pure privacy, mean of the largest error ``k / epsilon``.

    It takes no time worth a limit.
    """
    if problem.whole:
        raise DeclarationError("whole is True; k-norm is real noise")
    return Outcome(KNorm(scale=1 / problem.epsilon))


@CountingQueries.algorithm("bounded", cites="Dagan and Kur (2022)", rank="published")
def bounded(
    problem: CountingQueries, *, power: float | None = None, time_limit: float | None = None
) -> Outcome:
    """Bounded noise at its exact radius; the power is searched for if none is given.

    Every error then is at most the radius, and the mean of the largest is near it for many queries.

    Parameters
    ----------
    power : float, optional
        The power of the noise, positive; the best one by default.

    Returns
    -------
    Outcome
        The noise, without a bound.
    """
    needs_delta(problem, "bounded")
    require(power is None or (is_number(power) and power > 0), "power", power, "be positive and finite")
    deadline = Deadline(time_limit)
    k = problem.queries if problem.error == "max" else 1
    mu = gaussian_shift(problem.epsilon, problem.delta)
    correction, count = 0.0, 0
    best: tuple[float, Noise] | None = None
    real = problem.replace(whole=False)

    def guess(m: float) -> float:  # were the loss Gaussian; the information is finite for m > 1
        information = m * (2 * m + 1) / (m - 1) if m > 1.1 else 30.0
        return log(sqrt(problem.queries * information) / mu)

    def limit(log_power: float) -> float:
        m = float(np.exp(log_power))
        return BoundedNoise(power=m, radius=1.0).expected_max(k) * float(np.exp(guess(m)))

    def at(m: float, tolerance: float) -> tuple[float, Noise]:
        nonlocal correction, count
        start = float(np.exp(guess(m) + correction))
        radius = least_size(real, lambda r: BoundedNoise(power=m, radius=r), start, deadline, tolerance)
        correction, count = log(radius) - guess(m), count + 1
        noise = BoundedNoise(power=m, radius=radius)
        return noise.expected_max(k), noise

    def objective(log_power: float) -> float:
        nonlocal best
        found = at(float(np.exp(log_power)), tol.TRIED_POWER)
        if best is None or found[0] < best[0]:
            best = found
        return found[0]

    try:
        if power is None:
            near = scipy.optimize.minimize_scalar(limit, bounds=(log(1.2), log(60.0)), method="bounded").x
            bounds = (max(log(0.6), near - 0.6), near + 0.8)
            options: dict[str, Any] = {"bounds": bounds, "method": "bounded", "options": {"xatol": 5e-3}}
            scipy.optimize.minimize_scalar(objective, **options)
            assert best is not None
            power = best[1].power  # type: ignore[attr-defined]
        law = at(power, tol.SIZE)[1]
        if problem.whole:
            fixed = power
            size = least_size(
                problem,
                lambda r: BoundedNoise(power=fixed, radius=r).on_integers(),
                law.radius,  # type: ignore[attr-defined]
                deadline,
                tol.WHOLE_SIZE,
            )
            law = BoundedNoise(power=power, radius=size).on_integers()
        return Outcome(law, iterations=count)
    except TimeoutError as error:
        if best is None or problem.whole:
            return Outcome(None, status=Status.LIMIT, message=str(error), iterations=count)
        return Outcome(best[1], message=str(error), iterations=count)
