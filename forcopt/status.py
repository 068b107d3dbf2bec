"""The one status of everything that is solved."""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    """How far an answer can be trusted.

    Examples
    --------
    >>> from forcopt import Status
    >>> Status.OPTIMAL == "optimal", Status.OPTIMAL.has_solution, Status.LIMIT.has_solution
    (True, True, False)
    """

    OPTIMAL = "optimal"
    """Proved optimal within the tolerances asked for."""
    FEASIBLE = "feasible"
    """Feasible, stopped before the proof; the gap bounds its distance from the optimum."""
    APPROXIMATE = "approximate"
    """From an approximate method, with that method's guarantee or none."""
    INFEASIBLE = "infeasible"
    """No point satisfies the constraints."""
    UNBOUNDED = "unbounded"
    """The objective improves without limit."""
    LIMIT = "limit"
    """A limit was reached before any feasible point was found."""
    FAILED = "failed"
    """The solver or method gave up; its own words are kept."""

    @property
    def has_solution(self) -> bool:
        """Whether a point comes with this status."""
        return self in (Status.OPTIMAL, Status.FEASIBLE, Status.APPROXIMATE)
