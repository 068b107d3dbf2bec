"""``forcopt doctor``: whether this installation is whole, in half a minute."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from importlib import metadata
from importlib.util import find_spec
from time import perf_counter

import typer

from forcopt.backends.base import CLASHES
from forcopt.cli.output import JsonOption, console, print_json, print_table, table
from forcopt.errors import ForcoptError
from forcopt.version import __version__


def doctor(as_json: JsonOption = False) -> None:
    """Check the installation: versions, solvers, known clashes, and a model solved by each solver."""
    found = {"forcopt": __version__, "python": sys.version.split()[0], "system": platform.platform()}
    packages, kept = {name: _version(name) for name in _packages()}, _kept()
    warnings = [
        f"{name} {version}: {reason}"
        for name, start, _, reason in CLASHES
        if (version := packages.get(name) or "").startswith(start)
    ]
    warnings += [f"compiled code cannot be kept: {place}" for place, writable in kept.items() if not writable]
    tested = _self_test()
    failed = [row for row in tested if row["answer"] not in ("right", "not installed")]
    if as_json:
        print_json({**found, "packages": packages, "compiled": kept, "warnings": warnings, "solvers": tested})
    else:
        console().print(", ".join(f"{name} {value}" for name, value in found.items()), markup=False)
        console().print(", ".join(f"{n} {v or 'not installed'}" for n, v in packages.items()), markup=False)
        console().print(f"compiled code: {', '.join(kept) or 'none'}", markup=False)
        rows = table("solver", "a small model", "seconds")
        for row in tested:
            rows.add_row(row["solver"], row["answer"], row["seconds"])
        print_table(rows)
        for warning in warnings:
            console().print(f"warning: {warning}", markup=False)
        broken = ", ".join(row["solver"] for row in failed)
        console().print(f"broken: {broken}" if failed else "every installed solver gives the right answer")
    if failed or warnings:
        raise typer.Exit(1)


def _packages() -> list[str]:
    """Give the names of the packages that forcopt and its optional parts require."""
    developers = ("test", "lint", "docs")
    form = re.compile(r"([\w.-]+)[^;]*(?:;.*extra == .(\w+))?")
    own = ("forcopt", "forcopt-core")  # the second is the same code with fewer requirements
    name = next(n for n in own if _version(n) is not None)
    wanted = [form.match(line) for line in metadata.requires(name) or []]
    return sorted({r[1] for r in wanted if r and r[1] not in own and r[2] not in developers})


def _kept() -> dict[str, bool]:
    """Give the folders where numba keeps compiled code, and whether it can be written there."""
    from forcopt import compiled
    from forcopt.graphs.states import index
    from forcopt.models.districting.local_search import _anneal

    kernels = [kernel for kernel in (index, _anneal) if hasattr(kernel, "stats")]  # none without numba
    broken = {compiled.lack: False} if compiled.lack and find_spec("numba") else {}
    none = "no folder can be written; set NUMBA_CACHE_DIR"
    folders = [kernel.stats.cache_path or none for kernel in kernels]
    return broken | {folder: os.access(folder, os.W_OK) for folder in folders}


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _self_test() -> list[dict[str, str]]:
    """Solve one program by each backend, in a process that a broken solver may end."""
    from forcopt.backends import registry

    lacking = [name for name, backend in registry.backends().items() if backend.missing()]
    rows = [{"solver": name, "answer": "not installed", "seconds": ""} for name in lacking]
    left = [name for name in registry.backends() if name not in lacking]
    while left:
        command = [sys.executable, "-c", "from forcopt.cli.doctor import answers; answers()", *left]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        found = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
        if len(found) < len(left):
            words = (ended.stderr.strip() or "no message").splitlines()[-1]
            answer = f"ended the process with {ended.returncode}: {words}"
            found.append({"solver": left[len(found)], "answer": answer, "seconds": ""})
        rows, left = [*rows, *found], left[len(found) :]
    return rows


def answers() -> None:
    """Print a line of JSON for each backend that the command line names, as soon as it has solved.

    Each solves one program, in whole numbers where it takes them; its optimum is 8.
    """
    import forcopt as fo
    from forcopt.backends import registry

    for name in sys.argv[1:]:
        start = perf_counter()
        m = fo.Model("doctor")
        whole = "integer" in registry.backends()[name].capabilities.kinds
        x = m.variable("x", 2, lower=0, upper=9, integer=whole)
        m.subject_to(x[0] + 2 * x[1] >= 4)
        m.minimize(3 * x[0] + 4 * x[1])
        try:
            value = m.solve(name, time_limit=10).objective
            answer = "right" if value is not None and abs(value - 8) <= 1e-3 else f"{value} for 8"
        except ForcoptError as error:
            answer = str(error)
        row = {"solver": name, "answer": answer, "seconds": f"{perf_counter() - start:.2f}"}
        print(json.dumps(row), flush=True)
