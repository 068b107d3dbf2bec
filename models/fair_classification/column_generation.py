"""Column generation: mix the classifiers known so far, and ask the oracle for one that the prices favour."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Improvement
from forcopt.language.model import Model
from forcopt.loops.column_generation import Column, Duals, Pricing, column_generation
from forcopt.models.fair_classification.decision import RandomizedClassifier
from forcopt.models.fair_classification.hypotheses import Hypothesis
from forcopt.models.fair_classification.hypothesis_pool import WORTH_RECALLING
from forcopt.models.fair_classification.options import check_options
from forcopt.models.fair_classification.problem import FairClassification
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["generate"]

GAP = 1e-9
"""Relative: nearer than this, error and bound are the same."""
NEARBY = (1.25, 0.8)
"""Multiples of the prices at which a heuristic oracle is asked, too: it may react too little or too much."""


@FairClassification.algorithm(
    "column-generation",
    exact=True,
    cites="Gilmore and Gomory (1961) on Jagielski et al. (2019), program (2)",
)
def generate(
    problem: FairClassification,
    *,
    accuracy: float = 0.0,
    rounds: int | None = None,
    backend: str = "highs",
    time_limit: float | None = None,
    on_improvement: Callable[[Improvement], bool | None] | None = None,
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
        Which.
    accuracy : float, default 0.0
        Stop once the error is so near to the Lagrangian bound; with a `Learner`, to that bound as far as it
        can tell. 0 goes on until no classifier improves the mixture.
    rounds : int, optional
        Stop after so many.
    backend : str, default "highs"
        Solves the masters.
    time_limit : float, optional
        Seconds, checked between calls of the oracle.
    on_improvement : Callable[[Improvement], bool | None], optional
        See `Problem.solve`.
    """
    lagrangian, oracle = problem.lagrangian, problem.oracle.fresh()
    check_options(accuracy=accuracy, rounds=rounds)
    known = oracle.constants()
    model = Model("mixture")
    start = model.variable("constants", len(known), lower=0.0)
    slack = model.variable("slack", len(lagrangian.low), lower=lagrangian.low, upper=lagrangian.high)
    predictions = np.array([h.predictions for h in known], dtype=float)
    left = model.lift(np.zeros(lagrangian.size)) + lagrangian.slack @ slack
    if known:
        left = left + (lagrangian.rows @ predictions.T) @ start
    fair = model.subject_to(left <= lagrangian.bounds, name="fairness")
    mixture = model.subject_to(start.sum() == 1, name="mixture")
    model.minimize(start @ np.array([lagrangian.error(p) for p in predictions]))
    lower, prices, calls = -np.inf, np.zeros(lagrangian.size), 0

    def column(found: Hypothesis) -> Column:
        entries = {fair: lagrangian.rows @ found.predictions, mixture: 1.0}
        return Column(lagrangian.error(found.predictions), entries, data=found)

    def price(dual: Duals) -> Iterable[Column] | Pricing:
        nonlocal lower, prices, calls
        multipliers = np.maximum(-dual(fair), 0.0)
        costs = dual.cost_weight * lagrangian.costs + lagrangian.rows.T @ multipliers
        recalled = [column(found) for found in oracle.recall(costs)]
        if recalled and dual.reduced_cost(recalled[0]) < -WORTH_RECALLING:
            lower = -np.inf
            return recalled
        found, calls = oracle.best(costs), calls + 1
        proved = lagrangian.value(found.predictions, multipliers) if dual.cost_weight else -np.inf
        if proved > lower or not oracle.exact:
            lower, prices = proved, multipliers
        new = column(found)
        if oracle.exact:
            return Pricing([new], dual.reduced_cost(new))
        return [new] if dual.reduced_cost(new) < -WORTH_RECALLING else explore(dual, costs, multipliers)

    def explore(dual: Duals, costs: Array, multipliers: Array) -> list[Column]:
        """What a heuristic oracle answers to other prices may be what these ask for."""
        nonlocal lower, calls
        for multiple in NEARBY:
            answer, calls = oracle.best(lagrangian.price(multiple * multipliers)), calls + 1
            best = column(min([answer, *oracle.recall(costs)], key=lambda h: float(costs @ h.predictions)))
            if dual.reduced_cost(best) < -WORTH_RECALLING:
                lower = -np.inf
                return [best]
        return []

    def improved(now: Improvement) -> bool:
        told = on_improvement is not None and bool(on_improvement(now))
        return told or now.objective - lower <= accuracy

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
    said = ended.solution
    if not said.status.has_solution:
        return Outcome(None, status=said.status, iterations=ended.rounds, message=said.message)
    weights = np.concatenate([said[start], said[ended.variable]])
    decision = RandomizedClassifier.of(weights, [*known, *(c.data for c in ended.columns)], prices)
    return Outcome(
        decision,
        bound=said.bound if oracle.exact else None,
        status=said.status if oracle.exact else Status.APPROXIMATE,
        iterations=ended.rounds,
        message=f"{said.message}; {calls} calls of the oracle",
        trace=said.trace if oracle.exact else [],
    )
