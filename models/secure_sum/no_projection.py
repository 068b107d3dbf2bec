"""The check without a projection: the whole vector, with noise."""

from __future__ import annotations

from forcopt.clock import Deadline
from forcopt.models.secure_sum.problem import SecureSum
from forcopt.models.secure_sum.search import Search
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["no_projection"]


@SecureSum.algorithm("no-projection", cites="noncentral chi-square law", rank="published")
def no_projection(problem: SecureSum, *, time_limit: float | None = None) -> Outcome:
    """Reveal every coordinate with noise to server 0.

    Returns
    -------
    Outcome
        The best step. The gap grows as the fourth root of the dimension. In few dimensions it is less than
        with any projection: below 156 for S = 2, epsilon = 1, delta = 1e-6 and the default tails, below 174
        for epsilon = 5.
    """
    deadline = Deadline(time_limit)
    search = Search(problem)
    if not search.candidates:
        return Outcome(None, status=Status.INFEASIBLE, message=search.reason)
    if problem.most_projections is not None and problem.most_projections < problem.dimension:
        return Outcome(
            None,
            status=Status.FAILED,
            message=f"server_reals allows {problem.most_projections} numbers for {problem.dimension}",
        )
    made, _ = search.without_projection()
    if made is None or deadline.passed:
        return Outcome(None, status=Status.LIMIT)
    return Outcome(made, status=Status.APPROXIMATE)
