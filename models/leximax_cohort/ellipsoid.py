"""The leximax marginals by the ellipsoid method with the separation oracle; for the record."""

from __future__ import annotations

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline, OnImprovement, Trace
from forcopt.errors import DeclarationError
from forcopt.models.leximax_cohort.problem import LeximaxCohort
from forcopt.problem import Outcome
from forcopt.status import Status


@LeximaxCohort.algorithm(
    "ellipsoid", cites="Henzinger et al. (2022), Lemma 16, made full-dimensional", rank="published"
)
def ellipsoid(
    problem: LeximaxCohort,
    *,
    accuracy: float = 1e-3,
    steps: int = 100_000,
    time_limit: float | None = None,
    on_improvement: OnImprovement | None = None,
) -> Outcome:
    """Maximise the sums of the 1, 2, ... smallest utilities in turn, cutting an ellipsoid in halves.

    The paper's regions have no interior, since the size is an equality and earlier levels are fixed. Here the
    last candidate's probability follows from the others', and fixed sums may fall short by half the
    accuracy; the levels then are right to about the accuracy. A stage takes O(n²) steps for each digit, a
    step O(n² + n m): the other methods are faster by orders of magnitude.

    Parameters
    ----------
    problem : LeximaxCohort
        Without quotas, forced or forbidden candidates, and negative utilities.
    accuracy : float, default 0.001
        Of the sums.
    steps : int, default 100000
        The largest number of steps in a stage.
    time_limit : float, optional
        Seconds for all stages together.
    on_improvement : OnImprovement, optional
        Called with each better smallest utility or bound of the first stage.

    Returns
    -------
    Outcome
        The bound on the smallest utility is the top of the ellipsoid at the end of the first stage. FEASIBLE
        if a stage did not end.

    Raises
    ------
    DeclarationError
        For other problems, and an accuracy that is not positive.
    """
    if (
        problem.integer
        or problem.signed
        or problem.quotas
        or problem.households
        or problem.forced.size
        or problem.forbidden.size
    ):
        raise DeclarationError(
            "'ellipsoid' is for marginals without quotas, forced or forbidden candidates and signed utilities"
        )
    if not accuracy > 0:
        raise DeclarationError(f"accuracy is {accuracy}; it must be positive")
    n, m = problem.utilities.shape
    x = np.full(n, problem.size / n)
    sums = np.zeros(0)
    taken, bound = 0, float(problem.utilities.sum(axis=0).min())
    trace = Trace(Deadline(time_limit), on_improvement)
    if n == 1:
        return Outcome(problem.lottery(x))
    for rank in range(1, m + 1):
        found, done, top, ended = _stage(problem, sums - 0.5 * accuracy, rank, accuracy, steps, trace)
        taken += done
        if rank == 1:
            bound = min(bound, top)
        if found is not None and (rank == 1 or ended):
            x = found
        if found is None or not ended:
            message = f"stage {rank} of {m} did not end in {steps} steps"
            if trace.over:
                message = f"the run ended in stage {rank} of {m}"
            elif ended:
                message = f"stage {rank} of {m} met no feasible point: choose a smaller accuracy"
            return Outcome(problem.lottery(x), bound, Status.FEASIBLE, taken, message, trace.steps)
        sums = np.append(sums, np.sort(problem.utilities.T @ x)[:rank].sum())
    return Outcome(problem.lottery(x), bound, iterations=taken, trace=trace.steps)


def _stage(
    problem: LeximaxCohort, fixed: Array, rank: int, accuracy: float, steps: int, trace: Trace
) -> tuple[Array | None, int, float, bool]:
    """Maximize the sum of the `rank` smallest utilities where the sums of fewer are at least `fixed`.

    Returns
    -------
    tuple[Array | None, int, float, bool]
        The best point, the number of steps, an upper bound on the sum, and whether the accuracy is reached.
    """
    V, k = problem.utilities, problem.size
    n = len(V)
    centre = np.append(np.full(n - 1, k / n), 0.0)  # probabilities but the last, and the sum
    shape = np.eye(n) * ((n - 1) + (rank * k * V.max() + 1) ** 2)
    best, highest, bound = None, -np.inf, np.inf
    for step in range(1, steps + 1):
        # All better points are in the ellipsoid: none has a greater sum than its top.
        top = max(float(centre[-1] + np.sqrt(max(shape[-1, -1], 0.0))), highest)
        improved = top < bound - accuracy
        bound = min(bound, top)
        cut, value, x = _cut(V, k, centre, fixed, rank)
        if value > highest:
            best, highest, improved = x, value, True
        if rank == 1 and improved and best is not None:
            trace.add(highest, bound)
        if trace.over:
            return best, step, bound, False
        along = shape @ cut
        width = float(np.sqrt(max(cut @ along, 0.0)))
        if min(width, float(np.sqrt(max(shape[-1, -1], 0.0)))) < 0.1 * accuracy:
            return best, step, bound, True
        centre = centre - along / ((n + 1) * width)
        shape = n * n / (n * n - 1) * (shape - 2 / (n + 1) * np.outer(along, along) / width**2)
    return best, steps, bound, False


def _cut(V: Array, k: float, z: Array, fixed: Array, rank: int) -> tuple[Array, float, Array]:
    """A half-space through `z` that keeps all better points; and the sum, if `z` is feasible."""
    n = len(V)
    x = np.append(z[:-1], k - z[:-1].sum())
    cut = np.zeros(n)
    for sign, wrong in ((1.0, x > 1.0), (-1.0, x < 0.0)):
        if wrong.any():
            i = int(np.argmax(wrong))
            cut[: n - 1] = -sign if i == n - 1 else 0.0
            if i < n - 1:
                cut[i] = sign
            return cut, -np.inf, x
    order = np.argsort(V.T @ x, kind="stable")
    prefixes = np.cumsum((V.T @ x)[order])[:rank]
    short = np.append(fixed, z[-1]) > prefixes
    if short.any():
        size = int(np.argmax(short)) + 1
        weights = V[:, order[:size]].sum(axis=1)
        cut[: n - 1] = weights[-1] - weights[:-1]
        cut[-1] = 1.0 if size == rank else 0.0
        # The sum at hand is feasible if it is only that which is too high.
        return cut, float(prefixes[-1]) if size == rank else -np.inf, x
    cut[-1] = -1.0
    return cut, float(prefixes[-1]), x
