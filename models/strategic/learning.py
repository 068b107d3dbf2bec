"""Populations to draw agents from, and the criteria that are learned from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from forcopt.errors import DeclarationError
from forcopt.models.strategic.problem import OpenCriteria, StrategicClassification

__all__ = ["Learned", "Population", "check_rates"]


class Population(Protocol):
    """A distribution of agents.

    `StrategicClassification` is one: its weights are then the probabilities of its agents.
    """

    @property
    def criteria(self) -> int:
        """The number of criteria."""

    def sample(self, size: int, rng: np.random.Generator) -> StrategicClassification:
        """Draw `size` agents independently; the criteria stay the same."""


@dataclass(frozen=True)
class Learned:
    """The result of learning.

    Attributes
    ----------
    decision : OpenCriteria
        The criteria to publish.
    samples : int
        The number of drawn agents.
    rounds : int
        The number of published sets of criteria during learning.
    """

    decision: OpenCriteria
    samples: int
    rounds: int


def check_rates(**rates: Any) -> None:
    """Check that rates are above 0 and at most 1.

    Raises
    ------
    DeclarationError
        Naming the rate.
    """
    for name, rate in rates.items():
        if not 0 < rate <= 1:
            raise DeclarationError(f"{name} is {rate!r}; it must be above 0 and at most 1")
