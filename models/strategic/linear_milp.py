"""The best linear classifier, as one mixed-integer program over all movement features."""

from __future__ import annotations

import numpy as np

from forcopt.errors import DeclarationError
from forcopt.language.constraint import implies
from forcopt.language.model import Model
from forcopt.loops.solution import ModelSolution
from forcopt.models.strategic.linear import LinearClassifier, StrategicLinearClassifier
from forcopt.models.strategic.linear_agents import TOLERANCE, forbids_false_positives
from forcopt.problem import Handles

__all__ = ["milp"]


@StrategicLinearClassifier.formulation(
    "milp", exact=True, cites="Ahmadi et al. (2022), Proposition 22, with a binary for each agent's outcome"
)
def milp(problem: StrategicLinearClassifier, model: Model, *, margin: float = 1e-4) -> Handles:
    """Binaries for the movement feature and for each agent's outcome, tied to the classifier by implications.

    The paper decides whether all requirements can be met at once; this finds the best that can. Features are
    measured in effort, so that the movement feature's weight is 1, all others lie in [0, 1], and who gets
    within 1 of the threshold is accepted. What must be strict (rejected agents fall short, gaming agents do
    not qualify, features preferred in ties weigh less) is met by at least `margin`: exact among such
    classifiers.

    Parameters
    ----------
    problem : StrategicLinearClassifier
        Which.
    model : Model
        To write to.
    margin : float, default 0.0001
        In units of effort; must be well above 1e-6, the tolerance of comparisons.

    Returns
    -------
    Handles
        ``weights`` and ``threshold`` in units of effort; ``moves_along``, one binary for each feature;
        ``accepted``, one for each agent of positive weight; ``true_positives`` and ``false_positives``.
    """
    if not 10 * TOLERANCE <= margin < 1:
        raise DeclarationError(f"margin is {margin!r}; it must be at least {10 * TOLERANCE:g} and below 1")
    counted = problem.agent_weights > 0
    n, d = int(counted.sum()), problem.X.shape[1]
    Y, t, s = problem.scaled()
    corner = Y.min(axis=0) if len(Y) else np.zeros(d)
    Y, s = Y[counted] - corner, s - float(t @ corner)  # the least bounds for a big M
    qualified, weight = problem.qualified[counted], problem.agent_weights[counted]
    helps = problem.improvable & (t > 0)
    name = model.unused_name

    a = model.variable(name("weights"), d, lower=0, upper=1)
    b = model.variable(name("threshold"), lower=0, upper=float(Y.max(axis=0, initial=0).sum()) + 1 + margin)
    along = model.variable(name("moves_along"), d, binary=True)
    accepted = model.variable(name("accepted"), n, binary=True)
    model.subject_to(along.sum() == 1, a >= along)
    order = problem.preferred_features()
    for place in range(d - 1):  # a feature that would win a tie weighs less than the one moved along
        model.subject_to(a[order[place]] + margin * along[order[place + 1 :]].sum() <= 1)

    score = a @ Y.T
    model.subject_to(
        implies(accepted, score + 1 >= b),
        implies(1 - accepted, score + 1 <= b - margin),
    )
    # An unqualified agent that is accepted improves along one feature, games along an improvable one by too
    # little to qualify, or games along another.
    u, features = np.flatnonzero(~qualified), np.flatnonzero(helps)
    reaches = problem.improvable_along()[counted][np.ix_(u, features)]
    games = not forbids_false_positives(problem.max_false_positives, weight)
    improves = model.variable(name("improves"), reaches.shape, upper=reaches, binary=True)
    falls_short = model.variable(name("falls_short"), reaches.shape, upper=float(games), binary=True)
    games_along = model.variable(name("games"), len(u), upper=float(games), binary=True)
    # what moving as far as acceptance needs adds to the truth
    gain = (b - score[u])[:, None] * t[features]
    lack = (s - Y[u] @ t)[:, None]
    false = falls_short.sum(axis=1) + games_along
    model.subject_to(
        accepted[u] == improves.sum(axis=1) + false,
        improves <= along[features],
        falls_short <= along[features],
        games_along <= along[np.flatnonzero(~helps)].sum(),
        implies(improves, gain >= lack),
    )
    if games:
        model.subject_to(implies(falls_short, gain <= lack - margin))
    true_weight = (weight * qualified * accepted).sum() + (weight[u] * improves.sum(axis=1)).sum()
    false_weight = (weight[u] * false).sum()
    if games and problem.max_false_positives is not None:
        model.subject_to(false_weight <= problem.max_false_positives)

    def decision(said: ModelSolution) -> LinearClassifier:
        scaled = np.where(said[along] > 0.5, 1.0, np.clip(said[a], 0.0, 1.0))
        return LinearClassifier(scaled * problem.costs, float(said[b]) + float(scaled @ corner))

    return Handles(
        objective=true_weight - problem.penalty * false_weight,
        decision=decision,
        weights=a,
        threshold=b,
        moves_along=along,
        accepted=accepted,
        true_positives=true_weight,
        false_positives=false_weight,
    )
