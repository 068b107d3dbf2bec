"""Statistical audits: lower bounds on the privacy loss of a program, from running it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, inf, log
from typing import Any

import numpy as np
import scipy

from forcopt.arrays import Array
from forcopt.errors import DeclarationError, require
from forcopt.privacy.mechanism import Channel
from forcopt.privacy.randomness import Randomness, Simulated
from forcopt.privacy.tolerances import EXPONENT, LARGE_OUTPUT, SMALLEST


@dataclass(frozen=True)
class Audit:
    """The result of an audit.

    Attributes
    ----------
    epsilon : float
        The claimed loss.
    delta : float
        The claimed delta.
    lower_epsilon : float
        A lower bound on the loss at this delta, with the stated confidence.
    lower_delta : float
        A lower bound on delta at the claimed epsilon, with the stated confidence.
    level : float
        The confidence.
    event : str
        The event that distinguishes the two data sets best.

    Examples
    --------
    >>> from forcopt.privacy import AdditiveMechanism, Laplace, audit
    >>> found = audit(AdditiveMechanism(Laplace(epsilon=0.5)), ([0.0], [1.0]), epsilon=0.5, runs=2000)
    >>> found.passed, found.lower_epsilon <= 0.5
    (True, True)
    """

    epsilon: float
    delta: float
    lower_epsilon: float
    lower_delta: float
    level: float
    event: str

    @property
    def passed(self) -> bool:
        """Whether the claim is not refuted."""
        return self.lower_epsilon <= self.epsilon and self.lower_delta <= self.delta


def audit(
    mechanism: Channel | Callable[[Any, Randomness], Any],
    neighbours: tuple[Any, Any],
    epsilon: float,
    runs: int,
    *,
    delta: float = 0.0,
    level: float = 0.999,
    seed: int = 0,
    features: Callable[[Any], Any] | None = None,
) -> Audit:
    """Search for an event by which a mechanism distinguishes two neighbouring data sets.

    Parameters
    ----------
    mechanism : Channel or callable
        A channel, or any program ``(data, rng) -> output``, such as a call of a private method.
    neighbours : pair
        Two data sets that differ by one person.
    epsilon, delta : float
        The claim.
    runs : int
        The number of runs on each of the two; half of them find the event, the other half test it.
    level : float
        The confidence of the lower bounds.
    seed : int
        Of the simulation.
    features : callable, optional
        The features of an output that events are about: a number or an array, by default the output itself.

    Returns
    -------
    Audit
        A correct mechanism is refuted with probability at most ``1 - level``.

    Notes
    -----
    The event is a half-line of one coordinate, of the projection on the difference of the means, or of the
    largest or smallest coordinate; or one value of it. It is chosen on the first halves and tested on the
    second. The confidence is split evenly over eight Clopper-Pearson bounds: of two data sets, for epsilon
    and for delta, in two directions. Infinite outputs count as 1e150.

    Raises
    ------
    DeclarationError
        For fewer than 100 runs, a level outside of (0, 1), outputs with NaN, and outputs of several sizes.

    Examples
    --------
    >>> from forcopt.privacy import AdditiveMechanism, Laplace
    >>> honest, halved = AdditiveMechanism(Laplace(scale=1.0)), AdditiveMechanism(Laplace(scale=0.5))
    >>> audit(honest, ([0.0], [1.0]), epsilon=1.0, runs=4000).passed
    True
    >>> audit(halved, ([0.0], [1.0]), epsilon=1.0, runs=4000).passed
    False
    """
    require(runs == int(runs) and runs >= 100, "runs", runs, "be a whole number, at least 100")
    require(0 < level < 1, "level", level, "be strictly between 0 and 1")
    rng = Simulated(seed)

    run = mechanism._send if isinstance(mechanism, Channel) else mechanism

    def outputs(data: Any) -> Array:
        rows = []
        for _ in range(int(runs)):
            out = run(data, rng)
            if features is not None:
                out = features(out)
            parts = out if isinstance(out, tuple) else (out,)
            rows.append(np.concatenate([np.ravel(np.asarray(p, dtype=float)) for p in parts]))
        if len(sizes := {len(row) for row in rows}) > 1:
            raise DeclarationError(
                f"the outputs have from {min(sizes)} to {max(sizes)} numbers; give features that are as many"
            )
        found = np.array(rows)
        if np.isnan(found).any():
            raise DeclarationError("an output holds NaN, which no event is about; give features without it")
        return np.asarray(np.clip(found, -LARGE_OUTPUT, LARGE_OUTPUT))

    one, other = outputs(neighbours[0]), outputs(neighbours[1])
    if one.shape != other.shape:
        raise DeclarationError(
            f"the outputs have {one.shape[1]} and {other.shape[1]} numbers; give features that are as many"
        )
    half = int(runs) // 2
    one, other = _statistics(one, other, half)
    tail = (1 - level) / 8
    lower_epsilon = lower_delta = 0.0
    text = "none"
    for p, q, side in ((one, other, "first"), (other, one, "second")):
        for kind in ("epsilon", "delta"):
            event = _best_event(p[:half], q[:half], epsilon, delta, kind, tail)
            hits = [int(event.holds(x[half:]).sum()) for x in (p, q)]
            n = len(p) - half
            low, high = _clopper_pearson(hits[0], n, tail)[0], _clopper_pearson(hits[1], n, tail)[1]
            if kind == "delta":
                lower_delta = max(lower_delta, low - exp(min(epsilon, EXPONENT)) * high)
            elif low > delta and (found := log((low - delta) / high)) > lower_epsilon:
                lower_epsilon, text = found, f"{event}, likelier for the {side} data"
    return Audit(epsilon, delta, lower_epsilon, lower_delta, level, text)


@dataclass(frozen=True)
class _Event:
    column: int
    kind: str
    value: float

    def holds(self, x: Array) -> Array:
        column = x[:, self.column]
        if self.kind == "<=":
            return np.asarray(column <= self.value)
        return np.asarray(column >= self.value if self.kind == ">=" else column == self.value)

    def __str__(self) -> str:
        return f"statistic {self.column} {self.kind} {self.value:.6g}"


def _statistics(one: Array, other: Array, half: int) -> tuple[Array, Array]:
    """The coordinates, and sums of them that may do better; the direction comes from the first halves."""
    if one.shape[1] == 1:
        return one, other
    spread = np.concatenate([one[:half], other[:half]]).std(axis=0)
    difference = one[:half].mean(axis=0) - other[:half].mean(axis=0)
    direction = np.divide(difference, spread**2, out=np.zeros_like(spread), where=spread > 0)
    made = [np.column_stack([x, x @ direction, x.max(axis=1), x.min(axis=1)]) for x in (one, other)]
    return made[0], made[1]


def _best_event(p: Array, q: Array, epsilon: float, delta: float, kind: str, tail: float) -> _Event:
    best, found = -inf, _Event(0, "<=", inf)
    n = len(p)
    for column in range(p.shape[1]):
        both = np.concatenate([p[:, column], q[:, column]])
        cuts = np.unique(both)
        if len(cuts) > 400:
            cuts = np.unique(np.quantile(both, np.linspace(0, 1, 400)))
        sorted_p, sorted_q = np.sort(p[:, column]), np.sort(q[:, column])
        at = [[np.searchsorted(x, cuts, side=s) for s in ("left", "right")] for x in (sorted_p, sorted_q)]
        for sign, a, b in (
            ("<=", at[0][1], at[1][1]),
            (">=", n - at[0][0], n - at[1][0]),
            ("==", at[0][1] - at[0][0], at[1][1] - at[1][0]),
        ):
            low, high = _clopper_pearson(a, n, tail)[0], _clopper_pearson(b, n, tail)[1]
            if kind == "delta":
                score = low - np.exp(min(epsilon, EXPONENT)) * high
            else:
                score = np.log(np.maximum(low - delta, SMALLEST)) - np.log(high)
            k = int(np.argmax(score))
            if score[k] > best:
                best, found = float(score[k]), _Event(column, sign, float(cuts[k]))
    return found


def _clopper_pearson(hits: Any, n: int, tail: float) -> tuple[Any, Any]:
    """Bounds on a probability, each missed with probability at most `tail`."""
    hits = np.asarray(hits)
    low = np.where(hits > 0, scipy.stats.beta.ppf(tail, np.maximum(hits, 1), n - hits + 1), 0.0)
    high = np.where(hits < n, scipy.stats.beta.ppf(1 - tail, hits + 1, np.maximum(n - hits, 1)), 1.0)
    return (low, high) if low.ndim else (float(low), float(high))
