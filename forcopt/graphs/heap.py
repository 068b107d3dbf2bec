"""A binary heap of numbered items with their positions, for compiled kernels that lower keys."""

from __future__ import annotations

from numba import njit

__all__ = ["sift_down", "sift_up"]


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
