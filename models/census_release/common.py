"""The demands of the tree algorithms on a problem."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Deadline
from forcopt.errors import DeclarationError
from forcopt.models.census_release.problem import ConsistentRelease
from forcopt.problem import Outcome
from forcopt.status import Status

__all__ = ["Column", "column_of", "demand", "demand_formulation", "infeasible", "out_of_time"]


def demand(
    problem: ConsistentRelease,
    method: str,
    *,
    order: str | None = None,
    nonnegative: bool | None = None,
    integer: bool | None = False,
    separable: bool = True,
) -> None:
    """Refuse a problem that a method is not for.

    Raises
    ------
    DeclarationError
        Naming the field and another method.
    """
    if problem.extra and separable:
        raise DeclarationError(f"{method}: extra lies off the spine: use qp (or miqp for whole counts)")
    if separable and not problem.separable:
        raise DeclarationError(
            f"{method}: workload or invariants add types up: use qp (or miqp for whole counts)"
        )
    if order is not None and problem.order != order:
        other = "tree-wls, tree-nnls or tree-integer" if problem.order == "joint" else "toydown or simplex"
        raise DeclarationError(f"{method}: order is {problem.order!r}, it must be {order!r}: use {other}")
    if nonnegative is not None and problem.nonnegative != nonnegative:
        others = {
            "tree-wls": "tree-nnls",
            "toydown": "simplex",
            "tree-nnls": "tree-wls",
            "simplex": "toydown",
        }
        raise DeclarationError(
            f"{method}: nonnegative is {problem.nonnegative}; it must be {nonnegative}: "
            f"use {others.get(method, 'qp')}"
        )
    if integer is not None and problem.integer != integer:
        other = "tree-integer, network-lp, milp or miqp" if problem.integer else "tree-wls, tree-nnls or qp"
        raise DeclarationError(f"{method}: integer is {problem.integer}; it must be {integer}: use {other}")


def demand_formulation(problem: ConsistentRelease, method: str) -> None:
    """Refuse a problem that a formulation is not for, before a model is written.

    Raises
    ------
    DeclarationError
        Naming the field and another method.
    """
    demand(problem, method, integer=method != "qp", separable=False)
    if method == "network-lp" and not problem.is_network:
        raise DeclarationError(
            "network-lp: the workload or an invariant adds types up in a way that is not known to be a "
            "network: use milp or miqp"
        )


def infeasible(problem: ConsistentRelease) -> Outcome | None:
    """The outcome of a problem that no release can meet; None if none is known to be so."""
    reason = problem.infeasibility_reason()
    return Outcome(None, status=Status.INFEASIBLE, message=reason) if reason else None


def out_of_time(error: TimeoutError | Deadline) -> Outcome:
    """The outcome of a run that the time limit ended before it had a decision."""
    passed = error.end if isinstance(error, Deadline) else str(error)
    return Outcome(None, status=Status.LIMIT, message=passed)


class Column(NamedTuple):
    """One type of a separable problem, by level: noisy counts, precision, and the values held (NaN: free)."""

    noisy: list[Array]
    weights: list[float]
    held: list[Array]


def column_of(problem: ConsistentRelease, t: int) -> Column:
    """The measurements and fixed counts of type t."""
    return Column(
        [np.array(level[:, t]) for level in problem.noisy],
        [float(w[t]) for w in problem.weights],
        [np.array(level[:, t]) for level in problem.held],
    )
