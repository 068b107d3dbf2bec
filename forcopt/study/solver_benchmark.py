"""Benchmark solvers on folders of MPS and LP files, or on the instance library."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from forcopt.backends.registry import get_backend
from forcopt.errors import DeclarationError
from forcopt.loops.exchange import MODEL_SUFFIXES
from forcopt.status import Status
from forcopt.study.compare import compare
from forcopt.study.comparison import SETTLED, Comparison, contradiction
from forcopt.study.library import MANIFEST, export
from forcopt.study.run import Run


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


def shifted_geometric_mean(seconds: Iterable[float], shift: float = 1.0) -> float:
    """``exp(mean(log(t + shift))) - shift``.

    Parameters
    ----------
    seconds : Iterable[float]
        Nonnegative numbers.
    shift : float, default 1.0
        Keeps instances of a few milliseconds from deciding the mean; 1 or 10 seconds are usual.

    References
    ----------
    T. Achterberg, "Constraint integer programming", 2007, appendix A.3.

    Examples
    --------
    >>> round(shifted_geometric_mean([1, 7], shift=1.0), 6)
    3.0
    """
    values = np.array(list(seconds), dtype=float)
    return float(np.exp(np.log(values + shift).mean()) - shift) if values.size else float("nan")


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
    """
    found: dict[str, Known] = {}
    kinds = {
        "=opt=": Status.OPTIMAL,
        "=best=": Status.FEASIBLE,
        "=inf=": Status.INFEASIBLE,
        "=unbd=": Status.UNBOUNDED,
    }
    for path in sorted(Path(folder).rglob("*.solu")):
        for line in path.read_text(encoding="utf-8").splitlines():
            words = line.split()
            if len(words) >= 2 and words[0] in kinds:
                value = float(words[2]) if len(words) > 2 else float("nan")
                found[words[1]] = Known(kinds[words[0]], value)
    manifest = Path(folder) / MANIFEST
    if manifest.is_file():
        for entry in json.loads(manifest.read_text(encoding="utf-8")):
            if entry["status"] in ("optimal", "infeasible", "unbounded", "feasible"):
                value = float("nan") if entry["objective"] is None else float(entry["objective"])
                found[_stem(Path(entry["file"]))] = Known(Status(entry["status"]), value)
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

    @property
    def wrong(self) -> tuple[str, ...]:
        """The claims that contradict published values, and pairs of claims that contradict each other."""
        claims = (
            (row.instance, _contradiction(row, self.known.get(row.instance))) for row in self.comparison.rows
        )
        found = [f"{instance}: {words}" for instance, words in claims if words]
        return (*found, *self.comparison.disagreements)

    def summary(self, shift: float = 1.0) -> Any:
        """Count and time the runs of each backend.

        Parameters
        ----------
        shift : float, default 1.0
            Of the geometric mean, in seconds.

        Returns
        -------
        Any
            A `pandas.DataFrame` with the columns backend, runs, solved (a status that is settled and does not
            contradict published optima), wrong, unsolved, agreed (another solver claims the same), certified
            (by an exact certificate), checked (its file is accepted by `forcopt.check`), mean (the shifted
            geometric mean of the seconds, an unsolved or wrong run counted with the time limit) and ratio (to
            the least mean), least first.
        """
        import pandas as pd

        rows = []
        for backend in dict.fromkeys(row.backend for row in self.comparison.rows):
            runs = [row for row in self.comparison.rows if row.backend == backend]
            wrong = [bool(_contradiction(row, self.known.get(row.instance))) for row in runs]
            solved = [row.status in SETTLED and not bad for row, bad in zip(runs, wrong, strict=True)]
            seconds = [
                min(row.seconds, self.time_limit) if good else self.time_limit
                for row, good in zip(runs, solved, strict=True)
            ]
            mean = shifted_geometric_mean(seconds, shift)
            unsolved = len(runs) - sum(solved) - sum(wrong)
            proofs = [(row.proved_by == "two solvers", row.certified, row.checked) for row in runs]
            counts = (sum(solved), sum(wrong), unsolved, *map(sum, zip(*proofs, strict=True)))
            rows.append((backend, len(runs), *counts, mean))
        names = "backend runs solved wrong unsolved agreed certified checked mean"
        table = pd.DataFrame(rows, columns=names.split())
        table["ratio"] = table["mean"] / table["mean"].min()
        return table.sort_values("mean", ignore_index=True)

    def report(self, shift: float = 1.0) -> str:
        """Give the summary and the wrong claims as text."""
        lines = [self.summary(shift).to_string(index=False, float_format=lambda v: f"{v:.3f}")]
        return "\n".join([*lines, *(f"wrong: {claim}" for claim in self.wrong)])


def solver_benchmark(
    backends: Sequence[str],
    folder: str | Path | None = None,
    *,
    instances: Sequence[str] = (),
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
    evaluated by the model, and all claims are compared with published optima and with each other.

    Parameters
    ----------
    backends : Sequence[str]
        Names that ``forcopt backends`` lists, of which one may be your own.
    folder : str or Path, optional
        With ``.mps`` and ``.lp`` files at any depth, such as netlib's or MIPLIB's, also if ``.gz`` or
        ``.bz2`` follows; see `published`. The instance library if left out: its models are written beside
        the store first.
    instances : Sequence[str], optional
        Only these: names of files without their endings, or names in the library and how they begin.
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
    >>> b.summary()["solved"].tolist(), b.wrong
    ([1, 1], ())
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
        every = (p for p in sorted(Path(folder).rglob("*")) if p.is_file())
        files = {_stem(p): p for p in every if p.name.lower().endswith(MODEL_SUFFIXES)}
        if not files:
            raise DeclarationError(f"{folder} holds no file that ends in {', '.join(MODEL_SUFFIXES)}")
        missing = [name for name in instances if name not in files]
        if missing:
            raise DeclarationError(f"{folder} holds no model {missing[0]!r}")
        chosen = {name: path for name, path in files.items() if not instances or name in instances}
        comparison = compare(
            chosen,
            [f"model@{name}" for name in backends],
            time_limit=time_limit,
            memory_limit=memory_limit,
            isolate=isolate,
            executor=executor,
            progress=progress,
            store=store,
            certify=certify,
        )
        return SolverBenchmark(comparison, published(folder), time_limit)


def _stem(path: Path) -> str:
    ending = next(e for e in sorted(MODEL_SUFFIXES, key=len, reverse=True) if path.name.lower().endswith(e))
    return path.name[: -len(ending)]


def _contradiction(row: Run, known: Known | None) -> str:
    """Words for a claim that a published value refutes, or that refutes it; empty if there is none."""
    if known is None or row.status not in SETTLED:
        return ""
    told = Run(row.instance, "published", "", known.status, row.sense, True, known.objective, violation=0.0)
    return contradiction(row, told) or contradiction(told, row)
