"""Compare methods on a problem."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from forcopt.arrays import one_seed, whole_number
from forcopt.backends.registry import backends, get_backend
from forcopt.clock import Deadline
from forcopt.compile.compiler import compile_model
from forcopt.errors import (
    DeclarationError,
    NotInstalledError,
    UnboundedExpressionError,
    UnknownNameError,
    UnsupportedError,
    check_known,
    require,
)
from forcopt.memory import bytes_of
from forcopt.problem import Method, Problem
from forcopt.study import isolate as isolation
from forcopt.study.comparison import Comparison
from forcopt.study.execute import execute
from forcopt.study.library import best_known, problem_of
from forcopt.study.run import Job
from forcopt.study.store import metadata


def compare(
    problems: Problem | str | Path | Iterable[Problem | str | Path] | Mapping[str, Problem | str | Path],
    methods: Sequence[str] | None = None,
    *,
    repeats: int = 1,
    time_limit: float | None = None,
    seed: int | np.random.Generator | None = None,
    rng: int | np.random.Generator | None = None,
    certify: bool = False,
    isolate: bool = True,
    memory_limit: float | str | None = None,
    executor: Executor | None = None,
    progress: bool | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    store: str | Path | None = None,
) -> Comparison:
    """Run several methods on one problem or several, one after the other, and report side by side.

    A run that fails, crashes, hangs or exhausts its memory becomes a row with the reason; the others go on.
    Ctrl-C ends the running ones; rows that are finished stay, the rest are marked as not run.

    Parameters
    ----------
    problems : Problem | str | Path | Iterable[Problem | str | Path] | Mapping[str, Problem | str | Path]
        Declarations, files or shipped examples to `load`, instances of the library by name, or bare models as
        ``.mps`` and ``.lp`` files: one, several, or by the names that they shall have. Problems without a
        name have that of their class, numbered where there are several.
    methods : Sequence[str], optional
        Each ``"method"`` or ``"method@backend"``; ``"method@*"`` stands for every installed backend that can
        take it, and ``"@backend"`` for the problem's default formulation there. All methods of a problem, on
        their default backend, if left out; of a private problem without a seed the private ones. Of problems
        of several classes, each is run with the methods that it has.
    repeats : int, default 1
        How often to make each run; the second has `seed` + 1, and so on.
    time_limit : float, optional
        Seconds for each run. A process that overruns it by 5 seconds is killed; without `isolate`, a method
        that takes no time limit fails.
    seed : int or numpy.random.Generator, optional
        An int or a generator; each method that takes a seed gets the same.
    rng : int or numpy.random.Generator, optional
        Another name of ``seed``, as Scientific Python's SPEC 7 has it.
    certify : bool, default False
        Prove each answer in exact arithmetic after its run, where that takes at most 60 s, and have
        `forcopt.check` check the file of the proof; releases of private data are left out.
    isolate : bool, default True
        Run each method in a process of its own. Without, a crash takes everything down.
    memory_limit : float or str, optional
        Bytes that each process may use, or text such as ``"4 GB"``: a search ends a little below, with its
        best decision and its bound, and the system refuses more, except on Windows. Without `isolate`, see
        `Problem.solve`. By default half of what is free, divided by the number of runs at once.
    executor : Executor, optional
        Any `concurrent.futures.Executor`, to have several runs at once; they share the machine's cores and
        caches, so compare seconds with care. One run at a time if left out.
    progress : bool, optional
        Show a progress bar; by default where the output is a terminal.
    options : Mapping[str, Mapping[str, Any]], optional
        For each method (as named in `methods`, or by its bare name) further arguments of `Problem.solve`.
    store : str or Path, optional
        A file that ends in ``.sqlite``, which keeps each row as soon as the run has ended, however this
        process ends. A run that is there already (the same declaration, method, backend, options, limits,
        seed and repeat) is not run again, failures included; the row holds the versions of its making.
        Missing backends and runs that an executor lost are tried again, and so is each run of a private
        problem without a seed: the file and the comparison hold nothing of its declaration.

    Returns
    -------
    Comparison
        One row for each run.

    Raises
    ------
    UnknownNameError
        For a method, backend or option, before anything is run.
    DeclarationError
        If a problem's class cannot be found by another process, or a limit is not positive.

    Examples
    --------
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
    memory_limit = check_limits(time_limit, memory_limit)
    repeats = whole_number(repeats, "repeats", 1)
    if isinstance(seed := one_seed(seed, rng), np.random.Generator) and repeats > 1:
        raise DeclarationError("seed is a generator; give an int, so that each repeat has a seed of its own")
    instances = _instances(problems)
    named = _by_problem(instances, methods, seed is None)
    own = _own_options(instances, named, options or {})
    jobs = [
        Job(
            name,
            problem,
            method,
            backend,
            time_limit,
            memory_limit,
            seed + repeat if isinstance(seed, int | np.integer) else seed,
            own[name][method, backend] | ({"certify": True} if certify else {}),
            {"repeat": repeat, **known},
        )
        for name, problem in instances.items()
        for known in [metadata(problem, seed is None and problem.is_private)]
        for method, backend in named[name]
        for repeat in range(repeats)
    ]
    rows = execute(jobs, isolate=isolate, executor=executor, progress=progress, store=store)
    solved = declared(jobs)
    return Comparison(rows, solved, best_known(solved))


def declared(jobs: Sequence[Job]) -> dict[str, Problem]:
    """The problems that a comparison may show, by fingerprint: none of private data."""
    return {job.known["fingerprint"]: job.problem for job in jobs if not job.private}


def check_limits(time_limit: float | None, memory_limit: float | str | None) -> int | None:
    """Refuse limits that no run could keep, and runs that would start each other without end.

    Returns
    -------
    int or None
        The memory limit in bytes.
    """
    if isolation.importing_main:
        raise DeclarationError(
            "a script that defines its own problem or method is imported by the process of each run: "
            "put its call of compare under  if __name__ == '__main__':"
        )
    Deadline(time_limit)  # refuses what is no number
    require(time_limit is None or time_limit > 0, "time_limit", time_limit, "be positive")
    return None if memory_limit is None else bytes_of(memory_limit)


def _instances(problems: Any) -> dict[str, Problem]:
    """The problems by name."""
    if isinstance(problems, Problem | str | Path):
        problems = [problems]
    if isinstance(problems, Mapping):
        found = {name: p if isinstance(p, Problem) else problem_of(p) for name, p in problems.items()}
    else:
        require(isinstance(problems, Iterable), "problems", problems, "be a problem, a name, or several")
        given = list(problems)
        kinds = Counter(type(p).__name__ for p in given if isinstance(p, Problem))
        count: Counter[str] = Counter()
        found = {}
        for problem in given:
            if isinstance(problem, Problem):
                name = type(problem).__name__
                count[name] += 1
                found[f"{name} {count[name]}" if kinds[name] > 1 else name] = problem
            elif str(problem) in found:
                raise DeclarationError(f"problems: {str(problem)!r} is named twice")
            else:
                found[str(problem)] = problem_of(problem)
    if not found:
        raise DeclarationError("problems is empty; name at least one")
    return found


def _by_problem(
    instances: Mapping[str, Problem], methods: Sequence[str] | None, released: bool
) -> dict[str, list[tuple[str, str]]]:
    """For each problem the names and backends of its methods; of a private one only what may be released."""
    if methods is None:
        return {
            name: expanded(
                p, [m for m in p.methods if p.methods[m].private or not (released and p.is_private)]
            )
            for name, p in instances.items()
        }
    given = list(methods) if isinstance(methods, Iterable) and not isinstance(methods, str) else [None]
    require(all(isinstance(entry, str) for entry in given), "methods", methods, "be a list of names")
    methods = [str(entry) for entry in given]
    for entry in methods:
        if not any(_has(p, entry) for p in instances.values()):
            _refuse_method(next(iter(instances.values())), entry)
    found = {}
    for name, problem in instances.items():
        mine = [entry for entry in methods if _has(problem, entry)]
        if methods and not mine:
            raise DeclarationError(
                f"problem {name} lacks the methods {', '.join(methods)}; it has {', '.join(problem.methods)}"
            )
        found[name] = expanded(problem, mine)
    return found


def _refuse_method(problem: Problem, entry: str) -> None:
    """Raise an error that lists the methods, and the spelling for a backend that was named as a method."""
    try:
        problem.method(entry.partition("@")[0])
    except UnknownNameError as error:
        if entry == "*":
            raise UnknownNameError(f"{error}; '@*' means every backend that can take the problem") from None
        try:
            _check_backend(entry)
        except UnknownNameError:
            raise error from None
        raise UnknownNameError(f"{error}; for the backend of this name write '@{entry}'") from None


def _has(problem: Problem, entry: str) -> bool:
    name = entry.partition("@")[0]
    return name in problem.methods or (entry.startswith("@") and _formulation(problem) is not None)


def _formulation(problem: Problem) -> str | None:
    """Resolve ``"@backend"``: to the default method if that is a formulation, else to the first exact one."""
    default = [m for m in problem.methods.values() if m.name == problem.default_method]
    found = (m.name for m in [*default, *problem.methods.values()] if m.kind == "formulation" and m.exact)
    return next(found, None)


def expanded(problem: Problem, methods: Sequence[str]) -> list[tuple[str, str]]:
    """The methods' names and backends, each known."""
    found: list[tuple[str, str]] = []
    for entry in methods:
        name, at, backend = entry.partition("@")
        method = problem.method(name or (_formulation(problem) if backend else None) or "")
        if backend == "*":
            found += [(method.name, other) for other in _capable(problem, method.name)]
            continue
        if at and not backend:
            raise DeclarationError(f"methods: {entry!r} names no backend after the @")
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
    with suppress(NotInstalledError):  # its row will have the reason
        get_backend(name)


def _capable(problem: Problem, method: str) -> list[str]:
    """The installed backends that can take the method's model; the default one if there is no model."""
    try:
        model = problem.to_model(method)
    except DeclarationError:
        if problem.method(method).kind != "formulation":
            raise
        return [""]  # not for this declaration; the row of the default backend says why
    found = []
    for name, backend in backends().items():
        if backend.missing() is None:
            with suppress(UnsupportedError, UnboundedExpressionError):
                compile_model(model, backend.capabilities, name)
                found.append(name)
    return found


def _own_options(
    instances: Mapping[str, Problem],
    named: Mapping[str, Sequence[tuple[str, str]]],
    options: Mapping[str, Mapping[str, Any]],
) -> dict[str, dict[tuple[str, str], dict[str, Any]]]:
    """For each problem and method its own options, each known."""
    keys = {key for pairs in named.values() for m, b in pairs for key in (m, f"{m}@{b}")}
    for key, values in options.items():
        check_known("method in options", key, sorted(keys))
        require(isinstance(values, Mapping), f"options of {key}", values, "be values by name")
    return {
        name: {
            (method, backend): check_options(
                problem.method(method), {**options.get(method, {}), **options.get(f"{method}@{backend}", {})}
            )
            for method, backend in named[name]
        }
        for name, problem in instances.items()
    }


def check_options(method: Method, options: dict[str, Any]) -> dict[str, Any]:
    """Give the options back if `Problem.solve` takes them with this method."""
    known = [*method.options, *(name for name in ("gap", "threads") if name in method.common)]
    for name in options:
        check_known(f"option of method {method.name!r}", name, known)
    return options
