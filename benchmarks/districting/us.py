"""US counties and tracts within 0.5 % of the mean: proven optima, seconds, and those published of Gurobi."""

import time
from pathlib import Path

from benchmarks.districting.journal import Journal
from benchmarks.report import data
from forcopt.data import load_graph
from forcopt.models import Districting

LIMIT, WARM = 4000.0, 10.0
"""Seconds for a solve, and for the one before it, which is not timed."""

PUBLISHED = {
    "ME-county": (16, 0.09),
    "NM-county": (17, 0.06),
    "ID-county": (10, 0.05),
    "WV-county": (23, 1.03),
    "LA-county": (49, 91.5),
    "AL-county": (55, 956),
    "AR-county": (33, 23.5),
    "OK-county": (40, 4.1),
    "NH-tract": (26, 2.8),
    "ME-tract": (20, 1.3),
    "ID-tract": (17, 1.0),
    "NE-tract": (44, 131),
    "UT-tract": (None, None),
    "AR-tract": (None, None),
}
"""The optimum, and the seconds of Gurobi, that Validi and Buchanan report in "Political districting to
minimize cut edges": the best formulation of six, on a desktop of 2021. None: open
after an hour, with bounds of 66 and 79 (UT) and of 40 and 70 (AR)."""


def methods(name: str) -> list[str]:
    """What is tried: enumeration only where districts are few, columns only where they are small."""
    few = name in ("ME-county", "NM-county", "ID-county", "WV-county")
    small = name not in ("UT-tract", "AR-tract")
    return ["portfolio", *["column-generation"] * small, *["set-partitioning"] * few]


def main(folder: Path, quick: bool) -> list[Journal]:
    journal = Journal(folder, "us", "graph", "method")
    for name in list(PUBLISHED)[: 2 if quick else None]:
        known, gurobi = PUBLISHED[name]
        graph = load_graph(data(f"us/{name}.json"))
        for method in methods(name):
            if (name, method) in journal:
                continue
            for limit in (WARM, LIMIT):  # what the first call prepares is not timed
                p = Districting(graph, graph.graph["districts"], tolerance=0.005)
                began, cpu = time.perf_counter(), time.process_time()
                s = p.solve(method, time_limit=limit)
                seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
            assert s.status != "optimal" or known is None or s.objective == known, name
            row = {"graph": name, "nodes": len(p.nodes), "districts": p.districts, "method": method}
            row |= {"status": s.status, "objective": s.objective, "bound": s.bound, "known": known}
            journal.add(row | {"seconds": f"{seconds:.3f}", "cpu s": f"{cpu:.3f}", "gurobi s": gurobi})
    return [journal]
