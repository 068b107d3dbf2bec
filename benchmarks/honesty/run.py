"""Replays published reports of wrong answers, and writes a table of solvers' lies and of those that pass.

    python benchmarks/honesty/run.py --out benchmarks/honesty/results.md --keep /tmp/answers

Each model of models.toml comes from a public report. Its true answer is proved in exact rational arithmetic.
Each solver then answers twice: by its own interface, and by `Model.solve`, which checks the claims of
solvers. HiGHS is asked in ten versions, each in an environment of its own, by plain arrays; its claims are
then checked as those of the installed one are. An interrupted run with --keep goes on where it was.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
import tomllib
import venv
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import highspy
import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import forcopt as fo
from benchmarks.honesty.worker import Answer, check_claim, declared, program_of, told
from benchmarks.report import ROOT, Page, parser, progress, row, table
from forcopt.backends import get_backend
from forcopt.backends.highs import new_highs

VERSIONS = ("1.7.2", "1.8.1", "1.9.0", "1.10.0", "1.11.0", "1.12.0", "1.13.1", "1.14.0", "1.15.1")
HERE = (
    *("highs", "highs:ipm", "highs:pdlp", "scip", "gscip", "cp-sat", "glop", "pdlp"),
    *("clarabel", "scs", "osqp", "pyomo:glpk", "pyomo:cbc"),
)
CLOSE = 1e-6
"""An answer is right if its objective is this close to the true one, relative to numbers above 1."""

LOOSE = 10
"""A point may be off by this many times the accuracy that its solver states; so may objectives, if that is
less accurate than `CLOSE`."""

WRONG, RIGHT, NONE = "wrong", "right", "no answer"
SIGNS = {"mended": "m", "withheld": "w", "accepted": "**accepted**", RIGHT: "+", NONE: ""}


def arrays(model: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The numbers of a model, read from its text."""
    if "parity" in model:
        return _parity(model)
    form = "mps" if "mps" in model else "lp"
    path = folder / f"model.{form}"
    path.write_text(model[form])
    reader = new_highs()
    if reader.readModel(str(path)) != highspy.HighsStatus.kOk:
        raise SystemExit(f"error: {model['report']}: the model cannot be read")
    read = reader.getModel()
    lp, hessian = read.lp_, read.hessian_
    dense = np.zeros((lp.num_row_, lp.num_col_))
    starts, indices, values = lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_
    by_row = "Row" in str(lp.a_matrix_.format_)
    for major, (first, last) in enumerate(itertools.pairwise(starts)):
        for k in range(first, last):
            at = (major, indices[k]) if by_row else (indices[k], major)
            dense[at] = values[k]
    square = None
    if hessian.dim_:
        half = sp.csc_array(
            (hessian.value_, hessian.index_, hessian.start_), shape=2 * (lp.num_col_,)
        ).toarray()
        square = (half + np.tril(half, -1).T).tolist()
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
        "square": square,
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
        "square": None,
        "maximize": False,
    }


def truth(model: dict[str, Any], data: dict[str, Any]) -> tuple[str, str | None]:
    """The answer, proved in rational arithmetic; the numbers of linear models count as their decimals.

    Raises
    ------
    SystemExit
        If it is not proved.
    """
    if "optimum" in model:  # a closed form
        return "optimal", model["optimum"]
    s = declared(data).solve("highs", gap=0.0)
    certificate = s.certify(decimals=data["square"] is None)
    if certificate.optimal:
        return "optimal", str(certificate.objective)
    if s.status is fo.Status.INFEASIBLE and certificate.feasible is False:
        return "infeasible", None
    if s.status is fo.Status.UNBOUNDED and "unbounded" in certificate.how:
        return "unbounded", None
    raise SystemExit(f"error: {model['report']}: not proved: {s.status.value}; {certificate.how}")


def verdict(answer: Answer, status: str, value: Fraction | None, accuracy: float) -> str:
    """Whether an answer is right, wrong, or no claim."""
    if answer["status"] == "optimal":
        if status != "optimal" or answer.get("violation", np.inf) > LOOSE * accuracy:
            return WRONG
        scale = (CLOSE if accuracy <= CLOSE else LOOSE * accuracy) * max(1.0, abs(float(value or 0)))
        stated, reached = (abs(answer[key] - float(value or 0)) for key in ("objective", "at point"))
        return RIGHT if max(stated, reached) <= scale else WRONG
    if answer["status"] in ("infeasible", "unbounded"):
        if answer.get("either"):
            return NONE if status != "optimal" else WRONG
        return RIGHT if answer["status"] == status else WRONG
    return NONE


def kept(folder: Path | None, name: str, make: Callable[[], Any]) -> Any:
    """What a file of the folder holds; made, and written there, if there is none."""
    path = None if folder is None else folder / f"{name.replace(':', '-')}.json"
    if path is not None and path.exists():
        return json.loads(path.read_text())
    made = make()
    if path is not None:
        path.write_text(json.dumps(made))
    progress(name)
    return made


def ask(models: list[dict[str, Any]], backend: str) -> list[dict[str, Any]]:
    """The answers of an installed solver; a model that ends the process has none."""
    answers: list[dict[str, Any]] = []
    command = [sys.executable, str(Path(__file__).with_name("worker.py")), backend]
    variables = os.environ | {"PYTHONPATH": str(ROOT)}
    while len(answers) < len(models):
        left = json.dumps(models[len(answers) :])
        done = subprocess.run(command, input=left, capture_output=True, text=True, env=variables)
        answers += [json.loads(line) for line in done.stdout.splitlines()]
        if done.returncode:
            crash = {"status": "failed", "reason": f"the process ended with {done.returncode}"}
            progress(f"{backend}, model {len(answers)}: {crash['reason']}: {done.stderr[-300:]}")
            answers.append({"own": crash, "checked": crash})
    return answers


def ask_version(models: list[dict[str, Any]], version: str) -> list[dict[str, Any]]:
    """The answers of a version of HiGHS to plain arrays, and those after the checks here."""
    command = [environment(version), str(Path(__file__).with_name("plain.py"))]
    programs = json.dumps([told(lambda d=data: program_of(declared(d))) for data in models])
    claims: dict[int, dict[str, Any]] = {}
    while len(claims) < len(models):
        first = [*command, str(len(claims))]
        done = subprocess.run(first, input=programs, capture_output=True, text=True)
        claims |= {line["model"]: line for line in map(json.loads, done.stdout.splitlines())}
        if done.returncode:
            progress(f"HiGHS {version}, model {len(claims)}: the process ended with {done.returncode}")
            claims[len(claims)] = {"status": "crashed"}
    return [check_claim(data, claims[number]) for number, data in enumerate(models)]


def environment(version: str) -> str:
    """The Python of an environment with a version of HiGHS."""
    python = Path(tempfile.gettempdir()) / "forcopt-highs" / version / "bin" / "python"
    if not python.exists():
        venv.create(python.parents[1], with_pip=True)
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, "numpy>=2", f"highspy=={version}"], check=True)
    return str(python)


def judged(answer: dict[str, Any], true: tuple[str, str | None], accuracy: float) -> tuple[str, bool]:
    """What became of an answer, and whether the solver's own was a claim."""
    status, value = true[0], None if true[1] is None else Fraction(true[1])
    own, checked = (verdict(answer[key], status, value, accuracy) for key in ("own", "checked"))
    if checked == WRONG:
        return "accepted", own != NONE
    if own == WRONG:
        return "mended" if checked == RIGHT else "withheld", True
    return (RIGHT if RIGHT in (own, checked) else NONE), own != NONE


def main() -> None:
    """Command line."""
    options = parser(__doc__)
    options.add_argument("--keep", type=Path, help="a folder for the answers, from which a run goes on")
    given = options.parse_args()
    page = Page("A table of solvers' lies", given.out, "numpy", "highspy", "ortools", "pyscipopt", "cvxpy")
    if given.keep is not None:
        given.keep.mkdir(parents=True, exist_ok=True)
    source = tomllib.loads(Path(__file__).with_name("models.toml").read_text())["model"]
    source = source[::10] if given.quick else source
    with tempfile.TemporaryDirectory() as folder:
        models = [arrays(model, Path(folder)) for model in source]
    truths = kept(given.keep, "truths", lambda: [truth(*pair) for pair in zip(source, models, strict=True)])
    answers: dict[str, list[dict[str, Any]]] = {}
    accuracy: dict[str, float] = {}
    for version in VERSIONS[-2:-1] if given.quick else VERSIONS:
        name = f"HiGHS {version}"
        answers[name] = kept(given.keep, name, lambda v=version: ask_version(models, v))
        accuracy[name] = get_backend("highs").accuracy
    for backend in HERE[:4:3] if given.quick else HERE:
        told = get_backend(backend)
        name = f"{backend} {told.version()}"
        answers[name] = kept(given.keep, name, lambda b=backend: ask(models, b))
        accuracy[name] = told.accuracy
    fates = {
        name: [judged(one, true, accuracy[name]) for one, true in zip(found, truths, strict=True)]
        for name, found in answers.items()
    }
    summary = []
    for name, found in fates.items():
        ends = [end for end, _ in found]
        lies = sum(ends.count(end) for end in ("mended", "withheld", "accepted"))
        counts = (
            sum(claimed for _, claimed in found),
            lies,
            *map(ends.count, ("mended", "withheld", "accepted")),
        )
        summary.append([name, *counts])
    letters = [chr(ord("A") + number) for number in range(len(fates))]
    details = []
    for number, (model, true) in enumerate(zip(source, truths, strict=True)):
        repository, issue = model["report"].split("#")
        link = f"[{model['report']}](https://github.com/{repository}/issues/{issue})"
        signs = [SIGNS[found[number][0]] for found in fates.values()]
        kind = "ours" if "ours" in model else "the thread's"
        details.append([link, model["solver"], model["answered"], _shown(true), kind, *signs])
    own = sum("ours" in model for model in source)
    body = (
        f"Each of {len(source)} models comes from a public report of a wrong answer; {len(source) - own} are "
        f"the thread's own, {own} are small ones of ours, where the thread attaches a file, quotes a part or "
        "uses another interface (`models.toml` says which). The true answer is proved in rational "
        "arithmetic. A solver answers by its own interface, and by `Model.solve`; the claims of nine "
        "versions of HiGHS, asked by plain arrays, pass the same checks. A wrong answer is mended if "
        "`Model.solve` gives the true one, and withheld if it gives none. An objective is right within 1e-6, "
        "a point within ten times the accuracy that its solver states; so are objectives of solvers that "
        "state less.\n\n"
    )
    head = ["solver", "claims", "wrong", "mended", "withheld", "accepted"]
    body += table(head, summary) + "\n## The models\n\n"
    body += "`+` right; `m` wrong, mended by the checks; `w` wrong, withheld; empty: no claim.\n\n"
    body += "".join(f"- {letter}: {name}\n" for letter, name in zip(letters, fates, strict=True)) + "\n"
    head = ["report", "solver of the report", "its answer", "true answer", "model", *letters]
    page.write(body + table(head, details))
    lies, mended, withheld, accepted = (sum(entry[k] for entry in summary) for k in (2, 3, 4, 5))
    asked = f"{len(models)} reported models, {len(fates)} solvers and versions"
    page.headline([row(f"wrong answers: {asked}", f"{accepted} accepted", f"{lies} by solvers' interfaces")])
    progress(f"{lies} lies: {mended} mended, {withheld} withheld, {accepted} accepted")


def _shown(true: tuple[str, str | None]) -> str:
    status, value = true
    if value is None:
        return status
    return value if Fraction(value).denominator < 10**6 else f"{float(Fraction(value)):.12g}"


if __name__ == "__main__":
    main()
