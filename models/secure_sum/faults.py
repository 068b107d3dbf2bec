"""Faults of clients and servers, and how far liars may move a rate."""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, pi, sin, sqrt
from typing import Any, NamedTuple

import numpy as np
import scipy

from forcopt.arrays import Array, as_numbers
from forcopt.errors import DeclarationError


class Message(NamedTuple):
    """A client's message to a server: its name and its share, in steps."""

    server: int
    client: Any
    share: Any


@dataclass(frozen=True)
class Fault:
    """A client that does not follow the protocol.

    Attributes
    ----------
    client : Any
        Its number or name.
    """

    client: Any

    def check(self, servers: int) -> None:
        """Check that the fault fits the number of servers."""
        server = getattr(self, "server", 0)
        if isinstance(server, bool) or server != int(server) or not 0 <= server < servers:
            raise DeclarationError(
                f"{self!r}: server is {server!r}; servers are numbered from 0 to {servers - 1}"
            )

    def vector(self, vector: Array) -> Array:
        """The vector that the client shares."""
        return vector

    def messages(self, messages: list[Message]) -> list[Message]:
        """The messages that the client sends."""
        return messages


@dataclass(frozen=True)
class Attack(Fault):
    """The client's vector is stretched to a norm, or is a unit vector of that norm if it is 0.

    Attributes
    ----------
    norm : float
        Of the sent vector; may be infinite.

    Examples
    --------
    >>> Attack(client=0, norm=2.0).vector(np.array([3.0, 4.0])).round(6).tolist()
    [1.2, 1.6]
    """

    norm: float

    def vector(self, vector: Array) -> Array:
        """The stretched vector."""
        length = float(np.linalg.norm(vector))
        direction = vector / length if length > 0 else np.eye(1, len(vector))[0]
        with np.errstate(invalid="ignore"):  # an infinite norm
            return np.asarray(self.norm * direction)


@dataclass(frozen=True)
class DropShare(Fault):
    """The share for one server is lost.

    Attributes
    ----------
    server : int
        From 0.

    Examples
    --------
    >>> DropShare(0, server=1).messages([Message(0, 0, 5), Message(1, 0, 6)])
    [Message(server=0, client=0, share=5)]
    """

    server: int

    def messages(self, messages: list[Message]) -> list[Message]:
        """All others."""
        return [m for m in messages if m.server != self.server]


@dataclass(frozen=True)
class DuplicateShare(Fault):
    """The client's name comes twice at one server.

    Attributes
    ----------
    server : int
        From 0.

    Examples
    --------
    >>> len(DuplicateShare(0, server=1).messages([Message(0, 0, 5), Message(1, 0, 6)]))
    3
    """

    server: int

    def messages(self, messages: list[Message]) -> list[Message]:
        """That share twice."""
        return messages + [m for m in messages if m.server == self.server]


@dataclass(frozen=True)
class ReplaceShare(Fault):
    """The client sends one server something else, such as NaN, another shape, or halves.

    Attributes
    ----------
    server : int
        From 0.
    share : Any
        Is sent in place of the share.

    Examples
    --------
    >>> ReplaceShare(0, server=1, share=9).messages([Message(1, 0, 6)])
    [Message(server=1, client=0, share=9)]
    """

    server: int
    share: Any

    def messages(self, messages: list[Message]) -> list[Message]:
        """The messages with that share replaced."""
        return [m._replace(share=self.share) if m.server == self.server else m for m in messages]


@dataclass(frozen=True)
class CancellingShares(Fault):
    """Shares of server 0 and 1 grow by a number and its opposite, which cancel unless sums round.

    Attributes
    ----------
    size : float
        Added to the share of server 0 and subtracted from the share of server 1.

    Examples
    --------
    >>> [m.share for m in CancellingShares(0, 2).messages([Message(0, 0, 5), Message(1, 0, 6)])]
    [7, 4]
    """

    size: float

    def messages(self, messages: list[Message]) -> list[Message]:
        """The grown shares; as floats, as whole numbers of this size may not exist."""
        grow = {0: self.size, 1: -self.size}
        return [m._replace(share=m.share + grow[m.server]) if m.server in grow else m for m in messages]


@dataclass(frozen=True)
class ServerFault:
    """A server that fails, or does not follow the protocol.

    Attributes
    ----------
    server : int
        Which.
    """

    server: int

    def check(self, servers: int) -> None:
        """Check that there is such a server."""
        Fault.check(self, servers)  # type: ignore[arg-type]

    def sums(self, sums: Array) -> Array:
        """The sums of all servers, shape ``(servers, dimension)``, as the others receive them."""
        return sums


@dataclass(frozen=True)
class LostServer(ServerFault):
    """A server that sends no sums."""


@dataclass(frozen=True)
class WrongProjection(ServerFault):
    """A server that chooses the projection itself."""

    server: int = 0


@dataclass(frozen=True)
class WrongSums(ServerFault):
    """A malicious server that adds to its sums, in steps. The protocol has no defence: the sum is wrong.

    Attributes
    ----------
    added : array_like
        Whole numbers in steps of the protocol's grid, shape ``(d,)``.
    """

    added: Any

    def sums(self, sums: Array) -> Array:
        """The spoiled sums."""
        added, out = as_numbers(self.added, "WrongSums.added"), sums.copy()
        if added.shape != sums.shape[1:] or (added != np.rint(added)).any():
            raise DeclarationError(
                f"WrongSums.added has shape {added.shape}; it must be whole numbers of shape {sums.shape[1:]}"
            )
        out[self.server] += added.astype(np.int64)
        return out


ANGLES = 64


def poisoned_rate(counts: Any, numerator: Any, denominator: Any, radius: float) -> tuple[float, float]:
    """The least and the largest rate of a table that liars shift.

    Parameters
    ----------
    counts : array_like
        The table of the honest clients, of any shape.
    numerator, denominator : array_like
        Weights of the cells, of the same shape: the rate is ``sum(numerator * counts) / sum(denominator *
        counts)``.
    radius : float
        The largest Euclidean norm of the shift. With m liars it is ``m * rho``, except with probability
        ``m * soundness``: the sum of m vectors of norm at most rho is any vector of norm at most m rho.

    Returns
    -------
    tuple[float, float]
        Both are attained by a real shift.

    Raises
    ------
    DeclarationError
        For other shapes, a negative radius, or a denominator that a shift makes 0.

    Notes
    -----
    The rate reaches t if ``(n - t d) . c + radius |n - t d| >= 0``. Both ends are the roots of the quadratic
    equation ``((n - t d) . c)^2 = radius^2 |n - t d|^2``. O(cells).

    Examples
    --------
    >>> low, high = poisoned_rate([60, 40], [1, 0], [1, 1], radius=5.0)
    >>> round(low, 6), round(high, 6)
    (0.564353, 0.636652)
    """
    c, n, d = (as_numbers(v, "counts") for v in (counts, numerator, denominator))
    if not c.shape == n.shape == d.shape:
        raise DeclarationError(
            f"counts have shape {c.shape}, the weights {n.shape} and {d.shape}; all three must be equal"
        )
    if not 0 <= radius < np.inf:
        raise DeclarationError(f"radius is {radius!r}; it must be at least 0")
    top, bottom, square = float((n * c).sum()), float((d * c).sum()), radius**2
    a = bottom**2 - square * float((d * d).sum())
    if not (bottom > 0 and a > 0):
        raise DeclarationError(f"radius is {radius:g}; a shift of that norm makes the denominator 0")
    b = top * bottom - square * float((n * d).sum())
    root = sqrt(max(b**2 - a * (top**2 - square * float((n * n).sum())), 0.0))
    return (b - root) / a, (b + root) / a


def poisoned_disparity(
    counts: Any, first: tuple[Any, Any], second: tuple[Any, Any], radius: float
) -> tuple[float, float]:
    """The least and the largest difference of two rates over different cells.

    Parameters
    ----------
    counts : array_like
        The table of the honest clients.
    first, second : tuple of two array_like
        Numerator and denominator of each rate, see `poisoned_rate`. No cell has a weight in both rates.
    radius : float
        See `poisoned_rate`.

    Returns
    -------
    tuple[float, float]
        Of the first rate less the second one. The shift is divided between their cells in all ways: a search
        over one angle.

    Raises
    ------
    DeclarationError
        For a cell in both rates, and as `poisoned_rate`.

    Examples
    --------
    >>> table = [[60, 40], [30, 70]]
    >>> first = [[1, 0], [0, 0]], [[1, 1], [0, 0]]
    >>> second = [[0, 0], [1, 0]], [[0, 0], [1, 1]]
    >>> [round(x, 6) for x in poisoned_disparity(table, first, second, radius=5.0)]
    [0.248251, 0.353281]
    """
    weights = [as_numbers(w, "weights") for w in (*first, *second)]
    used = [(abs(weights[i]) + abs(weights[i + 1])) > 0 for i in (0, 2)]
    if used[0].shape == used[1].shape and (used[0] & used[1]).any():
        raise DeclarationError("a cell has a weight in both rates; they must be over different cells")

    def ends(angle: float) -> Array:
        one = poisoned_rate(counts, *first, radius * cos(angle))
        two = poisoned_rate(counts, *second, radius * sin(angle))
        return np.array([one[0] - two[1], two[0] - one[1]])  # both are to be least

    angles = np.linspace(0, pi / 2, ANGLES + 1)
    seen = np.array([ends(a) for a in angles])
    found = []
    for side in (0, 1):
        at = int(seen[:, side].argmin())
        near = float(angles[max(at - 1, 0)]), float(angles[min(at + 1, ANGLES)])
        best = scipy.optimize.minimize_scalar(
            lambda a, side=side: ends(a)[side], bounds=near, method="bounded", options={"xatol": 1e-10}
        )
        found.append(min(float(best.fun), float(seen[at, side])))
    return found[0], -found[1]
