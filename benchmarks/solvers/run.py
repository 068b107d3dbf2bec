"""One HiGHS through five modelling libraries: overhead, and whether statuses and objectives are right.

    python benchmarks/solvers/run.py --out benchmarks/solvers/results.md

The models are the linear ones of benchmarks/honesty, whose answers are proved in rational arithmetic. Each
library asks HiGHS with a gap of 0, in a process of its own, one model after the other.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import tomllib
from fractions import Fraction
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.honesty.run import arrays, truth
from benchmarks.report import ROOT, Page, parser, progress, row, table
from benchmarks.solvers.peers import LIBRARIES

CLOSE = 1e-6
"""An objective is right if it is this close, relative to numbers above 1."""

WORDS = {
    "optimal": "optimal",
    "infeasible": "infeasible",
    "unbounded": "unbounded",
    "dual_infeasible": "unbounded",
}
"""Words for statuses; any other one, such as "infeasible or unbounded", decides nothing."""


def ask(library: str, models: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The answers of a library; a model that ends the process has none."""
    answers: list[dict[str, Any]] = []
    command = [sys.executable, str(Path(__file__).with_name("peers.py")), library]
    variables = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    while len(answers) < len(models):
        left = json.dumps(models[len(answers) :])
        done = subprocess.run(command, input=left, capture_output=True, text=True, env=variables)
        answers += [json.loads(line) for line in done.stdout.splitlines()]
        if any(answer["status"].startswith("ModuleNotFoundError") for answer in answers):
            raise SystemExit(f"error: {answers[-1]['status']}; a library that is not installed is no peer")
        if done.returncode:
            progress(f"{library}: the process ended with {done.returncode}: {done.stderr[-300:]}")
            answers.append({"status": "crashed", "objective": None, "seconds": float("nan")})
    return answers


def judge(answer: dict[str, Any], status: str, value: str | None) -> str:
    """Right, wrong, or undecided."""
    told = WORDS.get(answer["status"].lower().replace("infeasible_or", "either"), "")
    if not told:
        return "undecided"
    if told != status:
        return "wrong"
    if status != "optimal":
        return "right"
    true = float(Fraction(value or "0"))
    off = abs((answer["objective"] if answer["objective"] is not None else float("inf")) - true)
    return "right" if off <= CLOSE * max(1.0, abs(true)) else "wrong"


def main() -> None:
    """Command line."""
    given = parser(__doc__).parse_args()
    names = ("highspy", "linopy", "cvxpy", "pyomo", "pyoptinterface", "highsbox")
    page = Page("One solver through five libraries", given.out, *names)
    path = Path(__file__).parents[1] / "honesty" / "models.toml"
    source = tomllib.loads(path.read_text())["model"][:: 20 if given.quick else 1]
    with tempfile.TemporaryDirectory() as folder:
        pairs = [(model, arrays(model, Path(folder))) for model in source]
    pairs = [(model, data) for model, data in pairs if data["square"] is None]
    truths = [truth(model, data) for model, data in pairs]
    progress(f"{len(pairs)} answers are proved")
    rows, details = [], []
    medians: dict[str, float] = {}
    for library in LIBRARIES:
        answers = ask(library, [data for _, data in pairs])
        fates = [judge(answer, *true) for answer, true in zip(answers, truths, strict=True)]
        medians[library] = 1e3 * statistics.median(
            a["seconds"] for a in answers if a["seconds"] == a["seconds"]
        )
        counts = [fates.count(fate) for fate in ("right", "undecided", "wrong")]
        rows.append([library, *counts, f"{medians[library]:.2f}"])
        for (model, _), answer, fate, (status, value) in zip(pairs, answers, fates, truths, strict=True):
            if fate != "right":
                told = (
                    f"{answer['status']} {'' if answer['objective'] is None else answer['objective']}".strip()
                )
                details.append([library, model["report"], f"{status} {value or ''}".strip(), told, fate])
        progress(f"{library}: {counts}")
    body = (
        f"{len(pairs)} small linear models, with integers or not, whose answers are proved in rational "
        "arithmetic. The time of a model goes from arrays to its answer; imports and a first model are "
        "outside. PyOptInterface runs the HiGHS of highsbox, the others the one of highspy. The time of "
        "forcopt includes its checks of the answer.\n\n"
    )
    body += table(["library", "right", "undecided", "wrong", "median ms"], rows)
    body += "\n## What is not right\n\n"
    body += table(["library", "report", "true answer", "told", "so"], details)
    page.write(body)
    wrong = {library: int(counts[3]) for library, counts in zip(LIBRARIES, rows, strict=True)}
    others = [name for name in LIBRARIES if name != "forcopt"]
    peers = ", ".join(f"{name} {wrong[name]}" for name in others) + " (by the older HiGHS of highsbox)"
    quick = ", ".join(f"{name} {medians[name]:.1f} ms" for name in others)
    headline = [
        row(f"wrong answers of HiGHS on {len(pairs)} proved models", str(wrong["forcopt"]), peers),
        row("a small model from arrays to its answer, median", f"{medians['forcopt']:.1f} ms", quick),
    ]
    page.headline(headline)


if __name__ == "__main__":
    main()
