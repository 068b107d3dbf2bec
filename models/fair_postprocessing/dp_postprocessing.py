"""Private in the groups: noisy counts with relaxed rows (Algorithm 1); thresholds from noisy histograms."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from forcopt.arrays import Array, as_numbers
from forcopt.clock import Deadline
from forcopt.errors import DeclarationError
from forcopt.fairness import AllOf, CountNoise, GroupRates, Notion, RateParity
from forcopt.language.constraint import Constraint
from forcopt.language.model import Model
from forcopt.models.fair_postprocessing.decision import RandomizedThresholds
from forcopt.models.fair_postprocessing.problem import FairPostprocessing, emptied
from forcopt.models.fair_postprocessing.scores import ScorePostprocessing
from forcopt.privacy import AdditiveMechanism, Laplace, Ledger, PrivacyBudget, randomness
from forcopt.privacy.ledger import pay
from forcopt.problem import Outcome
from forcopt.status import Status

SENSITIVITY = 2.0
"""The change of counts, or of bins of scores, by one person's group: one loses one, another gains one."""


class PrivacyCost(NamedTuple):
    """The largest cost of privacy, with a given probability.

    Attributes
    ----------
    error : float
        The error rate above the non-private optimum.
    disparity : dict[str, float]
        Of each rate by its name, above the tolerance; infinite if the noise may empty a cell.
    """

    error: float
    disparity: dict[str, float]


def _privacy(problem: FairPostprocessing) -> PrivacyBudget:
    if problem.privacy is None:
        raise DeclarationError("dp-postprocessing needs privacy, such as PrivacyBudget(epsilon=1.0)")
    return problem.privacy


def _largest_noise(problem: FairPostprocessing, beta: float) -> float:
    """A bound on all 4 K noises that holds with probability 1 - beta (Theorem 2.1)."""
    if not 0 < beta < 1:
        raise DeclarationError(f"beta is {beta:g}; it must be strictly between 0 and 1")
    return SENSITIVITY / _privacy(problem).epsilon * float(np.log(4 * len(problem.groups) / beta))


def _mechanism(problem: FairPostprocessing) -> AdditiveMechanism:
    """Laplace noise on all counts."""
    noise = Laplace(scale=SENSITIVITY / _privacy(problem).epsilon)
    return AdditiveMechanism(noise, sensitivity=SENSITIVITY, dimension=problem.counts.size)


def privacy_cost(problem: FairPostprocessing, beta: float = 0.05) -> PrivacyCost:
    """The bounds of Theorem 3.1 for this instance, which hold with probability at least 1 - beta.

    The disparities depend on the fewest records that a rate is taken over. With `PrivacyBudget.floor` the
    bound is computed from that, and may be published; without, from the counts, and is as private as they
    are.

    Parameters
    ----------
    problem : FairPostprocessing
        With a `privacy` budget.
    beta : float, default 0.05
        The probability of failure, strictly between 0 and 1.

    Returns
    -------
    PrivacyCost
        The excess error and the excess disparity of each rate.

    Examples
    --------
    >>> from forcopt.fairness import EqualizedOdds
    >>> from forcopt.privacy import PrivacyBudget
    >>> counts = [[[3600, 400], [900, 500]], [[400, 1600], [600, 2000]]]
    >>> budget = PrivacyBudget(1.0, floor=1500)
    >>> p = FairPostprocessing(counts=counts, constraint=EqualizedOdds(), privacy=budget)
    >>> cost = privacy_cost(p)
    >>> round(cost.error, 5), round(cost.disparity["false positive rate"], 5)
    (0.02436, 0.02744)
    """
    noise, floor = _largest_noise(problem, beta), _privacy(problem).floor
    counts = problem.counts.sum(axis=0)
    base = problem.base if floor is None else GroupRates(0 * counts, np.full(counts.shape, floor))
    disparity = {}
    for rate in problem.constraint.rates:
        cells, fewest = int(np.sum(rate.given)), float(base.total(rate.given).min())  # (prediction, label)
        left = fewest - cells * noise
        disparity[rate.name] = 4 * (cells - 1) * noise / left if left > 0 else np.inf
    return PrivacyCost(12 * len(problem.groups) * noise / float(counts.sum()), disparity)


@FairPostprocessing.algorithm(
    "dp-postprocessing",
    guarantee=lambda problem: privacy_cost(problem).error,
    cites="Jagielski et al. (2019), Algorithm 1 and Theorem 3.1",
    private=True,
)
def dp_postprocessing(
    problem: FairPostprocessing,
    *,
    beta: float = 0.05,
    as_printed: bool = False,
    ledger: Ledger | str | None = None,
    backend: str | None = None,
    time_limit: float | None = None,
    seed: int | np.random.Generator | None = None,
) -> Outcome:
    """Add Laplace noise to the counts, and solve the linear program of the noisy table with relaxed rows.

    The decision is epsilon-differentially private in the groups of the records: whatever is done with the
    noisy table stays private. With probability 1 - beta all noises stay within N = 2 ln(4 K / beta) /
    epsilon. A rate of group a is then off by at most s_a = N / (noisy records over which it is taken), so
    that two groups may differ by the tolerance and s_a + s_b: the non-private optimum stays feasible.

    Parameters
    ----------
    problem : FairPostprocessing
        Which; must have `privacy`.
    beta : float, default 0.05
        The probability with which the bounds (`privacy_cost`) may fail.
    as_printed : bool, default False
        Compare every group with the first one only, and relax by 2 max(s_a, s_b), as the paper's LP (1) does.
        Then the bounds of Theorem 3.1 on disparities hold between each group and the first. Two other groups
        may differ by twice the sum of tolerance and bound: with three groups or more, `privacy_cost` may be
        exceeded.
    ledger : Ledger or str
        Of all releases about the same people, or its file; only a simulation does without. The run spends
        from it before it looks at the counts, whether it then succeeds, fails or is simulated.
    time_limit : float, optional
        Seconds for the linear program.
    seed : int or numpy.random.Generator, optional
        For an experiment that can be repeated, which simulates privacy only; without one OpenDP draws the
        noise.

    Raises
    ------
    DeclarationError
        Without privacy, or for a notion other than parity of rates.
    BudgetSpentError
        If the ledger's budget does not allow the run.
    """
    deadline = Deadline(time_limit)
    parities, noise = _parities_of(problem.constraint), _largest_noise(problem, beta)
    rng, mechanism = randomness(seed=seed), _mechanism(problem)
    pay(ledger, mechanism, rng, "dp-postprocessing", "substitute")
    released = partial(Outcome, private=True, profile=mechanism.profile())
    noisy = np.asarray(mechanism._send(problem.counts, rng))
    model = Model("noisy post-processing")
    probabilities = model.variable("probability", shape=(2, len(problem.groups)), lower=0, upper=1)
    rates = GroupRates(
        (noisy * probabilities[:, :, None]).sum(axis=0),
        noisy.sum(axis=0),
        problem.groups,
        noise=CountNoise(noise, np.full(len(problem.groups), 2)),
    )
    if reason := emptied(rates, problem.constraint):
        return released(None, status=Status.FAILED, message=reason)
    for notion in parities:
        model.subject_to(_anchored(notion, rates) if as_printed else notion.rows(rates))
    # The number of records is public, and unlike the noisy total it is surely positive.
    model.minimize(rates.total(((0, 1), (1, 0))).sum() / float(problem.counts.sum()))
    result = model.solve(backend or "highs", time_limit=deadline.left)
    if not result.status.has_solution:
        return released(None, status=result.status, message=result.message)
    error = privacy_cost(problem, beta).error
    private = f"{_privacy(problem).epsilon:g}-differentially private in the groups of the records"
    if rng.simulated:
        private = f"a simulation with a seed, so not private; without a seed it would be {private}"
    message = (
        f"{private}; with probability {1 - beta:g} all noises stay within {noise:.6g} "
        f"and the error is at most {error:.4g} above the optimum"
    )
    if as_printed and len(problem.groups) > 2:
        message += "; disparities are bounded against the first group, others by twice tolerance and bound"
    return released(
        problem.postprocessor(np.clip(result[probabilities], 0.0, 1.0), noisy),
        iterations=result.iterations,
        guarantee=error,
        message=message,
    )


def _parities_of(notion: Notion) -> list[RateParity]:
    """The parts of a notion, all parities of rates."""
    parts = notion.notions if isinstance(notion, AllOf) else (notion,)
    found = [part for part in parts if isinstance(part, RateParity)]
    for part in parts:
        if not isinstance(part, RateParity):
            raise DeclarationError(f"dp-postprocessing is for parity of rates, not for {type(part).__name__}")
    return found


def _anchored(notion: RateParity, rates: GroupRates) -> list[Constraint]:
    """The rows of LP (1): every other group against the first."""
    rows = []
    for rate in notion.rates:
        values, slack = rates.rate(rate), rates.slack(rate)
        allowed = 2 * np.maximum(slack[1:], slack[0])
        limit = notion.tolerance + allowed
        rows.append((values[1:] - values[0]).between(-limit, limit))
    return rows


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
    ledger: Ledger | str | None = None,
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
    ledger : Ledger or str
        Of all releases about the same people, or its file; only a simulation does without. The run spends
        from it before it counts, whether it then succeeds, fails or is simulated.
    seed : int or numpy.random.Generator, optional
        For an experiment that can be repeated, which simulates privacy only; without one OpenDP draws the
        noise.

    Raises
    ------
    DeclarationError
        Without privacy or edges, and with weights.
    BudgetSpentError
        If the ledger's budget does not allow the run.

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
    pay(ledger, mechanism, rng, "dp-thresholds", "substitute")
    released = partial(Outcome, private=True, profile=mechanism.profile())
    noisy = np.asarray(mechanism._send(counts, rng))

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
        return released(None, status=Status.FAILED, message=reason)
    model.subject_to(problem.constraint.rows(rates))
    model.minimize(rates.total(((0, 1), (1, 0))).sum() / float(len(problem.scores)))
    result = model.solve(backend or "highs", time_limit=deadline.left)
    if result.status is Status.INFEASIBLE:
        none = f"with probability {1 - beta:g} no mixture of these thresholds meets the constraint"
        return released(None, status=Status.FAILED, message=none)
    if not result.status.has_solution:
        return released(None, status=result.status, message=result.message)
    private = f"{privacy.epsilon:g}-differentially private in the groups of the records"
    if rng.simulated:
        private = f"a simulation with a seed, so not private; without a seed it would be {private}"
    excess = 2 * groups * bins * noise / len(problem.scores)
    return released(
        _decision(problem.group_names, cuts, result[chance]),
        iterations=result.iterations,
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
