"""Side constraints of a districting plan; each judges a plan by itself."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field, field_validator

from forcopt.arrays import Array
from forcopt.declaration import Declared
from forcopt.errors import DeclarationError

if TYPE_CHECKING:
    from forcopt.models.districting.problem import Districting

__all__ = ["CannotLink", "CutLimit", "Fixed", "MustLink", "SideConstraint"]


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
        """The nodes that it speaks of."""
        return ()

    @abstractmethod
    def violation(self, problem: Districting, labels: Array) -> float:
        """By how much a plan (the district of each node, by position) breaks it; 0 if it holds."""


class _OfNodes(SideConstraint):
    """A demand on several nodes."""

    nodes: Nodes

    def named(self) -> tuple[Any, ...]:
        """The nodes that it speaks of."""
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
    """

    node: Node
    district: int = Field(ge=0)

    def named(self) -> tuple[Any, ...]:
        """The node that it speaks of."""
        return (self.node,)

    def violation(self, problem: Districting, labels: Array) -> float:
        """1 if the node lies elsewhere."""
        return float(labels[problem.place[self.node]] != self.district)


class CutLimit(SideConstraint):
    """At most so many adjacent pairs of nodes lie in different districts.

    Attributes
    ----------
    limit : int
        Inclusive.
    """

    limit: int = Field(ge=0)

    def violation(self, problem: Districting, labels: Array) -> float:
        """By how many pairs the plan exceeds the limit."""
        u, v = problem.arrays.edges.T
        return max(0.0, float((labels[u] != labels[v]).sum()) - self.limit)
