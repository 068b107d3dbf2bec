"""Dichotomies of points in the plane by a line: the best one for given costs, or all of them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.learning.tolerances import LEAST, SAME_ANGLE

__all__ = ["Cut", "Plane"]

MOST_CELLS = 50_000_000


@dataclass(frozen=True)
class _Star:
    """The other points around a pivot, by the line through both.

    Attributes
    ----------
    order : Array
        The other points, by the angle of their line, from 0 to pi.
    ahead : Array
        For each of these, whether it lies on the half of the line that points upwards.
    line : Array
        For each of these, the number of its line; collinear points share one.
    """

    order: Array
    ahead: Array
    line: Array

    @property
    def lines(self) -> int:
        return int(self.line[-1]) + 1


class Cut(NamedTuple):
    """A line through a pivot, turned a little about a point beside it.

    Attributes
    ----------
    pivot : int
        Which point.
    line : int
        Which line through it.
    left : bool
        Whether points left of the line are positive, looking upwards; else points right of it.
    ahead : bool
        Whether points on the line above the pivot are positive; else points below.
    with_pivot : bool
        Whether the pivot is positive.
    """

    pivot: int
    line: int
    left: bool
    ahead: bool
    with_pivot: bool


class Plane:
    """Distinct points in the plane, seen from each of them.

    A line that separates points can be moved until it touches both sides; then it goes through a pivot and
    another point, and points on it are cut next to the pivot. So the positive points are one side of a line
    through a pivot, with the half of the line before or behind the pivot, with or without the pivot; and all
    of these are obtained by turning the line a little. Memory O(m^2), time O(m^2 log m) once, then O(m^2).

    Parameters
    ----------
    points : Array
        Distinct, shape ``(m, 2)``.
    """

    def __init__(self, points: Array) -> None:
        self.points, self.count = points, len(points)
        self.stars = [self._around(points, i) for i in range(len(points))] if len(points) > 1 else []

    @staticmethod
    def _around(points: Array, pivot: int) -> _Star:
        others = np.delete(np.arange(len(points)), pivot)
        x, y = (points[others] - points[pivot]).T
        ahead = (y > 0) | ((y == 0) & (x > 0))
        angle = np.arctan2(np.where(ahead, y, -y), np.where(ahead, x, -x))
        around = angle > np.pi - SAME_ANGLE  # on the horizontal line, but for rounding
        angle, ahead = np.where(around, 0.0, angle), ahead ^ around
        order = np.argsort(angle, kind="stable")
        line = np.cumsum(np.diff(angle[order], prepend=angle[order[0]]) > SAME_ANGLE)
        return _Star(others[order], ahead[order], line)

    def best(self, costs: Array) -> tuple[float, Cut | None]:
        """The least cost of a dichotomy by a line, and the line; infinite if there is one point only."""
        found, at = np.inf, None
        for pivot, star in enumerate(self.stars):
            left, right, ahead, behind = self._sums(star, costs)
            value = np.minimum(left, right) + np.minimum(ahead, behind) + min(costs[pivot], 0.0)
            k = int(np.argmin(value))
            if value[k] < found:
                found = float(value[k])
                at = Cut(
                    pivot, k, bool(left[k] < right[k]), bool(ahead[k] < behind[k]), bool(costs[pivot] < 0)
                )
        return found, at

    @staticmethod
    def _sums(star: _Star, costs: Array) -> tuple[Array, Array, Array, Array]:
        """For each line through the pivot: the costs left and right of it, and on it before and behind."""
        of = costs[star.order]
        ahead = np.bincount(star.line, of * star.ahead, star.lines)
        behind = np.bincount(star.line, of * ~star.ahead, star.lines)
        ahead_until, behind_until = np.cumsum(ahead), np.cumsum(behind)
        left = (ahead_until[-1] - ahead_until) + (behind_until - behind)
        right = (behind_until[-1] - behind_until) + (ahead_until - ahead)
        return left, right, ahead, behind

    def labels(self, cut: Cut) -> Array:
        """Which points are positive, shape ``(m,)``."""
        star = self.stars[cut.pivot]
        on_left = star.ahead == (star.line > cut.line)
        side = np.where(star.line == cut.line, star.ahead == cut.ahead, on_left == cut.left)
        labels = np.zeros(self.count, dtype=bool)
        labels[star.order] = side
        labels[cut.pivot] = cut.with_pivot
        return labels

    def halfplane(self, cut: Cut) -> tuple[Array, float]:
        """Normal and offset with ``normal . x + offset >= 0`` for the positive points, and < 0 for others."""
        star, pivot = self.stars[cut.pivot], self.points[cut.pivot]
        member = star.line == cut.line
        first = int(np.argmax(member))
        along = (self.points[star.order[first]] - pivot) * (1.0 if star.ahead[first] else -1.0)
        along /= np.linalg.norm(along)
        normal = np.array([-along[1], along[0]]) * (1.0 if cut.left else -1.0)
        forward = along if cut.ahead else -along  # points to the positive half of the line
        # The line turns about a point between the pivot and its neighbour of the other sign.
        beside = member & ((star.ahead == cut.ahead) != cut.with_pivot)
        reach = np.abs((self.points[star.order[beside]] - pivot) @ along).min(initial=1.0) / 2
        center = pivot + forward * (-reach if cut.with_pivot else reach)
        off = self.points[star.order[~member]] - center
        turn = np.abs(off @ normal / np.maximum(np.abs(off @ forward), LEAST)).min(initial=1.0) / 2
        turned = normal + turn * forward
        return turned, -float(turned @ center)

    def all(self) -> list[Cut]:
        """A line for each dichotomy by a line; constants may be among them.

        Raises
        ------
        DeclarationError
            If there are too many points to list them.
        """
        if 4 * self.count**3 > MOST_CELLS:
            raise DeclarationError(
                f"there are too many halfspaces of {self.count} points to list them; column-generation finds "
                "the hypotheses that are needed"
            )
        cuts = [
            Cut(pivot, k, *sides)
            for pivot, star in enumerate(self.stars)
            for k in range(star.lines)
            for sides in product((False, True), repeat=3)
        ]
        if not cuts:
            return []
        first = np.unique([self.labels(cut) for cut in cuts], axis=0, return_index=True)[1]
        return [cuts[k] for k in first]
