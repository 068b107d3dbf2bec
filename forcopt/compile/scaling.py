"""Bring coefficients into the range that a solver reads, by exact powers of two.

Solvers drop matrix entries below a threshold (HiGHS and SCIP at 1e-9) without a word, which changes the
program. Rows and columns are multiplied by powers of two, which loses no bit and is undone exactly. Integer
columns and those of products keep their unit. Entries that are rounding dust are dropped for every backend.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.compile.program import Cone, Program, RowBlock, StageCost, row_scales
from forcopt.errors import UnsupportedError

_DUST = 2.0**-50
"""An entry is dust if it can move its row by no more than this, relative to the row's largest entry."""

_ABSOLUTE_DUST = 2.0**-46
"""An entry is dust, too, if it can move its row by no more than this (1.4e-14)."""

_NEGLIGIBLE = 1e-8
"""Entries that a solver drops do no harm if together they move their row by no more than this."""

_LEAST = 2.0**-16
"""Solvers count a reduced cost, or a violation of a row or bound, of 1e-7 or 1e-6 as zero. This decides
nothing if the largest cost, the largest entry of the row, or the bound is far above it."""

_FAR = 2.0**7
"""A norm whose largest entry is above it, or below its inverse, gets a unit; so do small squares. SCIP 10.0
fails on norms of 1e4, Clarabel 0.11 on some of 1e5."""

_ROUNDS = 10
"""Passes of geometric scaling."""


def without_dust(program: Program) -> tuple[Program, int]:
    """Drop the entries of rows that are rounding dust; also give their number.

    An entry ``a[i, j]`` is dust if ``|a[i, j]| max(1, |x[j]|)``, over the finite bounds of the column, is at
    most 2**-50 times the largest entry of its row: it moves the row by no more than 1e-15 of its scale. It is
    dust, too, if the product is at most 2**-46, far below any solver's tolerance, unless the row is small and
    has other entries: a difference of equal rates leaves rows that hold nothing else, and scaling would make
    them count. An unbounded column counts as 1;
    `forcopt.loops.checks` checks the claims of a solver with every entry.
    """
    rows = program.rows
    if not rows.data.size:
        return program, 0
    size = np.abs(rows.data)
    if size.min() > max(_DUST * size.max(), _ABSOLUTE_DUST):
        return program, 0
    reach = np.maximum(np.abs(program.lower), np.abs(program.upper))
    reach = np.where(np.isfinite(reach), np.maximum(reach, 1.0), 1.0)
    count = np.diff(rows.indptr)
    filled = np.flatnonzero(count)
    largest = np.zeros(rows.count)
    largest[filled] = np.maximum.reduceat(size, rows.indptr[filled])
    lifted = small_rows(rows, _units(program)) > 1
    absolute = np.where(lifted & (largest > _ABSOLUTE_DUST), 0.0, _ABSOLUTE_DUST)
    dust = size * reach[rows.indices] <= np.repeat(np.maximum(_DUST * largest, absolute), count)
    found = int(dust.sum())
    if not found:
        return program, 0
    keep = ~dust
    indptr = np.concatenate([[0], np.cumsum(keep)])[rows.indptr].astype(np.int32)
    kept = RowBlock(indptr, rows.indices[keep], rows.data[keep], rows.lower, rows.upper)
    return replace(program, rows=kept), found


@dataclass(frozen=True, eq=False)
class Scaling:
    """Factors of rows, columns and the objective: ``x = columns * x'``, row i is multiplied by ``rows[i]``.

    Attributes
    ----------
    rows, columns : Array
        Powers of two; 1 for integer columns.
    objective : float, default 1
        A power of two that multiplies the objective.
    """

    rows: Array
    columns: Array
    objective: float = 1.0

    def then(self, other: Scaling | None) -> Scaling:
        """This scaling, and then another one."""
        if other is None:
            return self
        return Scaling(self.rows * other.rows, self.columns * other.columns, self.objective * other.objective)

    def program(self, program: Program) -> Program:
        """The scaled program."""
        stages = tuple(map(self.stage, program.stages))
        cones = tuple(self.cone(c, self.cone_factors(c)) for c in program.cones)
        indicators = tuple(replace(i, rows=self.block(i.rows)) for i in program.indicators)
        lower, upper = program.lower / self.columns, program.upper / self.columns
        rows = self.block(program.rows, self.rows)
        scaled = replace(program, lower=lower, upper=upper, rows=rows, stages=stages, units=self.columns)
        return replace(scaled, cones=cones, indicators=indicators)

    def factors(self, rows: RowBlock) -> Array:
        """The powers of two that bring the largest entries of further rows near 1."""
        return np.asarray(1 / row_scales(replace(rows, data=rows.data * self.columns[rows.indices])))

    def block(self, rows: RowBlock, factors: Array | None = None) -> RowBlock:
        """Scale rows, by `factors` of their own if none are given."""
        if factors is None:
            factors = self.factors(rows)
        data = rows.data * self.columns[rows.indices] * np.repeat(factors, np.diff(rows.indptr))
        return RowBlock(rows.indptr, rows.indices, data, rows.lower * factors, rows.upper * factors)

    def cone_factors(self, cone: Cone) -> Array:
        """For each entry of cones the power of two that brings the largest of a small cone near 1; else 1."""
        sizes = sp.csr_array(abs(cone.matrix) @ sp.diags_array(self.columns))
        largest = sizes.max(axis=1).toarray().reshape(-1, cone.size).max(axis=1)
        is_small = (largest > 0) & (largest < _LEAST)
        return np.repeat(np.exp2(-np.round(np.log2(np.where(is_small, largest, 1.0)))), cone.size)

    def cone(self, cone: Cone, factors: Array) -> Cone:
        """Scale cones: each is closed under multiplication."""
        matrix = sp.diags_array(factors) @ cone.matrix @ sp.diags_array(self.columns)
        return replace(cone, matrix=sp.csr_array(matrix), offset=cone.offset * factors)

    def stage(self, stage: StageCost) -> StageCost:
        """Scale an objective and its columns."""
        quadratic = stage.quadratic
        if quadratic is not None:
            by = sp.diags_array(self.columns)
            quadratic = sp.csc_array(by @ quadratic @ by * self.objective)
        rows = None if stage.rows is None else self.block(stage.rows)
        cost, offset = stage.cost * self.columns * self.objective, stage.offset * self.objective
        return replace(stage, cost=cost, offset=offset, quadratic=quadratic, rows=rows)


def geometric(program: Program, counts: Array | None = None) -> Scaling:
    """Geometric scaling: bring the largest and the smallest entry of each row and column around 1.

    Every column, then every row, is divided by the root of its largest times its smallest entry, again and
    again. O(entries) for each of 10 passes.

    Parameters
    ----------
    program : Program
        The entries of its rows are scaled.
    counts : Array, optional
        The entries that decide, shape ``(entries,)``; by default all that are not zero.
    """
    rows, fixed = program.rows, _fixed(program)
    owner = np.repeat(np.arange(rows.count), np.diff(rows.indptr))
    size = np.abs(rows.data)
    log = np.log2(size, out=np.full(size.size, np.nan), where=size > 0 if counts is None else counts)
    by_row, by_column = np.zeros(rows.count), np.zeros(program.columns)
    for _ in range(_ROUNDS):
        shift = _middle(log + by_row[owner] + by_column[rows.indices], rows.indices, program.columns)
        by_column -= np.where(fixed, 0.0, shift)
        by_row -= _middle(log + by_row[owner] + by_column[rows.indices], owner, rows.count)
    return Scaling(np.exp2(np.round(by_row)), np.exp2(np.round(by_column)))


def _fixed(program: Program) -> Array:
    """The columns that keep their unit."""
    fixed: Array = program.integer != 0
    for products in program.products:
        fixed[np.concatenate(products.columns)] = True
    return fixed


def unit_of(entries: Array) -> float:
    """The power of two nearest to the largest entry, if that is far from 1; else 1."""
    size = float(np.abs(entries).max(initial=0.0))
    return float(np.exp2(np.round(np.log2(size)))) if size and not 1 / _FAR <= size <= _FAR else 1.0


def small_units(lower: Array, upper: Array, fixed: Array) -> Array:
    """The power of two nearest to the bounds of a column, if they are below `_LEAST`; 1 for all others."""
    reach = np.maximum(np.abs(lower), np.abs(upper))
    small = (reach > 0) & (reach < _LEAST) & ~fixed & (lower < upper)
    return np.asarray(np.exp2(np.round(np.log2(np.where(small, reach, 1.0)))))


def small_rows(rows: RowBlock, units: Array) -> Array:
    """The powers of two that bring the largest entries of small rows near 1; 1 for all others.

    A row is small if its entries in the units of the columns are below `_LEAST`, or below those as given.
    """
    scales = row_scales(replace(rows, data=rows.data * units[rows.indices]))
    is_small = (scales < _LEAST) | (scales < np.minimum(row_scales(rows), 1.0))
    return np.where(is_small, 1 / scales, 1.0)


def _units(program: Program) -> Array:
    """The units of the columns: of small bounds beside integers (else multipliers prove the optimum), and of
    columns without an upper bound whose entries in cones are all large, or all small, such as norms."""
    fixed, (least, most) = _fixed(program), np.full((2, program.columns), np.inf) * [[1], [-1]]
    for matrix in (cone.matrix for cone in program.cones):
        np.minimum.at(least, matrix.indices, np.abs(matrix.data))
        np.maximum.at(most, matrix.indices, np.abs(matrix.data))
    units = small_units(program.lower, program.upper, fixed | (not program.is_integer))
    far = np.isinf(program.upper) & np.isfinite(least) & ((least > _FAR) | (most < 1 / _FAR))
    units[far] = np.exp2(-np.round(np.log2(least[far])))
    return np.where(fixed, 1.0, units)


def lifted(program: Program) -> Scaling | None:
    """Bring columns whose bounds and rows whose entries are below `_LEAST` near 1; None if there are none."""
    units = _units(program)
    if (units == 1).all() and np.abs(program.rows.data).min(initial=1.0) >= _LEAST:
        return None
    factors = small_rows(program.rows, units)
    return Scaling(factors, units) if (units != 1).any() or (factors > 1).any() else None


def scaling_of(program: Program, smallest: float) -> Scaling | None:
    """The `geometric` scaling, if an entry is at or below `smallest` in size and must be read.

    Else columns whose bounds are below 2**-16, and rows whose entries are, get another unit, since tolerances
    of rows and bounds are absolute; None if there is no such row or column.

    Parameters
    ----------
    program : Program
        Without dust, see `without_dust`.
    smallest : float
        The largest size that the solver takes for zero; 0 if it reads every entry.

    Raises
    ------
    UnsupportedError
        If no scaling of that kind helps; names the row, the column and the coefficient.
    """
    if not smallest:
        return None
    lifting = lifted(program)
    program = program if lifting is None else lifting.program(program)
    rows = program.rows
    size = np.abs(rows.data)
    if not size.size or size.min() > smallest:
        return lifting
    owner = np.repeat(np.arange(rows.count), np.diff(rows.indptr))
    counts = _counts(program, size, owner, smallest)
    if size[counts].min(initial=np.inf) > smallest:
        return lifting
    scaling = geometric(program, counts & (size > 0))
    after = np.where(counts, size * scaling.rows[owner] * scaling.columns[rows.indices], np.inf)
    if after.min() <= smallest:
        at = int(np.argmin(after))
        raise UnsupportedError(
            f"row {program.row_name(int(owner[at]))} holds the coefficient {rows.data[at]:g} of "
            f"{program.column_name(int(rows.indices[at]))}, which the solver takes for zero, and no scaling "
            "of rows and columns brings it into range; give the variable another unit, or use a backend that "
            "reads it, such as clarabel"
        )
    scaling = scaling.then(lifted(scaling.program(program)))  # rows whose entries need not be read
    return scaling if lifting is None else lifting.then(scaling)


def objective_factor(stage: StageCost, scaling: Scaling | None) -> float:
    """The power of two that brings the largest cost, or entry of squares, near 1 if it is small; else 1."""
    if stage.leximin is not None:
        return 1.0
    stage = stage if scaling is None else replace(scaling, objective=1.0).stage(replace(stage, rows=None))
    if stage.quadratic is not None:  # HiGHS's active set ends early with small ones
        return max(1.0, 1 / unit_of(stage.quadratic.data))
    largest = float(np.abs(stage.cost).max(initial=0.0))
    return float(np.exp2(-np.round(np.log2(largest)))) if 0 < largest < _LEAST else 1.0


def _counts(program: Program, size: Array, owner: Array, smallest: float) -> Array:
    """Which entries a solver must read: not the small ones that hardly move their row within bounds."""
    reach = np.maximum(np.abs(program.lower), np.abs(program.upper))[program.rows.indices]
    small = (size <= smallest) & (size > 0)
    moved = np.bincount(owner[small], size[small] * reach[small], program.rows.count)
    return (size > smallest) | (small & (moved[owner] > _NEGLIGIBLE))


def _middle(values: Array, groups: Array, count: int) -> Array:
    """The middle of the smallest and the largest number of each group; 0 for a group without numbers."""
    low, high = np.full(count, np.inf), np.full(count, -np.inf)
    known = np.isfinite(values)
    np.minimum.at(low, groups[known], values[known])
    np.maximum.at(high, groups[known], values[known])
    filled = np.isfinite(low)
    return np.where(filled, 0.5 * (np.where(filled, low, 0.0) + np.where(filled, high, 0.0)), 0.0)
