"""Asks the solvers of one environment for their own answers, and for the answers after this library's checks.

python benchmarks/honesty/worker.py BACKEND... < models.json > answers.jsonl
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

import forcopt as fo
from forcopt.backends import get_backend
from forcopt.backends.base import SolveOptions
from forcopt.backends.conditioned import open_session
from forcopt.compile.compiler import compile_model

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
    if data["maximize"]:
        m.maximize(objective)
    else:
        m.minimize(objective)
    return m


def violation(data: dict[str, Any], x: np.ndarray[Any, Any]) -> float:
    """By how much a point violates bounds, rows and integrality, relative to numbers above 1."""
    rows = np.array(data["rows"], dtype=float).reshape(-1, len(x)) @ x
    worst = [0.0]
    for value, low, high in ((x, data["lower"], data["upper"]), (rows, data["low"], data["high"])):
        low, high = np.array(low, dtype=float), np.array(high, dtype=float)
        for gap, end in ((low - value, low), (value - high, high)):
            finite = np.isfinite(end)
            worst.extend((gap / np.maximum(1.0, np.abs(end)))[finite].tolist())
    whole = np.array(data["integer"]) > 0
    worst.extend(np.abs(x - np.round(x))[whole].tolist())
    return max(worst)


def own_answer(model: fo.Model, data: dict[str, Any], name: str) -> Answer:
    """The solver's answer as its interface gives it."""
    backend = get_backend(name)
    program = compile_model(model, backend.capabilities, backend.name)
    result = open_session(backend, program).solve(SolveOptions(time_limit=LIMIT, gap=0.0))
    answer: Answer = {"status": str(result.status.value), "either": result.ambiguous}
    if result.x is not None:
        x = np.asarray(result.x)[: len(data["lower"])]
        stated = -result.objective if program.stages[0].maximize else result.objective
        answer |= {"objective": float(stated), "at point": float(np.dot(data["cost"], x))}
        answer["violation"] = violation(data, x)
    return answer


def checked_answer(model: fo.Model, data: dict[str, Any], name: str) -> Answer:
    """The answer of `Model.solve`, which checks the solver's."""
    s = model.solve(name, time_limit=LIMIT, gap=0.0)
    answer: Answer = {"status": str(s.status.value), "reason": str(s.reason or "")}
    if s.status.value in ("optimal", "feasible", "approximate"):
        x = s["x"]
        answer |= {"objective": float(s.objective), "at point": float(np.dot(data["cost"], x))}
        answer["violation"] = violation(data, x)
    return answer


def main() -> None:
    """Command line."""
    models = json.load(sys.stdin)
    for name in sys.argv[1:]:
        for number, data in enumerate(models):
            row: Answer = {"backend": name, "version": get_backend(name).version(), "model": number}
            for key, ask in (("own", own_answer), ("checked", checked_answer)):
                try:
                    row[key] = ask(declared(data), data, name)
                except fo.UnsupportedError as refusal:
                    row[key] = {"status": "refused", "reason": str(refusal)}
                except fo.ForcoptError as error:
                    row[key] = {"status": "failed", "reason": str(error)}
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
