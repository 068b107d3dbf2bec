"""Noise that servers share: the sum itself is private, and no server learns the noise."""

from __future__ import annotations

from functools import lru_cache
from math import log
from typing import Any, Self

import numpy as np
from pydantic import Field, model_validator

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.privacy import (
    AdditiveMechanism,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Noise,
    Randomness,
    TabulatedNoise,
    randomness,
)
from forcopt.privacy.noises.base import MOST_VALUES


def shared_noise(
    noise: Noise, servers: int, corrupted: int, size: int, seed: int | np.random.Generator | None = None
) -> Array:
    """Draw each server's part of a noise, so that the honest parts alone have its law.

    Parameters
    ----------
    noise : Gaussian, Laplace or DiscreteLaplace
        The noise that keeps the sum private. Its law is a sum of h independent parts for any h.
    servers, corrupted : int
        S, and the largest number of servers that may pool their own parts; h = S - corrupted are honest.
    size : int
        The dimension of the sum.
    seed : int or Generator, optional
        Simulates. Without one, `DiscreteLaplace` is drawn from a table of 63 bits with the system's
        randomness, and real noise in floating point with a seed of the system, which is no private release.

    Returns
    -------
    Array
        Shape ``(servers, size)``; whole for `DiscreteLaplace`. The parts of any h servers sum to the declared
        noise. All parts together have S / h times its variance: the price of trusting fewer servers.

    Raises
    ------
    DeclarationError
        For another noise or size, or without an honest server.

    Notes
    -----
    A Laplace variable is the difference of two exponential ones, which are sums of h gamma variables of shape
    1 / h; a discrete Laplace variable is the difference of two geometric ones, which are sums of h negative
    binomial variables with parameter 1 / h.

    References
    ----------
    Dwork, Kenthapadi, McSherry, Mironov and Naor (2006), Our data, ourselves; Kotz, Kozubowski and Podgorski
    (2001), The Laplace distribution and generalizations, section 2.4.

    Examples
    --------
    >>> from forcopt.privacy import DiscreteLaplace
    >>> shared_noise(DiscreteLaplace(scale=2.0), servers=3, corrupted=2, size=4, seed=1).shape
    (3, 4)
    """
    _check_servers(servers, corrupted)
    if isinstance(size, bool) or size != int(size) or size < 0:
        raise DeclarationError(f"size is {size!r}; it must be a whole number, at least 0")
    return _parts(noise, servers, servers - corrupted, size, randomness(seed=seed))


def _parts(noise: Noise, servers: int, honest: int, size: int, rng: Randomness) -> Array:
    shape = (servers, size)
    if isinstance(noise, DiscreteLaplace) and not rng.simulated:
        law = _half_of_a_part(noise, honest)
        return np.asarray(law.sample(shape, rng) - law.sample(shape, rng))
    generator = rng.generator()
    if isinstance(noise, Gaussian):
        return np.asarray(generator.normal(scale=noise.scale / np.sqrt(honest), size=shape))
    if isinstance(noise, Laplace):
        one, two = generator.gamma(1 / honest, noise.scale, size=(2, *shape))
        return np.asarray(one - two)
    if isinstance(noise, DiscreteLaplace):
        one, two = generator.negative_binomial(1 / honest, -np.expm1(-1 / noise.scale), size=(2, *shape))
        return np.asarray(one - two)
    raise _not_shared(noise)


@lru_cache(maxsize=8)
def _half_of_a_part(noise: DiscreteLaplace, honest: int) -> TabulatedNoise:
    """The negative binomial law of which a part is a difference, as a table for secure draws.

    Its tail of mass below 2^-66 is dropped.
    """
    r = 1 / honest
    reach = int(noise.scale * (66 * log(2) + max(log(noise.scale), 0.0)) + 2)
    if reach > MOST_VALUES // 8:
        raise DeclarationError(
            f"noise is {noise!r}; a secure draw tabulates its parts of {reach:.3g} values, at most "
            f"{MOST_VALUES // 8:.3g}: take a smaller scale, on coarser sums"
        )
    k = np.arange(reach)
    mass = np.cumprod(np.append(1.0, (k + r) / (k + 1) * np.exp(-1 / noise.scale)))
    return TabulatedNoise(mass / mass.sum(), first=0)


class SharedNoise(AdditiveMechanism):
    """An additive mechanism whose noise is shared between servers: each adds its part of `shared_noise`.

    Its profile is the profile of the declared noise, the sum of the honest servers' parts. It holds against
    coalitions of `corrupted` servers, which hold their own parts; anyone without a part learns less.

    Parameters
    ----------
    noise : Gaussian, Laplace or DiscreteLaplace
        See `shared_noise`.
    servers, corrupted : int
        S, and the largest coalition, by default all servers but one.
    sensitivity, norm, dimension
        See `AdditiveMechanism`.

    Raises
    ------
    DeclarationError
        For another noise, or without an honest server.

    Examples
    --------
    >>> from forcopt.privacy import Laplace, Simulated
    >>> shared = SharedNoise(Laplace(scale=1.0), servers=3)
    >>> shared.release([5.0, 7.0], Simulated(1)).simulated
    True
    >>> shared.profile().epsilon(0.0), round(shared.error**2, 9)  # S / h = 3 times the variance 2
    (1.0, 6.0)
    """

    servers: int = Field(default=2, ge=2)
    corrupted: int | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _can_be_shared(self) -> Self:
        _check_servers(self.servers, self._coalition)
        if not isinstance(self.noise, Gaussian | Laplace | DiscreteLaplace):
            raise _not_shared(self.noise)
        return self

    @property
    def _coalition(self) -> int:
        return self.servers - 1 if self.corrupted is None else self.corrupted

    @property
    def _honest(self) -> int:
        return self.servers - self._coalition

    def send(self, values: Any, rng: Randomness) -> Array:
        """Add the parts of all servers; real noise in a simulation only, whole noise from tables.

        Raises
        ------
        DeclarationError
            For real noise without a seed: floating-point draws are not private.
        """
        exact = self._numbers(values)
        if not (rng.simulated or self.noise.whole):
            raise DeclarationError(
                f"rng is {rng!r}; parts of {type(self.noise).__name__} noise are floating-point draws, which "
                "are not private: simulate with a seed"
            )
        parts = _parts(self.noise, self.servers, self._honest, exact.size, rng)
        exact = exact.astype(np.int64) if self.noise.whole else exact
        return np.asarray(exact + parts.sum(axis=0).reshape(exact.shape))

    def total_variation(self, output: Any) -> float:
        """See `Channel`: two draws from the table of a part for each server and number."""
        if not isinstance(self.noise, DiscreteLaplace):
            return 0.0
        # the k-th mass has gathered 3 k roundings; their mean is below 3 scale / honest
        rounding = 2.0**-50 * (1 + self.noise.scale) + 2.0**-66
        one = _half_of_a_part(self.noise, self._honest).total_variation + rounding
        return 2 * self.servers * one * int(np.size(output))

    @property
    def error(self) -> float:
        """The root mean square error of each number."""
        return float(np.sqrt(self.noise.variance * self.servers / self._honest))


def _check_servers(servers: int, corrupted: int) -> None:
    if not 0 <= corrupted < servers:
        raise DeclarationError(
            f"corrupted is {corrupted}; at least one of the {servers} servers must be honest"
        )


def _not_shared(noise: Noise) -> DeclarationError:
    return DeclarationError(f"noise is {noise!r}; servers can share Gaussian, Laplace and DiscreteLaplace")
