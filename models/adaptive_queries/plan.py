"""The declaration: how much noise to add, so that all adaptively chosen queries are answered accurately."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, log, sqrt
from typing import ClassVar, Literal

import scipy
from pydantic import Field

from forcopt.errors import DeclarationError
from forcopt.models.adaptive_queries.data_models import DataModel, DecayingCorrelation, NaiveComposition
from forcopt.models.adaptive_queries.theorems import Guarantee, guarantee, transfer
from forcopt.privacy import GDP
from forcopt.problem import Evaluation, Problem

__all__ = ["AccuracyPlan", "Plan", "hoeffding_error"]


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
    sense: ClassVar[Literal["min", "max"]] = "min"
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
            error = hoeffding_error(self)
            found = Guarantee(error, self.failure)
        else:
            naive = decision.kind == "naive" or isinstance(model, NaiveComposition)
            answers = self.queries * (self.blocks if naive else 1)
            alpha = _sample_error(self.noise, decision.scale, decision.beta, answers)
            needed = self._delta(decision, naive)
            if needed > decision.delta * (1 + 1e-6) + 1e-300:
                violations["privacy"] = needed / decision.delta - 1 if decision.delta else 1.0
            if naive:
                found = transfer(
                    alpha, decision.beta, decision.epsilon, decision.delta, decision.c, decision.d
                )
            else:
                found = guarantee(
                    model,
                    alpha,
                    decision.beta,
                    decision.epsilon,
                    decision.delta,
                    decision.c,
                    decision.d,
                    self.records,
                )
                if isinstance(model, DecayingCorrelation) and decision.width != model.width:
                    violations["width"] = float(abs(decision.width - model.width))
        over = found.beta / self.failure - 1
        if over > 1e-9:
            violations["failure"] = over
        metrics = {
            "failure": found.beta,
            "vacuous": float(found.vacuous),
            "multiplicity": float(model.multiplicity),
            "dependence": model.dependence_term(self.records),
        }
        return Evaluation(found.alpha, violations, metrics)

    def _delta(self, plan: Plan, naive: bool) -> float:
        """The delta of the answers at the plan's epsilon."""
        blocks = self.blocks if naive else 1
        if self.noise == "gaussian":
            mu = sqrt(self.queries * blocks) / (self.records * plan.scale)
            return float(GDP(mu).profile().delta(plan.epsilon))
        each = self.queries / (self.records * plan.scale)  # of the answers on one block
        if plan.epsilon >= blocks * each * (1 - 1e-12):
            return 0.0
        rule = self.data_model.rule if isinstance(self.data_model, NaiveComposition) else "advanced"
        if rule == "basic" or not naive:
            return 1.0
        slack = plan.epsilon - blocks * each * (exp(min(each, 700.0)) - 1)
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
        if not target > 0:
            raise DeclarationError(f"target is {target}; it must be above 0")

        def enough(n: int) -> bool:
            p = self.replace(records=n)
            return p.room > 0 and p.solve("search").objective <= target

        high = 1
        while not enough(high):
            high *= 2
            if high > 2**50 or (high > 2 and self.replace(records=high).room <= 0):
                return None
        low = high // 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if enough(middle) else (middle, high)
        return high


def _sample_error(noise: str, scale: float, beta: float, answers: int) -> float:
    """The error on the sample that all answers keep, except with probability beta."""
    if not scale > 0 or not 0 < beta <= 1:
        return inf
    if noise == "gaussian":
        return float(scale * max(scipy.stats.norm.isf(min(beta / (2 * answers), 0.5)), 0.0))
    return scale * max(log(answers / beta), 0.0)


def hoeffding_error(problem: AccuracyPlan) -> float:
    """The error of fresh folds without noise: Hoeffding's inequality and a union over all queries."""
    folds = problem.data_model.folds(problem.queries)
    fold = problem.records // folds
    total = problem.queries * problem.blocks
    return sqrt(log(2 * total / problem.failure) / (2 * fold)) if fold else inf
