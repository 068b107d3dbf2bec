"""Post-processing that is differentially private in the groups: noisy counts, relaxed rows (Algorithm 1)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from forcopt.clock import Deadline
from forcopt.errors import DeclarationError
from forcopt.fairness import AllOf, CountNoise, GroupRates, Notion, Rate, RateParity
from forcopt.language.constraint import Constraint
from forcopt.language.model import Model
from forcopt.models.fair_postprocessing.problem import FairPostprocessing, emptied
from forcopt.privacy import Accountant, AdditiveMechanism, Laplace, PrivacyBudget, randomness
from forcopt.problem import Outcome
from forcopt.status import Status

SENSITIVITY = 2.0
"""The change of the counts by one person's group: one cell loses one, another gains one."""


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


def _cells(rate: Rate) -> int:
    """The cells (prediction, label) of a group over which a rate is taken."""
    return int(np.sum(rate.given))


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
        cells, fewest = _cells(rate), float(base.total(rate.given).min())
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
    accountant: Accountant | None = None,
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
    accountant : Accountant, optional
        The ledger of all releases about the same people. The run spends from it before it looks at the
        counts, whether it then succeeds, fails or is simulated.
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
        If the accountant's budget does not allow the run.
    """
    deadline = Deadline(time_limit)
    parities, noise = _parities_of(problem.constraint), _largest_noise(problem, beta)
    rng, mechanism = randomness(seed=seed), _mechanism(problem)
    if accountant is not None:
        accountant.spend(mechanism, name="dp-postprocessing", neighbours="substitute")
    noisy = np.asarray(mechanism.release(problem.counts, rng))
    model = Model("noisy post-processing")
    probabilities = model.variable("probability", shape=(2, len(problem.groups)), lower=0, upper=1)
    rates = GroupRates(
        (noisy * probabilities[:, :, None]).sum(axis=0),
        noisy.sum(axis=0),
        problem.groups,
        noise=CountNoise(noise, np.full(len(problem.groups), 2)),
    )
    if reason := emptied(rates, problem.constraint):
        return Outcome(None, private=True, status=Status.FAILED, message=reason)
    for notion in parities:
        model.subject_to(_anchored(notion, rates) if as_printed else notion.rows(rates))
    # The number of records is public, and unlike the noisy total it is surely positive.
    model.minimize(rates.total(((0, 1), (1, 0))).sum() / float(problem.counts.sum()))
    result = model.solve(backend or "highs", time_limit=deadline.left)
    if not result.status.has_solution:
        return Outcome(None, private=True, status=result.status, message=result.message)
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
    return Outcome(
        problem.postprocessor(np.clip(result[probabilities], 0.0, 1.0), noisy),
        iterations=result.iterations,
        private=True,
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
