"""Private in the groups: noisy counts with relaxed rows (Algorithm 1); thresholds from noisy histograms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from forcopt.arrays import Array, Seed, as_numbers
from forcopt.clock import Deadline
from forcopt.errors import DeclarationError
from forcopt.fairness import AllOf, CountNoise, GroupRates, Notion, RateParity
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


def _budget(problem: FairPostprocessing | ScorePostprocessing, method: str) -> PrivacyBudget:
    if problem.privacy is None:
        raise DeclarationError(f"{method} needs privacy, such as PrivacyBudget(epsilon=1.0)")
    return problem.privacy


def _largest_noise(epsilon: float, cells: int, beta: float) -> float:
    """A bound on the noises of all cells that holds with probability 1 - beta (Theorem 2.1)."""
    if not 0 < beta < 1:
        raise DeclarationError(f"beta is {beta:g}; it must be strictly between 0 and 1")
    return SENSITIVITY / epsilon * float(np.log(cells / beta))


def _mechanism(epsilon: float, cells: int) -> AdditiveMechanism:
    """Laplace noise on all counts."""
    return AdditiveMechanism(Laplace(scale=SENSITIVITY / epsilon), sensitivity=SENSITIVITY, dimension=cells)


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
    privacy, counts = _budget(problem, "dp-postprocessing"), problem.counts.sum(axis=0)
    noise, floor = _largest_noise(privacy.epsilon, problem.counts.size, beta), privacy.floor
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
    ledger: Ledger | str | None = None,
    backend: str | None = None,
    time_limit: float | None = None,
    seed: Seed = None,
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
    notion = AllOf(notions=tuple(_parities_of(problem.constraint)))

    def decide(chance: Array, noisy: Array) -> Any:
        return problem.postprocessor(np.clip(chance, 0.0, 1.0), noisy)

    of = (problem, problem.counts, problem.groups, notion, decide, (12, "the optimum"))
    run: dict[str, Any] = {"ledger": ledger, "backend": backend, "time_limit": time_limit, "seed": seed}
    found = _from_noisy_counts("dp-postprocessing", *of, beta=beta, **run)
    return found if found.decision is None else replace(found, guarantee=privacy_cost(problem, beta).error)


def _parities_of(notion: Notion) -> list[RateParity]:
    """The parts of a notion, all parities of rates."""
    parts = notion.notions if isinstance(notion, AllOf) else (notion,)
    found = [part for part in parts if isinstance(part, RateParity)]
    for part in parts:
        if not isinstance(part, RateParity):
            raise DeclarationError(f"dp-postprocessing is for parity of rates, not for {type(part).__name__}")
    return found


def _from_noisy_counts(
    method: str,
    problem: FairPostprocessing | ScorePostprocessing,
    counts: Array,
    groups: tuple[str, ...],
    notion: Notion,
    decide: Callable[[Array, Array], Any],
    promise: tuple[int, str],
    *,
    beta: float,
    ledger: Ledger | str | None,
    backend: str | None,
    time_limit: float | None,
    seed: Seed,
    rising: bool = False,
) -> Outcome:
    """Pay, add noise to counts, indexed ``[bin, group, label]``, and solve their program with relaxed rows.

    `decide` takes the chances of 1, shape ``(B, K)``, and the noisy counts. `promise` has the share of the K
    groups' noises by which the error may be above another, and the words for that one.
    """
    deadline, rng = Deadline(time_limit), randomness(seed=seed)
    epsilon, total = _budget(problem, method).epsilon, float(counts.sum())
    noise, mechanism = _largest_noise(epsilon, counts.size, beta), _mechanism(epsilon, counts.size)
    pay(ledger, mechanism, rng, method, "substitute")
    released = partial(Outcome, private=True, profile=mechanism.profile())
    noisy = np.asarray(mechanism._send(counts, rng))
    model = Model("noisy post-processing")
    chance = model.variable("chance", shape=counts.shape[:2], lower=0, upper=1)
    if rising:
        model.subject_to(chance[1:] - chance[:-1] >= 0, name="rising")
    error = CountNoise(noise, np.full(len(groups), len(counts)))
    rates = GroupRates((noisy * chance[:, :, None]).sum(axis=0), noisy.sum(axis=0), groups, noise=error)
    if reason := emptied(rates, notion):
        return released(None, status=Status.FAILED, message=reason)
    model.subject_to(notion.rows(rates))
    # The number of records is public, and unlike the noisy total it is surely positive.
    model.minimize(rates.total(((0, 1), (1, 0))).sum() / total)
    result = model.solve(backend or "highs", time_limit=deadline.left)
    sure = f"with probability {1 - beta:g}"
    if result.status is Status.INFEASIBLE:
        none = f"{sure} no mixture of these thresholds meets the constraint"
        return released(None, status=Status.FAILED, message=none)
    if not result.status.has_solution:
        return released(None, status=result.status, message=result.message)
    private = f"{epsilon:g}-differentially private in the groups of the records"
    if rng.simulated:
        private = f"a simulation with a seed, so not private; without a seed it would be {private}"
    excess = promise[0] * len(groups) * noise / total
    return released(
        decide(result[chance], noisy),
        iterations=result.iterations,
        message=f"{private}; {sure} all noises stay within {noise:.6g} and the error is at most {excess:.4g} "
        f"above {promise[1]}",
    )


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
    seed: Seed = None,
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
    _budget(problem, "dp-thresholds")
    if problem.weights is not None:
        raise DeclarationError("dp-thresholds counts records: weights have no bound, so it takes none")
    if edges is None:
        raise DeclarationError("dp-thresholds needs edges: the public thresholds to choose among")
    cuts = np.unique(as_numbers(edges, "edges"))
    counts = _histogram(problem, cuts)
    names, promise = problem.group_names, "the error of the best fair mixture of these thresholds"

    def decide(chance: Array, _: Array) -> RandomizedThresholds:
        return _decision(names, cuts, chance)

    of = (problem, counts, names, problem.constraint, decide, (2 * len(counts), promise))
    run: dict[str, Any] = {"ledger": ledger, "backend": backend, "time_limit": time_limit, "seed": seed}
    return _from_noisy_counts("dp-thresholds", *of, beta=beta, rising=True, **run)


def _histogram(problem: ScorePostprocessing, cuts: Array) -> Array:
    """How many records there are between the thresholds, indexed ``[bin, group, label]``."""
    place = np.searchsorted(cuts, problem.scores, side="right")
    codes, names = problem._read
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
    law = tuple(column[k] for column, k in zip(weights.T, kept, strict=True))
    return RandomizedThresholds(groups, tuple(thresholds[k] for k in kept), law)
