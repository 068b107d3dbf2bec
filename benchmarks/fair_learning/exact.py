"""Each approximate method against the optimum, as instances and rounds grow."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from benchmarks.report import Page, progress, table
from forcopt.fairness import EqualizedOdds, PairwiseFairness
from forcopt.models.fair_classification import (
    AllFunctions,
    FairClassification,
    Finite,
    Halfspaces,
    Thresholds,
)
from forcopt.models.fair_classification.games import rounds_needed

BOUND = 10.0
LIMIT = 30.0
ODDS = EqualizedOdds(0.05)


def draw(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    a, y = rng.integers(0, 2, n), rng.integers(0, 2, n)
    return rng.normal(size=(n, d)) + 0.8 * y[:, None] + 0.5 * a[:, None], y, a


def instances(quick: bool) -> list[tuple[str, FairClassification]]:
    out = []
    for n in (100,) if quick else (100, 1000, 10_000):
        x, y, a = draw(n, 1)
        out.append((f"thresholds, n = {n:,}", FairClassification(x, y, a, ODDS, None, Thresholds())))
    for n, h in ((200, 100),) if quick else ((200, 100), (2000, 1000)):
        x, y, a = draw(n, 5)
        normal = np.random.default_rng(1).normal(size=(h, 5))
        finite = Finite(np.vstack([np.zeros(n), np.ones(n), (normal @ x.T > 0.5)]).astype(int))
        out.append((f"{h + 2:,} hypotheses, n = {n:,}", FairClassification(x, y, a, ODDS, None, finite)))
    for n in (20,) if quick else (20, 60):
        x, y, a = draw(n, 2)
        out.append((f"plane, halfspaces, n = {n}", FairClassification(x, y, a, ODDS, None, Halfspaces())))
    for n, q in ((200, 100),) if quick else ((200, 100), (2000, 1000)):
        x, y, a = draw(n, 2)
        pairs = PairwiseFairness(np.random.default_rng(2).integers(0, n, (q, 2)), budget=0.05)
        free = FairClassification(x, y, a, pairs, None, AllFunctions())
        out.append((f"all functions, {q:,} pairs, n = {n:,}", free))
    return out


def main(quick: bool, out: Path) -> None:
    page = Page(
        "Fair learning: approximate against exact", out, "numpy", "scipy", "highspy", note="One thread."
    )
    rows: list[list[str]] = []
    for name, problem in instances(quick):
        best = problem.solve("lp")
        tries = [("lp", {}), ("column-generation", {"time_limit": LIMIT})]
        games = {"accuracy": 1e-3, "time_limit": LIMIT}
        tries += [("exponentiated-gradient", games), ("no-regret", games)]
        if isinstance(problem.hypotheses, Halfspaces | Thresholds) and len(problem.labels) <= 100:
            tries.append(("milp", {"time_limit": LIMIT}))
        for rounds in (10, 100, 1000):
            step = 0.5 * np.sqrt(np.log(problem.lagrangian.size + 1) / rounds)
            plain = {"accuracy": 0.0, "bound": BOUND, "rounds": rounds, "step": step, "repair": False}
            tries.append(("exponentiated-gradient", plain))
        for method, options in tries:
            began = time.perf_counter()
            s = problem.solve(method, **options)
            spent = time.perf_counter() - began
            label, theorem = method, ""
            if "rounds" in options:
                label += f", average of {options['rounds']:,}"
                regret = BOUND * np.log(problem.lagrangian.size + 1) / (options["step"] * options["rounds"])
                theorem = f"{regret + 4 * options['step'] * BOUND:.3f}"
            gap = proved(problem, s, options.get("bound"))
            over = max(s.evaluation.violations.values(), default=0.0) if s.evaluation else float("nan")
            less = f"{s.objective - best.objective:+.1e}"
            cells = [name, label, f"{s.objective:.5f}", less, f"{over:.1e}", gap, theorem]
            rows.append([*cells, str(s.iterations), f"{spent:.3f}"])
            progress(*rows[-1])
            page.write(intro() + table(HEAD, rows))  # rows that are finished stay


HEAD = ["instance", "method", "error", "less the optimum", "over the bound", "measured gap", "theorem's gap"]
HEAD += ["rounds", "seconds"]


def proved(problem: FairClassification, s, bound: float | None) -> str:
    """The duality gap that the solution proves, by its own multipliers."""
    if s.decision is None or s.decision.multipliers is None:
        return ""
    return f"{problem.saddle_gaps(s.decision, s.decision.multipliers, bound).total:.1e}"


def intro() -> str:
    theory = rounds_needed(4, BOUND, 0.01)[0]
    return (
        "Equalized odds within 0.05, or pairs with a budget of 0.05. The averages have multipliers of sum "
        f"at most {BOUND:g}; their error may be below the optimum, because they may violate the constraint. "
        "The theorem's gap is the regret bound `B ln(r + 1) / (step T) + 4 step B`. For a gap of 0.01 the "
        f"theorem needs {theory:,} rounds; the other rows of games repair the mixture by a linear program "
        f"and stop at a gap of 0.001. Every method had {LIMIT:g} s.\n\n"
    )
