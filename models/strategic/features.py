"""The linear model with a finite set of targets, as a graph of agents and criteria."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from forcopt.arrays import Array, as_numbers
from forcopt.errors import DeclarationError
from forcopt.models.strategic.linear_agents import LinearAgents

__all__ = ["FeatureEdges", "feature_edges", "move_costs", "qualifies"]

DECIMALS = 9
"""Costs are rounded to this number of decimals, so that exact ties stay ties."""


class FeatureEdges(NamedTuple):
    """The result of `feature_edges`.

    Attributes
    ----------
    agents, criteria : int
        How many.
    edges : Array
        Rows ``(agent, criterion, cost, improves)``.
    """

    agents: int
    criteria: int
    edges: Array


def move_costs(X: Array, targets: Array, costs: Array) -> Array:
    """``sum_j costs[j] * max(target[j] - x[j], 0)`` for each agent and target; shape ``(n, m)``."""
    out = np.zeros((len(X), len(targets)))
    for x, p, c in zip(X.T, targets.T, costs, strict=True):
        out += c * np.maximum(p[None, :] - x[:, None], 0.0)
    return out


def qualifies(
    X: Array,
    targets: Array,
    truth: tuple[Array, float],
    improvable: Array,
    exact_target: bool,
    tolerance: float,
) -> Array:
    """Whether each agent is truly qualified once it has moved to each target; shape ``(n, m)``.

    The true features are the target's where raising improves, and the agent's own elsewhere.
    """
    score = np.zeros((len(X), len(targets)))
    for x, p, a, improves in zip(X.T, targets.T, truth[0], improvable, strict=True):
        if not improves:
            score += a * x[:, None]
        elif exact_target:
            score += a * p[None, :]
        else:
            score += a * np.maximum(x[:, None], p[None, :])
    return np.asarray(score >= truth[1] - tolerance)


def feature_edges(
    X: Any,
    targets: Any,
    truth: tuple[Any, float],
    costs: Any,
    improvable: Any,
    value: Any,
    exact_target: bool,
) -> FeatureEdges:
    """Join each agent to every target that it can afford, in O(n m d).

    Raises
    ------
    DeclarationError
        As `LinearAgents`, and for targets of another dimension.
    """
    agents = LinearAgents(X=X, truth=truth, costs=costs, improvable=improvable)
    points = as_numbers(targets, "targets")
    if points.size == 0:
        points = points.reshape(0, agents.X.shape[1])
    if points.ndim != 2 or points.shape[1] != agents.X.shape[1]:
        raise DeclarationError(
            f"targets: the shape is {points.shape}; it must be (m, {agents.X.shape[1]}), one column for each "
            "feature of X"
        )
    worth = np.asarray(value, dtype=float)
    cost = move_costs(agents.X, points, agents.costs).round(DECIMALS)
    agent, criterion = np.nonzero(cost <= worth.reshape(-1, 1))
    a, b = agents.truth
    improves = qualifies(
        agents.X, points, (a, b), agents.improvable, exact_target, 10.0**-DECIMALS * max(1.0, abs(b))
    )
    edges = np.column_stack([agent, criterion, cost[agent, criterion], improves[agent, criterion]])
    return FeatureEdges(agents.agents, len(points), edges)
