"""From marginals to an explicit lottery over cohorts that meet the quotas."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.errors import DeclarationError
from forcopt.language.model import Model
from forcopt.numeric import decompose, laminar_lottery, project_box

if TYPE_CHECKING:
    from forcopt.models.leximax_cohort.problem import Quotas

__all__ = ["cohort_lottery", "exact_marginals"]

_CLOSE = 1e-7
"""Probabilities this close to 0 or 1 are solver tolerance, and count as 0 or 1."""


def exact_marginals(marginals: Array, size: float) -> Array:
    """Remove solver tolerances: the nearest probabilities with exactly the sum `size`.

    Parameters
    ----------
    marginals : Array
        In [0, 1] with a sum of about `size`; shape ``(n,)``.
    size : float
        A whole number.

    Returns
    -------
    Array
        Shape ``(n,)``. Entries within 1e-7 of 0 or 1 are 0 or 1, if that leaves the sum possible.
    """
    x = np.clip(marginals, 0.0, 1.0)
    low, high = np.where(x > 1 - _CLOSE, 1.0, 0.0), np.where(x < _CLOSE, 0.0, 1.0)
    if not low.sum() <= size <= high.sum():
        low, high = np.zeros(len(x)), np.ones(len(x))
    return project_box(x, low, high, size)


def cohort_lottery(
    marginals: Array, size: int, classes: Quotas, households: sp.csr_array
) -> tuple[Array, Array]:
    """Write marginals as a lottery over cohorts that meet the quotas.

    Parameters
    ----------
    marginals : Array
        In [0, 1], with a sum of about `size`; shape ``(n,)``.
    size : int
        Of the cohorts.
    classes : Quotas
        The quotas; may be none.
    households : csr_array
        Rows of candidates of whom at most one is chosen; may be none.

    Returns
    -------
    cohorts : Array
        Rows of 0 and 1, shape ``(t, n)``: at most n + 1 without quotas, and n + 2 quotas + 1 with them.
    weights : Array
        Their probabilities, shape ``(t,)``.

    Raises
    ------
    DeclarationError
        If the marginals are the mean of no lottery over cohorts that meet the quotas.

    Notes
    -----
    Without quotas one systematic draw gives the lottery. With quotas the face of the marginals' polytope
    gives a cohort at a time (`forcopt.numeric.decompose`), by an integer program.
    """
    x = exact_marginals(marginals, size)
    if not classes.names and not households.shape[0]:
        lottery = laminar_lottery(x)
        return lottery.members, lottery.weights

    rows = np.vstack([classes.members, households.toarray()])
    lower = np.append(classes.least, np.zeros(households.shape[0]))
    upper = np.append(classes.most, np.ones(households.shape[0]))

    def cohort(weights: Array, low: Array, high: Array, least: Array, most: Array) -> Array | None:
        model = Model("face")
        chosen = model.variable("chosen", len(x), lower=low, upper=high, binary=True)
        model.subject_to(chosen.sum() == size, (chosen @ rows.T).between(least, most))
        model.maximize(chosen @ weights)
        result = model.solve()
        return None if result.point is None else np.round(result[chosen])

    try:
        lottery = decompose(x, rows, lower, upper, cohort, tolerance=1e-6)
    except DeclarationError:
        raise DeclarationError(
            "the marginals are the mean of no lottery over cohorts that meet the quotas; solve by "
            "'column-generation'"
        ) from None
    return lottery.members, lottery.weights
