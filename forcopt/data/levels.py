"""The check of a table's levels: every value that is not declared is named with its rows and the nearest."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from forcopt.errors import DeclarationError, similar

__all__ = ["check_levels", "nearest_level", "refuse_doubles", "unknown_levels"]

_MOST_NAMED = 5
"""Levels, and rows of a level, that an error names."""


def nearest_level(level: str, known: Iterable[str]) -> str:
    """The declared level that is spelled most like another one; empty if none is similar.

    Parameters
    ----------
    level : str
        An unknown level.
    known : Iterable[str]
        The declared ones.

    Returns
    -------
    str
        One of `known`. Spaces around the text and upper case make no difference.

    Examples
    --------
    >>> nearest_level("Nort", ["north", "south"]), nearest_level("x", ["north", "south"])
    ('north', '')
    """
    plain = {name.strip().casefold(): name for name in known}
    near = similar(level.strip().casefold(), list(plain), 1) if level.strip() else []
    return plain[near[0]] if near else ""


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
