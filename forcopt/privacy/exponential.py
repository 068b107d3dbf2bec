"""The exponential mechanism: choose privately among candidates, the better the likelier."""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import Field

from forcopt.arrays import as_numbers
from forcopt.errors import DeclarationError
from forcopt.privacy.mechanism import Mechanism, whole_distance
from forcopt.privacy.profile import Profile
from forcopt.privacy.randomness import Randomness, opendp

__all__ = ["ExponentialMechanism"]


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

    @property
    def shows_size(self) -> bool:
        """See `Mechanism`: the choice is among as many candidates as there are losses."""
        return True

    def send(self, values: Any, rng: Randomness) -> int:
        """See `Channel`: the place of the chosen candidate, given the losses, shape ``(h,)``."""
        losses = as_numbers(values, "losses").astype(float)
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
