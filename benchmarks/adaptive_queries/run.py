"""Runs the benchmark of adaptive queries: errors of plans, and schedules by method; writes a Markdown table.

    python benchmarks/adaptive_queries/run.py --out benchmarks/adaptive_queries/results.md

Everything is seeded. ``--quick`` does a small part of each table.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import forcopt as fo
from benchmarks.report import Page, Row, parser, progress, row, table
from forcopt.clock import Deadline
from forcopt.models import AccuracyPlan
from forcopt.models.adaptive_queries import IndependentBlocks, Ledger, NaiveComposition, StreamedBlocks
from forcopt.models.adaptive_queries.instances import random_schedule

LIMIT = 20.0  # seconds for one solve


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
    note = "The error that holds for all answers; 100,000 records, failure .05.\n\n"
    told = row("error, 20 blocks, 10 queries each", f"{rows[0][5]}", f"naive composition {rows[0][7]}")
    return note + table(["blocks", "queries a block", *kinds, "fresh folds"], rows), [told]


def equal_costs(quick: bool) -> tuple[str, list[Row]]:
    rows, told = [], []
    fo.Model().solve("highs")
    random_schedule(10, 20, equal=True).solve("min-cost-flow")  # compiles
    sizes = ((10_000, 50_000),) if quick else ((10_000, 50_000), (100_000, 200_000), (1_000_000, 1_000_000))
    for m, q in sizes:
        for c in (1, 5):
            p = random_schedule(m, q, equal=True).replace(epsilon=float(c))
            flow = p.solve("min-cost-flow")
            cells = [f"{m:,}", f"{q:,}", f"{c}", f"{flow.objective:,.0f}", f"{flow.seconds:.2f} s"]
            cells.append(f"{p.solve('dynamic').seconds:.2f} s" if c == 1 else "")
            if q <= 50_000:
                lp = p.solve("lp", time_limit=LIMIT)
                cells.append(f"{lp.seconds:.2f} s (+{abs(lp.bound / flow.objective - 1):.1g})")
                told.append(
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
    head = ["attributes", "queries", "a window", "optimum", "flow", "dynamic", "LP (HiGHS)", "ledger"]
    return table(head, rows), told


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
    page = Page("Adaptive queries", options.out, "numpy", "scipy", "highspy")
    page.run(
        {
            "Errors of plans": errors,
            "Schedules of equal costs": equal_costs,
            "Schedules of different costs": different_costs,
        },
        options.quick,
    )


if __name__ == "__main__":
    main()
