"""A grid of multipliers: the baseline that adapts nothing."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import comb

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline, OnImprovement, Trace
from forcopt.errors import DeclarationError
from forcopt.games import run_game
from forcopt.models.fair_classification.exponentiated_gradient import multiplier_bound
from forcopt.models.fair_classification.lagrangian_game import LagrangianGame
from forcopt.models.fair_classification.options import check_options, is_whole
from forcopt.models.fair_classification.problem import FairClassification
from forcopt.problem import Outcome

__all__ = ["grid"]

ACCURACY = 0.01


@FairClassification.algorithm("grid", cites="Agarwal et al. (2018), section 3.4", rank="published")
def grid(
    problem: FairClassification,
    *,
    points: int = 100,
    bound: float | None = None,
    backend: str = "highs",
    time_limit: float | None = None,
    on_improvement: OnImprovement | None = None,
) -> Outcome:
    """Ask the oracle at every point of a grid of multipliers, then mix the answers by a linear program.

    The points are all multiples of a step that sum to at most `bound`, with the finest step that gives at
    most `points` of them: k + r choose r for r inequalities and k steps. That is fine for two groups and
    hopeless for many inequalities.

    Parameters
    ----------
    problem : FairClassification
        The problem.
    points : int, default 100
        The largest number of calls of the oracle.
    bound : float, optional
        On the sum of the multipliers.
    backend : str, default "highs"
        Solves the linear program.
    time_limit : float, optional
        Seconds, checked between calls.
    on_improvement : OnImprovement, optional
        See `Problem.solve`.

    Raises
    ------
    DeclarationError
        If not even one step fits.
    """
    check_options(bound=bound)
    if not is_whole(points):
        raise DeclarationError(f"points is {points!r}; it must be a whole number")
    size = problem.lagrangian.size
    if points < 1 + size:
        raise DeclarationError(
            f"points is {points}; {size} inequalities need at least {1 + size}, for one step along each"
        )
    steps = next(k for k in range(1, points + 1) if comb(k + 1 + size, size) > points) if size else 0
    bound = multiplier_bound(problem, ACCURACY) if bound is None else bound
    points_left = iter(_lattice(size, steps))
    trace = Trace(Deadline(time_limit), on_improvement)
    auditor = _Listed(bound / max(steps, 1), points_left)
    state = LagrangianGame(problem, auditor, bound=bound, repair=True, backend=backend, trace=trace)
    count = comb(steps + size, size)
    return state.outcome(run_game(state, rounds=count, accuracy=0.0, trace=trace, first=count))


class _Listed:
    """An auditor that plays a list and learns nothing."""

    def __init__(self, scale: float, points: Iterator[Array]) -> None:
        self.scale, self.points = scale, points

    def play(self) -> Array:
        """The next point of the grid."""
        return self.scale * next(self.points)

    def learn(self, gain: Array) -> None:
        """The auditor does not learn."""


def _lattice(size: int, steps: int) -> Iterator[Array]:
    """All vectors of `size` counts with a sum of at most `steps`: stars and bars."""
    bars = combinations(range(steps + size), size)
    return (np.diff(np.array([-1, *b]), axis=0).astype(float) - 1.0 for b in bars)
