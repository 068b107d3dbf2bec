"""One run of one method on one problem: what to do, and the row that it gives."""

from __future__ import annotations

import copy
import platform
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from importlib import import_module
from typing import Any, Literal

import numpy as np

from forcopt.backends.registry import backends
from forcopt.clock import Improvement
from forcopt.errors import DeclarationError
from forcopt.language.model import Model
from forcopt.problem import Problem, Solution
from forcopt.status import Status

__all__ = ["INTERRUPTED", "TOLERANCE", "Job", "Run", "measure"]

TOLERANCE = 1e-4
"""How far solvers' tolerances let objectives differ, relative to max(1, value), and demands be violated."""

INTERRUPTED = "not run: interrupted"
"""The message of what Ctrl-C kept from being run."""


@dataclass(frozen=True)
class Run:
    """A row: what one method said of one problem, and what it took.

    Attributes:
        instance: the problem's name.
        method, backend: what ran; the backend is empty for an algorithm that uses none.
        seed: what was given to whatever is random; None if nothing was, or a generator.
        repeat: 0 for the first run of the same, then 1, 2, ...
        parameters: what a sweep chose.
        fingerprint: of the declaration; equal for equal problems, whatever their names.
        size: how many numbers the declaration holds.
        status: how far the answer can be trusted; None if the run did not take place.
        sense: of the problem.
        exact: whether the method proves optimality.
        objective: as the problem evaluates the decision; NaN without one.
        bound: on the optimum; infinite or NaN if none is known.
        gap: the relative gap between the two.
        gap_to_best: by how much the objective is worse than the best known: of all runs on the instance, or
            what the instance library knows of it; relative to that; NaN if either is missing.
        violation: the largest violation of a demand, as the problem evaluates the decision.
        guarantee: the theorem's bound on the distance from the optimum, if the method has one.
        build_seconds: writing the model; NaN for an algorithm.
        solve_seconds: compiling and solving it; NaN for an algorithm.
        seconds: all together, without starting the process and what the method prepares; with these for a run
            that died.
        peak_memory: of its process, in bytes, with some 100 MB for Python and its libraries; NaN if unknown.
        iterations: as the method counts them.
        rows, columns, nonzeros, integers: of the linear rows that a formulation wrote, its columns, and how
            many of these are integer; None for an algorithm.
        bridges: rewritings applied on the way to the backend.
        metrics: further numbers that the problem gives for the decision, such as rates.
        message: the solver's or method's own words, or what went wrong.
        versions: of what was used.
        trace: what was known when.
        decision: what it found; None without a solution.
    """

    instance: str
    method: str
    backend: str
    status: Status | None
    sense: Literal["min", "max"]
    exact: bool
    objective: float = float("nan")
    bound: float = float("nan")
    gap: float = float("inf")
    gap_to_best: float = float("nan")
    violation: float = float("nan")
    guarantee: float | None = None
    build_seconds: float = float("nan")
    solve_seconds: float = float("nan")
    seconds: float = float("nan")
    peak_memory: float = float("nan")
    iterations: int = 0
    seed: int | None = None
    repeat: int = 0
    size: int = 0
    rows: int | None = None
    columns: int | None = None
    nonzeros: int | None = None
    integers: int | None = None
    bridges: tuple[str, ...] = ()
    message: str = ""
    fingerprint: str = field(default="", repr=False)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict, repr=False)
    versions: Mapping[str, str] = field(default_factory=dict, repr=False)
    trace: tuple[Improvement, ...] = field(default=(), repr=False)
    decision: Any = field(default=None, repr=False, compare=False)

    @property
    def label(self) -> str:
        """``method@backend``, or the method alone."""
        return f"{self.method}@{self.backend}" if self.backend else self.method

    @property
    def solved(self) -> bool:
        """Whether there is a decision."""
        return self.status is not None and self.status.has_solution

    def record(self) -> dict[str, Any]:
        """All fields but decision and trace as plain data; what is unknown or infinite is None."""
        row = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("decision", "trace")}
        row["status"] = "not run" if self.status is None else str(self.status)
        row["bridges"] = list(self.bridges)
        for name in ("parameters", "metrics", "versions"):
            row[name] = {k: _finite(v) for k, v in getattr(self, name).items()}
        return {k: _finite(v) for k, v in row.items()}

    def number(self, name: str) -> float | None:
        """A number of this row by its name: a field, else a parameter or a metric; None if unknown."""
        for known in (vars(self), self.parameters, self.metrics):
            if isinstance(value := known.get(name), int | float | np.number):
                return float(value)
        return None


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value


@dataclass(frozen=True)
class Job:
    """What to run.

    Attributes:
        instance: the problem's name.
        problem: which.
        method, backend: what solves it; the backend may be empty for an algorithm.
        time_limit: seconds, or None.
        memory_limit: bytes, or None.
        seed: an int or a generator, of which the run gets a copy.
        options: the method's own.
        known: of the fields of `Run`, what is known before: repeat, parameters, fingerprint, size.
    """

    instance: str
    problem: Problem
    method: str
    backend: str
    time_limit: float | None = None
    memory_limit: int | None = None
    seed: int | np.random.Generator | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    known: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """``method@backend``, or the method alone."""
        return f"{self.method}@{self.backend}" if self.backend else self.method

    def row(self, status: Status | None, message: str, **known: Any) -> Run:
        """Give the row of a run with this status."""
        return Run(
            instance=self.instance,
            method=self.method,
            backend=self.backend,
            status=status,
            sense=self.problem.sense,
            exact=self.problem.method(self.method).exact,
            message=message,
            **{"versions": _versions(""), "seed": _integer(self.seed), **self.known, **known},
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process first imports what registers the method; the class alone may not."""
        module = self.problem.method(self.method).function.__module__
        return _received, (module, *(getattr(self, f.name) for f in fields(self)))


def _received(module: str, *values: Any) -> Job:
    if module != "__main__":
        import_module(module)
    return Job(*values)


def _integer(seed: int | np.random.Generator | None) -> int | None:
    return None if seed is None or isinstance(seed, np.random.Generator) else int(seed)


def measure(job: Job, ready: Callable[[], object] = lambda: None) -> Run:
    """Run a job in this process; whatever it raises becomes a row.

    Args:
        job: what to run.
        ready: called when all is prepared, just before the clock starts.
    """
    began = time.perf_counter()
    try:
        prepare = job.problem.method(job.method).prepare
        if prepare is not None:
            prepare()
        ready()
        began = time.perf_counter()
        solution = job.problem.solve(
            job.method,
            backend=job.backend or None,
            time_limit=job.time_limit,
            seed=copy.deepcopy(job.seed),
            **job.options,
        )
        return _row(job, solution)
    except (Exception, SystemExit) as error:  # a row keeps the error's own words
        refused = isinstance(error, DeclarationError)
        what = "not for this declaration" if refused else type(error).__name__
        said = f"{what}: {error}".removesuffix(": ")
        return job.row(Status.FAILED, said, seconds=time.perf_counter() - began)


def _row(job: Job, solution: Solution) -> Run:
    model = solution.model_solution
    secret = solution.private and job.seed is None  # a release, not a study: keep what it gave out
    judged = None if secret else solution.evaluation
    return job.row(
        solution.status,
        solution.message,
        objective=float("nan") if secret else solution.objective,
        bound=solution.bound,
        gap=float("nan") if secret else solution.gap,
        violation=float("nan") if judged is None else judged.violation,
        guarantee=solution.guarantee,
        build_seconds=float("nan") if model is None else solution.seconds - model.seconds,
        solve_seconds=float("nan") if model is None else model.seconds,
        seconds=solution.seconds,
        iterations=solution.iterations,
        bridges=solution.bridges,
        metrics={} if judged is None else {k: float(v) for k, v in judged.metrics.items()},
        **({} if model is None else _model_size(model.model)),
        versions=_versions(solution.backend),
        trace=tuple(solution.trace),
        decision=solution.decision,
    )


def _model_size(model: Model) -> dict[str, int]:
    return {
        "rows": model.row_count,
        "columns": model.column_count,
        "nonzeros": sum(c.expression.linear_rows().data.size for c in model.constraints),
        "integers": int((model.columns().integer == 1).sum()),
    }


def _versions(backend: str) -> dict[str, str]:
    from forcopt import __version__

    found = {"forcopt": __version__, "python": platform.python_version(), "system": sys.platform}
    if backend in backends():
        found[backend] = backends()[backend].version()
    return found
