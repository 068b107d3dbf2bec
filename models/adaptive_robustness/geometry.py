"""Distances, open balls and the pairs of balls that meet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
import scipy

from forcopt.arrays import Array, as_numbers, check_entries
from forcopt.clock import Deadline
from forcopt.errors import DeclarationError, require
from forcopt.models.adaptive_robustness.tolerances import TOUCH

Norm = Literal["l2", "linf"]
"""The norm in which inputs are moved: Euclidean or maximum."""

Pairs = tuple[Array, Array]
"""Two columns of indices."""

_CHUNK = 4096


def order_of(norm: str) -> float:
    """The order p of a norm, as numpy and scipy take it.

    Raises
    ------
    DeclarationError
        For a norm that is neither ``"l2"`` nor ``"linf"``.
    """
    require(norm in get_args(Norm), "norm", norm, "be 'l2' or 'linf'")
    return 2.0 if norm == "l2" else np.inf


def length(moves: Any, norm: Norm) -> Array:
    """The length of vectors, shape ``(..., d)`` to ``(...)``."""
    return np.asarray(np.linalg.norm(np.asarray(moves, dtype=float), order_of(norm), axis=-1))


def dual_length(weights: Any, norm: Norm) -> float:
    """The dual norm of a vector: the largest gain of a score ``w x`` by a move of length 1."""
    return float(np.linalg.norm(weights, 2 if norm == "l2" else 1))


def check_points(points: Any, subject: str) -> Array:
    """Read points, shape ``(n, d)`` with n and d at least 1.

    Raises
    ------
    DeclarationError
        For another shape, NaN or infinite entries.
    """
    values = as_numbers(points, subject)
    if values.ndim != 2 or 0 in values.shape:
        raise DeclarationError(f"{subject}: the shape is {values.shape}; it must be (n, d), not empty")
    return values


def check_radii(radii: Any, count: int, subject: str = "radii") -> Array:
    """Read radii: one number, or one for each point; shape ``(count,)``.

    Raises
    ------
    DeclarationError
        For another shape, or radii that are negative or not finite.
    """
    values = as_numbers(radii, subject)
    require(values.shape in ((), (count,)), f"{subject}: the shape", values.shape, f"be () or ({count},)")
    check_entries(values, values < 0, subject, "it must be at least 0")
    return np.broadcast_to(values, (count,))


def places_of(points: Array) -> Array:
    """The place of each point, shape ``(n,)``: from 0 on, one number for equal points.

    Examples
    --------
    >>> places_of(np.array([[2.0, 0.0], [1.0, 5.0], [2.0, 0.0]])).tolist()
    [1, 0, 1]
    """
    order = np.argsort(points[:, 0])
    if not (np.diff(points[order, 0]) > 0).all():
        order = np.lexsort(points.T[::-1])
    sorted_ = points[order]
    place = np.empty(len(points), dtype=np.int64)
    place[order] = np.concatenate([[0], np.cumsum((sorted_[1:] != sorted_[:-1]).any(axis=1))])
    return place


def draw_in_ball(shape: tuple[int, int], norm: Norm, rng: np.random.Generator) -> Array:
    """Draw points uniformly from the unit ball, shape ``(count, d)``.

    Notes
    -----
    In the Euclidean norm a normalized Gaussian gives the direction and ``U**(1/d)`` the radius.
    """
    if norm == "linf":
        return rng.uniform(-1.0, 1.0, shape)
    directions = rng.standard_normal(shape)
    lengths = np.linalg.norm(directions, axis=1, keepdims=True)
    lengths[lengths == 0] = 1.0
    return np.asarray(directions / lengths * rng.random((shape[0], 1)) ** (1 / shape[1]))


def meeting_pairs(
    points: Array, radii: Array, left: Array, right: Array, norm: Norm, deadline: Deadline | None = None
) -> Pairs | None:
    """Pairs of open balls that meet, one of `left` and one of `right`.

    Balls meet if the distance of their centers is below the sum of their radii; coinciding centers always
    meet, since an empty ball stands for its center.

    Parameters
    ----------
    points : array, shape (n, d)
    radii : array, shape (n,)
    left, right : arrays of indices
    norm : {"l2", "linf"}
    deadline : Deadline, optional
        When to give up.

    Returns
    -------
    pair of arrays of indices, sorted by the first, or None if the deadline passed.

    Notes
    -----
    KD-trees over balls of similar radii, so that the search radius of a pair of trees is little more than
    necessary.
    """
    order, slack = order_of(norm), TOUCH * float(np.abs(points).max(initial=0.0))
    found: list[Pairs] = [(np.zeros(0, np.int64), np.zeros(0, np.int64))]
    right_trees = [(group, scipy.spatial.KDTree(points[group])) for group in _similar(radii, right)]
    for group in _similar(radii, left):
        for part in np.array_split(group, -(-len(group) // _CHUNK)):
            own = scipy.spatial.KDTree(points[part])
            for others, tree in right_trees:
                if deadline is not None and deadline.passed:
                    return None
                reach = float(radii[part].max() + radii[others].max())
                near = own.sparse_distance_matrix(tree, reach, p=order, output_type="ndarray")
                i, j = part[near["i"]], others[near["j"]]
                meets = (near["v"] < radii[i] + radii[j] - slack) | (near["v"] == 0)
                found.append((i[meets], j[meets]))
    i, j = np.concatenate([a for a, _ in found]), np.concatenate([b for _, b in found])
    return _by_first(i, j, len(points))


def _by_first(i: Array, j: Array, size: int) -> Pairs:
    """Pairs in the order of their first index, by counting."""
    import scipy.sparse as sp

    rows = sp.csr_array((np.ones(len(i), dtype=np.int8), (i, j)), shape=(size, size))
    return np.repeat(np.arange(size, dtype=rows.indices.dtype), np.diff(rows.indptr)), rows.indices


def _similar(radii: Array, among: Array) -> Sequence[Array]:
    """Indices grouped by their radius, up to a factor of 2^(1/8)."""
    step = np.floor(8 * np.log2(np.maximum(radii[among], np.finfo(float).tiny)))
    return [among[step == k] for k in np.unique(step)]


def shared_pairs(points: Array, radii: Array, left: Array, right: Array, domain: Array, norm: Norm) -> Pairs:
    """Pairs of open balls that share a point of a finite domain; centers belong to the domain, too."""
    import scipy.sparse as sp

    places = np.concatenate([points, domain])
    tree, order = scipy.spatial.KDTree(places), order_of(norm)
    slack = TOUCH * float(np.abs(places).max(initial=0.0))

    def inside(which: Array) -> Any:
        rows = tree.query_ball_point(points[which], radii[which], p=order)
        row = np.repeat(np.arange(len(which)), np.array([len(r) for r in rows], dtype=np.int64))
        column = np.concatenate([np.asarray(r, dtype=np.int64) for r in rows]) if len(rows) else row
        distance = length(places[column] - points[which[row]], norm)
        kept = (distance < radii[which[row]] - slack) | (distance == 0)
        shape = (len(which), len(places))
        return sp.csr_array((np.ones(int(kept.sum())), (row[kept], column[kept])), shape=shape)

    together = sp.coo_array(inside(left) @ inside(right).T)
    return _by_first(left[together.coords[0]], right[together.coords[1]], len(points))
