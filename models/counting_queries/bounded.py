"""Bounded noise: the best power of the density (1 - x^2 / R^2)^m, each at its exact radius."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import scipy

from forcopt.clock import Deadline
from forcopt.errors import DeclarationError
from forcopt.models.counting_queries.calibration import gaussian_shift, is_number, least_size, needs_delta
from forcopt.models.counting_queries.problem import CountingQueries
from forcopt.models.counting_queries.tolerances import SIZE, TRIED_POWER, WHOLE_SIZE
from forcopt.privacy.noises import BoundedNoise, Noise
from forcopt.problem import Outcome
from forcopt.status import Status


@CountingQueries.algorithm("bounded", cites="Dagan and Kur (2022)", rank="published")
def bounded(
    problem: CountingQueries, *, power: float | None = None, time_limit: float | None = None
) -> Outcome:
    """Bounded noise at its exact radius; the power is searched for if none is given.

    Every error then is at most the radius, and the mean of the largest is near it for many queries.

    Parameters
    ----------
    problem : CountingQueries
        The problem.
    power : float, optional
        The power of the noise, positive; the best one by default.
    time_limit : float, optional
        Seconds.

    Returns
    -------
    Outcome
        The noise, without a bound.
    """
    needs_delta(problem, "bounded")
    if power is not None and not (is_number(power) and power > 0):
        raise DeclarationError(f"power is {power!r}; it must be positive and finite")
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
        found = at(float(np.exp(log_power)), TRIED_POWER)
        if best is None or found[0] < best[0]:
            best = found
        return found[0]

    try:
        if power is None:
            near = scipy.optimize.minimize_scalar(limit, bounds=(log(1.2), log(60.0)), method="bounded").x
            bounds = (max(log(0.6), near - 0.6), near + 0.8)
            scipy.optimize.minimize_scalar(
                objective, bounds=bounds, method="bounded", options={"xatol": 5e-3}
            )
            assert best is not None
            power = best[1].power  # type: ignore[attr-defined]
        law = at(power, SIZE)[1]
        if problem.whole:
            fixed = power
            size = least_size(
                problem,
                lambda r: BoundedNoise(power=fixed, radius=r).on_integers(),
                law.radius,  # type: ignore[attr-defined]
                deadline,
                WHOLE_SIZE,
            )
            law = BoundedNoise(power=power, radius=size).on_integers()
        return Outcome(law, iterations=count)
    except TimeoutError as error:
        if best is None or problem.whole:
            return Outcome(None, status=Status.LIMIT, message=str(error), iterations=count)
        return Outcome(best[1], message=str(error), iterations=count)
