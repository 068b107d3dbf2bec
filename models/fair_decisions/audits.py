"""Who gains and who loses by noise: expected outcomes of a rule for each assignee, exact or sampled."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from forcopt.arrays import Array, Seed, as_numbers
from forcopt.errors import DeclarationError, require, required
from forcopt.models.fair_decisions.apportionment import DIVISORS, Apportionment
from forcopt.models.fair_decisions.coverage import CoverageRule, Nested
from forcopt.models.fair_decisions.grants import GrantRule
from forcopt.models.fair_decisions.noise_laws import expected_shares
from forcopt.models.fair_decisions.tolerances import OUTCOME
from forcopt.numeric.apportionment import DivisorMethod, apportion
from forcopt.privacy.mechanism import AdditiveMechanism, Mechanism
from forcopt.privacy.noises import Laplace
from forcopt.privacy.randomness import Simulated

if TYPE_CHECKING:
    from pandas import DataFrame

Rule = CoverageRule | GrantRule | Apportionment | Callable[[Array], Array]
"""A rule of the package, or a function of noisy counts to outcomes, shape ``(trials, k)``."""

_CELLS_AT_ONCE = 2_000_000

CONFIDENCE = 0.95
"""That no pair of sampled means is called inverted that is not."""


def audit(rule: Rule, truth: Any, mechanism: Mechanism, *, trials: int = 0, seed: Seed = None) -> DataFrame:
    """Compare the mean outcome of each assignee under noisy counts with its outcome under the true ones.

    Parameters
    ----------
    rule : CoverageRule, GrantRule, Apportionment or Callable
        An `Apportionment` divides its seats by its criterion, a divisor method; its populations are not used.
        A function takes noisy counts, shape ``(trials, ...)``, and returns outcomes, shape ``(trials, k)``.
    truth : array_like
        True counts: shape ``(k, 3)`` for coverage, otherwise ``(k,)``.
    mechanism : Mechanism
        Of the noisy counts. Seats take noisy counts below 0 as 0.
    trials : int, default 0
        The number of sampled noisy counts; needs a seed. With 0, means are exact, by quadrature and
        transforms, for coverage and for the grant rule without slacks, both under Laplace noise.
    seed : int or numpy.random.Generator, optional
        Of the trials.

    Returns
    -------
    DataFrame
        A row for each assignee: ``outcome`` from the true counts; ``expected`` from noisy ones; their
        ``ratio``; the difference ``per_million`` of all outcomes; ``correct``, the probability of the true
        outcome, for coverage and seats; ``inverted``, whether an assignee with a different count has an
        expected outcome in the wrong order, for counts of shape ``(k,)``, see Notes; ``standard_error`` of
        ``expected``, 0 if exact.

    Raises
    ------
    DeclarationError
        For a rule that has no exact expectation here, or trials without a seed.

    Notes
    -----
    Means of trials are in the wrong order only if that is significant: if intervals that hold all k expected
    outcomes at once with probability `CONFIDENCE` lie in the wrong order. These are Student's intervals with
    Bonferroni's correction; the probability holds up to the normal approximation of a mean.

    Trials in which a grant rule has no finite grants count as outcomes of 0; `GrantRule.allocate` marks them.

    References
    ----------
    Pujol et al. (2020), sections 4 to 6 and A.

    Examples
    --------
    >>> from forcopt.privacy import Laplace
    >>> noise = Nested(mechanism=AdditiveMechanism(Laplace(epsilon=0.1)))
    >>> audit(CoverageRule(), [[800, 60, 5], [3000, 100, 5]], noise).correct.round(4).tolist()
    [0.6443, 0.9909]
    """
    pd = required("pandas", "audit")

    x = as_numbers(truth, "the true counts")
    require(trials >= 0, "trials", trials, "be at least 0")
    outcome = np.asarray(_outcomes(rule, x[None]), dtype=float)[0]
    if trials:
        if seed is None:
            raise DeclarationError("seed is None; trials need a seed, so that they can be repeated")
        expected, correct, error = _sampled(rule, x, outcome, mechanism, trials, np.random.default_rng(seed))
    else:
        expected, correct = _exact(rule, x, mechanism)
        error = np.zeros(len(outcome))
    total = outcome.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        columns = {
            "outcome": outcome,
            "expected": expected,
            "ratio": np.where(outcome > 0, expected / outcome, np.nan),
            "per_million": 1e6 * (expected - outcome) / total if total > 0 else np.full(len(x), np.nan),
        }
    if isinstance(rule, CoverageRule | Apportionment):
        columns["correct"] = correct
    if x.ndim == 1:
        columns["inverted"] = _inverted(x, expected, _room(error, trials))
    return pd.DataFrame(columns | {"standard_error": error})


def _outcomes(rule: Rule, noisy: Array) -> Array:
    """The outcome of each assignee for each row of counts."""
    if isinstance(rule, CoverageRule):
        return rule.decide(noisy)
    if isinstance(rule, GrantRule):
        grants = (rule.allocate(row) for row in noisy)
        return np.array([np.zeros(noisy.shape[1]) if grant is None else grant for grant in grants])
    if isinstance(rule, Apportionment):
        return np.array([_seats(rule, row) for row in np.maximum(noisy, 0.0)])
    found = np.asarray(rule(noisy))
    if found.ndim != 2 or len(found) != len(noisy):
        raise DeclarationError(f"the rule returns shape {found.shape}; it must be ({len(noisy)}, k)")
    return found


def _seats(rule: Apportionment, populations: Array) -> Array:
    least = np.broadcast_to(rule.minimum, populations.shape)
    if not populations.any():
        return least
    if rule.criterion not in DIVISORS or rule.quota is not None:
        return np.asarray(rule.replace(populations=populations).solve().decision.seats)
    if rule.criterion in ("hill", "adams", "dean"):
        least = np.maximum(least, populations > 0)
    return apportion(populations, rule.seats, cast(DivisorMethod, rule.criterion), minimum=least).seats


def _exact(rule: Rule, x: Array, mechanism: Mechanism) -> tuple[Array, Array]:
    """Expected outcomes, and the probability of the true one."""
    if isinstance(rule, CoverageRule) and isinstance(mechanism, Nested):
        noise = mechanism.mechanism.noise
        if isinstance(noise, Laplace):
            rates = rule.rates(x, noise.scale)
            return rates, np.where(rule.decide(x), rates, 1 - rates)
    if isinstance(rule, GrantRule) and isinstance(mechanism, AdditiveMechanism):
        noise, plain = mechanism.noise, rule.clipped and not rule.slacks.any() and not rule.total_slack
        if plain and isinstance(noise, Laplace):
            return expected_shares(x, noise.scale, rule.weights), np.array([])
    raise DeclarationError(
        f"{type(rule).__name__} under {type(mechanism).__name__} has no exact expectation here: "
        "under Laplace noise there is one for coverage (Nested) and for grants without slacks. Give trials "
        "and a seed"
    )


def _sampled(
    rule: Rule, x: Array, outcome: Array, mechanism: Mechanism, trials: int, rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    """Means, frequencies of the true outcome, and standard errors of the means."""
    total, squares, hits = np.zeros(len(outcome)), np.zeros(len(outcome)), np.zeros(len(outcome))
    rows = max(1, _CELLS_AT_ONCE // x.size)
    randomness = Simulated(rng)
    for start in range(0, trials, rows):
        count = min(rows, trials - start)
        found = _outcomes(rule, mechanism._send(np.broadcast_to(x, (count, *x.shape)).copy(), randomness))
        total += found.sum(axis=0)
        squares += ((found - outcome) ** 2).sum(axis=0)
        hits += (found == outcome).sum(axis=0)
    mean = total / trials
    return mean, hits / trials, np.sqrt(np.maximum(squares / trials - (mean - outcome) ** 2, 0.0) / trials)


def _room(error: Array, trials: int) -> Array:
    """How far simultaneous intervals reach from the means; no room if these are exact."""
    from scipy.stats import t

    if trials < 2:
        return np.full(len(error), np.inf if trials else 0.0)
    return np.asarray(error * t.ppf(1 - (1 - CONFIDENCE) / (2 * len(error)), trials - 1))


def _inverted(x: Array, expected: Array, room: Array) -> Array:
    """Whether another count is smaller and its expected outcome larger, or the reverse, by more than room."""

    low, high = expected - room, expected + room
    values, group = np.unique(x, return_inverse=True)
    most = np.full(len(values), -np.inf)
    least = np.full(len(values), np.inf)
    np.maximum.at(most, group, low)
    np.minimum.at(least, group, high)
    before = np.concatenate([[-np.inf], np.maximum.accumulate(most)[:-1]])  # the most of smaller counts
    after = np.concatenate([np.minimum.accumulate(least[::-1])[::-1][1:], [np.inf]])
    slack = OUTCOME * np.abs(expected).max(initial=0.0)
    return np.asarray((high < before[group] - slack) | (low > after[group] + slack))
