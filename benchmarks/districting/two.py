"""All French departments in two districts: dual cycles against set partitioning and the frontier; counts."""

import time
from pathlib import Path

from benchmarks.districting.journal import Journal
from benchmarks.report import data
from forcopt.data import load_graph
from forcopt.models import Districting

TOLERANCES = (0.2, 0.1, 0.05)
_MORE = 2.0
"""Plans are counted up to this cost above the optimum."""
QUICK = ("01", "72")


def measured(name, graph, tolerance):
    seconds, answers = {}, {}
    for method in ("dual-cycles", "set-partitioning", "frontier"):
        p = Districting(graph, 2, tolerance=tolerance)
        began = time.process_time()
        s = p.solve(method)
        seconds[f"{method} cpu s"] = f"{time.process_time() - began:.4f}"
        answers[method] = (str(s.status), str(s.objective))
    assert len(set(answers.values())) == 1, (name, tolerance, answers)
    status, optimum = answers["dual-cycles"]
    most = _MORE + (float(optimum) if status == "optimal" else 0.0)
    counts = p.count(most)
    assert p.count(most, method="dual-cycles").histogram == counts.histogram, (name, tolerance)
    row = {"department": name, "tolerance": tolerance, "nodes": len(p.nodes), "status": status}
    return row | {"optimum": optimum, "plans near the optimum": counts.total} | seconds


def main(folder: Path, quick: bool) -> list[Journal]:
    journal = Journal(folder, "two", "department", "tolerance")
    for path in sorted(data("france").glob("*.json")):
        graph = load_graph(path)
        if graph.graph["districts"] < 2 or (quick and path.stem not in QUICK):
            continue
        for tolerance in TOLERANCES:
            if (path.stem, tolerance) not in journal:
                journal.add(measured(path.stem, graph, tolerance))
    return [journal]
