"""ReCom against the truth: its best plan after 1, 10 and 100 s, and its histogram of cut edges.

The optimum is by set partitioning and the histogram by counting, both exact: for each cut the share of all
plans and of the chain's steps.
"""

import time
from pathlib import Path

import numpy as np

from benchmarks.districting.formulations import S21
from benchmarks.districting.journal import Journal
from benchmarks.report import data
from forcopt.data import delaunay, grid, load_graph
from forcopt.models import Districting
from forcopt.models.districting import ReCom

INSTANCES = {
    "S21": lambda: Districting(grid(3, 7, population=S21), 3, tolerance=0.2),
    "grid 6x6": lambda: Districting(grid(6, 6), 4, tolerance=0.2),
    "delaunay 30": lambda: Districting(delaunay(30, 5), 3, tolerance=0.2),
    "delaunay 30 in 5": lambda: Districting(delaunay(30, 6), 5, tolerance=0.2),
    "New Mexico, counties": lambda: Districting(load_graph(data("us/NM-county.json")), 3, tolerance=0.005),
    "Idaho, counties": lambda: Districting(load_graph(data("us/ID-county.json")), 2, tolerance=0.005),
    "West Virginia, counties": lambda: Districting(load_graph(data("us/WV-county.json")), 3, tolerance=0.005),
}


def run_chain(p, start, marks, rng):
    """The best cut at each of the marks (seconds), and how often each cut was met."""
    best, seen, rows = np.inf, {}, []
    began = time.perf_counter()
    left = list(marks)
    chain, steps = ReCom(p, start, rng), 0
    while left:
        steps += chain.run(1)
        cut = chain.cut_edges
        seen[cut] = seen.get(cut, 0) + 1
        best = min(best, cut)
        while left and time.perf_counter() - began > left[0]:
            rows.append((left.pop(0), steps, best))
    return rows, seen


def main(folder: Path, quick: bool) -> list[Journal]:
    marks = (0.1, 0.5) if quick else (1, 10, 100)
    histogram = Journal(folder, "recom-histogram", "instance", "cut")
    best = Journal(folder, "recom", "instance", "seconds")
    for name in list(INSTANCES)[: 1 if quick else None]:
        if (name, marks[-1]) in best:
            continue
        p = INSTANCES[name]()
        optimum = int(p.solve("set-partitioning").objective)
        plans = p.count()
        counts, rng = plans.histogram, np.random.default_rng(1)
        (start,) = plans.sample(cost=max(counts, key=counts.get), seed=rng)  # a plan of the commonest cut
        rows, seen = run_chain(p, start, marks, rng)
        total, visits = sum(counts.values()), sum(seen.values())
        assert set(seen) <= set(counts)
        for cut, count in counts.items():
            if (name, cut) not in histogram:
                row = {"instance": name, "cut": cut, "plans": count, "share of plans": f"{count / total:.5f}"}
                histogram.add(row | {"share of chain": f"{seen.get(cut, 0) / visits:.5f}"})
        for seconds, steps, found in rows:
            row = {"instance": name, "nodes": len(p.nodes), "districts": p.districts, "optimum": optimum}
            best.add(row | {"seconds": seconds, "steps": steps, "best": found})
    return [histogram, best]
