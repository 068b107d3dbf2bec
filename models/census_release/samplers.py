"""Random districts of whole units of a level: in any places, or connected ones by recombination."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

from forcopt.arrays import Array, Seed, as_numbers
from forcopt.data.hierarchy import Hierarchy
from forcopt.errors import DeclarationError
from forcopt.models.census_release.release import Region
from forcopt.models.districting.plan import Plan
from forcopt.models.districting.problem import Districting


def disconnected_districts(
    hierarchy: Hierarchy,
    level: int,
    bounds: tuple[float, float],
    size: int = 1,
    *,
    units: Any = None,
    seed: Seed = None,
) -> Iterator[Region]:
    """Draw districts of units in any places: units in random order, as long as they fit ("Disconn").

    Parameters
    ----------
    hierarchy : Hierarchy
        With counts, whose sum over types is the people of a leaf.
    level : int
        The level of the units; 0 is the root's.
    bounds : tuple[float, float]
        The least and the most people of a district.
    size : int, default 1
        The number of districts, drawn one by one: they may overlap.
    units : array_like, optional
        The positions of the units to draw from; all of the level by default.
    seed : int or numpy.random.Generator, optional
        Repeats the draw.

    Yields
    ------
    Region
        Of the types of the hierarchy.

    Raises
    ------
    DeclarationError
        For a level or units that do not exist, a hierarchy without counts, or units that cannot be added
        up to the bounds in an order that was drawn.

    References
    ----------
    Cohen et al. (2021), section 5.2, Figure 4.

    Examples
    --------
    >>> tree = Hierarchy.homogeneous([4, 4], counts=[10] * 16)
    >>> [region.fragmentation() for region in disconnected_districts(tree, 1, (40, 40), 2, seed=0)]
    [0.75, 0.75]
    """
    people, chosen = _people(hierarchy, level, units)
    low, high = bounds
    rng = np.random.default_rng(seed)
    for _ in range(size):
        taken, total = [], 0.0
        for unit in rng.permutation(chosen):
            if total >= low:
                break
            if total + people[unit] <= high:
                taken.append(unit)
                total += people[unit]
        if not low <= total <= high:
            raise DeclarationError(f"bounds are {bounds}; units in random order end at {total:g} people")
        yield _region(hierarchy, level, taken)


def recombined_districts(
    hierarchy: Hierarchy,
    level: int,
    graph: nx.Graph[int],
    districts: int,
    tolerance: float,
    size: int = 1,
    *,
    start: dict[int, int] | None = None,
    thin: int = 1,
    seed: Seed = None,
) -> Iterator[Region]:
    """Draw connected districts: those of the plans of a ReCom chain on the units of a level.

    Parameters
    ----------
    hierarchy : Hierarchy
        With counts, whose sum over types is the people of a leaf.
    level : int
        The level of the units; 0 is the root's.
    graph : networkx.Graph
        Which units are neighbours, by their positions on the level; it may be of some units only.
    districts : int
        Of a plan.
    tolerance : float
        By what share a district's people may differ from the mean.
    size : int, default 1
        The number of plans.
    start : dict, optional
        The district of each unit in the first plan; by default a local search finds one.
    thin : int, default 1
        One plan is kept of this number of steps.
    seed : int or numpy.random.Generator, optional
        Repeats the draw.

    Yields
    ------
    Region
        The districts of each plan, one after the other.

    Raises
    ------
    DeclarationError
        For a level or units that do not exist, a hierarchy without counts, or if no plan is found.
    NotInstalledError
        If the package gerrychain is missing.

    References
    ----------
    Cohen et al. (2021), section 5.2, Figure 4. DeFord, Duchin and Solomon (2021), Recombination.

    Examples
    --------
    >>> from forcopt.data import grid
    >>> tree = Hierarchy.homogeneous([16, 4], counts=[10] * 64)
    >>> units = nx.convert_node_labels_to_integers(grid(4, 4))
    >>> drawn = list(recombined_districts(tree, 1, units, 2, tolerance=0.1, size=3, seed=0))
    >>> len(drawn), {len(region.leaves) for region in drawn}
    (6, {32})
    """
    people, chosen = _people(hierarchy, level, list(graph))
    named = nx.Graph(graph.edges)
    named.add_nodes_from((unit, {"population": int(people[unit])}) for unit in chosen.tolist())
    problem = Districting(named, districts, tolerance=tolerance)
    first = None if start is None else Plan.from_labels(problem, [start[v] for v in problem.nodes])
    for plan in problem.ensemble("recom", size, start=first, thin=thin, seed=seed).plans:
        for part in plan.parts:
            yield _region(hierarchy, level, [problem.nodes[v] for v in part])


def _people(hierarchy: Hierarchy, level: int, units: Any) -> tuple[Array, Array]:
    """The people of each unit of a level, and the positions of the units to draw from."""
    if hierarchy.counts is None:
        raise DeclarationError("the hierarchy has no counts, so its units have no people to balance")
    if not 0 <= level < hierarchy.depth:
        raise DeclarationError(f"level is {level}; the tree has levels 0 to {hierarchy.depth - 1}")
    people = hierarchy.sums(hierarchy.counts)[level].sum(axis=1)
    if units is None:
        return people, np.arange(len(people))
    chosen = as_numbers(units, "units")
    if not np.isin(chosen, np.arange(len(people))).all():
        raise DeclarationError(f"units must be positions of level {level}, 0 to {len(people) - 1}")
    return people, chosen.astype(np.int64)


def _region(hierarchy: Hierarchy, level: int, units: list[int]) -> Region:
    assert hierarchy.counts is not None
    leaves = np.flatnonzero(np.isin(hierarchy.ancestors(level), units))
    return Region(hierarchy, leaves, types=hierarchy.counts.shape[1])
