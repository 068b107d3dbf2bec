"""Stratified samples, samples of whole clusters, and shares that are rounded at random."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from itertools import product
from math import floor, inf, isfinite, log, prod
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, get_args

import numpy as np
from pydantic import Field

from forcopt.arrays import Array, as_fraction, whole_number
from forcopt.declaration import Name
from forcopt.errors import DeclarationError, check_choice, require
from forcopt.privacy.amplification.design import Design, Population, Rate, SizeLaw, chosen, groups_of
from forcopt.privacy.amplification.loss import (
    PrivacyLoss,
    amplified,
    amplified_by_log,
    check_epsilon,
    check_rate,
    known,
    log_mean,
    whole_numbers,
)
from forcopt.privacy.amplification.sizes import simple_random_sample
from forcopt.privacy.losses import Neighbours

if TYPE_CHECKING:
    from pandas import DataFrame


class RandomizedRounding(Design):
    """A share of the records; the size is rounded up or down at random so that its mean is the share.

    Attributes
    ----------
    rate : float
        The share, from 0 to 1, read as the simplest fraction that it stands for.

    References
    ----------
    Bun et al. (2022), section 4.2.

    Examples
    --------
    >>> from forcopt.privacy import RandomizedRounding
    >>> loss = RandomizedRounding(rate=0.15).loss(1.0, 100)
    >>> round(loss.lower, 4), round(loss.upper, 4)
    (0.5696, 0.9285)
    """

    rate: Rate

    def size_law(self, counts: Sequence[int]) -> SizeLaw:
        """See `Design`: one or two sizes."""
        sizes, probabilities = _two_sizes(simplest(self.rate), self.total(counts))
        return [((int(m),), float(p)) for m, p in zip(sizes, probabilities, strict=True)]

    def loss(self, epsilon: float, population: Population = None) -> PrivacyLoss:
        """See `Design`: bounds; without a population, for any of at least 1 / rate records."""
        return randomized_rounding(epsilon, self.rate, None if population is None else self.total(population))

    def take(self, frame: DataFrame, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw."""
        rows = _share(self.rate, np.arange(len(frame)), rng)
        return rows, np.full(len(rows), self.rate)


class ProportionalAllocation(Design):
    """The same share of every stratum, rounded at random in each.

    Attributes
    ----------
    by : str
        The column that names each record's stratum.
    rate : float
        The share, as in `RandomizedRounding`.

    References
    ----------
    Bun et al. (2022), section 6.3.

    Examples
    --------
    >>> from forcopt.privacy import ProportionalAllocation
    >>> loss = ProportionalAllocation(by="town", rate=0.1).loss(1.0, {"a": 15, "b": 30})
    >>> round(loss.lower, 4), round(loss.upper, 4)
    (0.4211, 0.7598)
    """

    by: str
    rate: Rate

    def size_law(self, counts: Sequence[int]) -> SizeLaw:
        """See `Design`: the strata are rounded independently."""
        laws = [RandomizedRounding(rate=self.rate).size_law([n]) for n in counts]
        return [(tuple(m for (m,), _ in choice), prod(p for _, p in choice)) for choice in product(*laws)]

    def loss(self, epsilon: float, population: Population = None) -> PrivacyLoss:
        """See `Design`: bounds; without a population, for any strata of at least 1 / rate records."""
        counts = None if population is None else self.counts(population)
        return proportional_allocation(epsilon, self.rate, counts)

    def take(self, frame: DataFrame, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw."""
        parts = [_share(self.rate, part, rng) for part in groups_of(frame, self.by).values()]
        rows = np.concatenate(parts or [np.empty(0, dtype=np.int64)])
        return rows, np.full(len(rows), self.rate)


class StratifiedSample(Design):
    """A fixed number of records of each stratum without replacement.

    Attributes
    ----------
    by : str
        The column that names each record's stratum.
    sizes : Mapping[str, int]
        The size of the sample of each stratum of the table; the allocations of
        `forcopt.models.StratifiedAllocation` give it by ``decision.by_stratum()``.

    Examples
    --------
    >>> from forcopt.privacy import StratifiedSample
    >>> round(StratifiedSample(by="town", sizes={"a": 2, "b": 3}).loss(0.5, {"a": 20, "b": 50}).exact, 4)
    0.0629
    """

    neighbours: ClassVar[Neighbours] = "substitute"
    by: str
    sizes: Mapping[str, Annotated[int, Field(ge=0)]]

    def size_law(self, counts: Sequence[int]) -> SizeLaw:
        """See `Design`."""
        return [(tuple(self.sizes.values()), 1.0)]

    def loss(self, epsilon: float, population: Population = None) -> PrivacyLoss:
        """See `Design`: exact for a substitution within a stratum; the largest share decides."""
        pairs = zip(self.sizes.values(), self.counts(population), strict=True)
        losses = [simple_random_sample(epsilon, size, n) for size, n in pairs if size or n]
        return max(losses, default=known(0.0, "no record"))._replace(source="Theorem 2 for each stratum")

    def counts(self, population: Population) -> list[int]:
        """See `Design`."""
        if not isinstance(population, Mapping):
            raise DeclarationError("population must give the number of records of each stratum, by name")
        self._check_names(population, "population")
        return [population[s] for s in self.sizes]

    def _check_names(self, strata: Collection[str], whole: str) -> None:
        for name in {*strata} ^ {*self.sizes}:
            where = "sizes" if name in strata else whole
            raise DeclarationError(f"stratum {name!r} is missing in {where}")

    def take(self, frame: DataFrame, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw."""
        strata = groups_of(frame, self.by)
        self._check_names(strata, "the table")
        parts, shares = [], []
        for name, rows in strata.items():
            size = self.sizes[name]
            if size > len(rows):
                raise DeclarationError(f"sizes: {name!r} is {size}; the stratum has {len(rows)} records")
            parts.append(rng.choice(rows, size, replace=False))
            shares.append(np.full(size, size / len(rows)))
        return np.concatenate(parts), np.concatenate(shares)


def rounded_sizes(rate: float, population: int) -> Array:
    """The law of a size that is ``rate * population`` rounded at random so that its mean is just that.

    Parameters
    ----------
    rate : float
        From 0 to 1, read as the simplest fraction that it stands for: 0.1 is 1/10.
    population : int
        The number of records, n.

    Returns
    -------
    Array
        The probability of each size 0..n, shape ``(n + 1,)``.

    Examples
    --------
    >>> rounded_sizes(0.1, 14).round(12)[:3].tolist()
    [0.0, 0.6, 0.4]
    """
    check_rate(rate)
    population = whole_number(population, "population")
    law = np.zeros(population + 1)
    sizes, probabilities = _two_sizes(simplest(rate), population)
    law[sizes] = probabilities
    return law


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
        Lower: the loss of a noisy sum. Upper: for a given population, the sharper bound of the proof.

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
    check_epsilon(epsilon)
    check_rate(rate)
    if rate in (0, 1):
        return known(rate * epsilon, "no sample" if rate == 0 else "census")
    share = simplest(rate)
    if population is None:
        first = -floor(-1 / share)
        tried = range(first, first + min(int(1 / share) + 1, 1000))
        lower = max(_noisy_sum(epsilon, share, n) for n in tried)
        upper = amplified(2 * rate, 2 * epsilon) + amplified(rate, 2 * epsilon)
        if as_printed:
            return PrivacyLoss(lower, upper, None, "Theorem 6 as printed")
        return PrivacyLoss(lower, min(upper, 2 * epsilon), None, "Theorem 6")
    population = whole_number(population, "population", 1)
    taken = Fraction(floor(share * population) + 1, population + 1)
    rises = floor(share * (population + 1)) > floor(share * population)
    upper = amplified(float(taken), 2 * epsilon) + amplified(rate, (1 + rises) * epsilon)
    lower = _noisy_sum(epsilon, share, population)
    return PrivacyLoss(lower, min(upper, 2 * epsilon), None, "proof of Theorem 6")


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

    Returns
    -------
    PrivacyLoss
        For the population: a lower and an upper bound.

    References
    ----------
    Theorem 11: the samples of the strata are independent, so that the worst stratum decides.

    Examples
    --------
    >>> round(proportional_allocation(0.1, 0.05).upper, 6)
    0.032908
    """
    if sizes is None:
        return randomized_rounding(epsilon, rate)._replace(source="Theorem 11")
    losses = [randomized_rounding(epsilon, rate, int(n)) for n in np.unique(whole_numbers(sizes, "sizes"))]
    lower, upper = max(x.lower for x in losses), max(x.upper for x in losses)
    return PrivacyLoss(lower, upper, lower if lower == upper else None, "Theorem 11")


def data_dependent_allocation(epsilon: float, before: Any, after: Any) -> PrivacyLoss:
    """The loss of a stratified sample whose sizes are a fixed function of the population.

    M is private under adding or removing a record; the sizes are `before` for one population and `after` for
    its neighbour, which has one record more.

    Parameters
    ----------
    epsilon : float
        The loss of M.
    before, after : array_like
        The sizes of the strata's samples, whole numbers of shape ``(k,)``.

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
    check_epsilon(epsilon)
    one, other = whole_numbers(before, "before"), whole_numbers(after, "after")
    if one.shape != other.shape:
        raise DeclarationError(f"before has {len(one)} strata, after {len(other)}; they must be the same")
    distance = int(np.abs(one - other).sum())
    return PrivacyLoss(epsilon * distance, epsilon * (distance + 2), None, "Section 4.1")


def simplest(rate: float) -> Fraction:
    """The fraction nearest to a rate, with a denominator of at most 1e9."""
    return as_fraction(rate, "nearest", 10**9)


def _two_sizes(share: Fraction, population: int) -> tuple[Array, Array]:
    """The sizes that a rounded share may have, one or two, and their probabilities."""
    below = floor(share * population)
    up = float(share * population - below)
    return (np.array([below, below + 1]), np.array([1 - up, up])) if up else (np.array([below]), np.ones(1))


def _noisy_sum(epsilon: float, share: Fraction, n: int) -> float:
    """The most that a noisy sum finds out, with -1, 0 or 1 for the records of P, and for the new one."""
    before, after = _two_sizes(share, n), _two_sizes(share, n + 1)
    best = 0.0
    for common in (-1, 0, 1):
        for new in (-1, 0, 1):
            left = log_mean(*before, n, common * epsilon, 0.0)
            right = log_mean(*after, n + 1, common * epsilon, (new - common) * epsilon)
            best = max(best, abs(left - right))
    return best


def _share(rate: float, rows: Array, rng: np.random.Generator) -> Array:
    share = simplest(rate) * len(rows)
    below = floor(share)
    return np.asarray(rng.choice(rows, below + int(chosen(share - below, 1, rng)[0]), replace=False))


class ClusterSample(Design):
    """All records of a fixed number of clusters; all sets of this many clusters are equally likely.

    Attributes
    ----------
    by : str
        The column that names each record's cluster.
    chosen : int
        The number of clusters in the sample.
    names : tuple[str, ...], optional
        Of all clusters, also of those without records; those that occur by default. A release needs them:
        whether a cluster occurs may depend on one record.

    Examples
    --------
    >>> from forcopt.privacy import ClusterSample
    >>> round(ClusterSample(by="town", chosen=1).loss(0.5, [20, 30, 50]).upper, 4)
    0.5
    """

    by: str
    chosen: int = Field(ge=0)
    names: tuple[Name, ...] = Field(default=(), kw_only=True)

    @property
    def reads_names(self) -> bool:
        """See `Design`."""
        return not self.names

    def loss(self, epsilon: float, population: Population = None) -> PrivacyLoss:
        """See `Design`: exact, for the worst cluster."""
        return cluster_sample(epsilon, self.counts(population), self.chosen)

    def take(self, frame: DataFrame, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw."""
        found = groups_of(frame, self.by)
        for name in set(found) - set(self.names or found):
            raise DeclarationError(f"column {self.by!r} holds {name!r}; names are {', '.join(self.names)}")
        clusters = [found.get(name, np.empty(0, dtype=np.int64)) for name in self.names or found]
        if self.chosen > len(clusters):
            raise DeclarationError(f"chosen is {self.chosen}; the table has {len(clusters)} clusters")
        taken = rng.choice(len(clusters), self.chosen, replace=False)
        rows = np.concatenate([clusters[i] for i in taken] or [np.empty(0, dtype=np.int64)])
        return rows, np.full(len(rows), self.chosen / len(clusters))


def cluster_sample(
    epsilon: float,
    sizes: Any,
    chosen: int,
    changed: int | None = None,
    *,
    neighbours: Neighbours = "add_remove",
) -> PrivacyLoss:
    """The loss of taking `chosen` whole clusters, all sets of this size being equally likely.

    M is private under adding or removing a record, since clusters differ in size.

    Parameters
    ----------
    epsilon : float
        Of M.
    sizes : Any
        The number of records of each cluster, before one is added; shape ``(k,)``.
    chosen : int
        The number of clusters in the sample, from 0 to k.
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
    check_epsilon(epsilon)
    check_choice("neighbours", neighbours, *get_args(Neighbours))
    n = whole_numbers(sizes, "sizes")
    k = len(n)
    chosen = whole_number(chosen, "chosen")
    require(0 <= chosen <= k, "chosen", chosen, f"be from 0 to {k}, the number of clusters")
    if changed is None:
        able = range(k) if neighbours == "add_remove" else np.flatnonzero(n)
        if not len(able):
            raise DeclarationError(f"sizes are {n.tolist()}; there is no record that could be substituted")
        losses = [cluster_sample(epsilon, n, chosen, int(i), neighbours=neighbours) for i in able]
        lower, upper = max(x.lower for x in losses), max(x.upper for x in losses)
        return PrivacyLoss(lower, upper, max(x.exact or 0.0 for x in losses), losses[0].source)
    require(0 <= changed < k, "changed", changed, f"be from 0 to {k - 1}")
    if neighbours == "substitute" and n[changed] < 1:
        raise DeclarationError(f"changed is {changed}, an empty cluster: no record can be substituted there")
    steps = 1 if neighbours == "add_remove" else 2
    whole = steps * epsilon
    if chosen in (0, k):
        return known(whole * (chosen == k), "no cluster" if chosen == 0 else "census")
    others = np.delete(n, changed)
    # The changed record distinguishes its cluster from another, unless it was there before.
    own = float(n[changed]) - (steps - 1) * 2

    def loss(log_ratio: float) -> float:
        return amplified_by_log(-float(np.logaddexp(0.0, log_ratio - epsilon * own)), whole)

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
        The evidence that the cluster was taken: the logarithm of the ratio of its probabilities
        with and without it, in the population P.
    share : float
        Of clusters that are taken, l / k.
    loses : Literal["after", "before"], default "after"
        Whether the event is likelier in the changed population P' (``"after"``) or in P.

    Returns
    -------
    float
        At most `within`.

    References
    ----------
    Theorem 9. Its statement has the event likelier in P, its proof in P'; the printed formula belongs to the
    latter. For ``"before"`` the value is the proof's.

    Examples
    --------
    >>> round(revealed_cluster(1.0, 3.0, 0.1), 6), round(revealed_cluster(1.0, 1.0, 0.5, loses="before"), 6)
    (0.782343, 0.620115)
    """
    check_rate(share)
    check_choice("loses", loses, "after", "before")
    if not (isfinite(within) and within >= 0 and isfinite(revealed)):
        raise DeclarationError(f"within is {within}, revealed {revealed}; they must be finite, within >= 0")
    if share in (0, 1):
        return share * within
    # q / p relative to the smaller of p and p', in logarithms
    other = revealed if loses == "after" else revealed - within
    return amplified_by_log(-float(np.logaddexp(0.0, log((1 - share) / share) - other)), within)
