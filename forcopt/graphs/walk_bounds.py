"""Lower bounds on the reduced cost of the cycles that continue a dual path, by a relaxation to walks."""

from __future__ import annotations

import numpy as np
from numba import njit

from forcopt.arrays import Array

__all__ = ["bucket_count", "completion_bounds"]

_REACH = 1.25
"""Sums beyond this multiple of the total weight share the last bucket."""


@njit(cache=True)
def _relax(source, target, shift, length, low, high):  # type: ignore[no-untyped-def]
    """Lower the row `target` to the row `source`, moved by a dart; the buckets that changed."""
    top = len(source) - 1
    first, last = max(low, 1 - shift), min(high, top - 1 - shift)
    changed = False
    for t in range(first, last + 1):
        value = source[t] + length
        old = target[t + shift]
        better = value < old - 1e-9
        changed |= better
        target[t + shift] = value if better else old
    least, most = (first + shift, last + shift) if changed else (top + 1, -1)
    # Sums beyond the range: the outermost buckets hold all of them, and lead back to all buckets near them.
    below, above = np.inf, np.inf
    for t in range(low, min(high, -shift) + 1):
        below = min(below, source[t])
    for t in range(max(low, top - shift), high + 1):
        above = min(above, source[t])
    if low == 0 and shift > 0:
        for t in range(min(shift, top) + 1):
            if source[0] + length < target[t] - 1e-9:
                target[t] = source[0] + length
                least, most = min(least, t), max(most, t)
    if high == top and shift < 0:
        for t in range(max(top + shift, 0), top + 1):
            if source[top] + length < target[t] - 1e-9:
                target[t] = source[top] + length
                least, most = min(least, t), max(most, t)
    if below + length < target[0] - 1e-9:
        target[0] = below + length
        least, most = 0, max(most, 0)
    if above + length < target[top] - 1e-9:
        target[top] = above + length
        least, most = min(least, top), top
    return least, most


@njit(cache=True)
def _walks(starts, darts, face, shift, length, gone, source, rounds, best):  # type: ignore[no-untyped-def]
    """Set ``best[g, half + t]`` to the least length of a walk from the source to g whose shifts sum to t.

    Walks have at most `rounds` darts, and return to the source only with their last one. The first and the
    last bucket hold all sums beyond, too.
    """
    faces, half = len(starts) - 1, best.shape[1] // 2
    best[:] = np.inf
    best[source, half] = 0.0
    now = np.zeros(faces, np.bool_)
    after = np.zeros(faces, np.bool_)
    now[source] = True
    low = np.full(faces, 2 * half + 1, np.int64)  # the buckets of a face in use
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
                least, most = _relax(best[g], best[h], shift[d], length[d], low[g], high[g])
                if most >= 0 and h != source:
                    low[h], high[h] = min(low[h], least), max(high[h], most)
                    after[h] = True
                    any_left = True
        if not any_left:
            return
        now, after = after, now


@njit(cache=True)
def _drift(starts, darts, face, error, gone, source, rounds, most):  # type: ignore[no-untyped-def]
    """Set ``most[g]`` to the greatest sum of errors of a walk from the source to g, see `_walks`; 0: none."""
    faces = len(starts) - 1
    never = np.iinfo(np.int64).min
    most[:] = never
    most[source] = 0
    now, after = most.copy(), most.copy()
    for _ in range(rounds):
        after[:] = never
        for g in range(faces):
            if now[g] == never:
                continue
            for spot in range(starts[g], starts[g + 1]):
                d = darts[spot]
                h = face[d ^ 1]
                if not gone[h]:
                    after[h] = max(after[h], now[g] + error[d])
        for h in range(faces):
            most[h] = max(most[h], after[h])
        after[source] = never
        now, after = after, now
    for g in range(faces):
        if most[g] == never:
            most[g] = 0


@njit(cache=True)
def _close(best, windows, threshold, sign, width, half, rise, fall, out):  # type: ignore[no-untyped-def]
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
            for g in range(faces):
                first = -((rise[g] - least) // width) + half
                last = (most + fall[g]) // width + half
                first = 0 if b == 0 else min(max(first, 0), top)
                last = top if b == top else min(max(last, 0), top)
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
        ``a + q + end[g, b] <= 0``. Bucket b holds the sums from ``(b - half) * width`` to
        ``(b - half + 1) * width - 1``.

    Notes
    -----
    The rest of a simple cycle is a walk back to the source, so a relaxation allows all walks that meet the
    source only at their ends. Reversal of a walk negates its sum and its prizes, so two tables of walks from
    the source suffice.

    **Rounding.** A table counts sums in multiples of the width: the flow sum of each dart is rounded to the
    nearest one. The errors of a walk add up. A second table holds the greatest and the least sum of errors
    of a walk of at most `rounds` darts to each face, and the window is widened by them. Errors of both signs
    alternate along a walk, so that these sums are much smaller than half a width for each dart.

    If no walk from the source back to it is within the threshold, neither is a cycle, and the second table
    is left out. Bellman and Ford's method takes O(rounds m buckets) time at worst.

    References
    ----------
    .. [1] Christofides, Mingozzi and Toth, State-space relaxation procedures for the computation of bounds to
       routing problems, Networks 1981.
    """
    starts, darts, face, gain, cost = links[:5]
    near = (np.abs(gain) + width // 2) // width * np.sign(gain)
    error = gain - near * width
    rise, fall = np.empty(len(starts) - 1, np.int64), np.empty(len(starts) - 1, np.int64)
    _drift(starts, darts, face, error, gone, source, rounds, rise)
    _drift(starts, darts, face, -error, gone, source, rounds, fall)
    lengths = np.repeat(cost, 2).astype(float)
    table = np.empty((len(starts) - 1, 2 * half + 1))
    begin, end = np.empty_like(table), np.empty_like(table)
    _walks(starts, darts, face, near, lengths + prize, gone, source, rounds, table)
    _close(table, windows, threshold, 1, width, half, rise, fall, begin)
    if begin[source, half] > 0:
        end[:] = np.inf
        return begin, end
    _walks(starts, darts, face, near, lengths - prize, gone, source, rounds, table)
    _close(table, windows, threshold, -1, width, half, rise, fall, end)
    return begin, end
