"""The law of each state's seats by a divisor method under whole noise, by enumeration of its own noise."""

from __future__ import annotations

from typing import cast

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.models.fair_decisions.apportionment import Apportionment
from forcopt.models.fair_decisions.lattice import masses
from forcopt.numeric.apportionment import DivisorMethod
from forcopt.privacy.noises import Noise

__all__ = ["lattice_seat_probabilities"]


def lattice_seat_probabilities(problem: Apportionment, noise: Noise) -> Array:
    """Give `seat_probabilities` under whole noise, equal claims going to the larger state, then the earlier.

    Parameters
    ----------
    problem : Apportionment
        With whole populations and the criterion of a divisor method; its minimums fit.
    noise : Noise
        Whole.

    Returns
    -------
    Array
        Shape ``(k, seats + 1)``.

    Notes
    -----
    Given the noisy population of state a, each other state has a larger claim than a's seat s on a number of
    seats whose law is read off the noise; these numbers are independent, and their laws are convolved.
    Claims are compared in whole numbers, exactly. O(k^2 seats^3 n) for n values of the noise.
    """
    p = problem.populations
    if (p != np.round(p)).any():
        raise DeclarationError("populations must be whole, since the noise is; round them first")
    first, mass = masses(noise)
    upto = np.concatenate([[0.0], np.cumsum(mass)])
    seats, k = problem.seats, len(p)
    least = np.broadcast_to(problem.minimum, p.shape)
    method = cast(DivisorMethod, problem.criterion)
    law = np.zeros((k, seats + 1))
    for a in range(k):
        own = int(p[a]) + first + np.arange(len(mass))
        some = own > 0
        y, weight = own[some], mass[some]
        wins = np.zeros(seats + 2)
        wins[: least[a] + 1] = 1.0
        for s in range(int(least[a]), seats):
            others = np.zeros(
                (len(y), seats - s)
            )  # counts of all seats with larger claims that leave this one
            others[:, 0] = 1.0
            for b in range(k):
                if b == a:
                    continue
                slots = np.arange(least[b], seats)
                ends = _least_claims(y, s, slots, method, b < a) - int(p[b]) - first
                reach = 1.0 - upto[np.clip(ends, 0, len(mass))]  # P(noisy population >= end)
                ones = np.ones((len(y), 1))
                counts = -np.diff(np.concatenate([ones, reach, 0 * ones], axis=1), axis=1)
                together = np.zeros_like(others)
                for j in range(counts.shape[1]):
                    taken = int(least[b]) + j
                    if taken < seats - s:
                        together[:, taken:] += counts[:, j, None] * others[:, : seats - s - taken]
                others = together
            wins[s + 1] = float(weight @ others.sum(axis=1))
        law[a] = np.maximum(-np.diff(wins), 0.0)
    return law


def _least_claims(y: Array, s: int, slots: Array, method: DivisorMethod, earlier: bool) -> Array:
    """The least populations whose claims to the seats after `slots` come before that of y to the one after s.

    Shape ``(len(y), len(slots))``.
    """
    j = slots.astype(object)
    if s == 0 and method in ("hill", "adams", "dean"):  # equal infinite claims: the larger state's is first
        return np.where(slots == 0, y[:, None] + (not earlier), np.iinfo(np.int64).max // 2)
    below: Array | int
    match method:  # the ratio of signposts is above / below, or its root
        case "hill":
            above, below = j * (j + 1), s * (s + 1)
        case "dean":
            above, below = 2 * j * (j + 1) * (2 * s + 1), 2 * s * (s + 1) * (2 * j + 1)
        case "webster":
            above, below = 2 * j + 1, 2 * s + 1
        case "jefferson":
            above, below = j + 1, s + 1
        case "adams":
            above, below = j, s
    whole = y.astype(object)[:, None]
    if method == "hill":
        numerator = whole * whole * above
        root = np.floor(np.sqrt((numerator / below).astype(float))).astype(np.int64).astype(object)
        root = root + ((root + 1) * (root + 1) * below <= numerator)
        root = root - (root * root * below > numerator)
        equal = root * root * below == numerator
    else:
        root = whole * above // below
        equal = root * below == whole * above
    first = equal & ((slots > s) | ((slots == s) & earlier))
    return np.maximum(np.asarray(root + ~first.astype(bool), dtype=np.int64), 1)
