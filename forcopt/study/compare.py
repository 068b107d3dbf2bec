"""Compare methods on a problem."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, as_completed
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from forcopt.backends.registry import backends, get_backend
from forcopt.compile.compiler import compile_model
from forcopt.errors import (
    DeclarationError,
    NotInstalledError,
    UnboundedExpressionError,
    UnsupportedError,
    unknown,
)
from forcopt.problem import Problem, load
from forcopt.status import Status
from forcopt.study import isolate as isolation
from forcopt.study.isolate import pack, run_isolated, stop_all
from forcopt.study.report import Comparison
from forcopt.study.run import Job, Run, measure

__all__ = ["compare", "execute"]


def compare(
    problem: Problem | str | Path,
    methods: Sequence[str] | None = None,
    *,
    time_limit: float | None = None,
    seed: int | np.random.Generator | None = None,
    isolate: bool = True,
    memory_limit: int | None = None,
    executor: Executor | None = None,
    progress: bool | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> Comparison:
    """Run several methods on a problem, one after the other, and report side by side.

    A run that fails, crashes, hangs or exhausts its memory becomes a row that says so; the others go on.
    Ctrl-C ends the running ones; rows that are finished stay, the rest are marked as not run.

    Args:
        problem: a declaration, or a file or shipped example to `load`.
        methods: each ``"method"`` or ``"method@backend"``; ``"method@*"`` stands for every installed backend
            that can take it. All methods of the problem, on their default backend, if left out.
        time_limit: seconds for each run. A process that overruns it by 5 seconds is killed.
        seed: an int or a generator; each run gets the same.
        isolate: run each method in a process of its own. Without, a crash takes everything down.
        memory_limit: bytes that each process may use; not on Windows.
        executor: any `concurrent.futures.Executor`, to have several runs at once; they share the machine's
            cores and caches, so compare seconds with care. One run at a time if left out.
        progress: show a progress bar; by default where the output is a terminal.
        options: for each method (as named in `methods`, or by its bare name) further arguments of
            `Problem.solve`.

    Raises:
        UnknownNameError: for a method, backend or option, before anything is run.
        DeclarationError: if a problem's class cannot be found by another process, or a limit is not positive.

    >>> import forcopt as fo
    >>> from forcopt.fairness import EqualizedOdds
    >>> from forcopt.models import FairPostprocessing
    >>> counts = [[[36, 4], [9, 5]], [[4, 16], [6, 20]]]
    >>> p = FairPostprocessing(counts=counts, constraint=EqualizedOdds(0.1))
    >>> c = fo.compare(p, ["as-predicted", "lp"])
    >>> [(row.label, str(row.status), round(row.objective, 3), round(row.violation, 3)) for row in c.rows]
    [('as-predicted', 'approximate', 0.19, 0.2), ('lp@highs', 'optimal', 0.261, 0.0)]
    >>> c.best.label
    'lp@highs'
    """
    if isolation.importing_main:
        raise DeclarationError(
            "a script that defines its own problem or method is imported by the process of each run: "
            "put its call of compare under  if __name__ == '__main__':"
        )
    for name, value in (("time_limit", time_limit), ("memory_limit", memory_limit)):
        if value is not None and not value > 0:
            raise DeclarationError(f"{name} is {value!r}; it must be positive")
    if memory_limit is not None and not isolate:
        raise DeclarationError("memory_limit needs isolate=True: this process cannot be limited for one run")
    if memory_limit is not None and sys.platform == "win32":
        raise DeclarationError("memory_limit cannot be enforced on Windows")
    chosen = problem if isinstance(problem, Problem) else load(problem)
    instance = type(chosen).__name__ if isinstance(problem, Problem) else str(problem)
    named = _expanded(chosen, list(chosen.methods) if methods is None else methods)
    own = _options(chosen, named, options or {})
    jobs = [
        Job(instance, chosen, method, backend, time_limit, memory_limit, seed, own[method, backend])
        for method, backend in named
    ]
    return Comparison(execute(jobs, isolate=isolate, executor=executor, progress=progress))


def _expanded(problem: Problem, methods: Sequence[str]) -> list[tuple[str, str]]:
    """The methods' names and backends, each known."""
    if isinstance(methods, str):
        raise DeclarationError(f"methods is the text {methods!r}; it must be a list of names")
    found: list[tuple[str, str]] = []
    for entry in methods:
        name, at, backend = entry.partition("@")
        method = problem.method(name)
        if backend == "*":
            found += [(method.name, other) for other in _capable(problem, method.name)]
            continue
        if at and not backend:
            raise DeclarationError(f"methods: {entry!r} names no backend after the @")
        if not backend and method.kind == "formulation":
            backend = "highs"
        if backend:
            _check_backend(backend)
        found.append((method.name, backend))
    twice = next((pair for pair in found if found.count(pair) > 1), None)
    if twice:
        raise DeclarationError(f"methods: {'@'.join(filter(None, twice))} is named twice")
    if not found:
        raise DeclarationError("methods is empty; name at least one")
    return found


def _check_backend(name: str) -> None:
    with suppress(NotInstalledError):  # its row will say so
        get_backend(name)


def _capable(problem: Problem, method: str) -> list[str]:
    """The installed backends that can take the method's model."""
    model = problem.to_model(method)
    found = []
    for name, backend in backends().items():
        if backend.missing() is None:
            with suppress(UnsupportedError, UnboundedExpressionError):
                compile_model(model, backend.capabilities, name)
                found.append(name)
    return found


def _options(
    problem: Problem, named: Sequence[tuple[str, str]], options: Mapping[str, Mapping[str, Any]]
) -> dict[tuple[str, str], dict[str, Any]]:
    """Each run's own options, each known."""
    keys = {key for method, backend in named for key in (method, f"{method}@{backend}")}
    for key, chosen in options.items():
        if key not in keys:
            raise unknown("method in options", key, sorted(keys))
        method = problem.method(key.partition("@")[0])
        known = [*method.options, *(("gap", "threads") if method.kind == "formulation" else ())]
        for name in chosen:
            if name not in known:
                raise unknown(f"option of method {method.name!r}", name, known)
    return {
        (method, backend): {**options.get(method, {}), **options.get(f"{method}@{backend}", {})}
        for method, backend in named
    }


def execute(
    jobs: Sequence[Job],
    *,
    isolate: bool = True,
    executor: Executor | None = None,
    progress: bool | None = None,
) -> list[Run]:
    """Run jobs and give a row for each, in their order.

    Args:
        jobs: what to run.
        isolate, executor, progress: see `compare`.
    """
    work: list[tuple[Callable[[Any], Run], Any]]
    work = [(run_isolated, pack(job)) if isolate else (measure, job) for job in jobs]
    done: dict[int, Run] = {}
    with _bar(len(jobs), progress) as show:
        running = _one_by_one(jobs, work, show) if executor is None else _at_once(jobs, work, executor)
        try:
            for position, run in running:
                done[position] = run
                show("", 1)
        except KeyboardInterrupt:
            stop_all()
    return [done.get(i) or job.row(None, "not run: interrupted") for i, job in enumerate(jobs)]


def _one_by_one(
    jobs: Sequence[Job], work: Sequence[Any], show: Callable[[str, int], None]
) -> Iterator[tuple[int, Run]]:
    for position, (run, what) in enumerate(work):
        show(jobs[position].label, 0)
        yield position, run(what)


def _at_once(jobs: Sequence[Job], work: Sequence[Any], executor: Executor) -> Iterator[tuple[int, Run]]:
    futures: dict[Future[Run], int] = {}
    try:
        for position, (run, what) in enumerate(work):
            try:
                futures[executor.submit(run, what)] = position
            except BrokenExecutor as error:
                yield position, _lost(jobs[position], error)
        for future in as_completed(futures):
            position = futures[future]
            try:
                row = future.result()
            except Exception as error:  # the executor lost it, such as a pool whose worker died
                row = _lost(jobs[position], error)
            yield position, row
    finally:
        for future in futures:
            future.cancel()


def _lost(job: Job, error: Exception) -> Run:
    return job.row(Status.FAILED, f"the executor lost it: {type(error).__name__}: {error}")


@contextmanager
def _bar(total: int, progress: bool | None) -> Iterator[Callable[[str, int], None]]:
    """A progress bar on the error output; what is yielded takes what runs now and how many have ended."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    hidden = not (console.is_terminal if progress is None else progress)
    with Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task("", total=total)

        def show(label: str, ended: int) -> None:
            bar.update(task, description=label, advance=ended)

        yield show
