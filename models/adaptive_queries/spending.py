"""How much of each window's budget every answered query gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from pydantic import Field, model_validator

from forcopt.arrays import Array, as_numbers
from forcopt.clock import Deadline
from forcopt.declaration import Integers, Numbers
from forcopt.errors import DeclarationError
from forcopt.models.adaptive_queries.data_models import DataModel
from forcopt.models.adaptive_queries.schedule import check_intervals
from forcopt.models.adaptive_queries.schedule_methods import incidence
from forcopt.models.adaptive_queries.tolerances import EXCEEDED, ROUNDING
from forcopt.problem import Evaluation, Outcome, Problem
from forcopt.status import Status


@dataclass(frozen=True, eq=False)
class Spending:
    """The spend of each query, and its error.

    Attributes
    ----------
    spends : Array
        The share of the budget of its windows, in the budget's units, shape ``(Q,)``.
    errors : Array
        Of the answers, up to the common factor of the noise, shape ``(Q,)``.

    Examples
    --------
    >>> from forcopt.models import BudgetAllocation
    >>> from forcopt.models.adaptive_queries import DecayingCorrelation
    >>> data = DecayingCorrelation(attributes=4, independence=0.5, width=1)
    >>> p = BudgetAllocation(data, [[1, 1], [2, 2], [4, 4]], objective="leximin")
    >>> s = p.solve("progressive-filling").decision
    >>> s.spends.round(3).tolist(), s.errors.round(3).tolist()
    ([0.333, 0.333, 0.333], [3.0, 3.0, 3.0])
    """

    spends: Array = field(repr=False)
    errors: Array = field(repr=False)

    def __repr__(self) -> str:
        low, high = self.errors.min(), self.errors.max()
        return f"<{len(self.spends)} queries with errors from {low:.4g} to {high:.4g}>"


class BudgetAllocation(Problem):
    """Choose how much of the windows' budgets each query spends, for small errors.

    A query of weight w that spends x has error ``w / x`` with Laplace noise and ``w / sqrt(x)`` with Gaussian
    noise, whose budgets add up as squares of mu.

    Attributes
    ----------
    data_model : DataModel
        The data model.
    intervals : Integers
        First and last position of each query, from 1, shape ``(Q, 2)``.
    weights : Numbers, default 1
        The factors of the errors, above 0; one for all or shape ``(Q,)``.
    epsilon : float, default 1
        The budget of each window, above 0: the epsilon, or the square of mu.
    objective : Literal["worst", "leximin"], default "worst"
        The largest weighted error; or the smallest accuracy (the inverse of the error) as large as
        possible, then the next. The objective then is the largest error.
    noise : Literal["laplace", "gaussian"], default "laplace"
        Of the answers.

    Raises
    ------
    DeclarationError
        For a malformed interval, or a weight that is not above 0.

    References
    ----------
    Du and Dwork (2022); Gaussian budgets, also for adaptive queries: Dong, Roth and Su (2022). Leximin by
    progressive filling: Bertsekas and Gallager (1992), section 6.5.

    Examples
    --------
    >>> from forcopt.models import BudgetAllocation
    >>> from forcopt.models.adaptive_queries import DecayingCorrelation
    >>> data = DecayingCorrelation(attributes=12, independence=0.5, width=1)
    >>> p = BudgetAllocation(data, [[i, i] for i in range(1, 13)], objective="leximin")
    >>> p.solve("progressive-filling").decision.spends.round(3).tolist()
    [0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2]
    """

    family: ClassVar[str] = "queries"
    sense: ClassVar[Literal["min", "max"]] = "min"
    default_method: ClassVar[str] = "progressive-filling"

    data_model: DataModel
    intervals: Integers
    weights: Numbers = Field(default=1.0, validate_default=True)
    epsilon: float = Field(default=1.0, gt=0.0, allow_inf_nan=False)
    objective: Literal["worst", "leximin"] = "worst"
    noise: Literal["laplace", "gaussian"] = "laplace"

    @model_validator(mode="after")
    def _fits(self) -> Self:
        check_intervals(self.data_model, self.intervals)
        q = len(self.intervals)
        if self.weights.shape not in ((), (q,)) or (self.weights <= 0).any():
            raise DeclarationError(f"weights must be above 0, one for all or {q}")
        return self

    @property
    def exponent(self) -> float:
        """The error is the weight over the spend to this power."""
        return 1.0 if self.noise == "laplace" else 0.5

    @property
    def query_weights(self) -> Array:
        """The weight of each query, shape ``(Q,)``."""
        return np.broadcast_to(self.weights, len(self.intervals))

    @property
    def needs(self) -> Array:
        """The spend of each query for an error of 1, shape ``(Q,)``."""
        return np.asarray(self.query_weights ** (1 / self.exponent))

    def matrix(self) -> Any:
        """Which query counts in which window, sparse, shape ``(rows, Q)``; windows that cannot bind are left
        out."""
        rows, columns = incidence(*self.data_model.touched(self.intervals))
        used, row = np.unique(rows, return_inverse=True)
        shape = (len(used), len(self.intervals))
        return sp.csr_array((np.ones(len(rows)), (row.ravel(), columns)), shape=shape)

    def spending(self, spends: Array) -> Spending:
        """The decision with these spends."""
        with np.errstate(divide="ignore"):
            errors = self.query_weights / np.maximum(spends, 0.0) ** self.exponent
        return Spending(spends, errors)

    def evaluate(self, decision: Spending | Sequence[float] | Array) -> Evaluation:
        """Compute the errors; violations are overspent windows, as a share of the budget.

        Parameters
        ----------
        decision : Spending or array_like
            The spend of each query, shape ``(Q,)``.

        Raises
        ------
        DeclarationError
            For another shape.
        """
        given = decision.spends if isinstance(decision, Spending) else decision
        spends = as_numbers(given, "the spends")
        if spends.shape != (len(self.intervals),):
            raise DeclarationError(f"the spends have shape {spends.shape}; it must be {len(self.intervals)}")
        found = {
            "budget": float((self.matrix() @ spends).max() / self.epsilon - 1),
            "negative spend": float(-spends.min()),
        }
        errors = self.spending(spends).errors
        return Evaluation(
            float(errors.max()),
            {name: v for name, v in found.items() if v > EXCEEDED},
            {"sum": float(errors.sum())},
        )


def _within(problem: BudgetAllocation, spends: Array) -> Spending:
    """Without rounding: each spend shrinks by the excess of its fullest window."""
    spends = np.maximum(spends, 0.0)
    matrix = problem.matrix()
    over = np.maximum(matrix @ spends / problem.epsilon, 1.0)
    worst = np.asarray(matrix.multiply(over[:, None]).max(axis=0).todense()).ravel()
    return problem.spending(spends / worst)


@BudgetAllocation.algorithm(
    "progressive-filling", exact=True, cites="Bertsekas and Gallager (1992), section 6.5"
)
def progressive_filling(problem: BudgetAllocation, *, time_limit: float | None = None) -> Outcome:
    """Raise all accuracies together; where a window is full, its queries stop and the others go on.

    Exact for ``"worst"`` and ``"leximin"``. O(windows) rounds; each takes time linear in the windows and in
    the incidences of the windows whose queries stop.
    """
    deadline = Deadline(time_limit)
    matrix, needs = problem.matrix(), problem.needs
    columns = matrix.tocsc()
    active = np.ones(len(needs), dtype=bool)
    full_at = problem.epsilon / (matrix @ needs)  # the level at which each window is full
    level, levels, rounds, interrupted = 0.0, np.zeros(len(needs)), 0, False
    while active.any():
        rounds += 1
        level = max(level, float(full_at.min()))
        interrupted = deadline.passed
        full = np.flatnonzero(full_at <= level * (1 + ROUNDING))
        stop = active.copy()
        if not interrupted:
            stop[np.setdiff1d(np.arange(len(stop)), matrix[full].indices)] = False
        levels[stop] = level
        active &= ~stop
        met = np.unique(columns[:, np.flatnonzero(stop)].indices)
        rows = matrix[met]
        taken, rate = rows @ (levels * needs * ~active), rows @ (needs * active)
        busy = rows @ active.astype(float) > 0
        full_at[met] = np.divide(problem.epsilon - taken, rate, out=np.full(len(met), inf), where=busy)
    found = _within(problem, levels * needs)
    if interrupted and problem.objective == "leximin":
        best = problem.spending(problem.epsilon / (matrix @ needs).max() * needs).errors.max()
        return Outcome(found, float(best), Status.FEASIBLE, rounds, deadline.end)
    return Outcome(found, iterations=rounds)
