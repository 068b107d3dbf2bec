"""Which equal error rates can be had: exact polygons in the plane of false and true positive rates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from operator import mul
from typing import Any

from forcopt.arrays import as_fraction
from forcopt.clock import Deadline
from forcopt.errors import DeclarationError
from forcopt.problem.drawing import COLOURS, Drawn

Point = tuple[Fraction, Fraction]
"""A false positive rate and a true positive rate."""

HalfPlane = tuple[Fraction, Fraction, Fraction]
"""``(a, b, c)`` stands for all points with ``a x + b y + c >= 0``."""


def check_time(deadline: Deadline | None, stage: str) -> None:
    """Raise `TimeoutError` if the time limit has passed."""
    if deadline is not None and deadline.passed:
        raise TimeoutError(f"{deadline.end} in {stage}")


simplest_fraction = partial(as_fraction, reading="simplest")
"""Data written as 0.2 are read as 1/5, data computed as 1/3 as 1/3."""


def roc(values: Sequence[Fraction], masses: Sequence[Fraction]) -> list[Point]:
    """The ROC curve of a calibrated score: false and true positive rates of all cutoffs, from the highest.

    Parameters
    ----------
    values : Sequence[Fraction]
        The score's values, ascending.
    masses : Sequence[Fraction]
        The share of the group with each, in any unit.

    Returns
    -------
    list[Point]
        A concave chain from x = 0 to (1, 1); of several points at x = 0 the highest. O(N).

    Examples
    --------
    >>> chain = roc([Fraction(1, 5), Fraction(3, 5)], [Fraction(1), Fraction(1)])
    >>> [" ".join(map(str, point)) for point in chain]
    ['0 0', '1/3 3/4', '1 1']
    """
    positive = sum(map(mul, values, masses), Fraction(0))
    negative = sum(masses, Fraction(0)) - positive
    x, y = Fraction(0), Fraction(0)
    chain = [(x, y)]
    for p, s in zip(reversed(values), reversed(masses), strict=True):
        x, y = x + (1 - p) * s / negative, y + p * s / positive
        if x == chain[-1][0]:
            chain.pop()
        chain.append((x, y))
    return chain


def value_at(chain: Sequence[Point], xs: Iterable[Fraction]) -> list[Fraction]:
    """The chain's height at ascending abscissas, by interpolation. O(length of both)."""
    heights, i = [], 0
    for x in xs:
        while i + 2 < len(chain) and chain[i + 1][0] < x:
            i += 1
        (x0, y0), (x1, y1) = chain[i], chain[i + 1]
        heights.append(y0 + (y1 - y0) * (x - x0) / (x1 - x0))
    return heights


def least(first: Sequence[Point], second: Sequence[Point]) -> list[Point]:
    """The pointwise minimum of two chains over the same abscissas."""
    xs = sorted({x for chain in (first, second) for x, _ in chain})
    points: list[Point] = []
    before = Fraction(0)
    for x, y1, y2 in zip(xs, value_at(first, xs), value_at(second, xs), strict=True):
        gap = y1 - y2
        if before * gap < 0:  # they cross in between
            (x0, y0), share = points[-1], before / (before - gap)
            y_end = y1 if before < 0 else y2  # the end of the one that was below
            points.append((x0 + share * (x - x0), y0 + share * (y_end - y0)))
        points.append((x, min(y1, y2)))
        before = gap
    return points


def clip(polygon: Sequence[Point], half_plane: HalfPlane) -> list[Point]:
    """The part of a convex polygon, given by its vertices in order, within a half-plane. O(vertices)."""
    sides = [_height(half_plane, point) for point in polygon]
    kept: list[Point] = []
    for i, (x, y) in enumerate(polygon):
        (x0, y0), before, here = polygon[i - 1], sides[i - 1], sides[i]
        if before * here < 0:
            share = before / (before - here)
            kept.append((x0 + share * (x - x0), y0 + share * (y - y0)))
        if here >= 0:
            kept.append((x, y))
    return kept


def _corners(polygon: Sequence[Point]) -> tuple[Point, ...]:
    """The polygon without repeated points and points within an edge."""
    points = list(dict.fromkeys(polygon))
    if len(points) < 3:
        return tuple(points)

    def turns(i: int) -> bool:
        (x0, y0), (x1, y1), (x2, y2) = points[i - 1], points[i], points[(i + 1) % len(points)]
        return (x1 - x0) * (y2 - y1) != (y1 - y0) * (x2 - x1)

    found = tuple(points[i] for i in range(len(points)) if turns(i))
    return found or (min(points), max(points))


@dataclass(frozen=True)
class FeasibleRegion(Drawn):
    """The false and true positive rates that all groups can have at once, from scores calibrated in each.

    Attributes
    ----------
    vertices : tuple[Point, ...]
        The corners of the convex polygon in order, exact; none if it is empty, one or two if it has no
        interior.
    chains : Mapping[str, Sequence[Point]]
        The ROC curve of each group, exact.
    half_planes : Mapping[tuple[str, str], HalfPlane]
        The demands of calibration, by group and predictive value.
    """

    vertices: tuple[Point, ...]
    chains: Mapping[str, Sequence[Point]]
    half_planes: Mapping[tuple[str, str], HalfPlane]

    @classmethod
    def build(
        cls,
        chains: Mapping[str, Sequence[Point]],
        half_planes: Mapping[tuple[str, str], HalfPlane],
        deadline: Deadline | None = None,
    ) -> FeasibleRegion:
        """Intersect the groups' achievable rates with the demands of calibration.

        A group reaches the hull of its ROC curve and of that curve's reflection through (1/2, 1/2) (Reich
        and Vijaykumar 2021, Proposition 2). All these are symmetric, so their intersection lies between the
        least of the curves and its reflection. O(N log N) for N vertices in all.
        """
        first, *others = chains.values()
        upper = list(first)
        for chain in others:
            check_time(deadline, "stage 1")
            upper = least(upper, chain)
        upper = [(Fraction(0), Fraction(0)), *upper]
        polygon = list(dict.fromkeys(upper + [(1 - x, 1 - y) for x, y in upper]))
        for half_plane in half_planes.values():
            check_time(deadline, "stage 1")
            polygon = list(dict.fromkeys(clip(polygon, half_plane)))
        return cls(_corners(polygon), chains, half_planes)

    @property
    def is_empty(self) -> bool:
        """Whether no rates can be had."""
        return not self.vertices

    def minimize(self, false_positive: Fraction, true_positive: Fraction) -> Point:
        """The vertex at which a linear function of the rates is least; of several the one to the left.

        Raises
        ------
        DeclarationError
            If the region is empty.
        """
        if self.is_empty:
            raise DeclarationError("the region is empty, so no rates are best")
        return min(self.vertices, key=lambda z: (false_positive * z[0] + true_positive * z[1], z))

    def contains(self, rates: Sequence[float | Fraction]) -> bool:
        """Whether a false and a true positive rate can be had, exactly.

        Examples
        --------
        >>> corner = (Fraction(0), Fraction(0))
        >>> FeasibleRegion((corner,), {}, {}).contains(corner)
        True
        """
        x, y = (value if isinstance(value, Fraction) else simplest_fraction(value) for value in rates)
        if len(self.vertices) == 2:
            first, last = sorted(self.vertices)
            return _side(first, last, (x, y)) == 0 and first <= (x, y) <= last
        if len(self.vertices) < 2:
            return (x, y) in self.vertices
        edges = [*pairwise(self.vertices), (self.vertices[-1], self.vertices[0])]
        sides = [_side(start, end, (x, y)) for start, end in edges]
        return min(sides) >= 0 or max(sides) <= 0

    _figure_size = (5.0, 5.0)

    def _draw(self, axes: Any) -> None:
        """Draw the ROC curves, the lines of calibration that bind (or all), and the region (filled)."""
        for i, (name, chain) in enumerate(self.chains.items()):
            start = [] if chain[0][1] == 0 else [(0.0, 0.0)]
            xs, ys = zip(*[*start, *((float(x), float(y)) for x, y in chain)], strict=True)
            axes.plot(xs, ys, color=COLOURS[i % len(COLOURS)], label=f"ROC of {name}")
            axes.plot([1 - x for x in xs], [1 - y for y in ys], color=COLOURS[i % len(COLOURS)], alpha=0.4)
        touching = [h for h in self.half_planes.values() if any(_height(h, z) == 0 for z in self.vertices)]
        square = [(Fraction(x), Fraction(y)) for x, y in ((0, 0), (0, 1), (1, 1), (1, 0))]
        for side in dict.fromkeys(touching or self.half_planes.values()):
            edge = [(float(x), float(y)) for x, y in clip(square, side) if _height(side, (x, y)) == 0]
            if len(edge) > 1:
                axes.plot(*zip(*edge, strict=True), color="#D55E00", linestyle="--", linewidth=1)
        if self.vertices:
            corners = [(float(x), float(y)) for x, y in self.vertices]
            axes.fill(*zip(*corners, strict=True), facecolor="0.5", alpha=0.4, label="feasible")
        axes.set(xlabel="false positive rate", ylabel="true positive rate", xlim=(0, 1), ylim=(0, 1))
        axes.set_aspect("equal")
        axes.legend(loc="lower right")


def _height(half_plane: HalfPlane, point: Point) -> Fraction:
    a, b, c = half_plane
    return a * point[0] + b * point[1] + c


def _side(start: Point, end: Point, point: Point) -> Fraction:
    (x0, y0), (x1, y1), (x, y) = start, end, point
    return (x1 - x0) * (y - y0) - (y1 - y0) * (x - x0)
