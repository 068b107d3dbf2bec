"""A linear classifier that meets every agent's requirement, or a proof that no classifier does (Proposition
22)."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.errors import BackendError, DeclarationError
from forcopt.language.model import Model
from forcopt.models.strategic.linear import LinearClassifier, StrategicLinearClassifier
from forcopt.models.strategic.linear_agents import LinearAgents
from forcopt.models.strategic.tolerances import TIE_MARGIN, TOLERANCE
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["Separator", "find_separator", "separator_lp"]


_WIDEST = 0.01
"""The margin need not be wider, in units of effort."""


@dataclass(frozen=True, eq=False)
class Separator:
    """A linear classifier that meets all requirements.

    Attributes
    ----------
    classifier : LinearClassifier
        With weight 1 for the feature along which agents move.
    feature : int
        That one.
    margin : float
        By how much rejected agents at best fall short, in units of that feature; at most 1, or what an effort
        of 0.01 is worth if that is more.
    """

    classifier: LinearClassifier
    feature: int
    margin: float


@StrategicLinearClassifier.algorithm(
    "separator-lp", cites="Ahmadi et al. (2022), Proposition 22, Theorem 23, Corollary 24", rank="published"
)
def separator_lp(
    problem: StrategicLinearClassifier, *, backend: str = "highs", time_limit: float | None = None
) -> Outcome:
    """One LP per feature: accept the qualified, let all improvable agents improve, reject the others.

    All or nothing: a classifier that does it is optimal, since no other agent can be a true positive
    (Corollary 24); if none does, there is no answer.
    """
    qualified, along = problem.qualified, problem.improvable_along()
    improvable = along.any(axis=1)
    yes, improve = np.flatnonzero(qualified), np.flatnonzero(improvable)
    no = np.flatnonzero(~qualified & ~improvable)
    tried = problem.X.shape[1]
    deadline = Deadline(time_limit)
    try:
        found = find_separator(problem, yes, no, improve, backend=backend, deadline=deadline)
    except TimeoutError:
        return Outcome(None, problem.upper_bound(), Status.LIMIT, tried, deadline.end)
    if found is None:
        message = "no linear classifier accepts the qualified, improves the improvable and rejects all others"
        return Outcome(
            None, bound=problem.upper_bound(), status=Status.FAILED, iterations=tried, message=message
        )
    return Outcome(found.classifier, bound=problem.upper_bound(), status=Status.OPTIMAL, iterations=tried)


def find_separator(
    agents: LinearAgents,
    yes: Iterable[int],
    no: Iterable[int],
    improve: Iterable[int],
    *,
    backend: str = "highs",
    deadline: Deadline | None = None,
) -> Separator | None:
    """Find a linear classifier that accepts `yes`, rejects `no`, and makes `improve` qualify and accepts
    them.

    One LP for each feature that agents may be made to move along: the improvable ones if `improve` names
    anyone. Among all features the one with the largest margin is returned.

    Parameters
    ----------
    agents : LinearAgents
        Any problem whose agents have features.
    yes, no, improve : Iterable[int]
        Disjoint sets of agents, by index; others are unrestricted.
    backend : str, default "highs"
        For the LPs.
    deadline : Deadline, optional
        The clock of the run.

    Returns
    -------
    Separator
        The classifier, or None if no classifier has a margin above the tolerance.

    Raises
    ------
    DeclarationError
        For an index that does not exist, or sets that overlap.
    TimeoutError
        After the deadline.

    Warns
    -----
    UserWarning
        If `improve` holds agents that are qualified already: more than needed is then demanded.

    Examples
    --------
    >>> p = StrategicLinearClassifier(
    ...     X=[[6, 4], [12, 1], [8, 0], [7, 1], [2, 1], [0, 3]], truth=([1, 2], 12), costs=[0.2, 0.2],
    ...     improvable=[True, False])
    >>> find_separator(p, yes=[0, 1], no=[4, 5], improve=[2, 3]).margin
    1.0
    """
    sets = {"yes": _indices(agents, "yes", yes), "no": _indices(agents, "no", no)}
    sets["improve"] = _indices(agents, "improve", improve)
    named: dict[int, str] = {}
    for name, members in sets.items():
        for i in members.tolist():
            if i in named:
                raise DeclarationError(f"{name}: agent {i} is in {named[i]} too; the sets must be disjoint")
            named[i] = name
    already = sets["improve"][agents.qualified[sets["improve"]]]
    if already.size:
        warnings.warn(
            f"improve: agent {already[0]} is qualified already; the LP then demands more than needed",
            UserWarning,
            stacklevel=2,
        )
    features = np.flatnonzero(agents.improvable) if sets["improve"].size else np.arange(agents.X.shape[1])
    clock = deadline or Deadline()
    along = [_along(agents, j, backend=backend, deadline=clock, **sets) for j in features.tolist()]
    return max((s for s in along if s is not None), key=lambda s: s.margin, default=None)


def _along(
    agents: LinearAgents,
    feature: int,
    *,
    yes: Array,
    no: Array,
    improve: Array,
    backend: str,
    deadline: Deadline,
) -> Separator | None:
    """Solve LP (1) to (5) for one movement feature j, with ``a[j] = 1``.

    (3), strict in the paper, is met by the margin, which is as large as possible. (4) and (5) are linear
    because of ``a[j] = 1``; ``a >= 0`` since lowering features is free.
    """
    # In units of effort, so that no unit of the features is too small for the tolerances.
    (Y, truth, needed), c = agents.scaled(), agents.costs
    others = np.arange(Y.shape[1]) != feature
    if improve.size and truth[feature] == 0:
        return None  # raising this feature qualifies no one
    model = Model("separator")
    # A feature that wins ties must weigh less per effort: improvable ones do, and among equals earlier ones.
    rank = np.lexsort((np.arange(len(c)), ~agents.improvable)).argsort()
    most = np.where(rank < rank[feature], 1 - TIE_MARGIN, 1.0)  # (1)
    a = model.variable("a", len(c), lower=np.where(others, 0.0, 1.0), upper=most)
    b = model.variable("b")
    margin = model.variable("margin", lower=0, upper=max(c[feature], _WIDEST))
    reach = Y @ a + 1  # a . x_max
    model.subject_to(reach[yes] >= b, name="yes")  # (2)
    model.subject_to(reach[no] <= b - margin, name="no")  # (3)
    if improve.size:
        meets = b - (Y[improve] * others) @ a  # where along the feature the classifier is met
        # a row for each agent: where it is qualified, and the furthest that it can afford
        qualifies = (needed - (Y[improve] * others) @ truth) / truth[feature]
        model.subject_to(meets >= qualifies, name="qualifies")  # (4)
        model.subject_to(meets <= Y[improve, feature] + 1, name="affords")  # (5)
    model.maximize(margin)
    result = model.solve(backend, time_limit=deadline.left)
    if deadline.passed:
        raise TimeoutError
    if result.status is Status.INFEASIBLE:
        return None
    if result.status is not Status.OPTIMAL:
        raise BackendError(f"the LP for feature {feature} ended as {result.status}: {result.message}")
    wide = float(result[margin])
    if no.size and wide <= 10 * TOLERANCE:
        return None
    weights = np.clip(result[a], 0.0, most) * c / c[feature]
    weights[feature] = 1.0
    unit = float(1 / c[feature])
    found = LinearClassifier(weights, float(result[b]) * unit, agents.feature_names)
    return Separator(found, feature, wide * unit)


def _indices(agents: LinearAgents, name: str, members: Iterable[int]) -> Array:
    out = np.unique(np.array(list(members), dtype=np.int64))
    bad = (out < 0) | (out >= agents.agents)
    if bad.any():
        raise DeclarationError(
            f"{name}: there is no agent {out[np.argmax(bad)]}; the indices go from 0 to {agents.agents - 1}"
        )
    return out
