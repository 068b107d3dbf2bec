"""From marginals to cohorts: dependent rounding, and an explicit lottery."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.language.model import Model

if TYPE_CHECKING:
    from forcopt.models.leximax_cohort.problem import Quotas

__all__ = ["decompose", "dependent_rounding"]

_CLOSE = 1e-7
"""Probabilities this close to 0 or 1 count as that, and counts this close to a quota as tight."""


def dependent_rounding(marginals: Array, rng: np.random.Generator) -> Array:
    """Round to 0 and 1, pair by pair, keeping the sum and every expectation (Srinivasan, 2001).

    At most ``n - 1`` steps. Entries end up negatively correlated.

    Parameters
    ----------
    marginals : Array
        In [0, 1], with a whole sum (up to rounding).
    rng : numpy.random.Generator
        Draws.

    Examples
    --------
    >>> dependent_rounding(np.array([0.5, 0.25, 0.25, 1.0]), np.random.default_rng(0)).sum()
    np.float64(2.0)
    """
    x = np.array(marginals, dtype=float)
    x[x < _CLOSE], x[x > 1 - _CLOSE] = 0.0, 1.0
    open_ = np.flatnonzero((x > 0) & (x < 1)).tolist()
    first = open_.pop() if open_ else -1
    while open_:
        other = open_.pop()
        p, q = x[first], x[other]
        up, down = min(1 - p, q), min(p, 1 - q)
        if rng.random() * (up + down) < down:
            p, q = p + up, q - up
        else:
            p, q = p - down, q + down
        x[first], x[other] = p, q
        if _CLOSE < q < 1 - _CLOSE:
            first = other
        elif not _CLOSE < p < 1 - _CLOSE:  # both are settled
            first = open_.pop() if open_ else -1
    return np.round(x)  # what rounding of the sum left open


def decompose(marginals: Array, classes: Quotas) -> tuple[Array, Array]:
    """Write marginals as a lottery over cohorts that meet the quotas.

    Parameters
    ----------
    marginals : Array
        In [0, 1], with a whole sum.
    classes : Quotas
        The quotas; may be none.

    Returns
    -------
    tuple[Array, Array]
        The cohorts as rows of 0 and 1, and their probabilities.

    Raises
    ------
    DeclarationError
        If a cohort that the lottery needs does not exist.
    """
    x = np.array(marginals, dtype=float)
    size = round(float(x.sum()))
    cohorts, weights, left = [], [], 1.0
    while True:
        x = np.where(x < _CLOSE, 0.0, np.where(x > 1 - _CLOSE, 1.0, x))
        counts = classes.members @ x
        cohort = _on_face(x, size, classes, counts)
        inside = cohort > 0.5
        # x - w * cohort, scaled up by 1 / (1 - w), must stay within the bounds and the quotas
        room = [np.min(x[inside], initial=1.0), np.min(1.0 - x[~inside], initial=1.0)]
        own = classes.members @ cohort
        for slack, used in (
            (counts - classes.least, own - classes.least),
            (classes.most - counts, classes.most - own),
        ):
            binding = used > np.maximum(slack, _CLOSE)
            room.append(float(np.min(slack[binding] / used[binding], initial=1.0)))
        weight = min(room)
        cohorts.append(cohort)
        if weight >= 1 - _CLOSE or left * (1 - weight) < _CLOSE:
            weights.append(left)
            break
        weights.append(left * weight)
        left *= 1 - weight
        x = (x - weight * cohort) / (1 - weight)
    return np.array(cohorts), np.array(weights) / sum(weights)


def _on_face(x: Array, size: int, classes: Quotas, counts: Array) -> Array:
    """A cohort that has all certain members, no excluded one, and meets tight quotas exactly.

    Of those it is one with the largest sum of probabilities.
    """
    if not classes.names:
        cohort = np.zeros(len(x))
        cohort[np.argsort(-x, kind="stable")[:size]] = 1.0
        return cohort
    least = np.where(classes.most - counts < _CLOSE, classes.most, classes.least)
    most = np.where(counts - classes.least < _CLOSE, classes.least, classes.most)
    model = Model("face")
    chosen = model.variable("chosen", len(x), lower=np.where(x == 1.0, 1.0, 0.0), upper=x > 0.0, binary=True)
    model.subject_to(chosen.sum() == size, (chosen @ classes.members.T).between(least, most))
    model.maximize(chosen @ x)
    said = model.solve()
    if said.point is None:
        raise DeclarationError(
            "the marginals are the mean of no lottery over cohorts that meet the quotas; solve by "
            "'column-generation'"
        )
    return np.asarray(said[chosen])
