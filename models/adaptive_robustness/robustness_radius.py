"""The radius of robustness: the least move of an input that changes its label; and its closed forms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from pydantic import model_validator

from forcopt.arrays import Array, as_numbers, check_entries, check_shape
from forcopt.declaration import Numbers
from forcopt.errors import DeclarationError, require
from forcopt.models.adaptive_robustness.adaptive_radii import check_labels
from forcopt.models.adaptive_robustness.classifiers import Classifier, Halfspace, ReLUNetwork, Tree
from forcopt.models.adaptive_robustness.geometry import Norm, dual_length, length
from forcopt.problem import Evaluation, Method, Outcome, Problem
from forcopt.problem.drawing import Sketch
from forcopt.status import Status


class _FittingMethods:
    """The registered methods; of an instance, the methods for its classifier."""

    def __get__(
        self, problem: RobustnessRadius | None, owner: type[RobustnessRadius]
    ) -> Mapping[str, Method]:
        every: Mapping[str, Method] = super(RobustnessRadius, owner).methods
        if problem is None:
            return every
        kinds = (kind for kind in Classifier._kinds() if issubclass(kind, Classifier))
        bound = {name for kind in kinds for name in kind.methods}
        own = type(problem.classifier).methods
        return {name: m for name, m in every.items() if name in own or name not in bound}


class RobustnessRadius(Problem):
    """Find the least move of a point after which a classifier no longer predicts its label.

    The decision is the moved point, shape ``(d,)``; the objective is the length of the move. A point is lossy
    for the fraction c exactly if its radius is below c times its adaptive radius, so that one solve gives the
    loss at every c.

    Parameters
    ----------
    classifier : Halfspace, NearestNeighbour, ReLUNetwork or Tree
    point : array, shape (d,)
    label : int
        The label that it should predict. If it predicts another at the point, the radius is 0.
    norm : {"l2", "linf"}
        The nearest neighbour is known for ``"l2"``.
    box : pair of numbers or arrays, optional
        Inputs are between these; for networks and trees.

    Raises
    ------
    DeclarationError
        For shapes that do not fit, a point outside of the box, a norm or a box that the classifier does not
        take.

    Notes
    -----
    The region of another label may be open, so the least move ends on its border: a border point counts as
    moved enough (violation 0), and the metric ``"confirmed"`` is 1 where the classifier itself gives
    another label there.

    References
    ----------
    Chowdhury, Urner, Robustness should not be at odds with accuracy, FORC 2022, Definition 8. Tjeng, Xiao,
    Tedrake, Evaluating robustness of neural networks with mixed integer programming, ICLR 2019.

    Examples
    --------
    >>> from forcopt.models.adaptive_robustness import Halfspace
    >>> s = RobustnessRadius(Halfspace([3.0, 4.0], -5.0), [3.0, 4.0], 1).solve()
    >>> s.objective, s.decision.round(6).tolist()
    (4.0, [0.6, 0.8])
    """

    family: ClassVar[str] = "robustness"
    default_method: ClassVar[str] = "closed-form"
    methods: ClassVar[Mapping[str, Method]] = _FittingMethods()  # type: ignore[assignment]

    classifier: Classifier
    point: Numbers
    label: int
    norm: Norm = "l2"
    box: tuple[Numbers, Numbers] | None = None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        d = self.classifier.features
        check_shape(self.point, (d,), "point")
        if isinstance(self.classifier, Halfspace) and self.label not in (0, 1):
            raise DeclarationError(f"label is {self.label}; a Halfspace predicts 0 or 1")
        if self.norm != "l2" and "cuts" in self.classifier.methods:
            raise DeclarationError(f"norm is {self.norm!r}; for the nearest neighbour it must be 'l2'")
        if self.box is None:
            return self
        if not isinstance(self.classifier, ReLUNetwork | Tree):
            raise DeclarationError(f"box: a {type(self.classifier).__name__} takes none")
        for bound in self.box:
            require(bound.shape in ((), (d,)), "box: the shape", bound.shape, f"be one number or ({d},)")
        outside = (self.point < self.box[0]) | (self.point > self.box[1])
        check_entries(self.point, outside, "point", "it must be inside of the box")
        return self

    def method(self, name: str | None = None) -> Method:
        """Give a method by name, see `Problem.method`.

        Raises
        ------
        DeclarationError
            For a method that does not take this classifier.
        """
        kind = type(self.classifier)
        if name in type(self).methods and name not in self.methods:
            raise DeclarationError(f"{name!r} takes no {kind.__name__}; these do: {', '.join(kind.methods)}")
        return super().method(name)

    def choose_method(self) -> str:
        """Choose the exact method for the classifier and norm."""
        kind = type(self.classifier)
        return "misocp" if kind is ReLUNetwork and self.norm == "l2" else kind.methods[0]

    @property
    def limits(self) -> tuple[Array, Array]:
        """The box, infinite without one; two arrays of shape ``(d,)``."""
        low, high = self.box if self.box is not None else (np.array(-np.inf), np.array(np.inf))
        return np.broadcast_to(low, self.point.shape), np.broadcast_to(high, self.point.shape)

    def lengths(self, X: Any) -> Array:
        """How far inputs are from the point."""
        return length(np.asarray(X) - self.point, self.norm)

    def changed(self, X: Any) -> Array:
        """Whether the classifier predicts another label."""
        return np.asarray(self.classifier.predict(X) != self.label)

    @property
    def is_misclassified(self) -> bool:
        """Whether the radius is 0, as the classifier predicts another label at the point itself."""
        return bool(self.changed(self.point[None])[0])

    def _sketch(self, decision: Any, evaluation: Evaluation) -> Any:
        title = f"A move of length {evaluation.objective:.4g} changes the answer"
        return Sketch(title, np.asarray(decision) - self.point, "feature", unit="move")

    def evaluate(self, decision: Any) -> Evaluation:
        """Evaluate a moved point.

        Parameters
        ----------
        decision : array, shape (d,)

        Returns
        -------
        Evaluation
            The length of the move; violations ``"label"``, the margin by which the classifier still prefers
            the label, and ``"box"``; as metric whether the classifier itself confirms the change.
        """
        moved = as_numbers(decision, "the decision")
        check_shape(moved, self.point.shape, "the decision")
        confirmed = bool(self.changed(moved[None])[0])
        left = 0.0 if confirmed else max(0.0, float(self.classifier.margin(moved[None], self.label)[0]))
        low, high = self.limits
        out = float(np.maximum(low - moved, moved - high).max(initial=0.0))
        return Evaluation(
            objective=float(self.lengths(moved)),
            violations={k: v for k, v in (("label", left), ("box", out)) if v > 0},
            metrics={"confirmed": float(confirmed)},
        )


def exact_radii(
    classifier: Classifier,
    points: Any,
    labels: Any,
    norm: Norm = "l2",
    *,
    method: str | None = None,
    box: tuple[Any, Any] | None = None,
    **options: Any,
) -> tuple[Array, Array]:
    """The radii of robustness of several points, each by a solve.

    Parameters
    ----------
    classifier : Halfspace, NearestNeighbour, ReLUNetwork or Tree
    points : array, shape (n, d)
    labels : array of int, shape (n,)
    norm : {"l2", "linf"}
    method : str, optional
        See `RobustnessRadius`.
    box : pair, optional
    **options
        Of ``solve``, such as ``time_limit`` (for each point).

    Returns
    -------
    lower, upper : arrays, shape (n,)
        Proved bounds: equal where the radius is proved, infinite where no move changes the label.

    Examples
    --------
    >>> from forcopt.models.adaptive_robustness import Halfspace
    >>> exact_radii(Halfspace([1.0], -1.0), [[0.0], [3.0]], [0, 1])[1].tolist()
    [1.0, 2.0]
    """
    X = classifier.read(points, "points")
    lower, upper = [], []
    for x, y in zip(X, check_labels(labels, len(X)), strict=True):
        p = RobustnessRadius(classifier, x, int(y), norm, box)
        s = p.solve(method, **options)
        runs = [s]
        if s.status not in ("optimal", "infeasible") and "gradient" in classifier.methods:
            runs.append(p.solve("gradient"))  # an attack may find more than a solver that stopped early
        found = [r.objective for r in runs if r.evaluation is not None and r.evaluation.feasible]
        upper.append(min(found, default=np.inf))
        lower.append(np.inf if s.status == "infeasible" else max(0.0, min(s.bound, upper[-1])))
    return np.array(lower), np.array(upper)


def halfspace_radii(classifier: Halfspace, X: Array, y: Array, norm: Norm) -> Array:
    """The radius of each point: its distance to the hyperplane, 0 where the label is wrong.

    Infinite for a constant classifier that is right.
    """
    scores = classifier.scores(X)
    right = (scores >= 0) == (y == 1)
    size = dual_length(classifier.w, norm)
    with np.errstate(divide="ignore", invalid="ignore"):
        away = np.abs(scores) / size if size > 0 else np.full(len(X), np.inf)
    return np.where(right, away, 0.0)


@RobustnessRadius.algorithm("closed-form", exact=True, cites="Chowdhury, Urner (2022), Definition 8")
def closed_form(problem: RobustnessRadius, *, time_limit: float | None = None) -> Outcome:
    """The nearest point of a hyperplane, or of the leaves with another label; O(d) and O(leaves d)."""
    if problem.is_misclassified:
        return Outcome(problem.point.copy(), 0.0)
    if isinstance(problem.classifier, Tree):
        return _nearest_leaf(problem, problem.classifier)
    assert isinstance(problem.classifier, Halfspace)
    w, score = problem.classifier.w, float(problem.classifier.scores(problem.point[None])[0])
    size = dual_length(w, problem.norm)
    if size == 0:
        return Outcome(None, status=Status.INFEASIBLE, message="the classifier predicts one label everywhere")
    step = w / size if problem.norm == "l2" else np.sign(w)
    moved = problem.point - score / size * step
    return Outcome(moved, float(problem.lengths(moved)))


def _nearest_leaf(problem: RobustnessRadius, tree: Tree) -> Outcome:
    label, low, high = tree.boxes
    least, most = problem.limits  # leaves are open below
    low, high = np.maximum(np.nextafter(low, np.inf), least), np.minimum(high, most)
    other = (label != problem.label) & (low <= high).all(axis=1)
    if not other.any():
        return Outcome(None, status=Status.INFEASIBLE, message="no leaf inside of the box has another label")
    moved = np.clip(problem.point, low[other], high[other])
    best = moved[int(problem.lengths(moved).argmin())]
    return Outcome(best, float(problem.lengths(best)))
