"""Decision variables, and parameters: data that may change between solves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from forcopt.arrays import Array, as_numbers, refuse_entry, spread
from forcopt.errors import Guarded
from forcopt.language.columns import Block, consecutive
from forcopt.language.expression import Expression, xarray_defers
from forcopt.language.labels import Axes
from forcopt.language.scalar import Scalar
from forcopt.notebook import facts_html

if TYPE_CHECKING:
    from forcopt.language.model import Model


_ZERO = np.zeros(())
_ZERO.flags.writeable = False
_SETTERS = {
    **dict.fromkeys(("lb", "minimum"), "x.lower = ..."),
    **dict.fromkeys(("ub", "maximum"), "x.upper = ..."),
    **dict.fromkeys(("start", "value", "x", "warmstart"), "m.solve(start={x: ...}), or m.fix(x, ...)"),
    **dict.fromkeys(("vtype", "integer", "binary"), "m.variable(..., integer=True), or m.relax()"),
    **dict.fromkeys(("obj", "objective"), "m.minimize(...) or m.maximize(...)"),
}
"""What to write instead of setting an attribute, by its name in small letters without underscores."""


class Declared(Guarded, Expression):
    """The columns of one block under the name that a model gave them."""

    __slots__ = ("name", "position", "start")

    name: str
    start: int
    position: int  # of the block
    _hints = _SETTERS

    def __init__(self, model: Model, position: int) -> None:
        xarray_defers()
        block = model.blocks[position]
        put = object.__setattr__
        put(self, "model", model)
        put(self, "shape", block.shape)
        put(self, "axes", block.axes)
        put(self, "name", block.name)
        put(self, "start", block.start)
        put(self, "position", position)
        if block.shape:
            put(self, "terms", (consecutive(block.start, block.shape),))
            put(self, "constant", np.broadcast_to(_ZERO, block.shape))

    if not TYPE_CHECKING:  # scalars are many, and most need no arrays

        def __getattr__(self, name: str) -> Any:
            if name == "terms":
                object.__setattr__(self, name, (consecutive(self.start, ()),))
                return self.terms
            return _ZERO if name == "constant" else super().__getattr__(name)

    def plain(self) -> Scalar | None:
        """Itself, if it is a scalar."""
        return None if self.shape else Scalar(self.model, [self.start], [1.0], 1, 0.0)

    def extend(self, columns: list[int], values: list[float], sign: float) -> float | None:
        """Append its column, if it is a scalar."""
        if self.shape:
            return None
        columns.append(self.start)
        values.append(sign)
        return 0.0

    def __getitem__(self, index: Any) -> Expression:
        if type(index) is int and len(self.shape) == 1 and self.axes is None:
            return self._at((index,), index)
        return super().__getitem__(index)

    def _at(self, key: tuple[Any, ...], index: Any, axes: Axes | None = None) -> Expression:
        if len(key) != self.ndim or not all(type(k) is int for k in key):
            return super()._at(key, index, axes)
        place = 0
        for k, n in zip(key, self.shape, strict=True):
            if not -n <= k < n:
                raise IndexError(f"index {index!r} does not fit shape {self.shape}")
            place = place * n + k % n
        return Scalar(self.model, [self.start + place], [1.0], 1, 0.0)


class Variable(Declared):
    """A decision variable of a model; an expression like any other.

    Attributes
    ----------
    name : str
        Unique in its model.
    start : int
        Its first column; the others follow in C order.
    position : int
        Of its block among the blocks of the model.
    integer : bool
        Whether all its values are integers.
    lower, upper : Array
        Its bounds as they are now, in its shape. Assigning declares new ones.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> m.variable("x", shape=(2, 3), lower=0)
    <variable x of shape (2, 3)>
    >>> m.variable("y", index=["a", "b"], binary=True)["b"]
    <expression of shape (), 1 coefficients: y[b]>
    """

    __slots__ = ()

    _settable = frozenset(("lower", "upper"))

    @property
    def integer(self) -> bool:
        """Whether all its values are integers."""
        return bool(np.all(self._block.integer))

    @property
    def _block(self) -> Block:
        return self.model.blocks[self.position]

    @property
    def lower(self) -> Array:
        """Its lower bounds as they are now.

        Assigning declares new ones, which reach every later solve. A bound can only be moved outwards while
        no atom, product or condition reads the variable, since these were written for the old one.

        Raises
        ------
        DeclarationError
            For bounds that are NaN, crossed or of another shape, and for wider ones in use.

        Examples
        --------
        >>> import forcopt as fo
        >>> m = fo.Model()
        >>> x = m.variable("x", 2, lower=0, upper=4)
        >>> m.maximize(x.sum())
        >>> x.upper = [3, 5]
        >>> m.solve()[x].tolist()
        [3.0, 5.0]
        """
        return np.array(np.broadcast_to(self._block.lower, self.shape))

    @lower.setter
    def lower(self, values: Any) -> None:
        self._redeclare(lower=values)

    @property
    def upper(self) -> Array:
        """Its upper bounds as they are now; see `lower`."""
        return np.array(np.broadcast_to(self._block.upper, self.shape))

    @upper.setter
    def upper(self, values: Any) -> None:
        self._redeclare(upper=values)

    def _redeclare(self, **bounds: Any) -> None:
        from forcopt.language.editing import set_bounds

        set_bounds(self, **bounds)

    def __repr__(self) -> str:
        kind = "integer " if self.integer else ""
        return f"<{kind}variable {self.name} of shape {self.shape}>"

    def _repr_html_(self) -> str:
        facts = {"kind": "integer" if self.integer else "continuous", "shape": self.shape}
        for name, bounds in (("lower", self.lower), ("upper", self.upper)):
            low, high = (bounds.min(), bounds.max()) if self.size else (0.0, 0.0)
            facts[name] = f"{low:g}" if low == high else f"{low:g} to {high:g}"
        return facts_html(f"variable {self.name}", facts)


class Parameter(Declared):
    """Numbers that may change between solves; an expression like any other. Made by `Model.parameter`.

    Attributes
    ----------
    name : str
        Unique in its model.
    start : int
        Its first column; the others follow in C order.
    position : int
        Of its block among the blocks of the model.

    Examples
    --------
    >>> import forcopt as fo
    >>> m = fo.Model()
    >>> x, demand = m.variable("x", lower=0), m.parameter("demand", value=2)
    >>> _ = m.subject_to(x >= demand)
    >>> m.minimize(3 * x)
    >>> first = m.solve().objective
    >>> demand.value = 5
    >>> first, m.solve().objective
    (6.0, 15.0)
    """

    __slots__ = ("_value",)

    _settable = frozenset(("value",))

    def __init__(self, model: Model, position: int) -> None:
        super().__init__(model, position)
        self._value = np.full(self.shape, np.nan)

    @property
    def value(self) -> Array:
        """The numbers that the next solve takes; a copy."""
        return self._value.copy()

    @value.setter
    def value(self, value: Any) -> None:
        subject = f"parameter {self.name}: value"
        numbers = as_numbers(self.aligned(value, subject), subject)
        if numbers.shape != self.shape:
            numbers = np.array(spread(numbers, self.shape, subject))
        block = self.model.block_of(self.start)
        low, high = (np.broadcast_to(b, numbers.shape) for b in (block.lower, block.upper))
        outside = (numbers < low) | (numbers > high)
        if outside.any():
            at = int(np.argmax(outside))
            rule = f"within the declared range [{low.flat[at]:g}, {high.flat[at]:g}]"
            refuse_entry(numbers.shape, at, numbers.flat[at], subject, rule)
        self._value = numbers

    def __repr__(self) -> str:
        return f"<parameter {self.name} of shape {self.shape}>"
