"""Profiles as events of dp-accounting."""

from __future__ import annotations

from math import exp
from typing import Any

from forcopt.errors import DeclarationError
from forcopt.privacy.losses import BinomialLoss, GaussianLoss, Loss, NoiseLoss, SampledLoss
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
    from dp_accounting import dp_event as events

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
