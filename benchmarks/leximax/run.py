"""Runs the leximax benchmark and writes two pages: methods beside peers, and learning (learning.md).

    python benchmarks/leximax/run.py --out benchmarks/leximax/results.md

The peers get an environment of their own, since they bring other versions of the solvers. Everything is
seeded; every solve has a time limit. ``--quick`` does a small part of each table, for checking that it runs.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # on small matrices, threads only wait
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

import forcopt as fo
from benchmarks.leximax import learning
from benchmarks.report import Page, Row, environment, parser, progress, row, table
from forcopt.models.leximax_cohort import (
    FeasibleCohorts,
    LeximaxCohort,
    SolutionSet,
    random_block,
    random_cohort,
    random_panel,
)
from forcopt.models.leximax_cohort.formulations import all_cohorts

LIMIT = 120.0  # seconds for one solve, ours or a peer's
PEERS = {"cvxpy_leximin": "0.5", "cvxpy": "1.9.3", "sortition-algorithms": "0.12.15"}
HERE = Path(__file__).resolve().parent
Result = dict[str, Any]
RESOURCES = ((10, 20), (20, 40), (30, 60), (100, 200), (200, 400))
SITES = ((10, 6, 2), (20, 10, 3), (40, 15, 4))
PANELS = ((40, 8, 3), (80, 12, 4), (150, 20, 4))
COHORTS = ((30, 12, 8), (60, 30, 12), (200, 60, 30), (500, 100, 50), (1000, 150, 100), (2000, 200, 150))


@cache
def peers() -> str:
    """The Python that has the peers."""
    return environment(__file__, PEERS)


def peer(kind: str, method: str, data: dict[str, Any]) -> Result:
    """A peer's solve in a process of its own, killed at the limit."""
    command = [peers(), str(HERE / "peer.py"), kind, method]
    try:
        done = subprocess.run(
            command, input=json.dumps(data), capture_output=True, text=True, timeout=LIMIT, check=True
        )
    except subprocess.TimeoutExpired:
        return {"seconds": LIMIT, "levels": None, "status": f"stopped at {LIMIT:.0f} s"}
    except subprocess.CalledProcessError as error:
        return {"seconds": np.nan, "levels": None, "status": error.stderr.strip().splitlines()[-1][:60]}
    return json.loads(done.stdout.strip().splitlines()[-1])


def ours(model: fo.Model, backend: str = "highs") -> Result:
    """Our solve of a model with a leximin objective."""
    began = time.perf_counter()
    s = model.solve(backend, time_limit=LIMIT)
    seconds = time.perf_counter() - began
    levels = s.levels if s.status == "optimal" else None
    return {"seconds": seconds, "levels": levels, "status": str(s.status), "message": s.message}


def compared(size: str, results: dict[str, Result]) -> list[list[str]]:
    """A row for each: seconds, the largest difference of a level from the first's, the ratio of seconds."""
    first, rows = next(iter(results.values())), []
    for name, r in results.items():
        apart = ""
        if r["levels"] is not None and first["levels"] is not None:
            shared = min(len(r["levels"]), len(first["levels"]))
            gaps = np.abs(np.subtract(r["levels"][:shared], first["levels"][:shared]))
            apart = f"{gaps.max():.1e}"
        ratio = f"{r['seconds'] / first['seconds']:.3g}" if r["levels"] is not None else ""
        rows.append([size, name, f"{r['seconds']:.3g}", r["status"], apart, ratio])
        progress(*rows[-1])
    return rows


def shown(r: Result) -> str:
    return f"{r['seconds']:.3g} s" if r["levels"] is not None else f"none ({r['status'].partition(':')[0]})"


def headline(subject: str, found: dict[str, Result], method: str, best: bool = False) -> Row:
    """Our method beside the peers, or the best of them; the ratios are of those that solve it."""
    own = found[method]
    others = {name: r for name, r in found.items() if not name.startswith("forcopt")}
    solved = {name: r for name, r in others.items() if r["levels"] is not None}
    if best and solved:
        name = min(solved, key=lambda name: solved[name]["seconds"])
        others = solved = {name: solved[name]}
    return row(
        subject,
        f"{shown(own)} ({method.partition(' ')[2]})",
        ", ".join(f"{name} {shown(r)}" for name, r in others.items()) or "not run",
        ", ".join(f"{r['seconds'] / own['seconds']:.3g}" for r in solved.values()) or "-",
    )


COLUMNS = ["size", "method", "seconds", "status", "levels apart", "times the first's"]


def sharing(V: np.ndarray, method: str) -> fo.Model:
    m = fo.Model("resources")
    x = m.variable("x", V.shape, lower=0)
    m.subject_to(x.sum(axis=0) <= 1)
    m.leximin((x * V).sum(axis=1), method)
    return m


def resources(quick: bool) -> tuple[str, list[Row]]:
    rows, headlines = [], []
    for agents, count in RESOURCES[:2] if quick else RESOURCES:
        V = np.random.default_rng(agents).random((agents, count))
        found: dict[str, Result] = {}
        for method in ("saturation", "compact", "cuts"):
            if method != "saturation" and agents > 30:
                continue
            m = sharing(V, method)
            found[f"forcopt {method}@highs"] = ours(m)
            if method == "saturation":
                for backend in ("glop", "clarabel"):
                    found[f"forcopt {method}@{backend}"] = ours(m, backend)
        if agents <= 30:
            for method in ("saturation", "ordered_outcomes"):
                found[f"cvxpy_leximin {method}"] = peer("shares", method, {"V": V.tolist()})
        rows += compared(f"{agents} × {count}", found)
        if agents in (10, 30, 200):
            subject = f"{agents} agents x {count} resources"
            headlines.append(headline(subject, found, "forcopt saturation@highs"))
    text = "Divisible resources, linear utilities, values uniform on [0, 1]; agents × resources.\n\n"
    return text + table(COLUMNS, rows), headlines


def facilities(quick: bool) -> tuple[str, list[Row]]:
    rows, headlines = [], []
    for customers, sites, many in SITES[:1] if quick else SITES:
        rng = np.random.default_rng(sites)
        spots = rng.random((customers + sites, 2))
        D = np.round(20 * np.linalg.norm(spots[:customers, None] - spots[None, customers:], axis=2)) + 1
        found: dict[str, Result] = {}
        for method in ("compact", "cuts", "ordered-values"):
            m = fo.Model("facilities")
            is_open = m.variable("open", sites, binary=True)
            goes = m.variable("goes", D.shape, binary=True)
            m.subject_to(goes.sum(axis=1) == 1, is_open.sum() == many, goes - is_open <= 0)
            m.leximax((goes * D).sum(axis=1), method)
            found[f"forcopt {method}@highs"] = ours(m)
        data = {"D": D.tolist(), "open": many}
        for method in ("ordered_values", "ordered_outcomes"):
            found[f"cvxpy_leximin {method}"] = peer("facilities", method, data)
        rows += compared(f"{customers} × {sites}, {many}", found)
        subject = f"facilities, {customers} x {sites} (integer)"
        headlines.append(headline(subject, found, "forcopt cuts@highs", best=True))
    text = (
        "Customers go to open sites; the sorted distances are leximax. Integer distances up to 30; "
        "customers × sites, number of open sites.\n\n"
    )
    return text + table(COLUMNS, rows), headlines


def panels(quick: bool) -> tuple[str, list[Row]]:
    rows = []
    for people, size, features in PANELS[:1] if quick else PANELS:
        p = random_panel(people, size, features=features, seed=people)
        s = p.solve("column-generation", time_limit=LIMIT)
        levels = s.decision.levels if s.status == "optimal" else None
        mine = {"seconds": s.seconds, "levels": levels, "status": f"{s.status}, {s.message}"}
        found: dict[str, Result] = {"forcopt column-generation": mine}
        data = {"count": people, "size": size, **json.loads(json.dumps(p.to_dict()))}
        del data["utilities"]
        for method in ("leximin", "maximin"):
            r = peer("panel", method, data)
            if r["levels"] is not None and method == "maximin":
                r["levels"] = r["levels"][:1]
            found[f"sortition-algorithms {method}"] = r
        rows += compared(f"{people}, {size}, {features}", found)
    text = (
        "Citizens' panels: each person is a group, features have quotas; people, panel size, features. The "
        "leximin of sortition-algorithms needs Gurobi; its maximin (the first level only) runs on "
        "HiGHS.\n\n"
    )
    subject = f"a panel of {size} among {people}: ours every level, maximin the first only"
    return text + table(COLUMNS, rows), [headline(subject, found, "forcopt column-generation")]


def cohorts(quick: bool) -> tuple[str, list[Row]]:
    rows = []
    for n, m, k in COHORTS[:2] if quick else COHORTS:
        p = random_cohort(n, m, k, seed=n)
        names = ["saturation@highs", "saturation@highs:ipm", "saturation@glop", "saturation@clarabel"]
        names += ["cuts@highs"] if m <= 60 else []
        names += ["compact@highs"] if m <= 60 else []
        names = [name for name in names if n <= 500 or "clarabel" not in name]
        expected = None
        for name in names:
            s = p.solve(name, time_limit=LIMIT)
            levels = s.decision.levels if s.status == "optimal" else None
            expected = levels if expected is None else expected
            solves = re.search(r"(\d+) solves", s.message)
            subsets = re.search(r"(\d+) of 2\*\*", s.message)
            apart = "" if levels is None else f"{np.abs(levels - expected).max():.1e}"
            cells = [f"{n} × {m}, {k}", name, f"{s.seconds:.3g}", str(s.status), solves[1] if solves else ""]
            rows.append([*cells, subsets[1] if subsets else "", apart])
            progress(*rows[-1])
            if name == "saturation@highs":
                headline = row(
                    f"cohorts, {n:,} candidates x {m} groups",
                    f"{s.seconds:.3g} s, {cells[-1]} linear programs",
                )
    text = (
        "Uniform utilities; candidates × groups, size. Subset rows: the number of rows needed, of 2^m - "
        "1.\n\n"
    )
    columns = ["size", "method", "seconds", "status", "solves", "subset rows", "levels apart"]
    return text + table(columns, rows), [headline]


def gaps(quick: bool) -> tuple[str, list[Row]]:
    rows = []
    seeds = range(2 if quick else 10)
    schemes = [("saturation", 0.0), ("convex-program", 0.0)]
    schemes += [(name, slack) for slack in (0.05, 0.2) for name in ("cumulative", "recursive")]
    for name, slack in schemes:
        problems = [random_cohort(10, 5, 3, grid=10, seed=seed, slack=slack) for seed in seeds]
        problems += [random_block(10, 5, 3, share=0.4, seed=seed, slack=slack) for seed in seeds]
        element, trade, good, seconds = [], [], 0, 0.0
        for p in problems:
            s = (p.replace(objective="maximin") if name == "convex-program" else p).solve(name)
            every, u = FeasibleCohorts(p), s.decision.utilities
            element.append(every.elementwise_gap(u))
            trade.append(float(every.tradeoff_gap(u).max()))
            good += bool((every.level_maxima(slack) - slack - np.sort(u)).max() <= 1e-3)
            seconds += s.seconds / len(problems)
        spreads = [f"{np.mean(g):.4f}, {np.max(g):.4f}" for g in (element, trade)]
        rows.append([name, slack, *spreads, f"{good} of {len(problems)}", f"{seconds:.3g}"])
        progress(*rows[-1])
    text = (
        "Marginals of 10 candidates for 5 groups, size 3: 10 instances on a grid of tenths, 10 in which "
        "each candidate serves 40 % of the groups. Mean and largest gap; number of instances that are "
        "recursive for the slack.\n\n"
    )
    columns = ["method", "slack", "elementwise gap", "tradeoff gap", "recursive", "seconds"]
    return text + table(columns, rows), []


def noise(quick: bool) -> tuple[str, list[Row]]:
    rows = []
    promised = {"leximax": "none", "significant tradeoff": "Lemma 18", "significant recursive": "Lemma 19"}
    for d in (0.01, 0.05):
        eps = 3 * d
        found: dict[str, list[Any]] = {kind: [] for kind in promised}
        for seed in range(50 if quick else 400):
            rng = np.random.default_rng(seed)
            p = random_cohort(10, 4, 3, seed=rng)
            U = np.concatenate(list(all_cohorts(p))) @ p.utilities
            true, noisy = SolutionSet(U), SolutionSet(U + rng.uniform(-d, d, U.shape))
            found["leximax"] += [true.tradeoff_gap(U[i]) for i in noisy.leximax()]
            chosen = noisy.significant_tradeoff(eps - 2 * d, 2 * d)
            found["significant tradeoff"] += [true.tradeoff_gap(U[i]) for i in chosen]
            chosen = noisy.significant_leximax(eps)
            found["significant recursive"] += [true.tradeoff_gap(U[i]) for i in chosen]
        for kind, promise in promised.items():
            each = np.array(found[kind])
            worst = each.max(axis=1)
            failed = each[:, 0] > eps + 2 * d + 1e-9 if promise == "Lemma 19" else worst > eps + 1e-9
            spread = f"{worst.mean():.3f}, {worst.max():.3f}"
            rows.append([kind, d, f"{eps:g}", spread, promise, f"{failed.sum()} of {len(each)}"])
            progress(*rows[-1])
    text = (
        "All cohorts of 3 among 10 candidates, 4 groups, uniform utilities; each cohort's utilities have a "
        "uniform error of up to d. Cohorts are chosen by noisy utilities and evaluated by true utilities. "
        "Columns: mean and largest tradeoff gap, and the number of failures of Lemma 18 (gap at most eps) "
        "or of Lemma 19 as corrected (level 1 within eps + 2d of the best); for leximax, the number of gaps "
        "above eps.\n\n"
    )
    return text + table(["chosen", "d", "eps", "tradeoff gap", "promise", "failures"], rows), []


def integers(quick: bool) -> tuple[str, list[Row]]:
    rows = []
    for n, m, k in ((15, 8, 4), (40, 12, 8), (100, 20, 15))[: 1 if quick else 3]:
        p: LeximaxCohort = random_block(n, m, k, seed=n, integer=True)
        found: dict[str, Result] = {}
        names = ["compact@highs", "ordered-values@highs", "ordered-values@cp-sat", "cuts@highs"]
        for name in names:
            s = p.solve(name, time_limit=LIMIT)
            levels = s.decision.levels if s.status == "optimal" else None
            found[name] = {"seconds": s.seconds, "levels": levels, "status": str(s.status)}
        rows += compared(f"{n} × {m}, {k}", found)
    text = "One cohort; each candidate serves a fifth of the groups; candidates × groups, size.\n\n"
    return text + table(COLUMNS, rows), []


PARTS = {
    "Resource allocation": resources,
    "Facility location (integer)": facilities,
    "Panels": panels,
    "Cohorts": cohorts,
    "One cohort": integers,
    "Exact and approximate": gaps,
    "Noise": noise,
}


def main() -> None:
    given = parser(__doc__, "learning", "methods").parse_args()
    if "learning" in given.parts:
        learning.main(given.quick, given.out.with_name("learning.md"))
    if "methods" in given.parts:
        methods(given.quick, given.out)


def methods(quick: bool, out: Path) -> None:
    """All but learning."""
    versions = ", ".join(f"{name} {number}" for name, number in PEERS.items())
    note = f"Peers in an environment of their own: {versions}. Every solve may take {LIMIT:.0f} s."
    used = ("numpy", "scipy", "highspy", "cvxpy", "ortools", "clarabel")
    page = Page("Leximax", out, *used, note=note)
    for backend in ("highs", "glop", "clarabel"):
        ours(sharing(np.eye(2), "saturation"), backend)  # imports all before anything is timed
    fo.Model().solve("cp-sat")
    page.run(PARTS, quick)


if __name__ == "__main__":
    main()
