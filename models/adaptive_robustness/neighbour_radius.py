"""The radius of the nearest neighbour, by projections on cells and by Voronoi edges; and the margin rate.

The margin rate of a law is the mass near the border of the Bayes classifier.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy

from forcopt.arrays import Array, as_numbers
from forcopt.clock import Deadline
from forcopt.compiled import njit
from forcopt.errors import DeclarationError, check_choice, require
from forcopt.models.adaptive_robustness.classifiers import NearestNeighbour
from forcopt.models.adaptive_robustness.robust_bayes import RobustBayes
from forcopt.models.adaptive_robustness.robustness_radius import RobustnessRadius
from forcopt.models.adaptive_robustness.tolerances import DEPENDENT, EDGE, EDGE_AGAIN, SAME_RADIUS, TIED
from forcopt.problem import Outcome
from forcopt.status import Status


@RobustnessRadius.algorithm("cuts", exact=True, cites="Chowdhury, Urner (2022), Definition 8")
def cuts(problem: RobustnessRadius, *, time_limit: float | None = None) -> Outcome:
    """Project the point on the cell of each atom with another label, near ones first.

    The cell of an atom is where it is nearer than every atom of the label. Its inequalities are added as the
    projection violates them; an atom is skipped once even half its distance (less half that of the nearest
    atom of the label) is no better than the best. Exact.
    """
    nn = problem.classifier
    assert isinstance(nn, NearestNeighbour)
    if problem.is_misclassified:
        return Outcome(problem.point.copy(), 0.0)
    if not len(nn.tree(problem.label, same=False)[1]):
        return Outcome(None, status=Status.INFEASIBLE, message="all atoms have one label")
    deadline = Deadline(time_limit)
    moved, radius, bound, programs = nearest_border(nn, problem.point, problem.label, deadline=deadline)
    return Outcome(moved, min(bound, radius), None if bound >= radius else Status.FEASIBLE, programs)


def nearest_border(
    nn: NearestNeighbour, x: Array, label: int, deadline: Deadline
) -> tuple[Array, float, float, int]:
    """The nearest point that is no nearer to the label's atoms than to some other.

    Parameters
    ----------
    nn : NearestNeighbour
    x : array, shape (d,)
    label : int
        Atoms of this label and of others exist.
    deadline : Deadline

    Returns
    -------
    point, its distance, a lower bound of the least distance, and the number of programs solved.
    """
    same, _ = nn.tree(label, same=True)
    other, other_at = nn.tree(label, same=False)
    own, first = same.query(x)
    count, done, programs, unproved = min(8, len(other_at)), 0, 0, math.inf
    apart, order = _nearest(other, x, count)
    best = nn.points[other_at[order[0]]].copy()
    radius = float(apart[0])
    cells = [int(first)]
    while True:
        atoms = nn.points[other_at[order[done:count]]]
        tested, least = 0, np.zeros(len(atoms))
        for rank in range(done, count):
            bound = max(0.0, (float(apart[rank]) - own) / 2)
            if bound >= radius:
                return best, radius, min(unproved, radius), programs
            if deadline.passed:
                return best, radius, min(bound, unproved, radius), programs
            if tested < len(cells):  # cells that other atoms needed may put this one too far, too
                least = np.maximum(least, _distances(x, atoms, same.data[cells[tested:]]))
                tested = len(cells)
            if least[rank - done] >= radius:
                continue
            atom = atoms[rank - done]
            move, size, used, proved = _project(same, x, atom, float(apart[rank]), cells[0], radius)
            cells += [k for k in used if k not in cells]
            programs += 1
            if move is not None and size < radius:
                best, radius = x + move, size
            if not proved:
                unproved = min(unproved, bound)
        if count == len(other_at):
            return best, radius, min(unproved, radius), programs
        done, count = count, min(2 * count, len(other_at))
        apart, order = _nearest(other, x, count)


def _distances(x: Array, atoms: Array, cells: Array) -> Array:
    """The distance from x to where each atom is nearer than all cells, at least: one cell at a time."""
    least = np.full(len(atoms), -np.inf)
    far = ((atoms - x) ** 2).sum(axis=1)
    for cell in cells:
        size = np.linalg.norm(atoms - cell, axis=1)
        ahead = (far - float((cell - x) @ (cell - x))) / 2
        np.maximum(least, np.divide(ahead, size, out=np.zeros_like(size), where=size > 0), out=least)
    return least


def _nearest(tree: scipy.spatial.KDTree, x: Array, count: int) -> tuple[Array, Array]:
    apart, order = tree.query(x, k=count)
    return np.atleast_1d(apart), np.atleast_1d(order)


def _project(
    same: scipy.spatial.KDTree, x: Array, atom: Array, apart: float, first: int, best: float
) -> tuple[Array | None, float, set[int], bool]:
    """The move from x to an atom's cell (None if at least `best`), its length, the cells used, if proved."""
    if apart == 0:
        return np.zeros_like(x), 0.0, set(), True
    tried: set[int] = set()

    def violated(u: Array) -> tuple[Array, float] | None:
        """The nearest cell of the label at ``x + apart u``, if it is nearer than the atom's."""
        z = x + apart * u
        near, k = (float(np.linalg.norm(same.data[first] - x)), first) if not tried else same.query(z)
        to_atom = float(np.linalg.norm(z - atom))
        room = apart + to_atom
        if near >= to_atom - (EDGE_AGAIN if int(k) in tried else EDGE) * room:
            return None
        tried.add(int(k))
        # (atom - k) u >= (|atom - x|^2 - |k - x|^2) / 2, in units of `apart` and rows of length 1
        away = (same.data[k] - x) / apart
        row = (atom - x) / apart - away
        size = float(np.linalg.norm(row))
        return row / size, (1.0 - float(away @ away)) / 2 / size

    found = shortest_vector(len(x), violated, best / apart, 20 * len(x) + 10 * len(same.data))
    size = float(np.linalg.norm(found.vector)) * apart
    if found.beyond:
        return None, size, tried, True
    return (found.vector * apart if found.proved else None), size, tried, found.proved


def constancy_radii(
    nn: NearestNeighbour,
    points: Array,
    labels: Array,
    *,
    at_most: Array | float = math.inf,
    deadline: Deadline | None = None,
) -> Array:
    """The radii of the largest balls on which the nearest neighbour predicts one label.

    Parameters
    ----------
    nn : NearestNeighbour
    points : array, shape (n, d)
    labels : array of int, shape (n,)
        The label that it should predict; 0 where it predicts another.
    at_most : number or array, shape (n,)
        Radii that are at least this need not be known exactly.
    deadline : Deadline, optional
        When it has passed, proved lower bounds are given.

    Returns
    -------
    array, shape (n,)
        Infinite if there is one label only. At least half the adaptive radius for the atoms themselves.

    Examples
    --------
    >>> nn = NearestNeighbour(points=[[0.0], [2.0]], labels=[0, 1])
    >>> constancy_radii(nn, np.array([[0.0], [1.5]]), np.array([0, 1])).round(6).tolist()
    [1.0, 0.5]
    """
    limit = np.broadcast_to(at_most, (len(points),))
    clock = deadline or Deadline()
    out = np.full(len(points), np.inf)
    for label in np.unique(labels):
        mine = np.flatnonzero(labels == label)
        same, other = (nn.tree(int(label), same=own)[0] for own in (True, False))
        if not same.n or not other.n:
            out[mine] = np.inf if same.n else 0.0
            continue
        own, far = same.query(points[mine])[0], other.query(points[mine])[0]
        for i, a, b in zip(mine.tolist(), own.tolist(), far.tolist(), strict=True):
            if b <= a:
                out[i] = 0.0
            elif (b - a) / 2 >= limit[i] or clock.passed:
                out[i] = (b - a) / 2
            else:
                found = nearest_border(nn, points[i], int(label), deadline=clock)
                out[i] = min(found[1], found[2])
    return out


class Projection(NamedTuple):
    """The result of the method.

    Attributes
    ----------
    vector : array, shape (d,)
    steps : int
        Rows that were asked for.
    proved : bool
        Whether the vector satisfies all halfspaces and is shortest; False if it is only known that the
        least length is at least `limit`, or if rounding stopped the method.
    beyond : bool
        Whether the least length is at least the limit.
    """

    vector: Array
    steps: int
    proved: bool
    beyond: bool


def shortest_vector(
    dimension: int, violated: Callable[[Array], tuple[Array, float] | None], limit: float, most: int
) -> Projection:
    """Minimize the Euclidean length of u subject to ``row u >= right`` for rows that an oracle gives.

    Parameters
    ----------
    dimension : int
    violated : callable
        Gives a row of length 1 and its right-hand side that u violates, or None.
    limit : float
        Stop when the least length is known to be at least this.
    most : int
        How many rows may be asked for.

    Returns
    -------
    Projection

    References
    ----------
    Lawson, Hanson, Solving Least Squares Problems (1974), chapter 23: the shortest vector within halfspaces
    as nonnegative least squares.

    Examples
    --------
    >>> rows = iter([(np.array([1.0, 0.0]), 2.0), (np.array([0.0, 1.0]), 1.0), None])
    >>> shortest_vector(2, lambda u: next(rows), np.inf, 10).vector.tolist()
    [2.0, 1.0]
    """
    u: Array = np.zeros(dimension)
    rows: Array = np.zeros((0, dimension))
    rights: Array = np.zeros(0)
    goal = np.append(np.zeros(dimension), 1.0)
    for steps in range(most):
        found = violated(u)
        if found is None:
            return Projection(u, steps, True, False)
        rows, rights = np.vstack([rows, found[0]]), np.append(rights, found[1])
        prices, miss = scipy.optimize.nnls(np.vstack([rows.T, rights]), goal)
        active = prices > 0
        if miss < DEPENDENT or not active.any():  # no vector satisfies all rows, or rounding hides it
            return Projection(u, steps, False, False)
        # afresh from the active rows, so that rounding does not pile up
        u = np.linalg.lstsq(rows[active], rights[active], rcond=None)[0]
        rows, rights = rows[active], rights[active]
        if float(u @ u) >= limit * limit:
            return Projection(u, steps, False, True)
    return Projection(u, most, False, False)


_LEAF = 8


class SegmentTree:
    """Bounding boxes of segments ``start + t * step``, ``0 <= t <= reach``, in the order of a Morton curve.

    Parameters
    ----------
    start, step : arrays, shape (k, 2)
        The steps have length 1.
    reach : array, shape (k,)
        May be infinite.

    Examples
    --------
    >>> tree = SegmentTree(np.array([[0.0, 0.0]]), np.array([[1.0, 0.0]]), np.array([2.0]))
    >>> points, far = tree.nearest(np.array([[3.0, 0.0], [1.0, 5.0]]))
    >>> points.tolist(), far.tolist()
    ([[2.0, 0.0], [1.0, 0.0]], [1.0, 5.0])
    """

    def __init__(self, start: Array, step: Array, reach: Array) -> None:
        order = np.argsort(_morton(start), kind="stable")
        self.start, self.step, self.reach = (np.ascontiguousarray(a[order]) for a in (start, step, reach))
        with np.errstate(invalid="ignore"):
            ends = self.start + np.where(self.step == 0, 0.0, self.step * self.reach[:, None])
        leaves = 1 << max(0, -(-len(start) // _LEAF) - 1).bit_length()
        pad = ((0, leaves * _LEAF - len(start)), (0, 0))
        low = np.pad(np.minimum(self.start, ends), pad, constant_values=np.inf)
        high = np.pad(np.maximum(self.start, ends), pad, constant_values=-np.inf)
        self.low, self.high = np.full((2 * leaves, 2), np.inf), np.full((2 * leaves, 2), -np.inf)
        self.low[leaves:] = low.reshape(leaves, _LEAF, 2).min(axis=1)
        self.high[leaves:] = high.reshape(leaves, _LEAF, 2).max(axis=1)
        level = leaves
        while level > 1:  # parents hold their children
            half = level // 2
            self.low[half:level] = self.low[level : 2 * level].reshape(half, 2, 2).min(axis=1)
            self.high[half:level] = self.high[level : 2 * level].reshape(half, 2, 2).max(axis=1)
            level = half

    def nearest(self, points: Array) -> tuple[Array, Array]:
        """The nearest point of the segments and its distance, for points of shape ``(m, 2)``; O(log k) each
        where segments are spread out."""
        at, far = np.zeros((len(points), 2)), np.full(len(points), np.inf)
        given = np.ascontiguousarray(points, dtype=float)
        _search(given, self.start, self.step, self.reach, self.low, self.high, at, far)
        return at, far


def _morton(points: Array) -> Array:
    """Places along a Morton curve of 2^16 x 2^16 cells."""
    low, spread = points.min(axis=0), np.ptp(points, axis=0)
    cells = ((points - low) / np.where(spread > 0, spread, 1) * 65535).astype(np.int64)
    code = np.zeros(len(points), dtype=np.int64)
    for bit in range(16):
        for axis in range(2):
            code |= ((cells[:, axis] >> bit) & 1) << (2 * bit + axis)
    return code


@njit(cache=True)
def _box_distance(low, high, node, x, y):  # type: ignore[no-untyped-def]  # pragma: no cover
    dx = max(low[node, 0] - x, 0.0, x - high[node, 0])
    dy = max(low[node, 1] - y, 0.0, y - high[node, 1])
    return dx * dx + dy * dy


@njit(cache=True)
def _search(points, start, step, reach, low, high, at, far):  # type: ignore[no-untyped-def]  # pragma: no cover
    leaves = len(low) // 2
    stack = np.empty(128, np.int64)
    for i in range(len(points)):
        x, y = points[i, 0], points[i, 1]
        best = np.inf
        stack[0] = 1
        top = 1
        while top > 0:
            top -= 1
            node = stack[top]
            if _box_distance(low, high, node, x, y) >= best:
                continue
            if node >= leaves:
                first = (node - leaves) * _LEAF
                for k in range(first, min(first + _LEAF, len(start))):
                    t = (x - start[k, 0]) * step[k, 0] + (y - start[k, 1]) * step[k, 1]
                    t = min(max(t, 0.0), reach[k])
                    px, py = start[k, 0] + t * step[k, 0], start[k, 1] + t * step[k, 1]
                    apart = (px - x) ** 2 + (py - y) ** 2
                    if apart < best:
                        best = apart
                        at[i, 0], at[i, 1] = px, py
                continue
            left, right = 2 * node, 2 * node + 1
            if _box_distance(low, high, left, x, y) < _box_distance(low, high, right, x, y):
                left, right = right, left
            stack[top], stack[top + 1] = left, right
            top += 2
        far[i] = np.sqrt(best)


class Border(NamedTuple):
    """The border between labels in the plane: segments from `start` by ``t * step``, ``0 <= t <= reach``.

    Attributes
    ----------
    start, step : arrays, shape (k, 2)
        The steps have length 1.
    reach : array, shape (k,)
        Infinite for rays.
    """

    start: Array
    step: Array
    reach: Array

    def nearest(self, points: Array) -> tuple[Array, Array]:
        """The nearest point of the border and its distance, for points of shape ``(m, 2)``."""
        return SegmentTree(self.start, self.step, self.reach).nearest(points)


def border(nn: NearestNeighbour) -> Border:
    """The Voronoi edges between atoms of different labels.

    Raises
    ------
    DeclarationError
        Outside of the plane, and for fewer than 4 distinct atoms or atoms on one line: use `cuts`.
    """
    if nn.features != 2:
        raise DeclarationError(f"voronoi is for the plane, and there are {nn.features} features: use cuts")
    atoms, first, place = np.unique(nn.points, axis=0, return_index=True, return_inverse=True)
    if (nn.labels != nn.labels[first][place.reshape(-1)]).any():
        raise DeclarationError("two atoms of different labels coincide; voronoi takes none: use cuts")
    labels = nn.labels[first]
    center = atoms.mean(axis=0)
    try:
        if len(atoms) < 4:
            raise scipy.spatial.QhullError("fewer than 4 atoms")
        diagram = scipy.spatial.Voronoi(atoms - center)
    except scipy.spatial.QhullError as error:
        raise DeclarationError(f"no Voronoi diagram ({str(error).splitlines()[0]}): use cuts") from None
    pairs = diagram.ridge_points
    between = labels[pairs[:, 0]] != labels[pairs[:, 1]]
    pairs, ends = pairs[between], np.array(diagram.ridge_vertices)[between]
    ray = ends.min(axis=1) < 0
    start = diagram.vertices[np.where(ray, ends.max(axis=1), ends[:, 0])] + center
    step = diagram.vertices[ends[:, 1]] + center - start
    reach = np.linalg.norm(step, axis=1)
    p, q = atoms[pairs[:, 0]], atoms[pairs[:, 1]]
    normal = np.stack([p[:, 1] - q[:, 1], q[:, 0] - p[:, 0]], axis=1)
    outward = np.where((((p + q) / 2 - center) * normal).sum(axis=1) >= 0, 1.0, -1.0)
    normal *= (outward / np.linalg.norm(normal, axis=1))[:, None]
    step = np.where(ray[:, None], normal, step / np.where(reach > 0, reach, 1)[:, None])
    return Border(start, step, np.where(ray, math.inf, reach))


@dataclass(frozen=True, eq=False)
class MarginRate:
    """The margin rate Phi of a law: the mass whose radius of constancy is below r.

    Attributes
    ----------
    radii : array, shape (n,)
        The radii of constancy of distinct points; infinite if there is one label only.
    masses : array, shape (n,)
    points : array, shape (n, d)
    """

    radii: Array
    masses: Array
    points: Array = field(repr=False)

    def __call__(self, r: float) -> float:
        """Phi(r), the mass of points whose open ball of radius r meets another label."""
        radius = float(as_numbers(r, "r"))
        require(radius >= 0, "r", radius, "be at least 0")
        return float(self.masses[self.radii < radius * (1 - SAME_RADIUS)].sum())

    def inverse(self, eps: float) -> float:
        """The largest r with ``Phi(r) <= eps``; infinite if all r are."""
        require(float(as_numbers(eps, "eps")) >= 0, "eps", eps, "be at least 0")
        order = np.argsort(self.radii)
        above = np.cumsum(self.masses[order]) > eps + TIED
        return float(self.radii[order][int(np.argmax(above))]) if above.any() else np.inf


def margin_rate(
    points: Any,
    masses: Any,
    *,
    ties: Literal["raise", "drop"] = "raise",
    method: Literal["cuts", "voronoi"] | None = None,
    time_limit: float | None = None,
) -> MarginRate:
    """The margin rate of a law with finite support, in the Euclidean norm.

    Parameters
    ----------
    points : array, shape (n, d)
    masses : array, shape (n, labels)
    ties : {"raise", "drop"}
        The treatment of a point whose likeliest label is not unique: the margin rate is not defined there.
        ``"drop"`` leaves it out of the atoms of the Bayes classifier; it then counts with radius 0.
    method : {"cuts", "voronoi"}, optional
        Voronoi edges for many points of the plane by default, else cuts; see `RobustnessRadius`.
    time_limit : float, optional
        Then radii of constancy may be lower bounds, and Phi an upper one.

    Returns
    -------
    MarginRate
        Call it with r; ``inverse(eps)`` is the largest r whose rate is at most eps.

    References
    ----------
    Chowdhury, Urner, FORC 2022, Definition 4.

    Examples
    --------
    >>> phi = margin_rate([[0.0], [1.0]], [[0.5, 0], [0, 0.5]])
    >>> phi(0.5), phi(0.51), round(phi.inverse(0.1), 9)
    (0.0, 1.0, 0.5)
    """
    check_choice("ties", ties, "raise", "drop")
    check_choice("method", method, "cuts", "voronoi", None)
    law = RobustBayes(points=points, masses=masses, radius=np.zeros(()))
    deadline = Deadline(time_limit)
    X, place = np.unique(law.points, axis=0, return_inverse=True)
    total = np.zeros((len(X), law.labels))
    np.add.at(total, place.reshape(-1), law.masses)
    mass = total.sum(axis=1)
    X, total, mass = X[mass > 0], total[mass > 0], mass[mass > 0]
    top = np.sort(total, axis=1)
    tied = top[:, -1] - top[:, -2] <= TIED * top[:, -1]
    if tied.any() and ties != "drop":
        at = X[int(np.argmax(tied))].tolist()
        raise DeclarationError(f"masses: labels of point {at} are equally likely; ties='drop' leaves it out")
    label, clear, radii = total.argmax(axis=1), ~tied, np.zeros(len(X))
    if clear.any():
        radii[clear] = _radii(X[clear], label[clear], method, deadline)
    return MarginRate(radii, mass, X)


def _radii(X: Array, label: Array, method: str | None, deadline: Deadline) -> Array:
    if (label == label[0]).all():
        return np.full(len(X), np.inf)
    nn = NearestNeighbour(X, label)
    if method == "voronoi":
        return border(nn).nearest(X)[1]
    if method is None and X.shape[1] == 2 and len(X) > 200:
        with suppress(DeclarationError):
            return border(nn).nearest(X)[1]
    return constancy_radii(nn, X, label, deadline=deadline)
