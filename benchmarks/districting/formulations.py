"""Formulations on backends: seconds to build, size, linear bound, seconds to solve; 12 fixed instances.

    python benchmarks/districting/formulations.py [--quick] [--time-limit 60] [--backends highs scip cp-sat]
    python benchmarks/districting/formulations.py --france FOLDER   # the 40 smallest departments at 20 %

Appends to ``formulations.csv`` (``formulations-france.csv``) beside this file, a row as it is done; rows that
are there are passed over. The instances are made by seeded generators. --quick takes the four smallest.
"""

import argparse
import csv
import time
from pathlib import Path

from forcopt.data import delaunay, grid, load_graph
from forcopt.errors import UnsupportedError
from forcopt.models import Districting

HERE = Path(__file__).parent
COLUMNS = ["instance", "nodes", "edges", "districts", "formulation", "backend", "build s", "rows", "columns"]
COLUMNS += ["nonzeros", "linear bound", "status", "objective", "bound", "seconds", "cpu s"]
FORMULATIONS = ["flow", "flow-per-district", "shirabe", "multicommodity", "separators", "labels-separators"]
S21 = [20000 + 7919 * (i + 1) ** 2 % 14001 for i in range(21)]
INSTANCES = {
    "grid 3x4": lambda: Districting(grid(3, 4), 3, tolerance=0),
    "delaunay 12": lambda: Districting(delaunay(12, 1), 3, tolerance=0.2),
    "grid 4x4": lambda: Districting(grid(4, 4), 4, tolerance=0),
    "delaunay 16": lambda: Districting(delaunay(16, 2), 3, tolerance=0.1),
    "S21 20 %": lambda: Districting(grid(3, 7, population=S21), 3, tolerance=0.2),
    "S21 10 %": lambda: Districting(grid(3, 7, population=S21), 3, tolerance=0.1),
    "S21 5 %": lambda: Districting(grid(3, 7, population=S21), 3, tolerance=0.05),
    "delaunay 20": lambda: Districting(delaunay(20, 3), 4, tolerance=0.1),
    "delaunay 24": lambda: Districting(delaunay(24, 4), 3, tolerance=0.05),
    "grid 5x5": lambda: Districting(grid(5, 5), 5, tolerance=0),
    "delaunay 30": lambda: Districting(delaunay(30, 5), 3, tolerance=0.05),
    "delaunay 30 in 5": lambda: Districting(delaunay(30, 6), 5, tolerance=0.1),
}


def linear_bound(model):
    """The optimum with all integers relaxed, before any lazy constraint."""
    highs = model.to_highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("solve_relaxation", True)
    highs.run()
    return highs.getInfo().objective_function_value


def measured(p, formulation, backend, time_limit):
    began = time.perf_counter()
    model = p.to_model(formulation)
    build = time.perf_counter() - began
    highs = model.to_highs()
    size = [highs.getNumRow(), highs.getNumCol(), highs.getNumNz()]
    bound = linear_bound(model)
    began, cpu = time.perf_counter(), time.process_time()
    s = p.solve(formulation, backend=backend, time_limit=time_limit)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    row = [formulation, backend, f"{build:.3f}", *size, f"{bound:.4f}", s.status, s.objective, s.bound]
    return [*row, f"{seconds:.2f}", f"{cpu:.2f}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--time-limit", type=float, default=60)
    parser.add_argument("--backends", nargs="*", default=["highs", "scip", "cp-sat"])
    parser.add_argument("--france", type=Path)
    args = parser.parse_args()
    path = HERE / ("formulations-france.csv" if args.france else "formulations.csv")
    instances = dict(list(INSTANCES.items())[: 4 if args.quick else None])
    if args.france:
        graphs = [(path.stem, load_graph(path)) for path in args.france.glob("*.json")]
        graphs = sorted((len(g), name, g) for name, g in graphs if g.graph["districts"] > 1)[:40]
        instances = {
            name: lambda g=g: Districting(g, g.graph["districts"], tolerance=0.2) for _, name, g in graphs
        }
    done = set()
    if path.exists():
        with path.open() as file:
            done = {(r["instance"], r["formulation"], r["backend"]) for r in csv.DictReader(file)}
    with path.open("a", newline="") as file:
        writer = csv.writer(file)
        if not done:
            writer.writerow(COLUMNS)
        for name, make in instances.items():
            p = make()
            optimum = p.solve("set-partitioning").objective
            for formulation in ["flow", "labels-separators", "separators"] if args.france else FORMULATIONS:
                for backend in ["highs"] if args.france else args.backends:
                    if (name, formulation, backend) in done:
                        continue
                    try:
                        row = measured(p, formulation, backend, args.time_limit)
                    except UnsupportedError as said:
                        print(name, formulation, backend, said)
                        continue
                    assert str(row[7]) != "optimal" or row[8] == optimum, (name, row)
                    row = [name, len(p.nodes), len(p.arrays.edges), p.districts, *row]
                    writer.writerow(row)
                    file.flush()
                    print(*row, flush=True)


if __name__ == "__main__":
    main()
