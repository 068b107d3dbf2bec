"""Convex surrogates: the hinge loss with a robust margin, and the support vector machine."""

from __future__ import annotations

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import BackendError, DeclarationError
from forcopt.language.atoms import norm as norm_of
from forcopt.language.atoms import sum_squares
from forcopt.language.model import Model
from forcopt.models.adaptive_robustness.classification import AdaptiveRobustClassification
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["hinge", "svm"]


@AdaptiveRobustClassification.algorithm(
    "hinge", cites="Chowdhury, Urner (2022), Definition 10, with the hinge loss", rank="published"
)
def hinge(
    problem: AdaptiveRobustClassification,
    *,
    penalty: float = 1e-3,
    backend: str = "clarabel",
    time_limit: float | None = None,
) -> Outcome:
    """Minimize ``penalty norm2(w)^2 + mean(slack)`` with ``s (w x + b) - r norm_dual(w) >= 1 - slack``.

    Parameters
    ----------
    problem : AdaptiveRobustClassification
    penalty : float
        On the squared length of w, with features in units of their extent; at least 0.
    backend : str
        That takes second-order cones (for ``"linf"``, quadratic objectives).
    time_limit : float, optional

    Returns
    -------
    Outcome
        The halfspace; 0 is the only bound, as a surrogate bounds nothing.
    """
    return _fit(problem, problem.balls, penalty, backend, time_limit)


@AdaptiveRobustClassification.algorithm(
    "svm", cites="Cortes, Vapnik (1995): the hinge at c = 0", rank="published"
)
def svm(
    problem: AdaptiveRobustClassification,
    *,
    penalty: float = 1e-3,
    backend: str = "clarabel",
    time_limit: float | None = None,
) -> Outcome:
    """The support vector machine, without balls: `hinge` with radius 0.

    Parameters
    ----------
    problem : AdaptiveRobustClassification
        The problem.
    penalty : float, optional
        On the squared length of the normal, with features in units of their extent; at least 0.
    backend : str, optional
        See `hinge`.
    time_limit : float, optional
        Seconds.

    Returns
    -------
    Outcome
        The halfspace; 0 is the only bound.
    """
    return _fit(problem, np.zeros(len(problem.labels)), penalty, backend, time_limit)


def _fit(
    problem: AdaptiveRobustClassification, balls: Array, penalty: float, backend: str, limit: float | None
) -> Outcome:
    if not penalty >= 0:
        raise DeclarationError(f"penalty is {penalty!r}; it must be at least 0")
    n, d = problem.features.shape
    unit, signs = problem.extent, problem.signs
    X = (problem.features - problem.center) / unit
    model = Model("hinge")
    w = model.variable("w", d)
    b = model.variable("b")
    slack = model.variable("slack", n, lower=0)
    size = model.variable("size", lower=0)
    model.subject_to(norm_of(w, 2 if problem.norm == "l2" else 1) <= size)
    model.subject_to((X * signs[:, None]) @ w + signs * b - balls / unit * size >= 1 - slack)
    model.minimize(penalty * sum_squares(w) + slack.sum() / n)
    result = model.solve(backend, time_limit=limit)
    if not result.status.has_solution:
        if result.status is Status.LIMIT:
            return Outcome(problem.constant(), 0.0, message="time ran out before the surrogate was solved")
        raise BackendError(f"{backend} did not solve the surrogate: {result.status}, {result.message}")
    found = np.asarray(result[w], dtype=float)
    shift = float(result[b]) - float(found @ problem.center) / unit
    return Outcome(problem.halfspace(found / unit, shift), 0.0, iterations=result.iterations)
