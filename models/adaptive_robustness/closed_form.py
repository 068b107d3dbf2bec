"""Radii in closed form: the distance to a hyperplane, and to the boxes of a tree's leaves."""

from __future__ import annotations

import numpy as np

from forcopt.arrays import Array
from forcopt.models.adaptive_robustness.classifiers import Halfspace, Tree
from forcopt.models.adaptive_robustness.geometry import Norm, dual_length
from forcopt.models.adaptive_robustness.robustness_radius import RobustnessRadius
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["closed_form", "halfspace_radii"]


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


@RobustnessRadius.algorithm(
    "closed-form", exact=True, cites="Chowdhury, Urner (2022), Definition 8, for halfspaces and trees"
)
def closed_form(problem: RobustnessRadius, *, time_limit: float | None = None) -> Outcome:
    """The nearest point of a hyperplane, or of the leaves with another label; O(d) and O(leaves d).

    Parameters
    ----------
    problem : RobustnessRadius
        Which.
    time_limit : float, optional
        Of no effect on a closed form.
    """
    if problem.is_misclassified:
        return Outcome(problem.point.copy(), 0.0)
    if isinstance(problem.classifier, Tree):
        return _nearest_leaf(problem, problem.classifier)
    assert isinstance(problem.classifier, Halfspace)
    w, score = problem.classifier.w, float(problem.classifier.scores(problem.point[None])[0])
    size = dual_length(w, problem.norm)
    if size == 0:
        return Outcome(None, status=Status.INFEASIBLE, message="the classifier predicts one label everywhere")
    unit = w / size
    step = unit if problem.norm == "l2" else np.sign(w)
    moved = problem.point - score / size * step
    return Outcome(moved, float(problem.lengths(moved)))


def _nearest_leaf(problem: RobustnessRadius, tree: Tree) -> Outcome:
    label, low, high = tree.boxes
    least, most = problem.limits
    low, high = np.nextafter(low, np.inf), high  # leaves are open below
    low, high = np.maximum(low, least), np.minimum(high, most)
    other = (label != problem.label) & (low <= high).all(axis=1)
    if not other.any():
        return Outcome(None, status=Status.INFEASIBLE, message="no leaf inside of the box has another label")
    moved = np.clip(problem.point, low[other], high[other])
    best = moved[int(problem.lengths(moved).argmin())]
    return Outcome(best, float(problem.lengths(best)))
