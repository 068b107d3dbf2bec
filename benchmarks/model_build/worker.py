"""One measurement in its own process.

    python -m benchmarks.model_build.worker LIBRARY CASE FILE.npz [--check]

Writes two lines of JSON to standard output: one when the library is imported and the data is at hand, one
with the result. Whatever a library prints goes to standard error.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import resource
import sys
import time
from importlib import metadata
from types import ModuleType
from typing import Any, TextIO

import numpy as np

from . import instances

USER_MODELS = ("commitment", "network", "jobshop")
"""Models that only those libraries have in which a user would write them."""


def peak() -> int:
    """Peak resident memory of this process so far, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def version(name: str) -> str:
    """Version of an installed distribution."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "?"


def measure(peer: ModuleType, case: str, data: object) -> tuple[object, dict[str, Any]]:
    """Build and hand over once."""
    before = peak()
    cpu = time.process_time()
    start = time.perf_counter()
    # Term by term from dictionaries; a library without such a style of its own builds the transport model.
    build = getattr(peer, case) if case != "loop" else getattr(peer, "loop", peer.transport)
    result = build(data)
    seconds = time.perf_counter() - start
    cpu = time.process_time() - cpu
    after = peak()
    rows, columns = peer.size(result)
    columns -= getattr(peer, "EXTRA_COLUMNS", 0)
    return result, {
        "status": "ok",
        "seconds": seconds,
        "cpu_seconds": cpu,
        "peak_bytes": after,
        "baseline_bytes": before,
        "rows": rows,
        "columns": columns,
    }


def check(peer: ModuleType, result: object) -> dict[str, Any]:
    """What identifies the model whatever its order of rows and columns, and its optimum."""
    highs = peer.to_highspy(result)
    lp = highs.getLp()
    bounds = np.concatenate([np.asarray(lp.row_lower_), np.asarray(lp.row_upper_)])
    finite = np.abs(bounds[np.isfinite(bounds)])
    answer = {
        "nonzeros": highs.getNumNz(),
        "integers": sum(int(kind) == 1 for kind in lp.integrality_),
        "sum_cost": float(np.sum(lp.col_cost_)),
        "sum_coefficients": float(np.abs(lp.a_matrix_.value_).sum()),
        "sum_row_bounds": float(finite.sum()),
    }
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("mip_rel_gap", 0.0)
    highs.run()
    answer["model_status"] = highs.modelStatusToString(highs.getModelStatus())
    answer["objective"] = highs.getInfo().objective_function_value
    return answer


def main() -> None:
    """Measure, and write the result."""
    parser = argparse.ArgumentParser(description="One measurement of the model_build benchmark.")
    parser.add_argument("library")
    parser.add_argument("case", choices=sorted(instances.GENERATORS))
    parser.add_argument("data", help="the instance, an .npz file")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()

    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    data = instances.load(options.case, options.data)
    try:
        peer = importlib.import_module(f".peers.{options.library}", __package__)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith(__package__):
            raise
        _send(channel, {"status": "not installed", "message": str(error)})
        return
    if options.case in USER_MODELS and not hasattr(peer, options.case):
        _send(channel, {"status": "not written"})
        return
    versions = {name: version(name) for name in peer.DISTRIBUTIONS}
    _send(channel, {"status": "ready", "versions": versions})
    try:
        result, answer = measure(peer, options.case, data)
        if options.check:
            answer.update(check(peer, result))
    except Exception as error:  # whatever goes wrong in a library is a line of the table
        _send(channel, {"status": "failed", "message": f"{type(error).__name__}: {error}"})
        raise
    _send(channel, answer)
    channel.close()
    os._exit(0)  # the time and memory of taking the model down are nobody's concern


def _send(channel: TextIO, message: dict[str, Any]) -> None:
    channel.write(json.dumps(message) + "\n")
    channel.flush()


if __name__ == "__main__":
    main()
