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
    spans,
)
from forcopt.problem import Handles

__all__ = ["milp", "write_responses"]


@StrategicClassification.formulation("milp", exact=True, cites="Ahmadi et al. (2022), section 3")
def milp(problem: StrategicClassification, model: Model) -> Handles:
    """Choose the criteria by binaries; closest-assignment rows make each agent take its best open edge.

    Returns:
        ``is_open``, shape ``(m,)``; ``takes``, one for each affordable edge; ``true_positives`` and
        ``false_positives`` by group, shape ``(groups,)``.
    """
    world = write_responses(problem, model, integer=True)
    true, false = by_group(problem, world)
    values = true - problem.penalty * false
    return Handles(
        objective=values.sum() if problem.groups is None else leximin(values),
        decision=lambda said: OpenCriteria(np.flatnonzero(said[world.is_open] > 0.5).tolist()),
        is_open=world.is_open,
        takes=world.takes,
        true_positives=true,
        false_positives=false,
    )


@LeastEffortClassification.formulation("milp", exact=True, cites="Ahmadi et al. (2022), section 3")
def least_effort(problem: LeastEffortClassification, model: Model) -> Handles:
    """As for the most true positives, which are a constraint here.

    Returns:
        ``is_open``, shape ``(m,)``; ``takes``, one for each affordable edge; ``true_positives``.
    """
    world = write_responses(problem, model, integer=True)
    graph, weight = problem.graph, problem.agent_weights[problem.graph.agent]
    true = (weight * graph.improves * world.takes).sum()
    model.subject_to(true >= problem.min_true_positives, name=model.unused_name("enough"))
    return Handles(
        objective=(weight * graph.cost * world.takes).sum(),
        decision=lambda said: OpenCriteria(np.flatnonzero(said[world.is_open] > 0.5).tolist()),
        is_open=world.is_open,
        takes=world.takes,
        true_positives=true,
    )


@dataclass(frozen=True, eq=False)
class World:
    """The variables: which criteria are open, shape ``(m,)``, and which edges are taken, in the graph's
    order."""

    is_open: Expression
    takes: Expression


def write_responses(problem: StrategicGraph, model: Model, integer: bool) -> World:
    """Write the agents' best responses and the limit on false positives into a model.

    For agent i, with ``q <= p`` if it likes q at least as well as p: it takes one edge at most (choice); only
    to an open criterion (open); if p is open it takes p or a better one (closest). m binaries; the edges'
    variables are integral once the binaries are. 2 E + n rows.
    """
    graph, edges = problem.graph, len(problem.graph.agent)
    is_open = model.variable(model.unused_name("open"), problem.criteria, lower=0, upper=1, integer=integer)
    takes = model.add_columns(model.unused_name("takes"), (edges,), 0, 1, implied_integer=True)
    choice = sp.csr_array((np.ones(edges), np.arange(edges), graph.start), shape=(problem.agents, edges))
    place = np.arange(edges) - graph.start[graph.agent]
    rows = np.concatenate([[0], np.cumsum(place + 1)])
    best_so_far = sp.csr_array(
        (np.ones(rows[-1]), spans(graph.start[graph.agent], place + 1), rows), shape=(edges, edges)
    )
    model.subject_to(choice @ takes <= 1, name=model.unused_name("choice"))
    model.subject_to(takes <= is_open[graph.criterion], name=model.unused_name("only_open"))
    model.subject_to(best_so_far @ takes >= is_open[graph.criterion], name=model.unused_name("closest"))
    if problem.max_false_positives is not None:
        weight = problem.agent_weights[graph.agent] * ~graph.improves
        model.subject_to(
            (weight * takes).sum() <= problem.max_false_positives, name=model.unused_name("limit")
        )
    return World(is_open, takes)


def by_group(problem: StrategicClassification, world: World) -> tuple[Expression, Expression]:
    """True and false positives of each group, as expressions of shape ``(groups,)``."""
    graph, groups = problem.graph, problem.group_count
    edges, agent = len(graph.agent), graph.agent
    weight = problem.agent_weights[agent]

    def total(kind: Array) -> Expression:
        rows = sp.csr_array(
            (weight * kind, (problem.group_of[agent], np.arange(edges))), shape=(groups, edges)
        )
        out: Expression = rows @ world.takes
        return out

    return total(graph.improves), total(~graph.improves)
