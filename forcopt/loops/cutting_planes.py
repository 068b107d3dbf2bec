"""Families of constraints too large to list: solve, ask the separation oracle, add what is violated, repeat."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from forcopt.backends.base import RawResult, Session, SolveOptions
from forcopt.compile.assemble import assemble
from forcopt.errors import BackendError, DeclarationError
from forcopt.language.constraint import Constraint
from forcopt.language.expression import Expression
from forcopt.language.model import Model
from forcopt.language.terms import Array
from forcopt.status import Status

__all__ = ["cutting_planes", "violated_constraints"]

_TOO_SMALL = 1e-9
"""A cut that the point violates by less than this (relative to its bound) would not move it."""


def violated_constraints(model: Model, x: Array) -> list[Constraint]:
    """Ask all lazy families of a model for what a point violates.

    Args:
        model: its lazy families are asked in order.
        x: the values of all columns (those of bridges may follow).

    Raises:
        DeclarationError: if an oracle yields something else than an affine constraint of the model.
    """
    point = model.complete(x[: model.column_count])

    def value(expression: Expression) -> Array:
        return model.lift(expression).evaluate(point)

    found: list[Constraint] = []
    for family in model.lazies:
        for constraint in family.separate(value):
            if not isinstance(constraint, Constraint):
                raise DeclarationError(f"lazy family {family.name!r} yielded {constraint!r}, not a constraint")
            model.lift(constraint.expression)
            model.check_curvature(constraint.expression, 0, f"lazy family {family.name!r}")
            if constraint.relative_violation(point).max(initial=0.0) > _TOO_SMALL:
                found.append(constraint)
    return found


def cutting_planes(
    session: Session,
    model: Model,
    options: SolveOptions,
    elapsed: Callable[[], float],
    rounds: int = 100_000,
) -> RawResult:
    """Minimise over the session's program and all lazy families of the model.

    Every relaxation's optimum bounds the true one, so the bound of the last round is valid even if the loop is
    stopped.

    Args:
        session: rows are added to it; incremental sessions re-solve warm.
        model: gives the oracles.
        options: the time limit is for all rounds together.
        elapsed: seconds since the solve began.
        rounds: give up after so many.

    Raises:
        BackendError: if `rounds` are not enough.
    """
    bound = -np.inf
    iterations = nodes = 0
    for _ in range(rounds):
        result = session.solve(options.within(elapsed()))
        iterations, nodes = iterations + result.iterations, nodes + result.nodes
        result.iterations, result.nodes = iterations, nodes
        if not result.status.has_solution:
            # An infeasible relaxation proves infeasibility; any other end leaves the last bound.
            result.bound = max(result.bound, bound)
            return result
        assert result.x is not None
        bound = max(bound, result.bound)
        cuts = violated_constraints(model, _rounded(result.x, session))
        if not cuts:
            result.bound = bound
            return result
        if result.status is not Status.OPTIMAL:
            return replace(result, status=Status.LIMIT, x=None, objective=float("nan"), bound=bound)
        session.add_rows(assemble([(c.expression, *c.row_bounds()) for c in cuts]))
    raise BackendError(f"the cutting-plane loop found violated constraints in each of {rounds} rounds")


def _rounded(x: Array, session: Session) -> Array:
    integer = session.program.integer == 1
    return np.where(integer, np.round(x), x)
