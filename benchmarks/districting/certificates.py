"""The stored certificates, checked by code that shares nothing with the search."""

import time
from pathlib import Path

from benchmarks.districting.journal import Journal
from benchmarks.report import data
from forcopt.data import load_graph
from forcopt.models import Districting
from forcopt.models.districting import BoundCertificate


def main(folder: Path, quick: bool) -> list[Journal]:
    journal = Journal(folder, "certificates", "graph")
    for name, proof in list(BoundCertificate.stored().items())[: 1 if quick else None]:
        if (name,) in journal:
            continue
        graph = load_graph(data(f"us/{name}.json"))
        p = Districting(graph, graph.graph["districts"], tolerance=0.005)
        cpu, steps = time.process_time(), []
        found = proof.check(p, on_step=steps.append)
        cpu = time.process_time() - cpu
        assert found.optimal, (name, found.how)
        row = {"graph": name, "nodes": len(p.nodes), "districts": p.districts}
        row |= {"plan": found.objective, "bound": found.bound}
        row |= {
            f"{kind} complement": steps[i].split()[0] for i, kind in enumerate(("connected", "disconnected"))
        }
        journal.add(row | {"cpu s": f"{cpu:.1f}"})
    return [journal]
