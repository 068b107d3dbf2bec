"""The Bayes classifier under attack, one label everywhere, and the enumeration of small laws."""

from __future__ import annotations

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.errors import DeclarationError
from forcopt.models.adaptive_robustness.classifiers import NearestNeighbour
from forcopt.models.adaptive_robustness.neighbour_radius import constancy_radii
from forcopt.models.adaptive_robustness.robust_bayes import RobustBayes, RobustClassifier
from forcopt.models.adaptive_robustness.tolerances import MASS, SAME_RADIUS
from forcopt.problem import Outcome
from forcopt.status import Status


def constant_loss(problem: RobustBayes) -> tuple[RobustClassifier, float]:
    """The best constant classifier and its loss."""
    safe = np.zeros(problem.masses.shape, dtype=bool)
    total = problem.masses.sum(axis=0)
    safe[:, int(total.argmax())] = True
    return problem.classifier(safe), float(problem.masses[~safe].sum())


@RobustBayes.algorithm("constant", cites="Chowdhury, Urner (2022), section 3", rank="published")
def constant(problem: RobustBayes, *, time_limit: float | None = None) -> Outcome:
    """Predict the likeliest label everywhere; the bound is the Bayes risk.

    Parameters
    ----------
    time_limit : float, optional
        Of no effect on a closed form.
    """
    decision, loss = constant_loss(problem)
    return Outcome(decision, min(problem.bayes_risk, loss))


def _safe(problem: RobustBayes, deadline: Deadline) -> Array:
    """Where the nearest neighbour on the likeliest labels predicts one label in the whole ball."""
    if problem.norm != "l2" or not isinstance(problem.domain, str):
        raise DeclarationError("bayes: margins are known for norm 'l2' and domain 'space'")
    label = problem.bayes_labels
    atoms = problem.masses.sum(axis=1) > 0
    nn = NearestNeighbour(problem.points[atoms], label[atoms])
    radii = constancy_radii(nn, problem.points, label, at_most=problem.radii, deadline=deadline)
    safe = np.zeros(problem.masses.shape, dtype=bool)
    safe[np.arange(len(label)), label] = (radii >= problem.radii * (1 - SAME_RADIUS)) & atoms
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


MOST_PAIRS = 24
_CHUNK = 1 << 14


@RobustBayes.algorithm("enumeration", exact=True, cites="by definition", rank="oracle")
def enumeration(problem: RobustBayes, *, time_limit: float | None = None) -> Outcome:
    """Try every set of the pairs of positive mass; at most 24 of them."""
    pairs = np.argwhere(problem.masses > 0)
    if len(pairs) > MOST_PAIRS:
        raise DeclarationError(
            f"there are {len(pairs)} pairs of positive mass; enumeration takes {MOST_PAIRS} at most"
        )
    deadline = Deadline(time_limit)
    number = np.full(problem.masses.shape, -1)
    number[tuple(pairs.T)] = np.arange(len(pairs))
    edges = problem.conflicts
    a, b = number[edges[:, 0], edges[:, 1]], number[edges[:, 2], edges[:, 3]]
    mass = problem.masses[tuple(pairs.T)]
    decision, loss = constant_loss(problem)
    total = float(problem.masses.sum())
    for first in range(0, 1 << len(pairs), _CHUNK):
        if deadline.passed:
            return Outcome(decision, min(problem.bayes_risk, loss), Status.FEASIBLE, message="time ran out")
        codes = np.arange(first, min(first + _CHUNK, 1 << len(pairs)))
        bits = (codes[:, None] >> np.arange(len(pairs))) & 1 == 1
        fits = ~(bits[:, a] & bits[:, b]).any(axis=1)
        value = total - bits[fits] @ mass
        if len(value) and value.min() < loss - MASS:
            safe = np.zeros(problem.masses.shape, dtype=bool)
            safe[tuple(pairs.T)] = bits[fits][int(value.argmin())]
            decision, loss = problem.classifier(safe), float(value.min())
    return Outcome(decision, float(problem.masses[~decision.safe].sum()))
