"""The mixed-integer programme with closest-assignment rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from forcopt.language.expression import Expression
from forcopt.language.model import Model
from forcopt.language.objective import leximin
from forcopt.language.terms import Array
from forcopt.models.strategic.problem import (
    LeastEffortClassification,
    OpenCriteria,
    StrategicClassification,
    StrategicGraph,
)
from forcopt.problem import Handles

__all__ = ["Responding", "milp", "values_by_group", "write_responses"]


@StrategicClassification.formulation("milp", exact=True, cites="Ahmadi et al. (2022), section 3")
def milp(problem: StrategicClassification, model: Model) -> Handles:
    """Choose the criteria by binaries; closest-assignment rows make each agent take its best open edge.

    Returns:
        ``is_open``, shape ``(m,)``; ``true_positives`` and ``false_positives`` by group, shape ``(groups,)``.
    """
    world = write_responses(problem, model, integer=True)
    true, false = values_by_group(problem, world)
    values = true - problem.penalty * false
    return Handles(
        objective=values.sum() if problem.groups is None else leximin(values),
        decision=lambda said: OpenCriteria(np.flatnonzero(said[world.is_open] > 0.5).tolist()),
        is_open=world.is_open,
        true_positives=true,
        false_positives=false,
    )


@LeastEffortClassification.formulation("milp", exact=True, cites="Ahmadi et al. (2022), section 3")
def least_effort(problem: LeastEffortClassification, model: Model) -> Handles:
    """As for the most true positives, which are a constraint here.

    Returns:
        ``is_open``, shape ``(m,)``; ``takes``, one for each affordable edge; ``true_positives``.
    """
    world = write_responses(problem, model, integer=True, by_edge=True)
    weight = problem.agent_weights[world.agent]
    true = (world.takes * (weight * world.improves)).sum()
    model.subject_to(true >= problem.min_true_positives, name=model.unused_name("enough"))
    return Handles(
        objective=(world.takes * (weight * problem.graph.cost)).sum(),
        decision=lambda said: OpenCriteria(np.flatnonzero(said[world.is_open] > 0.5).tolist()),
        is_open=world.is_open,
        takes=world.takes,
        true_positives=true,
    )


@dataclass(frozen=True, eq=False)
class Responding:
    """The agents' responses as expressions; a run is a stretch of an agent's edges that need no telling
    apart.

    Attributes:
        is_open: which criteria are open, shape ``(m,)``.
        takes: whether the agent takes an edge of the run; one for each run.
        agent, improves: of each run.
    """

    is_open: Expression
    takes: Expression
    agent: Array
    improves: Array


def write_responses(
    problem: StrategicGraph, model: Model, *, integer: bool, by_edge: bool = False
) -> Responding:
    """Write the agents' best responses and the limit on false positives into a model.

    With ``y[i, p]`` for "agent i takes the edge to p", the rows are: it takes one at most; only an open one,
    ``y[i, p] <= open[p]``; and if p is open, p or one that it likes better (closest assignment). Their prefix
    sums ``met[i, p]``, "i takes p or one that it likes better", make all rows short: they never fall along
    i's list, rise by ``open[p]`` at most, and are at least ``open[p]``. Consecutive edges that all improve
    (or all game) are merged into one step, which leaves the relaxation as it is. m binaries; the others are
    integral once those are.

    Args:
        problem: which.
        model: to write to.
        integer: whether criteria are open or not; otherwise the relaxation.
        by_edge: every edge is a step of its own.
    """
    graph, m = problem.graph, problem.criteria
    edges = len(graph.agent)
    first = np.ones(edges, dtype=bool)
    if not by_edge:
        first[1:] = (graph.agent[1:] != graph.agent[:-1]) | (graph.improves[1:] != graph.improves[:-1])
    run, agent, improves = np.cumsum(first) - 1, graph.agent[first], graph.improves[first]
    runs = len(agent)
    is_open = model.variable(model.unused_name("open"), m, lower=0, upper=1, integer=integer)
    met = model.add_columns(model.unused_name("met"), (runs,), 0, 1, implied_integer=True)
    follows = np.flatnonzero(agent[1:] == agent[:-1]) + 1
    step = sp.eye_array(runs, format="csr") - sp.csr_array(
        (np.ones(len(follows)), (follows, follows - 1)), shape=(runs, runs)
    )
    members = sp.csr_array((np.ones(edges), (run, graph.criterion)), shape=(runs, m))
    takes: Expression = step @ met
    model.subject_to(met[follows] >= met[follows - 1], name=model.unused_name("never_falls"))
    model.subject_to(takes <= members @ is_open, name=model.unused_name("only_open"))
    model.subject_to(met[run] >= is_open[graph.criterion], name=model.unused_name("closest"))
    if problem.max_false_positives is not None:
        weight = problem.agent_weights[agent] * ~improves
        model.subject_to(
            (takes * weight).sum() <= problem.max_false_positives, name=model.unused_name("limit")
        )
    return Responding(is_open, takes, agent, improves)


def values_by_group(problem: StrategicClassification, world: Responding) -> tuple[Expression, Expression]:
    """True and false positives of each group, as expressions of shape ``(groups,)``."""
    groups, runs = problem.group_count, len(world.agent)
    weight, place = problem.agent_weights[world.agent], problem.group_of[world.agent]

    def total(kind: Array) -> Expression:
        out: Expression = (
            sp.csr_array((weight * kind, (place, np.arange(runs))), shape=(groups, runs)) @ world.takes
        )
        return out

    return total(world.improves), total(~world.improves)
