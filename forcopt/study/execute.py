"""Run jobs, one after the other or on an executor, and give a row for each, however each ends."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, as_completed
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from forcopt.backends.registry import get_backend
from forcopt.errors import NotInstalledError, UnsupportedError
from forcopt.status import Status
from forcopt.study.isolate import Parcel, pack, run_isolated, stop_all
from forcopt.study.run import INTERRUPTED, Job, Run, measure
from forcopt.study.store import Store


def execute(
    jobs: Sequence[Job],
    *,
    isolate: bool = True,
    executor: Executor | None = None,
    progress: bool | None = None,
    store: str | Path | None = None,
) -> list[Run]:
    """Run jobs and give a row for each, in their order.

    Parameters
    ----------
    jobs : Sequence[Job]
        The jobs.
    isolate, executor, progress, store
        See `compare`.

    Raises
    ------
    UnsupportedError
        If the runs shall be isolated where Python starts no process, in a browser.
    """
    if isolate and sys.platform in ("emscripten", "wasi"):
        raise UnsupportedError("isolate is True, but a browser starts no process: use isolate=False")
    with Store(store) if store is not None else nullcontext() as kept:
        done = {} if kept is None else kept.find(jobs)
        todo = [i for i in range(len(jobs)) if i not in done]
        # Of the executors here and in the standard library; others run on machines of their own.
        workers = max(1, min(len(todo), getattr(executor, "_max_workers", 1)))
        jobs = [replace(job, workers=workers) for job in jobs]
        work: list[tuple[int, Callable[[Any], Run], Any]]
        pickled: dict[int, bytes] = {}
        work = [(i, run_isolated, pack(jobs[i], pickled)) if isolate else (i, measure, jobs[i]) for i in todo]
        with progress_bar(len(jobs), progress) as show:
            show("", len(done))
            running = _one_by_one(jobs, work, show) if executor is None else _at_once(jobs, work, executor)
            try:
                for position, run, ended in running:
                    run = run if run.sense else replace(run, sense=jobs[position].problem.sense)
                    done[position] = run
                    if kept is not None and ended and _installed(jobs[position].backend):
                        kept.add(jobs[position], run)
                    show("", 1)
            except KeyboardInterrupt:
                stop_all()
        return [done.get(i) or job.row(None, INTERRUPTED) for i, job in enumerate(jobs)]


def _installed(backend: str) -> bool:
    """Whether a run on it gives a result that lasts."""
    try:
        return not backend or get_backend(backend) is not None
    except NotInstalledError:
        return False


def _one_by_one(
    jobs: Sequence[Job], work: Sequence[Any], show: Callable[[str, int], None]
) -> Iterator[tuple[int, Run, bool]]:
    for position, run, subject in work:
        job = jobs[position]
        show("@".join(filter(None, (job.method, job.backend))), 0)
        yield position, run(subject), True


def _at_once(jobs: Sequence[Job], work: Sequence[Any], executor: Executor) -> Iterator[tuple[int, Run, bool]]:
    """Each position with its row, and whether that came from the run, not from an executor that lost it."""
    futures: dict[Future[Run], int] = {}
    problems: dict[int, Any] = {}
    try:
        for position, run, subject in work:
            key = id(subject.problem)
            own = replace(subject, problem=b"") if isinstance(subject, Parcel) else subject.of
            try:
                if key not in problems:
                    problems[key] = sent_once(executor, subject.problem)
                futures[executor.submit(_run_on, run, own, problems[key])] = position
            except BrokenExecutor as error:
                yield position, _lost(jobs[position], error), False
        for future in as_completed(list(futures)):
            position = futures.pop(future)  # let go of each row's decision that is not wanted any more
            try:
                row, ended = future.result(), True
            except Exception as error:  # the executor lost it, such as a pool whose worker died
                row, ended = _lost(jobs[position], error), False
            yield position, row, ended
    finally:
        for future in futures:
            future.cancel()


def sent_once(executor: Executor, value: Any) -> Any:
    """Give what stands for a value in the calls of an executor: the workers of Dask then fetch it once."""
    if not type(executor).__module__.startswith("distributed."):
        return value
    client: Any = vars(executor)["_client"]
    return client.submit(_same, value, pure=False)  # a task, which is done again if a worker dies


def _same(value: Any) -> Any:
    return value


def _run_on(run: Callable[[Any], Run], own: Any, problem: Any) -> Run:
    return run(replace(own, problem=problem) if isinstance(own, Parcel) else own(problem))


def _lost(job: Job, error: Exception) -> Run:
    return job.row(Status.FAILED, f"the executor lost it: {type(error).__name__}: {error}")


@contextmanager
def progress_bar(total: int, progress: bool | None) -> Iterator[Callable[[str, int], None]]:
    """Show a progress bar on the error output; it yields a function ``(label, ended)`` that moves the bar."""
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
