"""Runs the benchmark of adaptive queries: errors, sessions and schedules; writes a Markdown page.

    python benchmarks/adaptive_queries/run.py --out benchmarks/adaptive_queries/results.md

Everything is seeded. ``--quick`` does a small part of each table.
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
import time
from math import sqrt
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

import forcopt as fo
from benchmarks.report import ROOT, Page, Row, parser, progress, row, table
from forcopt.clock import Deadline
from forcopt.models import AccuracyPlan, QuerySchedule
from forcopt.models.adaptive_queries import (
    AdaptiveSession,
    DecayingCorrelation,
    IndependentBlocks,
    Ledger,
    MarkovBits,
    NaiveComposition,
    NeighborAnds,
    Population,
    StreamedBlocks,
    Thresholdout,
    across_blocks,
    best_pairs,
    membership,
)
from forcopt.models.adaptive_queries.instances import random_schedule

LIMIT = 20.0  # seconds for one solve
PEER_LIMIT = 60.0  # seconds for the flow of OR-tools
FAILURE = 0.05


def errors(quick: bool) -> tuple[str, list[Row]]:
    rows = []
    for m, k in ((20, 10), (1000, 10)) if quick else ((20, 10), (1000, 10), (20, 100), (20, 200), (20, 1000)):
        cells = [f"{m:,}", f"{k:,}"]
        for noise in ("laplace", "gaussian"):
            for model in (IndependentBlocks, StreamedBlocks, NaiveComposition):
                p = AccuracyPlan(model(m), 100_000, k, 0.05, noise)
                cells.append(f"{p.solve().objective:.4f}")
        fresh = AccuracyPlan(IndependentBlocks(m), 100_000, k, 0.05).solve("split-sample")
        cells.append(f"{fresh.objective:.4f}")
        rows.append(cells)
        progress(*cells)
    kinds = [
        f"{noise}, {how}" for noise in ("Laplace", "Gaussian") for how in ("blocks", "streamed", "naive")
    ]
    note = "The bound on the errors of all answers; 100,000 records, failure .05.\n\n"
    headline = row("error, 20 blocks, 10 queries each", f"{rows[0][5]}", f"naive composition {rows[0][7]}")
    return note + table(["blocks", "queries a block", *kinds, "fresh folds"], rows), [headline]


def sessions(quick: bool) -> tuple[str, list[Row]]:
    """The largest error of each session, by method and number of queries, against the promised error."""
    blocks, digits = 2, 48
    cases = ((2000, 12, 200), (2000, 60, 200), (2000, 168, 200), (4000, 335, 20))
    rows: list[list[str]] = []
    headline: list[Row] = []
    for n, k, count in ((500, 4, 10), (500, 42, 10)) if quick else cases:
        population = Population.uniform(blocks, 4 * n)
        p = AccuracyPlan(IndependentBlocks(blocks), n, k, FAILURE)
        plans = {name: p.solve(name) for name in ("split-sample", "naive", "search")}
        methods: dict[str, tuple[Any, int]] = {"means": (None, n), "Thresholdout": (Thresholdout(), n // 2)}
        methods |= {name: (plan, n // k if name == "split-sample" else n) for name, plan in plans.items()}
        errors: dict[str, list[float]] = {name: [] for name in methods}
        for seed in range(count):
            sample = population.sample(n, seed)
            for name, (plan, records) in methods.items():
                analyst = membership(population, records, k, digits)
                found = AdaptiveSession(sample, population, plan, analyst, seed).run()
                errors[name].append(found.error)
        cells = [f"{n:,}", f"{k}", f"{count}"]
        for name in methods:
            cells.append(f"{np.median(errors[name]):.3f}")
            if name in plans:
                broken = sum(e > plans[name].objective for e in errors[name])
                cells[-1] += f" ({plans[name].objective:.3f}, {broken})"
        above = sum(e > plans["search"].objective for e in errors["means"])
        cells.append(f"{above}")
        rows.append(cells)
        progress(*cells)
        headline.append(
            row(
                f"median error of {count} sessions, {n:,} records, {k} queries a block",
                f"{np.median(errors['search']):.3f}",
                f"sample means {np.median(errors['means']):.3f}",
            )
        )
    head = ["records", "queries a block", "sessions", "means", "Thresholdout", "fresh folds", "naive noise"]
    head += ["plan", "means above plan"]
    margins = " and ".join(
        f"{FAILURE:g} ± {3 * sqrt(FAILURE * (1 - FAILURE) / count):.3f} of {count} sessions"
        for count in (200, 20)
    )
    note = (
        f"{blocks} blocks; failure {FAILURE:g}. The analyst decodes the rows of the sample from the digits "
        "of the answers, and then asks for these rows. Cells: the median over sessions of the largest error "
        "of an answer; in brackets, the error bound and the number of sessions above it. At this failure, "
        f"shares of {margins} (three binomial deviations) may exceed the bound. The last column counts the "
        "sessions of sample means above the plan's bound.\n\n"
    )
    return note + table(head, rows), headline


def model_is_false(quick: bool) -> tuple[str, list[Row]]:
    """Fresh folds shared by blocks that are not independent."""
    import pandas as pd

    path = ROOT.parent / "shared" / "data" / "tabular"
    count, n, rows = 10 if quick else 200, 2000, []
    tables = {
        "communities.csv": (120, 6),
        "adult.csv": (14, 2),
        "compas-scores-two-years.csv": (52, 4),
    }
    for file, (columns, width) in tables.items():
        if not (path / file).exists():
            continue
        frame = pd.read_csv(path / file).iloc[:, :columns]
        names = list(frame.columns)
        blocks = [names[i : i + width] for i in range(0, len(names) - width + 1, width)]
        p = AccuracyPlan(IndependentBlocks(len(blocks)), n, 1, FAILURE)
        plans = {"fresh folds": p.solve("split-sample"), "plan": p.solve()}
        for whole in (False, True):
            population = Population.blockwise(frame, blocks, whole=whole)
            cells = [file, f"{len(blocks)}", "whole rows" if whole else "each block by itself"]
            for plan in plans.values():
                errors = []
                for seed in range(count):
                    analyst = across_blocks(population, n)
                    sample = population.sample(n, seed)
                    errors.append(AdaptiveSession(sample, population, plan, analyst, seed).run().error)
                beyond = sum(e > plan.objective for e in errors)
                cells.append(f"{np.median(errors):.3f} ({plan.objective:.3f}, {beyond})")
            rows.append(cells)
            progress(*cells)
    if not rows:
        return "The real tables are missing.\n", []
    note = (
        f"{count} sessions each; {n:,} records; one query per block, all on the same fold. The analyst "
        "finds the frequent groups of rows in each block, and queries these groups in the last block. "
        "Median error; in brackets, the error bound for independent blocks, and the sessions above it.\n\n"
    )
    return note + table(["table", "blocks", "sample", "fresh folds", "plan"], rows), []


def size(quick: bool) -> tuple[str, list[Row]]:
    """Sessions of adaptive two-attribute queries on packed bits."""
    n, rows = 10_000 if quick else 100_000, []
    headline: list[Row] = []
    k = 2 if quick else 50
    cases = {
        "independent blocks (G1)": (MarkovBits.blocks(50, 20, 0.5), IndependentBlocks(50), 20 * k, 0),
        "neighbors (G2)": (NeighborAnds(1000), StreamedBlocks(1000), k, 0),
        "decaying (G3)": (MarkovBits.decaying(1000, 0.9), DecayingCorrelation(1000, 0.9, 10), 92 * k, 10),
    }
    for name, (population, model, queries, width) in cases.items():
        began = time.process_time()
        sample = population.sample(n, 0)
        drawn = time.process_time() - began
        plan = AccuracyPlan(model, n, queries, FAILURE).solve()
        analyst = best_pairs(population, k, width)
        began = time.process_time()
        found = AdaptiveSession(sample, population, plan, analyst, 1).run()
        seconds = time.process_time() - began
        cells = [
            name,
            f"{len(population.position):,}",
            f"{sample.words.nbytes / 1e6:.1f} MB",
            f"{drawn:.2f} s",
        ]
        cells += [
            f"{len(found.queries):,}",
            f"{seconds:.2f} s",
            f"{found.error:.3f}",
            f"{plan.objective:.3f}",
        ]
        rows.append(cells)
        progress(*cells)
        headline = headline or [
            row(f"{len(found.queries):,} adaptive queries on {n:,} records", f"{seconds:.1f} s")
        ]
    head = ["population", "bits", "sample", "drawn in", "queries", "session", "error", "promised"]
    note = f"{n:,} records. Each query depends on the previous answers. CPU seconds.\n\n"
    return note + table(head, rows), headline


def peer_flow(p: QuerySchedule, answers: Any) -> None:
    """The min-cost flow of a schedule of equal costs by OR-tools, in a process that can be stopped."""
    from ortools.graph.python import min_cost_flow

    first, last = p.touched
    capacity = p.capacity
    assert capacity is not None
    windows = p.data_model.windows
    line = np.arange(windows)
    began = time.perf_counter()
    flow = min_cost_flow.SimpleMinCostFlow()
    flow.add_arcs_with_capacity_and_unit_cost(
        np.concatenate([line, first]).astype(np.int32),
        np.concatenate([line + 1, last + 1]).astype(np.int32),
        np.concatenate([np.full(windows, capacity), np.ones(len(first))]).astype(np.int64),
        np.concatenate([np.zeros(windows), -p.query_weights]).astype(np.int64),
    )
    flow.set_nodes_supplies(np.array([0, windows]), np.array([capacity, -capacity]))
    status = flow.solve()
    answers.put((status == flow.OPTIMAL, -flow.optimal_cost(), time.perf_counter() - began))


def timed_peer(p: QuerySchedule, value: float) -> tuple[str, float | None]:
    """Seconds of OR-tools' flow, or that it was stopped."""
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    process = context.Process(target=peer_flow, args=(p, answers))
    process.start()
    try:
        optimal, cost, seconds = answers.get(timeout=PEER_LIMIT + 10)
    except Exception:
        return f"not in {PEER_LIMIT:.0f} s", None
    finally:
        process.kill()
        process.join()
    if not optimal or cost != value:
        raise SystemExit(f"error: OR-tools' flow has value {cost}, ours {value}")
    return f"{seconds:.2f} s", seconds


def equal_costs(quick: bool) -> tuple[str, list[Row]]:
    rows, headline = [], []
    fo.Model().solve("highs")
    random_schedule(10, 20, equal=True).solve("min-cost-flow")  # compiles
    sizes = ((10_000, 50_000),) if quick else ((10_000, 50_000), (100_000, 200_000), (1_000_000, 1_000_000))
    for m, q in sizes:
        for c in (1, 5):
            p = random_schedule(m, q, equal=True).replace(epsilon=float(c))
            flow = p.solve("min-cost-flow")
            cells = [f"{m:,}", f"{q:,}", f"{c}", f"{flow.objective:,.0f}", f"{flow.seconds:.2f} s"]
            if q <= 50_000 or (q <= 200_000 and c == 1):
                words, seconds = timed_peer(p, flow.objective)
                cells.append(words)
                headline.append(
                    row(
                        f"{m:,} attributes, {q:,} queries of equal cost, {c} a window",
                        f"flow {flow.seconds:.2f} s",
                        f"flow by OR-tools {words}",
                        f"{'≥ ' if seconds is None else ''}{(seconds or PEER_LIMIT) / flow.seconds:.0f}",
                    )
                )
            else:
                cells.append("not tried")
            if q <= 50_000:
                lp = p.solve("lp", time_limit=LIMIT)
                cells.append(f"{lp.seconds:.2f} s (+{abs(lp.bound / flow.objective - 1):.1g})")
                headline.append(
                    row(
                        f"{m:,} attributes, {q:,} queries of equal cost, {c} a window",
                        f"flow {flow.seconds:.2f} s",
                        f"LP by HiGHS {lp.seconds:.2f} s",
                        f"{lp.seconds / flow.seconds:.0f}",
                    )
                )
            else:
                cells.append("not tried")
            ledger = Ledger(p.data_model, p.epsilon)
            began = Deadline()
            ledger.ask_many(p.intervals, 1.0)
            cells.append(f"{began.seconds:.2f} s")
            rows.append(cells)
            progress(*cells)
    head = ["attributes", "queries", "a window", "optimum", "flow", "flow (OR-tools)"]
    head += ["LP (HiGHS)", "ledger"]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return table(head, rows) + f"\nPeak memory of this process {peak:.2f} GB.\n", headline


def different_costs(quick: bool) -> tuple[str, list[Row]]:
    rows = []
    for m, q in ((20, 60),) if quick else ((20, 60), (100, 300), (300, 1000)):
        p = random_schedule(m, q)
        best = p.solve("milp", time_limit=LIMIT)
        lp = p.solve("lp")
        cells = [f"{m}", f"{q:,}", f"{lp.bound:,.1f}", f"{best.objective:,.0f}", f"{best.gap:.2g}"]
        cells.append(f"{best.seconds:.2f} s")
        for method in ("local-ratio", "density", "ledger"):
            s = p.solve(method)
            cells.append(f"{s.objective / best.objective:.3f}")
        rows.append(cells)
        progress(*cells)
    head = ["attributes", "queries", "LP", "MILP", "gap", "seconds", "local ratio", "density", "arrival"]
    note = f"A MILP by HiGHS may take {LIMIT:.0f} s; the last three columns are shares of its value.\n\n"
    return note + table(head, rows), []


def main() -> None:
    options = parser(__doc__).parse_args()
    page = Page("Adaptive queries", options.out, "numpy", "scipy", "highspy", "ortools", "cvxpy")
    page.run(
        {
            "Schedules of equal costs": equal_costs,
            "Errors of plans": errors,
            "Sessions": sessions,
            "Where the model is false": model_is_false,
            "Large samples": size,
            "Schedules of different costs": different_costs,
        },
        options.quick,
    )


if __name__ == "__main__":
    main()
