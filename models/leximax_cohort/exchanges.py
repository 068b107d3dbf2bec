"""Exchanges of members and others, compiled."""

from __future__ import annotations

import numpy as np

from forcopt.compiled import njit


@njit(cache=True)
def _missed(count, least, most):  # type: ignore[no-untyped-def]
    return max(least - count, 0) + max(count - most, 0)


@njit(cache=True)
def walk(inside, outside, weights, demands, heat, steps, rng):  # type: ignore[no-untyped-def]
    """Exchange members and others in place; give the number of places that the last state misses.

    In the limit, the probability of a state is the product of ``exp(weights)`` over its members, times
    ``exp(-heat)`` for each place that it misses.
    """
    first, rows, counts, least, most = demands
    for _ in range(steps):
        i, j = int(rng.random() * len(inside)), int(rng.random() * len(outside))
        pair, more = (inside[i], outside[j]), 0
        for side in range(2):
            for p in range(first[pair[side]], first[pair[side] + 1]):
                r, now = rows[p], counts[rows[p]]
                counts[r] += 2 * side - 1
                more += _missed(counts[r], least[r], most[r]) - _missed(now, least[r], most[r])
        gain = weights[pair[1]] - weights[pair[0]] - heat * more
        if gain >= 0 or rng.random() < np.exp(gain):
            inside[i], outside[j] = outside[j], inside[i]
            continue
        for side in range(2):
            for p in range(first[pair[side]], first[pair[side] + 1]):
                counts[rows[p]] -= 2 * side - 1
    missed = 0
    for r in range(len(counts)):
        missed += _missed(counts[r], least[r], most[r])
    return missed
