"""Attacks: moves that change the label, found by descent or by draws; upper bounds of the radius."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline, OnImprovement, Trace
from forcopt.errors import DeclarationError
from forcopt.models.adaptive_robustness.classifiers import ReLUNetwork
from forcopt.models.adaptive_robustness.geometry import draw_in_ball, dual_length
from forcopt.models.adaptive_robustness.robustness_radius import RobustnessRadius
from forcopt.models.adaptive_robustness.tolerances import BACK, LEAST_MOVE, LEAST_STEP
from forcopt.problem import Outcome
from forcopt.status import Status

_DOUBLINGS = 40


@RobustnessRadius.algorithm(
    "gradient", cites="Madry et al. (2018), projected gradient descent", rank="published"
)
def gradient(
    problem: RobustnessRadius,
    *,
    restarts: int = 20,
    steps: int = 60,
    seed: int | np.random.Generator | None = 0,
    time_limit: float | None = None,
    on_improvement: OnImprovement | None = None,
) -> Outcome:
    """Projected gradient descent of the margin in balls that shrink to the best move found. Networks.

    Parameters
    ----------
    restarts : int
        Random starts in each ball, side by side.
    steps : int
        Of descent from each start.

    Returns
    -------
    Outcome
        An upper bound of the radius: the change is confirmed by the network. 0 is the only lower bound.
    """
    if restarts < 1 or steps < 1:
        raise DeclarationError(f"restarts is {restarts} and steps is {steps}; both must be at least 1")
    trace = Trace(Deadline(time_limit), on_improvement)
    moved = attack(problem, restarts, steps, np.random.default_rng(seed), trace)
    return _outcome(problem, moved, trace)


def _outcome(problem: RobustnessRadius, moved: Array | None, trace: Trace) -> Outcome:
    if moved is None:
        return Outcome(None, 0.0, Status.LIMIT, message="no move that changes the label was found")
    return Outcome(moved, 0.0, trace=trace.steps)


def attack(
    problem: RobustnessRadius, restarts: int, steps: int, rng: np.random.Generator, trace: Trace
) -> Array | None:
    """The best move that projected descent finds, confirmed by the network; None without one."""
    net, x = problem.classifier, problem.point
    assert isinstance(net, ReLUNetwork)
    if problem.is_misclassified:
        return x.copy()
    sign = 1.0 if problem.label == 1 else -1.0

    def descend(radius: float) -> Array:
        """Points of the ball whose label changed, if any."""
        z = _inside(problem, x + radius * draw_in_ball((restarts, len(x)), problem.norm, rng), radius)
        z[0] = x
        changed = []
        for k in range(steps):
            outputs, slopes = net.gradients(z)
            flipped = problem.changed(z)
            if flipped.any():
                changed.append(z[flipped])
            slopes = sign * slopes
            size = np.linalg.norm(slopes, 2 if problem.norm == "l2" else 1, axis=1, keepdims=True)
            unit = np.where(size > 0, slopes / np.where(size > 0, size, 1), 0.0)
            if problem.norm == "linf":
                unit = np.sign(slopes)
            # the step of Newton's method along the steepest direction, between bounds that shrink
            newton = np.abs(outputs)[:, None] / np.where(size > 0, size, 1)
            most = 2 * radius / (1 + k / 4)
            z = _inside(problem, z - np.clip(newton * 1.01, LEAST_STEP * radius, most) * unit, radius)
        flipped = problem.changed(z)
        if flipped.any():
            changed.append(z[flipped])
        return np.concatenate(changed) if changed else np.zeros((0, len(x)))

    outputs, slopes = net.gradients(x[None])
    size = dual_length(slopes[0], problem.norm)
    extent = max(1.0, float(np.abs(x).max()))
    first = max(float(abs(outputs[0]) / size) * 1.5, LEAST_MOVE * extent) if size > 0 else extent
    return _shrink(problem, descend, first, trace)


def _inside(problem: RobustnessRadius, z: Array, radius: float) -> Array:
    """Project on the ball around the point, and on the box."""
    low, high = problem.limits
    away = z - problem.point
    if problem.norm == "linf":
        away = np.clip(away, -radius, radius)
    else:
        away = away * (radius / np.maximum(problem.lengths(z), radius))[:, None]
    return np.clip(problem.point + away, low, high)


def _shrink(
    problem: RobustnessRadius, search: Callable[[float], Array], radius: float, trace: Trace
) -> Array | None:
    """Double the radius until a search finds a change; then search below the best until it finds none."""
    low, high = problem.limits
    widest = float(problem.lengths(np.maximum(high - problem.point, problem.point - low)))
    best: Array | None = None
    for _ in range(_DOUBLINGS):
        found = search(min(radius, widest))
        best = _closest(problem, found)
        if best is not None:
            break
        if trace.over or radius >= widest:
            return None
        radius *= 2
    if best is None:
        return None
    trace.add(float(problem.lengths(best)), 0.0)
    misses = 0
    while misses < 2 and not trace.over:
        least = float(problem.lengths(best))
        if least == 0:
            break
        found = search(least * (0.99 if misses else 0.9))
        nearer = _closest(problem, found)
        misses += nearer is None
        if nearer is not None:
            best = nearer
            trace.add(float(problem.lengths(best)), 0.0)
    return best


def _closest(problem: RobustnessRadius, found: Array) -> Array | None:
    """Pull changed points back towards the point by bisection, and give the nearest."""
    if not len(found):
        return None
    keep = np.ones(len(found))  # the share of the move at which the label is changed
    none = np.zeros(len(found))
    for _ in range(50):
        middle = (keep + none) / 2
        changed = problem.changed(problem.point + middle[:, None] * (found - problem.point))
        keep, none = np.where(changed, middle, keep), np.where(changed, none, middle)
    shares = np.stack([keep, np.minimum(keep * (1 + BACK), 1.0), np.ones(len(found))])
    for k in problem.lengths(keep[:, None] * (found - problem.point) + problem.point).argsort():
        for share in shares[:, k]:  # one by one: side by side, sums may be rounded otherwise
            moved = found[k] if share == 1 else problem.point + share * (found[k] - problem.point)
            if problem.changed(moved[None])[0]:
                return np.asarray(moved)
    return None


@RobustnessRadius.algorithm(
    "draws", cites="Chowdhury, Urner (2022), section 6, uniform draws", rank="published"
)
def draws(
    problem: RobustnessRadius,
    *,
    count: int = 1000,
    seed: int | np.random.Generator | None = 0,
    time_limit: float | None = None,
    on_improvement: OnImprovement | None = None,
) -> Outcome:
    """Uniform draws from balls that shrink to the best move found. Any classifier.

    Parameters
    ----------
    count : int
        Draws from each ball.

    Returns
    -------
    Outcome
        An upper bound of the radius; 0 is the only lower bound.
    """
    if count < 1:
        raise DeclarationError(f"count is {count}; it must be at least 1")
    trace = Trace(Deadline(time_limit), on_improvement)
    if problem.is_misclassified:
        return Outcome(problem.point.copy(), 0.0)
    rng = np.random.default_rng(seed)

    def search(radius: float) -> Array:
        ball = draw_in_ball((count, len(problem.point)), problem.norm, rng)
        z = _inside(problem, problem.point + radius * ball, radius)
        return np.asarray(z[problem.changed(z)])

    start = float(np.abs(problem.point).max(initial=0.0)) or 1.0
    return _outcome(problem, _shrink(problem, search, start * LEAST_STEP, trace), trace)
