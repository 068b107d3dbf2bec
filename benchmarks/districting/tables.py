"""The page, the picture and the headline of what was measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from benchmarks.districting.journal import read
from benchmarks.report import Row, row, table

Rows = list[dict[str, str]]
TOLERANCES = ("0.2", "0.1", "0.05")
PUBLISHED = 8 * 3600.0
"""Seconds that Cohen-Addad, Klein and Marx (2021), "On the Computational Tractability of a Geographic
Clustering Problem Arising in Redistricting", report for their 80 instances of France."""


def body(folder: Path) -> str:
    """All sections; one whose part was never run says so."""
    sections = {
        "France": ("france", france),
        "United States": ("us", us),
        "Certificates": ("certificates", certificates),
        "Generated planar graphs": ("planar", planar),
        "Counting": ("counting", counting),
        "ReCom": ("recom", recom),
        "Speed of chains": ("ensembles", ensembles),
        "County clusterings": ("clusterings", clusterings),
        "Legal rules, and many districts": ("legal", legal),
        "Formulations": ("formulations", formulations),
        "Formulations on the forty smallest departments": ("formulations-france", departments),
    }
    parts = []
    for title, (name, write) in sections.items():
        rows = read(folder / f"{name}.csv")
        text = f"{taken(rows)}\n\n{write(rows, folder)}" if rows else "Not measured.\n"
        parts.append(f"## {title}\n\n{text}")
    return "\n".join(parts)


def clusterings(rows: Rows, folder: Path) -> str:
    """A summary by chamber, then every instance."""
    names = {"CD": "congress", "SH": "house", "SS": "senate"}
    columns = ["state", "chamber", "counties", "districts", "clusters", "bound", "certified", "published"]
    columns += ["cpu s", "published s"]
    lines = []
    for chamber, name in names.items():
        of = [r for r in rows if r["chamber"] == chamber]
        proved = [r for r in of if r["status"] == "optimal"]
        given = [r for r in of if r["published"]]
        agree = sum(r["clusters"] == r["published"] for r in given)
        certified = sum(r["certified"] == "True" for r in proved)
        hours = f"{total(of, 'published s') / 3600:.2f}"
        match = f"{agree} of {len(given)}"
        lines.append([name, len(of), len(proved), certified, match, f"{total(of, 'cpu s'):.1f}", hours])
    head = [
        "chamber",
        "instances",
        "proved",
        "certified",
        "as published",
        "CPU s",
        "Gurobi, 20 threads, published, h",
    ]
    every = [
        [r[column] for column in columns] for r in sorted(rows, key=lambda r: (r["chamber"], r["state"]))
    ]
    return table(head, lines) + "\n" + table(columns, every)


def taken(rows: Rows) -> str:
    """On which days and under what load rows were measured."""
    days, loads = sorted({r["date"] for r in rows}), [float(r["load"]) for r in rows if r["load"] != "nan"]
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    load = f"load {min(loads):.1f} to {max(loads):.1f}" if loads else "the load was not recorded"
    return f"{len(rows)} rows, measured {when}, {load}."


def total(rows: Rows, column: str) -> float:
    return sum(float(r[column]) for r in rows)


def france(rows: Rows, folder: Path) -> str:
    lines = []
    for tolerance in TOLERANCES:
        of = [r for r in rows if r["tolerance"] == tolerance]
        longest = max(of, key=lambda r: float(r["count s"]))
        lines.append(
            [
                f"{float(tolerance):.0%}",
                f"{sum(r['status'] == 'optimal' for r in of)} of {len(of)}",
                f"{total(of, 'set-partitioning s'):.1f}",
                f"{total(of, 'frontier s'):.1f}",
                f"{total(of, 'sphere-cut cpu s'):.1f} ({total(of, 'sphere-cut s'):.1f})",
                f"{total(of, 'count s'):.0f} ({float(longest['count s']):.0f}: {longest['department']})",
                f"{sum(int(r['plans']) for r in of):,}",
            ]
        )
    head = ["tolerance", "feasible", "set-partitioning, s", "frontier, s", "sphere-cut, CPU s (wall)"]
    head += ["exact counts, s (longest)", "plans in all"]
    return table(head, lines) + "\n![Optimum against tolerance](france.png)\n"


def us(rows: Rows, folder: Path) -> str:
    used = list(dict.fromkeys(r["method"] for r in rows))
    lines = []
    for name in dict.fromkeys(r["graph"] for r in rows):
        of = {r["method"]: r for r in rows if r["graph"] == name}
        first = next(iter(of.values()))
        days = sorted({r["date"] for r in of.values()})
        loads = sorted(float(r["load"]) for r in of.values())
        lines.append([name, first["nodes"], first["districts"], first["known"]])
        for method in used:
            r = of.get(method)
            proof = "" if not r or r["status"] == "optimal" else f", [{r['bound']}, {r['objective']}]"
            lines[-1].append(f"{float(r['seconds']):.3g} ({float(r['cpu s']):.3g}){proof}" if r else "")
        lines[-1] += [first["gurobi s"], f"{' and '.join(days)}, {loads[0]:.1f} to {loads[-1]:.1f}"]
    head = ["graph", "nodes", "districts", "known optimum", *(f"{m}, s (CPU s)" for m in used)]
    return table([*head, "Gurobi, published, s", "measured on, under load"], lines)


def certificates(rows: Rows, folder: Path) -> str:
    head = ["graph", "nodes", "districts", "cost of the plan", "bound proved"]
    head += [f"districts listed with a {kind} complement" for kind in ("connected", "disconnected")]
    keys = [key for key in rows[0] if key not in ("date", "load")]
    return (
        "Prices and plans stored in forcopt, checked in integers by code that shares nothing with the "
        "search.\n\n" + table([*head, "CPU s"], ([r[key] for key in keys] for r in rows))
    )


def planar(rows: Rows, folder: Path) -> str:
    lines = []
    for nodes in dict.fromkeys(r["nodes"] for r in rows):
        for districts in dict.fromkeys(r["districts"] for r in rows):
            cells = [nodes, districts]
            for tolerance in dict.fromkeys(r["tolerance"] for r in rows):
                for r in rows:
                    if (r["nodes"], r["districts"], r["tolerance"]) == (nodes, districts, tolerance):
                        value = r["status"]
                        if value == "optimal":
                            value = f"{float(r['objective']):g}"
                        elif r["status"] != "infeasible":
                            value = f"[{float(r['bound']):g}, {float(r['objective']):g}]"
                        cells.append(f"{value} in {float(r['cpu s']):.2g} s")
            lines.append(cells)
    tolerances = dict.fromkeys(r["tolerance"] for r in rows)
    head = ["nodes", "districts", *(f"within {float(t):.0%}" for t in tolerances)]
    shares = [float(r["bound"]) / float(r["objective"]) for r in rows if r["status"] != "infeasible"]
    return (
        "The optimum, or the bound and the best plan, of `portfolio`, with CPU seconds; the limit is "
        f"{rows[0]['limit']} s of wall time. {shares.count(1.0)} of {len(shares)} optima are proved; the "
        f"other bounds are at least {min(shares):.2f} of the best plan.\n\n{table(head, lines)}"
    )


def legal(rows: Rows, folder: Path) -> str:
    head = [key for key in rows[0] if key not in ("date", "load", "limit")]
    limit = f"{float(rows[0]['limit']):g} s of wall time"
    lines = ([r[key] for key in head] for r in rows)
    return f"Each has {limit}. Without a plan or a proof its cells are empty.\n\n{table(head, lines)}"


def counting(rows: Rows, folder: Path) -> str:
    head = [k for k in rows[0] if k not in ("date", "load")]
    return table(head, ([f"{int(r[k]):,}" if k == "plans" else r[k] for k in head] for r in rows))


def recom(rows: Rows, folder: Path) -> str:
    histogram = read(folder / "recom-histogram.csv")
    marks = list(dict.fromkeys(r["seconds"] for r in rows))
    lines = []
    for name in dict.fromkeys(r["instance"] for r in rows):
        of = [r for r in rows if r["instance"] == name]
        cuts = [r for r in histogram if r["instance"] == name]
        low, high = middle_half(cuts, "share of chain")
        inside = sum(float(r["share of plans"]) for r in cuts if low <= int(r["cut"]) <= high)
        plans = "{} to {}".format(*middle_half(cuts, "share of plans"))
        best = [f"{r['best']} ({int(r['steps']):,})" for r in of]
        sizes = [of[0]["nodes"], of[0]["districts"], of[0]["optimum"]]
        lines.append([name, *sizes, *best, plans, f"{low} to {high}", f"{inside:.1%}"])
    head = ["instance", "nodes", "districts", "optimum", *(f"best after {m} s (steps)" for m in marks)]
    head += ["cuts of the middle half of plans", "of the chain's steps", "share of plans there"]
    return table(head, lines)


def ensembles(rows: Rows, folder: Path) -> str:
    lines = [[r[k] for k in r if k not in ("date", "load")] for r in rows]
    long = read(folder / "scored.csv")
    told = "Steps a CPU second: the median of three chains, the slowest and the fastest.\n\n"
    told += table([k for k in rows[0] if k not in ("date", "load")], lines)
    return told + "\n" + table(list(long[0]), (r.values() for r in long))


def middle_half(cuts: Rows, column: str) -> tuple[int, int]:
    """Between which cuts the middle half is."""
    order = sorted(cuts, key=lambda r: int(r["cut"]))
    share = np.cumsum([float(r[column]) for r in order])
    low, high = (int(order[np.searchsorted(share, q * share[-1])]["cut"]) for q in (0.25, 0.75))
    return low, high


def formulations(rows: Rows, folder: Path) -> str:
    names = list(dict.fromkeys(r["instance"] for r in rows))
    lines = []
    for formulation, backend in sorted({(r["formulation"], r["backend"]) for r in rows}):
        of = {r["instance"]: r for r in rows if (r["formulation"], r["backend"]) == (formulation, backend)}
        cells = [of.get(name, {"status": "", "seconds": ""}) for name in names]
        lines.append([formulation, backend])
        lines[-1] += [r["seconds"] if r["status"] == "optimal" else r["status"] for r in cells]
    sizes = [r for r in rows if (r["instance"], r["backend"]) == ("S21 10 %", "highs")]
    sizes.sort(key=lambda r: int(r["rows"]))
    head = ["formulation", "rows", "columns", "nonzeros", "linear bound"]
    small = [[r["formulation"], r["rows"], r["columns"], r["nonzeros"], f"{float(r['linear bound']):.2f}"]
             for r in sizes]  # fmt: skip
    best = next((float(r["objective"]) for r in sizes if r["status"] == "optimal"), np.nan)
    return (
        "Seconds to the proof, or the result at the limit of 15 s.\n\n"
        + table(["formulation", "backend", *names], lines)
        + f"\nSizes for S21 at 10 %, whose optimum is {best:g}:\n\n"
        + table(head, small)
    )


def departments(rows: Rows, folder: Path) -> str:
    lines = []
    for formulation in dict.fromkeys(r["formulation"] for r in rows):
        of = [r for r in rows if r["formulation"] == formulation]
        seconds = [float(r["seconds"]) for r in of]
        ended = [r for r in of if r["status"] in ("optimal", "infeasible")]
        late = ", ".join(
            f"{r['instance']} ({float(r['bound']):.1f} after {r['seconds']} s)" for r in of if r not in ended
        )
        cells = [
            formulation,
            f"{len(ended)} of {len(of)}",
            f"{np.median(seconds):.2f}",
            f"{max(seconds):.1f}",
        ]
        lines.append([*cells, late])
    head = ["formulation on HiGHS", "decided", "median s", "longest s", "not decided in 60 s (bound)"]
    return table(head, lines)


def picture(folder: Path) -> None:
    """Optimum against tolerance for the French departments, as in the paper's Figure 5."""
    optima: dict[str, dict[str, str]] = {}
    for r in read(folder / "france.csv"):
        optima.setdefault(r["department"], {})[r["tolerance"]] = r["optimum"]
    names = sorted(optima, key=lambda d: (int(optima[d]["0.2"] or 99), d))
    figure = Figure(figsize=(12, 4.5), layout="constrained")
    axes = figure.add_subplot()
    for tolerance, marker in zip(TOLERANCES, "osx", strict=True):
        solved = [(i, int(optima[d][tolerance])) for i, d in enumerate(names) if optima[d][tolerance]]
        label = f"{float(tolerance) * 100:g} % ({len(solved)} feasible)"
        axes.plot(*np.array(solved).reshape(-1, 2).T, marker, label=label, markersize=5)
    axes.set_xticks(range(len(names)), names, rotation=90, fontsize=6)
    axes.set(xlabel="department", ylabel="fewest cut edges")
    axes.legend()
    figure.savefig(folder / "france.png", dpi=110)


def headline(folder: Path) -> list[Row]:
    """France as in the paper and whole, and the states beside Gurobi, so far as they were measured."""
    rows = []
    if every := read(folder / "france.csv"):
        paper = [r for r in every if r["tolerance"] == "0.2"]
        seconds = [
            total(paper, "set-partitioning s"),
            total(paper, "frontier s"),
            total(paper, "sphere-cut cpu s"),
        ]
        decided = sum(r["status"] in ("optimal", "infeasible") for r in paper)
        told = "set-partitioning {:.1f} s, frontier {:.1f} s, sphere-cut {:.0f} CPU s".format(*seconds)
        rows.append(
            row(
                f"France, {len(paper)} departments at 20 %, {decided} decided",
                told,
                "Cohen-Addad et al. (2021), sphere-cut: 8 hours",
                ", ".join(f"{PUBLISHED / s:,.0f}" for s in seconds),
            )
        )
        whole = f"set-partitioning {total(every, 'set-partitioning s'):.1f} s, "
        whole += f"sphere-cut {total(every, 'sphere-cut cpu s'):.0f} CPU s"
        rows.append(row(f"France, all {len(every)} instances at 20, 10 and 5 %", whole))
    for r in read(folder / "ensembles.csv"):
        if r["instance"] == "Arkansas, block groups":
            what = f"ReCom on {r['instance']}, {r['tree']} trees: steps a CPU second"
            rows.append(row(what, r["steps a CPU s"], f"GerryChain: {r['GerryChain']}", r["ratio"]))
    states = {(r["graph"], r["method"]): r for r in read(folder / "us.csv")}
    for names, level, method in (
        (("ME", "NM", "ID", "WV"), "county", "portfolio"),
        (("LA", "AL", "AR", "OK"), "county", "column-generation"),
        (("NH", "ME", "ID"), "tract", "column-generation"),
        (("NE", "UT", "AR"), "tract", "portfolio"),
    ):
        found = {n: r for n in names if (r := states.get((f"{n}-{level}", method)))}
        if found:
            pairs = [(float(r["cpu s"]), float(r["gurobi s"] or "inf")) for r in found.values()]
            open_ones = [n for n, r in found.items() if r["status"] != "optimal"]
            rows.append(
                row(
                    f"{', '.join(found)} by {level}, within 0.5 %",
                    f"{method} {', '.join(f'{s:.2g}' if s < 1 else f'{s:.1f}' for s, _ in pairs)} CPU s"
                    + (f" ({', '.join(open_ones)} not proved)" if open_ones else ""),
                    "Validi and Buchanan, Gurobi: "
                    + ", ".join(f"{g:g}" if g < np.inf else "over 3600" for _, g in pairs)
                    + " s",
                    ", ".join(f"{g / s:.2g}" if g < np.inf else "-" for s, g in pairs),
                )
            )
    return rows
