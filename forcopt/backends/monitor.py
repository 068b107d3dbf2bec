"""The messages of a solver to its backend during a run: lines of its log, and improvements."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING

from forcopt.arrays import Array
from forcopt.backends.base import SolveOptions
from forcopt.clock import Deadline, Improvement, interrupted
from forcopt.compile.program import Program
from forcopt.status import Status

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["SolveMonitor"]

_KEPT = 10
"""Points that are kept during a search for each place in the pool."""


class SolveMonitor:
    """Collect a run's log and improvements, pass them to the caller, and remember whether to stop.

    Solvers call back from their own code, which often cannot carry a Python exception: an exception within
    `capture` is kept, stops the run, and is raised again by `reraise`.

    Attributes
    ----------
    log
        The output that the solver printed.
    trace
        Improvements in minimised terms.
    pool
        Points for `RawResult.pool`.
    """

    def __init__(self, program: Program, options: SolveOptions) -> None:
        self.sign, self.options = program.stages[0].sign, options
        self.log = ""
        self.trace: list[Improvement] = []
        self._stop = False
        self.pool: list[Array] = []
        self.deadline = Deadline(options.time_limit)
        self._error: BaseException | None = None

    def log_text(self, text: str) -> None:
        """Keep a part of the log, and show it if that was asked for."""
        self.log += text
        if self.options.log:
            print(text, end="")

    def improved(self, objective: float, bound: float) -> None:
        """Note a point of this (minimized) value, if it is the best yet."""
        if self.trace and objective >= self.trace[-1].objective:
            return
        step = Improvement(self.deadline.seconds, objective, bound)
        self.trace.append(step)
        if self.options.on_improvement is not None:
            shown = Improvement(step.seconds, self.sign * objective, self.sign * bound)
            self._stop = bool(self.options.on_improvement(shown)) or self._stop

    @property
    def stop(self) -> bool:
        """Whether the run should end as soon as it can."""
        return self._stop or interrupted() or self.deadline.full

    def worded(self, message: str, status: Status, full: bool = False) -> str:
        """Put the reason before a solver's words if Ctrl-C or the memory ended it; `full` if it says so."""
        if status not in (Status.LIMIT, Status.FEASIBLE) or not (full or self.deadline.full or interrupted()):
            return message
        end = self.deadline.memory.end if full or self.deadline.full else self.deadline.end
        return f"{end}; {message}"

    def found(self, read: Callable[[], Array]) -> None:
        """Keep a point for the pool, if one is wanted; `read` gives its values. Old points make room."""
        if self.options.pool:
            self.pool = [*self.pool, read()][-_KEPT * self.options.pool :]

    @contextmanager
    def capture(self, interrupt: Callable[[], object] | None = None) -> Iterator[None]:
        """Keep an exception for `reraise`, and call `interrupt` if the run should end."""
        try:
            yield
        except BaseException as error:  # raised again by `reraise`, once the solver has returned
            self._error = self._error or error
            self._stop = True
        if self.stop and interrupt is not None:
            interrupt()

    def reraise(self) -> None:
        """Raise the exception that was kept, if there is one."""
        if self._error is not None:
            raise self._error
