"""Runs the benchmark of districting: parts leave their rows in csv files, of which the page is made.

    python benchmarks/districting/run.py --out benchmarks/districting/results.md [--parts us france]

An interrupted run goes on where it was (see ``journal.py``); what is not among the parts to run is shown as
it was measured before. ``--parts`` without a name only writes the page anew. One process; what is compiled is
warmed up before anything is timed. ``counting`` comes first, as it tells the peak memory of the process.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.districting import tables
from benchmarks.report import Page, parser
from forcopt.data import grid
from forcopt.models import Districting

PARTS = (
    "counting",
    "france",
    "us",
    "certificates",
    "planar",
    "recom",
    "ensembles",
    "formulations",
    "clusterings",
    "legal",
)


def warm() -> None:
    """Compile what will be timed."""
    graph = grid(5, 5)
    for *_, edge in graph.edges(data=True):
        edge["cost"] = 2  # with costs of 1, nothing would be compiled
    p = Districting(graph, 5, bounds=(4, 6))
    for method in ("frontier", "set-partitioning", "column-generation", "sphere-cut"):
        p.solve(method)
    for districts in (2, 5):
        p.replace(districts=districts, bounds=None, tolerance=0.2).solve("portfolio")
    assert p.count().total == p.count(method="sphere-cut").total
    p.count(max_cost=17)


def main() -> None:
    given = parser(__doc__, *PARTS).parse_args()
    folder = given.out.parent
    note = "Each part names its date. Seconds of other authors are as published."
    page = Page("Districting", given.out, "numpy", "numba", "highspy", "pyscipopt", "ortools", note=note)
    if given.parts:
        warm()
    journals = []
    for part in given.parts:
        journals += import_module(f"benchmarks.districting.{part}").main(folder, given.quick)
    for journal in journals:
        journal.finish()
    tables.picture(folder)
    page.write(tables.body(folder))
    page.headline(tables.headline(folder))


if __name__ == "__main__":
    main()
