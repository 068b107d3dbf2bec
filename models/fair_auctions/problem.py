"""The declaration: users whom advertisers value, slots, and how alike the ads of similar users must be."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, field_validator, model_validator

from forcopt.arrays import Array, as_numbers
from forcopt.declaration import Numbers
from forcopt.errors import DeclarationError
from forcopt.fairness.pairwise import PairwiseTotalVariation
from forcopt.models.fair_auctions.decision import Allocation
from forcopt.models.fair_auctions.notions import (
    Place,
    PowerStability,
    StabilityNotion,
    Users,
    parts_of,
)
from forcopt.models.fair_auctions.payments import RuleName, read_factors, read_slots
from forcopt.models.fair_auctions.rules import best_welfare
from forcopt.problem import FEASIBILITY_TOLERANCE, Evaluation, Problem


class FairAuction(Problem):
    """Allot ranked slots to ads, by lot, so that users whom advertisers value alike see nearly the same ads.

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
    slots: Numbers
    ad_factors: Numbers = Field(default=1.0, validate_default=True)
    weights: Numbers | None = None
    constraint: StabilityNotion | None = None
    objective: Literal["welfare", "ratio", "leximin"] = "welfare"
    fill: bool = True

    @field_validator("values")
    @classmethod
    def _are_values(cls, values: Array) -> Array:
        if values.ndim != 2 or 0 in values.shape:
            raise DeclarationError(
                f"the shape is {values.shape}; it must be (users, ads), at least one of each"
            )
        if len(values) < 2:
            raise DeclarationError("there is one user; stability compares users, so at least two are needed")
        if (values < 0).any():
            t, i = (int(at) for at in np.argwhere(values < 0)[0])
            raise DeclarationError(
                f"the array[{t}, {i}] is {values[t, i]:g}; the value of user {t} to ad {i} must not be "
                "negative"
            )
        return values

    @field_validator("slots")
    @classmethod
    def _are_slots(cls, slots: Array) -> Array:
        return read_slots(slots)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        users, ads = self.values.shape
        if len(self.slots) > ads:
            raise DeclarationError(
                f"slots: there are {len(self.slots)} for {ads} ads; at most one slot for each ad"
            )
        read_factors(self.ad_factors, self.values.shape)
        if self.weights is not None:
            if self.weights.shape != (users,):
                raise DeclarationError(f"weights have shape {self.weights.shape}; it must be ({users},)")
            if (self.weights < 0).any():
                t = int(np.argmax(self.weights < 0))
                raise DeclarationError(f"weights[{t}] is {self.weights[t]:g}; it must not be negative")
        for part in parts_of(self.constraint):
            for at, group in enumerate(getattr(part, "categories", None) or ()):
                if max(group) >= ads:
                    raise DeclarationError(
                        f"constraint: categories[{at}] has ad {max(group)}; ads are 0 to {ads - 1}"
                    )
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
        return best_welfare(self.effective, self.slots)

    @cached_property
    def users(self) -> Users:
        """Who is compared."""
        return Users(self.values, self.factors)

    @property
    def notions(self) -> tuple[StabilityNotion, ...]:
        """The single notions of the constraint."""
        return tuple(parts_of(self.constraint))

    @property
    def ell(self) -> float:
        """The parameter at which a rule keeps to the constraint: the least that it names, or 1."""
        functions = [getattr(part, "f", None) or getattr(part, "slack", None) for part in self.notions]
        return min((f.ell for f in functions if isinstance(f, PowerStability)), default=1.0)

    @property
    def scale(self) -> float:
        """The largest objective without fairness, and so a bound."""
        return float(self.shares @ self.best) if self.objective == "welfare" else 1.0

    def allocation(self, marginals: Any, rule: RuleName | None = None, ell: float = 1.0) -> Allocation:
        """The decision with these probabilities, shape ``(T, n, k)``."""
        return Allocation(np.asarray(marginals), self.values, self.slots, self.factors, rule, ell)

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
        if M.shape != shape:
            raise DeclarationError(f"the decision has shape {M.shape}; it must be {shape}")
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
        violations = share_violations(M, self.fill)
        metrics = {
            "welfare": welfare,
            "efficiency": welfare / best if best > 0 else 1.0,
            "worst ratio": ratio,
            "largest welfare": best,
        }
        for name, place in self.places(made).items():
            violations[name] = place.amount
            metrics[f"excess of {name}"] = place.amount
        metrics["total variation"] = _variation(M)
        if made.rule is not None or made.charges is not None:
            metrics["revenue"] = float(self.shares @ made.payments().revenue)
        return Evaluation(
            objective=welfare if self.objective == "welfare" else ratio,
            violations={name: v for name, v in violations.items() if v > FEASIBILITY_TOLERANCE},
            metrics=metrics,
        )

    def places(self, decision: Allocation | Any) -> dict[str, Place]:
        """Where each notion is nearest to its limit, or broken most.

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
            excess = part.family(self.users, shares).worst()
            place = part.place(excess, max(len(self.slots), 1))
            if np.isfinite(place.amount) and (
                part.label not in found or place.amount > found[part.label].amount
            ):
                found[part.label] = place
        return found


def share_violations(M: Array, fill: bool) -> dict[str, float]:
    """By how much probabilities, shape ``(T, n, k)``, are negative, and columns and rows off."""
    columns, rows = M.sum(axis=1), M.sum(axis=2)
    off = np.abs(columns - 1.0) if fill else columns - 1.0
    return {
        "probability": float((-M).max(initial=0.0)),
        "slots": float(off.max(initial=0.0)),
        "ads": float((rows - 1.0).max(initial=0.0)),
    }


def _variation(M: Array) -> float:
    """The largest total variation of a slot over all pairs of users."""
    amount = PairwiseTotalVariation(M.transpose(0, 2, 1), np.zeros((len(M), len(M)))).worst().amount
    return max(amount, 0.0) if np.isfinite(amount) else 0.0
