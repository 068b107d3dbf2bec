"""Partition counties into the most connected clusters that hold whole numbers of districts' people."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from math import ceil, floor
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pydantic import Field, field_serializer, model_validator

from forcopt.arrays import Array, as_fraction
from forcopt.errors import DeclarationError
from forcopt.models.districting.problem import Districting, GraphField
from forcopt.problem import Evaluation, Problem

if TYPE_CHECKING:
    from forcopt.models.districting.plan import Plan


class CountyClustering(Problem):
    """Partition counties into as many connected clusters as possible, each for a whole number of districts.

    A cluster is a connected set of counties whose population lies between s times the lower and s times the
    upper bound on a district, for a whole number s of districts, at least 1. The numbers of districts of all
    clusters sum to `districts`. Districts are then drawn within clusters.

    Attributes
    ----------
    graph : networkx.Graph
        A node for each county, an edge for each pair of neighbours; as `Districting` takes it.
    districts : int
        The number of districts of the plan; it may exceed the number of counties.
    tolerance : float, optional
        The largest deviation of a district from the mean population, as a fraction of it, at most 1.
    bounds : tuple of int, optional
        The smallest and the largest population of a district, instead of a tolerance; at least 1.
    population : str, default "population"
        The node attribute of the population: an integer, not negative.

    Notes
    -----
    Let a plan of k districts cut the counties into pieces, one for each county and district that meet. The
    counties and districts that meet form a bipartite graph. Its connected components are clusters, and one
    of n counties and s districts has at least n + s - 1 edges. So every plan has at least
    ``k - clusters`` county splits [1]_.

    References
    ----------
    .. [1] Carter, Hunter, Teague, Herschlag and Mattingly, Optimal legislative county clustering in North
       Carolina, Statistics and Public Policy 2020.
    .. [2] Shahmizad and Buchanan, Political districting to minimize county splits, Operations Research 2025.

    Examples
    --------
    >>> from forcopt.data import grid
    >>> from forcopt.models import CountyClustering
    >>> p = CountyClustering(grid(1, 4, population=[10, 4, 7, 9]), districts=3, tolerance=0.1)
    >>> s = p.solve()
    >>> s.objective, s.decision.assignment
    (3.0, {0: 0, 1: 1, 2: 1, 3: 2})
    """

    family: ClassVar[str] = "districting"
    default_method: ClassVar[str] = "column-generation"
    reason_first: ClassVar[bool] = True
    sense: ClassVar[Any] = "max"

    graph: GraphField
    districts: int = Field(ge=1, strict=True)
    tolerance: float | None = Field(default=None, ge=0, le=1, allow_inf_nan=False)
    bounds: tuple[int, int] | None = None
    population: str = "population"

    @field_serializer("graph")
    def _plain_graph(self, graph: Any) -> Any:
        return self.whole._plain_graph(graph)

    @model_validator(mode="after")
    def _check(self) -> CountyClustering:
        if (self.tolerance is None) == (self.bounds is None):
            raise DeclarationError("give either tolerance or bounds, and not both")
        _ = self.whole.arrays
        low, high = self.window
        if not 1 <= low <= high:
            raise DeclarationError(f"a district has {low} to {high} people; it must be 1 <= lower <= upper")
        return self

    @cached_property
    def whole(self) -> Districting:
        """The counties in one district, whose arrays the methods read."""
        return self.parted(1)

    def parted(self, number: int) -> Districting:
        """The counties in a number of parts of any population, of which a `Plan` is made."""
        return Districting(self.graph, number, bounds=(0, 2**53), population=self.population)

    @cached_property
    def window(self) -> tuple[int, int]:
        """The smallest and the largest population of a district."""
        if self.bounds is not None:
            return self.bounds
        mean = as_fraction(self.whole.total, "decimal") / self.districts
        t = as_fraction(self.tolerance, "decimal")
        return ceil((1 - t) * mean), floor((1 + t) * mean)

    def sizes(self, people: Array) -> tuple[Array, Array]:
        """The least and the largest number of districts whose bounds fit each population.

        Parameters
        ----------
        people : ndarray of int64
            Populations.

        Returns
        -------
        least, largest : ndarray of int64
            No number fits where the least exceeds the largest.
        """
        low, high = self.window
        return np.maximum(1, -(-people // high)), people // low

    def infeasibility_reason(self) -> str:
        """The reason why there is no clustering; empty if there is one."""
        graph, k = self.whole.arrays, self.districts
        pieces = graph.components()
        people = np.array([graph.weights[piece].sum() for piece in pieces])
        least, largest = self.sizes(people)
        for i in np.flatnonzero(least > largest).tolist():
            first = self.whole.nodes[int(pieces[i][0])]
            return f"the component of node {first!r} has population {people[i]}: no number of districts fits"
        if not least.sum() <= k <= largest.sum():
            return f"the components take {least.sum()} to {largest.sum()} districts, not {k}"
        return ""

    def evaluate(self, decision: Plan | Mapping[Any, int]) -> Evaluation:
        """Evaluate clusters: their number, and whether each is connected and holds whole districts.

        Parameters
        ----------
        decision : Plan or Mapping[Any, int]
            The cluster of each county, by any integers.

        Raises
        ------
        DeclarationError
            If it does not assign every node of the graph, and no other.
        """
        labels = self.whole.labels(decision)
        graph, found = self.whole.arrays, np.unique(labels)
        violations: dict[str, float] = {}
        people = np.array([graph.weights[labels == c].sum() for c in found])
        least, largest = self.sizes(people)
        facts = (found, people, least, largest)
        for c, number, a, b in zip(*(column.tolist() for column in facts), strict=True):
            pieces = len(graph.components(np.flatnonzero(labels == c).tolist()))
            if pieces > 1:
                violations[f"contiguity of cluster {c}"] = pieces - 1.0
            if a > b:
                low, high = self.window
                short = min(number - b * low, a * high - number) or 1
                violations[f"population of cluster {c}"] = float(short)
        off = max(int(least.sum()) - self.districts, self.districts - int(largest.sum()))
        if off > 0 and not violations:
            violations["number of districts"] = float(off)
        clusters, (u, v) = len(found), graph.edges.T
        metrics = {"clusters": float(clusters), "splits": float(self.districts - clusters)}
        metrics["cut_edges"] = float((labels[u] != labels[v]).sum())
        return Evaluation(float(clusters), violations, metrics)
