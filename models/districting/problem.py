"""Partition a graph of geographic atoms into connected districts of nearly equal population."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import ceil, floor, lcm
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeVar, cast

import networkx as nx
import numpy as np
import scipy
from pydantic import (
    Field,
    PlainSerializer,
    PlainValidator,
    WithJsonSchema,
    field_serializer,
    field_validator,
    model_validator,
)

from forcopt.arrays import Array, as_fraction, is_missing, lists_by_key, one_seed, rounded_up
from forcopt.clock import Deadline
from forcopt.data.graphs import graph_from_dict, graph_to_dict
from forcopt.data.maps import read_map
from forcopt.errors import DeclarationError, require, unknown
from forcopt.graphs.weighted import WeightedGraph
from forcopt.models.districting.compactness import AREA, BORDER, PERIMETER, borders, polsby_popper, reock
from forcopt.models.districting.districts import (
    OBJECTIVES,
    POLSBY_POPPER,
    Counted,
    Districts,
    Row,
    check_measure,
    reader,
    rows_of,
    violation,
)
from forcopt.models.districting.side_constraints import CannotLink, Fixed, MustLink, SideConstraint
from forcopt.models.districting.tolerances import LESS, LIMIT
from forcopt.problem import Evaluation, Handles
from forcopt.problem.parts import RULES, Function, Goal, Measure, Meets, OfParts, Parts, Rule
from forcopt.problem.progress import ProgressLine, show_progress
from forcopt.status import Status

if TYPE_CHECKING:
    from pathlib import Path

    from pandas import Series

    from forcopt.data.intake import Fixes
    from forcopt.language.expression import Expression
    from forcopt.language.model import Model
    from forcopt.loops.certify import Certificate
    from forcopt.models.districting.counts import PlanCounts
    from forcopt.models.districting.ensemble import Ensemble
    from forcopt.models.districting.plan import Plan

Made = TypeVar("Made")

_LARGEST = 2**53
"""Sums of populations and of costs stay below this: floats hold them exactly."""

_FINEST = 10**9
"""Costs may have so fine decimals (one part in a thousand million) and still be added exactly."""


def _read_graph(value: Any) -> nx.Graph[Any]:
    if isinstance(value, Mapping):
        value = graph_from_dict(value)
    if hasattr(value, "is_rx_graph") and value.is_rx_graph():  # GerryChain's, whose own way loses islands
        given, name, value = value, value.original_nx_node_id_for_internal_node_id, nx.Graph()
        value.add_nodes_from((name(v), given.node_data(v)) for v in given.nodes)
        ends = ((given.get_edge_from_edge_id(e), given.edge_data(e)) for e in sorted(given.edge_indices))
        value.add_edges_from((name(u), name(v), data) for (u, v), data in ends)
    elif hasattr(value, "to_networkx_graph"):
        value = value.to_networkx_graph()
    if not isinstance(value, nx.Graph):
        kind = f"{type(value).__module__}.{type(value).__name__}"
        raise DeclarationError(f"must be a networkx graph, not {kind}")
    if value.is_directed():
        raise DeclarationError("the graph is directed; it must be undirected")
    if len(value) == 0:
        raise DeclarationError("the graph has no nodes")
    return nx.freeze(value.copy())


GraphField = Annotated[
    nx.Graph,
    PlainValidator(_read_graph),
    PlainSerializer(lambda g: g),
    WithJsonSchema({"type": "object", "description": "nodes and edges with their attributes"}),
]


class Districting(OfParts):
    """Partition the nodes of a graph into connected districts within population bounds.

    Every district must induce a connected subgraph, and its population must lie within inclusive integer
    bounds: those given, or for a tolerance t, total population P and k districts from
    ``ceil((1 - t) P / k)`` to ``floor((1 + t) P / k)``, computed exactly from t's decimal digits.

    Attributes
    ----------
    graph : networkx.Graph
        Undirected; or GerryChain's graph, or a plain form, as `forcopt.data.load_graph` reads it. Costs of
        parallel edges add; loops are ignored. A frozen copy is kept.
    districts : int
        The number of districts, at most the number of nodes.
    tolerance : float, optional
        The largest deviation from the mean population, as a fraction of it, at most 1: 0.05 for 5 percent.
    bounds : tuple of int, optional
        The smallest and the largest population of a district, instead of a tolerance.
    population : str, default "population"
        The node attribute of the population: an integer, not negative.
    cost : str, default "cost"
        The edge attribute of the cost of cutting an edge: a decimal number, not negative; 1 where the edge
        has none. A name other than the default must be on some edge.
    objective : str or Goal, default "cut"
        ``cut`` (the cost of the cut edges), ``inertia`` (the sum over nodes of population times squared
        distance to the district's best centre node, after Hess et al. 1965; needs ``x`` and ``y``),
        ``deviation`` (the largest distance of a district's population from the mean), ``splits`` (the
        sum over counties of the number of districts that the county meets, less 1), ``least-change`` (the
        people who change their district, see `least_change`); the mean over districts
        of a score of compactness: ``polsby-popper`` (4 pi area / perimeter**2, maximized),
        ``inverse-polsby-popper`` (1 over that) or ``schwartzberg`` (the square root of the latter); or a sum
        over districts of one's own, see `minimize`.
    county : str, default "county"
        The node attribute that names the county of a node, for the objective ``splits``.
    enacted : str, default "enacted"
        The node attribute that names the old district of a node, for the objective ``least-change``.
    seats : tuple of int, optional
        The number of seats of each district; 1 by default. The bounds and the mean hold for each seat.
    side_constraints : tuple of SideConstraint, optional
        `MustLink`, `CannotLink`, `Fixed`, `CutLimit`, `Share`, `SplitLimit`.
    rules : tuple of Rule, optional
        Constraints on the districts of one's own, see `subject_to`.

    References
    ----------
    Cohen-Addad, Klein, Marx, Wheeler, Wolfram, "On the Computational Tractability of a Geographic Clustering
    Problem Arising in Redistricting" (FORC 2021).

    Examples
    --------
    >>> from forcopt.data import grid
    >>> p = Districting(grid(3, 3), districts=3, tolerance=0)
    >>> p.solve("set-partitioning").objective
    6.0
    """

    family: ClassVar[str] = "districting"
    default_method: ClassVar[str] = "portfolio"
    reason_first: ClassVar[bool] = True
    _parts: ClassVar[type[Parts]] = Districts

    graph: GraphField
    districts: int = Field(ge=1, strict=True)
    tolerance: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    bounds: tuple[int, int] | None = None
    population: str = "population"
    cost: str = "cost"
    objective: Literal[OBJECTIVES] | Goal = "cut"  # type: ignore[valid-type]
    county: str = "county"
    enacted: str = "enacted"
    seats: tuple[Annotated[int, Field(ge=1, strict=True)], ...] | None = None
    side_constraints: tuple[SideConstraint, ...] = ()

    @classmethod
    def from_file(
        cls,
        path: str | Path,
        *,
        population: str = "population",
        identifier: str | None = None,
        adjacency: Literal["rook", "queen"] = "rook",
        bridge: bool = False,
        fixes: Fixes | None = None,
        **fields: Any,
    ) -> Districting:
        """Declare the districts of a map: GeoJSON, a shapefile, a GeoPackage, or the JSON of a graph.

        Parameters
        ----------
        path, population, identifier, adjacency, bridge, fixes
            See `forcopt.data.read_map`.
        fields : Any
            Of the problem, such as ``districts=4, tolerance=0.005``.

        Raises
        ------
        DeclarationError
            For a fault of the file, naming the unit: a missing property, a number in words, a name that
            stands twice, an area that crosses itself or overlaps another one, and units that no border joins
            to the others.

        Notes
        -----
        Stated changes of the file stay in ``graph.graph["intake"]``, also when the problem is saved.

        Examples
        --------
        >>> import json, pathlib, tempfile
        >>> def square(x):
        ...     return {"type": "Polygon", "coordinates": [[[x, 0], [x + 1, 0], [x + 1, 1], [x, 1], [x, 0]]]}
        >>> rows = [{"properties": {"name": f"u{x}", "people": 5}, "geometry": square(x)} for x in range(4)]
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "row.geojson"
        >>> _ = path.write_text(json.dumps({"type": "FeatureCollection", "features": rows}))
        >>> p = Districting.from_file(path, population="people", districts=2, tolerance=0)
        >>> list(p.graph.edges), p.solve("set-partitioning").objective
        ([('u0', 'u1'), ('u1', 'u2'), ('u2', 'u3')], 1.0)
        """
        graph, found = read_map(
            path, population, identifier=identifier, adjacency=adjacency, bridge=bridge, fixes=fixes
        )
        found.refuse()
        return cls(graph=graph, population=population, **fields)

    @field_validator("objective", mode="before")
    @classmethod
    def _known(cls, value: Any) -> Any:
        value = value.replace("_", "-") if isinstance(value, str) else value
        if isinstance(value, Goal | Mapping) or value in OBJECTIVES:
            return value
        raise unknown("objective", str(value), list(OBJECTIVES))

    @field_serializer("graph")
    def _plain_graph(self, graph: nx.Graph[Any]) -> dict[str, Any]:
        functions = [rule.function for rule in (*self.all_rules, self.goal) if rule is not None]
        read = [leaf.of for function in functions for leaf in measures(function) if leaf.of]
        drawn = ("name", "x", "y", "geometry", AREA, PERIMETER)
        known = (self.population, *drawn, self.county, self.enacted, *read)
        return graph_to_dict(graph, tuple(dict.fromkeys(known)), (self.cost, BORDER))

    @model_validator(mode="after")
    def _check(self) -> Districting:
        if (self.tolerance is None) == (self.bounds is None):
            raise DeclarationError("give either tolerance or bounds, and not both")
        if self.tolerance is not None and self.tolerance > 1:
            raise DeclarationError(
                f"tolerance is {self.tolerance:g}; it must be a fraction of the mean population, at most 1: "
                f"{self.tolerance / 100:g} for {self.tolerance:g} percent"
            )
        if self.bounds is not None and not 0 <= self.bounds[0] <= self.bounds[1]:
            raise DeclarationError(f"bounds is {self.bounds}; it must have 0 <= lower <= upper")
        most = f"be at most the number of nodes, {len(self.graph)}"
        require(self.districts <= len(self.graph), "districts", self.districts, most)
        one_each = f"have one number for each of the {self.districts} districts"
        require(self.seats is None or len(self.seats) == self.districts, "seats", self.seats, one_each)
        _ = self.arrays
        if self.objective == "inertia":
            _ = self.inertia
        if self.objective in ("splits", "least-change"):
            _ = self.units(self.county if self.objective == "splits" else self.enacted)
        for leaf in () if self.goal is None else measures(self.goal.function):
            check_measure(self, leaf.name, leaf.of)
        fixed: dict[Any, int] = {}
        for item in self.side_constraints:
            where = f"side_constraints: {item!r}"
            for node in item.named():
                if node not in self.place:
                    raise DeclarationError(f"{where} names the node {node!r}, which the graph lacks")
            if not isinstance(item, Fixed):
                continue
            number, count = item.district, self.districts
            require(number < count, f"{where}: district", number, f"be below {count}")
            if fixed.setdefault(item.node, number) != number:
                raise DeclarationError(f"{where}: the node is fixed to {fixed[item.node]} already")
        for rule in self.all_rules:
            for leaf in measures(rule.function):
                check_measure(self, leaf.name, leaf.of)
            if rule.part is not None and rule.part not in fixed.values():
                raise DeclarationError(
                    f"rules: {rule}: districts are numbered by their first nodes, so district {rule.part} is "
                    f"none by itself; Fixed(node, {rule.part}) names the district of a node"
                )
            if rule.scope == "plan":
                self._check_numbering(rule, set(fixed.values()))
        return self

    def _check_numbering(self, rule: Rule, fixed: set[int]) -> None:
        """Check that a rule on the plan does not depend on the numbers of districts that are not fixed."""
        free = [d for d in range(self.districts) if d not in fixed]
        function = rule.function.moved(lambda d: d)
        for a, b in pairwise(free):
            if function.moved(lambda d, a=a, b=b: {a: b, b: a}.get(d, d)) != function:  # type: ignore[misc]
                raise DeclarationError(
                    f"rules: {rule}: it changes if districts {a} and {b} change places, and districts are "
                    "numbered by their first nodes; name districts by Fixed nodes"
                )

    @property
    def part_count(self) -> int:
        """The number of districts."""
        return self.districts

    @cached_property
    def goal(self) -> Goal | None:
        """The objective, if it is a sum over districts of a function of a district by `parts`."""
        if isinstance(self.objective, Goal):
            return self.objective
        if OBJECTIVES.index(self.objective) < POLSBY_POPPER:
            return None
        mean = Function(terms=((1 / self.districts, Measure(name=self.objective.replace("-", "_"))),))
        return Goal(function=mean, sense="max" if self.objective == "polsby-popper" else "min")

    @property
    def sense(self) -> Literal["min", "max"]:  # type: ignore[override]
        """Whether the objective is minimized or maximized."""
        return "min" if self.goal is None else self.goal.sense

    def minimize(self, total: Expression) -> Self:
        """Give the same problem with a sum over districts as its objective.

        Parameters
        ----------
        total : Expression
            A sum over all districts of the same function of each, of the columns of `parts`.

        Returns
        -------
        Self
            With a `Goal` as its `objective`.

        Raises
        ------
        DeclarationError
            For another expression.

        Examples
        --------
        >>> import forcopt as fo
        >>> from forcopt.data import grid
        >>> g = grid(2, 4)
        >>> for v in g:
        ...     g.nodes[v].update(old=v % 4, young=3 - v % 4)
        >>> p = Districting(g, districts=2, tolerance=0)
        >>> d = p.parts().districts
        >>> q = p.minimize(fo.abs(d.total("old") - d.total("young")).sum())
        >>> q.solve().objective, q.evaluate(p.solve().decision).objective
        (0.0, 16.0)
        """
        return self._aiming(total, "min")

    def maximize(self, total: Expression) -> Self:
        """Give the same problem with a sum over districts, to be maximized, as its objective.

        Parameters
        ----------
        total : Expression
            See `minimize`.

        Returns
        -------
        Self
            With a `Goal` as its `objective`.

        Raises
        ------
        DeclarationError
            For another expression.
        """
        return self._aiming(total, "max")

    def _aiming(self, total: Expression, sense: Literal["min", "max"]) -> Self:
        if not isinstance(getattr(total, "model", None), Parts):
            raise DeclarationError("an objective over parts is made of the columns of parts(), not of others")
        return self.replace(objective=cast(Parts, total.model).goal(total, sense))

    def least_change(self, plan: Plan | Mapping[Any, int] | Series) -> Self:
        """Give the same problem with the least change of a plan as its objective.

        Parameters
        ----------
        plan : Plan or Mapping[Any, int] or Series
            The old district of each node, such as the enacted plan. It need not satisfy the constraints.

        Returns
        -------
        Self
            With the objective ``least-change``, and the old districts in the node attribute `enacted`.

        Raises
        ------
        DeclarationError
            If a node is missing, unknown, or in a district that is no integer; if the attribute `enacted` has
            another meaning.

        Notes
        -----
        Each new district is matched with one old district at most, and each old district with one new one,
        so that as many people as possible stay in theirs; of such matchings, one lets as many nodes as
        possible stay, if n + 1 times the people of n nodes are below 2**53. The objective counts the other
        people, and the metric ``changed_nodes`` the other nodes; so neither depends on the numbers of the
        districts. There may be more old districts, or fewer.

        Examples
        --------
        >>> from forcopt.data import grid
        >>> p = Districting(grid(1, 4, population=[5, 1, 2, 4]), districts=2, tolerance=0)
        >>> q = p.least_change({0: 7, 1: 7, 2: 7, 3: 3})
        >>> s = q.solve()
        >>> s.objective, s.decision.assignment
        (2.0, {0: 0, 1: 0, 2: 1, 3: 1})
        """
        taken = (self.population, self.county, self.cost)
        require(self.enacted not in taken, "enacted", self.enacted, f"be none of the attributes {taken}")
        graph, old = self.graph.copy(), self.labels(plan).tolist()
        nx.set_node_attributes(graph, dict(zip(self.nodes, old, strict=True)), self.enacted)
        return self.replace(graph=graph, objective="least-change")

    def check_measure(self, name: str, of: str) -> tuple[float, float]:
        """Check that districts have a measure, and give bounds on it."""
        return check_measure(self, name, of)

    @cached_property
    def all_rules(self) -> tuple[Rule, ...]:
        """The rules on districts, those of side constraints included."""
        return (*self.rules, *(rule for item in self.side_constraints for rule in item.rules(self)))

    @cached_property
    def tied(self) -> tuple[Rule, ...]:
        """The rules but limits on cut edges, which every method takes."""
        cut = Measure(name="cut_edges")
        return tuple(
            rule
            for rule in self.all_rules
            if (single := _single(rule)) is None or single[1] != cut or rule.lower > -np.inf
        )

    def integer_rows(self, rule: Rule | Meets) -> list[Row] | None:
        """A rule on a district in integers; None if it is not linear in sums over nodes."""
        return self.once(("rows", rule), lambda: rows_of(self, rule))

    @cached_property
    def counted(self) -> Counted:
        """The rules that are linear in sums over nodes, and how many districts must satisfy each."""
        found: list[tuple[Row, int, int]] = []
        for rule in self.all_rules:
            if rule.scope == "each":
                found += [(row, self.districts, self.districts) for row in self.integer_rows(rule) or ()]
            elif rule.part is not None:
                named = self._fixed()[rule.part][0]
                found += [(row.with_vertex(named), 1, 1) for row in self.integer_rows(rule) or ()]
            elif (single := _single(rule)) is not None and isinstance(single[1], Meets):
                low, high = sorted(bound / single[0] for bound in (rule.lower, rule.upper))
                least, most = ceil(max(low, 0.0) - LIMIT), floor(min(high, self.districts) + LIMIT)
                found += [(row, least, most) for row in self.integer_rows(single[1]) or ()]
        weights = np.array([row.weights for row, *_ in found], np.int64).reshape(-1, len(self.nodes))
        facts = [(row.low, row.high, *number) for row, *number in found]
        return Counted(weights, *np.array(facts, np.int64).reshape(-1, 4).T.copy())

    def limits(self, measure: str) -> list[tuple[str, int]]:
        """What rules measure whose sum over districts has an upper bound, and this bound."""
        found = []
        for rule in self.all_rules:
            single = _single(rule)
            if single is None or rule.lower > -np.inf or isinstance(single[1], Meets):
                continue
            if single[0] > 0 and single[1].name == measure:
                found.append((single[1].of, floor(rule.upper / single[0] + LIMIT)))
        return found

    @cached_property
    def other_rules(self) -> tuple[Rule, ...]:
        """The rules that are neither `counted` nor `limits` of cut edges or units."""
        return tuple(rule for rule in self.all_rules if not self._is_counted(rule))

    def _is_counted(self, rule: Rule) -> bool:
        if rule.scope in ("each", "one"):
            return self.integer_rows(rule) is not None
        factor, node = _single(rule) or (0.0, None)
        if isinstance(node, Meets):
            return self.integer_rows(node) is not None
        limited = factor > 0 and rule.lower == -np.inf and isinstance(node, Measure)
        return limited and node.name in ("cut_edges", "units")  # type: ignore[union-attr]

    # -- data for the methods ------------------------------------------------------------------------------

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Give data that depend only on the problem: made at the first call for a key, then kept.

        Parameters
        ----------
        key : Hashable
            Names what is made.
        make : callable
            Makes it; what it raises is not kept.

        Returns
        -------
        Any
            The same object at each call.
        """
        if key not in self._made:
            self._made[key] = make()
        return cast(Made, self._made[key])

    @cached_property
    def _made(self) -> dict[Hashable, Any]:
        return {}

    @cached_property
    def nodes(self) -> tuple[Any, ...]:
        """The nodes in the graph's order; a node's position in it is its number in every array."""
        return tuple(self.graph.nodes)

    @cached_property
    def place(self) -> dict[Any, int]:
        """The position of each node."""
        return {node: i for i, node in enumerate(self.nodes)}

    @cached_property
    def _costs(self) -> list[Fraction]:
        found = []
        seen = sorted({str(name) for *_, data in self.graph.edges(data=True) for name in data})
        if self.cost != "cost" and self.cost not in seen and self.graph.edges:
            raise DeclarationError(
                f"cost is {self.cost!r}, which no edge has; edges have: {', '.join(seen) or 'none'}"
            )
        for u, v, data in self.graph.edges(data=True):
            value = data.get(self.cost, 1)
            try:
                exact = as_fraction(value, "decimal")
            except (ValueError, ZeroDivisionError):
                exact = Fraction(-1)
            require(exact >= 0, f"edge {u!r}-{v!r}: {self.cost}", value, "be a finite number, not negative")
            found.append(exact)
        return found

    @cached_property
    def cost_scale(self) -> int:
        """The factor of the costs in `arrays`, which makes them integers."""
        scale = lcm(*(c.denominator for c in self._costs)) if self._costs else 1
        if scale > _FINEST:
            raise DeclarationError(f"{self.cost}: the costs have more than 9 decimals; round them")
        return scale

    def _lacking(self, node: Any, attribute: str) -> DeclarationError:
        """The error for a node without a value of an attribute."""
        if attribute in self.graph.nodes[node]:
            return DeclarationError(f"node {node!r}: {attribute} is null (None, NaN); each node needs one")
        return DeclarationError(f"node {node!r} has no attribute {attribute!r}")

    @cached_property
    def arrays(self) -> WeightedGraph:
        """The graph as arrays: populations, edges without parallels, costs times `cost_scale`."""
        people = []
        for node, data in self.graph.nodes(data=True):
            value = data.get(self.population)
            if is_missing(value):
                raise self._lacking(node, self.population)
            whole = isinstance(value, int | np.integer) or (isinstance(value, float) and value.is_integer())
            fits = whole and not isinstance(value, bool) and value >= 0
            require(fits, f"node {node!r}: {self.population}", value, "be an integer, not negative")
            people.append(int(value))
        if sum(people) >= _LARGEST:
            raise DeclarationError(f"{self.population}: the populations sum to {sum(people)}; at most 2**53")
        ends = [(self.place[u], self.place[v]) for u, v in self.graph.edges()]
        costs = [int(c * self.cost_scale) for c in self._costs]
        if (total := sum(costs)) >= _LARGEST:
            raise DeclarationError(f"{self.cost}: the costs sum to {total} / {self.cost_scale}; too large")
        return WeightedGraph.of(people, ends, costs)

    @property
    def total(self) -> int:
        """The total population."""
        return self.arrays.total

    @property
    def mean(self) -> float:
        """The mean population of a district."""
        return self.total / self.districts

    @cached_property
    def means(self) -> Array:
        """The mean population of a seat times the seats of each district, shape (districts,)."""
        return np.array([float(mean) for mean in self._exact_means])

    @cached_property
    def _exact_means(self) -> list[Fraction]:
        seats = self.seats or (1,) * self.districts
        return [Fraction(self.total * s, sum(seats)) for s in seats]

    @cached_property
    def windows(self) -> Array:
        """The smallest and the largest population of each district, int64, shape (districts, 2).

        Examples
        --------
        >>> from forcopt.data import grid
        >>> Districting(grid(2, 5), districts=2, seats=(2, 3), tolerance=0.1).windows.tolist()
        [[4, 4], [6, 6]]
        """
        seats = self.seats or (1,) * self.districts
        if self.bounds is not None:
            rows = [(self.bounds[0] * s, self.bounds[1] * s) for s in seats]
        else:
            t = as_fraction(self.tolerance, "decimal")
            rows = [(max(0, ceil((1 - t) * mean)), floor((1 + t) * mean)) for mean in self._exact_means]
        return np.array([(min(a, _LARGEST), min(b, _LARGEST)) for a, b in rows], np.int64).reshape(-1, 2)

    @property
    def unequal_seats(self) -> bool:
        """Whether two districts have different numbers of seats."""
        return self.seats is not None and len(set(self.seats)) > 1

    @cached_property
    def population_bounds(self) -> tuple[int, int]:
        """The smallest and the largest population of any district, both inclusive; see also `windows`.

        Examples
        --------
        >>> from forcopt.data import grid
        >>> Districting(grid(3, 7, population=10), districts=4, tolerance=0.1).population_bounds
        (48, 57)
        """
        return int(self.windows[:, 0].min()), int(self.windows[:, 1].max())

    def units(self, attribute: str) -> Array:
        """The number of the county (or another unit) of each node, in order of first appearance.

        Raises
        ------
        DeclarationError
            If a node lacks the attribute, or has a null (None or NaN) there.
        """
        return self.once(("units", attribute), lambda: self._units(attribute))

    def filled(self, attribute: str) -> bool:
        """Whether every node has a value of an attribute."""
        null = (np.ndim(x) == 0 and is_missing(x) for _, x in self.graph.nodes(data=attribute))
        return self.once(("filled", attribute), lambda: not any(null))

    def _units(self, attribute: str) -> Array:
        numbers: dict[Any, int] = {}
        for node, data in self.graph.nodes(data=True):
            if is_missing(data.get(attribute)):
                raise self._lacking(node, attribute)
            value = data[attribute]
            require(isinstance(value, Hashable), f"node {node!r}: {attribute}", value, "be a name or number")
        found = [numbers.setdefault(data[attribute], len(numbers)) for _, data in self.graph.nodes(data=True)]
        return np.array(found, np.int64)

    def splits(self, labels: Array, attribute: str | None = None) -> Array:
        """For each county, the number of districts that it meets, less 1."""
        units = self.units(self.county if attribute is None else attribute)
        return np.asarray(np.bincount(np.unique(np.stack([units, labels]), axis=1)[0]) - 1)

    def as_enacted(self, labels: Array) -> Array:
        """The number of the old district that each node's district is matched with, see `least_change`.

        Numbers are those of `units`; districts that are left get the next ones.
        """
        old, new = self.units(self.enacted), np.unique(labels, return_inverse=True)[1]
        people, count = self.arrays.weights.astype(float), len(old) + 1
        held = np.zeros((new.max() + 1, max(old.max(), new.max()) + 1))
        np.add.at(held, (new, old), people * count + 1 if (self.total + 1) * count < _LARGEST else people)
        return np.asarray(scipy.optimize.linear_sum_assignment(held, maximize=True)[1][new])

    @cached_property
    def keeps_numbers(self) -> bool:
        """Whether the least change is sought, and a plan may number its districts as the enacted one."""
        free = self.objective == "least-change" and not self.unequal_seats and not self._fixed()
        return free and int(self.units(self.enacted).max()) < self.districts

    def column(self, attribute: str) -> list[Fraction]:
        """A node attribute as exact numbers, read from their decimal digits.

        Raises
        ------
        DeclarationError
            If one is missing or no decimal number.
        """
        return self.once(("column", attribute), lambda: self._column(attribute))

    def _column(self, attribute: str) -> list[Fraction]:
        found = []
        for node, data in self.graph.nodes(data=True):
            try:
                found.append(as_fraction(data.get(attribute), "decimal"))
            except (TypeError, ValueError, ZeroDivisionError):
                raise DeclarationError(
                    f"node {node!r}: {attribute} is {data.get(attribute)!r}; it must be a number"
                ) from None
        return found

    def numbers(self, attribute: str) -> Array:
        """A node attribute as floats, shape (n,)."""
        return self.once(("numbers", attribute), lambda: np.array([float(x) for x in self.column(attribute)]))

    def amounts(self, attribute: str) -> Array:
        """A node attribute as floats, shape (n,), that are not negative.

        Raises
        ------
        DeclarationError
            If one is missing, negative or no decimal number.
        """
        values = self.numbers(attribute)
        node, least = self.nodes[int(values.argmin())], values.min()
        if least < 0:
            raise DeclarationError(f"node {node!r}: {attribute} is {least:g}; it must be at least 0")
        return values

    @cached_property
    def border(self) -> tuple[Array, Array, Array, Array]:
        """Areas of nodes, their outer borders, pairs of nodes and the lengths of their borders.

        Raises
        ------
        DeclarationError
            If the graph lacks them.
        """
        found = borders(self)
        if found is None:
            raise DeclarationError(f"a node has no {AREA!r}, or an edge no {BORDER!r}")
        return found

    @cached_property
    def lengths(self) -> Array:
        """The lengths of the borders of adjacent nodes, in the order of the edges of `arrays`."""
        _, _, ends, length = self.border
        spots = {tuple(sorted(edge)): i for i, edge in enumerate(self.arrays.edges.tolist())}
        return np.bincount([spots[tuple(sorted(edge))] for edge in ends.tolist()], length, len(spots))

    @cached_property
    def inertia(self) -> Array:
        """``[i, j]``: population of node i times its squared distance to node j."""
        xy = np.stack([self.numbers(a) for a in ("x", "y")], axis=1)
        return np.asarray(self.arrays.weights[:, None] * ((xy[:, None] - xy[None]) ** 2).sum(axis=-1))

    @cached_property
    def must_link(self) -> tuple[tuple[int, ...], ...]:
        """Groups of nodes (positions) that share a district by the side constraints; disjoint."""
        graph: nx.Graph[int] = nx.Graph()
        for item in self.side_constraints:
            if isinstance(item, MustLink):
                nx.add_path(graph, [self.place[v] for v in item.nodes])
        for fixed in self._fixed().values():
            nx.add_path(graph, fixed)
        groups = [tuple(sorted(c)) for c in nx.connected_components(graph)]
        return tuple(sorted(g for g in groups if len(g) > 1))

    @cached_property
    def linked(self) -> list[tuple[int, int]]:
        """The groups of `must_link` as pairs of nodes."""
        return [pair for group in self.must_link for pair in pairwise(group)]

    @cached_property
    def cannot_link(self) -> tuple[tuple[int, int], ...]:
        """Pairs of nodes (positions) that do not share a district by the side constraints."""
        found = set()
        for item in self.side_constraints:
            if isinstance(item, CannotLink):
                spots = [self.place[v] for v in item.nodes]
                found |= {(min(a, b), max(a, b)) for i, a in enumerate(spots) for b in spots[:i]}
        fixed = list(self._fixed().values())
        for i, first in enumerate(fixed):
            for second in fixed[:i]:
                found |= {(min(a, b), max(a, b)) for a in first for b in second}
        return tuple(sorted(found))

    @cached_property
    def cut_limit(self) -> int | None:
        """The largest number of cut pairs that the side constraints allow; None without a limit."""
        return min((limit // 2 for _, limit in self.limits("cut_edges")), default=None)

    @cached_property
    def most_cost(self) -> int | None:
        """A cost in the units of `arrays` that no plan within the cut limit exceeds; None without a limit."""
        if self.cut_limit is None:
            return None
        return int(np.sort(self.arrays.costs)[::-1][: self.cut_limit].sum())

    @cached_property
    def pair_limit(self) -> int | None:
        """The cut limit, unless `most_cost` implies it because all edges cost the same."""
        same = len(self.arrays.costs) and (self.arrays.costs == self.arrays.costs[0]).all()
        return None if same and self.arrays.costs[0] else self.cut_limit

    def _fixed(self) -> dict[int, list[int]]:
        fixed = (item for item in self.side_constraints if isinstance(item, Fixed))
        return lists_by_key((item.district, self.place[item.node]) for item in fixed)

    def infeasibility_reason(self) -> str:
        """The reason why there is no plan, if it follows from sums and components; else empty.

        Examples
        --------
        >>> from forcopt.data import grid
        >>> Districting(grid(1, 3), districts=2, bounds=(2, 2)).infeasibility_reason()
        'the total population 3 is below 2 districts times 2'
        """
        low, high = self.population_bounds
        k, g = self.districts, self.arrays
        for least, most in self.windows.tolist():
            if least > most:
                return f"no integer lies within the tolerance: the bounds are {least} and {most}"
        fewest, most = self.windows.sum(axis=0).tolist()
        if not fewest <= g.total <= most:
            word, end, each = ("below", fewest, low) if g.total < fewest else ("above", most, high)
            seats = self.unequal_seats and f"{end} in {sum(self.seats or ())} seats"
            return f"the total population {g.total} is {word} {seats or f'{k} districts times {each}'}"
        heavy = int(np.argmax(g.weights))
        if g.weights[heavy] > high:
            return f"node {self.nodes[heavy]!r} has population {g.weights[heavy]}, above {high}"
        pieces = g.components()
        alone = [int(piece[0]) for piece in pieces if len(piece) == 1 and len(g.weights) > 1]
        islands = [v for v in alone if g.weights[v] < low]
        named = ", ".join(repr(self.nodes[v]) for v in islands[:3])
        if islands:
            more = f" and {len(islands) - 3} more" if len(islands) > 3 else ""
            return (
                f"node {named}{more} has no neighbours, and population {g.weights[islands[0]]}, below {low}; "
                "connect it to a node across the water, or leave it out"
            )
        if len(pieces) > k:
            return f"the graph has {len(pieces)} components, more than {k} districts"
        fewest = most = 0
        for piece in pieces:
            people = int(g.weights[piece].sum())
            least = max(1, -(-people // high)) if high else 1
            largest = min(len(piece), people // low) if low else len(piece)
            if least > largest:
                first = self.nodes[piece[0]]
                return f"the component of node {first!r} has population {people}: no number of districts fits"
            fewest, most = fewest + least, most + largest
        if not fewest <= k <= most:
            return f"the components take {fewest} to {most} districts, not {k}"
        for group in self.must_link:
            people = int(g.weights[list(group)].sum())
            if people > high:
                first = self.nodes[group[0]]
                return f"the nodes kept together with {first!r} have population {people}, above {high}"
            if set(self.cannot_link) & {(a, b) for a in group for b in group}:
                return f"node {self.nodes[group[0]]!r} has both to be with and apart from another"
        return ""

    def least_relaxation(self, time_limit: float = 10.0) -> str:
        """Give the least deviation from the mean population that a plan can have.

        If no populations allow a plan, give side constraints that contradict each other instead, an
        irreducible set if time allows.

        Examples
        --------
        >>> from forcopt.data import grid
        >>> Districting(grid(1, 4, population=[3, 1, 1, 1]), 2, bounds=(2, 4)).least_relaxation()
        ''
        >>> Districting(grid(1, 3, population=[1, 3, 1]), 2, tolerance=0.2).least_relaxation()
        'the least relaxation: tolerance 0.6, for districts of population 1 to 4'
        >>> from forcopt.models.districting import CutLimit
        >>> Districting(grid(2, 2), 2, tolerance=0, side_constraints=[CutLimit(1)]).least_relaxation()
        'no plan of any populations satisfies CutLimit(limit=1)'
        """
        deadline = Deadline(time_limit)
        whole = self.replace(tolerance=None, bounds=(0, self.arrays.total), objective="deviation")
        found = whole.solve("portfolio", time_limit=deadline.left)
        if found.status is Status.INFEASIBLE:
            blamed = self.side_constraints
            for item in blamed:
                fewer = tuple(other for other in blamed if other is not item)
                rest = whole.replace(side_constraints=fewer).solve("portfolio", time_limit=deadline.left)
                blamed = fewer if rest.status is Status.INFEASIBLE else blamed
            if not blamed:  # the graph has too many components
                return ""
            together = " together" if len(blamed) > 1 else ""
            return f"no plan of any populations satisfies {', '.join(map(repr, blamed))}{together}"
        if found.decision is None:
            return ""
        people = np.bincount(self.labels(found.decision), self.arrays.weights, self.districts).astype(int)
        if ((self.windows[:, 0] <= people) & (people <= self.windows[:, 1])).all():
            return ""
        needed, proved = self._deviation(people), found.status is Status.OPTIMAL
        while self.unequal_seats and proved and needed and not deadline.passed:
            # The objective counts people, the tolerance shares of the mean: a plan may be better by shares.
            closer = self.replace(
                tolerance=min(float(needed) * (1 - LESS), 1.0), bounds=None, objective="deviation"
            )
            found = closer.solve("portfolio", time_limit=deadline.left)
            if found.decision is None:
                proved = found.status is Status.INFEASIBLE
                break
            people = np.bincount(self.labels(found.decision), self.arrays.weights, self.districts).astype(int)
            needed = self._deviation(people)
        best = "the least relaxation" if proved and not deadline.passed else "a sufficient relaxation"
        seats = np.array(self.seats or (1,) * self.districts)
        low, high = int((people // seats).min()), int((-(-people // seats)).max())
        each = " for each seat" if (seats > 1).any() else ""
        if needed == 0 and low == high:
            return f"{best}: bounds that hold the mean population{each}, {low}"
        if needed == 0 or needed > 1:
            return f"{best}: bounds {low} to {high}{each}"
        tolerance = f"{rounded_up(float(needed)):.6g}"
        return f"{best}: tolerance {tolerance}, for districts of population {min(people)} to {max(people)}"

    def _deviation(self, people: Array) -> Fraction:
        """The largest deviation of a district from its mean population, as a fraction of that."""
        return max(abs(int(n) / m - 1) for n, m in zip(people, self._exact_means, strict=True))

    # -- evaluating ----------------------------------------------------------------------------------------

    def labels(self, decision: Plan | Mapping[Any, int] | Series) -> Array:
        """Give a plan as an array: the district of each node, by position.

        Parameters
        ----------
        decision : Plan or Mapping[Any, int] or Series
            The district of each node; or GerryChain's Partition.

        Returns
        -------
        Array
            Int64, shape ``(n,)``.

        Raises
        ------
        DeclarationError
            If a node is missing, unknown, or in a district that is no integer; for the assignment of a
            Partition, whose numbers of nodes are not those of the graph.
        """
        series: Any = decision
        if hasattr(type(decision), "assignment"):  # a `Plan`, or a Partition, whose graph knows the names
            name = getattr(getattr(series, "graph", None), "original_nx_node_id_for_internal_node_id", None)
            decision = {name(v) if name else v: d for v, d in series.assignment.items()}
        elif type(decision).__module__.startswith("gerrychain."):
            raise DeclarationError("GerryChain numbers the nodes of an assignment itself; give the Partition")
        elif hasattr(series, "iloc") and series.ndim == 1:
            for node in series.index[series.index.duplicated()]:
                raise DeclarationError(f"the plan assigns the node {node!r} twice")
            decision = series.to_dict()
        if not isinstance(decision, Mapping):
            told = "a plan is a mapping or pandas Series from node to district"
            raise DeclarationError(f"{told}, not {type(decision).__name__}")
        for node in (node for node in decision if node not in self.place):
            raise DeclarationError(f"the plan assigns the node {node!r}, which the graph lacks")
        out = np.empty(len(self.nodes), np.int64)
        for i, node in enumerate(self.nodes):
            if node not in decision:
                raise DeclarationError(f"the plan does not assign the node {node!r}")
            label = decision[node]
            whole = isinstance(label, int | np.integer) and not isinstance(label, bool)
            if not whole or abs(int(label)) >= _LARGEST:
                where = f"the plan assigns node {node!r} to {label!r}"
                raise DeclarationError(f"{where}; it must be an integer below 2**53")
            out[i] = label
        return out

    def evaluate(self, decision: Plan | Mapping[Any, int] | Series) -> Evaluation:
        """Evaluate a plan: objective, population bounds, contiguity and side constraints.

        Parameters
        ----------
        decision : Plan | Mapping[Any, int] | Series
            A `Plan`, or a mapping or pandas Series from each node to its district, 0 to ``districts - 1``;
            or GerryChain's Partition with such districts.

        Raises
        ------
        DeclarationError
            If it does not assign every node of the graph, and no other.

        Examples
        --------
        >>> from forcopt.data import grid
        >>> p = Districting(grid(1, 4), districts=2, bounds=(2, 2))
        >>> p.evaluate({0: 0, 1: 1, 2: 0, 3: 1}).violations
        {'contiguity of district 0': 1.0, 'contiguity of district 1': 1.0}
        """
        labels = self.labels(decision)
        g = self.arrays
        violations: dict[str, float] = {}
        outside = (labels < 0) | (labels >= self.districts)
        if outside.any():
            violations[f"districts 0 to {self.districts - 1}"] = float(outside.sum())
        people = np.bincount(labels[~outside], g.weights[~outside], self.districts)
        for d in range(self.districts):
            members = np.flatnonzero(labels == d)
            if len(members) == 0:
                violations[f"district {d} is empty"] = 1.0
                continue
            low, high = self.windows[d].tolist()
            short = max(low - people[d], people[d] - high)
            if short > 0:
                violations[f"population of district {d}"] = float(short)
            pieces = len(g.components(members.tolist()))
            if pieces > 1:
                violations[f"contiguity of district {d}"] = float(pieces - 1)
        sides = enumerate(self.side_constraints)
        broken = {f"side_constraints[{i}] {x!r}": x.violation(self, labels) for i, x in sides}
        broken |= {f"rules[{i}] {rule}": violation(self, rule, labels) for i, rule in enumerate(self.rules)}
        violations |= {name: much for name, much in broken.items() if much > 0}
        metrics = self.metrics(labels, people)
        if self.goal is None:
            return Evaluation(metrics[str(self.objective)], violations, metrics)
        sets = labels == np.arange(self.districts)[:, None]
        return Evaluation(float(self.values(sets[sets.any(axis=1)]).sum()), violations, metrics)

    def values(self, sets: Array) -> Array:
        """The cost of each district, given as bits, shape (count, n), if the objective is a sum of these."""
        assert self.goal is not None
        found = np.broadcast_to(self.goal.function.value(reader(self, sets)), len(sets))
        if not np.isfinite(found).all():
            nodes = [self.nodes[v] for v in np.flatnonzero(sets[np.argmin(np.isfinite(found))])[:3].tolist()]
            raise DeclarationError(f"the district of {nodes} and others has no finite {self.goal.function}")
        return found

    def metrics(self, labels: Array, people: Array, until: str | None = None) -> dict[str, float]:
        """The objectives, and the measures of compactness and of splits for which the graph has data.

        Those that take longer are left out if one that is asked for comes before them.
        """
        u, v = self.arrays.edges.T
        found = {
            "cut": self.arrays.cut_cost(labels) / self.cost_scale,
            "cut_edges": float((labels[u] != labels[v]).sum()),
            "deviation": float(np.abs(people - self.means).max()),
        }
        if until in found:
            return found
        if self.objective == "inertia":
            found["inertia"] = self.total_inertia(labels)
        if self.filled(self.county):
            splits, counties = self.splits(labels), self.units(self.county)
            crossing = (labels[u] == labels[v]) & (counties[u] != counties[v])
            borders_crossed = np.sort(np.stack([counties[u], counties[v]]), axis=0)[:, crossing]
            found |= {
                "splits": float(splits.sum()),
                "split_counties": float((splits > 0).sum()),
                "pieces": float((splits + 1).sum()),
                "traversals": float(len(np.unique([*borders_crossed, labels[u][crossing]], axis=1).T)),
            }
        if until in found:
            return found
        if self.filled(self.enacted):
            moved = self.as_enacted(labels) != self.units(self.enacted)
            found["least-change"] = float(self.arrays.weights[moved].sum())
            found["changed_nodes"] = float(moved.sum())
        for name, scores in (("polsby_popper", polsby_popper(self, labels)), ("reock", reock(self, labels))):
            if len(scores):
                found |= {f"{name}_min": float(scores.min()), f"{name}_mean": float(scores.mean())}
        return found

    def total_inertia(self, labels: Array) -> float:
        """The sum of the districts' moments of inertia, each about its best centre node."""
        members = [np.flatnonzero(labels == d) for d in np.unique(labels)]
        return float(sum(self.inertia[np.ix_(at, at)].sum(axis=0).min() for at in members))

    @property
    def inertia_takers(self) -> str:
        """The methods that take the objective ``inertia`` with these seats, for errors."""
        if not self.unequal_seats:
            return "'shirabe' and, on at most 128 nodes, 'set-partitioning' do"
        if self._fixed():
            return "with different numbers of seats and Fixed only 'local-search' does, without a proof"
        return (
            "with different numbers of seats 'set-partitioning' does, on at most 128 nodes, "
            "and 'local-search', without a proof"
        )

    def certify(self, decision: Any, method: str | None = None, **options: Any) -> Certificate:
        """Check a plan as `Problem.certify` does; of an objective that no formulation takes, the plan alone.

        Parameters
        ----------
        decision, method, options
            See `Problem.certify`.

        Returns
        -------
        Certificate
        """
        found = super().certify(decision, method, **options)
        if found.feasible is not None or self.goal is None or decision is None:
            return found
        plain = self.replace(objective="cut").certify(decision, **{**options, "time_limit": 0.0})
        how = f"the plan without its objective, {plain.how}"
        return replace(plain, objective=None, bound=None, optimal=None, stages=(), how=how)

    def declare(self, model: Model, method: str | None = None, **options: Any) -> Handles:
        """Write the problem into a model; by the formulation ``flow`` unless another is named.

        The handles hold ``member`` (node by district, or node by root in the root formulations), ``cut``
        (edge, in the order of ``arrays.edges``: 1 if its ends lie apart, else 0), ``population`` (of each
        district or root) and, in the root formulations, ``root``. The objective ``least-change`` may be
        overstated where a model does not minimize it.
        """
        if method is None:
            method = "shirabe" if self.objective == "inertia" else "flow"
        return super().declare(model, method, **options)

    def count(
        self,
        max_cost: float | None = None,
        method: str = "frontier",
        *,
        time_limit: float | None = None,
        progress: bool = False,
    ) -> PlanCounts:
        """Count the plans of each cost; also gives them by rank, at random, and in order of cost.

        Parameters
        ----------
        max_cost : float, optional
            Only plans of at most this cost are counted.
        method : {"frontier", "sphere-cut"}, optional
            The dynamic program.
        time_limit : float, optional
            Seconds; without it, plans are counted when a figure is first asked for.
        progress : bool, optional
            Show the elapsed time on the error output while counting.

        Returns
        -------
        PlanCounts

        Raises
        ------
        DeclarationError
            For another objective than ``cut``, or if the graph is too wide (see ``frontier``).
        TimeoutError
            If the count takes longer than the time limit.
        MemoryError
            If the states do not fit in memory.
        """
        from forcopt.models.districting.counts import PlanCounts

        return PlanCounts(self, max_cost, method, time_limit=time_limit, progress=progress)

    def ensemble(
        self,
        method: Literal["uniform", "recom", "reversible-recom", "smc"] = "uniform",
        size: int = 1000,
        *,
        progress: bool = False,
        rng: int | np.random.Generator | None = None,
        **options: Any,
    ) -> Ensemble:
        """Draw an ensemble of plans, for histograms of scores and outlier analysis.

        Parameters
        ----------
        method : {"uniform", "recom", "reversible-recom", "smc"}, optional
            ``uniform`` draws independently and uniformly among all plans, by exact counts; plans that violate
            a `Share` or a `SplitLimit` are drawn and rejected. ``recom`` takes the plans of a chain, see
            `ReCom`, that stays within the side constraints; its law is not known. ``reversible-recom`` takes
            those of the reversible chain: after many steps the law is the spanning-tree law, proportional to
            the product over districts of the number of spanning trees. ``smc`` draws weighted plans by
            sequential Monte Carlo (`Ensemble.weights`): for large sizes their law is the spanning-tree law
            to the power `rho`. Both keep side constraints by rejection. For spanning trees, and wherever an
            edge is drawn, parallel edges are one edge, as in `Plan.cut_edges`: only their costs add.
        size : int, optional
            The number of plans. If a chain cannot go on, they are fewer, and a warning says why.
        progress : bool, optional
            Show the elapsed time on the error output while drawing.
        max_cost : float, optional
            Of ``uniform``: only plans of at most this cost are drawn.
        count_with : str, optional
            Of ``uniform``: the method of `count`.
        start : Plan, optional
            Of the chains: the first plan; a local search's by default.
        thin : int, optional
            Of the chains: one plan is kept of this number of steps. Most steps of the reversible one stay.
        tree : {"uniform", "least"}, optional
            Of ``recom``: the law of the spanning trees.
        rho : float, optional
            Of ``smc``: 1 by default; 0 for uniform plans, whose weights differ more; see
            `Ensemble.effective_size`.
        seed : int or numpy.random.Generator, optional
            Of the draws.
        rng : int or numpy.random.Generator, optional
            Another name of ``seed``, as Scientific Python's SPEC 7 has it.

        Returns
        -------
        Ensemble

        Raises
        ------
        DeclarationError
            If there is no plan to draw, fewer than one in 10,000 plans drawn is accepted, the method does
            not take the problem, or an option has a wrong value.
        """
        from forcopt.models.districting.ensemble import draw_ensemble

        with show_progress(ProgressLine(f"ensemble by {method}", Deadline()), progress):
            seed = one_seed(options.pop("seed", None), rng)
            return draw_ensemble(self, method, size, seed=seed, **options)

    def require(self, method: str, *objectives: str, takes: tuple[str, ...] = ()) -> None:
        """Check that a method takes the objective, and the features that not all methods take.

        Parameters
        ----------
        method : str
            Its name, for the error.
        *objectives : str
            The objectives that it takes.
        takes : tuple of str, optional
            What it takes besides: ``"seats"`` for unequal ones, and the classes of rules, if it is not a
            registered method. A limit on cut edges is taken by all.

        Raises
        ------
        DeclarationError
            Naming the features of the method, or the methods that take the feature.
        """
        if (self.objective if self.goal is None else "goal") not in objectives:
            named = " or ".join(x for x in objectives if x != "goal")
            raise DeclarationError(
                f"method {method!r} takes the objective {named}, not {self.objective}; "
                "'portfolio' and 'local-search' take every objective"
            )
        taken = {*takes, *(self.methods[method].rules if method in self.methods else ())}
        given = {"seats": "" if "seats" in takes or not self.unequal_seats else "seats"}
        given |= {f"{RULES[r.scope]} ({r})": r.scope for r in self.tied if r.scope not in taken}
        for feature, kind in given.items():
            if kind:
                exact = [repr(m.name) for m in self.methods.values() if m.exact and kind in m.rules]
                others = f"{', '.join(exact)} do"
                if kind == "seats":
                    others = "'portfolio', 'set-partitioning', 'column-generation' and 'labels-separators' do"
                if self.objective == "inertia":
                    others = f"for the objective inertia, {self.inertia_takers}"
                if method.startswith("count "):
                    others = "'ensemble' draws plans with it"
                raise DeclarationError(f"method {method!r} does not take {feature}; {others}")


def measures(function: Function) -> Iterator[Measure]:
    """The measures in a function, also those within rules that count."""
    for leaf in function.leaves:
        if isinstance(leaf, Measure):
            yield leaf
        else:
            yield from measures(leaf.function)


def _single(rule: Rule) -> tuple[float, Measure | Meets] | None:
    """The factor and the measure of a rule on a sum over districts of one measure; None for others."""
    if rule.scope != "sum" or len(rule.function.terms) != 1:
        return None
    factor, node = rule.function.terms[0]
    return (factor, node) if isinstance(node, Measure | Meets) and factor else None
