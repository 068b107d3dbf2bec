"""What a solver claims, and what a check answers: confirmed, or a doubt with its remedy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property

import numpy as np

from forcopt.arrays import Array
from forcopt.backends.base import Backend, RawResult, SolveOptions
from forcopt.clock import Deadline
from forcopt.compile.program import Program
from forcopt.compile.separation import Withdrawn, violated_constraints
from forcopt.language.model import Model
from forcopt.loops.tolerances import VERTICES
from forcopt.status import Status


class Act(Enum):
    """A remedy other than a status."""

    SOLVE_AGAIN = "solve again in another way"
    RAISE = "raise BackendError"


@dataclass(frozen=True)
class Confirmed:
    """The check has nothing against the claim."""


@dataclass(frozen=True)
class Doubt:
    """The check does not confirm the claim.

    Attributes
    ----------
    reason : str
        Against the claim, in words; empty if the solver itself left the status open.
    remedy : Status or Act
        The status that the answer gets instead, or another act.
    refutes_bound : bool, default False
        Whether the bound is refuted as well.
    """

    reason: str
    remedy: Status | Act
    refutes_bound: bool = False


Verdict = Confirmed | Doubt


@dataclass(frozen=True, eq=False)
class Claim:
    """What a solver says about a program, and what it was asked.

    Attributes
    ----------
    model : Model
        As declared.
    compiled : Program
        Of the model, before rows were added to it.
    backend : Backend
        Makes the claim.
    options : SolveOptions
        Under which it solved.
    deadline : Deadline
        The clock of the whole solve.
    result : RawResult
        The claim.
    results : tuple[RawResult, ...]
        Of all solves. The first one's bound is a bound on the first objective.
    again : bool, default False
        Whether the program was solved again for this claim.
    """

    model: Model
    compiled: Program
    backend: Backend
    options: SolveOptions
    deadline: Deadline
    result: RawResult
    results: tuple[RawResult, ...]
    again: bool = False

    @property
    def status(self) -> Status:
        """The status that is claimed."""
        return self.result.status

    @property
    def is_first_order(self) -> bool:
        """Whether the solver is a first-order method: its bound is no better than its tolerance."""
        solver = f"{self.backend.name} {self.options.extra.get('solver')}"
        return self.backend.accuracy > VERTICES or "pdlp" in solver

    @property
    def left(self) -> SolveOptions:
        """The options with the time that is left."""
        return self.options.within(self.deadline.seconds)

    def share(self, part: float, least: float) -> float:
        """Seconds for a check: a part of those spent, `least` if that is more, within the limit."""
        left = self.left.time_limit
        return min(max(least, part * self.deadline.seconds), np.inf if left is None else left)

    @cached_property
    def point(self) -> Array | None:
        """The model's point: integers rounded, atoms and products computed."""
        return None if self.result.x is None else self.completed(self.result.x)

    @cached_property
    def stages(self) -> tuple[float, ...]:
        """The model's objectives at its point; empty without a point."""
        if self.point is None:
            return ()
        objective = self.model.objective
        return tuple(v for s in objective.stages for v in s.values(self.point)) if objective else (0.0,)

    @cached_property
    def violations(self) -> dict[str, float]:
        """By how much the point violates each constraint of the model."""
        return {} if self.point is None else self.model.violations(self.point)

    def completed(self, x: Array) -> Array:
        """The model's columns of a program's point: integers rounded, atoms and products computed."""
        point = np.array(x[: self.model.column_count])
        if self.compiled.is_integer:
            integer = self.integers
            point[integer] = np.round(point[integer]) + 0.0  # no negative zeros
        held = self.model.parametric_columns()
        if held is not None:  # not as a solver rounded them
            np.copyto(point, self.compiled.lower[: len(held)], where=held)
        return self.model.complete(point)

    def is_cut_off(self, x: Array) -> bool:
        """Whether a lazy family cuts a program's point off, or gives no answer."""
        try:
            return bool(violated_constraints(self.model, x, self.backend.accuracy, self.deadline))
        except (TimeoutError, Withdrawn):
            return True

    @property
    def integers(self) -> Array:
        """The model's columns that must be integers."""
        return np.flatnonzero(self.compiled.integer[: self.model.column_count] == 1)

    def answered(self, result: RawResult) -> Claim:
        """The claim with the result of another solve; without a point only its bound counts."""
        kept = result if result.status.has_solution else replace(self.results[0], bound=result.bound)
        return replace(self, result=result, results=(kept,), again=True)

    def after(self, doubt: Doubt) -> Claim:
        """The claim with the status that a doubt demands."""
        assert isinstance(doubt.remedy, Status)
        result, results = self.result, self.results
        message = f"{result.message}; but {doubt.reason}" if doubt.reason else result.message
        result = replace(result, status=doubt.remedy, ambiguous=False, message=message)
        if doubt.remedy in (Status.INFEASIBLE, Status.UNBOUNDED, Status.LIMIT):
            result = replace(result, x=None, objective=float("nan"), row_dual=None)
        if doubt.refutes_bound:
            results = (replace(results[0], bound=-np.inf), *results[1:])
        return replace(self, result=result, results=results)


@dataclass(frozen=True)
class Check:
    """A check of claims; call it with a program and a claim.

    Attributes
    ----------
    claims : tuple[Status, ...]
        What it checks; it confirms every other claim.
    function : Callable[[Program, Claim], Verdict]
        Checks a claim about a program.
    """

    claims: tuple[Status, ...]
    function: Callable[[Program, Claim], Verdict]

    @property
    def summary(self) -> str:
        """The first line of its docstring."""
        return (self.function.__doc__ or "").strip().splitlines()[0]

    def __call__(self, program: Program, claim: Claim) -> Verdict:
        """Check a claim about a program."""
        return self.function(program, claim) if claim.status in self.claims else Confirmed()


def check_of(*claims: Status) -> Callable[[Callable[[Program, Claim], Verdict]], Check]:
    """Make a function a check of some claims."""
    return lambda function: Check(claims, function)


def verdict(reason: str, remedy: Status | Act = Act.SOLVE_AGAIN) -> Verdict:
    """A doubt for a reason; confirmed if the reason is empty."""
    return Doubt(reason, remedy) if reason else Confirmed()


def is_checkable(program: Program) -> bool:
    """Whether arithmetic proves a claim: linear rows, a linear or quadratic objective of one stage."""
    return not (program.cones or program.is_conditional or program.is_staged)
