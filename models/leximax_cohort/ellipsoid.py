"""The leximax marginals by the ellipsoid method with the separation oracle; for the record."""

from __future__ import annotations

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.models.leximax_cohort.problem import LeximaxCohort
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["ellipsoid"]


@LeximaxCohort.algorithm(
    "ellipsoid", exact=False, cites="Henzinger et al. (2022), Lemma 16, made full-dimensional"
)
def ellipsoid(problem: LeximaxCohort, *, accuracy: float = 1e-3, steps: int = 100_000) -> Outcome:
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
        Give up after so many in a stage.

    Raises
    ------
    DeclarationError
        For other problems, and an accuracy that is not positive.
    """
    if problem.integer or problem.signed or problem.quotas or problem.forced.size or problem.forbidden.size:
        raise DeclarationError(
            "'ellipsoid' is for marginals without quotas, forced or forbidden candidates and signed utilities"
        )
    if not accuracy > 0:
        raise DeclarationError(f"accuracy is {accuracy}; it must be positive")
    n, m = problem.utilities.shape
    x = np.full(n, problem.size / n)
    sums = np.zeros(0)
    taken = 0
    if n == 1:
        return Outcome(problem.lottery(x))
    for rank in range(1, m + 1):
        found, done = _stage(problem, sums - 0.5 * accuracy, rank, accuracy, steps)
        taken += done
        if found is None or done == steps:
            message = f"stage {rank} did not end in {steps} steps"
            if done < steps:
                message = f"stage {rank} met no point: give it a smaller accuracy"
            return Outcome(problem.lottery(x), status=Status.FEASIBLE, iterations=taken, message=message)
        x = found
        sums = np.append(sums, np.sort(problem.utilities.T @ x)[:rank].sum())
    return Outcome(problem.lottery(x), iterations=taken)


def _stage(
    problem: LeximaxCohort, fixed: Array, rank: int, accuracy: float, steps: int
) -> tuple[Array | None, int]:
    """Maximise the sum of the `rank` smallest utilities where the sums of fewer are at least `fixed`."""
    V, k = problem.utilities, problem.size
    n = len(V)
    centre = np.append(np.full(n - 1, k / n), 0.0)  # probabilities but the last, and the sum
    shape = np.eye(n) * ((n - 1) + (rank * k * V.max() + 1) ** 2)
    best, highest = None, -np.inf
    for step in range(1, steps + 1):
        cut, value, x = _cut(V, k, centre, fixed, rank)
        if value > highest:
            best, highest = x, value
        along = shape @ cut
        width = float(np.sqrt(max(cut @ along, 0.0)))
        if min(width, float(np.sqrt(max(shape[-1, -1], 0.0)))) < 0.1 * accuracy:
            return best, step
        centre = centre - along / ((n + 1) * width)
        shape = n * n / (n * n - 1) * (shape - 2 / (n + 1) * np.outer(along, along) / width**2)
    return best, steps


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
