"""DAWA: noise on the totals of buckets of neighboring counts, and the buckets of least deviation."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from math import nan
from typing import Any, Literal, Self

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from pydantic import Field, model_validator

from forcopt.arrays import Array, as_numbers
from forcopt.declaration import Numbers
from forcopt.errors import DeclarationError
from forcopt.privacy.mechanism import AdditiveMechanism, Mechanism, whole_distance
from forcopt.privacy.noises import Laplace
from forcopt.privacy.profile import Profile
from forcopt.privacy.randomness import Randomness


def shortest(n: int, lengths: Array, cost: Callable[[Array, int], Array]) -> Array:
    """Give where the buckets of a cheapest partition of n counts begin.

    Parameters
    ----------
    n : int
        At least 1.
    lengths : Array
        That buckets may have, 1 among them.
    cost : Callable
        Of the buckets from each of some starts up to but without an end.
    """
    best, before = np.full(n + 1, np.inf), np.zeros(n + 1, dtype=np.int64)
    best[0] = 0.0
    for j in range(1, n + 1):
        i = j - lengths[lengths <= j]
        reach = best[i] + cost(i, j)
        at = int(np.argmin(reach))
        best[j], before[j] = reach[at], i[at]
    starts = []
    while n:
        n = int(before[n])
        starts.append(n)
    return np.array(starts[::-1])


class Dawa(Mechanism):
    """Release ordered counts as the noisy means of buckets that are privately fitted to them.

    Parameters
    ----------
    epsilon : float
        Of the whole release, above 0.
    ratio : float, default 0.25
        The share of epsilon for the partition, within (0, 1).
    order : array_like or "as given"
        The places of the counts in the order in which they are partitioned, a permutation of 0 to n - 1,
        which must not depend on the counts. Without it the counts are taken as given, with a warning: the
        result depends on the order.
    lengths : {"all", "powers of two"}, default "all"
        Of the buckets. For n counts, all take O(n^3) time and O(n^2) space, powers of two O(n^2) and
        O(n log n).

    Raises
    ------
    DeclarationError
        Naming the field, the value and the rule.

    Notes
    -----
    One person changes one count by 1, and so the deviation ``sum |x_i - mean|`` of a bucket of m counts by at
    most ``2 (1 - 1/m)``. The deviation of each bucket gets Laplace noise, and the bucket a penalty
    ``1 / ((1 - ratio) epsilon)``; the partition of the least sum is chosen. It stays the least one after a
    change of the counts if the noise of its one bucket with the changed count falls by that change and by
    the most that another bucket's deviation falls: by ``2 (1 - 1/m) + 2 (1 - 1/n)``. With noise of this scale
    over ``ratio epsilon`` the choice is ``ratio epsilon``-private; the scale applies to buckets of one count
    too, and no noisy deviation is clipped at 0, or the argument fails. Then each bucket's total gets Laplace
    noise of scale ``1 / ((1 - ratio) epsilon)``; below 0 it becomes 0. A single count is one bucket, and all
    of epsilon goes to its noise.

    The released counts are biased towards their bucket's mean, and can be in the wrong order.

    References
    ----------
    Li, Hay, Miklau, Wang: A data- and workload-aware algorithm for range queries under differential privacy.
    PVLDB 7, 2014, section 4. Pujol et al. (2020), appendix A.1.

    Examples
    --------
    >>> release = Dawa(epsilon=10.0, order="as given").simulate([10, 11, 9, 50, 52, 3, 3, 4], seed=1)
    >>> release.values.round(1).tolist()
    [9.7, 10.0, 10.0, 50.0, 51.7, 3.0, 3.6, 3.6]
    """

    epsilon: float = Field(gt=0.0, allow_inf_nan=False)
    ratio: float = Field(default=0.25, gt=0.0, lt=1.0)
    order: Numbers | Literal["as given"] | None = None
    lengths: Literal["all", "powers of two"] = "all"

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.order is None:
            warnings.warn(
                "Dawa without an order takes the counts as given, and the result depends on it: give "
                'a permutation that does not depend on the counts, or order="as given"',
                stacklevel=2,
            )
        elif not isinstance(self.order, str) and (
            self.order.ndim != 1 or (np.sort(self.order) != np.arange(self.order.size)).any()
        ):
            raise DeclarationError(f"order is {self.order.tolist()}; it must be a permutation from 0")
        return self

    def profile(self, distance: int = 1) -> Profile:
        """See `Mechanism`: the worst that pure privacy allows, an upper bound."""
        return Profile.pure(self.epsilon * whole_distance(distance))

    def covers(self, change: Any, shape: tuple[int, ...]) -> None:
        """Refuse a query of which one unit changes more than one count, or one by more than 1."""
        if change.l1 > 1:
            raise DeclarationError(f"Dawa takes counts; one unit changes the query by {change.l1:g}, not 1")

    def margin(self, level: float) -> float:
        """NaN: the error of a bucket's mean depends on the counts."""
        return nan

    def _send(self, values: Any, rng: Randomness) -> Array:
        """See `Channel`: counts along the last axis."""
        x = as_numbers(values, "values")
        if not x.ndim or not x.shape[-1]:
            raise DeclarationError(f"values has shape {x.shape}; there must be a list of at least one count")
        given, every = self.order, np.arange(x.shape[-1])
        order = given.astype(np.int64) if isinstance(given, np.ndarray) else every
        if len(order) != x.shape[-1]:
            raise DeclarationError(f"values has {x.shape[-1]} counts; order has {len(order)}")
        rows = x.reshape(-1, x.shape[-1])[:, order]
        released = np.empty(rows.shape)
        released[:, order] = [self._release(row, rng) for row in rows]
        return released.reshape(x.shape)

    def _release(self, x: Array, rng: Randomness) -> Array:
        """One list of counts, in its order."""
        rest = (1 - self.ratio) * self.epsilon if len(x) > 1 else self.epsilon
        starts = self.partition(x, rng)
        sizes = np.diff(np.r_[starts, len(x)])
        totals = AdditiveMechanism(Laplace(scale=1 / rest))._send(np.add.reduceat(x, starts), rng)
        return np.repeat(np.maximum(totals, 0.0) / sizes, sizes)

    def partition(self, counts: Any, rng: Randomness) -> Array:
        """Choose the buckets of counts in their order, with ``ratio epsilon``-privacy.

        Returns
        -------
        Array
            Where each bucket begins, increasing from 0.
        """
        x = as_numbers(counts, "counts")
        n = len(x)
        if n == 1:
            return np.zeros(1, dtype=np.int64)
        lengths = np.arange(1, n + 1) if self.lengths == "all" else 2 ** np.arange(n.bit_length())
        costs = []
        for m in lengths.tolist():
            windows = sliding_window_view(x, m)
            deviation = np.abs(windows - windows.mean(axis=1, keepdims=True)).sum(axis=1)
            scale = 2 * (2 - 1 / m - 1 / n) / (self.ratio * self.epsilon)
            noisy = AdditiveMechanism(Laplace(scale=scale))._send(deviation, rng)
            costs.append(noisy + 1 / ((1 - self.ratio) * self.epsilon))
        at = {m: i for i, m in enumerate(lengths.tolist())}

        def cost(starts: Array, end: int) -> Array:
            return np.array([costs[at[end - start]][start] for start in starts.tolist()])

        return shortest(n, lengths[::-1], cost)
