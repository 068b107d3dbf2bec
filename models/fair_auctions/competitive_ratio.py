"""The bound on every rule: the best worst-case ratio of welfare to its maximum, over a grid of values."""

from __future__ import annotations

from functools import cached_property
from itertools import combinations_with_replacement
from typing import Any, ClassVar, Self

import numpy as np
import scipy
from pydantic import Field, field_validator, model_validator

from forcopt.arrays import Array, as_numbers, check_entries
from forcopt.declaration import Numbers
from forcopt.errors import DeclarationError
from forcopt.fairness.pairwise import PairwiseStability
from forcopt.language.model import Model
from forcopt.language.variable import Variable
from forcopt.models.fair_auctions.formulations import slot_steps, write_shares
from forcopt.models.fair_auctions.notions import Function, PowerStability
from forcopt.models.fair_auctions.payments import Slots
from forcopt.models.fair_auctions.problem import Allocation, share_violations
from forcopt.models.fair_auctions.rules import best_welfare, check_ell, inverse_proportional_guarantee
from forcopt.models.fair_auctions.rules import inverse_proportional as give_inverse_proportional
from forcopt.models.fair_auctions.tolerances import EQUAL_RATIO, ROOT
from forcopt.problem import FEASIBILITY_TOLERANCE, Evaluation, Handles, Outcome, Problem

_MOST = 4000
"""More profiles times ads have too many pairs."""


class CompetitiveRatio(Problem):
    """Find the rule with the best worst-case ratio of welfare to its maximum, among all ordered-stable rules.

    The values of all ads are levels of a grid. The optimum bounds from above the ratio of every rule, on or
    off the grid, that is ordered value stable.

    Attributes
    ----------
    ads : int
        n, at least 2.
    slots : Numbers
        Slot factors, shape ``(k,)`` with k at most n.
    stability : StabilityFunction or float
        f; a number stands for `PowerStability`.
    levels : Numbers
        Values of the grid, above 0; a logarithmic grid such as ``numpy.geomspace(0.05, 1, 21)``.

    Notes
    -----
    Averages over permutations of ads and over scales of values keep stability and do not lower the worst
    ratio. So symmetric and scale-free rules are enough: one allocation for each multiset of levels whose
    largest is the top level. For two profiles and a permutation of ads the least
    ``lambda**2`` over all scales is the largest ratio of values over the smallest. If ad i of one profile is
    matched with ad m of the other, the best permutation of the other ads sorts both. So the rows of all
    permutations are ``|A_pi - A_qm| <= D_pi,qm`` over pairs (profile, ad).

    Examples
    --------
    >>> p = CompetitiveRatio(2, [1.0], 1.0, [4 / 9, 2 / 3, 1.0])
    >>> round(p.solve().objective, 6)  # two_profile_bound(2, 1.0), at values (1, 2/3)
    0.925926
    """

    family: ClassVar[str] = "auctions"
    sense: ClassVar[Any] = "max"
    default_method: ClassVar[str] = "cuts"

    ads: int = Field(ge=2)
    slots: Slots
    stability: Function
    levels: Numbers

    @field_validator("levels")
    @classmethod
    def _are_levels(cls, levels: Array) -> Array:
        if levels.ndim != 1 or not len(levels):
            raise DeclarationError(f"the shape is {levels.shape}; it must be (levels,), at least one")
        check_entries(levels, levels <= 0, "the array", "a level must be above 0")
        return levels

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if len(self.slots) > self.ads:
            raise DeclarationError(
                f"slots: there are {len(self.slots)} for {self.ads} ads; at most one for each ad"
            )
        size = len(self.profiles) * self.ads
        if size > _MOST:
            raise DeclarationError(
                f"levels: {len(self.profiles)} profiles of {self.ads} ads have {size**2:.2g} pairs; at most "
                f"{_MOST} profiles times ads can be compared"
            )
        return self

    @cached_property
    def profiles(self) -> Array:
        """Values, each row falling from 1; shape ``(P, n)``."""
        levels = np.unique(self.levels)[::-1] / self.levels.max()
        rows = combinations_with_replacement(levels.tolist(), self.ads - 1)
        return np.array([(1.0, *row) for row in rows])

    @cached_property
    def distances(self) -> Array:
        """The differences allowed between (profile, ad) and (profile, ad), shape ``(P n, P n)``."""
        logs = np.log(self.profiles)
        P, n = logs.shape
        out = np.empty((P, n, P, n))
        for i in range(n):
            rest = np.delete(logs, i, axis=1)
            for m in range(n):
                other = np.delete(logs, m, axis=1)
                high = logs[:, None, i] - logs[None, :, m]
                low = high.copy()
                for at in range(n - 1):
                    gap = rest[:, None, at] - other[None, :, at]
                    np.maximum(high, gap, out=high)
                    np.minimum(low, gap, out=low)
                out[:, i, :, m] = high - low
        spread = out.reshape(P * n, P * n)
        # Sums of logarithms of equal ratios differ by rounding.
        spread[spread < EQUAL_RATIO] = 0.0
        return self.stability(np.exp(spread / 2.0))

    @property
    def best(self) -> Array:
        """The largest welfare of each profile, shape ``(P,)``."""
        return best_welfare(self.profiles, self.slots)

    def allocation(self, marginals: Any, ell: float | None = None) -> Allocation:
        """The decision: probabilities for each profile, shape ``(P, n, k)``."""
        rule = None if ell is None else "inverse-proportional"
        ones = np.ones(self.profiles.shape)
        return Allocation(np.asarray(marginals), self.profiles, self.slots, ones, rule, ell or 1.0)  # type: ignore[arg-type]

    def evaluate(self, decision: Allocation | Any) -> Evaluation:
        """Evaluate a rule on the grid: its smallest ratio, and its violations.

        Parameters
        ----------
        decision : Allocation or Any
            An `Allocation` of `profiles`, or probabilities of shape ``(P, n, k)``.

        Returns
        -------
        Evaluation
            The smallest ratio; violations of ``"probability"``, ``"slots"``, ``"ads"`` and
            ``"ordered value stability"``.
        """
        M = as_numbers(decision.marginals if isinstance(decision, Allocation) else decision, "the decision")
        shape = (*self.profiles.shape, len(self.slots))
        if M.shape != shape:
            raise DeclarationError(f"the decision has shape {M.shape}; it must be {shape}")
        violations = share_violations(M, fill=True)
        shares = np.cumsum(M, axis=2).reshape(shape[0] * shape[1], shape[2])
        violations["ordered value stability"] = PairwiseStability(shares, self.distances).worst().amount
        ratios = self.allocation(M).ratios
        at = int(ratios.argmin())
        return Evaluation(
            objective=float(ratios[at]),
            violations={name: v for name, v in violations.items() if v > FEASIBILITY_TOLERANCE},
            metrics={"profiles": float(len(ratios)), "worst profile": float(at)},
        )


def _write(problem: CompetitiveRatio, model: Model, lazily: bool) -> Handles:
    P, n = problem.profiles.shape
    k = len(problem.slots)
    A = write_shares(model, P, n, k, fill=True)
    worst = model.variable(model.unused_name("worst ratio"), lower=0.0, upper=1.0)
    family = PairwiseStability(A.reshape((P * n, k)), problem.distances, 1.0)
    if lazily:
        model.lazy(family.separate)
    else:
        for row in family.rows():
            model.subject_to(row, name=model.unused_name("stability"))
    best = problem.best
    if (best > 0).all():
        worth = problem.profiles[:, :, None] * slot_steps(problem.slots) / best[:, None, None]
        model.subject_to((A * worth).sum(axis=(1, 2)) >= worst, name=model.unused_name("ratios"))

    def start(decision: Any) -> dict[Variable, Any]:
        M = decision.marginals if isinstance(decision, Allocation) else np.asarray(decision)
        return {A: np.cumsum(M, axis=2), worst: float(problem.allocation(M).ratios.min())}

    return Handles(
        objective=worst,
        decision=lambda result: problem.allocation(np.diff(np.asarray(result[A]), axis=2, prepend=0.0)),
        start=start,
        cumulative=A,
        worst=worst,
    )


@CompetitiveRatio.formulation("cuts", exact=True, cites="new: the linear program over symmetric rules")
def cuts(problem: CompetitiveRatio, model: Model) -> Handles:
    """The linear program over profiles, with the rows of permutations added as points break them.

    Returns
    -------
    Handles
        ``cumulative``, shape ``(P, n, k)``; ``worst``, the ratio.
    """
    return _write(problem, model, lazily=True)


@CompetitiveRatio.formulation("lp", exact=True, cites="new: the linear program over symmetric rules")
def lp(problem: CompetitiveRatio, model: Model) -> Handles:
    """The same with all rows.

    Returns
    -------
    Handles
        As `cuts`.
    """
    return _write(problem, model, lazily=False)


def _lost(problem: CompetitiveRatio, ell: float | None = None) -> float:
    return 1.0 - inverse_proportional_guarantee(_ell(problem, ell))


def _ell(problem: CompetitiveRatio, ell: float | None = None) -> float:
    if ell is not None:
        return check_ell(ell)
    return problem.stability.ell if isinstance(problem.stability, PowerStability) else 1.0


@CompetitiveRatio.algorithm(
    "inverse-proportional",
    guarantee=_lost,
    cites="Chawla, Rezvan and Sauerberg (2022), Theorem 12",
    rank="published",
)
def inverse_proportional(
    problem: CompetitiveRatio, *, ell: float | None = None, time_limit: float | None = None
) -> Outcome:
    """The inverse proportional rule on the grid.

    Parameters
    ----------
    ell : float, optional
        By default the exponent of the stability function, or 1.
    """
    ell = _ell(problem, ell)
    M = give_inverse_proportional(problem.profiles, len(problem.slots), ell)
    return Outcome(problem.allocation(M, ell), guarantee=_lost(problem, ell))


def two_profile_bound(ads: int, ell: float) -> float:
    """The ratio that no ordered-stable rule for one slot can beat, whatever it is.

    Parameters
    ----------
    ads : int
        n, at least 2.
    ell : float
        Of ``f(lambda) = 1 - lambda ** (-2 ell)``.

    Returns
    -------
    float
        ``1 - max over x in (0, 1) of max(x**ell - 1 / n, x**(2 ell) (n - 1) / n) (1 - x)``.

    Notes
    -----
    Compare (1, x, ..., x) with equal values (their ratio, at the best scale, is ``x ** -0.5``) and with its
    own permutation (``1 / x``), for a symmetric and scale-free rule: see `CompetitiveRatio`.

    Examples
    --------
    >>> [round(two_profile_bound(n, 1.0), 6) for n in (2, 3, 4, 5)]
    [0.925926, 0.888889, 0.859375, 0.84]
    """
    ell = check_ell(ell)
    if ads < 2:
        raise DeclarationError(f"ads is {ads!r}; it must be at least 2")
    # Both terms are unimodal in x; the maximum of each is found exactly or by a root.
    exchange = 2 * ell / (2 * ell + 1)
    lost = [exchange ** (2 * ell) * (ads - 1) / ads * (1 - exchange)]
    low, high = ads ** (-1.0 / ell), 1.0  # x**ell - 1 / n is positive from here on
    # The derivative of (x**ell - 1/n)(1 - x) falls from positive to negative where the product is positive.
    x = scipy.optimize.brentq(
        lambda x: ell * x ** (ell - 1) * (1 - x) - (x**ell - 1.0 / ads), low, high, xtol=ROOT
    )
    lost.append((x**ell - 1.0 / ads) * (1 - x))
    return float(1.0 - max(lost))
