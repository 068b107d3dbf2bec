"""A status that the solver left open."""

from __future__ import annotations

import numpy as np

from forcopt.backends.base import Backend, SolveOptions
from forcopt.backends.conditioned import open_session
from forcopt.clock import Deadline
from forcopt.compile.program import Program, StageCost
from forcopt.loops.checks.claim import Claim, Confirmed, Doubt, Verdict, check_of, is_checkable, verdict
from forcopt.status import Status

__all__ = ["decided", "decides", "finds_an_answer", "without_objective"]


@check_of(*Status)
def decides(program: Program, claim: Claim) -> Verdict:
    """ "Infeasible or unbounded" is decided by a solve without the objective."""
    if not claim.result.ambiguous:
        return Confirmed()
    return Doubt("", decided(claim.backend, program, claim.options, claim.deadline))


@check_of(Status.FAILED)
def finds_an_answer(program: Program, claim: Claim) -> Verdict:
    """Linear rows, with integers or without: some solver finds an answer."""
    linear = is_checkable(claim.compiled) and program.stages[0].quadratic is None
    return verdict("it found no answer" if linear else "")


def without_objective(program: Program) -> Program:
    """The program of which any point is an optimum."""
    return program.with_stage(StageCost(np.zeros(program.columns), 0.0, False))


def decided(backend: Backend, program: Program, options: SolveOptions, deadline: Deadline) -> Status:
    """Distinguish infeasible from unbounded by a solve without an objective."""
    session = open_session(backend, without_objective(program))
    result = session.solve(options.within(deadline.seconds))
    if result.status.has_solution:
        return Status.UNBOUNDED
    # A model without an objective is not unbounded, so a solver that reports it found no feasible point.
    return Status.INFEASIBLE if result.ambiguous or result.status is Status.UNBOUNDED else result.status
