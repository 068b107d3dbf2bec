"""Runs the model_build benchmark and writes a Markdown table and a JSON file.

    python benchmarks/model_build/run.py --out benchmarks/model_build/results.md

Every (library, case, repeat) runs in a fresh process. The clock covers building the model and handing it
over to HiGHS, which is not run; importing the library and reading the data are outside it. Memory is the
peak resident set of the process, given along with what it was just before the build. This file imports the
standard library only: a child process starts with the peak of its parent, which must therefore stay small.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.report import ROOT, Page, Row, parser, progress, row, table

Run = dict[str, Any]
Case = tuple[str, int]

REFERENCE = "raw_arrays"
LIBRARIES = {
    "raw_arrays": "raw arrays (numpy + `passModel`)",
    "raw_columns": "raw arrays, by columns (+ scipy)",
    "highs_lp": "highspy `HighsLp`",
    "forcopt": "forcopt",
    "linopy": "linopy",
    "linopy_sparse": "linopy, `sparse=True`",
    "pyoframe": "pyoframe",
    "pyoptinterface": "PyOptInterface",
    "cvxpy": "CVXPY",
    "highspy_model": "highspy, its modelling layer",
    "pyomo": "Pyomo, APPSI",
    "pyomo_lp": "Pyomo, LP file",
    "mathopt": "MathOpt, handed to its HiGHS",
    "mathopt_proto": "MathOpt, to protocol buffer",
}
CASES: tuple[Case, ...] = (
    ("dense", 100),
    ("dense", 300),
    ("dense", 1000),
    ("transport", 100_000),
    ("transport", 1_000_000),
    ("loop", 80_000),
    ("hess", 10),
    ("hess", 30),
    ("commitment", 100),
    ("network", 20_000),
    ("jobshop", 50),
)
CHECK_CASES: tuple[Case, ...] = (
    ("dense", 20),
    ("transport", 2000),
    ("loop", 2000),
    ("hess", 5),
    ("commitment", 3),
    ("network", 60),
    ("jobshop", 3),
)
USERS = ("commitment", "network", "jobshop")
"""Models as their users write them, see docs/howto/three_models.md.

The reference is forcopt, and a range of rows may be two rows.
"""
TITLES = {
    "dense": "Dense: two N x N variables, 2 N^2 rows, N = {size}",
    "transport": "Transport on sparse arcs, {size} arcs",
    "loop": "The same from dictionaries, a variable an arc and a sum a node, {size} arcs",
    "hess": "Hess districting model on a {size} x {size} grid",
    "commitment": "Unit commitment from a table of {size} plants, a week of hours",
    "network": "Two goods on a table of {size} arcs with prices to open",
    "jobshop": "A job shop of {size} jobs on ten machines, any two tasks of a machine apart",
}
PEERS = ("linopy", "pyoframe", "pyoptinterface", "cvxpy", "highspy_model", "pyomo", "mathopt")
"""Those that others would write models in."""
CHECKED = (
    "rows",
    "columns",
    "nonzeros",
    "integers",
    "sum_cost",
    "sum_coefficients",
    "sum_row_bounds",
    "objective",
)
START_LIMIT = 300.0  # seconds to import a library and to read the data


def generate(cases: Iterable[Case], folder: Path) -> dict[Case, Path]:
    """The data of the cases, written to files."""
    files = {}
    for name, size in cases:
        files[name, size] = folder / f"{name}-{size}.npz"
        command = [sys.executable, "-m", "benchmarks.model_build.instances", name, str(size)]
        subprocess.run([*command, str(files[name, size])], cwd=ROOT, check=True)
    return files


def measure(library: str, case: Case, data: Path, limit: float, check: bool = False) -> Run:
    """One run in a fresh process, given up after `limit` seconds of building."""
    name, size = case
    command = [sys.executable, "-m", "benchmarks.model_build.worker", library, name, str(data)]
    if check:
        command.append("--check")
    run: Run = {"library": library, "case": name, "size": size, "load": os.getloadavg()[0]}
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, bufsize=0)
        try:
            answer = _message(process, START_LIMIT)
            if answer is not None and answer["status"] == "ready":
                run["versions"] = answer["versions"]
                answer = _message(process, limit)
            if answer is None:
                answer = {"status": "timeout"}
        finally:
            process.kill()
            process.wait()
        if answer["status"] == "died":
            errors.seek(0)
            tail = errors.read().decode(errors="replace").strip().splitlines()[-1:]
            answer = {"status": "failed", "message": f"exit code {process.returncode}; {' '.join(tail)}"}
    return run | answer


def _message(process: subprocess.Popen[bytes], limit: float) -> Run | None:
    """The next line of a worker; None when it does not come in time."""
    stream = process.stdout
    assert stream is not None
    ready, _, _ = select.select([stream], [], [], limit)
    if not ready:
        return None
    line = stream.readline()
    if not line:
        process.wait()
        return {"status": "died"}
    message: Run = json.loads(line)
    return message


def run_all(libraries: list[str], files: dict[Case, Path], repeats: int, limit: float) -> list[Run]:
    """All runs, repeats outermost so that a passing load does not fall on one library alone."""
    runs: list[Run] = []
    slow: set[tuple[str, str]] = set()  # libraries past the limit, by model: larger sizes are not tried
    given_up: set[tuple[str, Case]] = set()
    for case, data in files.items():
        for repeat in range(repeats):
            for library in libraries:
                if (library, case) in given_up:
                    continue
                if (library, case[0]) in slow:
                    run: Run = {
                        "library": library,
                        "case": case[0],
                        "size": case[1],
                        "status": "too slow before",
                    }
                else:
                    run = measure(library, case, data, limit)
                run["repeat"] = repeat
                runs.append(run)
                _told(run, repeats)
                if run["status"] != "ok":
                    given_up.add((library, case))
                if run["status"] == "timeout":
                    slow.add((library, case[0]))
    return runs


def _told(run: Run, repeats: int) -> None:
    text = run["status"]
    if text == "ok":
        text = f"{run['seconds']:9.3f} s {run['peak_bytes'] / 2**20:9.0f} MiB"
    elif "message" in run:
        text += f": {run['message']}"
    where = f"{run['case']} {run['size']}"
    progress(f"{where:18} {run['repeat'] + 1}/{repeats} {run['library']:16} {text}")


def _reference(case: str) -> str:
    """The library with which the others are compared."""
    return "forcopt" if case in USERS else REFERENCE


def summarise(runs: list[Run]) -> list[Run]:
    """One entry per case and library: medians over the repeats, and ratios to the raw arrays."""
    groups: dict[tuple[str, int, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run["case"], run["size"], run["library"]), []).append(run)
    entries = []
    for (case, size, library), group in groups.items():
        done = [run for run in group if run["status"] == "ok"]
        entry: Run = {"case": case, "size": size, "library": library, "repeats": len(done)}
        if len(done) < len(group):
            entry["status"] = group[-1]["status"]
            entry["message"] = group[-1].get("message", "")
        else:
            seconds = [run["seconds"] for run in done]
            entry["status"] = "ok"
            entry["seconds"] = statistics.median(seconds)
            entry["seconds_min"], entry["seconds_max"] = min(seconds), max(seconds)
            entry["cpu_seconds"] = statistics.median(run["cpu_seconds"] for run in done)
            entry["peak_bytes"] = statistics.median(run["peak_bytes"] for run in done)
            entry["baseline_bytes"] = statistics.median(run["baseline_bytes"] for run in done)
            entry["build_bytes"] = statistics.median(
                run["peak_bytes"] - run["baseline_bytes"] for run in done
            )
            entry["rows"], entry["columns"] = done[0]["rows"], done[0]["columns"]
        entries.append(entry)
    references = {
        (e["case"], e["size"]): e
        for e in entries
        if e["library"] == _reference(e["case"]) and e["status"] == "ok"
    }
    for entry in entries:
        reference = references.get((entry["case"], entry["size"]))
        if entry["status"] == "ok" and reference is not None:
            entry["time_ratio"] = entry["seconds"] / reference["seconds"]
            entry["memory_ratio"] = entry["build_bytes"] / max(reference["build_bytes"], 1)
            ours, theirs = ((e["rows"], e["columns"]) for e in (entry, reference))
            entry["same_size"] = ours == theirs
    return entries


def report(entries: list[Run], repeats: int, limit: float) -> str:
    """The tables."""
    parts = [
        f"Median of {repeats} run(s), each in a fresh process. Time: to build the model and pass it to "
        "HiGHS, without imports, reading of data and solving. Memory: peak resident set. Baseline: resident "
        "set just before the build (interpreter, imported libraries, data). Build: peak minus baseline. "
        "Ratios are relative to the raw arrays, and for models of users to forcopt.\n"
    ]
    head = [
        "library",
        "time, s",
        "min to max",
        "time ratio",
        "peak, MiB",
        "baseline",
        "build",
        "memory ratio",
    ]
    for case, size in dict.fromkeys((entry["case"], entry["size"]) for entry in entries):
        group = [entry for entry in entries if (entry["case"], entry["size"]) == (case, size)]
        shape = next(
            (f"{e['rows']:,} rows, {e['columns']:,} columns\n" for e in group if e["status"] == "ok"), ""
        )
        rows = [_row(entry, limit) for entry in group if entry["status"] != "not written"]
        parts.append(f"## {TITLES[case].format(size=f'{size:,}')}\n\n{shape}\n{table(head, rows)}")
    return "\n".join(parts)


def _row(entry: Run, limit: float) -> list[str]:
    name = LIBRARIES[entry["library"]]
    if entry["status"] != "ok":
        reasons = {
            "timeout": f"> {limit:g} s, skipped",
            "too slow before": f"skipped: > {limit:g} s at a smaller size",
            "not installed": "not installed",
            "not written": "",
        }
        reason = reasons.get(entry["status"], f"failed: {entry.get('message', '')[:100]}".replace("|", "/"))
        return [name, reason, *[""] * 6]
    if not entry.get("same_size", True):
        name += f" (differs: {entry['rows']:,} rows, {entry['columns']:,} columns)"
    mib = [f"{entry[key] / 2**20:,.0f}" for key in ("peak_bytes", "baseline_bytes", "build_bytes")]
    ratios = [f"{entry[key]:.1f}" if key in entry else "" for key in ("time_ratio", "memory_ratio")]
    spread = f"{entry['seconds_min']:.3f} to {entry['seconds_max']:.3f}"
    return [name, f"{entry['seconds']:.3f}", spread, ratios[0], *mib, ratios[1]]


def check(libraries: list[str], files: dict[Case, Path], limit: float) -> int:
    """Build small instances with every library, solve each once and compare; the number of differences."""
    differences = 0
    for case, data in files.items():
        name = _reference(case[0])
        checked = ("objective",) if case[0] in USERS else CHECKED
        reference = measure(name, case, data, limit, check=True)
        if reference["status"] != "ok":
            print(f"{case[0]}: {name} {reference['status']}: {reference.get('message', '')}")
            differences += 1
            continue
        shown = ", ".join(f"{key} {reference[key]:.10g}" for key in checked)
        print(f"{case[0]} {case[1]}: {reference['model_status']}; {shown}", flush=True)
        for library in libraries:
            run = measure(library, case, data, limit, check=True)
            if run["status"] in ("not installed", "not written"):
                print(f"  {library:16} {run['status']}", flush=True)
                continue
            if run["status"] != "ok":
                text = f"{run['status']}: {run.get('message', '')}"
            else:
                text = ", ".join(
                    f"{key} is {run[key]:.10g}" for key in checked if not _close(run[key], reference[key])
                )
            differences += bool(text)
            print(f"  {library:16} {text or 'same'}", flush=True)
    return differences


def _close(a: float, b: float) -> bool:
    return abs(a - b) <= 1e-6 * max(1.0, abs(a), abs(b))


def _parse_case(text: str) -> list[Case]:
    name, _, size = text.partition(":")
    chosen = [(name, int(size))] if size else [case for case in CASES if case[0] == name]
    if name not in TITLES or not chosen:
        raise argparse.ArgumentTypeError(
            f"{text}: want one of {', '.join(TITLES)}, or for instance dense:200"
        )
    return chosen


def headlines(entries: list[Run], limit: float) -> list[Row]:
    """What the page of all benchmarks says: the largest size of each model."""
    largest = {e["case"]: max(f["size"] for f in entries if f["case"] == e["case"]) for e in entries}
    rows = []
    for case, size in largest.items():
        found = {e["library"]: e for e in entries if (e["case"], e["size"]) == (case, size)}
        ours, raw = found["forcopt"], found["raw_arrays"]
        arrays = f" (raw arrays {raw['seconds']:.3g} s)" if raw["status"] == "ok" else ""
        fit = [e for name, e in found.items() if name in PEERS and e["status"] == "ok"]
        peers = sorted((e["seconds"], LIBRARIES[e["library"]]) for e in fit)
        late = [LIBRARIES[n] for n in PEERS if n in found and found[n]["status"] == "timeout"]
        told = [f"{name} {seconds:.3g} s" for seconds, name in peers] + [f"{n} > {limit:g} s" for n in late]
        rows.append(
            row(
                f"{case}, {ours['rows']:,} rows, {ours['columns']:,} columns",
                f"{ours['seconds']:.3g} s{arrays}",
                ", ".join(told),
                ", ".join(f"{seconds / ours['seconds']:.1f}" for seconds, _ in peers),
            )
        )
    return rows


def main() -> int:
    """Command line."""
    options = parser(__doc__)
    options.add_argument("--repeats", type=int, default=3, help="runs of each library on each case (3)")
    options.add_argument("--limit", type=float, default=30.0, help="seconds until a run is given up (30)")
    options.add_argument("--libraries", nargs="+", choices=LIBRARIES, default=list(LIBRARIES))
    options.add_argument(
        "--cases",
        nargs="+",
        type=_parse_case,
        default=[list(CASES)],
        metavar="CASE",
        help="a model (all its sizes) or model:size, for instance: dense:300 hess",
    )
    options.add_argument(
        "--check", action="store_true", help="compare the models handed over, measure nothing"
    )
    given = options.parse_args()
    if given.quick:
        smallest: dict[str, Case] = {}
        for case in CASES:
            smallest.setdefault(case[0], case)
        given.cases, given.repeats = [list(smallest.values())], 1
    if given.check:
        with tempfile.TemporaryDirectory() as folder:
            files = generate(CHECK_CASES, Path(folder))
            differences = check(given.libraries, files, given.limit)
        print("all the same" if not differences else f"{differences} difference(s)")
        return 1 if differences else 0

    page = Page("Building a model and handing it over to HiGHS", given.out)
    with tempfile.TemporaryDirectory() as folder:
        files = generate([case for group in given.cases for case in group], Path(folder))
        runs = run_all(given.libraries, files, given.repeats, given.limit)
    for run in runs:
        page.versions |= run.get("versions", {})
    entries = summarise(runs)
    page.write(report(entries, given.repeats, given.limit))
    content = {"conditions": page.conditions(), "versions": page.versions, "limit_seconds": given.limit}
    told = json.dumps(content | {"summary": entries, "runs": runs}, indent=1)
    given.out.with_suffix(".json").write_text(told + "\n")
    if given.libraries == list(LIBRARIES):
        page.headline(headlines(entries, given.limit))
    return 0


if __name__ == "__main__":
    sys.exit(main())
