"""Samples of a fixed and of a random size, and Poisson samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np
import scipy
from pydantic import Field

from forcopt.arrays import Array
from forcopt.errors import DeclarationError, check_choice
from forcopt.privacy.amplification.design import Design, Population, Rate, SizeLaw, chosen
from forcopt.privacy.amplification.loss import (
    PrivacyLoss,
    amplified,
    check_epsilon,
    check_rate,
    check_sizes,
    known,
    lessened,
    log_mean,
    size_law,
    swapped,
)
from forcopt.privacy.losses import Neighbours, SampleRelation, SubstitutedLoss, sampled_loss
from forcopt.privacy.profile import Profile

if TYPE_CHECKING:
    from pandas import DataFrame


class SimpleRandomSample(Design):
    """A fixed number of records without replacement; all sets of this size are equally likely.

    Attributes
    ----------
    size : int
        The number of records in the sample.

    Examples
    --------
    >>> from forcopt.privacy import AdditiveMechanism, Laplace, SimpleRandomSample
    >>> round(SimpleRandomSample(size=10).amplify(Laplace(epsilon=1.0).profile(1), 100).epsilon(0.0), 4)
    0.1586
    """

    neighbours: ClassVar[Neighbours] = "substitute"
    size: int = Field(ge=0)

    def size_law(self, counts: Sequence[int]) -> SizeLaw:
        """See `Design`."""
        return [((self.size,), 1.0)]

    def loss(self, epsilon: float, population: Population = None) -> PrivacyLoss:
        """See `Design`: exact."""
        return simple_random_sample(epsilon, self.size, self.total(population))

    def amplify(self, profile: Profile, population: Population = None) -> Profile:
        """See `Design`: exact, for every profile."""
        count = self.total(population)
        check_sizes(self.size, count)
        if self.size == 0:
            return Profile.nothing()
        losses = [SubstitutedLoss(loss, self.size / count) for loss in profile.single()]
        return Profile.of(*losses, tight=profile.tight)

    def take(self, frame: DataFrame, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw."""
        n = len(frame)
        if self.size > n:
            raise DeclarationError(f"size is {self.size}; the table has {n} rows")
        return rng.choice(n, self.size, replace=False), np.full(self.size, self.size / n)


class PoissonSample(Design):
    """Each record independently, with the same probability.

    Attributes
    ----------
    rate : float
        The probability.

    Examples
    --------
    >>> from forcopt.privacy import AdditiveMechanism, Laplace, PoissonSample
    >>> round(PoissonSample(rate=0.1).amplify(Laplace(epsilon=1.0).profile(1)).epsilon(0.0), 4)
    0.1586
    """

    rate: Rate

    def size_law(self, counts: Sequence[int]) -> SizeLaw:
        """See `Design`: binomial sizes."""
        n = self.total(counts)
        chances = scipy.stats.binom.pmf(np.arange(n + 1), n, self.rate)
        return [((m,), float(p)) for m, p in enumerate(chances) if p]

    def loss(self, epsilon: float, population: Population = None) -> PrivacyLoss:
        """See `Design`: exact, whatever the population."""
        return poisson_sample(epsilon, self.rate)

    def amplify(self, profile: Profile, population: Population = None) -> Profile:
        """See `Design`: exact; (1 - rate) Q + rate P against Q, and back."""
        if self.rate == 0:
            return Profile.nothing()
        one, other = profile.single()
        return Profile.of(
            sampled_loss(one, self.rate), sampled_loss(other, self.rate, added=True), tight=profile.tight
        )

    def take(self, frame: DataFrame, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw."""
        rows = np.flatnonzero(chosen(self.rate, len(frame), rng))
        return rows, np.full(len(rows), self.rate)


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

    Parameters
    ----------
    epsilon : float
        The loss of M.
    size : int
        Records in the sample.
    population : int
        Records in the population.
    mechanism : SampleRelation, default "substitute"
        The relation of samples under which M is private.
    neighbours : Neighbours, default "substitute"
        The relation of populations.

    Returns
    -------
    PrivacyLoss
        For the population; exact.

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
    check_epsilon(epsilon)
    check_sizes(size, population)
    check_choice("neighbours", neighbours, *get_args(Neighbours))
    loss = amplified(size / (population + (neighbours == "add_remove")), swapped(epsilon, mechanism))
    return known(loss, "Theorem 2" if neighbours == "substitute" else "Lemma 16")


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
        Under which relation M is private. Under ``"substitute"`` M may reveal the size, and the largest one
        that occurs decides.
    as_printed : bool, default False
        Theorem 3 as it stands, whose proof treats M as private under either relation. Its upper bound is
        wrong if M is private only under ``"add_remove"``, as the theorem states: a census of one record has
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
    check_epsilon(epsilon)
    t = size_law(law)
    n = len(t) - 1
    check_choice("mechanism", mechanism, *get_args(SampleRelation))
    if mechanism == "substitute" and not as_printed:
        return known(amplified(float(np.flatnonzero(t).max()) / n, epsilon), "Theorem 2 for each size")
    share = expected_size(t, epsilon) / n
    if as_printed:
        sizes = np.flatnonzero(t)
        lower = log_mean(sizes, t[sizes], n, epsilon, 0.0) - log_mean(sizes, t[sizes], n, epsilon, -epsilon)
        return PrivacyLoss(lower, amplified(share, epsilon), None, "Theorem 3 as printed")
    upper = amplified(share, swapped(epsilon, mechanism))
    if np.count_nonzero(t) == 1:
        return known(upper, "Theorem 2")
    values = ((-1, 1),) if mechanism == "add_remove" else ((0, 1), (-1, 0))
    sizes = np.flatnonzero(t)
    lower = max(
        log_mean(sizes, t[sizes], n, common * epsilon, (high - common) * epsilon)
        - log_mean(sizes, t[sizes], n, common * epsilon, (low - common) * epsilon)
        for low, high in values
        for common in range(low, high + 1)
    )
    return PrivacyLoss(lower, upper, None, "Theorem 3, corrected")


def expected_size(law: Any, epsilon: float) -> float:
    """The mean of a law of sizes tilted by ``e^(epsilon * size)``, as Theorem 3 needs it.

    Parameters
    ----------
    law : array_like
        The probabilities of sizes 0, 1, ..., of sum 1.
    epsilon : float
        The loss of the mechanism.

    Returns
    -------
    float
        In records.

    Examples
    --------
    >>> expected_size([0.25, 0.5, 0.25], epsilon=0.0)
    1.0
    """
    t = size_law(law)
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

    The size depends on the population, so M must be private under ``"add_remove"`` or ``"either"``.

    Parameters
    ----------
    epsilon : float
        The loss of M.
    rate : float
        From 0 to 1.
    mechanism : {"add_remove", "either"}, default "add_remove"
        The relation of samples under which M is private.
    neighbours : Neighbours, default "add_remove"
        The relation of populations.

    Returns
    -------
    PrivacyLoss
        For the population; exact.

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
    check_epsilon(epsilon)
    check_rate(rate)
    check_choice("mechanism", mechanism, "add_remove", "either")
    check_choice("neighbours", neighbours, *get_args(Neighbours))
    loss = amplified(rate, epsilon)
    if neighbours == "substitute" and mechanism == "add_remove":
        loss += lessened(rate, epsilon)
    return known(loss, "product of the records' laws")
