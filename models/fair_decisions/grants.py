"""Formula grants: a total divided in proportion to noisy counts; and rules for their slacks."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import scipy
from pydantic import Field, model_validator

from forcopt.arrays import Array, FrozenArrays, as_numbers, check_shape
from forcopt.clock import Deadline
from forcopt.declaration import Numbers
from forcopt.errors import DeclarationError, require
from forcopt.models.fair_decisions import noise_laws
from forcopt.models.fair_decisions.apportionment import check_counts
from forcopt.models.fair_decisions.tolerances import LEAST, ROOT
from forcopt.privacy.mechanism import AdditiveMechanism
from forcopt.privacy.noises import Laplace, Noise
from forcopt.problem import FEASIBILITY_TOLERANCE, Evaluation, Outcome, Problem
from forcopt.problem.drawing import Sketch
from forcopt.status import Status


@dataclass(frozen=True, eq=False)
class GrantRule(FrozenArrays):
    """How noisy counts become grants: ``w_a (x_a + u_a) / (sum_b w_b x_b - v)``.

    Attributes
    ----------
    slacks : Array
        u, the slack added to each noisy count; shape ``(k,)``.
    total_slack : float
        v, the slack subtracted from their weighted sum.
    clipped : bool
        Whether noisy counts below 0 become 0 first.
    weights : Array
        w, shape ``(k,)``.
    """

    slacks: Array
    total_slack: float
    clipped: bool
    weights: Array = field(repr=False)

    def allocate(self, noisy: Any) -> Array | None:
        """Give the grants for noisy counts, in units of the total; None if no finite grants follow.

        Parameters
        ----------
        noisy : array_like
            Shape ``(k,)``.

        Returns
        -------
        Array or None
            Shape ``(k,)``; it sums to more than 1 by the inflation. None where the noisy total is at most
            `total_slack`: then the privacy budget is too small for the number of districts. A district whose
            count is below ``-u`` gets 0.
        """
        x = as_numbers(noisy, "the noisy counts")
        check_shape(x, self.slacks.shape, "the noisy counts")
        x = np.maximum(x, 0.0) if self.clipped else x
        left = float(self.weights @ x) - self.total_slack
        if left <= 0:
            return None
        return np.asarray(np.maximum(self.weights * (x + self.slacks), 0.0) / left)

    def __repr__(self) -> str:
        kind = "clipped" if self.clipped else "unclipped"
        ends = f"{self.slacks.min():.6g} to {self.slacks.max():.6g}"
        return f"<a grant rule: {ends} for each count, {self.total_slack:.6g} off the total, {kind}>"


class FormulaGrant(Problem):
    """Divide a fixed total in proportion to noisy counts, so that nobody loses but with a small probability.

    The decision is a `GrantRule`. Its objective is the inflation, the sum of all grants, when the noisy total
    is the true one (noise has mean 0): ``(sum w x + sum w u) / (sum w x - v)``; infinite if that is not
    positive. A district loses if it gets less than ``w_a x_a / sum_b w_b x_b``.

    Attributes
    ----------
    eligible : Numbers
        Children, or whoever counts, at least 0 and not all 0; shape ``(k,)``. For slacks that are published,
        these are public or past counts.
    mechanism : AdditiveMechanism
        With Laplace noise on each count.
    weights : Numbers, optional
        Public, above 0, shape ``(k,)``; 1 by default. For Title I, the spending of a state on a pupil.
    failure : float, default 0.05
        The largest probability with which any district may lose, within (0, 1).

    Raises
    ------
    DeclarationError
        Naming the field, the value and the rule.

    Notes
    -----
    Nobody loses if every noise is at least ``-u_a`` and their weighted sum at most v, whatever the true
    counts are. The violation ``"failure"`` is the probability of the contrary less `failure`:
    ``1 - prod_a P(L_a >= -u_a) + P(sum_a w_a L_a > v and L_a >= -u_a for all a)``; for slacks below 0, the
    sum of the probabilities of both parts. Where noisy counts below 0 become 0, the noise of a count is in
    effect at most ``max(0, L_a)``, and just that for counts of 0: the sum is then one of positive parts. The
    inflation has no mean over the noise, since the noisy total has a density at v.
    No grants follow from a noisy total of at most v; the metric ``"no grants bound"`` is the probability.

    References
    ----------
    Pujol, McKenna, Kuppam, Hay, Machanavajjhala, Miklau: Fair decision making using privacy-protected data.
    FAT* 2020, section 5.

    Examples
    --------
    >>> from forcopt.models import FormulaGrant
    >>> from forcopt.privacy import AdditiveMechanism, Laplace
    >>> noise = AdditiveMechanism(Laplace(epsilon=0.5))
    >>> p = FormulaGrant([210, 480, 810], mechanism=noise, failure=0.1)
    >>> round(p.solve("no-penalty").objective, 6), round(p.solve().objective, 6)
    (1.037937, 1.018572)
    """

    family: ClassVar[str] = "decisions"
    default_method: ClassVar[str] = "exact-quantile"

    eligible: Numbers
    mechanism: AdditiveMechanism
    weights: Numbers | None = None
    failure: float = Field(default=0.05, gt=0.0, lt=1.0)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        x = self.eligible
        check_counts(x, "eligible")
        if self.weights is not None and (self.weights.shape != x.shape or (self.weights <= 0).any()):
            raise DeclarationError(f"weights must be {len(x)} numbers above 0, one for each district")
        laplace_scale(self.mechanism)
        return self

    # -- derived from the fields -------------------------------------------------------------------------

    @cached_property
    def district_weights(self) -> Array:
        """`weights`, or ones; shape ``(k,)``."""
        return np.ones(len(self.eligible)) if self.weights is None else self.weights

    @property
    def scale(self) -> float:
        """Of the Laplace noise on each count."""
        return laplace_scale(self.mechanism)

    @property
    def total(self) -> float:
        """``sum w x``."""
        return float(self.district_weights @ self.eligible)

    def shares(self) -> Array:
        """The share of each district without noise, shape ``(k,)``.

        They are the proportionally fair ones: on the simplex they maximise ``sum_a w_a x_a log(o_a)``.

        Examples
        --------
        >>> from forcopt.models import FormulaGrant
        >>> from forcopt.privacy import AdditiveMechanism, Laplace
        >>> FormulaGrant([10, 30], AdditiveMechanism(Laplace(epsilon=1.0)), weights=[3, 1]).shares().tolist()
        [0.5, 0.5]
        """
        return np.asarray(self.district_weights * self.eligible / self.total)

    def expected_shares(self) -> Array:
        """The mean share of each district under clipped noisy counts without slacks; shape ``(k,)``.

        Exact, see `forcopt.models.fair_decisions.expected_shares`.
        """
        return noise_laws.expected_shares(self.eligible, self.scale, self.district_weights)

    def rule(self, slacks: Any, total_slack: float, *, clipped: bool = False) -> GrantRule:
        """The decision with these slacks, one number or shape ``(k,)``."""
        u = np.array(np.broadcast_to(as_numbers(slacks, "slacks"), self.eligible.shape))
        return GrantRule(u, float(total_slack), clipped, self.district_weights.copy())

    # -- judging ---------------------------------------------------------------------------------------------

    def failure_bound(self, rule: GrantRule) -> float:
        """Bound the probability that any district loses, whatever the true counts are."""
        u, v = rule.slacks, rule.total_slack
        away = -np.abs(u) / self.scale
        below = np.where(u >= 0, np.log1p(-np.exp(away) / 2), away - np.log(2))
        least = rule.weights * u if v > 0 and (u >= 0).all() else None
        above = noise_laws.laplace_sum_tail(v, self.scale * rule.weights, positive=rule.clipped, least=least)
        return float(min(1.0, -np.expm1(below.sum()) + above))

    def no_grants_bound(self, rule: GrantRule) -> float:
        """Bound the probability that the noisy total is at most `total_slack`, so that no grants follow.

        It depends on the true total. Exact but for clipped rules, whose noisy totals are larger.
        """
        return float(noise_laws.laplace_sum_tail(self.total - rule.total_slack, self.scale * rule.weights))

    def _sketch(self, decision: Any, evaluation: Evaluation) -> Any:
        low, high = decision.slacks.min(), decision.slacks.max()
        title = f"Noise costs no one a grant if counts are raised by {low:.4g} to {high:.4g}"
        return Sketch(title, decision.slacks, "recipient", unit="added to the count")

    def evaluate(self, decision: GrantRule) -> Evaluation:
        """Evaluate a rule by its inflation and the probability that anyone loses.

        Parameters
        ----------
        decision : GrantRule
            See `rule`.

        Returns
        -------
        Evaluation
            The inflation; the violation ``"failure"``, by how much `failure_bound` exceeds `failure`; that
            bound and `no_grants_bound` as metrics, and the largest and the smallest quotient of grant and
            share when every noise has its mean.
        """
        if not isinstance(decision, GrantRule) or decision.slacks.shape != self.eligible.shape:
            raise DeclarationError("the decision must be a GrantRule for these districts, see rule()")
        w, x = self.district_weights, self.eligible
        mean = noise_laws.clipped_mean(x, self.scale) if decision.clipped else x
        left = float(w @ mean) - decision.total_slack
        bound = self.failure_bound(decision)
        value = float(w @ (mean + decision.slacks)) / left if left > 0 else float("inf")
        metrics = {"failure bound": bound, "no grants bound": self.no_grants_bound(decision)}
        if left > 0:
            some = x > 0
            quotient = (mean + decision.slacks)[some] / x[some] * self.total / left
            metrics |= {"largest quotient": float(quotient.max()), "smallest quotient": float(quotient.min())}
        over = bound - self.failure
        violations = {"failure": over} if over > FEASIBILITY_TOLERANCE else {}
        if left <= 0:
            violations["total"] = -left
        return Evaluation(value, violations, metrics)


def added_noise(mechanism: AdditiveMechanism) -> Noise:
    """The noise of a mechanism, and a DeclarationError for what is none that adds noise."""
    require(isinstance(mechanism, AdditiveMechanism), "mechanism", mechanism, "be an AdditiveMechanism")
    return mechanism.noise


def laplace_scale(mechanism: AdditiveMechanism) -> float:
    """The scale of a mechanism's Laplace noise.

    Raises
    ------
    DeclarationError
        For other noise.
    """
    noise = added_noise(mechanism)
    if not isinstance(noise, Laplace):
        raise DeclarationError(f"the mechanism adds {type(noise).__name__} noise; this is for Laplace noise")
    return noise.scale


@FormulaGrant.algorithm("plain", cites="Pujol et al. (2020), Table 2", rank="published")
def plain(problem: FormulaGrant, *, time_limit: float | None = None) -> Outcome:
    """Divide in proportion to the clipped noisy counts. About half of all districts lose."""
    return Outcome(problem.rule(0.0, 0.0, clipped=True))


@FormulaGrant.algorithm("no-penalty", cites="Pujol et al. (2020), Theorem 5.2, corrected", rank="published")
def no_penalty(
    problem: FormulaGrant, *, as_printed: bool = False, time_limit: float | None = None
) -> Outcome:
    """Add ``ln(2 k / failure)`` scales to each count, take ``k ln(2 k^2 / failure)`` of them off the total.

    The union bound over districts. Corrected, both slacks count in children, and so go by the weights;
    ``as_printed`` adds the first to the weighted count and takes the second off the weighted total, as
    section 5.3 has it, which fails more often than promised if the weights are large.

    Parameters
    ----------
    as_printed : bool, default False
        Follow the paper to the letter.

    Returns
    -------
    Outcome
        The rule, without a bound.
    """
    k, w = len(problem.eligible), problem.district_weights
    each = problem.scale * np.log(2 * k / problem.failure)
    total = problem.scale * np.log(2 * k**2 / problem.failure)
    if as_printed:
        return finite_or_infeasible(problem, problem.rule(each / w, k * total, clipped=True))
    return finite_or_infeasible(problem, problem.rule(each, float(w.sum()) * total, clipped=True))


@FormulaGrant.algorithm("exact-quantile", cites="Pujol et al. (2020), section 5.3; exact tails")
def exact_quantile(problem: FormulaGrant, *, time_limit: float | None = None) -> Outcome:
    """Take exact quantiles of the noises and of their sum, split for the least inflation.

    With ``failure = a + b``, the slacks u have ``prod_a P(L_a >= -u_a) = 1 - a`` at the least weighted sum,
    and v is exceeded by the weighted sum of the noises with probability b. It is optimal among all slacks
    whose failure is bounded in these two parts, up to the tolerance of the search for a.
    """
    deadline = Deadline(time_limit)
    scales = problem.scale * problem.district_weights
    w, total = problem.district_weights, problem.total
    most = min(problem.failure, 0.499)
    best: tuple[float, GrantRule] | None = None

    def inflation(logit: float) -> float:
        nonlocal best
        part = most / (1 + np.exp(-logit))
        rest = min(problem.failure - part, 0.499)
        if deadline.passed and best is not None:
            return best[0]
        u = least_slacks(part, w, problem.scale)
        v = noise_laws.laplace_sum_quantile(rest, scales)
        value = (total + float(w @ u)) / (total - v) if total > v else 1e9 * (1 + v / total)
        if best is None or value < best[0]:
            best = value, problem.rule(u, v)
        return value

    scipy.optimize.minimize_scalar(inflation, bounds=(-8.0, 8.0), method="bounded", options={"xatol": 0.01})
    assert best is not None
    return finite_or_infeasible(problem, best[1])


def least_slacks(failure: float, weights: Array, scale: float) -> Array:
    """Give the slacks of the least weighted sum within which all noises stay but with a given probability.

    Parameters
    ----------
    failure : float
        Above 0 and below 1/2: the probability that any ``L_a < -u_a``.
    weights : Array
        Above 0, shape ``(k,)``.
    scale : float
        Of each Laplace noise.

    Returns
    -------
    Array
        u, shape ``(k,)``. Minimising ``sum w u`` subject to ``sum ln(1 - exp(-u / scale) / 2) >=
        ln(1 - failure)``, a concave constraint, gives ``exp(-u_a / scale) / 2 = c w_a / (1 + c w_a)`` with
        one multiplier c; equal weights have ``u = -scale ln(2 (1 - (1 - failure)^(1 / k)))``.

    Examples
    --------
    >>> least_slacks(0.05, np.ones(10), 1.0)[:2].round(6).tolist()  # -log(2 (1 - .95^.1))
    [4.582197, 4.582197]
    """
    goal = -np.log1p(-failure)
    w = weights / weights.max()
    c = scipy.optimize.brentq(lambda c: np.log1p(c * w).sum() - goal, 0.0, 1.0, xtol=LEAST, rtol=ROOT)
    return np.asarray(-scale * np.log(2 * c * w / (1 + c * w)))


def finite_or_infeasible(problem: FormulaGrant, rule: GrantRule) -> Outcome:
    """Give the rule as outcome, or the reason why the noisy total would not suffice."""
    if np.isfinite(problem.evaluate(rule).objective):
        return Outcome(rule)
    districts = len(problem.eligible)
    message = (
        f"privacy budget too small for {districts} districts: {rule.total_slack:.6g} must be taken off the "
        f"total, which is about {problem.total:.6g}"
    )
    return Outcome(None, status=Status.INFEASIBLE, message=message)
