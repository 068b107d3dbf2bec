"""Bound a convex quadratic program by the tangent of its objective."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from flint import fmpq

from forcopt.compile.program import Program
from forcopt.loops.certify.certificate import Certificate, certificate_of
from forcopt.loops.certify.evaluation import ExactPoint
from forcopt.loops.certify.linear import fixed, repaired
from forcopt.loops.exact_lp import LinearProgram, Rational, exact_optimum

__all__ = ["certify_quadratic"]


def certify_quadratic(program: Program, own: ExactPoint, tolerance: Rational) -> Certificate:
    """Bound a convex quadratic objective by its tangent at the point, minimised exactly."""
    count = own.model.column_count
    lp, point = LinearProgram.of(program), own
    if not own.holds:
        integer = np.flatnonzero(program.integer[:count] == 1).tolist()
        point = repaired(fixed(lp, integer, own.x), own, tolerance)
    slope, (value,) = point.slope(), point.values
    rise = sum((a * x for a, x in zip(slope, point.x, strict=True)), fmpq(0))
    tangent = replace(lp, cost=slope + [fmpq(0)] * (len(lp.cost) - count), offset=value - rise)
    bound = exact_optimum(tangent).bound
    how = (
        "the tangent of the objective there proves the bound"
        if bound is not None
        else "no bound could be proved"
    )
    return certificate_of(point, own, bound, True if point.holds and bound == value else None, how)
