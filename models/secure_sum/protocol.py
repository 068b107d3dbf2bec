"""The decision: a protocol that can be run, on whole numbers, with faults, and the views of coalitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from forcopt.arrays import Array, Seed, as_numbers, lists_by_key, whole_number
from forcopt.errors import DeclarationError, require, require_shape
from forcopt.models.secure_sum.faults import Fault, Message
from forcopt.models.secure_sum.shares import Shares, View, coalition_view
from forcopt.models.secure_sum.tolerances import COMPARED, DECLARED
from forcopt.privacy.randomness import randomness

BATCH_NUMBERS = 100_000


@dataclass(frozen=True, eq=False)
class Transcript:
    """A run of a protocol.

    Attributes
    ----------
    total : Array, optional
        The sum over the accepted clients, shape ``(dimension,)``; None if the run was aborted.
    whole_total : Array, optional
        The same in steps: exact whole numbers.
    accepted : list
        The clients that count, in the order in which they came.
    rejected : dict
        The reason for each other client.
    aborted : str
        Why there is no total; empty otherwise.
    messages : dict[str, int]
        Bits that each party sent: ``"clients"`` and ``"server 0"``, ``"server 1"``, ...
    warnings : tuple[str, ...]
        For instance on honest vectors whose norm is above 1, which no guarantee covers.
    simulated : bool
        Whether a seed drew the noise: then it is a study, and not private.
    """

    total: Array | None
    whole_total: Array | None = field(repr=False)
    accepted: list[Any]
    rejected: dict[Any, str]
    aborted: str
    messages: dict[str, int]
    warnings: tuple[str, ...] = ()
    simulated: bool = False

    def __repr__(self) -> str:
        source = "simulated with a seed, not private" if self.simulated else "seeded by the system"
        end = f"aborted: {self.aborted}" if self.aborted else f"{len(self.accepted)} accepted"
        return f"<Transcript: {end}, {len(self.rejected)} rejected; {source}>"


@dataclass(frozen=True, eq=False)
class SumProtocol:
    """A protocol for secure sums.

    Attributes
    ----------
    projections : int, optional
        k, the rows of the random projection; None for no projection.
    threshold : float
        tau: a vector is accepted if its noisy projection has a norm below it.
    check_noise : float
        sigma_v, the standard deviation of the noise that each server adds to its projected share.
    shares : Shares
        The law of the shares.
    step : float
        Vectors and shares are whole multiples of it.
    bits : int
        A share's numbers lie strictly between ``-2^(bits - 1)`` and ``2^(bits - 1)`` steps.

    Raises
    ------
    DeclarationError
        For numbers out of range, or shares that do not sum to the vector.

    Examples
    --------
    >>> from forcopt.models import SecureSum
    >>> p = SecureSum(servers=2, dimension=3, epsilon=1.0, delta=1e-6, bits=8, step=1.0, whole=True)
    >>> run = p.solve().decision.run([[1, 0, 0], [0, 1, 0], [0, 1, 0]], seed=1)
    >>> run.total
    array([1., 2., 0.])
    """

    projections: int | None
    threshold: float
    check_noise: float
    shares: Shares
    step: float
    bits: int

    def __post_init__(self) -> None:
        if self.projections is not None:
            whole_number(self.projections, "projections", 1)
        require(self.threshold > 0, "threshold", self.threshold, "be above 0")
        require(0 <= self.check_noise < np.inf, "check_noise", self.check_noise, "not be negative")
        require(0 < self.step < np.inf, "step", self.step, "be above 0")
        if isinstance(self.bits, bool) or self.bits != int(self.bits) or not 2 <= self.bits <= 48:
            raise DeclarationError(f"bits is {self.bits!r}; it must be a whole number from 2 to 48")
        name, value = max(self.shares.errors().items(), key=lambda error: error[1])
        if value > DECLARED:
            raise DeclarationError(
                f"shares: the error of {name} is {value:.3g}; the split must have sum 1, and the covariance "
                "must be symmetric, positive semidefinite and with rows of sum 0"
            )

    @property
    def servers(self) -> int:
        """The number of servers."""
        return self.shares.servers

    def __repr__(self) -> str:
        k = "no projection" if self.projections is None else f"{self.projections} projections"
        return (
            f"<protocol of {self.servers} servers: {k}, threshold {self.threshold:.6g}, check noise "
            f"{self.check_noise:.6g}, {self.bits} bits of step {self.step:.6g}>"
        )

    # -- a run -----------------------------------------------------------------------------------------------

    def run(
        self, vectors: Any, faults: Sequence[Fault] = (), seed: Seed = None, *, server_noise: Any = None
    ) -> Transcript:
        """Sum vectors.

        Parameters
        ----------
        vectors : array_like, Mapping, or iterator of array_like
            Shape ``(clients, dimension)``; clients are numbered from 0. A mapping gives their names. An
            iterator gives the clients in batches, which need not fit into memory together.
        faults : sequence
            The faults of the run; see `forcopt.models.secure_sum.faults`.
        seed : int or Generator, optional
            None seeds the draws with the system's randomness; a seed repeats them.
        server_noise : array_like of int, optional
            Whole steps that each server adds to its sums, shape ``(servers, dimension)``: see `shared_noise`.
            The total then is the sum and this noise.

        Returns
        -------
        Transcript
            Honest vectors are rounded to multiples of the step. The sum is taken over the accepted clients'
            shares, as whole numbers: exact, and the same in any order.

        Raises
        ------
        DeclarationError
            For vectors that are no matrix of finite numbers, or for a fault of an unknown client. Other
            faults are no errors: the transcript names them.

        Notes
        -----
        All parties play in one process, to rehearse and to measure. In a deployment every client and server
        draws its own noise, by a generator for cryptography; numpy's is not made for it. The servers draw the
        projection after all shares have come: a client that learns it before can send a long vector that
        it maps to 0.

        O(S k d) operations for each client. Robust against clients; a server that does not follow the
        protocol can spoil the sum.
        """
        rng = randomness(seed=seed)
        generator = rng.generator()
        for fault in faults:
            if not isinstance(fault, Fault):
                raise DeclarationError(f"faults: {fault!r} is no fault")
            fault.check(self.servers)
        by_client = lists_by_key((fault.client, fault) for fault in faults)
        run, absent = _Run(self, generator, by_client), set(by_client)
        for names, batch in _batches(vectors):
            run.take(names, batch)
            absent.difference_update(names)
        if absent:
            raise DeclarationError(f"faults: there is no client {min(absent, key=str)!r}")
        return run.finish(server_noise, rng.simulated)

    def share(self, whole: Array, generator: np.random.Generator) -> Array:
        """Split whole vectors of shape ``(clients, dimension)``, in steps; shape ``(servers, ...)``."""
        out = np.empty((self.servers, *whole.shape), dtype=np.int64)
        noise = generator.standard_normal((self.servers - 1, *whole.shape))
        root = self.shares.factor / self.step
        out[0] = whole
        for i in range(1, self.servers):
            row = self.shares.split[i] * whole
            for j in range(self.servers - 1):
                if root[i - 1, j] != 0:
                    row = row + root[i - 1, j] * noise[j]
            np.rint(row, out=row)
            out[i] = row
            out[0] -= out[i]
        return out

    def refused(self, number: Any, dimension: int) -> str:
        """The reason why a server refuses a share; empty if it takes it.

        Parameters
        ----------
        number : Any
            The share, in steps.
        dimension : int
            Of the sum.
        """
        try:
            share = np.asarray(number)
        except ValueError:
            return "the share is no array of numbers"
        if share.shape != (dimension,):
            return f"the share has shape {share.shape}, not ({dimension},)"
        if share.dtype.kind not in "iuf":
            return f"the share has type {share.dtype}, not whole numbers"
        if share.dtype.kind == "f":
            if not np.isfinite(share).all():
                return "the share has a number that is not finite"
            if (share != np.rint(share)).any():
                return "the share has a number that is not whole"
        limit = 2 ** (self.bits - 1)
        if not (np.abs(share.astype(float)) < limit).all():
            return f"the share has a number out of range: it does not fit {self.bits} bits"
        return ""

    def projection(self, dimension: int, generator: np.random.Generator) -> Array | None:
        """W, shape ``(k, dimension)``, with entries of variance 1 / k; None for no projection."""
        if self.projections is None:
            return None
        drawn = generator.standard_normal((self.projections, dimension))
        return np.asarray(drawn / np.sqrt(self.projections))

    # -- views -----------------------------------------------------------------------------------------------

    def view(self, coalition: Iterable[int], projection: Any) -> View:
        """The law of all that a coalition sees of one client, given the projection W.

        Parameters
        ----------
        coalition : iterable of int
            Not all servers.
        projection : array_like
            Shape ``(k, dimension)``.

        Returns
        -------
        View
            Before rounding, which is post-processing. Of coalitions without server 0 it has the check's noisy
            projection, of which they see one bit only: they learn no more than that.

        Raises
        ------
        DeclarationError
            For all servers: together they hold the vector.
        """
        return coalition_view(self.shares, self.check_noise, coalition, as_numbers(projection, "projection"))

    def simulate_view(self, coalition: Iterable[int], projection: Any) -> View:
        """The same without the vector: Algorithms 2 and 4. Its law is the law of `view` for the vector 0."""
        view = self.view(coalition, projection)
        return View(view.names, np.zeros_like(view.mean), view.covariance)


class _Run:
    """The state of a run: sums at each server, and the clients seen so far."""

    def __init__(
        self, protocol: SumProtocol, generator: np.random.Generator, faults: Mapping[Any, list[Fault]]
    ) -> None:
        self.protocol, self.generator, self.faults = protocol, generator, faults
        self.accepted: list[Any] = []
        self.rejected: dict[Any, str] = {}
        self.sums: Array | None = None
        self.projection: Array | None = None
        self.long = self.sent = self.projected = 0

    def take(self, names: Sequence[Any], vectors: Array) -> None:
        """Share, check and add a batch of clients."""
        protocol = self.protocol
        if self.sums is None:
            self.dimension = vectors.shape[1]
            self.sums = np.zeros((protocol.servers, self.dimension), dtype=np.int64)
            self.projection = protocol.projection(self.dimension, self.generator)
        if vectors.shape[1] != self.dimension:
            raise DeclarationError(f"vectors have {vectors.shape[1]} numbers; the first had {self.dimension}")
        faulty = [i for i, name in enumerate(names) if name in self.faults]
        mended = vectors.astype(float)
        for i in faulty:
            for fault in self.faults[names[i]]:
                mended[i] = fault.vector(mended[i])
        squares = np.einsum("ij,ij->i", mended, mended)
        self.long += int((squares > (1 + COMPARED) ** 2).sum())
        with np.errstate(over="ignore", invalid="ignore"):
            whole = np.rint(mended / protocol.step)
        absurd = ~np.asarray((np.abs(whole) < 2.0**62).all(axis=1))
        shares = protocol.share(np.where(absurd[:, None], 0, whole).astype(np.int64), self.generator)
        fits = np.asarray((np.abs(shares) < 2 ** (protocol.bits - 1)).all(axis=(0, 2))) & ~absurd
        why = f"a share has a number out of range: it does not fit {protocol.bits} bits"
        self.rejected |= {names[i]: why for i in np.flatnonzero(~fits).tolist()}
        for i in faulty:
            if absurd[i]:
                continue
            received = self._messages(names[i], shares[:, i])
            if isinstance(received, str):
                fits[i] = False
                self.rejected[names[i]] = received
            else:
                shares[:, i], fits[i] = received, True
                self.rejected.pop(names[i], None)
        self.sent += protocol.servers * self.dimension * protocol.bits * len(names)
        self.projected += int(fits.sum())
        passed = np.flatnonzero(fits)
        norms = self._norms(shares[:, passed])
        short = norms < protocol.threshold  # NaN is not below
        for i in passed[~short]:
            self.rejected[names[i]] = "the norm of the noisy projection is not below the threshold"
        counted = passed[short]
        self.sums += shares[:, counted].sum(axis=1)
        self.accepted += [names[i] for i in counted]

    def _messages(self, name: Any, shares: Array) -> Array | str:
        """Pass a client's messages through its faults and the servers' checks: its shares, or a reason."""
        messages = [Message(i, name, share) for i, share in enumerate(shares)]
        for fault in self.faults[name]:
            messages = fault.messages(messages)
        counts = Counter(m.server for m in messages)
        kept = []
        for i in range(self.protocol.servers):
            if counts[i] == 0:
                return f"no share at server {i}"
            if counts[i] > 1:
                return f"{counts[i]} shares at server {i}"
            share = next(m.share for m in messages if m.server == i)
            reason = self.protocol.refused(share, self.dimension)
            if reason:
                return f"server {i}: {reason}"
            kept.append(np.asarray(share).astype(np.int64))
        return np.stack(kept)

    def _norms(self, shares: Array) -> Array:
        """The norm of each client's noisy projection: every server projects its own share and adds noise."""
        protocol, rows = self.protocol, shares.shape[1]
        k = self.dimension if self.projection is None else len(self.projection)
        total = np.zeros((rows, k))
        for share in shares:
            own = share * protocol.step
            total += own if self.projection is None else own @ self.projection.T
            if protocol.check_noise:
                total += protocol.check_noise * self.generator.standard_normal((rows, k))
        return np.asarray(np.sqrt(np.einsum("ij,ij->i", total, total)))

    def finish(self, server_noise: Any, simulated: bool) -> Transcript:
        """Add up the servers' sums, or give the reason why not."""
        protocol, n = self.protocol, len(self.accepted)
        sums = np.zeros((protocol.servers, 0), dtype=np.int64) if self.sums is None else self.sums
        aborted = ""
        if n * 2 ** (protocol.bits - 1) * protocol.servers >= 2**63:
            aborted = f"the sum of {n} shares of {protocol.bits} bits may overflow 64 bits"
        seen = len(self.accepted) + len(self.rejected)
        k = 0 if self.sums is None else (self.dimension if self.projection is None else len(self.projection))
        messages = {"clients": self.sent}
        for i in range(protocol.servers):
            own = 64 * sums.shape[1] + (64 * k * self.projected if i else seen * (protocol.servers - 1))
            messages[f"server {i}"] = own
        warnings = []
        if self.long:
            warnings.append(f"{self.long} vectors have a norm above 1: no guarantee covers them")
        if n == 0:
            warnings.append("no client was accepted: the sum is empty")
        rest = (self.accepted, self.rejected, aborted, messages, tuple(warnings), simulated)
        if aborted:
            return Transcript(None, None, *rest)
        if server_noise is not None:
            sums = sums + _whole_noise(server_noise, sums.shape)
        whole = sums.sum(axis=0)
        return Transcript(whole * protocol.step, whole, *rest)


def _whole_noise(noise: Any, shape: tuple[int, ...]) -> Array:
    """Check the noise of the servers."""
    given = as_numbers(noise, "server_noise")
    fits = given.shape == shape and (given == np.rint(given)).all() and (abs(given) < 2**53).all()
    require_shape(fits, "server_noise has", given, f"be whole, below 2^53, of {shape}")
    return given.astype(np.int64)


def _batches(vectors: Any) -> Iterator[tuple[Sequence[Any], Array]]:
    """Names and vectors of the clients, in batches of limited size."""
    if isinstance(vectors, Mapping):
        names: Sequence[Any] = list(vectors)
        yield from _pieces(names, _matrix(list(vectors.values())))
        return
    if isinstance(vectors, Iterator):
        first = 0
        for batch in vectors:
            matrix = _matrix(batch)
            yield from _pieces(range(first, first + len(matrix)), matrix)
            first += len(matrix)
        return
    matrix = _matrix(vectors)
    yield from _pieces(range(len(matrix)), matrix)


def _matrix(vectors: Any) -> Array:
    try:
        matrix = np.asarray(vectors)
    except ValueError as error:
        raise DeclarationError(f"vectors: they must have one length ({error})") from None
    if matrix.size == 0 and matrix.ndim < 2:
        matrix = matrix.reshape(0, 0)
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        kind = f"shape {matrix.shape} and type {matrix.dtype}"
        raise DeclarationError(f"vectors have {kind}; they must be numbers, (clients, d)")
    if matrix.dtype.kind == "f" and not np.isfinite(matrix).all():
        at = int(np.argmax(~np.isfinite(matrix).all(axis=1)))
        raise DeclarationError(f"vectors[{at}] has a number that is not finite")
    return matrix


def _pieces(names: Sequence[Any], matrix: Array) -> Iterator[tuple[Sequence[Any], Array]]:
    size = max(1, BATCH_NUMBERS // max(1, matrix.shape[1]))
    if matrix.shape[1] and not len(matrix):  # nobody, but of a known dimension
        yield names, matrix
    for first in range(0, len(matrix), size):
        yield names[first : first + size], matrix[first : first + size]
