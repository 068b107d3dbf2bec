"""Formulations on backends: seconds to build, size, linear bound, seconds to solve.

All formulations on all backends on twelve generated instances (``formulations.csv``), and three formulations
on HiGHS on the forty smallest French departments at 20 % (``formulations-france.csv``).
"""

import time
from pathlib import Path

from benchmarks.districting.journal import Journal
from benchmarks.report import data, progress
from forcopt.data import delaunay, grid, load_graph
from forcopt.errors import UnsupportedError
from forcopt.models import Districting

BACKENDS = ["highs", "scip", "cp-sat"]
FORMULATIONS = ["flow", "flow-per-district", "shirabe", "labels-separators"]
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
    row = {"formulation": formulation, "backend": backend, "build s": f"{build:.3f}"}
    row |= {"rows": highs.getNumRow(), "columns": highs.getNumCol(), "nonzeros": highs.getNumNz()}
    row["linear bound"] = f"{linear_bound(model):.4f}"
    began, cpu = time.perf_counter(), time.process_time()
    s = p.solve(formulation, backend=backend, time_limit=time_limit)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    row |= {"status": s.status, "objective": s.objective, "bound": s.bound}
    return row | {"seconds": f"{seconds:.2f}", "cpu s": f"{cpu:.2f}"}


def run(journal, instances, formulations, backends, time_limit):
    for name, make in instances.items():
        p = make()
        optimum = p.solve("set-partitioning").objective
        for formulation in formulations:
            for backend in backends:
                if (name, formulation, backend) in journal:
                    continue
                try:
                    row = measured(p, formulation, backend, time_limit)
                except UnsupportedError as said:
                    progress(name, formulation, backend, said)
                    continue
                assert row["status"] != "optimal" or row["objective"] == optimum, (name, row)
                of = {"instance": name, "nodes": len(p.nodes), "edges": len(p.arrays.edges)}
                journal.add(of | {"districts": p.districts} | row)


def main(folder: Path, quick: bool) -> list[Journal]:
    chosen = {k: INSTANCES[k] for k in ("grid 3x4", "S21 10 %")} if quick else INSTANCES
    generated = Journal(folder, "formulations", "instance", "formulation", "backend")
    run(generated, chosen, FORMULATIONS, BACKENDS[: 1 if quick else None], time_limit=15)
    graphs = [(path.stem, load_graph(path)) for path in data("france").glob("*.json")]
    graphs = sorted((len(g), name, g) for name, g in graphs if g.graph["districts"] > 1)[: 3 if quick else 40]
    departments = {
        name: lambda g=g: Districting(g, g.graph["districts"], tolerance=0.2) for _, name, g in graphs
    }
    france = Journal(folder, "formulations-france", "instance", "formulation", "backend")
    run(france, departments, ["flow", "labels-separators"], ["highs"], time_limit=60)
    return [generated, france]
