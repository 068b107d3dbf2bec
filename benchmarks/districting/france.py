"""All French departments with two or more districts, at 20, 10 and 5 %: optima, proofs, counts, seconds."""

import time
from pathlib import Path

from benchmarks.districting.journal import Journal
from benchmarks.report import data
from forcopt.data import load_graph
from forcopt.models import Districting
from forcopt.models.districting.frontier import sweep_of

TOLERANCES = (0.2, 0.1, 0.05)
QUICK = ("01", "72")


def timed(run):
    began = time.perf_counter()
    out = run()
    return out, time.perf_counter() - began


def main(folder: Path, quick: bool) -> None:
    graphs = {path.stem: load_graph(path) for path in sorted(data("france").glob("*.json"))}
    with Journal(folder, "france", "department", "tolerance") as journal:
        for tolerance in TOLERANCES:
            for name, graph in graphs.items():
                districts = graph.graph["districts"]
                if (name, tolerance) in journal or districts < 2 or (quick and name not in QUICK):
                    continue
                p = Districting(graph, districts, tolerance=tolerance)
                cover, cover_seconds = timed(lambda: p.solve("set-partitioning"))  # noqa: B023
                states, seconds = timed(lambda: p.solve("frontier"))  # noqa: B023
                assert (states.status, str(states.objective)) == (cover.status, str(cover.objective)), name
                plans, counting = timed(lambda: p.count().total)  # noqa: B023
                assert (plans == 0) == (cover.decision is None), name
                journal.add(
                    {
                        "department": name,
                        "tolerance": tolerance,
                        "nodes": len(p.nodes),
                        "edges": len(p.arrays.edges),
                        "districts": districts,
                        "frontier": sweep_of(p).width,
                        "status": cover.status,
                        "optimum": "" if cover.decision is None else int(cover.objective),
                        "set-partitioning s": f"{cover_seconds:.4f}",
                        "frontier s": f"{seconds:.4f}",
                        "plans": plans,
                        "count s": f"{counting:.3f}",
                    }
                )
