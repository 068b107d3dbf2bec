"""The conic programs: the reciprocals of the sizes in rotated second-order cones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from forcopt.arrays import Array
from forcopt.language.atoms import inverse
from forcopt.language.expression import Expression
from forcopt.language.model import Model, Variable
from forcopt.language.objective import leximax
from forcopt.models.allocation.precision import PrecisionAllocation
from forcopt.models.allocation.problem import Strata, StratifiedAllocation
from forcopt.models.allocation.rounding import (
    precise_enough,
    rounded,
    whole_and_precise,
    within_limits,
)
from forcopt.models.allocation.tolerances import ROUNDING
from forcopt.numeric import water_fill
from forcopt.problem import Handles


@StratifiedAllocation.formulation("socp", cites="Neyman (1934), as second-order cones")
def socp(problem: StratifiedAllocation, model: Model) -> Handles:
    """Fractional sizes by a conic solver, rounded by the largest remainder; the bound is the fractions'.

    It takes declarations beyond the closed form: several variables by leximax, and further constraints of a
    model that this is declared into.

    Returns
    -------
    Handles
        ``sizes``, shape ``(k,)``; ``variances``, shape ``(V,)``.
    """
    return _least_variance(problem, model, relaxed=True)


@StratifiedAllocation.formulation("misocp", exact=True, cites="Neyman (1934), as second-order cones")
def misocp(problem: StratifiedAllocation, model: Model) -> Handles:
    """Whole sizes with second-order cones; fractional ones without `integer`.

    Returns
    -------
    Handles
        ``sizes``, shape ``(k,)``; ``variances``, shape ``(V,)``.
    """
    return _least_variance(problem, model, relaxed=False)


def _least_variance(problem: StratifiedAllocation, model: Model, relaxed: bool) -> Handles:
    limits = problem.limits()
    about = [
        water_fill(problem.sizes.astype(float), problem.floors, problem.caps, c, b)[0] for c, b in limits
    ]
    typical = np.maximum(np.min(about, axis=0), problem.floors)
    sizes, sums, start = _write(problem, model, typical, relaxed)
    for (costs, limit), name in zip(limits, problem.limit_names, strict=True):
        model.subject_to((sizes * (costs / limit)).sum() <= 1 + ROUNDING, name=model.unused_name(name))
    weights = problem.variable_weights
    losses = (sums - problem.constant) * weights
    # relative to the sum, not to the variance: this nearly cancels where almost all records are sampled
    unit = float((problem.coefficients / typical[:, None]).sum(axis=0) @ weights) or 1.0
    scaled = losses * (1 / unit)
    return Handles(
        objective=scaled.sum() if problem.criterion == "weighted" else leximax(scaled),
        decision=lambda result: problem.allocation(_sizes(problem, result[sizes], relaxed)),
        start=start,
        unit=unit,
        sizes=sizes,
        variances=losses * (1 / weights),
    )


def _write(
    problem: Strata, model: Model, typical: Array, relaxed: bool
) -> tuple[Expression, Expression, Callable[[Any], dict[Variable, Array]]]:
    """The sizes, ``coefficients.T @ (1 / sizes)`` from cones with members near 1, and a start."""
    whole = problem.integer and not relaxed
    unit = np.ones(len(typical)) if whole else typical  # fractions are variables in units of their own
    variables = model.variable(
        model.unused_name("sizes"),
        len(typical),
        lower=problem.floors / unit,
        upper=problem.caps / unit,
        integer=whole,
    )
    shares = variables * (unit / typical)
    reciprocals = inverse(shares)
    # without these bounds the presolving of SCIP finds thousands of strata infeasible
    model.subject_to(
        reciprocals <= typical / problem.floors * (1 + ROUNDING), name=model.unused_name("reciprocals")
    )
    sums = (problem.coefficients / typical[:, None]).T @ reciprocals
    return variables * unit, sums, lambda decision: {variables: problem.read_sizes(decision) / unit}


def _sizes(problem: Strata, found: Array, relaxed: bool) -> Array:
    """The solver's sizes, corrected for its tolerance, and rounded if sizes must be whole."""
    sizes = np.clip(found, problem.floors, problem.caps)
    if not problem.integer:
        return within_limits(sizes, problem.floors, problem.limits())
    if not relaxed:
        return np.round(sizes)
    return rounded(sizes, problem.floors, problem.caps, problem.limits(), "largest-remainder")


@PrecisionAllocation.formulation("socp", cites="Bethel (1989), as second-order cones")
def precise_socp(problem: PrecisionAllocation, model: Model) -> Handles:
    """Fractional sizes by a conic solver, rounded up; the bound is that of the fractions.

    Returns
    -------
    Handles
        ``sizes``, shape ``(k,)``; ``variances``, shape ``(V,)``.
    """
    return _least_cost(problem, model, relaxed=True)


@PrecisionAllocation.formulation("misocp", exact=True, cites="Bethel (1989), as second-order cones")
def precise_misocp(problem: PrecisionAllocation, model: Model) -> Handles:
    """Whole sizes with second-order cones; fractional ones without `integer`.

    Returns
    -------
    Handles
        ``sizes``, shape ``(k,)``; ``variances``, shape ``(V,)``.
    """
    return _least_cost(problem, model, relaxed=False)


def _least_cost(problem: PrecisionAllocation, model: Model, relaxed: bool) -> Handles:
    room = problem.allowed + problem.constant
    typical = np.clip(problem.sizes / 2, problem.floors, problem.caps)
    sizes, sums, start = _write(problem, model, typical, relaxed)
    # a target may be attained exactly
    model.subject_to(sums * (1 / room) <= 1 + ROUNDING, name=model.unused_name("targets"))
    unit = float(problem.unit_costs @ typical)

    def decision(result: Any) -> Any:
        found = precise_enough(problem, np.clip(result[sizes], problem.floors, problem.caps))
        if problem.integer:
            if relaxed:
                found = rounded(found, problem.floors, problem.caps, [], "ceiling")
            else:
                found = whole_and_precise(problem, np.round(result[sizes]))
        return problem.allocation(found)

    return Handles(
        objective=(sizes * (problem.unit_costs / unit)).sum(),
        decision=decision,
        start=start,
        unit=unit,
        sizes=sizes,
        variances=sums - problem.constant,
    )
