"""Everything that a coalition of servers sees of one client, as one Gaussian vector."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from forcopt.arrays import Array, as_numbers
from forcopt.errors import DeclarationError
from forcopt.models.secure_sum.shares import Shares, coalition_of

__all__ = ["View", "coalition_view"]


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
        along = self.mean @ self._read(vector)
        if not along.any():
            return 0.0
        values, basis = np.linalg.eigh(self.covariance)
        parts = basis.T @ along
        null = values <= 1e-13 * max(values.max(initial=0.0), 1e-300)
        if (np.abs(parts[null]) > 1e-7 * np.abs(along).max()).any():
            return float("inf")
        return float(np.sqrt((parts[~null] ** 2 / values[~null]).sum()))

    def draw(self, vector: Any, size: int, seed: int | np.random.Generator | None = None) -> Array:
        """Draw views of a vector, shape ``(size, numbers)``."""
        rng = np.random.default_rng(seed)
        values, basis = np.linalg.eigh(self.covariance)
        root = basis * np.sqrt(np.maximum(values, 0.0))
        noise = rng.standard_normal((size, len(values))) @ root.T
        return np.asarray(noise + self.mean @ self._read(vector))

    def _read(self, vector: Any) -> Array:
        x = as_numbers(vector, "vector")
        if x.shape != self.mean.shape[1:]:
            raise DeclarationError(f"vector has shape {x.shape}; it must be {self.mean.shape[1:]}")
        return x


def coalition_view(shares: Shares, check_noise: float, coalition: Iterable[int], projection: Array) -> View:
    """The view of a coalition, written out server by server; see `SumProtocol.view`."""
    servers = shares.servers
    members = coalition_of(coalition, servers)
    if len(members) == servers:
        raise DeclarationError("the coalition has all servers, whose shares determine every vector")
    if projection.ndim != 2:
        raise DeclarationError(f"the projection has shape {projection.shape}; it must be (k, dimension)")
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
