"""The radius of any network: attacks from above; mixed-integer programs for rectified linear units."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from forcopt.arrays import Array, Seed
from forcopt.clock import Deadline, OnImprovement, Trace
from forcopt.errors import DeclarationError, require
from forcopt.language import Expression, Model, Variable, implies
from forcopt.language.atoms import norm as norm_of
from forcopt.loops.solution import ModelSolution
from forcopt.models.adaptive_robustness import tolerances
from forcopt.models.adaptive_robustness.classifiers import ReLUNetwork
from forcopt.models.adaptive_robustness.geometry import Norm, draw_in_ball, dual_length, length
from forcopt.models.adaptive_robustness.robustness_radius import RobustnessRadius
from forcopt.models.adaptive_robustness.tolerances import KNOWN, LEAST_MOVE, LEAST_STEP, STEPS, SUMS
from forcopt.problem import Handles, Outcome
from forcopt.status import Status

_DOUBLINGS = 40


@RobustnessRadius.algorithm("gradient", cites="Madry et al. (2018), projected descent", rank="published")
def gradient(
    problem: RobustnessRadius,
    *,
    restarts: int = 20,
    steps: int = 60,
    seed: Seed = 0,
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
            unit = slopes / np.where(size > 0, size, 1) if problem.norm == "l2" else np.sign(slopes)
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
    for _ in range(_DOUBLINGS):
        best = _closest(problem, search(min(radius, widest)))
        if best is not None or trace.over or radius >= widest:
            break
        radius *= 2
    if best is None:
        return None
    trace.add(float(problem.lengths(best)), 0.0)
    misses = 0
    while misses < 2 and not trace.over:
        least = float(problem.lengths(best))
        if least == 0:
            break
        nearer = _closest(problem, search(least * (0.99 if misses else 0.9)))
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
    shares = np.stack([keep, np.minimum(keep * (1 + tolerances.BACK), 1.0), np.ones(len(found))])
    for k in problem.lengths(keep[:, None] * (found - problem.point) + problem.point).argsort():
        for share in shares[:, k]:  # one by one: side by side, sums may be rounded otherwise
            moved = found[k] if share == 1 else problem.point + share * (found[k] - problem.point)
            if problem.changed(moved[None])[0]:
                return np.asarray(moved)
    return None


@RobustnessRadius.algorithm("draws", cites="Chowdhury, Urner (2022), section 6", rank="published")
def draws(
    problem: RobustnessRadius,
    *,
    count: int = 1000,
    seed: Seed = 0,
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
    require(count >= 1, "count", count, "be at least 1")
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


_BESIDE = 200
"""Random points beside a solver's point at which a change of label is looked for, at each distance."""


@RobustnessRadius.formulation("milp", exact=True, cites="Tjeng, Xiao, Tedrake (2019), equations (2) to (9)")
def milp(problem: RobustnessRadius, model: Model) -> Handles:
    """A binary for each unit whose sign is open in the ball. Networks, norm ``"linf"``.

    The ball reaches to a move found by descent; without one there is the box. So intervals of all units are
    finite, and implications get their big M from them. Units whose sign is fixed need no binary.

    Returns
    -------
    Handles
        ``moved``, shape ``(d,)``; ``radius``; ``output`` of the network.
    """
    return _write(problem, model, "linf")


@RobustnessRadius.formulation("misocp", exact=True, cites="Tjeng, Xiao, Tedrake (2019), with one cone")
def misocp(problem: RobustnessRadius, model: Model) -> Handles:
    """As the MILP, with a second-order cone for the length of the move. Networks, norm ``"l2"``.

    Returns
    -------
    Handles
        As for the MILP.
    """
    return _write(problem, model, "l2")


def _write(problem: RobustnessRadius, model: Model, norm: Norm) -> Handles:
    if problem.norm != norm:
        raise DeclarationError(f"norm is {problem.norm!r}; milp takes 'linf', and misocp 'l2'")
    net, x, d = problem.classifier, problem.point, len(problem.point)
    assert isinstance(net, ReLUNetwork)
    if problem.is_misclassified:
        return _unmoved(problem, model)
    sign = 1.0 if problem.label == 1 else -1.0
    low, high = problem.limits
    known = attack(problem, 5, 20, np.random.default_rng(0), Trace(Deadline(5.0)))
    most = math.inf if known is None else float(problem.lengths(known)) * (1 + KNOWN) + LEAST_MOVE
    low, high = np.maximum(low, x - most), np.minimum(high, x + most)
    if not np.isfinite(high - low).all():
        raise DeclarationError("box is missing: no move that changes the label gives inputs bounds")
    name = model.unused_name
    unit = max(float((high - low).max()) / 2, tolerances.LEAST_UNIT)  # moves count in units of the ball
    move = model.variable(name("move"), d, lower=(low - x) / unit, upper=(high - x) / unit)
    radius = model.variable(name("radius"), lower=0, upper=most / unit)
    inside = (move <= radius, -move <= radius) if problem.norm == "linf" else (norm_of(move) <= radius,)
    model.subject_to(*inside, name=name("radius"))
    values: Expression = move * unit + x
    bottom, top = low, high
    for k, (matrix, shift) in enumerate(zip(net.weights[:-1], net.biases[:-1], strict=True)):
        before = values @ matrix + shift
        least, largest = _interval(matrix, shift, bottom, top)
        if k == 0 and problem.norm == "l2" and not math.isinf(most):
            # In the ball, the first sums move by at most the length of their weights.
            center, spread = x @ matrix + shift, np.linalg.norm(matrix, axis=0) * most * (1 + SUMS)
            least, largest = np.maximum(least, center - spread), np.minimum(largest, center + spread)
        open_units = np.flatnonzero((least < 0) & (largest > 0))
        bottom, top = np.maximum(least, 0), np.maximum(largest, 0)
        after = model.variable(name(f"unit{k}"), len(shift), lower=bottom, upper=top)
        always = np.flatnonzero((least >= 0) & (largest > 0))
        if len(always):
            model.subject_to(after[always] == before[always], name=name(f"layer_{k}_active"))
        if len(open_units):
            on = model.variable(name(f"on{k}"), len(open_units), binary=True)
            # the expression with its own bounds, for a big M as small as intervals give
            low_sum, high_sum, own = least[open_units], largest[open_units], after[open_units]
            sum_ = model.variable(name(f"sum{k}"), len(open_units), lower=low_sum, upper=high_sum)
            rows = (sum_ == before[open_units], own >= sum_, own <= high_sum * on, implies(on, own <= sum_))
            model.subject_to(*rows, name=name(f"layer_{k}"))
        values = after
    output = (values @ net.weights[-1] + net.biases[-1])[0]
    scale = float(np.abs(net.weights[-1]).max() or 1.0)
    model.subject_to(sign * output / scale <= 0, name=name("other_label"))

    def decision(result: ModelSolution) -> Array:
        return _confirmed(problem, np.clip(x + unit * result[move], *problem.limits))

    def start(decision: Array) -> dict[Variable, Array]:
        return {move: (np.asarray(decision, dtype=float) - x) / unit}

    parts: dict[str, Any] = {"moved": move * unit + x, "radius": radius * unit, "output": output}
    return Handles(radius * 1.0, decision, start, unit=unit, **parts)


def _unmoved(problem: RobustnessRadius, model: Model) -> Handles:
    """The radius 0 of a point with another label, without the network."""
    assert isinstance(problem.classifier, ReLUNetwork)
    radius = model.variable(model.unused_name("radius"), lower=0)
    return Handles(
        radius * 1.0,
        lambda result: problem.point.copy(),
        lambda decision: {radius: np.zeros(())},
        moved=0.0 * radius + problem.point,
        radius=radius * 1.0,
        output=0.0 * radius + float(problem.classifier.outputs(problem.point[None])[0]),
    )


def _interval(matrix: Array, shift: Array, bottom: Array, top: Array) -> tuple[Array, Array]:
    """Bounds of ``values @ matrix + shift`` for values between bounds, with room for rounding."""
    plus, minus = np.maximum(matrix, 0), np.minimum(matrix, 0)
    least, largest = bottom @ plus + top @ minus + shift, top @ plus + bottom @ minus + shift
    room = SUMS * (1 + np.abs(least) + np.abs(largest))
    return least - room, largest + room


def _confirmed(problem: RobustnessRadius, moved: Array) -> Array:
    """A point beside a solver's at which the network itself changes its label, if one is near.

    A solver keeps rows up to its tolerance. Steps of Newton's method lead to the output 0, from the point
    and, as gradients mislead at kinks, from points beside it, the nearest first.
    """
    net = problem.classifier
    assert isinstance(net, ReLUNetwork)
    sign, d = (1.0 if problem.label == 1 else -1.0), len(moved)
    reach = max(float(problem.lengths(moved)), LEAST_MOVE)
    rng, outward = np.random.default_rng(0), (moved - problem.point) / reach
    for step in (0.0, *reach * np.geomspace(*STEPS)):
        beside = np.concatenate([np.zeros((1, d)), outward[None], rng.uniform(-1, 1, (_BESIDE, d))])
        near = moved + step * beside[: None if step else 1]
        for _ in range(4):
            near = np.clip(near, *problem.limits)
            changed = near[problem.changed(near)]
            for k in problem.lengths(changed).argsort():  # alone: many at once may round otherwise
                if problem.changed(changed[k][None])[0]:
                    return np.asarray(changed[k])
            outputs, slopes = net.gradients(near)
            direction = np.sign(slopes) if problem.norm == "linf" else slopes
            gain = (direction * slopes).sum(axis=1)
            with np.errstate(all="ignore"):  # flat pieces: such moves are no numbers, or far
                size = sign * outputs / gain + step / length(direction, problem.norm)
                move = sign * size[:, None] * direction
                close = length(move, problem.norm) <= reach / 100
            near = near - np.where(close[:, None], move, 0.0)
    return moved
