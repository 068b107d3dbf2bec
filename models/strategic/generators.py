"""Instances: random ones, the reductions of the hardness proofs, and a credit-scoring scenario."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from forcopt.errors import DeclarationError
from forcopt.models.strategic.problem import StrategicClassification

__all__ = ["max_cover", "random_discrete"]


def random_discrete(
    agents: int,
    criteria: int,
    *,
    density: float = 0.7,
    gaming: float = 0.4,
    gameable: float = 1.0,
    seed: int | np.random.Generator | None = None,
    **fields: Any,
) -> StrategicClassification:
    """Draw a graph of agents and criteria.

    Args:
        agents, criteria: how many.
        density: the probability of an edge between an agent and a criterion.
        gaming: the probability that an edge to a gameable criterion is gaming.
        gameable: the share of the criteria on which anyone can game; the first ones.
        seed: an int or a generator.
        fields: of the problem; ``value`` is 100 by default, costs are whole numbers from 1 to 100.

    >>> random_discrete(3, 2, seed=0).edges.shape
    (5, 4)
    """
    for name, share in (("density", density), ("gaming", gaming), ("gameable", gameable)):
        if not 0 <= share <= 1:
            raise DeclarationError(f"{name} is {share}; it must be from 0 to 1")
    rng = np.random.default_rng(seed)
    # Sparse draws: the gaps between the edges of a graph with independent edges are geometric.
    cells = agents * criteria
    if density == 1:
        at = np.arange(cells)
    else:
        expected = int(cells * density + 6 * np.sqrt(cells * density + 1)) + 10
        at = np.cumsum(rng.geometric(density, expected) if density else [cells + 1]) - 1
        at = at[at < cells]
    agent, criterion = np.divmod(at, max(criteria, 1))
    cost = rng.integers(1, 101, len(at))
    games = (rng.random(len(at)) < gaming) & (criterion < round(gameable * criteria))
    edges = np.column_stack([agent, criterion, cost, ~games])
    return StrategicClassification(
        agents=agents, criteria=criteria, edges=edges, **{"value": 100.0, **fields}
    )


def max_cover(sets: Sequence[Sequence[int]], elements: int, most: int) -> StrategicClassification:
    """The reduction of Theorem 4: cover many of the `elements` by at most `most` of the sets.

    The most true positives with at most `most` false positives equal the most elements that so many sets
    cover. The first agents are the elements, the others the sets; criterion j is set j.

    Args:
        sets: distinct, of three elements each, counted from 0.
        elements: how many.
        most: how many sets, and false positives.

    >>> max_cover([(0, 1, 2), (1, 2, 3)], elements=4, most=1).solve().objective
    3.0
    """
    members = np.zeros((len(sets), elements))
    for j, chosen in enumerate(sets):
        if len(set(chosen)) != 3 or len(chosen) != 3 or not all(0 <= e < elements for e in chosen):
            raise DeclarationError(
                f"sets[{j}] is {tuple(chosen)}; it must be three different elements from 0 to {elements - 1}"
            )
        members[j, list(chosen)] = 1
    if len(np.unique(members, axis=0)) < len(sets):
        raise DeclarationError("sets: two of them are equal; they must be distinct")
    element_agents = np.hstack([np.eye(elements), np.ones((elements, 1))])
    set_agents = np.hstack([members, -np.ones((len(sets), 1))])
    d = elements + 1
    return StrategicClassification.from_features(
        X=np.vstack([element_agents, set_agents]),
        targets=np.hstack([members, np.ones((len(sets), 1))]),
        truth=(np.ones(d), 4.0),
        costs=np.full(d, 0.5),
        improvable=np.arange(d) < elements,
        max_false_positives=most,
    )
