"""Put the values of parameters into a program that was compiled once.

A parameter is a column, and so is its product with an expression. For values p, each column x is an affine
map of the other columns, ``x = T x + s``: T is the identity on them, a parameter's row is empty and its
entry of s is p, and a product's row is p times the row of its factor. Rows, cones and objectives are composed
with this map; the columns stay, without entries, so that the positions of all others do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array
from forcopt.compile.assemble import with_squares
from forcopt.compile.program import Cone, Program, RowBlock, StageCost
from forcopt.errors import UnsupportedError
from forcopt.language.model import Model
from forcopt.language.relations import AtomRelation, ParameterProduct

_Scaled = tuple[ParameterProduct, sp.csr_array, sp.csr_array, bool]
"""A product, the rows of its factor, those without the columns that go, and whether it reads others."""


class ParametricProgram:
    """A program whose parameters are columns.

    Parameters
    ----------
    program : Program
        Compiled with the columns of parameters and of their products.
    model : Model
        Holds the values.
    products : Sequence of ParameterProduct
        The parameters that the program reads, in an order where each stands after the ones it reads.
    squares : Sequence of AtomRelation, optional
        Sums of squares of the last objective that parameters scale, which become its quadratic part.

    Attributes
    ----------
    gone : Array
        Booleans: the columns into which values are put.
    """

    def __init__(
        self,
        program: Program,
        model: Model,
        products: Sequence[ParameterProduct],
        squares: Sequence[AtomRelation] = (),
    ) -> None:
        self.program, self.model, self._squares = program, model, squares
        width = program.columns
        self.columns, _ = model.parameter_values()
        self.gone = np.zeros(width, dtype=bool)
        self.gone[self.columns] = True
        self._made = np.zeros(width, dtype=bool)
        self._products: list[_Scaled] = []
        for product in products:
            factor = product.factor.ravel().linear_rows().matrix(width)
            nested = bool(self._made[factor.indices].any())
            self._made[product.result_columns] = True
            kept = _masked(factor, ~(self.gone | self._made))
            self._products.append((product, factor, kept if not nested else factor, nested))
        self.gone |= self._made
        # A factor of columns that stay alone adds nothing to a shift.
        self._shifts = [
            bool(self.gone[factor.indices].any() or product.factor.constant.any())
            for product, factor, _, _ in self._products
        ]
        self._bounds = tuple(np.where(self.gone, 0.0, end) for end in (program.lower, program.upper))
        flat = self._products and not any(nested for *_, nested in self._products)
        self._pattern = _Pattern(self._products, width) if flat else None
        self._turned: _Turned | None = None  # the last substitution, and the costs computed from it
        self._costs: dict[int, tuple[_Turned | _Nested | None, StageCost]] = {}
        self._staged = any(stage.leximin is not None for stage in program.stages)
        if (self._staged or program.lazies) and self._products:
            raise UnsupportedError(
                f"model {program.name!r}: products of parameters and variables do not go with leximin "
                "objectives or lazy families; multiply by p.value and write the model anew"
            )
        self._rows = _Part.of(program.rows, width, self.gone, self._made)
        self._stage_rows = [
            None if stage.rows is None else _Part.of(stage.rows, width, self.gone, self._made)
            for stage in program.stages
        ]
        self._indicators = [_Part.of(i.rows, width, self.gone, self._made) for i in program.indicators]

    def at_values(self) -> Program:
        """The program for the values that the parameters have now.

        Arrays that the values do not change are shared with the last program.
        """
        program, width = self.program, self.program.columns
        columns, values = self.columns, self.model.parameter_numbers()
        lower, upper = (end.copy() for end in self._bounds)
        lower[columns] = upper[columns] = values
        if self._staged:
            return replace(program, lower=lower, upper=upper)
        shift = np.zeros(width)
        shift[columns] = values
        turned = self._substitution(shift)
        stages = tuple(self._stage(i, rows, shift, turned) for i, rows in enumerate(self._stage_rows))
        cones = tuple(self._cone(cone, shift, turned) for cone in program.cones)
        held = zip(program.indicators, self._indicators, strict=True)
        indicators = tuple(replace(i, rows=rows.at(shift, turned)) for i, rows in held)
        program = replace(program, lower=lower, upper=upper, rows=self._rows.at(shift, turned))
        return replace(program, stages=stages, cones=cones, indicators=indicators)

    def _substitution(self, shift: Array) -> _Turned | _Nested | None:
        """The rows of T that belong to products, others empty; completes `shift`.

        The same object as last time if the parameters that scale the products have not changed.
        """
        width = self.program.columns
        if self._pattern is not None:
            scales = []
            for (product, factor, _, _), shifts in zip(self._products, self._shifts, strict=True):
                scale = product.scale.evaluate(shift).reshape(-1)
                if shifts:
                    constant = product.factor.constant.reshape(-1)
                    shift[product.result_columns] = scale * (factor @ shift + constant)
                scales.append(scale)
            whole = np.concatenate(scales)
            if self._turned is None or not np.array_equal(whole, self._turned.scale):
                self._turned = _Turned(self._pattern, whole)
            return self._turned
        found: sp.csr_array | None = None
        for product, factor, kept, nested in self._products:
            scale = product.scale.evaluate(shift)
            rows = kept
            if nested:
                assert found is not None
                rows = _masked(factor, ~self.gone) + factor @ found
            rows = sp.csr_array(rows, copy=True)
            rows.data *= np.repeat(scale, np.diff(rows.indptr))
            shift[product.result_columns] = scale * (factor @ shift + product.factor.constant.reshape(-1))
            at = np.repeat(product.result_columns, np.diff(rows.indptr))
            placed = sp.csr_array((rows.data, (at, rows.indices)), shape=(width, width))
            found = placed if found is None else sp.csr_array(found + placed)
        return None if found is None else _Nested(found)

    def _stage(
        self, number: int, rows: _Part | None, shift: Array, turned: _Turned | _Nested | None
    ) -> StageCost:
        stage = self.program.stages[number]
        if self._squares and number == len(self.program.stages) - 1:
            stage = with_squares(stage, self._squares, self._reduced(stage.cost, turned))
        offset, quadratic = stage.offset + float(stage.cost @ shift), stage.quadratic
        block = None if rows is None else rows.at(shift, turned)
        if quadratic is None:
            last, known = self._costs.get(number, (None, None))
            if known is None or last is not turned:
                cost = self._reduced(stage.cost, turned)
            elif known.offset == offset and known.rows is block:
                return known
            else:
                cost = known.cost
            known = replace(stage, cost=cost, offset=offset, rows=block)
            self._costs[number] = turned, known
            return known
        square = quadratic @ shift
        cost, offset = stage.cost + square, offset + 0.5 * float(shift @ square)
        if turned is not None or self.gone[quadratic.indices].any():
            whole = sp.diags_array((~self.gone).astype(float), format="csr")
            whole = whole if turned is None else whole + turned.matrix
            quadratic = sp.csc_array(whole.T @ quadratic @ whole)
            quadratic.eliminate_zeros()
        cost = self._reduced(cost, turned)
        for moved in self._squares if number == len(self.program.stages) - 1 else ():
            cost[moved.result_columns] = 0.0
        return replace(stage, cost=cost, offset=offset, quadratic=quadratic, rows=block)

    def _reduced(self, cost: Array, turned: _Turned | _Nested | None) -> Array:
        """The costs of the columns that are left."""
        left = np.where(self.gone, 0.0, cost)
        return left if turned is None else left + turned.pulled(cost)

    def _cone(self, cone: Cone, shift: Array, turned: _Turned | _Nested | None) -> Cone:
        if not self.gone[cone.matrix.indices].any():
            return cone
        matrix = _masked(cone.matrix, ~self.gone)
        if turned is not None:
            matrix = sp.csr_array(matrix + cone.matrix @ turned.matrix)
        return replace(cone, matrix=matrix, offset=cone.offset + cone.matrix @ shift)


class _Pattern:
    """The rows of all products before they are scaled, and where they stand in T."""

    def __init__(self, products: Sequence[_Scaled], width: int) -> None:
        self.width = width
        kept = sp.csr_array(sp.vstack([rows for _, _, rows, _ in products], format="csr"))
        self.at = np.concatenate([product.result_columns for product, *_ in products])
        self.transposed = kept.T
        owner = np.repeat(np.arange(len(self.at)), np.diff(kept.indptr))
        number = np.arange(1, kept.nnz + 1)
        placed = sp.coo_array((number, (self.at[owner], kept.indices)), shape=(width, width)).tocsr()
        order = placed.data - 1
        self.data, self.owner = kept.data[order], owner[order]
        self.indices, self.indptr = placed.indices, placed.indptr


class _Turned:
    """The rows of T that belong to products, for some values of the parameters."""

    def __init__(self, pattern: _Pattern, scale: Array) -> None:
        self.pattern, self.scale = pattern, scale

    @cached_property
    def matrix(self) -> sp.csr_array:
        """T, with the rows of products only."""
        p = self.pattern
        return sp.csr_array((p.data * self.scale[p.owner], p.indices, p.indptr), shape=(p.width, p.width))

    def pulled(self, cost: Array) -> Array:
        """``matrix.T @ cost``."""
        return np.asarray(self.pattern.transposed @ (self.scale * cost[self.pattern.at]))


class _Nested:
    """The same where factors read other products."""

    def __init__(self, matrix: sp.csr_array) -> None:
        self.matrix = matrix

    def pulled(self, cost: Array) -> Array:
        """``matrix.T @ cost``."""
        return np.asarray(self.matrix.T @ cost)


class _Part:
    """Rows without their terms in parameters and products."""

    def __init__(self, rows: RowBlock, kept: RowBlock, given: sp.csr_array, made: sp.csr_array) -> None:
        self.rows, self.kept, self.given, self.made = rows, kept, given, made
        self._last: tuple[_Turned | _Nested, RowBlock] | None = None

    @classmethod
    def of(cls, rows: RowBlock, width: int, gone: Array, made: Array) -> _Part:
        matrix = rows.matrix(width)
        kept = _masked(matrix, ~gone) if gone[rows.indices].any() else matrix
        stay = RowBlock.of(kept, rows.lower, rows.upper)
        return cls(rows, stay, _masked(matrix, gone), _masked(matrix, made))

    def at(self, shift: Array, turned: _Turned | _Nested | None) -> RowBlock:
        """The rows with values put in; without products their matrix is always the same."""
        if not self.given.nnz:
            return self.kept
        by = self.given @ shift
        lower, upper = self.rows.lower - by, self.rows.upper - by
        if turned is None or not self.made.nnz:
            return self.kept.within(lower, upper)
        if self._last is None or self._last[0] is not turned:
            whole = sp.csr_array(self.kept.matrix(self.given.shape[1]) + self.made @ turned.matrix)
            whole.sort_indices()
            self._last = turned, RowBlock.of(whole, lower, upper)
        return self._last[1].within(lower, upper)


def _masked(matrix: sp.csr_array, keep: Array) -> sp.csr_array:
    """The matrix with the entries of some columns only."""
    inside = keep[matrix.indices]
    indptr = np.concatenate([[0], np.cumsum(inside)])[matrix.indptr]
    return sp.csr_array((matrix.data[inside], matrix.indices[inside], indptr), shape=matrix.shape)
