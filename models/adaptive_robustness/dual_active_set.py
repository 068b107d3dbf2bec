"""The shortest vector within halfspaces that are found one by one: the dual active-set method."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from forcopt.arrays import Array
from forcopt.models.adaptive_robustness.tolerances import DEPENDENT, FALLS

__all__ = ["Projection", "shortest_vector"]


class Projection(NamedTuple):
    """The result of the method.

    Attributes
    ----------
    vector : array, shape (d,)
    steps : int
        Rows that were asked for.
    proved : bool
        Whether the vector satisfies all halfspaces and is shortest; False if it is only known that the
        least length is at least `limit`, or if rounding stopped the method.
    beyond : bool
        Whether the least length is at least the limit.
    """

    vector: Array
    steps: int
    proved: bool
    beyond: bool


def shortest_vector(
    dimension: int, violated: Callable[[Array], tuple[Array, float] | None], limit: float, most: int
) -> Projection:
    """Minimize the Euclidean length of u subject to ``row u >= right`` for rows that an oracle gives.

    Parameters
    ----------
    dimension : int
    violated : callable
        Gives a row of length 1 and its right-hand side that u violates, or None.
    limit : float
        Stop when the least length is known to be at least this.
    most : int
        How many rows may be asked for.

    Returns
    -------
    Projection

    References
    ----------
    Goldfarb, Idnani, A numerically stable dual method for solving strictly convex quadratic programs,
    Mathematical Programming 27 (1983).

    Examples
    --------
    >>> rows = iter([(np.array([1.0, 0.0]), 2.0), (np.array([0.0, 1.0]), 1.0), None])
    >>> shortest_vector(2, lambda u: next(rows), np.inf, 10).vector.tolist()
    [2.0, 1.0]
    """
    u: Array = np.zeros(dimension)
    active: Array = np.zeros((0, dimension))
    rights: Array = np.zeros(0)
    prices: Array = np.zeros(0)
    for steps in range(most):
        found = violated(u)
        if found is None:
            return Projection(u, steps, True, False)
        row, right = found
        price = 0.0
        for _ in range(10 * (len(active) + 10)):
            share = np.linalg.lstsq(active.T, row, rcond=None)[0] if len(active) else np.zeros(0)
            rest = row - share @ active
            along = float(rest @ rest)
            falls = share > FALLS
            drop, dual = -1, math.inf
            if falls.any():
                ratios = np.where(falls, prices / np.where(falls, share, 1.0), math.inf)
                drop = int(ratios.argmin())
                dual = float(ratios[drop])
            primal = (right - float(row @ u)) / along if along > DEPENDENT**2 else math.inf
            step = min(dual, primal)
            if not math.isfinite(step):
                return Projection(u, steps, False, False)
            prices, price = prices - step * share, price + step
            if math.isfinite(primal):
                u = u + step * rest
            if step == primal:
                active = np.vstack([active, row])
                rights, prices = np.append(rights, right), np.append(np.maximum(prices, 0.0), price)
                # afresh from the active rows, so that rounding does not pile up
                u = np.linalg.lstsq(active, rights, rcond=None)[0]
                break
            keep = np.arange(len(active)) != drop
            active, rights, prices = active[keep], rights[keep], np.maximum(prices[keep], 0.0)
        else:
            return Projection(u, steps, False, False)
        if float(u @ u) >= limit * limit:
            return Projection(u, steps, False, True)
    return Projection(u, most, False, False)
