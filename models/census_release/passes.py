"""Passes over a tree, level by level: weighted least squares, and projections onto the children of a unit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.compiled import njit
from forcopt.data.hierarchy import Hierarchy


def check_clock(deadline: Deadline | None) -> None:
    """Raise `TimeoutError` once the time limit has passed."""
    if deadline is not None and deadline.passed:
        raise TimeoutError(deadline.end)


def least_squares(
    hierarchy: Hierarchy,
    noisy: Sequence[Array],
    precision: Sequence[Array],
    fixed: Sequence[Array] | None = None,
    deadline: Deadline | None = None,
) -> Array:
    """Minimize the weighted squares over all levels, signs free, in two passes.

    Parameters
    ----------
    hierarchy : Hierarchy
        The tree.
    noisy : Sequence[Array]
        By level, shapes ``(units, types)``.
    precision : Sequence[Array]
        By level, shapes ``(types,)``, at least 0, above 0 on the last.
    fixed : Sequence[Array], optional
        By level, values that units must have, NaN where free; shapes ``(units, types)``.
    deadline : Deadline, optional
        The clock; `TimeoutError` once it has run out.

    Returns
    -------
    Array
        The leaves' counts, shape ``(leaves, types)``.

    Notes
    -----
    Upwards, each unit's measurement is averaged with its children's sum, weighted by precision. Downwards,
    the deficit of a unit's children to its final count is shared among them in proportion to their variances.
    O(n). After Hay, Rastogi, Miklau, Suciu (2010), Boosting the accuracy of differentially private histograms
    through consistency, Theorem 3, with weights and any fan-out.
    """
    depth = hierarchy.depth
    means: list[Array] = [np.empty(0)] * depth
    spread: list[Array] = [np.empty(0)] * depth
    sums: list[Array] = [np.empty(0)] * depth
    spreads: list[Array] = [np.empty(0)] * depth
    for level in range(depth - 1, -1, -1):
        check_clock(deadline)
        y, w = noisy[level], precision[level]
        if level == depth - 1:
            means[level], spread[level] = np.array(y, dtype=float), np.broadcast_to(1 / w, y.shape).copy()
        else:
            below, s = hierarchy.up(level + 1, means[level + 1]), hierarchy.up(level + 1, spread[level + 1])
            sums[level], spreads[level] = below, s
            spread[level] = s / (1 + w * s)
            means[level] = below + w * spread[level] * (y - below)
        if fixed is not None:
            held = ~np.isnan(fixed[level])
            if held.any():
                means[level] = np.where(held, fixed[level], means[level])
                spread[level] = np.where(held, 0.0, spread[level])
    found = means[0]
    for level in range(1, depth):
        check_clock(deadline)
        s = spreads[level - 1]
        share = np.divide(found - sums[level - 1], s, out=np.zeros_like(s), where=s > 0)
        found = means[level] + spread[level] * share[hierarchy.parents[level - 1]]
    return np.asarray(found)


@njit(cache=True)
def project_children(order, begin, targets, points, low, fixed, free):  # type: ignore[no-untyped-def]
    """Project each unit's children onto the points whose sum is its count: ``x >= low``, equal weights.

    `order` and `begin` give the children of each unit, `targets` the units' counts; `points`, `low` and
    `fixed` belong to the children. A fixed child has the value `low`. With `free`, the others have no lower
    bound. O(k log k) for k children.
    """
    out = low.copy()
    # The children of the units before p are projected.
    for p in range(len(targets)):
        count, total = 0, targets[p]
        # `count` children seen are free; `total` is left for them above their lower bounds.
        for i in range(begin[p], begin[p + 1]):
            c = order[i]
            total -= low[c] if fixed[c] or not free else 0.0
            count += not fixed[c]
        if not count:
            continue
        above = np.empty(count)
        k = 0
        # The first k places hold the points of the free children seen, above their lower bounds.
        for i in range(begin[p], begin[p + 1]):
            c = order[i]
            if not fixed[c]:
                above[k] = points[c] if free else points[c] - low[c]
                k += 1
        if free:
            level = (above.sum() - total) / count
        else:
            falling = np.sort(above)[::-1]
            run, level = 0.0, 0.0
            # The j largest points sum to `run`, and are above `level` by `total` together.
            for j in range(count):
                run += falling[j]
                at = (run - total) / (j + 1)
                if j == 0 or falling[j] > at:
                    level = at
                else:
                    break
        # The free children seen are at their projections.
        for i in range(begin[p], begin[p + 1]):
            c = order[i]
            if not fixed[c]:
                out[c] = points[c] - level if free else low[c] + max(points[c] - low[c] - level, 0.0)
    return out
