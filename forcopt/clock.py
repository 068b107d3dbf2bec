"""Limits and traces: the clock of a run, read alike by every method and solver loop."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from forcopt.errors import require
from forcopt.memory import exempt_memory, memory_budget, resident


@dataclass(frozen=True, slots=True)
class Improvement:
    """One step of a search: objective and bound after a number of seconds.

    Attributes
    ----------
    seconds : float
        Since the run began.
    objective : float
        Of the best point, in the problem's own sense; NaN or infinite without a point.
    bound : float
        On the optimum; infinite if no bound is proved.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", 3, upper=2.5, integer=True)
    >>> m.maximize(x.sum())
    >>> seen = []
    >>> _ = m.solve(on_improvement=lambda step: seen.append(step.objective))
    >>> all(value <= 6 for value in seen)
    True
    """

    seconds: float
    objective: float
    bound: float


OnImprovement = Callable[[Improvement], bool | None]
"""Called at each improvement; the run stops when it returns True."""


class _Interruption:
    """The state of `stop_on_interrupt` in this process."""

    waiting = False
    asked = False
    bare = False  # within `raising_interrupts`


@contextmanager
def stop_on_interrupt() -> Iterator[None]:
    """Let Ctrl-C end the runs of the body as a time limit does: each returns its best with a valid bound.

    A second Ctrl-C raises `KeyboardInterrupt` as usual. Outside of the main thread, and in the body of
    another one or of `raising_interrupts`, nothing changes.

    Yields
    ------
    None
        Nothing; the interruption is read by `interrupted`.

    Examples
    --------
    >>> with stop_on_interrupt():
    ...     signal.raise_signal(signal.SIGINT)
    ...     Deadline(60.0).left
    0.0
    """
    state = _Interruption
    if state.waiting or state.bare or threading.current_thread() is not threading.main_thread():
        yield
        return

    def ask(number: int, frame: Any) -> None:
        if _Interruption.asked:
            raise KeyboardInterrupt
        _Interruption.asked = True

    before = signal.signal(signal.SIGINT, ask)
    _Interruption.waiting, _Interruption.asked = True, False
    try:
        yield
    finally:
        _Interruption.waiting = _Interruption.asked = False
        signal.signal(signal.SIGINT, before)


@contextmanager
def raising_interrupts() -> Iterator[None]:
    """Let Ctrl-C raise `KeyboardInterrupt` from every solve of the body, for loops that must end with it.

    Within a `stop_on_interrupt` that is active already nothing changes.

    Yields
    ------
    None
        Nothing.

    Examples
    --------
    >>> with raising_interrupts(), stop_on_interrupt():
    ...     watches_interrupts()
    False
    """
    if (
        threading.current_thread() is not threading.main_thread()
    ):  # it gets no Ctrl-C, and threads may overlap
        yield
        return
    before, _Interruption.bare = _Interruption.bare, True
    try:
        yield
    finally:
        _Interruption.bare = before


def interrupted() -> bool:
    """Whether Ctrl-C asked the runs of the surrounding `stop_on_interrupt` to end.

    Returns
    -------
    bool
        False outside of `stop_on_interrupt`.

    Examples
    --------
    >>> with stop_on_interrupt():
    ...     signal.raise_signal(signal.SIGINT)
    ...     interrupted(), Deadline().passed, Deadline(60.0).left
    (True, True, 0.0)
    """
    return _Interruption.asked


def watches_interrupts() -> bool:
    """Whether a `stop_on_interrupt` is active, so that solvers have to look for Ctrl-C.

    Returns
    -------
    bool
        True in the body of `stop_on_interrupt` in the main thread.

    Examples
    --------
    >>> watches_interrupts()
    False
    """
    return _Interruption.waiting


def catch_interrupt() -> None:
    """Take a Ctrl-C that a solver caught by itself: end the runs, or raise `KeyboardInterrupt`.

    Raises
    ------
    KeyboardInterrupt
        Outside of `stop_on_interrupt`.

    Examples
    --------
    >>> with stop_on_interrupt():
    ...     catch_interrupt()
    ...     interrupted()
    True
    """
    if not _Interruption.waiting:
        raise KeyboardInterrupt
    _Interruption.asked = True


class Standstill(threading.local):
    """Stops the clocks of a thread while it compiles code; the memory that this takes is no run's, too.

    Attributes
    ----------
    past : list of float
        One number, which these clocks share: the seconds for which they stood still until now.
    watch : Callable[[bool], None], optional
        Hears that clocks of this process stop or go on.

    Examples
    --------
    >>> deadline = Deadline(0.01)
    >>> STANDSTILL.begin()
    >>> time.sleep(0.02)
    >>> STANDSTILL.end()
    >>> deadline.passed
    False
    """

    watch: ClassVar[Callable[[bool], None] | None] = None

    def __init__(self) -> None:
        self.past = [0.0]
        self._since: tuple[float, int] | None = None

    def begin(self) -> None:
        """Stop the clocks; an earlier standstill that Ctrl-C kept from its end counts as none."""
        self._since = time.perf_counter(), resident()
        if Standstill.watch:
            Standstill.watch(False)

    def end(self) -> None:
        """Let the clocks go on."""
        if self._since:
            (began, held), self._since = self._since, None
            self.past[0] += time.perf_counter() - began
            exempt_memory(resident() - held)
            if Standstill.watch:
                Standstill.watch(True)


STANDSTILL = Standstill()
"""For each thread its own."""


class Deadline:
    """The seconds that a run has used, and those that its time limit leaves; it ends with its memory, too.

    The clock stands still while numba compiles code or loads it, at its first use, in the clock's own thread.
    Every search asks it. Once the run's memory limit was found to be reached, the deadline has passed
    for good, even if memory is freed: a search that stopped early must not seem to be complete.

    Parameters
    ----------
    limit : float, optional
        Seconds from now; None for no limit.

    Raises
    ------
    DeclarationError
        If the limit is negative or no number.

    Examples
    --------
    >>> Deadline(60.0).passed, Deadline(0.0).passed, Deadline().left
    (False, True, None)
    """

    def __init__(self, limit: float | None = None) -> None:
        try:
            valid = limit is None or (limit is not True and limit >= 0 and float(limit) >= 0)  # no text
        except (TypeError, ValueError, OverflowError):
            valid = False
        require(valid, "time_limit", limit, "be a number >= 0")
        self.limit = limit
        self._past = STANDSTILL.past  # of this thread, whichever reads the clock
        self.began = time.perf_counter() - self._past[0]
        self.memory = memory_budget()
        self._full = False

    @property
    def seconds(self) -> float:
        """Seconds since the run began."""
        return time.perf_counter() - self._past[0] - self.began

    @property
    def left(self) -> float | None:
        """Seconds until the limit, 0 after Ctrl-C or at the memory limit, None without a limit.

        It fits every `time_limit` argument.
        """
        if _Interruption.asked or self.full:
            return 0.0
        return None if self.limit is None else max(self.limit - self.seconds, 0.0)

    @property
    def end(self) -> str:
        """The reason of the end, for messages.

        Examples
        --------
        >>> Deadline(2.0).end
        'the time limit of 2 s passed'
        """
        late = self.limit is not None and self.seconds >= self.limit
        if self._full or (self.memory.reached and not late):
            return self.memory.end
        if _Interruption.asked or self.limit is None:
            return "Ctrl-C asked to stop"
        return f"the time limit of {self.limit:g} s passed"

    @property
    def full(self) -> bool:
        """Whether the memory limit is reached, or was when last asked."""
        self._full = self._full or self.memory.passed
        return self._full

    @property
    def passed(self) -> bool:
        """Whether a limit is reached, of time or of memory, or Ctrl-C asked to stop."""
        return _Interruption.asked or (self.limit is not None and self.seconds >= self.limit) or self.full

    def check(self) -> None:
        """Raise an error if the run must end, for searches that can go on with less memory.

        Raises
        ------
        MemoryError
            If the process holds more than it may; the deadline itself has not passed then.
        TimeoutError
            If the time limit is reached, or Ctrl-C asked to stop.
        """
        if self.memory.passed:
            raise MemoryError(self.memory.end)
        if self.passed:
            raise TimeoutError(self.end)


class Trace:
    """The improvements of a run, each shown to the caller, who may stop the run.

    Parameters
    ----------
    deadline : Deadline
        The clock of the run.
    on_improvement : callable, optional
        See `OnImprovement`.

    Attributes
    ----------
    steps : list of Improvement
        All improvements until now.
    stopped : bool
        Whether the caller asked to stop.

    Examples
    --------
    >>> trace = Trace(Deadline(), lambda step: step.objective <= 3)
    >>> trace.add(4.0, 2.0), trace.add(3.0, 2.0)
    (False, True)
    >>> [step.objective for step in trace.steps], trace.over
    ([4.0, 3.0], True)
    """

    def __init__(self, deadline: Deadline, on_improvement: OnImprovement | None = None) -> None:
        self.deadline, self.on_improvement = deadline, on_improvement
        self.steps: list[Improvement] = []
        self.stopped = False

    def add(self, objective: float, bound: float) -> bool:
        """Note an improvement; returns `stopped`."""
        step = Improvement(self.deadline.seconds, objective, bound)
        self.steps.append(step)
        if self.on_improvement is not None and self.on_improvement(step):
            self.stopped = True
        return self.stopped

    @property
    def end(self) -> str:
        """The reason of the end, for messages.

        Examples
        --------
        >>> with stop_on_interrupt():
        ...     signal.raise_signal(signal.SIGINT)
        ...     Trace(Deadline(60.0)).end
        'stopped: Ctrl-C asked to stop'
        """
        return "stopped by on_improvement" if self.stopped else f"stopped: {self.deadline.end}"

    @property
    def over(self) -> bool:
        """Whether the run must end: a limit is reached, or the caller asked to stop."""
        return self.stopped or self.deadline.passed

    def check(self) -> None:
        """Raise an error if the run must end: see `Deadline.check`; `TimeoutError` if the caller asked."""
        if self.stopped:
            raise TimeoutError(self.end)
        self.deadline.check()
