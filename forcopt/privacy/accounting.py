"""What many private mechanisms lose together, and how little each may lose to keep within a budget."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from forcopt.declaration import Declared
from forcopt.errors import DeclarationError, NotInstalledError

__all__ = ["PrivacyBudget", "composed_epsilon"]

TELLS_ALL = 100.0
"""Above this epsilon, randomized response never lies in practice, and its loss never cancels out."""


class PrivacyBudget(Declared):
    """(epsilon, delta)-differential privacy, for methods that look at the data many times.

    Attributes
    ----------
    epsilon : float
        The privacy loss of everything together, above 0.
    delta : float, default 0.0
        The probability with which it may be larger, from 0 to below 1.
    floor : float, optional
        A **public** lower bound on how many records each cell (group, label) holds, for mechanisms whose
        noise or guarantee depends on it; it must be known without looking at the data. Privacy then is
        between data sets that both keep it.

    Examples
    --------
    >>> round(PrivacyBudget(1.0).split(100), 9), round(PrivacyBudget(1.0, delta=1e-6).split(100), 5)
    (0.01, 0.02401)
    """

    epsilon: float = Field(gt=0.0, allow_inf_nan=False)
    delta: float = Field(default=0.0, ge=0.0, lt=1.0, allow_inf_nan=False)
    floor: float | None = Field(default=None, gt=0.0, allow_inf_nan=False)

    def split(self, mechanisms: int) -> float:
        """The epsilon of each of so many purely private mechanisms, chosen one after the other.

        Raises
        ------
        DeclarationError
            For fewer than one.
        NotInstalledError
            If delta is positive, and dp-accounting is not there.
        """
        low = self.epsilon / _at_least_one(mechanisms)  # basic composition, which delta only improves
        if self.delta == 0 or mechanisms == 1:
            return low
        from scipy.optimize import brentq

        def over(epsilon: float) -> float:
            return composed_epsilon(epsilon, mechanisms, self.delta) - self.epsilon

        high, tolerance = self.epsilon + 1.0, 1e-6
        while over(high) <= 0:
            high *= 2
        if over(low) >= 0:  # rounding
            return low
        return max(low, float(brentq(over, low, high, rtol=tolerance)) * (1 - 2 * tolerance))


def composed_epsilon(epsilon: float, mechanisms: int, delta: float) -> float:
    """The privacy loss of so many epsilon-private mechanisms together, except with probability delta.

    This is the optimal composition of Kairouz, Oh and Viswanath (2015). No mechanism loses more than
    randomized response with the same epsilon, whose loss takes two values: on the lattice of their
    multiples, dp-accounting composes without rounding. O(k log k) for k mechanisms.

    Examples
    --------
    >>> round(composed_epsilon(0.01, 100, delta=1e-6), 4), composed_epsilon(0.01, 100, delta=0.0)
    (0.3923, 1.0)
    """
    if not (np.isfinite(epsilon) and epsilon > 0):
        raise DeclarationError(f"epsilon is {epsilon!r}; it must be positive and finite")
    if not 0 <= delta < 1:
        raise DeclarationError(f"delta is {delta!r}; it must be from 0 to below 1")
    basic = epsilon * _at_least_one(mechanisms)
    if delta == 0 or epsilon > TELLS_ALL:
        return float(basic)
    try:
        from dp_accounting.pld import common, privacy_loss_distribution
    except ImportError:
        raise NotInstalledError(
            "compositions are accounted for by dp-accounting, which is not installed: "
            "pip install 'forcopt[privacy]'"
        ) from None
    one = privacy_loss_distribution.from_privacy_parameters(
        common.DifferentialPrivacyParameters(epsilon, 0.0), value_discretization_interval=epsilon
    )
    return float(min(basic, one.self_compose(mechanisms).get_epsilon_for_delta(delta)))


def _at_least_one(mechanisms: int) -> int:
    if mechanisms < 1:
        raise DeclarationError(f"mechanisms is {mechanisms}; it must be at least 1")
    return mechanisms
