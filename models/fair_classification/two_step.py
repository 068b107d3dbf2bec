"""Groups seen through a channel: learn from the reports, then remix by report (section 5.2)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from forcopt.arrays import Array, Seed
from forcopt.clock import Deadline
from forcopt.errors import DeclarationError, check_choice, require
from forcopt.fairness import GroupRates, RateParity
from forcopt.learning import Finite
from forcopt.learning.files import PolicyFile
from forcopt.learning.tables import rows_of
from forcopt.models.fair_classification.decision import GroupColumn, RandomizedClassifier
from forcopt.models.fair_classification.lagrangian import GRACE, check_options
from forcopt.models.fair_classification.problem import FairClassification
from forcopt.models.fair_postprocessing import FairPostprocessing, RandomizedPostprocessor
from forcopt.problem import Outcome
from forcopt.status import Status

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class TwoStepClassifier(PolicyFile):
    """A classifier of features, whose prediction is then redrawn by the reported group.

    Attributes
    ----------
    base : RandomizedClassifier
        Sees the features alone.
    remix : RandomizedPostprocessor
        Sees its prediction and the report.
    """

    base: RandomizedClassifier
    remix: RandomizedPostprocessor

    def for_true_groups(self) -> TwoStepClassifier:
        """The same for those whose true group is known: the law of its predictions is the same."""
        return TwoStepClassifier(self.base, self.remix.for_true_groups())

    def probability(self, X: Any, groups: Any) -> Array:
        """The probability that each record is predicted 1, shape ``(n,)``.

        Parameters
        ----------
        X : Any
            Features, shape ``(n, d)``.
        groups : Any
            ``channel.observe(reports)``; or true groups, for the result of `for_true_groups`.

        Raises
        ------
        DeclarationError
            For true groups in place of reports, or reports in place of true groups.
        """
        if_zero, if_one = self.remix.probabilities[:, self.remix.codes(groups)]
        one = self.base.probability(X)
        return np.asarray((1 - one) * if_zero + one * if_one)

    def predict(self, X: Any, groups: Any, seed: Seed = None) -> Array:
        """Draw a prediction for each record, 0 or 1; see `probability` and `seed` elsewhere."""
        positive = self.probability(X, groups)
        return np.asarray(np.random.default_rng(seed).random(len(positive)) < positive, dtype=np.int64)

    def predicted_for(self, problem: FairClassification) -> Array:
        """The probability that each record of the problem is predicted 1."""
        reports = [problem.groups.names[c] for c in problem.groups.codes.tolist()]
        seen = problem.groups.channel
        return self.probability(problem.features, seen.observe(reports) if seen else reports)

    def rates_for(self, problem: FairClassification) -> GroupRates:
        """The rates of each true group.

        The channel must not be inverted for predictions that look at reports. It is inverted for `base`,
        and the true groups then see the channel's mix of the probabilities.
        """
        base = problem.rates(self.base.probability(problem.features))
        if_zero, if_one = self.for_true_groups().remix.probabilities[:, :, None]
        positives = (base.mass - base.positives) * if_zero + base.positives * if_one
        return GroupRates(positives, base.mass, base.groups)

    def to_dict(self) -> dict[str, Any]:
        """Both steps as plain data."""
        return {"base": self.base.to_dict(), "remix": self.remix.to_dict()}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The classifier of plain data."""
        base = RandomizedClassifier.from_dict(data["base"])
        return cls(base, RandomizedPostprocessor.from_dict(data["remix"]))

    def plot(self, path: str | Path | None = None, *, ax: Any = None) -> Figure:
        """Draw the rates of each group before and after the second step, see `RandomizedPostprocessor`."""
        return self.remix.plot(path, ax=ax)

    def __repr__(self) -> str:
        return f"{self.base!r}\nthen {self.remix!r}"


@FairClassification.algorithm(
    "two-step", cites="Mozannar, Ohannessian and Srebro (2020), Algorithm 1 and section 5.2", rank="published"
)
def two_step(
    problem: FairClassification,
    *,
    first: str = "exponentiated-gradient",
    first_tolerance: float | None = None,
    rounds: int = 50,
    split: float = 0.5,
    negative_cells: Literal["refuse", "project"] = "refuse",
    beta: float = 0.05,
    allow_vacuous: bool = False,
    backend: str | None = None,
    time_limit: float | None = None,
    seed: Seed = None,
) -> Outcome:
    """Learn a fair classifier as if reports were true groups, then remix its predictions by report.

    The first step uses one part of the records, at random, and needs no channel: a classifier of features
    that is exactly fair by reports is so by true groups, too (Proposition 1), but one that is nearly fair is
    less so. The second step repairs that on the other part: a linear program over the probability of each
    prediction and report, whose fairness rows are over the true groups, estimated by inverting the
    channel. Every report is epsilon-locally private, so whatever is computed from them is.

    With probability 1 - beta over the second part, each disparity in the population is at most
    `disparity_bound`. No sound bound on the error is known: the paper's Theorem 1 rests on err <= err(base) +
    disparity(base) for predictors derived from reports (equation (36)), which is false.

    Parameters
    ----------
    problem : FairClassification
        With groups seen through a channel, parity of rates, no weights.
    first : str, default "exponentiated-gradient"
        The method of the first step.
    first_tolerance : float, optional
        Of the notion in the first step; the problem's by default.
    rounds : int, default 50
        Of the first step.
    split : float, default 0.5
        The part of the records that it gets, strictly between 0 and 1.
    negative_cells : Literal["refuse", "project"], default "refuse"
        See `FairPostprocessing`; with ``"project"``, the bound does not hold.
    beta : float, default 0.05
        The probability with which `disparity_bound` may fail.
    allow_vacuous : bool, default False
        Go on even if that bound is 1 or more.
    seed : int or numpy.random.Generator, optional
        Of the split and the draws.

    Raises
    ------
    DeclarationError
        For another kind of problem, and if the bound is vacuous.
    """
    deadline = Deadline(time_limit)
    channel, constraint = problem.groups.channel, problem.constraint
    _check(problem, split)
    check_choice("negative_cells", negative_cells, "refuse", "project")
    assert channel is not None and isinstance(constraint, RateParity)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(problem.labels))
    learn, remix = np.split(order, [round(split * len(order))])
    bound = disparity_bound(problem, records=remix, beta=beta)
    if bound >= 1 and not allow_vacuous:
        raise DeclarationError(
            f"the bound is vacuous here: rates may differ by {bound:.3g} with {len(remix)} records in the "
            f"second step; it needs more, or a larger epsilon than {channel.epsilon:g}, or allow_vacuous=True"
        )
    reports = np.array(problem.groups.names)[problem.groups.codes]
    looser = constraint if first_tolerance is None else type(constraint)(tolerance=first_tolerance)
    try:
        groups = GroupColumn(problem.groups.codes[learn], problem.groups.names)
        own: dict[str, Any] = {"constraint": looser, "hypotheses": problem.hypotheses, "costs": problem.costs}
        records, labels = rows_of(problem.features, learn), problem.labels[learn]
        start = FairClassification(features=records, labels=labels, groups=groups, **own)
    except DeclarationError as error:  # the part happens to lack a group
        return Outcome(None, status=Status.FAILED, message=f"step 1: {error}")
    limit: dict[str, Any] = {"rounds": rounds} if "rounds" in start.method(first).options else {}
    learnt = start.solve(first, backend=backend, time_limit=deadline.left, **limit)
    if learnt.decision is None:
        return Outcome(None, status=learnt.status, message=f"step 1: {learnt.message}")
    drawn = learnt.decision.predict(rows_of(problem.features, remix), seed=rng)
    try:
        seen, labels = channel.observe(reports[remix]), problem.labels[remix]
        options: dict[str, Any] = {"negative_cells": negative_cells, "costs": problem.costs}
        second = FairPostprocessing.from_predictions(drawn, seen, labels, constraint, **options)
    except DeclarationError as error:  # the second part happens to be too small for the channel
        return Outcome(None, status=Status.FAILED, message=f"step 2: {error}")
    left = None if deadline.left is None else max(deadline.left, GRACE)
    mixed = second.solve("lp", backend=backend, time_limit=left)
    if mixed.decision is None:
        return Outcome(None, status=mixed.status, message=f"step 2: {mixed.message}")
    projected = (channel.debias(second.counts.sum(axis=0)) < 0).any()
    words = [
        f"reports are {channel.epsilon:g}-locally private",
        "negative estimated cells were projected: no bound"
        if projected
        else f"with probability {1 - beta:g} the rates of true groups differ by at most {bound:.4g} in the "
        "population",
        f"step 1: {learnt.message}",
    ]
    if mixed.status is not Status.OPTIMAL:
        words.append(f"step 2: {mixed.message}")
    made, message = TwoStepClassifier(learnt.decision, mixed.decision), "; ".join(words)
    return Outcome(made, None, Status.APPROXIMATE, learnt.iterations, message)


def disparity_bound(problem: FairClassification, *, records: Any = None, beta: float = 0.05) -> float:
    """How much any rate may differ between true groups in the population, with probability 1 - beta.

    For the second step of `two_step` on these records (half of all if None, as numbers go): with w the
    difference of the two entries of the inverse channel, R K rates, and P the estimated share of records
    over which a rate of a group is taken, every rate of the base predictions is estimated within
    ``w sqrt(ln(2 R K / beta) / (2 n)) / P``, by Hoeffding's inequality for the numerator minus the rate times
    the denominator. The remixed rates are means of those, so that two groups differ by the tolerance and
    twice that. Infinite if a P is not positive.

    Lemma 9 of Mozannar et al. (2020) has C^2 / P^2 in place of w / P.
    """
    channel, constraint = problem.groups.channel, problem.constraint
    assert channel is not None and isinstance(constraint, RateParity)
    check_options(beta=beta)
    count = len(problem.groups.names)
    rows = np.arange(len(problem.labels)) if records is None else records
    n = len(rows) / 2 if records is None else len(rows)
    mass = problem.groups.shares[rows].T @ np.eye(2)[problem.labels[rows]] / len(rows)
    inverse = channel.inverse(count)
    root = np.sqrt(np.log(2 * len(constraint.rates) * count / beta) / (2 * n))
    within = float(inverse.max() - inverse.min()) * root
    given = np.array([mass @ np.array(rate.given[0], dtype=float) for rate in constraint.rates])
    return constraint.tolerance + 2 * within / given.min() if given.min() > 0 else float("inf")


def _check(problem: FairClassification, split: float) -> None:
    if problem.classes:
        raise DeclarationError(f"two-step has two classes, not {len(problem.classes)}")
    if problem.groups.channel is None:
        raise DeclarationError("two-step needs groups seen through a channel: channel.observe(reports)")
    if (problem.groups.codes < 0).any():
        raise DeclarationError("two-step needs a report of every record; some are missing")
    if problem.weights is not None:
        raise DeclarationError("two-step counts records, so it takes no weights")
    if not isinstance(problem.constraint, RateParity):
        raise DeclarationError(f"two-step takes one parity of rates, not {problem.constraint!r}")
    if isinstance(problem.hypotheses, Finite):
        raise DeclarationError("two-step learns from a part of the records; tables hold no others")
    inside = isinstance(split, float | int) and 0 < split < 1
    require(inside, "split", split, "be strictly between 0 and 1")
