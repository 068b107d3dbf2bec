"""Lower bounds on the reduced cost of the cycles that continue a dual path, by a relaxation to walks."""

from __future__ import annotations

import numpy as np
from numba import njit

from forcopt.arrays import Array

__all__ = ["bucket_count", "completion_bounds"]

_REACH = 1.25
"""Sums beyond this multiple of the total weight share the last bucket."""


@njit(cache=True)
def _walks(starts, darts, face, gain, length, gone, source, width, half, rounds, best):  # type: ignore[no-untyped-def]
    """Set ``best[g, half + b]`` to the least length of a walk from the source to g with a sum in bucket b.

    Bucket b holds the sums from ``b * width`` to ``(b + 1) * width - 1``; the first and the last bucket
    hold all sums beyond, too. Walks have at most `rounds` darts.
    """
    faces, buckets = best.shape
    top = buckets - 1
    best[:] = np.inf
    best[source, half] = 0.0
    now = np.zeros(faces, np.bool_)
    after = np.zeros(faces, np.bool_)
    now[source] = True
    low = np.full(faces, buckets, np.int64)  # the buckets of a face in use
    high = np.full(faces, -1, np.int64)
    low[source] = high[source] = half
    for _ in range(rounds):
        any_left = False
        for g in range(faces):
            if not now[g]:
                continue
            now[g] = False
            for spot in range(starts[g], starts[g + 1]):
                d = darts[spot]
                h = face[d ^ 1]
                if gone[h]:
                    continue
                shift = gain[d] // width
                spread = 0 if gain[d] == shift * width else 1
                changed = False
                for b in range(low[g], high[g] + 1):
                    value = best[g, b] + length[d]
                    if value == np.inf:
                        continue
                    first, last = b + shift, b + shift + spread
                    if b == 0 and first > 0:  # the exact sum may lie anywhere below
                        first = 0
                    if b == top and last < top:
                        last = top
                    first = min(max(first, 0), top)
                    last = min(max(last, 0), top)
                    for t in range(first, last + 1):
                        if value < best[h, t] - 1e-9:
                            best[h, t] = value
                            changed = True
                            low[h] = min(low[h], t)
                            high[h] = max(high[h], t)
                if changed:
                    after[h] = True
                    any_left = True
        if not any_left:
            return
        now, after = after, now


@njit(cache=True)
def _close(best, windows, threshold, sign, width, half, out):  # type: ignore[no-untyped-def]
    """Set ``out[g, b]`` to the least length of a return walk, less the threshold of its window."""
    faces, buckets = best.shape
    top = buckets - 1
    out[:] = np.inf
    for w in range(len(windows)):
        for b in range(buckets):
            # Sums of the walk: sign * (s - t) for s in bucket b and t in the window.
            least, most = (b - half) * width, (b - half + 1) * width - 1
            if sign > 0:
                least, most = least - windows[w, 1], most - windows[w, 0]
            else:
                least, most = least + windows[w, 0], most + windows[w, 1]
            first = min(max(least // width + half, 0), top)
            last = min(max(most // width + half, 0), top)
            if b == 0:
                first = 0
            if b == top:
                last = top
            for g in range(faces):
                for t in range(first, last + 1):
                    out[g, b] = min(out[g, b], best[g, t] - threshold[w])


def bucket_count(total: int, width: int) -> int:
    """The number of buckets on one side of 0."""
    return int(_REACH * total / width) + 2


def completion_bounds(
    links: tuple[Array, ...],
    prize: Array,
    gone: Array,
    source: int,
    windows: Array,
    threshold: Array,
    width: int,
    half: int,
    rounds: int,
) -> tuple[Array, Array]:
    """Bound from below the reduced cost of the cycles that begin, or end, with a path from a source face.

    Parameters
    ----------
    links : tuple
        Starts, darts, faces, flow sums, costs of the dual, see `WindowCycles`.
    prize : ndarray, shape (2 m,)
        The flow sums of the prizes; a cycle's reduced cost is its cost less the sum of its prizes.
    gone : ndarray of bool, shape (faces,)
        Deleted faces.
    source : int
        The face at which all paths begin.
    windows : ndarray of int64, shape (w, 2)
        Inclusive bounds on the sum of a cycle.
    threshold : ndarray, shape (w,)
        The largest reduced cost of the cycles of each window.
    width : int
        Of the buckets of sums.
    half : int
        The number of buckets on one side of 0, see `bucket_count`.
    rounds : int
        The largest number of darts of a cycle.

    Returns
    -------
    begin, end : ndarray, shape (faces, 2 half + 1)
        A path with cost a, prize q and a sum in bucket b at face g begins a cycle within the
        threshold only if ``a - q + begin[g, b] <= 0``. Its reverse ends one only if
        ``a + q + end[g, b] <= 0``.

    Notes
    -----
    The rest of a simple cycle is a walk back to the source, so a relaxation allows all walks. Reversal of a
    walk negates its sum and its prizes, so two tables of walks from the source suffice. A walk keeps
    its exact sum unknown within a bucket: a dart whose flow sum is no multiple of the width leads to two
    buckets. Darts off the spanning tree have the flow sum 0 and lose nothing. Bellman and Ford's method
    takes O(rounds m buckets) time at worst.

    References
    ----------
    .. [1] Christofides, Mingozzi and Toth, State-space relaxation procedures for the computation of bounds to
       routing problems, Networks 1981.
    """
    starts, darts, face, gain, cost = links[:5]
    lengths = np.repeat(cost, 2).astype(float)
    table = np.empty((len(starts) - 1, 2 * half + 1))
    begin, end = np.empty_like(table), np.empty_like(table)
    _walks(starts, darts, face, gain, lengths + prize, gone, source, width, half, rounds, table)
    _close(table, windows, threshold, 1, width, half, begin)
    _walks(starts, darts, face, gain, lengths - prize, gone, source, width, half, rounds, table)
    _close(table, windows, threshold, -1, width, half, end)
    return begin, end
