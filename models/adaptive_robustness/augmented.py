"""Learning on augmented points: the paper's way, with any linear learner, or the expansion's neighbour."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np

from forcopt.arrays import Array, Seed
from forcopt.clock import Deadline
from forcopt.errors import BackendError, DeclarationError, require, required
from forcopt.models.adaptive_robustness.adaptive_radii import adaptive_radii, augment, capped, check_labels
from forcopt.models.adaptive_robustness.classification import AdaptiveRobustClassification
from forcopt.models.adaptive_robustness.classifiers import Halfspace, NearestNeighbour, Tree
from forcopt.models.adaptive_robustness.geometry import Norm, check_points, length
from forcopt.problem import Outcome


@AdaptiveRobustClassification.algorithm(
    "augmented", cites="Chowdhury, Urner (2022), Definition 11", rank="published"
)
def augmented(
    problem: AdaptiveRobustClassification,
    *,
    learner: Any = None,
    draws: int = 4,
    keep_original: bool = True,
    seed: Seed = 0,
    time_limit: float | None = None,
) -> Outcome:
    """Fit a learner to draws from the balls.

    Parameters
    ----------
    learner : scikit-learn estimator, optional
        Linear (with ``coef_`` and ``intercept_``), a decision tree, or a 1-nearest neighbour; logistic
        regression by default. It is cloned.
    draws : int
        For each point.
    keep_original : bool
        See `augment`.
    time_limit : float, optional
        In seconds. As a fit has no clock, it then runs in a process of its own, which is ended in time.

    Returns
    -------
    Outcome
        The classifier; 0 is the only bound. The best constant one if the learner did not end in time.
    """
    required("sklearn", "augmented")
    from sklearn.base import clone
    from sklearn.linear_model import LogisticRegression

    deadline = Deadline(time_limit)
    rows = augment(
        problem.features, problem.labels, draws=draws, keep_original=keep_original, norm=problem.norm,
        radii=problem.balls, seed=seed,
    )  # fmt: skip
    if (rows.labels == rows.labels[0]).all():
        raise DeclarationError("labels: all are equal; a learner needs both")
    if learner is not None and not (hasattr(learner, "fit") and hasattr(learner, "get_params")):
        raise DeclarationError(f"learner is {learner!r}; it must be an estimator as of scikit-learn")
    learner = clone(learner) if learner is not None else LogisticRegression(max_iter=2000)
    if time_limit is None:
        fitted = learner.fit(rows.points, rows.labels)
    else:
        fitted = _fit_within(learner, rows.points, rows.labels, deadline)
    if fitted is None:
        return Outcome(problem.constant(), 0.0, message="the learner did not end in time: the best constant")
    return Outcome(_read(fitted, rows.points, rows.labels, problem.feature_names), 0.0)


def _fit_within(learner: Any, X: Array, y: Array, deadline: Deadline) -> Any:
    """The fitted learner, by a process of its own that ends at the deadline; None if it was too late."""
    from multiprocessing import get_all_start_methods, get_context

    if deadline.passed:
        return None
    context: Any = get_context("fork" if "fork" in get_all_start_methods() else "spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_fit, args=(learner, X, y, there), daemon=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads: the child only fits
        process.start()
    there.close()
    try:
        found = here.recv() if here.poll(deadline.left) else None
    except EOFError:
        raise BackendError("the process that fitted the learner ended without an answer") from None
    finally:
        process.kill()
        process.join()
        here.close()
    if isinstance(found, Exception):
        raise found
    return found


def _fit(learner: Any, X: Array, y: Array, to: Any) -> None:
    try:
        to.send(learner.fit(X, y))
    except Exception as error:
        to.send(error)


def _read(fitted: Any, X: Array, y: Array, names: tuple[str, ...]) -> Any:
    if hasattr(fitted, "coef_") and np.size(fitted.intercept_) == 1:
        return Halfspace(np.ravel(fitted.coef_), float(np.ravel(fitted.intercept_)[0]), feature_names=names)
    if hasattr(fitted, "tree_"):
        return Tree.from_sklearn(fitted).replace(feature_names=names)
    if getattr(fitted, "n_neighbors", 0) == 1:
        return NearestNeighbour(X, y, feature_names=names)
    kind = type(fitted).__name__
    raise DeclarationError(f"learner is {kind}; it must be linear, a tree or the nearest neighbour")


class ExpansionNearestNeighbour:
    """The nearest neighbour on balls: the label of the ball that is nearest, 0 inside of it.

    Parameters
    ----------
    c : float
        The fraction of the adaptive radius. With 0 this is the nearest neighbour; up to 1/2 balls of
        different labels are disjoint, so that the adaptive loss on the training points is 0.
    norm : {"l2", "linf"}

    References
    ----------
    Chowdhury, Urner, FORC 2022, Theorem 12.

    Examples
    --------
    >>> nn = ExpansionNearestNeighbour(0.5).fit([[0.0], [1.0], [4.0]], [0, 1, 1])
    >>> nn.predict([[0.4], [0.6]]).tolist()
    [0, 1]
    """

    def __init__(self, c: float = 0.5, norm: Norm = "l2") -> None:
        require(c >= 0, "c", c, "be at least 0")
        self.c, self.norm = c, norm

    def fit(self, X: Any, y: Any, *, cap: float | None = None) -> Self:
        """Keep the points, their labels and their balls."""
        self.points = check_points(X, "X")
        self.labels = check_labels(y, len(self.points))
        self.radii = np.zeros(len(self.points))
        if self.c != 0 and (cap is not None or (self.labels != self.labels[0]).any()):
            self.radii = self.c * capped(adaptive_radii(self.points, self.labels, self.norm), cap)
        return self

    def predict(self, X: Any) -> Array:
        """The label of the nearest ball; the nearest center breaks ties."""
        if not hasattr(self, "points"):
            raise DeclarationError("the points are missing: call fit before predict")
        X = check_points(X, "X")
        out = np.empty(len(X), dtype=self.labels.dtype)
        step = max(1, 4_000_000 // self.points.size)
        for at in range(0, len(X), step):
            apart = length(X[at : at + step, None] - self.points, self.norm)
            away = np.maximum(apart - self.radii, 0.0)
            nearest = away <= away.min(axis=1, keepdims=True)
            out[at : at + step] = self.labels[np.where(nearest, apart, np.inf).argmin(axis=1)]
        return out
