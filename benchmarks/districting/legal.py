"""Maps under legal rules and graphs with many districts: what a minute gives, beside the figure aimed at.

A district of Alabama's with a Black majority, none of Louisiana's, whole counties in Utah, and four generated
graphs. Populations are those of 2010; a share is of all inhabitants.
"""

import random
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.districting.journal import Journal
from benchmarks.report import data
from forcopt.data import delaunay, load_graph
from forcopt.models import Districting
from forcopt.models.districting import Share

LIMIT, QUICK, CHECK = 60.0, 5.0, 60.0
"""Seconds for an instance, for one with ``--quick``, and for the check of a proof."""

MAJORITY = Share(attribute="black", total="population", at_least=0.5)


def majority(name: str, districts: int) -> Districting:
    """Counties within 2 % of the mean, one district with a Black majority."""
    graph = load_graph(data(f"us/{name}.json"))
    return Districting(graph, districts, tolerance=0.02, side_constraints=[MAJORITY])


def utah() -> Districting:
    """Utah's tracts within 0.5 % of the mean; counties are split as few times as possible."""
    graph = load_graph(data("us/UT-tract.json"))
    for v in graph:
        graph.nodes[v]["county"] = str(v)[:5]
    return Districting(graph, graph.graph["districts"], tolerance=0.005, objective="splits")


def generated(nodes: int, districts: int, tolerance: float, seed: int, even: bool) -> Districting:
    """A Delaunay graph, of populations from 20 to 400 unless they are even."""
    rng, graph = random.Random(seed), delaunay(nodes, seed)
    for v in () if even else graph:
        graph.nodes[v]["population"] = rng.randint(20, 400)
    return Districting(graph, districts, tolerance=tolerance)


INSTANCES: dict[str, tuple[Callable[[], Districting], str]] = {
    "Louisiana, parishes, one majority": (lambda: majority("LA-county", 6), "infeasible, with a proof"),
    "Alabama, counties, one majority": (lambda: majority("AL-county", 7), "cut <= 79, with a bound"),
    "Utah, tracts, fewest splits": (utah, "splits <= 3, bound > 0, cut <= 89"),
    "Delaunay, 150 nodes in 10": (lambda: generated(150, 10, 0.01, 1, False), "cut <= 84"),
    "Delaunay, 200 nodes in 8": (lambda: generated(200, 8, 0.01, 2, False), "cut <= 85"),
    "Delaunay, 300 nodes in 12": (lambda: generated(300, 12, 0.01, 3, False), "cut <= 130"),
    "Delaunay, 200 nodes in 10, even": (lambda: generated(200, 10, 0.01, 4, True), "-"),
}
"""How each is made, and what was aimed at."""


def main(folder: Path, quick: bool) -> list[Journal]:
    journal, limit = Journal(folder, "legal", "instance"), QUICK if quick else LIMIT
    for name in list(INSTANCES)[: 4 if quick else None]:
        if (name,) in journal:
            continue
        make, goal = INSTANCES[name]
        p = make()
        began, cpu = time.perf_counter(), time.process_time()
        s = p.solve(time_limit=limit, seed=1)
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        found, checked = s.decision is not None, ""
        if s.proof is not None:
            proof = s.certify(time_limit=CHECK)
            checked = "yes" if proof.optimal or proof.feasible is False else "no"
        row = {"instance": name, "nodes": len(p.nodes), "districts": p.districts, "status": s.status}
        row |= {"objective": s.objective if found else "", "bound": s.bound if found else ""}
        row |= {"cut edges": s.evaluation.metrics["cut_edges"] if found else "", "aimed at": goal}
        row |= {"reason": s.reason if s.status == "infeasible" else "", "proof checked": checked}
        journal.add(row | {"limit": limit, "seconds": f"{seconds:.1f}", "cpu s": f"{cpu:.1f}"})
    return [journal]
