"""The best truthful and stable mechanism on a grid of bids: allocation and payments in one linear program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import product
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import field_validator, model_validator

from forcopt.arrays import Array, check_entries
from forcopt.declaration import Numbers
from forcopt.errors import DeclarationError
from forcopt.fairness.pairwise import PairwiseStability
from forcopt.language.constraint import Constraint
from forcopt.language.expression import Expression
from forcopt.language.model import Model
from forcopt.language.variable import Variable
from forcopt.models.fair_auctions.formulations import slot_steps, write_shares
from forcopt.models.fair_auctions.notions import Function, PowerStability, value_ratios
from forcopt.models.fair_auctions.payments import Charges, read_slots
from forcopt.models.fair_auctions.problem import Allocation, share_violations
from forcopt.models.fair_auctions.rules import best_welfare, check_ell
from forcopt.models.fair_auctions.rules import inverse_proportional as give_inverse_proportional
from forcopt.models.fair_auctions.tolerances import NEGATIVE, SLACK
from forcopt.problem import FEASIBILITY_TOLERANCE, Evaluation, Handles, Outcome, Problem

_MOST = 4000
"""More profiles of bids have too many pairs."""


class FairMechanism(Problem):
    """Choose shares and payments at every profile of bids so that truth is a dominant strategy.

    Each of n bidders has one of m values. Nobody gains by another bid of the grid, whatever the others bid.
    Nobody loses by taking part.

    Attributes
    ----------
    grid : Numbers
        The values, rising, above 0; shape ``(m,)``.
    prior : Numbers
        The probability of each value of each bidder, independent of the others; shape ``(n, m)``.
    slots : Numbers
        Slot factors, shape ``(k,)`` with k at most n.
    stability : StabilityFunction or float, optional
        f of ordered value stability over all pairs of profiles; None for none.
    objective : {"revenue", "welfare"}, default "revenue"
        Of which the expectation is to be large.
    fill : bool, default False
        True: every slot is always filled.

    References
    ----------
    Myerson: Optimal auction design. Mathematics of Operations Research 6, 1981.
    Chawla, Rezvan and Sauerberg (2022), section 5 and Definition 7.

    Examples
    --------
    >>> uniform = [[0.2] * 5] * 2
    >>> p = FairMechanism(grid=[1, 2, 3, 4, 5], prior=uniform, slots=[1])
    >>> round(p.solve().objective, 6), round(p.replace(stability=1.0).solve().objective, 4)
    (2.84, 2.4907)
    """

    family: ClassVar[str] = "auctions"
    sense: ClassVar[Any] = "max"
    default_method: ClassVar[str] = "lp"

    grid: Numbers
    prior: Numbers
    slots: Numbers
    stability: Function | None = None
    objective: Literal["revenue", "welfare"] = "revenue"
    fill: bool = False

    @field_validator("grid")
    @classmethod
    def _is_grid(cls, grid: Array) -> Array:
        if grid.ndim != 1 or not len(grid):
            raise DeclarationError(f"the shape is {grid.shape}; it must be (m,), at least one value")
        check_entries(grid, grid <= 0, "the array", "a value of the grid must be above 0")
        check_entries(grid, np.diff(grid, prepend=0) <= 0, "the array", "the grid must rise")
        return grid

    @field_validator("slots")
    @classmethod
    def _are_slots(cls, slots: Array) -> Array:
        return read_slots(slots)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        m = len(self.grid)
        if self.prior.ndim != 2 or not len(self.prior) or self.prior.shape[1] != m:
            raise DeclarationError(f"prior has shape {self.prior.shape}; it must be (bidders, {m})")
        off = np.abs(self.prior.sum(axis=1) - 1) > NEGATIVE
        if (self.prior < 0).any() or off.any():
            i = int(np.argmax((self.prior < 0).any(axis=1) | off))
            raise DeclarationError(
                f"prior[{i}] is {self.prior[i].tolist()}; probabilities must not be negative and sum to 1"
            )
        n = len(self.prior)
        if len(self.slots) > n:
            raise DeclarationError(
                f"slots: there are {len(self.slots)} for {n} ads; at most one slot for each ad"
            )
        if m**n > _MOST:
            raise DeclarationError(f"grid: {m} values of {n} bidders have {m**n} profiles; at most {_MOST}")
        return self

    @cached_property
    def bids(self) -> Array:
        """Each bidder's position in the grid, shape ``(m**n, n)``; the last bidder varies first."""
        return np.array(list(product(range(len(self.grid)), repeat=len(self.prior))))

    @cached_property
    def profiles(self) -> Array:
        """Values, shape ``(m**n, n)``."""
        return self.grid[self.bids]

    @cached_property
    def chances(self) -> Array:
        """The probability of each profile, shape ``(m**n,)``."""
        bidders = np.arange(len(self.prior))
        return np.asarray(self.prior[bidders, self.bids].prod(axis=1))

    @cached_property
    def distances(self) -> Array | None:
        """The differences allowed between profiles, shape ``(m**n, m**n)``; None for no stability."""
        return None if self.stability is None else self.stability(value_ratios(self.profiles))

    @property
    def scale(self) -> float:
        """The expected largest welfare, which bounds both objectives."""
        return float(self.chances @ best_welfare(self.profiles, self.slots))

    def deviations(self, step: int | None = None) -> tuple[Array, Array, Array]:
        """Bidders who bid another value: profile, bidder and the profile with the other bid.

        Parameters
        ----------
        step : int, optional
            Only bids of neighbors in the grid, for 1; all others by default.

        Returns
        -------
        tuple[Array, Array, Array]
            Positions, each of shape ``(deviations,)``.
        """
        m, n = len(self.grid), len(self.prior)
        parts = []
        for i in range(n):
            stride = m ** (n - 1 - i)
            for d in range(1, (step or m - 1) + 1) if m > 1 else ():
                low = np.flatnonzero(self.bids[:, i] + d < m)
                for one, other in ((low, low + d * stride), (low + d * stride, low)):
                    parts.append((one, np.full(len(one), i), other))
        if not parts:
            none = np.zeros(0, dtype=int)
            return none, none, none
        one, who, other = zip(*parts, strict=True)
        return np.concatenate(one), np.concatenate(who), np.concatenate(other)

    def mechanism(self, marginals: Any, paid: Any) -> Allocation:
        """The decision: probabilities, shape ``(m**n, n, k)``, and payments, shape ``(m**n, n)``."""
        M, ones = np.asarray(marginals), np.ones(self.profiles.shape)
        return Allocation(
            M, self.profiles, self.slots, ones, charges=Charges(np.asarray(paid), M @ self.slots)
        )

    def evaluate(self, decision: Allocation) -> Evaluation:
        """Evaluate a mechanism: its expected revenue or welfare, and its violations.

        Parameters
        ----------
        decision : Allocation
            With payments, as `mechanism` makes it.

        Returns
        -------
        Evaluation
            The objective; violations of ``"probability"``, ``"slots"``, ``"ads"``, ``"truthfulness"`` (the
            largest gain by another bid of the grid), ``"participation"`` (the largest loss), both as shares
            of the grid's largest value, and ``"ordered value stability"``; revenue and welfare as metrics.
        """
        shape = (*self.profiles.shape, len(self.slots))
        if not isinstance(decision, Allocation) or decision.charges is None:
            raise DeclarationError(
                "the decision must be an Allocation with payments, as mechanism() makes it"
            )
        M, paid = decision.marginals, decision.charges.payments
        if M.shape != shape or paid.shape != shape[:2]:
            raise DeclarationError(f"the decision has shape {M.shape}; it must be {shape}")
        clicks = M @ self.slots
        gains = self.profiles * clicks - paid
        one, who, other = self.deviations()
        lies = self.profiles[one, who] * clicks[other, who] - paid[other, who] - gains[one, who]
        violations = share_violations(M, self.fill)
        top = float(self.grid[-1])  # no unit of money is too small for a solver's tolerance
        violations["truthfulness"] = float(lies.max(initial=0.0)) / top
        violations["participation"] = float((-gains).max()) / top
        if self.distances is not None:
            shares = np.cumsum(M, axis=2).reshape(len(M), -1)
            violations["ordered value stability"] = PairwiseStability(shares, self.distances).worst().amount
        revenue = float(self.chances @ paid.sum(axis=1))
        welfare = float(self.chances @ (self.profiles * clicks).sum(axis=1))
        return Evaluation(
            objective=revenue if self.objective == "revenue" else welfare,
            violations={name: v for name, v in violations.items() if v > FEASIBILITY_TOLERANCE},
            metrics={"revenue": revenue, "welfare": welfare, "largest welfare": self.scale},
        )


def _write(problem: FairMechanism, model: Model, lazily: bool) -> Handles:
    S, n = problem.profiles.shape
    steps = slot_steps(problem.slots)
    A = write_shares(model, S, n, len(steps), problem.fill)
    # Payments in units of the grid's largest value.
    top = float(problem.grid[-1])
    paid = model.variable(model.unused_name("paid"), (S, n), lower=0.0, upper=1.0)
    clicks: Any = (A * np.broadcast_to(steps, A.shape)).sum(axis=2)
    values = problem.profiles / top
    gains = clicks * values - paid
    model.subject_to(gains >= 0, name=model.unused_name("participation"))

    def truthful(one: Array, who: Array, other: Array) -> Constraint:
        lie = clicks[other, who] * values[one, who] - paid[other, who]
        row: Constraint = gains[one, who] >= lie
        return row

    neighbors = problem.deviations(None if lazily else 1)
    if not lazily and len(neighbors[0]):
        model.subject_to(truthful(*neighbors), name=model.unused_name("truthful"))
    if lazily:

        def separate(value: Callable[[Expression], Array]) -> Iterator[Constraint]:
            x, p = value(clicks), value(paid)
            one, who, other = neighbors
            lies = values[one, who] * (x[other, who] - x[one, who]) - p[other, who] + p[one, who]
            broken = np.flatnonzero(lies > SLACK)
            if len(broken):
                yield truthful(one[broken], who[broken], other[broken])

        model.lazy(separate, name=model.unused_name("truthful"))
    if problem.distances is not None:
        family = PairwiseStability(A.reshape((S, n * len(steps))), problem.distances, 1.0)
        if lazily:
            model.lazy(family.separate, name=model.unused_name("stability"))
        else:
            for row in family.rows():
                model.subject_to(row, name=model.unused_name("stability"))
    worth = paid if problem.objective == "revenue" else clicks * values

    def start(decision: Any) -> dict[Variable, Any]:
        return {A: decision.cumulative, paid: decision.payments().payments / top}

    return Handles(
        objective=(worth * problem.chances[:, None]).sum(),
        decision=lambda result: problem.mechanism(
            np.diff(np.asarray(result[A]), axis=2, prepend=0.0), np.asarray(result[paid]) * top
        ),
        start=start,
        unit=top,
        cumulative=A,
        paid=paid,
    )


@FairMechanism.formulation("lp", exact=True, cites="Myerson (1981); Chawla, Rezvan and Sauerberg (2022)")
def lp(problem: FairMechanism, model: Model) -> Handles:
    """The linear program with truthfulness between neighboring bids, and all rows of stability.

    Values are one-dimensional: if nobody gains by a neighboring bid, nobody gains by any.

    Returns
    -------
    Handles
        ``cumulative``, shape ``(m**n, n, k)``; ``paid``, shape ``(m**n, n)``, in units of the largest value.
    """
    return _write(problem, model, lazily=False)


@FairMechanism.formulation("cuts", exact=True, cites="Myerson (1981); Chawla, Rezvan and Sauerberg (2022)")
def cuts(problem: FairMechanism, model: Model) -> Handles:
    """The same with truthfulness against all bids, and stability, added as points break them.

    Returns
    -------
    Handles
        As `lp`.
    """
    return _write(problem, model, lazily=True)


@FairMechanism.algorithm(
    "inverse-proportional",
    cites="Chawla, Rezvan and Sauerberg (2022), Algorithm 1 and section 5",
    rank="published",
)
def inverse_proportional(
    problem: FairMechanism, *, ell: float | None = None, time_limit: float | None = None
) -> Outcome:
    """The inverse proportional rule with the largest truthful payments on the grid.

    A bid of the b-th value pays ``sum over c <= b of v_c (x_c - x_(c-1))``.

    Parameters
    ----------
    ell : float, optional
        By default the exponent of the stability function, or 1.
    """
    f = problem.stability
    ell = (f.ell if isinstance(f, PowerStability) else 1.0) if ell is None else check_ell(ell)
    m, n = len(problem.grid), len(problem.prior)
    M = give_inverse_proportional(problem.profiles, len(problem.slots), ell)
    clicks = (M @ problem.slots).reshape((m,) * n + (n,))
    paid = np.empty_like(clicks)
    for i in range(n):
        x = np.moveaxis(clicks[..., i], i, -1)
        paid[..., i] = np.moveaxis(np.cumsum(np.diff(x, axis=-1, prepend=0.0) * problem.grid, axis=-1), -1, i)
    return Outcome(problem.mechanism(M, paid.reshape(-1, n)))
