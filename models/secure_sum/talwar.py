"""Two budgets that add up: the paper's parameters in closed form, and their exact parts."""

from __future__ import annotations

from math import inf, log, sqrt

import numpy as np

from forcopt.clock import Deadline
from forcopt.errors import require
from forcopt.models.secure_sum import accounting
from forcopt.models.secure_sum.accounting import exact_gap, laurent_massart, printed_gap, printed_sigma
from forcopt.models.secure_sum.problem import SecureSum
from forcopt.models.secure_sum.search import Candidate, Search
from forcopt.models.secure_sum.tolerances import ROUNDING
from forcopt.problem import Outcome
from forcopt.status import Status


@SecureSum.algorithm("talwar", guarantee=lambda problem: inf, cites="Talwar (2022)", rank="published")
def talwar(
    problem: SecureSum,
    *,
    fraction: float | None = None,
    as_printed: bool = False,
    time_limit: float | None = None,
) -> Outcome:
    """Noise by Lemma 7 and Theorem 15, the check by Theorems 13 and 14.

    Parameters
    ----------
    fraction : float, optional
        The share of epsilon that the check gets. By default all that the shares leave over.
    as_printed : bool, default False
        Keep ``c_delta`` where Theorem 15 needs ``c_(delta / 2)``.

    Returns
    -------
    Outcome
        The best step and k by these bounds; its `guarantee` is the gap of Theorem 14 less 1, since no gap is
        below 1. Half of delta goes to the shares. INFEASIBLE if the bounds leave no protocol, though others
        may exist.
    """
    return _closed(problem, fraction, as_printed, False, Deadline(time_limit))


@SecureSum.algorithm("exact-tails", cites="Talwar (2022), Theorem 15, exact quantiles", rank="published")
def exact_tails(
    problem: SecureSum, *, fraction: float | None = None, time_limit: float | None = None
) -> Outcome:
    """Noise as `talwar`, threshold and gap by exact quantiles of the chi-square law.

    Parameters
    ----------
    fraction : float, optional
        The share of epsilon that the check gets. By default all that the shares leave over.

    Returns
    -------
    Outcome
        See `talwar`.
    """
    return _closed(problem, fraction, False, True, Deadline(time_limit))


def check_fraction(fraction: float | None) -> None:
    """Check a share of epsilon."""
    require(fraction is None or 0 < fraction < 1, "fraction", fraction, "be above 0 and below 1")


def _closed(
    problem: SecureSum, fraction: float | None, as_printed: bool, exact: bool, deadline: Deadline
) -> Outcome:
    check_fraction(fraction)
    search = Search(problem)
    tail = min(problem.completeness, problem.soundness)
    most = problem.most_projections or int(max(2000, 100 * log(1 / tail)))
    k = np.arange(1, most + 1)
    best: tuple[float, Candidate, int, float] | None = None
    for candidate in search.candidates:
        if deadline.passed:
            break
        spent = printed_sigma(1.0, problem.delta / 2) * sqrt(candidate.loss)
        left = problem.epsilon - spent if fraction is None else fraction * problem.epsilon
        if left <= 0 or left + spent > problem.epsilon * (1 + ROUNDING):
            continue
        unit = candidate.norm / sqrt(problem.honest)
        noise = accounting.printed_check_noise(left, problem.delta / 2, k, as_printed) * unit
        squares = candidate.norm**2, problem.servers * k * noise**2
        if exact:
            high, low = search.quantiles(most)
        else:
            high = laurent_massart(k, problem.completeness)[1]
            low = laurent_massart(k, problem.soundness)[0]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(low > 0, high / low, inf)
            gaps = np.where(low > 0, squares[0] * ratio + squares[1] * (ratio - 1), inf)
        at = int(np.argmin(gaps))
        if np.isfinite(gaps[at]) and (best is None or gaps[at] < best[0]):
            best = float(gaps[at]), candidate, int(k[at]), float(noise[at])
    if best is None:
        if deadline.passed:
            return Outcome(None, status=Status.LIMIT)
        return Outcome(None, status=Status.FAILED, message="the theorems' bounds leave no protocol")
    _, candidate, at, sigma = best
    rule = exact_gap if exact else printed_gap
    gap = rule(at, problem.servers, sigma, problem.completeness, problem.soundness, candidate.norm)
    made = search.made(candidate, at, gap.threshold, sigma)
    return Outcome(made, status=Status.APPROXIMATE, guarantee=gap.norm - 1)


DELTAS = (0.1, 0.5)


@SecureSum.algorithm("split", cites="Talwar (2022), Theorem 16 with exact parts", rank="published")
def split(problem: SecureSum, *, fraction: float | None = None, time_limit: float | None = None) -> Outcome:
    """Give the shares a budget of their own, and the check the rest.

    Parameters
    ----------
    fraction : float, optional
        The share of epsilon that the check gets. By default all that the shares leave over.

    Returns
    -------
    Outcome
        The best of two splits of delta, of the four most promising steps, and of k by a pattern search. Never
        better than `enumeration`.
    """
    check_fraction(fraction)
    deadline = Deadline(time_limit)
    search = Search(problem)
    chosen, best, tails = None, inf, (problem.completeness, problem.soundness)
    cap = problem.most_projections or 2000
    ordered = sorted(search.candidates, key=lambda c: float(search.bound(c, min(64, cap)).min()))
    for candidate in ordered[:4]:
        for part in DELTAS:
            spent = accounting.gaussian_epsilon(sqrt(candidate.loss), part * problem.delta)
            left = problem.epsilon - spent if fraction is None else fraction * problem.epsilon
            if left <= 0 or left + spent > problem.epsilon * (1 + ROUNDING):
                continue
            k = min(33, cap)
            width = 32
            while width >= 1 and not deadline.passed:  # the gap falls and then grows in k
                trial = [j for j in (k - width, k, k + width) if 1 <= j <= cap]
                found = []
                for j in trial:
                    delta = (1 - part) * problem.delta
                    noise = accounting.least_check_noise(left, delta, j, 0.0, problem.honest)
                    noise *= candidate.norm
                    rule = exact_gap(j, problem.servers, noise, *tails, candidate.norm)
                    found.append((rule.norm, j, noise, rule.threshold))
                norm, j, noise, threshold = min(found)
                if norm < best:
                    best = norm
                    chosen = search.made(candidate, j, threshold, noise)
                if j == k:
                    width //= 2
                k = j
    if chosen is None:
        if deadline.passed:
            return Outcome(None, status=Status.LIMIT)
        return Outcome(None, status=Status.FAILED, message="no split of the budget leaves a protocol")
    return Outcome(chosen, status=Status.APPROXIMATE)
