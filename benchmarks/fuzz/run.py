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

    python benchmarks/fuzz/run.py --out benchmarks/fuzz/counts.md --models 5000 --campaigns districting

``--models`` counts instead of timing: each campaign goes on after the seeds counted in the csv file of the
page's name, until it has that many. Each problem is solved by one method on one backend, both drawn at
random; a quarter is solved again with a limit of a millisecond. To count a campaign anew, delete its rows.
"""

from __future__ import annotations

import csv
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
ANSWERS = ("right", "wrong", "no answer", "not decided")
HEAD = ("campaign", "models", "run", *ANSWERS)


def runs(
    case: ModelCase | ProblemCase, rng: np.random.Generator | None = None
) -> Iterator[tuple[str, str, str]]:
    """Every run of a case, its verdict and the answers in words; drawn runs if there is a generator."""
    return answers(case, rng) if isinstance(case, ProblemCase) else model_answers(case)


def campaign(name: str, seeds: list[int], counts: Counts, draws: bool = False) -> None:
    """Run the models or problems of some seeds by every backend or method that is there, or by some."""
    for seed in seeds:
        key = zlib.crc32(name.encode())
        case = CAMPAIGNS[name](np.random.default_rng([key, seed]))
        for run, answer, words in runs(case, np.random.default_rng([key, seed, 1]) if draws else None):
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


def counted(names: list[str], models: int, page: Page) -> None:
    """Go on with campaigns in turns until each has so many models; page and file have whole batches."""
    path = page.out.with_suffix(".csv")
    counts = read_counts(path)
    while left := [name for name in names if counts[name, "models", ""] < models]:
        for name in left:
            done = counts[name, "models", ""]
            campaign(name, list(range(done, min(done + BATCH, models))), counts, draws=True)
            with path.with_suffix(".part").open("w", encoding="utf-8", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows([HEAD, *rows_of(counts)])
            path.with_suffix(".part").replace(path)
    page.write(
        "Counts of several runs, of the seeds from 0 on. Methods and backends are drawn for each problem: "
        f"{report(counts)}"
    )


def read_counts(path: Path) -> Counts:
    """The counts of a file; none if it does not exist."""
    counts: Counts = Counter()
    if path.exists():
        with path.open(encoding="utf-8", newline="") as file:
            for line in csv.DictReader(file):
                counts[line["campaign"], "models", ""] = int(line["models"])
                counts.update({(line["campaign"], line["run"], a): int(line[a]) for a in ANSWERS})
    return counts


def rows_of(counts: Counts) -> list[tuple[object, ...]]:
    """A row for each campaign and run."""
    return [
        (name, counts[name, "models", ""], run, *(counts[name, run, a] for a in ANSWERS))
        for name in sorted({c for c, _, _ in counts}, key=list(CAMPAIGNS).index)
        for run in sorted({r for c, r, _ in counts if c == name and r != "models"})
    ]


def totals(counts: Counts) -> str:
    """The number of models and of solves."""
    models = sum(n for (_, run, _), n in counts.items() if run == "models")
    solves = sum(n for (_, run, _), n in counts.items() if run != "models")
    return f"{models:,} random models, {solves:,} solves"


def report(counts: Counts) -> str:
    """The totals, and the table of all counts."""
    return f"{totals(counts)}.\n\n{table(HEAD, rows_of(counts))}"


def main() -> None:
    """Run all campaigns in turns until the time is over."""
    options = parser(__doc__)
    options.add_argument("--seconds", type=float, default=600.0)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--jobs", type=int, default=1, help="processes")
    options.add_argument("--only", help="CAMPAIGN:SEED, to repeat one model")
    options.add_argument("--models", type=int, default=0, help="count until each campaign has so many")
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
    if given.models:
        counted(names, given.models, page)
        return
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
    jobs = f", {given.jobs} processes" if given.jobs > 1 else ""
    page.write(f"Seed {given.seed}, {seconds:.0f} s{jobs}: {report(counts)}")
    wrong = sum(n for (_, _, answer), n in counts.items() if answer == "wrong")
    page.headline([row(totals(counts), f"{wrong} wrong answers", "exact oracles")])


if __name__ == "__main__":
    main()
