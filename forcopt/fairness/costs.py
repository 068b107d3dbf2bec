"""The cost of each prediction for each label, in place of the error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator

from forcopt.arrays import Array, as_numbers
from forcopt.declaration import Numbers
from forcopt.errors import DeclarationError, require, require_shape
from forcopt.fairness.rates import ERROR, Rate

RANGE = 1e-3, 1e6
"""Of the largest cost, in the user's unit: methods stop at absolute differences of the mean near 1e-6."""

Costs = Literal["balanced"] | Mapping[str, float] | Array | None


def check_costs(costs: Array | None, classes: int | None = None) -> Array | None:
    """Refuse a table of costs of another shape, or of costs that an optimum has no meaning for.

    Parameters
    ----------
    costs : Array, optional
        Indexed ``[label, prediction]``.
    classes : int, optional
        The number of classes, C; any by default.

    Raises
    ------
    DeclarationError
        For another shape than ``(C, C)``, a negative cost, a cost of a right prediction, costs that are all
        0, and a largest cost outside of `RANGE`.
    """
    if costs is None:
        return None
    wanted = (classes or len(costs),) * 2
    require_shape(costs.shape == wanted and costs.size, "costs has", costs, f"be {wanted}: label, prediction")
    rule = "be 0 for a right prediction, not negative for a wrong one, and positive for one of them"
    require(costs.min() >= 0 and not np.diagonal(costs).any() and costs.any(), "costs", costs.tolist(), rule)
    if not RANGE[0] <= costs.max() <= RANGE[1]:
        raise DeclarationError(
            f"costs: the largest is {costs.max():g}; it must be from {RANGE[0]:g} to {RANGE[1]:g}: choose "
            "another unit, as their ratios alone matter"
        )
    return costs


CostTable = Annotated[Numbers, AfterValidator(check_costs)]
"""A field that takes costs, indexed ``[label, prediction]``; they are 0 for a right prediction."""


def cost_table(costs: Costs, labels: Any, classes: int = 2, weights: Any = None) -> Array | None:
    """The cost of each prediction for each label, as problems take it.

    Parameters
    ----------
    costs : "balanced", mapping or array_like, optional
        Of wrong predictions: ``{"fp": 1.0, "fn": 5.0}`` for false positives and false negatives, a table
        indexed ``[label, prediction]``, or ``"balanced"``. Then a record costs the inverse of the share of
        its label, over C, so that the mean cost is 1 less the balanced accuracy. None for 1 each.
    labels : array_like
        The number of each record's class, from 0; shape ``(n,)``.
    classes : int, default 2
        Their number, C.
    weights : array_like, optional
        Of the records, shape ``(n,)``.

    Returns
    -------
    Array or None
        Shape ``(C, C)``, indexed ``[label, prediction]``; None for None.

    Raises
    ------
    DeclarationError
        For other words or names, costs that `check_costs` refuses, and "balanced" with a label that no record
        has.

    References
    ----------
    Elkan (2001): The foundations of cost-sensitive learning; Brodersen et al. (2010): The balanced accuracy
    and its posterior distribution.

    Examples
    --------
    >>> cost_table({"fp": 1, "fn": 5}, [0, 1]).tolist()
    [[0.0, 1.0], [5.0, 0.0]]
    >>> cost_table("balanced", [0, 0, 0, 1]).round(3).tolist()
    [[0.0, 0.667], [2.0, 0.0]]
    """
    if costs is None:
        return None
    if isinstance(costs, str):
        mass = np.bincount(np.asarray(labels), weights, classes)
        if costs != "balanced" or not mass.all():
            rule = "every label must occur" if costs == "balanced" else 'it must be "balanced" or a table'
            raise DeclarationError(f"costs is {costs!r}; {rule}")
        table = (1.0 - np.eye(classes)) * (mass.sum() / (classes * mass))[:, None]
    elif isinstance(costs, Mapping):
        if set(costs) != {"fp", "fn"} or classes != 2:
            raise DeclarationError(
                f"costs has the keys {', '.join(map(str, costs))}; of two classes it must have fp and fn, of "
                "more it must be a table"
            )
        table = np.array([[0.0, costs["fp"]], [costs["fn"], 0.0]])
    else:
        table = costs
    return check_costs(as_numbers(table, "costs"), classes)


def loss_rate(costs: Array | None) -> Rate:
    """The mean cost of two classes as a `Rate`; the error rate for None.

    Parameters
    ----------
    costs : Array or None
        The cost of each prediction for each label, shape ``(2, 2)``, indexed ``[label, prediction]``.

    Returns
    -------
    Rate
        Of all records.

    Examples
    --------
    >>> loss_rate(None).name, loss_rate(np.array([[0.0, 1.0], [5.0, 0.0]])).event
    ('error rate', ((0.0, 5.0), (1.0, 0.0)))
    """
    if costs is None:
        return ERROR
    (_, fp), (fn, _) = costs.tolist()
    return Rate("cost", event=((0.0, fn), (fp, 0.0)), given=((1, 1), (1, 1)))
