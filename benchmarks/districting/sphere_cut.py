"""Sphere-cut on all French departments at 20, 10 and 5 %: the optima of `france.py`, the seconds, the counts.

    python benchmarks/districting/sphere_cut.py FOLDER [--tolerance 0.2 ...] [--count 10000000] [--only 72 01]

FOLDER holds the departments' graphs. Appends to ``sphere-cut.csv`` beside this file, a row as it is done;
rows that are there are passed over. Plans are counted where ``france-*.csv`` says that there are at most so
many as `--count` allows. One process, one core; compilation (numba's cache) is warmed up first.
"""

import argparse
import csv
import time
from pathlib import Path

from forcopt.data import grid, load_graph
from forcopt.models import Districting
from forcopt.models.districting.sphere_cut import tables_of

HERE = Path(__file__).parent
COLUMNS = ["department", "tolerance", "nodes", "districts", "width", "status", "optimum", "seconds", "cpu s"]
COLUMNS += ["plans", "count cpu s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tolerance", type=float, nargs="*", default=[0.2, 0.1, 0.05])
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=[])
    args = parser.parse_args()
    warm = Districting(grid(5, 5), 5, bounds=(4, 6))
    assert warm.solve("sphere-cut").objective == min(warm.count(method="sphere-cut").histogram)
    path = HERE / "sphere-cut.csv"
    done = set()
    if path.exists():
        with path.open() as file:
            done = {(row["department"], float(row["tolerance"])) for row in csv.DictReader(file)}
    with path.open("a", newline="") as file:
        writer = csv.writer(file)
        if not done:
            writer.writerow(COLUMNS)
        for tolerance in args.tolerance:
            with (HERE / f"france-{tolerance * 100:g}.csv").open() as known:
                expected = {row["department"]: row for row in csv.DictReader(known)}
            for name, said in expected.items():
                if (name, tolerance) in done or (args.only and name not in args.only):
                    continue
                graph = load_graph(args.folder / f"{name}.json")
                p = Districting(graph, graph.graph["districts"], tolerance=tolerance)
                began, cpu = time.perf_counter(), time.process_time()
                s = p.solve("sphere-cut")
                seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
                optimum = "" if s.decision is None else int(s.objective)
                assert (str(s.status), str(optimum)) == (said["status"], said["optimum"]), name
                plans = counting = ""
                if int(said["plans"] or 0) <= args.count and args.count:
                    counting = time.process_time()
                    plans = p.count(method="sphere-cut").total
                    counting = f"{time.process_time() - counting:.3f}"
                    assert str(plans) == said["plans"], name
                width = tables_of(p).width if s.message == "" or plans != "" else ""
                row = [name, tolerance, len(p.nodes), p.districts, width, s.status, optimum]
                row += [f"{seconds:.3f}", f"{cpu:.3f}", plans, counting]
                writer.writerow(row)
                file.flush()
                print(*row, flush=True)


if __name__ == "__main__":
    main()
