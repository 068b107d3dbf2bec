"""Ecological regression: a group's rate from the units' shares and votes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import model_validator

from forcopt.arrays import Array, as_numbers, check_entries, check_shape
from forcopt.clock import Deadline
from forcopt.declaration import Numbers
from forcopt.errors import DeclarationError, check_choice
from forcopt.language.atoms import sum_squares
from forcopt.language.model import Model
from forcopt.models.census_release.common import out_of_time
from forcopt.models.census_release.tolerances import NO_SPREAD
from forcopt.problem import FEASIBILITY_TOLERANCE, Evaluation, Handles, Outcome, Problem
from forcopt.problem.drawing import Sketch


@dataclass(frozen=True)
class Rates:
    """The support of a candidate in a group and outside it.

    Attributes
    ----------
    group, complement : float
        The fitted line at shares 1 and 0.

    Examples
    --------
    >>> from forcopt.models import EcologicalRegression
    >>> p = EcologicalRegression([0.0, 0.5, 1.0], [0.2, 0.5, 0.8], votes=[100, 100, 100])
    >>> rates = p.solve("least-squares").decision
    >>> round(rates.group, 6), round(rates.complement, 6)
    (0.8, 0.2)
    """

    group: float
    complement: float


class EcologicalRegression(Problem):
    """Fit the support of a candidate to the share of a group over voting units, by weighted least squares.

    Attributes
    ----------
    share : Numbers
        The group's share of each unit's people, shape ``(n,)``; NaN is not a number, see `of_counts`.
    support : Numbers
        The candidate's share of each unit's votes.
    votes : Numbers
        The votes of each unit, at least 0.
    weighting : Literal["all", "filtered", "weighted"], default "all"
        Each unit counts 1; or 1 if it has more votes than `more_than`; or its votes.
    missing : Literal["zero", "drop"], default "zero"
        Units without votes have no support: it counts as 0, or they are left out.
    more_than : float, default 10
        For ``"filtered"``. The authors' code keeps units with more than 10 votes; the paper leaves out units
        with fewer than 10.
    bounded : bool, default False
        Whether both rates must lie between 0 and 1.

    Raises
    ------
    DeclarationError
        For arrays that do not fit, negative votes, or fewer than two different shares after filtering.

    References
    ----------
    Goodman (1953), Ecological regressions and behavior of individuals. Cohen et al. (2021), section 7.

    Examples
    --------
    >>> from forcopt.models import EcologicalRegression
    >>> x, y = (0.1, 0.3, 0.6, 0.8, 0.9), (0.2, 0.35, 0.55, 0.7, 1.0)
    >>> p = EcologicalRegression(x, y, votes=(200, 150, 120, 80, 4), weighting="weighted")
    >>> s = p.solve("least-squares")
    >>> round(s.decision.group, 6), round(s.decision.complement, 6)
    (0.848473, 0.128513)
    """

    family: ClassVar[str] = "census"
    default_method: ClassVar[str] = "qp"

    share: Numbers
    support: Numbers
    votes: Numbers
    weighting: Literal["all", "filtered", "weighted"] = "all"
    missing: Literal["zero", "drop"] = "zero"
    more_than: float = 10.0
    bounded: bool = False

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for name in ("share", "support", "votes"):
            check_shape(getattr(self, name), (self.share.size,), name)
        check_entries(self.votes, self.votes < 0, "votes", "it must be at least 0")
        used = self.weights > 0
        if len(np.unique(self.share[used])) < 2:
            raise DeclarationError(
                f"share has fewer than two different values among the {int(used.sum())} units that count"
            )
        return self

    @classmethod
    def of_counts(
        cls,
        group: Any,
        people: Any,
        support: Any,
        votes: Any,
        *,
        empty: Literal["zero", "drop"] | None = None,
        **fields: Any,
    ) -> Self:
        """Make shares of counts, which noise may have made 0 or negative.

        Parameters
        ----------
        group, people : array_like
            People of the group, and of all groups, in each unit.
        support, votes : array_like
            See the class.
        empty : Literal["zero", "drop"], optional
            The treatment of a unit with no people (or fewer than none): share 0, or it is left out.
        fields : Any
            Of the class.

        Raises
        ------
        DeclarationError
            For a unit without people if `empty` is not given.
        """
        g, n = as_numbers(group, "group"), as_numbers(people, "people")
        y, v = as_numbers(support, "support"), as_numbers(votes, "votes")
        check_choice("empty", empty, "zero", "drop", None)
        for name, column in (("group", g), ("people", n), ("support", y), ("votes", v)):
            check_shape(column, (g.size,), name)
        none = n <= 0
        if none.any() and empty is None:
            at = int(np.argmax(none))
            raise DeclarationError(
                f"people[{at}] is {n[at]:g}: the share has no denominator; give empty='zero' or 'drop'"
            )
        share = np.divide(g, n, out=np.zeros_like(g), where=~none)
        kept = ~none | (empty != "drop")
        return cls(share[kept], y[kept], v[kept], **fields)

    @property
    def weights(self) -> Array:
        """The weight of each unit, shape ``(n,)``."""
        if self.weighting == "weighted":
            return self.votes
        kept = np.ones(len(self.votes), dtype=bool)
        if self.weighting == "filtered":
            kept &= self.votes > self.more_than
        if self.missing == "drop":
            kept &= self.votes > 0
        return kept.astype(float)

    @property
    def outcomes(self) -> Array:
        """The support, 0 for units without votes."""
        return np.where(self.votes > 0, self.support, 0.0)

    def line(self, decision: Rates | Any) -> tuple[float, float]:
        """The rates of a decision: group, complement."""
        if isinstance(decision, Rates):
            return decision.group, decision.complement
        group, complement = as_numbers(decision, "the rates").tolist()
        return group, complement

    def _sketch(self, decision: Any, evaluation: Evaluation) -> Any:
        rates = [decision.group, decision.complement]
        title = f"Of the group {rates[0]:.0%} vote for the candidate, of all others {rates[1]:.0%}"
        return Sketch(title, rates, ["the group", "all others"], unit="share of votes")

    def evaluate(self, decision: Rates | Any) -> Evaluation:
        """The weighted sum of squared residuals.

        Parameters
        ----------
        decision : Rates or pair
            The rates of group and complement.
        """
        group, complement = self.line(decision)
        fitted = complement + (group - complement) * self.share
        value = float(self.weights @ (self.outcomes - fitted) ** 2)
        off = max(-group, group - 1, -complement, complement - 1) if self.bounded else 0.0
        return Evaluation(value, {"rates": off} if off > FEASIBILITY_TOLERANCE else {})


@EcologicalRegression.algorithm("least-squares", exact=True, cites="Goodman (1953)")
def least_squares_line(problem: EcologicalRegression, *, time_limit: float | None = None) -> Outcome:
    """The weighted least squares line in closed form; rates may lie outside 0 and 1."""
    if problem.bounded:
        raise DeclarationError("least-squares: bounded is True: use qp")
    clock = Deadline(time_limit)
    w, x, y = problem.weights, problem.share, problem.outcomes
    mean_x, mean_y = float(w @ x / w.sum()), float(w @ y / w.sum())
    slope = float(w @ ((x - mean_x) * (y - mean_y)) / (w @ (x - mean_x) ** 2))
    start = mean_y - slope * mean_x
    if clock.passed:
        return out_of_time(clock)
    return Outcome(Rates(start + slope, start))


@EcologicalRegression.formulation("qp", exact=True)
def regression_qp(problem: EcologicalRegression, model: Model) -> Handles:
    """Two rates, between 0 and 1 if `bounded`.

    Returns
    -------
    Handles
        ``rates``, shape ``(2,)``: group and complement.
    """
    low, high = (0.0, 1.0) if problem.bounded else (-np.inf, np.inf)
    rates = model.variable(model.unused_name("rates"), 2, lower=low, upper=high)
    w, x = problem.weights, problem.share
    used = w > 0
    spread = problem.outcomes[used] - np.average(problem.outcomes[used], weights=w[used])
    unit = max(float(w[used] @ spread**2), NO_SPREAD * float(w[used].sum()))  # the squares without a slope
    fitted = rates[0] * x[used] + rates[1] * (1 - x[used])
    return Handles(
        objective=sum_squares((fitted - problem.outcomes[used]) * np.sqrt(w[used] / unit)),
        decision=lambda result: Rates(*map(float, result[rates])),
        start=lambda decision: {rates: np.array(problem.line(decision))},
        unit=unit,
        rates=rates,
    )
