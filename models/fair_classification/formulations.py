"""Exact methods: programs of mixtures and of one classifier, and column generation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.clock import Deadline, Improvement, OnImprovement
from forcopt.language import Constraint, Model, Variable
from forcopt.learning import Hypothesis, Oracle, OracleTimeout
from forcopt.loops.column_generation import Column, Duals, Pricing, column_generation
from forcopt.models.fair_classification.lagrangian import Lagrangian, check_options
from forcopt.models.fair_classification.problem import FairClassification
from forcopt.models.fair_classification.tolerances import GAP, WORTH_RECALLING
from forcopt.problem import Handles, Outcome
from forcopt.status import Status


@FairClassification.formulation(
    "lp", exact=True, cites="Jagielski et al. (2019), program (2); Jung et al. (2021), program (1) to (3)"
)
def lp(problem: FairClassification, model: Model) -> Handles:
    """Linear program with a column for each hypothesis (a probability for each row, for `AllFunctions`).

    A class that cannot be listed (`Halfspaces` of three features or many records, a `Learner`) is written by
    its oracle, as a lazy family of rows over error and rates, see `OracleHull`. If the oracle is not exact,
    no optimum is proved, and the status is APPROXIMATE. The calls grow with the number of moments (two for a
    group, one for a record in a pair): a thousand for sixty pairs, where ``column-generation`` takes dozens.

    Returns
    -------
    Handles
        ``rates``, the `GroupRates` (or `ClassRates`) as expressions; ``error``; ``fairness``, the constraints
        of the notion.
    """
    return write(problem, model, single=False)


def write(problem: FairClassification, model: Model, single: bool) -> Handles:
    """Write the problem over mixtures, or over single hypotheses, into a model."""
    (costs, base), moments = problem.error_costs, problem.moments
    hull = problem.oracle.hull(model, sp.csr_array(sp.vstack([costs[None, :], moments.matrix])), single)
    error = hull.mapped[0] + base
    rates = moments.rates(hull.mapped[1:])
    fairness = problem.demand.rows(rates)
    model.subject_to(fairness)
    reads = lambda s: problem.policy(*hull.mixture(s)), lambda d: hull.start(*problem.mixture(d))
    return Handles(error, *reads, rates=rates, error=error, fairness=fairness)


@FairClassification.algorithm("milp", cites="Jung et al. (2021), section 3.2", rank="published")
def milp(problem: FairClassification, *, backend: str = "highs", time_limit: float | None = None) -> Outcome:
    """The fair classifier of least error that draws no lots, by a mixed-integer program.

    Exact among single classifiers (halfspaces: among those with the margin). Mixtures can do better, so it
    proves no bound on the problem. If no single classifier is fair it fails with these words, as a mixture
    may still be fair.

    Parameters
    ----------
    problem : FairClassification
        With hypotheses that can be listed, `AllFunctions`, or `Halfspaces` of any dimension.
    backend : str, default "highs"
        Any that takes integer programs.
    """
    model = Model("single classifier")
    handles = write(problem, model, single=True)
    model.minimize(handles.error)
    solution = model.solve(backend, time_limit=time_limit, gap=0.0)
    if solution.point is None:
        none = solution.status is Status.INFEASIBLE
        message = "proved: no single classifier is fair; a mixture may be" if none else solution.message
        return Outcome(None, status=Status.FAILED if none else solution.status, message=message)
    best = solution.status is Status.OPTIMAL
    message = f"{'the best single classifier' if best else 'not proved to be the best'}; {solution.message}"
    return Outcome(handles.decision(solution), iterations=solution.nodes, message=message)


NEARBY = (1.25, 0.8)
"""Multiples of the prices for further calls of a heuristic oracle: it may react too little or too much."""
MANY_ROWS = 100
"""From so many rows of the constraint on, most never bind, and the master takes those that do."""
WORTH_A_FIT = 0.2
"""Then a remembered classifier joins before the next fit only if it improves the master by this share of what
the last fit did: to settle each master with the old scores took most of the time."""
SECOND = 0.3
"""The multiple of the prices for the second fit. With the cuts of one score alone, fairness costs several
times as much as with all scores, and a fit at such prices helps little later."""


@FairClassification.algorithm(
    "column-generation", exact=True, cites="Gilmore and Gomory (1961) on Jagielski et al. (2019), program (2)"
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
    accuracy : float, optional
        Stop once the error is at most this far above the Lagrangian bound; 0 goes on until no classifier
        improves the mixture. By default 0 with an exact oracle, and `FairClassification.noise` with a
        `Learner`: a quarter of the standard error of the error itself. A smaller difference of training
        errors is within the sampling error.
    rounds : int, optional
        The largest number of masters.
    time_limit : float, optional
        Seconds, checked before each call of the oracle; a `Learner` finishes the fit it has begun.
    """
    check_options(accuracy=accuracy or 0.0, rounds=rounds)
    oracle = problem.oracle.fresh()
    deadline = oracle.deadline = Deadline(time_limit)
    known = oracle.constants()
    model, start, price = _master(problem.lagrangian, oracle, known)

    def improved(now: Improvement) -> bool:
        if on_improvement is not None and on_improvement(now):
            price.reason = "the caller stopped the run"
            return True
        usual = 0.0 if oracle.exact else problem.noise(now.objective)
        near = usual if accuracy is None else accuracy
        gap = now.objective - price.lower
        if gap <= near:
            price.reason = price.reason or f"the gap {max(gap, 0.0):.3g} is within the accuracy {near:.3g}"
        return gap <= near

    many = len(problem.lagrangian.first) >= MANY_ROWS
    options: dict[str, Any] = {"total": 1.0, "gap": GAP, "rows_on_demand": many}
    options |= {"time_limit": time_limit, "rounds": rounds, "on_improvement": improved}
    ended = column_generation(model, price, backend, **options)
    solution, reason = ended.solution, price.reason
    if not solution.status.has_solution:
        status, message = solution.status, "; ".join(filter(None, [reason, solution.message]))
        if status is Status.INFEASIBLE and not oracle.exact:
            status = Status.LIMIT
            message = "no mixture of the classifiers that the learner finds is fair; this proves nothing"
        return Outcome(None, status=status, iterations=ended.rounds, message=message)
    if not reason and solution.status is not Status.OPTIMAL:
        reason = deadline.end if deadline.passed else "all rounds were played"
    if deadline.passed and reason == deadline.end:
        gap = solution.objective - price.lower
        known_to = "" if oracle.exact else ", if the learner's fits are optimal"
        reason += f": the error is at most {gap:.3g} above the bound{known_to}" if np.isfinite(gap) else ""
    weights = np.concatenate([solution[start], solution[ended.variable]])
    decision = problem.policy(weights, [*known, *(c.data for c in ended.columns)], price.multipliers)
    message = "; ".join(filter(None, [reason, f"{price.calls} calls of the oracle"]))
    if not oracle.exact:
        return Outcome(decision, None, Status.APPROXIMATE, ended.rounds, message)
    return Outcome(decision, solution.bound, solution.status, ended.rounds, message, solution.trace)


class _Pricer:
    """Asks the oracle for a column at the master's prices, and keeps the bound that its answers prove.

    Parameters
    ----------
    lagrangian : Lagrangian
        Prices the classifiers.
    oracle : Oracle
        Of the run, with its deadline.
    fair, mixture : Constraint
        The rows of the master.

    Attributes
    ----------
    lower : float
        The bound on the error that the last answer proves, if the oracle is exact; -inf once a heuristic
        oracle found a better answer otherwise.
    multipliers : Array
        The prices of the inequalities that belong to it.
    calls : int
        Of the oracle.
    reason : str
        Why the run ends; empty while it goes on.
    """

    def __init__(self, lagrangian: Lagrangian, oracle: Oracle, fair: Constraint, mixture: Constraint) -> None:
        self.lagrangian, self.oracle, self.fair, self.mixture = lagrangian, oracle, fair, mixture
        self.lower, self.multipliers = -np.inf, np.zeros(lagrangian.size)
        self.calls, self.reason = 0, ""
        self.worth = WORTH_RECALLING  # by how much a remembered classifier must improve the master

    def __call__(self, dual: Duals) -> Iterable[Column] | Pricing:
        """Columns that improve the master; none, once time is up."""
        try:
            return self._improve(dual)
        except OracleTimeout:
            self.reason = self.oracle.deadline.end
            return Pricing([], -np.inf)

    def _improve(self, dual: Duals) -> Iterable[Column] | Pricing:
        oracle, multipliers = self.oracle, self.lagrangian.multipliers(dual(self.fair))
        costs = self.lagrangian.price(multipliers, dual.cost_weight)
        known = list(map(self._column, oracle.recall(costs)))
        saved = -dual.reduced_cost(known[0]) if known else 0.0
        if saved > self.worth:
            self.lower = -np.inf
            return known
        if self.calls == 1 and dual.cost_weight and not oracle.exact:
            damped = self._explore(dual, costs, multipliers, (SECOND,))
            if damped:
                return damped
        found = self._ask(costs)
        proved = self.lagrangian.value(found.predictions, multipliers) if dual.cost_weight else -np.inf
        if proved > self.lower or not oracle.exact:
            self.lower, self.multipliers = proved, multipliers
        new = self._column(found)
        if oracle.exact:
            return Pricing([new], dual.reduced_cost(new))
        gained = -dual.reduced_cost(new)
        if len(self.lagrangian.first) >= MANY_ROWS:
            self.worth = max(WORTH_RECALLING, WORTH_A_FIT * gained)
        if max(gained, saved) > WORTH_RECALLING:
            return [new, *known] if saved > WORTH_RECALLING else [new]
        nearby = self._explore(dual, costs, multipliers, NEARBY)
        if not nearby:
            self.reason = "the learner finds no classifier that improves the mixture"
        return nearby

    def _explore(
        self, dual: Duals, costs: Array, multipliers: Array, multiples: tuple[float, ...]
    ) -> list[Column]:
        """The answers of a heuristic oracle to other prices may suit these prices."""
        for multiple in multiples:
            answer = self._ask(self.lagrangian.price(multiple * multipliers))
            answers = [answer, *self.oracle.recall(costs)]
            found = min(answers, key=lambda h: float((costs * h.predictions).sum()))
            best = self._column(found)
            if dual.reduced_cost(best) < -WORTH_RECALLING:
                self.lower = -np.inf
                return [best]
        return []

    def _ask(self, costs: Array) -> Hypothesis:
        if self.oracle.deadline.passed:
            raise OracleTimeout
        self.calls += 1
        return self.oracle.best(costs)

    def _column(self, found: Hypothesis) -> Column:
        activity = self.lagrangian.activity(found.predictions)[self.lagrangian.first]
        entries = {self.fair: activity, self.mixture: 1.0}
        return Column(self.lagrangian.error(found.predictions), entries, data=found)


def _master(
    lagrangian: Lagrangian, oracle: Oracle, known: list[Hypothesis]
) -> tuple[Model, Variable, _Pricer]:
    """The fair mixtures of known hypotheses, their weights, and the pricing of further ones."""
    model = Model("mixture")
    start = model.variable("constants", len(known), lower=0.0)
    slack = model.variable("slack", len(lagrangian.low), lower=lagrangian.low, upper=lagrangian.high)
    predictions = np.array([h.predictions for h in known], dtype=float)
    left = model.lift(np.zeros(len(lagrangian.first))) + lagrangian.slack[lagrangian.first] @ slack
    if known:
        left = left + lagrangian.activity(predictions.T)[lagrangian.first] @ start
    fair = model.subject_to(lagrangian.within(left), name="fairness")
    mixture = model.subject_to(start.sum() == 1, name="mixture")
    model.minimize(start @ np.array([lagrangian.error(p) for p in predictions]))
    return model, start, _Pricer(lagrangian, oracle, fair, mixture)
