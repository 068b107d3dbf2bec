"""The interface of every backend: capabilities, sessions, one spelling of options, one form of result."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.clock import Deadline, Improvement, interrupted
from forcopt.compile.compiler import Capabilities
from forcopt.compile.program import Program, RowBlock, StageCost
from forcopt.errors import DeclarationError, UnsupportedError, require
from forcopt.status import Status


@dataclass(frozen=True)
class SolveOptions:
    """Options that mean the same on every backend.

    Attributes
    ----------
    time_limit : float, optional
        Seconds; None for none.
    gap : float, optional
        The relative gap at which a search may stop; None to go on until the proof.
    seed : int, optional
        Of the solver's randomness; None for the backend's default.
    threads : int, optional
        How many, at most as many as the machine has; None for the backend's default.
    log : bool, default False
        Show the solver's own output as it runs.
    start : Array, optional
        A point (all columns) to start from; NaN where unknown.
    on_improvement : Callable[[Improvement], bool | None], optional
        Called with each `Improvement` where the solver reports them; stop by returning True.
    extra : Mapping[str, Any], optional
        Options of the solver by its own names.
    """

    time_limit: float | None = None
    gap: float | None = None
    seed: int | None = None
    threads: int | None = None
    log: bool = False
    start: Array | None = None
    on_improvement: Callable[[Improvement], bool | None] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, kind, low, high, rule in (
            ("time_limit", Real, 0, np.inf, "be a number >= 0"),
            ("gap", Real, 0, np.inf, "be a number >= 0"),
            ("threads", Integral, 1, 2**31 - 1, "be an integer from 1 to 2**31 - 1"),
            ("seed", Integral, 0, 2**31 - 1, "be an integer from 0 to 2**31 - 1"),
        ):
            if (value := getattr(self, name)) is not None:
                number = isinstance(value, kind) and not isinstance(value, bool)
                require(number and low <= value <= high, name, value, rule)
        require(isinstance(self.log, bool | np.bool_), "log", self.log, "be True or False")
        called = self.on_improvement is None or callable(self.on_improvement)
        require(called, "on_improvement", self.on_improvement, "be a function")
        if not isinstance(self.extra, Mapping) or not all(isinstance(name, str) for name in self.extra):
            raise DeclarationError(f"options are {self.extra!r}; they must be values by the solver's names")
        if self.threads is not None:  # HiGHS aborts for very many, and others slow the machine down
            object.__setattr__(self, "threads", min(self.threads, os.cpu_count() or 1))

    def named(self, **names: str) -> dict[str, Any]:
        """The given ones of these options by the solver's names, then `extra`."""
        given = {theirs: getattr(self, own) for own, theirs in names.items()}
        return {**{name: value for name, value in given.items() if value is not None}, **self.extra}

    def translated(
        self, backend: Backend, solver: str, own: Mapping[str, str], needless: Collection[str]
    ) -> dict[str, Any]:
        """The given ones of these options by a solver's names in `own`.

        Raises
        ------
        UnsupportedError
            For an option without a name that is not `needless`.
        """
        given = {
            n: v for n in ("time_limit", "gap", "seed", "threads") if (v := getattr(self, n)) is not None
        }
        for name in given:
            if name not in own and name not in needless:
                raise UnsupportedError(
                    f"backend {backend.name!r}: {name} has no translation for {solver}; "
                    "leave it out, or pass the solver's own option in options={...}"
                )
        return {own[name]: value for name, value in given.items() if name in own}

    def within(self, seconds: float) -> SolveOptions:
        """Return the options with the time limit less `seconds`."""
        if self.time_limit is None:
            return self
        return replace(self, time_limit=max(self.time_limit - seconds, 0.0))


@dataclass
class RawResult:
    """The result of a solver on a program, in the program's terms (every objective is minimized).

    Attributes
    ----------
    status : Status
        See `Status`.
    x : Array, optional
        The best point, or None.
    objective : float, default float("nan")
        Its value, NaN without a point.
    bound : float, default float("-inf")
        A lower bound on the optimum, -inf if none is known.
    row_dual : Array, optional
        For each row the change of the optimum per unit of its right-hand side, or None.
    reduced_cost : Array, optional
        For each column likewise, or None.
    cone_duals : list[Array], optional
        For each block of cones multipliers of its entries, in the dual cones: the change of the optimum if
        they are taken off the entries. An entry of a semidefinite cone below the diagonal counts for two of
        the matrix. None if the backend reports none.
    ambiguous : bool, default False
        The solver reported "infeasible or unbounded" without deciding between them.
    loose : bool, default False
        It got stuck before the tolerance for programs that are solved in stages, but not before the usual
        one.
    message : str, default ""
        The solver's own words.
    iterations, nodes : int, default 0
        As the solver counts them.
    seconds : float, default float("nan")
        By the solver's own clock; NaN if it reports none.
    log : str, default ""
        The output that the solver printed.
    trace : list[Improvement], optional
        Its improvements, in minimized terms.
    """

    status: Status
    x: Array | None = None
    objective: float = float("nan")
    bound: float = float("-inf")
    row_dual: Array | None = None
    reduced_cost: Array | None = None
    cone_duals: list[Array] | None = None
    ambiguous: bool = False
    loose: bool = False
    message: str = ""
    iterations: int = 0
    nodes: int = 0
    seconds: float = float("nan")
    log: str = ""
    trace: list[Improvement] = field(default_factory=list)


class Session(ABC):
    """A program inside a solver, which may be changed and solved again.

    The defaults change the program and translate it anew; a backend whose solver is incremental overrides
    them.

    Parameters
    ----------
    program : Program
        The program to hold.
    """

    last: Array | None = None
    """The point that was found last, if any."""

    def __init__(self, program: Program) -> None:
        self.program = program

    @abstractmethod
    def solve(self, options: SolveOptions) -> RawResult:
        """Minimise the first stage of the program.

        Raises
        ------
        BackendError
            If the solver crashes or refuses, with its own words.
        """

    def add_rows(self, rows: RowBlock) -> None:
        """Append rows."""
        self.program = self.program.with_rows(rows)

    def set_stage(self, stage: StageCost) -> None:
        """Replace the objective."""
        self.program = self.program.with_stage(stage)

    def set_bounds(self, lower: Array, upper: Array) -> None:
        """Replace all column bounds."""
        self.program = replace(self.program, lower=lower, upper=upper)

    def update(self, program: Program) -> None:
        """Replace the program by one of the same columns, rows and cones with other numbers."""
        self.program = program

    def add_columns(self, cost: Array, lower: Array, upper: Array, matrix: sp.csc_array) -> None:
        """Append continuous columns with their costs, bounds and coefficients (rows by new columns)."""
        stage, count = self.program.stages[0], len(cost)
        quadratic = stage.quadratic
        if quadratic is not None:
            quadratic = sp.csc_array(sp.block_diag([quadratic, sp.csc_array((count, count))], format="csc"))
        stage = StageCost(np.concatenate([stage.cost, cost]), stage.offset, stage.maximize, quadratic)
        self.program = self.program.widened(matrix, lower, upper).with_stage(stage)


def without_solver(program: Program, accuracy: float) -> RawResult | None:
    """Decide degenerate programs without a solver: false rows without columns, and programs without columns.

    Parameters
    ----------
    program : Program
        Any.
    accuracy : float
        By how much a row may be violated.

    Returns
    -------
    RawResult
        The answer, or None if a solver is needed.
    """
    rows = program.rows
    empty = np.diff(rows.indptr) == 0
    wrong = np.flatnonzero(empty & (rows.excess(np.zeros(program.columns)) > accuracy))
    if wrong.size:
        name = program.row_name(int(wrong[0]))
        return RawResult(Status.INFEASIBLE, message=f"the row {name} has no column to meet it")
    whole = program.integer == 1
    lower = np.where(whole, np.ceil(program.lower), program.lower)
    upper = np.where(whole, np.floor(program.upper), program.upper)
    if (lower > upper).any():
        name = program.column_name(int(np.argmax(lower > upper)))
        return RawResult(Status.INFEASIBLE, message=f"no integer is within the bounds of {name}")
    stage = program.stages[0]
    binding = ~empty & (np.isfinite(rows.lower) | np.isfinite(rows.upper))
    plain = not (program.cones or program.is_conditional or stage.quadratic is not None)
    if not plain or binding.any() or stage.cost.any():
        return None
    return RawResult(
        Status.OPTIMAL,
        np.clip(np.zeros(program.columns), lower, upper),
        stage.offset,
        stage.offset,
        row_dual=np.zeros(rows.count),
        reduced_cost=np.zeros(program.columns),
        message="any point within the bounds will do",
    )


CLASHES = (
    ("highspy", "1.14.", "highspy", "it takes wrong points for optima of mixed-integer programs"),
    ("highspy", "1.15.", "ortools", "it and ortools cannot be loaded into one process"),
)
"""Package, version, the package that it makes useless, and the reason: ERGO-Code/HiGHS#2957 and
google/or-tools#5246. The requirements exclude these versions; a user may have one installed all the same."""


_installed = cache(version)  # reading a package's metadata takes a fifth of a small solve


def lacking(package: str) -> str | None:
    """Whether a package is missing, or made useless by a version of another one; None if it can be used.

    Examples
    --------
    >>> lacking("numpy"), lacking("no_such_solver")
    (None, 'the package no_such_solver is missing')
    """
    if not find_spec(package):
        return f"the package {package} is missing"
    for other, start, useless, reason in CLASHES:
        if package == useless and find_spec(other) and _installed(other).startswith(start):
            return f"{other} {_installed(other)}: {reason}; another version of {other} is needed"
    return None


class Backend(ABC):
    """A solver, or one algorithm of it, under a name.

    Attributes
    ----------
    name : str
        The options of ``solve(...)``.
    through : str
        The package that it is called through.
    install : str
        The command that installs it.
    capabilities : Capabilities
        The capabilities of the backend.
    accuracy : float, default 1e-06
        The violation of a constraint, relative to its size, that its answers may have.
    """

    name: str
    through: str
    install: str
    capabilities: Capabilities
    accuracy: float = 1e-6
    scales: bool = False
    """Whether programs of rows alone are scaled before the solver gets them."""
    careful: Mapping[str, Any] = MappingProxyType({})
    """Options, by the solver's own names, for a solve after one whose claim was not proved."""

    def missing(self) -> str | None:
        """Name the missing package; None if the backend is ready. It is quick and imports no solver."""
        return lacking(self.through)

    def version(self) -> str:
        """The solver's version, or its package's."""
        return version(self.through)

    @abstractmethod
    def session(self, program: Program) -> Session:
        """Translate a program to the solver."""

    native_capabilities: Capabilities | None = None
    """The capabilities of the library's own model object; None if there is no such object."""

    def native(self, program: Program) -> Any:
        """Give a program's first stage as the library's own model object, in the model's own sense.

        Raises
        ------
        UnsupportedError
            If the library has no such object.
        """
        raise UnsupportedError(f"backend {self.name!r} has no model object to hand over")

    def __repr__(self) -> str:
        return f"<backend {self.name}: {self.capabilities.describe()}>"


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
    """

    def __init__(self, program: Program, options: SolveOptions) -> None:
        self.sign, self.options = program.stages[0].sign, options
        self.log = ""
        self.trace: list[Improvement] = []
        self._stop = False
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

    def result(self, status: Status, words: str, full: bool = False, **known: Any) -> RawResult:
        """Give a result with the log, the trace and the solver's words, and before them the reason if Ctrl-C
        or the memory ended it; `full` if the solver says so."""
        if status in (Status.LIMIT, Status.FEASIBLE) and (full or self.deadline.full or interrupted()):
            end = self.deadline.memory.end if full or self.deadline.full else self.deadline.end
            words = f"{end}; {words}"
        return RawResult(status, message=words, log=self.log, trace=self.trace, **known)

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
