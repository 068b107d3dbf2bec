"""The heaviest intervals of which at most c overlap anywhere: a min-cost flow along a line.

The flow runs from the left end of the line to the right. An arc without cost leads from each point to the
next; an interval of weight w is an arc of capacity 1 and cost -w that skips the points it covers. A flow of
value c is a choice of intervals that cover no point more than c times. The columns of that program have
consecutive ones, so that the choice is as good as any fractional one (Arkin and Silverberg 1987).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.compiled import njit
from forcopt.graphs.kernels import sift_down, sift_up
from forcopt.graphs.tolerances import NO_GAIN


@dataclass(frozen=True, eq=False)
class IntervalPacking:
    """A choice of intervals.

    Attributes
    ----------
    chosen : Array
        Whether each interval is chosen, shape ``(Q,)``.
    bound : float
        An upper bound on the weight of any choice.
    paths : int
        The number of shortest paths.
    complete : bool
        Whether the choice is optimal.
    """

    chosen: Array
    bound: float
    paths: int
    complete: bool


class _Line(NamedTuple):
    """The intervals as arcs between points, and the arcs that leave and enter each point.

    Attributes
    ----------
    tail, head, weight : Array
        Of each interval.
    points : int
        Their number, without the right end.
    out, out_at : Array
        The intervals by tail: those of point i are ``out[out_at[i]:out_at[i + 1]]``.
    into, in_at : Array
        The intervals by head, likewise.
    """

    tail: Array
    head: Array
    weight: Array
    points: int
    out: Array
    out_at: Array
    into: Array
    in_at: Array


class _Flow(NamedTuple):
    """A flow: the potential of each point, the intervals taken, the flow on the arcs without cost."""

    potential: Array
    taken: Array
    idle: Array


def _network(first: Array, last: Array, weight: Array) -> tuple[_Line, _Flow]:
    """The arcs of intervals among the starts alone, where loads are largest, and no flow."""
    starts, tail = np.unique(first, return_inverse=True)
    tail, points = tail.astype(np.int64), len(starts)
    head = np.searchsorted(starts, last, side="right").astype(np.int64)
    out, into = np.argsort(tail, kind="stable"), np.argsort(head, kind="stable")
    out_at = np.searchsorted(tail[out], np.arange(points + 2))
    in_at = np.searchsorted(head[into], np.arange(points + 2))
    line = _Line(tail, head, np.asarray(weight, dtype=float), points, out, out_at, into, in_at)
    return line, _Flow(np.zeros(points + 1), np.zeros(len(tail), bool), np.zeros(points, np.int64))


def heaviest_disjoint(first: Array, last: Array, weight: Array) -> Array:
    """The heaviest set of intervals that do not overlap, by a shortest path along the line.

    Parameters
    ----------
    first, last : Array
        First and last point of each interval, integers, shape ``(Q,)``.
    weight : Array
        Not negative, shape ``(Q,)``.

    Returns
    -------
    Array
        Whether each interval is chosen. O(Q log Q).

    Examples
    --------
    >>> heaviest_disjoint(np.array([0, 1, 2]), np.array([1, 2, 3]), np.array([2.0, 3.0, 2.0]))
    array([ True, False,  True])
    """
    line, flow = _network(first, last, weight)
    _first_path(line, flow)
    return flow.taken


def heaviest_packing(
    first: Array, last: Array, weight: Array, capacity: int, deadline: Deadline | None = None
) -> IntervalPacking:
    """The heaviest set of intervals of which at most `capacity` overlap, by successive shortest paths.

    Parameters
    ----------
    first, last : Array
        First and last point of each interval, integers, shape ``(Q,)``.
    weight : Array
        Not negative, shape ``(Q,)``.
    capacity : int
        At least 0.
    deadline : Deadline, optional
        Looked at after each path; the flow so far is the best of its value.

    Returns
    -------
    IntervalPacking
        The gains of the paths never rise, so the last gain bounds the later ones. O(Q log Q) for
        each unit of the capacity.

    References
    ----------
    Ahuja, Magnanti, Orlin, Network Flows (1993), section 9.7; Arkin and Silverberg (1987).

    Examples
    --------
    >>> heaviest_packing(np.array([0, 1, 2]), np.array([1, 2, 3]), np.array([2.0, 3.0, 2.0]), 2).chosen
    array([ True,  True,  True])
    """
    deadline = deadline or Deadline()
    line, flow = _network(first, last, weight)
    whole = float(line.weight.sum())
    total, gain, paths = 0.0, whole, 0
    while paths < capacity:
        if deadline.passed:
            return IntervalPacking(flow.taken, min(whole, total + (capacity - paths) * gain), paths, False)
        gain = (_next_path if paths else _first_path)(line, flow)
        if gain <= 0:
            break
        total += gain
        paths += 1
    return IntervalPacking(flow.taken, float(line.weight[flow.taken].sum()), paths, True)


@njit(cache=True)
def _first_path(line, flow):  # type: ignore[no-untyped-def]  # pragma: no cover
    """The longest path of the acyclic line; potentials are shortest distances from the left end."""
    tail, head, weight, points, out, out_at, _, _ = line
    potential, taken, idle = flow
    via = np.full(points + 1, -1, np.int64)
    for i in range(points):  # potentials up to i are final
        if -potential[i + 1] < -potential[i]:
            potential[i + 1] = potential[i]
            via[i + 1] = -1
        for k in range(out_at[i], out_at[i + 1]):
            j = out[k]
            value = potential[i] - weight[j]
            if value < potential[head[j]]:
                potential[head[j]] = value
                via[head[j]] = j
    i = points
    while i > 0:
        j = via[i]
        if j < 0:
            idle[i - 1] += 1
            i -= 1
        else:
            taken[j] = True
            i = tail[j]
    return -potential[points]


@njit(cache=True)
def _next_path(line, flow):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Dijkstra's algorithm in the residual network, with reduced costs; pushes one unit."""
    tail, head, weight, points, out, out_at, into, in_at = line
    potential, taken, idle = flow
    distance = np.full(points + 1, np.inf)
    via = np.full(points + 1, -1, np.int64)  # an interval j, or -2 (idle arc forward), -3 (backward)
    done = np.zeros(points + 1, np.bool_)
    heap = np.empty(points + 1, np.int64)
    place = np.full(points + 1, -1, np.int64)
    distance[0] = 0.0
    heap[0] = 0
    place[0] = 0
    size = 1
    while size > 0:  # the distances of done points are final
        u = heap[0]
        size -= 1
        if size > 0:
            heap[0] = heap[size]
            place[heap[0]] = 0
            sift_down(heap, place, distance, size)
        done[u] = True
        if u == points:
            break
        here = distance[u]
        forward = out_at[u + 1] - out_at[u]
        backward = in_at[u + 1] - in_at[u]
        for k in range(forward + backward + 2):
            if k < forward:
                a = out[out_at[u] + k]
                if taken[a]:
                    continue
                v, cost = head[a], -weight[a]
            elif k < forward + backward:
                a = into[in_at[u] + k - forward]
                if not taken[a]:
                    continue
                v, cost = tail[a], weight[a]
            elif k == forward + backward:
                if u == points:
                    continue
                a, v, cost = -2, u + 1, 0.0
            else:
                if u == 0 or idle[u - 1] == 0:
                    continue
                a, v, cost = -3, u - 1, 0.0
            if done[v]:
                continue
            value = here + max(cost + potential[u] - potential[v], 0.0)
            if value < distance[v]:
                distance[v] = value
                via[v] = a
                if place[v] < 0:
                    heap[size] = v
                    place[v] = size
                    size += 1
                sift_up(heap, place, distance, place[v])
    reach = distance[points]
    for i in range(points + 1):
        potential[i] += min(distance[i], reach)
    gain = potential[0] - potential[points]
    if gain <= NO_GAIN * abs(potential[points]) or gain <= 0:
        return 0.0
    u = points
    while u != 0:
        a = via[u]
        if a >= 0:
            if head[a] == u and not taken[a]:
                taken[a] = True
                u = tail[a]
            else:
                taken[a] = False
                u = head[a]
        elif a == -2:
            idle[u - 1] += 1
            u -= 1
        else:
            idle[u] -= 1
            u += 1
    return gain
