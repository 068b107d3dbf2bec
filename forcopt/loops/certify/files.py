"""The JSON files of proofs about continuous programs, which `forcopt.check` reads."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from flint import fmpq

from forcopt.compile.program import Program
from forcopt.errors import DeclarationError
from forcopt.loops.certify.evaluation import ExactPoint
from forcopt.loops.exact_lp import LinearProgram, Rational, exact_optimum, farkas


def write_multipliers(
    path: Path,
    program: Program,
    lp: LinearProgram,
    multipliers: Sequence[Rational],
    bound: Rational | None,
    optimum: tuple[ExactPoint, Mapping[tuple[int, int], Rational]] | None = None,
) -> None:
    """Write what multipliers of rows and cones prove: a bound, or without one that there is no point.

    With an optimum of a quadratic program and its Hessian, `lp` has the tangent there.
    """
    path.write_text(json.dumps(_data(program, lp, multipliers, bound, optimum)), encoding="utf-8")


def write_irreducible(path: Path, program: Program, names: Sequence[str]) -> None:
    """Write that rows cannot hold together, and that without any one of them the others can.

    Raises
    ------
    DeclarationError
        If the program is not one of rows of these names, or exact arithmetic says otherwise.
    """
    if program.is_integer or program.is_conditional or program.cones or len(names) != program.rows.count:
        raise DeclarationError(
            "the subset has integers, conditions or cones; a file states rows of a linear model"
        )
    lp = LinearProgram.of(program)
    lp = replace(lp, cost=[fmpq(0)] * len(lp.cost), offset=fmpq(0))
    points: dict[str, dict[str, str]] = {}
    for i, name in enumerate(names):
        low, high = ([*ends[:i], None, *ends[i + 1 :]] for ends in (lp.row_lower, lp.row_upper))
        point = exact_optimum(replace(lp, row_lower=low, row_upper=high)).point
        if point is None:
            raise DeclarationError(f"without {name!r} the others have no point in exact arithmetic")
        points[name] = {program.column_name(j): str(v) for j, v in enumerate(point) if v}
    multipliers = farkas(lp)
    if multipliers is None:
        raise DeclarationError(f"in exact arithmetic {', '.join(names)} can hold together")
    data = _data(program, lp, multipliers, None, labels=names)
    data |= {"kind": "irreducible", "members": list(names), "points": points}
    path.write_text(json.dumps(data), encoding="utf-8")


def _data(
    program: Program,
    lp: LinearProgram,
    multipliers: Sequence[Rational],
    bound: Rational | None,
    optimum: tuple[ExactPoint, Mapping[tuple[int, int], Rational]] | None = None,
    labels: Sequence[str] = (),
) -> dict[str, Any]:
    """Program and multipliers as the certificate ``bound``, or ``infeasible`` without a bound."""
    names, count = [program.column_name(j) for j in range(program.columns)], program.rows.count
    labels = labels or [f"r{i}" for i in range(count)]

    def form(entries: Mapping[int, Rational]) -> dict[str, str]:
        return {names[j]: str(a) for j, a in entries.items() if a}

    def ends(*values: Rational | None) -> list[str | None]:
        return [None if v is None else str(v) for v in values]

    own = zip(lp.rows[:count], lp.row_lower[:count], lp.row_upper[:count], strict=True)
    cones, duals, at = [], [], count
    for cone in program.cones:
        for start in range(at, at + cone.matrix.shape[0], cone.size):
            span = range(start, start + cone.size)
            cones.append([cone.kind, [[str(-(lp.row_lower[i] or 0)), form(lp.rows[i])] for i in span]])
            duals.append([str(multipliers[i]) for i in span])
        at += cone.matrix.shape[0]
    square: list[list[str]] = []
    point: dict[str, dict[str, str]] = {}
    if optimum is not None:
        (at_point, hessian), cost, offset = optimum, list(lp.cost), lp.offset
        x = at_point.x
        for (j, k), a in hessian.items():
            cost[j] -= a * x[k]
            offset += a * x[j] * x[k] / 2
        lp = replace(lp, cost=cost, offset=offset)
        square = [[names[j], names[k], str(a)] for (j, k), a in hessian.items() if j >= k]
        point = {"point": {names[j]: str(x[j]) for j in at_point.given}}
    return {
        "kind": "infeasible" if bound is None else "bound",
        "program": {
            "columns": [[x, *ends(*pair)] for x, *pair in zip(names, lp.lower, lp.upper, strict=True)],
            "rows": [[name, form(row), *ends(*pair)] for name, (row, *pair) in zip(labels, own, strict=True)],
            "cones": cones,
            "square": square,
            "cost": form(dict(enumerate(lp.cost))),
            "offset": str(lp.offset),
            "maximize": False,
        },
        "rows": {name: str(y) for name, y in zip(labels, multipliers, strict=False) if y},
        "cones": duals,
        **({} if bound is None else {"bound": str(bound)}),
        **point,
    }
