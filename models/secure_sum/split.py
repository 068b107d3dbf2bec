"""Two budgets that add up, each of them exact: the price of not accounting for shares and check together."""

from __future__ import annotations

from math import inf, sqrt

from forcopt.clock import Deadline
from forcopt.models.secure_sum.accounting import gaussian_epsilon, least_check_noise
from forcopt.models.secure_sum.gap import exact_gap
from forcopt.models.secure_sum.problem import SecureSum
from forcopt.models.secure_sum.search import Search
from forcopt.models.secure_sum.talwar import check_fraction
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["split"]

DELTAS = (0.1, 0.5)


@SecureSum.algorithm("split", cites="Talwar (2022), Theorem 16 with exact parts", rank="published")
def split(problem: SecureSum, *, fraction: float | None = None, time_limit: float | None = None) -> Outcome:
    """Give the shares a budget of their own, and the check the rest.

    Parameters
    ----------
    problem : SecureSum
        Which.
    fraction : float, optional
        The share of epsilon that the check gets. By default all that the shares leave over.
    time_limit : float, optional
        Seconds.

    Returns
    -------
    Outcome
        The best of two splits of delta, of the four most promising steps, and of k by a pattern search. Never
        better than `enumeration`.
    """
    check_fraction(fraction)
    deadline = Deadline(time_limit)
    search = Search(problem)
    chosen, best = None, inf
    cap = problem.most_projections or 2000
    ordered = sorted(search.candidates, key=lambda c: float(search.bound(c, min(64, cap)).min()))
    for candidate in ordered[:4]:
        for part in DELTAS:
            spent = gaussian_epsilon(sqrt(candidate.loss), part * problem.delta)
            left = problem.epsilon - spent if fraction is None else fraction * problem.epsilon
            if left <= 0 or left + spent > problem.epsilon * (1 + 1e-12):
                continue
            k = min(33, cap)
            width = 32
            while width >= 1 and not deadline.passed:  # the gap falls and then grows in k
                trial = [j for j in (k - width, k, k + width) if 1 <= j <= cap]
                found = []
                for j in trial:
                    noise = least_check_noise(left, (1 - part) * problem.delta, j, 0.0, problem.honest)
                    noise *= candidate.norm
                    rule = exact_gap(
                        j,
                        problem.servers,
                        noise,
                        problem.completeness,
                        problem.soundness,
                        candidate.norm,
                    )
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
