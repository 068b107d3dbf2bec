"""County clusterings of the states: most clusters, bounds and seconds, beside the published ones.

The instances are those of Shahmizad and Buchanan: congress (CD), senate (SS) and house (SH), with the bounds
on districts that they print; 2020 populations and county adjacencies come from the shared county graphs.
"""

import csv
import json
import time
from pathlib import Path

import networkx as nx

from benchmarks.districting.journal import Journal
from benchmarks.report import data
from forcopt.models import CountyClustering

LIMIT = 40.0
"""Seconds for an instance."""

CHECK = 10.0
"""Seconds for the check of its certificate."""


def instances() -> list[dict[str, str]]:
    """The rows of the published table whose state has a graph; those solved fastest first."""
    folder = data("counties")
    with (folder / "clusterings.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if (folder / f"{row['state']}.json").exists()]
    return sorted(rows, key=lambda row: float(row["published_seconds"]))


def problem(row: dict[str, str]) -> CountyClustering:
    facts = json.loads((data("counties") / f"{row['state']}.json").read_text())
    graph = nx.Graph()
    graph.add_nodes_from((node["id"], {"population": node["population"]}) for node in facts["nodes"])
    graph.add_edges_from((edge["source"], edge["target"]) for edge in facts["edges"])
    bounds = int(row["lower"]), int(row["upper"])
    return CountyClustering(graph, districts=int(row["districts"]), bounds=bounds)


def main(folder: Path, quick: bool) -> list[Journal]:
    journal = Journal(folder, "clusterings", "state", "chamber")
    for row in instances()[: 5 if quick else None]:
        if (row["state"], row["type"]) in journal:
            continue
        p = problem(row)
        began, cpu = time.perf_counter(), time.process_time()
        s = p.solve(time_limit=LIMIT, seed=1)
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        assert s.evaluation.feasible
        proved = s.proof is not None and s.status == "optimal" and s.certify(time_limit=CHECK).optimal
        found = {"state": row["state"], "chamber": row["type"], "counties": len(p.whole.nodes)}
        found |= {"districts": p.districts, "status": s.status, "clusters": int(s.objective)}
        found |= {"bound": int(s.bound), "certified": bool(proved), "seconds": f"{seconds:.2f}"}
        found |= {
            "cpu s": f"{cpu:.2f}",
            "published": row["clusters"],
            "published bound": row["clusters_bound"],
        }
        journal.add(found | {"published s": row["published_seconds"]})
    return [journal]
