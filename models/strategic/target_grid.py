"""Targets on a grid, by greedy deletion from all of its points."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np

from forcopt.errors import DeclarationError
from forcopt.models.strategic.greedy_deletion import largest_gaming_free_set
from forcopt.models.strategic.problem import StrategicClassification
from forcopt.models.strategic.targets import TargetDesign, TargetDesign2D, Targets
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["grid"]

MOST_CELLS = 50_000_000

_SECONDS = 4e-7
"""A pair of an agent and a point takes at most about this long."""


@TargetDesign2D.algorithm("grid", cites="Ahmadi et al. (2022), Algorithm 1 on a grid", rank="published")
@TargetDesign.algorithm("grid", cites="Ahmadi et al. (2022), Algorithm 1 on a grid", rank="published")
def grid(problem: TargetDesign, *, step: float = 1.0, time_limit: float | None = None) -> Outcome:
    """The best targets among the multiples of `step`, by greedy deletion: optimal if all data lies on the
    grid.

    Then it is an oracle for Algorithm 3. The number of points grows exponentially with the features.

    Parameters
    ----------
    problem : TargetDesign
        Which.
    step : float, default 1.0
        The distance of neighbouring points along each feature, in its own units.
    """
    if not (np.isfinite(step) and step > 0):
        raise DeclarationError(f"step is {step!r}; it must be positive")
    X, reach = problem.X, 1 / problem.costs
    if not len(X):
        return Outcome(Targets(np.empty((0, X.shape[1]))))
    low = np.floor(X.min(axis=0) / step).astype(int)
    high = np.ceil((X.max(axis=0) + reach) / step).astype(int)
    cells = prod((high - low + 1).tolist()) * len(X)
    if cells > MOST_CELLS:
        raise DeclarationError(
            f"step is {step:g}, which gives {cells} pairs of an agent and a point; it must give at most "
            f"{MOST_CELLS}"
        )
    if time_limit is not None and cells * _SECONDS > time_limit:
        message = f"{cells} pairs of an agent and a point take longer than {time_limit:g} s"
        return Outcome(None, status=Status.LIMIT, message=message)
    axes = [range(a, b + 1) for a, b in zip(low.tolist(), high.tolist(), strict=True)]
    points = np.array(list(product(*axes)), dtype=float) * step
    graph = StrategicClassification.from_features(
        X,
        points,
        problem.truth,
        problem.costs,
        problem.improvable,
        weights=problem.weights,
        zero_utility="improve",
    )
    is_open, passes = largest_gaming_free_set(graph)
    return Outcome(Targets(points[is_open]), iterations=passes)
