"""Notions of approximate leximax, and the two schemes that relax levels by a slack."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from forcopt.arrays import Array, as_numbers, check_entries
from forcopt.clock import Deadline
from forcopt.errors import BackendError, DeclarationError, require, require_shape
from forcopt.language.atoms import sum_smallest
from forcopt.language.constraint import implies
from forcopt.language.expression import Expression
from forcopt.language.model import Model
from forcopt.language.variable import Variable
from forcopt.loops.solution import ModelSolution
from forcopt.models.leximax_cohort.formulations import only_leximin, write_choice
from forcopt.models.leximax_cohort.problem import LeximaxCohort
from forcopt.problem import FEASIBILITY_TOLERANCE, Outcome
from forcopt.status import Status


class LeximaxNotions(ABC):
    """Judges vectors of utilities against a set of solutions.

    Attributes
    ----------
    count : int
        Of groups.
    tolerance : float
        Differences up to this are rounding.
    """

    count: int
    tolerance: float

    @abstractmethod
    def highest(self, floors: Array) -> float:
        """The greatest possible level, if the earlier ones are at least `floors`.

        Parameters
        ----------
        floors : Array
            For the first levels of the sorted vector; fewer than there are groups.
        """

    def tradeoff_gap(self, utilities: Any) -> Array:
        """For each level, by how much another solution beats it without a loss at an earlier level.

        The largest entry is the least eps for which the solution is an eps-tradeoff leximax one; all are 0
        for leximax itself.

        Parameters
        ----------
        utilities : Any
            Of a solution, in any order.
        """
        levels = self._sorted(utilities)
        best = [self.highest(levels[:i]) for i in range(self.count)]
        return np.asarray(np.maximum(np.array(best) - levels, 0.0))

    def is_tradeoff_leximax(self, utilities: Any, eps: float) -> bool:
        """Definition 7; the same as being recursive leximax with some slack up to `eps` (Theorem 11)."""
        return bool(self.tradeoff_gap(utilities).max() <= _eps(eps) + self.tolerance)

    def level_maxima(self, slack: Any = 0.0) -> Array:
        """The best value of each level among solutions within `slack` of the best at all earlier levels.

        With no slack it is the leximax vector.

        Parameters
        ----------
        slack : Any, default 0.0
            One number, or one for each level.
        """
        slacks = self._slacks(slack)
        best = np.zeros(self.count)
        for i in range(self.count):
            best[i] = self.highest(best[:i] - slacks[:i])
        return best

    def is_recursive_leximax(self, utilities: Any, slack: Any) -> bool:
        """Definition 10 for given slack: within it of the best at every level."""
        short = self.level_maxima(slack) - self._slacks(slack) - self._sorted(utilities)
        return bool(short.max() <= self.tolerance)

    def is_significant_leximax(self, utilities: Any, eps: float) -> bool:
        """Definition 12: recursive with `eps` at all levels."""
        return self.is_recursive_leximax(utilities, _eps(eps))

    def elementwise_gap(self, utilities: Any) -> float:
        """The most by which a level is below the leximax one (Definition 6); 0 if none is."""
        return float(np.maximum(self.level_maxima() - self._sorted(utilities), 0.0).max())

    def _sorted(self, utilities: Any) -> Array:
        values = as_numbers(utilities, "utilities")
        require_shape(values.shape == (self.count,), "utilities have", values, f"be ({self.count},)")
        return np.sort(values)

    def _slacks(self, slack: Any) -> Array:
        values = as_numbers(slack, "slack")
        if values.shape not in ((), (self.count,)):
            raise DeclarationError(f"slack has shape {values.shape}; it must be one number or {self.count}")
        check_entries(values, values < 0, "slack", "it must not be negative")
        return np.broadcast_to(values, (self.count,))


def _eps(eps: float) -> float:
    require(0 <= eps < np.inf, "eps", eps, "be finite and not negative")
    return eps


class SolutionSet(LeximaxNotions):
    """Finitely many solutions.

    Parameters
    ----------
    utilities : Any
        A row for each solution, a column for each group.
    tolerance : float, default 1e-09
        Differences up to this are rounding.

    Examples
    --------
    >>> s = SolutionSet([[0, 1], [0.01, 0.01]])
    >>> s.leximax(), s.significant_leximax(0.05)
    ([1], [0])
    >>> s.tradeoff_gap([0, 1]).tolist()
    [0.01, 0.0]
    """

    def __init__(self, utilities: Any, tolerance: float = 1e-9) -> None:
        values = as_numbers(utilities, "utilities")
        fits = values.ndim == 2 and 0 not in values.shape
        require_shape(fits, "utilities have", values, "be (solutions, groups), at least one of each")
        self.sorted = np.sort(values, axis=1)
        self.count, self.tolerance = values.shape[1], tolerance

    def highest(self, floors: Array) -> float:
        """Filter, and look: O(N m)."""
        kept = (self.sorted[:, : len(floors)] >= np.asarray(floors) - self.tolerance).all(axis=1)
        return float(self.sorted[kept, len(floors)].max(initial=-np.inf))

    def leximax(self) -> list[int]:
        """The positions of all leximax solutions."""
        return self.significant_leximax(0.0)

    def tradeoff_leximax(self, eps: float) -> list[int]:
        """The positions of all eps-tradeoff leximax solutions."""
        return [i for i, row in enumerate(self.sorted) if self.is_tradeoff_leximax(row, eps)]

    def recursive_leximax(self, slack: Any) -> list[int]:
        """The positions of all recursive leximax solutions for given slack; there always is one."""
        short = self.level_maxima(slack) - self._slacks(slack) - self.sorted
        return np.flatnonzero(short.max(axis=1) <= self.tolerance).tolist()

    def significant_leximax(self, eps: float) -> list[int]:
        """The positions of all eps-significant recursive leximax solutions."""
        return self.recursive_leximax(_eps(eps))

    def significant_tradeoff(self, gain: float, loss: float) -> list[int]:
        """The solutions from which every gain of more than `gain` costs an earlier loss of more than `loss`.

        Definition 9; there may be none.
        """
        found = []
        for i, own in enumerate(self.sorted):
            better = self.sorted > own + _eps(gain) + self.tolerance
            worse = self.sorted < own - _eps(loss) - self.tolerance
            paid = np.cumsum(worse, axis=1) - worse > 0  # at an earlier level
            if not (better & ~paid).any():
                found.append(i)
        return found


class FeasibleCohorts(LeximaxNotions):
    """All feasible decisions of a `LeximaxCohort`.

    The set of marginals whose i-th level is at least a number is not convex: each question is a mixed-integer
    program, in which binaries mark the groups that are at least at each floor.

    Parameters
    ----------
    problem : LeximaxCohort
        Which.
    backend : str, default "highs"
        Takes mixed-integer programs.
    tolerance : float, default FEASIBILITY_TOLERANCE
        Differences up to this are rounding.

    Examples
    --------
    >>> from forcopt.models import LeximaxCohort
    >>> p = LeximaxCohort(utilities=[[0.4, 0.7, 0.7], [0.5, 0.52, 1]], size=1)
    >>> all_ = FeasibleCohorts(p)
    >>> all_.tradeoff_gap([0.5, 0.52, 1]).round(6).tolist()  # leximax, and yet not significant
    [0.0, 0.0, 0.0]
    >>> all_.is_significant_leximax([0.5, 0.52, 1], eps=0.1)
    False
    """

    def __init__(
        self, problem: LeximaxCohort, backend: str = "highs", tolerance: float = FEASIBILITY_TOLERANCE
    ) -> None:
        self.problem, self.backend, self.tolerance = problem, backend, tolerance
        self.count = problem.utilities.shape[1]

    def highest(self, floors: Array) -> float:
        """By a mixed-integer program with a binary for each group and distinct floor.

        Raises
        ------
        BackendError
            If the solver ends without an optimum.
        """
        result, _, u = self.solve(floors)
        if result.status != "optimal":
            raise BackendError(f"level {len(floors) + 1}: the status is {result.status} ({result.message})")
        return float(np.sort(result[u])[len(floors)])

    def solve(
        self, floors: Array, time_limit: float | None = None
    ) -> tuple[ModelSolution, Variable, Expression]:
        """Maximize the level after `floors`; also give the marginals' and utilities' expressions."""
        m, level = self.count, len(floors)
        model = Model("levels")
        x, u = write_choice(self.problem, model)
        lowest, greatest = model.span_of(u)
        top = model.variable("top", lower=lowest.min(), upper=greatest.max())
        for r in range(level):
            floor = float(floors[r]) - 0.1 * self.tolerance
            if r == 0:
                model.subject_to(u >= floor)
            elif floor > floors[:r].max():  # else an earlier floor demands more
                high = model.variable(f"high{r}", m, binary=True)
                model.subject_to(implies(high, u >= floor), high.sum() >= m - r)
        if level == 0:
            model.subject_to(u >= top)
        else:
            lifted = model.variable("lifted", m, binary=True)
            model.subject_to(implies(lifted, u >= top), lifted.sum() >= m - level)
        model.maximize(top)
        return model.solve(self.backend, time_limit=time_limit), x, u


def _first_slack(problem: LeximaxCohort) -> float:
    return float(problem.slacks[0])


def _by_stages(
    problem: LeximaxCohort,
    ask: Callable[[list[float], float | None], tuple[ModelSolution, Variable, Expression]],
    value: Callable[[ModelSolution, Expression, Array, int], float],
    time_limit: float | None,
) -> Outcome:
    """Solve a program for each level, given the values of the earlier ones, in units.

    If one has no optimum, the decision is the point of the last solved stage, or the incumbent of the first.
    """
    only_leximin(problem)
    deadline, best, x, taken = Deadline(time_limit), list[float](), None, 0
    for stage in range(problem.utilities.shape[1]):
        result, chosen, u = ask(best, deadline.left)
        taken += result.iterations
        if result.status is not Status.OPTIMAL:
            if x is None and result.status.has_solution:
                x = result[chosen]
            return Outcome(
                None if x is None else problem.lottery(x),
                bound=problem.unit * (best[0] if best else result.bound),
                status=result.status if x is None else Status.FEASIBLE,
                iterations=taken,
                message=f"stage {stage + 1}: {result.message}",
            )
        x = result[chosen]
        best.append(value(result, u, x, stage))
    return Outcome(problem.lottery(x), bound=best[0] * problem.unit, iterations=taken)


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
    backend : str, default "highs"
        Takes the linear programs; for one cohort, integer programs.
    time_limit : float, optional
        Seconds; then the decision comes from the last stage that ended.
    """
    unit, slacks = problem.unit, problem.slacks / problem.unit

    def ask(best: list[float], time_limit: float | None) -> tuple[ModelSolution, Variable, Expression]:
        model = Model("cumulative")
        chosen, u = write_choice(problem, model)
        u = u / unit
        for r, (value, slack) in enumerate(zip(best, slacks, strict=False), 1):
            model.subject_to(sum_smallest(u, r) >= value - slack)
        model.maximize(sum_smallest(u, len(best) + 1))
        return model.solve(backend, time_limit=time_limit), chosen, u

    def value(result: ModelSolution, u: Expression, x: Array, stage: int) -> float:
        return float(np.sort(problem.utilities.T @ x / unit)[: stage + 1].sum())

    return _by_stages(problem, ask, value, time_limit)


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
    backend : str, default "highs"
        Takes mixed-integer programs.
    time_limit : float, optional
        Seconds; then the decision comes from the last level that ended.
    """
    unit = problem.unit
    every = FeasibleCohorts(problem.replace(utilities=problem.utilities / unit), backend)
    return _by_stages(
        problem,
        lambda best, left: every.solve(np.array(best) - problem.slacks[: len(best)] / unit, left),
        lambda result, u, x, stage: float(np.sort(result[u])[stage]),
        time_limit,
    )
