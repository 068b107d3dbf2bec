"""Linear and integer programs with published optima, from a folder of one's own, on all backends; and proofs.

    python benchmarks/netlib/run.py --out benchmarks/netlib/results.md --archive scipy-1.17.1.tar.gz
    python benchmarks/netlib/run.py --out results.md --folder ~/netlib

SciPy's source archive holds netlib's linear programs with their optima (``pip download --no-deps --no-binary
scipy scipy==1.17.1`` fetches it); they are written as files into a folder beside it. A folder holds ``.mps``
files (MIPLIB's are at https://miplib.zib.de), and a ``.solu`` file with lines such as
``=opt= afiro -464.75314286``. Each file is
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
import tarfile
import time
import warnings
from io import BytesIO
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("OMP_NUM_THREADS", "1")

from benchmarks.report import Page, parser, progress, row, table

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
                found |= {"optimal": c.optimal, "feasible": c.feasible, "how": c.how}
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


def unpacked(archive: Path) -> Path:
    """Write the linear programs of SciPy's source archive, and their optima, into a folder beside it."""
    import numpy as np

    import forcopt as fo

    folder = archive.with_name("netlib")
    folder.mkdir(exist_ok=True)
    optima = []
    with tarfile.open(archive) as tar:
        for member in tar:
            where, _, file = member.name.rpartition("/")
            none = where.endswith("linprog_benchmark_files/infeasible")
            if not (none or where.endswith("linprog_benchmark_files")) or not file.endswith(".npz"):
                continue
            held = tar.extractfile(member)
            assert held is not None
            given = np.load(BytesIO(held.read()), allow_pickle=True)
            if "obj" not in given.files:
                continue
            name = file[:-4].lower().replace("_", "-")
            bounds = given["bounds"].reshape(-1, 2)
            low, high = (
                np.array([free if b is None else b for b in side], dtype=float)
                for side, free in zip(bounds.T, (-np.inf, np.inf), strict=True)
            )
            m = fo.Model(name)
            columns = len(given["c"])
            x = (
                m.variable("x", columns, lower=low, upper=high)
                if len(bounds)
                else m.variable("x", columns, lower=0)
            )
            m.subject_to(given["A_ub"] @ x <= given["b_ub"])
            m.subject_to(given["A_eq"] @ x == given["b_eq"])
            m.minimize(given["c"] @ x)
            m.write(folder / f"{name}.mps")
            optima.append(f"=inf= {name}\n" if none else f"=opt= {name} {float(given['obj'])!r}\n")
    (folder / "netlib.solu").write_text("".join(optima))
    return folder


def published(folder: Path) -> dict[str, float]:
    """The optima in the ``.solu`` files of a folder; infinite for a program without a point."""
    from forcopt.study.solver_benchmark import published

    return {
        name: float("inf") if known.status == "infeasible" else known.objective
        for name, known in published(folder).items()
    }


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
        none = c.get("feasible") is False or true == float("inf")
        wrong |= s["status"] == "optimal" and (none or off > TOLERANCE)
        wrong |= s["status"] == "infeasible" and not none
        words = f"{off:.0e}" if s["status"] == "optimal" else s["status"]
        cells[backend] = f"{words}, {s['seconds']:.2f} s" + (f", by {by}" if by else "")
    if c.get("optimal"):
        proof = f"yes, {c['seconds']:.1f} s"
    elif c.get("feasible") is False:
        proof = f"infeasible, {c['seconds']:.1f} s"
    elif c:
        proof = f"no: {c.get('how', c.get('message', '')).partition(';')[0]}, {c['seconds']:.1f} s"
    else:
        proof = "no: not in time"
    return cells, proof, wrong


def main() -> None:
    """Run every file that has no row yet, and write the page."""
    options = parser(__doc__)
    source = options.add_mutually_exclusive_group()
    source.add_argument("--folder", type=Path, help="of .mps files")
    source.add_argument("--archive", type=Path, help="SciPy's source archive")
    options.add_argument("--time-limit", type=float, default=300.0, help="seconds for each backend")
    options.add_argument("--wall", type=float, default=1200.0, help="seconds for a file, with its proof")
    options.add_argument("--work", nargs=3, help="used by the processes that this starts")
    given = options.parse_args()
    if given.work:
        work(given.work[0], given.work[1].split(","), float(given.work[2]))
        return
    if given.folder is None and given.archive is None:
        options.error("give --folder or --archive")
    folder = given.folder or unpacked(given.archive)
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
        shown = "infeasible" if given == float("inf") else f"{given:.11g}"
        lines.append((r["name"], *size, shown, *cells.values(), proof))
    proved = sum(bool(r.get("certify", {}).get("optimal")) for r in rows)
    none = sum(r.get("certify", {}).get("feasible") is False for r in rows)
    listed = f": {', '.join(wrong)}" if wrong else ""
    head = (
        f"{len(rows)} programs; {proved} optima and {none} infeasibilities proved in rational arithmetic; "
        f"{len(wrong)} accepted optima off by more than {TOLERANCE:g}, or wrong statuses{listed}. Each cell "
        "of a backend holds the relative error and the CPU seconds. The error is relative to the proved "
        "optimum, or to the published optimum if none is proved. `by` names the solver of a second solve."
    )
    if misprinted:
        head += f" Published optima off by more than {TOLERANCE:g}: {', '.join(misprinted)}."
    columns = ["program", "rows", "columns", "published", "highs", "clarabel", "glop", "scip", "proved"]
    page.write(f"{head}\n\n{table(columns, lines)}")
    page.headline(
        [
            row(f"{len(rows)} programs of netlib: optima and infeasibilities proved", f"{proved} and {none}"),
            row("accepted optima off by more than 1e-6, or wrong statuses", str(len(wrong))),
        ]
    )


if __name__ == "__main__":
    main()
