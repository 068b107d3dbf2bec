"""Approximate leximax with slack: the sums of levels relaxed in turn, and levels relaxed one by one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.language.atoms import sum_smallest
from forcopt.language.model import Model, Variable
from forcopt.loops.solution import ModelSolution
from forcopt.models.leximax_cohort.formulations import write_choice
from forcopt.models.leximax_cohort.notions import FeasibleCohorts
from forcopt.models.leximax_cohort.problem import LeximaxCohort
from forcopt.problem import Outcome
from forcopt.status import Status


def _first_slack(problem: LeximaxCohort) -> float:
    return float(problem.slacks[0])


def _cut_short(
    problem: LeximaxCohort,
    x: Array | None,
    chosen: Variable,
    best: Sequence[float],
    result: ModelSolution,
    taken: int,
) -> Outcome:
    """The point of the last solved stage, or the incumbent of the first; the first stage's bound."""
    if x is None and result.status.has_solution:
        x = result[chosen]
    return Outcome(
        None if x is None else problem.lottery(x),
        bound=problem.unit * (best[0] if best else result.bound),
        status=result.status if x is None else Status.FEASIBLE,
        iterations=taken,
        message=f"stage {len(best) + 1}: {result.message}",
    )


@LeximaxCohort.algorithm(
    "cumulative", guarantee=_first_slack, cites="Henzinger et al. (2022), section 4.2", rank="published"
)
def cumulative(problem: LeximaxCohort, *, backend: str = "highs", time_limit: float | None = None) -> Outcome:
    """The paper's modified linear programs: each sum of smallest utilities may give way by its slack, once.

    Stage l maximizes the sum of the l smallest utilities, where the sums of r < l are at least their optimum
    less ``slack[r]``. The gap of every level (see `LeximaxNotions.tradeoff_gap`) then is at most its slack,
    so that the solution is max(slack)-tradeoff leximax. It need not be recursive for the given slack nor
    significant, as in the paper: the rows bound sums, not levels. Without slack it is leximax.

    Parameters
    ----------
    problem : LeximaxCohort
        Which.
    backend : str, default "highs"
        Takes the linear programs; for one cohort, integer programs.
    time_limit : float, optional
        Seconds; then the decision comes from the last stage that ended.
    """
    deadline, unit = Deadline(time_limit), problem.unit
    best: list[float] = []  # in units
    x = None
    taken = 0
    for rank in range(1, problem.utilities.shape[1] + 1):
        model = Model("cumulative")
        chosen, u = write_choice(problem, model)
        u = u / unit
        for r, (value, slack) in enumerate(zip(best, problem.slacks / unit, strict=False), 1):
            model.subject_to(sum_smallest(u, r) >= value - slack)
        model.maximize(sum_smallest(u, rank))
        result = model.solve(backend, time_limit=deadline.left)
        taken += result.iterations
        if result.status is not Status.OPTIMAL:
            return _cut_short(problem, x, chosen, best, result, taken)
        x = result[chosen]
        best.append(float(np.sort(problem.utilities.T @ x / unit)[:rank].sum()))
    return Outcome(problem.lottery(x), bound=best[0] * unit, iterations=taken)


@LeximaxCohort.algorithm(
    "recursive",
    guarantee=_first_slack,
    cites="Henzinger et al. (2022), Definitions 10 and 12",
    rank="published",
)
def recursive(problem: LeximaxCohort, *, backend: str = "highs", time_limit: float | None = None) -> Outcome:
    """Recursive leximax for the given slack, exactly; with equal slacks significant leximax.

    Level i is maximised where every earlier level is within its slack of its own maximum: a mixed-integer
    program for each, since which groups are lowest is open. For a dozen groups, not for a hundred.

    Parameters
    ----------
    problem : LeximaxCohort
        Which.
    backend : str, default "highs"
        Takes mixed-integer programs.
    time_limit : float, optional
        Seconds; then the decision comes from the last level that ended.
    """
    deadline, unit = Deadline(time_limit), problem.unit
    every = FeasibleCohorts(problem.replace(utilities=problem.utilities / unit), backend)
    best: list[float] = []  # in units
    taken = 0
    x = None
    for level in range(every.count):
        result, chosen, u = every.solve(np.array(best) - problem.slacks[:level] / unit, deadline.left)
        taken += result.iterations
        if result.status is not Status.OPTIMAL:
            return _cut_short(problem, x, chosen, best, result, taken)
        best.append(float(np.sort(result[u])[level]))
        x = result[chosen]
    return Outcome(problem.lottery(x), bound=best[0] * unit, iterations=taken)
