"""Plans: the search over privacy loss, noise and failure; half of the target; and the baselines."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, log, sqrt
from typing import Any

import numpy as np
import scipy
from scipy.special import log_ndtr, ndtri

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.models.adaptive_queries.data_models import NaiveComposition
from forcopt.models.adaptive_queries.plan import AccuracyPlan, Plan, hoeffding_error
from forcopt.models.adaptive_queries.transfer_split import best_split
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["half_target", "naive", "search", "split_sample"]

Curve = Callable[[Array], Any]
"""From logarithms of the free parameters, one row each, to the error; NaN or infinite outside the domain."""


class _Answers:
    """The error of a plan as a function of its free parameters, with the best c and d filled in."""

    def __init__(self, problem: AccuracyPlan, whole: bool, rule: str = "basic") -> None:
        model = problem.data_model
        self.problem, self.whole, self.rule = problem, whole, rule
        self.n, self.blocks = problem.records, problem.blocks if whole else 1
        self.answers = problem.queries * self.blocks
        self.factor = 1 if whole else model.privacy_factor
        self.multiplicity = 1 if whole else model.multiplicity
        self.room = problem.failure if whole else problem.room
        self.advanced = problem.noise == "laplace" and rule == "advanced"

    def parts(self, x: Array) -> tuple[Any, Any, Any, Any]:
        """Epsilon, delta, beta and scale at a point."""
        if self.problem.noise == "gaussian":
            epsilon, beta, scale = np.exp(x)
            u = sqrt(self.answers) / (self.n * scale)
            delta = np.exp(log_ndtr(u / 2 - epsilon / u)) - np.exp(epsilon + log_ndtr(-u / 2 - epsilon / u))
            return epsilon, np.maximum(delta, 0.0) * (1 + 1e-9), beta, scale
        if self.advanced:
            each, delta, beta = np.exp(x)
            epsilon = np.sqrt(-2 * self.blocks * np.log(delta)) * each + self.blocks * each * np.expm1(each)
            return epsilon * (1 + 1e-9), delta, beta, self.problem.queries / (self.n * each)
        epsilon = np.exp(x[0])
        scale = self.answers / (self.n * epsilon)
        beta = np.minimum(self.room * scale / self.multiplicity, 1.0)
        return epsilon, np.zeros_like(epsilon), beta, scale

    def error(self, x: Array) -> Any:
        """The error; infinite outside of the parameters' ranges."""
        with np.errstate(all="ignore"):
            epsilon, delta, beta, scale = self.parts(x)
            if self.problem.noise == "gaussian":
                alpha = -scale * ndtri(beta / (2 * self.answers))
            else:
                alpha = scale * np.log(self.answers / beta)
            missed = np.sqrt(self.multiplicity * beta) + np.sqrt(2 * self.multiplicity * self.factor * delta)
            value = alpha + np.expm1(self.factor * epsilon) + missed**2 / self.room
            bad = ~np.isfinite(value) | (beta > 1) | (delta >= 1)
        return np.where(bad, inf, value)

    def grid(self) -> list[Array]:
        """Logarithms of the parameters to start from."""
        if self.problem.noise == "gaussian":
            noise = log(sqrt(self.answers) / self.n) - np.linspace(-20, 4, 49)  # by the mu of all answers
            return [np.linspace(-14, 3, 35), np.linspace(-30, -1, 15), noise]
        if self.advanced:
            return [np.linspace(-16, 2, 60), np.linspace(-30, -1, 15), np.linspace(-30, -1, 15)]
        return [np.linspace(-20, 4, 200)]

    def plan(self, x: Array) -> Plan:
        """The plan at a point."""
        epsilon, delta, beta, scale = (float(v) for v in self.parts(x))
        m = self.multiplicity
        c, d = best_split(m * beta, m * self.factor * delta, self.room)
        width = getattr(self.problem.data_model, "width", 0)
        return Plan(epsilon, delta, beta, scale, c, d, width, "naive" if self.whole else "reuse")


def _least(error: Curve, axes: list[Array], deadline: Deadline) -> Array:
    """The best point of a grid, refined by Nelder and Mead's method from its best points, as time allows."""
    mesh = np.stack([a.ravel() for a in np.meshgrid(*axes, indexing="ij")])
    values = error(mesh)
    best = mesh[:, int(np.argmin(values))]
    for start in mesh[:, np.argsort(values)[:3]].T:
        if deadline.passed:
            break
        point = start
        for _ in range(2):  # anew from where it stopped: the simplex may have collapsed
            options = {"xatol": 1e-10, "fatol": 1e-14, "maxiter": 2000}
            point = scipy.optimize.minimize(
                lambda x: float(error(x)), point, method="Nelder-Mead", options=options
            ).x
        best = min(best, point, key=lambda x: float(error(x)))
    return np.asarray(best)


def _outcome(problem: AccuracyPlan, plan: Plan) -> Outcome:
    value = problem.evaluate(plan)
    remarks = [problem.data_model.remark] if problem.data_model.remark else []
    if value.metrics["vacuous"]:
        remarks.append(f"the error {value.objective:.4g} is vacuous: answers lie in [0, 1]")
    return Outcome(plan, status=Status.APPROXIMATE, message="; ".join(remarks))


def _infeasible(problem: AccuracyPlan) -> Outcome:
    return Outcome(None, status=Status.INFEASIBLE, message=problem.infeasibility_reason())


@AccuracyPlan.algorithm("search", cites="Du and Dwork (2022), Theorems 10, 12, 14 and 17")
def search(problem: AccuracyPlan, *, time_limit: float | None = None) -> Outcome:
    """The best c and d by `TransferSplit`, and a search over the other parameters.

    For Laplace noise, beta has a closed form, and epsilon is the only parameter; for Gaussian noise epsilon,
    beta and the scale are free. A grid and Nelder and Mead's method from its best points: no bound is proved.
    """
    if problem.room <= 0:
        return _infeasible(problem)
    deadline = Deadline(time_limit)
    model = problem.data_model
    if isinstance(model, NaiveComposition):
        answers = _Answers(problem, True, model.rule)
    else:
        answers = _Answers(problem, False)
    return _outcome(problem, answers.plan(_least(answers.error, answers.grid(), deadline)))


@AccuracyPlan.algorithm("half-target", cites="half of the error for the privacy loss", rank="published")
def half_target(problem: AccuracyPlan, *, time_limit: float | None = None) -> Outcome:
    """An epsilon of half of the error, over K: the rule of thumb, with all else as `search`.

    Without a restriction of the data, blocks compose by the basic rule.
    """
    if problem.room <= 0:
        return _infeasible(problem)
    deadline = Deadline(time_limit)
    model = problem.data_model
    whole = isinstance(model, NaiveComposition)
    answers = _Answers(problem, whole, "basic")

    def best(target: float) -> Array:
        epsilon = np.array([log(target / (2 * answers.factor))])
        if problem.noise == "laplace":
            return epsilon
        axes = answers.grid()[1:]

        def fixed(x: Array) -> Any:
            return answers.error(np.stack([np.broadcast_to(epsilon[0], x[0].shape), *x]))

        return np.concatenate([epsilon, _least(fixed, axes, deadline)])

    def excess(log_target: float) -> float:
        value = float(answers.error(best(np.exp(log_target))))
        return min(value, 1e6) - float(np.exp(log_target))

    low, high = log(1e-6), log(2.0)  # beyond, half of the error is less than the loss
    target = scipy.optimize.brentq(excess, low, high, xtol=1e-6) if excess(low) > 0 > excess(high) else 0.0
    return _outcome(problem, answers.plan(best(float(np.exp(target)))))


@AccuracyPlan.algorithm("naive", cites="Dwork and Roth (2014), Theorems 3.16 and 3.20", rank="published")
def naive(problem: AccuracyPlan, *, time_limit: float | None = None) -> Outcome:
    """One budget for all queries of all blocks: the plain transfer theorem, whatever the data model.

    For Laplace noise the better of basic and advanced composition; Gaussian noise composes exactly.
    """
    deadline = Deadline(time_limit)
    rules = ("basic", "advanced") if problem.noise == "laplace" else ("basic",)
    model = problem.data_model
    if isinstance(model, NaiveComposition):
        rules = (model.rule,)
    plans = []
    for rule in rules:
        answers = _Answers(problem, True, rule)
        plans.append(answers.plan(_least(answers.error, answers.grid(), deadline)))
    return _outcome(problem, min(plans, key=lambda plan: problem.evaluate(plan).objective))


@AccuracyPlan.algorithm("split-sample", cites="Hoeffding (1963)", rank="published")
def split_sample(problem: AccuracyPlan, *, time_limit: float | None = None) -> Outcome:
    """A fresh fold of the sample for each query of a block, without noise.

    Independent blocks use the same folds. `DataModel.folds` gives the number of folds of a data model.
    """
    if hoeffding_error(problem) == inf:
        folds = problem.data_model.folds(problem.queries)
        return Outcome(
            None,
            status=Status.INFEASIBLE,
            message=f"{problem.records} records do not fill {folds} folds",
        )
    width = getattr(problem.data_model, "width", 0)
    return _outcome(problem, Plan(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, width, "split-sample"))
