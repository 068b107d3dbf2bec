"""Criteria learned from agents' moves, and confidence intervals for published ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, log
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.models.strategic.criteria import largest_gaming_free_set
from forcopt.models.strategic.problem import OpenCriteria, StrategicClassification
from forcopt.models.strategic.responses import checked_table

if TYPE_CHECKING:
    from pandas import DataFrame


class Population(Protocol):
    """A distribution of agents.

    `StrategicClassification` is one: its weights are then the probabilities of its agents.
    """

    @property
    def criteria(self) -> int:
        """The number of criteria."""

    def sample(self, size: int, rng: np.random.Generator) -> StrategicClassification:
        """Draw `size` agents independently; the criteria stay the same."""


@dataclass(frozen=True)
class Learned:
    """The result of learning.

    Attributes
    ----------
    decision : OpenCriteria
        The criteria to publish.
    samples : int
        The number of drawn agents.
    rounds : int
        The number of published sets of criteria during learning.
    """

    decision: OpenCriteria
    samples: int
    rounds: int


def check_rates(**rates: Any) -> None:
    """Check that rates are above 0 and at most 1.

    Raises
    ------
    DeclarationError
        Naming the rate.
    """
    for name, rate in rates.items():
        if not 0 < rate <= 1:
            raise DeclarationError(f"{name} is {rate!r}; it must be above 0 and at most 1")


def full_information_samples(criteria: int, epsilon: float, delta: float) -> int:
    """How many agents suffice by Theorem 8: ``(m ln 2 + ln(1 / delta)) / epsilon``.

    Examples
    --------
    >>> full_information_samples(10, epsilon=0.1, delta=0.05)
    100
    """
    check_rates(epsilon=epsilon, delta=delta)
    return ceil((criteria * log(2) + log(1 / delta)) / epsilon)


def learn_full_information(
    population: Population,
    epsilon: float,
    delta: float,
    *,
    samples: int | None = None,
    seed: int | np.random.Generator | None = None,
) -> Learned:
    """Run greedy deletion on drawn agents.

    Let OPT be the largest true positive mass without false positives. With probability at least 1 - `delta`,
    the result has true positives of at least OPT - `epsilon` and false positives of at most `epsilon`. The
    sum of both is at least OPT for certain: the optimal set is gaming-free on every sample.

    Parameters
    ----------
    population : Population
        To draw from.
    epsilon, delta : float
        Above 0, at most 1.
    samples : int, optional
        How many agents to draw; Theorem 8's number by default.
    seed : int or numpy.random.Generator, optional
        An int or a generator.

    Returns
    -------
    Learned
        The open criteria, and the number of agents.

    Examples
    --------
    >>> from forcopt.models.strategic import StrategicClassification
    >>> edges = [(0, 0, 1, 1), (1, 1, 1, 0)]
    >>> p = StrategicClassification(agents=2, criteria=2, edges=edges, weights=[0.9, 0.1])
    >>> learn_full_information(p, epsilon=0.1, delta=0.05, seed=1)
    Learned(decision=OpenCriteria({0}), samples=44, rounds=1)
    """
    needed = full_information_samples(population.criteria, epsilon, delta)
    if samples is not None and samples < 0:
        raise DeclarationError(f"samples is {samples}; it must not be negative")
    size = needed if samples is None else samples
    drawn = population.sample(size, np.random.default_rng(seed))
    is_open, _ = largest_gaming_free_set(drawn)
    return Learned(OpenCriteria(np.flatnonzero(is_open).tolist()), size, 1)


def bandit_batch(criteria: int, epsilon: float, delta: float) -> int:
    """The size of a batch in Algorithm 2: ``ln(m / delta) / epsilon``; at most `criteria` batches are needed.

    Examples
    --------
    >>> bandit_batch(10, epsilon=0.1, delta=0.05)
    53
    """
    check_rates(epsilon=epsilon, delta=delta)
    return ceil(log(max(criteria, 1) / delta) / epsilon)


def learn_bandit(
    population: Population,
    epsilon: float,
    delta: float,
    *,
    online: bool = False,
    seed: int | np.random.Generator | None = None,
) -> Learned:
    """Publish criteria to batches of agents; withdraw one that somebody games on, until a batch shows no
    gaming.

    With probability at least 1 - `delta`, the result has true positives of at least OPT - `epsilon` (see
    `learn_full_information`) and false positives of at most `epsilon`. Uses at most `criteria` batches.

    Parameters
    ----------
    population : Population
        To draw from; only the criterion that an agent meets, and whether it qualifies, are looked at.
    epsilon, delta : float
        Above 0, at most 1.
    online : bool, default False
        Withdraw a criterion as soon as somebody games on it, without waiting for the end of the batch.
    seed : int or numpy.random.Generator, optional
        An int or a generator.

    Returns
    -------
    Learned
        The open criteria, and the numbers of agents and of batches.

    Examples
    --------
    >>> from forcopt.models.strategic import StrategicClassification
    >>> edges = [(0, 0, 1, 1), (1, 1, 1, 0)]
    >>> p = StrategicClassification(agents=2, criteria=2, edges=edges, weights=[0.9, 0.1])
    >>> learn_bandit(p, epsilon=0.1, delta=0.05, seed=1)
    Learned(decision=OpenCriteria({0}), samples=74, rounds=2)
    """
    batch = bandit_batch(population.criteria, epsilon, delta)
    rng = np.random.default_rng(seed)
    published, samples, rounds = set(range(population.criteria)), 0, 0
    while published:
        seen = population.sample(batch, rng).simulate(published)
        rounds += 1
        gamers = np.flatnonzero(seen.false_positive)
        if not gamers.size:
            samples += batch
            break
        samples += int(gamers[0]) + 1 if online else batch
        published.remove(int(seen.choice[gamers[0]]))
    return Learned(OpenCriteria(published), samples, rounds)


class OutcomeIntervals(NamedTuple):
    """The shares of true and of false positives in a population, each as a pair of bounds.

    Attributes
    ----------
    true_positives, false_positives : tuple[float, float]
        The least and the greatest share.
    agents : int
        The number of drawn agents.

    Examples
    --------
    >>> from forcopt.models import StrategicClassification
    >>> from forcopt.models.strategic import outcome_intervals
    >>> edges = [(0, 0, 1, 1), (1, 0, 1, 0)]  # agent, criterion, cost, improves
    >>> p = StrategicClassification(agents=2, criteria=1, edges=edges, weights=[0.9, 0.1])
    >>> found = outcome_intervals(p, [0], agents=400, seed=1)
    >>> low, high = found.true_positives
    >>> bool(low < 0.9 < high)
    True
    """

    true_positives: tuple[float, float]
    false_positives: tuple[float, float]
    agents: int


class ObjectiveInterval(NamedTuple):
    """The objective of criteria under estimated costs, with its bootstrap interval.

    Attributes
    ----------
    estimate : float
        At the mean costs.
    low, high : float
        The ends of the percentile interval.
    feasible : float
        The share of replicates in which the criteria meet the limit on false positives.
    values : Array
        The objective of each replicate, shape ``(replicates,)``.
    """

    estimate: float
    low: float
    high: float
    feasible: float
    values: Array


def outcome_intervals(
    population: Population,
    decision: Iterable[int],
    *,
    agents: int = 1000,
    confidence: float = 0.95,
    seed: int | np.random.Generator | None = None,
) -> OutcomeIntervals:
    """Bound the shares of true and of false positives under criteria, by agents drawn afresh.

    Parameters
    ----------
    population : Population
        To draw the agents from.
    decision : iterable of int
        The criteria; they must not depend on the agents that are drawn here.
    agents : int, default 1000
        The number of agents to draw.
    confidence : float, default 0.95
        The probability with which both intervals hold together.
    seed : int or numpy.random.Generator, optional
        An int or a generator.

    Returns
    -------
    OutcomeIntervals
        Exact binomial intervals, each at the confidence ``1 - (1 - confidence) / 2``.

    Raises
    ------
    DeclarationError
        For no agents, or a confidence outside of (0, 1).

    References
    ----------
    Clopper, Pearson: The use of confidence or fiducial limits illustrated in the case of the binomial.
    Biometrika 26, 1934.

    Examples
    --------
    >>> edges = [(0, 0, 1, 1), (1, 0, 1, 0)]
    >>> p = StrategicClassification(agents=2, criteria=1, edges=edges, weights=[0.9, 0.1])
    >>> found = outcome_intervals(p, [0], agents=400, seed=1)
    >>> [round(end, 3) for end in (*found.true_positives, *found.false_positives)]
    [0.87, 0.937, 0.063, 0.13]
    """
    if agents < 1:
        raise DeclarationError(f"agents is {agents}; it must be at least 1")
    _check_confidence(confidence)
    responses = population.sample(agents, np.random.default_rng(seed)).simulate(decision)
    error = (1 - confidence) / 2
    true, false = int(responses.true_positive.sum()), int(responses.false_positive.sum())
    return OutcomeIntervals(_binomial(true, agents, error), _binomial(false, agents, error), agents)


def _binomial(count: int, total: int, error: float) -> tuple[float, float]:
    from scipy.stats import beta

    low = float(beta.ppf(error / 2, count, total - count + 1)) if count else 0.0
    high = float(beta.ppf(1 - error / 2, count + 1, total - count)) if count < total else 1.0
    return low, high


def objective_interval(
    observations: DataFrame | str | Path,
    decision: Iterable[str],
    *,
    agents: DataFrame | str | Path | None = None,
    confidence: float = 0.95,
    replicates: int = 500,
    seed: int | np.random.Generator | None = None,
    **fields: Any,
) -> ObjectiveInterval:
    """Estimate costs by the means of observed ones, and the objective of criteria with a bootstrap interval.

    Each replicate draws the observations of every edge anew, with replacement. The agents are fixed: the
    interval is for the error of the costs alone.

    Parameters
    ----------
    observations : DataFrame, str or Path
        One row for each observed move, with the columns ``agent``, ``criterion``, ``cost`` and ``improves``
        (the same in all rows of an edge); or a CSV file of it.
    decision : iterable of str
        The names of the published criteria.
    agents : DataFrame, str or Path, optional
        As in `StrategicClassification.from_tables`.
    confidence : float, default 0.95
        Of the percentile interval; approximate, as any bootstrap.
    replicates : int, default 500
        The number of bootstrap replicates.
    seed : int or numpy.random.Generator, optional
        An int or a generator.
    fields : Any
        Of `StrategicClassification`.

    Returns
    -------
    ObjectiveInterval
        The objective at the mean costs, and its interval.

    Raises
    ------
    DeclarationError
        For a missing column, an edge that improves in some rows only, or an unknown criterion.

    References
    ----------
    Efron: Bootstrap methods: another look at the jackknife. Annals of Statistics 7, 1979.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = [("a", "course", 0.5, 1), ("a", "course", 1.7, 1), ("b", "course", 0.2, 1)]
    >>> seen = pd.DataFrame(rows, columns=["agent", "criterion", "cost", "improves"])
    >>> found = objective_interval(seen, ["course"], seed=1)
    >>> found.estimate, found.low, found.high  # the mean cost of agent a is above its value of 1
    (1.0, 1.0, 2.0)
    """
    _check_confidence(confidence)
    if replicates < 1:
        raise DeclarationError(f"replicates is {replicates}; it must be at least 1")
    seen = checked_table(observations, "observations", ("agent", "criterion", "cost", "improves"))
    groups = seen.groupby([seen["agent"].astype(str), seen["criterion"].astype(str)], sort=True)
    mixed = groups["improves"].nunique() > 1
    if mixed.any():
        raise DeclarationError(f"observations: the edge {mixed[mixed].index[0]} improves in some rows only")
    means = groups.agg({"cost": "mean", "improves": "first"}).reset_index()
    problem = StrategicClassification.from_tables(means, agents, **fields)
    chosen = problem.criteria_named(decision)
    found = problem.evaluate(chosen)
    counts = groups.size().to_numpy()
    costs = seen["cost"].to_numpy(dtype=float)[np.argsort(groups.ngroup().to_numpy(), kind="stable")]
    start = np.cumsum(counts) - counts
    rng = np.random.default_rng(seed)
    values, feasible = np.empty(replicates), 0
    for i in range(replicates):
        picked = np.repeat(start, counts) + np.floor(rng.random(len(costs)) * np.repeat(counts, counts))
        edges = problem.edges.copy()
        edges[:, 2] = np.add.reduceat(costs[picked.astype(np.int64)], start) / counts
        evaluation = problem.replace(edges=edges).evaluate(chosen)
        values[i], feasible = evaluation.objective, feasible + evaluation.feasible
    low, high = np.quantile(values, [(1 - confidence) / 2, (1 + confidence) / 2])
    return ObjectiveInterval(found.objective, float(low), float(high), feasible / replicates, values)


def _check_confidence(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise DeclarationError(f"confidence is {confidence!r}; it must be between 0 and 1")
