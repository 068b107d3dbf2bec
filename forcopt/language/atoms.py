"""Atoms: the convex and concave functions that a model may use.

Applying an atom gives an expression over columns of its own, tied to the arguments by an `AtomRelation`. Such
a column may only be used where its curvature keeps the model convex; a use that does not raises
`CurvatureError`. Applied to numbers alone, an atom gives numbers: infinite ones outside its domain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array, as_numbers, broadcast_shapes
from forcopt.errors import CurvatureError, DeclarationError
from forcopt.language.expression import Expression
from forcopt.language.joins import stack
from forcopt.language.relations import Product

__all__ = [
    "Atom",
    "abs",
    "entropy",
    "exp",
    "geometric_mean",
    "huber",
    "inverse",
    "kl_div",
    "log",
    "log_sum_exp",
    "logistic",
    "maximum",
    "minimum",
    "norm",
    "positive_part",
    "power",
    "product",
    "quad_form",
    "quad_over_lin",
    "sum_largest",
    "sum_smallest",
    "sum_squares",
]

Operand = Any


@dataclass(frozen=True)
class Atom:
    """A convex or concave function.

    Attributes
    ----------
    name : str
        Also the kind of its relation.
    curvature : int
        1 for convex, -1 for concave; 0 for neither, if its bridge gives the value itself, which any
        constraint may then use.
    monotone : tuple[int, ...]
        For each argument 1 (nondecreasing), -1 (nonincreasing), 0 (neither), or 2 (nondecreasing in the
        absolute value, so that the sign of the argument decides). Outside the domain the value counts as
        infinite, so that a convex function with a domain is never nondecreasing everywhere.
    value : Callable[..., Any]
        Evaluates it: arrays of arguments within the domain and the parameter to an array.
    reduces : bool, default False
        Whether the first argument has one more, last, axis, which the function reduces.
    domain : tuple[int, ...], optional
        Positions of the arguments that must not be negative.
    nonnegative : bool, default False
        Whether its values never are negative.
    integral : bool, default False
        Whether integral arguments give an integral value.
    span : Callable[..., tuple[Array, Array]], optional
        Gives the least and the greatest value between two arrays of arguments, where monotonicity tells
        nothing.
    """

    name: str
    curvature: int
    monotone: tuple[int, ...]
    value: Callable[..., Any]
    reduces: bool = False
    domain: tuple[int, ...] = ()
    nonnegative: bool = False
    integral: bool = False
    span: Callable[..., tuple[Array, Array]] | None = None

    def __reduce__(self) -> tuple[Callable[[str], Atom], tuple[str]]:
        """Pickle by name: there is one atom of each."""
        return _named, (self.name,)

    def evaluate(self, arguments: Sequence[Array], parameter: Any) -> Array:
        """Evaluate at arguments, moved into the domain where they are outside; infinite or NaN at poles."""
        with np.errstate(all="ignore"):
            return np.asarray(self.value(*map(self._inside, range(len(arguments)), arguments), parameter))

    def _inside(self, position: int, argument: Array) -> Array:
        return np.maximum(argument, 0.0) if position in self.domain else argument

    def outside(self, arguments: Sequence[Array]) -> Array:
        """By how much the arguments are outside the domain."""
        below = [-arguments[i] for i in self.domain]
        if self.reduces and 0 in self.domain:
            below[0] = below[0].max(axis=-1)
        return reduce(np.maximum, below, np.zeros(()))

    def bounds(self, ends: Sequence[tuple[Array, Array]], parameter: Any) -> tuple[Array, Array]:
        """Bounds on the value for arguments between `ends`; infinite where monotonicity gives no bound."""
        if self.span is not None:
            return self.span(*ends[0], parameter)
        least, most = [], []
        for position, monotone in enumerate(self.monotone):
            lower, upper = (self._inside(position, end) for end in ends[position])
            if monotone == 2:
                near, far = np.maximum(np.maximum(lower, -upper), 0.0), np.maximum(-lower, upper)
            else:
                near, far = (lower, upper) if monotone == 1 else (upper, lower)
            least.append(near)
            most.append(far)
        low, high = self.evaluate(least, parameter), self.evaluate(most, parameter)
        unknown = 0 in self.monotone
        low = np.where(np.isnan(low) | unknown, -np.inf, low)
        high = np.where(np.isnan(high) | unknown, np.inf, high)
        return np.maximum(low, 0.0) if self.nonnegative else low, high


def _sum_largest_value(x: Array, k: int) -> Any:
    return np.sort(x, axis=-1)[..., x.shape[-1] - k :].sum(axis=-1)


def _quad_over_lin_value(x: Array, y: Array, _: None) -> Any:
    squares = (x * x).sum(axis=-1)
    return np.where((squares == 0) & (y == 0), 0.0, squares / y)


def _times_log(x: Array, ratio: Array) -> Any:
    return np.where(x > 0, x * np.log(np.where(x > 0, ratio, 1.0)), 0.0)


def _named(name: str) -> Atom:
    """The atom of a name."""
    return next(v for v in globals().values() if isinstance(v, Atom) and v.name == name)


ABS = Atom("abs", 1, (2,), lambda x, _: np.abs(x), nonnegative=True, integral=True)
MAXIMUM = Atom("maximum", 1, (1,), lambda x, _: x.max(axis=-1), reduces=True, integral=True)
SUM_LARGEST = Atom("sum_largest", 1, (1,), _sum_largest_value, reduces=True, integral=True)
NORM_1 = Atom(
    "norm_1", 1, (2,), lambda x, _: np.abs(x).sum(axis=-1), reduces=True, nonnegative=True, integral=True
)
NORM_2 = Atom("norm_2", 1, (2,), lambda x, _: np.sqrt((x * x).sum(axis=-1)), reduces=True, nonnegative=True)
NORM_INF = Atom(
    "norm_inf",
    1,
    (2,),
    lambda x, _: np.abs(x).max(axis=-1, initial=0.0),
    reduces=True,
    nonnegative=True,
    integral=True,
)
SUM_SQUARES = Atom("sum_squares", 1, (2,), lambda x, _: (x * x).sum(axis=-1), reduces=True, nonnegative=True)
QUAD_OVER_LIN = Atom(
    "quad_over_lin", 1, (2, -1), _quad_over_lin_value, reduces=True, domain=(1,), nonnegative=True
)
INVERSE = Atom("inverse", 1, (-1,), lambda x, _: 1.0 / x, domain=(0,), nonnegative=True)
LOG = Atom("log", -1, (1,), lambda x, _: np.log(x), domain=(0,))
EXP = Atom("exp", 1, (1,), lambda x, _: np.exp(x), nonnegative=True)
ENTROPY = Atom("entropy", -1, (0,), lambda x, _: -_times_log(x, x), domain=(0,))
LOGISTIC = Atom("logistic", 1, (1,), lambda x, _: np.logaddexp(0.0, x), nonnegative=True)
KL_DIV = Atom(
    "kl_div", 1, (0, 0), lambda x, y, _: _times_log(x, x / y) - x + y, domain=(0, 1), nonnegative=True
)
EVEN_POWER = Atom("even_power", 1, (2,), lambda x, p: np.abs(x) ** p, nonnegative=True)
CONVEX_POWER = Atom("convex_power", 1, (2,), lambda x, p: x**p, domain=(0,), nonnegative=True)
CONCAVE_POWER = Atom("concave_power", -1, (1,), lambda x, p: x**p, domain=(0,), nonnegative=True)
NEGATIVE_POWER = Atom("negative_power", 1, (-1,), lambda x, p: x**p, domain=(0,), nonnegative=True)


def _log_sum_exp_value(x: Array, _: None) -> Any:
    top = x.max(axis=-1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    return top[..., 0] + np.log(np.exp(x - top).sum(axis=-1))


def _geometric_mean_value(x: Array, weights: Array) -> Any:
    return np.exp((np.log(x) * weights).sum(axis=-1))


def _huber_value(x: Array, threshold: float) -> Any:
    size = np.abs(x)
    return np.where(size <= threshold, x * x, 2 * threshold * size - threshold**2)


def _norm_p_value(x: Array, p: float) -> Any:
    size = np.abs(x)
    top = size.max(axis=-1, keepdims=True, initial=0.0)
    scale = np.where((top > 0) & np.isfinite(top), top, 1.0)
    return scale[..., 0] * ((size / scale) ** p).sum(axis=-1) ** (1 / p)


LOG_SUM_EXP = Atom("log_sum_exp", 1, (1,), _log_sum_exp_value, reduces=True)
GEOMETRIC_MEAN = Atom(
    "geometric_mean", -1, (1,), _geometric_mean_value, reduces=True, domain=(0,), nonnegative=True
)
HUBER = Atom("huber", 1, (2,), _huber_value, nonnegative=True)
NORM_P = Atom("norm_p", 1, (2,), _norm_p_value, reduces=True, nonnegative=True)


def _apply(atom: Atom, *arguments: Operand, parameter: Any = None, label: str = "") -> Any:
    """Apply an atom to arguments that already have the shapes of its relation, plus any leading axes.

    Arguments of an elementwise atom have shape S, and so has the result; a reducing atom's first argument has
    one more, last, axis.
    """
    label = label or atom.name
    model = next((a.model for a in arguments if isinstance(a, Expression)), None)
    if model is None:
        numbers = [as_numbers(a, f"the argument of {label}") for a in arguments]
        value = atom.evaluate(numbers, parameter)
        return np.where(atom.outside(numbers) > 0, atom.curvature * np.inf, value)[()]
    exprs = [model.lift(a, f"the argument of {label}") for a in arguments]
    for expr, monotone in zip(exprs, atom.monotone, strict=True):
        direction = monotone
        if monotone == 2 and not model.is_affine(expr):
            lower, upper = model.interval(expr)
            direction = 1 if (lower >= 0).all() else -1 if (upper <= 0).all() else 0
        model.check_curvature(expr, atom.curvature * direction, f"inside {label}")
    shape = exprs[0].shape[:-1] if atom.reduces else exprs[0].shape
    size = prod(shape)
    flat = tuple(e.reshape(size, *e.shape[len(shape) :]) for e in exprs)
    return model.add_atom(label, atom, shape, flat, parameter)


def _elementwise(atom: Atom, *arguments: Operand, parameter: Any = None, label: str = "") -> Any:
    """Broadcast the arguments of an elementwise atom to one shape, then apply it."""
    return _apply(atom, *_broadcast(arguments, label or atom.name), parameter=parameter, label=label)


def _broadcast(arguments: Sequence[Operand], label: str) -> list[Any]:
    read = [_number(a, label) for a in arguments]
    shape = broadcast_shapes([a.shape for a in read], label)
    return [a.broadcast_to(shape) if isinstance(a, Expression) else np.broadcast_to(a, shape) for a in read]


def _number(x: Operand, label: str) -> Any:
    return x if isinstance(x, Expression) else as_numbers(x, f"the argument of {label}")


def _along(x: Operand, axis: int | None, label: str) -> Any:
    """Move the axis that a reducing atom reduces to the end; None flattens."""
    data = _number(x, label)
    if axis is None:
        return data.reshape(-1)
    if not (isinstance(axis, int | np.integer) and -data.ndim <= axis < data.ndim):
        raise DeclarationError(f"{label}: axis {axis} does not exist in shape {data.shape}")
    at = axis % data.ndim
    return data.transpose(*(a for a in range(data.ndim) if a != at), at)


def abs(x: Operand) -> Any:
    """Absolute value, elementwise; convex.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", lower=-3, upper=5)
    >>> m.minimize(fo.abs(x - 1) + 0.5 * x)
    >>> round(m.solve()[x].item(), 6)
    1.0
    """
    return _elementwise(ABS, x)


def maximum(*arguments: Operand, axis: int | None = None) -> Any:
    """The largest of several arguments, elementwise with broadcasting; or of one, along `axis`. Convex.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", shape=3)
    >>> fo.maximum(x, 5).shape, fo.maximum(x, axis=0).shape
    ((3,), ())
    """
    return _maximum(arguments, axis, "maximum")


def minimum(*arguments: Operand, axis: int | None = None) -> Any:
    """The smallest of several arguments, elementwise with broadcasting; or of one, along `axis`. Concave."""
    return -_maximum(tuple(-_number(a, "minimum") for a in arguments), axis, "minimum")


def _maximum(arguments: tuple[Operand, ...], axis: int | None, label: str) -> Any:
    if axis is not None:
        if len(arguments) != 1:
            raise DeclarationError(f"{label}: axis goes with one argument, not {len(arguments)}")
        along = _along(arguments[0], axis, label)
    elif len(arguments) < 2:
        raise DeclarationError(f"{label} needs two or more arguments, or one and an axis")
    else:
        wide = _broadcast(arguments, label)
        symbolic = any(isinstance(a, Expression) for a in wide)
        along = stack(wide, axis=-1) if symbolic else np.stack(wide, axis=-1)
    if along.shape[-1] == 0:
        raise DeclarationError(f"{label} of no elements: axis {axis} of shape {np.shape(arguments[0])}")
    return _apply(MAXIMUM, along, label=label)


def positive_part(x: Operand) -> Any:
    """``max(x, 0)``, elementwise; convex."""
    return _maximum((x, 0.0), None, "positive_part")


def sum_largest(x: Operand, k: int, axis: int | None = None) -> Any:
    """The sum of the `k` largest elements, of all or along an axis; convex.

    Examples
    --------
    >>> import forcopt as fo
    >>> float(fo.sum_largest([1, 5, 3], 2))
    8.0
    """
    return _sum_largest(x, k, axis, "sum_largest")


def sum_smallest(x: Operand, k: int, axis: int | None = None) -> Any:
    """The sum of the `k` smallest elements, of all or along an axis; concave."""
    return -_sum_largest(-_number(x, "sum_smallest"), k, axis, "sum_smallest")


def _sum_largest(x: Operand, k: int, axis: int | None, label: str) -> Any:
    along = _along(x, axis, label)
    if not isinstance(k, int | np.integer) or not 1 <= k <= along.shape[-1]:
        raise DeclarationError(f"{label}: k is {k}; it must be an integer from 1 to {along.shape[-1]}")
    return _apply(SUM_LARGEST, along, parameter=int(k), label=label)


def norm(x: Operand, p: float = 2, axis: int | None = None) -> Any:
    """The p-norm ``(sum |x|**p)**(1/p)``, of all elements or along an axis; convex.

    Parameters
    ----------
    x : Operand
        An expression or numbers.
    p : float, default 2
        At least 1; infinity for the largest absolute value. 1 and infinity become rows, 2 a second-order
        cone, any other p power cones.
    axis : int, optional
        All elements by default.

    Raises
    ------
    DeclarationError
        For p below 1.

    Examples
    --------
    >>> import forcopt as fo
    >>> float(fo.norm([3, 4])), float(fo.norm([3, -4], 1)), float(fo.norm([3, -4], float("inf")))
    (5.0, 7.0, 4.0)
    >>> round(float(fo.norm([1, 1, 1], 3)) ** 3, 6)
    3.0
    """
    atoms = {1: NORM_1, 2: NORM_2, np.inf: NORM_INF, "inf": NORM_INF}
    along = _along(x, axis, "norm")
    if np.ndim(p) == 0 and p in atoms:
        return _apply(atoms[p], along)
    if not isinstance(p, int | float | np.number) or not p >= 1:
        raise DeclarationError(f"norm: p is {p}; it must be a number >= 1, or inf")
    return _apply(NORM_P, along, parameter=float(p), label="norm")


def log_sum_exp(x: Operand, axis: int | None = None) -> Any:
    """``log(sum(exp(x)))``, of all elements or along an axis; convex, a smooth maximum.

    Becomes one exponential cone for each element of `x`.

    Examples
    --------
    >>> import forcopt as fo
    >>> round(float(fo.log_sum_exp([0.0, 0.0])), 6)
    0.693147
    >>> m = fo.Model()
    >>> x = m.variable("x", 2)
    >>> _ = m.subject_to(x.sum() == 2)
    >>> m.minimize(fo.log_sum_exp(x))
    >>> m.solve("clarabel")[x].round(4).tolist()
    [1.0, 1.0]
    """
    along = _along(x, axis, "log_sum_exp")
    if along.shape[-1] == 0:
        raise DeclarationError("log_sum_exp of no elements")
    return _apply(LOG_SUM_EXP, along)


def geometric_mean(x: Operand, axis: int | None = None, weights: Operand = None) -> Any:
    """The geometric mean ``prod(x**w)`` for ``x >= 0``, of all elements or along an axis; concave.

    Becomes ``d - 1`` power cones for d elements.

    Parameters
    ----------
    x : Operand
        An expression or numbers.
    axis : int, optional
        All elements by default.
    weights : Operand, optional
        Nonnegative numbers, one for each element along the axis, divided by their sum; equal by default.

    Raises
    ------
    DeclarationError
        For weights of another length, negative ones, or none that is positive.

    Examples
    --------
    The largest box of a given total length has equal sides.

    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", 3)
    >>> _ = m.subject_to(x.sum() <= 6)
    >>> m.maximize(fo.geometric_mean(x))
    >>> round(m.solve("clarabel").objective, 5)
    2.0
    """
    along = _along(x, axis, "geometric_mean")
    count = along.shape[-1]
    if count == 0:
        raise DeclarationError("geometric_mean of no elements")
    w = np.ones(count) if weights is None else as_numbers(weights, "geometric_mean: weights")
    if w.shape != (count,) or (w < 0).any() or not w.any():
        raise DeclarationError(
            f"geometric_mean: weights must be {count} numbers >= 0 that are not all 0, not {weights!r}"
        )
    kept = np.flatnonzero(w)
    return _apply(GEOMETRIC_MEAN, along[..., kept], parameter=w[kept] / w.sum(), label="geometric_mean")


def huber(x: Operand, threshold: float = 1.0) -> Any:
    """``x**2`` where ``|x| <= threshold``, ``2 threshold |x| - threshold**2`` beyond; elementwise, convex.

    Becomes one second-order cone for each element.

    Examples
    --------
    >>> import forcopt as fo
    >>> fo.huber([0.5, -3.0]).tolist()
    [0.25, 5.0]
    """
    if not _is_number(threshold) or not 0 < threshold < np.inf:
        raise DeclarationError(f"huber: the threshold is {threshold}; it must be one positive number")
    return _elementwise(HUBER, x, parameter=float(threshold))


def sum_squares(x: Operand, axis: int | None = None) -> Any:
    """The sum of squares, of all elements or along an axis; convex."""
    return _apply(SUM_SQUARES, _along(x, axis, "sum_squares"))


def quad_form(x: Operand, matrix: Operand) -> Any:
    """``x' P x`` for a symmetric semidefinite P (dense or sparse); convex if P >= 0, concave if P <= 0.

    Raises
    ------
    CurvatureError
        If P is neither positive nor negative semidefinite.
    """
    flat = _along(x, None, "quad_form")
    size = len(flat)
    if np.shape(matrix) != (size, size):
        raise DeclarationError(f"quad_form: x has {size} elements, the matrix shape {np.shape(matrix)}")
    sparse = sp.csr_array(matrix, dtype=float) if sp.issparse(matrix) else None
    if sparse is not None and sparse.nnz == np.count_nonzero(sparse.diagonal()):
        values, vectors = as_numbers(sparse.diagonal(), "the diagonal of the matrix of quad_form"), None
    elif sparse is not None and (factor := _sparse_factor(sparse)) is not None:
        sign, root = factor
        return sign * _apply(SUM_SQUARES, root @ flat, parameter=(sign * sparse, root), label="quad_form")
    else:
        values, vectors = _eigen(matrix if sparse is None else sparse.toarray())
    scale = float(np.abs(values).max(initial=0.0))
    if scale == 0.0:
        return 0.0 * flat.sum()
    sign = 1.0 if values.max() >= -values.min() else -1.0
    if (sign * values).min() < -1e-9 * scale:
        raise CurvatureError(
            f"quad_form: the matrix is indefinite (eigenvalues from {values.min():g} to {values.max():g}), "
            "so the form is neither convex nor concave"
        )
    keep = np.flatnonzero(sign * values > 1e-14 * scale)
    along = flat[keep] if vectors is None else vectors.T[keep] @ flat
    scales = np.sqrt(sign * values[keep])
    root = sp.csr_array(
        sp.diags_array(scales)
        @ (sp.eye_array(size, format="csr")[keep] if vectors is None else vectors.T[keep])
    )
    form = (
        sp.csr_array(sp.diags_array(sign * values))
        if vectors is None
        else sp.csr_array(sign * _dense(matrix))
    )
    return sign * _apply(SUM_SQUARES, scales * along, parameter=(form, root), label="quad_form")


def _dense(matrix: Operand) -> Array:
    return np.asarray(matrix.toarray() if sp.issparse(matrix) else matrix, dtype=float)


def _sparse_factor(matrix: sp.csr_array) -> tuple[float, sp.csr_array] | None:
    """A sign s and a sparse F with ``s F' F`` equal to the matrix up to rounding, or None if none is found.

    An LDL' factorization that keeps to the diagonal, of the matrix plus a tiny multiple of the identity.
    """
    from scipy.sparse.linalg import splu

    size, scale = matrix.shape[0], float(np.abs(matrix.data).max(initial=0.0))
    if not np.isfinite(scale) or scale == 0.0:
        return None
    sign = 1.0 if matrix.diagonal().sum() >= 0 else -1.0
    target = sp.csc_array(sign * matrix + 1e-13 * scale * sp.eye_array(size))
    try:
        lu = splu(target, "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    except RuntimeError:  # singular
        return None
    pivots = lu.U.diagonal()
    if pivots.min() <= 0 or (lu.perm_r != lu.perm_c).any():
        return None
    root = sp.csr_array(sp.diags_array(np.sqrt(pivots)) @ lu.L.T)[:, lu.perm_c]
    error = np.abs((root.T @ root - sign * matrix).data).max(initial=0.0)
    return (sign, root) if error <= 1e-10 * scale else None


def _eigen(matrix: Operand) -> tuple[Array, Array | None]:
    """Eigenvalues and orthonormal eigenvectors (None for the unit vectors) of a symmetric matrix."""
    dense = as_numbers(matrix, "the matrix of quad_form")
    slack = np.abs(dense - dense.T) - 1e-10 * np.abs(dense).max(initial=0.0)
    if slack.max(initial=0.0) > 0:
        i, j = (int(k) for k in np.unravel_index(int(slack.argmax()), dense.shape))
        raise DeclarationError(
            f"quad_form: the matrix must be symmetric; its entries [{i}, {j}] and [{j}, {i}] are "
            f"{dense[i, j]:g} and {dense[j, i]:g}"
        )
    diagonal = np.diag(dense)
    if np.count_nonzero(dense) == np.count_nonzero(diagonal):
        return diagonal, None
    values, vectors = np.linalg.eigh(dense)
    return values, vectors


def quad_over_lin(x: Operand, y: Operand) -> Any:
    """``sum(x**2) / y`` for a scalar ``y > 0``; convex."""
    scalar = _number(y, "quad_over_lin")
    if scalar.size != 1:
        raise DeclarationError(f"quad_over_lin: y must be a scalar, not of shape {scalar.shape}")
    return _apply(QUAD_OVER_LIN, _along(x, None, "quad_over_lin"), scalar.reshape(()))


def inverse(x: Operand) -> Any:
    """``1 / x`` for ``x > 0``, elementwise; convex."""
    return _elementwise(INVERSE, x)


def log(x: Operand) -> Any:
    """The natural logarithm, elementwise; concave."""
    return _elementwise(LOG, x)


def exp(x: Operand) -> Any:
    """The exponential, elementwise; convex."""
    return _elementwise(EXP, x)


def entropy(x: Operand) -> Any:
    """``-x log(x)``, elementwise; concave."""
    return _elementwise(ENTROPY, x)


def logistic(x: Operand) -> Any:
    """``log(1 + exp(x))``, elementwise; convex."""
    return _elementwise(LOGISTIC, x)


def kl_div(x: Operand, y: Operand) -> Any:
    """``x log(x / y) - x + y``, elementwise; jointly convex."""
    return _elementwise(KL_DIV, x, y)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real)


def power(x: Operand, p: float) -> Any:
    """``x**p``, elementwise.

    Convex for p > 1 (on ``x >= 0`` unless p is an even integer) and for p < 0 (on ``x > 0``); concave on
    ``x >= 0`` for 0 < p < 1.
    """
    if not _is_number(p) or not np.isfinite(p) or p == 0:
        raise DeclarationError(f"power: p is {p}; it must be one finite number, not 0")
    if p == 1:
        return _number(x, "power")
    if p == -1:
        return inverse(x)
    if p == 2:
        return _apply(SUM_SQUARES, _number(x, "power")[..., None], label="power")
    even = p > 0 and float(p).is_integer() and int(p) % 2 == 0
    atom = NEGATIVE_POWER if p < 0 else CONCAVE_POWER if p < 1 else EVEN_POWER if even else CONVEX_POWER
    return _elementwise(atom, x, parameter=float(p), label="power")


def product(binary: Expression, factor: Operand) -> Expression:
    """``binary * factor``, elementwise with broadcasting, for a binary expression; affine in the model.

    Backends without products need bounds on `factor`, see the bridge ``product_rows``.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x, b = m.variable("x", lower=0, upper=4), m.variable("b", binary=True)
    >>> m.maximize(fo.product(b, x) - 3 * b)
    >>> m.solve().objective
    1.0
    """
    from forcopt.language.constraint import require_binary

    require_binary(binary, "the first argument of product")
    if not isinstance(factor, Expression) or factor.is_constant or binary.is_constant:
        scaled: Expression = binary * factor
        return scaled
    model = binary.model
    model.lift(factor, "the second argument of product")
    for argument in (binary, factor):
        model.check_curvature(argument, 0, "inside product")
    shape = broadcast_shapes([binary.shape, factor.shape], "product")
    wide_binary, wide_factor = binary.broadcast_to(shape).ravel(), factor.broadcast_to(shape).ravel()
    lower, upper = model.interval(wide_factor)
    integral = bool(model.is_integral(wide_factor).all())
    result = model.add_columns(
        "product", shape, np.minimum(lower, 0.0), np.maximum(upper, 0.0), implied_integer=integral
    )
    model.relations.append(Product(result.ravel(), wide_binary, wide_factor))
    return result
