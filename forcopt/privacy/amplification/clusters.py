"""Samples of whole clusters."""

from __future__ import annotations

from math import inf, isfinite, log
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from pydantic import Field

from forcopt.arrays import Array
from forcopt.declaration import Name
from forcopt.errors import DeclarationError, check_choice
from forcopt.privacy.amplification.design import Design, Population, groups_of
from forcopt.privacy.amplification.loss import (
    PrivacyLoss,
    amplified_by_log,
    check_epsilon,
    check_rate,
    known,
    whole_number,
    whole_numbers,
)
from forcopt.privacy.losses import Neighbours

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["ClusterSample", "cluster_sample", "revealed_cluster"]


class ClusterSample(Design):
    """All records of a fixed number of clusters; all sets of this many clusters are equally likely.

    Attributes
    ----------
    by : str
        The column that names each record's cluster.
    chosen : int
        The number of clusters in the sample.
    names : tuple[str, ...], optional
        Of all clusters, also of those without records; those that occur by default. A release needs them:
        whether a cluster occurs may depend on one record.

    Examples
    --------
    >>> from forcopt.privacy import ClusterSample
    >>> round(ClusterSample(by="town", chosen=1).loss(0.5, [20, 30, 50]).upper, 4)
    0.5
    """

    by: str
    chosen: int = Field(ge=0)
    names: tuple[Name, ...] = Field(default=(), kw_only=True)

    @property
    def reads_names(self) -> bool:
        """See `Design`."""
        return not self.names

    def loss(self, epsilon: float, population: Population = None) -> PrivacyLoss:
        """See `Design`: exact, for the worst cluster."""
        return cluster_sample(epsilon, self.counts(population), self.chosen)

    def take(self, frame: DataFrame, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw."""
        found = groups_of(frame, self.by)
        for name in set(found) - set(self.names or found):
            raise DeclarationError(
                f"column {self.by!r} holds {name!r}; the names are {', '.join(self.names)}"
            )
        clusters = [found.get(name, np.empty(0, dtype=np.int64)) for name in self.names or found]
        if self.chosen > len(clusters):
            raise DeclarationError(f"chosen is {self.chosen}; the table has {len(clusters)} clusters")
        taken = rng.choice(len(clusters), self.chosen, replace=False)
        rows = np.concatenate([clusters[i] for i in taken] or [np.empty(0, dtype=np.int64)])
        return rows, np.full(len(rows), self.chosen / len(clusters))


def cluster_sample(
    epsilon: float,
    sizes: Any,
    chosen: int,
    changed: int | None = None,
    *,
    neighbours: Neighbours = "add_remove",
) -> PrivacyLoss:
    """The loss of taking `chosen` whole clusters, all sets of this size being equally likely.

    M is private under adding or removing a record, since clusters differ in size.

    Parameters
    ----------
    epsilon : float
        Of M.
    sizes : Any
        The number of records of each cluster, before one is added; shape ``(k,)``.
    chosen : int
        The number of clusters in the sample, from 0 to k.
    changed : int, optional
        The cluster in which the populations differ; the worst one if left out.
    neighbours : Neighbours, default "add_remove"
        Between populations.

    Returns
    -------
    PrivacyLoss
        Theorem 7 and Theorem 8 as bounds, and the exact loss, which only the clusters' sizes decide: with
        ``u[j] = e^(-epsilon sizes[j])`` over the other clusters and elementary symmetric polynomials e_l,
        ``log(1 + (e^epsilon - 1) / (1 + u[changed] e_l(u) / e_(l-1)(u)))``. It is attained by a noisy sum
        that counts the changed cluster as +1 and all others as -1. O(k l).

    Raises
    ------
    DeclarationError
        For negative sizes, or `chosen` or `changed` out of range.

    Examples
    --------
    >>> loss = cluster_sample(0.3, [2, 3, 5], chosen=1, changed=0)
    >>> [round(x, 6) for x in (loss.lower, loss.exact, loss.upper)]
    [0.216647, 0.231115, 0.247665]
    """
    check_epsilon(epsilon)
    check_choice("neighbours", neighbours, *get_args(Neighbours))
    n = whole_numbers(sizes, "sizes")
    k = len(n)
    chosen = whole_number(chosen, "chosen")
    if not 0 <= chosen <= k:
        raise DeclarationError(f"chosen is {chosen}; it must be from 0 to {k}, the number of clusters")
    if changed is None:
        able = range(k) if neighbours == "add_remove" else np.flatnonzero(n)
        if not len(able):
            raise DeclarationError(f"sizes are {n.tolist()}; there is no record that could be substituted")
        losses = [cluster_sample(epsilon, n, chosen, int(i), neighbours=neighbours) for i in able]
        lower, upper = max(x.lower for x in losses), max(x.upper for x in losses)
        return PrivacyLoss(lower, upper, max(x.exact or 0.0 for x in losses), losses[0].source)
    if not 0 <= changed < k:
        raise DeclarationError(f"changed is {changed}; it must be from 0 to {k - 1}")
    if neighbours == "substitute" and n[changed] < 1:
        raise DeclarationError(f"changed is {changed}, an empty cluster: no record can be substituted there")
    steps = 1 if neighbours == "add_remove" else 2
    whole = steps * epsilon
    if chosen in (0, k):
        return known(whole * (chosen == k), "no cluster" if chosen == 0 else "census")
    others = np.delete(n, changed)
    # The changed record distinguishes its cluster from another, unless it was there before.
    own = float(n[changed]) - (steps - 1) * 2

    def loss(log_ratio: float) -> float:
        return amplified_by_log(-float(np.logaddexp(0.0, log_ratio - epsilon * own)), whole)

    odds = log((k - chosen) / chosen)
    return PrivacyLoss(
        loss(odds - epsilon * float(others.min())),
        loss(odds - epsilon * float(others.max())),
        loss(_log_symmetric_ratio(-epsilon * others, chosen)),
        "Theorems 7 and 8, and the closed form",
    )


def _log_symmetric_ratio(logs: Array, degree: int) -> float:
    """``log(e_l(u) / e_(l-1)(u))`` of elementary symmetric polynomials in ``u = exp(logs)``, l = `degree`."""
    table = np.full(degree + 1, -inf)
    table[0] = 0.0
    for value in logs:
        table[1:] = np.logaddexp(table[1:], table[:-1] + value)
    return float(table[degree] - table[degree - 1])


def revealed_cluster(
    within: float, revealed: float, share: float, *, loses: Literal["after", "before"] = "after"
) -> float:
    """A lower bound on the loss if the output betrays whether the changed cluster was taken.

    Parameters
    ----------
    within : float
        The loss for an event, if it is known that the cluster was taken: the logarithm of the ratio of the
        event's two probabilities, at least 0.
    revealed : float
        The evidence that the cluster was taken: the logarithm of the ratio of its probabilities
        with and without it, in the population P.
    share : float
        Of clusters that are taken, l / k.
    loses : Literal["after", "before"], default "after"
        Whether the event is likelier in the changed population P' (``"after"``) or in P.

    Returns
    -------
    float
        At most `within`.

    References
    ----------
    Theorem 9. Its statement has the event likelier in P, its proof in P'; the printed formula belongs to the
    latter. For ``"before"`` the value is the proof's.

    Examples
    --------
    >>> round(revealed_cluster(1.0, 3.0, 0.1), 6), round(revealed_cluster(1.0, 1.0, 0.5, loses="before"), 6)
    (0.782343, 0.620115)
    """
    check_rate(share)
    check_choice("loses", loses, "after", "before")
    if not (isfinite(within) and within >= 0 and isfinite(revealed)):
        raise DeclarationError(f"within is {within}, revealed {revealed}; they must be finite, within >= 0")
    if share in (0, 1):
        return share * within
    # q / p relative to the smaller of p and p', in logarithms
    other = revealed if loses == "after" else revealed - within
    return amplified_by_log(-float(np.logaddexp(0.0, log((1 - share) / share) - other)), within)
