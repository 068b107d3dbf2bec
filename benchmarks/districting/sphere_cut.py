"""Sphere-cut on all French departments at 20, 10 and 5 %, which must find what ``france.csv`` says."""

import time
from pathlib import Path

from benchmarks.districting.journal import Journal, read
from benchmarks.report import data
from forcopt.data import load_graph
from forcopt.models import Districting
from forcopt.models.districting.sphere_cut import tables_of


def main(folder: Path, quick: bool) -> None:
    known = read(folder, "france")
    if not known:
        raise SystemExit("error: sphere_cut is checked against france.csv: run france before")
    with Journal(folder, "sphere-cut", "department", "tolerance") as journal:
        for said in known:
            name, tolerance = said["department"], float(said["tolerance"])
            if (name, tolerance) in journal:
                continue
            graph = load_graph(data(f"france/{name}.json"))
            p = Districting(graph, graph.graph["districts"], tolerance=tolerance)
            began, cpu = time.perf_counter(), time.process_time()
            s = p.solve("sphere-cut")
            seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
            optimum = "" if s.decision is None else int(s.objective)
            assert (str(s.status), str(optimum)) == (said["status"], said["optimum"]), name
            row = {"department": name, "tolerance": tolerance, "nodes": len(p.nodes)}
            row |= {"districts": p.districts, "width": tables_of(p).width if s.message == "" else ""}
            row |= {"status": s.status, "optimum": optimum, "seconds": f"{seconds:.3f}"}
            journal.add(row | {"cpu s": f"{cpu:.3f}"})
