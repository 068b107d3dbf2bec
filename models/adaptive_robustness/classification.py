"""Learning a halfspace of least adaptive robust loss: the declaration and its evaluation."""

from __future__ import annotations

import warnings
from functools import cached_property, partial
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import AfterValidator, Field, model_validator

from forcopt.arrays import Array, check_entries, check_shape
from forcopt.declaration import Integers, Name, Numbers
from forcopt.errors import DeclarationError
from forcopt.learning.hypotheses import aligned, take_names
from forcopt.models.adaptive_robustness import geometry
from forcopt.models.adaptive_robustness.adaptive_radii import adaptive_radii, check_fraction
from forcopt.models.adaptive_robustness.classifiers import Halfspace, NearestNeighbour, Tree
from forcopt.models.adaptive_robustness.neighbour_radius import constancy_radii
from forcopt.models.adaptive_robustness.robustness_radius import exact_radii, halfspace_radii
from forcopt.models.adaptive_robustness.tolerances import TOLERANCE
from forcopt.problem import Evaluation, Problem
from forcopt.problem.drawing import Sketch


class AdaptiveRobustClassification(Problem):
    """Find the halfspace of least empirical c-adaptive robust loss.

    A point is lost if the classifier changes its label inside of the open ball around it, or is wrong at it.
    The ball's radius is c times the distance to the nearest point with the other label.

    Parameters
    ----------
    features : array, shape (n, d)
    labels : array of 0 and 1, shape (n,)
    fraction : float
        The fraction c > 0 of the adaptive radius; above 1/2 balls of different labels overlap (warned).
    norm : {"l2", "linf"}
    radii : number or array, shape (n,), optional
        The radii of the balls themselves, in place of c times the adaptive ones.
    feature_names : tuple[str, ...], optional
        Of the d features; those of a frame by default. The decision takes the columns of a frame by name.

    Raises
    ------
    DeclarationError
        For other labels, ``c <= 0``, one label only without `radii`, shapes that do not fit.

    Notes
    -----
    A `Halfspace` is evaluated in closed form, up to 1e-6 of the extent of the points; `NearestNeighbour`
    (``"l2"``) and `Tree` by their exact radii. A network needs a solver: see `exact_radii`.

    References
    ----------
    Chowdhury, Urner, Robustness should not be at odds with accuracy, FORC 2022, Definitions 9 and 10.

    Examples
    --------
    >>> x, y = [[-1, .9], [-1, 1.1], [1, .9], [1, 2]], [0, 1, 0, 1]
    >>> p = AdaptiveRobustClassification(x, y, fraction=0.48)
    >>> p.evaluate(Halfspace([0.0, 1.0], -1.0)).objective  # only (1, 0.9) is too near
    0.25
    """

    family: ClassVar[str] = "robustness"
    default_method: ClassVar[str] = "milp"

    features: Annotated[Numbers, AfterValidator(partial(geometry.check_points, subject="features"))]
    labels: Integers
    fraction: float = 0.5
    norm: geometry.Norm = "l2"
    radii: Numbers | None = None
    feature_names: tuple[Name, ...] = Field(default=(), kw_only=True)

    _names_features = model_validator(mode="before")(take_names)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        n = len(self.features)
        if not n:
            raise DeclarationError("features has no records")
        check_shape(self.labels, (n,), "labels")
        check_entries(self.labels, ~np.isin(self.labels, (0, 1)), "labels", "it must be 0 or 1")
        if self.radii is None:
            check_fraction(self.fraction)
            if (self.labels == self.labels[0]).all():
                raise DeclarationError("labels: all are equal, so radii are infinite; give radii")
        else:
            geometry.check_radii(self.radii, n)
        return self

    def choose_method(self) -> str:
        """Choose ``misocp`` for ``"l2"`` and ``milp`` for ``"linf"``."""
        return "misocp" if self.norm == "l2" else "milp"

    # -- shared by the methods -------------------------------------------------------------------------------

    @cached_property
    def balls(self) -> Array:
        """The radius of each point's ball, shape ``(n,)``."""
        if self.radii is not None:
            return np.broadcast_to(self.radii, self.labels.shape).astype(float)
        return self.fraction * self.adaptive

    @cached_property
    def adaptive(self) -> Array:
        """The adaptive radii, shape ``(n,)``."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return adaptive_radii(self.features, self.labels, self.norm)

    @cached_property
    def center(self) -> Array:
        """The middle of the points, shape ``(d,)``."""
        return np.asarray((self.features.min(axis=0) + self.features.max(axis=0)) / 2)

    @cached_property
    def extent(self) -> float:
        """The largest distance of a point, or end of its ball, from the center; 1 if all coincide."""
        away = geometry.length(self.features - self.center, self.norm)
        return float((away + self.balls).max()) or 1.0

    @property
    def signs(self) -> Array:
        """1 for label 1, -1 for label 0."""
        return 2.0 * self.labels - 1.0

    @cached_property
    def coinciding(self) -> Array:
        """Pairs of points at one place with different labels, shape ``(k, 2)``."""
        place = geometry.places_of(self.features)
        rows: set[tuple[int, int]] = set()
        for p in np.unique(place):
            zero, one = (np.flatnonzero((place == p) & (self.labels == k)).tolist() for k in (0, 1))
            if zero and one:
                rows |= {(zero[0], i) for i in one} | {(i, one[0]) for i in zero}
        return np.array(sorted(rows), dtype=np.int64).reshape(-1, 2)

    def midway(self, found: Halfspace) -> Halfspace:
        """Move the border of a halfspace away from points, without losing another one.

        Among the offsets that keep the balls that `found` keeps, it is the middle of the widest gap between
        the scores of points: no rounding of a score changes a prediction. If that leaves no room, as between
        balls that touch, it is `found`.
        """
        size = geometry.dual_length(found.w, self.norm)
        kept = ~self.lossy(found)
        if size == 0:
            return found
        ends = self.signs * self.balls * size - self.features @ found.w
        one = kept & (self.labels == 1)
        zero = kept & (self.labels == 0)
        away = 2 * self.extent * size
        low = ends[one].max() if one.any() else ends.min() - away
        high = ends[zero].min() if zero.any() else ends.max() + away
        inside = -(self.features @ found.w)
        cuts = np.unique(np.concatenate([[low, high], inside[(inside > low) & (inside < high)]]))
        widest = int(np.argmax(np.diff(cuts, append=cuts[-1])))
        if high - low <= TOLERANCE * self.extent * size:
            return found
        return self.halfspace(found.w, float(cuts[widest] / 2 + cuts[widest + 1] / 2))

    def halfspace(self, w: Array, b: float) -> Halfspace:
        """The decision with this normal and offset, and the names of the features."""
        return Halfspace(w, b, feature_names=self.feature_names)

    def constant(self) -> Halfspace:
        """The decision that predicts the more frequent label everywhere."""
        side = 1.0 if self.labels.mean() >= 0.5 else -1.0
        return self.halfspace(np.zeros(self.features.shape[1]), side)

    # -- judging ---------------------------------------------------------------------------------------------

    def lossy(self, decision: Any) -> Array:
        """Which points are lost by a classifier, shape ``(n,)``.

        Raises
        ------
        DeclarationError
            For a classifier that is no `Halfspace`, `Tree` or `NearestNeighbour` (``"l2"``).
        """
        X, y = self._inputs(decision), self.labels
        if isinstance(decision, Halfspace):
            room = halfspace_radii(decision, X, y, self.norm)
        elif isinstance(decision, NearestNeighbour) and self.norm == "l2":
            room = constancy_radii(decision, X, y)
        elif isinstance(decision, Tree):
            room = exact_radii(decision, X, y, self.norm)[1]
        else:
            kinds = "a Halfspace, a Tree or a NearestNeighbour (l2); for networks compare exact_radii"
            raise DeclarationError(f"the decision is a {type(decision).__name__}; it must be {kinds}")
        wrong = np.asarray(decision.predict(X)) != y
        return np.asarray(wrong | (room < self.balls - TOLERANCE * self.extent))

    def _inputs(self, decision: Any) -> Array:
        """The features in the order of the classifier's names, if both are named."""
        names = getattr(decision, "feature_names", ())
        return np.asarray(aligned(self.features, names, self.feature_names))

    def _sketch(self, decision: Any, evaluation: Evaluation) -> Any:
        lost = f"{evaluation.objective:.3g} of the records are lost to wrong labels or moves"
        if not hasattr(decision, "w"):
            return Sketch(lost)
        return Sketch(lost, decision.w, self.feature_names or "feature", unit="weight of the feature")

    def evaluate(self, decision: Any) -> Evaluation:
        """Evaluate a classifier: the share of points that are lost, exactly.

        Returns
        -------
        Evaluation
            The loss; as metrics the share of misclassified points, the share of points that every classifier
            loses one of (as another label is at the same place), and for adaptive radii the largest
            fraction at which this classifier loses nothing.
        """
        lost, X = self.lossy(decision), self._inputs(decision)
        wrong = np.asarray(decision.predict(X)) != self.labels
        metrics = {"binary loss": float(wrong.mean()), "coinciding": len(self.coinciding) / len(self.labels)}
        if self.radii is None and isinstance(decision, Halfspace):
            room = halfspace_radii(decision, X, self.labels, self.norm)
            with np.errstate(divide="ignore", invalid="ignore"):
                share = np.where(self.adaptive > 0, room / self.adaptive, np.where(wrong, 0.0, np.inf))
            metrics["fraction"] = float(share.min())
        return Evaluation(float(lost.mean()), {}, metrics)
