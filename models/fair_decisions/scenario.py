"""A rule for formula grants whose slacks are fitted to sampled noise, and checked on a fresh sample."""

from __future__ import annotations

import numpy as np
import scipy

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.errors import DeclarationError
from forcopt.models.fair_decisions.grant_rules import finite_or_infeasible
from forcopt.models.fair_decisions.grants import FormulaGrant
from forcopt.privacy.randomness import Simulated
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["scenario"]

_CELLS_AT_ONCE = 2_000_000
_SAFETY = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0])
"""Standard errors by which the fitted frequency of failures stays below the check's limit."""


@FormulaGrant.algorithm("scenario", cites="Clopper and Pearson (1934); sampled slacks", rank="published")
def scenario(
    problem: FormulaGrant,
    *,
    seed: int | np.random.Generator | None = None,
    samples: int = 20_000,
    confidence: float = 0.999,
    time_limit: float | None = None,
) -> Outcome:
    """Fit one slack u for all districts and v of the total to samples of the noise.

    Among the pairs for which few enough of `samples` draws have a noise below -u or a weighted sum above v,
    the one of least inflation is taken. Unlike `exact-quantile` it counts draws in which both happen once.
    A second sample of the same size then gives the guarantee: the upper Clopper-Pearson bound on the
    probability of failure. The fit leaves room for the sampling errors of both samples; if the bound exceeds
    `failure` all the same, larger slacks are taken, each with a share of the error probability.

    Parameters
    ----------
    problem : FormulaGrant
        Which.
    seed : int or numpy.random.Generator, optional
        Required.
    samples : int, default 20,000
        Draws of all noises, in each of the two samples.
    confidence : float, default 0.999
        Of the guarantee, within (0, 1).
    time_limit : float, optional
        Seconds.

    Returns
    -------
    Outcome
        Its guarantee is the bound on the probability that any district loses, whatever the true counts are.

    References
    ----------
    Clopper, Pearson: The use of confidence or fiducial limits illustrated in the case of the binomial.
    Biometrika 26, 1934.
    """
    if seed is None:
        raise DeclarationError("seed is None; scenario samples the noise and needs a seed")
    if samples < 2 or not 0 < confidence < 1:
        raise DeclarationError(
            f"samples is {samples} and confidence {confidence:g}; they must be at least 2 and within (0, 1)"
        )
    deadline, rng = Deadline(time_limit), Simulated(np.random.default_rng(seed))
    drawn = [_draw(problem, samples, rng, deadline) for _ in range(2)]
    if any(part is None for part in drawn):
        return Outcome(None, status=Status.LIMIT, message=f"{deadline.end} while the noise was drawn")
    (lows, sums), (fresh_lows, fresh_sums) = (part for part in drawn if part is not None)
    miss = (1 - confidence) / len(_SAFETY)
    error = np.sqrt(problem.failure * (1 - problem.failure) / samples)
    for safety in _SAFETY:
        allowed = int(samples * (problem.failure - (3.0 + safety) * error))
        if allowed < 0:
            continue
        u, v = _fit(problem, lows, sums, allowed)
        failures = int(((fresh_lows > u) | (fresh_sums > v)).sum())
        bound = (
            float(scipy.stats.beta.ppf(1 - miss, failures + 1, samples - failures))
            if failures < samples
            else 1.0
        )
        if bound <= problem.failure:
            outcome = finite_or_infeasible(problem, problem.rule(u, v))
            outcome.guarantee = bound
            return outcome
    return Outcome(
        None,
        status=Status.FAILED,
        message=f"{samples} samples do not show a failure of {problem.failure:g}; take more of them",
    )


def _draw(
    problem: FormulaGrant, samples: int, rng: Simulated, deadline: Deadline
) -> tuple[Array, Array] | None:
    """The least slack that each draw of the noises needs, and its weighted sum; None after the deadline."""
    w, noise = problem.district_weights, problem.mechanism.noise
    lows, sums, rows = [], [], max(1, _CELLS_AT_ONCE // len(w))
    for start in range(0, samples, rows):
        if deadline.passed:
            return None
        draws = noise.sample((min(rows, samples - start), len(w)), rng)
        lows.append(-draws.min(axis=1))
        sums.append(draws @ w)
    return np.concatenate(lows), np.concatenate(sums)


def _fit(problem: FormulaGrant, lows: Array, sums: Array, allowed: int) -> tuple[float, float]:
    """The pair of the least inflation with at most this many failures in the sample."""
    total, weight = problem.total, float(problem.district_weights.sum())
    order = np.argsort(lows)
    best = (np.inf, 0.0, 0.0)
    for above in np.unique(np.linspace(0, allowed, 201).astype(int)):
        u = max(float(lows[order[len(order) - 1 - above]]), 0.0)
        kept = sums[lows <= u]
        rest = allowed - (len(sums) - len(kept))
        if rest < 0:
            continue
        v = float(np.partition(kept, len(kept) - 1 - rest)[len(kept) - 1 - rest])
        value = (total + weight * u) / (total - v) if total > v else 1e9 * (1 + v / total)
        best = min(best, (value, u, v))
    return best[1], best[2]
