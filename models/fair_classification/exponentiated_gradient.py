"""The reductions approach: exponentiated gradient against best responses, or a grid of multipliers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import ceil, comb, log, sqrt

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline, OnImprovement, Trace
from forcopt.errors import DeclarationError
from forcopt.games import ExponentiatedGradient, run_game
from forcopt.models.fair_classification.lagrangian import check_options, is_whole
from forcopt.models.fair_classification.lagrangian_game import LagrangianGame
from forcopt.models.fair_classification.problem import FairClassification
from forcopt.models.fair_classification.tolerances import LEAST_BOUND
from forcopt.problem import Outcome

MOST_ROUNDS = 1000


def rounds_needed(size: int, bound: float, accuracy: float) -> tuple[int, float]:
    """Rounds and step after which average plays are an accuracy-saddle point, whatever happens.

    Parameters
    ----------
    size : int
        The number of inequalities.
    bound : float
        On the sum of the multipliers.
    accuracy : float
        Nu, above 0.

    Returns
    -------
    tuple[int, float]
        ``16 bound^2 ln(size + 1) / accuracy^2`` and ``accuracy / (8 bound)``. (Mozannar et al. (2020) print
        the rounds without bound^2, which is too few.).

    Examples
    --------
    >>> rounds_needed(4, bound=5, accuracy=0.5)
    (2576, 0.0125)
    """
    return max(1, ceil(16 * bound**2 * log(size + 1) / accuracy**2)), accuracy / (8 * bound)


def multiplier_bound(problem: FairClassification, accuracy: float) -> float:
    """The auditor's budget: enough to enforce the constraint, if that is known; at most 1 / accuracy.

    With a bound B and a gap nu the constraint is violated by at most (1 + 2 nu) / B.
    """
    known = [h.predictions for h in problem.oracle.constants()]
    needed = min(problem.lagrangian.enough(known), 1.0 / accuracy)
    return max(needed, LEAST_BOUND)  # 0 suffices if a constant is fair and errs never


@FairClassification.algorithm(
    "exponentiated-gradient",
    cites="Agarwal et al. (2018), Algorithm 1; Jagielski et al. (2019), Algorithm 5",
    rank="published",
)
def exponentiated_gradient(
    problem: FairClassification,
    *,
    accuracy: float = 0.01,
    bound: float | None = None,
    step: float | None = None,
    rounds: int | None = None,
    repair: bool = True,
    backend: str = "highs",
    time_limit: float | None = None,
    on_improvement: OnImprovement | None = None,
) -> Outcome:
    """Play the Lagrangian game until the duality gap is at most `accuracy`.

    In each round the auditor prices the inequalities by exponentiated gradient, and the learner answers with
    the best classifier for the costs. Now and then (rounds 1, 2, 3, 4, 6, 9, ...) the gap is computed: the
    largest charge of an auditor with budget `bound` for the mixture, less the charge for the best classifier
    at the average prices. With `repair` the mixture is the best fair one of all classifiers met,
    by a linear program, whose prices are tried, too.

    Parameters
    ----------
    accuracy : float, default 0.01
        The gap at which to stop; 0 plays all rounds.
    bound : float, optional
        B, on the sum of the prices; `multiplier_bound` by default.
    step : float, optional
        Of the auditor; suited to the number of rounds by default.
    rounds : int, optional
        The largest number; by default the theorem's (see `rounds_needed`), but at most 1000.
    repair : bool, default True
        Give the best mixture of the classifiers met, rather than the average of the plays.
    """
    game = problem.lagrangian
    check_options(accuracy=accuracy, bound=bound, rounds=rounds)
    if accuracy == 0 and (bound is None or rounds is None):
        raise DeclarationError("accuracy is 0; then bound and rounds must be given")
    if bound is None:
        bound = multiplier_bound(problem, accuracy)
    if rounds is None:
        rounds = min(rounds_needed(game.size, bound, accuracy)[0], MOST_ROUNDS)
    if step is None:
        step = 0.5 * sqrt(log(max(game.size, 1) + 1) / rounds)
    auditor = ExponentiatedGradient(game.size, bound, step)
    trace = Trace(Deadline(time_limit), on_improvement)
    state = LagrangianGame(problem, auditor, bound=bound, repair=repair, backend=backend, trace=trace)
    return state.outcome(run_game(state, rounds=rounds, accuracy=accuracy, trace=trace))


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
    points : int, default 100
        The largest number of calls of the oracle.
    bound : float, optional
        On the sum of the multipliers.

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
