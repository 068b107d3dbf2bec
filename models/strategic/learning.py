"""The common part of both ways to learn criteria: populations to draw from, and the learned criteria."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from forcopt.errors import DeclarationError
from forcopt.models.strategic.problem import OpenCriteria, StrategicClassification

__all__ = ["Learned", "Population", "check_rates"]


class Population(Protocol):
    """Agents that can be drawn: a `StrategicClassification` whose weights are probabilities, or anything
    else."""

    @property
    def criteria(self) -> int:
        """How many criteria there are."""

    def sample(self, size: int, rng: np.random.Generator) -> StrategicClassification:
        """Draw agents independently; the result has `size` agents and the same criteria."""


@dataclass(frozen=True)
class Learned:
    """Criteria that were learned.

    Attributes
    ----------
    decision : OpenCriteria
        The criteria to publish.
    samples : int
        How many agents were drawn.
    rounds : int
        How often criteria were published on the way.
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
