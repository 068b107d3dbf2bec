"""Seeded instances: what `forcopt instances` lists and exports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from forcopt.language.model import Model
from forcopt.problem import Problem

__all__ = ["Instance", "by_name"]


@dataclass(frozen=True)
class Instance:
    """A problem that is drawn the same way everywhere, and the formulation whose model solvers are given.

    A package of problems lists its own in a module ``instances`` under the name ``INSTANCES``.

    Attributes
    ----------
    name : str
        The family of the problem, a slash, and what is drawn: ``strategic/max-cover-60-40-10``.
    make : Callable[[], Problem]
        Draws the problem, with a seed of its own.
    method : str
        A formulation that MPS and LP files can hold: linear, one objective, no lazy families.
    options : Mapping[str, Any], optional
        Of the formulation.
    """

    name: str
    make: Callable[[], Problem]
    method: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def model(self) -> Model:
        """The model that the formulation writes."""
        return self.make().to_model(self.method, **self.options)


def by_name(instances: Iterable[Instance]) -> dict[str, Instance]:
    """The instances by their names, each of which must be new.

    Raises
    ------
    ValueError
        For a name that is taken.
    """
    found: dict[str, Instance] = {}
    for instance in instances:
        if instance.name in found:
            raise ValueError(f"two instances are named {instance.name}")
        found[instance.name] = instance
    return found
