"""Products of two expressions: with a parameter, with a binary, or of any two, which is not convex."""

from __future__ import annotations

from itertools import product as pairs
from typing import Any

import numpy as np

from forcopt.arrays import Array, broadcast_shapes
from forcopt.errors import CurvatureError
from forcopt.language.alignment import Operand
from forcopt.language.constraint import is_binary, require_binary
from forcopt.language.expression import Expression
from forcopt.language.labels import Axes
from forcopt.language.relations import Multiplication, ParameterProduct, Product
from forcopt.language.terms import mark

__all__ = ["multiplied", "multiplied_matrices", "product"]


def product(binary: Expression, factor: Operand) -> Expression:
    """``binary * factor``, elementwise with broadcasting, for a binary expression; affine in the model.

    ``*`` gives the same; this function also checks that its first argument is binary. Backends without
    products need bounds on `factor`, see the bridge ``product_rows``.

    Parameters
    ----------
    binary : Expression
        Each element is 0 or 1 by its type and bounds.
    factor : Operand
        An affine expression or numbers; broadcasts with `binary`.

    Returns
    -------
    Expression
        The common shape.

    Raises
    ------
    DeclarationError
        If `binary` is not binary.
    CurvatureError
        If an argument is not affine.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x, b = m.variable("x", lower=0, upper=4), m.variable("b", binary=True)
    >>> m.maximize(fo.product(b, x) - 3 * b)
    >>> m.solve().objective
    1.0
    """
    require_binary(binary, "the first argument of product")
    if isinstance(factor, Expression):
        binary.model.lift(factor, "the second argument of product")
    return binary * factor


def multiplied(left: Expression, right: Expression, axes: Axes | None = None) -> Expression:
    """The elementwise product of two expressions that are in line; the result has the given axes.

    Raises
    ------
    CurvatureError
        If an expression is not affine; only a parameter that is not negative may scale it then.
    """
    model = left.model
    shape = broadcast_shapes([left.shape, right.shape], "multiplying")
    first, second = left.broadcast_to(shape).labelled(axes), right.broadcast_to(shape).labelled(axes)
    known = model.parametric_columns()
    for scale, factor in ((first, second), (second, first)):
        if known is not None and _reads_only(scale, known):
            return _scaled(scale, factor, known)
    for part in (first, second):
        model.check_curvature(part, 0, "inside a product")
    for scale, factor in ((first, second), (second, first)):
        if is_binary(scale).all():
            return _related(Product, "product", scale, factor)
    return _related(Multiplication, "product", first, second)


def multiplied_matrices(left: Expression, right: Expression) -> Expression:
    """``left @ right`` of vectors or matrices that are in line and share no constant."""
    left, right = left.labelled(None), right.labelled(None)
    if left.ndim == 1:
        return multiplied(left if right.ndim == 1 else left[:, None], right).sum(axis=0)
    if right.ndim == 1:
        return multiplied(left, right).sum(axis=-1)
    return multiplied(left[:, :, None], right[None, :, :]).sum(axis=1)


def _scaled(scale: Expression, factor: Expression, known: Array) -> Expression:
    """The product of expressions of one shape of which the first reads parameters only."""
    model, curvature = scale.model, 0
    if not model.is_affine(factor):
        low, high = model.span_of(scale)
        if (low < 0).any():
            if (high <= 0).all():
                return -_scaled(-scale, factor, known)
            raise CurvatureError(
                f"a product of the parameter {scale._short()} and {factor._short()}: the parameter may be "
                "negative; declare it with lower=0"
            )
        curvature = model.curvature(factor, "inside a product with a parameter")
    result = _related(ParameterProduct, "scaled", scale, factor, curvature)
    if _reads_only(factor, known):
        model.note_parametric(result)
    return result


def _related(
    relation: type[Product], label: str, scale: Expression, factor: Expression, curvature: int = 0
) -> Expression:
    """New columns for the product of expressions of one shape, and the relation that ties them to it."""
    model = scale.model
    with np.errstate(invalid="ignore"):
        corners = np.stack([a * b for a, b in pairs(model.span_of(scale), model.span_of(factor))])
    corners = np.where(np.isnan(corners), 0.0, corners)  # 0 times an infinite bound
    lower, upper = corners.min(axis=0), corners.max(axis=0)
    if relation is Multiplication:
        apart = scale - factor
        square = (np.diff(apart.linear_rows().indptr) == 0).reshape(scale.shape) & (apart.constant == 0)
        lower = np.where(square, np.maximum(lower, 0.0), lower)
    integral = bool((model.is_integral(scale) & model.is_integral(factor)).all())
    result = model.add_columns(label, scale.shape, lower, upper, curvature, integral, scale.axes)
    model.relations.append(relation(*(e.labelled(None).ravel() for e in (result, scale, factor))))
    return result


def _reads_only(expression: Expression, known: Any) -> bool:
    """Whether an expression reads no other columns than those that parameters determine."""
    used = np.zeros(len(known), dtype=bool)
    mark(expression.terms, used)
    return not (used & ~known).any()
