"""Sixty generated planar graphs: solved or not within the limit, the plan, the bound and the seconds."""

import time
from pathlib import Path

from benchmarks.districting.journal import Journal
from forcopt.data import delaunay
from forcopt.models import Districting

LIMIT = 60
NODES = (30, 60, 90, 120)
DISTRICTS = (2, 3, 4, 6, 8)
TOLERANCES = (0.1, 0.05, 0.01)


def main(folder: Path, quick: bool) -> list[Journal]:
    journal = Journal(folder, "planar", "nodes", "districts", "tolerance")
    for nodes in NODES[: 1 if quick else None]:
        for districts in DISTRICTS:
            for tolerance in TOLERANCES:
                if (nodes, districts, tolerance) in journal:
                    continue
                p = Districting(delaunay(nodes, seed=100 * nodes + districts), districts, tolerance=tolerance)
                began, cpu = time.perf_counter(), time.process_time()
                s = p.solve(time_limit=LIMIT)
                row = {"nodes": nodes, "districts": districts, "tolerance": tolerance, "limit": LIMIT}
                row |= {"status": s.status, "objective": s.objective, "bound": s.bound}
                row |= {"seconds": f"{time.perf_counter() - began:.3f}"}
                journal.add(row | {"cpu s": f"{time.process_time() - cpu:.3f}"})
    return [journal]
