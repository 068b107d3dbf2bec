"""Affine expressions with a numpy shape, held sparsely and combined by array operations only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import prod
from types import EllipsisType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.lib.array_utils import normalize_axis_tuple

from forcopt.arrays import (
    Array,
    as_bounds,
    as_numbers,
    broadcast_shapes,
    check_order,
    check_real,
    refuse_entry,
)
from forcopt.errors import CurvatureError, DeclarationError
from forcopt.language.terms import Gather, Rows, Term, apart, compact, merged

if TYPE_CHECKING:
    from forcopt.language.constraint import Constraint
    from forcopt.language.model import Model

__all__ = ["Expression", "concatenate", "stack"]

Operand = Any
"""An expression, a number, or anything numpy reads as an array of numbers."""


def _is_sparse(data: Any) -> bool:
    return bool(sp.issparse(data))


def _dense(data: Operand) -> Any:
    """Give an elementwise operand as something numpy reads."""
    return data.toarray() if _is_sparse(data) else data


def _matrix(data: Any) -> Any:
    """Read one side of ``@``: a dense vector, or a canonical CSR matrix (which may share memory)."""
    what = "the multiplying array"
    if not _is_sparse(data) or data.ndim != 2:
        values = as_numbers(_dense(data), what)
        return sp.csr_array(values) if values.ndim == 2 else values
    check_real(data.dtype, what)
    rows = sp.csr_array(data, dtype=float)
    if not np.isfinite(rows.data).all():
        entries = rows.tocoo()
        at = int(np.argmax(~np.isfinite(entries.data)))
        where = f"[{entries.row[at]}, {entries.col[at]}]"
        raise DeclarationError(f"{what}{where} is {entries.data[at]}; it must be finite")
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def _axes(axes: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Read one or several axes of an array of that shape."""
    try:
        return tuple(int(a) for a in normalize_axis_tuple(axes, len(shape)))
    except (TypeError, ValueError) as error:
        raise DeclarationError(f"axis {axes} does not fit shape {shape}: {error}") from None


def _repeats_nothing(key: Any) -> bool:
    """Whether an index picks no element twice, judged by its type."""
    return isinstance(key, int | np.integer | slice | EllipsisType | None) or (
        isinstance(key, np.ndarray) and key.dtype == bool
    )


class Expression:
    """An affine map of a model's columns, with a numpy shape.

    Arithmetic, indexing, broadcasting, ``sum`` and ``@`` work as in numpy and never loop over elements. The
    other operand may be a number, an array, a scipy sparse matrix, or a pandas series or frame (but pandas
    refuses on the left of ``@``: write ``df.to_numpy() @ x``). Comparing gives a `Constraint`.

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

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", shape=(2, 3))
    >>> (2 * x[0] + 1).sum()
    <expression of shape (), 3 coefficients: 2 x[0,0] + 2 x[0,1] + 2 x[0,2] + 3>
    """

    __slots__ = ("constant", "model", "shape", "terms")
    __array_ufunc__ = None  # numpy arrays on the left leave the operation to us
    __pandas_priority__ = 10_000  # and so do series and frames

    def __init__(
        self, model: Model, shape: tuple[int, ...], terms: tuple[Term, ...], constant: Array
    ) -> None:
        self.model = model
        self.shape = shape
        self.terms = terms
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
        self, move: Callable[[Array], Array], keeps_distinct: bool = True, keeps_order: bool = False
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
        return Expression(self.model, constant.shape, tuple(terms), constant)

    def broadcast_to(self, shape: tuple[int, ...]) -> Expression:
        """Repeat along new or unit axes, as `numpy.broadcast_to`."""
        if shape == self.shape:
            return self
        if broadcast_shapes([self.shape, shape], "broadcast_to") != shape:
            raise DeclarationError(f"cannot broadcast shape {self.shape} to {shape}")
        return self._rearrange(lambda a: np.broadcast_to(a, (*shape, a.shape[-1])), keeps_distinct=False)

    def reshape(self, *shape: int | Sequence[int]) -> Expression:
        """Give the elements another shape, in C order; one length may be -1, to be inferred."""
        target: Any = shape[0] if len(shape) == 1 else shape
        try:
            full = np.broadcast_to(False, self.shape).reshape(target).shape
        except (TypeError, ValueError):
            raise DeclarationError(f"cannot reshape {self.shape} to {target}") from None
        if full == self.shape:
            return self
        return self._rearrange(lambda a: a.reshape(*full, a.shape[-1]), keeps_order=True)

    def ravel(self) -> Expression:
        """Give the elements as a vector, in C order."""
        return self.reshape(self.size)

    def transpose(self, *axes: int | Sequence[int]) -> Expression:
        """Permute the axes; reverse them by default."""
        given: Any = axes[0] if len(axes) == 1 else axes
        order = _axes(given, self.shape) if axes else tuple(range(self.ndim))[::-1]
        if len(order) != self.ndim:
            raise DeclarationError(f"transpose needs all {self.ndim} axes of shape {self.shape}, not {given}")
        if order == tuple(range(self.ndim)):
            return self
        return self._rearrange(lambda a: a.transpose(*order, a.ndim - 1))

    def __getitem__(self, index: Any) -> Expression:
        key = index if isinstance(index, tuple) else (index,)
        full = (*key, slice(None)) if any(k is Ellipsis for k in key) else (*key, Ellipsis, slice(None))
        try:
            return self._rearrange(
                # numpy picks single numbers faster than rows of one number
                lambda a: a[..., 0][key][..., None] if a.shape[-1] == 1 else a[full],
                keeps_distinct=all(map(_repeats_nothing, key)),
            )
        except IndexError:
            raise IndexError(f"index {index!r} does not fit shape {self.shape}") from None

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a scalar expression has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Expression]:
        return (self[i] for i in range(len(self)))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        # A 0-d object array makes scipy's sparse matrices leave `A @ x` to __rmatmul__.
        box = np.empty((), dtype=object)
        box[()] = self
        return box

    # -- arithmetic ----------------------------------------------------------------------------------------

    def _same_model(self, other: Expression) -> None:
        if other.model is not self.model:
            raise DeclarationError(
                f"an expression of model {other.model.name!r} is used in one of model {self.model.name!r}: "
                "all variables must belong to the same model"
            )

    def _plus(
        self, other: Operand, sign: float, verb: str = "adding", what: str = "the added array"
    ) -> Expression:
        if isinstance(other, Expression):
            self._same_model(other)
            right_constant, right_terms, right_shape = other.constant, other.terms, other.shape
        else:
            right_constant = as_numbers(_dense(other), what)
            right_terms, right_shape = (), right_constant.shape
        shape = broadcast_shapes([self.shape, right_shape], verb)
        left = self.broadcast_to(shape)
        if right_terms and right_shape != shape:
            right_terms = other.broadcast_to(shape).terms
        if sign < 0:
            minus = np.full((1,) * len(shape), -1.0)
            right_terms = tuple(_scale(term, minus) for term in right_terms)
        constant = _padded(compact(left.constant), len(shape)) + sign * _padded(
            compact(right_constant), len(shape)
        )
        return Expression(self.model, shape, left.terms + right_terms, constant)

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
        if isinstance(other, Expression):
            self._same_model(other)
            if other.is_constant:
                return self * other.constant
            if self.is_constant:
                return other * self.constant
            self._refuse_product(other)
        if isinstance(other, sp.spmatrix | np.matrix):
            raise DeclarationError(
                f"* with a {type(other).__name__} could mean the matrix product or elements; "
                "write @, or multiply by an array (scipy.sparse.csr_array, numpy.asarray)"
            )
        factor = as_numbers(_dense(other), "the multiplying array")
        shape = broadcast_shapes([self.shape, factor.shape], "multiplying")
        return self.broadcast_to(shape)._scaled(factor)

    __rmul__ = __mul__

    def _refuse_product(self, other: Expression) -> NoReturn:
        raise CurvatureError(
            f"a product of two expressions ({self._short()} and {other._short()}) is not convex; "
            "use fo.product(b, x) for a binary b, or fo.sum_squares, fo.quad_form, fo.quad_over_lin"
        )

    def _scaled(self, factor: Array) -> Expression:
        factor = _padded(factor, self.ndim)
        constant = compact(self.constant)
        return Expression(
            self.model,
            self.shape,
            tuple(_scale(term, factor, self.shape) for term in self.terms),
            constant * factor if constant.any() else np.zeros(()),
        )

    def __truediv__(self, other: Operand) -> Expression:
        if isinstance(other, Expression):
            if not other.is_constant:
                raise CurvatureError(
                    f"dividing by the expression {other._short()} is not convex; "
                    "see fo.inverse and fo.quad_over_lin"
                )
            other = other.constant
        divisor = as_numbers(_dense(other), "the divisor")
        with np.errstate(divide="ignore", over="ignore"):
            factor = 1.0 / divisor
        if not np.isfinite(factor).all():
            at = int(np.argmax(~np.isfinite(factor)))
            refuse_entry(
                divisor.shape, at, divisor.flat[at], "the divisor", "a number that can be divided by"
            )
        return self * factor

    def __rtruediv__(self, other: Operand) -> Expression:
        from forcopt.language.atoms import inverse

        result: Expression = inverse(self) * other
        return result

    def __matmul__(self, other: Operand) -> Expression:
        if isinstance(other, Expression):
            self._same_model(other)
            if self.is_constant:
                return other._left_multiplied(self.constant)
            if not other.is_constant:
                self._refuse_product(other)
            other = other.constant
        data = _matrix(other)
        _match(self.shape, data.shape)
        return self.T._left_multiplied(data.T).T

    def __rmatmul__(self, other: Operand) -> Expression:
        return self._left_multiplied(other)

    def _left_multiplied(self, other: Operand) -> Expression:
        data = _matrix(other)
        _match(data.shape, self.shape)
        if data.ndim == 1:
            weighted: Expression = self * data.reshape(-1, *(1,) * (self.ndim - 1))
            return weighted.sum(axis=0)
        matrix = sp.csr_array(data)
        shape = (matrix.shape[0], *self.shape[1:])
        flat = self.ravel()
        if self.ndim == 2:
            matrix = sp.csr_array(sp.kron(matrix, sp.eye_array(self.shape[1]), format="csr"))
        terms = tuple(term.left_multiply(matrix) for term in flat.terms)
        constant = matrix @ flat.constant if flat.constant.any() else np.zeros(matrix.shape[0])
        return Expression(self.model, shape, terms, np.asarray(constant).reshape(shape))

    def __pow__(self, exponent: float) -> Expression:
        from forcopt.language.atoms import power

        result: Expression = power(self, exponent)
        return result

    def __abs__(self) -> Expression:
        from forcopt.language.atoms import abs as absolute

        result: Expression = absolute(self)
        return result

    # -- reductions ----------------------------------------------------------------------------------------

    def sum(self, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Expression:
        """Sum over all elements, or over one or several axes."""
        axes = tuple(range(self.ndim)) if axis is None else tuple(sorted(_axes(axis, self.shape)))
        kept = tuple(a for a in range(self.ndim) if a not in axes)
        shape = tuple(self.shape[a] for a in kept)
        groups, count = prod(shape), prod(self.shape[a] for a in axes)
        flat = self.transpose(*kept, *axes).reshape(*shape, count) if self.ndim else self.reshape(1)
        terms = tuple(
            term.merge_last_axis() if isinstance(term, Gather) else term.merge_groups(groups, count)
            for term in flat.terms
        )
        out = Expression(self.model, shape, terms, flat.constant.sum(axis=-1))
        if keepdims:
            return out.reshape(tuple(1 if a in axes else n for a, n in enumerate(self.shape)))
        return out

    def mean(self, axis: int | tuple[int, ...] | None = None) -> Expression:
        """Average over all elements, or over one or several axes."""
        axes = tuple(range(self.ndim)) if axis is None else _axes(axis, self.shape)
        count = prod(self.shape[a] for a in axes)
        if count == 0:
            raise DeclarationError(f"mean of no elements: axis {axis} of shape {self.shape}")
        return self.sum(axes) / count

    def max(self, axis: int | None = None) -> Expression:
        """The largest element (convex), of all or along an axis."""
        from forcopt.language.atoms import maximum

        result: Expression = maximum(self.ravel() if axis is None else self, axis=axis or 0)
        return result

    def min(self, axis: int | None = None) -> Expression:
        """The smallest element (concave), of all or along an axis."""
        from forcopt.language.atoms import minimum

        result: Expression = minimum(self.ravel() if axis is None else self, axis=axis or 0)
        return result

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
        from forcopt.language.constraint import Constraint

        low, high = as_bounds(_dense(lower), _dense(upper), "between: ")
        shape = broadcast_shapes([self.shape, low.shape, high.shape], "between")
        check_order(low, high, shape, "between")
        return Constraint(self.broadcast_to(shape), np.broadcast_to(low, shape), np.broadcast_to(high, shape))

    def _compare(self, other: Operand, lower: float, upper: float) -> Constraint:
        from forcopt.language.constraint import Constraint

        difference = self._plus(other, -1.0, "comparing", "the compared array")
        return Constraint(difference, np.array(lower), np.array(upper))

    def __le__(self, other: Operand) -> Constraint:
        return self._compare(other, -np.inf, 0.0)

    def __ge__(self, other: Operand) -> Constraint:
        return self._compare(other, 0.0, np.inf)

    def __eq__(self, other: Operand) -> Constraint:  # type: ignore[override]
        return self._compare(other, 0.0, 0.0)

    def __ne__(self, other: Operand) -> bool:
        raise TypeError("an optimization model has no constraint !=")

    def __lt__(self, other: Operand) -> bool:
        raise TypeError("an optimization model has no strict inequality; use <=")

    def __gt__(self, other: Operand) -> bool:
        raise TypeError("an optimization model has no strict inequality; use >=")

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
        text = f"{type(self).__name__.lower()} of shape {self.shape}, {self.coefficient_count} coefficients"
        return f"<{text}: {self._short()}>" if self.size == 1 else f"<{text}>"

    def _short(self) -> str:
        """Write the first element out, for messages."""
        from forcopt.language.display import element_text

        return element_text(self)

    def _repr_latex_(self) -> str:
        from forcopt.language.display import expression_latex

        return f"${expression_latex(self)}$"


def _padded(values: Array, axes: int) -> Array:
    return values.reshape((1,) * (axes - values.ndim) + values.shape)


def _match(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    if not (1 <= len(left) <= 2 and 1 <= len(right) <= 2):
        raise DeclarationError(f"@ takes one or two axes on each side, not shapes {left} and {right}")
    if left[-1] != right[0]:
        raise DeclarationError(f"@: shapes {left} and {right} do not match ({left[-1]} against {right[0]})")


def _scale(term: Term, factor: Array, shape: tuple[int, ...] = ()) -> Term:
    if isinstance(term, Gather):
        return term.scale(factor)
    return term.scale(factor.reshape(-1) if factor.size == 1 else np.broadcast_to(factor, shape).reshape(-1))


def concatenate(parts: Iterable[Operand], axis: int = 0) -> Expression:
    """Join expressions (and arrays) along an axis that exists, as `numpy.concatenate`.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x, y = m.variable("x", 2), m.variable("y", 3)
    >>> fo.concatenate([x, 2 * y]).shape
    (5,)
    """
    parts = list(parts)
    model = next((p.model for p in parts if isinstance(p, Expression)), None)
    if model is None:
        raise DeclarationError("concatenate needs at least one expression; use numpy for arrays")
    exprs = [
        model.lift(p, "a joined expression" if isinstance(p, Expression) else "the joined array")
        for p in parts
    ]
    try:
        constant = np.concatenate([e.constant for e in exprs], axis=axis)
    except ValueError:
        raise DeclarationError(f"cannot join shapes {[e.shape for e in exprs]} along axis {axis}") from None
    axis = axis % constant.ndim
    joined = _joined_gathers(exprs, axis)
    if joined is not None:
        return Expression(model, constant.shape, (joined,), constant)
    offsets = np.cumsum([0] + [e.size for e in exprs])
    order = np.concatenate(
        [np.arange(a, a + e.size).reshape(e.shape) for a, e in zip(offsets[:-1], exprs, strict=True)],
        axis=axis,
    ).reshape(-1)
    merged_rows = [e.linear_rows() for e in exprs]
    width = 1 + max((int(r.indices.max()) for r in merged_rows if r.indices.size), default=0)
    rows = Rows.of(sp.csr_array(sp.vstack([r.matrix(width) for r in merged_rows], format="csr"))).take(order)
    return Expression(model, constant.shape, (rows,), constant)


def _joined_gathers(exprs: Sequence[Expression], axis: int) -> Gather | None:
    """One gather for all parts, if each is held in one of the same width or is constant (then with zeros)."""
    zero = Gather(np.zeros(1, np.int32), np.zeros(1), False)
    held: list[Gather] = []
    for e in exprs:
        term = e.terms[0] if e.terms else zero
        if len(e.terms) > 1 or not isinstance(term, Gather):
            return None
        held.append(term)
    widths = {term.width for term in held if term is not zero}
    if len(widths) != 1:
        return None
    shapes = [(*e.shape, *widths) for e in exprs]
    columns = [np.broadcast_to(t.columns, shape) for t, shape in zip(held, shapes, strict=True)]
    values = [np.broadcast_to(t.values, shape) for t, shape in zip(held, shapes, strict=True)]
    distinct = all(term.distinct for term in held) and apart(held)
    return Gather(np.concatenate(columns, axis=axis), np.concatenate(values, axis=axis), distinct)


def stack(parts: Iterable[Operand], axis: int = 0) -> Expression:
    """Join expressions of one shape along a new axis, as `numpy.stack`.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", 3)
    >>> fo.stack([x.sum(), x[0] - x[1]]).shape
    (2,)
    """
    parts = list(parts)
    shapes = {p.shape if isinstance(p, Expression) else np.shape(p) for p in parts}
    if len(shapes) != 1:
        raise DeclarationError(f"stack needs one or more parts of one shape, not {sorted(shapes)}")
    (where,) = _axes(axis, (*shapes.pop(), len(parts)))
    index = (slice(None),) * where + (None,)
    return concatenate(
        [p[index] if isinstance(p, Expression) else np.expand_dims(p, where) for p in parts], where
    )
