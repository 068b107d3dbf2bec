"""Atoms: the convex and concave functions that a model may use.

Applying an atom gives an expression over columns of its own, tied to the arguments by an `AtomRelation`. Such
a column may only be used where its curvature keeps the model convex; a use that does not raises
`CurvatureError`. Applied to numbers alone, an atom gives numbers: infinite ones outside its domain.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from forcopt.arrays import as_numbers
from forcopt.errors import DeclarationError, require
from forcopt.language import atom as kinds
from forcopt.language.alignment import Operand
from forcopt.language.atom import (
    apply_atom,
    apply_elementwise,
    as_operand,
    broadcast_operands,
    reduced_axis_last,
)
from forcopt.language.expression import Expression
from forcopt.language.joins import stack


def abs(x: Operand) -> Any:
    """Absolute value, elementwise; convex.

    Parameters
    ----------
    x : Operand
        An expression or numbers, of any shape.

    Returns
    -------
    Expression or Array
        The shape of `x`.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", lower=-3, upper=5)
    >>> m.minimize(fo.abs(x - 1) + 0.5 * x)
    >>> round(m.solve()[x].item(), 6)
    1.0
    """
    return apply_elementwise(kinds.ABS, x)


def maximum(*arguments: Operand, axis: int | str | None = None) -> Any:
    """The largest of several arguments, elementwise with broadcasting; or of one, along `axis`. Convex.

    Parameters
    ----------
    *arguments : Operand
        Two or more expressions or numbers, which broadcast to one shape; or one, with `axis`.
    axis : int or str, optional
        The axis of a single argument over which the maximum is taken.

    Returns
    -------
    Expression or Array
        The common shape of the arguments, or the shape of one without `axis`.

    Raises
    ------
    DeclarationError
        If `axis` is given with several arguments or missing with one, or no element is left.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", shape=3)
    >>> fo.maximum(x, 5).shape, fo.maximum(x, axis=0).shape
    ((3,), ())
    """
    return _maximum(arguments, axis, "maximum")


def minimum(*arguments: Operand, axis: int | str | None = None) -> Any:
    """The smallest of several arguments, elementwise with broadcasting; or of one, along `axis`. Concave.

    Parameters
    ----------
    *arguments : Operand
        Two or more expressions or numbers, which broadcast to one shape; or one, with `axis`.
    axis : int or str, optional
        The axis of a single argument over which the minimum is taken.

    Returns
    -------
    Expression or Array
        The common shape of the arguments, or the shape of one without `axis`.

    Raises
    ------
    DeclarationError
        If `axis` is given with several arguments or missing with one, or no element is left.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", 2, upper=[3, 7])
    >>> m.maximize(fo.minimum(x, axis=0))
    >>> m.solve().objective
    3.0
    """
    return -_maximum(arguments, axis, "minimum", -1.0)


def _maximum(arguments: tuple[Operand, ...], axis: int | str | None, label: str, sign: float = 1.0) -> Any:
    """The largest of the arguments times a sign."""
    if axis is not None:
        if len(arguments) != 1:
            raise DeclarationError(f"{label}: axis goes with one argument, not {len(arguments)}")
        along = sign * reduced_axis_last(arguments[0], axis, label)
    elif len(arguments) < 2:
        raise DeclarationError(f"{label} needs two or more arguments, or one and an axis")
    else:
        wide = [sign * a for a in broadcast_operands(arguments, label)]
        symbolic = any(isinstance(a, Expression) for a in wide)
        along = stack(wide, axis=-1) if symbolic else np.stack(wide, axis=-1)
    if along.shape[-1] == 0:
        raise DeclarationError(f"{label} of no elements: axis {axis} of shape {np.shape(arguments[0])}")
    return apply_atom(kinds.MAXIMUM, along, label=label)


def positive_part(x: Operand) -> Any:
    """``max(x, 0)``, elementwise; convex.

    Parameters
    ----------
    x : Operand
        An expression or numbers, of any shape.

    Returns
    -------
    Expression or Array
        The shape of `x`.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", lower=0, upper=5)
    >>> m.minimize(2 * fo.positive_part(3 - x) + x)
    >>> m.solve().objective
    3.0
    """
    return _maximum((x, 0.0), None, "positive_part")


def sum_largest(x: Operand, k: int, axis: int | str | None = None) -> Any:
    """The sum of the `k` largest elements, of all or along an axis; convex.

    Parameters
    ----------
    x : Operand
        An expression or numbers, of any shape.
    k : int
        From 1 to the number of elements summed over.
    axis : int or str, optional
        All elements by default.

    Returns
    -------
    Expression or Array
        A scalar, or the shape of `x` without `axis`.

    Raises
    ------
    DeclarationError
        For a `k` out of its range, or an axis that `x` does not have.

    Notes
    -----
    A bound on it becomes one row and one column for each element, and one column for each sum (its linear
    programming dual).

    Examples
    --------
    >>> import forcopt as fo
    >>> float(fo.sum_largest([1, 5, 3], 2))
    8.0
    """
    return _sum_largest(x, k, axis, "sum_largest")


def sum_smallest(x: Operand, k: int, axis: int | str | None = None) -> Any:
    """The sum of the `k` smallest elements, of all or along an axis; concave.

    Parameters
    ----------
    x : Operand
        An expression or numbers, of any shape.
    k : int
        From 1 to the number of elements summed over.
    axis : int or str, optional
        All elements by default.

    Returns
    -------
    Expression or Array
        A scalar, or the shape of `x` without `axis`.

    Raises
    ------
    DeclarationError
        For a `k` out of its range, or an axis that `x` does not have.

    Examples
    --------
    >>> import forcopt as fo
    >>> float(fo.sum_smallest([1, 5, 3], 2))
    4.0
    """
    return -_sum_largest(-as_operand(x, "sum_smallest"), k, axis, "sum_smallest")


def _sum_largest(x: Operand, k: int, axis: int | str | None, label: str) -> Any:
    along = reduced_axis_last(x, axis, label)
    if not isinstance(k, int | np.integer) or not 1 <= k <= along.shape[-1]:
        raise DeclarationError(f"{label}: k is {k}; it must be an integer from 1 to {along.shape[-1]}")
    return apply_atom(kinds.SUM_LARGEST, along, parameter=int(k), label=label)


def norm(x: Operand, p: float = 2, axis: int | str | None = None) -> Any:
    """The p-norm ``(sum |x|**p)**(1/p)``, of all elements or along an axis; convex.

    Parameters
    ----------
    x : Operand
        An expression or numbers.
    p : float, default 2
        At least 1; infinity for the largest absolute value. 1 and infinity become rows, 2 a second-order
        cone, any other p power cones.
    axis : int or str, optional
        All elements by default.

    Returns
    -------
    Expression or Array
        A scalar, or the shape of `x` without `axis`.

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
    atoms = {1: kinds.NORM_1, 2: kinds.NORM_2, np.inf: kinds.NORM_INF, "inf": kinds.NORM_INF}
    along = reduced_axis_last(x, axis, "norm")
    if np.ndim(p) == 0 and p in atoms:
        return apply_atom(atoms[p], along)
    require(_number(p) >= 1, "norm: p", p, "be a number >= 1, or inf")
    return apply_atom(kinds.NORM_P, along, parameter=float(p), label="norm")


def geometric_mean(x: Operand, axis: int | str | None = None, weights: Operand = None) -> Any:
    """The geometric mean ``prod(x**w)`` for ``x >= 0``, of all elements or along an axis; concave.

    Becomes ``d - 1`` power cones for d elements.

    Parameters
    ----------
    x : Operand
        An expression or numbers.
    axis : int or str, optional
        All elements by default.
    weights : Operand, optional
        Nonnegative numbers, one for each element along the axis, divided by their sum; equal by default.

    Returns
    -------
    Expression or Array
        A scalar, or the shape of `x` without `axis`.

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
    along = reduced_axis_last(x, axis, "geometric_mean")
    count = along.shape[-1]
    if count == 0:
        raise DeclarationError("geometric_mean of no elements")
    if weights is not None and isinstance(along, Expression):
        weights = along[(0,) * (along.ndim - 1)].aligned(weights, "geometric_mean: weights")
    w = np.ones(count) if weights is None else as_numbers(weights, "geometric_mean: weights")
    if w.shape != (count,) or (w < 0).any() or not w.any():
        raise DeclarationError(
            f"geometric_mean: weights must be {count} numbers >= 0 that are not all 0, not {weights!r}"
        )
    kept = np.flatnonzero(w)
    return apply_atom(kinds.GEOMETRIC_MEAN, along[..., kept], parameter=w[kept] / w.sum())


def huber(x: Operand, threshold: float = 1.0) -> Any:
    """``x**2`` where ``|x| <= threshold``, ``2 threshold |x| - threshold**2`` beyond; elementwise, convex.

    Becomes one second-order cone for each element.

    Parameters
    ----------
    x : Operand
        An expression or numbers, of any shape.
    threshold : float, default 1.0
        Positive, in the unit of `x`.

    Returns
    -------
    Expression or Array
        The shape of `x`.

    Raises
    ------
    DeclarationError
        If the threshold is not one positive number.

    References
    ----------
    P. J. Huber, "Robust estimation of a location parameter", Annals of Mathematical Statistics 35 (1964).

    Examples
    --------
    >>> import forcopt as fo
    >>> fo.huber([0.5, -3.0]).tolist()
    [0.25, 5.0]
    """
    require(0 < _number(threshold) < np.inf, "huber: the threshold", threshold, "be one positive number")
    return apply_elementwise(kinds.HUBER, x, parameter=float(threshold))


def sum_squares(x: Operand, axis: int | str | None = None) -> Any:
    """The sum of squares, of all elements or along an axis; convex.

    Parameters
    ----------
    x : Operand
        An expression or numbers, of any shape.
    axis : int or str, optional
        All elements by default.

    Returns
    -------
    Expression or Array
        A scalar, or the shape of `x` without `axis`.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x", 2)
    >>> _ = m.subject_to(x.sum() == 2)
    >>> m.minimize(fo.sum_squares(x))
    >>> m.solve()[x].round(6).tolist()
    [1.0, 1.0]
    """
    return apply_atom(kinds.SUM_SQUARES, reduced_axis_last(x, axis, "sum_squares"))


def quad_over_lin(x: Operand, y: Operand) -> Any:
    """``sum(x**2) / y`` for a scalar ``y > 0``; convex.

    Parameters
    ----------
    x : Operand
        An expression or numbers, of any shape.
    y : Operand
        A scalar.

    Returns
    -------
    Expression or Array
        A scalar; infinite for ``y < 0``.

    Raises
    ------
    DeclarationError
        If `y` is not a scalar.

    Notes
    -----
    Becomes one rotated second-order cone.

    Examples
    --------
    >>> import forcopt as fo
    >>> float(fo.quad_over_lin([1, 3], 2))
    5.0
    """
    scalar = as_operand(y, "quad_over_lin")
    if scalar.size != 1:
        raise DeclarationError(f"quad_over_lin: y must be a scalar, not of shape {scalar.shape}")
    return apply_atom(kinds.QUAD_OVER_LIN, reduced_axis_last(x, None, "quad_over_lin"), scalar.reshape(()))


def inverse(x: Operand) -> Any:
    """``1 / x`` for ``x > 0``, elementwise; convex.

    Parameters
    ----------
    x : Operand
        An expression or numbers, of any shape.

    Returns
    -------
    Expression or Array
        The shape of `x`; infinite where x is not positive.

    Examples
    --------
    >>> import forcopt as fo
    >>> fo.inverse([0.5, 4.0]).tolist()
    [2.0, 0.25]
    """
    return apply_elementwise(kinds.INVERSE, x)


def _number(value: Any) -> float:
    """A real number as a float; NaN for anything else, and for an integer too large."""
    try:
        return float(value) if isinstance(value, Real) else np.nan
    except OverflowError:
        return np.nan


def power(x: Operand, p: float) -> Any:
    """``x**p``, elementwise.

    Convex for p > 1 (on ``x >= 0`` unless p is an even integer) and for p < 0 (on ``x > 0``); concave on
    ``x >= 0`` for 0 < p < 1.

    Parameters
    ----------
    x : Operand
        An expression or numbers, of any shape.
    p : float
        Finite and not 0.

    Returns
    -------
    Expression or Array
        The shape of `x`.

    Raises
    ------
    DeclarationError
        If `p` is 0, infinite or not a number.

    Examples
    --------
    >>> import forcopt as fo
    >>> fo.power([1.0, 4.0], 0.5).tolist(), fo.power([-2.0], 4).tolist()
    ([1.0, 2.0], [16.0])
    """
    require(np.isfinite(_number(p)) and p != 0, "power: p", p, "be one finite number, not 0")
    if p == 1:
        return as_operand(x, "power")
    if p == -1:
        return inverse(x)
    if p == 2:
        return apply_atom(kinds.SUM_SQUARES, as_operand(x, "power")[..., None], label="power")
    even = p > 0 and float(p).is_integer() and int(p) % 2 == 0
    atom = kinds.EVEN_POWER if even else kinds.CONVEX_POWER
    if p < 1:
        atom = kinds.NEGATIVE_POWER if p < 0 else kinds.CONCAVE_POWER
    return apply_elementwise(atom, x, parameter=float(p), label="power")


def exp(x: Operand) -> Any:
    """The exponential, elementwise; convex.

    Parameters
    ----------
    x : Operand
        An expression or numbers, of any shape.

    Returns
    -------
    Expression or Array
        The shape of `x`.

    Notes
    -----
    Becomes one exponential cone for each element.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x = m.variable("x")
    >>> m.minimize(fo.exp(x) - x)
    >>> round(m.solve("clarabel").objective, 6)
    1.0
    """
    return apply_elementwise(kinds.EXP, x)


def log(x: Operand) -> Any:
    """The natural logarithm, elementwise; concave.

    Parameters
    ----------
    x : Operand
        An expression or numbers, of any shape.

    Returns
    -------
    Expression or Array
        The shape of `x`; minus infinity where x is not positive.

    Notes
    -----
    Becomes one exponential cone for each element.

    Examples
    --------
    >>> import forcopt as fo
    >>> fo.log([1.0, 0.0]).tolist()
    [0.0, -inf]
    """
    return apply_elementwise(kinds.LOG, x)


def entropy(x: Operand) -> Any:
    """``-x log(x)``, elementwise; concave.

    Parameters
    ----------
    x : Operand
        An expression or numbers, of any shape.

    Returns
    -------
    Expression or Array
        The shape of `x`; 0 at 0, minus infinity below.

    Notes
    -----
    In natural units. Becomes one exponential cone for each element.

    Examples
    --------
    >>> import forcopt as fo
    >>> float(fo.entropy([0.5, 0.5]).sum().round(6))
    0.693147
    """
    return apply_elementwise(kinds.ENTROPY, x)


def kl_div(x: Operand, y: Operand) -> Any:
    """``x log(x / y) - x + y``, elementwise; jointly convex.

    Parameters
    ----------
    x, y : Operand
        Expressions or numbers, which broadcast to one shape.

    Returns
    -------
    Expression or Array
        The common shape; infinite where x or y is negative, or y is 0 and x is not.

    Notes
    -----
    The sum over two laws is their Kullback-Leibler divergence in natural units. Becomes one exponential cone
    for each element.

    Examples
    --------
    >>> import forcopt as fo
    >>> float(fo.kl_div([0.5, 0.5], [0.25, 0.75]).sum().round(6))
    0.143841
    """
    return apply_elementwise(kinds.KL_DIV, x, y)


def logistic(x: Operand) -> Any:
    """``log(1 + exp(x))``, elementwise; convex.

    Parameters
    ----------
    x : Operand
        An expression or numbers, of any shape.

    Returns
    -------
    Expression or Array
        The shape of `x`.

    Notes
    -----
    Becomes two exponential cones for each element.

    Examples
    --------
    >>> import forcopt as fo
    >>> float(fo.logistic(0.0).round(6))
    0.693147
    """
    return apply_elementwise(kinds.LOGISTIC, x)


def log_sum_exp(x: Operand, axis: int | str | None = None) -> Any:
    """``log(sum(exp(x)))``, of all elements or along an axis; convex, a smooth maximum.

    Becomes one exponential cone for each element of `x`.

    Parameters
    ----------
    x : Operand
        An expression or numbers, of any shape.
    axis : int or str, optional
        All elements by default.

    Returns
    -------
    Expression or Array
        A scalar, or the shape of `x` without `axis`.

    Raises
    ------
    DeclarationError
        If there are no elements.

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
    along = reduced_axis_last(x, axis, "log_sum_exp")
    if along.shape[-1] == 0:
        raise DeclarationError("log_sum_exp of no elements")
    return apply_atom(kinds.LOG_SUM_EXP, along)
