"""For kernels: sets of up to 128 vertices as pairs of 64-bit words, and a binary heap."""

from __future__ import annotations

from typing import Any

import numpy as np

from forcopt.arrays import Array
from forcopt.compiled import int64, njit, trailing_zeros, uint64

LARGEST = 128
"""The largest number of vertices."""
_ONE = np.uint64(1)


@njit(inline="always")
def first(a):  # type: ignore[no-untyped-def]
    """The smallest member of a set that is not empty."""
    return int64(trailing_zeros(a[0])) if a[0] else int64(64) + int64(trailing_zeros(a[1]))


@njit(inline="always")
def without_first(a):  # type: ignore[no-untyped-def]
    """The set without its smallest member."""
    return (a[0] & (a[0] - _ONE), a[1]) if a[0] else (a[0], a[1] & (a[1] - _ONE))


@njit(inline="always")
def single(v):  # type: ignore[no-untyped-def]
    """The set of one vertex."""
    if v < 64:
        return (_ONE << uint64(v), uint64(0))
    return (uint64(0), _ONE << uint64(v - 64))


@njit(inline="always")
def union(a, b):  # type: ignore[no-untyped-def]
    """Members of either set."""
    return (a[0] | b[0], a[1] | b[1])


@njit(inline="always")
def meets(a, b):  # type: ignore[no-untyped-def]
    """Members of both sets."""
    return (a[0] & b[0], a[1] & b[1])


@njit(inline="always")
def minus(a, b):  # type: ignore[no-untyped-def]
    """Members of the first that are not in the second."""
    return (a[0] & ~b[0], a[1] & ~b[1])


@njit(inline="always")
def has(a):  # type: ignore[no-untyped-def]
    """Whether the set has a member."""
    return (a[0] | a[1]) != uint64(0)


def mask(vertices: Any) -> tuple[int, int]:
    """Write a set of vertices as two words."""
    bits = sum(1 << int(v) for v in set(vertices))
    return bits & (2**64 - 1), bits >> 64


def masks(sets: Any) -> Array:
    """Write sets of vertices, such as the neighbours of each; uint64, shape (n, 2)."""
    return np.array([mask(a) for a in sets], dtype=np.uint64).reshape(-1, 2)


def members(words: Any) -> list[int]:
    """Read two words as a list of vertices."""
    bits = int(words[0]) | int(words[1]) << 64
    return [v for v in range(bits.bit_length()) if bits >> v & 1]


@njit(cache=True)
def sift_up(heap, place, key, at):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Move the item at a position up until no parent has a larger key."""
    item = heap[at]
    while at > 0:
        parent = (at - 1) >> 1
        if key[heap[parent]] <= key[item]:
            break
        heap[at] = heap[parent]
        place[heap[at]] = at
        at = parent
    heap[at] = item
    place[item] = at


@njit(cache=True)
def sift_down(heap, place, key, size):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Move the first item down until no child has a smaller key."""
    at = 0
    item = heap[0]
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and key[heap[child + 1]] < key[heap[child]]:
            child += 1
        if key[heap[child]] >= key[item]:
            break
        heap[at] = heap[child]
        place[heap[at]] = at
        at = child
    heap[at] = item
    place[item] = at
