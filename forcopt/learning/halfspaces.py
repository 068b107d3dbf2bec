"""Halfspaces, their oracles (cuts, a sweep of the plane, a MILP, a regression), and lines through points."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from forcopt.arrays import Array, as_numbers
from forcopt.errors import BackendError, DeclarationError
from forcopt.language.constraint import implies
from forcopt.language.model import Model
from forcopt.language.variable import Variable
from forcopt.learning.finite import distinct_rows
from forcopt.learning.hypotheses import Hull, Hypotheses, Hypothesis, Oracle, OracleTimeout, constants
from forcopt.learning.thresholds import Cuts, best_cuts
from forcopt.learning.tolerances import LEAST, SAME_ANGLE
from forcopt.loops.solution import ModelSolution
from forcopt.status import Status

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
                sides = left[k] < right[k], ahead[k] < behind[k], costs[pivot] < 0
                found, at = float(value[k]), Cut(pivot, k, *map(bool, sides))
        return found, at

    @staticmethod
    def _sums(star: _Star, costs: Array) -> tuple[Array, Array, Array, Array]:
        """For each line through the pivot: the costs left and right of it, and on it before and behind."""
        of = costs[star.order]
        ahead = np.bincount(star.line, of * star.ahead, star.lines)
        behind = np.bincount(star.line, of * ~star.ahead, star.lines)
        ahead_until, behind_until = np.cumsum(ahead), np.cumsum(behind)
        left = (ahead_until[-1] - ahead_until) + (behind_until - behind)
        return left, (behind_until[-1] - behind_until) + (ahead_until - ahead), ahead, behind

    def labels(self, cut: Cut) -> Array:
        """Which points are positive, shape ``(m,)``."""
        star = self.stars[cut.pivot]
        on_left = star.ahead == (star.line > cut.line)
        labels = np.zeros(self.count, dtype=bool)
        labels[star.order] = np.where(star.line == cut.line, star.ahead == cut.ahead, on_left == cut.left)
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
        return [cuts[k] for k in np.unique([self.labels(cut) for cut in cuts], axis=0, return_index=True)[1]]


class Halfspaces(Hypotheses):
    """All linear classifiers: 1 where ``normal . x + offset >= 0``.

    Attributes
    ----------
    search : Literal["exact", "regression"], default "exact"
        ``"exact"`` finds the best halfspace for given costs: by sorting for one feature, by a sweep around
        every point for two (O(m^2 log m) for m distinct rows), by a mixed-integer program for more.
        ``"regression"`` regresses the costs on the features by least squares, O(n d) a call: the heuristic of
        Kearns et al. (2018), without a guarantee; it cuts the fit where the costs are least, rather than at
        0.
    margin : float, default 0.0001
        How far from the boundary every record must stay, in units of the range of the features, for three and
        more of them, where the best is among the halfspaces that do.

    Examples
    --------
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> xor = Halfspaces().oracle(X)
    >>> len(xor.all())  # of the 16 labellings, two are not linear
    14
    >>> xor.best(np.array([1.0, -1.0, -1.0, 1.0])).predictions.sum() in (1, 3)
    True
    """

    search: Literal["exact", "regression"] = "exact"
    margin: float = Field(default=1e-4, gt=1e-6, lt=1.0, allow_inf_nan=False)

    def oracle(self, features: Array) -> Oracle:
        """The oracle that fits the number of features and the wish for exactness."""
        if self.search == "regression":
            return RegressionOracle(features)
        return (PlaneOracle if features.shape[1] <= 2 else MilpOracle)(features, self.margin)


@dataclass(frozen=True, eq=False)
class Halfspace:
    """Predicts 1 where ``normal . x + offset >= 0``; `normal` has shape ``(d,)``.

    Attributes
    ----------
    normal : Array
        Shape ``(d,)``.
    offset : float
        Added to the product with `normal`.

    Examples
    --------
    >>> Halfspace(np.array([1.0, -1.0]), 0.5).predict([[0, 0], [0, 1]]).tolist()
    [1, 0]
    """

    normal: Array
    offset: float

    def predict(self, X: Any) -> Array:
        """0 or 1 for each row of X."""
        return (as_numbers(X, "X") @ self.normal + self.offset >= 0).astype(np.int64)

    def __repr__(self) -> str:
        terms = [f"{v:+.6g} x{j}" for j, v in enumerate(self.normal) if v]
        return f"{' '.join(terms)} {self.offset:+.6g} >= 0"


class _Scaled:
    """Features moved into [-1, 1], in which margins have a meaning; halfspaces stay halfspaces."""

    def __init__(self, features: Array) -> None:
        low, high = features.min(axis=0), features.max(axis=0)
        self.center, self.half = (low + high) / 2, np.where(high > low, (high - low) / 2, 1.0)
        scaled = (features - self.center) / self.half
        self.points, self.place = distinct_rows(scaled.round(12))  # rounding must not separate equal points

    def halfspace(self, normal: Array, offset: float) -> Halfspace:
        """The halfspace of the features that is this one of the points."""
        normal = normal / self.half
        return Halfspace(normal, float(offset - normal @ self.center))


def write_halfspace(model: Model, points: Array, margin: float) -> tuple[Variable, Variable, Variable]:
    """Write a halfspace of points in [-1, 1]^d into a model, for every point at least margin / 2 away.

    Returns
    -------
    tuple[Variable, Variable, Variable]
        Normal and offset, of which the normal has entries from -1 to 1, and for each point a binary:
        whether it is inside.
    """
    d = points.shape[1]
    normal = model.variable(model.unused_name("normal"), d, lower=-1.0, upper=1.0)
    offset = model.variable(model.unused_name("offset"), lower=-d - margin, upper=d + margin)
    inside = model.variable(model.unused_name("inside"), len(points), binary=True)
    score = normal @ points.T + offset
    model.subject_to(implies(inside, score >= margin / 2), implies(1 - inside, score <= -margin / 2))
    return normal, offset, inside


class _WrittenOracle(Oracle):
    """Can write a halfspace into a model."""

    def __init__(self, features: Array, margin: float) -> None:
        self.features, self.scaled, self.margin = features, _Scaled(features), margin

    def hull(self, model: Model, linear: sp.csr_array, single: bool = False) -> Hull:
        """A single halfspace by a binary for each distinct point; mixtures by listing them."""
        if not single:
            return super().hull(model, linear)
        points, place = self.scaled.points, self.scaled.place
        normal, offset, inside = write_halfspace(model, points, self.margin)
        members = sp.csr_array((np.ones(len(place)), (np.arange(len(place)), place)))

        def read(solution: ModelSolution) -> tuple[Array, list[Hypothesis]]:
            found = self.scaled.halfspace(solution[normal], float(solution[offset]))
            return np.ones(1), [Hypothesis(found, np.round(solution[inside]).astype(np.int64)[place])]

        first = np.unique(place, return_index=True)[1]
        return Hull(sp.csr_array(linear @ members) @ inside, read, lambda _, seen: {inside: seen[0, first]})

    def constants(self) -> list[Hypothesis]:
        """Both: halfspaces that hold all points or none."""
        return constants(len(self.scaled.place))


class MilpOracle(_WrittenOracle):
    """The best halfspace for given costs, as a mixed-integer program; exact among those with the margin."""

    closed_form = False

    def best(self, costs: Array) -> Hypothesis:
        """Solve the program with HiGHS, to optimality.

        Raises
        ------
        OracleTimeout
            If the deadline passed first.
        """
        model = Model("halfspace")
        hull = self.hull(model, sp.csr_array(costs[None, :]), single=True)
        model.minimize(hull.mapped[0])
        solution = model.solve(gap=0.0, time_limit=self.deadline.left)
        if solution.status is Status.OPTIMAL:
            return hull.mixture(solution)[1][0]
        if self.deadline.passed or solution.status in (Status.LIMIT, Status.FEASIBLE):
            raise OracleTimeout
        raise BackendError(f"the oracle for halfspaces found none: {solution.message}")

    def fresh(self) -> MilpOracle:
        """The same without a deadline."""
        return MilpOracle(self.features, self.margin)


class PlaneOracle(_WrittenOracle):
    """The best halfspace for one or two features, by a sweep around every distinct point."""

    def __init__(self, features: Array, margin: float) -> None:
        super().__init__(features, margin)
        points = self.scaled.points
        line = points.shape[1] == 1
        self.plane = Plane(np.column_stack([points, np.zeros(len(points))]) if line else points)

    def best(self, costs: Array) -> Hypothesis:
        """The dichotomy of least cost; a constant if none is better."""
        points, place = self.scaled.points, self.scaled.place
        at_point = np.bincount(place, costs, len(points))
        value, cut = self.plane.best(at_point)
        if cut is None or min(0.0, at_point.sum()) <= value:
            return constants(len(place))[int(at_point.sum() < 0)]
        return self._hypothesis(cut)

    def all(self) -> list[Hypothesis]:
        """The constants and all dichotomies by a line."""
        found = [self._hypothesis(cut) for cut in self.plane.all()]
        return self.constants() + [h for h in found if np.ptp(h.predictions)]

    def _hypothesis(self, cut: Cut) -> Hypothesis:
        predictions = self.plane.labels(cut).astype(np.int64)[self.scaled.place]
        return Hypothesis(lambda: self._halfspace(cut), predictions)

    def _halfspace(self, cut: Cut) -> Halfspace:
        normal, offset = self.plane.halfplane(cut)
        found = self.scaled.halfspace(normal[: self.scaled.points.shape[1]], offset)
        if (found.predict(self.features) != self.plane.labels(cut)[self.scaled.place]).any():
            close = "some points lie so close to a line that no halfspace separates its sides"
            raise DeclarationError(f"features: {close}")
        return found


class RegressionOracle(Oracle):
    """The least-squares fit of the costs, cut where they are least; remembers the directions found."""

    exact = False

    def __init__(self, features: Array) -> None:
        self.features = features
        self.center = features.mean(axis=0)
        spread = features.std(axis=0)
        self.spread = np.where(spread > 0, spread, 1.0)
        self.design = np.column_stack([(features - self.center) / self.spread, np.ones(len(features))])
        self.inverse = np.linalg.pinv(self.design.T @ self.design)
        self.scores: list[Cuts] = []

    def best(self, costs: Array) -> Hypothesis:
        """The halfspace along the direction in which the fitted costs fall, with the best offset."""
        normal = -(self.inverse @ (self.design.T @ costs))[:-1] / self.spread
        self.scores.append(Cuts(self.features @ normal, lambda cut: Halfspace(normal, -cut)))
        return self.scores[-1].best(costs)[1]

    def recall(self, costs: Array) -> list[Hypothesis]:
        """The best offset along each direction found so far."""
        return best_cuts(self.scores, costs)

    def fresh(self) -> RegressionOracle:
        """The same without the directions found so far."""
        return RegressionOracle(self.features)

    def fitted(self, products: Array) -> Hypothesis:
        """The sign of the fit, from the products of the design and the costs: all that it needs of them."""
        fit = self.inverse @ products
        normal = -fit[:-1] / self.spread
        found = Halfspace(normal, float(-fit[-1] - normal @ self.center))
        return Hypothesis(found, found.predict(self.features))

    def constants(self) -> list[Hypothesis]:
        """Both."""
        return constants(len(self.features))
