"""Seeded instances, which `forcopt instances` lists and exports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any

from forcopt.language.model import Model
from forcopt.problem import Problem


@dataclass(frozen=True)
class Instance:
    """A problem drawn with a fixed seed, and the formulation that writes its model to a file.

    A package of problems lists its instances in a module ``instances`` under the name ``INSTANCES``.

    Attributes
    ----------
    name : str
        The family of the problem, a slash, and the kind and sizes: ``strategic/max-cover-60-40-10``.
    make : Callable[[], Problem]
        Draws the problem with its own seed.
    method : str
        A formulation that MPS and LP files can hold: linear, one objective, no lazy families.
    options : Mapping[str, Any], optional
        Options of the formulation.
    """

    name: str
    make: Callable[[], Problem]
    method: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def model(self) -> Model:
        """Give the model that the formulation writes."""
        return self.make().to_model(self.method, **self.options)


def family(
    name: str, make: Callable[..., Problem], method: str, *cases: Sequence[Any], **options: Any
) -> list[Instance]:
    """Give an instance for each case.

    Parameters
    ----------
    name : str
        With a ``{}`` for each of the case's values that tell it from the others, the first ones.
    make : Callable[..., Problem]
        Draws the problem from a case's values.
    method : str
        A formulation that MPS and LP files can hold.
    *cases : Sequence
        The values, in the order of the arguments of `make`.
    **options : Any
        Options of the formulation.

    Returns
    -------
    list[Instance]
        In the order of the cases.
    """
    return [Instance(name.format(*case), partial(make, *case), method, options) for case in cases]


def by_name(*groups: Iterable[Instance]) -> dict[str, Instance]:
    """Give instances by name.

    Parameters
    ----------
    *groups : Iterable[Instance]
        Instances with distinct names.

    Returns
    -------
    dict[str, Instance]
        Name to instance.

    Raises
    ------
    ValueError
        If two instances have one name.
    """
    found: dict[str, Instance] = {}
    for instance in chain(*groups):
        if instance.name in found:
            raise ValueError(f"two instances are named {instance.name}")
        found[instance.name] = instance
    return found
