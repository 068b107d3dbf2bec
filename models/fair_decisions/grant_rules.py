"""Rules for formula grants: none, the printed slacks, and those from exact quantiles."""

from __future__ import annotations

import numpy as np
import scipy

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.models.fair_decisions.grants import FormulaGrant, GrantRule
from forcopt.models.fair_decisions.laplace import laplace_sum_quantile
from forcopt.models.fair_decisions.lattice import LatticeSum
from forcopt.models.fair_decisions.tolerances import LEAST, ROOT
from forcopt.privacy.noises import Noise
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["exact_quantile", "finite_or_infeasible", "least_slacks", "no_penalty", "plain"]


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
    problem : FormulaGrant
        The problem.
    as_printed : bool, default False
        Follow the paper to the letter.
    time_limit : float, optional
        Seconds.

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
