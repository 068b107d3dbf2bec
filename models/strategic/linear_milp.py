"""Linear classifiers by linear programs (Proposition 22) and by mixed-integer programs with a proof."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline, OnImprovement, Trace
from forcopt.errors import BackendError, DeclarationError
from forcopt.language import Expression, Model, implies
from forcopt.loops.solution import ModelSolution
from forcopt.models.strategic.linear import (
    LinearAgents,
    LinearClassifier,
    StrategicLinearClassifier,
    forbids_false_positives,
)
from forcopt.models.strategic.tolerances import PROVED, REACHED, TIE_MARGIN, TOLERANCE
from forcopt.problem import Handles, Outcome
from forcopt.status import Status

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
        return Outcome(None, problem.upper_bound(), Status.FAILED, tried, message)
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
    sets: dict[str, Any] = {"yes": _indices(agents, "yes", yes), "no": _indices(agents, "no", no)}
    sets["improve"] = _indices(agents, "improve", improve)
    named: dict[int, str] = {}
    for name, members in sets.items():
        for i in members.tolist():
            if i in named:
                raise DeclarationError(f"{name}: agent {i} is in {named[i]} too; the sets must be disjoint")
            named[i] = name
    already = sets["improve"][agents.qualified[sets["improve"]]]
    if already.size:
        message = f"improve: agent {already[0]} is qualified already; the LP then demands more than needed"
        warnings.warn(message, UserWarning, stacklevel=2)
    features = np.flatnonzero(agents.improvable) if sets["improve"].size else np.arange(agents.X.shape[1])
    clock = deadline or Deadline()
    along = [_along(agents, j, backend=backend, clock=clock, **sets) for j in features.tolist()]
    return max((s for s in along if s is not None), key=lambda s: s.margin, default=None)


def _along(
    agents: LinearAgents, feature: int, yes: Array, no: Array, improve: Array, backend: str, clock: Deadline
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
    result = model.solve(backend, time_limit=clock.left)
    if clock.passed:
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
        raise DeclarationError(f"{name}: there is no agent {out[np.argmax(bad)]} of {agents.agents}, from 0")
    return out


_MARGIN = 1e-4
"""The margin of the restricted program, in units of effort."""

_THIN = 0.9 * TOLERANCE
"""An outcome that no classifier attains with this margin is not attained in the evaluation either."""


@StrategicLinearClassifier.algorithm(
    "milp",
    exact=True,
    cites="Ahmadi et al. (2022), Proposition 22; Codato and Fischetti (2006), combinatorial Benders cuts",
)
def milp(
    problem: StrategicLinearClassifier,
    *,
    margin: float = _MARGIN,
    backend: str = "highs",
    time_limit: float | None = None,
    on_improvement: OnImprovement | None = None,
) -> Outcome:
    """Find the best classifier with a margin, then close the gap to the best classifier of all.

    Two programs have a binary for each movement feature and each agent's outcome. The restricted one demands
    `margin` wherever the problem is strict: its solutions are classifiers, its bound does not hold for
    thinner ones. The relaxed one demands no margin: its bound holds for all classifiers. If a classifier of
    value equal to that bound is known, it is optimal. Otherwise a linear program asks for the classifier with
    the largest margin that realizes the relaxed outcomes. If it exists it is a candidate; if not, its
    multipliers name a few agents whose outcomes conflict, a cut excludes them, and the relaxed program is
    solved again.

    Parameters
    ----------
    margin : float, default 0.0001
        Of the restricted program, in units of effort; at least 1e-5, ten times the tolerance of comparisons.
    backend : str, default "highs"
        Takes mixed-integer linear programs and gives duals of linear ones.
    time_limit : float, optional
        Seconds for all programs together.
    on_improvement : OnImprovement, optional
        Called with each better classifier or bound.

    Returns
    -------
    Outcome
        OPTIMAL if the bound over all classifiers is attained; otherwise FEASIBLE with that bound.

    Raises
    ------
    DeclarationError
        For a margin outside of [1e-5, 1).

    Notes
    -----
    Exponential in the number of agents in the worst case: the problem contains the minimum disagreement of
    half-spaces. The number of cuts is finite, for each excludes a pattern of outcomes.
    """
    if margin == 0:
        raise DeclarationError("margin is 0; it must be positive, for the relaxation finds no classifiers")
    deadline = Deadline(time_limit)
    trace = Trace(deadline, on_improvement)
    best = _Best(problem, trace)
    weights, end = problem.truth
    shifted = end + float((weights / problem.costs).max())  # out of the reach of gaming
    nobody = float(problem.scaled()[0].sum(axis=1).max(initial=0.0)) + 2.0  # rejects everyone
    for simple in ((weights, end), (weights, shifted), (problem.costs, nobody)):
        best.offer(LinearClassifier(*simple, problem.feature_names))
    if best.proved() or trace.over:
        return best.outcome("no true positive is left to win" if best.proved() else "")
    restricted = Model("restricted")
    handles = margin_model(problem, restricted, margin=margin)
    assert isinstance(handles.objective, Expression)
    restricted.maximize(handles.objective)
    share = None if deadline.left is None else 0.5 * deadline.left
    found = restricted.solve(backend, time_limit=share)
    if found.point is not None:
        best.offer(handles.decision(found))
    relaxed = Model("relaxed")
    handles = margin_model(problem, relaxed, margin=0.0)
    assert isinstance(handles.objective, Expression)
    relaxed.maximize(handles.objective)
    cuts = 0
    while not best.proved() and not trace.over:
        found = relaxed.solve(backend, time_limit=deadline.left)
        if np.isfinite(found.bound):
            best.lower_bound_to(found.bound)
        if best.proved():
            break
        if found.point is None or trace.over:
            why = found.message or found.status.value
            return best.outcome(f"the bound over all classifiers: {why}", cuts)
        pattern = _Pattern.of(found, handles)
        widest, candidate, conflict = _realize(problem, pattern, backend, deadline.left)
        if candidate is not None:
            value = best.offer(candidate)
            if value >= found.objective - REACHED * max(1.0, abs(found.objective)) and best.proved():
                break
        if widest is None or widest >= _THIN:
            # Attained by a margin too thin for the evaluation, or within the gap of the solver.
            why = "classifiers within the tolerance of comparisons may attain the bound; none was confirmed"
            return best.outcome(why, cuts)
        relaxed.subject_to(_changes(handles, pattern, conflict) >= 1)
        cuts += 1
    return best.outcome(f"{cuts} conflicts of outcomes excluded" if cuts else "", cuts)


class _Best:
    """The best known classifier, and the bound over all classifiers."""

    def __init__(self, problem: StrategicLinearClassifier, trace: Trace) -> None:
        self.problem, self.trace = problem, trace
        self.classifier: LinearClassifier | None = None
        self.value, self.bound = -np.inf, problem.upper_bound()

    def offer(self, classifier: LinearClassifier) -> float:
        """Keep the classifier if it is better; returns its value, minus infinity if it is infeasible."""
        evaluation = self.problem.evaluate(classifier)
        if not evaluation.feasible:
            return -np.inf
        if evaluation.objective > self.value:
            self.classifier, self.value = classifier, evaluation.objective
            self.trace.add(self.value, self.bound)
        return evaluation.objective

    def lower_bound_to(self, bound: float) -> None:
        """Use a bound, if it is better."""
        if bound < self.bound:
            self.bound = max(bound, self.value)
            self.trace.add(self.value, self.bound)

    def proved(self) -> bool:
        """Whether the bound is attained."""
        return self.value >= self.bound - PROVED * max(1.0, abs(self.bound))

    def outcome(self, message: str, iterations: int = 0) -> Outcome:
        status = Status.OPTIMAL if self.proved() else Status.FEASIBLE
        if self.classifier is None:
            status = Status.LIMIT
        if status is not Status.OPTIMAL and self.trace.over:
            message = message or self.trace.end
        bound = max(self.bound, self.value)
        return Outcome(self.classifier, bound, status, iterations, message, self.trace.steps)


class _Pattern(NamedTuple):
    """Outcomes of the agents of positive weight (the last two: of the unqualified ones among them)."""

    feature: int
    accepted: Array
    improves: Array
    falls_short: Array

    @classmethod
    def of(cls, found: ModelSolution, handles: Handles) -> _Pattern:
        """The outcomes that a solution of the relaxed program claims."""
        return cls(
            int(np.argmax(found[handles.moves_along])),
            found[handles.accepted] > 0.5,
            found[handles.improves].sum(axis=1) > 0.5,
            found[handles.falls_short].sum(axis=1) > 0.5,
        )


def _changes(handles: Handles, pattern: _Pattern, conflict: Array) -> Expression:
    """The number of binaries, of the feature and of conflicting agents, that differ from a pattern."""
    changes: Expression = 1 - handles.moves_along[pattern.feature]
    for i in conflict.tolist():
        change = 1 - handles.accepted[i] if pattern.accepted[i] else handles.accepted[i]
        at = handles.unqualified.tolist().index(i) if i in handles.unqualified else -1
        if at >= 0 and pattern.accepted[i]:
            kind = handles.improves if pattern.improves[at] else handles.falls_short
            if pattern.improves[at] or pattern.falls_short[at]:
                change = 1 - kind[at].sum()
        changes = changes + change
    return changes


def _realize(
    problem: StrategicLinearClassifier, pattern: _Pattern, backend: str, time_limit: float | None
) -> tuple[float | None, LinearClassifier | None, Array]:
    """Find the classifier with the largest margin that realizes outcomes.

    Returns
    -------
    tuple[float | None, LinearClassifier | None, Array]
        The largest margin (None if the program was not solved), the classifier, and the agents whose outcomes
        bound the margin.
    """
    counted = problem.agent_weights > 0
    Y, t, s = problem.scaled()
    corner = Y.min(axis=0) if len(Y) else np.zeros(Y.shape[1])
    Y, s = Y[counted] - corner, s - float(t @ corner)
    j, d = pattern.feature, Y.shape[1]
    unqualified = np.flatnonzero(~problem.qualified[counted])
    model = Model("margin")
    fixed = np.arange(d) == j
    # One unit of these variables is 1e-3 of effort: the margin is resolved far below the tolerance.
    a = model.variable("a", d, lower=fixed.astype(float), upper=1.0)
    b, wide = model.variable("b"), model.variable("wide", upper=1.0)
    score = a @ Y.T
    yes, no = np.flatnonzero(pattern.accepted), np.flatnonzero(~pattern.accepted)
    rows = [(yes, model.subject_to((score[yes] + 1 - b) * 1e3 >= 0)) if yes.size else None]
    rows.append((no, model.subject_to((b - score[no] - 1) * 1e3 >= wide * 1e3)) if no.size else None)
    preferred = problem.preferred_features()
    ahead = preferred[: int(np.flatnonzero(preferred == j)[0])]
    if ahead.size:
        model.subject_to((1 - a[ahead]) * 1e3 >= wide * 1e3)
    lack = s - Y[unqualified] @ t
    for which, sign in ((pattern.improves, 1.0), (pattern.falls_short, -1.0)):
        at = np.flatnonzero(which)
        if not at.size:
            continue
        agents = unqualified[at]
        gain = (b - score[agents]) * t[j] - lack[at]
        room = gain * 1e3 if sign > 0 else (-gain - wide) * 1e3
        rows.append((agents, model.subject_to(room >= 0)))
    model.maximize(wide)
    result = model.solve(backend, time_limit=time_limit)
    if result.point is None:
        return (-1.0 if result.status is Status.INFEASIBLE else None), None, np.flatnonzero(counted[counted])
    weights = np.clip(result[a], 0.0, 1.0)
    weights[j] = 1.0
    end = float(result[b]) + float(weights @ corner)
    found = LinearClassifier(weights * problem.costs, end, problem.feature_names)
    if result.status is not Status.OPTIMAL:
        return None, found, np.empty(0, dtype=int)
    duals = [(agents, np.abs(result.dual(row))) for agents, row in filter(None, rows)]
    top = max((float(value.max(initial=0.0)) for _, value in duals), default=0.0)
    conflict = [agents[value > REACHED * top] for agents, value in duals]
    return float(result[wide]), found, np.unique(np.concatenate(conflict)) if conflict else np.empty(0, int)


@StrategicLinearClassifier.formulation(
    "margin-milp",
    cites="Ahmadi et al. (2022), Proposition 22, with a binary for each outcome",
    rank="published",
)
def margin_model(problem: StrategicLinearClassifier, model: Model, *, margin: float = _MARGIN) -> Handles:
    """Write binaries for the movement feature and each agent's outcome, tied to the classifier.

    The paper decides whether all requirements can be met at once; this finds the best that can. Features are
    measured in effort, so that the movement feature's weight is 1, all others lie in [0, 1], and an agent
    within 1 of the threshold is accepted. Strict demands (rejected agents fall short, gaming agents do not
    qualify, features preferred in ties weigh less) hold by at least `margin`: exact among such classifiers
    only, so that the model gives no bound on the problem. With ``margin=0`` the model is a relaxation: its
    bound holds for all classifiers, its point need not be one.

    Parameters
    ----------
    model : Model
        The model to write to.
    margin : float, default 0.0001
        In units of effort; at least 1e-5, ten times the tolerance of comparisons, or 0 for the relaxation.

    Returns
    -------
    Handles
        ``restricts``: whether there is a margin. ``weights`` and ``threshold`` in units of effort;
        ``moves_along``, one binary for each feature; ``accepted``, one for each agent of positive weight;
        ``true_positives`` and ``false_positives``; ``improves`` and ``falls_short``, a row for each of the
        agents ``unqualified``.
    """
    if margin != 0 and not 10 * TOLERANCE <= margin < 1:
        raise DeclarationError(f"margin is {margin!r}; it must be at least {10 * TOLERANCE:g} and below 1")
    slack = 3 * TOLERANCE if margin == 0 else 0.0  # equality in the evaluation is up to the tolerance
    counted = problem.agent_weights > 0
    n, d = int(counted.sum()), problem.X.shape[1]
    Y, t, s = problem.scaled()
    corner = Y.min(axis=0) if len(Y) else np.zeros(d)
    Y, s = Y[counted] - corner, s - float(t @ corner)  # the least bounds for a big M
    qualified, weight = problem.qualified[counted], problem.agent_weights[counted]
    helps = problem.improvable & (t > 0)
    name = model.unused_name

    a = model.variable(name("weights"), d, lower=0, upper=1 + slack)
    most = float(Y.max(axis=0, initial=0).sum()) * (1 + slack) + 1 + margin
    b = model.variable(name("threshold"), lower=0, upper=most)
    along = model.variable(name("moves_along"), d, binary=True)
    accepted = model.variable(name("accepted"), n, binary=True)
    model.subject_to(along.sum() == 1, a >= along, name=model.unused_name("direction"))
    order = problem.preferred_features()
    for place in range(d - 1):  # a feature that would win a tie weighs less than the one moved along
        later = along[order[place + 1 :]].sum()
        model.subject_to(a[order[place]] + margin * later <= 1 + slack, name=name("ties"))

    score = a @ Y.T
    limits = implies(accepted, score + 1 >= b), implies(1 - accepted, score + 1 <= b - margin)
    model.subject_to(*limits, name=name("accepted_if"))
    # An unqualified agent that is accepted improves along one feature, games along an improvable one by too
    # little to qualify, or games along another.
    u, features = np.flatnonzero(~qualified), np.flatnonzero(helps)
    own = (Y[u] @ t)[:, None]
    reaches = own + t[features] >= s - TOLERANCE - slack
    games = not forbids_false_positives(problem.max_false_positives, weight)
    improves = model.variable(name("improves"), reaches.shape, upper=reaches, binary=True)
    falls_short = model.variable(name("falls_short"), reaches.shape, upper=float(games), binary=True)
    games_along = model.variable(name("games"), len(u), upper=float(games), binary=True)
    # the gain in truth of a move as far as acceptance needs
    gain = (b - score[u])[:, None] * t[features]
    lack = s - own
    false = falls_short.sum(axis=1) + games_along
    chosen, gaming = along[features], along[np.flatnonzero(~helps)].sum()
    sorts = accepted[u] == improves.sum(axis=1) + false, improves <= chosen, falls_short <= chosen
    enough = implies(improves, gain >= lack - slack)
    model.subject_to(*sorts, games_along <= gaming, enough, name=name("reasons"))
    if games:
        model.subject_to(implies(falls_short, gain <= lack - margin), name=name("falls_short_if"))
    true_weight = (weight * qualified * accepted).sum() + (weight[u] * improves.sum(axis=1)).sum()
    false_weight = (weight[u] * false).sum()
    if games and problem.max_false_positives is not None:
        model.subject_to(false_weight <= problem.max_false_positives, name=name("max_false_positives"))

    def decision(result: ModelSolution) -> LinearClassifier:
        scaled = np.where(result[along] > 0.5, 1.0, np.clip(result[a], 0.0, 1.0))
        end = float(result[b]) + float(scaled @ corner)
        return LinearClassifier(scaled * problem.costs, end, problem.feature_names)

    parts: dict[str, Any] = {"weights": a, "threshold": b, "moves_along": along, "accepted": accepted}
    parts |= {"unqualified": u, "true_positives": true_weight, "false_positives": false_weight}
    parts |= {"improves": improves, "falls_short": falls_short}
    objective = true_weight - problem.penalty * false_weight
    return Handles(objective, decision, restricts=margin > 0, **parts)
