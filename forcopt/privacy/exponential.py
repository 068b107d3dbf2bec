"""The exponential mechanism: choose privately among candidates, the better the likelier."""

from __future__ import annotations

from typing import Any

import numpy as np

from forcopt.arrays import as_numbers
from forcopt.errors import DeclarationError, NotInstalledError

__all__ = ["exponential_mechanism"]


def exponential_mechanism(
    losses: Any, epsilon: float, sensitivity: float, seed: int | np.random.Generator | None = None
) -> int:
    """Choose a candidate of small loss, with epsilon-differential privacy.

    Parameters
    ----------
    losses : Any
        Of the candidates, finite, shape ``(h,)``.
    epsilon : float
        The privacy loss of the choice, above 0.
    sensitivity : float
        What one person changes of any loss, at most; above 0.
    seed : int or numpy.random.Generator, optional
        Without one, OpenDP chooses, by report-noisy-min with exponential noise: "permute and flip" (McKenna
        and Sheldon 2020), whose expected loss is never above that of the exponential mechanism. With a seed
        (an int or a generator) numpy draws from the exponential mechanism of McSherry and Talwar (2007):
        candidate h with probability proportional to ``exp(-epsilon losses[h] / (2 sensitivity))``. That
        repeats, and only simulates privacy.

    Returns
    -------
    int
        The place of the candidate. With probability 1 - beta its loss is at most
        ``2 sensitivity / epsilon * ln(h / beta)`` above the least, either way.

    Raises
    ------
    DeclarationError
        For losses, epsilon or sensitivity out of range.
    NotInstalledError
        Without a seed, if OpenDP is not there.

    Examples
    --------
    >>> exponential_mechanism([0.5, 0.1, 0.4], epsilon=100.0, sensitivity=0.1, seed=0)
    1
    """
    values = as_numbers(losses, "losses").astype(float)
    if values.ndim != 1 or not len(values):
        raise DeclarationError(f"losses has shape {values.shape}; it must be (h,), at least one")
    for name, number in (("epsilon", epsilon), ("sensitivity", sensitivity)):
        if not (np.isfinite(number) and number > 0):
            raise DeclarationError(f"{name} is {number!r}; it must be positive and finite")
    scale = 2 * sensitivity / epsilon
    if seed is not None:
        noise = np.random.default_rng(seed).gumbel(scale=scale, size=len(values))
        return int(np.argmax(noise - values))
    try:
        import opendp.prelude as dp
    except ImportError:
        raise NotInstalledError(
            "private choices are drawn by OpenDP, which is not installed: pip install 'forcopt[privacy]'; "
            "with a seed they are simulated without"
        ) from None
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    choose = dp.m.make_noisy_max(
        domain, dp.linf_distance(T=float), dp.max_divergence(), scale=float(scale), negate=True
    )
    return int(choose(values.tolist()))
