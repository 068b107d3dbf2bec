"""Random draws with given inclusion probabilities: pivotal, systematic, and two-way controlled rounding."""

from __future__ import annotations

from typing import Any

import numpy as np

from forcopt.arrays import Array, as_numbers
from forcopt.errors import DeclarationError
from forcopt.numeric.tolerances import CLOSE

_GRID = 2.0**40
"""Cumulated sums are multiples of one over this, so that sums with equal fractions round together."""


def dependent_rounding(marginals: Any, rng: np.random.Generator) -> Array:
    """Round to 0 and 1, pair by pair, with all expectations kept (the sequential pivotal method).

    Parameters
    ----------
    marginals : array_like
        In [0, 1], shape ``(n,)``.
    rng : numpy.random.Generator
        The source of randomness.

    Returns
    -------
    Array
        0 or 1, shape ``(n,)``. Its sum is the marginals' sum, rounded down or up.

    Raises
    ------
    DeclarationError
        For entries outside of [0, 1].

    Notes
    -----
    Two entries with fractions p and q exchange mass until one of them is 0 or 1: with ``p + q <= 1`` one gets
    all, each in proportion; otherwise one becomes 1. The entries end up negatively correlated, so that sums
    are at least as concentrated as those of independent draws. At most n - 1 exchanges; a last fraction, if
    the sum is not whole, is drawn by itself. O(n).

    References
    ----------
    Deville, Tille: Unequal probability sampling without replacement through a splitting method. Biometrika
    85, 1998. Srinivasan: Distributions on level-sets with applications to approximation algorithms. FOCS
    2001.

    Examples
    --------
    >>> dependent_rounding([0.5, 0.25, 0.25, 1.0], np.random.default_rng(0)).sum()
    np.float64(2.0)
    """
    x = _fractions(marginals)
    values, draws = x.tolist(), iter(rng.random(len(x) + 1).tolist())
    first = -1
    for other, q in enumerate(values):
        if q in (0.0, 1.0):
            continue
        if first < 0:
            first = other
            continue
        p = values[first]
        if p + q <= 1 + CLOSE:  # one of them gets all
            keeps, gives = (first, other) if next(draws) * (p + q) < p else (other, first)
            values[keeps], values[gives] = min(p + q, 1.0), 0.0
            open_ = keeps
        else:  # one of them becomes 1
            full, open_ = (first, other) if next(draws) * (2 - p - q) < 1 - q else (other, first)
            values[full], values[open_] = 1.0, max(p + q - 1, 0.0)
        first = open_ if CLOSE < values[open_] < 1 - CLOSE else -1
    if first >= 0:
        values[first] = 1.0 if next(draws) < values[first] else 0.0
    return np.round(np.array(values))


def systematic_rounding(marginals: Any, rng: np.random.Generator) -> Array:
    """Round to 0 and 1 by one draw: equal steps along the cumulated probabilities.

    The parameters and errors are those of `dependent_rounding`.

    Parameters
    ----------
    marginals : array_like
        From 0 to 1, shape ``(n,)``.
    rng : numpy.random.Generator
        Of the one draw.

    Returns
    -------
    Array
        0 or 1, shape ``(n,)``. Every run of consecutive entries has the sum of its marginals, rounded down or
        up.

    Notes
    -----
    Entry i is taken if a whole number lies in ``(u + s[i-1], u + s[i]]``, with s the cumulated marginals and
    u uniform in [0, 1). Many pairs are never drawn together, so that variances cannot be estimated without
    bias. O(n).

    References
    ----------
    Madow: On the theory of systematic sampling, II. Annals of Mathematical Statistics 20, 1949.

    Examples
    --------
    >>> systematic_rounding([0.5, 0.5, 0.5, 0.5], np.random.default_rng(0)).tolist()
    [1.0, 0.0, 1.0, 0.0]
    """
    ends = np.concatenate([[0.0], np.cumsum(_fractions(marginals))])
    near = np.round(ends)
    ends = np.where(np.abs(ends - near) < CLOSE, near, np.round(ends * _GRID) / _GRID)
    whole = np.floor(ends)
    return np.diff(whole + (rng.random() >= 1.0 - (ends - whole)))  # ends + u would round


def controlled_rounding(table: Any, rng: np.random.Generator) -> Array:
    """Round a two-way table at random so that rows, columns and the total are rounded, too.

    Parameters
    ----------
    table : array_like
        Shape ``(r, c)``, at least 0.
    rng : numpy.random.Generator
        The source of randomness.

    Returns
    -------
    Array
        Whole numbers, shape ``(r, c)``. Each cell, row sum, column sum and the total is that of the table,
        rounded down or up; each cell has the table's value as its expectation.

    Raises
    ------
    DeclarationError
        For another shape or negative cells.

    Notes
    -----
    A row, a column and a corner are added whose fractions make all sums whole. The fractional cells then hold
    a cycle that alternates between rows and columns. Mass moves along it, forwards or backwards with the
    probabilities that keep all expectations, until a cell is whole. Each cycle settles a cell:
    O(cells * (r + c)).

    References
    ----------
    Cox: A constructive procedure for unbiased controlled rounding. Journal of the American Statistical
    Association 82, 1987.

    Examples
    --------
    >>> found = controlled_rounding([[0.5, 1.5], [0.5, 0.5]], np.random.default_rng(1))
    >>> found.sum(), found.sum(axis=0).tolist()[1]
    (np.float64(3.0), 2.0)
    """
    import networkx as nx

    given = as_numbers(table, "table")
    if given.ndim != 2 or not given.size or (given < 0).any():
        raise DeclarationError(f"table has shape {given.shape}; it must be (r, c) with cells of at least 0")
    down = np.floor(given + CLOSE)
    rows, columns = given.shape
    x = np.zeros((rows + 1, columns + 1))
    x[:-1, :-1] = np.maximum(given - down, 0.0)
    x[:-1, -1] = np.ceil(x[:-1, :-1].sum(axis=1) - CLOSE) - x[:-1, :-1].sum(axis=1)
    x[-1, :-1] = np.ceil(x[:-1, :-1].sum(axis=0) - CLOSE) - x[:-1, :-1].sum(axis=0)
    x[-1, -1] = np.ceil(x[:-1, -1].sum() - CLOSE) - x[:-1, -1].sum()
    x = np.where(np.abs(x - np.round(x)) < CLOSE, np.round(x), x)
    cells: nx.Graph[Any] = nx.Graph(((0, i), (1, j)) for i, j in np.argwhere((x > 0) & (x < 1)).tolist())
    while cells.size():
        try:
            cycle = nx.find_cycle(cells)
        except nx.NetworkXNoCycle:  # rounding errors broke a sum: settle a cell by itself
            cycle = [next(iter(cells.edges))]
        path = [tuple(at for _, at in sorted(edge)) for edge in cycle]
        even, odd = path[::2], path[1::2]
        up = min([*(1 - x[c] for c in even), *(x[c] for c in odd)])
        back = min([*(x[c] for c in even), *(1 - x[c] for c in odd)])
        move = up if rng.random() * (up + back) < back else -back
        for sign, part in ((1.0, even), (-1.0, odd)):
            for cell in part:
                x[cell] += sign * move
        for (i, j), edge in zip(path, cycle, strict=True):
            if abs(x[i, j] - round(x[i, j])) < CLOSE:
                x[i, j] = round(x[i, j])
                cells.remove_edge(*edge)
    return np.asarray(down + np.round(x[:-1, :-1]))


def _fractions(marginals: Any) -> Array:
    x = as_numbers(marginals, "marginals")
    if x.ndim != 1 or (x < -CLOSE).any() or (x > 1 + CLOSE).any():
        raise DeclarationError("marginals must be a list of numbers between 0 and 1")
    near = np.round(x)
    return np.where(np.abs(x - near) < CLOSE, near, x)
