"""What sampling does to privacy: bounds and closed forms of the loss of a mechanism that runs on a sample.

A mechanism M is epsilon-differentially private on samples, and runs on a sample of a population. Which
loss does that have for the population? There are two neighbour relations in the question, and both are
arguments here:

- `neighbours`, between populations: ``"add_remove"`` (one has a record more) or ``"substitute"`` (one record
  differs).
- `mechanism`, between samples, under which M is epsilon-private: ``"add_remove"``, ``"substitute"``, or
  ``"either"`` (both). Under ``"add_remove"`` alone, a substitution costs 2 epsilon.

All losses are natural logarithms of the largest ratio of probabilities; a loss for a design is the least
that holds for all such M. `forcopt.models.TightAmplification` finds it by a linear program for small designs.

References
----------
Bun, Drechsler, Gaboardi, McMillan, Sarathy, Controlling privacy loss in sampling schemes: an analysis of
stratified and cluster sampling, FORC 2022.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import exp, expm1, floor, inf, isfinite, log, log1p
from typing import Any, Literal, NamedTuple

import numpy as np

from forcopt.arrays import Array, as_fraction, as_numbers
from forcopt.errors import DeclarationError
from forcopt.privacy.relations import Neighbours, SampleRelation

__all__ = [
    "Neighbours",
    "PrivacyLoss",
    "SampleRelation",
    "cluster_sample",
    "data_dependent_allocation",
    "expected_size",
    "largest_epsilon",
    "largest_rate",
    "largest_size",
    "noisy_statistic",
    "poisson_sample",
    "proportional_allocation",
    "random_size",
    "randomized_rounding",
    "revealed_cluster",
    "rounded_sizes",
    "simple_random_sample",
    "whole_number",
]


class PrivacyLoss(NamedTuple):
    """Bounds on the loss of a sampling design.

    Attributes
    ----------
    lower : float
        Some mechanism loses so much.
    upper : float
        No mechanism loses more.
    exact : float
        The loss itself, where it is known.
    source : str
        Where that comes from.
    """

    lower: float
    upper: float
    exact: float | None
    source: str


# -- samples of a fixed and of a random size ---------------------------------------------------------------


def simple_random_sample(
    epsilon: float,
    size: int,
    population: int,
    *,
    mechanism: SampleRelation = "substitute",
    neighbours: Neighbours = "substitute",
) -> PrivacyLoss:
    """The loss of a simple random sample without replacement of `size` out of `population` records.

    If M is (epsilon, delta)-private, delta becomes ``size / population * delta``. Of two populations of which
    one has a record more, `population` is the smaller.

    Raises
    ------
    DeclarationError
        For a loss that is not positive, or a sample larger than the population.

    References
    ----------
    Theorem 2; Lemma 16 for populations that differ in size. Both are attained.

    Examples
    --------
    >>> round(simple_random_sample(1.0, 10, 100).exact, 6)
    0.158565
    """
    _check_epsilon(epsilon)
    _check_sizes(size, population)
    share = size / (population + (neighbours == "add_remove"))
    loss = _amplified(share, _swap(epsilon, mechanism))
    return _known(loss, "Theorem 2" if neighbours == "substitute" else "Lemma 16")


def random_size(
    epsilon: float, law: Any, *, mechanism: SampleRelation = "add_remove", as_printed: bool = False
) -> PrivacyLoss:
    """The loss of a simple random sample whose size is drawn first; populations differ by a substitution.

    Parameters
    ----------
    epsilon : float
        Of M.
    law : Any
        The probability of each size 0, 1, ..., n for a population of n records; shape ``(n + 1,)``.
    mechanism : SampleRelation, default "add_remove"
        Under which relation M is private. Under ``"substitute"`` M may tell the size, and the largest one
        that occurs decides.
    as_printed : bool, default False
        Theorem 3 as it stands, whose proof treats M as private under either relation. Its upper bound is
        wrong if M is private only under ``"add_remove"``, as the theorem says: a census of one record has
        loss 2 epsilon, above its epsilon.

    Returns
    -------
    PrivacyLoss
        Lower: the best of the noisy sums that value the two records that differ as far apart as the mechanism
        may, and all others alike; the proof of Theorem 3 has one of them.

    Raises
    ------
    DeclarationError
        For a law that is no distribution on 0..n with n >= 1.

    References
    ----------
    Theorem 3, with e^(2 epsilon) in place of e^epsilon under ``"add_remove"`` (the proof's Lemma 16 has it).
    O(n).

    Examples
    --------
    >>> loss = random_size(0.5, [1 / 6] * 6)
    >>> round(loss.lower, 6), round(loss.upper, 6)
    (0.648141, 0.831419)
    """
    _check_epsilon(epsilon)
    t = _law(law)
    n = len(t) - 1
    if mechanism == "substitute" and not as_printed:
        return _known(_amplified(float(np.flatnonzero(t).max()) / n, epsilon), "Theorem 2 for each size")
    share = expected_size(t, epsilon) / n
    if as_printed:
        lower, upper = -log1p(share * expm1(-epsilon)), _amplified(share, epsilon)
        return PrivacyLoss(lower, upper, None, "Theorem 3 as printed")
    upper = _amplified(share, _swap(epsilon, mechanism))
    if np.count_nonzero(t) == 1:
        return _known(upper, "Theorem 2")
    values = ((-1, 1),) if mechanism == "add_remove" else ((0, 1), (-1, 0))
    sizes = np.flatnonzero(t)
    lower = max(
        _log_mean(sizes, t[sizes], n, common * epsilon, (high - common) * epsilon)
        - _log_mean(sizes, t[sizes], n, common * epsilon, (low - common) * epsilon)
        for low, high in values
        for common in range(low, high + 1)
    )
    return PrivacyLoss(lower, upper, None, "Theorem 3, corrected")


def expected_size(law: Any, epsilon: float) -> float:
    """The mean of a law of sizes tilted by ``e^(epsilon * size)``, as Theorem 3 needs it.

    Examples
    --------
    >>> expected_size([0.25, 0.5, 0.25], epsilon=0.0)
    1.0
    """
    t = _law(law)
    sizes = np.flatnonzero(t)
    logs = np.log(t[sizes]) + epsilon * sizes  # in logarithms, since e^(epsilon n) overflows
    tilted = np.exp(logs - logs.max())
    return float(tilted @ sizes / tilted.sum())


def poisson_sample(
    epsilon: float,
    rate: float,
    *,
    mechanism: Literal["add_remove", "either"] = "add_remove",
    neighbours: Neighbours = "add_remove",
) -> PrivacyLoss:
    """The loss of a Poisson sample: each record is taken independently with probability `rate`.

    The size says something of the population, so M must be private under ``"add_remove"`` or ``"either"``.

    References
    ----------
    Beimel, Brenner, Kasiviswanathan, Nissim (2014) for ``neighbours="add_remove"``; for a substitution the
    law of the sample factors over the records, of which one differs.

    Examples
    --------
    >>> round(poisson_sample(1.0, 0.1).exact, 6)
    0.158565
    >>> round(poisson_sample(0.5, 0.3, neighbours="substitute").exact, 6)
    0.303435
    """
    _check_epsilon(epsilon)
    _check_rate(rate)
    loss = _amplified(rate, epsilon)
    if neighbours == "substitute" and mechanism == "add_remove":
        loss -= log1p(rate * expm1(-epsilon))
    return _known(loss, "product of the records' laws")


def rounded_sizes(rate: float, population: int) -> Array:
    """The law of a size that is ``rate * population`` rounded at random so that its mean is just that.

    Parameters
    ----------
    rate : float
        From 0 to 1, read as the simplest fraction that it stands for: 0.1 is 1/10.
    population : int
        How many records there are, n.

    Returns
    -------
    Array
        The probability of each size 0..n, shape ``(n + 1,)``.

    Examples
    --------
    >>> rounded_sizes(0.1, 14).round(12)[:3].tolist()
    [0.0, 0.6, 0.4]
    """
    _check_rate(rate)
    population = whole_number(population, "population")
    law = np.zeros(population + 1)
    sizes, probabilities = _two_sizes(_share(rate), population)
    law[sizes] = probabilities
    return law


def _share(rate: float) -> Fraction:
    return as_fraction(rate, "nearest", 10**9)


def _two_sizes(share: Fraction, population: int) -> tuple[Array, Array]:
    """The sizes that a rounded share may have, one or two, and their probabilities."""
    below = floor(share * population)
    up = float(share * population - below)
    return (np.array([below, below + 1]), np.array([1 - up, up])) if up else (np.array([below]), np.ones(1))


def randomized_rounding(
    epsilon: float, rate: float, population: int | None = None, *, as_printed: bool = False
) -> PrivacyLoss:
    """The loss of a sample of a share of the population, its size rounded at random; add/remove throughout.

    Parameters
    ----------
    epsilon : float
        Of M, private under adding or removing a record.
    rate : float
        The share, from 0 to 1; see `rounded_sizes`.
    population : int, optional
        The size of the smaller of the two populations; if left out, any of at least 1 / rate.
    as_printed : bool, default False
        The bound of Theorem 6 as it stands, which may exceed 2 epsilon. No loss does: the two samples can be
        drawn together so that they are two steps apart at most.

    Returns
    -------
    PrivacyLoss
        Lower: what a noisy sum finds out. Upper: for a given population, the sharper bound of the proof.

    Raises
    ------
    DeclarationError
        For a rate outside [0, 1]. A rate of 0 has loss 0, a rate of 1 is a census.

    References
    ----------
    Theorem 6 and its proof.

    Examples
    --------
    >>> loss = randomized_rounding(1.0, 0.1, population=14)
    >>> round(loss.lower, 6), round(loss.upper, 6), round(randomized_rounding(1.0, 0.1).upper, 6)
    (0.343701, 0.774763, 1.317244)
    """
    _check_epsilon(epsilon)
    _check_rate(rate)
    if rate in (0, 1):
        return _known(rate * epsilon, "no sample" if rate == 0 else "census")
    share = _share(rate)
    if population is None:
        first = -floor(-1 / share)
        tried = range(first, first + min(int(1 / share) + 1, 1000))
        lower = max(_noisy_sum(epsilon, share, n) for n in tried)
        upper = _amplified(2 * rate, 2 * epsilon) + _amplified(rate, 2 * epsilon)
        if as_printed:
            return PrivacyLoss(lower, upper, None, "Theorem 6 as printed")
        return PrivacyLoss(lower, min(upper, 2 * epsilon), None, "Theorem 6")
    population = whole_number(population, "population")
    if population < 1:
        raise DeclarationError(f"population is {population}; it must be at least 1")
    taken = Fraction(floor(share * population) + 1, population + 1)
    rises = floor(share * (population + 1)) > floor(share * population)
    upper = _amplified(float(taken), 2 * epsilon) + _amplified(rate, (1 + rises) * epsilon)
    lower = _noisy_sum(epsilon, share, population)
    return PrivacyLoss(lower, min(upper, 2 * epsilon), None, "proof of Theorem 6")


def _noisy_sum(epsilon: float, share: Fraction, n: int) -> float:
    """The most that a noisy sum finds out, with -1, 0 or 1 for the records of P, and for the new one."""
    before, after = _two_sizes(share, n), _two_sizes(share, n + 1)
    best = 0.0
    for common in (-1, 0, 1):
        for new in (-1, 0, 1):
            left = _log_mean(*before, n, common * epsilon, 0.0)
            right = _log_mean(*after, n + 1, common * epsilon, (new - common) * epsilon)
            best = max(best, abs(left - right))
    return best


def _log_mean(sizes: Array, probabilities: Array, population: int, tilt: float, extra: float) -> float:
    """The logarithm of the mean density if each record counts `tilt`, and one of them `extra` more."""
    share = np.asarray(sizes) / population
    with np.errstate(divide="ignore"):
        drawn = np.logaddexp(np.log1p(-share), np.log(share) + extra)  # also where e^extra vanishes
    logs = np.log(probabilities) + tilt * sizes + drawn
    return float(logs.max() + np.log(np.exp(logs - logs.max()).sum()))


def proportional_allocation(epsilon: float, rate: float, sizes: Any = None) -> PrivacyLoss:
    """The loss of stratified samples that take the same share of every stratum, rounded at random.

    Strata are public. Populations and M are taken under adding or removing a record.

    Parameters
    ----------
    epsilon : float
        Of M.
    rate : float
        The share, from 0 to 1.
    sizes : Any, optional
        Of the strata, before a record is added to one of them; any with ``rate * size >= 1`` if left out.

    References
    ----------
    Theorem 11: the other strata tell nothing, so that the worst stratum decides.

    Examples
    --------
    >>> round(proportional_allocation(0.1, 0.05).upper, 6)
    0.032908
    """
    if sizes is None:
        return randomized_rounding(epsilon, rate)._replace(source="Theorem 11")
    losses = [randomized_rounding(epsilon, rate, int(n)) for n in np.unique(_whole(sizes, "sizes"))]
    lower, upper = max(x.lower for x in losses), max(x.upper for x in losses)
    return PrivacyLoss(lower, upper, lower if lower == upper else None, "Theorem 11")


# -- clusters ----------------------------------------------------------------------------------------------


def cluster_sample(
    epsilon: float,
    sizes: Any,
    chosen: int,
    changed: int | None = None,
    *,
    neighbours: Neighbours = "add_remove",
) -> PrivacyLoss:
    """The loss of taking `chosen` whole clusters, all sets of so many being equally likely.

    M is private under adding or removing a record, since clusters differ in size.

    Parameters
    ----------
    epsilon : float
        Of M.
    sizes : Any
        How many records each cluster has, before one is added; shape ``(k,)``.
    chosen : int
        How many clusters are taken, from 0 to k.
    changed : int, optional
        The cluster in which the populations differ; the worst one if left out.
    neighbours : Neighbours, default "add_remove"
        Between populations.

    Returns
    -------
    PrivacyLoss
        Theorem 7 and Theorem 8 as bounds, and the exact loss, which only the clusters' sizes decide: with
        ``u[j] = e^(-epsilon sizes[j])`` over the other clusters and elementary symmetric polynomials e_l,
        ``log(1 + (e^epsilon - 1) / (1 + u[changed] e_l(u) / e_(l-1)(u)))``. It is attained by a noisy sum
        that counts the changed cluster as +1 and all others as -1. O(k l).

    Raises
    ------
    DeclarationError
        For negative sizes, or `chosen` or `changed` out of range.

    Examples
    --------
    >>> loss = cluster_sample(0.3, [2, 3, 5], chosen=1, changed=0)
    >>> [round(x, 6) for x in (loss.lower, loss.exact, loss.upper)]
    [0.216647, 0.231115, 0.247665]
    """
    _check_epsilon(epsilon)
    n = _whole(sizes, "sizes")
    k = len(n)
    chosen = whole_number(chosen, "chosen")
    if not 0 <= chosen <= k:
        raise DeclarationError(f"chosen is {chosen}; it must be from 0 to {k}, the number of clusters")
    if changed is None:
        able = range(k) if neighbours == "add_remove" else np.flatnonzero(n)
        if not len(able):
            raise DeclarationError(f"sizes are {n.tolist()}; there is no record that could be substituted")
        losses = [cluster_sample(epsilon, n, chosen, int(i), neighbours=neighbours) for i in able]
        lower, upper = max(x.lower for x in losses), max(x.upper for x in losses)
        return PrivacyLoss(lower, upper, max(x.exact or 0.0 for x in losses), losses[0].source)
    if not 0 <= changed < k:
        raise DeclarationError(f"changed is {changed}; it must be from 0 to {k - 1}")
    if neighbours == "substitute" and n[changed] < 1:
        raise DeclarationError(f"changed is {changed}, an empty cluster: no record can be substituted there")
    steps = 1 if neighbours == "add_remove" else 2
    whole = steps * epsilon
    if chosen in (0, k):
        return _known(whole * (chosen == k), "no cluster" if chosen == 0 else "census")
    others = np.delete(n, changed)
    # The changed record counts among those that tell its cluster from another, unless it was there before.
    own = float(n[changed]) - (steps - 1) * 2

    def loss(log_ratio: float) -> float:
        return log1p(expm1(whole) / (1 + exp(-epsilon * own + log_ratio)))

    odds = log((k - chosen) / chosen)
    return PrivacyLoss(
        loss(odds - epsilon * float(others.min())),
        loss(odds - epsilon * float(others.max())),
        loss(_log_symmetric_ratio(-epsilon * others, chosen)),
        "Theorems 7 and 8, and the closed form",
    )


def _log_symmetric_ratio(logs: Array, degree: int) -> float:
    """``log(e_l(u) / e_(l-1)(u))`` of elementary symmetric polynomials in ``u = exp(logs)``, l = `degree`."""
    table = np.full(degree + 1, -inf)
    table[0] = 0.0
    for value in logs:
        table[1:] = np.logaddexp(table[1:], table[:-1] + value)
    return float(table[degree] - table[degree - 1])


def revealed_cluster(
    within: float, revealed: float, share: float, *, loses: Literal["after", "before"] = "after"
) -> float:
    """A lower bound on the loss if the output betrays whether the changed cluster was taken.

    Parameters
    ----------
    within : float
        The loss for an event, if it is known that the cluster was taken: the logarithm of the ratio of the
        event's two probabilities, at least 0.
    revealed : float
        How well the event tells that the cluster was taken: the logarithm of the ratio of its probabilities
        with and without it, in the population P.
    share : float
        Of clusters that are taken, l / k.
    loses : Literal["after", "before"], default "after"
        Whether the event is likelier in the changed population P' (``"after"``) or in P.

    References
    ----------
    Theorem 9. Its statement has the event likelier in P, its proof in P'; the printed formula belongs to the
    latter. For ``"before"`` this is what the proof gives.

    Examples
    --------
    >>> round(revealed_cluster(1.0, 3.0, 0.1), 6), round(revealed_cluster(1.0, 1.0, 0.5, loses="before"), 6)
    (0.782343, 0.620115)
    """
    _check_rate(share)
    if not (isfinite(within) and within >= 0 and isfinite(revealed)):
        raise DeclarationError(f"within is {within}, revealed {revealed}; they must be finite, within >= 0")
    if share == 0:
        return 0.0
    # q / p relative to the smaller of p and p', in logarithms
    other = revealed if loses == "after" else revealed - within
    return log1p(expm1(within) * share / (share + exp(-other) * (1 - share)))


def data_dependent_allocation(epsilon: float, before: Any, after: Any) -> PrivacyLoss:
    """What is lost if the sizes of a stratified sample are a fixed function of the population.

    M is private under adding or removing a record; the sizes are `before` for one population and `after` for
    its neighbour, which has one record more.

    Returns
    -------
    PrivacyLoss
        Lower: a noisy sum of the strata's sizes reveals the change, ``epsilon * |after - before|_1``. Upper:
        two more steps replace a sampled record by the new one.

    References
    ----------
    Section 4.1; the upper bound by a coupling of the two samples.

    Examples
    --------
    >>> data_dependent_allocation(0.5, [4, 10], [4, 12])[:2]
    (1.0, 2.0)
    """
    _check_epsilon(epsilon)
    one, other = _whole(before, "before"), _whole(after, "after")
    if one.shape != other.shape:
        raise DeclarationError(f"before has {len(one)} strata, after {len(other)}; they must be the same")
    distance = int(np.abs(one - other).sum())
    return PrivacyLoss(epsilon * distance, epsilon * (distance + 2), None, "Section 4.1")


def noisy_statistic(
    values: Any, probabilities: Any, other_values: Any, other_probabilities: Any, scale: float
) -> float:
    """The exact loss of releasing a random number with Laplace noise, between two laws of that number.

    With the values of a statistic over all samples of two neighbouring populations, this is the real privacy
    loss of that statistic under the design.

    Parameters
    ----------
    values, probabilities : Any
        Of the number under one population, shape ``(a,)``.
    other_values, other_probabilities : Any
        Under the other, shape ``(b,)``.
    scale : float
        Of the noise.

    Returns
    -------
    float
        The larger of both directions. Between two values of the statistic the ratio of the densities is
        monotone, so that only the values need a look: O((a + b)^2).

    Examples
    --------
    >>> round(noisy_statistic([14], [1.0], [15], [1.0], scale=2.0), 9)
    0.5
    """
    if not (isfinite(scale) and scale > 0):
        raise DeclarationError(f"scale is {scale:g}; it must be positive and finite")
    laws = []
    for name, points, weights in (
        ("probabilities", values, probabilities),
        ("other_probabilities", other_values, other_probabilities),
    ):
        at, p = as_numbers(points, "values").ravel(), as_numbers(weights, name).ravel()
        if at.shape != p.shape or (p < 0).any() or abs(p.sum() - 1) > 1e-9:
            raise DeclarationError(f"{name} must be {len(at)} nonnegative numbers that sum to 1")
        laws.append((at[p > 0], np.log(p[p > 0])))
    kinks = np.unique(np.concatenate([laws[0][0], laws[1][0]]))
    one, other = (
        np.logaddexp.reduce(logs - np.abs(kinks[:, None] - at) / scale, axis=1) for at, logs in laws
    )
    return float(np.abs(one - other).max())


# -- inverses ----------------------------------------------------------------------------------------------


def largest_epsilon(loss: Callable[[float], PrivacyLoss], target: float) -> float:
    """The largest epsilon for the mechanism with which the upper bound stays within a target.

    Parameters
    ----------
    loss : Callable[[float], PrivacyLoss]
        Gives the loss for an epsilon; nondecreasing.
    target : float
        The loss for the population, above 0.

    Returns
    -------
    float
        The epsilon, infinite if any would do.

    Examples
    --------
    >>> round(largest_epsilon(lambda e: randomized_rounding(e, 0.01), target=1.0), 6)
    1.905909
    """
    _check_epsilon(target)
    high = target
    while loss(high).upper <= target:
        high *= 2
        if high > 300:
            return inf
    return _largest(loss, target, 0.0, high)


def largest_rate(loss: Callable[[float], PrivacyLoss], target: float) -> float:
    """The largest rate in [0, 1] whose upper bound stays within a target loss.

    Parameters
    ----------
    loss : Callable[[float], PrivacyLoss]
        Gives the loss for a rate; nondecreasing.
    target : float
        The loss for the population, above 0.

    Examples
    --------
    >>> round(largest_rate(lambda r: poisson_sample(1.0, r), target=0.1), 6)
    0.061207
    """
    _check_epsilon(target)
    return 1.0 if loss(1.0).upper <= target else _largest(loss, target, 0.0, 1.0)


def largest_size(loss: Callable[[int], PrivacyLoss], target: float, most: int) -> int:
    """The largest size (of a sample, in records or clusters) whose upper bound stays within a target loss.

    Parameters
    ----------
    loss : Callable[[int], PrivacyLoss]
        Gives the loss for a size from 0 to `most`; nondecreasing, and 0 for size 0.
    target : float
        The loss for the population, above 0.
    most : int
        The largest size there is.

    Examples
    --------
    >>> largest_size(lambda m: simple_random_sample(1.0, m, 100), target=0.1, most=100)
    6
    """
    _check_epsilon(target)
    low, high = 0, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if loss(middle).upper <= target else (low, middle)
    return low


def _largest(loss: Callable[[float], PrivacyLoss], target: float, low: float, high: float) -> float:
    """Bisect until the interval holds no number between; `low` is always within the target."""
    while True:
        middle = (low + high) / 2
        if not low < middle < high:
            return low
        low, high = (middle, high) if loss(middle).upper <= target else (low, middle)


# -- what the arguments must be ----------------------------------------------------------------------------


def _amplified(share: float, epsilon: float) -> float:
    """``log(1 + share * (e^epsilon - 1))``, also where e^epsilon overflows."""
    if share == 0:
        return 0.0
    return log1p(share * expm1(epsilon)) if epsilon < 700 else float(np.logaddexp(0, epsilon + log(share)))


def _swap(epsilon: float, mechanism: SampleRelation) -> float:
    """What a substitution costs the mechanism."""
    return 2 * epsilon if mechanism == "add_remove" else epsilon


def _known(loss: float, source: str) -> PrivacyLoss:
    return PrivacyLoss(loss, loss, loss, source)


def _check_epsilon(epsilon: float) -> None:
    if not (isfinite(epsilon) and epsilon > 0):
        raise DeclarationError(f"epsilon is {epsilon}; it must be positive and finite")


def _check_rate(rate: float) -> None:
    if not 0 <= rate <= 1:
        raise DeclarationError(f"rate is {rate}; it must be from 0 to 1")


def whole_number(value: Any, what: str) -> int:
    """A number that must be whole: a fraction would be another design, so it is not cut.

    Raises:
        DeclarationError: naming `what` and the value.
    """
    if isinstance(value, bool) or not isfinite(value) or value != int(value):
        raise DeclarationError(f"{what} is {value}; it must be a whole number")
    return int(value)


def _check_sizes(size: int, population: int) -> None:
    size, population = whole_number(size, "size"), whole_number(population, "population")
    if population < 1:
        raise DeclarationError(f"population is {population}; it must be at least 1")
    if not 0 <= size <= population:
        raise DeclarationError(f"size is {size}; it must be from 0 to {population}, the population")


def _law(law: Any) -> Array:
    t = as_numbers(law, "law")
    if t.ndim != 1 or len(t) < 2:
        raise DeclarationError(f"law has shape {t.shape}; it must give the probabilities of 0..n, n >= 1")
    if (t < 0).any() or abs(t.sum() - 1) > 1e-9:
        raise DeclarationError(f"law sums to {t.sum():g}; it must be nonnegative and sum to 1")
    return t


def _whole(values: Any, what: str) -> Array:
    n = as_numbers(values, what)
    if n.ndim != 1 or not len(n) or (n < 0).any() or (n != np.round(n)).any():
        raise DeclarationError(f"{what} must be a list of whole numbers, none negative; they are {values}")
    return n.astype(np.int64)
