"""Marginal probabilities as lotteries over sets: laminar families by one draw, polytopes by vertices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from forcopt.arrays import Array, as_numbers
from forcopt.errors import DeclarationError
from forcopt.notebook import table_html
from forcopt.numeric.tolerances import MARGINAL, NO_SLACK

Vertex = Callable[[Array, Array, Array, Array, Array], Array | None]
"""``vertex(weights, low, high, least, most)``: a 0-1 vector v that maximizes ``weights @ v`` with
``low <= v <= high`` and ``least <= rows @ v <= most``, or None if no vector does."""


class SetLottery(NamedTuple):
    """A lottery over sets.

    Attributes
    ----------
    weights : Array
        The probabilities, shape ``(t,)``; their sum is 1.
    members : Array
        1 where an entry is in a set, otherwise 0; shape ``(t, n)``.

    Examples
    --------
    >>> from forcopt.numeric import laminar_lottery
    >>> lottery = laminar_lottery([0.5, 0.5, 0.25, 0.75], family=[[0, 1], [2, 3]])
    >>> (lottery.weights @ lottery.members).tolist(), lottery.members.sum(axis=1).tolist()
    ([0.5, 0.5, 0.25, 0.75], [2.0, 2.0, 2.0])
    """

    weights: Array
    members: Array

    def _repr_html_(self) -> str:
        order = np.argsort(-self.weights, kind="stable")
        rows = [
            (f"{self.weights[i]:.4f}", ", ".join(map(str, np.flatnonzero(self.members[i])))) for i in order
        ]
        return table_html(f"lottery over {len(rows)} sets", ("probability", "members"), rows)

    def sample(self, rng: np.random.Generator) -> Array:
        """Draw a set: 0 or 1 for each entry, shape ``(n,)``."""
        return np.array(self.members[rng.choice(len(self.weights), p=self.weights)])


def laminar_lottery(
    marginals: Any, family: Sequence[Sequence[int]] = (), tolerance: float = 2e-10
) -> SetLottery:
    """Find a lottery over sets with given marginals that rounds the count of every set of a laminar family.

    Parameters
    ----------
    marginals : array_like
        In [0, 1], shape ``(n,)``.
    family : sequence of sequences of int
        Sets of entries, any two of which are disjoint or nested. The set of all entries is always among them.
    tolerance : float, default 2e-10
        Counts this close to a whole number are whole; marginals may move by four times as much.

    Returns
    -------
    SetLottery
        At most n + 1 sets. The count of each family's set in each of them is its sum of marginals, rounded
        down or up.

    Raises
    ------
    DeclarationError
        For marginals outside of [0, 1], or two sets of the family that cross, naming them.

    Notes
    -----
    In the depth-first order of a laminar family every set is an interval, and a systematic sample along an
    order rounds the count of every interval. The sample changes with its random start only at the fractional
    parts of the cumulated marginals, so that these intervals of starts are the lottery. O(n log n), and
    O(n²) to write it.

    References
    ----------
    Madow: On the theory of systematic sampling, II. Annals of Mathematical Statistics 20, 1949.
    Budish, Che, Kojima, Milgrom: Designing random allocation mechanisms. American Economic Review 103, 2013,
    for lotteries that respect one and two laminar families.

    Examples
    --------
    >>> lottery = laminar_lottery([0.5, 0.5, 0.25, 0.75], family=[[0, 2], [1, 3]])
    >>> lottery.weights.tolist()
    [0.25, 0.25, 0.25, 0.25]
    >>> lottery.members.astype(int).tolist()
    [[1, 1, 0, 0], [1, 0, 0, 1], [0, 0, 1, 1], [0, 1, 0, 1]]
    """
    x = _probabilities(marginals, max(tolerance, MARGINAL))
    sets = sorted((np.unique(np.asarray(s, dtype=int)) for s in family if len(s)), key=lambda s: -len(s))
    member = np.zeros((len(sets), len(x)))
    for row, entries in zip(member, sets, strict=True):
        if entries[0] < 0 or entries[-1] >= len(x):
            raise DeclarationError(f"family: {entries[-1]} is no entry; they are 0 to {len(x) - 1}")
        row[entries] = 1.0
    order = np.lexsort(-member[::-1]) if len(sets) else np.arange(len(x))
    place = np.empty(len(x), dtype=int)
    place[order] = np.arange(len(x))
    for entries in sets:
        if np.ptp(place[entries]) + 1 != len(entries):
            other = next(s for s in sets if 0 < len(np.intersect1d(s, entries)) < min(len(s), len(entries)))
            raise DeclarationError(f"family: the sets {entries.tolist()} and {other.tolist()} cross")
    ends = np.concatenate([[0.0], np.cumsum(x[order])])
    starts = ends - np.floor(ends)
    starts[starts > 1 - tolerance] = 0.0
    kept = [0.0]
    for value in np.sort(starts).tolist():
        if value > kept[-1] + tolerance:
            kept.append(value)
    # each cumulated sum becomes whole + the start kept nearest below it
    which = np.searchsorted(kept, starts + tolerance * 1e-3, side="right") - 1
    taken = np.round(ends - starts)[None, :] + (which[None, :] > np.arange(len(kept))[:, None])
    members = np.zeros((len(kept), len(x)))
    members[:, order] = np.diff(taken, axis=1)
    return SetLottery(np.diff([*kept, 1.0]), members)


def decompose(
    point: Any,
    rows: Any,
    lower: Any,
    upper: Any,
    vertex: Vertex,
    tolerance: float = 1e-9,
    parts: int | None = None,
) -> SetLottery:
    """Write a point of an integral polytope ``{0 <= x <= 1, lower <= rows @ x <= upper}`` as a lottery.

    Parameters
    ----------
    point : array_like
        In the polytope, up to the tolerance; shape ``(n,)``.
    rows : array_like
        Shape ``(m, n)``; m may be 0.
    lower, upper : array_like
        Whole or infinite, shape ``(m,)``.
    vertex : Vertex
        Finds a 0-1 point of a face.
    tolerance : float, default 1e-9
        By this much, relative, the point may break a bound.
    parts : int, optional
        Give probabilities that are multiples of ``1 / parts``; the point's entries must be such multiples,
        and the rows totally unimodular.

    Returns
    -------
    SetLottery
        At most ``n + 2 m + 1`` sets (`parts`, if that is given), all within the bounds. Its mean is the
        point: to 1e-9 if the point is exact, else to n times its largest error.

    Raises
    ------
    DeclarationError
        If `vertex` finds no 0-1 point on the face of a point that is left: the polytope is not integral, or
        the point is not in it.

    Notes
    -----
    Caratheodory's theorem, constructively: take a vertex of the smallest face that holds the point, with the
    largest probability that leaves a point of the polytope (times the probability left). Then one more bound
    is tight. The remainder is never rescaled, so that errors do not grow. One call of `vertex` a step.

    With `parts` a set that takes one part must leave a point for the others, which is a tighter bound on each
    row. By the theorem of Baum and Trotter there is such a set.

    References
    ----------
    Groetschel, Lovasz, Schrijver: Geometric Algorithms and Combinatorial Optimization, 1988, theorem 6.5.11.
    Baum, Trotter: Integer rounding and polyhedral decomposition for totally unimodular systems. In:
    Optimization and Operations Research, 1978, for multiples.

    Examples
    --------
    >>> def best(weights, low, high, least, most):  # two of three entries
    ...     ranked = np.where(low == 1, np.inf, np.where(high == 0, -np.inf, weights))
    ...     chosen = np.zeros(3)
    ...     chosen[np.argsort(-ranked, kind="stable")[:2]] = 1.0
    ...     return chosen
    >>> lottery = decompose([0.5, 0.75, 0.75], np.ones((1, 3)), [2], [2], best)
    >>> lottery.weights.tolist(), lottery.members.astype(int).tolist()
    ([0.5, 0.25, 0.25], [[0, 1, 1], [1, 1, 0], [1, 0, 1]])
    """
    left = _probabilities(point, tolerance)
    a = as_numbers(rows, "rows").reshape(-1, len(left))
    least, most = as_numbers(lower, "lower", infinite=True), as_numbers(upper, "upper", infinite=True)
    members: list[Array] = []
    weights: list[float] = []
    rest = 1.0
    for _ in range(2 * (len(left) + 2 * len(a)) + 2 if parts is None else parts):
        counts = a @ left
        zero, one = left <= NO_SLACK, rest - left <= NO_SLACK
        with np.errstate(invalid="ignore"):
            below, above = counts - rest * least, rest * most - counts
            lowest = np.where(above <= NO_SLACK, most, least)
            highest = np.where(below <= NO_SLACK, least, most)
            if parts is not None:  # a set that takes one part leaves a point for the others
                lowest = np.fmax(lowest, most - np.round(parts * above))
                highest = np.fmin(highest, least + np.round(parts * below))
        low, high = one.astype(float), 1.0 - zero.astype(float)
        found = vertex(left / rest, low, high, lowest, highest)
        if found is None:
            if weights and rest <= 1e3 * tolerance:  # an error of the point, of this size
                break
            raise DeclarationError("the point is no mean of 0-1 points within the bounds")
        inside = found > 0.5
        own = a @ found
        step = min(rest, float(np.min(left[inside], initial=rest)))
        step = min(step, float(np.min(rest - left[~inside], initial=rest)))
        for slack, used in ((below, own - least), (above, most - own)):
            binding = (used > 0) & np.isfinite(used) & (slack > NO_SLACK)
            step = min(step, float(np.min(slack[binding] / used[binding], initial=rest)))
        if parts is not None:
            step = np.floor(step * parts + MARGINAL) / parts
        members.append(np.round(found))
        weights.append(step)
        left = np.maximum(left - step * found, 0.0)
        rest -= step
        if rest <= NO_SLACK:
            break
    total = np.array(weights)
    return SetLottery(total / total.sum(), np.array(members))


def _probabilities(marginals: Any, tolerance: float) -> Array:
    x = as_numbers(marginals, "marginals")
    if x.ndim != 1 or not x.size or (x < -tolerance).any() or (x > 1 + tolerance).any():
        raise DeclarationError("marginals must be a list of at least one number between 0 and 1")
    return np.clip(x, 0.0, 1.0)
