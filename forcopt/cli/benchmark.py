"""``forcopt benchmark``: run the committed benchmarks, and the page of their headlines."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from forcopt.cli.compare import ExecutorOption, StoreOption, opened
from forcopt.cli.output import CertifyOption, MemoryLimitOption, progress_wanted
from forcopt.errors import DeclarationError, unknown

_INTRODUCTION = """# Benchmarks

This page compares this library with its peers. Each table names its versions, machine and load.
`forcopt benchmark` makes the page from the file `headline.json` of each benchmark. It first runs
`benchmarks/NAME/run.py --out benchmarks/NAME/results.md`;
`forcopt benchmark NAME --quick` shows a short run and changes no file.

A benchmark is a folder with a `run.py` that takes `--out FILE` and `--quick`, measures peers and this library
in one run, and writes only beside FILE (`benchmarks/report.py` helps). It writes its main rows to
`headline.json`: `title`, `conditions`, `table` (the file with the details) and `rows`, each with `what` (the
measurement), `ours`, `peers` and `ratio`.
"""


def benchmark(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Which; all if left out.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A short run; shown, not written.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="List the benchmarks.")] = False,
    page: Annotated[bool, typer.Option("--page", help="Only write benchmarks/README.md anew.")] = False,
    backend: Annotated[
        list[str] | None,
        typer.Option(
            "--backend",
            "-b",
            help="Solve the .mps and .lp files of the folder NAME, or the instance library.",
        ),
    ] = None,
    time_limit: Annotated[float, typer.Option("--time-limit", help="Seconds for each --backend run.")] = 60.0,
    memory_limit: MemoryLimitOption = None,
    certify: CertifyOption = False,
    store: StoreOption = None,
    executor: ExecutorOption = None,
) -> None:
    """Run the committed benchmarks, rewrite their tables and the page of headlines, benchmarks/README.md.

    For a checkout of the repository: in it, or with forcopt installed from it. With --backend (several are
    compared), solve the models of a folder of one's own, such as netlib's or MIPLIB's, or instances of the
    library, and report solved and wrong answers, and shifted geometric means of the seconds.
    """
    if backend:
        from forcopt.study.solver_benchmark import solver_benchmark

        names = names or []
        models = names[0] if names and Path(names[0]).is_dir() else None
        with opened(executor) as pool:
            result = solver_benchmark(
                backend,
                models,
                instances=names[1:] if models else names,
                time_limit=time_limit,
                memory_limit=memory_limit,
                executor=pool,
                progress=progress_wanted(),
                store=store,
                certify=certify,
            )
        print(result.report())
        if result.wrong:
            raise typer.Exit(1)
        return
    folder = _folder()
    found = {path.parent.name: path for path in sorted(folder.glob("*/run.py"))}
    for name in names or []:
        if name not in found:
            raise unknown("benchmark", name, list(found))
    if listed:
        print("\n".join(found))
        return
    failed = []
    for name in () if page else names or found:
        print(f"== {name}", file=sys.stderr, flush=True)
        if not _run(found[name], quick):
            failed.append(name)
    if not quick:
        (folder / "README.md").write_text(readme(folder), encoding="utf-8")
    if failed:
        print(f"error: failed: {', '.join(failed)}", file=sys.stderr)
        raise typer.Exit(1)


def _folder() -> Path:
    for root in (Path.cwd(), Path(__file__).resolve().parents[2]):
        if (root / "benchmarks").is_dir() and (root / "forcopt").is_dir():
            return root / "benchmarks"
    raise DeclarationError("there are no benchmarks here: they are in the repository, not in the package")


def _run(script: Path, quick: bool) -> bool:
    """Run a benchmark; the files of a short run are shown and thrown away."""
    with TemporaryDirectory() as short:
        out = Path(short if quick else script.parent) / "results.md"
        command = [sys.executable, str(script), "--out", str(out), *(["--quick"] if quick else [])]
        ended = subprocess.run(command, check=False).returncode
        for page in sorted(Path(short).glob("*.md")):
            print(page.read_text(encoding="utf-8"))
    return ended == 0


def readme(folder: Path) -> str:
    """The page of all headlines."""
    parts = [_INTRODUCTION]
    for path in sorted(folder.glob("*/headline.json")):
        headline = json.loads(path.read_text(encoding="utf-8"))
        name = path.parent.name
        parts += [
            f"## {headline['title']}\n",
            f"{headline['conditions']} Details: [{name}/{headline['table']}]({name}/{headline['table']}).\n",
            "| measurement | ours | peers | ratio |\n|---|---|---|---|",
            *(f"| {r['what']} | {r['ours']} | {r['peers']} | {r['ratio']} |" for r in headline["rows"]),
            "",
        ]
    return "\n".join(parts)
