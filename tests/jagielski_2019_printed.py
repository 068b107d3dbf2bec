"""The plan of the private game as printed: Jagielski et al. (2019), Algorithm 3, Lemmas 4.1 and 4.2."""

from __future__ import annotations

from math import ceil, log, sqrt

from forcopt.errors import DeclarationError
from forcopt.models.fair_classification.dp_oracle_learner import PrivatePlan


def printed_plan(
    *,
    records: int,
    groups: int,
    capacity: float,
    smallest: float,
    epsilon: float,
    delta: float,
    bound: float,
    beta: float = 0.05,
) -> tuple[PrivatePlan, float]:
    """The parameters of Algorithm 3 and the bounds of Lemmas 4.1 and 4.2, as printed.

    Parameters
    ----------
    records : int
        M.
    groups : int
        K, at least 2.
    capacity : float
        ``d ln(m)`` for a class of VC dimension d, or ln of the number of classifiers.
    smallest : float
        The records of the smallest cell (group, label), above 1.
    epsilon : float
        Of everything, by advanced composition (Lemma A.3, which is stated for epsilon < 1).
    delta : float
        Above 0.
    bound : float
        B.
    beta : float, default 0.05
        See `plan`.

    Returns
    -------
    tuple[PrivatePlan, float]
        The plan, and the real number T that its rounds round up; `noise` is for each entry of the gradient.

    Examples
    --------
    >>> p, t = printed_plan(records=20000, groups=2, capacity=10 * log(20000), smallest=2000, epsilon=1.0,
    ...                     delta=1e-7, bound=10)
    >>> round(t, 4), round(p.epsilon, 6), round(p.noise, 6), round(p.learner, 2), round(p.auditor, 2)
    (7.5028, 0.022016, 0.090889, 195.27, 25.48)
    """
    if groups < 2 or smallest <= 1 or not 0 < delta < 1:
        raise DeclarationError(
            f"groups is {groups}, smallest {smallest:g} and delta {delta:g}; they must be at least 2, above "
            "1 and strictly between 0 and 1"
        )
    chance = sqrt(log(1 / delta))
    goods = log(4 * groups - 3)
    changed = 2 * groups * bound + 1
    real = bound * sqrt(goods) * records * epsilon / (2 * changed * chance * (capacity + log(2 / beta)))
    rounds = max(1, ceil(real))
    step = 0.5 * sqrt(goods / rounds)
    each = epsilon / (4 * sqrt(rounds) * chance)
    noise = 2 * groups / (smallest - 1) / each
    learner = 2 * changed / (smallest - 1) / each * (capacity + log(2 * rounds / beta))
    loud = 1 + noise / 2 * log(8 * rounds * groups / beta)
    auditor = bound * goods / (step * rounds) + 4 * step * bound * loud**2
    return PrivatePlan(rounds, step, bound, each, noise, changed / (smallest - 1), learner, auditor), real
