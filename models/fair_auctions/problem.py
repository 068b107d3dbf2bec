"""The declaration: users' values, slots and stability; allocations; the allocation rules as methods."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, field_validator, model_validator

from forcopt.arrays import Array, Seed, as_numbers, check_entries
from forcopt.declaration import Numbers
from forcopt.errors import DeclarationError, require_shape
from forcopt.fairness.pairwise import PairwiseTotalVariation
from forcopt.models.fair_auctions import rules
from forcopt.models.fair_auctions.notions import Place, PowerStability, StabilityNotion, Users
from forcopt.models.fair_auctions.payments import RULES, Charges, RuleName, Slots, payments, read_factors
from forcopt.models.fair_auctions.tolerances import SUM
from forcopt.numeric import MatchingLottery, birkhoff
from forcopt.problem import FEASIBILITY_TOLERANCE, Evaluation, Outcome, Problem
from forcopt.problem.drawing import Sketch

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Allocation:
    """For each user, the probabilities that ads have slots.

    Attributes
    ----------
    marginals : Array
        M, shape ``(T, n, k)``: users, ads, slots.
    values : Array
        Per click, shape ``(T, n)``.
    slots : Array
        Slot factors, shape ``(k,)``.
    ad_factors : Array
        Shape ``(T, n)``.
    rule : RuleName, optional
        The allocation rule that gave it; None for an optimized allocation.
    ell : float, default 1.0
        Of the rule.

    Examples
    --------
    >>> import forcopt as fo
    >>> shares = fo.load("auctions/three-users").solve().decision
    >>> shares.marginals.shape
    (3, 3, 2)
    >>> bool((shares.marginals.sum(axis=1) <= 1 + SUM).all())
    True
    """

    marginals: Array
    values: Array = field(repr=False)
    slots: Array = field(repr=False)
    ad_factors: Array = field(repr=False)
    rule: RuleName | None = None
    ell: float = 1.0

    @property
    def cumulative(self) -> Array:
        """The probability that an ad has one of the first j slots, shape ``(T, n, k)``."""
        return np.cumsum(self.marginals, axis=2)

    @property
    def clicks(self) -> Array:
        """Expected clicks of each ad, shape ``(T, n)``."""
        return np.asarray(self.ad_factors * (self.marginals @ self.slots))

    @property
    def welfare(self) -> Array:
        """Of each user: the sum of value times clicks; shape ``(T,)``."""
        return np.asarray((self.values * self.clicks).sum(axis=1))

    @property
    def best(self) -> Array:
        """The largest welfare of each user without fairness, shape ``(T,)``."""
        return rules.best_welfare(self.values * self.ad_factors, self.slots)

    @property
    def ratios(self) -> Array:
        """Welfare over the largest welfare, 1 where that is 0; shape ``(T,)``."""
        best = self.best
        return np.divide(self.welfare, best, out=np.ones(len(best)), where=best > 0)

    def payments(self) -> Charges:
        """Give truthful payments, if the allocation comes from an allocation rule.

        Raises
        ------
        DeclarationError
            For an optimized allocation: it does not define the allocation at other bids.
        """
        if self.rule is None:
            raise DeclarationError(
                "an optimized allocation is not defined at other bids, so it has no truthful payments; "
                "use a rule"
            )
        return payments(self.rule, self.values, self.slots, self.ad_factors, ell=self.ell)

    def lottery(self, user: int) -> MatchingLottery:
        """Write the allocation of a user as a lottery over assignments (Birkhoff and von Neumann).

        Parameters
        ----------
        user : int
            Its position.

        Returns
        -------
        MatchingLottery
            Probabilities, and the slot of each ad in each assignment, -1 for none.
        """
        exact = np.clip(self.marginals[user], 0.0, 1.0)
        if not exact.shape[1]:
            return MatchingLottery(np.ones(1), np.full((1, exact.shape[0]), -1))
        # Solvers are off by their tolerance; the decomposition needs sums of at most 1.
        return birkhoff(exact / max(1.0, float(exact.sum(axis=0).max()), float(exact.sum(axis=1).max())), SUM)

    def sample(self, user: int, seed: Seed = None) -> Array:
        """Draw the slot of each ad for a user, -1 for none; shape ``(n,)``."""
        return self.lottery(user).sample(np.random.default_rng(seed))

    def __repr__(self) -> str:
        users, ads, slots = self.marginals.shape
        by = f" by {self.rule}" if self.rule else ""
        return (
            f"<allocation of {slots} slots to {ads} ads for {users} users{by}; "
            f"worst ratio {self.ratios.min(initial=1.0):.6g}>"
        )

    def plot(self, path: str | Path | None = None, *, ax: Any = None) -> Figure:
        """Draw each user's chances of ads to have any slot, as a heat map.

        Parameters
        ----------
        path : str or Path, optional
            Where to save the picture, if given.
        ax : matplotlib.axes.Axes, optional
            The axes to draw on; a new figure if left out.
        """
        chances = self.marginals.sum(axis=2).T
        mean = chances.mean(axis=1)
        title = f"Ad {mean.argmax()} has a slot with probability {mean.max():.2g}, the most"
        return Sketch(title, chances, "ad", "user", "probability of a slot").plot(path, ax=ax)


class FairAuction(Problem):
    """Allocate ranked slots to ads at random, so that users of similar values see nearly the same ads.

    For each user a matrix M holds the probability that an ad has a slot. A user's welfare is
    ``sum_ij alpha_i v_i M_ij beta_j``. All users are known beforehand, so the optimum bounds the welfare that
    any mechanism gives them, whatever it does at other values.

    Attributes
    ----------
    values : Numbers
        The worth of a click of each user to each advertiser, at least 0; shape ``(T, n)``, T at least 2.
    slots : Numbers
        Slot factors beta, from 0 to 1, not rising; shape ``(k,)`` with k at most n.
    ad_factors : Numbers, default 1.0
        alpha, above 0: one number, shape ``(n,)`` or ``(T, n)``. ``alpha * values`` are effective values.
    weights : Numbers, optional
        Of users in the total welfare, at least 0; shape ``(T,)``; 1 each by default.
    constraint : StabilityNotion, optional
        Notions of stability joined by ``&``; None for none.
    objective : {"welfare", "ratio", "leximin"}, default "welfare"
        The total welfare; the smallest ratio of a user's welfare to its largest without fairness; or the
        smallest, then the second smallest, and so on.
    fill : bool, default True
        Every slot has an ad with certainty. False: slots may stay empty.

    Raises
    ------
    DeclarationError
        Naming the field, the value and the rule.

    References
    ----------
    Chawla, Rezvan and Sauerberg: Individually-fair auctions for multi-slot sponsored search. FORC 2022.

    Examples
    --------
    >>> from forcopt.models.fair_auctions import FairAuction, OrderedValueStability
    >>> p = FairAuction([[4, 2, 1], [2, 4, 1], [2, 2, 2]], [1, 0.5], constraint=OrderedValueStability(1.0))
    >>> s = p.solve()
    >>> round(s.objective, 6), round(p.solve("inverse-proportional").objective, 6)
    (12.75, 11.619048)
    """

    family: ClassVar[str] = "auctions"
    sense: ClassVar[Any] = "max"
    default_method: ClassVar[str] = "cuts"

    values: Numbers
    slots: Slots
    ad_factors: Numbers = Field(default=1.0, validate_default=True)
    weights: Numbers | None = None
    constraint: StabilityNotion | None = None
    objective: Literal["welfare", "ratio", "leximin"] = "welfare"
    fill: bool = True

    @field_validator("values")
    @classmethod
    def _are_values(cls, values: Array) -> Array:
        if len(rules.read_values(values, 0)) < 2:
            raise DeclarationError("stability compares users, so at least two are needed")
        return values

    @model_validator(mode="after")
    def _fits(self) -> Self:
        users, ads = self.values.shape
        if (k := len(self.slots)) > ads:
            raise DeclarationError(f"slots: there are {k} for {ads} ads; at most one slot for each ad")
        read_factors(self.ad_factors, self.values.shape)
        if self.weights is not None:
            if self.weights.shape != (users,):
                raise DeclarationError(f"weights have shape {self.weights.shape}; it must be ({users},)")
            check_entries(self.weights, self.weights < 0, "weights", "it must not be negative")
        return self

    # -- derived from the fields -------------------------------------------------------------------------

    @cached_property
    def factors(self) -> Array:
        """Ad factors of all users and ads, shape ``(T, n)``."""
        return read_factors(self.ad_factors, self.values.shape)

    @cached_property
    def effective(self) -> Array:
        """Effective values, shape ``(T, n)``."""
        return self.values * self.factors

    @cached_property
    def shares(self) -> Array:
        """The weights of users, shape ``(T,)``."""
        return np.ones(len(self.values)) if self.weights is None else self.weights

    @cached_property
    def best(self) -> Array:
        """The largest welfare of each user without fairness, shape ``(T,)``."""
        return rules.best_welfare(self.effective, self.slots)

    @cached_property
    def users(self) -> Users:
        """The pairs of users to compare."""
        return Users(self.values, self.factors)

    @property
    def notions(self) -> tuple[StabilityNotion, ...]:
        """The single notions of the constraint."""
        return () if self.constraint is None else self.constraint.parts

    @property
    def ell(self) -> float:
        """The parameter of a rule for the constraint: the least that the constraint names, or 1."""
        functions = [getattr(part, "f", None) or getattr(part, "slack", None) for part in self.notions]
        return min((f.ell for f in functions if isinstance(f, PowerStability)), default=1.0)

    @property
    def scale(self) -> float:
        """The largest objective without fairness, and so a bound."""
        return float(self.shares @ self.best) if self.objective == "welfare" else 1.0

    def allocation(self, marginals: Any, rule: RuleName | None = None, ell: float = 1.0) -> Allocation:
        """The decision with these probabilities, shape ``(T, n, k)``."""
        return Allocation(np.asarray(marginals), self.values, self.slots, self.factors, rule, ell)

    def by_rule(self, rule: RuleName, ell: float | None = None) -> Allocation:
        """The decision of a rule; its ell is that of the constraint by default."""
        ell = self.ell if ell is None else rules.check_ell(ell)
        return self.allocation(RULES[rule](self.effective, len(self.slots), ell), rule, ell)

    def read(self, decision: Allocation | Any) -> Array:
        """The probabilities of a decision.

        Raises
        ------
        DeclarationError
            For another shape, or entries that are no numbers.
        """
        given = decision.marginals if isinstance(decision, Allocation) else decision
        M = as_numbers(given, "the decision")
        shape = (*self.values.shape, len(self.slots))
        require_shape(M.shape == shape, "the decision has", M, f"be {shape}")
        return M

    # -- judging ---------------------------------------------------------------------------------------------

    def evaluate(self, decision: Allocation | Any) -> Evaluation:
        """Evaluate a decision: its objective, its violations, its welfare and worst ratio.

        Parameters
        ----------
        decision : Allocation or Any
            An `Allocation`, or probabilities of shape ``(T, n, k)``.

        Returns
        -------
        Evaluation
            The objective; violations of ``"probability"``, ``"slots"`` (column sums), ``"ads"`` (row sums)
            and of each notion by its name; as metrics welfare, efficiency (over the largest welfare), the
            worst ratio, the largest welfare, the largest excess of each notion, the largest total variation
            of a pair, and revenue if a rule gave the decision. `places` names the users, ad and slot.
        """
        M = self.read(decision)
        made = decision if isinstance(decision, Allocation) else self.allocation(M)
        welfare, ratio = float(self.shares @ made.welfare), float(made.ratios.min())
        best = float(self.shares @ self.best)
        off = M.sum(axis=1) - 1.0
        violations = {
            "probability": float((-M).max(initial=0.0)),
            "slots": float((np.abs(off) if self.fill else off).max(initial=0.0)),
            "ads": float((M.sum(axis=2) - 1.0).max(initial=0.0)),
        }
        share = welfare / best if best > 0 else 1.0
        metrics = {"welfare": welfare, "efficiency": share, "worst ratio": ratio, "largest welfare": best}
        for name, place in self.places(made).items():
            violations[name] = place.amount
            metrics[f"excess of {name}"] = place.amount
        metrics["total variation"] = _variation(M)
        if made.rule is not None:
            metrics["revenue"] = float(self.shares @ made.payments().revenue)
        return Evaluation(
            objective=welfare if self.objective == "welfare" else ratio,
            violations={name: v for name, v in violations.items() if v > FEASIBILITY_TOLERANCE},
            metrics=metrics,
        )

    def places(self, decision: Allocation | Any) -> dict[str, Place]:
        """Give the users, ad and slot with the least slack or the largest violation of each notion.

        Parameters
        ----------
        decision : Allocation or Any
            As for `evaluate`.

        Returns
        -------
        dict[str, Place]
            By the notion's name: the excess (negative if the notion holds), the two users, the ad (None for
            sets of ads) and the slot. A notion without any pair to compare is left out.
        """
        shares = np.cumsum(self.read(decision), axis=2)
        found: dict[str, Place] = {}
        for part in self.notions:
            place = part.place(part.family(self.users, shares).worst(), max(len(self.slots), 1))
            known = found.get(part.label)
            if np.isfinite(place.amount) and (known is None or place.amount > known.amount):
                found[part.label] = place
        return found


def _variation(M: Array) -> float:
    """The largest total variation of a slot over all pairs of users."""
    amount = PairwiseTotalVariation(M.transpose(0, 2, 1), np.zeros((len(M), len(M)))).worst().amount
    return max(amount, 0.0) if np.isfinite(amount) else 0.0


_PAPER = "Chawla, Rezvan and Sauerberg (2022)"


def _lost_inverse(problem: FairAuction, ell: float | None = None) -> float:
    return (1.0 - rules.inverse_proportional_guarantee(problem.ell if ell is None else ell)) * problem.scale


def _lost_proportional(problem: FairAuction, ell: float | None = None) -> float:
    ell = problem.ell if ell is None else ell
    if ell < 1:
        return problem.scale  # no theorem: anything up to everything
    return (1.0 - rules.proportional_guarantee(problem.values.shape[1], ell)) * problem.scale


@FairAuction.algorithm(
    "inverse-proportional", guarantee=_lost_inverse, cites=f"{_PAPER}, Algorithms 1 and 3", rank="published"
)
def inverse_proportional(
    problem: FairAuction, *, ell: float | None = None, time_limit: float | None = None
) -> Outcome:
    """The generalized inverse proportional rule, user by user.

    It satisfies value stability, ordered stability and preference alignment at its ell, not total variation
    stability.

    Parameters
    ----------
    ell : float, optional
        By default the least that the constraint names, or 1.
    """
    given = problem.by_rule("inverse-proportional", ell)
    return Outcome(given, guarantee=_lost_inverse(problem, given.ell))


@FairAuction.algorithm(
    "proportional", guarantee=_lost_proportional, cites=f"{_PAPER}, Algorithms 2 and 4", rank="published"
)
def proportional(
    problem: FairAuction, *, ell: float | None = None, time_limit: float | None = None
) -> Outcome:
    """The generalized proportional rule, user by user.

    It satisfies ordered stability at its ell, and for one slot total variation stability.

    Parameters
    ----------
    ell : float, optional
        By default the least that the constraint names, or 1. Below 1 there is a warning.
    """
    given = problem.by_rule("proportional", ell)
    return Outcome(given, guarantee=_lost_proportional(problem, given.ell))


@FairAuction.algorithm("highest-bid", cites="Vickrey, Clarke and Groves, without fairness", rank="published")
def highest_bid(problem: FairAuction, *, time_limit: float | None = None) -> Outcome:
    """The highest effective value gets the first slot, and so on: the largest welfare, fair or not.

    Its objective bounds all others.
    """
    return Outcome(problem.by_rule("highest-bid"), bound=problem.scale)


@FairAuction.algorithm("uniform", cites="the baseline that every notion allows", rank="published")
def uniform(problem: FairAuction, *, time_limit: float | None = None) -> Outcome:
    """Every ad has every slot with probability 1 / n."""
    return Outcome(problem.by_rule("uniform"))
