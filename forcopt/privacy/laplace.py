"""The Laplace mechanism: noise in proportion to what one person can change."""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import Field

from forcopt.arrays import Array, as_numbers
from forcopt.declaration import Declared
from forcopt.errors import DeclarationError, NotInstalledError

__all__ = ["Laplace", "add_laplace"]


def add_laplace(values: Any, scale: float, seed: int | np.random.Generator | None = None) -> Array:
    """Add independent Laplace noise to each number.

    Parameters
    ----------
    values : Any
        Finite numbers of any shape.
    scale : float
        Of the noise, above 0; its standard deviation is sqrt(2) times that.
    seed : int or numpy.random.Generator, optional
        Without one, OpenDP draws the noise, from the system's source of randomness and safe against attacks
        on floating point. With a seed (an int or a generator) numpy draws it, so that an experiment can be
        repeated: that is a simulation of privacy, for whoever knows the seed can take the noise off again.

    Raises
    ------
    DeclarationError
        For a scale that is not positive.
    NotInstalledError
        Without a seed, if OpenDP is not there.

    Examples
    --------
    >>> add_laplace([10.0, 20.0], scale=1.0, seed=1).round(3).tolist()
    [10.024, 22.312]
    """
    exact = as_numbers(values, "values").astype(float)
    if not (np.isfinite(scale) and scale > 0):
        raise DeclarationError(f"scale is {scale:g}; it must be positive and finite")
    if seed is not None:
        return exact + np.random.default_rng(seed).laplace(scale=scale, size=exact.shape)
    try:
        import opendp.prelude as dp
    except ImportError:
        raise NotInstalledError(
            "private noise is drawn by OpenDP, which is not installed: pip install 'forcopt[privacy]'; "
            "with a seed it is simulated without"
        ) from None
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    release = dp.m.make_laplace(domain, dp.l1_distance(T=float), scale=float(scale))
    return np.array(release(exact.ravel().tolist()), dtype=float).reshape(exact.shape)


class Laplace(Declared):
    """Release numbers with pure epsilon-differential privacy (Dwork, McSherry, Nissim and Smith 2006).

    Attributes
    ----------
    epsilon : float
        The privacy loss of one release, above 0.
    floor : float, optional
        A **public** lower bound on how many records each cell (group, label) holds, for mechanisms whose
        noise or guarantee depends on it; it must be known without looking at the data.

    Examples
    --------
    >>> Laplace(epsilon=0.5).scale(sensitivity=2)
    4.0
    """

    epsilon: float = Field(gt=0.0, allow_inf_nan=False)
    floor: float | None = Field(default=None, gt=0.0, allow_inf_nan=False)

    def scale(self, sensitivity: float) -> float:
        """The scale of the noise for numbers that one person changes by `sensitivity` in all (L1)."""
        return sensitivity / self.epsilon

    def release(
        self, values: Any, sensitivity: float, seed: int | np.random.Generator | None = None
    ) -> Array:
        """The numbers with noise; see `add_laplace` for the seed.

        For a table of counts, replacing one person changes two cells by one: a sensitivity of 2. Adding or
        removing one changes one: a sensitivity of 1.
        """
        return add_laplace(values, self.scale(sensitivity), seed)
