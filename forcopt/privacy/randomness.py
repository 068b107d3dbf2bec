"""The source of randomness of a release, and its label."""

from __future__ import annotations

from dataclasses import dataclass, field
from secrets import token_bytes
from typing import Any

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError, NotInstalledError


@dataclass(frozen=True)
class Secure:
    """Randomness of the system: a release with it is private.

    Whole noise is drawn from it by exact rejection, or by inversion of a table of 63 bits; real noise is
    drawn by OpenDP. There is no seed, so that nobody can repeat a draw.

    Examples
    --------
    >>> Secure().integers(2**63).dtype
    dtype('uint64')
    """

    simulated = False

    def integers(self, end: int, size: int = 1) -> Array:
        """Draw whole numbers from 0 to ``end - 1``, equally likely; `end` is at least 1 and at most 2^63.

        The dtype is the smallest unsigned one.
        """
        kind = np.min_scalar_type(end - 1)
        mask, last = kind.type((1 << (end - 1).bit_length()) - 1), kind.type(end - 1)
        drawn: Array = np.frombuffer(token_bytes(kind.itemsize * size), dtype=kind) & mask
        while len(large := np.flatnonzero(drawn > last)):
            drawn[large] = np.frombuffer(token_bytes(kind.itemsize * len(large)), dtype=kind) & mask
        return drawn

    def generator(self) -> np.random.Generator:
        """A numpy generator seeded with 256 fresh bits of the system, for draws that need no secrecy proof.

        Its outputs are floats: choices among finitely many outcomes are made with 53 bits.
        """
        return np.random.default_rng(int.from_bytes(token_bytes(32), "little"))


class Simulated:
    """Randomness with a seed: a study of privacy, not privacy, since anybody with the seed undoes it.

    Parameters
    ----------
    seed : int or numpy.random.Generator
        The same int repeats the same draws; a generator goes on where it is.

    Raises
    ------
    DeclarationError
        Without a seed.

    Examples
    --------
    >>> Simulated(7)
    Simulated(7)
    """

    simulated = True

    def __init__(self, seed: int | np.random.Generator) -> None:
        if seed is None:
            raise DeclarationError("seed is None; a simulation needs one, and a private release is Secure()")
        self.seed = seed
        self._generator = np.random.default_rng(seed)

    def generator(self) -> np.random.Generator:
        """The generator; draws go on from call to call."""
        return self._generator

    def __repr__(self) -> str:
        return f"Simulated({self.seed if isinstance(self.seed, int) else 'generator'})"


Randomness = Secure | Simulated


def randomness(seed: int | np.random.Generator | None = None) -> Randomness:
    """The source of a method that takes a `seed`, as all methods of problems do.

    Parameters
    ----------
    seed : int or numpy.random.Generator, optional
        Of a simulation.

    Returns
    -------
    Randomness
        `Secure` without a seed, else `Simulated`.

    Examples
    --------
    >>> randomness(seed=3), randomness()
    (Simulated(3), Secure())
    """
    return Secure() if seed is None else Simulated(seed)


@dataclass(frozen=True, eq=False)
class Release:
    """The output of a mechanism, without its input.

    Attributes
    ----------
    values : ndarray or object
        The released numbers, read-only, or the result of post-processing.
    mechanism : dict
        The declaration of the mechanism as plain data.
    simulated : bool
        Whether a seed drew the noise: then it is a study, and not private.
    total_variation : float
        The total variation between the securely drawn and the declared law; an (epsilon, delta) guarantee of
        the declared law holds with ``(1 + exp(epsilon)) * total_variation`` added to delta. 0 for a
        simulation.

    Examples
    --------
    >>> from forcopt.privacy import AdditiveMechanism, DiscreteLaplace
    >>> release = AdditiveMechanism(DiscreteLaplace(scale=2.0)).simulate([120, 45], seed=1)
    >>> release
    <Release of AdditiveMechanism, simulated with a seed, not private: [121  46]>
    >>> release.values.shape, release.simulated
    ((2,), True)
    """

    values: Any
    mechanism: dict[str, Any] = field(default_factory=dict)
    simulated: bool = False
    total_variation: float = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.values, np.ndarray):
            self.values.flags.writeable = False

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.values, dtype=dtype)

    def __len__(self) -> int:
        return len(self.values)

    def to_dict(self) -> dict[str, Any]:
        """The release as plain data, ready for JSON."""
        values = self.values.tolist() if isinstance(self.values, np.ndarray) else self.values
        return {**vars(self), "values": values}

    def __repr__(self) -> str:
        kind = self.mechanism.get("type", "a mechanism")
        text = "simulated with a seed, not private" if self.simulated else "drawn securely"
        return f"<Release of {kind}, {text}: {np.array2string(np.asarray(self.values), threshold=6)}>"


def opendp() -> Any:
    """The prelude of OpenDP, which draws real noise and private choices.

    Raises
    ------
    NotInstalledError
        If it is not there.
    """
    try:
        import opendp.prelude as dp
    except ImportError:
        raise NotInstalledError(
            "private noise is drawn by OpenDP, which is not installed: pip install opendp; "
            "rng=Simulated(seed) or a seed simulates it without"
        ) from None
    dp.enable_features("contrib")
    return dp
