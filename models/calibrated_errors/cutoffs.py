"""The cutoff that turns scores into predictions, known up to an interval."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forcopt.errors import DeclarationError
from forcopt.problem import FEASIBILITY_TOLERANCE

__all__ = ["MARGIN", "Cutoffs"]

MARGIN = 10 * FEASIBILITY_TOLERANCE
"""The default margin. A solver that breaks a row by its tolerance must not use the margin up."""


class Cutoffs:
    """The common part of problems with the fields ``cutoff``, ``interval`` and ``margin``."""

    if TYPE_CHECKING:
        cutoff: float
        interval: float
        margin: float

    @property
    def upper(self) -> float:
        """The least score that every possible cutoff accepts."""
        return self.cutoff + self.interval

    @property
    def lower(self) -> float:
        """The largest score that every possible cutoff refuses, by the margin."""
        return self.cutoff - max(self.interval, self.margin)

    def check_cutoffs(self) -> None:
        """Check that scores are left on both sides.

        Raises
        ------
        DeclarationError
            Naming the fields.
        """
        if self.lower < 0 or self.upper > 1:
            raise DeclarationError(
                f"interval is {self.interval:g}, cutoff {self.cutoff:g} and margin {self.margin:g}; "
                f"cutoff - max(interval, margin) = {self.lower:g} and cutoff + interval = {self.upper:g} "
                "must be from 0 to 1"
            )
