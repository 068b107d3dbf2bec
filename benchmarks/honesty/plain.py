"""Asks the HiGHS of one environment about programs of plain arrays; needs highspy and numpy alone.

python benchmarks/honesty/plain.py FIRST < programs.json > answers.jsonl
"""

from __future__ import annotations

import json
import sys
from typing import Any

import highspy
import numpy as np

LIMIT = 20.0
"""Seconds for each program."""


def model_of(data: dict[str, Any]) -> Any:
    """The model of arrays, without the interfaces that differ between versions."""
    model = highspy.HighsModel()
    lp = model.lp_
    lp.num_col_, lp.num_row_ = len(data["cost"]), len(data["low"])
    lp.col_cost_, lp.offset_ = np.array(data["cost"], dtype=float), data["offset"]
    lp.col_lower_, lp.col_upper_ = (np.array(data[key], dtype=float) for key in ("lower", "upper"))
    lp.row_lower_, lp.row_upper_ = (np.array(data[key], dtype=float) for key in ("low", "high"))
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.num_col_, lp.a_matrix_.num_row_ = lp.num_col_, lp.num_row_
    lp.a_matrix_.start_, lp.a_matrix_.index_ = (np.array(data[key], np.int32) for key in ("start", "index"))
    lp.a_matrix_.value_ = np.array(data["value"], dtype=float)
    if any(data["integer"]):
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[whole] for whole in data["integer"]]
    if data["square"]:
        start, index, value = data["square"]
        hessian = model.hessian_
        hessian.dim_, hessian.format_ = lp.num_col_, highspy.HessianFormat.kTriangular
        hessian.start_, hessian.index_ = np.array(start, np.int32), np.array(index, np.int32)
        hessian.value_ = np.array(value, dtype=float)
    return model


def answer(data: dict[str, Any]) -> dict[str, Any]:
    """What HiGHS says about a program: the name of its status, and a point with multipliers if it has one."""
    if "status" in data:  # the format cannot hold it
        return data
    highs = highspy.Highs()
    for name, value in (("output_flag", False), ("time_limit", LIMIT), ("mip_rel_gap", 0.0)):
        highs.setOptionValue(name, value)
    if highs.passModel(model_of(data)) == highspy.HighsStatus.kError:
        return {"status": "refused"}
    highs.run()
    solution, info = highs.getSolution(), highs.getInfo()
    out: dict[str, Any] = {"status": highs.getModelStatus().name, "bound": float(info.mip_dual_bound)}
    if solution.value_valid:
        out["x"] = [float(v) for v in solution.col_value]
        out["feasible"] = int(info.primal_solution_status) == int(
            highspy.SolutionStatus.kSolutionStatusFeasible
        )
    if solution.dual_valid:
        out["row_dual"] = [float(v) for v in solution.row_dual]
        out["reduced_cost"] = [float(v) for v in solution.col_dual]
    return out


def main() -> None:
    """Command line."""
    for number, data in enumerate(json.load(sys.stdin)):
        if number >= int(sys.argv[1]):
            print(json.dumps({"model": number, **answer(data)}), flush=True)


if __name__ == "__main__":
    main()
