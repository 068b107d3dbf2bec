"""Replays published reports of wrong answers, and writes a table of solvers' lies and of those that pass.

    python benchmarks/honesty/run.py --out benchmarks/honesty/results.md

Each model of models.toml comes from a public report. Its true answer is proved in exact rational arithmetic.
Each solver then answers twice: by its own interface, and by `Model.solve`, which checks the claims of
solvers. HiGHS is asked in ten versions, each in an environment of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import tomllib
import venv
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import itertools

import forcopt as fo
from benchmarks.honesty.worker import Answer, declared
from benchmarks.report import ROOT, Page, parser, progress, row, table

VERSIONS = ("1.7.2", "1.8.1", "1.9.0", "1.10.0", "1.11.0", "1.12.0", "1.13.1", "1.14.0", "1.15.1", "1.16.0")
HERE = ("scip", "gscip", "cp-sat", "glop", "clarabel", "pyomo:glpk", "pyomo:cbc")
CLOSE = 1e-6
"""An answer is right if its objective is this close to the true one, relative to numbers above 1."""

WRONG, RIGHT, NONE = "wrong", "right", "no answer"


def arrays(model: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The numbers of a model, read from its text."""
    if "parity" in model:
        return _parity(model)
    path = folder / "model.lp"
    path.write_text(model["lp"])
    highs = fo.read(path).to_highs()
    lp = highs.getLp()
    dense = np.zeros((lp.num_row_, lp.num_col_))
    starts, indices, values = lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_
    by_row = "Row" in str(lp.a_matrix_.format_)
    for major, (first, last) in enumerate(itertools.pairwise(starts)):
        for k in range(first, last):
            at = (major, indices[k]) if by_row else (indices[k], major)
            dense[at] = values[k]
    whole = [int("Integer" in str(kind)) for kind in lp.integrality_] or [0] * lp.num_col_
    copies = model.get("copies", 1)
    return {
        "cost": list(lp.col_cost_) * copies,
        "lower": list(lp.col_lower_) * copies,
        "upper": list(lp.col_upper_) * copies,
        "integer": whole * copies,
        "rows": np.kron(np.eye(copies), dense).tolist(),
        "low": list(lp.row_lower_) * copies,
        "high": list(lp.row_upper_) * copies,
        "maximize": "Max" in str(lp.sense_),
    }


def _parity(model: dict[str, Any]) -> dict[str, Any]:
    """The fewest ones with given parities: sums that are twice an integer, or one more."""
    rows = np.array([[int(entry) for entry in line] for line in model["parity"]])
    m, n = rows.shape
    odd = [int(entry) for entry in model["odd"]]
    return {
        "cost": [1] * n + [0] * m,
        "lower": [0] * (n + m),
        "upper": [1] * n + [n] * m,
        "integer": [1] * (n + m),
        "rows": np.hstack([rows, -2 * np.eye(m)]).tolist(),
        "low": odd,
        "high": odd,
        "maximize": False,
    }


def truth(data: dict[str, Any]) -> tuple[str, Fraction | None]:
    """The answer, proved in rational arithmetic; the numbers count as their decimals.

    Raises
    ------
    SystemExit
        If it is not proved.
    """
    s = declared(data).solve("highs", gap=0.0)
    certificate = s.certify(decimals=True)
    if certificate.optimal:
        return "optimal", certificate.objective
    if s.status is fo.Status.INFEASIBLE and certificate.feasible is False:
        return "infeasible", None
    if s.status is fo.Status.UNBOUNDED and "unbounded" in certificate.how:
        return "unbounded", None
    raise SystemExit(f"error: not proved: {s.status.value}; {certificate.how}")


def verdict(answer: Answer, true: tuple[str, Fraction | None]) -> str:
    """Whether an answer is right, wrong, or no claim."""
    status, value = true
    if answer["status"] == "optimal":
        if status != "optimal" or answer.get("violation", np.inf) > CLOSE:
            return WRONG
        scale = CLOSE * max(1.0, abs(float(value or 0)))
        stated, reached = (abs(answer[key] - float(value or 0)) for key in ("objective", "at point"))
        return RIGHT if max(stated, reached) <= scale else WRONG
    if answer["status"] in ("infeasible", "unbounded"):
        if answer.get("either"):
            return NONE if status != "optimal" else WRONG
        return RIGHT if answer["status"] == status else WRONG
    return NONE


def ask(python: str, models: list[dict[str, Any]], *backends: str) -> list[dict[str, Any]]:
    """The answers of a Python's solvers."""
    command = [python, str(Path(__file__).with_name("worker.py")), *backends]
    variables = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, input=json.dumps(models), capture_output=True, text=True, env=variables)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode or len(rows) != len(models) * len(backends):
        progress(f"{' '.join(backends)}: the process ended with {done.returncode}: {done.stderr[-500:]}")
    return rows


def environment(version: str) -> str:
    """The Python of an environment with a version of HiGHS and the least that a model needs."""
    python = Path(__file__).resolve().with_name(".peers") / version / "bin" / "python"
    if not python.exists():
        venv.create(python.parents[1], with_pip=True)
    packages = ["numpy>=2", "scipy", "pydantic", "networkx", "python-flint", f"highspy=={version}"]
    subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--quiet", "--disable-pip-version-check", *packages],
        check=True,
    )
    return str(python)


def main() -> None:
    """Command line."""
    given = parser(__doc__).parse_args()
    page = Page("A table of solvers' lies", given.out, "numpy", "highspy", "ortools", "pyscipopt", "cvxpy")
    source = tomllib.loads(Path(__file__).with_name("models.toml").read_text())["model"]
    with tempfile.TemporaryDirectory() as folder:
        models = [arrays(model, Path(folder)) for model in source]
    truths = [truth(data) for data in models]
    progress(f"{len(models)} answers are proved")
    answers = []
    for version in VERSIONS[-4:-3] if given.quick else VERSIONS:
        answers += ask(environment(version), models, "highs")
        progress(f"HiGHS {version}")
    for backend in HERE[:1] if given.quick else HERE:
        answers += ask(sys.executable, models, backend)
        progress(backend)

    solvers = list(dict.fromkeys((a["backend"], a["version"]) for a in answers))
    names = {solver: f"{'HiGHS' if solver[0] == 'highs' else solver[0]} {solver[1]}" for solver in solvers}
    told: dict[tuple[int, tuple[str, str]], tuple[str, str]] = {
        (a["model"], (a["backend"], a["version"])): (
            verdict(a["own"], truths[a["model"]]),
            verdict(a["checked"], truths[a["model"]]),
        )
        for a in answers
    }
    summary = []
    for solver in solvers:
        of = [told[key] for key in told if key[1] == solver]
        lies = [checked for own, checked in of if own == WRONG]
        counts = (
            sum(own != NONE for own, _ in of),
            len(lies),
            sum(checked == RIGHT for checked in lies),
            sum(checked == NONE for checked in lies),
            sum(checked == WRONG for _, checked in of),
        )
        summary.append([names[solver], *counts])
    details = []
    for number, (model, (status, value)) in enumerate(zip(source, truths, strict=True)):
        liars = [
            names[solver] + ("" if told[number, solver][1] != WRONG else " (accepted)")
            for solver in solvers
            if WRONG in told.get((number, solver), ())
        ]
        repository, issue = model["report"].split("#")
        link = f"[{model['report']}](https://github.com/{repository}/issues/{issue})"
        true = (
            status if value is None else str(value) if value.denominator < 10**6 else f"{float(value):.12g}"
        )
        details.append([link, model["solver"], model["answered"], true, ", ".join(liars) or "-"])
    head = [
        "solver",
        "answers",
        "wrong",
        "mended by the checks",
        "withheld by the checks",
        "wrong and accepted",
    ]
    body = (
        "Each model comes from a public report of a wrong answer. The true answer is proved in rational "
        "arithmetic. A solver answers by its own interface, and by `Model.solve`. A wrong answer is mended "
        "if `Model.solve` gives the true one, and withheld if it gives none.\n\n"
    )
    body += table(head, summary) + "\n## The models\n\n"
    body += table(["report", "solver of the report", "its answer", "true answer", "wrong here"], details)
    page.write(body)
    lies = sum(entry[2] for entry in summary)
    mended, withheld, accepted = (sum(entry[k] for entry in summary) for k in (3, 4, 5))
    asked = f"{len(models)} reported models, {len(solvers)} solvers and versions"
    page.headline([row(f"wrong answers: {asked}", f"{accepted} accepted", f"{lies} by solvers' interfaces")])
    progress(f"{lies} lies: {mended} mended, {withheld} withheld, {accepted} accepted")


if __name__ == "__main__":
    main()
