"""Faults of clients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from forcopt.arrays import Array
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
            raise DeclarationError(f"{self!r}: server is {server!r}; servers are 0 to {servers - 1}")

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
