"""Tables of features: their columns by name and kind, and one number for each row that its entries decide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from hashlib import blake2b
from itertools import pairwise
from numbers import Real
from sys import float_info
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array, entries_of
from forcopt.errors import DeclarationError, required
from forcopt.learning.hypotheses import aligned, names_of


def rows_of(X: Any, which: Array) -> Any:
    """Some rows of an array, a sparse array or a frame."""
    return X.iloc[which] if hasattr(X, "iloc") else X[which]


def as_frame(X: Any) -> Any:
    """A frame of polars as one of pandas, which the checks of tables read; anything else as it is."""
    if not hasattr(X, "get_columns"):
        return X
    pd = required("pandas", "a table of features")

    kinds = {c.name: "category" for c in X.get_columns() if str(c.dtype).startswith(("Categorical", "Enum"))}
    return pd.DataFrame({c.name: c.to_list() for c in X.get_columns()}).astype(kinds)


ABSENT = {"", "NA", "N/A", "n/a", "<NA>", "#N/A", "NaN", "nan", "NULL", "null", "None"}
"""Words that pandas reads as missing."""


@dataclass(frozen=True)
class Schema:
    """The columns of a table of features, in order.

    Attributes
    ----------
    names : tuple[str, ...]
        Of the columns of a frame; empty for an array, whose columns go by position.
    kinds : tuple
        Of each column: ``"number"``, ``"truth"``, the tuple of its categories, or ``"text"``. If it has words
        such as NA, this is ``"text with NA"``; if it has empty words, or blanks around words,
        ``"spaced text"``: files are read without these.

    Examples
    --------
    >>> import pandas as pd
    >>> schema = Schema.of(pd.DataFrame({"age": [31, 40], "job": ["cook", "nurse"]}))
    >>> schema
    Schema(names=('age', 'job'), kinds=('number', 'text'))
    >>> schema.read({"job": "cook", "age": 50}).to_numpy().tolist()
    [[50, 'cook']]
    """

    names: tuple[str, ...]
    kinds: tuple[str | tuple[Any, ...], ...]

    @classmethod
    def of(cls, X: Any) -> Self:
        """The schema of a table.

        Raises
        ------
        DeclarationError
            For a column that holds neither numbers, truth values, text nor categories.
        """
        names = names_of(X)
        if not names or not hasattr(X, "iloc"):
            return cls(names, ("number",) * X.shape[1])
        return cls(names, tuple(_kind(X[name], name) for name in names))

    @property
    def plain(self) -> bool:
        """Whether all columns are numbers or truth values."""
        return all(kind in ("number", "truth") for kind in self.kinds)

    def read(self, X: Any) -> Any:
        """A table with these columns, in this order and of these kinds.

        Parameters
        ----------
        X : Any
            A frame, or a mapping with one record, if the schema has names; else an array, dense or sparse.

        Raises
        ------
        DeclarationError
            For what cannot be placed: a column that is missing, unknown or of another kind, an array where
            columns have names, a frame where they have none, another number of columns, and an entry that is
            neither a number nor missing where numbers were learnt.
        """
        X = as_frame(X)
        if isinstance(X, Mapping):
            pd = required("pandas", "a table of features")

            X = pd.DataFrame([dict(X)])
        if hasattr(X, "iloc") and not hasattr(X, "columns"):
            raise DeclarationError(f"X is a {type(X).__name__}; it must be a table: frame.iloc[[0]] is a row")
        X = X if hasattr(X, "dtype") or hasattr(X, "iloc") else np.asarray(X, dtype=object)
        if X.shape[:1] == (0,):
            raise DeclarationError(f"X has the shape {X.shape}; it must have a row at least")
        if bool(self.names) != hasattr(X, "iloc"):
            given, rule = ("an array", "a frame") if self.names else ("a frame", "an array")
            raise DeclarationError(f"X is {given}; the policy was learnt from {rule}, so it takes {rule}")
        if self.names:
            return self.cast(aligned(X, self.names))
        table: Any = X if sp.issparse(X) else np.asarray(X)
        width = len(self.kinds)
        if table.ndim != 2 or table.shape[1] != width:
            sizes = [np.size(row) for row in table.tolist()] if table.ndim == 1 else []
            row = next((f"; row {i} has {n} entries" for i, n in enumerate(sizes) if n != width), "")
            raise DeclarationError(f"X has shape {table.shape}; it must be (n, {width}){row}")
        if not self.plain:
            return np.array(entries_of(table.ravel()), dtype=object).reshape(table.shape)
        if table.dtype.kind in "biuf":
            return sp.csr_array(table, dtype=float) if sp.issparse(table) else table.astype(float, copy=False)
        pd = required("pandas", "a table of features")

        frame = pd.DataFrame(table[:1].toarray() if sp.issparse(table) else table)
        return np.column_stack([_of_kind(frame[j], j, "number") for j in frame])

    def cast(self, frame: Any) -> Any:
        """The frame, whose columns are in order, with columns of these kinds; see `read`.

        Learners tell None, NaN and the missing value of pandas apart: here they all become NaN.
        """
        found = {
            name: _of_kind(frame[name], name, kind)
            for name, kind in zip(self.names, self.kinds, strict=True)
            if _kind(frame[name], name) != kind or _is_loose(frame[name].dtype)
        }
        return frame.assign(**found) if found else frame


def _kind(column: Any, name: str | int) -> str | tuple[Any, ...]:
    dtype = column.dtype
    if hasattr(dtype, "categories"):
        return tuple(dtype.categories.tolist())
    if dtype.kind in "biuf":
        return "truth" if dtype.kind == "b" else "number"
    values, there = column.tolist(), np.flatnonzero(~np.asarray(column.isna())).tolist()
    known = [values[i] for i in there]
    for kind, types in (("text", str), ("truth", bool), ("number", Real | Decimal | np.bool_)):
        if all(isinstance(v, types) for v in known):
            spaced = kind == "text" and any(v != v.strip() or not v for v in known)
            return "spaced text" if spaced else "text with NA" if ABSENT.intersection(known) else kind
    odd = [(not isinstance(v, str | Real | Decimal), isinstance(v, str)) for v in known]
    at = there[odd.index(max(odd))]
    held = f"has type {dtype} and holds {values[at]!r} in row {at}"
    raise DeclarationError(f"column {name!r} {held}; it must hold numbers, truth values or text alone")


def _is_loose(dtype: Any) -> bool:
    """Whether columns of this type have values that numpy's numbers and text lack."""
    if isinstance(dtype, np.dtype):
        return dtype.kind == "O"
    return not (hasattr(dtype, "categories") or dtype == "str")


def _of_kind(column: Any, name: str | int, kind: str | tuple[Any, ...]) -> Any:
    """A column as another kind, if its values allow it."""
    import pandas as pd

    missing = np.asarray(column.isna())
    if isinstance(kind, tuple):
        wrong = ~missing & ~np.asarray(column.isin(kind))
        rule = f"the categories are {', '.join(map(str, kind))}"
        if not wrong.any():
            return column.astype(pd.CategoricalDtype(list(kind)))
    elif "text" in kind:
        wrong, rule = ~missing, "the policy was learnt from text"
        if _kind(column, name) not in ("number", "truth") or missing.all():
            return column.astype(object).where(~missing, np.nan)
    else:
        numbers = _kind(column, name) in ("number", "truth")
        wrong = ~missing & (not numbers or (kind == "truth" and ~np.asarray(column.isin([0, 1]))))
        rule = "the policy was learnt from " + ("numbers" if kind == "number" else "truth values")
        if not wrong.any():
            as_type = float if kind == "number" or missing.any() else bool
            try:
                return column.astype(object).where(~missing, np.nan).astype(as_type)
            except OverflowError:
                large = [isinstance(v, int | Fraction) and abs(Fraction(v)) > float_info.max for v in column]
                wrong, rule = np.array(large), "it must be within the range of floats"
    at = int(np.argmax(wrong))
    raise DeclarationError(f"X: column {name!r} holds {column.tolist()[at]!r} in row {at}; {rule}")


_WIDE = 1000
"""Rows of arrays with more columns are numbered by the entries that are not 0, dense or sparse."""


def row_numbers(X: Any, salt: int = 0) -> Array:
    """A number in [0, 1) for each row that looks random but depends on its entries and the salt alone.

    Parameters
    ----------
    X : Any
        Features: an array, a sparse array, or a frame with numbers and text.
    salt : int, default 0
        Another salt gives other numbers.

    Returns
    -------
    Array
        Shape ``(n,)``.

    Notes
    -----
    Splitmix64 of the entries, of text BLAKE2 before; for arrays of more than 1000 columns BLAKE2 of the
    entries that are not 0. A row has the same number in every batch, frame or process, and in every dense or
    sparse array of numbers.

    Examples
    --------
    >>> numbers = row_numbers(np.array([[1.0, 2.0], [1.0, 3.0], [1.0, 2.0]]))
    >>> bool(numbers[0] == numbers[2] != numbers[1])
    True
    """
    if sp.issparse(X) and X.shape[1] <= _WIDE:
        rows = sp.csr_array(X)
        parts = [rows[at : at + _WIDE].toarray() for at in range(0, max(1, rows.shape[0]), _WIDE)]
        return np.concatenate([row_numbers(part, salt) for part in parts])
    if X.shape[1] > _WIDE and not hasattr(X, "iloc") and X.dtype.kind in "biuf":
        table = sp.csr_array(X, dtype=float, copy=True)
        table.sum_duplicates()  # and sort
        table.eliminate_zeros()
        table.data[np.isnan(table.data)] = np.nan  # one NaN of many
        key = salt.to_bytes(16, "little")
        lots = []
        for start, end in pairwise(table.indptr.tolist()):
            entries = table.indices[start:end].astype(np.int64).tobytes() + table.data[start:end].tobytes()
            lots.append(int.from_bytes(blake2b(entries, digest_size=8, key=key).digest(), "little"))
        return np.asarray((np.array(lots, dtype=np.uint64) >> np.uint64(11)).astype(np.float64) * 2.0**-53)
    columns = [X.iloc[:, j] for j in range(X.shape[1])] if hasattr(X, "iloc") else np.asarray(X).T
    state = np.full(len(X) if hasattr(X, "iloc") else np.shape(X)[0], salt, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for word in map(_words, columns):
            state = (state ^ word) + np.uint64(0x9E3779B97F4A7C15)
            state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            state ^= state >> np.uint64(31)
    return np.asarray((state >> np.uint64(11)).astype(np.float64) * 2.0**-53)


def _words(column: Any) -> Array:
    """64 bits for each entry of a column: its float, or a digest of its text."""
    if getattr(column.dtype, "kind", "O") in "biuf":
        numbers = np.asarray(column, dtype=np.float64) + 0.0  # -0.0 is 0.0
        return np.ascontiguousarray(np.where(np.isnan(numbers), np.nan, numbers)).view(np.uint64)
    pd = required("pandas", "a table of features")

    codes, values = pd.factorize(column)  # -1 where missing
    texts = [str(v).encode() for v in values.tolist()] + [b""]
    digests = [int.from_bytes(blake2b(text, digest_size=8).digest(), "little") for text in texts]
    return np.asarray(np.array(digests, dtype=np.uint64)[codes])
