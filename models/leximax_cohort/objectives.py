"""The objectives of a lottery over cohorts: one function of the groups' utilities, for numbers and models."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np

from forcopt.arrays import Array
from forcopt.language.atoms import entropy, inverse, log, sum_squares

Objective = Literal[
    "leximin", "maximin", "nash", "goldilocks", "minimax", "linear", "variance", "entropy", "uniform"
]

LOW = ("leximin", "maximin", "nash", "goldilocks", "linear", "variance", "entropy")
"""Objectives that suffer if a utility falls."""

HIGH = ("goldilocks", "minimax", "linear", "variance", "entropy")
"""Objectives that suffer if a utility rises, or that may."""

EXTREME = ("maximin", "goldilocks", "minimax", "linear")
"""Objectives that depend on the smallest and the largest utility alone."""

LINEAR = ("leximin", "maximin", "minimax", "linear")
"""Objectives that linear programs state; they scale with the utilities."""

MINIMIZED = ("goldilocks", "minimax", "linear", "variance")

POSITIVE = ("nash", "goldilocks", "entropy")
"""Objectives that are defined for utilities of at least 0."""

assert {*LOW, *HIGH, "uniform"} == {*get_args(Objective)}


def welfare(
    objective: Objective, u: Any, counts: Array, weight: float, even: float, centre: Any = None
) -> Any:
    """Give the value of an objective at utilities: a number for numbers, an expression for an expression.

    Parameters
    ----------
    objective : Objective
        One of

        - ``leximin``, ``maximin``: the smallest utility (leximin goes on to the next ones);
        - ``nash``: the mean logarithm of the utilities, that is of their geometric mean, Nash welfare;
        - ``goldilocks``: ``max u / even + weight * even / min u``, to be minimised (Baharav and Flanigan,
          2024);
        - ``minimax``: the largest utility, to be minimised;
        - ``linear``: ``max u - weight * min u``, to be minimised;
        - ``variance``: of the utilities, to be minimised;
        - ``entropy``: the sum of ``-u ln u``.
    u : Expression or Array
        Utilities, shape ``(m,)``.
    counts : Array
        How many groups have each utility, shape ``(m,)``.
    weight : float
        See above.
    even : float
        The utility of an equal chance for all: size / candidates.
    centre : Variable, optional
        For ``variance`` in a model, a free column: at the optimum it is the mean, and no row is dense.

    Examples
    --------
    >>> round(float(np.exp(welfare("nash", np.array([0.2, 0.8]), np.ones(2), 1.0, 0.5))), 9)
    0.4
    >>> round(float(welfare("goldilocks", np.array([0.2, 0.8]), np.ones(2), 1.0, 0.5)), 9)
    4.1
    """
    share = counts / counts.sum()
    if objective == "nash":
        return log(u) @ share
    if objective == "goldilocks":
        return u.max() * (1 / even) + weight * even * inverse(u.min())
    if objective == "minimax":
        return u.max()
    if objective == "linear":
        return u.max() - weight * u.min()
    if objective == "variance":
        return sum_squares((u - (u @ share if centre is None else centre)) * np.sqrt(share))
    if objective == "entropy":
        return entropy(u) @ counts
    return u.min()
