"""Profiles as events of dp-accounting; noises and profiles as measurements of OpenDP, and back."""

from __future__ import annotations

from math import exp
from typing import Any

from forcopt.errors import DeclarationError, required
from forcopt.privacy.losses import BinomialLoss, GaussianLoss, Loss, NoiseLoss, SampledLoss
from forcopt.privacy.mechanism import AdditiveMechanism, opendp_measurement
from forcopt.privacy.noises import DiscreteLaplace, Laplace
from forcopt.privacy.profile import Profile


def dp_event(profile: Profile) -> Any:
    """A profile as a ``DpEvent``, which the accountants of the package dp-accounting compose.

    Parameters
    ----------
    profile : Profile
        Of Gaussian, Laplace or discrete Laplace noise, randomized responses, Poisson samples of these, their
        compositions, or known by its rho only; `Ledger.profile` gives that of a ledger.

    Returns
    -------
    dp_accounting.DpEvent
        Each part as often as it occurs.

    Raises
    ------
    DeclarationError
        For a part that has no event there.

    Notes
    -----
    Randomized responses are listed one by one, since the accountant of version 0.6 drops their count.

    Examples
    --------
    >>> from forcopt.privacy import Gaussian
    >>> dp_event(Gaussian(scale=2.0).profile(1) ** 3)
    SelfComposedDpEvent(event=GaussianDpEvent(noise_multiplier=2.0), count=3)
    """
    events = required("dp_accounting", "dp_event").dp_event

    def single(loss: Loss) -> Any:
        match loss:
            case GaussianLoss():
                return events.GaussianDpEvent(1 / loss.shift)
            case NoiseLoss(Laplace() as noise):
                return events.LaplaceDpEvent(noise.scale / loss.shift)
            case NoiseLoss(DiscreteLaplace() as noise) if loss.shift == int(loss.shift):
                return events.DiscreteLaplaceDpEvent(1 / noise.scale, int(loss.shift))
            case BinomialLoss():
                one = events.RandomizedResponseDpEvent(2 / (1 + exp(loss.each)), 2)
                return one if loss.count == 1 else events.ComposedDpEvent([one] * loss.count)
            case SampledLoss():
                return events.PoissonSampledDpEvent(loss.rate, single(loss.base))
        raise DeclarationError(f"dp-accounting has no event for {loss!r}")

    if not profile.directions:
        return events.ZCDpEvent(profile.rho)
    parts: list[Any] = []
    for loss, count in profile.directions[0]:
        one = single(loss)
        many = [one] * count if isinstance(loss, BinomialLoss) else [events.SelfComposedDpEvent(one, count)]
        parts += [one] if count == 1 else many
    return parts[0] if len(parts) == 1 else events.ComposedDpEvent(parts)


def to_opendp(mechanism: AdditiveMechanism) -> Any:
    """A mechanism as a measurement of OpenDP, of vectors of numbers.

    Parameters
    ----------
    mechanism : AdditiveMechanism
        With Laplace or Gaussian noise, or their whole kin, as in ``(query >> noise).mechanisms``.

    Returns
    -------
    opendp.Measurement
        Its map at the mechanism's sensitivity is the mechanism's epsilon or rho, rounded up.

    Raises
    ------
    DeclarationError
        For another noise, or another norm than OpenDP's: l1 for Laplace, l2 for Gaussian noise.

    Examples
    --------
    >>> to_opendp(AdditiveMechanism(DiscreteLaplace(scale=2.0), sensitivity=3)).map(3)
    1.5
    """
    made, norm = opendp_measurement(mechanism.noise)
    if mechanism.dimension > 1 and mechanism.norm != norm:
        raise DeclarationError(f"norm is {mechanism.norm!r}; OpenDP's is {norm!r} for this noise")
    return made


def from_opendp(measurement: Any, distance: Any = 1) -> Profile:
    """What the map of a measurement of OpenDP proves, for a `Ledger` to spend.

    Parameters
    ----------
    measurement : opendp.Measurement
        Of pure, zero-concentrated or approximate privacy.
    distance : int or float, default 1
        Between neighbours, in its input metric.

    Returns
    -------
    Profile
        The worst that the map allows.

    Raises
    ------
    DeclarationError
        For another measure.

    Examples
    --------
    >>> from_opendp(to_opendp(AdditiveMechanism(DiscreteLaplace(scale=2.0)))).largest_loss
    0.5
    """
    measure, loss = str(measurement.output_measure), measurement.map(distance)
    known: dict[str, Any] = {"MaxDivergence": Profile.pure}
    known["ZeroConcentratedDivergence"] = Profile.concentrated
    known["Approximate(MaxDivergence)"] = lambda pair: Profile.pure(*pair)
    if measure not in known:
        raise DeclarationError(f"measure is {measure}; it must be one of {', '.join(known)}")
    found: Profile = known[measure](loss)
    return found
