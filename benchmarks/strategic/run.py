"""Runs the strategic classification benchmark and writes a Markdown table.

    python benchmarks/strategic/run.py --out benchmarks/strategic/results.md

Everything is seeded. ``--quick`` does a small part of each table, for checking that it runs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
import pandas as pd

from benchmarks.report import MEDIANS, Page, Row, data, middle, parser, progress, row, table
from forcopt.models.strategic import StrategicClassification, learn_bandit, learn_full_information
from forcopt.models.strategic.instances import credit, max_cover, random_discrete, random_plane
from forcopt.models.strategic.learning import bandit_batch, full_information_samples
from forcopt.problem import Solution

LIMIT = 60.0  # seconds for one solve of an LP or MILP
MOST_EDGES = 1_100_000  # larger models are not handed to a solver
CRITERIA = 8  # in the learning part
SIZES = (
    *((100, 10), (1_000, 10), (1_000, 100), (10_000, 100), (100_000, 100)),
    *((10_000, 1_000), (100_000, 1_000), (1_000_000, 1_000), (1_000_000, 10_000)),
)
HEADLINES = ((1_000, 100), (10_000, 100), (100_000, 1_000))


def seconds(value: float) -> str:
    return f"{value:.3g} s"


def told(solution: Solution) -> str:
    """Seconds and value of a solve, or why there is none."""
    if not solution.status.has_solution:
        return f"{solution.status} after {solution.seconds:.0f} s"
    bound = f", bound {solution.bound:.1f}" if solution.status == "feasible" else ""
    return f"{seconds(solution.seconds)} ({solution.objective:g}{bound})"


def scale(quick: bool) -> tuple[str, list[Row]]:
    """Greedy deletion, LP and MILP on graphs with about ten edges an agent, no false positive allowed.

    Gaming is so rare that deleting one criterion often makes agents game on the next.
    """
    rows, headlines = [], []
    for agents, criteria in SIZES[:3] if quick else SIZES:
        density = min(0.7, 10 / criteria)
        began = time.perf_counter()
        p = random_discrete(agents, criteria, density=density, gaming=0.4 * criteria / agents, seed=1)
        declared = time.perf_counter() - began
        began = time.perf_counter()
        edges = len(p.graph.agent)
        ordered = time.perf_counter() - began
        greedy = middle(partial(p.solve, "greedy-deletion"))
        cells = [f"{agents:,} × {criteria:,}", f"{edges:,}", seconds(declared), seconds(ordered)]
        cells += [f"{seconds(greedy.seconds)}", f"{greedy.objective:,.0f}", str(greedy.iterations)]
        solves = [partial(p.solve, m, time_limit=LIMIT) for m in ("lp", "milp")]
        exact = [middle(solve) for solve in solves] if edges <= MOST_EDGES else []
        rows.append(cells + ([told(s) for s in exact] or ["not tried"] * 2))
        progress(*rows[-1])
        if exact and (agents, criteria) in HEADLINES:
            headlines.append(
                row(
                    f"{agents:,} agents x {criteria:,} criteria, {edges:,} edges, no false positives",
                    f"greedy deletion {seconds(greedy.seconds)}",
                    f"LP {told(exact[0])}, MILP {told(exact[1])} (HiGHS)",
                    ", ".join(f"{s.seconds / greedy.seconds:.0f}" for s in exact),
                )
            )
    head = [
        "agents × criteria",
        "edges",
        "draw and declare",
        "sort",
        "greedy deletion",
        "its value",
        "passes",
    ]
    return table([*head, "LP (value)", "MILP (value)"], rows), headlines


def growth(quick: bool) -> tuple[str, list[Row]]:
    """Greedy deletion alone: time an edge as the graph grows tenfold, and cascades of many passes."""
    rows = []
    for exponent in range(3, 6 if quick else 8):
        agents = 10 ** (exponent - 1)
        criteria = min(1_000, agents)
        p = random_discrete(agents, criteria, density=10 / criteria, gaming=0.4 * criteria / agents, seed=2)
        rows.append(_growth_row("random", p))
    for criteria in (1_000, 10_000):
        p = _cascade(criteria, crowd=1 if quick else 100)
        rows.append(_growth_row(f"cascade, {criteria:,} criteria", p))
    return table(["instance", "edges", "sort", "greedy deletion", "nanoseconds an edge", "passes"], rows), []


def _cascade(criteria: int, crowd: int) -> StrategicClassification:
    """Agents who game on criterion i once i + 1 is gone, `crowd` for each i: one deletion a pass."""
    agent = np.arange(criteria * crowd)
    own = agent % criteria
    gaming = np.column_stack([agent, own, np.full(len(agent), 2), np.zeros(len(agent))])
    improving = np.column_stack([agent, own + 1, np.ones(len(agent)), np.ones(len(agent))])[
        own < criteria - 1
    ]
    edges = np.vstack([gaming, improving])
    return StrategicClassification(agents=len(agent), criteria=criteria, edges=edges, value=2.0)


def _growth_row(name: str, p: StrategicClassification) -> list[str]:
    began = time.perf_counter()
    edges = len(p.graph.agent)
    ordered = time.perf_counter() - began
    s = middle(partial(p.solve, "greedy-deletion"))
    an_edge = f"{s.seconds / edges * 1e9:.0f}"
    return [name, f"{edges:,}", seconds(ordered), seconds(s.seconds), an_edge, f"{s.iterations:,}"]


def limits(quick: bool) -> tuple[str, list[Row]]:
    """What allowing false positives does to the gap of the relaxation and to the time of the MILP."""
    rows = []
    sets = _triples(60, 120)
    worlds: list[tuple[str, Callable[[int], StrategicClassification]]] = [
        ("random, 100 × 25", lambda k: _random(100, 25, 0.3, 0.1, k)),
        ("credit, 200 applicants", lambda k: credit(200, seed=0, max_false_positives=k)),
        ("max cover, 60 elements, 120 sets", lambda k: max_cover(sets, 60, k)),
    ]
    if not quick:
        worlds.append(("random, 300 × 60", lambda k: _random(300, 60, 0.15, 0.15, k)))
    people = _adult(200)
    worlds.append(("credit, 200 of Adult", lambda k: credit(people=people, max_false_positives=k)))
    for name, make in worlds:
        for most in (0, 1, 2, 4, 8, 16):
            p = make(most)
            lp, milp = p.solve("lp", time_limit=LIMIT), p.solve("milp", time_limit=LIMIT)
            greedy = p.solve("greedy-deletion")
            nodes = milp.model_solution.nodes if milp.model_solution else 0
            solved = milp.status == "optimal" and milp.objective > 0
            gap = f"{abs(lp.bound - milp.objective) / milp.objective:.1%}" if solved else ""
            cells = [name, str(most), f"{greedy.objective:g}", f"{lp.objective:g}", f"{abs(lp.bound):.2f}"]
            rows.append([*cells, told(milp), gap, str(nodes)])
            progress(*rows[-1])
    head = ["instance", "K", "greedy deletion", "LP, opened", "LP bound"]
    head += ["MILP: time (value)", "LP gap", "nodes"]
    return table(head, rows), []


def _random(agents: int, criteria: int, density: float, gaming: float, most: int) -> StrategicClassification:
    return random_discrete(agents, criteria, density=density, gaming=gaming, seed=0, max_false_positives=most)


def _triples(elements: int, count: int) -> list[list[int]]:
    """Random distinct sets of three elements."""
    rng, found = np.random.default_rng(3), set[tuple[int, ...]]()
    while len(found) < count:
        found.add(tuple(sorted(rng.choice(elements, 3, replace=False).tolist())))
    return [list(t) for t in sorted(found)]


def _adult(count: int) -> np.ndarray:
    """Education, hours and capital gain (in thousands, at most 20) of random people of the Adult data set."""
    frame = pd.read_csv(data("tabular/adult.csv")).sample(count, random_state=0)
    savings = (frame["capital-gain"] / 1000).clip(upper=20)
    return np.column_stack([frame["education-num"], frame["hours-per-week"], savings])


def printed(quick: bool) -> tuple[str, list[Row]]:
    """Algorithm 3, corrected and as printed, against greedy deletion on the full grid, on integer data."""
    count = 300 if quick else 15_000
    rng = np.random.default_rng(2022)
    wrong = {False: [0, 0], True: [0, 0]}
    spent = {False: 0.0, True: 0.0, "grid": 0.0}
    for _ in range(count):
        p = random_plane(int(rng.integers(2, 7)), reach=int(rng.integers(1, 6)), seed=rng)
        oracle = p.solve("grid")
        spent["grid"] += oracle.seconds
        for as_printed in (False, True):
            s = p.solve("sweep", as_printed=as_printed)
            assert s.evaluation is not None
            spent[as_printed] += s.seconds
            if not s.evaluation.feasible:
                wrong[as_printed][0] += 1
            elif s.objective != oracle.objective:
                wrong[as_printed][1] += 1
    each = {k: f"{v / count * 1e6:.0f} µs" for k, v in spent.items()}
    rows = [
        [name, str(wrong[k][0]), str(wrong[k][1]), f"{sum(wrong[k]) / count:.2%}", each[k]]
        for name, k in (("corrected", False), ("as printed", True))
    ]
    rows.append(["grid oracle", "", "", "", each["grid"]])
    head = [f"of {count:,} instances", "false positives", "lost true positives", "wrong", "mean time"]
    headline = row(
        f"targets in the plane, {count:,} instances: wrong answers",
        f"{sum(wrong[False]):,} (corrected Algorithm 3, {each[False]})",
        f"{sum(wrong[True]):,} (as printed, {each[True]}); grid oracle {each['grid']}",
        f"{spent['grid'] / spent[False]:.1f} (oracle's time)",
    )
    return table(head, rows), [headline]


def learning(quick: bool) -> tuple[str, list[Row]]:
    """Failures of learning over many repetitions, for several numbers of drawn agents."""
    runs, epsilon, delta = 50 if quick else 1_000, 0.1, 0.05
    weights = np.random.default_rng(4).dirichlet(np.ones(40))
    p = random_discrete(40, CRITERIA, density=0.3, gaming=0.12, seed=0, weights=weights)
    best = p.solve("greedy-deletion").objective
    enough = full_information_samples(CRITERIA, epsilon, delta)
    rows = []

    def measure(name: str, learn) -> None:  # type: ignore[no-untyped-def]
        found = [learn(seed) for seed in range(runs)]
        seen = [p.simulate(f.decision) for f in found]
        true, false = np.array([r.true_positives for r in seen]), np.array([r.false_positives for r in seen])
        failed = (true < best - epsilon - 1e-9) | (false > epsilon + 1e-9)
        drawn = np.array([f.samples for f in found])
        means = [f"{true.mean():.3f}", f"{false.mean():.3f}", f"{false.max():.3f}", f"{failed.mean():.1%}"]
        rows.append([name, f"{drawn.mean():.1f}", str(drawn.max()), *means])

    for samples in (5, 10, 20, 40, enough):
        name = f"full information, {samples} agents" + (" (Theorem 8)" if samples == enough else "")
        measure(name, lambda s, n=samples: learn_full_information(p, epsilon, delta, samples=n, seed=s))
    most = CRITERIA * bandit_batch(CRITERIA, epsilon, delta)
    measure(f"bandit, batches (Theorem 9: at most {most})", lambda s: learn_bandit(p, epsilon, delta, seed=s))
    measure("bandit, online", lambda s: learn_bandit(p, epsilon, delta, online=True, seed=s))
    head = ["learner", "agents drawn, mean", "most", "true positives, mean"]
    head += ["false positives, mean", "largest", "failures"]
    note = (
        f"{CRITERIA} criteria, 40 types of agents, {runs:,} runs each, ε = {epsilon}, δ = {delta}; "
        f"the optimum without false positives is {best:.3f}.\n\n"
    )
    return note + table(head, rows), []


PARTS = {
    "Greedy deletion, LP and MILP by size (no false positives allowed)": scale,
    "Greedy deletion is linear in the edges": growth,
    "Allowing K false positives": limits,
    "Algorithm 3, corrected and as printed": printed,
    "Learning": learning,
}


def main() -> None:
    given = parser(__doc__).parse_args()
    note = (
        f"All methods belong to forcopt: the exact methods are the peers of the linear-time method. {MEDIANS}"
    )
    page = Page("Strategic classification", given.out, "numpy", "scipy", "highspy", note=note)
    page.run(PARTS, given.quick)


if __name__ == "__main__":
    main()
