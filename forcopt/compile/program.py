"""The program: the input of a backend, as immutable sparse arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.language.constraint import Lazy


def triangle(order: int) -> Array:
    """Where each entry of a symmetric matrix stands in its lower triangle, row by row; shape (order, order).

    Examples
    --------
    >>> triangle(2).tolist()
    [[0, 1], [1, 2]]
    """
    rows, columns = np.tril_indices(order)
    place = np.zeros((order, order), dtype=np.intp)
    place[rows, columns] = place[columns, rows] = np.arange(len(rows))
    return place


def _excess(value: Array, lower: Array, upper: Array) -> Array:
    """By how much values violate bounds, each relative to the bound's size where that is above 1."""
    below, above = np.maximum(lower - value, 0.0), np.maximum(value - upper, 0.0)
    if not (below.any() or above.any()):
        return np.asarray(below)
    with np.errstate(invalid="ignore"):
        sizes = (np.where(np.isfinite(end), np.maximum(1.0, np.abs(end)), 1.0) for end in (lower, upper))
        return np.asarray(np.maximum(below / next(sizes), above / next(sizes)))


def _within(value: Array, lower: Array, upper: Array, tolerance: float) -> bool:
    """Whether no value is beyond its bounds by more than `tolerance`; False for NaN."""
    most = np.maximum.reduce
    below, above = most(lower - value, initial=0.0), most(value - upper, initial=0.0)
    return bool(below <= tolerance and above <= tolerance)


_LARGE_BOUND, _LARGEST_WHOLE, _HALF = 1e3, 2.0**53, 0.5


@dataclass(frozen=True, slots=True, eq=False)
class RowBlock:
    """Linear rows ``lower <= A x <= upper``, A in compressed sparse rows (int32 indices).

    Attributes
    ----------
    indptr : Array
        Shape ``(n + 1,)``: the position of each row's first entry.
    indices : Array
        Shape ``(entries,)``: the column of each entry.
    data : Array
        Shape ``(entries,)``: the coefficients.
    lower, upper : Array
        Shape ``(n,)``; may be infinite.

    Examples
    --------
    >>> indptr, indices = np.array([0, 2], np.int32), np.array([0, 1], np.int32)
    >>> block = RowBlock(indptr, indices, np.array([1.0, 3.0]), np.zeros(1), np.ones(1))
    >>> block.count, block.excess(np.array([1.0, 1.0])).tolist()
    (1, [3.0])
    """

    indptr: Array
    indices: Array
    data: Array
    lower: Array
    upper: Array
    _matrices: dict[int, sp.csr_array] = field(default_factory=dict, repr=False)
    _transposes: dict[int, sp.csc_array] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, matrix: sp.csr_array, lower: Array, upper: Array) -> Self:
        """The rows of a CSR matrix, with their bounds."""
        indptr, indices = (part.astype(np.int32, copy=False) for part in (matrix.indptr, matrix.indices))
        return cls(indptr, indices, matrix.data, lower, upper)

    @property
    def count(self) -> int:
        """The number of rows."""
        return len(self.lower)

    def matrix(self, columns: int) -> sp.csr_array:
        """Give A as a scipy matrix; is made once, and shares memory if the columns of each row rise."""
        found = self._matrices.get(columns)
        if found is None:
            found = sp.csr_array((self.data, self.indices, self.indptr), shape=(self.count, columns))
            if not found.has_canonical_format:  # scipy sorts in place, other blocks may share the indices
                found = found.copy()
            self._matrices[columns] = found
        return found

    def weighted_sum(self, y: Array, columns: int) -> Array:
        """The sum of the rows of A times the entries of `y`."""
        found = self._transposes.get(columns)
        if found is None:
            found = self._transposes[columns] = self.matrix(columns).T
        return np.asarray(found @ y)

    def excess(self, x: Array, activity: Array | None = None) -> Array:
        """By how much each row is violated at a point, relative to its bounds where they are above 1.

        Parameters
        ----------
        x : Array
            The point.
        activity : Array, optional
            The rows' values there, if they are known.
        """
        return _excess(self.matrix(len(x)) @ x if activity is None else activity, self.lower, self.upper)

    def picked(self, which: Array, columns: int) -> RowBlock:
        """The rows of a mask."""
        return RowBlock.of(self.matrix(columns)[which], self.lower[which], self.upper[which])

    def within(self, lower: Array, upper: Array) -> RowBlock:
        """The same rows with other bounds; shares the scipy matrices."""
        return replace(self, lower=lower, upper=upper)

    def from_row(self, start: int) -> RowBlock:
        """The rows from a position on."""
        at = self.indptr[start]
        data = self.indices[at:], self.data[at:], self.lower[start:], self.upper[start:]
        return RowBlock((self.indptr[start:] - at).astype(np.int32), *data)

    def extended(self, other: RowBlock) -> RowBlock:
        """These rows, then the others."""
        return RowBlock(
            np.concatenate([self.indptr, self.indptr[-1] + other.indptr[1:]]).astype(np.int32),
            np.concatenate([self.indices, other.indices]),
            np.concatenate([self.data, other.data]),
            np.concatenate([self.lower, other.lower]),
            np.concatenate([self.upper, other.upper]),
        )


@dataclass(frozen=True, slots=True, eq=False)
class LeximinLayout:
    """Where the utilities of a leximin objective (losses with their signs changed) stand in a program.

    Each strategy of `forcopt.loops.leximin` adds its own columns in a subclass.

    Attributes
    ----------
    matrix : sp.csr_array
        With `offset`, the utilities at a point: ``matrix @ x + offset``.
    offset : Array
        Shape ``(n,)``.
    values : Array
        Columns held at or below the utilities, shape ``(n,)``.
    """

    matrix: sp.csr_array = field(default_factory=lambda: sp.csr_array((0, 0)))
    offset: Array = field(default_factory=lambda: np.empty(0))
    values: Array = field(default_factory=lambda: np.empty(0, dtype=np.int32))

    def at(self, x: Array) -> Array:
        """The utilities at a point of the program."""
        return np.asarray(self.matrix @ x[: self.matrix.shape[1]] + self.offset)


@dataclass(frozen=True, slots=True, eq=False)
class StageCost:
    """One objective, always to be minimised: ``cost @ x + offset``; negated if the model maximises.

    Attributes
    ----------
    cost : Array
        Shape ``(columns,)``.
    offset : float
        Added to the value.
    maximize : bool
        Whether the model maximises, so that signs are changed.
    quadratic : sp.csc_array, optional
        If any, adds ``x' Q x / 2`` (symmetric, positive semidefinite, CSC).
    rows : RowBlock, optional
        The rows that this stage and later ones need.
    leximin : LeximinLayout, optional
        If it is a stage of a leximin objective.
    rank : int, default 0
        The number of that stage, from 1.
    """

    cost: Array
    offset: float
    maximize: bool
    quadratic: sp.csc_array | None = None
    rows: RowBlock | None = None
    leximin: LeximinLayout | None = None
    rank: int = 0

    @property
    def sign(self) -> float:
        """Multiply by it to get the model's own objective."""
        return -1.0 if self.maximize else 1.0

    def value(self, x: Array) -> float:
        """The minimised value at a point."""
        square = 0.0 if self.quadratic is None else 0.5 * float(x @ (self.quadratic @ x))
        return float(self.cost @ x) + self.offset + square


@dataclass(frozen=True, slots=True, eq=False)
class Cone:
    """Many cones of one kind and size: every `size` consecutive entries of ``A x + offset`` are in the cone.

    Attributes
    ----------
    kind : str
        ``second_order`` (t, x: norm2(x) <= t), ``exponential`` (x, y, z: y exp(x / y) <= z), ``power_cone``
        (x, y, z: x**alpha y**(1 - alpha) >= |z|), ``semidefinite_cone`` (the lower triangle, row by row, of a
        symmetric matrix without negative eigenvalues).
    size : int
        Entries of each cone.
    matrix : sp.csr_array
        CSR.
    offset : Array
        The constant part.
    alpha : float, default 0.0
        Of a power cone.
    """

    kind: str
    size: int
    matrix: sp.csr_array
    offset: Array
    alpha: float = 0.0

    @property
    def order(self) -> int:
        """The rows of each matrix of a semidefinite cone."""
        return int(np.sqrt(2 * self.size))

    def widened(self, columns: int) -> Cone:
        """The cone in a program of more columns."""
        m = self.matrix
        return replace(self, matrix=sp.csr_array((m.data, m.indices, m.indptr), shape=(m.shape[0], columns)))

    def excess(self, x: Array) -> Array:
        """By how much each cone is violated at a point, relative to its largest entry if that is above 1."""
        entries = (self.matrix @ x + self.offset).reshape(-1, self.size)
        if self.kind == "semidefinite_cone":
            over = -np.linalg.eigvalsh(entries[:, triangle(self.order)])[:, 0]
        elif self.kind == "second_order":
            over = np.sqrt((entries[:, 1:] ** 2).sum(axis=1)) - entries[:, 0]
        else:
            a, b, c = entries.T
            with np.errstate(all="ignore"):  # the closure at b = 0 holds a <= 0, c >= 0
                if self.kind == "exponential":  # near b = 0 a small step of a replaces a large one of c
                    step_c = np.where(b > 0, b * np.exp(a / b), np.where(a > 0, np.inf, 0.0)) - c
                    step_a = a - np.where(b > 0, b * np.log(np.maximum(c, 0.0) / b), 0.0)
                    step_a = np.where(c >= 0, step_a, np.inf)
                    over = np.maximum(np.minimum(step_c, step_a), -b)
                else:
                    reach = np.maximum(a, 0.0) ** self.alpha * np.maximum(b, 0.0) ** (1 - self.alpha)
                    over = np.maximum.reduce([np.abs(c) - reach, -a, -b])
        return np.asarray(np.maximum(over, 0.0) / np.maximum(1.0, np.abs(entries).max(axis=1)))


@dataclass(frozen=True, slots=True, eq=False)
class IndicatorRows:
    """For each i: ``x[columns[i]] == active`` implies row i of `rows`.

    Attributes
    ----------
    columns : Array
        Binary columns, shape ``(n,)``.
    active : int
        0 or 1.
    rows : RowBlock
        n rows.
    """

    columns: Array
    active: int
    rows: RowBlock


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """Intervals of which no two overlap, or whose demands stay within a capacity.

    Attributes
    ----------
    start : Array
        Integer columns, shape ``(n,)``.
    duration, end, present : Array, optional
        Integer columns, or None: the durations are fixed, the ends follow, all intervals are present.
    size : Array
        The fixed durations, shape ``(n,)``.
    demands : Array, optional
        Integers, shape ``(n,)``; without them no two intervals overlap.
    capacity : int, default 1
        At most this demand at a time.
    """

    start: Array
    duration: Array | None
    end: Array | None
    present: Array | None
    size: Array
    demands: Array | None = None
    capacity: int = 1

    kind = "schedule"

    def excess(self, x: Array) -> Array:
        """By how much intervals overlap at a point, or their demands exceed the capacity; one number."""
        here = slice(None) if self.present is None else np.flatnonzero(x[self.present] > _HALF)
        start = np.round(x[self.start])[here]
        end = start + self.size[here] if self.end is None else np.round(x[self.end])[here]
        if self.demands is None:
            both = np.minimum(end[:, None] - start, end - start[:, None])
            np.fill_diagonal(both, 0.0)
        else:
            running = (start <= start[:, None]) & (start[:, None] < end)
            both = running @ self.demands[here] - self.capacity
        return np.array([both.max(initial=0.0)])

    def renumbered(self, place: Array) -> Schedule:
        """The same over columns with other numbers."""
        fields = ("start", "duration", "end", "present")
        held = {field: getattr(self, field) for field in fields if getattr(self, field) is not None}
        return replace(self, **{field: place[columns] for field, columns in held.items()})


@dataclass(frozen=True, slots=True, eq=False)
class Products:
    """``x[result] = x[scale] * x[factor]``, which is not convex; columns, each of shape ``(n,)``."""

    result: Array
    scale: Array
    factor: Array

    kind = "nonconvex"

    @property
    def columns(self) -> tuple[Array, Array, Array]:
        """Those of the results and of both factors."""
        return self.result, self.scale, self.factor

    def excess(self, x: Array) -> Array:
        """By how much each equation is violated at a point, relative to the product if that is above 1."""
        right = x[self.scale] * x[self.factor]
        off = np.abs(x[self.result] - right)
        sizes = np.maximum(np.abs(right), np.abs(x[self.scale]) + np.abs(x[self.factor]))
        return np.asarray(off / np.maximum(1.0, sizes))

    def renumbered(self, place: Array) -> Products:
        """The same over columns with other numbers."""
        return Products(*(place[columns] for columns in self.columns))


@dataclass(frozen=True, eq=False)
class Program:
    """Minimise the stages in order, subject to bounds, integrality, rows, cones, indicators, lazy families.

    Attributes
    ----------
    name : str
        The model's.
    lower, upper : Array
        Column bounds.
    integer : Array
        int8; 1 integer, 2 implied integer (see `forcopt.language.columns.Columns`).
    rows : RowBlock
        The model's own rows first, then the rows of bridges.
    stages : tuple[StageCost, ...]
        Objectives in order of priority; at least one.
    tolerance : float, default 1e-07
        By how much later stages may worsen earlier ones, relative to max(1, value).
    cones, indicators, schedules, products, lazies
        The other constraints on the columns.
    relaxed : bool, default False
        Whether it only bounds the model: McCormick rows stand for products.
    units : Array, optional
        The value of 1 in each column, in the model's terms; None if all are 1.
    bridges : tuple[str, ...], optional
        Names of the rewritings applied.
    column_name, row_name : Callable[[int], str]
        Give names on demand.
    """

    name: str
    lower: Array
    upper: Array
    integer: Array
    rows: RowBlock
    stages: tuple[StageCost, ...]
    column_name: Callable[[int], str]
    row_name: Callable[[int], str]
    tolerance: float = 1e-7
    cones: tuple[Cone, ...] = ()
    indicators: tuple[IndicatorRows, ...] = ()
    schedules: tuple[Schedule, ...] = ()
    products: tuple[Products, ...] = ()
    lazies: tuple[Lazy, ...] = ()
    units: Array | None = None
    bridges: tuple[str, ...] = ()
    relaxed: bool = False

    @property
    def columns(self) -> int:
        """The number of columns."""
        return len(self.lower)

    @cached_property
    def is_integer(self) -> bool:
        """Whether any column must be an integer."""
        return bool((self.integer == 1).any())

    @property
    def is_conditional(self) -> bool:
        """Whether it has indicators, schedules or products, which rows alone do not state."""
        return bool(self.indicators or self.schedules or self.products)

    @property
    def is_staged(self) -> bool:
        """Whether it takes more than one solve."""
        return len(self.stages) > 1 or self.stages[0].leximin is not None

    def matrix(self) -> sp.csr_array:
        """The linear rows as a scipy matrix; shares memory."""
        return self.rows.matrix(self.columns)

    def violation(self, x: Array, activity: Array | None = None) -> float:
        """By how much a point violates bounds, rows, cones, indicators or integrality at most.

        Relative to the bound's or the cone's size where that is above 1; NaN if the point has one. A row of
        integers that the nearest integers miss by a half or more counts in full. The values of the rows there
        may be given as `activity`.
        """
        parts = [_excess(x, self.lower, self.upper), self.rows.excess(x, activity)]
        if self.is_integer:
            whole = x[self.integer == 1]
            parts.append(np.abs(whole - np.round(whole)))
            parts.append(self._missed_integers(x))
        parts += [cone.excess(x) for cone in self.cones]
        parts += [i.rows.excess(x)[np.round(x[i.columns]) == i.active] for i in self.indicators]
        parts += [schedule.excess(x) for schedule in self.schedules]
        parts += [products.excess(x) for products in self.products]
        return float(np.max(np.concatenate(parts), initial=0.0))

    @cached_property
    def _large_whole_rows(self) -> Array:
        """The rows of integers with integral coefficients and a bound of which 1 is a small part."""
        rows = self.rows
        sizes = np.stack([np.abs(rows.lower), np.abs(rows.upper)])
        size = sizes.max(axis=0, initial=0.0, where=np.isfinite(sizes))
        large = np.flatnonzero((size >= _LARGE_BOUND) & (size < _LARGEST_WHOLE))
        if not large.size:
            return large
        entries = (self.integer[rows.indices] != 1) | (rows.data != np.round(rows.data))
        broken = np.concatenate([[0], np.cumsum(entries)])
        return np.asarray(large[broken[rows.indptr[large + 1]] == broken[rows.indptr[large]]])

    def _missed_integers(self, x: Array) -> Array:
        """By how much whole rows miss a large bound at the nearest integers, where that is no rounding."""
        at = self._large_whole_rows
        if not at.size:
            return np.zeros(0)
        value = self.matrix()[at] @ np.round(x)
        over = np.maximum(self.rows.lower[at] - value, value - self.rows.upper[at])
        return np.where(over >= _HALF, over, 0.0)

    def holds(self, x: Array, tolerance: float, activity: Array | None = None) -> bool:
        """Whether `violation` is at most `tolerance`; quicker for linear programs."""
        if not (self.cones or self.is_conditional or self.is_integer):
            rows, value = self.rows, self.matrix() @ x if activity is None else activity
            # A relative violation is at most the absolute one.
            if _within(x, self.lower, self.upper, tolerance) and _within(
                value, rows.lower, rows.upper, tolerance
            ):
                return True
        return self.violation(x, activity) <= tolerance

    def in_units(self, x: Array) -> Array:
        """The values of columns in the model's terms."""
        return x if self.units is None else x * self.units

    def in_program_units(self, rows: RowBlock) -> RowBlock:
        """Write rows of the model's terms for the columns."""
        if self.units is None:
            return rows
        data = rows.data * self.units[rows.indices]
        return RowBlock(rows.indptr, rows.indices, data, rows.lower, rows.upper)

    def without(self, columns: Array) -> Program:
        """The program without columns that are fixed at 0 and free of cost; the others keep their order.

        For files and other libraries' objects, which nothing translates back; not for leximin objectives.
        """
        if not columns.size:
            return self
        keep = np.ones(self.columns, dtype=bool)
        keep[columns] = False
        left = np.flatnonzero(keep)

        def renumbered(rows: RowBlock) -> RowBlock:
            return RowBlock.of(sp.csr_array(rows.matrix(self.columns)[:, left]), rows.lower, rows.upper)

        def aimed(stage: StageCost) -> StageCost:
            quadratic = None if stage.quadratic is None else sp.csc_array(stage.quadratic[left][:, left])
            return replace(stage, cost=stage.cost[left], quadratic=quadratic)

        place = np.cumsum(keep) - 1
        return replace(
            self,
            lower=self.lower[left],
            upper=self.upper[left],
            integer=self.integer[left],
            rows=renumbered(self.rows),
            stages=tuple(map(aimed, self.stages)),
            cones=tuple(replace(c, matrix=sp.csr_array(c.matrix[:, left])) for c in self.cones),
            indicators=tuple(
                replace(i, columns=place[i.columns], rows=renumbered(i.rows)) for i in self.indicators
            ),
            schedules=tuple(schedule.renumbered(place) for schedule in self.schedules),
            products=tuple(products.renumbered(place) for products in self.products),
            column_name=lambda column: self.column_name(int(left[column])),
        )

    def widened(self, matrix: sp.csc_array, lower: Array, upper: Array) -> Program:
        """The program with more columns, continuous and free of cost; its stages stay as they are."""
        wide = sp.csr_array(sp.hstack([self.matrix(), sp.csr_array(matrix)], format="csr"))
        return replace(
            self,
            lower=np.concatenate([self.lower, lower]),
            upper=np.concatenate([self.upper, upper]),
            integer=np.concatenate([self.integer, np.zeros(len(lower), np.int8)]),
            rows=RowBlock.of(wide, self.rows.lower, self.rows.upper),
            cones=tuple(cone.widened(self.columns + len(lower)) for cone in self.cones),
        )

    def with_rows(self, rows: RowBlock) -> Program:
        """The program with more rows."""
        return replace(self, rows=self.rows.extended(rows))

    def with_all_rows(self) -> Program:
        """The program with the rows of all its stages."""
        out = self
        for stage in self.stages:
            out = out if stage.rows is None else out.with_rows(stage.rows)
        return out

    def with_stage(self, stage: StageCost) -> Program:
        """The program with another objective."""
        return replace(self, stages=(stage,))


def recession(program: Program) -> Program:
    """The directions along which every constraint keeps holding, cut to the unit box."""

    def homogeneous(lower: Array, upper: Array, far: float) -> tuple[Array, Array]:
        return np.where(np.isfinite(lower), 0.0, -far), np.where(np.isfinite(upper), 0.0, far)

    lower, upper = homogeneous(program.lower, program.upper, 1.0)
    rows = program.rows.within(*homogeneous(program.rows.lower, program.rows.upper, np.inf))
    cones = tuple(replace(c, offset=np.zeros_like(c.offset)) for c in program.cones)
    plain = replace(program, integer=np.zeros_like(program.integer), cones=cones, indicators=(), lazies=())
    return replace(plain, lower=lower, upper=upper, rows=rows)


def row_scales(rows: RowBlock) -> Array:
    """Return for each row the power of two nearest to its largest entry; 1 for an empty row."""
    sizes = np.ones(rows.count)
    filled = np.flatnonzero(np.diff(rows.indptr))
    if filled.size:
        sizes[filled] = np.maximum.reduceat(np.abs(rows.data), rows.indptr[filled])
    return np.asarray(np.exp2(np.round(np.log2(np.where(sizes > 0, sizes, 1.0)))))


def elastic(program: Program, scales: Array, weights: Array) -> tuple[Program, Array, Array]:
    """Minimize the weighted sum of row violations instead of the objective.

    Parameters
    ----------
    program : Program
        Of any kind; cones, indicators and integrality stay hard.
    scales : Array
        For each row the violation that one unit of its slack columns allows, shape ``(rows,)``.
    weights : Array
        For each row the cost of one unit of slack; infinite for a row that stays hard.

    Returns
    -------
    program : Program
        With slack columns after the program's own, ``scales`` times a slack added to its row.
    rows : Array
        The row of each slack column.
    signs : Array
        1 for a slack that repairs the row's lower side, -1 for its upper side.
    """
    rows = program.rows
    soft = np.isfinite(weights)
    lacking, excess = (np.flatnonzero(soft & np.isfinite(side)) for side in (rows.lower, rows.upper))
    at, signs = np.concatenate([lacking, excess]), np.repeat([1.0, -1.0], [len(lacking), len(excess)])
    count = len(at)
    slack = sp.csr_array((signs * scales[at], (at, np.arange(count))), shape=(rows.count, count))
    wide = program.widened(slack, np.zeros(count), np.full(count, np.inf))
    stage = StageCost(np.concatenate([np.zeros(program.columns), weights[at]]), 0.0, False)
    return replace(wide, stages=(stage,), lazies=()), at, signs
