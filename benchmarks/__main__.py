"""Runs the committed benchmarks, the page of their headlines, and solvers on files: ``forcopt benchmark``.

    python -m benchmarks [NAME...] [--quick] [--list] [--page] [--quiet]
    python -m benchmarks [FOLDER|metadata.yaml [INSTANCE...]] --solvers highs,scip --seeds 3 --out results

Without --solvers the benchmarks of these names, or all, are run; their tables and benchmarks/README.md are
written anew. With it the models of a folder, of a metadata file, of a tier or of the instance library are
solved, and ranked by the field's rules.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from shutil import copy
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import forcopt as fo
from benchmarks.history import QUIET, record
from benchmarks.machine import now, wait_until_quiet
from benchmarks.report import QUIET_ASKED
from forcopt.backends import get_backend
from forcopt.errors import BackendError, DeclarationError, ForcoptError, UnknownNameError, unknown

HERE = Path(__file__).resolve().parent

_INTRODUCTION = """## How it is measured

This page compares this library with its peers. Each table names its versions, machine and load.
`forcopt benchmark` makes the page from the file `headline.json` of each benchmark. It first runs
`benchmarks/NAME/run.py --out benchmarks/NAME/results.md`;
`forcopt benchmark NAME --quick` shows a short run and changes no file.

A benchmark is a folder with a `run.py` that takes `--out FILE` and `--quick`, measures peers and this library
in one run, and writes only beside FILE (`benchmarks/report.py` helps). It writes its main rows to
`headline.json`: `title`, `conditions`, `table` (the file with the details) and `rows`, each with `what` (the
measurement), `ours`, `peers` and `ratio`. With `--quiet` a benchmark waits for a load below .5, and a run
during which other processes kept more than one core busy gives an error and no `headline.json`.

Solvers on files: `forcopt benchmark FOLDER --solvers highs,scip --seeds 3 --permutations 2 --out results`
ranks them by their own clocks; [docs/solvers.md](../docs/solvers.md) has the rules. No machine with a
graphics card was at hand: solvers for them, cuOpt and cuPDLPx, are not in the tables.
"""

OPTIONS_LIMIT = 10.0
"""Seconds for the model on which options are tried."""

FIRST = ("honesty", "solvers")
"""Headlines at the top of the page: what the library finds in solvers."""


def options() -> argparse.ArgumentParser:
    """The options of the command line."""
    made = argparse.ArgumentParser(
        "forcopt benchmark", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = made.add_argument
    add(
        "names",
        nargs="*",
        metavar="NAME",
        help="benchmarks; with --solvers a folder or metadata.yaml, and instances",
    )
    add("--quick", action="store_true", help="a short run; shown, not written")
    add("--list", action="store_true", dest="listed", help="list the benchmarks")
    add("--page", action="store_true", help="only write benchmarks/README.md anew")
    add("--quiet", action="store_true", help="a load below .5 before each, or none is run; below 1 during it")
    solvers = made.add_argument_group("solvers on files").add_argument
    solvers(
        "--solvers", "-b", metavar="A,B[OPTION=VALUE]", help="these, such as highs,scip,highs[presolve=off]"
    )
    solvers(
        "--tier", choices=("seconds", "minutes", "hour"), help="instances of benchmarks/instances/tiers.py"
    )
    solvers(
        "--list-of", metavar="LIST", help="of the folder only those of benchmarks/instances/lists/LIST.txt"
    )
    solvers("--seeds", type=_counted(1), default=1, help="how many seeds")
    solvers("--permutations", type=_counted(1), default=1, help="how many orders of rows and columns")
    solvers("--only", metavar="SEED,ORDER", help="only this variant")
    solvers(
        "--threads", type=_counted(0), default=1, help="of each solver, on as many cores; 0 leaves it to them"
    )
    solvers(
        "--options", action="append", default=[], metavar="SOLVER:OPTION=VALUE", help="of one of the solvers"
    )
    solvers("--time-limit", type=float, default=60.0, help="seconds for each run")
    solvers("--memory-limit", help="bytes for each run, such as '4 GB'")
    solvers("--certify", action="store_true", help="prove answers in exact arithmetic, too")
    solvers(
        "--store", type=Path, metavar="FILE.sqlite", help="keep each run; one that is there is not repeated"
    )
    solvers("--out", type=Path, metavar="FOLDER", help="for tables, pages and logs")
    solvers(
        "--against",
        type=Path,
        metavar="results.json",
        help="say what changed since; exit code 1 if it is worse",
    )
    return made


def _counted(least: int) -> Callable[[str], int]:
    """A reader of whole numbers for an option."""

    def read(text: str) -> int:
        if not text.strip().isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"it is {text!r}; it must be a whole number >= {least}")
        return int(text)

    return read


def main(arguments: Sequence[str], folder: Path = HERE, imports: Sequence[str] | None = None) -> int:
    """Run what the arguments ask for, and give the exit code.

    Parameters
    ----------
    arguments : Sequence[str]
        Of the command line.
    folder : Path, optional
        Of the benchmarks.
    imports : Sequence[str], optional
        What ``--import`` named before the command: the commands of rows name it again.

    Raises
    ------
    UnknownNameError
        For a benchmark, solver or option that does not exist.
    DeclarationError
        If the machine does not become quiet.
    """
    given = options().parse_args(arguments)
    if given.quiet:
        wait_until_quiet()
    return _solvers(given, folder, imports or ()) if given.solvers else _committed(given, folder)


def _committed(given: argparse.Namespace, folder: Path) -> int:
    found = {path.parent.name: path for path in sorted(folder.glob("*/run.py"))}
    for name in given.names:
        if name not in found:
            raise unknown("benchmark", name, list(found))
    if given.listed:
        print("\n".join(found))
        return 0
    failed = []
    for name in () if given.page else given.names or found:
        if given.quiet:
            wait_until_quiet()
        print(f"== {name}", file=sys.stderr, flush=True)
        if not _run(found[name], given.quick, given.quiet):
            failed.append(name)
    if not given.quick:
        record(folder)
        (folder / "README.md").write_text(readme(folder), encoding="utf-8")
    if failed:
        print(f"error: failed: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


def _run(script: Path, quick: bool, quiet: bool) -> bool:
    """Run a benchmark; the files of a short run are shown and thrown away."""
    variables = os.environ | ({QUIET_ASKED: "1"} if quiet else {})
    with TemporaryDirectory() as short:
        out = Path(short if quick else script.parent) / "results.md"
        command = [sys.executable, str(script), "--out", str(out), *(["--quick"] if quick else [])]
        ended = subprocess.run(command, check=False, env=variables).returncode
        for page in sorted(Path(short).glob("*.md")):
            print(page.read_text(encoding="utf-8"))
    return ended == 0


def readme(folder: Path) -> str:
    """The page of all headlines."""
    every = sorted(folder.glob("*/headline.json"), key=lambda p: (p.parent.name not in FIRST, p.parent.name))
    headlines = {path.parent.name: json.loads(path.read_text(encoding="utf-8")) for path in every}
    parts = ["# Benchmarks\n", "What was found; each line is the first row of a table below.\n"]
    for headline in headlines.values():
        first = headline["rows"][0]
        peers = "" if first["peers"] == "-" else f"; peers: {first['peers']}"
        parts.append(f"- {headline['title']}: {first['what']}: **{first['ours']}**{peers}")
    parts += ["", "![Seconds of one measurement of each benchmark, by day](history.svg)\n"]
    parts += [
        f"Over time, from [history.csv](history.csv); hollow: at a load above {QUIET:g}.\n",
        _INTRODUCTION,
    ]
    for name, headline in headlines.items():
        parts += [
            f"## {headline['title']}\n",
            f"{headline['conditions']} Details: [{name}/{headline['table']}]({name}/{headline['table']}).\n",
            "| measurement | ours | peers | ratio |\n|---|---|---|---|",
            *(f"| {r['what']} | {r['ours']} | {r['peers']} | {r['ratio']} |" for r in headline["rows"]),
            "",
        ]
    return "\n".join(parts)


def _solvers(given: argparse.Namespace, folder: Path, imports: Sequence[str]) -> int:
    from benchmarks.solvers.files import Chosen, choose, stem
    from benchmarks.solvers.report import Report, earlier
    from benchmarks.solvers.solve import solved_where_able
    from forcopt.study.comparison import Comparison
    from forcopt.study.solver_benchmark import SolverBenchmark, published, solver_benchmark

    names, load = list(given.names), now()
    source = _tier(given.tier, folder) if given.tier else None
    if source is None and names and (Path(names[0]).is_dir() or Path(names[0]).suffix in (".yaml", ".yml")):
        source = Path(names.pop(0))
    if source is None and names and stem(names[0]) != names[0]:
        name = Path(names[0])
        raise DeclarationError(f"{name} is no folder; write {name.parent} {stem(name.name)}")
    if given.list_of and source is None:
        raise DeclarationError(f"--list-of {given.list_of} needs a folder with the files")
    if source is not None and not source.exists():
        raise DeclarationError(f"there is no file {source}")
    if given.against is not None:
        earlier(given.against)  # refused before anything runs
    if given.out is not None and given.out.exists() and not given.out.is_dir():
        raise DeclarationError(f"--out is {given.out}, a file; it must be a folder")
    chosen = Chosen({}) if source is None else choose(source, given.list_of)
    for note in chosen.notes:
        print(note, file=sys.stderr)
    seeds, orders = _variant(given.only) if given.only else (given.seeds, given.permutations)
    how = {"seeds": seeds, "orders": orders, "threads": given.threads or None}
    how |= {name: getattr(given, name) for name in ("time_limit", "memory_limit", "certify", "store")}
    solvers = configured(given.solvers, given.options)
    check_options(solvers)
    if source is None:
        result = solver_benchmark(solvers, instances=names, **how)
    else:
        rows, problems = solved_where_able(solvers, chosen, names, how)
        known = published(source if source.is_dir() else source.parent)
        result = SolverBenchmark(Comparison(rows, problems), known, given.time_limit)
    report = Report(result, _again(given, source, imports), chosen, load)
    print(report.text())
    worse = False
    if given.against is not None:
        text, worse = report.against(given.against)
        print(text)
    if given.out is not None:
        report.write(given.out)
    return int(bool(result.wrong or report.failures or worse))


def _again(given: argparse.Namespace, source: Path | None, imports: Sequence[str]) -> str:
    """The command that makes a run again, with gaps for its instance, solver and variant."""
    words = ["forcopt", *(word for module in imports for word in ("--import", module)), "benchmark"]
    words += [str(source)] if source else []
    rest = ["--threads", str(given.threads), "--time-limit", f"{given.time_limit:g}"]
    rest += ["--memory-limit", given.memory_limit] if given.memory_limit else []
    rest += ["--certify"] if given.certify else []
    first, last = (shlex.join(part).replace("{", "{{").replace("}", "}}") for part in (words, rest))
    return f"{first} {{instance}} --solvers {{backend}} --only {{variant}} {last}"


def _tier(name: str, folder: Path) -> Path:
    models = folder / "instances" / "tiers" / name
    if not (models / "features.csv").exists():  # it is written last
        subprocess.run([sys.executable, str(folder / "instances" / "tiers.py"), "--write", name], check=True)
    committed = folder / "instances" / f"known-{name}.solu"  # of the tier as it is drawn everywhere
    if committed.exists():
        copy(committed, models / "known.solu")
    return models


def _variant(text: str) -> tuple[list[int], list[int]]:
    """One seed and one order."""
    parts = text.split(",")
    if len(parts) != 2 or not all(part.strip().isdecimal() for part in parts):
        raise DeclarationError(f"--only is {text!r}; it must be a seed and an order, such as 2,0")
    return [int(parts[0])], [int(parts[1])]


def configured(solvers: str, options: Sequence[str]) -> list[str]:
    """The solvers of a list, with their options.

    Raises
    ------
    UnknownNameError
        For options of a solver that is not in the list.

    Examples
    --------
    >>> configured("highs,scip,highs[presolve=off]", ["highs:simplex_scale_strategy=0", "highs:parallel=on"])
    ['highs[simplex_scale_strategy=0,parallel=on]', 'scip', 'highs[presolve=off]']
    """
    given = re.split(r",(?![^\[]*\])", solvers)
    found = list(given)
    for text in options:
        solver, _, setting = text.rpartition(":")
        own = given if solver in given else found  # as it was given, or with the options before this one
        if solver not in own:
            raise unknown("solver in --options", solver, given)
        for at, name in enumerate(own):
            if name == solver:
                more = found[at]
                found[at] = f"{more[:-1]},{setting}]" if more.endswith("]") else f"{more}[{setting}]"
    return found


def check_options(solvers: Sequence[str]) -> None:
    """Try solvers that have options on a model of two columns.

    Raises
    ------
    UnknownNameError
        For an option that a solver refuses.
    """
    for name in solvers:
        if not name.endswith("]"):
            continue
        m = fo.Model("options")
        x = m.variable("x", 2, lower=0, upper=1, integer=get_backend(name).capabilities.only_integer)
        m.subject_to(x.sum() >= 1)
        m.minimize(x[0] + 2 * x[1])
        try:
            m.solve(name, time_limit=OPTIONS_LIMIT)
        except BackendError as error:
            if "refuses" in str(error):
                raise UnknownNameError(f"solver {name!r}: {error}") from None


if __name__ == "__main__":
    try:
        raise SystemExit(main(sys.argv[1:]))
    except ForcoptError as error:
        raise SystemExit(f"error: {error}") from None
