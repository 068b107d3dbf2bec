"""Mechanisms as objects: their releases, privacy profiles and compositions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from math import isfinite, sqrt
from typing import Any, Literal

import numpy as np
from pydantic import Field, model_validator

from forcopt.arrays import Array, as_numbers, refuse_entry
from forcopt.declaration import Declared
from forcopt.errors import DeclarationError
from forcopt.privacy.amplification.design import Design, Population
from forcopt.privacy.losses import AtomLoss, GaussianLoss, Neighbours, symmetric_loss
from forcopt.privacy.noises import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, Noise, Staircase
from forcopt.privacy.profile import Profile
from forcopt.privacy.randomness import Randomness, Release, Secure, opendp

EXACT = 2.0**53
"""Whole numbers up to this are exact floats."""

ABLE: dict[str, tuple[type[Noise], ...]] = {
    "l1": (Laplace, DiscreteLaplace, Gaussian, DiscreteGaussian),
    "l2": (Gaussian, DiscreteGaussian),
}
"""The noises whose worst change of several numbers is known in a norm."""


class Channel(Declared):
    """Any random map of data.

    ``channel >> f`` is the channel followed by the function f.
    """

    def release(self, values: Any, rng: Randomness | None = None) -> Release:
        """Send data through the channel.

        Parameters
        ----------
        values : array_like
            The data.
        rng : Secure or Simulated
            `Secure` by default; with ``Simulated(seed)`` the release is marked as a simulation.
        """
        rng = Secure() if rng is None else rng
        if not hasattr(rng, "simulated"):
            raise DeclarationError(f"rng is {rng!r}; it must be Secure() or Simulated(seed)")
        out, deviation = self.drawn(values, rng)
        return Release(out, self.describe(), rng.simulated, deviation)

    @abstractmethod
    def send(self, values: Any, rng: Randomness) -> Any:
        """The output, without a label."""

    def drawn(self, values: Any, rng: Randomness) -> tuple[Any, float]:
        """The output, and a bound on the total variation between its secure draws and the declared law.

        The bound is a function of the declaration and of what is drawn, so that it tells nothing else of the
        data; for a simulation it is 0.
        """
        out = self.send(values, rng)
        return out, 0.0 if rng.simulated else self.total_variation(out)

    def describe(self) -> dict[str, Any]:
        """The declaration, as a release shows it."""
        return self.to_dict()

    def total_variation(self, output: Any) -> float:
        """A bound on the total variation between the secure draws of such an output and the declared law."""
        return 0.0

    def __rshift__(self, then: Callable[[Any], Any]) -> PostProcessed:
        return PostProcessed(channel=self, then=then)


class Mechanism(Channel):
    """A channel whose outputs are close for neighbouring data, by its profile.

    ``one & other`` releases both; ``mechanism.on(design)`` has the profile of a sample of the records.
    """

    @property
    def neighbours(self) -> Neighbours | None:
        """The relation between data for which the profile holds; None for that of the sensitivity."""
        return None

    @abstractmethod
    def profile(self, distance: int = 1) -> Profile:
        """The privacy profile between data that are `distance` neighbours apart."""

    def __and__(self, other: Mechanism) -> Both:
        mine = self.parts if isinstance(self, Both) else (self,)
        return Both(parts=(*mine, *(other.parts if isinstance(other, Both) else (other,))))

    def on(self, design: Design, population: Population = None) -> Sampled:
        """The mechanism on a sample of the records, which amplifies its privacy; see `Design.amplify`."""
        return Sampled(mechanism=self, design=design, population=population)


class PostProcessed(Mechanism):
    """A channel followed by a function: the profile stays, the data are not looked at again.

    Parameters
    ----------
    channel : Channel
        Its release is the argument of `then`.
    then : Callable[[Any], Any]
        Does not read the data.

    Examples
    --------
    >>> from forcopt.privacy import Laplace, Simulated
    >>> rounded = AdditiveMechanism(Laplace(scale=1.0)) >> np.round
    >>> rounded.profile().epsilon(0.0)
    1.0
    >>> rounded.release([3.0, 4.0], Simulated(1))
    <Release of PostProcessed, simulated with a seed, not private: [3. 6.]>
    """

    channel: Channel
    then: Callable[[Any], Any]

    def send(self, values: Any, rng: Randomness) -> Any:
        """See `Channel`."""
        return self.drawn(values, rng)[0]

    def drawn(self, values: Any, rng: Randomness) -> tuple[Any, float]:
        """See `Channel`."""
        out, deviation = self.channel.drawn(values, rng)
        return self.then(out), deviation

    def describe(self) -> dict[str, Any]:
        """See `Channel`; the function goes by its name."""
        name = getattr(self.then, "__qualname__", None) or getattr(self.then, "__name__", "a function")
        return {"type": "PostProcessed", "channel": self.channel.describe(), "then": name}

    def profile(self, distance: int = 1) -> Profile:
        """See `Mechanism`."""
        if not isinstance(self.channel, Mechanism):
            raise DeclarationError(f"{type(self.channel).__name__} has no neighbour relation, so no profile")
        return self.channel.profile(distance)

    @property
    def neighbours(self) -> Neighbours | None:
        """See `Mechanism`."""
        return self.channel.neighbours if isinstance(self.channel, Mechanism) else None


class Both(Mechanism):
    """Several mechanisms on the same data; their profiles compose.

    Parameters
    ----------
    parts : tuple[Mechanism, ...]
        At least one.

    Examples
    --------
    >>> from forcopt.privacy import Laplace
    >>> count = AdditiveMechanism(Laplace(epsilon=0.5))
    >>> (count & count & count).profile().epsilon(0.0)
    1.5
    """

    parts: tuple[Mechanism, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _one_relation(self) -> Both:
        relations = {part.neighbours for part in self.parts} - {None}
        if len(relations) > 1:
            raise DeclarationError(
                "Both: the profiles of some parts are between data of which one has a record more, of others "
                "between data of which one record differs; they do not compose"
            )
        return self

    @property
    def neighbours(self) -> Neighbours | None:
        """See `Mechanism`."""
        return next((part.neighbours for part in self.parts if part.neighbours), None)

    def send(self, values: Any, rng: Randomness) -> Any:
        """See `Channel`: a tuple of the releases of the parts."""
        return self.drawn(values, rng)[0]

    def drawn(self, values: Any, rng: Randomness) -> tuple[Any, float]:
        """See `Channel`."""
        outputs, deviations = zip(*(part.drawn(values, rng) for part in self.parts), strict=True)
        return outputs, sum(deviations)

    def describe(self) -> dict[str, Any]:
        """See `Channel`."""
        return {"type": "Both", "parts": [part.describe() for part in self.parts]}

    def profile(self, distance: int = 1) -> Profile:
        """See `Mechanism`."""
        return Profile.together(part.profile(distance) for part in self.parts)


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
    >>> from forcopt.privacy import Gaussian, Simulated
    >>> mechanism = AdditiveMechanism(Gaussian(scale=2.0), sensitivity=1.0, norm="linf", dimension=100)
    >>> mechanism.profile().mu
    5.0
    >>> mechanism.release([10.0] * 100, Simulated(0)).simulated
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
        if self.dimension > 1 and self.norm == "linf" and isinstance(self.noise, Staircase):
            raise DeclarationError(
                "AdditiveMechanism: Staircase is not log-concave, so its worst change of several numbers "
                "is not known; release one number at a time with &"
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

    def send(self, values: Any, rng: Randomness) -> Array:
        """See `Channel`."""
        exact = self._numbers(values)
        if self.noise.whole:
            return np.asarray(exact.astype(np.int64) + self.noise.sample(exact.shape, rng).astype(np.int64))
        if rng.simulated:
            return np.asarray(exact + self.noise.sample(exact.shape, rng))
        return _with_opendp(self.noise, exact)

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


def _with_opendp(noise: Noise, exact: Array) -> Array:
    if not isinstance(noise, Laplace | Gaussian):
        raise DeclarationError(
            f"{type(noise).__name__} is real noise that OpenDP does not draw, and floating-point draws are "
            "not private: take noise.on_integers() for whole values, or simulate with rng=Simulated(seed)"
        )
    dp = opendp()
    make, metric = (
        (dp.m.make_laplace, dp.l1_distance)
        if isinstance(noise, Laplace)
        else (dp.m.make_gaussian, dp.l2_distance)
    )
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    release = make(domain, metric(T=float), scale=float(noise.scale))
    return np.array(release(exact.ravel().tolist()), dtype=float).reshape(exact.shape)


class Sampled(Mechanism):
    """The profile of a mechanism on a sample of the records: whoever is not sampled loses nothing.

    A release on a sample is a query of a `Table` with a design.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism; its profile is read as that between samples that are `design.neighbours`, so that the
        sensitivity must be stated for this relation.
    design : Design
        Any. `PoissonSample` and `SimpleRandomSample` amplify every profile exactly, the others pure privacy.
    population : int, sequence or mapping, optional
        The public number of records, or the numbers of each stratum or cluster; see `Design.loss`.

    Raises
    ------
    DeclarationError
        For a mechanism of another relation, and at a release.

    References
    ----------
    Balle, Barthe and Gaboardi (2018), Privacy amplification by subsampling, Theorems 8 and 9; Zhu, Dong and
    Wang (2022), Optimal accounting of differential privacy via characteristic function, Proposition 30.

    Examples
    --------
    >>> from forcopt.privacy import Laplace, PoissonSample
    >>> tenth = AdditiveMechanism(Laplace(epsilon=1.0)).on(PoissonSample(rate=0.1))
    >>> round(tenth.profile().epsilon(0.0), 6)
    0.158565
    """

    mechanism: Mechanism
    design: Design
    population: Population = None

    @model_validator(mode="after")
    def _same_relation(self) -> Sampled:
        if self.mechanism.neighbours not in (None, self.design.neighbours):
            raise DeclarationError(
                f"Sampled: the profile of {type(self.mechanism).__name__} is for the relation "
                f"{self.mechanism.neighbours!r}, and {type(self.design).__name__} amplifies for "
                f"{self.design.neighbours!r}"
            )
        return self

    @property
    def neighbours(self) -> Neighbours | None:
        """See `Mechanism`."""
        return self.design.neighbours

    def profile(self, distance: int = 1) -> Profile:
        """See `Mechanism`; for neighbours at distance 1."""
        if distance != 1:
            raise DeclarationError(f"distance is {distance}; a sampled mechanism has a profile for 1")
        return self.design.amplify(self.mechanism.profile(), self.population)

    def send(self, values: Any, rng: Randomness) -> Any:
        """See `Channel`: refused, as the size of the output may give away that of the sample."""
        kind = type(self.design).__name__
        raise DeclarationError(
            f"Sampled states a profile and draws no sample: release a query of Table(..., design={kind}(...))"
        )

    def describe(self) -> dict[str, Any]:
        """See `Channel`."""
        own = {"design": self.design.to_dict(), "population": self.population}
        return {"type": "Sampled", "mechanism": self.mechanism.describe(), **own}


def whole_distance(distance: int) -> int:
    """The distance, if it is one."""
    if isinstance(distance, bool) or not isfinite(distance) or distance != int(distance) or distance < 1:
        raise DeclarationError(f"distance is {distance!r}; it must be a whole number, at least 1")
    return int(distance)


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
    >>> from forcopt.privacy import Simulated
    >>> choice = ExponentialMechanism(epsilon=100.0, sensitivity=0.1)
    >>> int(choice.release([0.5, 0.1, 0.4], Simulated(0)).values), choice.profile().epsilon(0.0)
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

    def send(self, values: Any, rng: Randomness) -> Any:
        """See `Channel`: the place of the chosen candidate, given the losses, shape ``(h,)``.

        Of losses of shape ``(k, h)`` k places; the sensitivity then is that of all k rows together.
        """
        losses = as_numbers(values, "losses").astype(float)
        if losses.ndim == 2 and losses.size:
            return np.array([self.send(row, rng) for row in losses])
        if losses.ndim != 1 or not len(losses):
            raise DeclarationError(f"losses has shape {losses.shape}; it must be (h,), at least one")
        scale = 2 * self.sensitivity / self.epsilon
        if rng.simulated:
            noise = rng.generator().gumbel(scale=scale, size=len(losses))
            return int(np.argmax(noise - losses))
        dp = opendp()
        domain = dp.vector_domain(dp.atom_domain(T=float, nan=False))
        choose = dp.m.make_noisy_max(
            domain, dp.linf_distance(T=float), dp.max_divergence(), scale=float(scale), negate=True
        )
        return int(choose(losses.tolist()))
