"""Labelled records with groups, the result of every loader, their CSV files, and checks of their levels."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from forcopt.arrays import Array, as_numbers
from forcopt.data.intake import nearest_level, read_rows
from forcopt.errors import DeclarationError, unknown

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Dataset:
    """n records of people.

    Attributes
    ----------
    name : str
        Of the data.
    frame : pd.DataFrame
        All columns of the file for these records, index 0 to n - 1.
    features : Array
        To learn from, without group and label; floats of shape ``(n, d)``.
    feature_names : tuple[str, ...]
        Of its d columns.
    labels : Array
        0 or 1, shape ``(n,)``.
    groups : Array
        The name of each record's group, shape ``(n,)``.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from forcopt.data import Dataset
    >>> frame = pd.DataFrame({"score": [1.0, 2.0, 3.0], "town": ["a", "b", "b"]})
    >>> labels, towns = np.array([0, 1, 1]), frame.town.to_numpy()
    >>> d = Dataset("scores", frame, frame[["score"]].to_numpy(), ("score",), labels, towns)
    >>> d.of_groups("b").labels.tolist()
    [1, 1]
    """

    name: str
    frame: pd.DataFrame = field(repr=False)
    features: Array = field(repr=False)
    feature_names: tuple[str, ...]
    labels: Array = field(repr=False)
    groups: Array = field(repr=False)

    def __len__(self) -> int:
        return len(self.labels)

    def of_groups(self, *names: str) -> Dataset:
        """Keep the records of these groups only.

        Raises
        ------
        UnknownNameError
            For a group that no record has.
        """
        known = sorted(set(self.groups.tolist()))
        for name in names:
            if name not in known:
                raise unknown(f"group of {self.name}", name, known)
        keep = np.isin(self.groups, names)
        return replace(
            self,
            frame=self.frame[keep].reset_index(drop=True),
            features=self.features[keep],
            labels=self.labels[keep],
            groups=self.groups[keep],
        )


def read_csv(path: str | Path, **options: Any) -> pd.DataFrame:
    """Read a CSV file whose first row names its columns.

    Parameters
    ----------
    path : str or Path
        The file.
    options : Any
        Of `pandas.read_csv`.

    Returns
    -------
    pd.DataFrame
        With one column for each name; rows are numbered from 0.

    Raises
    ------
    DeclarationError
        For an empty file, or one whose rows have more entries than the first: pandas would take the first
        column for labels, and move all names by one.
    """
    import pandas as pd

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(path, index_col=False, **options)
    except (ValueError, pd.errors.ParserWarning) as error:
        raise DeclarationError(f"{path} is no CSV file with a first row of names: {error}") from None


def read_table(table: Any, subject: str) -> pd.DataFrame:
    """Give a data frame, or read a file as text by `forcopt.data.intake.read_rows`.

    Parameters
    ----------
    table : DataFrame, str or Path
        A frame, or the path of a file.
    subject : str
        What the table is called in errors.

    Returns
    -------
    pd.DataFrame
        The frame itself; or all cells of the file as text, with the names of columns as they stand in it.

    Raises
    ------
    DeclarationError
        For another type, or a file with a fault of form.
    """
    import pandas as pd

    if isinstance(table, pd.DataFrame):
        return table
    return read_rows(table, subject).reset_index(drop=True)


def check_columns(table: pd.DataFrame, names: Iterable[str], subject: str) -> None:
    """Refuse a table that does not have each of some columns once.

    Raises
    ------
    DeclarationError
        Naming the column.

    Examples
    --------
    >>> import pandas as pd
    >>> check_columns(pd.DataFrame([["f", "m"]], columns=["sex", "sex"]), ["sex"], "candidates")
    Traceback (most recent call last):
    ...
    forcopt.errors.DeclarationError: candidates: 2 columns are called 'sex'; there must be one
    """
    columns = list(table.columns)
    for name in names:
        count = columns.count(name)
        if not count:
            known = ", ".join(map(str, columns))
            raise DeclarationError(f"{subject}: there is no column {name!r}; the columns are {known}")
        if count > 1:
            raise DeclarationError(f"{subject}: {count} columns are called {name!r}; there must be one")


def binary_column(frame: pd.DataFrame, column: str, path: str | Path) -> Array:
    """A column of 0 and 1 as integers.

    Raises
    ------
    DeclarationError
        For any other entry, naming the file, the column and the record.
    """
    values = as_numbers(frame[column].to_numpy(), f"{path}: column {column!r}: record")
    wrong = (values != 0) & (values != 1)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise DeclarationError(
            f"{path}: column {column!r}: record[{at}] is {values[at]:g}; it must be 0 or 1"
        )
    return values.astype(np.int64)


_MOST_NAMED = 5
"""Levels, and rows of a level, that an error names."""


def check_levels(
    subject: str,
    values: Sequence[str],
    known: Iterable[str],
    *,
    rows: Sequence[Any] | None = None,
    rule: str = "is no level",
) -> None:
    """Refuse a column with values that are not among the declared levels.

    Parameters
    ----------
    subject : str
        What the column is called in the error.
    values : Sequence[str]
        Its entries.
    known : Iterable[str]
        The declared levels.
    rows : Sequence, optional
        What the rows are called; 0, 1, ... by default.
    rule : str, default "is no level"
        What is wrong with such a value.

    Raises
    ------
    DeclarationError
        With the words of `unknown_levels`, if there are some.

    Examples
    --------
    >>> check_levels("region", ["north", "Nort"], ["north", "south"], rows=["v1", "v2"])
    Traceback (most recent call last):
    ...
    forcopt.errors.DeclarationError: region: 'Nort' (row v2) is no level; did you mean 'north'?
    """
    if words := unknown_levels(subject, values, known, rows, rule):
        raise DeclarationError(words)


def unknown_levels(
    subject: str,
    values: Sequence[str],
    known: Iterable[str],
    rows: Sequence[Any] | None = None,
    rule: str = "is no level",
) -> str:
    """Name each value that is not declared, its rows, and the declared level that is spelled most like it.

    Parameters
    ----------
    subject, values, known, rows, rule
        See `check_levels`.

    Returns
    -------
    str
        Empty if all values are declared.

    Examples
    --------
    >>> unknown_levels("region", ["Nort"], ["north", "south"])
    "region: 'Nort' (row 0) is no level; did you mean 'north'?"
    """
    declared = list(known)
    listed, found = set(declared), dict[str, list[str]]()
    for row, value in zip(range(len(values)) if rows is None else rows, values, strict=True):
        if value not in listed:
            found.setdefault(value, []).append(str(row))
    if not found:
        return ""
    words = []
    for level, where in list(found.items())[:_MOST_NAMED]:
        near = nearest_level(level, declared)
        hint = f"; did you mean {near!r}?" if near else f"; the levels are {', '.join(map(repr, declared))}"
        words.append(f"{level!r} ({_rows(where)}) {rule}{hint}")
    more = f"; and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    return f"{subject}: {'; '.join(words)}{more}"


def refuse_doubles(subject: str, keys: Sequence[Hashable], rows: Sequence[Any] | None = None) -> None:
    """Refuse a key that stands in two rows; the parts of a tuple are shown with a dash between them.

    Raises
    ------
    DeclarationError
        Naming the key and its rows.

    Examples
    --------
    >>> refuse_doubles("names", ["Ann", "Bo", "Ann"])
    Traceback (most recent call last):
    ...
    forcopt.errors.DeclarationError: names: 'Ann' is in rows 0, 2; it must be in one row
    """
    where: dict[Hashable, list[str]] = {}
    for row, key in zip(range(len(keys)) if rows is None else rows, keys, strict=True):
        where.setdefault(key, []).append(str(row))
    for key, found in where.items():
        if len(found) > 1:
            shown = " - ".join(map(str, key)) if isinstance(key, tuple) else key
            raise DeclarationError(f"{subject}: {shown!r} is in {_rows(found)}; it must be in one row")


def _rows(where: list[str]) -> str:
    shown = ", ".join(where[:_MOST_NAMED])
    more = f" and {len(where) - _MOST_NAMED} more" if len(where) > _MOST_NAMED else ""
    return f"row{'s' if len(where) > 1 else ''} {shown}{more}"
