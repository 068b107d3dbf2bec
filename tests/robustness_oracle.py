"""Exact searches for the tests of robustness, as the method ``enumeration``; and the largest fraction."""

from typing import NamedTuple

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.errors import DeclarationError
from forcopt.language.atoms import norm as norm_of
from forcopt.language.model import Model
from forcopt.models.adaptive_robustness import Halfspace, adaptive_radii
from forcopt.models.adaptive_robustness.classification import AdaptiveRobustClassification
from forcopt.models.adaptive_robustness.geometry import dual_length
from forcopt.models.adaptive_robustness.robust_bayes import RobustBayes
from forcopt.models.adaptive_robustness.tolerances import MASS, TOLERANCE, TOUCH
from forcopt.models.adaptive_robustness.vertex_cover import constant_loss
from forcopt.problem import Outcome
from forcopt.status import Status

LOSS = 1e-12
COUNT = 1e-9
MOST_PAIRS = 24


_CHUNK = 1 << 14


@RobustBayes.algorithm("enumeration", exact=True, cites="by definition", rank="oracle")
def sets_of_pairs(problem: RobustBayes, *, time_limit: float | None = None) -> Outcome:
    """Try every set of the pairs of positive mass; at most 24 of them."""
    pairs = np.argwhere(problem.masses > 0)
    if len(pairs) > MOST_PAIRS:
        raise DeclarationError(
            f"there are {len(pairs)} pairs of positive mass; enumeration takes {MOST_PAIRS} at most"
        )
    deadline = Deadline(time_limit)
    number = np.full(problem.masses.shape, -1)
    number[tuple(pairs.T)] = np.arange(len(pairs))
    edges = problem.conflicts
    a, b = number[edges[:, 0], edges[:, 1]], number[edges[:, 2], edges[:, 3]]
    mass = problem.masses[tuple(pairs.T)]
    decision, loss = constant_loss(problem)
    total = float(problem.masses.sum())
    for first in range(0, 1 << len(pairs), _CHUNK):
        if deadline.passed:
            return Outcome(decision, min(problem.bayes_risk, loss), Status.FEASIBLE, message="time ran out")
        codes = np.arange(first, min(first + _CHUNK, 1 << len(pairs)))
        bits = (codes[:, None] >> np.arange(len(pairs))) & 1 == 1
        fits = ~(bits[:, a] & bits[:, b]).any(axis=1)
        value = total - bits[fits] @ mass
        if len(value) and value.min() < loss - MASS:
            safe = np.zeros(problem.masses.shape, dtype=bool)
            safe[tuple(pairs.T)] = bits[fits][int(value.argmin())]
            decision, loss = problem.classifier(safe), float(value.min())
    return Outcome(decision, float(problem.masses[~decision.safe].sum()))


_DIGITS = 9


@AdaptiveRobustClassification.algorithm(
    "enumeration", exact=True, cites="arrangement of the dual curves, in the plane and on the line"
)
def directions_of_ties(problem: AdaptiveRobustClassification, *, time_limit: float | None = None) -> Outcome:
    """For a direction, the best offset is found by sorting; only directions where two offsets tie can matter.

    Notes
    -----
    For a direction u of dual length 1, point i is kept if the offset is at least ``r - u x`` (label 1) or at
    most ``-r - u x`` (label 0). These ends change their order where ``u (x - x') = s r - s' r'``: two
    directions for a pair. O(n^2) directions, O(n log n) each. One or two features.
    """
    X, n = problem.features - problem.center, len(problem.labels)
    if X.shape[1] > 2:
        raise DeclarationError(f"enumeration is for 1 or 2 features, and there are {X.shape[1]}")
    deadline = Deadline(time_limit)
    ends = problem.signs * problem.balls
    i, j = np.triu_indices(n, 1)
    between, ties = _directions(X, ends, i, j, problem.norm)
    ties = ties[np.unique(ties.round(_DIGITS + 3), axis=0, return_index=True)[1]]
    one, slack = problem.labels == 1, TOLERANCE * problem.extent / 4
    best = problem.constant()
    loss = float(problem.lossy(best).mean())
    step = max(1, 2_000_000 // n)
    # of equally good halfspaces, those between have no point on the border
    parts = (group[first : first + step] for group in (between, ties) for first in range(0, len(group), step))
    for part in parts:
        offsets = ends - part @ X.T  # kept from here on (label 1), or up to here (label 0)
        order = np.argsort(offsets, axis=1, kind="stable")
        # a little above each end, so that ends that tie count as reached by label 1; label 0 has the slack
        kept = _kept(np.take_along_axis(offsets, order, axis=1), one[order], slack)
        top = kept.max(axis=1)
        for row in np.argsort(-top, kind="stable"):
            if deadline.passed:
                return Outcome(problem.midway(best), 0.0, Status.FEASIBLE, message="time ran out")
            if top[row] <= n - n * loss + COUNT:
                break
            # counted with slack, evaluated exactly: empty balls on the border may be lost all the same
            for at in np.flatnonzero(kept[row] > n - n * loss + COUNT):
                offset, u = float(offsets[row, order[row, at]]), part[row]
                for shift in (offset, offset + slack, offset - slack):
                    candidate = problem.halfspace(u, shift - float(u @ problem.center))
                    value = float(problem.lossy(candidate).mean())
                    if value < loss - LOSS:
                        best, loss = candidate, value
    return Outcome(problem.midway(best), loss)


def _kept(ends: Array, one: Array, slack: float) -> Array:
    """How many points are kept if the offset is each of the sorted ends; shapes ``(k, n)``."""
    k, n = ends.shape
    below = np.cumsum(one, axis=1)
    above = (~one).sum(axis=1, keepdims=True) - np.cumsum(~one, axis=1)
    kept = np.empty((k, n), dtype=np.int64)
    for row in range(k):
        up = np.searchsorted(ends[row], ends[row] + slack, side="right") - 1
        down = np.searchsorted(ends[row], ends[row] - slack, side="left")
        kept[row] = below[row, up] + above[row, down] + (~one[row])[down]
    return kept


def _directions(X: Array, ends: Array, i: Array, j: Array, norm: str) -> tuple[Array, Array]:
    """Directions of dual length 1: those between ties, and those at which two ends tie; shapes ``(k, d)``."""
    if X.shape[1] == 1:
        return np.array([[1.0], [-1.0]]), np.empty((0, 1))
    away, gap = X[i] - X[j], ends[i] - ends[j]
    if norm == "l2":
        size = np.linalg.norm(away, axis=1)
        meets = (size > 0) & (np.abs(gap) <= size * (1 + TOUCH))
        angle = np.arctan2(away[meets, 1], away[meets, 0])
        turn = np.arccos(np.clip(gap[meets] / size[meets], -1, 1))
        angles = np.concatenate([angle + turn, angle - turn, np.arange(8) * np.pi / 4])
        return _at(_between(angles)), _at(angles)
    corners = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    found = [corners]
    for a, b in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        slope = away @ (b - a)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = (gap - away @ a) / slope
        inside = np.isfinite(share) & (share > 0) & (share < 1)
        found.append(a + share[inside, None] * (b - a))
    ties = np.concatenate(found)
    between = _at(_between(np.arctan2(ties[:, 1], ties[:, 0])))
    return between / np.abs(between).sum(axis=1, keepdims=True), ties


def _at(angles: Array) -> Array:
    """The points of the circle at these angles."""
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def _between(angles: Array) -> Array:
    """The middles of neighbouring angles that differ by more than rounding."""
    distinct = np.unique((angles % (2 * np.pi)).round(_DIGITS))
    return distinct + np.diff(distinct, append=distinct[0] + 2 * np.pi) / 2


class LargestFraction(NamedTuple):
    """The largest fraction, the halfspace that attains it, and the points whose balls touch its border."""

    fraction: float
    classifier: Halfspace
    tight: Array


def largest_fraction(points, labels, norm="l2"):
    """The largest c such that a halfspace contains every ball of radius c times the adaptive radius."""
    X, y = np.asarray(points, dtype=float), np.asarray(labels)
    rho = adaptive_radii(X, y, norm)
    center, unit, signs = (X.min(axis=0) + X.max(axis=0)) / 2, float(rho.max()) or 1.0, 2.0 * y - 1.0
    model = Model("largest_fraction")
    w = model.variable("w", X.shape[1], lower=-1, upper=1)
    b = model.variable("b")
    c = model.variable("c", lower=0, upper=1)
    model.subject_to(norm_of(w, 2 if norm == "l2" else 1) <= 1)
    model.subject_to(((X - center) / unit * signs[:, None]) @ w + signs * b >= c * (rho / unit))
    model.maximize(c * 1.0)
    result = model.solve("clarabel" if norm == "l2" else "highs")
    found, shift, fraction = np.asarray(result[w]), float(result[b]), max(0.0, float(result[c]))
    size = dual_length(found, norm)
    if fraction < 1e-7 or size < 1e-7 or (rho == 0).any():
        return LargestFraction(0.0, Halfspace(np.zeros(X.shape[1]), 1.0), np.zeros(0, np.int64))
    classifier = Halfspace(found, shift * unit - float(found @ center))
    room = signs * classifier.scores(X) / size
    return LargestFraction(fraction, classifier, np.flatnonzero(room <= fraction * rho + 1e-5 * unit))
