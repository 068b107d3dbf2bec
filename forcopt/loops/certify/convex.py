"""Bound convex programs exactly: with second-order and semidefinite cones by a rounded dual.

For multipliers y of the rows and w of the entries of the cones, w in the dual cones, every feasible x has
``c x >= y A x + w F x + (c - A' y - F' w) x``, which the bounds of rows, cones and columns bound from below.
Clarabel proposes y and w. Its rounding is repaired over the rationals: reduced costs of columns without a
bound are made zero by solving linear equations exactly, and membership in the cones is decided by an exact
LDL' factorization. A dual on the boundary of its cones would not survive this, so that the cost is perturbed
by a small multiple of the trace of the cones, which keeps the dual inside them and costs as much of the
bound.

References
----------
C. Jansson, D. Chaykin and C. Keil, "Rigorous error bounds for the optimal value in semidefinite programming",
SIAM Journal on Numerical Analysis 46 (2007).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.backends.base import RawResult, SolveOptions
from forcopt.backends.conditioned import open_session
from forcopt.backends.registry import get_backend
from forcopt.clock import Deadline
from forcopt.compile.program import Cone, Program, StageCost
from forcopt.errors import BackendError, required
from forcopt.loops.certify.certificate import Certificate, certificate_of, write_multipliers
from forcopt.loops.certify.evaluation import ExactPoint, distance, is_semidefinite
from forcopt.loops.certify.linear import fixed, repaired
from forcopt.loops.exact_lp import (
    LinearProgram,
    Rational,
    exact_optimum,
    farkas,
    nearest_point,
    rational,
    solve_exactly,
)
from forcopt.rationals import fmpq

_MARGINS = (0.0, 1e-8, 1e-7, 1e-6)
"""By how much, relative to the optimum, the bound may fall for a dual inside its cones."""

_TIGHT = 1e-6
"""The relative distance of point and bound at which the search for a better dual ends."""

_LARGEST = 8000
"""Programs with more columns and entries of cones are not proved: too slow."""

_ACTIVE = (1e-7, 1e-9, 1e-5)
"""Relative: how near to its end a row or column counts as tight, one after the other."""

_LARGEST_SQUARE = 100
"""Quadratic programs with more columns are bounded by a tangent alone: too slow."""

_SECONDS = 120.0
"""How long Clarabel may take in all."""


def is_small(program: Program) -> bool:
    """Whether a program with cones is small enough to be proved."""
    return program.columns + sum(int(cone.matrix.shape[0]) for cone in program.cones) <= _LARGEST


def certify_conic(
    program: Program, own: ExactPoint, tolerance: Rational, save: Path | None = None
) -> Certificate:
    """Repair the point if it needs to be, and prove a bound by an exact dual."""
    deadline = Deadline(_SECONDS)
    lp = _with_cones(LinearProgram.of(program), program.cones)
    point = own if own.holds else _repaired(program, own, tolerance, deadline)
    bound, best = None, None
    trace = np.asarray(sum((c.matrix.T @ _identity(c) for c in program.cones), np.zeros(program.columns)))
    result = _solved(program, deadline)
    for margin in _MARGINS:
        if result is None or result.x is None:
            break
        if margin:
            size = sum(float((c.matrix @ result.x + c.offset) @ _identity(c)) for c in program.cones)
            shift = margin * max(1.0, abs(result.objective)) / max(size, 1.0)
            stage = program.stages[0]
            moved = _solved(program.with_stage(replace(stage, cost=stage.cost - shift * trace)), deadline)
            if moved is None or moved.row_dual is None or moved.cone_duals is None:
                continue
            duals = [d + shift * _identity(c) for d, c in zip(moved.cone_duals, program.cones, strict=True)]
            rows = moved.row_dual
        elif result.row_dual is None or result.cone_duals is None:
            continue
        else:
            duals, rows = result.cone_duals, result.row_dual
        exact = repaired_multipliers(lp, program, rows, duals)
        found = None if exact is None else lp.bound(exact)
        if found is not None and (bound is None or found > bound):
            bound, best = found, exact
        size = max(1.0, abs(float(point.values[0])))
        if bound is not None and float(point.values[0] - bound) <= _TIGHT * size:
            break
    how = "no bound could be proved"
    if bound is not None:
        by = "by LDL'" if has_file(program) else "by interval arithmetic"
        how = f"rational multipliers of rows and cones, the latter {by}, prove the bound"
    if bound is not None and best is not None and save is not None and has_file(program):
        write_multipliers(save, program, lp, best, bound)
        how += f"; the proof is in {save}"
    optimal = (True if point.values[0] == bound else None) if point.holds else False
    return certificate_of(point, own, bound, optimal, how)


def has_file(program: Program) -> bool:
    """Whether a file can state multipliers of the cones: exponential ones are no matter of fractions."""
    return all(cone.kind != "exponential" for cone in program.cones)


def _identity(cone: Cone) -> Array:
    """The point in the middle of every cone of a block."""
    one = np.zeros(cone.size)
    if cone.kind == "second_order":
        one[0] = 1.0
    elif cone.kind == "exponential":
        one[:] = -0.827838, 0.805102, 1.290928  # inside the cone and its dual
    else:
        rows, columns = np.tril_indices(cone.order)
        one[rows == columns] = 1.0
    return np.tile(one, cone.matrix.shape[0] // cone.size)


def _solved(program: Program, deadline: Deadline) -> RawResult | None:
    """Solve by Clarabel, less accurately if it gives no multipliers else."""
    clarabel, result = get_backend("clarabel"), None
    for accuracy in (1e-10, 1e-8):
        options = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), accuracy)
        try:
            result = open_session(clarabel, program).solve(
                SolveOptions(time_limit=max(deadline.left or 0.0, 0.0), extra=options)
            )
        except BackendError:
            continue
        if result.cone_duals is not None:
            break
    return result


def _with_cones(lp: LinearProgram, cones: Sequence[Cone]) -> LinearProgram:
    """The program with the entries of cones as further rows, held at minus their constants.

    `LinearProgram.bound` then gives the bound of multipliers in the dual cones.
    """
    rows, ends = list(lp.rows), []
    for cone in cones:
        m = cone.matrix
        for i in range(m.shape[0]):
            span = slice(m.indptr[i], m.indptr[i + 1])
            entries = zip(m.indices[span].tolist(), m.data[span].tolist(), strict=True)
            rows.append({j: rational(a) for j, a in entries})
            ends.append(-rational(cone.offset[i]))
    return replace(lp, rows=rows, row_lower=[*lp.row_lower, *ends], row_upper=[*lp.row_upper, *ends])


def conic_farkas(program: Program, save: Path | None = None) -> list[Rational] | None:
    """Multipliers of rows and entries of cones that prove that no point exists; None if none are found.

    Those of the point deepest inside the cones: its depth is negative. They must prove a bound above 0 on the
    objective 0.
    """
    linear, count = LinearProgram.of(program), len(program.rows.lower)
    lp = _with_cones(replace(linear, cost=[fmpq(0)] * program.columns, offset=fmpq(0)), program.cones)
    found = _deepest(program, Deadline(_SECONDS))
    for margin in (0.0, *_MARGINS[1:]):
        exact = None
        if found is not None and found.row_dual is not None and found.cone_duals is not None:
            duals = [d + margin * _identity(c) for d, c in zip(found.cone_duals, program.cones, strict=True)]
            exact = repaired_multipliers(lp, program, found.row_dual[:count], duals)
        elif margin == 0.0 and (rows := farkas(linear)) is not None:
            exact = rows + [fmpq(0)] * (len(lp.rows) - count)
        bound = None if exact is None else lp.bound(exact)
        if bound is not None and bound > 0:
            if save is not None and has_file(program):
                assert exact is not None
                write_multipliers(save, program, lp, exact, None)
            return exact
    return None


def repaired_multipliers(
    lp: LinearProgram, program: Program, rows: Array, duals: Sequence[Array]
) -> list[Rational] | None:
    """The multipliers, repaired: reduced costs without a bound are zero; None if that does not succeed."""
    block = program.rows
    y = np.where(np.isfinite(np.where(rows > 0, block.lower, block.upper)), rows, 0.0)
    exact = [rational(v) for v in np.concatenate([y, *duals])]
    reduced = lp.reduced_costs(exact)
    size = max(1.0, float(np.abs(program.stages[0].cost).max(initial=0.0)))
    pull = np.array([float(r) for r in reduced])
    toward, other = np.where(pull > 0, (program.lower, program.upper), (program.upper, program.lower))
    columns = np.flatnonzero(np.isinf(toward) | (np.isinf(other) & (np.abs(pull) <= 1e-5 * size))).tolist()
    equal = block.lower == block.upper
    usable = np.concatenate([equal | (np.abs(y) > 1e-6 * size), *(np.ones(len(d), bool) for d in duals)])
    if columns:
        correction = solve_exactly(lp.rows, np.flatnonzero(usable).tolist(), columns, reduced)
        if correction is None:
            return None
        for i, step in correction.items():
            exact[i] += step
    start = block.count
    for cone, dual in zip(program.cones, duals, strict=True):
        if not _in_dual(cone, exact[start : start + len(dual)]):
            return None
        start += len(dual)
    return exact


def _in_dual(cone: Cone, values: Sequence[Rational]) -> bool:
    """Whether multipliers of the entries of a block of cones are in the dual cones."""
    for start in range(0, len(values), cone.size):
        part = values[start : start + cone.size]
        if cone.kind == "second_order":
            if part[0] < 0 or part[0] * part[0] < sum((v * v for v in part[1:]), fmpq(0)):
                return False
            continue
        if cone.kind == "exponential":  # -u exp(v / u) <= e w, or v, w >= 0 = u
            arb = required("flint", "a proof with exponential cones").arb
            u, v, w = part
            if not (v >= 0 and w >= 0 if u == 0 else u < 0 and arb(v / u - 1).exp() <= arb(-w / u)):
                return False
            continue
        # An entry below the diagonal stands for two of the matrix.
        rows, columns = np.tril_indices(cone.order)
        halved = [
            v if i == j else v / 2 for v, i, j in zip(part, rows.tolist(), columns.tolist(), strict=True)
        ]
        if not is_semidefinite(halved, cone.order):
            return False
    return True


def _repaired(program: Program, own: ExactPoint, tolerance: Rational, deadline: Deadline) -> ExactPoint:
    """A point near `own` that satisfies everything: it is moved toward one inside the cones."""
    found = _deepest(program, deadline)
    inside = None if found is None or found.x is None or found.x[-1] <= 1e-9 else found.x[:-1]
    linear, count = LinearProgram.of(program), own.model.column_count
    steps = [fmpq(0)] if inside is None else [fmpq(1, 10**k) for k in (9, 8, 7, 6, 5)]
    for step in steps:
        target = own.x
        if inside is not None:
            target = [(1 - step) * v + step * rational(w) for v, w in zip(own.x, inside[:count], strict=True)]
        nearest = nearest_point(linear, target)
        if nearest is None:
            return own
        candidate = ExactPoint(own.model, nearest[:count])
        if distance(candidate, own) > tolerance:
            return own
        if candidate.holds:
            return candidate
    return own


def _deepest(program: Program, deadline: Deadline) -> RawResult | None:
    """Solve for the point at the largest depth inside the cones, at most 1; the last column is the depth."""
    count = program.columns
    none = sp.csc_array((program.rows.count, 1))
    deep = [sp.hstack([c.matrix, -sp.csr_array(_identity(c)[:, None])]) for c in program.cones]
    cones = (replace(c, matrix=sp.csr_array(m)) for c, m in zip(program.cones, deep, strict=True))
    stage = StageCost(np.append(np.zeros(count), -1.0), 0.0, False)
    wide = program.widened(none, np.array([-np.inf]), np.ones(1)).with_stage(stage)
    wide = replace(wide, cones=tuple(cones))
    return _solved(wide, deadline)


def certify_quadratic(
    program: Program, own: ExactPoint, tolerance: Rational, save: Path | None = None
) -> Certificate:
    """Bound a convex quadratic objective by its tangent at the point, minimised exactly.

    The bound is the optimum if the point is. For a continuous program, rows and bounds that are nearly tight
    are taken for equations, and the conditions of Karush, Kuhn and Tucker are solved exactly.
    """
    count = own.model.column_count
    lp, point = LinearProgram.of(program), own
    integer = np.flatnonzero(program.integer[:count] == 1).tolist()
    square = None if integer or program.columns > _LARGEST_SQUARE else own.hessian()
    for near in _ACTIVE if square is not None else ():
        point = _stationary(lp, own, square or {}, near)
        if point.holds and distance(point, own) <= tolerance:
            tangent = _tangent(lp, point)
            found = exact_optimum(tangent)
            if found.bound != point.values[0]:
                continue
            how = "the conditions of Karush, Kuhn and Tucker hold exactly there"
            if save is not None and found.dual is not None:
                write_multipliers(save, program, tangent, found.dual, found.bound, (point, square or {}))
                how += f"; the proof is in {save}"
            return certificate_of(point, own, found.bound, True, how)
    point = own if own.holds else repaired(fixed(lp, integer, own.x), own, tolerance)
    bound = exact_optimum(_tangent(lp, point)).bound
    how = "the tangent of the objective there proves the bound"
    how = "no bound could be proved" if bound is None else how
    return certificate_of(point, own, bound, True if point.holds and bound == point.values[0] else None, how)


def _tangent(lp: LinearProgram, point: ExactPoint) -> LinearProgram:
    """The program with the tangent of the objective at a point."""
    slope, (value,) = point.slope(), point.values
    rise = sum((a * x for a, x in zip(slope, point.x, strict=True)), fmpq(0))
    return replace(lp, cost=slope + [fmpq(0)] * (len(lp.cost) - len(slope)), offset=value - rise)


def _stationary(
    lp: LinearProgram, own: ExactPoint, square: Mapping[tuple[int, int], Rational], near: float
) -> ExactPoint:
    """A point whose gradient is a combination of what is tight at a point, where all that stays tight."""

    def tight(value: Rational, low: Rational | None, high: Rational | None) -> Rational | None:
        room = near * max(1.0, abs(float(value)))
        return next((e for e in (low, high) if e is not None and abs(float(value - e)) <= room), None)

    ends = [tight(*item) for item in zip(own.x, lp.lower, lp.upper, strict=False)]
    x = [v if end is None else end for v, end in zip(own.x, ends, strict=True)]
    known, wide = [j for j in own.given if ends[j] is None], len(lp.cost)
    unknowns: list[dict[int, Rational]] = [{} for _ in range(wide + len(lp.rows))]  # steps, then multipliers
    target = [-a for a in own.slope()] + [fmpq(0)] * (len(unknowns) - len(x))
    for (j, k), a in square.items():
        unknowns[k][j] = a
        target[j] -= a * (x[k] - own.x[k])
    for i, value in enumerate(lp.activity(x + [fmpq(0)] * (wide - len(x)))):
        end = tight(value, lp.row_lower[i], lp.row_upper[i])
        if end is not None:
            known.append(wide + i)
            target[wide + i] = end - value
            for j, a in lp.rows[i].items():
                unknowns[j][wide + i], unknowns[wide + i][j] = a, -a
    step = solve_exactly(unknowns, known, known, target)
    if step is None:
        return own
    return ExactPoint(own.model, [v + step.get(j, fmpq(0)) for j, v in enumerate(x)])
