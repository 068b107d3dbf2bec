"""Randomized response: everybody reports their group truthfully only with some probability."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import numpy as np
from pydantic import Field

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.privacy.ledger import Ledger, pay
from forcopt.privacy.losses import AtomLoss, Neighbours, pure_loss
from forcopt.privacy.mechanism import Mechanism, whole_distance
from forcopt.privacy.noises import TabulatedNoise
from forcopt.privacy.profile import Profile
from forcopt.privacy.randomness import Randomness, randomness
from forcopt.privacy.tolerances import EXPONENT


class RandomizedResponse(Mechanism):
    """The channel of K-ary randomized response (Warner 1965; Kairouz, Bonawitz and Ramage 2016).

    A person of group a reports a with probability ``pi = e^epsilon / (K - 1 + e^epsilon)`` and each other
    group with ``1 / (K - 1 + e^epsilon)``. That is epsilon-local differential privacy: no report is more than
    e^epsilon times likelier under one group than under another.

    Attributes
    ----------
    epsilon : float
        The privacy loss of one report, above 0.
    groups : int, optional
        The number of groups, K. `release` needs it; tables and columns of another number are refused.

    Examples
    --------
    >>> channel = RandomizedResponse(np.log(3))
    >>> channel.transition(2).round(12).tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """

    epsilon: float = Field(gt=0.0, allow_inf_nan=False)
    groups: int | None = Field(default=None, ge=2)

    def profile(self, distance: int = 1) -> Profile:
        """The profile of the reports of as many people; without `groups` for two groups, the worst case."""
        return self._one ** whole_distance(distance)

    @property
    def neighbours(self) -> Neighbours | None:
        """See `Mechanism`: one person has another group; the number of reports is not protected."""
        return "substitute"

    @property
    def _one(self) -> Profile:
        if self.groups in (None, 2) or self.epsilon > EXPONENT:
            return Profile.of(pure_loss(self.epsilon))
        truth, lie = self._probabilities(self.groups or 2)
        p = np.array([truth, lie, ((self.groups or 2) - 2) * lie])
        return Profile.of(AtomLoss(p, p[[1, 0, 2]], self.epsilon))

    def _send(self, values: Any, rng: Randomness) -> Array:
        """See `Channel`: the reports of people whose groups are coded 0 to ``groups - 1``."""
        if self.groups is None:
            raise DeclarationError("RandomizedResponse: give groups, their number, to release")
        return self._reports(values, self.groups, rng)

    def total_variation(self, output: Any) -> float:
        """See `Channel`: the deviation of the table of 63 bits, once for each report."""
        return self._turns(self.groups or 2).total_variation * int(np.size(output))

    def transition(self, groups: int) -> Array:
        """The probability of each report (row) given each group (column); symmetric, shape ``(K, K)``."""
        truth, lie = self._probabilities(groups)
        return np.full((groups, groups), lie) + np.diag(np.full(groups, truth - lie))

    def inverse(self, groups: int) -> Array:
        """The inverse of `transition`, in closed form; its rows sum to 1 (Mozannar et al. 2020, Lemma 1)."""
        truth, lie = self._probabilities(groups)
        gap = truth - lie
        return np.diag(np.full(groups, 1 / gap)) - lie / gap

    def _probabilities(self, groups: int) -> tuple[float, float]:
        if groups < 2:
            raise DeclarationError(f"groups is {groups}; a channel needs at least 2")
        if self.groups not in (None, groups):
            raise DeclarationError(f"the channel is for {self.groups} groups; these are {groups}")
        other = np.exp(-self.epsilon)  # divided through by e^epsilon, which may overflow
        return float(1 / (1 + (groups - 1) * other)), float(other / (1 + (groups - 1) * other))

    def privatize(
        self,
        codes: Any,
        groups: int,
        seed: int | np.random.Generator | None = None,
        *,
        ledger: Ledger | str | Path | None = None,
    ) -> Array:
        """The reports of people of these groups: each group is sent through the channel once.

        Parameters
        ----------
        codes : Any
            Integers from 0 to groups - 1, shape ``(n,)``.
        groups : int
            The number of groups, K.
        seed : int or numpy.random.Generator, optional
            Simulates; without one the system's randomness is drawn from.
        ledger : Ledger, str or Path, optional
            Of all releases about the same people, or its file. Without a seed the reports spend from it.

        Raises
        ------
        DeclarationError
            For a code out of range, and without both seed and ledger.

        Examples
        --------
        >>> RandomizedResponse(1.0).privatize([0, 0, 1, 1, 2, 2], 3, seed=0).tolist()
        [0, 2, 0, 2, 0, 2]
        """
        rng = randomness(seed=seed)
        self._probabilities(groups)  # refuses another number of groups before the ledger is charged
        pay(ledger, self, rng, "randomized response", "substitute")
        return self._reports(codes, groups, rng)

    def _turns(self, groups: int) -> TabulatedNoise:
        """By how many groups, in a circle, a report is off."""
        truth, lie = self._probabilities(groups)
        return TabulatedNoise(np.array([truth, *[lie] * (groups - 1)]), first=0)

    def _reports(self, codes: Any, groups: int, rng: Randomness) -> Array:
        true = np.asarray(codes)
        if true.size and (true.dtype.kind not in "iu" or true.min() < 0 or true.max() >= groups):
            raise DeclarationError(f"codes must be integers from 0 to {groups - 1}")
        if not rng.simulated:
            return np.asarray((true + self._turns(groups).sample(true.shape, rng)) % groups)
        generator, truth = rng.generator(), self._probabilities(groups)[0]
        others = (true + generator.integers(1, groups, size=true.shape)) % groups
        return np.where(generator.random(true.shape) < truth, true, others)

    def debias(self, table: Any, axis: int = 0) -> Array:
        """Estimate a table by true group from one by reported group: the channel inverted along `axis`.

        The estimate is unbiased; cells may come out negative.

        Examples
        --------
        >>> reported = RandomizedResponse(1.0).transition(2) @ [30.0, 70.0]
        >>> RandomizedResponse(1.0).debias(reported).round(9).tolist()
        [30.0, 70.0]
        """
        by_report = np.moveaxis(np.asarray(table, dtype=float), axis, 0)
        return np.moveaxis(np.tensordot(self.inverse(len(by_report)), by_report, axes=1), 0, axis)

    def observe(self, reports: Any) -> ObservedGroups:
        """Declare these reports (a column of groups) as outputs of this channel."""
        return ObservedGroups(reports, self)


@dataclass(frozen=True, eq=False)
class ObservedGroups:
    """A column of groups that was seen through a channel.

    Attributes
    ----------
    reports : Any
        The group that each record reports, shape ``(n,)``.
    channel : RandomizedResponse
        The channel that the true groups were sent through.

    Examples
    --------
    >>> from forcopt.privacy import RandomizedResponse
    >>> channel = RandomizedResponse(epsilon=1.0)
    >>> seen = channel.observe(["a", "b", "b"])
    >>> seen.channel.epsilon, list(seen.reports)
    (1.0, ['a', 'b', 'b'])
    """

    reports: Any
    channel: RandomizedResponse
    ndim: ClassVar[int] = 1  # one column, though no array

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse to be taken for a column of true groups."""
        raise DeclarationError(
            "these groups are reports through a channel; only FairClassification, FairClassifier, "
            "FairPostprocessing.from_predictions, MulticlassPostprocessing.from_predictions, "
            "ScorePostprocessing and LexifairClassification estimate rates of true groups from reports"
        )

    def __iter__(self) -> NoReturn:
        """Refuse, as `__array__`."""
        self.__array__()
