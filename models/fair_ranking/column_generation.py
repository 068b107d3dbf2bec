"""Lotteries over generated rankings: a master with one row for each demand, and sorting as its oracle."""

from __future__ import annotations

from typing import Any

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import OnImprovement
from forcopt.errors import DeclarationError
from forcopt.fairness.ranking import CounterfactualOrder
from forcopt.language import Model, maximize
from forcopt.loops.column_generation import Column, Duals, Pricing, column_generation
from forcopt.models.fair_ranking.formulations import pooled_exposures, regression_on_semiorder, unit_of
from forcopt.models.fair_ranking.problem import FairRanking, RankingLottery
from forcopt.models.fair_ranking.tolerances import SHARE
from forcopt.problem import Outcome
from forcopt.status import Status


@FairRanking.algorithm("column-generation", exact=True, cites="Gilmore and Gomory (1961)")
def generate_rankings(
    problem: FairRanking,
    *,
    backend: str = "highs",
    time_limit: float | None = None,
    gap: float = 1e-7,
    on_improvement: OnImprovement | None = None,
) -> Outcome:
    """Mix rankings. The best ranking at given prices of demands is a sort, or an assignment.

    An assignment is needed for demands on prefixes and for utilities by position. With a
    `CounterfactualOrder` the columns are lotteries that keep it, and the oracle is an isotonic regression.

    Notes
    -----
    The lottery mixes at most as many columns as the demands have rows, plus one. A sort takes O(n log n), an
    assignment O(n k**2), an isotonic regression O(n) for each of its blocks.
    """
    if problem.integer:
        raise DeclarationError("'column-generation' finds lotteries; integer=True asks for one ranking")
    if not generates(problem):
        kinds = "demands on groups, and one CounterfactualOrder if none of them is on a prefix"
        raise DeclarationError(f"'column-generation' takes {kinds}; use 'assignment'")
    oracle = _Oracle(problem) if all(notion.groupwise for notion in problem.notions) else _Ordered(problem)
    model = Model("mixture of rankings")
    one = model.subject_to(model.lift(np.zeros(1)) == 1, name="mixture")
    rows = None
    if len(oracle.low):
        sums = model.lift(np.zeros(len(oracle.low)))
        rows = model.subject_to(sums.between(oracle.low, oracle.high), name="demands")
    model.optimize(maximize(model.lift(0.0)))

    def price(dual: Duals) -> Pricing:
        prices = dual(rows) if rows is not None else np.zeros(0)
        found = oracle.best(prices, dual.cost_weight)
        coefficients: dict[Any, Any] = {one: 1.0}
        if rows is not None:
            coefficients[rows] = oracle.activity(found)
        column = Column(oracle.worth(found), coefficients, data=found)
        return Pricing([column], max(dual.reduced_cost(column), 0.0))

    found = column_generation(
        model, price, backend, total=1.0, gap=gap, time_limit=time_limit, on_improvement=on_improvement
    )
    solution = found.solution
    decision = None
    if solution.status.has_solution:
        used = found.used(SHARE)
        weights = np.array([value for value, _ in used])
        decision = oracle.mixed(weights / weights.sum(), np.array([column.data for _, column in used]))
    bound = solution.bound * oracle.unit if decision is not None else None
    message = solution.message
    if solution.status is Status.INFEASIBLE:
        message = problem.infeasibility_reason() or "no lottery meets the demands together"
    return Outcome(decision, bound, solution.status, found.rounds, message)


def generates(problem: FairRanking) -> bool:
    """Whether `generate_rankings` takes the demands."""
    orders = [notion for notion in problem.notions if not notion.groupwise]
    free = problem.scores is not None and all(limit.prefix is None for limit in problem.limits)
    return not orders or (free and len(orders) == 1 and isinstance(orders[0], CounterfactualOrder))


class _Oracle:
    """The rows of the demands, and the best ranking at their prices."""

    def __init__(self, problem: FairRanking) -> None:
        self.problem, self.unit = problem, unit_of(problem)
        self.limits = problem.limits
        empty = [np.zeros(0)]
        self.low = np.concatenate([limit.low for limit in self.limits] or empty)
        self.high = np.concatenate([limit.high for limit in self.limits] or empty)
        self.w, self.k = problem.position_weights, problem.length
        self.in_prefixes = any(limit.prefix is not None for limit in self.limits)
        matched = self.in_prefixes or problem.utilities is not None
        self.kept = problem.kept if matched and problem.groupwise else np.arange(problem.size)

    def mixed(self, weights: Array, rankings: Array) -> RankingLottery:
        """The lottery over rankings with these probabilities."""
        return self.problem.lottery(lottery=(weights, rankings))

    def worth(self, order: Array) -> float:
        """The utility of a ranking, in units."""
        if self.problem.utilities is not None:
            return float(self.problem.utilities[order, np.arange(self.k)].sum()) / self.unit
        assert self.problem.scores is not None
        return float(self.problem.scores[order] @ self.w) / self.unit

    def activity(self, order: Array) -> Array:
        """By how much a ranking uses each row."""
        parts, counts = [], {}
        for limit in self.limits:
            groups = len(limit.factor)
            if limit.prefix is None:
                sums = np.bincount(limit.codes[order], self.w, minlength=groups)
            else:
                if id(limit.codes) not in counts:
                    of = limit.codes[order][None, :] == np.arange(groups)[:, None]
                    counts[id(limit.codes)] = np.cumsum(of, axis=1)
                sums = counts[id(limit.codes)][:, limit.prefix - 1]
            parts.append(limit.factor * sums)
        return np.concatenate(parts)

    def best(self, prices: Array, cost_weight: float) -> Array:
        """The ranking with the best reduced cost."""
        kept, problem = self.kept, self.problem
        scale = cost_weight / self.unit
        own = np.zeros(len(kept)) if problem.scores is None else problem.scores[kept] * scale
        matrix = None
        if problem.utilities is not None:
            matrix = problem.utilities[kept] * scale
        elif self.in_prefixes:
            matrix = np.zeros((len(kept), self.k))
        start = 0
        for limit in self.limits:
            price = prices[start : start + len(limit.factor)] * limit.factor
            start += len(limit.factor)
            if not price.any():
                continue
            paid = price[limit.codes[kept]]
            if limit.prefix is None:
                own = own - paid
            else:
                assert matrix is not None
                matrix[:, : limit.prefix] -= paid[:, None]
        if matrix is None:
            k = self.k
            chosen = np.argpartition(-own, k - 1)[:k] if k < len(own) else np.arange(k)
            return np.asarray(kept[chosen[np.argsort(-own[chosen], kind="stable")]])
        from scipy.optimize import linear_sum_assignment

        matrix += np.outer(own, self.w)
        rows, columns = linear_sum_assignment(matrix, maximize=True)
        order = np.empty(self.k, dtype=int)
        order[columns] = kept[rows]
        return order


class _Ordered(_Oracle):
    """The rows of the demands on exposures, and at their prices the best exposures that keep an order."""

    def __init__(self, problem: FairRanking) -> None:
        super().__init__(problem)
        self.order = next(notion for notion in problem.notions if isinstance(notion, CounterfactualOrder))

    def mixed(self, weights: Array, exposures: Array) -> RankingLottery:
        """The lottery with the mean of these exposures."""
        return self.problem.lottery(exposures=weights @ exposures)

    def worth(self, exposures: Array) -> float:
        """The utility of exposures, in units."""
        assert self.problem.scores is not None
        return float(self.problem.scores @ exposures) / self.unit

    def activity(self, exposures: Array) -> Array:
        """By how much exposures use each row."""
        sums = (np.bincount(limit.codes, exposures, len(limit.factor)) for limit in self.limits)
        return np.concatenate([limit.factor * own for limit, own in zip(self.limits, sums, strict=True)])

    def best(self, prices: Array, cost_weight: float) -> Array:
        """The exposures with the best reduced cost."""
        assert self.problem.scores is not None
        values = self.problem.scores * (cost_weight / self.unit)
        start = 0
        for limit in self.limits:
            price = prices[start : start + len(limit.factor)] * limit.factor
            start += len(limit.factor)
            values = values - price[limit.codes]
        blocks = regression_on_semiorder(values, self.order.scores, self.order.slack, self.w)
        return pooled_exposures(blocks, self.w)
