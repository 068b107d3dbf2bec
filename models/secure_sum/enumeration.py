"""All steps and numbers of projections, with a bound on the rest."""

from __future__ import annotations

from forcopt.clock import Deadline
from forcopt.models.secure_sum.problem import SecureSum
from forcopt.models.secure_sum.search import Search
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["enumeration"]


@SecureSum.algorithm("enumeration", exact=True, cites="Talwar (2022), Theorems 13 to 16, made exact")
def enumeration(problem: SecureSum, *, time_limit: float | None = None) -> Outcome:
    """Find the best step and number of projections.

    Parameters
    ----------
    problem : SecureSum
        Which.
    time_limit : float, optional
        Seconds.

    Returns
    -------
    Outcome
        Exact over all k and no projection, with the declared law of shares and the most noise that fits, and
        with the given step, or all powers of ``2^(1/8)`` up to 1. INFEASIBLE with the reason if the bits are
        too few.

    Notes
    -----
    For fixed step and k all constraints are tight: the noise is a root of the exact delta, threshold and gap
    are chi-square quantiles. One integral decides whether k can beat the best gap so far. The search ends at
    a k from which on a proved bound lies above the best gap, see `Search.beyond`.
    """
    deadline = Deadline(time_limit)
    search = Search(problem)
    if not search.candidates:
        return Outcome(None, status=Status.INFEASIBLE, message=search.reason)
    chosen, gap, roots, complete = search.best(deadline)
    if chosen is None:
        status = Status.LIMIT if not complete else Status.INFEASIBLE
        return Outcome(None, status=status, iterations=roots, message="" if not complete else search.reason)
    if not complete:
        return Outcome(chosen, bound=1.0, status=Status.FEASIBLE, iterations=roots)
    return Outcome(chosen, bound=gap, iterations=roots)
