"""Games over the Lagrangian: exponentiated gradient and no-regret dynamics."""

from __future__ import annotations

from math import ceil, log, sqrt
from typing import Protocol

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline, OnImprovement, Trace
from forcopt.errors import DeclarationError
from forcopt.fairness import AllOf, PairwiseFairness
from forcopt.games import ExponentiatedGradient, GameEnd, GradientDescent, Measurement, run_game
from forcopt.learning import Hypothesis, OracleTimeout
from forcopt.models.fair_classification.lagrangian import HypothesisPool, Lagrangian, check_options
from forcopt.models.fair_classification.problem import FairClassification
from forcopt.models.fair_classification.tolerances import LEAST_BOUND
from forcopt.problem import Outcome
from forcopt.status import Status

_ENDED = {"gap": "the gap is within the accuracy", "rounds": "all rounds were played"}


class Auditor(Protocol):
    """Prices the inequalities of the constraint."""

    def play(self) -> Array:
        """The next prices, at least 0; shape ``(r,)``."""

    def learn(self, gain: Array) -> None:
        """Learn the excess of each inequality in this round."""


class LagrangianGame:
    """The repeated game of an auditor against the learner's best responses; a `TwoPlayerGame`.

    Parameters
    ----------
    problem : FairClassification
        The problem.
    auditor : Auditor
        Plays prices.
    bound : float
        B, on the sum of the auditor's prices.
    repair : bool
        Whether to return the best mixture of all classifiers met, rather than the average play.
    backend : str
        Solves the linear programs of the mixture.
    trace : Trace
        The clock of the run.
    lagrangian : Lagrangian, optional
        The game's payoff; the problem's by default.

    Attributes
    ----------
    met : HypothesisPool
        The classifiers.
    upper : float
        The least penalised error of a mixture found so far, ``error + bound * largest excess``.
    lower : float
        The greatest lower bound that prices have proved; relative to the oracle if that is not exact.
    kept : Array
        The prices that belong to the inequalities of the problem's own Lagrangian.
    """

    def __init__(
        self,
        problem: FairClassification,
        auditor: Auditor,
        *,
        bound: float,
        repair: bool,
        backend: str,
        trace: Trace,
        lagrangian: Lagrangian | None = None,
    ) -> None:
        self.problem, self.auditor, self.bound = problem, auditor, bound
        self.repair, self.backend, self.trace = repair, backend, trace
        self.lagrangian = problem.lagrangian if lagrangian is None else lagrangian
        self.oracle, self.calls = problem.oracle.fresh(), 0
        self.oracle.deadline = trace.deadline
        self.met = HypothesisPool(self.lagrangian)
        if repair:
            for constant in self.oracle.constants():
                self.met.add(constant)
        self.upper, self.lower = np.inf, -np.inf
        self.weights: Array = np.zeros(0)
        self.prices: Array = np.zeros(self.lagrangian.size)
        self.total: Array = np.zeros(self.lagrangian.size)
        self.plays = 0
        self.kept: Array = np.arange(self.lagrangian.size)

    def prepare(self, rounds: int) -> None:
        """Nothing depends on the number of rounds to come."""

    def step(self) -> None:
        """The auditor prices, the learner answers, the auditor learns the excess of the answer."""
        prices = self.auditor.play().copy()
        answer = self._ask(prices)
        if answer is None:  # out of time
            return
        self.total += prices
        self.plays += 1
        self.met.add(answer, plays=1)
        slack = self.lagrangian.best_slack(prices)
        self.auditor.learn(self.lagrangian.excess(answer.predictions, slack))

    def measure(self) -> Measurement:
        """The gap between the penalised error of the mixture and the bound that prices prove."""
        if self.plays:
            self._prove(self.total / self.plays)
        if self.repair and self.met.hypotheses:
            weights, prices = self.met.repaired(self.oracle, self.bound, self.backend, self.trace.deadline)
            if prices is not None:
                self._prove(prices)
        elif self.plays:
            weights = self.met.averaged
        else:
            return Measurement(np.inf, self.lower, np.inf)
        upper = self.lagrangian.penalized(self.met.predicted(weights), self.bound)
        if upper < self.upper or not self.repair:  # the theorems are about averages
            self.upper, self.weights = upper, weights
        return Measurement(self.upper, self.lower, max(self.upper - self.lower, 0.0))

    def _prove(self, prices: Array) -> None:
        """A lower bound from prices; the answer joins the classifiers met."""
        best = self._ask(prices)
        if best is None:
            return
        if self.repair:
            self.met.add(best)
        bound = self.lagrangian.value(best.predictions, prices)
        if bound > self.lower:
            self.lower, self.prices = bound, prices

    def _ask(self, prices: Array) -> Hypothesis | None:
        """The learner's best response; None once the time is used up."""
        self.calls += 1
        if self.calls > 1 and self.trace.over:
            return None
        try:
            return self.oracle.best(self.lagrangian.price(prices))
        except OracleTimeout:
            return None

    def outcome(self, end: GameEnd) -> Outcome:
        """The best mixture; with the proved bound if the oracle is exact."""
        why = _ENDED.get(end.reason) or self.trace.end
        if not len(self.weights):
            return Outcome(None, status=Status.LIMIT, iterations=end.rounds, message=why)
        weights = np.concatenate([self.weights, np.zeros(len(self.met.hypotheses) - len(self.weights))])
        budget = max(self.bound, float(self.prices.sum()))  # a linear program's prices may exceed the bound
        decision = self.problem.policy(weights, self.met.hypotheses, self.prices[self.kept], budget)
        exact = self.oracle.exact
        name = "duality gap" if exact else "duality gap, if the learner's fits are optimal,"
        game = f"{name} {self.upper - self.lower:.3g} with multipliers of sum at most {budget:.4g}"
        message = f"{why}: {game}; {self.calls} calls of the oracle"
        bound = self.lower if exact else None
        return Outcome(decision, bound, Status.APPROXIMATE, end.rounds, message, self.trace.steps)


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
    bound = multiplier_bound(problem, accuracy) if bound is None else bound
    rounds = min(rounds_needed(game.size, bound, accuracy)[0], MOST_ROUNDS) if rounds is None else rounds
    step = 0.5 * sqrt(log(max(game.size, 1) + 1) / rounds) if step is None else step
    auditor = ExponentiatedGradient(game.size, bound, step)
    trace = Trace(Deadline(time_limit), on_improvement)
    state = LagrangianGame(problem, auditor, bound=bound, repair=repair, backend=backend, trace=trace)
    return state.outcome(run_game(state, rounds=rounds, accuracy=accuracy, trace=trace))


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
    parts = [n.rows_with_allowance if isinstance(n, PairwiseFairness) else n.rows for n in notions]
    own, pairs = problem.lagrangian, problem.privacy is not None
    rows = lambda rates: [row for part in parts for row in part(rates)]  # noqa: E731
    return Lagrangian(own.costs, own.base, rows, problem.moments, pairs=pairs)


@FairClassification.algorithm(
    "no-regret", cites="Jung et al. (2021), Algorithms 1 and 2, Theorem 1", rank="published"
)
def no_regret(
    problem: FairClassification,
    *,
    accuracy: float = 0.01,
    bound: float | None = None,
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
    pairs = ExponentiatedGradient(priced, bound, sqrt(log(max(priced, 1) + 1) / rounds))
    none, rate = np.zeros(int(is_budget.sum())), bound / sqrt(rounds)
    budget = GradientDescent(none, lambda prices: np.clip(prices, 0.0, bound), rate=rate)
    trace = Trace(Deadline(time_limit), on_improvement)
    auditor = PairsAndBudgets(pairs, budget, is_budget)
    state = LagrangianGame(
        problem, auditor, bound=bound, repair=repair, backend=backend, trace=trace, lagrangian=game
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
