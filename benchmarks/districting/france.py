"""All French departments with two or more districts, at 20, 10 and 5 %: optima, proofs, counts, seconds.

    python benchmarks/districting/france.py FOLDER [--tolerance 0.2] [--no-count] [--only 72 01]

FOLDER holds the departments' graphs, see `forcopt.data.load_graph`. Writes ``france-TOLERANCE.csv`` beside
this file. One process, one core; compilation (numba's cache) is warmed up before the clock starts.
"""

import argparse
import csv
import platform
import time
from pathlib import Path

from forcopt.data import grid, load_graph
from forcopt.models import Districting
from forcopt.models.districting.frontier import sweep_of

HERE = Path(__file__).parent


def timed(run):
    began = time.perf_counter()
    out = run()
    return out, time.perf_counter() - began


def instance(path, tolerance):
    graph = load_graph(path)
    return Districting(graph, graph.graph["districts"], tolerance=tolerance)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tolerance", type=float, default=0.2)
    parser.add_argument("--no-count", action="store_true")
    parser.add_argument("--only", nargs="*", default=[])
    args = parser.parse_args()
    warm = Districting(grid(5, 5), 5, bounds=(4, 6))
    for method in ("set-partitioning", "frontier"):
        warm.solve(method)
    warm.count(max_cost=17).total  # noqa: B018
    rows = []
    for path in sorted(args.folder.glob("*.json")):
        p = instance(path, args.tolerance)
        if p.districts < 2 or (args.only and path.stem not in args.only):
            continue
        cover, cover_seconds = timed(lambda: p.solve("set-partitioning"))  # noqa: B023
        sweep = sweep_of(p)
        states, dp_seconds = timed(lambda: p.solve("frontier"))  # noqa: B023
        assert (states.status, str(states.objective)) == (cover.status, str(cover.objective)), path
        row = {
            "department": path.stem, "tolerance": args.tolerance, "nodes": len(p.nodes),
            "edges": len(p.arrays.edges), "districts": p.districts, "frontier": sweep.width,
            "status": str(cover.status), "optimum": "" if cover.decision is None else int(cover.objective),
            "set-partitioning s": f"{cover_seconds:.4f}", "frontier s": f"{dp_seconds:.4f}",
            "plans": "", "count s": "",
        }  # fmt: skip
        if not args.no_count:
            total, seconds = timed(lambda: p.count().total)  # noqa: B023
            row |= {"plans": total, "count s": f"{seconds:.3f}"}
            assert (total == 0) == (cover.decision is None)
        rows.append(row)
        print(*row.values(), flush=True)
    suffix = f"{args.tolerance * 100:g}"
    with (HERE / f"france-{suffix}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    for column in ("set-partitioning s", "frontier s", "count s"):
        print(column, round(sum(float(r[column] or 0) for r in rows), 2))
    print(platform.python_version(), platform.machine(), platform.processor())


if __name__ == "__main__":
    main()
