"""All French departments with two or more districts, at 20, 10 and 5 %: optima, proofs, counts, seconds."""

import time
from pathlib import Path

from benchmarks.districting.journal import Journal
from benchmarks.report import data
from forcopt.data import load_graph
from forcopt.models import Districting
from forcopt.models.districting.dynamic import sweep_of

TOLERANCES = (0.2, 0.1, 0.05)
QUICK = ("01", "72")


def timed(run):
    began = time.perf_counter()
    out = run()
    return out, time.perf_counter() - began


def measured(name, graph, tolerance):
    p = Districting(graph, graph.graph["districts"], tolerance=tolerance)
    cover, cover_seconds = timed(lambda: p.solve("set-partitioning"))
    states, seconds = timed(lambda: p.solve("frontier"))
    plans, counting = timed(lambda: p.count().total)
    cpu = time.process_time()
    cut, cut_seconds = timed(lambda: Districting(graph, p.districts, tolerance=tolerance).solve("sphere-cut"))
    cpu = time.process_time() - cpu
    for other in (states, cut):
        assert (other.status, str(other.objective)) == (cover.status, str(cover.objective)), name
    assert (plans == 0) == (cover.decision is None), name
    return {
        "department": name,
        "tolerance": tolerance,
        "nodes": len(p.nodes),
        "edges": len(p.arrays.edges),
        "districts": p.districts,
        "frontier": sweep_of(p).width,
        "status": cover.status,
        "optimum": "" if cover.decision is None else int(cover.objective),
        "set-partitioning s": f"{cover_seconds:.4f}",
        "frontier s": f"{seconds:.4f}",
        "plans": plans,
        "count s": f"{counting:.3f}",
        "sphere-cut s": f"{cut_seconds:.3f}",
        "sphere-cut cpu s": f"{cpu:.3f}",
    }


def main(folder: Path, quick: bool) -> list[Journal]:
    graphs = {path.stem: load_graph(path) for path in sorted(data("france").glob("*.json"))}
    journal = Journal(folder, "france", "department", "tolerance")
    for tolerance in TOLERANCES:
        for name, graph in graphs.items():
            few = graph.graph["districts"] < 2 or (quick and name not in QUICK)
            if not few and (name, tolerance) not in journal:
                journal.add(measured(name, graph, tolerance))
    return [journal]
