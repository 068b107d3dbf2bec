"""The declaration: how much noise to add, so that all adaptively chosen queries are answered accurately."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, inf, log, sqrt
from typing import Any, ClassVar, Literal

import numpy as np
import scipy
from pydantic import Field
from scipy.special import log_ndtr, ndtri

from forcopt.arrays import Array, least_whole
from forcopt.clock import Deadline
from forcopt.errors import require
from forcopt.models.adaptive_queries.data_models import DataModel, DecayingCorrelation, NaiveComposition
from forcopt.models.adaptive_queries.theorems import Guarantee, best_split, guarantee, transfer
from forcopt.models.adaptive_queries.tolerances import DELTA_KEPT, EXCEEDED, HEIGHT, PLACE, RAISED, ROUNDING
from forcopt.privacy import GDP
from forcopt.privacy.tolerances import EXPONENT, SMALLEST
from forcopt.problem import Evaluation, Outcome, Problem
from forcopt.problem.drawing import Sketch
from forcopt.status import Status


@dataclass(frozen=True)
class Plan:
    """How queries are answered, and the constants of the guarantee.

    Attributes
    ----------
    epsilon, delta : float
        The privacy loss of the answers on one block or window; with ``kind="naive"``, of all answers.
    beta : float
        The failure probability of their accuracy on the sample.
    scale : float
        Of the noise of one answer: the Laplace scale, or the standard deviation.
    c, d : float
        The constants of the transfer theorem.
    width : int, default 0
        The distance that a query may span.
    kind : Literal["reuse", "naive", "split-sample"], default "reuse"
        ``"reuse"``: the budget is spent anew on each window; ``"naive"``: all queries share one budget;
        ``"split-sample"``: each query has a fold of the sample of its own, without noise.

    Examples
    --------
    >>> import forcopt as fo
    >>> plan = fo.load("queries/twenty-blocks").solve().decision
    >>> plan.epsilon > 0, plan.kind
    (True, 'reuse')
    """

    epsilon: float
    delta: float
    beta: float
    scale: float
    c: float
    d: float
    width: int = 0
    kind: Literal["reuse", "naive", "split-sample"] = "reuse"


class AccuracyPlan(Problem):
    """Choose the noise for adaptively chosen queries, for the least error that holds for all answers.

    The objective is the error alpha' by which any answer may differ from the population's value.

    Attributes
    ----------
    data_model : DataModel
        The data model.
    records : int
        The size n of the sample, at least 1.
    queries : int
        The number k of queries on each block, or that touch any window, at least 1.
    failure : float
        The probability that some answer may have a larger error, above 0 and below 1.
    noise : Literal["laplace", "gaussian"], default "gaussian"
        Of the answers. The epsilons of Laplace noise add up within a block; Gaussian noise composes exactly.

    Raises
    ------
    DeclarationError
        For a number outside of its range.

    Notes
    -----
    Queries are means over the sample of values in [0, 1]: one record changes an answer by at most ``1 / n``.
    Noise guards against overfitting; privacy of the records is not claimed. An error of 1 or more is no
    guarantee: then the metric ``"vacuous"`` is 1.

    References
    ----------
    Du and Dwork (2022), Theorems 10, 12, 14 and 17. Exact composition of Gaussian noise, also for adaptive
    queries: Dong, Roth and Su (2022).

    Examples
    --------
    >>> from forcopt.models import AccuracyPlan
    >>> from forcopt.models.adaptive_queries import IndependentBlocks
    >>> p = AccuracyPlan(IndependentBlocks(20), records=100_000, queries=10, failure=0.05)
    >>> round(p.solve().objective, 4), round(p.solve("naive").objective, 4)
    (0.0494, 0.0881)
    """

    family: ClassVar[str] = "queries"
    default_method: ClassVar[str] = "search"

    data_model: DataModel
    records: int = Field(ge=1)
    queries: int = Field(ge=1)
    failure: float = Field(gt=0.0, lt=1.0)
    noise: Literal["laplace", "gaussian"] = "gaussian"

    @property
    def blocks(self) -> int:
        """The number of positions, over which all queries are counted."""
        return self.data_model.positions

    @property
    def room(self) -> float:
        """The failure that is left besides the dependence term."""
        return self.failure - self.data_model.dependence_term(self.records)

    def infeasibility_reason(self) -> str:
        """State that the dependence term exceeds the failure, and give a sufficient width."""
        if self.room > 0:
            return ""
        model = self.data_model
        term = model.dependence_term(self.records)
        text = f"related attributes alone fail with probability {term:.4g}; failure is {self.failure:g}"
        if isinstance(model, DecayingCorrelation):
            found = model.least_width(self.records, self.failure)
            if model.independence == 0:
                text += "; with independence 0 all attributes are related, and the bound is vacuous"
            elif found is not None:
                text += f"; width {found} would do"
        return text

    def _sketch(self, decision: Any, evaluation: Evaluation) -> Any:
        width = f"{evaluation.objective:.3g} of the truth with probability {1 - self.failure:.4g}"
        return Sketch(f"All {self.queries} answers are within {width}")

    def evaluate(self, decision: Plan) -> Evaluation:
        """Compute the error and the failure of a plan, by the theorems alone.

        Parameters
        ----------
        decision : Plan
            The plan.

        Returns
        -------
        Evaluation
            Violations, relative: ``"failure"`` above the allowed one; ``"privacy"``, the delta of the noise
            above the plan's; ``"width"``, if it is not the data model's. Metrics: ``failure``, ``vacuous``,
            ``multiplicity``, ``dependence``.
        """
        model = self.data_model
        violations: dict[str, float] = {}
        if decision.kind == "split-sample":
            found = Guarantee(hoeffding_error(self), self.failure)
        else:
            naive = decision.kind == "naive" or isinstance(model, NaiveComposition)
            answers = self.queries * (self.blocks if naive else 1)
            alpha = _sample_error(self.noise, decision.scale, decision.beta, answers)
            needed = self._delta(decision, naive)
            if needed > decision.delta * (1 + DELTA_KEPT) + SMALLEST:
                violations["privacy"] = needed / decision.delta - 1 if decision.delta else 1.0
            if naive:
                d = decision
                found = transfer(alpha, d.beta, d.epsilon, d.delta, d.c, d.d)
            else:
                d = decision
                found = guarantee(model, alpha, d.beta, d.epsilon, d.delta, d.c, d.d, self.records)
                if isinstance(model, DecayingCorrelation) and decision.width != model.width:
                    violations["width"] = float(abs(decision.width - model.width))
        over = found.beta / self.failure - 1
        if over > EXCEEDED:
            violations["failure"] = over
        metrics = {"failure": found.beta, "vacuous": float(found.vacuous)}
        dependence = model.dependence_term(self.records)
        metrics |= {"multiplicity": float(model.multiplicity), "dependence": dependence}
        return Evaluation(found.alpha, violations, metrics)

    def _delta(self, plan: Plan, naive: bool) -> float:
        """The delta of the answers at the plan's epsilon."""
        blocks = self.blocks if naive else 1
        if self.noise == "gaussian":
            mu = sqrt(self.queries * blocks) / (self.records * plan.scale)
            return float(GDP(mu).profile().delta(plan.epsilon))
        each = self.queries / (self.records * plan.scale)  # of the answers on one block
        if plan.epsilon >= blocks * each * (1 - ROUNDING):
            return 0.0
        rule = self.data_model.rule if isinstance(self.data_model, NaiveComposition) else "advanced"
        if rule == "basic" or not naive:
            return 1.0
        slack = plan.epsilon - blocks * each * (exp(min(each, EXPONENT)) - 1)
        return exp(-((slack / each) ** 2) / (2 * blocks)) if slack > 0 else 1.0

    def minimum_records(self, target: float) -> int | None:
        """The smallest sample for which the best plan has an error of at most `target`.

        Parameters
        ----------
        target : float
            Above 0.

        Returns
        -------
        int or None
            None if no sample up to ``2^50`` records does: with more records, related attributes are more
            likely in one of them.

        Raises
        ------
        DeclarationError
            If `target` is not above 0.
        """
        require(target > 0, "target", target, "be above 0")

        def enough(n: int) -> bool:
            p = self.replace(records=n)
            return p.room > 0 and p.solve("search").objective <= target

        high = 1
        while not enough(high):
            high *= 2
            if high > 2**50 or (high > 2 and self.replace(records=high).room <= 0):
                return None
        return least_whole(enough, high // 2 + 1, high)


def _sample_error(noise: str, scale: float, beta: float, answers: int) -> float:
    """The error on the sample that all answers keep, except with probability beta."""
    if not scale > 0 or not 0 < beta <= 1:
        return inf
    if noise == "gaussian":
        return float(scale * max(scipy.stats.norm.isf(min(beta / (2 * answers), 0.5)), 0.0))
    return scale * max(log(answers / beta), 0.0)


def hoeffding_error(problem: AccuracyPlan) -> float:
    """The error of fresh folds without noise: Hoeffding's inequality and a union over all queries."""
    fold = problem.records // problem.data_model.folds(problem.queries)
    total = problem.queries * problem.blocks
    return sqrt(log(2 * total / problem.failure) / (2 * fold)) if fold else inf


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
            return epsilon, np.maximum(delta, 0.0) * (1 + RAISED), beta, scale
        if self.advanced:
            each, delta, beta = np.exp(x)
            epsilon = np.sqrt(-2 * self.blocks * np.log(delta)) * each + self.blocks * each * np.expm1(each)
            return epsilon * (1 + RAISED), delta, beta, self.problem.queries / (self.n * each)
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
            options = {"xatol": PLACE, "fatol": HEIGHT, "maxiter": 2000}
            found = scipy.optimize.minimize(
                lambda x: float(error(x)), point, method="Nelder-Mead", options=options
            )
            point = found.x
        best = min(best, point, key=lambda x: float(error(x)))
    return np.asarray(best)


def _outcome(problem: AccuracyPlan, plan: Plan) -> Outcome:
    value = problem.evaluate(plan)
    remarks = [problem.data_model.remark] if problem.data_model.remark else []
    if value.metrics["vacuous"]:
        remarks.append(f"the error {value.objective:.4g} is vacuous: answers lie in [0, 1]")
    return Outcome(plan, status=Status.APPROXIMATE, message="; ".join(remarks))


@AccuracyPlan.algorithm("search", cites="Du and Dwork (2022), Theorems 10, 12, 14 and 17")
def search(problem: AccuracyPlan, *, time_limit: float | None = None) -> Outcome:
    """The best c and d by formula, and a search over the other parameters.

    For Laplace noise, beta has a closed form, and epsilon is the only parameter; for Gaussian noise epsilon,
    beta and the scale are free. A grid and Nelder and Mead's method from its best points: no bound is proved.
    """
    if problem.room <= 0:
        return Outcome(None, status=Status.INFEASIBLE, message=problem.infeasibility_reason())
    deadline = Deadline(time_limit)
    model = problem.data_model
    if isinstance(model, NaiveComposition):
        answers = _Answers(problem, True, model.rule)
    else:
        answers = _Answers(problem, False)
    return _outcome(problem, answers.plan(_least(answers.error, answers.grid(), deadline)))


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
        message = f"{problem.records} records do not fill {folds} folds"
        return Outcome(None, status=Status.INFEASIBLE, message=message)
    width = getattr(problem.data_model, "width", 0)
    return _outcome(problem, Plan(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, width, "split-sample"))
