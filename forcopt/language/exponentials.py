"""Atoms that become exponential cones: exponentials, logarithms, entropies."""

from __future__ import annotations

from typing import Any

from forcopt.errors import DeclarationError
from forcopt.language.atom import (
    ENTROPY,
    EXP,
    KL_DIV,
    LOG,
    LOG_SUM_EXP,
    LOGISTIC,
    apply_atom,
    apply_elementwise,
    reduced_axis_last,
)
from forcopt.language.operands import Operand

__all__ = ["entropy", "exp", "kl_div", "log", "log_sum_exp", "logistic"]


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
    return apply_elementwise(EXP, x)


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
    return apply_elementwise(LOG, x)


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
    return apply_elementwise(ENTROPY, x)


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
    return apply_elementwise(KL_DIV, x, y)


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
    return apply_elementwise(LOGISTIC, x)


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
    return apply_atom(LOG_SUM_EXP, along)
