"""Atoms: the convex and concave functions that a model may use.

Applying an atom gives an expression over columns of its own, tied to the arguments by an `AtomRelation`. Such a
column may only be used where its curvature keeps the model convex; a use that does not raises `CurvatureError`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from forcopt.errors import CurvatureError, DeclarationError
from forcopt.language.expression import Expression, as_numbers, stack
from forcopt.language.relations import AtomRelation, Product
from forcopt.language.terms import Array

__all__ = [
    "Atom",
    "abs",
    "entropy",
    "exp",
    "inverse",
    "kl_div",
    "log",
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

    Attributes:
        name: also the kind of its relation.
        curvature: 1 for convex, -1 for concave.
        monotone: for each argument 1 (nondecreasing), -1 (nonincreasing), 0 (neither), or 2 (even and
            nondecreasing in the absolute value, so that the sign of the argument decides).
        value: evaluates it: arrays of arguments and the parameter to an array.
        nonnegative: whether its values never are negative.
        integral: whether integral arguments give an integral value.
    """

    name: str
    curvature: int
    monotone: tuple[int, ...]
    value: Callable[..., Array]
    nonnegative: bool = False
    integral: bool = False


def _sum_largest_value(x: Array, k: int) -> Array:
    return np.asarray(np.sort(x, axis=-1)[..., x.shape[-1] - k :].sum(axis=-1))


ABS = Atom("abs", 1, (2,), lambda x, _: np.abs(x), nonnegative=True, integral=True)
MAXIMUM = Atom("maximum", 1, (1,), lambda x, _: x.max(axis=-1), integral=True)
SUM_LARGEST = Atom("sum_largest", 1, (1,), _sum_largest_value, integral=True)
NORM_1 = Atom("norm_1", 1, (2,), lambda x, _: np.abs(x).sum(axis=-1), nonnegative=True, integral=True)
NORM_2 = Atom("norm_2", 1, (2,), lambda x, _: np.sqrt((x * x).sum(axis=-1)), nonnegative=True)
NORM_INF = Atom("norm_inf", 1, (2,), lambda x, _: np.abs(x).max(axis=-1), nonnegative=True, integral=True)
SUM_SQUARES = Atom("sum_squares", 1, (2,), lambda x, _: (x * x).sum(axis=-1), nonnegative=True)
QUAD_OVER_LIN = Atom(
    "quad_over_lin", 1, (2, -1), lambda x, y, _: (x * x).sum(axis=-1) / y, nonnegative=True
)
INVERSE = Atom("inverse", 1, (-1,), lambda x, _: 1.0 / x, nonnegative=True)
LOG = Atom("log", -1, (1,), lambda x, _: np.log(x))
EXP = Atom("exp", 1, (1,), lambda x, _: np.exp(x), nonnegative=True)
ENTROPY = Atom("entropy", -1, (0,), lambda x, _: special.entr(x))
LOGISTIC = Atom("logistic", 1, (1,), lambda x, _: np.logaddexp(0.0, x), nonnegative=True)
KL_DIV = Atom("kl_div", 1, (0, 0), lambda x, y, _: special.kl_div(x, y), nonnegative=True)
EVEN_POWER = Atom("even_power", 1, (2,), lambda x, p: np.abs(x) ** p, nonnegative=True)
CONVEX_POWER = Atom("convex_power", 1, (1,), lambda x, p: x**p, nonnegative=True)
CONCAVE_POWER = Atom("concave_power", -1, (1,), lambda x, p: x**p, nonnegative=True)
NEGATIVE_POWER = Atom("negative_power", 1, (-1,), lambda x, p: x**p, nonnegative=True)


def _apply(atom: Atom, *arguments: Operand, parameter: Any = None, label: str = "") -> Any:
    """Apply an atom to arguments that already have the shapes of its relation, plus any leading axes.

    Arguments of an elementwise atom have shape S, and so has the result; a reducing atom's first argument has
    one more, last, axis.
    """
    model = next((a.model for a in arguments if isinstance(a, Expression)), None)
    if model is None:
        return atom.value(*(as_numbers(a, f"the argument of {label or atom.name}") for a in arguments), parameter)
    exprs = [model.lift(a, f"the argument of {label or atom.name}") for a in arguments]
    for expr, monotone in zip(exprs, atom.monotone, strict=True):
        direction = monotone
        if monotone == 2 and not model.is_affine(expr):
            lower, upper = model.interval(expr)
            direction = 1 if (lower >= 0).all() else -1 if (upper <= 0).all() else 0
        model.check_curvature(expr, atom.curvature * direction, f"inside {label or atom.name}")
    shape = exprs[-1].shape if len(exprs) > 1 else exprs[0].shape[:-1] if atom.name in _REDUCING else exprs[0].shape
    size = int(np.prod(shape, dtype=np.int64))
    flat = tuple(e.reshape(size, e.shape[-1]) if e.ndim > len(shape) else e.reshape(size) for e in exprs)
    integral = atom.integral and all(bool(model.is_integral(e).all()) for e in flat)
    result = model.add_columns(
        label or atom.name,
        shape,
        lower=0.0 if atom.nonnegative else -np.inf,
        curvature=atom.curvature,
        implied_integer=integral,
    )
    model.relations.append(AtomRelation(atom, result.reshape(size), flat, parameter))
    return result


_REDUCING = {"maximum", "sum_largest", "norm_1", "norm_2", "norm_inf", "sum_squares", "quad_over_lin"}


def _elementwise(atom: Atom, *arguments: Operand, parameter: Any = None, label: str = "") -> Any:
    """Broadcast the arguments of an elementwise atom to one shape, then apply it."""
    shapes = [a.shape if isinstance(a, Expression) else np.shape(a) for a in arguments]
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        raise DeclarationError(f"{label or atom.name}: shapes {shapes} do not broadcast") from None
    wide = [a.broadcast_to(shape) if isinstance(a, Expression) else np.broadcast_to(a, shape) for a in arguments]
    return _apply(atom, *wide, parameter=parameter, label=label)


def _along(x: Operand, axis: int | None) -> Any:
    """Move the axis that a reducing atom reduces to the end; None flattens."""
    if not isinstance(x, Expression):
        data = np.asarray(x, dtype=float)
        return data.reshape(-1) if axis is None else np.moveaxis(data, axis, -1)
    if axis is None:
        return x.ravel()
    if not -x.ndim <= axis < x.ndim:
        raise DeclarationError(f"axis {axis} does not exist in shape {x.shape}")
    at = axis % x.ndim
    return x.transpose(*(a for a in range(x.ndim) if a != at), at)


def abs(x: Operand) -> Any:
    """Absolute value, elementwise; convex.

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

    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", shape=3)
    >>> fo.maximum(x, 5).shape, fo.maximum(x, axis=0).shape
    ((3,), ())
    """
    return _maximum(arguments, axis, "maximum")


def minimum(*arguments: Operand, axis: int | None = None) -> Any:
    """The smallest of several arguments, elementwise with broadcasting; or of one, along `axis`. Concave."""
    return -_maximum(tuple(-_number(a) for a in arguments), axis, "minimum")


def _maximum(arguments: tuple[Operand, ...], axis: int | None, label: str) -> Any:
    if axis is not None:
        if len(arguments) != 1:
            raise DeclarationError(f"{label}: axis goes with one argument, not {len(arguments)}")
        return _apply(MAXIMUM, _along(arguments[0], axis), label=label)
    if len(arguments) < 2:
        raise DeclarationError(f"{label} needs two or more arguments, or one and an axis")
    if not any(isinstance(a, Expression) for a in arguments):
        return np.maximum.reduce(np.broadcast_arrays(*arguments))
    shapes = [a.shape if isinstance(a, Expression) else np.shape(a) for a in arguments]
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        raise DeclarationError(f"{label}: shapes {shapes} do not broadcast") from None
    wide = [a.broadcast_to(shape) if isinstance(a, Expression) else np.broadcast_to(a, shape) for a in arguments]
    return _apply(MAXIMUM, stack(wide, axis=-1), label=label)


def positive_part(x: Operand) -> Any:
    """``max(x, 0)``, elementwise; convex."""
    return _maximum((x, 0.0), None, "positive_part")


def sum_largest(x: Operand, k: int, axis: int | None = None) -> Any:
    """The sum of the `k` largest elements, of all or along an axis; convex.

    >>> import forcopt as fo
    >>> float(fo.sum_largest([1, 5, 3], 2))
    8.0
    """
    return _sum_largest(x, k, axis, "sum_largest")


def sum_smallest(x: Operand, k: int, axis: int | None = None) -> Any:
    """The sum of the `k` smallest elements, of all or along an axis; concave."""
    return -_sum_largest(-_number(x), k, axis, "sum_smallest")


def _sum_largest(x: Operand, k: int, axis: int | None, label: str) -> Any:
    along = _along(x, axis)
    if not 1 <= k <= along.shape[-1]:
        raise DeclarationError(f"{label}: k is {k}; it must be from 1 to the {along.shape[-1]} elements")
    return _apply(SUM_LARGEST, along, parameter=int(k), label=label)


def norm(x: Operand, p: float = 2, axis: int | None = None) -> Any:
    """The 1-, 2- or infinity-norm, of all elements or along an axis; convex.

    >>> import forcopt as fo
    >>> float(fo.norm([3, 4])), float(fo.norm([3, -4], 1)), float(fo.norm([3, -4], float("inf")))
    (5.0, 7.0, 4.0)
    """
    atoms = {1: NORM_1, 2: NORM_2, np.inf: NORM_INF, "inf": NORM_INF}
    if p not in atoms:
        raise DeclarationError(f"norm: p is {p}; it must be 1, 2 or inf")
    return _apply(atoms[p], _along(x, axis))


def sum_squares(x: Operand, axis: int | None = None) -> Any:
    """The sum of squares, of all elements or along an axis; convex."""
    return _apply(SUM_SQUARES, _along(x, axis))


def quad_form(x: Operand, matrix: Operand) -> Any:
    """``x' P x`` for a symmetric semidefinite matrix P (dense or sparse); convex if P >= 0, concave if P <= 0.

    Raises:
        CurvatureError: if P is neither positive nor negative semidefinite.
    """
    dense = as_numbers(matrix.toarray() if hasattr(matrix, "toarray") else matrix, "the matrix of quad_form")
    size = int(np.prod(x.shape if isinstance(x, Expression) else np.shape(x), dtype=np.int64))
    if dense.shape != (size, size):
        raise DeclarationError(f"quad_form: x has {size} elements, the matrix shape {dense.shape}")
    if not np.allclose(dense, dense.T, rtol=1e-10, atol=1e-12 * max(1.0, float(np.abs(dense).max(initial=0)))):
        raise DeclarationError("quad_form: the matrix must be symmetric")
    flat = x.ravel() if isinstance(x, Expression) else np.ravel(x)
    if np.count_nonzero(dense - np.diag(np.diag(dense))) == 0:
        values, vectors = np.diag(dense), np.eye(size)
    else:
        values, vectors = np.linalg.eigh(dense)
    scale = float(np.abs(values).max(initial=0.0))
    if scale == 0.0:
        return 0.0 * flat.sum()
    sign = 1.0 if values.max() >= -values.min() else -1.0
    if (sign * values).min() < -1e-9 * scale:
        raise CurvatureError(
            f"quad_form: the matrix is indefinite (eigenvalues from {values.min():g} to {values.max():g}), "
            "so the form is neither convex nor concave"
        )
    keep = sign * values > 1e-14 * scale
    factor = np.sqrt(sign * values[keep])[:, None] * vectors.T[keep]
    return sign * _apply(SUM_SQUARES, factor @ flat, label="quad_form")


def quad_over_lin(x: Operand, y: Operand) -> Any:
    """``sum(x**2) / y`` for a scalar ``y > 0``; convex."""
    flat = _along(x, None)
    scalar = y.reshape(()) if isinstance(y, Expression) else as_numbers(y, "y of quad_over_lin").reshape(())
    return _apply(QUAD_OVER_LIN, flat, scalar)


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


def power(x: Operand, p: float) -> Any:
    """``x**p``, elementwise.

    Convex for p > 1 (on ``x >= 0`` unless p is an even integer) and for p < 0 (on ``x > 0``); concave on
    ``x >= 0`` for 0 < p < 1.
    """
    if p == 1:
        return _number(x)
    if p == 0 or not np.isfinite(p):
        raise DeclarationError(f"power: p is {p}; it must be finite and not 0")
    if p == -1:
        return inverse(x)
    even = float(p).is_integer() and int(p) % 2 == 0
    if p == 2:
        expanded = x[..., None] if isinstance(x, Expression) else np.asarray(x, dtype=float)[..., None]
        return _apply(SUM_SQUARES, expanded, label="power")
    atom = NEGATIVE_POWER if p < 0 else CONCAVE_POWER if p < 1 else EVEN_POWER if even else CONVEX_POWER
    return _elementwise(atom, x, parameter=float(p), label="power")


def product(binary: Expression, factor: Operand) -> Expression:
    """``binary * factor``, elementwise with broadcasting, for a binary expression; affine in the model.

    Backends without products need bounds on `factor`, see the bridge ``product_rows``.

    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x, b = m.variable("x", lower=0, upper=4), m.variable("b", binary=True)
    >>> m.maximize(fo.product(b, x) - 3 * b)
    >>> m.solve().objective
    1.0
    """
    from forcopt.language.constraint import require_binary

    require_binary(binary, "the first argument of product")
    if not isinstance(factor, Expression) or factor.is_constant:
        return binary * (factor.constant if isinstance(factor, Expression) else factor)
    model = binary.model
    model.check_curvature(factor, 0, "inside product")
    try:
        shape = np.broadcast_shapes(binary.shape, factor.shape)
    except ValueError:
        raise DeclarationError(f"product: shapes {binary.shape} and {factor.shape} do not broadcast") from None
    wide_binary, wide_factor = binary.broadcast_to(shape).ravel(), factor.broadcast_to(shape).ravel()
    lower, upper = model.interval(wide_factor)
    integral = bool(model.is_integral(wide_factor).all())
    result = model.add_columns(
        "product", shape, np.minimum(lower, 0.0), np.maximum(upper, 0.0), implied_integer=integral
    )
    model.relations.append(Product(result.ravel(), wide_binary, wide_factor))
    return result


def _number(x: Operand) -> Any:
    return x if isinstance(x, Expression) else np.asarray(x, dtype=float)
