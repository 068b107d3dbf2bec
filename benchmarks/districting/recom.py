"""ReCom against the truth: its best plan after 1, 10 and 100 s, and its histogram of cut edges.

    python benchmarks/districting/recom.py [--seconds 1 10 100] [--france FOLDER] [--only 72 76]

The optimum is by set partitioning and the histogram by counting, both exact; --france takes departments at
20 % instead of the generated instances. Appends to ``recom.csv`` and writes ``recom-histogram.csv`` beside
this file: for each cut the share of all plans and of the chain's.
"""

import argparse
import csv
import time
from pathlib import Path

import numpy as np

from forcopt.data import delaunay, grid, load_graph
from forcopt.models import Districting
from forcopt.models.districting.recom import recom_chain

HERE = Path(__file__).parent
S21 = [20000 + 7919 * (i + 1) ** 2 % 14001 for i in range(21)]
INSTANCES = {
    "S21": lambda: Districting(grid(3, 7, population=S21), 3, tolerance=0.2),
    "grid 6x6": lambda: Districting(grid(6, 6), 4, tolerance=0.2),
    "delaunay 30": lambda: Districting(delaunay(30, 5), 3, tolerance=0.2),
    "delaunay 30 in 5": lambda: Districting(delaunay(30, 6), 5, tolerance=0.2),
}


def run_chain(p, start, marks, rng):
    """The best cut at each of the marks (seconds), and how often each cut was met."""
    best, seen, rows = np.inf, {}, []
    began = time.perf_counter()
    left = list(marks)
    for steps, plan in enumerate(recom_chain(p, start, 10**9, rng), 1):
        cut = int(plan.cost)
        seen[cut] = seen.get(cut, 0) + 1
        best = min(best, cut)
        while left and time.perf_counter() - began > left[0]:
            rows.append((left.pop(0), steps, best))
        if not left:
            break
    return rows, seen


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, nargs="*", default=[1, 10, 100])
    parser.add_argument("--france", type=Path)
    parser.add_argument("--only", nargs="*", default=["72", "01", "76", "59"])
    args = parser.parse_args()
    instances = INSTANCES
    if args.france:
        graphs = {name: load_graph(args.france / f"{name}.json") for name in args.only}
        instances = {
            name: lambda g=g: Districting(g, g.graph["districts"], tolerance=0.2)
            for name, g in graphs.items()
        }
    fresh = not (HERE / "recom.csv").exists()
    with (HERE / "recom.csv").open("a", newline="") as best, (HERE / "recom-histogram.csv").open("w") as hist:
        to_best, to_hist = csv.writer(best), csv.writer(hist)
        if fresh:
            to_best.writerow(["instance", "nodes", "districts", "optimum", "seconds", "steps", "best"])
        to_hist.writerow(["instance", "cut", "plans", "share of plans", "share of chain"])
        for name, make in instances.items():
            p = make()
            optimum = int(p.solve("set-partitioning").objective)
            plans = p.count()
            counts, rng = plans.histogram, np.random.default_rng(1)
            (start,) = plans.sample(max(counts, key=counts.get), seed=rng)  # a plan of the commonest cut
            rows, seen = run_chain(p, start, args.seconds, rng)
            for seconds, steps, found in rows:
                to_best.writerow([name, len(p.nodes), p.districts, optimum, seconds, steps, found])
                print(name, optimum, seconds, steps, found, flush=True)
            best.flush()
            total, visits = sum(counts.values()), sum(seen.values())
            assert set(seen) <= set(counts)
            for cut, plans in counts.items():
                share = f"{seen.get(cut, 0) / visits:.5f}"
                to_hist.writerow([name, cut, plans, f"{plans / total:.5f}", share])
            hist.flush()


if __name__ == "__main__":
    main()
