"""Affine expressions with a numpy shape, held sparsely and combined by array operations only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from forcopt.errors import CurvatureError, DeclarationError
from forcopt.language.terms import Array, Gather, Rows, Term, compact

if TYPE_CHECKING:
    from forcopt.language.constraint import Constraint
    from forcopt.language.model import Model

__all__ = ["Expression", "as_numbers", "concatenate", "describe_entry", "stack"]

Operand = Any
"""An expression, a number, or anything numpy reads as an array of numbers."""


def describe_entry(shape: tuple[int, ...], flat: int) -> str:
    """Name an entry of an array for a message: ``[1, 2]``, or nothing for a scalar."""
    return f"[{', '.join(str(int(i)) for i in np.unravel_index(flat, shape))}]" if shape else ""


def as_numbers(data: Any, what: str, *, infinite: bool = False) -> Array:
    """Read numbers into a fresh float array that the caller cannot change behind our back.

    Args:
        data: anything numpy reads as an array of numbers.
        what: what to call it in an error.
        infinite: whether infinite entries are allowed.

    Raises:
        DeclarationError: for entries that are not numbers, NaN, or infinite, naming the first such entry.
    """
    try:
        values = np.array(data, dtype=float)
    except (TypeError, ValueError) as error:
        raise DeclarationError(f"{what} must be numbers: {error}") from None
    # min and max are NaN or infinite exactly if an entry is; they allocate nothing.
    if values.size and not (np.isfinite(values.min()) and np.isfinite(values.max())):
        bad = np.isnan(values) if infinite else ~np.isfinite(values)
        if bad.any():
            first = int(np.argmax(bad))
            entry = describe_entry(values.shape, first)
            rule = "a number" if infinite else "finite"
            raise DeclarationError(f"{what}{entry} is {values.flat[first]}; it must be {rule}")
    return values


def _is_sparse(data: Any) -> bool:
    return sp.issparse(data)


def _csr(matrix: Any, what: str) -> sp.csr_array:
    """Read a dense or sparse matrix of finite numbers as canonical CSR."""
    if _is_sparse(matrix):
        rows = sp.csr_array(matrix, dtype=float)
        if rows.nnz:
            as_numbers(rows.data, what)
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
        return rows
    return sp.csr_array(as_numbers(matrix, what))


def _broadcast_shapes(left: tuple[int, ...], right: tuple[int, ...], verb: str) -> tuple[int, ...]:
    if left == right:
        return left
    try:
        return np.broadcast_shapes(left, right)
    except ValueError:
        raise DeclarationError(f"cannot {verb} shapes {left} and {right}: they do not broadcast") from None


class Expression:
    """An affine map of a model's columns, with a numpy shape.

    Arithmetic, indexing, broadcasting, ``sum`` and ``@`` work as in numpy and never loop over elements.
    Comparing two expressions gives a `Constraint`.

    Attributes:
        model: the model whose columns it uses.
        shape: its numpy shape.
        constant: the constant part, an array of that shape.
        terms: the linear part, see `forcopt.language.terms`.

    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", shape=(2, 3))
    >>> (2 * x[0] + 1).sum()
    <expression of shape (), 3 coefficients: 2 x[0,0] + 2 x[0,1] + 2 x[0,2] + 3>
    """

    __slots__ = ("constant", "model", "shape", "terms")
    __array_ufunc__ = None  # numpy arrays on the left leave the operation to us

    def __init__(self, model: Model, shape: tuple[int, ...], terms: tuple[Term, ...], constant: Array) -> None:
        self.model = model
        self.shape = shape
        self.terms = terms
        self.constant = np.broadcast_to(constant, shape)

    # -- shape ---------------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def T(self) -> Expression:  # noqa: N802
        """The transpose."""
        return self.transpose()

    @property
    def is_constant(self) -> bool:
        """Whether it has no linear part."""
        return not self.terms

    def _rearrange(self, move: Callable[[Array], Array], keeps_distinct: bool = True) -> Expression:
        """Apply a rearrangement of elements; `move` acts on arrays with one more, last, axis left alone."""
        constant = move(self.constant[..., None])[..., 0]
        terms: list[Term] = []
        order: Array | None = None
        for term in self.terms:
            if isinstance(term, Gather):
                terms.append(term.rearrange(move, keeps_distinct))
            else:
                if order is None:
                    order = move(np.arange(self.size).reshape(*self.shape, 1)).reshape(-1)
                terms.append(term.take(order))
        return Expression(self.model, constant.shape, tuple(terms), constant)

    def broadcast_to(self, shape: tuple[int, ...]) -> Expression:
        """Repeat along new or unit axes, as `numpy.broadcast_to`."""
        if shape == self.shape:
            return self
        _broadcast_shapes(self.shape, shape, "broadcast")
        return self._rearrange(lambda a: np.broadcast_to(a, (*shape, a.shape[-1])), keeps_distinct=False)

    def reshape(self, *shape: int | tuple[int, ...]) -> Expression:
        """Give the elements another shape, in C order."""
        target = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        try:
            target = np.empty(self.shape, dtype=bool).reshape(target).shape  # type: ignore[arg-type]
        except ValueError:
            raise DeclarationError(f"cannot reshape {self.shape} to {target}") from None
        return self._rearrange(lambda a: a.reshape(*target, a.shape[-1]))

    def ravel(self) -> Expression:
        """Give the elements as a vector, in C order."""
        return self.reshape(self.size)

    def transpose(self, *axes: int) -> Expression:
        """Permute the axes; reverse them by default."""
        order = tuple(a % self.ndim for a in axes) if axes else tuple(range(self.ndim))[::-1]
        return self._rearrange(lambda a: a.transpose(*order, a.ndim - 1))

    def __getitem__(self, index: Any) -> Expression:
        key = index if isinstance(index, tuple) else (index,)
        full = (*key, slice(None)) if any(k is Ellipsis for k in key) else key
        repeats = any(isinstance(k, list | np.ndarray) and np.asarray(k).dtype != bool for k in key)
        try:
            return self._rearrange(lambda a: a[full], keeps_distinct=not repeats)
        except IndexError as error:
            raise IndexError(f"index {index!r} does not fit shape {self.shape}: {error}") from None

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

    def _plus(self, other: Operand, sign: float) -> Expression:
        if isinstance(other, Expression):
            self._same_model(other)
            right_constant, right_terms, right_shape = other.constant, other.terms, other.shape
        else:
            right_constant = as_numbers(_dense(other), "the added array")
            right_terms, right_shape = (), right_constant.shape
        shape = _broadcast_shapes(self.shape, right_shape, "add")
        left = self.broadcast_to(shape)
        if right_terms and right_shape != shape:
            right_terms = other.broadcast_to(shape).terms
        if sign < 0:
            minus = np.full((1,) * len(shape), -1.0)
            right_terms = tuple(_scale(term, minus) for term in right_terms)
        constant = _padded(compact(left.constant), len(shape)) + sign * _padded(compact(right_constant), len(shape))
        return Expression(self.model, shape, left.terms + right_terms, constant)

    def __add__(self, other: Operand) -> Expression:
        return self._plus(other, 1.0)

    __radd__ = __add__

    def __sub__(self, other: Operand) -> Expression:
        return self._plus(other, -1.0)

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
            raise CurvatureError(
                f"a product of two expressions ({self._short()} and {other._short()}) is not convex; "
                "use fo.product(b, x) for a binary b, or fo.sum_squares, fo.quad_form, fo.quad_over_lin"
            )
        factor = as_numbers(_dense(other), "the multiplying array")
        shape = _broadcast_shapes(self.shape, factor.shape, "multiply")
        return self.broadcast_to(shape)._scaled(factor)

    __rmul__ = __mul__

    def _scaled(self, factor: Array) -> Expression:
        factor = _padded(factor, self.ndim)
        return Expression(
            self.model,
            self.shape,
            tuple(_scale(term, factor, self.shape) for term in self.terms),
            self.constant * factor if self.constant.any() else np.zeros(()),
        )

    def __truediv__(self, other: Operand) -> Expression:
        if isinstance(other, Expression):
            if not other.is_constant:
                raise CurvatureError(
                    f"dividing by the expression {other._short()} is not convex; see fo.inverse and fo.quad_over_lin"
                )
            other = other.constant
        divisor = as_numbers(_dense(other), "the divisor")
        if not divisor.all():
            entry = describe_entry(divisor.shape, int(np.argmin(divisor != 0)))
            raise DeclarationError(f"the divisor{entry} is 0")
        return self * (1.0 / divisor)

    def __rtruediv__(self, other: Operand) -> Expression:
        from forcopt.language.atoms import inverse

        return inverse(self) * other

    def __matmul__(self, other: Operand) -> Expression:
        if isinstance(other, Expression):
            if not other.is_constant:
                return self * other  # raises, with the alternatives
            other = other.constant
        if self.ndim == 2 and np.ndim(other) == 1 and not _is_sparse(other):
            weights = as_numbers(other, "the multiplying vector")
            _match(self.shape, weights.shape, self.shape[1], weights.shape[0])
            return (self * weights).sum(axis=1)
        return (other.T.__matmul__(self.T) if _is_sparse(other) else self.T.__rmatmul__(np.asarray(other).T)).T

    def __rmatmul__(self, other: Operand) -> Expression:
        if self.ndim not in (1, 2):
            raise DeclarationError(f"@ takes expressions with one or two axes, not shape {self.shape}")
        if np.ndim(other) == 1 and not _is_sparse(other):
            weights = as_numbers(other, "the multiplying vector")
            _match(weights.shape, self.shape, weights.shape[0], self.shape[0])
            return (self * weights.reshape(-1, *(1,) * (self.ndim - 1))).sum(axis=0)
        matrix = _csr(other, "the multiplying matrix")
        _match(matrix.shape, self.shape, matrix.shape[1], self.shape[0])
        shape = (matrix.shape[0], *self.shape[1:])
        flat = self.ravel()
        if self.ndim == 2:
            matrix = sp.csr_array(sp.kron(matrix, sp.eye_array(self.shape[1]), format="csr"))
        terms = tuple(term.left_multiply(matrix) for term in flat.terms)
        constant = matrix @ flat.constant if flat.constant.any() else np.zeros(matrix.shape[0])
        return Expression(self.model, shape, terms, np.asarray(constant).reshape(shape))

    def __pow__(self, exponent: float) -> Expression:
        from forcopt.language.atoms import power

        return power(self, exponent)

    def __abs__(self) -> Expression:
        from forcopt.language.atoms import abs as absolute

        return absolute(self)

    # -- reductions ----------------------------------------------------------------------------------------

    def sum(self, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Expression:
        """Sum over all elements, or over one or several axes."""
        axes = tuple(range(self.ndim)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
        if any(not -self.ndim <= a < self.ndim for a in axes):
            raise DeclarationError(f"axis {axis} does not exist in shape {self.shape}")
        axes = tuple(sorted(a % self.ndim for a in axes))
        kept = tuple(a for a in range(self.ndim) if a not in axes)
        shape = tuple(self.shape[a] for a in kept)
        count = int(np.prod([self.shape[a] for a in axes], dtype=np.int64))
        flat = self.transpose(*kept, *axes).reshape(*shape, count) if self.ndim else self.reshape(1)
        terms = tuple(
            term.merge_last_axis() if isinstance(term, Gather) else term.merge_groups(count)
            for term in flat.terms
        )
        out = Expression(self.model, shape, terms, flat.constant.sum(axis=-1))
        if keepdims:
            return out.reshape(tuple(1 if a in axes else n for a, n in enumerate(self.shape)))
        return out

    def mean(self, axis: int | tuple[int, ...] | None = None) -> Expression:
        """Average over all elements, or over one or several axes."""
        total = self.sum(axis)
        return total / (self.size / max(total.size, 1))

    def max(self, axis: int | None = None) -> Expression:
        """The largest element (convex), of all or along an axis."""
        from forcopt.language.atoms import maximum

        return maximum(self, axis=axis) if axis is not None else maximum(self.ravel(), axis=0)

    def min(self, axis: int | None = None) -> Expression:
        """The smallest element (concave), of all or along an axis."""
        from forcopt.language.atoms import minimum

        return minimum(self, axis=axis) if axis is not None else minimum(self.ravel(), axis=0)

    # -- comparison ----------------------------------------------------------------------------------------

    def between(self, lower: Operand, upper: Operand) -> Constraint:
        """The constraint ``lower <= self <= upper``, one row for each element.

        Args:
            lower: numbers that broadcast with the expression; may be ``-inf``.
            upper: numbers that broadcast with the expression; may be ``inf``.
        """
        from forcopt.language.constraint import Constraint

        low = as_numbers(lower, "the lower bound", infinite=True)
        high = as_numbers(upper, "the upper bound", infinite=True)
        shape = _broadcast_shapes(_broadcast_shapes(self.shape, low.shape, "compare"), high.shape, "compare")
        low, high = np.broadcast_to(low, shape), np.broadcast_to(high, shape)
        if (low > high).any():
            where = int(np.argmax(low > high))
            entry = describe_entry(shape, where)
            raise DeclarationError(f"the lower bound{entry} {low.flat[where]} is above the upper {high.flat[where]}")
        return Constraint(self.broadcast_to(shape), low, high)

    def _compare(self, other: Operand, lower: float, upper: float) -> Constraint:
        from forcopt.language.constraint import Constraint

        other_shape = other.shape if isinstance(other, Expression) else np.shape(_dense(other))
        _broadcast_shapes(self.shape, other_shape, "compare")
        return Constraint(self - other, np.float64(lower), np.float64(upper))

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
        """Evaluate at `point`, the values of all of the model's columns; an array of the expression's shape."""
        total = np.array(self.constant)
        for term in self.terms:
            total = total + term.dot(point).reshape(self.shape)
        return total

    def linear_rows(self) -> Rows:
        """Merge the linear part into one sparse row for each element, each column at most once, no zeros."""
        if len(self.terms) == 1 and isinstance(self.terms[0], Rows) and self.terms[0].distinct:
            rows = self.terms[0]
        elif not self.terms:
            rows = Rows(np.zeros(self.size + 1, np.int32), np.zeros(0, np.int32), np.zeros(0), True)
        else:
            parts = [t.rows() if isinstance(t, Gather) else t for t in self.terms]
            width = 1 + max((int(p.indices.max()) for p in parts if p.indices.size), default=0)
            total = parts[0].matrix(width)
            for part in parts[1:]:
                total = total + part.matrix(width)
            # scipy's own flags may be stale on arrays that we hand over: look afresh.
            total = sp.csr_array((total.data, total.indices, total.indptr), shape=total.shape, copy=True)
            total.sum_duplicates()
            rows = Rows(total.indptr, total.indices, total.data, True)
        if rows.data.size and not rows.data.all():
            matrix = sp.csr_array(rows.matrix(), copy=True)
            matrix.eliminate_zeros()
            rows = Rows.of(matrix)
        return rows

    def __repr__(self) -> str:
        count = sum(t.columns.size if isinstance(t, Gather) else t.data.size for t in self.terms)
        text = f"{type(self).__name__.lower()} of shape {self.shape}, {count} coefficients"
        return f"<{text}: {self._short()}>" if self.size == 1 else f"<{text}>"

    def _short(self) -> str:
        """Write the first element out, for messages."""
        from forcopt.language.display import element_text

        return element_text(self)

    def _repr_latex_(self) -> str:
        from forcopt.language.display import expression_latex

        return f"${expression_latex(self)}$"


def _dense(data: Operand) -> Any:
    return data.toarray() if _is_sparse(data) else data


def _padded(values: Array, axes: int) -> Array:
    return values.reshape((1,) * (axes - values.ndim) + values.shape)


def _match(left: tuple[int, ...], right: tuple[int, ...], inner_left: int, inner_right: int) -> None:
    if inner_left != inner_right:
        raise DeclarationError(f"@: shapes {left} and {right} do not match ({inner_left} against {inner_right})")


def _scale(term: Term, factor: Array, shape: tuple[int, ...] = ()) -> Term:
    if isinstance(term, Gather):
        return term.scale(factor)
    return term.scale(factor.reshape(-1) if factor.size == 1 else np.broadcast_to(factor, shape).reshape(-1))


def concatenate(parts: Sequence[Operand], axis: int = 0) -> Expression:
    """Join expressions (and arrays) along an axis that exists, as `numpy.concatenate`.

    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x, y = m.variable("x", 2), m.variable("y", 3)
    >>> fo.concatenate([x, 2 * y]).shape
    (5,)
    """
    model = next((p.model for p in parts if isinstance(p, Expression)), None)
    if model is None:
        raise DeclarationError("concatenate needs at least one expression; use numpy for arrays")
    exprs = [
        p if isinstance(p, Expression) else Expression(model, np.shape(p), (), as_numbers(p, "the joined array"))
        for p in parts
    ]
    for e in exprs:
        exprs[0]._same_model(e)
    try:
        constant = np.concatenate([e.constant for e in exprs], axis=axis)
    except ValueError:
        raise DeclarationError(f"cannot join shapes {[e.shape for e in exprs]} along axis {axis}") from None
    axis = axis % constant.ndim
    gathers = [e.terms[0] for e in exprs if len(e.terms) == 1 and isinstance(e.terms[0], Gather)]
    if len(gathers) == len(exprs) and len({g.width for g in gathers}) == 1:  # stays a view-like gather
        columns = np.concatenate([g.columns for g in gathers], axis=axis)
        values = np.concatenate([np.broadcast_to(g.values, g.columns.shape) for g in gathers], axis=axis)
        return Expression(model, constant.shape, (Gather(columns, values, False),), constant)
    offsets = np.cumsum([0] + [e.size for e in exprs])
    order = np.concatenate(
        [np.arange(a, a + e.size).reshape(e.shape) for a, e in zip(offsets, exprs, strict=False)], axis=axis
    ).reshape(-1)
    parts_rows = [e.linear_rows() for e in exprs]
    width = 1 + max((int(r.indices.max()) for r in parts_rows if r.indices.size), default=0)
    rows = Rows.of(sp.csr_array(sp.vstack([r.matrix(width) for r in parts_rows], format="csr"))).take(order)
    return Expression(model, constant.shape, (rows,), constant)


def stack(parts: Sequence[Operand], axis: int = 0) -> Expression:
    """Join expressions of one shape along a new axis, as `numpy.stack`.

    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", 3)
    >>> fo.stack([x.sum(), x[0] - x[1]]).shape
    (2,)
    """
    shapes = {p.shape if isinstance(p, Expression) else np.shape(p) for p in parts}
    if len(shapes) > 1:
        raise DeclarationError(f"stack needs equal shapes, not {sorted(shapes)}")
    where = axis % (len(next(iter(shapes))) + 1)
    index = (slice(None),) * where + (None,)
    return concatenate([p[index] if isinstance(p, Expression) else np.expand_dims(p, where) for p in parts], where)
