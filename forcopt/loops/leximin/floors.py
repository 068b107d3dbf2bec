"""Hold columns at values that a point attains.

The values are computed from the point, not taken from the solver, and they are held as lower bounds on
columns. The point therefore satisfies the next solve's bounds up to rounding. Where a solver still finds
none, all floors are lowered together, ten times as much each time, and the message reports it.
"""

from __future__ import annotations

import numpy as np

from forcopt.arrays import Array
from forcopt.backends.base import Session

__all__ = ["Floors"]

_LEAST_SLACK, _MOST_SLACK = 1e-12, 1e-4
"""Relative; the first slack if the tolerance is 0, and the last."""


class Floors:
    """Lower bounds that hold columns at values reached before.

    Parameters
    ----------
    session : Session
        Its bounds are set.
    tolerance : float
        Relative to the larger of 1 and the value.

    Attributes
    ----------
    slack : float
        The tolerance, or the larger slack that was needed.
    relaxed : bool
        Whether the slack had to grow.
    """

    def __init__(self, session: Session, tolerance: float) -> None:
        self.session = session
        self.slack = tolerance
        self.relaxed = False
        self._held: dict[int, float] = {}

    def hold(self, held: dict[int, float], spare: Array | None = None) -> None:
        """Hold columns at values; columns in `spare` lose their upper bounds."""
        self._held |= held
        self._apply(spare)

    def relax(self) -> bool:
        """Lower the floors ten times as much as before; False beyond the limit."""
        slack = 10 * max(self.slack, _LEAST_SLACK)
        if not self._held or slack > _MOST_SLACK:
            return False
        self.slack, self.relaxed = slack, True
        self._apply()
        return True

    def _apply(self, spare: Array | None = None) -> None:
        program = self.session.program
        lower, upper = program.lower.copy(), program.upper
        columns = np.fromiter(self._held, dtype=int)
        values = np.fromiter(self._held.values(), dtype=float)
        lower[columns] = np.minimum(values - self.slack * np.maximum(1.0, np.abs(values)), upper[columns])
        if spare is not None:
            upper = upper.copy()
            upper[spare] = np.inf
        self.session.set_bounds(lower, upper)
