"""Thresholds on scores that are differentially private in the groups: a noisy histogram, relaxed rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from forcopt.arrays import Array, as_numbers
from forcopt.clock import Deadline
from forcopt.errors import DeclarationError
from forcopt.fairness import CountNoise, GroupRates
from forcopt.language.model import Model
from forcopt.models.fair_postprocessing.decision import RandomizedThresholds
from forcopt.models.fair_postprocessing.problem import emptied
from forcopt.models.fair_postprocessing.scores import ScorePostprocessing
from forcopt.privacy import Accountant, AdditiveMechanism, Laplace, randomness
from forcopt.problem import Outcome
from forcopt.status import Status

SENSITIVITY = 2.0
"""The change of the histogram by one person's group: one cell loses one, another gains one."""


@ScorePostprocessing.algorithm(
    "dp-thresholds",
    private=True,
    cites="Hardt, Price and Srebro (2016), section 4.2; Jagielski et al. (2019), Algorithm 1",
)
def dp_thresholds(
    problem: ScorePostprocessing,
    *,
    edges: Any = None,
    beta: float = 0.05,
    accountant: Accountant | None = None,
    backend: str | None = None,
    time_limit: float | None = None,
    seed: int | np.random.Generator | None = None,
) -> Outcome:
    """Count the records between public thresholds with Laplace noise, and mix these thresholds.

    The decision is epsilon-differentially private in the groups of the records: it is computed from the noisy
    histogram alone. Scores, labels and the number of records are not protected.

    Parameters
    ----------
    problem : ScorePostprocessing
        With `privacy`, and no weights.
    edges : array_like
        The thresholds, m different numbers. They must be **public**: quantiles of the scores in a group would
        reveal the group.
    beta : float, default 0.05
        The probability with which the bounds may fail.
    accountant : Accountant, optional
        The ledger of all releases about the same people. The run spends from it before it counts, whether it
        then succeeds, fails or is simulated.
    seed : int or numpy.random.Generator, optional
        For an experiment that can be repeated, which simulates privacy only; without one OpenDP draws the
        noise.

    Raises
    ------
    DeclarationError
        Without privacy or edges, and with weights.
    BudgetSpentError
        If the accountant's budget does not allow the run.

    Notes
    -----
    With B = m + 1 bins and K groups, all 2 K B noises stay within N = 2 ln(2 K B / beta) / epsilon with
    probability 1 - beta. A record of bin b is predicted 1 with probability p[b], and a rate lies between the
    least and the largest of the probabilities that it averages; so a rate over c cells of a group is off by
    at most s = (c - 1) N / (noisy records). Rows that are relaxed by s keep the best fair mixture of these
    thresholds feasible: the error is at most 2 K B N / n above its error. No disparity is above tolerance by
    more than twice the sum of two groups' s; no loss is above its bound by more than 2 s; and ``rate_a`` is
    not below ``ratio * rate_b`` by more than ``2 (s_a + ratio * s_b)``. This is the argument of Theorem 3.1
    of Jagielski et al., with B values in place of two. A union of g groups has g times as many cells. The
    rows of predictive values, multiplied out, are sums with weights that differ by 1 between the labels. They
    are relaxed by B N, and true counts break them by at most 2 B N records.

    If no mixture meets the relaxed rows, then with probability 1 - beta none meets the constraint. The run
    fails with this message, which is computed from the noisy histogram, too.
    """
    deadline = Deadline(time_limit)
    privacy = problem.privacy
    if privacy is None:
        raise DeclarationError("dp-thresholds needs privacy, such as PrivacyBudget(epsilon=1.0)")
    if problem.weights is not None:
        raise DeclarationError("dp-thresholds counts records: weights have no bound, so it takes none")
    if not 0 < beta < 1:
        raise DeclarationError(f"beta is {beta!r}; it must be strictly between 0 and 1")
    if edges is None:
        raise DeclarationError("dp-thresholds needs edges: the public thresholds to choose among")
    cuts = np.unique(as_numbers(edges, "edges"))
    counts = _histogram(problem, cuts)
    bins, groups = counts.shape[0], len(problem.group_names)
    noise = SENSITIVITY / privacy.epsilon * float(np.log(2 * groups * bins / beta))
    rng = randomness(seed=seed)
    mechanism = AdditiveMechanism(
        Laplace(scale=SENSITIVITY / privacy.epsilon), sensitivity=SENSITIVITY, dimension=counts.size
    )
    if accountant is not None:
        accountant.spend(mechanism, name="dp-thresholds", neighbours="substitute")
    noisy = np.asarray(mechanism.release(counts, rng))

    model = Model("private thresholds")
    chance = model.variable("chance", shape=(bins, groups), lower=0, upper=1)
    model.subject_to(chance[1:] - chance[:-1] >= 0, name="rising")
    rates = GroupRates(
        (noisy * chance[:, :, None]).sum(axis=0),
        noisy.sum(axis=0),
        problem.group_names,
        noise=CountNoise(noise, np.full(groups, bins)),
    )
    if reason := emptied(rates, problem.constraint):
        return Outcome(None, private=True, status=Status.FAILED, message=reason)
    model.subject_to(problem.constraint.rows(rates))
    model.minimize(rates.total(((0, 1), (1, 0))).sum() / float(len(problem.scores)))
    result = model.solve(backend or "highs", time_limit=deadline.left)
    if result.status is Status.INFEASIBLE:
        none = f"with probability {1 - beta:g} no mixture of these thresholds meets the constraint"
        return Outcome(None, private=True, status=Status.FAILED, message=none)
    if not result.status.has_solution:
        return Outcome(None, private=True, status=result.status, message=result.message)
    private = f"{privacy.epsilon:g}-differentially private in the groups of the records"
    if rng.simulated:
        private = f"a simulation with a seed, so not private; without a seed it would be {private}"
    excess = 2 * groups * bins * noise / len(problem.scores)
    return Outcome(
        _decision(problem.group_names, cuts, result[chance]),
        iterations=result.iterations,
        private=True,
        message=f"{private}; with probability {1 - beta:g} all noises stay within {noise:.6g} and the error "
        f"is at most {excess:.4g} above the error of the best fair mixture of these thresholds",
    )


def _histogram(problem: ScorePostprocessing, cuts: Array) -> Array:
    """How many records there are between the thresholds, indexed ``[bin, group, label]``."""
    place = np.searchsorted(cuts, problem.scores, side="right")
    names = list(problem.group_names)
    codes = np.array([names.index(g) for g in problem.groups])
    shape = (len(cuts) + 1, len(names), 2)
    cells = (place * len(names) + codes) * 2 + problem.labels
    return np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape)


def _decision(groups: tuple[str, ...], cuts: Array, chance: Array) -> RandomizedThresholds:
    """The probability of each threshold: by how much the chance of a prediction of 1 rises there."""
    rising = np.maximum.accumulate(np.clip(chance, 0.0, 1.0), axis=0)
    ends = np.vstack([np.zeros((1, len(groups))), rising, np.ones((1, len(groups)))])
    weights = np.diff(ends, axis=0)
    thresholds = np.concatenate([[-np.inf], cuts, [np.inf]])
    kept = [np.flatnonzero(column > 0) for column in weights.T]
    return RandomizedThresholds(
        groups,
        tuple(thresholds[k] for k in kept),
        tuple(column[k] for column, k in zip(weights.T, kept, strict=True)),
    )
