"""One atom: its curvature and monotonicity, its value and bounds; and its application to expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import Any

import numpy as np

from forcopt.arrays import Array, as_numbers, broadcast_shapes
from forcopt.errors import DeclarationError
from forcopt.language.alignment import Operand, aligned, positions
from forcopt.language.expression import Expression
from forcopt.language.labels import tidy

_ATOMS: dict[str, Atom] = {}
"""All atoms by name."""


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
        Gives the least and the greatest value between two arrays of arguments, where monotonicity gives
        no bounds.
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

    def __post_init__(self) -> None:
        _ATOMS[self.name] = self

    def __reduce__(self) -> tuple[Callable[[str], Atom], tuple[str]]:
        """Pickle by name: there is one atom of each."""
        return atom_named, (self.name,)

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
        if 0 in self.monotone:
            shape = ends[0][0].shape[:-1] if self.reduces else ends[0][0].shape
            return np.full(shape, 0.0 if self.nonnegative else -np.inf), np.full(shape, np.inf)
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
        low = np.where(np.isnan(low), -np.inf, low)
        high = np.where(np.isnan(high), np.inf, high)
        return np.maximum(low, 0.0) if self.nonnegative else low, high


def _sum_largest_value(x: Array, k: int) -> Any:
    return np.sort(x, axis=-1)[..., x.shape[-1] - k :].sum(axis=-1)


def _quad_over_lin_value(x: Array, y: Array, _: None) -> Any:
    squares = (x * x).sum(axis=-1)
    return np.where((squares == 0) & (y == 0), 0.0, squares / y)


def _times_log(x: Array, ratio: Array) -> Any:
    return np.where(x > 0, x * np.log(np.where(x > 0, ratio, 1.0)), 0.0)


def atom_named(name: str) -> Atom:
    """The atom of a name; there is one of each."""
    return _ATOMS[name]


ABS = Atom("abs", 1, (2,), lambda x, _: np.abs(x), nonnegative=True, integral=True)
MAXIMUM = Atom("maximum", 1, (1,), lambda x, _: x.max(axis=-1), reduces=True, integral=True)
SUM_LARGEST = Atom("sum_largest", 1, (1,), _sum_largest_value, reduces=True, integral=True)
_NORM: dict[str, Any] = {"reduces": True, "nonnegative": True}
NORM_1 = Atom("norm_1", 1, (2,), lambda x, _: np.abs(x).sum(axis=-1), **_NORM, integral=True)
NORM_2 = Atom("norm_2", 1, (2,), lambda x, _: np.sqrt((x * x).sum(axis=-1)), reduces=True, nonnegative=True)
NORM_INF = Atom("norm_inf", 1, (2,), lambda x, _: np.abs(x).max(axis=-1, initial=0.0), **_NORM, integral=True)
SUM_SQUARES = Atom("sum_squares", 1, (2,), lambda x, _: (x * x).sum(axis=-1), reduces=True, nonnegative=True)
QUAD_OVER_LIN = Atom("quad_over_lin", 1, (2, -1), _quad_over_lin_value, domain=(1,), **_NORM)
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
GEOMETRIC_MEAN = Atom("geometric_mean", -1, (1,), _geometric_mean_value, domain=(0,), **_NORM)
HUBER = Atom("huber", 1, (2,), _huber_value, nonnegative=True)
NORM_P = Atom("norm_p", 1, (2,), _norm_p_value, reduces=True, nonnegative=True)


def apply_atom(atom: Atom, *arguments: Operand, parameter: Any = None, label: str = "") -> Any:
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
            lower, upper = model.span_of(expr)
            direction = 1 if (lower >= 0).all() else -1 if (upper <= 0).all() else 0
        model.check_curvature(expr, atom.curvature * direction, f"inside {label}")
    shape = exprs[0].shape[:-1] if atom.reduces else exprs[0].shape
    size = prod(shape)
    flat = tuple(e.labelled(None).reshape(size, *e.shape[len(shape) :]) for e in exprs)
    axes = next((e.axes for e in exprs if e.axes is not None), None)
    kept = tidy(axes[: len(shape)]) if axes is not None else None
    return model.add_atom(label, atom, shape, flat, parameter, kept)


def apply_elementwise(atom: Atom, *arguments: Operand, parameter: Any = None, label: str = "") -> Any:
    """Broadcast the arguments of an elementwise atom to one shape, then apply it."""
    operands = broadcast_operands(arguments, label or atom.name)
    return apply_atom(atom, *operands, parameter=parameter, label=label)


def broadcast_operands(arguments: Sequence[Operand], label: str) -> list[Any]:
    """Bring expressions and numbers into line and broadcast them to one shape."""
    met, axes = aligned(arguments, f"an argument of {label}")
    read = [as_operand(a, label) for a in met]
    shape = broadcast_shapes([a.shape for a in read], label)
    return [
        a.broadcast_to(shape).labelled(axes) if isinstance(a, Expression) else np.broadcast_to(a, shape)
        for a in read
    ]


def as_operand(x: Operand, label: str) -> Any:
    """Leave an expression; check and convert numbers."""
    return x if isinstance(x, Expression) else as_numbers(x, f"the argument of {label}")


def reduced_axis_last(x: Operand, axis: int | str | None, label: str) -> Any:
    """Move the axis that a reducing atom reduces to the end; None flattens."""
    data = as_operand(x, label)
    if axis is None:
        return data.reshape(-1)
    axis = positions(axis, getattr(data, "axes", None), label)
    if not (isinstance(axis, int | np.integer) and -data.ndim <= axis < data.ndim):
        raise DeclarationError(f"{label}: axis {axis} does not exist in shape {data.shape}")
    at = axis % data.ndim
    return data.transpose(*(a for a in range(data.ndim) if a != at), at)
