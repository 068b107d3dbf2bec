"""The Bayes classifier under attack: near optimal where little mass is near its border."""

from __future__ import annotations

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.errors import DeclarationError
from forcopt.models.adaptive_robustness.classifiers import NearestNeighbour
from forcopt.models.adaptive_robustness.cutting_plane_radius import constancy_radii
from forcopt.models.adaptive_robustness.robust_bayes import RobustBayes
from forcopt.problem import Outcome

__all__ = ["bayes"]


def _safe(problem: RobustBayes, deadline: Deadline) -> Array:
    """Where the nearest neighbour on the likeliest labels predicts one label in the whole ball."""
    if problem.norm != "l2" or not isinstance(problem.domain, str):
        raise DeclarationError("bayes: margins are known for norm 'l2' and domain 'space'")
    label = problem.bayes_labels
    atoms = problem.masses.sum(axis=1) > 0
    nn = NearestNeighbour(problem.points[atoms], label[atoms])
    radii = constancy_radii(nn, problem.points, label, at_most=problem.radii, deadline=deadline)
    safe = np.zeros(problem.masses.shape, dtype=bool)
    safe[np.arange(len(label)), label] = (radii >= problem.radii * (1 - 1e-9)) & atoms
    return safe


def margin_mass(problem: RobustBayes) -> float:
    """The mass whose ball meets another likeliest label: Phi(r)."""
    lost = ~_safe(problem, Deadline()).any(axis=1)
    return float(problem.masses[lost].sum())


@RobustBayes.algorithm(
    "bayes", guarantee=margin_mass, cites="Chowdhury, Urner (2022), Theorem 5", rank="published"
)
def bayes(problem: RobustBayes, *, time_limit: float | None = None) -> Outcome:
    """Predict the likeliest label, extended to the nearest neighbour; lose the points near its border.

    Returns
    -------
    Outcome
        Its loss is above the least by at most the margin rate Phi(r) (Theorem 5, point by point: r may
        differ). If time runs out, points whose margin is not proved yet count as lost.
    """
    safe = _safe(problem, Deadline(time_limit))
    lost = ~safe.any(axis=1)
    decision = problem.classifier(safe)
    value = float(problem.masses[~safe].sum())
    return Outcome(decision, min(problem.bayes_risk, value), guarantee=float(problem.masses[lost].sum()))
