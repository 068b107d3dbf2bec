"""Linear and integer programs with published optima, from a folder of one's own, on all backends; and proofs.

    python benchmarks/netlib/run.py --out benchmarks/netlib/results.md --folder ~/netlib

The folder holds ``.mps`` files (netlib's are at https://www.netlib.org/lp, MIPLIB's at
https://miplib.zib.de), and a ``.solu`` file with lines such as ``=opt= afiro -464.75314286``. Each file is
read by `fo.read` and solved by every backend; the table gives the relative error of each. HiGHS's solution is
certified with ``decimals=True``: the numbers of a file count as the decimals that it prints. Rows that are
finished stand in ``rows.json`` beside the page and are not run again. Seconds are CPU seconds of one thread.
``--quick`` takes the five smallest files.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("OMP_NUM_THREADS", "1")

from benchmarks.report import Page, data, parser, progress, row, table

LINEAR, INTEGER = ("highs", "clarabel", "glop"), ("highs", "scip")
TOLERANCE = 1e-6


def work(path: str, tasks: list[str], limit: float) -> None:
    """Print a line of JSON for the size, and for every task: a backend's answer, or the certificate."""
    import forcopt as fo

    warnings.simplefilter("ignore")
    model = fo.read(path)
    integer = bool((model.columns().integer == 1).any())
    print(
        json.dumps({"rows": model.row_count, "columns": model.column_count, "integer": integer}), flush=True
    )
    last = None
    for task in tasks:
        if task != "certify" and task not in (INTEGER if integer else LINEAR):
            continue
        began = time.process_time()
        found: dict[str, Any] = {}
        try:
            if task == "certify":
                assert last is not None
                c = last.certify(decimals=True)
                known = {"value": c.objective, "bound": c.bound}
                found = {
                    name: None if v is None else v.numerator / v.denominator for name, v in known.items()
                }
                found |= {"optimal": c.optimal, "how": c.how}
            else:
                s = model.solve(task, time_limit=limit)
                found = {"status": str(s.status), "objective": s.objective, "message": s.message}
                last = s if task == "highs" else last
        except Exception as error:
            found = {
                "status": f"raised {type(error).__name__}",
                "message": str(error),
                "objective": float("nan"),
            }
        print(json.dumps({task: found | {"seconds": time.process_time() - began}}), flush=True)


def run(path: Path, limit: float, wall: float) -> dict[str, Any]:
    """All facts about a file; a process that takes longer than `wall` is ended."""
    out: dict[str, Any] = {"name": path.name.partition(".")[0]}
    # highspy and OR-Tools do not share a process.
    for tasks in (["highs", "clarabel", "scip", "certify"], ["glop"]):
        command = [
            sys.executable,
            __file__,
            "--out",
            os.devnull,
            "--work",
            str(path),
            ",".join(tasks),
            str(limit),
        ]
        try:
            lines = subprocess.run(command, capture_output=True, text=True, timeout=wall, check=False).stdout
        except subprocess.TimeoutExpired as late:
            lines = late.stdout.decode() if isinstance(late.stdout, bytes) else late.stdout or ""
        for line in lines.splitlines():
            if line.startswith("{"):
                out |= json.loads(line)
    return out


def published(folder: Path) -> dict[str, float]:
    """The optima in the ``.solu`` files of a folder."""
    from forcopt.study.solver_benchmark import published

    return {name: known.objective for name, known in published(folder).items()}


def error(found: float, true: float) -> float:
    """The relative error."""
    return abs(found - true) / max(1.0, abs(true))


def judged(r: dict[str, Any], known: dict[str, float]) -> tuple[dict[str, str], str, bool]:
    """The answers of the backends and the proof in words, and whether an accepted optimum is wrong."""
    c = r.get("certify", {})
    true = c["value"] if c.get("optimal") else known.get(r["name"], float("nan"))
    cells, wrong = {}, False
    for backend in ("highs", "clarabel", "glop", "scip"):
        s = r.get(backend)
        if s is None:
            cells[backend] = "-" if backend in (INTEGER if r.get("integer") else LINEAR) else ""
            continue
        by = (
            s["message"].rpartition("solved again by ")[2].partition(":")[0]
            if "again by" in s["message"]
            else ""
        )
        off = error(s["objective"], true)
        wrong |= s["status"] == "optimal" and off > TOLERANCE
        words = f"{off:.0e}" if s["status"] == "optimal" else s["status"]
        cells[backend] = f"{words}, {s['seconds']:.2f} s" + (f", by {by}" if by else "")
    if c.get("optimal"):
        proof = f"yes, {c['seconds']:.1f} s"
    elif c:
        proof = f"no: {c.get('how', c.get('message', '')).partition(';')[0]}, {c['seconds']:.1f} s"
    else:
        proof = "no: not in time"
    return cells, proof, wrong


def main() -> None:
    """Run every file that has no row yet, and write the page."""
    options = parser(__doc__)
    options.add_argument("--folder", type=Path, help="of .mps files; ../shared/data/netlib if left out")
    options.add_argument("--time-limit", type=float, default=300.0, help="seconds for each backend")
    options.add_argument("--wall", type=float, default=1200.0, help="seconds for a file, with its proof")
    options.add_argument("--work", nargs=3, help="used by the processes that this starts")
    given = options.parse_args()
    if given.work:
        work(given.work[0], given.work[1].split(","), float(given.work[2]))
        return
    folder = given.folder or data("netlib")
    files = sorted((p for p in folder.iterdir() if ".mps" in p.name), key=lambda p: p.stat().st_size)
    page = Page("Published optima", given.out, "forcopt", "highspy", "ortools", "clarabel")
    known, store = published(folder), given.out.with_name("rows.json")
    rows = [json.loads(line) for line in store.read_text().splitlines()] if store.exists() else []
    done = {r["name"] for r in rows}
    for path in files[:5] if given.quick else files:
        if path.name.partition(".")[0] not in done:
            rows.append(run(path, given.time_limit, given.wall))
            progress(rows[-1]["name"])
            store.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
            write(page, rows, known)
    write(page, rows, known)


def write(page: Page, rows: list[dict[str, Any]], known: dict[str, float]) -> None:
    """Write the table of all rows and the headline."""
    lines, wrong, misprinted = [], [], []
    for r in sorted(rows, key=lambda r: r["name"]):
        cells, proof, bad = judged(r, known)
        wrong += [r["name"]] if bad else []
        given, c = known.get(r["name"], float("nan")), r.get("certify", {})
        if c.get("optimal") and error(given, c["value"]) > TOLERANCE:
            misprinted.append(f"{r['name']} {given:.11g} (proved: {c['value']:.11g})")
        size = (r.get("rows", "-"), r.get("columns", "-"))
        lines.append((r["name"], *size, f"{given:.11g}", *cells.values(), proof))
    proved = sum(bool(r.get("certify", {}).get("optimal")) for r in rows)
    head = (
        f"{len(rows)} programs; {proved} optima proved in rational arithmetic; {len(wrong)} accepted optima "
        f"off by more than {TOLERANCE:g}{': ' if wrong else ''}{', '.join(wrong)}. Each cell of a backend "
        "holds the relative error and the CPU seconds. The error is relative to the proved optimum, or to "
        "the published optimum if none is proved. `by` names the solver of a second solve."
    )
    if misprinted:
        head += f" Published optima off by more than {TOLERANCE:g}: {', '.join(misprinted)}."
    columns = ["program", "rows", "columns", "published", "highs", "clarabel", "glop", "scip", "proved"]
    page.write(f"{head}\n\n{table(columns, lines)}")
    page.headline(
        [
            row(f"{len(rows)} programs with published optima: proved exactly", str(proved)),
            row("accepted optima off by more than 1e-6", str(len(wrong))),
        ]
    )


if __name__ == "__main__":
    main()
