"""Random small models on all backends, against exact oracles, for a chosen time and from any seed.

    python benchmarks/fuzz/run.py --out benchmarks/fuzz/results.md --seconds 600 --seed 1 --jobs 2

Every file in ``campaigns`` has oracles of its own: of the engine ``models`` (linear, integer, quadratic,
second-order and semidefinite programs, objectives in order, lazy families), ``cones`` (exponential, power,
semidefinite and second-order cones, by closed forms) and ``modelling`` (conditions, logic, piecewise linear
functions and parameters, solved again after changes, by enumeration); and of the problems, by all methods.
A status OPTIMAL, INFEASIBLE or UNBOUNDED that is not true, an optimum off by more than the backend's
accuracy allows, or a false certificate is wrong; a failure that says so is counted apart. A wrong answer is
printed with its seed: ``--only CAMPAIGN:SEED`` repeats it. ``--jobs`` processes take turns of the seeds.
``--quick`` runs ten seconds.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from benchmarks.fuzz import campaigns
from benchmarks.fuzz.case import ModelCase, ProblemCase, answers, model_answers
from benchmarks.report import Page, parser, progress, row, table

Counts = Counter[tuple[str, str, str]]
CAMPAIGNS: dict[str, Callable[[np.random.Generator], ModelCase | ProblemCase]] = {
    name: make
    for module in pkgutil.iter_modules(campaigns.__path__)
    for name, make in importlib.import_module(f"{campaigns.__name__}.{module.name}").CAMPAIGNS.items()
}
BATCH = 5
"""Seeds of a campaign before the next one's turn."""


def runs(case: ModelCase | ProblemCase) -> Iterator[tuple[str, str, str]]:
    """Every run of a case, its verdict and the answers in words."""
    return answers(case) if isinstance(case, ProblemCase) else model_answers(case)


def campaign(name: str, seeds: list[int], counts: Counts) -> None:
    """Run the models or problems of some seeds by every backend or method that is there."""
    for seed in seeds:
        key = zlib.crc32(name.encode())
        case = CAMPAIGNS[name](np.random.default_rng([key, seed]))
        for run, answer, words in runs(case):
            counts[name, run, answer] += 1
            if answer == "wrong":
                progress(f"WRONG {name}:{seed} by {run}: {words}")
        counts[name, "models", ""] += 1


def job(number: int, jobs: int, names: list[str], seed: int, seconds: float) -> Counts:
    """Run every `jobs`-th batch of seeds, from the one of that number on, until the time is over."""
    counts: Counts = Counter()
    began, turn = time.monotonic(), number
    while time.monotonic() - began < seconds:
        first = 1_000_003 * seed + BATCH * turn
        for name in names:
            campaign(name, list(range(first, first + BATCH)), counts)
        turn += jobs
    return counts


def report(counts: Counts) -> str:
    """The table of all counts."""
    rows = []
    for name in CAMPAIGNS:
        for backend in sorted({b for c, b, _ in counts if c == name and b != "models"}):
            cells = [counts[name, backend, a] for a in ("right", "wrong", "no answer", "not decided")]
            rows.append((name, counts[name, "models", ""], backend, *cells))
    return table(["campaign", "models", "run", "right", "wrong", "no answer", "not decided"], rows)


def main() -> None:
    """Run all campaigns in turns until the time is over."""
    options = parser(__doc__)
    options.add_argument("--seconds", type=float, default=600.0)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--jobs", type=int, default=1, help="processes")
    options.add_argument("--only", help="CAMPAIGN:SEED, to repeat one model")
    options.add_argument("--campaigns", default=",".join(CAMPAIGNS), help="names, with commas between")
    given = options.parse_args()
    counts: Counts = Counter()
    if given.only:
        name, _, seed = given.only.partition(":")
        campaign(name, [int(seed)], counts)
        print(report(counts))
        return
    seconds, names = 10.0 if given.quick else given.seconds, given.campaigns.split(",")
    page = Page("Random models against exact oracles", given.out, "forcopt", "highspy", "ortools", "cvxpy")
    if given.jobs == 1:
        counts = job(0, 1, names, given.seed, seconds)
    else:
        with ProcessPoolExecutor(given.jobs, mp_context=get_context("spawn")) as pool:
            parts = [
                pool.submit(job, number, given.jobs, names, given.seed, seconds)
                for number in range(given.jobs)
            ]
            for part in parts:
                counts += part.result()
    models = sum(n for (_, b, _), n in counts.items() if b == "models")
    totals = Counter({a: sum(n for (_, b, x), n in counts.items() if x == a) for a in ("right", "wrong")})
    solves = sum(n for (_, b, _), n in counts.items() if b != "models")
    jobs = f", {given.jobs} processes" if given.jobs > 1 else ""
    page.write(
        f"Seed {given.seed}, {seconds:.0f} s{jobs}: {models:,} models, {solves:,} solves.\n\n{report(counts)}"
    )
    page.headline(
        [
            row(
                f"{models:,} random models, {solves:,} solves",
                f"{totals['wrong']} wrong answers",
                "exact oracles",
            )
        ]
    )


if __name__ == "__main__":
    main()
