"""The least vertex cover of the conflicts: linear and integer programs, and the primal-dual method."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.errors import DeclarationError
from forcopt.language.model import Model, Variable
from forcopt.language.objective import lexicographic, minimize
from forcopt.loops.solution import ModelSolution
from forcopt.models.adaptive_robustness.bayes import constant_loss
from forcopt.models.adaptive_robustness.max_flow import network, push, saturated_cover
from forcopt.models.adaptive_robustness.robust_bayes import RobustBayes, RobustClassifier
from forcopt.models.adaptive_robustness.tolerances import HALF
from forcopt.problem import Handles, Outcome


@RobustBayes.formulation(
    "lp",
    exact=True,
    cites="Chowdhury, Urner (2022), section 3, as a vertex cover; Bhagoji et al. (2019)",
    whole="milp",
)
def lp(problem: RobustBayes, model: Model, *, agree: bool = False) -> Handles:
    """The vertex cover of least weight, whole as the conflict graph is bipartite. Two labels.

    Parameters
    ----------
    agree : bool
        Among the classifiers of least loss, one that predicts the likeliest label on the most mass.

    Returns
    -------
    Handles
        ``lost``, a variable for each pair of positive mass, shape ``(pairs,)``; ``pairs``, their points and
        labels; ``loss``.
    """
    if problem.labels != 2:
        raise DeclarationError(f"the lp is whole for 2 labels, and there are {problem.labels}: use milp")
    return _write(problem, model, integer=False, agree=agree)


@RobustBayes.formulation("milp", exact=True, cites="the vertex cover with binaries, for any number of labels")
def milp(problem: RobustBayes, model: Model, *, agree: bool = False) -> Handles:
    """The vertex cover of least weight with a binary for each pair; clique rows for each point.

    Parameters
    ----------
    agree : bool
        See `lp`.

    Returns
    -------
    Handles
        As for `lp`.
    """
    return _write(problem, model, integer=True, agree=agree)


def _write(problem: RobustBayes, model: Model, integer: bool, agree: bool) -> Handles:
    positive = problem.masses > 0
    number = np.full(positive.shape, -1)
    pairs = np.argwhere(positive)
    number[positive] = np.arange(len(pairs))
    mass = problem.masses[positive]
    unit = float(mass.mean())
    lost = model.variable(model.unused_name("lost"), len(pairs), lower=0, upper=1, integer=integer)
    edges = problem.conflicts
    left, right = number[edges[:, 0], edges[:, 1]], number[edges[:, 2], edges[:, 3]]
    cover = sp.csr_array(
        (np.ones(2 * len(edges)), (np.tile(np.arange(len(edges)), 2), np.concatenate([left, right]))),
        shape=(len(edges), len(pairs)),
    )
    if len(edges):
        model.subject_to(cover @ lost >= 1, name=model.unused_name("conflict"))
    if problem.labels > 2:  # a point is safe with one label at most: stronger than its pairs of labels
        several = np.flatnonzero(positive.sum(axis=1) > 2)
        for point in several:
            own = number[point][positive[point]]
            model.subject_to(lost[own].sum() >= len(own) - 1, name=model.unused_name("point"))
    loss = (lost * (mass / unit)).sum()
    objective: object = loss
    if agree:
        agrees = pairs[:, 1] == problem.bayes_labels[pairs[:, 0]]
        weight = problem.masses.sum(axis=1)[pairs[:, 0]] * agrees / unit
        objective = lexicographic([minimize(loss), minimize((lost * weight).sum())])

    def decision(result: ModelSolution) -> RobustClassifier:
        safe = np.zeros(positive.shape, dtype=bool)
        safe[positive] = _rounded(1 - result[lost], pairs[:, 1], integer)
        return problem.classifier(safe)

    def start(decision: RobustClassifier) -> dict[Variable, Array]:
        return {lost: 1.0 - problem.classifier(decision.safe).safe[positive]}

    return Handles(objective, decision, start, unit=unit, lost=lost, pairs=pairs, loss=loss * unit)  # type: ignore[arg-type]


def _rounded(safe: Array, label: Array, integer: bool) -> Array:
    """Whole values of an optimal point: of any, as every threshold between the labels gives an optimum."""
    if integer:
        return safe > 0.5
    return np.where(label == 0, safe > 0.5 + HALF, safe > 0.5 - HALF / 2)


@RobustBayes.algorithm(
    "primal-dual",
    guarantee=lambda problem: constant_loss(problem)[1],
    cites="Bar-Yehuda, Even (1981)",
    rank="published",
)
def primal_dual(problem: RobustBayes, *, time_limit: float | None = None) -> Outcome:
    """Match conflicting masses greedily until none can be; lose the matched masses. Two labels.

    Returns
    -------
    Outcome
        The loss is at most twice the bound, the mass that was matched.
    """
    if problem.labels != 2:
        raise DeclarationError(f"primal-dual is for 2 labels, and there are {problem.labels}: use milp")
    decision, loss = constant_loss(problem)
    bound = problem.bayes_risk
    conflicts = problem.find_conflicts(Deadline(time_limit))
    if conflicts is None:
        return Outcome(decision, min(bound, loss), message="time ran out before all conflicts were found")
    net, n = network(problem, conflicts), len(problem.points)
    matched = push(net, (np.empty(n, np.int64), np.empty(n, np.int64))) / net.denominator
    cover = saturated_cover(problem, net)
    value = float(problem.masses[~cover.safe].sum())
    if value < loss:
        decision, loss = cover, value
    bound = min(max(bound, matched), loss)
    return Outcome(decision, bound, guarantee=loss - bound)
