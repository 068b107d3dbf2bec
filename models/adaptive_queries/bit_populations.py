"""Populations of records made of bits, with closed-form laws, and samples of them in packed bits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from forcopt.arrays import Array, Seed, as_numbers
from forcopt.errors import DeclarationError, require

_MOST = 20
"""Bits of one query, at most: its table has 2 to this power entries."""


@dataclass(frozen=True, eq=False)
class BitQuery:
    """The mean of a function of a few bits of a record.

    Attributes
    ----------
    bits : tuple[int, ...]
        Numbers of different bits from 0, at most 20.
    values : Array
        In [0, 1], of each combination of these bits, shape ``(2, ..., 2)``.

    Raises
    ------
    DeclarationError
        For values outside of [0, 1] or of another shape, or a bit that is given twice.

    Examples
    --------
    >>> equal = BitQuery((0, 1), [[1, 0], [0, 1]])
    >>> MarkovBits.decaying(2, independence=0.5).value(equal)
    0.75
    """

    bits: tuple[int, ...]
    values: Array = field(repr=False)

    def __post_init__(self) -> None:
        bits, values = tuple(int(b) for b in self.bits), as_numbers(self.values, "values")
        if not 1 <= len(bits) <= _MOST or len(set(bits)) < len(bits):
            raise DeclarationError(f"bits are {self.bits}; there must be 1 to {_MOST} different ones")
        if values.shape != (2,) * len(bits):
            raise DeclarationError(f"values have shape {values.shape}; it must be 2 for each of {len(bits)}")
        if values.min() < 0 or values.max() > 1:
            ends = f"{values.min():g} to {values.max():g}"
            raise DeclarationError(f"values of a query lie from {ends}; they must be in [0, 1]")
        object.__setattr__(self, "bits", bits)
        object.__setattr__(self, "values", values)


class BitSample:
    """Records in packed bits: 64 records in a word.

    Parameters
    ----------
    words : Array
        A row for each bit of a record, unsigned 64-bit words, shape ``(bits, ceil(records / 64))``; the
        places behind the last record are 0.
    records : int
        The number n of records.

    Notes
    -----
    Means of one or two bits count the ones in words: O(n / 64). Others unpack their bits: O(n) for each.
    """

    def __init__(self, words: Array, records: int) -> None:
        self.words, self.records = words, records
        self._ones = np.bitwise_count(words).sum(axis=1, dtype=np.int64)

    def mean(self, query: BitQuery, records: slice = slice(None)) -> float:
        """The mean of a query over the sample, or over some of its records."""
        if max(query.bits) >= len(self.words) or min(query.bits) < 0:
            raise DeclarationError(f"bits are {query.bits}; they go from 0 to {len(self.words) - 1}")
        values = query.values
        if records != slice(None) or len(query.bits) > 2:
            codes = np.zeros(self.records, dtype=np.int32)
            for bit in query.bits:
                unpacked = np.unpackbits(self.words[bit].view(np.uint8), bitorder="little")
                codes = 2 * codes + unpacked[: self.records]
            return float(values.ravel()[codes[records]].mean())
        a = int(self._ones[query.bits[0]])
        if len(query.bits) == 1:
            return float(values[0] + (values[1] - values[0]) * (a / self.records))
        b = int(self._ones[query.bits[1]])
        both = int(np.bitwise_count(self.words[query.bits[0]] & self.words[query.bits[1]]).sum())
        counts = np.array([[self.records - a - b + both, b - both], [a - both, both]])
        return float((counts * values).sum() / self.records)


class BitPopulation(ABC):
    """The base of populations whose records are rows of bits with a known law.

    Attributes
    ----------
    position : Array
        The block or attribute of each bit, from 1 and rising, shape ``(bits,)``.
    """

    position: Array

    @property
    def positions(self) -> int:
        """The number of blocks or attributes."""
        return int(self.position[-1])

    @abstractmethod
    def law(self, bits: Sequence[int]) -> Array:
        """The joint probabilities of rising bits, shape ``(2, ..., 2)``."""

    @abstractmethod
    def _words(self, records: int, rng: np.random.Generator) -> Array:
        """Packed bits of independent records, without regard to the places behind the last record."""

    def interval(self, query: BitQuery) -> tuple[int, int]:
        """The first and the last position that a query looks at."""
        if max(query.bits) >= len(self.position) or min(query.bits) < 0:
            raise DeclarationError(f"bits are {query.bits}; they go from 0 to {len(self.position) - 1}")
        return int(self.position[min(query.bits)]), int(self.position[max(query.bits)])

    def value(self, query: BitQuery) -> float:
        """The mean over the population."""
        self.interval(query)
        order = np.argsort(query.bits)
        return float((self.law([query.bits[i] for i in order]) * query.values.transpose(order)).sum())

    def sample(self, records: int, seed: Seed = None) -> BitSample:
        """Draw independent records.

        Parameters
        ----------
        records : int
            The size n, at least 1.
        seed : int or Generator, optional
            The seed.
        """
        require(records >= 1, "records", records, "be at least 1")
        words = self._words(records, np.random.default_rng(seed))
        if records % 64:
            words[:, -1] &= np.uint64((1 << (records % 64)) - 1)
        return BitSample(words, records)


def _random(rng: np.random.Generator, records: int) -> Array:
    """Fair bits, one for each record."""
    return rng.integers(0, 2**64, -(-records // 64), dtype=np.uint64)


def _packed(flags: Array) -> Array:
    """Bools, one for each record, in words."""
    return np.packbits(np.pad(flags, (0, -len(flags) % 64)), bitorder="little").view(np.uint64)


@dataclass(frozen=True, eq=False)
class MarkovBits(BitPopulation):
    """Fair bits in a row; over each link, a bit is copied with some probability, and else drawn anew.

    Attributes
    ----------
    position : Array
        The block or attribute of each bit, from 1 and rising, shape ``(bits,)``.
    related : Array
        The probability that each link copies, shape ``(bits - 1,)``.

    Examples
    --------
    >>> MarkovBits.decaying(attributes=3, independence=0.2).law([0, 2]).round(3).tolist()
    [[0.41, 0.09], [0.09, 0.41]]
    """

    position: Array = field(repr=False)
    related: Array = field(repr=False)

    @classmethod
    def blocks(cls, blocks: int, columns: int, related: float = 0.0) -> MarkovBits:
        """Independent blocks of bits, each with links of the same probability."""
        links = np.full(blocks * columns - 1, related)
        links[columns - 1 :: columns] = 0.0
        return cls(np.repeat(np.arange(1, blocks + 1), columns), links)

    @classmethod
    def decaying(cls, attributes: int, independence: float) -> MarkovBits:
        """A bit for each attribute of a `DecayingCorrelation`."""
        return cls(np.arange(1, attributes + 1), np.full(attributes - 1, 1 - independence))

    def law(self, bits: Sequence[int]) -> Array:
        """See `BitPopulation`."""
        table = np.array([0.5, 0.5])
        for before, after in pairwise(bits):
            same = float(np.prod(self.related[before:after]))
            table = table[..., None] * (same * np.eye(2) + (1 - same) / 2)
        return table

    def _words(self, records: int, rng: np.random.Generator) -> Array:
        words = np.empty((len(self.position), -(-records // 64)), dtype=np.uint64)
        words[0] = _random(rng, records)
        for j, related in enumerate(self.related.tolist(), start=1):
            words[j] = _random(rng, records)
            if related:
                copied = _packed(rng.random(records) < related)
                words[j] = (words[j - 1] & copied) | (words[j] & ~copied)
        return words


@dataclass(frozen=True, eq=False)
class NeighborAnds(BitPopulation):
    """One bit a block: the AND of two neighbors in a row of hidden fair bits, so that blocks are 1-dependent.

    Attributes
    ----------
    blocks : int
        The number of blocks, at least 1.

    Examples
    --------
    >>> NeighborAnds(3).law([0, 1]).tolist()
    [[0.625, 0.125], [0.125, 0.125]]
    """

    blocks: int

    @property
    def position(self) -> Array:  # type: ignore[override]
        """Each bit is a block."""
        return np.arange(1, self.blocks + 1)

    def law(self, bits: Sequence[int]) -> Array:
        """See `BitPopulation`."""
        table = np.full((1, 2), 0.5)  # entries so far, and the hidden bit to their right
        last = bits[0] - 1
        for bit in bits:
            if bit > last + 1:  # the hidden bit to the left is a new one
                table = table.sum(axis=1, keepdims=True) * np.full((1, 2), 0.5)
            split = np.zeros((len(table), 2, 2))  # by this block's bit, and the hidden bit to its right
            split[:, 1, 1] = table[:, 1] / 2
            split[:, 0, 1] = table[:, 0] / 2
            split[:, 0, 0] = table.sum(axis=1) / 2
            table, last = split.reshape(-1, 2), bit
        return np.asarray(table.sum(axis=1).reshape((2,) * len(bits)))

    def _words(self, records: int, rng: np.random.Generator) -> Array:
        hidden = np.stack([_random(rng, records) for _ in range(self.blocks + 1)])
        return np.asarray(hidden[:-1] & hidden[1:])


def best_pairs(
    population: BitPopulation, queries: int, width: int = 0, seed: int = 0
) -> Callable[[list[tuple[Any, float]]], BitQuery | None]:
    """Ask about pairs of bits; each query changes the one whose answer was highest above its table's mean.

    Parameters
    ----------
    population : BitPopulation
        Its positions give the bits that may form a pair.
    queries : int
        Asked about each bit and its partners.
    width : int, default 0
        How many positions a partner may be ahead; with 0 it is in the same block.
    seed : int, default 0
        Of the changes.

    Returns
    -------
    Analyst
        It ends after all bits.
    """
    rng = np.random.default_rng(seed)
    best: list[tuple[float, BitQuery]] = []
    ends = np.searchsorted(population.position, population.position + width, side="right")

    def analyst(history: list[tuple[Any, float]]) -> BitQuery | None:
        bit, asked = divmod(len(history), queries)
        if history:
            query, answer = history[-1]
            score = answer - float(query.values.mean())
            if not best or score > best[0][0]:
                best[:] = [(score, query)]
        if asked == 0:
            best.clear()
        if bit >= len(ends):
            return None
        ahead = int(ends[bit]) - bit - 1
        if ahead == 0:
            return BitQuery((bit,), rng.integers(0, 2, 2))
        if not best or len(best[0][1].bits) < 2:
            return BitQuery((bit, bit + int(rng.integers(1, ahead + 1))), rng.integers(0, 2, (2, 2)))
        values = best[0][1].values.copy()
        at = tuple(rng.integers(0, 2, 2))
        values[at] = 1 - values[at]
        partner = best[0][1].bits[1] if rng.random() < 0.5 else bit + int(rng.integers(1, ahead + 1))
        return BitQuery((bit, partner), values)

    return analyst
