"""Noise that servers share, so that the sum itself is private and no server knows the noise."""

from __future__ import annotations

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.privacy import DiscreteLaplace, Gaussian, Laplace, Noise, randomness

__all__ = ["shared_noise"]


def shared_noise(
    noise: Noise,
    servers: int,
    corrupted: int,
    size: int,
    seed: int | np.random.Generator | None = None,
) -> Array:
    """Draw each server's part of a noise, so that the honest parts alone have its law.

    Parameters
    ----------
    noise : Gaussian, Laplace or DiscreteLaplace
        The noise that keeps the sum private. Its law is a sum of h independent parts for any h.
    servers, corrupted : int
        S, and how many servers may know their own parts and tell them; h = S - corrupted are honest.
    size : int
        The dimension of the sum.
    seed : int or Generator, optional
        None seeds the draws with the system's randomness; see `SumProtocol.run`.

    Returns
    -------
    Array
        Shape ``(servers, size)``; whole for `DiscreteLaplace`. The parts of any h servers sum to the declared
        noise. All parts together have S / h times its variance: the price of trusting fewer servers.

    Raises
    ------
    DeclarationError
        For another noise, or without an honest server.

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
    if not 0 <= corrupted < servers:
        raise DeclarationError(
            f"corrupted is {corrupted}; at least one of the {servers} servers must be honest"
        )
    honest, shape = servers - corrupted, (servers, size)
    generator = randomness(seed=seed).generator()
    if isinstance(noise, Gaussian):
        return np.asarray(generator.normal(scale=noise.scale / np.sqrt(honest), size=shape))
    if isinstance(noise, Laplace):
        one, two = generator.gamma(1 / honest, noise.scale, size=(2, *shape))
        return np.asarray(one - two)
    if isinstance(noise, DiscreteLaplace):
        one, two = generator.negative_binomial(1 / honest, -np.expm1(-1 / noise.scale), size=(2, *shape))
        return np.asarray(one - two)
    raise DeclarationError(f"noise is {noise!r}; servers can share Gaussian, Laplace and DiscreteLaplace")
