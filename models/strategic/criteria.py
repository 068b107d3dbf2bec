"""Sets of criteria: greedy deletion (Algorithm 1), programs of the responses, and enumeration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.language import Expression, Model, Variable, leximin, maximize
from forcopt.loops.solution import ModelSolution
from forcopt.models.strategic.problem import (
    LeastEffortClassification,
    OpenCriteria,
    StrategicClassification,
    StrategicGraph,
    spans,
)
from forcopt.models.strategic.tolerances import POSITIVE
from forcopt.problem import Handles, Outcome
from forcopt.status import Status


@StrategicClassification.algorithm(
    "greedy-deletion", cites="Ahmadi et al. (2022), Algorithm 1, Theorem 2", rank="published"
)
def greedy_deletion(problem: StrategicClassification, *, time_limit: float | None = None) -> Outcome:
    """Withdraw criteria until no agent games: optimal where no false positive is allowed, otherwise feasible.

    The set that is left contains every set on which no agent games, and each agent that qualifies on any such
    set qualifies on this one. So it is optimal for weights, groups and values of any kind (properties a to
    d).
    """
    is_open, passes = largest_gaming_free_set(problem)
    decision = OpenCriteria(np.flatnonzero(is_open).tolist())
    proved = problem.allows_no_false_positive
    return Outcome(decision, status=Status.OPTIMAL if proved else Status.APPROXIMATE, iterations=passes)


def largest_gaming_free_set(problem: StrategicGraph) -> tuple[Array, int]:
    """Give the largest set of criteria on which no agent (of positive weight) games, and the number of
    passes.

    A pass deletes every criterion that some agent games on. That is safe: an agent's cheapest open criterion
    stays its cheapest in any smaller set that holds it, so none of the deleted ones is in any gaming-free
    set. Pointers into the agents' lists only move forward, and a pass visits only agents whose criterion was
    just deleted: O(E) in all, after sorting.

    Parameters
    ----------
    problem : StrategicGraph
        Which.

    Returns
    -------
    tuple[Array, int]
        The mask of the set, shape ``(m,)``, and how many passes deleted something (Proposition 1: at most m).
    """
    graph, m = problem.graph, problem.criteria
    is_open = np.ones(m + 1, dtype=bool)  # the last entry means "none"
    edges = len(graph.criterion)
    criterion = np.append(graph.criterion, m)
    at, end = graph.start[:-1].copy(), graph.start[1:]
    chosen = np.where(at < end, criterion[np.minimum(at, edges)], m)
    entries = np.ones(edges, np.int8), graph.criterion, graph.start
    by_criterion = sp.csr_array(entries, shape=(problem.agents, m)).tocsc()
    counted = problem.agent_weights > 0
    moving = np.flatnonzero(counted)
    passes = 0
    while True:
        behind = moving[~is_open[chosen[moving]]]
        while behind.size:
            at[behind] += 1
            chosen[behind] = np.where(at[behind] < end[behind], criterion[at[behind]], m)
            behind = behind[~is_open[chosen[behind]]]
        settled = moving[chosen[moving] < m]
        gamed = np.unique(chosen[settled[~graph.improves[at[settled]]]])
        if not gamed.size:
            return is_open[:m], passes
        passes += 1
        is_open[gamed] = False
        first, count = by_criterion.indptr[gamed], np.diff(by_criterion.indptr)[gamed]
        neighbours = by_criterion.indices[spans(first, count)]
        moving = neighbours[chosen[neighbours] == np.repeat(gamed, count)]
        moving = moving[counted[moving]]


LEVELS = np.linspace(0, 1, 20)


@StrategicClassification.formulation(
    "lp",
    cites="Ahmadi et al. (2022), section 3; the relaxation's exactness follows from Theorem 2",
    whole="milp",
)
def lp(problem: StrategicClassification, model: Model) -> Handles:
    """Relax the binaries: the value bounds the optimum, and equals it where no false positive is allowed.

    Without false positives, every criterion of the support is met first by an agent that improves (the
    closest row of a gaming edge forces a better improving one into the support), so that opening the support
    reaches the relaxation's value. Otherwise the support may break the limit: the best set is opened among
    the support, its criteria that the relaxation opens most (at 20 levels), and greedy deletion's
    set.

    Returns
    -------
    Handles
        ``is_open``, shape ``(m,)``; ``true_positives`` and ``false_positives`` by group.
    """
    responses = write_responses(problem, model, integer=False)
    true, false = values_by_group(problem, responses)
    values = true - problem.penalty * false

    def decision(result: ModelSolution) -> OpenCriteria:
        z = result[responses.is_open]
        levels = np.unique(np.quantile(z[z > POSITIVE], LEVELS)) if (z > POSITIVE).any() else [1.0]
        tried = [z >= level - POSITIVE / 2 for level in levels]  # the support first
        tried = [*tried, largest_gaming_free_set(problem)[0]]
        sets = [OpenCriteria(np.flatnonzero(s).tolist()) for s in tried]
        evaluation = [(problem.evaluate(s), s) for s in sets]
        return max(((e.objective, s) for e, s in evaluation if e.feasible), key=lambda pair: pair[0])[1]

    objective = values.sum() if problem.groups is None else leximin(values)
    parts: dict[str, Any] = {"is_open": responses.is_open, "true_positives": true, "false_positives": false}
    return Handles(objective, decision, **parts)


@StrategicClassification.formulation("milp", exact=True, cites="Ahmadi et al. (2022), section 3")
def milp(problem: StrategicClassification, model: Model, *, all_rows: bool = False) -> Handles:
    """Choose the criteria by binaries; closest-assignment rows make each agent take its best open edge.

    Parameters
    ----------
    all_rows : bool, default False
        Also write the rows that the problem's own objective never presses against, for models that use the
        responses in ways of their own.

    Returns
    -------
    Handles
        ``is_open``, shape ``(m,)``; ``values``, ``true_positives`` and ``false_positives`` by group, shape
        ``(groups,)``; ``accepted`` and ``improved``, shape ``(n,)``: which agents meet a criterion, and which
        of these are qualified then. Agents' responses have at least these true and at most these false
        positives, and just these at an optimum, or at every point with `all_rows`.
    """
    responses = write_responses(problem, model, integer=True, all_rows=all_rows)
    true, false = values_by_group(problem, responses)
    values = true - problem.penalty * false
    # without all rows an objective, not an expression: before the optimum, the model may understate the value
    total = values.sum()
    return Handles(
        objective=leximin(values) if problem.groups is not None else total if all_rows else maximize(total),
        decision=lambda result: OpenCriteria(np.flatnonzero(result[responses.is_open] > 0.5).tolist()),
        start=lambda decision: {responses.is_open: problem.read_open(decision)},
        is_open=responses.is_open,
        values=values,
        true_positives=true,
        false_positives=false,
        accepted=_by_agent(problem, responses, np.ones(len(responses.edge))),
        improved=_by_agent(problem, responses, problem.graph.improves[responses.edge]),
    )


@LeastEffortClassification.formulation("milp", exact=True, cites="Ahmadi et al. (2022), section 3")
def least_effort(problem: LeastEffortClassification, model: Model) -> Handles:
    """As for the most true positives, which are a constraint here.

    Returns
    -------
    Handles
        ``is_open``, shape ``(m,)``; ``true_positives``; ``enough``, the constraint on them.
    """
    responses = write_responses(problem, model, integer=True, all_rows=True)
    graph, weight = problem.graph, problem.agent_weights[problem.graph.agent[responses.edge]]
    true = (responses.takes * (weight * graph.improves[responses.edge])).sum()
    name = model.unused_name("min_true_positives")
    enough = model.subject_to(true >= problem.min_true_positives, name=name)
    return Handles(
        objective=(responses.takes * (weight * graph.cost[responses.edge])).sum(),
        decision=lambda result: OpenCriteria(np.flatnonzero(result[responses.is_open] > 0.5).tolist()),
        start=lambda decision: {responses.is_open: problem.read_open(decision)},
        is_open=responses.is_open,
        true_positives=true,
        enough=enough,
    )


@dataclass(frozen=True, eq=False)
class ResponseVariables:
    """The agents' responses as expressions; a run is a stretch of an agent's edges that need no telling
    apart.

    Attributes
    ----------
    is_open : Variable
        Which criteria are open, shape ``(m,)``.
    takes : Expression
        Whether the agent takes an edge of the run; one for each run.
    edge : Array
        The first edge of each run, in the graph's order.
    """

    is_open: Variable
    takes: Expression
    edge: Array


def write_responses(
    problem: StrategicGraph, model: Model, *, integer: bool, all_rows: bool = False
) -> ResponseVariables:
    """Write the agents' best responses and the limit on false positives into a model.

    With ``y[i, p]`` for "agent i takes the edge to p", the rows are: it takes one at most; only an open one,
    ``y[i, p] <= open[p]``; and if p is open, p or one that it likes better (closest assignment). Their prefix
    sums ``met[i, p]``, "i takes p or one that it likes better", make all rows short: they never fall along
    i's list, rise by ``open[p]`` at most, and are at least ``open[p]``.

    Where only true and false positives matter, there are fewer. Consecutive edges that all improve (or all
    game) are merged into one step, which leaves the relaxation as it is. The step of improving edges needs no
    row that raises it, and the step of gaming edges no row that limits it, since the objective favours the
    former and the limit or penalty holds down the latter. Where gaming is forbidden, it has no step at all.

    Parameters
    ----------
    problem : StrategicGraph
        Which.
    model : Model
        To write to.
    integer : bool
        Whether variables are binary; otherwise the relaxation.
    all_rows : bool, default False
        Whether every edge is a step of its own and has all rows, for costs or other uses.
    """
    graph, edges = problem.graph, len(problem.graph.agent)
    first = np.ones(edges, dtype=bool)
    if not all_rows:
        first[1:] = (graph.agent[1:] != graph.agent[:-1]) | (graph.improves[1:] != graph.improves[:-1])
    counted = problem.agent_weights[graph.agent] > 0
    allowed = graph.improves | ~(counted & problem.allows_no_false_positive)
    step = np.flatnonzero(first & allowed)
    agent = graph.agent[step]
    # the last step of the same agent up to each edge, if there is one
    last = np.cumsum(first & allowed) - 1
    known = last >= 0
    known[known] = agent[last[known]] == graph.agent[known]

    upper = np.ones(problem.criteria)
    upper[graph.criterion[~known]] = 0.0  # some agent could only game on it
    name = model.unused_name
    is_open = model.variable(name("open"), problem.criteria, lower=0, upper=upper, integer=integer)
    met = model.variable(model.unused_name("met"), len(step), lower=0, upper=1, integer=integer)
    follows = np.flatnonzero(agent[1:] == agent[:-1]) + 1
    before = sp.csr_array((np.ones(len(follows)), (follows, follows - 1)), shape=(len(step),) * 2)
    takes: Expression = (sp.eye_array(len(step), format="csr") - before) @ met
    entries = np.ones(allowed.sum()), (last[allowed], graph.criterion[allowed])
    members = sp.csr_array(entries, shape=(len(step), problem.criteria))
    limited = np.flatnonzero(graph.improves[step] | all_rows)
    raised = known & (~graph.improves | all_rows)
    model.subject_to(met[follows] >= met[follows - 1], name=model.unused_name("never_falls"))
    model.subject_to((takes - members @ is_open)[limited] <= 0, name=model.unused_name("only_open"))
    model.subject_to(met[last[raised]] >= is_open[graph.criterion[raised]], name=model.unused_name("closest"))
    if problem.max_false_positives is not None:
        weight = problem.agent_weights[agent] * ~graph.improves[step]
        model.subject_to((takes * weight).sum() <= problem.max_false_positives, name=name("limit"))
    return ResponseVariables(is_open, takes, step)


def values_by_group(
    problem: StrategicClassification, responses: ResponseVariables
) -> tuple[Expression, Expression]:
    """True and false positives of each group, as expressions of shape ``(groups,)``."""
    agent, improves = problem.graph.agent[responses.edge], problem.graph.improves[responses.edge]
    shape = (problem.group_count, len(agent))

    def total(kind: Array) -> Expression:
        weights = problem.agent_weights[agent] * kind
        rows = sp.csr_array((weights, (problem.group_of[agent], np.arange(len(agent)))), shape=shape)
        out: Expression = rows @ responses.takes
        return out

    return total(improves), total(~improves)


def _by_agent(problem: StrategicClassification, responses: ResponseVariables, kind: Array) -> Expression:
    """How many edges of a kind each agent takes, 0 or 1, as an expression of shape ``(n,)``."""
    places = (problem.graph.agent[responses.edge], np.arange(len(responses.edge)))
    of_agent = sp.csr_array((kind.astype(float), places), shape=(problem.agents, len(responses.edge)))
    out: Expression = of_agent @ responses.takes
    return out
