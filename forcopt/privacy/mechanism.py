"""Mechanisms as objects: their releases, privacy profiles and compositions."""

from __future__ import annotations

from abc import abstractmethod
from math import sqrt
from typing import Any, Literal

import numpy as np
from pydantic import Field, model_validator

from forcopt.arrays import Array, as_numbers, refuse_entry, whole_number
from forcopt.declaration import Declared
from forcopt.errors import DeclarationError, require_shape
from forcopt.privacy.losses import AtomLoss, GaussianLoss, Neighbours, symmetric_loss
from forcopt.privacy.noises import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, Noise
from forcopt.privacy.profile import Profile
from forcopt.privacy.randomness import Randomness, Release, Simulated, opendp

EXACT = 2.0**53
"""Whole numbers up to this are exact floats."""

ABLE: dict[str, tuple[type[Noise], ...]] = {
    "l1": (Laplace, DiscreteLaplace, Gaussian, DiscreteGaussian),
    "l2": (Gaussian, DiscreteGaussian),
}
"""The noises whose worst change of several numbers is known in a norm."""


class Channel(Declared):
    """Any random map of data.

    Private data go through one only by a query of a `Table` and a `Ledger`, or by a method of a problem that
    spends from a ledger. Bare numbers are simulated, and marked so.
    """

    def simulate(self, values: Any, seed: int | np.random.Generator) -> Release:
        """Send numbers through the channel by draws with a seed, which are not private.

        Parameters
        ----------
        values : array_like
            The numbers of a study.
        seed : int or numpy.random.Generator
            Repeats it.

        Raises
        ------
        DeclarationError
            Without a seed: a private release is ``(query >> mechanism).release(ledger)``.
        """
        return Release(self._send(values, Simulated(seed)), self.describe(), True)

    @abstractmethod
    def _send(self, values: Any, rng: Randomness) -> Any:
        """The output, without a label; called after a ledger has paid, or with a seed."""

    def describe(self) -> dict[str, Any]:
        """The declaration, as a release shows it."""
        return self.to_dict()

    def total_variation(self, output: Any) -> float:
        """A bound on the total variation between the secure draws of such an output and the declared law.

        It is a function of the declaration and of what is drawn, so that it tells nothing else of the data.
        """
        return 0.0


class Mechanism(Channel):
    """A channel whose outputs are close for neighbouring data, by its profile.

    `Profile` composes several, and ``design.amplify(profile)`` is that of a sample of the records.
    """

    @property
    def neighbours(self) -> Neighbours | None:
        """The relation between data for which the profile holds; None for that of the sensitivity."""
        return None

    @abstractmethod
    def profile(self, distance: int = 1) -> Profile:
        """The privacy profile between data that are `distance` neighbours apart."""


class AdditiveMechanism(Mechanism):
    """Independent noise of one law added to each number.

    Parameters
    ----------
    noise : Noise
        The law.
    sensitivity : float
        The largest change of the numbers by one person, in `norm`; above 0.
    norm : {"l1", "l2", "linf"}
        In which norm. ``"l1"`` is for Laplace and Gaussian noise and their whole kin, ``"l2"`` for the
        Gaussian and its kin. Under ``"linf"`` each of `dimension` numbers may change by
        `sensitivity`, and any even log-concave noise will do.
    dimension : int
        The number of numbers. Laplace and Gaussian noise and their whole kin under ``"l1"``, and the Gaussian
        under ``"l2"``, have one profile for any number of them, and need none.

    Notes
    -----
    The worst change within the norm is known: all in one number under ``"l1"``; any direction under ``"l2"``
    for the Gaussian; all numbers at once under ``"linf"``, since the loss of an even log-concave law grows
    with each shift, the others being given. The discrete Gaussian under ``"l2"`` is known by its rho only,
    unless one number is released. A table that is not log-concave is for one number that changes by 1.

    Examples
    --------
    >>> from forcopt.privacy import Gaussian
    >>> mechanism = AdditiveMechanism(Gaussian(scale=2.0), sensitivity=1.0, norm="linf", dimension=100)
    >>> mechanism.profile().mu
    5.0
    >>> mechanism.simulate([10.0] * 100, seed=0).simulated
    True
    """

    noise: Noise
    sensitivity: float = Field(default=1.0, gt=0.0, allow_inf_nan=False)
    norm: Literal["l1", "l2", "linf"] = "l1"
    dimension: int = Field(default=1, ge=1)

    @model_validator(mode="after")
    def _norm_fits(self) -> AdditiveMechanism:
        if self.dimension > 1 and self.norm != "linf" and not isinstance(self.noise, ABLE[self.norm]):
            raise DeclarationError(
                f"AdditiveMechanism: norm is {self.norm!r}, whose worst change of {self.dimension} numbers "
                f'is not known for {type(self.noise).__name__}; use norm="linf"'
            )
        if self.dimension > 1 or self.sensitivity > 1:
            self._check_log_concave()
        return self

    def _check_log_concave(self) -> None:
        broken = getattr(self.noise, "not_log_concave", None)
        if broken is not None:
            raise DeclarationError(
                f"AdditiveMechanism: the table of the noise is not log-concave at {broken}, so its worst "
                "change is known for one number that changes by 1 only"
            )

    def profile(self, distance: int = 1) -> Profile:
        """See `Mechanism`."""
        shift = self.sensitivity * whole_distance(distance)
        if self.norm == "linf":
            return self._one(shift) ** self.dimension
        if isinstance(self.noise, Gaussian):
            return Profile.of(GaussianLoss(shift / self.noise.scale))
        if isinstance(self.noise, DiscreteGaussian) and self.norm == "l2" and self.dimension > 1:
            return Profile.concentrated(self.noise.rho(shift))
        return self._one(shift)

    def _one(self, shift: float) -> Profile:
        """The profile of one number; if the noise is not even, both directions of the shift count."""
        if shift > 1:
            self._check_log_concave()
        profile = self.noise.profile(shift)
        if len(profile.directions) == 1 or not isinstance(loss := profile.single()[0], AtomLoss):
            return profile
        both = symmetric_loss(loss)
        return Profile.of(both, tight=both is loss)

    @property
    def _any_number(self) -> bool:
        """Whether the profile does not depend on how many numbers are released."""
        if self.norm == "l2":
            return isinstance(self.noise, Gaussian)
        return self.norm == "l1" and isinstance(self.noise, ABLE["l1"])

    def _numbers(self, values: Any) -> Array:
        """The numbers to release, if the profile and the noise are for them."""
        exact = as_numbers(values, "values")
        if exact.size != self.dimension and not (self.dimension == 1 and self._any_number):
            raise DeclarationError(f"values has {exact.size} numbers; dimension is {self.dimension}")
        if self.noise.whole:
            if (large := np.abs(exact) > EXACT).any():
                first = int(np.argmax(large))
                rule = "at most 2^53 in absolute value, as larger whole numbers are not exact floats"
                refuse_entry(exact.shape, first, exact.flat[first], "values", rule)
            if (exact != np.round(exact)).any():
                raise DeclarationError("values must be whole, since the noise is; round them first")
        return exact

    def _send(self, values: Any, rng: Randomness) -> Array:
        """See `Channel`."""
        exact = self._numbers(values)
        if self.noise.whole:
            return np.asarray(exact.astype(np.int64) + self.noise.sample(exact.shape, rng).astype(np.int64))
        if rng.simulated:
            return np.asarray(exact + self.noise.sample(exact.shape, rng))
        release = opendp_measurement(self.noise)[0]
        return np.array(release(exact.ravel().tolist()), dtype=float).reshape(exact.shape)

    def total_variation(self, output: Any) -> float:
        """See `Channel`."""
        return self.noise.total_variation * int(np.size(output))

    @property
    def error(self) -> float:
        """The root mean square error of each number."""
        return sqrt(self.noise.variance)

    def margin(self, level: float) -> float:
        """How far the noise moves a number at most, with probability `level`."""
        tail = (1 - level) / 2
        return float(max(self.noise.quantile(1 - tail), -self.noise.quantile(tail)))

    def covers(self, change: Any, shape: tuple[int, ...]) -> None:
        """Refuse a query of another number of numbers, or of a larger `Sensitivity`.

        Raises
        ------
        DeclarationError
            Naming the two numbers.
        """
        size, most = int(np.prod(shape)), float(getattr(change, self.norm))
        if size != self.dimension and not (self.dimension == 1 and self._any_number):
            raise DeclarationError(f"dimension is {self.dimension}; the query has {size} numbers")
        if self.sensitivity < most:
            raise DeclarationError(
                f"sensitivity is {self.sensitivity:g} in {self.norm}; one unit changes the query by {most:g}"
            )


def opendp_measurement(noise: Noise) -> tuple[Any, str]:
    """The measurement of OpenDP that adds a noise to a vector, and the norm of its map."""
    if not isinstance(noise, Laplace | Gaussian | DiscreteLaplace | DiscreteGaussian):
        raise DeclarationError(
            f"{type(noise).__name__} is noise that OpenDP does not draw, and floating-point draws are not "
            "private: take noise.on_integers() for whole values, or simulate with a seed"
        )
    dp, number = opendp(), int if noise.whole else float
    gaussian = isinstance(noise, Gaussian | DiscreteGaussian)
    make, metric = (dp.m.make_gaussian, dp.l2_distance) if gaussian else (dp.m.make_laplace, dp.l1_distance)
    domain = dp.vector_domain(dp.atom_domain(T=number, nan=None if noise.whole else False))
    return make(domain, metric(T=number), scale=float(noise.scale)), "l2" if gaussian else "l1"


def whole_distance(distance: int) -> int:
    """The distance, if it is one."""
    return whole_number(distance, "distance", 1)


class ExponentialMechanism(Mechanism):
    """Choose a candidate of small loss, with epsilon-differential privacy.

    Parameters
    ----------
    epsilon : float
        The privacy loss of the choice, above 0.
    sensitivity : float
        The largest change of any loss by one person; above 0.

    Notes
    -----
    With `Secure`, OpenDP chooses, by report-noisy-min with exponential noise: "permute and flip", whose
    expected loss is never above the exponential mechanism's. With ``Simulated(seed)`` numpy draws from
    the exponential mechanism: candidate h with probability proportional to
    ``exp(-epsilon losses[h] / (2 sensitivity))``. Either way, with probability 1 - beta the loss is at most
    ``2 sensitivity / epsilon * ln(h / beta)`` above the least.

    References
    ----------
    McSherry and Talwar (2007); McKenna and Sheldon (2020), Permute-and-flip.

    Examples
    --------
    >>> choice = ExponentialMechanism(epsilon=100.0, sensitivity=0.1)
    >>> int(choice.simulate([0.5, 0.1, 0.4], seed=0).values), choice.profile().epsilon(0.0)
    (1, 100.0)
    """

    epsilon: float = Field(gt=0.0, allow_inf_nan=False)
    sensitivity: float = Field(default=1.0, gt=0.0, allow_inf_nan=False)

    def profile(self, distance: int = 1) -> Profile:
        """See `Mechanism`: the worst that pure privacy allows, an upper bound."""
        return Profile.pure(self.epsilon * whole_distance(distance))

    @classmethod
    def calibrated(cls, budget: Any) -> Any:
        """The largest epsilon within a budget, for the sensitivity of a query; see `Calibrated`."""
        from forcopt.privacy.queries import Calibrated

        return Calibrated(cls, budget)

    def covers(self, change: Any, shape: tuple[int, ...]) -> None:
        """Refuse a query of a larger sensitivity; see `AdditiveMechanism.covers`."""
        if self.sensitivity < change.l1:
            raise DeclarationError(
                f"sensitivity is {self.sensitivity:g}; one unit changes the query by up to {change.l1:g}"
            )

    def _send(self, values: Any, rng: Randomness) -> Any:
        """See `Channel`: the place of the chosen candidate, given the losses, shape ``(h,)``.

        Of losses of shape ``(k, h)`` k places; the sensitivity then is that of all k rows together.
        """
        losses = as_numbers(values, "losses").astype(float)
        if losses.ndim == 2 and losses.size:
            return np.array([self._send(row, rng) for row in losses])
        require_shape(losses.ndim == 1 and losses.size, "losses has", losses, "be (h,), at least one")
        scale = 2 * self.sensitivity / self.epsilon
        if rng.simulated:
            return int(np.argmax(rng.generator().gumbel(scale=scale, size=len(losses)) - losses))
        dp = opendp()
        domain = dp.vector_domain(dp.atom_domain(T=float, nan=False))
        choose = dp.m.make_noisy_max(
            domain, dp.linf_distance(T=float), dp.max_divergence(), scale=float(scale), negate=True
        )
        return int(choose(losses.tolist()))
