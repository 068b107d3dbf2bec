"""Benchmark solvers on folders of MPS and LP files, or on the instance library."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from forcopt.backends.registry import get_backend
from forcopt.errors import DeclarationError, required
from forcopt.loops.checks.second_opinion import AS_CLAIMED, SOLVED_AGAIN
from forcopt.loops.exchange import MODEL_SUFFIXES
from forcopt.status import Status
from forcopt.study.compare import compare
from forcopt.study.comparison import SETTLED, Comparison, contradiction
from forcopt.study.library import MANIFEST, ModelFile, export
from forcopt.study.run import Run

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class Known:
    """The published status of an instance, and its optimum.

    Attributes
    ----------
    status : Status
        OPTIMAL, INFEASIBLE or UNBOUNDED; FEASIBLE if only the best objective is published.
    objective : float, default float("nan")
        The optimum or the best objective.
    """

    status: Status
    objective: float = float("nan")


_KINDS = {
    "=opt=": Status.OPTIMAL,
    "=best=": Status.FEASIBLE,
    "=inf=": Status.INFEASIBLE,
    "=unbd=": Status.UNBOUNDED,
}
"""Of the lines of a ``.solu`` file."""


def published(folder: str | Path) -> dict[str, Known]:
    """Read the published optima of the instances in a folder.

    Parameters
    ----------
    folder : str or Path
        May hold ``.solu`` files as MIPLIB has them (lines such as ``=opt= air04 56137``), and the
        ``manifest.json`` that `forcopt.study.library.export` writes.

    Returns
    -------
    dict[str, Known]
        By the names of the files without their endings.

    Raises
    ------
    DeclarationError
        If an optimum or a best objective is no number.
    """
    found: dict[str, Known] = {}
    for path in sorted(Path(folder).rglob("*.solu")):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            kind, *rest = line.split(maxsplit=1) or [""]
            if kind in _KINDS and rest:
                name, *value = rest[0].rsplit(maxsplit=kind in ("=opt=", "=best="))
                try:
                    found[name] = Known(_KINDS[kind], *map(float, value))
                except ValueError:
                    raise DeclarationError(f"{path}: {line!r} must end in a number") from None
    manifest = Path(folder) / MANIFEST
    try:
        for entry in json.loads(manifest.read_text(encoding="utf-8")) if manifest.is_file() else ():
            if entry["status"] in map(str, _KINDS.values()):
                values = [] if entry["objective"] is None else [float(entry["objective"])]
                found[_stem(Path(entry["file"]))] = Known(Status(entry["status"]), *values)
    except (OSError, ValueError, TypeError, LookupError):  # damaged, or another program's
        warnings.warn(f"{manifest} gives no optima: it is no list of instances", stacklevel=3)
    return found


@dataclass(frozen=True, eq=False)
class SolverBenchmark:
    """Runs of solvers on the same files.

    Attributes
    ----------
    comparison : Comparison
        Every run; ``comparison.chart("profile")`` draws the performance profile.
    known : Mapping[str, Known]
        The published facts, by instance.
    time_limit : float
        Seconds for each run.
    """

    comparison: Comparison
    known: Mapping[str, Known]
    time_limit: float

    @cached_property
    def _alike(self) -> Comparison:
        """The runs of all orders of an instance under its name."""
        return Comparison([replace(r, instance=base(r)[0], fingerprint="") for r in self.comparison.rows])

    def _wrong(self, row: Run) -> str:
        """Words against a claim: published values, or checks that led to another answer."""
        fact, words = self.known.get(base(row)[0]), ""
        if fact is not None and row.status in SETTLED:
            told = Run("", "published", "", fact.status, row.sense, True, fact.objective, violation=0.0)
            words = contradiction(row, told) or contradiction(told, row)
        refuted = SOLVED_AGAIN in row.message and AS_CLAIMED not in row.message
        return words or (f"{row.label}: {row.message.lstrip('; ')}" if refuted else "")

    @property
    def wrong(self) -> tuple[str, ...]:
        """Claims that published values or checks refute, and pairs of claims that contradict each other."""
        found = [f"{row.instance}: {words}" for row in self.comparison.rows if (words := self._wrong(row))]
        return tuple(dict.fromkeys([*found, *self._alike.disagreements]))

    @cached_property
    def frame(self) -> DataFrame:
        """A row a run.

        Its columns: class (continuous, mixed, integer in all columns, or unknown), instance, backend,
        version, seed, order (of rows and columns), variant (of both), status, refused (the solver cannot take
        the model), solved (a settled status that is not wrong), wrong (a published value, a point of another
        run or a check refutes the claim), seconds (by the solver's own clock; of the call, if it has none;
        else of the whole run), build (reading the file, and writing the model), the parts of `Run.parts`,
        wall, peak_memory, objective, bound, proved_by and message.
        """
        pd = required("pandas", "frame")

        beside = {rows[0].instance: rows for rows in self._alike.instances}
        sizes = {base(r)[0]: (r.integers, r.columns) for r in self.comparison.rows if r.columns is not None}
        rows = []
        for run in self.comparison.rows:
            instance, order = base(run)
            whole, columns = sizes.get(instance, (None, 0))
            kind = "integer" if whole == columns else "mixed" if whole else "continuous"
            others = () if run.status is Status.UNBOUNDED else beside[instance]  # bounds may be wrong, too
            refuted = any(contradiction(run, other) for other in others)
            wrong, parts = refuted or bool(self._wrong(run)), dict(run.parts)
            clocks = (parts.get("solver", np.nan), parts.get("call", np.nan), run.seconds)
            row = {
                "class": "unknown" if whole is None else kind,
                "instance": instance,
                "backend": run.backend,
                "version": run.versions.get(run.backend, ""),
                "seed": run.seed or 0,
                "order": order,
                "variant": f"{run.seed or 0},{order}",
                "status": str(run.status),
                "refused": run.message.startswith("UnsupportedError"),
                "solved": run.status in SETTLED and not wrong,
                "wrong": wrong,
                "seconds": next((clock for clock in clocks if np.isfinite(clock)), self.time_limit),
                **{name: parts.get(name, np.nan) for name in ("compile", "call", "solver", "checks", "cpu")},
                "build": run.build_seconds,
                "wall": run.seconds,
            }
            kept = ("peak_memory", "objective", "bound", "proved_by", "message")
            rows.append(row | {name: getattr(run, name) for name in kept})
        return pd.DataFrame(rows)


def solver_benchmark(
    backends: Sequence[str],
    folder: str | Path | Mapping[str, ModelFile] | None = None,
    *,
    instances: Sequence[str] = (),
    seeds: int | Sequence[int] = 1,
    orders: int | Sequence[int] = 1,
    threads: int | None = 1,
    time_limit: float = 60.0,
    memory_limit: float | str | None = None,
    certify: bool = False,
    isolate: bool = True,
    executor: Executor | None = None,
    progress: bool | None = None,
    store: str | Path | None = None,
) -> SolverBenchmark:
    """Solve the models of a folder by several backends.

    The statuses of linear programs are checked by independent arithmetic as in `Model.solve`, points are
    evaluated by the model, and all claims are compared with published optima and with each other. The solvers
    are ranked by their own clocks, which leave compiling, handing over and checking out.

    Parameters
    ----------
    backends : Sequence[str]
        Names that ``forcopt backends`` lists, of which one may be your own, also with options of the solver:
        ``highs[presolve=off]``.
    folder : str, Path or Mapping[str, ModelFile], optional
        With ``.mps`` and ``.lp`` files at any depth, such as netlib's or MIPLIB's, also if ``.gz``, ``.bz2``
        or ``.xz`` follows; see `published`. Or the models by their names, without published values. The
        instance library if left out: its models are written beside the store first.
    instances : Sequence[str], optional
        Only these: names of files without their endings, or names in the library and how they begin.
    seeds : int or Sequence[int], default 1
        How many, from 0 on, or which; each is given to all solvers.
    orders : int or Sequence[int], default 1
        Orders of rows and columns: how many, or which; 0 is the file's own, others are drawn with this seed.
    threads : int, optional
        Of each solver; its process is bound to as many cores. None leaves both to the solvers.
    time_limit : float, default 60.0
        Seconds for each run.
    memory_limit, certify, isolate, executor, progress, store
        As for `compare`. With a store, an interrupted benchmark continues where it was. With Dask's
        ``client.get_executor(pure=False)``, the folder must be one that all workers see.

    Raises
    ------
    UnknownNameError, NotInstalledError
        For a backend, before anything is run.
    DeclarationError
        If the folder holds no model, or none of that name.

    Examples
    --------
    >>> import tempfile
    >>> import forcopt as fo
    >>> m = fo.Model("tiny")
    >>> x = m.variable("x", lower=0, upper=3)
    >>> m.maximize(x)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     m.write(f"{folder}/tiny.mps")
    ...     b = solver_benchmark(["highs", "glop"], folder, isolate=False, progress=False)
    >>> b.frame["solved"].tolist(), b.wrong
    ([True, True], ())
    """
    for name in backends:
        get_backend(name)
    if not backends:
        raise DeclarationError("solver_benchmark needs a backend")
    with ExitStack() as stack:
        if folder is None:
            beside = None if store is None else Path(store).with_suffix("")
            folder = beside or stack.enter_context(TemporaryDirectory())
            export(folder, names=instances)
            instances = ()
        files = dict(folder) if isinstance(folder, Mapping) else _in_folder(Path(folder))
        missing = [name for name in instances if name not in files]
        if missing:
            raise DeclarationError(f"there is no model {missing[0]!r}")
        chosen = {
            ordered(name, order): file.replace(order=order)
            for name, file in files.items()
            if not instances or name in instances
            for order in (range(orders) if isinstance(orders, int) else orders)
        }
        parts = [
            compare(
                chosen,
                [f"model@{name}" for name in backends],
                seed=seed,
                options={} if threads is None else {"model": {"threads": threads}},
                time_limit=time_limit,
                memory_limit=memory_limit,
                isolate=isolate,
                executor=executor,
                progress=progress,
                store=store,
                certify=certify,
            )
            for seed in (range(seeds) if isinstance(seeds, int) else seeds)
        ]
        rows = [row for part in parts for row in part.rows]
        problems = {key: problem for part in parts for key, problem in part.problems.items()}
        known = {} if isinstance(folder, Mapping) else published(folder)
        return SolverBenchmark(Comparison(rows, problems), known, time_limit)


def ordered(name: str, order: int) -> str:
    """The name of an instance whose rows and columns are in another order."""
    return f"{name} (order {order})" if order else name


def base(row: Run) -> tuple[str, int]:
    """The name of a run's instance in the folder, and the order of its rows and columns."""
    name, _, order = row.instance.removesuffix(")").rpartition(" (order ")
    return (name, int(order)) if name and order.isdecimal() else (row.instance, 0)


def _in_folder(folder: Path) -> dict[str, ModelFile]:
    files: dict[str, ModelFile] = {}
    every = (p for p in sorted(folder.rglob("*")) if p.is_file() and p.name.lower().endswith(MODEL_SUFFIXES))
    for path in every:
        if (first := files.setdefault(_stem(path), ModelFile(path=str(path)))).path != str(path):
            warnings.warn(f"{path} is left out: {first.path} has its name", stacklevel=3)
    if not files:
        raise DeclarationError(f"{folder} holds no file that ends in {', '.join(MODEL_SUFFIXES)}")
    return files


def _stem(path: Path) -> str:
    return path.name[: -max(len(e) for e in MODEL_SUFFIXES if path.name.lower().endswith(e))]
