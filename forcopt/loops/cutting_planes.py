"""Families of constraints too large to list: solve, ask the oracle, add violated constraints, repeat."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from forcopt.backends.base import RawResult, Session, SolveOptions
from forcopt.clock import Deadline, Improvement
from forcopt.compile.assemble import assemble
from forcopt.compile.separation import violated_constraints
from forcopt.errors import BackendError
from forcopt.language.constraint import Constraint
from forcopt.language.model import Model
from forcopt.status import Status


def cutting_planes(
    session: Session,
    model: Model,
    options: SolveOptions,
    deadline: Deadline,
    tolerance: float,
    rounds: int = 100_000,
) -> RawResult:
    """Minimise over the session's program and all lazy families of the model.

    Every relaxation's optimum bounds the true one, so the bound of the last round is valid even if the loop
    is stopped.

    Parameters
    ----------
    session : Session
        Rows are added to it; incremental sessions re-solve warm.
    model : Model
        Gives the oracles.
    options : SolveOptions
        The time limit is for all rounds together.
    deadline : Deadline
        The clock of the whole solve.
    tolerance : float
        Violations up to this, relative, are accepted; the session's solver may not get below.
    rounds : int, default 100000
        Stop without an optimum after this number.

    Raises
    ------
    BackendError
        If `rounds` are not enough.
    """
    bound, tell, stopped = -np.inf, options.on_improvement, False

    def told(step: Improvement) -> bool:
        """Tell the bound alone: no oracle was asked about the point."""
        nonlocal stopped
        none = -np.inf if session.program.stages[0].maximize else np.inf
        stopped = tell is not None and bool(tell(replace(step, objective=none)))
        return stopped

    options = options if tell is None else replace(options, on_improvement=told)
    iterations, nodes, last = 0, 0, np.empty(0)
    for _ in range(rounds):
        result = session.solve(options.within(deadline.seconds))
        iterations, nodes = iterations + result.iterations, nodes + result.nodes
        result.iterations, result.nodes = iterations, nodes
        if not result.status.has_solution:
            # An infeasible relaxation proves infeasibility; any other end leaves the last bound.
            result.bound = max(result.bound, bound)
            return result
        assert result.x is not None
        bound = max(bound, result.bound)
        x = np.where(session.program.integer == 1, np.round(result.x), result.x)
        cuts: list[Constraint] | None = None
        try:
            cuts = violated_constraints(model, x, tolerance, deadline)
        except TimeoutError:
            result.message = deadline.end
        if cuts == [] or (cuts and np.array_equal(x, last)):  # it ignores its rows: the checks decide
            result.bound = bound
            return result
        if cuts is None or result.status is not Status.OPTIMAL or stopped:
            return replace(result, status=Status.LIMIT, x=None, objective=float("nan"), bound=bound)
        last = x
        session.add_rows(assemble([(c.expression, *c.row_bounds()) for c in cuts]))
    raise BackendError(f"the cutting-plane loop found violated constraints in each of {rounds} rounds")
