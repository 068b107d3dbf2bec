"""Allocations: the probability that an ad has a slot, for each user; and how far two of them are apart."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from forcopt.arrays import Array, as_numbers
from forcopt.errors import DeclarationError
from forcopt.models.fair_auctions.notions import PowerStability, StabilityFunction
from forcopt.models.fair_auctions.payments import Charges, RuleName, payments
from forcopt.models.fair_auctions.rules import best_welfare
from forcopt.models.fair_auctions.tolerances import NEGATIVE, SUM
from forcopt.numeric import MatchingLottery, birkhoff
from forcopt.problem.drawing import finished, panel

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
        The rule of bids that gave it; None for an optimized allocation.
    ell : float, default 1.0
        Of the rule.
    charges : Charges, optional
        Payments that come with the allocation, from a mechanism; None if they follow from the rule.

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
    charges: Charges | None = field(default=None, repr=False)

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
        return best_welfare(self.values * self.ad_factors, self.slots)

    @property
    def ratios(self) -> Array:
        """Welfare over the largest welfare, 1 where that is 0; shape ``(T,)``."""
        best = self.best
        return np.divide(self.welfare, best, out=np.ones(len(best)), where=best > 0)

    def payments(self) -> Charges:
        """Give truthful payments, if the allocation comes from a rule of bids or a mechanism.

        Raises
        ------
        DeclarationError
            For an optimized allocation: it does not define the allocation at other bids.
        """
        if self.charges is not None:
            return self.charges
        if self.rule is None:
            raise DeclarationError(
                "an optimized allocation is not defined at other bids, so it has no truthful payments; "
                "use a rule, or FairMechanism"
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

    def sample(self, user: int, seed: int | np.random.Generator | None = None) -> Array:
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
        figure, axes = panel(ax, (6.0, 3.6))
        image = axes.imshow(self.marginals.sum(axis=2).T, aspect="auto", vmin=0, vmax=1, cmap="viridis")
        axes.set(xlabel="user", ylabel="ad")
        figure.colorbar(image, ax=axes, label="probability of a slot")
        return finished(figure, path)


class Audit(NamedTuple):
    """How far the allocations of two users are apart.

    Attributes
    ----------
    entry, prefix, variation : float
        The largest difference of an entry of M, of a cumulative share, and the largest total variation of a
        slot.
    allowed : float
        The stability function at the users' ratio.
    """

    entry: float
    prefix: float
    variation: float
    allowed: float

    @property
    def relative(self) -> tuple[float, float, float]:
        """The three, each over `allowed`: at most 2, 1 and 1 for a rule with Definitions 6, 7 and 8."""
        if self.allowed > 0:
            return self.entry / self.allowed, self.prefix / self.allowed, self.variation / self.allowed
        gaps = self.entry, self.prefix, self.variation
        return tuple(0.0 if g == 0 else np.inf for g in gaps)  # type: ignore[return-value]


def audit(one: Any, other: Any, ratio: float, stability: StabilityFunction | float = 1.0) -> Audit:
    """Compare the allocations of two users whose values differ by a factor.

    Parameters
    ----------
    one, other : array_like
        Allocation matrices, shape ``(n, k)``.
    ratio : float
        The largest ratio of their effective values, at least 1.
    stability : StabilityFunction or float, default 1.0
        A number stands for `PowerStability`.

    Returns
    -------
    Audit
        Entry, prefix and total variation gaps.

    Raises
    ------
    DeclarationError
        For other shapes, columns that do not sum to 1, or a ratio below 1.

    References
    ----------
    Chawla, Rezvan and Sauerberg (2022), Definitions 6 to 8.

    Examples
    --------
    >>> audit([[1.0], [0.0]], [[0.75], [0.25]], 2.0).relative
    (0.333..., 0.333..., 0.333...)
    """
    a, b = check_columns(one, "the first allocation"), check_columns(other, "the second allocation")
    if a.shape != b.shape:
        raise DeclarationError(f"the allocations have shapes {a.shape} and {b.shape}; they must be equal")
    if not ratio >= 1:
        raise DeclarationError(f"ratio is {ratio!r}; it must be at least 1")
    f = stability if isinstance(stability, StabilityFunction) else PowerStability(stability)
    gap = a - b
    return Audit(
        float(np.abs(gap).max(initial=0.0)),
        float(np.abs(np.cumsum(gap, axis=1)).max(initial=0.0)),
        float(np.maximum(gap, 0.0).sum(axis=0).max(initial=0.0)),
        float(f(ratio)),
    )


def check_columns(matrix: Any, subject: str) -> Array:
    """An allocation matrix of one user, checked.

    Raises
    ------
    DeclarationError
        For a negative entry, a column that does not sum to 1, or a row that sums to more.
    """
    m = as_numbers(matrix, subject)
    if m.ndim != 2:
        raise DeclarationError(f"{subject} has shape {m.shape}; it must be (ads, slots)")
    if (m < -NEGATIVE).any():
        i, j = (int(at) for at in np.argwhere(m < -NEGATIVE)[0])
        raise DeclarationError(f"{subject} has {m[i, j]:g} for ad {i} in slot {j}; it must not be negative")
    columns, rows = m.sum(axis=0), m.sum(axis=1)
    if (np.abs(columns - 1) > SUM).any():
        j = int(np.argmax(np.abs(columns - 1)))
        raise DeclarationError(f"{subject}: the column of slot {j} sums to {columns[j]:.9g}; it must be 1")
    if (rows > 1 + SUM).any():
        i = int(np.argmax(rows))
        raise DeclarationError(f"{subject}: the row of ad {i} sums to {rows[i]:.9g}; it must be at most 1")
    return m
