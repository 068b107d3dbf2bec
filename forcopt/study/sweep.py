"""Sweep parameters: every point of a grid, with many seeds each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from forcopt.errors import DeclarationError, check_known, require
from forcopt.problem import Problem
from forcopt.study.compare import check_limits, check_options, declared, expanded
from forcopt.study.comparison import Comparison
from forcopt.study.execute import execute
from forcopt.study.library import problem_of
from forcopt.study.run import Job
from forcopt.study.store import metadata


def sweep(
    problem: Problem | str | Path | Callable[..., Problem],
    over: Mapping[str, Sequence[Any]] | None = None,
    methods: Sequence[str] | None = None,
    *,
    seeds: Iterable[int | None] = (None,),
    time_limit: float | None = None,
    isolate: bool = False,
    memory_limit: float | str | None = None,
    executor: Executor | None = None,
    progress: bool | None = None,
    store: str | Path | None = None,
) -> Comparison:
    """Solve a problem at every point of a grid of parameters, with every seed.

    Parameters
    ----------
    problem : Problem | str | Path | Callable[..., Problem]
        A declaration whose fields are varied, or a file or example to `load`; or a function that draws one:
        it is called with the point's parameters and with ``seed`` by keyword. The seed also goes to the
        method.
    over : Mapping[str, Sequence[Any]], optional
        For each parameter its values. Of a declaration, a parameter is a field, a field of a field's object
        (``"constraint.tolerance"``), or an option that all methods have.
    methods : Sequence[str], optional
        As for `compare`; the problem's default method if left out.
    seeds : Iterable[int | None], default (None,)
        Of the runs at each point.
    isolate : bool, default False
        Give each run a process of its own, as `compare` does: a second more for each, but a crash costs one
        row only.
    executor : Executor, optional
        Any `concurrent.futures.Executor`, such as ``ProcessPoolExecutor(4)`` or Dask's
        ``client.get_executor(pure=False)``. All runs in this process, one by one, if left out.
    time_limit, memory_limit, progress, store
        As for `compare`. With a store, an interrupted sweep continues where it was, and one with more values
        or seeds runs only these.

    Returns
    -------
    Comparison
        A `Comparison`; its `summary` gives means with intervals over the seeds.

    Raises
    ------
    UnknownNameError
        For a method, backend or parameter, before anything is run.
    DeclarationError
        For a value that the problem refuses, before anything is run.

    Examples
    --------
    >>> import forcopt as fo
    >>> from forcopt.fairness import EqualizedOdds
    >>> from forcopt.models import FairPostprocessing
    >>> counts = [[[36, 4], [9, 5]], [[4, 16], [6, 20]]]
    >>> p = FairPostprocessing(counts=counts, constraint=EqualizedOdds(0.1))
    >>> c = fo.sweep(p, {"constraint.tolerance": [0.0, 0.1, 0.3]})
    >>> [(row.parameters["constraint.tolerance"], round(row.objective, 3)) for row in c.rows]
    [(0.0, 0.31), (0.1, 0.261), (0.3, 0.19)]
    """
    memory_limit = check_limits(time_limit, memory_limit)
    named = over is None or (isinstance(over, Mapping) and all(isinstance(name, str) for name in over))
    require(named, "over", over, "give a list of values for each parameter by its name")
    grid = {name: _listed(name, values) for name, values in (over or {}).items()}
    draws = _listed("seeds", seeds)
    jobs = [
        Job(
            " ".join([name, *(f"{key}={_shown(value)}" for key, value in point.items())]),
            made,
            method,
            backend,
            time_limit,
            memory_limit,
            seed,
            check_options(made.method(method), options),
            {"parameters": {key: _shown(value) for key, value in point.items()}, **known},
        )
        for values in product(*grid.values())
        for point in [dict(zip(grid, values, strict=True))]
        for name, made, options, seed, known in _made(problem, point, draws)
        for method, backend in expanded(made, methods or [made.method().name])
    ]
    rows = execute(jobs, isolate=isolate, executor=executor, progress=progress, store=store)
    return Comparison(rows, declared(jobs))


def _listed(name: str, values: Any) -> list[Any]:
    """Give the values of a parameter or the seeds, at least one."""
    require(isinstance(values, Iterable) and not isinstance(values, str), name, values, "be a list of values")
    found = list(values)
    if not found:
        raise DeclarationError(f"{name} has no values")
    return found


_Made = tuple[str, Problem, dict[str, Any], int | None, dict[str, Any]]


def _made(problem: Any, point: Mapping[str, Any], seeds: Sequence[int | None]) -> Iterator[_Made]:
    """For each seed at a point: name of the problem, problem, options of methods, and known values."""
    if not isinstance(problem, Problem) and callable(problem):
        for seed in seeds:
            drawn = problem(**point, seed=seed)
            if not isinstance(drawn, Problem):
                raise DeclarationError(f"the function draws {drawn!r}; it must draw a problem")
            private = seed is None and drawn.is_private
            yield type(drawn).__name__, drawn, {}, seed, metadata(drawn, private)
        return
    name = type(problem).__name__ if isinstance(problem, Problem) else str(problem)
    base = problem if isinstance(problem, Problem) else problem_of(problem)
    fields = {key: value for key, value in point.items() if key.partition(".")[0] in type(base).model_fields}
    options = {key: value for key, value in point.items() if key not in fields}
    known_options = {name for m in base.methods.values() for name in (*m.options, "gap", "threads")}
    for key in options:
        check_known(f"parameter of {type(base).__name__}", key, [*type(base).model_fields, *known_options])
    made = base.replace(**fields)
    for seed in seeds:
        yield name, made, options, seed, metadata(made, seed is None and made.is_private)


def _shown(value: Any) -> Any:
    """A parameter's value as rows hold it."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, bool | int | float | str | None) else repr(value)
