"""Affine expressions with a numpy shape, held sparsely and combined by array operations only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array, as_bounds, as_numbers, broadcast_shapes, check_order, refuse_entry
from forcopt.errors import CurvatureError, DeclarationError, counterpart
from forcopt.language.alignment import (
    Arrangement,
    Operand,
    aligned,
    check_matmul,
    kept_label,
    matrix_operand,
    no_labels_to_meet,
    normalized_axes,
    onto,
    positions,
    repeats_nothing,
)
from forcopt.language.labels import Axes, Axis, axes_of_table, is_table, pick, tidy
from forcopt.language.terms import Gather, Rows, Term, compact, joined, merged

if TYPE_CHECKING:
    from forcopt.language.along import Groups, Windows
    from forcopt.language.constraint import Constraint
    from forcopt.language.model import Model
    from forcopt.language.scalar import Scalar


_LARGE = 1e300
_LEAST, _ZERO, _MOST = np.array(-np.inf), np.array(0.0), np.array(np.inf)
for _bound in (_LEAST, _ZERO, _MOST):
    _bound.flags.writeable = False  # constraints share them


_COUNTERPARTS = {
    **dict.fromkeys(("value", "x", "varvalue", "solutionvalue", "getvalue"), "s[x] of s = m.solve()"),
    **dict.fromkeys(("rc", "reducedcost"), "s.reduced_cost(x) of s = m.solve()"),
    **dict.fromkeys(("lb", "ub"), "x.lower and x.upper of a variable, or m.fix"),
}
"""Names of other modelling languages, in small letters without underscores."""


class Expression:
    """An affine map of a model's columns, with a numpy shape.

    Arithmetic, indexing, broadcasting, ``sum`` and ``@`` work as in numpy and never loop over elements. The
    other operand may be a number, an array, a scipy sparse matrix, or a pandas series or frame (which pandas
    refuses on the left of ``@``: write ``x @ series`` or ``x @ frame.T``). Comparing gives a `Constraint`.

    Attributes
    ----------
    model : Model
        The model whose columns it uses.
    shape : tuple[int, ...]
        Its numpy shape.
    constant : Array
        The constant part, an array of that shape.
    terms : tuple[Term, ...]
        The linear part, see `forcopt.language.terms`.
    axes : Axes, optional
        The names and labels of its axes, see `forcopt.language.alignment`; None if no axis has any.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", shape=(2, 3))
    >>> (2 * x[0] + 1).sum()
    <expression of shape (), 3 coefficients: 2 x[0,0] + 2 x[0,1] + 2 x[0,2] + 3>
    """

    __slots__ = ("axes", "constant", "model", "shape", "terms")

    if not TYPE_CHECKING:  # type checkers still report a wrong name

        def __getattr__(self, name: str) -> Any:
            if name == "variable" and "xarray" in sys.modules:  # an array on the left asks for it
                xarray_defers()
                raise DeclarationError(
                    "xarray was imported after the variables were made: import it before, or write x * array"
                )
            raise counterpart(self, name, _COUNTERPARTS)

    __array_ufunc__ = None  # numpy arrays on the left leave the operation to us
    __pandas_priority__ = 10_000  # and so do series and frames

    def __new__(cls, *args: Any, **kwargs: Any) -> Expression:
        """Make every expression that is no variable or parameter a `Combination`."""
        return super().__new__(Combination if cls is Expression else cls)

    def __init__(
        self,
        model: Model,
        shape: tuple[int, ...],
        terms: tuple[Term, ...],
        constant: Array,
        axes: Axes | None = None,
    ) -> None:
        self.model = model
        self.shape = shape
        self.terms = terms
        self.axes = axes
        self.constant = np.asarray(constant) if constant.shape == shape else np.broadcast_to(constant, shape)

    # -- shape ---------------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def T(self) -> Expression:
        """The transpose."""
        return self.transpose()

    @property
    def is_constant(self) -> bool:
        """Whether it has no linear part."""
        return not self.terms

    def _rearrange(
        self,
        move: Callable[[Array], Array],
        keeps_distinct: bool = True,
        keeps_order: bool = False,
        axes: Axes | None = None,
    ) -> Expression:
        """Apply a rearrangement of elements.

        Parameters
        ----------
        move : Callable[[Array], Array]
            Acts on arrays with one more, last, axis left alone.
        keeps_distinct : bool, default True
            It repeats no element.
        keeps_order : bool, default False
            The elements stay the same, in the same C order.
        axes : Axes, optional
            Of the result.
        """
        constant = move(self.constant[..., None])[..., 0]
        terms: list[Term] = []
        order: Array | None = None
        for term in self.terms:
            if isinstance(term, Gather):
                terms.append(term.rearrange(move, keeps_distinct))
            elif keeps_order:
                terms.append(term)
            else:
                if order is None:
                    order = move(np.arange(self.size).reshape(*self.shape, 1)).reshape(-1)
                terms.append(term.take(order))
        return Expression(self.model, constant.shape, tuple(terms), constant, axes)

    def arranged(self, arrangement: Arrangement) -> Expression:
        """Give the elements in the places that an alignment chose for them."""
        return self._rearrange(arrangement.move(self.ndim), axes=arrangement.axes)

    def broadcast_to(self, shape: tuple[int, ...]) -> Expression:
        """Repeat along new or unit axes, as `numpy.broadcast_to`.

        Parameters
        ----------
        shape : tuple[int, ...]
            To which the shape of the expression broadcasts.

        Raises
        ------
        DeclarationError
            If it does not.
        """
        if shape == self.shape:
            return self
        if broadcast_shapes([self.shape, shape], "broadcast_to") != shape:
            raise DeclarationError(f"cannot broadcast shape {self.shape} to {shape}")
        axes = None
        if self.axes is not None:
            held = zip(self.axes, shape[len(shape) - self.ndim :], strict=True)
            kept = (axis if axis is not None and len(axis) == n else None for axis, n in held)
            axes = tidy((*(None,) * (len(shape) - self.ndim), *kept))
        return self._rearrange(lambda a: np.broadcast_to(a, (*shape, a.shape[-1])), False, axes=axes)

    def labelled(self, axes: Axes | None) -> Expression:
        """The same elements, with other names and labels of the axes."""
        return Expression(self.model, self.shape, self.terms, self.constant, axes)

    def reshape(self, *shape: int | Sequence[int]) -> Expression:
        """Give the elements another shape, in C order; one length may be -1, to be inferred.

        Labels stay where only axes of length 1 come or go.

        Parameters
        ----------
        shape : int or Sequence[int]
            One sequence, or the lengths one by one.

        Raises
        ------
        DeclarationError
            If the number of elements differs.
        """
        target: Any = shape[0] if len(shape) == 1 else shape
        try:
            full = np.broadcast_to(False, self.shape).reshape(target).shape
        except (TypeError, ValueError):
            raise DeclarationError(f"cannot reshape {self.shape} to {target}") from None
        if full == self.shape:
            return self
        axes = None
        if self.axes is not None and [n for n in self.shape if n != 1] == [n for n in full if n != 1]:
            kept = iter(axis for axis, n in zip(self.axes, self.shape, strict=True) if n != 1)
            axes = tidy([None if n == 1 else next(kept) for n in full])
        return self._rearrange(lambda a: a.reshape(*full, a.shape[-1]), keeps_order=True, axes=axes)

    def ravel(self) -> Expression:
        """Give the elements as a vector, in C order."""
        return self.reshape(self.size)

    def transpose(self, *axes: int | str | Sequence[int | str]) -> Expression:
        """Permute the axes; reverse them by default.

        Parameters
        ----------
        axes : int, str or a sequence of these
            All axes in their new order, by number or name.

        Raises
        ------
        DeclarationError
            If an axis is missing, or named twice.
        """
        given: Any = axes[0] if len(axes) == 1 else axes
        order = self.axes_at(given) if axes else tuple(range(self.ndim))[::-1]
        if len(order) != self.ndim:
            raise DeclarationError(f"transpose needs all {self.ndim} axes of shape {self.shape}, not {given}")
        if order == tuple(range(self.ndim)):
            return self
        labels = None if self.axes is None else tuple(self.axes[a] for a in order)
        return self._rearrange(lambda a: a.transpose(*order, a.ndim - 1), axes=labels)

    def axes_at(self, axis: Any) -> tuple[int, ...]:
        """The positions of one or several axes, given by number or by name."""
        return normalized_axes(positions(axis, self.axes, "axis"), self.shape)

    def __getitem__(self, index: Any) -> Expression:
        if type(index) is int and self.axes is None and self.shape and len(self.terms) == 1:
            term = self.terms[0]
            if isinstance(term, Gather) and -self.shape[0] <= index < self.shape[0]:
                values = term.values[index if len(term.values) > 1 else 0]
                part = Gather(term.columns[index], values, term.distinct)
                return Expression(self.model, self.shape[1:], (part,), self.constant[index])
        key = index if isinstance(index, tuple) else (index,)
        if self.axes is None:
            return self._at(key, index)
        key, axes = pick(key, self.axes, every=False)
        return self._at(key, index, axes)

    @property
    def loc(self) -> Loc:
        """Index by labels of any type, as in pandas: ``x.loc["a"]``, ``x.loc[[3, 5], :]``."""
        return Loc(self)

    def aligned(self, data: Any, subject: str) -> Any:
        """Give values for the elements as something numpy reads; tables in the order of the labels.

        Raises
        ------
        DeclarationError
            Listing the labels that one side lacks.
        """
        return onto(data, self.axes, self.shape, subject)

    def _at(self, key: tuple[Any, ...], index: Any, axes: Axes | None = None) -> Expression:
        """Pick by positions; the axes of the part are known."""
        full = (*key, slice(None)) if any(k is Ellipsis for k in key) else (*key, Ellipsis, slice(None))
        try:
            return self._rearrange(
                # numpy picks single numbers faster than rows of one number
                lambda a: a[..., 0][key][..., None] if a.shape[-1] == 1 else a[full],
                keeps_distinct=all(map(repeats_nothing, key)),
                axes=axes,
            )
        except IndexError:
            raise IndexError(f"index {index!r} does not fit shape {self.shape}") from None

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a scalar expression has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Expression]:
        return (self[i] for i in range(len(self)))

    def __and__(self, other: Operand) -> Expression:
        return logic.conjunction(self, other)

    __rand__ = __and__

    def __or__(self, other: Operand) -> Expression:
        return logic.disjunction(self, other)

    __ror__ = __or__

    def __invert__(self) -> Expression:
        return logic.negation(self)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        caller = sys._getframe(1)
        if caller.f_code.co_name == "dot" and caller.f_globals.get("__name__", "").startswith("pandas."):
            # Series.dot and DataFrame.dot never ask the right operand; without labels they would be wrong.
            raise DeclarationError("pandas takes no expression right of @: write x @ series, or x @ frame.T")
        # A 0-d object array makes scipy's sparse matrices leave `A @ x` to __rmatmul__.
        box = np.empty((), dtype=object)
        box[()] = self
        return box

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        # Without it numpy takes an expression for one object: its `dot` would be an outer product.
        if function in (np.shape, np.ndim, np.size):
            return function(np.broadcast_to(0, self.shape), *args[1:], **kwargs)
        name = function.__name__
        if name in ("dot", "inner", "vdot"):
            hint = "write A @ x"
        elif callable(getattr(Expression, name, None)):
            hint = f"write x.{name}()"
        elif name in _LIKE_NUMPY:
            hint = f"write forcopt.{name}"
        else:
            hint = "take the methods of an expression, or functions such as forcopt.stack and forcopt.maximum"
        raise TypeError(f"numpy.{name} takes no expressions; {hint}")

    # -- arithmetic ----------------------------------------------------------------------------------------

    def plain(self) -> Scalar | None:
        """A scalar sum of columns, held in lists; None for any other expression."""
        return None

    def extend(self, columns: list[int], values: list[float], sign: float) -> float | None:
        """Append its columns and coefficients times `sign`, and give its number; None as for `plain`."""
        return None

    def linear(self) -> Expression:
        """The same without its constant."""
        return Expression(self.model, self.shape, self.terms, _ZERO, self.axes)

    def _same_model(self, other: Expression) -> None:
        if other.model is not self.model:
            raise DeclarationError(
                f"an expression of model {other.model.name!r} is used in one of model {self.model.name!r}: "
                "all variables must belong to the same model"
            )

    def _plus(
        self, other: Operand, sign: float, verb: str = "adding", subject: str = "the added array"
    ) -> Expression:
        if not self.shape and (plain := self.plain()) is not None:
            total = plain.added(other, sign)
            if total is not None:
                return total
        if (type(other) is float or type(other) is int) and -_LARGE < other < _LARGE:
            constant = compact(self.constant) + sign * float(other)
            return Expression(self.model, self.shape, self.terms, constant, self.axes)
        left: Expression
        if isinstance(other, Expression):
            self._same_model(other)
            (left, other), axes = aligned([self, other], f"{verb}: the other part")
            right_constant, right_terms, right_shape = other.constant, other.terms, other.shape
        else:
            (left, other), axes = aligned([self, other], subject)
            right_constant = as_numbers(other, subject)
            right_terms, right_shape = (), right_constant.shape
        shape = broadcast_shapes([left.shape, right_shape], verb)
        left = left.broadcast_to(shape)
        if right_terms and right_shape != shape:
            right_terms = other.broadcast_to(shape).terms
        if sign < 0:
            minus = np.full((1,) * len(shape), -1.0)
            right_terms = tuple(_scale(term, minus) for term in right_terms)
        constant = left.constant
        if shape:
            constant, right_constant = (_padded(compact(c), len(shape)) for c in (constant, right_constant))
        constant = constant + sign * right_constant
        return Expression(self.model, shape, joined(left.terms + right_terms), constant, axes)

    def __add__(self, other: Operand) -> Expression:
        return self._plus(other, 1.0)

    __radd__ = __add__

    def __sub__(self, other: Operand) -> Expression:
        return self._plus(other, -1.0, "subtracting", "the subtracted array")

    def __rsub__(self, other: Operand) -> Expression:
        return (-self)._plus(other, 1.0)

    def __neg__(self) -> Expression:
        return self * -1.0

    def __pos__(self) -> Expression:
        return self

    def __mul__(self, other: Operand) -> Expression:
        if not self.shape and (plain := self.plain()) is not None:
            product = plain.scaled(other)
            if product is not None:
                return product
        if (type(other) is float or type(other) is int) and -_LARGE < other < _LARGE:
            by = float(other)
            terms = tuple(
                Gather(t.columns, t.values * by, t.distinct)
                if isinstance(t, Gather)
                else t.scale(np.array([by]))
                for t in self.terms
            )
            constant = (compact(self.constant) if self.shape else self.constant) * by
            return Expression(self.model, self.shape, terms, constant, self.axes)
        if isinstance(other, Expression):
            self._same_model(other)
            left: Expression
            right: Expression
            (left, right), axes = aligned([self, other], "multiplying: the other part")
            scaled: Expression
            if right.is_constant:
                scaled = left._scaled(right.constant, axes)
            elif left.is_constant:
                scaled = right._scaled(left.constant, axes)
            else:
                scaled = products.multiplied(left, right, axes)
            return scaled
        if isinstance(other, sp.spmatrix | np.matrix):
            raise DeclarationError(
                f"* with a {type(other).__name__} could mean the matrix product or elements; "
                "write @, or multiply by an array (scipy.sparse.csr_array, numpy.asarray)"
            )
        subject = "the multiplying array"
        (left, other), axes = aligned([self, other], subject)
        return Expression._scaled(left, as_numbers(other, subject), axes)

    __rmul__ = __mul__

    def _scaled(self, factor: Array, axes: Axes | None) -> Expression:
        """The product with numbers that are in line with it."""
        shape = broadcast_shapes([self.shape, factor.shape], "multiplying")
        wide, factor = self.broadcast_to(shape), _padded(factor, len(shape))
        constant = compact(wide.constant)
        terms = tuple(_scale(term, factor, shape) for term in wide.terms)
        return Expression(self.model, shape, terms, constant * factor if constant.any() else _ZERO, axes)

    def __truediv__(self, other: Operand) -> Expression:
        if isinstance(other, Expression) and not other.is_constant:
            raise CurvatureError(
                f"dividing by the expression {other._short()} is not convex; "
                "see fo.inverse and fo.quad_over_lin"
            )
        (left, other), axes = aligned([self, other], "the divisor")
        divisor = as_numbers(other.constant if isinstance(other, Expression) else other, "the divisor")
        with np.errstate(divide="ignore", over="ignore"):
            factor = 1.0 / divisor
        if not np.isfinite(factor).all():
            at = int(np.argmax(~np.isfinite(factor)))
            refuse_entry(divisor.shape, at, divisor.flat[at], "the divisor", "a number to divide by")
        return Expression._scaled(left, factor, axes)

    def __rtruediv__(self, other: Operand) -> Expression:
        result: Expression = atoms.inverse(self) * other
        return result

    def __matmul__(self, other: Operand) -> Expression:
        return _matmul(self, other)

    def __rmatmul__(self, other: Operand) -> Expression:
        return _matmul(other, self)

    def _left_multiplied(self, data: Any) -> Expression:
        """The product with a matrix or a vector on the left, without labels."""
        if data.ndim == 1:
            return self._scaled(data.reshape(-1, *(1,) * (self.ndim - 1)), None).sum(axis=0)
        matrix = sp.csr_array(data)
        shape = (matrix.shape[0], *self.shape[1:])
        flat = self.ravel()
        if self.ndim == 2:
            matrix = sp.csr_array(sp.kron(matrix, sp.eye_array(self.shape[1]), format="csr"))
        terms = tuple(term.left_multiply(matrix) for term in flat.terms)
        constant = matrix @ flat.constant if flat.constant.any() else np.zeros(matrix.shape[0])
        return Expression(self.model, shape, terms, np.asarray(constant).reshape(shape))

    def __pow__(self, exponent: float) -> Expression:
        result: Expression = atoms.power(self, exponent)
        return result

    def __abs__(self) -> Expression:
        result: Expression = atoms.abs(self)
        return result

    # -- reductions ----------------------------------------------------------------------------------------

    def sum(
        self, axis: int | str | tuple[int | str, ...] | None = None, keepdims: bool = False
    ) -> Expression:
        """Sum over all elements, or over one or several axes.

        Parameters
        ----------
        axis : int or str or a tuple of these, optional
            The axes; all if left out.
        keepdims : bool, default False
            Leave the axes with length 1.

        Examples
        --------
        >>> import forcopt as fo
        >>> x = fo.Model().variable("x", (2, 2))
        >>> x.sum()
        <expression of shape (), 4 coefficients: x[0,0] + x[0,1] + x[1,0] + x[1,1]>
        >>> x.sum(axis=0).shape, x.sum(axis=1, keepdims=True).shape
        ((2,), (2, 1))
        """
        axes = tuple(range(self.ndim)) if axis is None else tuple(sorted(self.axes_at(axis)))
        kept = tuple(a for a in range(self.ndim) if a not in axes)
        shape = tuple(self.shape[a] for a in kept)
        groups, count = prod(shape), prod(self.shape[a] for a in axes)
        flat = self.transpose(*kept, *axes).reshape(*shape, count) if self.ndim else self.reshape(1)
        terms = tuple(
            term.merge_last_axis() if isinstance(term, Gather) else term.merge_groups(groups, count)
            for term in flat.terms
        )
        labels = None if self.axes is None else tidy([self.axes[a] for a in kept])
        out = Expression(self.model, shape, terms, flat.constant.sum(axis=-1), labels)
        if keepdims:
            key = tuple(None if a in axes else slice(None) for a in range(self.ndim))
            return out[key] if key else out
        return out

    def mean(self, axis: int | str | tuple[int | str, ...] | None = None) -> Expression:
        """Average over all elements, or over one or several axes.

        Parameters
        ----------
        axis : int or str or a tuple of these, optional
            Over which; all axes by default.

        Raises
        ------
        DeclarationError
            If there are no elements.
        """
        axes = tuple(range(self.ndim)) if axis is None else self.axes_at(axis)
        count = prod(self.shape[a] for a in axes)
        if count == 0:
            raise DeclarationError(f"mean of no elements: axis {axis} of shape {self.shape}")
        return self.sum(axes) / count

    def max(self, axis: int | str | None = None) -> Expression:
        """The largest element (convex), of all or along an axis.

        Parameters
        ----------
        axis : int or str, optional
            Along which; of all elements by default.

        Returns
        -------
        Expression
            Convex; without the axis, or a scalar.

        Examples
        --------
        >>> import forcopt as fo
        >>> m = fo.Model()
        >>> x = m.variable("x", 3, lower=[1, 4, 2])
        >>> m.minimize(x.max())
        >>> m.solve().objective
        4.0
        """
        return atoms.maximum(self, axis=axis) if axis is not None else self.ravel().max(0)

    def min(self, axis: int | str | None = None) -> Expression:
        """The smallest element (concave), of all or along an axis.

        Parameters
        ----------
        axis : int or str, optional
            Along which; of all elements by default.

        Returns
        -------
        Expression
            Concave; without the axis, or a scalar.

        Examples
        --------
        >>> import forcopt as fo
        >>> m = fo.Model()
        >>> x = m.variable("x", 3, upper=[1, 4, 2])
        >>> m.maximize(x.min())
        >>> m.solve().objective
        1.0
        """
        return atoms.minimum(self, axis=axis) if axis is not None else self.ravel().min(0)

    # -- along a named axis --------------------------------------------------------------------------------

    def sel(self, **labels: Any) -> Expression:
        """Pick by label along named axes: ``x.sel(unit="coal", time=[1, 2])``, also slices with both ends.

        Parameters
        ----------
        labels : Any
            For each axis by name a label, several, or a slice of labels; for a level of an axis's labels by
            name one value, which picks all entries that have it.

        Examples
        --------
        >>> import forcopt as fo
        >>> x = fo.Model().variable("x", index={"unit": ["coal", "gas"], "time": [1, 2, 3]})
        >>> x.sel(unit="coal").shape, x.sel(time=slice(2, 3)).shape
        ((3,), (2, 2))
        """
        return along.selected(self, labels)

    def rename(self, **names: str) -> Expression:
        """Give axes other names: ``x.rename(source="node")``.

        Parameters
        ----------
        names : str
            The new name for each old one.

        Examples
        --------
        >>> import forcopt as fo
        >>> x = fo.Model().variable("x", index={"source": ["a", "b"]})
        >>> x.rename(source="node").axes[0].name
        'node'
        """
        return along.renamed(self, names)

    def shift(self, **steps: int) -> Expression:
        """Move the entries along named axes; 0 comes in.

        Parameters
        ----------
        steps : int
            For each axis by name how far; negative for backwards.

        Examples
        --------
        >>> import forcopt as fo
        >>> x = fo.Model().variable("x", index={"time": [1, 2, 3]})
        >>> (x - x.shift(time=1)).loc[2]
        <expression of shape (), 2 coefficients: -x[1] + x[2]>
        """
        return along.shifted(self, steps)

    def diff(self, axis: int | str = -1) -> Expression:
        """Each entry less the one before it along an axis; without the first.

        Parameters
        ----------
        axis : int or str, default -1
            The axis; the result has the labels of the later entries.

        Examples
        --------
        >>> import forcopt as fo
        >>> x = fo.Model().variable("x", index={"time": [1, 2, 3]})
        >>> x.diff("time").loc[3]
        <expression of shape (), 2 coefficients: -x[2] + x[3]>
        """
        return along.difference(self, axis)

    def rolling(self, **width: int) -> Windows:
        """The windows of a width that end at each entry of a named axis: ``x.rolling(time=3).sum()``.

        Parameters
        ----------
        width : int
            For one axis by name the number of entries.

        Examples
        --------
        >>> import forcopt as fo
        >>> x = fo.Model().variable("x", index={"time": [1, 2, 3]})
        >>> x.rolling(time=2).sum().loc[3]
        <expression of shape (), 2 coefficients: x[2] + x[3]>
        """
        return along.windows(self, width)

    def groupby(self, by: Any) -> Groups:
        """The entries of an axis in groups: ``x.groupby(edges["source"]).sum()``.

        Parameters
        ----------
        by : pandas.Series or str
            The group of each label of one axis, or the name of a level of its labels.

        Examples
        --------
        >>> import pandas as pd
        >>> import forcopt as fo
        >>> arcs = pd.MultiIndex.from_tuples([("a", "b"), ("a", "c"), ("b", "c")], names=["tail", "head"])
        >>> x = fo.Model().variable("x", index=arcs)
        >>> x.groupby("tail").sum()["a"]
        <expression of shape (), 2 coefficients: x[a,b] + x[a,c]>
        """
        return along.grouped(self, by)

    # -- comparison ----------------------------------------------------------------------------------------

    def between(self, lower: Operand, upper: Operand) -> Constraint:
        """The constraint ``lower <= self <= upper``, one row for each element.

        Parameters
        ----------
        lower : Operand
            Numbers that broadcast with the expression; may be ``-inf``.
        upper : Operand
            Numbers that broadcast with the expression; may be ``inf``.
        """
        words = ["between", "between: lower", "between: upper"]
        (left, lower, upper), axes = aligned([self, lower, upper], words)
        low, high = as_bounds(lower, upper, "between: ")
        shape = broadcast_shapes([left.shape, low.shape, high.shape], "between")
        check_order(low, high, shape, "between")
        wide = left.broadcast_to(shape)
        rows = Expression(self.model, shape, wide.terms, _ZERO, axes)
        low, high = (np.broadcast_to(bound - wide.constant, shape) for bound in (low, high))
        return constraint.Constraint(rows, low, high)

    def _compare(self, other: Operand, lower: Array, upper: Array) -> Constraint:
        difference = self._plus(other, -1.0, "comparing", "the compared array")
        end = 0.0 - compact(difference.constant)
        ends = lower if lower is _LEAST else end, upper if upper is _MOST else end
        return constraint.Constraint(difference.linear(), *ends)

    def __le__(self, other: Operand) -> Constraint:
        return self._compare(other, _LEAST, _ZERO)

    def __ge__(self, other: Operand) -> Constraint:
        return self._compare(other, _ZERO, _MOST)

    def __eq__(self, other: Operand) -> Constraint:  # type: ignore[override]
        return self._compare(other, _ZERO, _ZERO)

    def __ne__(self, other: Operand) -> bool:
        raise TypeError("an optimization model has no constraint !=")

    def __lt__(self, other: Operand) -> bool:
        raise TypeError(_NO_STRICT.format("<="))

    def __gt__(self, other: Operand) -> bool:
        raise TypeError(_NO_STRICT.format(">="))

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise TypeError("the truth of an expression is known only after solving")

    # -- reading -------------------------------------------------------------------------------------------

    def evaluate(self, point: Array) -> Array:
        """Evaluate at `point`, the values of all columns; an array of the expression's shape."""
        total = np.array(self.constant, dtype=float)
        for term in self.terms:
            total += term.dot(point).reshape(self.shape)
        return total

    def linear_rows(self) -> Rows:
        """Merge the linear part into one sparse row for each element, each column at most once, no zeros."""
        return merged(self.terms, self.size)

    @property
    def coefficient_count(self) -> int:
        """The number of coefficients held; more than are left once they are merged."""
        return sum(t.columns.size if isinstance(t, Gather) else t.data.size for t in self.terms)

    def __repr__(self) -> str:
        text = f"expression of shape {self.shape}, {self.coefficient_count} coefficients"
        return f"<{text}: {self._short()}>" if self.size == 1 else f"<{text}>"

    def _short(self) -> str:
        """Write the first element out, for messages."""
        return display.element_text(self)

    def _repr_latex_(self) -> str:
        return f"${display.expression_latex(self)}$"

    def _repr_html_(self) -> str:
        return display.expression_html(self)


class Loc:
    """Gives parts of an expression by the labels of its axes; see `Expression.loc`."""

    __slots__ = ("_whole",)

    def __init__(self, whole: Expression) -> None:
        self._whole = whole

    def __getitem__(self, key: Any) -> Expression:
        whole = self._whole
        if whole.axes is None:
            raise DeclarationError(f"{whole._short()} has no labels: declare its variable with index=")
        parts, axes = pick(key if isinstance(key, tuple) else (key,), whole.axes, every=True)
        return whole._at(parts, key, axes)


class Combination(Expression):
    """An expression that is no variable and no parameter.

    Python asks the right-hand side of a comparison first if its class is derived from that of the left-hand
    side. No class is derived from this one: the sides of ``expression >= variable`` stay where they are, and
    its dual has the sign that is documented.
    """

    __slots__ = ()


def xarray_defers() -> None:
    """Let arrays of xarray on the left of an operator leave it to the expression on their right.

    numpy and pandas have protocols for this; xarray has none, and would pair the entries by position.
    """
    if "xarray" not in sys.modules:
        return
    kind = sys.modules["xarray"].DataArray
    operate = kind._binary_op
    if hasattr(operate, "__wrapped__"):
        return

    @wraps(operate)
    def deferring(array: Any, other: Any, *how: Any, **options: Any) -> Any:
        return NotImplemented if isinstance(other, Expression) else operate(array, other, *how, **options)

    kind._binary_op = deferring


_LIKE_NUMPY = ("abs", "block", "concatenate", "cumsum", "diag", "stack", "trace")
"""Functions of numpy that have a counterpart for expressions."""

_NO_STRICT = (
    "an optimization model has no strict inequality; use {}, and in place of Python's min, max and sorted "
    "fo.minimum(x, y), fo.maximum(x, y), x.min() and x.max()"
)


def _padded(values: Array, axes: int) -> Array:
    return values.reshape((1,) * (axes - values.ndim) + values.shape)


def _scale(term: Term, factor: Array, shape: tuple[int, ...] = ()) -> Term:
    if isinstance(term, Gather):
        return term.scale(factor)
    return term.scale(factor.reshape(-1) if factor.size == 1 else np.broadcast_to(factor, shape).reshape(-1))


def _matmul(left: Operand, right: Operand) -> Expression:
    """The product of vectors and matrices, of which one at least is an expression.

    The last axis of the left meets the first of the right. If it has a name that the other axis of the other
    operand has, that one is turned to meet it.
    """
    (first, own), (second, others) = _read_side(left), _read_side(right)
    sides, axes = [first, second], [own, others]
    for mine, theirs, end in ((0, 1, -1), (1, 0, 0)):
        here = axes[mine][end] if axes[mine] else None
        key = None if here is None else here.key
        keys = [None if axis is None else axis.key for axis in axes[theirs]]
        if key is not None and len(keys) == 2 and keys[end] == key != keys[-1 - end]:
            sides[theirs], axes[theirs] = sides[theirs].T, axes[theirs][::-1]
    first, second = sides
    met, meets = axes[0][-1] if axes[0] else None, axes[1][0] if axes[1] else None
    subject = "the multiplying array"
    if met is not None and meets is not None:
        mine = 0 if isinstance(first, Expression) else 1  # messages speak of the other one
        order = met.order_of(meets, subject) if mine == 0 else meets.order_of(met, subject)
        if order is not None and mine == 0:
            second = second[order]
        elif order is not None:
            first = first[..., order] if first.ndim == 1 or isinstance(first, Expression) else first[:, order]
    else:
        for side, axis in ((left, met), (right, meets)):
            if is_table(side) and axis is not None and not axis.is_default:
                raise no_labels_to_meet(subject, axis)
    ends = ((left, axes[0][:-1]), (right, axes[1][1:]))
    labels = tidy([kept_label(axis, is_table(side)) for side, part in ends for axis in part])
    check_matmul(first.shape, second.shape)
    return _product(first, second).labelled(labels)


def _read_side(side: Operand) -> tuple[Any, list[Axis | None]]:
    """One side of ``@`` without labels, and the labels of its axes."""
    if isinstance(side, Expression):
        return side, list(side.axes or (None,) * side.ndim)
    data = matrix_operand(side.to_numpy() if is_table(side) else side)
    return data, list(axes_of_table(side)) if is_table(side) else [None] * data.ndim


def _product(first: Any, second: Any) -> Expression:
    """The product of operands that are in line."""
    if isinstance(first, Expression) and isinstance(second, Expression):
        first._same_model(second)
        if not first.is_constant and not second.is_constant:
            return products.multiplied_matrices(first, second)
        first = matrix_operand(first.constant) if first.is_constant else first
        second = second if not isinstance(first, Expression) else matrix_operand(second.constant)
    if isinstance(first, Expression):
        return first.T._left_multiplied(second.T).T
    return second._left_multiplied(first)  # type: ignore[no-any-return]


# These make expressions, too, so that they come last.
from forcopt.language import along, atoms, constraint, display, logic, products  # noqa: E402
