"""Column generation: mix the classifiers known so far, and ask the oracle for one that the prices favour."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline, Improvement, OnImprovement
from forcopt.language.model import Model
from forcopt.learning import Hypothesis, OracleTimeout
from forcopt.loops.column_generation import Column, Duals, Pricing, column_generation
from forcopt.models.fair_classification.lagrangian import WORTH_RECALLING
from forcopt.models.fair_classification.options import check_options
from forcopt.models.fair_classification.problem import FairClassification
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["generate"]

GAP = 1e-9
"""Relative: nearer than this, error and bound are the same."""
NEARBY = (1.25, 0.8)
"""Multiples of the prices for further calls of a heuristic oracle: it may react too little or too much."""
SECOND = 0.3
"""The multiple of the prices for the second fit. With the cuts of one score alone, fairness costs several
times as much as with all scores, and a fit at such prices helps little later."""


@FairClassification.algorithm(
    "column-generation",
    exact=True,
    cites="Gilmore and Gomory (1961) on Jagielski et al. (2019), program (2)",
)
def generate(
    problem: FairClassification,
    *,
    accuracy: float | None = None,
    rounds: int | None = None,
    backend: str = "highs",
    time_limit: float | None = None,
    on_improvement: OnImprovement | None = None,
) -> Outcome:
    """Solve the linear program over mixtures with those columns that the cost-sensitive oracle finds.

    The master mixes the classifiers found so far, fairly; its shadow prices are the auditor's multipliers;
    the oracle answers them with the best response, which joins the master if that helps. Starts from the
    constant classifiers, where most notions are satisfied. In every round the Lagrangian bounds the optimum.

    With an exact oracle the end is optimal. With a `Learner` no more than this is known: the mixture is fair
    on the records, and the learner finds no classifier that would improve it, also when it is asked at prices
    nearby.

    Parameters
    ----------
    problem : FairClassification
        The problem.
    accuracy : float, optional
        Stop once the error is at most this far above the Lagrangian bound; 0 goes on until no classifier
        improves the mixture. By default 0 with an exact oracle, and `FairClassification.noise` with a
        `Learner`: a quarter of the standard error of the error itself. A smaller difference of training
        errors is within the sampling error.
    rounds : int, optional
        The largest number of masters.
    backend : str, default "highs"
        Solves the masters.
    time_limit : float, optional
        Seconds, checked before each call of the oracle; a `Learner` finishes the fit it has begun.
    on_improvement : OnImprovement, optional
        See `Problem.solve`.
    """
    lagrangian, oracle = problem.lagrangian, problem.oracle.fresh()
    check_options(accuracy=accuracy or 0.0, rounds=rounds)
    deadline = oracle.deadline = Deadline(time_limit)
    known = oracle.constants()
    model = Model("mixture")
    start = model.variable("constants", len(known), lower=0.0)
    slack = model.variable("slack", len(lagrangian.low), lower=lagrangian.low, upper=lagrangian.high)
    predictions = np.array([h.predictions for h in known], dtype=float)
    left = model.lift(np.zeros(lagrangian.size)) + lagrangian.slack @ slack
    if known:
        left = left + lagrangian.activity(predictions.T) @ start
    fair = model.subject_to(left <= lagrangian.bounds, name="fairness")
    mixture = model.subject_to(start.sum() == 1, name="mixture")
    model.minimize(start @ np.array([lagrangian.error(p) for p in predictions]))
    lower, prices, calls = -np.inf, np.zeros(lagrangian.size), 0
    reason = ""

    def column(found: Hypothesis) -> Column:
        entries = {fair: lagrangian.activity(found.predictions), mixture: 1.0}
        return Column(lagrangian.error(found.predictions), entries, data=found)

    def ask(costs: Array) -> Hypothesis:
        nonlocal calls
        if deadline.passed:
            raise OracleTimeout
        calls += 1
        return oracle.best(costs)

    def price(dual: Duals) -> Iterable[Column] | Pricing:
        nonlocal reason
        try:
            return improve(dual)
        except OracleTimeout:
            reason = deadline.end
            return Pricing([], -np.inf)

    def improve(dual: Duals) -> Iterable[Column] | Pricing:
        nonlocal lower, prices, reason
        multipliers = np.maximum(-dual(fair), 0.0)
        costs = lagrangian.price(multipliers, dual.cost_weight)
        recalled = oracle.recall(costs)
        if recalled and dual.reduced_cost(column(recalled[0])) < -WORTH_RECALLING:
            lower = -np.inf
            return list(map(column, recalled))
        if calls == 1 and dual.cost_weight and not oracle.exact:
            damped = explore(dual, costs, multipliers, (SECOND,))
            if damped:
                return damped
        found = ask(costs)
        proved = lagrangian.value(found.predictions, multipliers) if dual.cost_weight else -np.inf
        if proved > lower or not oracle.exact:
            lower, prices = proved, multipliers
        new = column(found)
        if oracle.exact:
            return Pricing([new], dual.reduced_cost(new))
        if dual.reduced_cost(new) < -WORTH_RECALLING:
            return [new]
        nearby = explore(dual, costs, multipliers, NEARBY)
        if not nearby:
            reason = "the learner finds no classifier that improves the mixture"
        return nearby

    def explore(dual: Duals, costs: Array, multipliers: Array, multiples: tuple[float, ...]) -> list[Column]:
        """The answers of a heuristic oracle to other prices may suit these prices."""
        nonlocal lower
        for multiple in multiples:
            answer = ask(lagrangian.price(multiple * multipliers))
            best = column(min([answer, *oracle.recall(costs)], key=lambda h: float(costs @ h.predictions)))
            if dual.reduced_cost(best) < -WORTH_RECALLING:
                lower = -np.inf
                return [best]
        return []

    def improved(now: Improvement) -> bool:
        nonlocal reason
        if on_improvement is not None and on_improvement(now):
            reason = "the caller stopped the run"
            return True
        near = accuracy
        if near is None:
            near = 0.0 if oracle.exact else problem.noise(now.objective)
        if now.objective - lower <= near:
            reason = (
                reason or f"the gap {max(now.objective - lower, 0.0):.3g} is within the accuracy {near:.3g}"
            )
            return True
        return False

    ended = column_generation(
        model,
        price,
        backend,
        total=1.0,
        gap=GAP,
        time_limit=time_limit,
        rounds=rounds,
        on_improvement=improved,
    )
    solution = ended.solution
    if not solution.status.has_solution:
        status, message = solution.status, "; ".join(filter(None, [reason, solution.message]))
        if status is Status.INFEASIBLE and not oracle.exact:
            status = Status.LIMIT
            message = "no mixture of the classifiers that the learner finds is fair; this proves nothing"
        return Outcome(None, status=status, iterations=ended.rounds, message=message)
    if not reason and solution.status is not Status.OPTIMAL:
        reason = deadline.end if deadline.passed else "all rounds were played"
    if deadline.passed and reason == deadline.end:
        gap = solution.objective - lower
        known_to = "" if oracle.exact else ", if the learner's fits are optimal"
        reason += f": the error is at most {gap:.3g} above the bound{known_to}" if np.isfinite(gap) else ""
    weights = np.concatenate([solution[start], solution[ended.variable]])
    decision = problem.policy(weights, [*known, *(c.data for c in ended.columns)], prices)
    return Outcome(
        decision,
        bound=solution.bound if oracle.exact else None,
        status=solution.status if oracle.exact else Status.APPROXIMATE,
        iterations=ended.rounds,
        message="; ".join(filter(None, [reason, f"{calls} calls of the oracle"])),
        trace=solution.trace if oracle.exact else [],
    )
