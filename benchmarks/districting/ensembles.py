"""ReCom's speed beside GerryChain's, by both laws of trees, and a long chain with its scores.

Both walk from the same plan. A step of GerryChain is a proposal of its own, without a chain around it, and
tries other pairs of districts, too, if one cannot be divided.
"""

import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.districting.journal import Journal
from benchmarks.report import data
from forcopt.data import load_graph
from forcopt.models import Districting
from forcopt.models.districting import Plan, ReCom

INSTANCES = {
    "Arkansas, counties": ("us/AR-county.json", 4, 0.02),
    "New Hampshire, tracts": ("us/NH-tract.json", 2, 0.02),
    "Arkansas, tracts": ("us/AR-tract.json", 4, 0.02),
    "Arkansas, block groups": ("blockgroups/AR.json", 4, 0.02),
}
SECONDS, QUICK, RUNS = 10.0, 0.05, 3
"""Of each chain, with ``--quick``, and chains of each law, of which the median counts."""

STEPS, THIN = 10**6, 100
"""Of the long chain, on the last instance, whose every hundredth plan is scored."""


def rate(walk: Callable[[int], object], steps: int, seconds: float) -> float:
    """Steps a CPU second; `walk` makes steps."""
    done, began = 0, time.process_time()
    while (used := time.process_time() - began) < seconds:
        walk(steps)
        done += steps
    return done / used


def gerrychain(p: Districting, start: Plan, tree: str) -> Callable[[int], object]:
    """A walk by GerryChain with the same law of trees."""
    from gerrychain.proposals import recom
    from gerrychain.tree import bipartition_tree, uniform_spanning_tree

    law = {"spanning_tree_fn": uniform_spanning_tree} if tree == "uniform" else {}
    split = partial(bipartition_tree, max_attempts=10_000, allow_pair_reselection=True, **law)
    state = [start.to_gerrychain()]

    def walk(steps: int) -> None:
        for _ in range(steps):
            state[0] = recom(state[0], "population", p.mean, p.tolerance, bipartition_tree_fn=split)

    return walk


def main(folder: Path, quick: bool) -> list[Journal]:
    speeds, long = Journal(folder, "ensembles", "instance", "tree"), Journal(folder, "scored", "instance")
    seconds = QUICK if quick else SECONDS
    for name in list(INSTANCES)[: 1 if quick else None]:
        path, districts, tolerance = INSTANCES[name]
        p = Districting(load_graph(data(path)), districts, tolerance=tolerance)
        start = p.solve("local-search", seed=1).decision
        for tree in ("uniform", "least"):
            if (name, tree) in speeds:
                continue
            ours, theirs = [], []
            for seed in range(RUNS):
                chain = ReCom(p, start, seed, tree)
                chain.run(10)
                ours.append(rate(chain.run, 100, seconds))
                random.seed(seed)
                theirs.append(rate(gerrychain(p, start, tree), 1, seconds))
            row = {"instance": name, "nodes": len(p.nodes), "districts": districts, "tolerance": tolerance}
            row |= {"tree": tree, "steps a CPU s": f"{median(ours):.0f}", "slowest": f"{min(ours):.0f}"}
            row |= {"fastest": f"{max(ours):.0f}", "GerryChain": f"{median(theirs):.3g}"}
            speeds.add(row | {"ratio": f"{median(ours) / median(theirs):.0f}"})
    if (name,) not in long:
        steps = 1000 if quick else STEPS
        began = time.process_time()
        drawn = p.ensemble("recom", size=steps // THIN, thin=THIN, start=start, seed=1)
        walked, began = time.process_time() - began, time.process_time()
        scores = drawn.scores()
        scored = time.process_time() - began
        cuts = np.quantile(scores["cut_edges"], (0.05, 0.5, 0.95))
        row = {"instance": name, "steps": steps, "plans scored": len(scores), "scores": len(scores.columns)}
        row |= {"chain, CPU s": f"{walked:.0f}", "scores, CPU s": f"{scored:.0f}"}
        row |= {"cut edges (5, 50, 95 %)": " ".join(f"{cut:g}" for cut in cuts)}
        long.add(row | {"effective size": f"{drawn.convergence()['effective_size']:.0f}"})
    return [speeds, long]
