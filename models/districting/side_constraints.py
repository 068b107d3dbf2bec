"""Side constraints of a districting plan; each measures its violation by a plan."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field, field_validator

from forcopt.arrays import Array
from forcopt.declaration import Declared
from forcopt.errors import DeclarationError, require
from forcopt.models.districting.districts import Row, violation
from forcopt.problem.parts import Function, Measure, Meets, Rule

if TYPE_CHECKING:
    from forcopt.models.districting.problem import Districting


def _node(value: Any) -> Any:
    return tuple(_node(v) for v in value) if isinstance(value, list) else value


def _nodes(value: Any) -> Any:
    return tuple(_node(v) for v in value) if isinstance(value, list | tuple | set | frozenset) else value


Node = Annotated[Any, BeforeValidator(_node)]
Nodes = Annotated[tuple[Any, ...], BeforeValidator(_nodes), Field(min_length=2)]


class SideConstraint(Declared):
    """The base of the side constraints of `Districting`."""

    tag = "side"

    def named(self) -> tuple[Any, ...]:
        """The nodes that it names."""
        return ()

    def rules(self, problem: Districting) -> tuple[Rule, ...]:
        """The rules on districts that it is."""
        return ()

    @abstractmethod
    def violation(self, problem: Districting, labels: Array) -> float:
        """By how much a plan (the district of each node, by position) violates it; 0 if it holds."""


class _OfRules(SideConstraint):
    """A name for rules on districts."""

    def violation(self, problem: Districting, labels: Array) -> float:
        """By how much a plan violates its rules together."""
        return sum(violation(problem, rule, labels) for rule in self.rules(problem))


class _OfNodes(SideConstraint):
    """A constraint on several nodes."""

    nodes: Nodes

    def named(self) -> tuple[Any, ...]:
        """The nodes that it names."""
        return self.nodes

    def spread(self, problem: Districting, labels: Array) -> int:
        """The number of districts that they lie in."""
        return len({int(labels[problem.place[v]]) for v in self.nodes})


class MustLink(_OfNodes):
    """These nodes lie in one district.

    Attributes
    ----------
    nodes
        Two or more.

    Examples
    --------
    >>> from forcopt.data import grid
    >>> from forcopt.models import Districting
    >>> from forcopt.models.districting import MustLink
    >>> p = Districting(grid(2, 4), districts=2, tolerance=0, side_constraints=[MustLink([0, 3])])
    >>> plan = p.solve().decision.assignment
    >>> plan[0] == plan[3], p.solve().objective, p.replace(side_constraints=()).solve().objective
    (True, 4.0, 2.0)
    """

    def violation(self, problem: Districting, labels: Array) -> float:
        """The number of districts that they lie in, less 1."""
        return self.spread(problem, labels) - 1.0


class CannotLink(_OfNodes):
    """No two of these nodes lie in one district.

    Attributes
    ----------
    nodes
        Two or more, each named once.

    Examples
    --------
    >>> from forcopt.data import grid
    >>> from forcopt.models import Districting
    >>> from forcopt.models.districting import CannotLink
    >>> p = Districting(grid(2, 4), districts=2, tolerance=0, side_constraints=[CannotLink([0, 1])])
    >>> p.solve().objective, p.replace(side_constraints=()).solve().objective
    (4.0, 2.0)
    """

    @field_validator("nodes")
    @classmethod
    def _differ(cls, nodes: tuple[Any, ...]) -> tuple[Any, ...]:
        if len(set(nodes)) < len(nodes):
            raise DeclarationError("a node is named twice; a node cannot be kept apart from itself")
        return nodes

    def violation(self, problem: Districting, labels: Array) -> float:
        """The number of nodes, less that of the districts that they lie in."""
        return float(len(self.nodes)) - self.spread(problem, labels)


class Fixed(SideConstraint):
    """A node lies in a given district.

    Attributes
    ----------
    node : Node
        Which.
    district : int
        From 0 to ``districts - 1``.

    Examples
    --------
    >>> from forcopt.data import grid
    >>> from forcopt.models import Districting
    >>> from forcopt.models.districting import Fixed
    >>> p = Districting(grid(2, 4), districts=2, tolerance=0, side_constraints=[Fixed(0, 1)])
    >>> p.solve().decision.assignment[0]
    1
    """

    node: Node
    district: int = Field(ge=0)

    def named(self) -> tuple[Any, ...]:
        """The node that it names."""
        return (self.node,)

    def violation(self, problem: Districting, labels: Array) -> float:
        """1 if the node lies elsewhere."""
        return float(labels[problem.place[self.node]] != self.district)


class CutLimit(_OfRules):
    """A limit on the adjacent pairs of nodes in different districts.

    Attributes
    ----------
    limit : int
        Inclusive.

    Examples
    --------
    >>> from forcopt.data import grid
    >>> from forcopt.models import Districting
    >>> from forcopt.models.districting import CutLimit
    >>> p = Districting(grid(2, 4), districts=2, tolerance=0, side_constraints=[CutLimit(1)])
    >>> p.solve().status.value, p.replace(side_constraints=[CutLimit(2)]).solve().objective
    ('infeasible', 2.0)
    """

    limit: int = Field(ge=0)

    def rules(self, problem: Districting) -> tuple[Rule, ...]:
        """A limit on the sum over districts: each pair leaves two."""
        half = Function(terms=((0.5, Measure(name="cut_edges")),))
        return (Rule(scope="sum", function=half, upper=self.limit),)


class Share(_OfRules):
    """In some districts, a group has at least a given share of a total.

    A district meets the share if its sum of `attribute` is at least `at_least` times its sum of `total`.
    At least `districts` districts meet it. With a minority's voting-age population, the voting-age
    population, and 0.5, these are majority-minority districts.

    Attributes
    ----------
    attribute : str
        The node attribute of the group: a decimal number, not negative.
    total : str
        The node attribute of the total: a decimal number, not negative.
    at_least : float
        From 0 to 1; compared exactly, from its decimal digits.
    districts : int, default 1
        The least number of districts that meet the share.

    Examples
    --------
    >>> from forcopt.data import grid
    >>> from forcopt.models import Districting
    >>> from forcopt.models.districting import Share
    >>> g = grid(1, 4)
    >>> for v, black in enumerate([4, 0, 0, 7]):
    ...     g.nodes[v].update(vap=10, black=black)
    >>> share = Share(attribute="black", total="vap", at_least=0.5)
    >>> p = Districting(g, 2, bounds=(1, 3), side_constraints=[share])
    >>> p.solve().decision.assignment
    {0: 0, 1: 0, 2: 0, 3: 1}
    """

    attribute: str
    total: str
    at_least: float = Field(ge=0, le=1, allow_inf_nan=False)
    districts: int = Field(default=1, ge=1, strict=True)

    def rules(self, problem: Districting) -> tuple[Rule, ...]:
        """A least number of districts whose surplus over the share is not negative."""
        count, most = self.districts, problem.districts
        require(count <= most, f"side_constraints: {self!r}: districts", count, f"be at most {most}")
        for name in (self.attribute, self.total):
            problem.amounts(name)
        return (Rule(scope="sum", function=Function(terms=((1.0, self._met),)), lower=self.districts),)

    @property
    def _met(self) -> Meets:
        group, whole = (Measure(name="total", of=name) for name in (self.attribute, self.total))
        return Meets(function=Function.of([(1.0, group), (-self.at_least, whole)]), least=0.0)

    def row(self, problem: Districting) -> Row:
        """The surplus over the share in integers: the sum of weights that a district must reach."""
        rows = problem.integer_rows(self._met)
        assert rows is not None  # it is linear in sums over nodes
        return rows[0]


class SplitLimit(_OfRules):
    """Counties are split at most a number of times.

    A county whose nodes lie in r districts is split r - 1 times.

    Attributes
    ----------
    limit : int
        The largest total number of splits, inclusive.
    attribute : str, default "county"
        The node attribute that names the county of a node, or another unit to keep whole.

    Examples
    --------
    >>> import networkx as nx
    >>> from forcopt.data import grid
    >>> from forcopt.models import Districting
    >>> from forcopt.models.districting import SplitLimit
    >>> g = grid(2, 4)
    >>> nx.set_node_attributes(g, {v: "north" if v < 4 else "south" for v in g}, "county")
    >>> p = Districting(g, districts=2, tolerance=0, side_constraints=[SplitLimit(limit=0)])
    >>> p.solve().objective, p.replace(side_constraints=()).solve().objective
    (4.0, 2.0)
    """

    limit: int = Field(ge=0)
    attribute: str = "county"

    def rules(self, problem: Districting) -> tuple[Rule, ...]:
        """A limit on the pairs of a county and a district that meet."""
        counties = int(problem.units(self.attribute).max()) + 1
        units = Function(terms=((1.0, Measure(name="units", of=self.attribute)),))
        return (Rule(scope="sum", function=units, upper=self.limit + counties),)
