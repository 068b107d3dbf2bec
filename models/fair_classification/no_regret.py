"""No-regret dynamics for elicited constraints: one player for the pairs, one for the budget."""

from __future__ import annotations

from math import ceil, log, sqrt
from typing import Any

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline, OnImprovement, Trace
from forcopt.errors import DeclarationError
from forcopt.fairness import AllOf, PairwiseFairness
from forcopt.games import ExponentiatedGradient, GradientDescent, run_game
from forcopt.language.constraint import Constraint
from forcopt.models.fair_classification.exponentiated_gradient import multiplier_bound
from forcopt.models.fair_classification.lagrangian import Lagrangian, check_options
from forcopt.models.fair_classification.lagrangian_game import LagrangianGame
from forcopt.models.fair_classification.problem import FairClassification
from forcopt.problem import Outcome

MOST_ROUNDS = 1000


def rounds_of_theorem_1(records: int, bound: float, accuracy: float) -> int:
    """Rounds after which the error is within 2 accuracy of the best, by Theorem 1 of Jung et al. (2021).

    ``((2 bound sqrt(log n) + bound) / accuracy)^2``, with the same bound for both players. Its constant
    differs from the standard analysis of multiplicative weights for gains of width 3. The duality gap is
    exact.

    Examples
    --------
    >>> rounds_of_theorem_1(5829, bound=10, accuracy=0.1)
    474608
    """
    return max(1, ceil(((2 * bound * sqrt(log(records)) + bound) / accuracy) ** 2))


def elicitation_game(problem: FairClassification) -> Lagrangian:
    """The Lagrangian in which every pair has an allowance and every budget a price, also a budget of 0."""
    constraint = problem.demand
    notions = constraint.notions if isinstance(constraint, AllOf) else (constraint,)

    def inequalities(rates: Any) -> list[Constraint]:
        return [
            row
            for notion in notions
            for row in (
                notion.rows_with_allowance(rates)
                if isinstance(notion, PairwiseFairness)
                else notion.inequalities(rates)
            )
        ]

    own = problem.lagrangian
    return Lagrangian(own.costs, own.base, inequalities, problem.moments)


@FairClassification.algorithm(
    "no-regret", cites="Jung et al. (2021), Algorithms 1 and 2, Theorem 1", rank="published"
)
def no_regret(
    problem: FairClassification,
    *,
    accuracy: float = 0.01,
    bound: float | None = None,
    step_pairs: float | None = None,
    step_budget: float | None = None,
    rounds: int = MOST_ROUNDS,
    repair: bool = True,
    backend: str = "highs",
    time_limit: float | None = None,
    on_improvement: OnImprovement | None = None,
) -> Outcome:
    """Algorithm 1 of Jung et al.: exponentiated gradient prices the pairs, gradient ascent the budget.

    The learner best-responds with a classifier from the oracle and with an allowance for each pair (Algorithm
    2; ties are allowed in full). Rates of groups, if the constraint has any, join the pairs. The duality gap
    is computed now and then, and ends the game once it is at most `accuracy`. The paper leaves the first
    allowance open (0 here), and prints the costs of Algorithm 2 in section 3.2 without the sum.

    Parameters
    ----------
    problem : FairClassification
        Which; without a `PairwiseFairness` this is exponentiated gradient.
    accuracy : float, default 0.01
        The gap at which to stop; 0 plays all rounds.
    bound : float, optional
        On the sum of the prices of the pairs, and of the budget; `multiplier_bound` by default.
    step_pairs : float, optional
        Of the players for the pairs; ``sqrt(log(r + 1) / rounds)`` for r pairs by default.
    step_budget : float, optional
        Of the player for the budget; ``bound / sqrt(rounds)`` by default.
    rounds : int, default MOST_ROUNDS
        The largest number; the paper plays 1000, Theorem 1 needs `rounds_of_theorem_1`.
    repair : bool, default True
        Give the best mixture of the classifiers met, rather than the average of the plays.
    """
    check_options(accuracy=accuracy, bound=bound, rounds=rounds)
    if accuracy == 0 and bound is None:
        raise DeclarationError("accuracy is 0; then bound must be given")
    game = elicitation_game(problem)
    bound = multiplier_bound(problem, accuracy) if bound is None else bound
    is_budget = budgets(game)
    priced = game.size - int(is_budget.sum())
    if step_pairs is None:
        step_pairs = sqrt(log(max(priced, 1) + 1) / rounds)
    if step_budget is None:
        step_budget = bound / sqrt(rounds)
    pairs = ExponentiatedGradient(priced, bound, step_pairs)
    budget = GradientDescent(
        np.zeros(int(is_budget.sum())), lambda prices: np.clip(prices, 0.0, bound), rate=step_budget
    )
    trace = Trace(Deadline(time_limit), on_improvement)
    state = LagrangianGame(
        problem,
        PairsAndBudgets(pairs, budget, is_budget),
        bound=bound,
        repair=repair,
        backend=backend,
        trace=trace,
        lagrangian=game,
    )
    if game.size != problem.lagrangian.size:  # a budget of 0 has no price there: its pairs must hold
        state.kept = np.flatnonzero(~is_budget)
    return state.outcome(run_game(state, rounds=rounds, accuracy=accuracy, trace=trace))


class PairsAndBudgets:
    """The auditor of Algorithm 1: exponentiated gradient on the pairs, gradient ascent on the budgets.

    Parameters
    ----------
    pairs : ExponentiatedGradient
        Prices the inequalities that are no budgets.
    budget : GradientDescent
        Prices the budgets.
    is_budget : Array
        Whether each inequality is a budget, shape ``(r,)``.
    """

    def __init__(self, pairs: ExponentiatedGradient, budget: GradientDescent, is_budget: Array) -> None:
        self.pairs, self.budget, self.is_budget = pairs, budget, is_budget

    def play(self) -> Array:
        """The prices of both, shape ``(r,)``."""
        prices = np.zeros(len(self.is_budget))
        prices[~self.is_budget], prices[self.is_budget] = self.pairs.play(), self.budget.play()
        return prices

    def learn(self, gain: Array) -> None:
        """Each learns the excess of its own inequalities."""
        self.pairs.learn(gain[~self.is_budget])
        self.budget.learn(-gain[self.is_budget])


def budgets(game: Lagrangian) -> Array:
    """Which inequalities are budgets: they charge for the slack columns of others."""
    charged = game.slack.tocoo()
    out = np.zeros(game.size, dtype=bool)
    out[charged.coords[0][charged.data > 0]] = True
    return out
