"""US counties within 0.5 % of the mean: proven optima and seconds, beside published Gurobi times.

    python benchmarks/districting/us.py FOLDER [--states ME NM] [--time-limit 300]

FOLDER holds ``ST-county.json``. Appends to ``us.csv`` beside this file, a row as it is done. One process,
one core; compilation is warmed up first. The Gurobi times are those that Validi and Buchanan report (best
formulation of six, 2021 desktop).
"""

import argparse
import csv
import time
from pathlib import Path

from forcopt.data import grid, load_graph
from forcopt.models import Districting

HERE = Path(__file__).parent
KNOWN = {"ME": 16, "NM": 17, "ID": 10, "WV": 23, "LA": 49, "AL": 55, "AR": 33, "OK": 40}
GUROBI = {"ME": 0.09, "NM": 0.06, "ID": 0.05, "WV": 1.03, "LA": 91.5, "AL": 956, "AR": 23.5, "OK": 4.1}

COLUMNS = (
    *("state", "nodes", "districts", "method", "status", "objective", "bound", "known"),
    *("seconds", "cpu s", "gurobi s"),
)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--states", nargs="*", default=list(KNOWN))
    parser.add_argument("--method", default="portfolio")
    parser.add_argument("--time-limit", type=float, default=300)
    args = parser.parse_args()
    Districting(grid(5, 5), 5, bounds=(4, 6)).solve("frontier")
    for method in ("set-partitioning", "column-generation"):
        Districting(grid(5, 5), 5, bounds=(4, 6)).solve(method)
    path = HERE / "us.csv"
    fresh = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file)
        if fresh:
            writer.writerow(COLUMNS)
        for state in args.states:
            graph = load_graph(args.folder / f"{state}-county.json")
            p = Districting(graph, graph.graph["districts"], tolerance=0.005)
            began, cpu_began = time.perf_counter(), time.process_time()
            s = p.solve(args.method, time_limit=args.time_limit)
            seconds, cpu = time.perf_counter() - began, time.process_time() - cpu_began
            row = [
                state,
                len(p.nodes),
                p.districts,
                args.method,
                str(s.status),
                s.objective,
                s.bound,
                KNOWN[state],
            ]
            row += [f"{seconds:.3f}", f"{cpu:.3f}", GUROBI[state]]
            writer.writerow(row)
            file.flush()
            print(*row, flush=True)
            assert s.status != "optimal" or s.objective == KNOWN[state]


if __name__ == "__main__":
    main()
