"""Asks a solver for its own answers, and for the answers after this library's checks.

python benchmarks/honesty/worker.py BACKEND < models.json > answers.jsonl
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

import forcopt as fo
from forcopt.backends import get_backend
from forcopt.backends.base import RawResult, SolveOptions
from forcopt.backends.conditioned import open_session
from forcopt.clock import Deadline
from forcopt.compile.compiler import compile_model
from forcopt.compile.program import Program
from forcopt.loops.checks import Claim, examined
from forcopt.loops.solve import read_claim

LIMIT = 20.0
Answer = dict[str, Any]


def declared(data: dict[str, Any]) -> fo.Model:
    """The model of arrays."""
    m = fo.Model("model")
    lower, upper, integer = (np.array(data[key], dtype=float) for key in ("lower", "upper", "integer"))
    x = m.variable("x", len(lower), lower=lower, upper=upper, integer=integer > 0)
    rows = np.array(data["rows"], dtype=float).reshape(-1, len(lower))
    m.subject_to((rows @ x).between(np.array(data["low"], float), np.array(data["high"], float)))
    objective = np.array(data["cost"]) @ x
    if data["square"] is not None:
        objective = objective + 0.5 * fo.quad_form(x, np.array(data["square"]))
    if data["maximize"]:
        m.maximize(objective)
    else:
        m.minimize(objective)
    return m


def value(data: dict[str, Any], x: np.ndarray[Any, Any]) -> float:
    """The objective at a point."""
    square = 0.0 if data["square"] is None else 0.5 * float(x @ np.array(data["square"]) @ x)
    return float(np.dot(data["cost"], x)) + square


def violation(data: dict[str, Any], x: np.ndarray[Any, Any]) -> float:
    """By how much a point violates bounds, rows and integrality, relative to numbers above 1."""
    rows = np.array(data["rows"], dtype=float).reshape(-1, len(x)) @ x
    worst = [0.0]
    for reached, low, high in ((x, data["lower"], data["upper"]), (rows, data["low"], data["high"])):
        low, high = np.array(low, dtype=float), np.array(high, dtype=float)
        for gap, end in ((low - reached, low), (reached - high, high)):
            finite = np.isfinite(end)
            worst.extend((gap / np.maximum(1.0, np.abs(end)))[finite].tolist())
    whole = np.array(data["integer"]) > 0
    worst.extend(np.abs(x - np.round(x))[whole].tolist())
    return max(worst)


def compiled(model: fo.Model, name: str) -> Program:
    """The program of a model for a backend."""
    return compile_model(model, get_backend(name).capabilities, name)


def own_answer(data: dict[str, Any], program: Program, result: RawResult) -> Answer:
    """The solver's answer as its interface gives it."""
    answer: Answer = {"status": str(result.status.value), "either": result.ambiguous}
    if result.x is not None:
        x = np.asarray(result.x)[: len(data["lower"])]
        stated = program.stages[0].sign * result.objective
        answer |= {"objective": float(stated), "at point": value(data, x), "violation": violation(data, x)}
    return answer


def checked_answer(data: dict[str, Any], s: fo.ModelSolution) -> Answer:
    """The answer of `Model.solve`, which checks the solver's."""
    answer: Answer = {"status": str(s.status.value), "reason": s.message[-300:]}
    if s.status.value in ("optimal", "feasible", "approximate"):
        x = s.point[: len(data["lower"])]
        answer |= {
            "objective": float(s.objective),
            "at point": value(data, x),
            "violation": violation(data, x),
        }
    return answer


def told(ask: Callable[[], Answer]) -> Answer:
    """An answer, or why there is none."""
    try:
        return ask()
    except fo.UnsupportedError as refusal:
        return {"status": "refused", "reason": str(refusal)}
    except fo.ForcoptError as error:
        return {"status": "failed", "reason": str(error)}


def answers(data: dict[str, Any], name: str) -> dict[str, Answer]:
    """Both answers of an installed backend."""

    def own() -> Answer:
        program = compiled(declared(data), name)
        session = open_session(get_backend(name), program)
        return own_answer(data, program, session.solve(SolveOptions(time_limit=LIMIT, gap=0.0)))

    def checked() -> Answer:
        return checked_answer(data, declared(data).solve(name, time_limit=LIMIT, gap=0.0))

    return {"own": told(own), "checked": told(checked)}


def program_of(model: fo.Model) -> dict[str, Any]:
    """The program that HiGHS gets, as lists."""
    program = compiled(model, "highs")
    stage, rows = program.stages[0], program.rows
    square = None
    if stage.quadratic is not None:
        half = sp.csc_array(sp.tril(stage.quadratic, format="csc"))
        half.sort_indices()
        square = [half.indptr.tolist(), half.indices.tolist(), half.data.tolist()]
    named = {"cost": stage.cost, "lower": program.lower, "upper": program.upper, "low": rows.lower}
    named |= {"high": rows.upper, "start": rows.indptr, "index": rows.indices, "value": rows.data}
    whole = (program.integer == 1).astype(int)
    lists = {name: array.tolist() for name, array in named.items()}
    return {**lists, "offset": stage.offset, "integer": whole.tolist(), "square": square}


_SETTLED = {
    "kOptimal": fo.Status.OPTIMAL,
    "kModelEmpty": fo.Status.OPTIMAL,
    "kInfeasible": fo.Status.INFEASIBLE,
    "kUnbounded": fo.Status.UNBOUNDED,
    "kUnboundedOrInfeasible": fo.Status.INFEASIBLE,
}


def check_claim(data: dict[str, Any], claim: dict[str, Any]) -> dict[str, Answer]:
    """The answer of a version of HiGHS to `program_of`, and that after the checks."""
    if claim["status"] == "refused":
        return {"own": claim, "checked": claim}
    model = declared(data)
    program = compiled(model, "highs")
    stage = program.stages[0]
    status = _SETTLED.get(claim["status"], fo.Status.FAILED)
    either = claim["status"] == "kUnboundedOrInfeasible"
    result = RawResult(status, ambiguous=either, message=f"HiGHS: {claim['status']}")
    if status is fo.Status.OPTIMAL:
        result.x = np.array(claim["x"])
        result.objective = stage.value(result.x)
        result.bound = claim["bound"] if program.is_integer else result.objective
        if not program.is_integer and "row_dual" in claim:
            result.row_dual, result.reduced_cost = (np.array(claim[k]) for k in ("row_dual", "reduced_cost"))
    options = SolveOptions(time_limit=LIMIT, gap=0.0)

    def checked() -> Answer:
        made = Claim(model, program, get_backend("highs"), options, Deadline(LIMIT), result, (result,))
        return checked_answer(data, read_claim(examined(program, made)))

    return {"own": own_answer(data, program, result), "checked": told(checked)}


def main() -> None:
    """Command line."""
    for data in json.load(sys.stdin):
        print(json.dumps(answers(data, sys.argv[1])), flush=True)


if __name__ == "__main__":
    main()
