"""Random instances, reductions of the proofs of hardness, applicants for credit; those of the library."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from forcopt.arrays import Seed
from forcopt.errors import DeclarationError, require
from forcopt.instance import by_name, family
from forcopt.models.strategic.linear import StrategicLinearClassifier
from forcopt.models.strategic.problem import LeastEffortClassification, StrategicClassification
from forcopt.models.strategic.targets import TargetDesign, TargetDesign2D


def random_discrete(
    agents: int,
    criteria: int,
    *,
    density: float = 0.7,
    gaming: float = 0.4,
    gameable: float = 1.0,
    seed: Seed = None,
    **fields: Any,
) -> StrategicClassification:
    """Draw a graph of agents and criteria.

    Parameters
    ----------
    agents, criteria : int
        How many.
    density : float, default 0.7
        The probability of an edge between an agent and a criterion.
    gaming : float, default 0.4
        The probability that an edge to a gameable criterion is gaming.
    gameable : float, default 1.0
        The share of the criteria on which anyone can game; the first ones.
    seed : int or numpy.random.Generator, optional
        An int or a generator.
    fields : Any
        Of the problem; ``value`` is 100 by default, costs are whole numbers from 1 to 100.

    Examples
    --------
    >>> random_discrete(3, 2, seed=0).edges.shape
    (5, 4)
    """
    for name, share in (("density", density), ("gaming", gaming), ("gameable", gameable)):
        require(0 <= share <= 1, name, share, "be from 0 to 1")
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
    fields = {"value": 100.0, **fields}
    return StrategicClassification(agents=agents, criteria=criteria, edges=edges, **fields)


def max_cover(sets: Sequence[Sequence[int]], elements: int, most: int) -> StrategicClassification:
    """The reduction of Theorem 4: cover many of the `elements` by at most `most` of the sets.

    The most true positives with at most `most` false positives equal the most elements that `most` sets
    cover. The first agents are the elements, the others the sets; criterion j is set j.

    Parameters
    ----------
    sets : Sequence[Sequence[int]]
        Distinct, of three elements each, counted from 0.
    elements : int
        How many.
    most : int
        How many sets, and false positives.

    Examples
    --------
    >>> max_cover([(0, 1, 2), (1, 2, 3)], elements=4, most=1).solve().objective
    3.0
    """
    members = np.zeros((len(sets), elements))
    for j, chosen in enumerate(sets):
        if len(set(chosen)) != 3 or len(chosen) != 3 or not all(0 <= e < elements for e in chosen):
            raise DeclarationError(f"sets[{j}] is {tuple(chosen)}; it must be three of 0 to {elements - 1}")
        members[j, list(chosen)] = 1
    if len(np.unique(members, axis=0)) < len(sets):
        raise DeclarationError("sets: two of them are equal; they must be distinct")
    element_agents = np.hstack([np.eye(elements), np.ones((elements, 1))])
    set_agents = np.hstack([members, -np.ones((len(sets), 1))])
    d = elements + 1
    X, targets = np.vstack([element_agents, set_agents]), np.hstack([members, np.ones((len(sets), 1))])
    improvable, truth = np.arange(d) < elements, (np.ones(d), 4.0)
    limit: dict[str, Any] = {"max_false_positives": most}
    return StrategicClassification.from_features(X, targets, truth, np.full(d, 0.5), improvable, **limit)


def hitting_set(
    sets: Sequence[Sequence[int]], elements: int, size: int, gaming_cost: float | None = None
) -> TargetDesign:
    """The reduction of Theorem 5: hit all sets with few elements.

    If `size` elements hit every set, all agents can be true positives; if all agents can, then 2 * `size`
    elements hit every set. The first agents are the sets, the last one is special.

    Parameters
    ----------
    sets : Sequence[Sequence[int]]
        Of equal size s, of elements counted from 0.
    elements : int
        How many, n.
    size : int
        How many elements may be used, k.
    gaming_cost : float, optional
        Strictly between 1 / (L + 1) and 1 / L with L = 2 k (n - s) + s; the middle by default.

    Examples
    --------
    >>> hitting_set([(0, 1), (1, 2)], elements=3, size=1).X.tolist()
    [[1.0, 1.0, 2.0, 0.0], [2.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 4.0]]
    """
    members = np.zeros((len(sets), elements), dtype=bool)
    for j, chosen in enumerate(sets):
        fits = chosen and len(chosen) == len(sets[0]) and len(set(chosen)) == len(chosen)
        require(fits, f"sets[{j}]", tuple(chosen), f"have {len(sets[0])} different ones")
        if not all(0 <= e < elements for e in chosen):
            raise DeclarationError(f"sets[{j}] is {tuple(chosen)}; elements must be from 0 to {elements - 1}")
        members[j, list(chosen)] = True
    require(size >= 1, "size", size, "be at least 1")
    s = len(sets[0]) if sets else 0
    reach = 2 * size * (elements - s) + s
    cost = (1 / (reach + 1) + 1 / reach) / 2 if gaming_cost is None else gaming_cost
    if not 1 / (reach + 1) < cost < 1 / reach:
        raise DeclarationError(f"gaming_cost is {cost:g}; it must be above 1/{reach + 1} and below 1/{reach}")
    usual = np.hstack([np.where(members, 1.0, 2.0 * size), np.zeros((len(sets), 1))])
    special = np.append(np.zeros(elements), reach)
    truth = np.ones(elements + 1), reach + 2.0 * size
    costs = np.append(np.full(elements, 1 / (2 * size)), cost)
    improvable = np.arange(elements + 1) < elements
    return TargetDesign(X=np.vstack([usual, special]), truth=truth, costs=costs, improvable=improvable)


def random_linear(
    agents: int, features: int, *, targets: int = 30, qualified: float = 0.3, seed: Seed = None, **fields: Any
) -> StrategicClassification:
    """Draw agents in a box and targets that satisfy the truth; the first half of the features is improvable.

    Parameters
    ----------
    agents, features : int
        How many.
    targets : int, default 30
        How many.
    qualified : float, default 0.3
        The share of the agents that satisfy the truth at the start, about.
    seed : int or numpy.random.Generator, optional
        An int or a generator.
    fields : Any
        Of the problem.
    """
    require(0 < qualified < 1, "qualified", qualified, "be strictly between 0 and 1")
    rng = np.random.default_rng(seed)
    X, a = rng.random((agents, features)), rng.random(features)
    b = float(np.quantile(X @ a, 1 - qualified)) if agents else 0.0
    # A target is an agent's place, raised along the truth until it qualifies, and a little more.
    base = rng.random((targets, features))
    lack = np.maximum(b - base @ a, 0.0) * (1 + 0.5 * rng.random(targets))
    points, costs = base + lack[:, None] * a / (a @ a), np.full(features, 2.0)
    improvable = np.arange(features) < -(-features // 2)
    return StrategicClassification.from_features(X, points, (a, b), costs, improvable, **fields)


def random_plane(agents: int, *, reach: int = 3, seed: Seed = None, **fields: Any) -> TargetDesign2D:
    """Draw agents with whole features in [0, 11] x [0, 6], of whom ``x0 + 2 x1 >= 12`` is asked; x1 is
    gaming.

    Gaming has the larger effect per effort, so that the truth alone fails; the optimum lies on whole points.

    Parameters
    ----------
    agents : int
        How many.
    reach : int, default 3
        How far an agent can afford to move, 1 / cost.
    seed : int or numpy.random.Generator, optional
        An int or a generator.
    fields : Any
        Of the problem.
    """
    require(reach > 0, "reach", reach, "be positive")
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(0, 12, agents), rng.integers(0, 7, agents)]).astype(float)
    truth, improvable = (np.array([1.0, 2.0]), 12.0), np.array([True, False])
    return TargetDesign2D(X=X, truth=truth, costs=np.full(2, 1 / reach), improvable=improvable, **fields)


def credit(
    agents: int = 200, *, people: Any = None, seed: Seed = None, **fields: Any
) -> StrategicClassification:
    """A lender chooses which of its tiers to offer; applicants adapt to the tiers.

    An applicant has years of education, working hours a week and declared savings (in thousands), on the
    scales of the Adult data set. Education and hours truly improve the ability to repay; declared savings can
    be borrowed for a week, which is gaming, and the cheapest way to look good. A year of education costs 0.7
    of a loan's worth, an hour a week 0.1, a thousand of savings 0.1. A tier asks for a minimum of
    each that together suffice; applicants keep any excess.

    Parameters
    ----------
    agents : int, default 200
        How many applicants to draw.
    people : Any, optional
        Instead of drawing, shape ``(n, 3)``: education (Adult's ``education-num``), hours, savings.
    seed : int or numpy.random.Generator, optional
        An int or a generator.
    fields : Any
        Of the problem, such as ``groups`` or ``max_false_positives``.

    Examples
    --------
    >>> p = credit(seed=0)
    >>> all_tiers, best = p.evaluate(range(p.criteria)), p.solve("greedy-deletion").evaluation
    >>> all_tiers.metrics["false_positives"] > 0, best.metrics["false_positives"]
    (True, 0.0)
    """
    if people is None:
        rng = np.random.default_rng(seed)
        education = np.clip(rng.normal(10, 2.5, agents).round(), 1, 16)
        hours = np.clip(rng.normal(40, 12, agents).round(), 1, 99)
        savings = np.where(rng.random(agents) < 0.6, 0.0, rng.exponential(6, agents).round(1))
        people = np.column_stack([education, hours, savings])
    a, b = np.array([1.0, 0.2, 0.5]), 22.0
    levels = (9, 10, 11, 12, 13, 14), (30, 35, 40, 45, 50, 55), (0, 2, 4, 8, 16)
    tiers = np.array([t for t in product(*levels) if a @ t >= b], dtype=float)
    costs, improvable = [0.7, 0.1, 0.1], [True, True, False]
    fields = {"exact_target": False, **fields}
    return StrategicClassification.from_features(people, tiers, (a, b), costs, improvable, **fields)


def _subsets(count: int, elements: int, size: int, seed: int) -> list[tuple[int, ...]]:
    rng = np.random.default_rng(seed)
    found: dict[tuple[int, ...], None] = {}
    while len(found) < count:
        found[tuple(sorted(int(e) for e in rng.choice(elements, size, replace=False)))] = None
    return list(found)


def _cover(sets: int, elements: int, most: int) -> StrategicClassification:
    return max_cover(_subsets(sets, elements, 3, sets), elements, most)


def _hitting(sets: int, elements: int, size: int) -> TargetDesign:
    return hitting_set(_subsets(sets, elements, 3, sets), elements, size)


def _least_effort(agents: int, criteria: int) -> LeastEffortClassification:
    drawn = random_discrete(agents, criteria, density=0.5, seed=agents)
    shared: dict[str, Any] = {n: getattr(drawn, n) for n in ("agents", "criteria", "edges", "value")}
    limits: dict[str, Any] = {"max_false_positives": agents // 10, "min_true_positives": agents // 2}
    return LeastEffortClassification(**shared, **limits)


def _classifier(agents: int, features: int) -> StrategicLinearClassifier:
    """A tenth of the agents qualify as they are; every other feature can be improved."""
    rng = np.random.default_rng(agents)
    X = rng.integers(0, 11, (agents, features)).astype(float)
    truth = rng.integers(1, 6, features)
    return StrategicLinearClassifier(
        X=X,
        truth=(truth.tolist(), float(np.quantile(X @ truth, 0.9))),
        costs=rng.integers(2, 11, features) / 20,
        improvable=(np.arange(features) % 2 == 0).tolist(),
        max_false_positives=agents // 20,
    )


def _random(agents: int, criteria: int, most: int) -> StrategicClassification:
    return random_discrete(agents, criteria, seed=agents, max_false_positives=most)


def _credit(agents: int, most: int) -> StrategicClassification:
    return credit(agents, seed=agents, max_false_positives=most)


def _linear(agents: int, features: int) -> StrategicClassification:
    return random_linear(agents, features, seed=agents)


def _plane(agents: int) -> TargetDesign2D:
    return random_plane(agents, seed=agents)


_RANDOM = (100, 25, 2), (100, 25, 8), (400, 40, 4), (400, 40, 20), (2000, 60, 20), (2000, 100, 100)

_COVERS = (20, 15, 4), (60, 40, 8), (120, 60, 15), (300, 120, 30), (600, 240, 60)

_HITTING_SETS = (4, 6, 2), (8, 8, 3), (12, 10, 3), (20, 12, 4)

INSTANCES = by_name(
    family("strategic/random-{}-{}-{}", _random, "milp", *_RANDOM),
    family("strategic/max-cover-{}-{}-{}", _cover, "milp", *_COVERS),
    family("strategic/credit-{}-{}", _credit, "milp", (100, 0), (100, 5), (1000, 20)),
    family("strategic/least-effort-{}-{}", _least_effort, "milp", (20, 8), (60, 15), (200, 30), (800, 60)),
    family("strategic/linear-{}-{}", _linear, "milp", (10, 2), (20, 3), (40, 4), (80, 6)),
    family("strategic/classifier-{}-{}", _classifier, "margin-milp", (10, 2), (40, 3), (100, 4), (400, 6)),
    family("strategic/hitting-set-{}-{}-{}", _hitting, "milp", *_HITTING_SETS),
    family("strategic/plane-{}", _plane, "milp", [5], [10], [20], [40]),
)
