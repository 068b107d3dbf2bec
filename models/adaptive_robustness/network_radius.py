"""The radius of a network of rectified linear units: a mixed-integer program, with bounds by intervals."""

from __future__ import annotations

import math

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline, Trace
from forcopt.errors import DeclarationError
from forcopt.language.atoms import norm as norm_of
from forcopt.language.constraint import implies
from forcopt.language.expression import Expression
from forcopt.language.model import Model, Variable
from forcopt.loops.solution import ModelSolution
from forcopt.models.adaptive_robustness.attacks import attack
from forcopt.models.adaptive_robustness.classifiers import ReLUNetwork
from forcopt.models.adaptive_robustness.geometry import length
from forcopt.models.adaptive_robustness.robustness_radius import RobustnessRadius
from forcopt.models.adaptive_robustness.tolerances import KNOWN, LEAST_MOVE, LEAST_UNIT, STEPS, SUMS
from forcopt.problem import Handles

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
    if problem.norm != "linf":
        raise DeclarationError(f"norm is {problem.norm!r}; milp takes 'linf', and misocp 'l2'")
    return _write(problem, model)


@RobustnessRadius.formulation("misocp", exact=True, cites="Tjeng, Xiao, Tedrake (2019), with one cone")
def misocp(problem: RobustnessRadius, model: Model) -> Handles:
    """As the MILP, with a second-order cone for the length of the move. Networks, norm ``"l2"``.

    Returns
    -------
    Handles
        As for the MILP.
    """
    if problem.norm != "l2":
        raise DeclarationError(f"norm is {problem.norm!r}; misocp takes 'l2', and milp 'linf'")
    return _write(problem, model)


def _write(problem: RobustnessRadius, model: Model) -> Handles:
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
        raise DeclarationError(
            "box is missing: no move that changes the label was found, so inputs have no bounds"
        )
    name = model.unused_name
    unit = max(float((high - low).max()) / 2, LEAST_UNIT)  # moves count in units of the ball
    move = model.variable(name("move"), d, lower=(low - x) / unit, upper=(high - x) / unit)
    radius = model.variable(name("radius"), lower=0, upper=most / unit)
    if problem.norm == "linf":
        model.subject_to(move <= radius, -move <= radius, name=model.unused_name("radius"))
    else:
        model.subject_to(norm_of(move) <= radius, name=model.unused_name("radius"))
    values: Expression = move * unit + x
    bottom, top = low, high
    layers: list[tuple[Variable, Variable, Array]] = []
    for k, (matrix, shift) in enumerate(zip(net.weights[:-1], net.biases[:-1], strict=True)):
        before = values @ matrix + shift
        least, largest = _interval(matrix, shift, bottom, top)
        if k == 0:
            least, largest = _first_layer(problem, matrix, shift, most, least, largest)
        open_units = np.flatnonzero((least < 0) & (largest > 0))
        after = model.variable(
            name(f"unit{k}"), len(shift), lower=np.maximum(least, 0), upper=np.maximum(largest, 0)
        )
        always = np.flatnonzero((least >= 0) & (largest > 0))
        if len(always):
            model.subject_to(after[always] == before[always], name=model.unused_name(f"layer_{k}_active"))
        if len(open_units):
            on = model.variable(name(f"on{k}"), len(open_units), binary=True)
            # the expression with its own bounds, for a big M as small as intervals give
            sum_ = model.variable(
                name(f"sum{k}"), len(open_units), lower=least[open_units], upper=largest[open_units]
            )
            model.subject_to(
                sum_ == before[open_units],
                after[open_units] >= sum_,
                after[open_units] <= largest[open_units] * on,
                implies(on, after[open_units] <= sum_),
                name=model.unused_name(f"layer_{k}"),
            )
            layers.append((on, after, open_units))
        values, bottom, top = after, np.maximum(least, 0), np.maximum(largest, 0)
    output = (values @ net.weights[-1] + net.biases[-1])[0]
    scale = float(np.abs(net.weights[-1]).max() or 1.0)
    model.subject_to(sign * output / scale <= 0, name=model.unused_name("other_label"))

    def decision(result: ModelSolution) -> Array:
        return _confirmed(problem, np.clip(x + unit * result[move], *problem.limits))

    def start(decision: Array) -> dict[Variable, Array]:
        moved = np.asarray(decision, dtype=float)
        return {move: (moved - x) / unit}

    return Handles(
        radius * 1.0, decision, start, unit=unit, moved=move * unit + x, radius=radius * unit, output=output
    )


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


def _first_layer(
    problem: RobustnessRadius, matrix: Array, shift: Array, most: float, least: Array, largest: Array
) -> tuple[Array, Array]:
    """In the Euclidean ball, the first sums move by at most the length of their weights."""
    if problem.norm != "l2" or math.isinf(most):
        return least, largest
    center, spread = problem.point @ matrix + shift, np.linalg.norm(matrix, axis=0) * most * (1 + SUMS)
    return np.maximum(least, center - spread), np.minimum(largest, center + spread)


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
