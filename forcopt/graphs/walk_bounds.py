"""Lower bounds on the reduced cost of the cycles that continue a dual path, by a relaxation to walks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from forcopt.arrays import Array
from forcopt.compiled import njit
from forcopt.graphs.tolerances import LEAST_LENGTH

_NEVER = np.int32(2**29)
"""The length of a walk that does not exist; lengths are integers below it."""

_LARGEST = 20_000_000
"""Half the number of entries of a table."""


class _Left(NamedTuple):
    """The dual: the darts of each face, the face of each dart, and whether each face is deleted."""

    starts: Array
    darts: Array
    face: Array
    gone: Array


@njit(cache=True)
def from_tree(starts, darts, face, gone, source, flow):  # type: ignore[no-untyped-def]
    """Change an antisymmetric flow by a potential to 0 on a breadth-first tree from the source.

    Sums along closed walks stay the same. The sum along a path is the one that the path encloses together
    with the tree.
    """
    faces = len(starts) - 1
    level = np.zeros(faces, flow.dtype)
    seen = gone.copy()
    queue = np.empty(faces, np.int64)
    queue[0], seen[source] = source, True
    head, tail = 0, 1
    while head < tail:  # the faces before head are done, those up to tail have their level
        g = queue[head]
        head += 1
        for spot in range(starts[g], starts[g + 1]):
            d = darts[spot]
            h = face[d ^ 1]
            if not seen[h]:
                seen[h] = True
                level[h] = level[g] + flow[d]
                queue[tail] = h
                tail += 1
    out = flow.copy()
    for d in range(len(flow)):
        out[d] += level[face[d]] - level[face[d ^ 1]]
    return out


@njit(cache=True)
def _walks(left, shift, length, source, rounds, best):  # type: ignore[no-untyped-def]
    """Set ``best[g, half + t]`` to the least length of a walk from the source to g whose shifts sum to t.

    All walks of at most `rounds` darts that return to the source only with their last one are allowed, and
    some longer ones. Sums beyond the table are left out.
    """
    starts, darts, face, gone = left
    faces, top = len(starts) - 1, best.shape[1] - 1
    best[:] = _NEVER
    best[source, top // 2] = 0
    back = np.full(top + 1, _NEVER, np.int32)
    now = np.zeros(faces, np.bool_)
    after = np.zeros(faces, np.bool_)
    now[source] = True
    low = np.full(faces, top + 1, np.int64)  # the buckets of a face in use
    high = np.full(faces, -1, np.int64)
    low[source] = high[source] = top // 2
    for _ in range(rounds):  # best holds all walks of as many darts as rounds are over
        any_left = False
        for g in range(faces):
            if not now[g]:
                continue
            now[g] = False
            for spot in range(starts[g], starts[g + 1]):
                d = darts[spot]
                h = face[d ^ 1]
                first, last = max(low[g], -shift[d]), min(high[g], top - shift[d])
                if gone[h] or first > last:
                    continue
                move, paid = shift[d], length[d]
                left = best[g, first : last + 1]
                right = back[first + move : last + move + 1]
                if h != source:
                    right = best[h, first + move : last + move + 1]
                changed = False
                for t in range(len(left)):  # without branches, so that it is vectorized
                    value = max(left[t] + paid, -_NEVER)
                    changed |= value < right[t]
                    right[t] = min(value, right[t])
                if changed and h != source:
                    low[h], high[h] = min(low[h], first + move), max(high[h], last + move)
                    after[h] = True
                    any_left = True
        if not any_left:
            break
        now, after = after, now
    best[source] = back
    best[source, top // 2] = min(0, back[top // 2])


@njit(cache=True)
def _drift(left, error, source, rounds, most):  # type: ignore[no-untyped-def]
    """Set ``most[g]`` to the greatest sum of errors of a walk of at most `rounds` darts from the source to g.

    A walk returns to the source only with its last dart. Faces that none reaches get 0.
    """
    starts, darts, face, gone = left
    faces = len(starts) - 1
    never = np.iinfo(np.int64).min
    most[:] = never
    most[source] = 0
    now, after = most.copy(), most.copy()
    for _ in range(rounds):  # now holds the walks of exactly as many darts as rounds are over
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
def _close(best, unit, windows, threshold, sign, width, drift, out):  # type: ignore[no-untyped-def]
    """Set ``out[g, b]`` to the least length of a return walk, less the threshold of its window."""
    rise, fall = drift
    faces, buckets = best.shape
    half = buckets // 2
    out[:] = np.inf
    # A row between unreachable buckets; then the minima of as many buckets from each on as fit the window.
    pad = (max(rise.max(), fall.max()) + np.abs(windows).max()) // width + 3
    row = np.empty(buckets + 2 * pad, np.int32)
    for g in range(faces):
        if best[g].min() == _NEVER:
            continue
        for w in range(len(windows)):
            # Sums of the walk: sign * (s - t) for s in bucket b and t in the window, here for b = 0.
            least, most = -half * width, (1 - half) * width - 1
            if sign > 0:
                least, most = least - windows[w, 1], most - windows[w, 0]
            else:
                least, most = least + windows[w, 0], most + windows[w, 1]
            first = pad - (rise[g] - least) // width + half
            last = pad + (most + fall[g]) // width + half
            row[:] = _NEVER
            row[pad : pad + buckets] = best[g]
            span = 1
            while 2 * span <= last - first + 1:  # row[t] is the least of the span buckets from t on
                for t in range(len(row) - span):
                    row[t] = min(row[t], row[t + span])
                span *= 2
            for b in range(buckets):
                value = min(row[first + b], row[last + 1 - span + b])
                if value < _NEVER:
                    out[g, b] = min(out[g, b], value * unit - threshold[w])


def completion_bounds(
    links: tuple[Array, ...],
    prize: Array,
    gone: Array,
    source: int,
    windows: Array,
    threshold: Array,
    width: int,
    rounds: int,
) -> tuple[Array, Array, int]:
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
    rounds : int
        The largest number of darts of a cycle.

    Returns
    -------
    begin, end : ndarray, shape (faces, 2 half + 1)
        A path of at most half the darts, with cost a, prize q and a sum in bucket b at face g, begins a cycle
        within the threshold only if ``a - q + begin[g, b] <= 0``. Its reverse ends one only if
        ``a + q + end[g, b] <= 0``. Bucket b holds the sums from ``(b - half) * width`` to
        ``(b - half + 1) * width - 1``.
    width : int
        Of the buckets; doubled until the tables fit in memory.

    Notes
    -----
    The rest of a simple cycle is a walk back to the source, so a relaxation allows all walks that meet the
    source only at their ends. Reversal of a walk negates its sum and its prizes, so two tables of walks from
    the source suffice.

    **Rounding.** A table counts sums in multiples of the width: the flow sum of each dart is rounded to the
    nearest one. The errors of a walk add up. A second table holds the greatest and the least sum of errors
    of a walk of at most `rounds` darts to each face, and the window is widened by them. Errors of both signs
    alternate along a walk, so that these sums are much smaller than half a width for each dart. They are
    smallest for flows that are 0 on a tree, see `from_tree`. Lengths are rounded down to integers.

    **Range.** Let r be the greatest sum of a walk of half the rounds. A path to a face of a cycle has at most
    half its darts, or the rest of the cycle has. So the sum of the path is at most r, or differs by at most r
    from a sum in a window. No larger sums are needed. A last bucket for all of them would be unsafe
    for the bound: a walk in it could encircle vertices of large prizes again and again.

    If no walk from the source back to it is within the threshold, neither is a cycle, and the second table
    is left out. Bellman and Ford's method takes O(rounds m buckets) time at worst.

    References
    ----------
    .. [1] Christofides, Mingozzi and Toth, State-space relaxation procedures for the computation of bounds to
       routing problems, Networks 1981.
    """
    starts, darts, face, gain, cost = links[:5]
    faces, left = len(starts) - 1, _Left(starts, darts, face, gone)
    rise, fall, most, least = (np.empty(faces, np.int64) for _ in range(4))
    while True:
        near = (np.abs(gain) + width // 2) // width * np.sign(gain)
        error = gain - near * width
        for sums, length, extreme in (
            (error, rounds, rise),
            (-error, rounds, fall),
            (near, rounds // 2 + 1, most),
            (-near, rounds // 2 + 1, least),
        ):
            _drift(left, sums, source, length, extreme)
        reach = max(int(most.max()), int(least.max()))
        closed = int(np.abs(windows).max(initial=0)) + max(int(rise[source]), int(fall[source]))
        half = reach + closed // width + 2
        if faces * half <= _LARGEST or width > closed:
            break
        width *= 2
    table = np.empty((faces, 2 * half + 1), np.int32)
    begin, end = np.empty(table.shape), np.empty(table.shape)
    for sign, out in ((1, begin), (-1, end)):
        lengths = np.repeat(cost, 2) + sign * prize
        unit = max(float(np.abs(lengths).max(initial=0.0)), LEAST_LENGTH) * (rounds + 1) / (int(_NEVER) // 2)
        _walks(left, near, np.floor(lengths / unit).astype(np.int32), source, rounds, table)
        _close(table, unit, windows, threshold, sign, width, (rise, fall), out)
        if begin[source, half] > 0:
            end[:] = np.inf
            break
    return begin, end, width
