"""The classical laws at their exact scales: Laplace, Gaussian, and the k-norm mechanism."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log, sqrt

from forcopt.clock import Deadline
from forcopt.errors import DeclarationError
from forcopt.models.counting_queries.calibration import gaussian_shift, least_size
from forcopt.models.counting_queries.problem import CountingQueries
from forcopt.privacy.noises import DiscreteGaussian, DiscreteLaplace, Gaussian, KNorm, Laplace, Noise
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["calibrated", "gaussian", "k_norm", "laplace", "needs_delta"]


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
    tolerance = 1e-9 if problem.whole else 1e-11
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
    step = 1e-15
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
