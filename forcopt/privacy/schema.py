"""The public description of a private table: bounds and categories of its columns."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import cached_property
from math import inf, isclose, nan
from typing import Any, Self

import numpy as np
from pydantic import Field, model_validator

from forcopt.arrays import Array, is_missing
from forcopt.declaration import Declared
from forcopt.errors import DeclarationError, require, required, unknown
from forcopt.privacy.tolerances import ON_LATTICE

MOST_STEPS = 2**31
"""Values are at most this many steps from 0, so that 2^32 of them have a sum in 64 bits."""


class Column(Declared):
    """The base of the descriptions of a column."""

    @abstractmethod
    def read(self, values: Any) -> Array:
        """The values as whole numbers (floats), each a function of itself alone; NaN for a missing one."""


class Bounded(Column):
    """A column of numbers between public bounds, in whole steps.

    Parameters
    ----------
    lower, upper : float
        The bounds, multiples of the step. A value beyond a bound is moved to it.
    step : float, default 1.0
        Values are rounded to its multiples: a sum then is a whole number of steps, which has no rounding
        error. A bound is at most 2^31 steps from 0.

    Notes
    -----
    What is no number counts as missing: it is in no sum, and a comparison with it is unknown, see
    `Table.where`. An error would tell that it is there.

    Examples
    --------
    >>> Bounded(0, 110).read([17.6, -3, 250, "?"]).tolist()
    [18.0, 0.0, 110.0, nan]
    """

    lower: float = Field(allow_inf_nan=False)
    upper: float = Field(allow_inf_nan=False)
    step: float = Field(default=1.0, gt=0.0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _is_interval(self) -> Self:
        if self.lower >= self.upper:
            raise DeclarationError(f"lower is {self.lower:g} and upper {self.upper:g}; lower must be less")
        for name, bound in (("lower", self.lower), ("upper", self.upper)):
            steps = self.steps(bound)
            if steps != round(steps) or abs(steps) > MOST_STEPS:
                raise DeclarationError(
                    f"{name} is {bound:g}; it must be a multiple of {self.step:g}, at most 2^31 steps"
                )
        return self

    def steps(self, value: float) -> float:
        """A number in units of the step; whole if it is a multiple up to rounding."""
        found = value / self.step
        near = float(np.rint(found))
        return near if isclose(found, near, rel_tol=ON_LATTICE, abs_tol=ON_LATTICE) else found

    @property
    def ends(self) -> tuple[int, int]:
        """The bounds in steps."""
        return round(self.steps(self.lower)), round(self.steps(self.upper))

    def read(self, values: Any) -> Array:
        """See `Column`."""
        given = _cells(values)
        if given.dtype.kind not in "biuf":
            given = np.array([as_number(value) for value in values], dtype=float)
        with np.errstate(over="ignore"):  # a warning would tell that a large value is there
            return np.clip(np.rint(given.astype(float) / self.step), *self.ends)


class Categories(Column):
    """A column of categories, all of which are public.

    Parameters
    ----------
    values : str, int or bool
        The categories, one argument each.

    Notes
    -----
    Any other value counts as missing: its row belongs to no group, and a comparison with it is unknown, see
    `Table.where`. 1, ``"1"``, ``"1.0"``, True and ``"true"`` are one category.

    Examples
    --------
    >>> Categories("f", "m").read(["m", "f", "x"]).tolist()
    [1.0, 0.0, nan]
    """

    values: tuple[bool | int | str, ...] = Field(min_length=1)

    def __init__(self, *values: Any, **fields: Any) -> None:
        super().__init__(**({"values": values} if values else {}), **fields)

    @model_validator(mode="after")
    def _differ(self) -> Self:
        if len(self._places) < len(self.values):
            raise DeclarationError(f"values are {', '.join(map(str, self.values))}; they must be different")
        return self

    def place(self, value: Any) -> float:
        """The place of a value among the categories, from 0; NaN for any other value."""
        return self._places.get(text_of(value, _text), nan)

    @cached_property
    def _places(self) -> dict[str | None, float]:
        return {_text(value): float(i) for i, value in enumerate(self.values)}

    def read(self, values: Any) -> Array:
        """See `Column`."""
        pd = required("pandas", "a column of categories")
        given = _cells(values)
        if given.dtype.kind in "biufU" or pd.api.types.infer_dtype(given, skipna=False) == "string":
            # Equal values here have equal places, which 1 and "1.0" have not.
            codes, found = pd.factorize(given)
            places = np.array([self.place(v) for v in found] + [nan])
            return np.asarray(places[codes])  # a missing value has the code -1
        return np.array([self.place(v) for v in values], dtype=float)


def _cells(values: Any) -> Array:
    """A column as an array of one axis; the cells of a list stay what they are, rather than all be texts."""
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(object), None)
    if hasattr(values, "dtype") and np.ndim(values) == 1:
        return np.asarray(values)
    require(getattr(values, "ndim", 1) == 1, "a column", type(values).__name__, "be there once, of one axis")
    cells = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        cells[i] = value
    return cells


def text_of(value: Any, write: Callable[[Any], str] = str) -> str | None:
    """A value as text; None if it is missing, or has no text, since an error would tell that it is there."""
    try:
        return None if is_missing(value) else write(value)
    except Exception:
        return None


_TRUTH = {"true": "1", "false": "0"}


def _text(value: Any) -> str:
    """A value as the name of its category, the same whatever else is in its column.

    A column of whole numbers with missing ones is of floats, and with a text in it of texts.
    """
    whole = isinstance(value, bool | np.bool_ | float | np.floating) and float(value).is_integer()
    text = str(int(value) if whole else value)
    return _TRUTH.get(text.lower()) or re.sub(r"^(-?(0|[1-9][0-9]*))\.0+$", r"\1", text)


def as_number(value: Any) -> float:
    """A value as a float; NaN if it is no number, infinite if it is too large for a float."""
    if value is np.ma.masked or isinstance(value, complex | np.complexfloating):
        return nan
    try:
        return float(_TRUTH.get(value.lower(), value) if isinstance(value, str) else value)
    except OverflowError:
        return (inf if value > 0 else -inf) if isinstance(value, int | Fraction) else nan
    except Exception:  # whatever a cell raises
        return nan


class Schema(Mapping[str, Column]):
    """The columns of a private table by name; it is public, and must not be read off the data.

    Parameters
    ----------
    columns : mapping, optional
        Of names to columns, for names that are no arguments.
    named : Bounded or Categories
        Columns by name.

    Raises
    ------
    DeclarationError
        Without a column, or for one that is neither `Bounded` nor `Categories`.

    Examples
    --------
    >>> Schema(age=Bounded(0, 110), sex=Categories("f", "m"))
    Schema(age=Bounded(lower=0.0, upper=110.0, step=1.0), sex=Categories(values=('f', 'm')))
    """

    def __init__(self, columns: Mapping[str, Column] | None = None, /, **named: Column) -> None:
        self._columns = {**(columns or {}), **named}
        if not self._columns:
            raise DeclarationError("the schema is empty; it must describe at least one column")
        for name, column in self._columns.items():
            rule = "be Bounded(lower, upper) or Categories(...)"
            require(isinstance(column, Column), f"column {name!r}", column, rule)

    def __getitem__(self, name: str) -> Column:
        if name not in self._columns:
            raise unknown("column of the schema", str(name), list(self._columns))
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Read a schema from plain data, as `to_dict` or a person writes it.

        Parameters
        ----------
        data : mapping
            For each column a list of categories, or a mapping with ``values``, or with ``lower``, ``upper``
            and perhaps ``step``.

        Raises
        ------
        DeclarationError
            For a column that is described in another way.

        Examples
        --------
        >>> Schema.from_dict({"sex": ["f", "m"], "age": {"lower": 0, "upper": 110}})
        Schema(sex=Categories(values=('f', 'm')), age=Bounded(lower=0.0, upper=110.0, step=1.0))
        """
        require(isinstance(data, Mapping), "the schema", data, "describe each column by name")
        made: dict[str, Column] = {}
        for name, given in data.items():
            fields = {"values": given} if isinstance(given, list | tuple) else given
            if not isinstance(fields, Mapping) or not {"values", "lower"} & fields.keys():
                rule = "it must be a list of categories, or have lower and upper"
                raise DeclarationError(f"the schema's column {name!r} is {given!r}; {rule}")
            kind: type[Column] = Categories if "values" in fields else Bounded
            try:
                made[name] = kind.from_dict({**fields, "type": kind.__name__})
            except DeclarationError as error:
                raise DeclarationError(f"the schema's column {name!r}: {error}") from None
        return cls(made)

    def to_dict(self) -> dict[str, Any]:
        """The schema as plain data."""
        return {name: column.to_dict() for name, column in self.items()}

    def __repr__(self) -> str:
        return f"Schema({', '.join(f'{name}={column!r}' for name, column in self.items())})"
