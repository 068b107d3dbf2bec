"""The least size of a law that keeps a budget, and the classical laws: Laplace, Gaussian, k-norm."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, isfinite, log, sqrt
from typing import Any

import numpy as np
import scipy

from forcopt.clock import Deadline
from forcopt.errors import DeclarationError
from forcopt.models.counting_queries.problem import CountingQueries
from forcopt.models.counting_queries.tolerances import LEAST_LOG_DELTA, SAFE_STEP, SIZE, WHOLE_SIZE
from forcopt.privacy.losses import gaussian_shift
from forcopt.privacy.noises import DiscreteGaussian, DiscreteLaplace, Gaussian, KNorm, Laplace, Noise
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
    tolerance: float = SIZE,
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
            seen[log_size] = max(problem.log_delta(law(exp(log_size))), LEAST_LOG_DELTA) - target
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
            raise DeclarationError(
                f"no size of {type(law(start)).__name__} gives delta {problem.delta:g} at epsilon "
                f"{problem.epsilon:g}"
            )
    root = float(scipy.optimize.brentq(over, low, high, xtol=tolerance, rtol=1e-15)) if low < high else low
    grow = tolerance
    while over(root) > 0:
        root, grow = root + grow, 2 * grow
    return exp(root)


def needs_delta(problem: CountingQueries, law: str) -> None:
    """Refuse pure privacy for a law whose loss is unbounded."""
    if problem.delta == 0:
        raise DeclarationError(
            f"delta is 0, and the loss of {law} noise is unbounded: use laplace (p = 1) or k-norm"
        )


def calibrated(
    problem: CountingQueries, law: Callable[[float], Noise], start: float, time_limit: float | None
) -> Outcome:
    """The least law of a family; status LIMIT once the time has passed."""
    tolerance = WHOLE_SIZE if problem.whole else SIZE
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
    step = SAFE_STEP
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
