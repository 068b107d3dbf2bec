"""Two-stage samples: the number of clusters and of units in each, for a budget or a precision."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from forcopt.errors import DeclarationError
from forcopt.models.allocation.tolerances import SUM


class TwoStageDesign(NamedTuple):
    """A sample of clusters, and of units within each.

    Attributes
    ----------
    clusters : float
        The number of clusters, n; whole if `whole` was asked for.
    units : float
        The number of units in each cluster, m.
    variance : float
        Of the estimated mean, relative to that of one unit: ``(1 + delta (m - 1)) / (n m)``.
    cost : float
        ``n (cluster_cost + unit_cost m)``.

    Examples
    --------
    >>> from forcopt.models.allocation import two_stage_design
    >>> d = two_stage_design(cluster_cost=750, unit_cost=100, correlation=0.05, budget=100_000)
    >>> d.clusters, d.units, d.cost, round(d.variance, 6)
    (54.0, 11.0, 99900.0, 0.002525)
    """

    clusters: float
    units: float
    variance: float
    cost: float


def two_stage_design(
    *,
    cluster_cost: float,
    unit_cost: float,
    correlation: float,
    budget: float | None = None,
    variance: float | None = None,
    most_units: int | None = None,
    whole: bool = True,
) -> TwoStageDesign:
    """Choose the number of clusters and of units in each, for the least variance or the least cost.

    Parameters
    ----------
    cluster_cost, unit_cost : float
        Of adding a cluster, and of adding a unit to a sampled cluster; above 0.
    correlation : float
        The intraclass correlation delta (measure of homogeneity) of the variable, between 0 and 1.
    budget, variance : float, optional
        Exactly one: the cost allowed, or the variance allowed relative to that of one unit,
        ``(CV / unit CV)²`` for a coefficient of variation.
    most_units : int, optional
        The units of a cluster.
    whole : bool, default True
        Whether both numbers are whole.

    Returns
    -------
    TwoStageDesign
        The optimum: of whole designs by comparing all numbers of units that can be best, else in closed
        form.

    Raises
    ------
    DeclarationError
        For numbers out of range, or a budget below the cost of one cluster with one unit.

    Notes
    -----
    Without rounding ``m = sqrt(cluster_cost / unit_cost * (1 - delta) / delta)``, whatever the budget is. For
    whole numbers, n follows from each m; m is tried from 1 to the largest that the budget, or the optimum's
    cost, allows. O(that number), vectorized.

    References
    ----------
    Cochran: Sampling Techniques, 3rd edition, 1977, section 10.6. Valliant, Dever, Kreuter: Practical Tools
    for Designing and Weighting Survey Samples, 2nd edition, 2018, section 9.2.

    Examples
    --------
    >>> two_stage_design(cluster_cost=750, unit_cost=100, correlation=0.05, budget=100_000, whole=False).units
    11.937336386313323
    >>> two_stage_design(cluster_cost=750, unit_cost=100, correlation=0.05, budget=100_000)[:2]
    (54.0, 11.0)
    """
    for name, value in (("cluster_cost", cluster_cost), ("unit_cost", unit_cost)):
        if not (value > 0 and np.isfinite(value)):
            raise DeclarationError(f"{name} is {value}; it must be above 0")
    if not 0 <= correlation <= 1:
        raise DeclarationError(f"correlation is {correlation}; it must be between 0 and 1")
    if (budget is None) == (variance is None):
        raise DeclarationError("give either budget or variance, one of them")
    if budget is not None and budget < cluster_cost + unit_cost:
        raise DeclarationError(
            f"budget is {budget:g}; one unit of one cluster costs {cluster_cost + unit_cost:g}"
        )
    if variance is not None and not variance > 0:
        raise DeclarationError(f"variance is {variance}; it must be above 0")
    if most_units is not None and most_units < 1:
        raise DeclarationError(f"most_units is {most_units}; it must be at least 1")
    free = np.inf
    if correlation > 0:
        free = np.sqrt(cluster_cost / unit_cost * (1 - correlation) / correlation)
    top = np.inf if most_units is None else float(most_units)
    if budget is not None:
        top = min(top, (budget - cluster_cost) / unit_cost)
    elif not np.isfinite(top):
        top = max(free if np.isfinite(free) else 0.0, 1.0) * 4 + 1 / variance  # type: ignore[operator]
    if whole:
        units = np.arange(1.0, np.floor(min(top, 1e7)) + 1)
        if budget is not None:
            clusters = np.floor(budget / (cluster_cost + unit_cost * units) * (1 + SUM))
        else:
            clusters = np.ceil((1 + correlation * (units - 1)) / (units * variance) * (1 - SUM))
        clusters = np.maximum(clusters, 1.0)
    else:
        units = np.array([min(max(free, 1.0), top)])
        per = cluster_cost + unit_cost * units
        clusters = (
            budget / per if budget is not None else (1 + correlation * (units - 1)) / (units * variance)
        )
    reached = (1 + correlation * (units - 1)) / (clusters * units)
    costs = clusters * (cluster_cost + unit_cost * units)
    best = int(np.lexsort((costs, reached) if budget is not None else (reached, costs))[0])
    return TwoStageDesign(*(float(each[best]) for each in (clusters, units, reached, costs)))
