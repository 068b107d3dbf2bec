"""Random small models on all backends, against exact oracles, for a chosen time and from any seed.

    python benchmarks/fuzz/run.py --out benchmarks/fuzz/results.md --seconds 600 --seed 1 --jobs 2

Every file in ``campaigns`` has oracles of its own: of the engine ``models`` (linear, integer, quadratic,
second-order and semidefinite programs, objectives in order, lazy families), ``cones`` (exponential, power,
semidefinite and second-order cones, by closed forms) and ``modelling`` (conditions, logic, piecewise linear
functions and parameters, solved again after changes, by enumeration), and ``labels`` (operands whose labels
and axes are permuted, by enumeration); of the problems, by all methods; of draws of samples, by their exact
laws; and of the doors: ``serving`` (answers in a batch, one by one, in other orders and from files) and
``tables`` (misspelt, doubled and contradictory entries, which an error must name).
A status OPTIMAL, INFEASIBLE or UNBOUNDED that is not true, an optimum off by more than the backend's
accuracy allows, or a false certificate is wrong; a failure that says so is counted apart. A wrong answer is
printed with its seed: ``--only CAMPAIGN:SEED`` repeats it on every backend. ``--jobs`` processes take turns
of the seeds. A model of the engine is solved by ``--backends`` of the backends that take it, drawn at random.
``--add`` adds the counts to those of earlier runs, which ``counts.json`` beside the page holds run by run; it
refuses campaigns that an earlier run drew from the same seed. ``--models`` ends a campaign at a number of
models; ``--draw`` solves each problem by one method on one backend, drawn at random, and a quarter of them
again with a limit of a millisecond. ``--quick`` runs ten seconds.

    python benchmarks/fuzz/run.py --out benchmarks/fuzz/results.md --add --draw --models 5000 --seed 2
"""

from __future__ import annotations

import datetime
import importlib
import json
import os
import pkgutil
import resource
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from benchmarks.fuzz import campaigns
from benchmarks.fuzz.case import DoorCase, ModelCase, ProblemCase, answers, door_answers, model_answers
from benchmarks.fuzz.draws import DrawCase, draw_answers
from benchmarks.report import Page, parser, progress, row, table

Counts = Counter[tuple[str, str, str]]
FILES = {
    module.name: importlib.import_module(f"{campaigns.__name__}.{module.name}").CAMPAIGNS
    for module in pkgutil.iter_modules(campaigns.__path__)
}
CAMPAIGNS: dict[str, Callable[[np.random.Generator], ModelCase | ProblemCase | DrawCase | DoorCase]] = {
    name: make for several in FILES.values() for name, make in several.items()
}
MEMORY = 9 << 30
"""Bytes for each process: CP-SAT takes 24 GB for a linear program with numbers of very different sizes."""

BATCH = 5
"""Seeds of a campaign before the next one's turn."""


def campaign(name: str, seeds: list[int], counts: Counts, backends: int, draw: bool = False) -> None:
    """Run the models or problems of some seeds by all methods that are there, or by drawn ones."""
    for seed in seeds:
        rng = np.random.default_rng([zlib.crc32(name.encode()), seed])
        case = CAMPAIGNS[name](rng)
        if isinstance(case, DrawCase):
            runs = draw_answers(case, rng)
        elif isinstance(case, DoorCase):
            runs = door_answers(case)
        elif isinstance(case, ProblemCase):
            runs = answers(case, rng if draw else None)
        else:
            runs = model_answers(case, rng, backends)
        for run, answer, words in runs:
            counts[name, run, answer] += 1
            if answer == "wrong":
                progress(f"WRONG {name}:{seed} by {run}: {words}")
        counts[name, "models", ""] += 1


def job(
    number: int,
    jobs: int,
    names: list[str],
    seed: int,
    seconds: float,
    models: int,
    backends: int,
    draw: bool,
) -> Counts:
    """Run every `jobs`-th batch of seeds, from the one of that number on, until the time or all are over."""
    counts: Counts = Counter()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    began, turn = time.monotonic(), number
    while time.monotonic() - began < seconds and BATCH * turn < models:
        first = 1_000_003 * seed + BATCH * turn
        for name in names:
            campaign(name, list(range(first, first + BATCH)), counts, backends, draw)
        turn += jobs
    return counts


def earlier(path: Path, seed: int, names: list[str]) -> list[dict[str, Any]]:
    """The runs in a file of counts, if there is one.

    Raises
    ------
    SystemExit
        If one of them drew models of these campaigns from this seed: the same models must not count twice.
    """
    known: list[dict[str, Any]] = json.loads(path.read_text()) if path.exists() else []
    for run in known:
        again = {name for name, *_ in run["counts"]} & set(names)
        if run["seed"] == seed and again:
            raise SystemExit(f"error: {path} has a run of {sorted(again)[0]} from seed {seed}; take another")
    return known


def report(counts: Counts) -> str:
    """The table of all counts."""
    rows = []
    for name in CAMPAIGNS:
        for backend in sorted({b for c, b, _ in counts if c == name and b != "models"}):
            cells = [counts[name, backend, a] for a in ("right", "wrong", "no answer", "not decided")]
            rows.append((name, counts[name, "models", ""], backend, *cells))
    return table(["campaign", "models", "run", "right", "wrong", "no answer", "not decided"], rows)


def chosen(text: str) -> list[str]:
    """The campaigns that a text names, by their own names or by their files', with commas between."""
    names = []
    for word in text.split(","):
        if word not in FILES and word not in CAMPAIGNS:
            raise SystemExit(f"error: no campaign or file of campaigns is called {word!r}")
        names += FILES.get(word, [word])
    return names


def main() -> None:
    """Run all campaigns in turns until the time is over."""
    options = parser(__doc__)
    options.add_argument("--seconds", type=float, default=600.0)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--models", type=int, default=1_000_000, help="of each campaign, at most")
    options.add_argument("--draw", action="store_true", help="one method and backend for each problem")
    options.add_argument("--jobs", type=int, default=1, help="processes")
    options.add_argument("--backends", type=int, default=2, help="for each model of the engine; 0: all")
    options.add_argument("--only", help="CAMPAIGN:SEED, to repeat one model")
    options.add_argument(
        "--campaigns", default=",".join(CAMPAIGNS), help="names, or files, with commas between"
    )
    options.add_argument("--add", action="store_true", help="keep the counts of earlier runs")
    given = options.parse_args()
    if given.only:
        counts: Counts = Counter()
        name, _, seed = given.only.partition(":")
        if name not in CAMPAIGNS or not seed.isdigit():
            raise SystemExit(f"error: --only is {given.only!r}; it must be CAMPAIGN:SEED, such as linear:3")
        campaign(name, [int(seed)], counts, 0)
        print(report(counts))
        return
    seconds, names = 10.0 if given.quick else given.seconds, chosen(given.campaigns)
    page = Page("Random models against exact oracles", given.out, "forcopt", "highspy", "ortools", "cvxpy")
    store = given.out.with_name("counts.json")
    before = earlier(store, given.seed, names) if given.add else []
    began = time.monotonic()
    rest = (names, given.seed, seconds, given.models, given.backends, given.draw)
    if given.jobs == 1:
        parts = [job(0, 1, *rest)]
    else:
        with ProcessPoolExecutor(given.jobs, mp_context=get_context("spawn")) as pool:
            parts = [p.result() for p in [pool.submit(job, k, given.jobs, *rest) for k in range(given.jobs)]]
    found = sorted((*key, count) for key, count in sum(parts, Counter()).items())
    facts = {"date": str(datetime.date.today()), "seed": given.seed, "jobs": given.jobs}
    facts["seconds"] = round(time.monotonic() - began)
    every = [*before, {**facts, "backends": given.backends, "counts": found}]
    store.write_text("[\n" + ",\n".join(json.dumps(run) for run in every) + "\n]\n", encoding="utf-8")
    counts = Counter()
    for run in every:
        for *key, count in run["counts"]:
            counts[tuple(key)] += count
    models = sum(n for (_, b, _), n in counts.items() if b == "models")
    wrong = sum(n for (_, _, a), n in counts.items() if a == "wrong")
    solves = sum(n for (_, b, _), n in counts.items() if b != "models")
    total = sum(run["seconds"] * run["jobs"] for run in every)
    seeds = ", ".join(str(run["seed"]) for run in every)
    head = (
        f"{models:,} models, {solves:,} solves, in {total:,.0f} s of all processes together; seeds {seeds}."
    )
    page.write(f"{head}\n\n{report(counts)}")
    page.headline(
        [row(f"{models:,} random models, {solves:,} solves", f"{wrong} wrong answers", "exact oracles")]
    )


if __name__ == "__main__":
    main()
