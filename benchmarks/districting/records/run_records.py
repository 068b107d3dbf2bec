"""The record book of US graphs: the best plan, the best bound and its CPU seconds, beside published figures.

    python benchmarks/districting/records/run_records.py [NAME ...] [--limit 60]

Names are such as ``ME-county`` and ``UT-tract``; without one, all graphs of counties are run. Populations are
within 0.5 % of the mean. Islands are joined to the nearest unit by an edge, which is printed. A run with a
cheaper plan, or with the same cost and a higher bound, replaces a row and its plan in ``NAME.csv``. No run
starts from a plan known: the command finds each row anew.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import math
import sys
import time
from itertools import product
from pathlib import Path

import networkx as nx

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from benchmarks.districting.journal import read
from benchmarks.districting.us import PUBLISHED
from benchmarks.report import data
from forcopt.data import grid, load_graph
from forcopt.models import Districting

HERE = Path(__file__).resolve().parent
OPEN = {"UT-tract": (66, 79), "AR-tract": (40, 70), "MS-tract": (47, 63), "NV-tract": (55, 77)}
"""Bounds and plans that Validi and Buchanan, "Political districting to minimize cut edges", leave open after
an hour; their optima and seconds are those of `us.py`."""

HEADS = ("graph", "nodes", "districts", "status", "plan", "bound", "cpu s", "limit s", "date")


def bridged(graph: nx.Graph) -> nx.Graph:
    """The graph with an edge from each island to the nearest unit of what is joined already."""
    place = {v: (facts["x"], facts["y"]) for v, facts in graph.nodes(data=True)}
    joined, *islands = sorted(nx.connected_components(graph), key=len, reverse=True)
    for island in islands:
        u, v = min(product(sorted(island), sorted(joined)), key=lambda e: math.dist(place[e[0]], place[e[1]]))
        graph.add_edge(u, v)
        joined |= island
        print(f"island of {len(island)} units: {u} is joined to {v}", flush=True)
    return graph


def attempt(name: str, limit: float) -> dict[str, object]:
    """Run a graph; keep its plan if it is the best so far."""
    graph = bridged(load_graph(data(f"us/{name}.json")))
    p = Districting(graph, graph.graph["districts"], tolerance=0.005)
    began = time.process_time()
    s = p.solve(time_limit=limit, seed=1)
    row: dict[str, object] = {
        "graph": name,
        "nodes": len(p.nodes),
        "districts": p.districts,
        "status": s.status,
    }
    row |= {"plan": "", "bound": s.bound, "cpu s": f"{time.process_time() - began:.1f}"}
    if s.decision is not None:
        assert p.evaluate(s.decision).feasible and s.bound <= s.objective, name
        row["plan"] = s.objective
        s.decision.to_csv(HERE / f"{name}.new.csv")
    return row | {"limit s": limit, "date": datetime.date.today()}


def better(new: dict[str, object], old: dict[str, str] | None) -> bool:
    """Whether a run has a cheaper plan than the one known, or the same with a higher bound."""
    if old is None or not old["plan"]:
        return True
    return bool(new["plan"]) and (float(new["plan"]), -float(new["bound"])) < (
        float(old["plan"]),
        -float(old["bound"]),
    )


def page(rows: dict[str, dict[str, object]]) -> str:
    """The table in Markdown."""
    lines = ["# Records: least cuts of US graphs", "", (__doc__ or "").split("\n\n")[2]]
    heads = [*HEADS, "published plan", "published bound", "Gurobi s"]
    lines += ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for name, row in sorted(rows.items()):
        best, seconds = PUBLISHED.get(name, (None, None))
        low, high = OPEN.get(name, (best, best))
        cells = [*(row[head] for head in HEADS), high, low, seconds]
        lines.append("| " + " | ".join("" if cell is None else str(cell) for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each graph")
    given = parser.parse_args()
    names = given.names or sorted(path.stem for path in data("us").glob("*-county.json"))
    rows: dict[str, dict[str, object]] = {row["graph"]: dict(row) for row in read(HERE / "records.csv")}
    Districting(grid(5, 5), 5, bounds=(4, 6)).solve(time_limit=60)  # compiles
    for name in names:
        row, fresh = attempt(name, given.limit), HERE / f"{name}.new.csv"
        print(*row.values(), flush=True)
        if better(row, rows.get(name)):  # type: ignore[arg-type]
            rows[name] = row
            if fresh.exists():
                fresh.replace(HERE / f"{name}.csv")
        fresh.unlink(missing_ok=True)
        with (HERE / "records.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, HEADS)
            writer.writeheader()
            writer.writerows(rows[key] for key in sorted(rows))
        (HERE / "records.md").write_text(page(rows))


if __name__ == "__main__":
    main()
