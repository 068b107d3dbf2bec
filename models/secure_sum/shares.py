"""Gaussian shares of a vector, the loss of every coalition, and noise that servers share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from pydantic import Field, model_validator

from forcopt.arrays import Array, Seed, as_numbers, check_shape, whole_number
from forcopt.errors import DeclarationError, require, require_shape
from forcopt.models.secure_sum import tolerances
from forcopt.models.secure_sum.tolerances import COMPARED, ROUNDING
from forcopt.privacy import DiscreteLaplace, Gaussian, Laplace, Noise, Randomness, Secure, randomness
from forcopt.privacy.mechanism import AdditiveMechanism
from forcopt.privacy.noises.draws import exact_scale, negative_binomial
from forcopt.privacy.tolerances import SMALLEST


def shared_noise(noise: Noise, servers: int, corrupted: int, size: int, seed: Seed = None) -> Array:
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
        Simulates. Without one, `DiscreteLaplace` is drawn exactly from the system's randomness, and real
        noise in floating point with a seed of the system, which is no private release.

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
    size = whole_number(size, "size", 0)
    return _parts(noise, servers, servers - corrupted, size, randomness(seed=seed))


def _parts(noise: Noise, servers: int, honest: int, size: int, rng: Randomness) -> Array:
    shape = (servers, size)
    if isinstance(noise, DiscreteLaplace) and isinstance(rng, Secure):
        drawn = negative_binomial(exact_scale(noise.scale), honest, 2 * servers * size, rng)
        one, two = drawn.reshape(2, *shape)
        return np.asarray(one - two)
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
    sensitivity, norm, dimension : Any
        See `AdditiveMechanism`.

    Raises
    ------
    DeclarationError
        For another noise, or without an honest server.

    Examples
    --------
    >>> from forcopt.privacy import Laplace
    >>> shared = SharedNoise(Laplace(scale=1.0), servers=3)
    >>> shared.simulate([5.0, 7.0], seed=1).simulated
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

    def _send(self, values: Any, rng: Randomness) -> Array:
        """Add the parts of all servers; real noise in a simulation only.

        Raises
        ------
        DeclarationError
            For real noise without a seed: floating-point draws are not private.
        """
        exact = self._numbers(values)
        if not (rng.simulated or self.noise.whole):
            kind = type(self.noise).__name__
            why = f"floating-point {kind} noise is not private: simulate with a seed"
            raise DeclarationError(f"rng is {rng!r}; {why}")
        parts = _parts(self.noise, self.servers, self._honest, exact.size, rng)
        exact = exact.astype(np.int64) if self.noise.whole else exact
        return np.asarray(exact + parts.sum(axis=0).reshape(exact.shape))

    @property
    def error(self) -> float:
        """The root mean square error of each number."""
        return float(np.sqrt(self.noise.variance * self.servers / self._honest))

    def margin(self, level: float) -> float:
        """See `AdditiveMechanism`: by Chebyshev's inequality, for the parts of all servers."""
        return self.error / float(np.sqrt(1 - level))


def _check_servers(servers: int, corrupted: int) -> None:
    if not 0 <= corrupted < servers:
        raise DeclarationError(f"corrupted is {corrupted}; at least one of the {servers} servers is honest")


def _not_shared(noise: Noise) -> DeclarationError:
    return DeclarationError(f"noise is {noise!r}; servers can share Gaussian, Laplace and DiscreteLaplace")


@dataclass(frozen=True, eq=False)
class Shares:
    """Shares of a vector x: server i gets ``split[i] x`` plus noise, and the noises sum to 0.

    Attributes
    ----------
    split : Array
        Shape ``(servers,)``; its sum is 1.
    covariance : Array
        Of the noises in one coordinate, shape ``(servers, servers)``; its rows sum to 0. Coordinates are
        independent.

    Examples
    --------
    >>> from forcopt.models.secure_sum import talwar_shares
    >>> shares = talwar_shares(3, scale=2.0)
    >>> round(shares.loss([0, 1]), 9), shares.loss([1, 2])
    (0.5, 0.0)
    """

    split: Array
    covariance: Array

    def __post_init__(self) -> None:
        split, covariance = as_numbers(self.split, "split"), as_numbers(self.covariance, "covariance")
        servers = len(split) if split.ndim == 1 else 0
        if servers < 2 or covariance.shape != (servers, servers):
            shapes = f"split has shape {split.shape}, covariance {covariance.shape}"
            raise DeclarationError(f"{shapes}; they must be (S,) and (S, S), S >= 2")
        object.__setattr__(self, "split", split)
        object.__setattr__(self, "covariance", covariance)

    @property
    def servers(self) -> int:
        """The number of servers."""
        return len(self.split)

    @property
    def variances(self) -> Array:
        """Of each server's share, shape ``(servers,)``."""
        return np.asarray(np.diag(self.covariance))

    @property
    def variance(self) -> float:
        """The largest variance of a share."""
        return float(self.variances.max())

    def loss(self, coalition: Iterable[int]) -> float:
        """The parameter mu of Gaussian privacy of these servers' shares, for a vector of norm 1.

        Parameters
        ----------
        coalition : iterable of int
            Servers, from 0.

        Returns
        -------
        float
            0 for no servers, infinite if the shares determine the vector.

        Raises
        ------
        DeclarationError
            For servers out of range.
        """
        members = coalition_of(coalition, self.servers)
        if not members:
            return 0.0
        if len(members) == self.servers:
            return float("inf")
        covariance, size = self.covariance[np.ix_(members, members)], float(np.abs(self.covariance).max())
        limits = (tolerances.SHARES_NULL, tolerances.SHARES_SEEN)
        return _separation(self.split[members], covariance, *limits, size)

    def errors(self) -> dict[str, float]:
        """How far the shares are from summing to the vector, and their covariance from being one.

        Returns
        -------
        dict[str, float]
            ``sum``: of the split from 1 and, relatively, of the noises from 0. ``covariance``: asymmetry and
            negative eigenvalues, relatively.
        """
        c, scale = self.covariance, max(self.variance, SMALLEST)
        total = max(abs(float(self.split.sum()) - 1), float(np.abs(c.sum(axis=1)).max()) / scale)
        least = max(-float(np.linalg.eigvalsh(c)[0]), float(np.abs(c - c.T).max())) / scale
        return {"sum": total, "covariance": least}

    @cached_property
    def factor(self) -> Array:
        """A root of the covariance of servers 1 to S - 1; server 0's noise is minus the sum of theirs."""
        values, vectors = np.linalg.eigh(self.covariance[1:, 1:])
        root: Array = vectors * np.sqrt(np.maximum(values, 0.0))
        return root

    @property
    def alike(self) -> bool:
        """Whether servers 1 to S - 1 have the same split, variance and covariances."""
        c, scale = self.covariance[1:, 1:], max(self.variance, SMALLEST)
        off = c[~np.eye(len(c), dtype=bool)]
        return bool(
            np.ptp(self.split[1:]) <= ROUNDING
            and np.ptp(np.diag(c)) <= COMPARED * scale
            and (not off.size or np.ptp(off) <= COMPARED * scale)
        )

    def __repr__(self) -> str:
        split = ", ".join(f"{a:.6g}" for a in self.split)
        return f"<shares ({split}) of {self.servers} servers, largest variance {self.variance:.6g}>"


def _separation(mean: Array, covariance: Array, null: float, seen: float, size: float | None = None) -> float:
    """The mu of Gaussian privacy between two means, whose difference is given; infinite if it shows.

    A direction has no variance up to `null` times the size, by default the largest variance. The difference
    shows there above `seen`, relatively.
    """
    if not mean.any():
        return 0.0
    values, basis = np.linalg.eigh(covariance)
    parts = basis.T @ mean
    flat = values <= null * max(values.max(initial=0.0) if size is None else size, SMALLEST)
    if (np.abs(parts[flat]) > seen * np.abs(mean).max()).any():
        return float("inf")
    return float(np.sqrt((parts[~flat] ** 2 / values[~flat]).sum()))


def coalition_of(coalition: Iterable[int], servers: int) -> list[int]:
    """Check that these are servers, and sort them."""
    members: list[Any] = sorted(set(coalition))
    for i in members:
        if isinstance(i, bool) or i != int(i) or not 0 <= i < servers:
            raise DeclarationError(f"the coalition has server {i!r}; servers are 0 to {servers - 1}")
    return [int(i) for i in members]


def talwar_shares(servers: int, scale: float) -> Shares:
    """Algorithm 1: noise for servers 1 to S - 1, the vector less its sum for server 0.

    Parameters
    ----------
    servers : int
        S.
    scale : float
        The standard deviation of the noise of servers 1 to S - 1; above 0.

    Returns
    -------
    Shares
        The split and the covariance of the noise.

    Raises
    ------
    DeclarationError
        For fewer than 2 servers, or another scale.

    Examples
    --------
    >>> talwar_shares(3, 2.0).split.tolist()
    [1.0, 0.0, 0.0]
    """
    require(0 < scale < np.inf, "scale", scale, "be above 0")
    covariance = np.eye(servers)
    covariance[0, 1:] = covariance[1:, 0] = -1.0
    covariance[0, 0] = servers - 1.0
    return Shares(np.eye(servers)[0], scale**2 * covariance)


def even_shares(servers: int, coalition_size: int, loss: float = 1.0) -> Shares:
    """Shares with the least largest variance against all coalitions of a size.

    Every server gets ``x / S`` plus noise; the noises are exchangeable. A share's variance is
    ``t (S - 1) / (S^2 (S - t) mu^2)`` against coalitions of t servers.

    Parameters
    ----------
    servers, coalition_size : int
        S and t, ``1 <= t < S``.
    loss : float, default 1.0
        The parameter mu that a coalition may learn; above 0.

    Returns
    -------
    Shares
        The split and the covariance of the noise.

    Raises
    ------
    DeclarationError
        For another size or loss.

    Notes
    -----
    Any shares may be averaged over all permutations of the servers. The loss is convex in split and
    covariance together (it is a matrix-fractional function), so that the average loses no more, and its
    largest variance is no larger. Exchangeable covariances with sum 0 are multiples of ``I - J / S``, and the
    exchangeable split is 1 / S.

    Examples
    --------
    >>> even_shares(2, 1)
    <shares (0.5, 0.5) of 2 servers, largest variance 0.25>
    """
    s, t = servers, coalition_size
    if isinstance(t, bool) or t != int(t) or not 1 <= t < s:
        raise DeclarationError(f"the coalition's size is {t}; it must be a whole number from 1 to {s - 1}")
    require(0 < loss < np.inf, "loss", loss, "be above 0")
    square = t / (s * (s - t) * loss**2)
    return Shares(np.full(s, 1 / s), square * (np.eye(s) - 1 / s))


@dataclass(frozen=True, eq=False)
class View:
    """A Gaussian law with a mean that is linear in the client's vector.

    Attributes
    ----------
    names : tuple[str, ...]
        Of the numbers, such as ``"share 0[1]"`` and ``"projection 1[0]"``.
    mean : Array
        The mean is ``mean @ x``; shape ``(numbers, dimension)``.
    covariance : Array
        Shape ``(numbers, numbers)``.
    """

    names: tuple[str, ...]
    mean: Array
    covariance: Array

    def loss(self, vector: Any) -> float:
        """The parameter mu of Gaussian privacy that separates a vector from 0; infinite if anything shows."""
        mean = self.mean @ self._read(vector)
        return _separation(mean, self.covariance, tolerances.VIEW_NULL, tolerances.VIEW_SEEN)

    def draw(self, vector: Any, size: int, seed: Seed = None) -> Array:
        """Draw views of a vector, shape ``(size, numbers)``."""
        rng = np.random.default_rng(seed)
        values, basis = np.linalg.eigh(self.covariance)
        root = basis * np.sqrt(np.maximum(values, 0.0))
        noise = rng.standard_normal((size, len(values))) @ root.T
        return np.asarray(noise + self.mean @ self._read(vector))

    def _read(self, vector: Any) -> Array:
        x = as_numbers(vector, "vector")
        check_shape(x, self.mean.shape[1:], "vector")
        return x


def coalition_view(shares: Shares, check_noise: float, coalition: Iterable[int], projection: Array) -> View:
    """The view of a coalition, written out server by server; see `SumProtocol.view`."""
    servers = shares.servers
    members = coalition_of(coalition, servers)
    if len(members) == servers:
        raise DeclarationError("the coalition has all servers, whose shares determine every vector")
    require_shape(projection.ndim == 2, "the projection has", projection, "be (k, dimension)")
    k, d = projection.shape
    # Sources: noise of each server's shares (S d numbers), noise of each server's check (S k numbers).
    rows_mean: list[Array] = []
    rows_noise: list[Array] = []
    names: list[str] = []

    def share(i: int) -> tuple[Array, Array]:
        noise = np.zeros((d, servers * (d + k)))
        noise[:, i * d : (i + 1) * d] = np.eye(d)
        return shares.split[i] * np.eye(d), noise

    def checked(i: int) -> tuple[Array, Array]:
        mean, noise = share(i)
        noise = projection @ noise
        noise[:, servers * d + i * k : servers * d + (i + 1) * k] = np.eye(k)
        return projection @ mean, noise

    def add(name: str, mean: Array, noise: Array) -> None:
        rows_mean.append(mean)
        rows_noise.append(noise)
        names.extend(f"{name}[{j}]" for j in range(len(mean)))

    for i in members:
        add(f"share {i}", *share(i))
    others = [i for i in range(servers) if i not in members]
    if 0 in members:
        for i in others:
            add(f"projection {i}", *checked(i))
    elif members:
        parts = [checked(i) for i in range(servers)]
        noise = np.sum([n for _, n in parts], axis=0)
        for i in members:  # a member subtracts its own noise
            noise[:, servers * d + i * k : servers * d + (i + 1) * k] = 0.0
        add("check", np.sum([m for m, _ in parts], axis=0), noise)
    if not names:
        return View((), np.zeros((0, d)), np.zeros((0, 0)))
    mean, noise = np.concatenate(rows_mean), np.concatenate(rows_noise)
    source = np.zeros((servers * (d + k),) * 2)
    source[: servers * d, : servers * d] = np.kron(shares.covariance, np.eye(d))
    source[servers * d :, servers * d :] = check_noise**2 * np.eye(servers * k)
    return View(tuple(names), mean, noise @ source @ noise.T)
