"""Rules for formula grants: none, the printed slacks, exact quantiles, and slacks fitted to sampled noise."""

from __future__ import annotations

import numpy as np
import scipy

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.errors import DeclarationError
from forcopt.models.fair_decisions.grants import FormulaGrant, GrantRule
from forcopt.models.fair_decisions.laplace import laplace_sum_quantile
from forcopt.models.fair_decisions.lattice import LatticeSum
from forcopt.models.fair_decisions.tolerances import LEAST, ROOT
from forcopt.privacy.noises import Noise
from forcopt.privacy.randomness import Simulated
from forcopt.problem import Outcome
from forcopt.status import Status


@FormulaGrant.algorithm("plain", cites="Pujol et al. (2020), Table 2", rank="published")
def plain(problem: FormulaGrant, *, time_limit: float | None = None) -> Outcome:
    """Divide in proportion to the clipped noisy counts. About half of all districts lose."""
    return Outcome(problem.rule(0.0, 0.0, clipped=True))


@FormulaGrant.algorithm("no-penalty", cites="Pujol et al. (2020), Theorem 5.2, corrected", rank="published")
def no_penalty(
    problem: FormulaGrant, *, as_printed: bool = False, time_limit: float | None = None
) -> Outcome:
    """Add ``ln(2 k / failure)`` scales to each count, take ``k ln(2 k^2 / failure)`` of them off the total.

    The union bound over districts. Corrected, both slacks count in children, and so go by the weights;
    ``as_printed`` adds the first to the weighted count and takes the second off the weighted total, as
    section 5.3 has it, which fails more often than promised if the weights are large.

    Parameters
    ----------
    as_printed : bool, default False
        Follow the paper to the letter.

    Returns
    -------
    Outcome
        The rule, without a bound.
    """
    k, w = len(problem.eligible), problem.district_weights
    each = problem.scale * np.log(2 * k / problem.failure)
    total = problem.scale * np.log(2 * k**2 / problem.failure)
    if as_printed:
        return finite_or_infeasible(problem, problem.rule(each / w, k * total, clipped=True))
    return finite_or_infeasible(problem, problem.rule(each, float(w.sum()) * total, clipped=True))


@FormulaGrant.algorithm("exact-quantile", cites="Pujol et al. (2020), section 5.3; exact tails")
def exact_quantile(problem: FormulaGrant, *, time_limit: float | None = None) -> Outcome:
    """Take exact quantiles of the noises and of their sum, split for the least inflation.

    With ``failure = a + b``, the slacks u have ``prod_a P(L_a >= -u_a) = 1 - a`` at the least weighted sum,
    and v is exceeded by the weighted sum of the noises with probability b. It is optimal among all slacks
    whose failure is bounded in these two parts, up to the tolerance of the search for a. Under whole noise
    u is the same whole number for all districts, found by trying them from the least one on.
    """
    deadline = Deadline(time_limit)
    if isinstance(problem.noise, Noise):
        return finite_or_infeasible(problem, _whole_slacks(problem, problem.noise, deadline))
    scales = problem.scale * problem.district_weights
    w, total = problem.district_weights, problem.total
    most = min(problem.failure, 0.499)
    best: tuple[float, GrantRule] | None = None

    def inflation(logit: float) -> float:
        nonlocal best
        part = most / (1 + np.exp(-logit))
        rest = min(problem.failure - part, 0.499)
        if deadline.passed and best is not None:
            return best[0]
        u = least_slacks(part, w, problem.scale)
        v = laplace_sum_quantile(rest, scales)
        value = (total + float(w @ u)) / (total - v) if total > v else 1e9 * (1 + v / total)
        if best is None or value < best[0]:
            best = value, problem.rule(u, v)
        return value

    scipy.optimize.minimize_scalar(inflation, bounds=(-8.0, 8.0), method="bounded", options={"xatol": 0.01})
    assert best is not None
    return finite_or_infeasible(problem, best[1])


def _whole_slacks(problem: FormulaGrant, noise: Noise, deadline: Deadline) -> GrantRule:
    w, total = problem.district_weights, problem.total
    law = LatticeSum(noise, w)
    least_v = law.quantile(problem.failure)
    best: tuple[float, GrantRule] | None = None
    u = -1
    while True:
        u += 1
        part = -float(np.expm1(len(w) * np.log1p(-noise.cdf(-u - 1))))
        if part >= problem.failure:
            continue
        v = law.quantile(problem.failure - part)
        value = (total + float(w.sum()) * u) / (total - v) if total > v else 1e9 * (1 + v / total)
        if best is None or value < best[0]:
            best = value, problem.rule(u, v)
        enough = total > least_v and (total + float(w.sum()) * u) / (total - least_v) >= best[0]
        if enough or deadline.passed or part == 0:
            return best[1]


def least_slacks(failure: float, weights: Array, scale: float) -> Array:
    """Give the slacks of the least weighted sum within which all noises stay but with a given probability.

    Parameters
    ----------
    failure : float
        Above 0 and below 1/2: the probability that any ``L_a < -u_a``.
    weights : Array
        Above 0, shape ``(k,)``.
    scale : float
        Of each Laplace noise.

    Returns
    -------
    Array
        u, shape ``(k,)``. Minimising ``sum w u`` subject to ``sum ln(1 - exp(-u / scale) / 2) >=
        ln(1 - failure)``, a concave constraint, gives ``exp(-u_a / scale) / 2 = c w_a / (1 + c w_a)`` with
        one multiplier c; equal weights have ``u = -scale ln(2 (1 - (1 - failure)^(1 / k)))``.

    Examples
    --------
    >>> least_slacks(0.05, np.ones(10), 1.0)[:2].round(6).tolist()  # -log(2 (1 - .95^.1))
    [4.582197, 4.582197]
    """
    goal = -np.log1p(-failure)
    w = weights / weights.max()
    c = scipy.optimize.brentq(lambda c: np.log1p(c * w).sum() - goal, 0.0, 1.0, xtol=LEAST, rtol=ROOT)
    return np.asarray(-scale * np.log(2 * c * w / (1 + c * w)))


def finite_or_infeasible(problem: FormulaGrant, rule: GrantRule) -> Outcome:
    """Give the rule as outcome, or the reason why the noisy total would not suffice."""
    if np.isfinite(problem.evaluate(rule).objective):
        return Outcome(rule)
    districts = len(problem.eligible)
    message = (
        f"privacy budget too small for {districts} districts: {rule.total_slack:.6g} must be taken off the "
        f"total, which is about {problem.total:.6g}"
    )
    return Outcome(None, status=Status.INFEASIBLE, message=message)


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
    seed : int or numpy.random.Generator, optional
        Required.
    samples : int, default 20,000
        Draws of all noises, in each of the two samples.
    confidence : float, default 0.999
        Of the guarantee, within (0, 1).

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
