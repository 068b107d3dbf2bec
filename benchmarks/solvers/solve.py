"""Solves the chosen files by the solvers that can take them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.solvers.files import Chosen
from benchmarks.solvers.kinds import KINDS, UNKNOWN, able
from forcopt.errors import DeclarationError
from forcopt.problem import Problem
from forcopt.status import Status
from forcopt.study.run import Run
from forcopt.study.solver_benchmark import base, ordered, solver_benchmark
from forcopt.study.store import metadata


def solved_where_able(
    solvers: Sequence[str], chosen: Chosen, names: Sequence[str], how: Mapping[str, Any]
) -> tuple[list[Run], dict[str, Problem]]:
    """Run a benchmark, without a process for a solver that refuses the file's kind of model.

    Parameters
    ----------
    solvers : Sequence[str]
        Their names.
    chosen : Chosen
        The files.
    names : Sequence[str]
        Only these of them; all if there are none.
    how : Mapping[str, Any]
        Further arguments of `solver_benchmark`, with seeds and orders.

    Returns
    -------
    tuple[list[Run], dict[str, Problem]]
        The rows, those of refusals among them, and the problems by fingerprint.

    Raises
    ------
    DeclarationError
        For a name without a file.
    UnknownNameError, NotInstalledError
        For a solver.
    """
    missing = [name for name in names if name not in chosen.files]
    if missing:
        raise DeclarationError(f"there is no model {missing[0]!r}")
    files = {name: file for name, file in chosen.problems.items() if not names or name in names}
    limited = not all(able(s, kind) for s in solvers for kind in KINDS)
    kinds = {name: chosen.kind(name) if limited else UNKNOWN for name in files}
    takes = {name: tuple(s for s in solvers if able(s, kinds[name])) for name in files}
    rows: list[Run] = []
    problems: dict[str, Problem] = {}
    for group in dict.fromkeys(takes.values()):
        if group:
            own = {name: file for name, file in files.items() if takes[name] == group}
            part = solver_benchmark(group, own, **how).comparison
            rows += part.rows
            problems |= part.problems
    seeds, orders = (range(n) if isinstance(n, int) else n for n in (how["seeds"], how["orders"]))
    for name, file in files.items():
        for order in orders:
            known = metadata(file.replace(order=order))
            called = ordered(name, order)
            rows += [
                Run(
                    called,
                    "model",
                    solver,
                    Status.FAILED,
                    "min",
                    True,
                    seed=seed,
                    message=f"UnsupportedError: {solver} takes no model of the kind {kinds[name]}",
                    **known,
                )
                for solver in solvers
                if solver not in takes[name]
                for seed in seeds
            ]
    place = {name: at for at, name in enumerate(files)}
    return sorted(rows, key=lambda row: place[base(row)[0]]), problems
