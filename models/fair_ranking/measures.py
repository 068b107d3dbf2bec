"""Measures of rankings that the literature reports: loss, precision, selection rates, sensitivity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from forcopt.arrays import Array, as_numbers
from forcopt.errors import DeclarationError, require


def _prefix(order: Any, k: int, count: int | None = None) -> Array:
    """The first k of a ranking of `count` candidates, or of any number."""
    given = as_numbers(getattr(order, "order", order), "the ranking")
    found = given.astype(np.int64)
    require(found.ndim == 1 and 1 <= k <= len(found), "k", k, f"be from 1 to {found.size}")
    found = found[:k]
    known = np.inf if count is None else count
    if found.min() < 0 or found.max() >= known or len(np.unique(found)) < k or (found != given[:k]).any():
        rule = "at least 0" if count is None else f"from 0 to {count - 1}"
        begin = f"the ranking begins with {given[:k].tolist()}"
        raise DeclarationError(f"{begin}; it must name different candidates, {rule}")
    return found


def _shifted(scores: Any, offset: float | Literal["min"] | None) -> Array:
    y = as_numbers(scores, "scores")
    return y if offset is None else y + (-float(y.min()) if offset == "min" else float(offset))


def utility_loss(
    order: Any, ideal: Any, scores: Any, k: int, offset: float | Literal["min"] | None = None
) -> float:
    """The share of the ideal ranking's score that the first k of another one lose, L_k.

    Parameters
    ----------
    order, ideal : array_like
        Rankings, best first, of at least k positions.
    scores : array_like
        Shape ``(n,)``.
    k : int
        How many positions count.
    offset : float or "min", optional
        Added to all scores; ``"min"`` makes the smallest 0.

    Returns
    -------
    float
        At most 1; 0 for the ideal ranking.

    Raises
    ------
    DeclarationError
        If the scores of the ideal's first k do not sum to a positive number: give an offset.

    References
    ----------
    Yang, Loftus, Stoyanovich (FORC 2021), section 3.

    Examples
    --------
    >>> utility_loss([0, 2], [0, 1], [1, -1, -2], k=2, offset="min")
    0.25
    """
    y = _shifted(scores, offset)
    best = float(y[_prefix(ideal, k, len(y))].sum())
    if best <= 0:
        raise DeclarationError(
            f"scores of the ideal's first {k} sum to {best:g}; the loss needs a positive sum: give an offset"
        )
    return 1.0 - float(y[_prefix(order, k, len(y))].sum()) / best


def average_precision(order: Any, ideal: Any, k: int) -> float:
    """How well the first k agree with the ideal's, AP_k: the mean of prefix overlaps at common members.

    Parameters
    ----------
    order, ideal : array_like
        Rankings, best first, of at least k positions.
    k : int
        The number of positions that count.

    Returns
    -------
    float
        From 0 to 1; 1 if the first k agree in order.

    References
    ----------
    Yang, Loftus, Stoyanovich (FORC 2021), section 3; the precision at i compares the first i of both.

    Examples
    --------
    >>> round(average_precision([1, 0, 3], [0, 1, 2], k=3), 6)
    0.333333
    """
    own, best = _prefix(order, k), _prefix(ideal, k)
    place = {int(c): i for i, c in enumerate(best)}
    seen = np.array([place.get(int(c), k) for c in own])
    # candidate c is in both prefixes of length i from i = max of its two places on
    both = np.maximum(seen, np.arange(k))
    common = np.array([(both <= i).sum() for i in range(k)]) if k <= 64 else _counts(both, k)
    return float((common / np.arange(1, k + 1) * (seen < k)).sum() / k)


def _counts(both: Array, k: int) -> Array:
    return np.asarray(np.cumsum(np.bincount(both[both < k], minlength=k)))


def selection_rates(order: Any, groups: Sequence[Any], k: int) -> dict[str, float]:
    """Each group's share of the first k, over its share of all; 1 is parity.

    Parameters
    ----------
    order : array_like
        A ranking, best first, of at least k positions.
    groups : Sequence[Any]
        The group of each candidate.
    k : int
        The number of positions that count.

    Returns
    -------
    dict[str, float]
        Group to rate, at least 0.

    Examples
    --------
    >>> selection_rates([0, 1, 2, 3], list("aabb"), k=2)
    {'a': 2.0, 'b': 0.0}
    """
    levels = np.array([str(g) for g in groups])
    chosen = levels[_prefix(order, k, len(levels))]
    return {str(g): float((chosen == g).sum() / k / (levels == g).mean()) for g in np.unique(levels)}


def sensitivity(order: Any, ideal: Any, groups: Sequence[Any], k: int) -> dict[str, float]:
    """Of each group's members among the ideal's first k, the share that is among the first k; or NaN.

    Parameters
    ----------
    order, ideal : array_like
        Rankings, best first, of at least k positions.
    groups : Sequence[Any]
        The group of each candidate.
    k : int
        The number of positions that count.

    Returns
    -------
    dict[str, float]
        Group to share, from 0 to 1.

    Examples
    --------
    >>> sensitivity([0, 2], [0, 1], list("aab"), k=2)
    {'a': 0.5, 'b': nan}
    """
    levels = np.array([str(g) for g in groups])
    own, best = _prefix(order, k, len(groups)), _prefix(ideal, k, len(groups))
    found = {}
    for g in np.unique(levels):
        members = best[levels[best] == g]
        found[str(g)] = float(np.isin(members, own).mean()) if len(members) else float("nan")
    return found


def in_group_ratio(
    order: Any, scores: Any, groups: Sequence[Any], k: int, offset: float | Literal["min"] | None = None
) -> dict[str, float]:
    """Of each group, the lowest score among the first k over the highest of the others, at most 1.

    NaN if nobody of the group is among the first k, 1 if everybody is.

    Parameters
    ----------
    order : array_like
        A ranking, best first, of at least k positions.
    scores : array_like
        Shape ``(n,)``.
    groups : Sequence[Any]
        The group of each candidate.
    k : int
        The number of positions that count.
    offset : float or "min", optional
        Added to all scores; ``"min"`` makes the smallest 0.

    Returns
    -------
    dict[str, float]
        Group to ratio.

    References
    ----------
    Yang, Gkatzelis, Stoyanovich (IJCAI 2019).

    Examples
    --------
    >>> round(in_group_ratio([0, 2], [9, 7, 5, 3], list("aaaa"), k=2)["a"], 6)
    0.714286
    """
    from forcopt.fairness.ranking import Candidates, InGroupFairness

    y = _shifted(scores, offset)
    chosen = np.zeros(len(y))
    chosen[_prefix(order, k, len(y))] = 1.0
    facts = Candidates({"group": tuple(map(str, groups))}, np.ones(k), y, len(y))
    return InGroupFairness(by=("group",)).ratios(facts, chosen)
