"""Affine expressions with a numpy shape, held sparsely and combined by array operations only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array, as_bounds, as_numbers, broadcast_shapes, check_order, refuse_entry
from forcopt.errors import CurvatureError, DeclarationError, counterpart
from forcopt.language.labels import Axes, Axis, align, align_rows, combine, fitting, is_pandas, split_key
from forcopt.language.operands import (
    Operand,
    check_matmul,
    dense,
    matrix_operand,
    normalized_axes,
    repeats_nothing,
)
from forcopt.language.terms import Gather, Rows, Term, compact, merged

if TYPE_CHECKING:
    from forcopt.language.constraint import Constraint
    from forcopt.language.model import Model

__all__ = ["Expression"]


_LARGE = 1e300
_LEAST, _ZERO, _MOST = np.array(-np.inf), np.array(0.0), np.array(np.inf)
for _bound in (_LEAST, _ZERO, _MOST):
    _bound.flags.writeable = False  # constraints share them


_COUNTERPARTS = {
    **dict.fromkeys(("value", "x", "varvalue", "solutionvalue", "getvalue"), "s[x] of s = m.solve()"),
    **dict.fromkeys(("rc", "reducedcost"), "s.reduced_cost(x) of s = m.solve()"),
    **dict.fromkeys(("lb", "ub"), "m.variable(..., lower=..., upper=...), or m.fix"),
}
"""Names of other modelling languages, in small letters without underscores."""


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
    axes : Axes, optional
        The labels of its axes, see `forcopt.language.labels`; None if no axis has any.

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
        out = self._rearrange(lambda a: np.broadcast_to(a, (*shape, a.shape[-1])), keeps_distinct=False)
        if self.axes is not None:
            out.axes = fitting((None,) * (len(shape) - self.ndim) + self.axes, shape)
        return out

    def reshape(self, *shape: int | Sequence[int]) -> Expression:
        """Give the elements another shape, in C order; one length may be -1, to be inferred.

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
        return self._rearrange(lambda a: a.reshape(*full, a.shape[-1]), keeps_order=True)

    def ravel(self) -> Expression:
        """Give the elements as a vector, in C order."""
        return self.reshape(self.size)

    def transpose(self, *axes: int | Sequence[int]) -> Expression:
        """Permute the axes; reverse them by default.

        Parameters
        ----------
        axes : int or Sequence[int]
            All axes in their new order.

        Raises
        ------
        DeclarationError
            If an axis is missing, or named twice.
        """
        given: Any = axes[0] if len(axes) == 1 else axes
        order = normalized_axes(given, self.shape) if axes else tuple(range(self.ndim))[::-1]
        if len(order) != self.ndim:
            raise DeclarationError(f"transpose needs all {self.ndim} axes of shape {self.shape}, not {given}")
        if order == tuple(range(self.ndim)):
            return self
        out = self._rearrange(lambda a: a.transpose(*order, a.ndim - 1))
        if self.axes is not None:
            out.axes = tuple(self.axes[a] for a in order)
        return out

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
        key, axes = split_key(key, self.axes, every=False)
        out = self._at(key, index)
        out.axes = None if axes is None else fitting(axes, out.shape)
        return out

    @property
    def loc(self) -> Loc:
        """Index by labels of any type, as in pandas: ``x.loc["a"]``, ``x.loc[[3, 5], :]``."""
        return Loc(self)

    def aligned(self, data: Any, subject: str) -> Any:
        """Give an elementwise operand as something numpy reads; series and frames in the order of the labels.

        Raises
        ------
        DeclarationError
            Listing the labels that one side lacks.
        """
        if is_pandas(data):
            return align(data, self.axes, self.shape, subject)
        return dense(data)

    def _at(self, key: tuple[Any, ...], index: Any) -> Expression:
        """Pick by positions."""
        full = (*key, slice(None)) if any(k is Ellipsis for k in key) else (*key, Ellipsis, slice(None))
        try:
            return self._rearrange(
                # numpy picks single numbers faster than rows of one number
                lambda a: a[..., 0][key][..., None] if a.shape[-1] == 1 else a[full],
                keeps_distinct=all(map(repeats_nothing, key)),
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
        from forcopt.language.logic import conjunction

        return conjunction(self, other)

    __rand__ = __and__

    def __or__(self, other: Operand) -> Expression:
        from forcopt.language.logic import disjunction

        return disjunction(self, other)

    __ror__ = __or__

    def __invert__(self) -> Expression:
        from forcopt.language.logic import negation

        return negation(self)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
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

    def _same_model(self, other: Expression) -> None:
        if other.model is not self.model:
            raise DeclarationError(
                f"an expression of model {other.model.name!r} is used in one of model {self.model.name!r}: "
                "all variables must belong to the same model"
            )

    def _plus(
        self, other: Operand, sign: float, verb: str = "adding", subject: str = "the added array"
    ) -> Expression:
        axes = self.axes
        if (type(other) is float or type(other) is int) and -_LARGE < other < _LARGE:
            return Expression(
                self.model, self.shape, self.terms, compact(self.constant) + sign * float(other), axes
            )
        if isinstance(other, Expression):
            self._same_model(other)
            if axes is not None or other.axes is not None:
                axes, other = self._meet(other, verb)
            right_constant, right_terms, right_shape = other.constant, other.terms, other.shape
        else:
            right_constant = as_numbers(self.aligned(other, subject), subject)
            right_terms, right_shape = (), right_constant.shape
        shape = broadcast_shapes([self.shape, right_shape], verb)
        left = self.broadcast_to(shape)
        if right_terms and right_shape != shape:
            right_terms = other.broadcast_to(shape).terms
        if sign < 0:
            minus = np.full((1,) * len(shape), -1.0)
            right_terms = tuple(_scale(term, minus) for term in right_terms)
        if shape:
            constant = _padded(compact(left.constant), len(shape)) + sign * _padded(
                compact(right_constant), len(shape)
            )
        else:
            constant = left.constant + sign * right_constant
        if axes is not None:
            axes = fitting((None,) * (len(shape) - len(axes)) + axes, shape)
        return Expression(self.model, shape, left.terms + right_terms, constant, axes)

    def _meet(self, other: Expression, verb: str) -> tuple[Axes | None, Expression]:
        """The axes of a sum, and the other part in the order of this one's labels."""
        axes, orders = combine(self.axes, other.axes, max(self.ndim, other.ndim), f"{verb}: the other part")
        for back, order in enumerate(reversed(orders), 1):
            if order is not None:
                other = other._at((Ellipsis, order, *(slice(None),) * (back - 1)), order)
        return axes, other

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
            from forcopt.language.parameter import parameter_product

            scaled = parameter_product(self, other)
            if scaled is not None:
                return scaled
            self._refuse_product(other)
        if isinstance(other, sp.spmatrix | np.matrix):
            raise DeclarationError(
                f"* with a {type(other).__name__} could mean the matrix product or elements; "
                "write @, or multiply by an array (scipy.sparse.csr_array, numpy.asarray)"
            )
        if (type(other) is float or type(other) is int) and -_LARGE < other < _LARGE:
            by = float(other)
            terms = tuple(
                Gather(t.columns, t.values * by, t.distinct)
                if isinstance(t, Gather)
                else t.scale(np.array([by]))
                for t in self.terms
            )
            return Expression(self.model, self.shape, terms, compact(self.constant) * by, self.axes)
        subject = "the multiplying array"
        factor = as_numbers(self.aligned(other, subject), subject)
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
            self.axes,
        )

    def __truediv__(self, other: Operand) -> Expression:
        if isinstance(other, Expression):
            if not other.is_constant:
                raise CurvatureError(
                    f"dividing by the expression {other._short()} is not convex; "
                    "see fo.inverse and fo.quad_over_lin"
                )
            other = other.constant
        divisor = as_numbers(self.aligned(other, "the divisor"), "the divisor")
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
                from forcopt.language.parameter import parameter_matmul

                check_matmul(self.shape, other.shape)
                multiplied = parameter_matmul(self, other)
                if multiplied is not None:
                    return multiplied
                self._refuse_product(other)
            other = other.constant
        if is_pandas(other):
            return self._times_frame(other)
        data = matrix_operand(other)
        check_matmul(self.shape, data.shape)
        return self._right_multiplied(data)

    def _right_multiplied(self, data: Any) -> Expression:
        out = self.T._left_multiplied(data.T).T
        if self.axes is not None:
            out.axes = fitting((*self.axes[:-1], *(None,) * (data.ndim - 1)), out.shape)
        return out

    def _times_frame(self, frame: Any) -> Expression:
        """Multiply by a series or a frame, whose index meets the last axis; its columns become labels."""
        subject = "the multiplying array"
        values = align_rows(frame, None if self.axes is None else self.axes[-1], subject)
        data = matrix_operand(values)
        check_matmul(self.shape, data.shape)
        out = self._right_multiplied(data)
        if frame.ndim == 2:
            out.axes = (*(out.axes or (None,) * out.ndim)[:-1], Axis(frame.columns.tolist()))
        return out

    def __rmatmul__(self, other: Operand) -> Expression:
        return self._left_multiplied(other)

    def _left_multiplied(self, other: Operand) -> Expression:
        data = matrix_operand(other)
        check_matmul(data.shape, self.shape)
        if data.ndim == 1:
            weighted: Expression = self * data.reshape(-1, *(1,) * (self.ndim - 1))
            return weighted.sum(axis=0)
        axes = None if self.axes is None else (None, *self.axes[1:])
        matrix = sp.csr_array(data)
        shape = (matrix.shape[0], *self.shape[1:])
        flat = self.ravel()
        if self.ndim == 2:
            matrix = sp.csr_array(sp.kron(matrix, sp.eye_array(self.shape[1]), format="csr"))
        terms = tuple(term.left_multiply(matrix) for term in flat.terms)
        constant = matrix @ flat.constant if flat.constant.any() else np.zeros(matrix.shape[0])
        return Expression(
            self.model, shape, terms, np.asarray(constant).reshape(shape), axes and fitting(axes, shape)
        )

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
        """Sum over all elements, or over one or several axes.

        Parameters
        ----------
        axis : int or tuple[int, ...], optional
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
        axes = tuple(range(self.ndim)) if axis is None else tuple(sorted(normalized_axes(axis, self.shape)))
        kept = tuple(a for a in range(self.ndim) if a not in axes)
        shape = tuple(self.shape[a] for a in kept)
        groups, count = prod(shape), prod(self.shape[a] for a in axes)
        flat = self.transpose(*kept, *axes).reshape(*shape, count) if self.ndim else self.reshape(1)
        terms = tuple(
            term.merge_last_axis() if isinstance(term, Gather) else term.merge_groups(groups, count)
            for term in flat.terms
        )
        out = Expression(self.model, shape, terms, flat.constant.sum(axis=-1))
        if self.axes is not None:
            out.axes = fitting(tuple(self.axes[a] for a in kept), shape)
        if keepdims:
            return out.reshape(tuple(1 if a in axes else n for a, n in enumerate(self.shape)))
        return out

    def mean(self, axis: int | tuple[int, ...] | None = None) -> Expression:
        """Average over all elements, or over one or several axes.

        Parameters
        ----------
        axis : int or tuple[int, ...], optional
            Over which; all axes by default.

        Raises
        ------
        DeclarationError
            If there are no elements.
        """
        axes = tuple(range(self.ndim)) if axis is None else normalized_axes(axis, self.shape)
        count = prod(self.shape[a] for a in axes)
        if count == 0:
            raise DeclarationError(f"mean of no elements: axis {axis} of shape {self.shape}")
        return self.sum(axes) / count

    def max(self, axis: int | None = None) -> Expression:
        """The largest element (convex), of all or along an axis.

        Parameters
        ----------
        axis : int, optional
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
        from forcopt.language.atoms import maximum

        result: Expression = maximum(self.ravel() if axis is None else self, axis=axis or 0)
        return result

    def min(self, axis: int | None = None) -> Expression:
        """The smallest element (concave), of all or along an axis.

        Parameters
        ----------
        axis : int, optional
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

        low, high = as_bounds(
            self.aligned(lower, "between: lower"), self.aligned(upper, "between: upper"), "between: "
        )
        shape = broadcast_shapes([self.shape, low.shape, high.shape], "between")
        check_order(low, high, shape, "between")
        return Constraint(self.broadcast_to(shape), np.broadcast_to(low, shape), np.broadcast_to(high, shape))

    def _compare(self, other: Operand, lower: Array, upper: Array) -> Constraint:
        from forcopt.language.constraint import Constraint

        difference = self._plus(other, -1.0, "comparing", "the compared array")
        return Constraint(difference, lower, upper)

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
        from forcopt.language.display import element_text

        return element_text(self)

    def _repr_latex_(self) -> str:
        from forcopt.language.display import expression_latex

        return f"${expression_latex(self)}$"

    def _repr_html_(self) -> str:
        from forcopt.language.display import expression_html

        return expression_html(self)


class Loc:
    """Gives parts of an expression by the labels of its axes; see `Expression.loc`."""

    __slots__ = ("_whole",)

    def __init__(self, whole: Expression) -> None:
        self._whole = whole

    def __getitem__(self, key: Any) -> Expression:
        whole = self._whole
        if whole.axes is None:
            raise DeclarationError(f"{whole._short()} has no labels: declare its variable with index=")
        parts, axes = split_key(key if isinstance(key, tuple) else (key,), whole.axes, every=True)
        out = whole._at(parts, key)
        out.axes = None if axes is None else fitting(axes, out.shape)
        return out


class Combination(Expression):
    """An expression that is no variable and no parameter.

    Python asks the right-hand side of a comparison first if its class is derived from that of the left-hand
    side. No class is derived from this one: the sides of ``expression >= variable`` stay where they are, and
    its dual has the sign that is documented.
    """

    __slots__ = ()


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
