"""Halfspaces of least loss: mixed-integer programs, and convex surrogates."""

from __future__ import annotations

from typing import Any

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import BackendError, DeclarationError, require
from forcopt.language import Model, Variable, sum_squares
from forcopt.language.atoms import norm as norm_of
from forcopt.learning.hypotheses import aligned
from forcopt.loops.solution import ModelSolution
from forcopt.models.adaptive_robustness.classification import AdaptiveRobustClassification
from forcopt.models.adaptive_robustness.classifiers import Halfspace
from forcopt.models.adaptive_robustness.geometry import Norm, dual_length, length, meeting_pairs
from forcopt.models.adaptive_robustness.tolerances import APART, STRICT, TOLERANCE
from forcopt.problem import Handles, Outcome
from forcopt.status import Status

_PREMISE = "points of label 0 with a ball below 1e-5 of the extent are right only if as far off the border"


@AdaptiveRobustClassification.formulation("milp", exact=True, cites="Chowdhury, Urner (2022), Definition 10")
def milp(problem: AdaptiveRobustClassification, model: Model, all_rows: bool = False) -> Handles:
    """Rows ``s (w x + b) >= r - M lost`` with ``norm1(w) <= 1``. Norm ``"linf"``.

    The ball of the dual norm needs no equation: a shorter w only makes the true distances larger.

    Parameters
    ----------
    all_rows : bool, default False
        Make ``norm1(w)`` 1, by a binary for the sign of each weight, and add ``s (w x + b) < r`` for the lost
        points, so that ``lost`` tells in any model which points the decision loses. A point then has all of
        the room r or lacks 1e-5 of the extent.

    Returns
    -------
    Handles
        ``lost``, a binary for each point; ``w`` and ``b`` around the center of the points, in units of their
        extent.
    """
    return _write(problem, model, "linf", all_rows)


@AdaptiveRobustClassification.formulation(
    "misocp", exact=True, cites="Chowdhury, Urner (2022), Definition 10"
)
def misocp(problem: AdaptiveRobustClassification, model: Model, all_rows: bool = False) -> Handles:
    """As the MILP, with ``norm2(w) <= 1``. Norm ``"l2"``.

    Parameters
    ----------
    all_rows : bool, default False
        Write every halfspace, for models with rows and objectives of their own.

    Returns
    -------
    Handles
        As for the MILP, but ``lost`` is an upper estimate: the decision loses no other points, and may keep
        some of these where the model's objective does not press on them. No convex program can tell more,
        as the halfspaces that lose a point form no convex set.
    """
    return _write(problem, model, "l2", all_rows)


def _write(problem: AdaptiveRobustClassification, model: Model, norm: Norm, all_rows: bool) -> Handles:
    if problem.norm != norm:
        raise DeclarationError(f"norm is {problem.norm!r}; milp takes 'linf', and misocp 'l2'")
    n, d = problem.features.shape
    unit = problem.extent
    X = (problem.features - problem.center) / unit
    balls = problem.balls / unit
    tiny = (problem.labels == 0) & (balls < STRICT)
    asked = np.where(tiny, STRICT, balls)
    name = model.unused_name
    w = model.variable(name("w"), d, lower=-1, upper=1)
    farthest = float(length(X, problem.norm).max())
    exact = all_rows and norm == "linf"
    # if points of both labels are kept, the border passes between them; else a constant is as good
    shift_most = farthest + float(asked.max()) if all_rows else max(farthest, float(asked.max()))
    b = model.variable(name("b"), lower=-shift_most, upper=shift_most)
    lost = model.variable(name("lost"), n, binary=True)
    if problem.norm == "l2":
        model.subject_to(norm_of(w) <= 1, name=name("unit_norm"))
    else:
        size = model.variable(name("size"), d, lower=0, upper=1)
        model.subject_to(w <= size, -w <= size, size.sum() <= 1, name=name("unit_norm"))
        if exact:
            up = model.variable(name("positive"), d, binary=True)
            model.subject_to(size - w <= 2 - 2 * up, size + w <= 2 * up, size.sum() >= 1, name=name("sign"))
    big = asked + (STRICT + farthest + shift_most if all_rows else _reach(problem, X, asked))
    signs = problem.signs
    sides = (X * signs[:, None]) @ w + signs * b
    model.subject_to(sides >= asked - APART - big * lost, name=name("margin"))
    if exact:
        model.subject_to(sides <= balls - STRICT + big * (1 - lost), name=name("really_lost"))
    zero, one = (np.flatnonzero(problem.labels == label) for label in (0, 1))
    overlapping = meeting_pairs(problem.features, problem.balls, zero, one, problem.norm)
    assert overlapping is not None
    for i, j in zip(*overlapping, strict=True):  # no halfspace keeps both
        model.subject_to(lost[i] + lost[j] >= 1, name=name("lose_one"))

    def decision(result: ModelSolution) -> Halfspace:
        found, shift = np.asarray(result[w], dtype=float), float(result[b])
        length_ = dual_length(found, problem.norm)
        constant = problem.halfspace(np.zeros(d), 1.0 if shift >= 0 else -1.0)
        if length_ == 0:
            return constant
        # A short normal may stand for a constant, or for points without balls, which need little room.
        found, shift = found / length_, shift / length_
        shift += TOLERANCE / 2  # points of label 1 on the border are on its side despite rounding
        away = shift - float(found @ problem.center) / unit
        read = problem.halfspace(found / unit, away)
        read = read if exact else problem.midway(read)
        if all_rows and not (problem.lossy(read) & (result[lost] < 0.5)).any():
            return read
        return min((read, constant), key=lambda h: float(problem.lossy(h).mean()))

    def start(decision: Halfspace) -> dict[Variable, Array]:
        normal = aligned(decision.w[None], problem.feature_names, decision.feature_names)[0]
        size = dual_length(normal, problem.norm)
        lossy = problem.lossy(decision)
        kept = problem.labels[~lossy]
        if size == 0 or (not exact and (not len(kept) or (kept == kept[0]).all())):
            side = kept[0] if len(kept) else int(decision.b >= 0)
            constant = (shift_most if exact else float(asked.max())) * (1.0 if side == 1 else -1.0)
            return {w: np.eye(d)[0] * exact, b: np.array(constant), lost: lossy.astype(float)}
        shift = (decision.b + normal @ problem.center) / size / unit
        return {w: normal / size, b: np.clip(shift, -shift_most, shift_most), lost: lossy.astype(float)}

    parts: dict[str, Any] = {"premise": _PREMISE if tiny.any() else "", "lost": lost, "w": w, "b": b}
    return Handles(lost.sum() * 1.0, decision, start, unit=1.0 / n, **parts)


def _reach(problem: AdaptiveRobustClassification, X: Array, asked: Array) -> Array:
    """How far each point can be on the wrong side, shape ``(n,)``.

    If some point of its label is kept, it is no farther than from that point, less the room kept there. If
    none is, a constant classifier is as good, whose scores are the largest radius.
    """
    y = problem.labels
    reach = [(length(X[y == k] - x, problem.norm) - asked[y == k]).max() for x, k in zip(X, y, strict=True)]
    return np.asarray(np.maximum(reach, asked.max()))


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
    penalty : float
        On the squared length of w, with features in units of their extent; at least 0.
    backend : str
        That takes second-order cones (for ``"linf"``, quadratic objectives).

    Returns
    -------
    Outcome
        The halfspace; 0 is the only bound, as a surrogate bounds nothing.
    """
    return _fit(problem, problem.balls, penalty, backend, time_limit)


@AdaptiveRobustClassification.algorithm("svm", cites="Cortes, Vapnik (1995), c = 0", rank="published")
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
    penalty : float, optional
        On the squared length of the normal, with features in units of their extent; at least 0.
    backend : str, optional
        See `hinge`.

    Returns
    -------
    Outcome
        The halfspace; 0 is the only bound.
    """
    return _fit(problem, np.zeros(len(problem.labels)), penalty, backend, time_limit)


def _fit(
    problem: AdaptiveRobustClassification, balls: Array, penalty: float, backend: str, limit: float | None
) -> Outcome:
    require(penalty >= 0, "penalty", penalty, "be at least 0")
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
            return Outcome(problem.constant(), 0.0, message="stopped before the surrogate was solved")
        raise BackendError(f"{backend} did not solve the surrogate: {result.status}, {result.message}")
    found = np.asarray(result[w], dtype=float)
    shift = float(result[b]) - float(found @ problem.center) / unit
    return Outcome(problem.halfspace(found / unit, shift), 0.0, iterations=result.iterations)
