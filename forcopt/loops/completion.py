"""Complete a point of which some variables are given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from forcopt.language.evaluator import read_values
from forcopt.language.model import Model, Variable
from forcopt.loops.solution import ModelSolution
from forcopt.status import Status

__all__ = ["completed", "read_values"]

_SECONDS = 60.0
"""How long the search for the other columns may take."""


def completed(
    model: Model, values: Mapping[Variable, Any], again: Callable[[], Model]
) -> tuple[ModelSolution, bool]:
    """Give the point with these values; the columns that they do not determine are found by HiGHS.

    Parameters
    ----------
    model : Model
        With an objective, by which completions are compared.
    values : Mapping[Variable, Any]
        Of some variables, see `read_values`; they are kept as they are.
    again : Callable[[], Model]
        Writes the same model once more, in which the values are then held.

    Returns
    -------
    tuple[ModelSolution, bool]
        The solution to certify, and whether there is a completion: if not, it is HiGHS's solution of the
        model in which the values are held.
    """
    given = read_values(model, values)
    if not np.isnan(given[model.free_columns()]).any():
        point = model.complete(given)
        return ModelSolution(model, Status.FEASIBLE, np.nan, -np.inf, (), point, 0.0, "highs", ()), True
    held = again()
    for v in held.variables:
        numbers = given[v.start : v.start + v.size]
        at = np.flatnonzero(~np.isnan(numbers))
        held.subject_to(v.reshape(-1)[at] == numbers[at], name=held.unused_name(f"{v.name} is given"))
    solution = held.solve(time_limit=_SECONDS)
    if solution.point is None:
        return solution, False
    point = model.complete(np.where(np.isnan(given), solution.point, given))
    return replace(solution, model=model, point=point, solved=()), True
