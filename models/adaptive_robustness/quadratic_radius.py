"""The radius of the nearest neighbour: a quadratic program for each atom with another label, all rows."""

from __future__ import annotations

import math

import numpy as np

from forcopt.clock import Deadline
from forcopt.language.atoms import sum_squares
from forcopt.language.model import Model
from forcopt.models.adaptive_robustness.classifiers import NearestNeighbour
from forcopt.models.adaptive_robustness.robustness_radius import RobustnessRadius
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["qp"]


@RobustnessRadius.algorithm(
    "qp", exact=True, cites="Chowdhury, Urner (2022), Definition 8, as quadratic programs"
)
def qp(problem: RobustnessRadius, *, backend: str = "clarabel", time_limit: float | None = None) -> Outcome:
    """Project the point on the cell of each atom by a solver, with a row for each atom of the label."""
    nn, x = problem.classifier, problem.point
    assert isinstance(nn, NearestNeighbour)
    if problem.is_misclassified:
        return Outcome(x.copy(), 0.0)
    same = nn.points[nn.labels == problem.label]
    others = nn.points[nn.labels != problem.label]
    if not len(others):
        return Outcome(None, status=Status.INFEASIBLE, message="all atoms have one label")
    deadline = Deadline(time_limit)
    apart = np.linalg.norm(others - x, axis=1)
    own = float(np.linalg.norm(same - x, axis=1).min())
    order = np.argsort(apart, kind="stable")
    best, radius, bound, solved = others[order[0]], float(apart[order[0]]), math.inf, 0
    words = ""
    for j in order:
        least = max(0.0, (float(apart[j]) - own) / 2)
        if least >= radius:
            break
        if deadline.passed:
            bound = min(bound, least)
            break
        model, scale = Model(), float(apart[j])
        move = model.variable("move", len(x), lower=-2, upper=2)
        away = (same - x) / scale
        rows = (others[j] - x) / scale - away
        sizes = np.linalg.norm(rows, axis=1)
        kept = sizes > 0
        rights = (1 - (away**2).sum(axis=1)) / 2
        if kept.any():
            model.subject_to((rows[kept] / sizes[kept, None]) @ move >= rights[kept] / sizes[kept])
        model.minimize(sum_squares(move))
        result = model.solve(backend, time_limit=deadline.left)
        solved += 1
        if result.status is not Status.OPTIMAL:  # an unsolved program proves the triangle's bound only
            bound = min(bound, least)
            words = f"{backend} did not solve a program: {result.status} {result.message}"
            if result.status is Status.LIMIT:
                break
            continue
        moved = x + scale * result[move]
        if (size := float(np.linalg.norm(moved - x))) < radius:
            best, radius = moved, size
    done = bound >= radius
    return Outcome(best, min(bound, radius), None if done else Status.FEASIBLE, solved, words)
