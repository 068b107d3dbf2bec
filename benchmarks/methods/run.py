"""Every method on instances of every problem: who is fastest, who proves most, who is best after how long.

    python benchmarks/methods/run.py --out RESULTS.md [--time-limit 10] [--seed 0] [PROBLEM ...]

Of each problem it draws some instances by the seed, from those of the library and the shipped examples. Every
method runs with its default options and backend, in a process of its own. Rows are kept in ``runs.sqlite``
(not committed) as they end, so that an interrupted run continues where it was.

A method is supported by the table if it is the default, the paper's own or an oracle; if it is the quickest
to the best objective, or to a proof of it, on one instance; or if it alone has the best objective or the best
bound at one of the times. Methods without support stand at the end: they are candidates for removal. So do
methods that answered on no instance: their declarations were not among those drawn.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

import forcopt as fo
from benchmarks.report import Page, parser, progress, row, table
from forcopt.problem import examples, load, problem_classes
from forcopt.status import Status
from forcopt.study import Run, library

HERE = Path(__file__).resolve().parent
TIMES = (0.1, 1.0, 10.0)
ACCURACY = 1e-6
"""Objectives and bounds that differ by less, relative to max(1, value), are equal."""
Support = dict[tuple[str, str], dict[str, int]]
"""By problem and method: the counts of `COLUMNS`."""
VIOLATION = 1e-6
"""How far a decision may violate a demand, so that its objective counts."""


def main() -> None:
    options = parser(__doc__)
    options.add_argument("problems", nargs="*", metavar="PROBLEM", help="names of classes; all if left out")
    options.add_argument("--time-limit", type=float, default=TIMES[-1], metavar="SECONDS")
    options.add_argument("--instances", type=int, default=8, metavar="COUNT", help="of each problem")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--store", type=Path, default=HERE / "runs.sqlite")
    arguments = options.parse_args()
    limit, count = (1.0, 1) if arguments.quick else (arguments.time_limit, arguments.instances)
    page = Page("Every method on every problem", arguments.out, "numpy", "highspy", "ortools", "cvxpy")
    support: Support = {}
    drawn = draw(arguments.problems, count, arguments.seed)
    for at, (name, problems) in enumerate(drawn.items()):
        runs = fo.compare(
            problems, time_limit=limit, seed=0, store=arguments.store, progress=False, memory_limit=4 * 10**9
        ).rows
        for method in dict.fromkeys(m for p in problems.values() for m in p.methods):
            support[name, method] = dict.fromkeys(COLUMNS, 0)
        for _, rows in groupby(runs, key=lambda r: r.instance):
            judge(name, list(rows), support)
        progress(f"{at + 1}/{len(drawn)} {name}: {len(runs)} runs")
        page.write(text(support, drawn, limit))
    unsupported = sum(not supported(*key, counts) for key, counts in support.items())
    page.headline([row("methods with support", f"{len(support) - unsupported} of {len(support)}")])


def draw(names: list[str], count: int, seed: int) -> dict[str, dict[str, fo.Problem]]:
    """For each class of problems, some instances by name."""
    rng = np.random.default_rng(seed)
    found: dict[str, dict[str, fo.Problem]] = defaultdict(dict)
    for instance in library.instances().values():
        problem = instance.make()
        found[type(problem).__name__][instance.name] = problem
    for name in examples():
        problem = load(name)
        found[type(problem).__name__].setdefault(name, problem)
    chosen = {}
    for kind in names or sorted(problem_classes()):
        every = found[kind]
        keep = sorted(rng.choice(len(every), size=min(count, len(every)), replace=False))
        chosen[kind] = {name: every[name] for name in np.array(list(every))[keep]} if every else {}
    return {kind: problems for kind, problems in chosen.items() if problems}


COLUMNS = (
    "runs", "solved", "proved", "quickest", "quickest proof", *(f"best at {t:g} s" for t in TIMES),
    "alone best", "alone best bound",
)  # fmt: skip
"""The counts of instances for each method."""


def judge(problem: str, rows: list[Run], support: Support) -> None:
    """Count what each run on one instance was best in."""
    sign = 1.0 if rows[0].sense == "min" else -1.0
    final = [sign * objective_at(r, np.inf) for r in rows]
    best = min(final)
    for r in rows:
        counts = support[problem, r.method]
        counts["runs"] += 1
        counts["solved"] += r.solved
        counts["proved"] += proved(r)
    if winners := [r for r, value in zip(rows, final, strict=True) if equal(value, best)]:
        quickest = min(winners, key=lambda r: reached(r, sign * best))
        support[problem, quickest.method]["quickest"] += 1
    if proofs := [r for r in rows if proved(r)]:
        support[problem, min(proofs, key=lambda r: r.seconds).method]["quickest proof"] += 1
    for t in TIMES:
        leaders = lead(rows, [sign * objective_at(r, t) for r in rows])
        for method in leaders:
            support[problem, method][f"best at {t:g} s"] += 1
            support[problem, method]["alone best"] += len(leaders) == 1
    leaders = lead(rows, [-sign * r.bound if r.exact and np.isfinite(r.bound) else np.inf for r in rows])
    for method in leaders:
        support[problem, method]["alone best bound"] += len(leaders) == 1


def lead(rows: list[Run], values: list[float]) -> set[str]:
    """The methods that have the least value."""
    return {r.method for r, value in zip(rows, values, strict=True) if equal(value, min(values))}


def equal(a: float, b: float) -> bool:
    return bool(np.isfinite(a)) and abs(a - b) <= ACCURACY * max(1.0, abs(b))


def proved(r: Run) -> bool:
    return r.exact and r.status in (Status.OPTIMAL, Status.INFEASIBLE)


def objective_at(r: Run, seconds: float) -> float:
    """The objective that a run had after that time; infinite, as the sense has it, without one."""
    worst = np.inf if r.sense == "min" else -np.inf
    if not r.solved or r.violation > VIOLATION:
        return worst
    if r.seconds <= seconds:
        return r.objective
    values = [i.objective for i in r.trace if i.seconds <= seconds and i.objective is not None]
    return values[-1] if values and np.isfinite(values[-1]) else worst


def reached(r: Run, objective: float) -> float:
    """When a run had that objective."""
    times = [i.seconds for i in r.trace if i.objective is not None and equal(i.objective, objective)]
    return min([r.seconds, *times])


def supported(problem: str, method: str, counts: dict[str, int]) -> bool:
    """Whether the method earns its place."""
    rank = problem_classes()[problem].methods[method].rank
    earned = ("quickest", "quickest proof", "alone best", "alone best bound")
    return rank != "alternative" or any(counts[name] for name in earned)


def text(support: Support, drawn: dict[str, dict[str, fo.Problem]], limit: float) -> str:
    """The page: one table, and the methods without support."""
    head = ("problem", "method", "rank", *COLUMNS)
    rows: Iterable[tuple[object, ...]] = (
        (problem, method, problem_classes()[problem].methods[method].rank, *counts.values())
        for (problem, method), counts in support.items()
    )
    open_ = {key for key, counts in support.items() if not supported(*key, counts)}
    idle = {key for key in open_ if not support[key]["solved"] + support[key]["proved"]}
    beaten, silent = (
        ", ".join(f"{p} `{m}`" for p, m in support if (p, m) in kind) or "none"
        for kind in (open_ - idle, idle)
    )
    instances = sum(len(problems) for name, problems in drawn.items() if any(p == name for p, _ in support))
    return (
        f"{instances} instances, {limit:g} seconds for each run. The columns count instances on which a "
        "method has a feasible answer (solved) or a proof, is the fastest to the best objective or to a "
        "proof, has the best objective after a time, or is the only method with the best objective or "
        "bound.\n\n"
        + table(head, rows)
        + f"\nWithout support: {beaten}.\n\nNo answer on a drawn instance: {silent}.\n\n"
        + "A formulation without support stays if other solvers, `declare` or a file of the instance library "
        "need it; another method stays if it is the quickest in the benchmark of its problem or takes "
        "declarations that no other exact method takes.\n"
    )


if __name__ == "__main__":
    main()
