"""One run of one method on one problem: the job, and its row."""

from __future__ import annotations

import copy
import os
import pickle
import platform
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, field, fields, replace
from functools import cache, partial
from importlib import import_module
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np

from forcopt import check
from forcopt.arrays import plain
from forcopt.backends.registry import backends, get_backend
from forcopt.clock import Improvement
from forcopt.errors import DeclarationError
from forcopt.language.model import Model
from forcopt.memory import available
from forcopt.problem import Problem, Solution
from forcopt.status import Status
from forcopt.version import __version__

INTERRUPTED = "not run: interrupted"
"""The message of a row that Ctrl-C kept from being run."""

DEFAULT_BACKEND = "highs"
"""The backend of algorithms that solve models, if none is given."""

NUMBERS = (
    "objective", "bound", "gap", "gap_to_best", "gap_to_bound", "violation", "guarantee",
    "build_seconds", "solve_seconds",
    "seconds", "peak_memory", "iterations", "seed", "repeat", "size", "rows", "columns", "nonzeros",
    "integers",
)  # fmt: skip
"""The fields of a row that are numbers."""


@dataclass(frozen=True)
class Run:
    """A row: the result of one method on one problem, and its cost.

    Attributes
    ----------
    instance : str
        The problem's name.
    method, backend : str
        The method that ran; the backend is empty for an algorithm that uses none.
    seed : int, optional
        The seed of everything random; None if there was none, or a generator.
    repeat : int, default 0
        0 for the first run of the same, then 1, 2, ...
    parameters : Mapping[str, Any], optional
        The values of a sweep's parameters.
    fingerprint : str, default ""
        Of the declaration; equal for equal problems, whatever their names.
    size : int, default 0
        How many numbers the declaration holds.
    status : Status
        How far the answer can be trusted; None if the run did not take place.
    sense : Literal["min", "max"]
        Of the problem.
    exact : bool
        Whether the method proves optimality.
    objective : float, default float("nan")
        As the problem evaluates the decision; NaN without one.
    bound : float, default float("nan")
        On the optimum; infinite or NaN if none is known.
    gap : float, default float("inf")
        The relative gap between the two.
    gap_to_bound : float, default float("nan")
        The relative gap to the best bound of any run on its instance.
    gap_to_best : float, default float("nan")
        The difference between the objective and the best known one (of all runs on the instance, or of the
        instance library), relative to the latter; NaN if either is missing.
    violation : float, default float("nan")
        The largest violation of a demand, as the problem evaluates the decision.
    guarantee : float, optional
        The theorem's bound on the distance from the optimum, if the method has one.
    certified : bool, default False
        Whether a certificate in exact arithmetic proves the optimum, or that there is none.
    checked : bool, default False
        Whether `forcopt.check` accepts the file of this proof.
    proved_by : str, default ""
        ``claim`` of the solver or method, ``two solvers``, if another one that proves its answers claims the
        same, or ``exact certificate``; empty if nothing is proved.
    build_seconds : float, default float("nan")
        Writing the model; NaN for an algorithm.
    solve_seconds : float, default float("nan")
        Compiling and solving it; NaN for an algorithm.
    parts : Mapping[str, float], optional
        Of the seconds of a model, see `ModelSolution`; and ``cpu``, the processor's seconds of the whole run.
    log : str, default ""
        The solver's output.
    seconds : float, default float("nan")
        In all, without the start of the process and the method's preparation; with these for a run that
        died.
    peak_memory : float, default float("nan")
        Of its process, in bytes, with some 100 MB for Python and its libraries; NaN if unknown.
    iterations : int, default 0
        As the method counts them.
    rows, columns, nonzeros, integers : int, optional
        Of the linear rows that a formulation wrote, its columns, and how many of these are integer; None for
        an algorithm.
    bridges : tuple[str, ...], optional
        Rewritings applied on the way to the backend.
    metrics : Mapping[str, float], optional
        Further numbers that the problem gives for the decision, such as rates.
    message : str, default ""
        The solver's or method's own words, or the error.
    versions : Mapping[str, str], optional
        Of the packages.
    trace : tuple[Improvement, ...], optional
        Objective and bound over time.
    decision : Any, optional
        The decision; None without a solution.

    Examples
    --------
    >>> import forcopt as fo
    >>> c = fo.compare("postprocessing/two-groups", ["as-predicted", "lp@highs"], isolate=False)
    >>> run = c.rows[1]
    >>> run.method, run.backend, str(run.status), round(run.objective, 6)
    ('lp', 'highs', 'optimal', 0.260937)
    >>> run.columns, run.nonzeros
    (6, 12)
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
    gap_to_bound: float = float("nan")
    violation: float = float("nan")
    guarantee: float | None = None
    certified: bool = False
    checked: bool = False
    proved_by: str = ""
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
    parts: Mapping[str, float] = field(default_factory=dict, repr=False)
    log: str = field(default="", repr=False, compare=False)
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
        """All fields but decision, trace and log as plain data; unknown and infinite values are None."""
        row = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _ASIDE}
        return {**plain(row), "status": str(self.status or "not run")}

    def number(self, name: str) -> float | None:
        """A number of this row by its name: a field, else a parameter or a metric; None if unknown."""
        for known in (vars(self), self.parameters, self.metrics):
            if isinstance(value := known.get(name), int | float | np.number):
                return float(value)
        return None


_ASIDE = ("decision", "trace", "log")
"""The fields that are no part of a record."""


@dataclass(frozen=True)
class Job:
    """A job: one method on one problem.

    Attributes
    ----------
    instance : str
        The problem's name.
    problem : Problem
        Which.
    method, backend : str
        The method; the backend may be empty for an algorithm.
    time_limit : float, optional
        Seconds, or None.
    memory_limit : int, optional
        Bytes, or None for the run's share of half of what is free.
    seed : int or numpy.random.Generator, optional
        An int or a generator, of which the run gets a copy.
    options : Mapping[str, Any], optional
        The method's own.
    known : Mapping[str, Any], optional
        The fields of `Run` that are known before: repeat, parameters, fingerprint, size.
    workers : int, default 1
        How many runs share the memory that is free.
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
    workers: int = 1

    @property
    def private(self) -> bool:
        """Whether the run is about a private release, not a simulation of one: its data are kept nowhere."""
        return self.seed is None and self.problem.is_private

    def row(self, status: Status | None, message: str, **known: Any) -> Run:
        """Give the row of a run with this status."""
        own: dict[str, Any] = {"backend": self.backend, "versions": _versions("")}
        if isinstance(self.seed, int | np.integer):
            own["seed"] = int(self.seed)
        return Run(
            instance=self.instance,
            method=self.method,
            status=status,
            sense=known.pop("sense") if "sense" in known else self.problem.sense,
            exact=self.problem.method(self.method).exact,
            message=message,
            **{**own, **self.known, **known},
        )

    @property
    def modules(self) -> list[str]:
        """The modules that define its problem, method and backend."""
        parts: list[Any] = [type(self.problem), self.problem.method(self.method).function]
        if self.backend in backends():
            parts.append(type(backends()[self.backend]))
        return list(dict.fromkeys(str(part.__module__) for part in parts))

    @property
    def of(self) -> Callable[[Problem], Job]:
        """The job as a function of its problem, to be sent apart from it."""
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "problem"}
        return partial(_received, self.modules, **own)

    def __reduce__(self) -> tuple[Any, ...]:
        return self.of, (self.problem,)


def _received(modules: list[str], problem: Problem, **own: Any) -> Job:
    """Import the modules first: they register the method and the backend."""
    for module in modules:
        with suppress(ModuleNotFoundError):  # of a class made in this process alone
            if module != "__main__":
                import_module(module)
    return Job(problem=problem, **own)


def measure(job: Job, ready: Callable[[], object] = lambda: None, *, killed: bool = False) -> Run:
    """Run a job in this process; whatever it raises becomes a row.

    The job's seed goes to methods that take one. A method that takes no time limit refuses one, unless this
    process is killed at the limit.

    Parameters
    ----------
    job : Job
        The job.
    ready : Callable[[], object], default lambda: None
        Called when all is prepared, just before the clock starts.
    killed : bool, default False
        Whether another process kills this one after the time limit.
    """
    began = time.perf_counter()
    own = dict(job.options)
    certify = own.pop("certify", False)
    try:
        warm_up(job.backend or DEFAULT_BACKEND)
        method = job.problem.method(job.method)
        method.compile()
        job.problem._read_before()
        kept = "time_limit" in method.common or not killed
        ready()
        began, worked = time.perf_counter(), _cpu()
        solution = job.problem.solve(
            job.method,
            backend=job.backend or None,
            time_limit=job.time_limit if kept else None,
            memory_limit=_memory_limit(job, killed),
            seed=copy.deepcopy(job.seed) if "seed" in method.common else None,
            **own,
        )
        cpu = _cpu() - worked
        failed = solution.status is Status.FAILED  # a point of the model may be left, but no answer
        proof = _proved(solution) if certify and not (failed or solution.private) else {}
        return _row(job, solution, proof, cpu)
    except (Exception, SystemExit) as error:  # a row keeps the error's own words
        subject = "not for this declaration" if isinstance(error, DeclarationError) else type(error).__name__
        text = f"{subject}: {error}".removesuffix(": ")
        return job.row(Status.FAILED, text, seconds=time.perf_counter() - began)


def storable(run: Run) -> Run:
    """The run as a file can hold it: without a decision that cannot be pickled, which its message tells."""
    try:
        pickle.dumps(run.decision)
    except Exception as error:  # pickle raises whatever an object's own code raises
        note = f"the decision is lost, since it cannot be pickled: {error}"
        return replace(run, decision=None, message="; ".join(filter(None, (run.message, note))))
    return run


_SEARCHES = 0.9
"""Of the memory of a process, searches take this share: at the whole, the system refuses even the answer."""


def _memory_limit(job: Job, limited: bool) -> int | None:
    """The bytes that the run of a job may take; `limited` if its process has the job's limit as a whole."""
    free = available()
    if job.memory_limit is None:
        return None if free is None else max(free // 2 // job.workers, 1)
    if not limited or free is None:
        return job.memory_limit
    return max(int(_SEARCHES * min(free, job.memory_limit)), 1)


@cache
def warm_up(backend: str) -> None:
    """Import the libraries of a backend and run it once, before any clock starts.

    A backend that is missing or fails is left for the run itself to report.
    """
    with suppress(Exception):
        model = Model("warm-up")
        whole = get_backend(backend).capabilities.only_integer
        x = model.variable("x", shape=2, lower=0, upper=3, integer=whole)
        model.subject_to(x.sum() >= 1)
        model.minimize(x[0] + 2 * x[1])
        model.solve(backend)


def _proved(solution: Solution) -> dict[str, bool]:
    """Whether a solution is proved exactly, and the file of its proof is accepted."""
    file = str(getattr(solution.problem, "path", ""))  # of a bare model, whose numbers are decimals
    printed: dict[str, Any] = {"decimals": True} if file.endswith((".mps", ".mps.gz")) else {}
    with TemporaryDirectory() as folder:
        proof = Path(folder) / "proof"
        try:
            certificate = solution.certify(save=proof, **printed)
        except DeclarationError:  # several objectives, or numbers that are no decimals: no file holds that
            certificate, printed = solution.certify(), {}
        no_point = solution.status is Status.INFEASIBLE and certificate.feasible is False
        done = bool(certificate.optimal) or no_point
        files = [str(proof), file] if printed else [str(proof)]
        with redirect_stdout(StringIO()):
            accepted = done and proof.exists() and check.main(files) == 0
        return {"certified": done, "checked": accepted}


def _cpu() -> float:
    """The processor's seconds of this process, and of the children that have ended."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def _row(job: Job, solution: Solution, proof: Mapping[str, bool], cpu: float) -> Run:
    model = solution.model_solution
    secret = solution.private and job.seed is None  # a release, not a study: keep its output
    assessed = None if secret else solution.evaluation
    return job.row(
        solution.status,
        solution.message,
        backend=job.backend or ("" if model is None else solution.backend),
        objective=float("nan") if secret else solution.objective,
        **{name: getattr(solution, name) for name in _AS_THEY_ARE},
        gap=float("nan") if secret else solution.gap,
        violation=float("nan") if assessed is None else assessed.violation,
        build_seconds=float("nan") if model is None else solution.seconds - model.seconds,
        solve_seconds=float("nan") if model is None else model.seconds,
        metrics={} if assessed is None else {k: float(v) for k, v in assessed.metrics.items()},
        **({} if model is None else model_size(model.model)),
        versions=_versions(solution.backend),
        parts={} if model is None else {**model.parts, "cpu": cpu},
        log="" if model is None or secret else model.log,
        trace=() if secret else tuple(solution.trace),
        **proof,
    )


_AS_THEY_ARE = ("bound", "guarantee", "seconds", "iterations", "bridges", "decision")
"""What a row takes over from a solution."""


def model_size(model: Model) -> dict[str, int]:
    """The numbers of rows, columns, coefficients and integer columns of a model."""
    return {
        "rows": model.row_count,
        "columns": model.column_count,
        "nonzeros": sum(c.expression.linear_rows().data.size for c in model.constraints),
        "integers": int((model.columns().integer == 1).sum()),
    }


def _versions(backend: str) -> dict[str, str]:
    found = {"forcopt": __version__, "python": platform.python_version(), "system": sys.platform}
    if backend in backends():
        found[backend] = backends()[backend].version()
    return found
