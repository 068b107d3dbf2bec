"""Columns of records, arrays or pandas, read as groups and as 0/1 values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from forcopt.arrays import Array, as_numbers, check_entries, check_label_order, entries_of, is_missing
from forcopt.errors import DeclarationError, require_shape


def read_groups(values: Any, names: Sequence[str] | None = None) -> tuple[Array, tuple[str, ...]]:
    """Read a column with the group of each record.

    Parameters
    ----------
    values : Any
        One value a record: strings, integers, a pandas column, ...
    names : Sequence[str], optional
        Of the groups, if they are known already. A number or truth value is found by its value: 1, 1.0 and
        True are one name, unless two of the names are. A text is a number only as Python writes it: 10 or
        10.0, not 1E1 or 010. Each record is read by itself.

    Returns
    -------
    tuple[Array, tuple[str, ...]]
        The position of each record's group, shape ``(n,)``, and the names of the groups: `names`, or all
        values that occur, in their own order, as text.

    Raises
    ------
    DeclarationError
        For a missing value, or a group that is not among `names`.

    Examples
    --------
    >>> codes, names = read_groups(["b", "a", "b"])
    >>> codes.tolist(), names
    ([1, 0, 1], ('a', 'b'))
    """
    column = np.asarray(values)
    require_shape(column.ndim == 1, "groups has", column, "be one column")
    given = entries_of(values)
    for at, value in enumerate(given):
        if isinstance(value, dict | list | set):
            raise DeclarationError(f"groups[{at}] is {value!r}; it must be a name or a number")
    if any(map(is_missing, set(given))):
        at = next(i for i, value in enumerate(given) if is_missing(value))
        raise DeclarationError(f"groups[{at}] is missing; every record must belong to a group")
    if column.dtype.kind not in "biu" and names is not None:  # the other records do not matter
        alone = {key: as_texts(key[1:], "groups")[0] for key in {(type(v), v) for v in given}}
        column = np.array([alone[type(value), value] for value in given], dtype=str)
    elif column.dtype.kind not in "biu":  # numbers keep their order, everything else is sorted as text
        column = np.array(as_texts(given, "groups"), dtype=str)
    values_found, codes = np.unique(column, return_inverse=True)
    texts = tuple(str(value) for value in values_found.tolist())
    if names is None:
        return codes, texts
    place = {name: i for i, name in enumerate(names)}
    numbers = [_number(name) for name in names]
    by_number = {v: i for i, v in enumerate(numbers) if v is not None and numbers.count(v) == 1}
    numbered = {text: by_number.get(v) for text in texts if (v := _number(text)) is not None}
    found = [place.get(text, numbered.get(text)) for text in texts]
    for text, position in zip(texts, found, strict=True):
        if position is None:
            raise DeclarationError(f"groups holds {text!r}; the groups are {', '.join(names)}")
    return np.array(found, dtype=np.int64)[codes], tuple(names)


def as_texts(values: Sequence[Any], subject: str) -> list[str]:
    """The entries of a column as text; equal ones, such as 1 and 1.0, as the first of them.

    Raises
    ------
    DeclarationError
        For two values with one text, such as 1 and ``"1"``.

    Examples
    --------
    >>> as_texts(["a", 1, 1.0], "groups")
    ['a', '1', '1']
    """
    texts = {value: str(value) for value in dict.fromkeys(values)}
    first: dict[str, Any] = {}
    for value, text in texts.items():
        if first.setdefault(text, value) != value:
            raise DeclarationError(
                f"{subject} holds {first[text]!r} ({type(first[text]).__name__}) and {value!r} "
                f"({type(value).__name__}), which have one name; make them of one type"
            )
    return [texts[value] for value in values]


def _number(text: str) -> float | None:
    """The number that a name spells as Python writes it, whole ones also without a point."""
    try:
        number = {"False": 0.0, "True": 1.0}[text] if text in ("False", "True") else float(text)
    except ValueError:
        return None
    return number if text in ("False", "True", str(number), f"{number:.0f}") else None


def read_binary(values: Any, subject: str) -> Array:
    """Read a column of 0 and 1, or of truth values, as int64 of shape ``(n,)``.

    Parameters
    ----------
    values : Any
        Numbers or truth values, shape ``(n,)``.
    subject : str
        The name of the column, for messages.

    Returns
    -------
    Array
        0 and 1, int64, shape ``(n,)``.

    Raises
    ------
    DeclarationError
        For any other value, naming the column and the first such entry.

    Examples
    --------
    >>> read_binary([True, False], "labels").tolist()
    [1, 0]
    """
    entries = np.asarray(values)
    given = entries.flat if entries.dtype.kind in "OUT" else ()
    words = sorted({str(v) for v in given if isinstance(v, str)})
    if words:
        listed = ", ".join(map(repr, words[:5])) + (", ..." if len(words) > 5 else "")
        raise DeclarationError(f"{subject} holds {len(words)} texts ({listed}); it must hold numbers 0 and 1")
    column = as_numbers(values, subject)
    require_shape(column.ndim == 1, f"{subject} has", column, "be one column")
    check_entries(column, (column != 0) & (column != 1), subject, "it must be 0 or 1")
    return column.astype(np.int64)


def tabulate(
    predictions: Any, groups: Any, labels: Any, names: Sequence[str] | None = None
) -> tuple[Array, tuple[str, ...]]:
    """Count records by prediction, group and label.

    Parameters
    ----------
    predictions : Any
        0 or 1 for each record.
    groups : Any
        See `read_groups`.
    labels : Any
        0 or 1 for each record.
    names : Sequence[str], optional
        See `read_groups`.

    Returns
    -------
    tuple[Array, tuple[str, ...]]
        Counts, indexed ``[prediction, group, label]``, shape ``(2, K, 2)``, and the names of the groups.

    Raises
    ------
    DeclarationError
        For columns of different length or order of labels, other values, or a missing group.

    Examples
    --------
    >>> counts, names = tabulate([0, 1, 1], ["a", "a", "b"], [0, 0, 1])
    >>> counts[1].tolist(), names
    ([[1, 0], [0, 1]], ('a', 'b'))
    """
    check_label_order("records", {"predictions": predictions, "groups": groups, "labels": labels})
    predicted, actual = read_binary(predictions, "predictions"), read_binary(labels, "labels")
    codes, names = read_groups(groups, names)
    same_length(predictions=predicted, groups=codes, labels=actual)
    counts = np.bincount((predicted * len(names) + codes) * 2 + actual, minlength=4 * len(names))
    return counts.reshape(2, len(names), 2), names


def same_length(**columns: Any) -> None:
    """Check that all columns have one entry for each record."""
    lengths = {name: column.shape[0] for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        given = ", ".join(f"{name} has {n}" for name, n in lengths.items())
        raise DeclarationError(f"the columns differ in length: {given} entries")
    if 0 in lengths.values():
        raise DeclarationError(f"{', '.join(lengths)} are empty; at least one record is needed")
