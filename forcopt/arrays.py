"""Array types and checks of numerical input: the ground floor, on which every other part stands."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from fractions import Fraction
from itertools import combinations
from math import ceil, floor, isfinite, log10
from numbers import Real
from typing import Any, Literal, NoReturn, TypeVar

import numpy as np

from forcopt.errors import DeclarationError, check_choice, require

Array = np.ndarray[Any, np.dtype[Any]]

Key = TypeVar("Key")
Value = TypeVar("Value")

Seed = int | np.random.Generator | None
"""The seed of everything random: a run repeats with an equal one; None draws anew."""


class FrozenArrays:
    """A base of frozen dataclasses, such as decisions: those fields that are arrays become read-only.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Pair(FrozenArrays):
    ...     values: Array
    >>> Pair(np.array([1, 2])).values.flags.writeable
    False
    """

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False


def is_missing(value: Any) -> bool:
    """Whether a value of a column is missing: None, NaN, or a missing value of pandas."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def entries_of(column: Any) -> list[Any]:
    """The entries of a column as groups and classes are named by them.

    A date is a datetime, whatever its unit, a short float is the number that it prints as, and bytes are
    text: an array and a list of its entries then have the same names.

    Examples
    --------
    >>> entries_of(np.array([0.1, 0.5], dtype=np.float32)), entries_of(["a", 1])
    ([0.1, 0.5], ['a', 1])
    >>> [str(day) for day in entries_of(np.array(["2020-01-01"], dtype="datetime64[D]"))]
    ['2020-01-01 00:00:00']
    """
    given = np.asarray(column)
    if given.dtype.kind == "M":
        column = given.astype("datetime64[us]")
    elif given.dtype.kind == "f" and given.itemsize < 8:
        column = given.astype(str).astype(float)
    # in a list of words numpy makes text of NaN
    entries = np.asarray(column, dtype=object).tolist() if hasattr(column, "dtype") else list(column)
    return [v.decode(errors="backslashreplace") if isinstance(v, bytes) else v for v in entries]


def columns_of(table: Any) -> list[list[Any]]:
    """The entries of each column of a frame or an array, see `entries_of`."""
    if hasattr(table, "iloc"):
        return [entries_of(table.iloc[:, j]) for j in range(table.shape[1])]
    return [*map(entries_of, np.asarray(table, dtype=None if hasattr(table, "dtype") else object).T)]


def refuse_missing(table: Any, name: Any, subject: str = "") -> None:
    """Refuse a column of a data frame that misses a value; the subject comes before the message."""
    missing = np.asarray(table[name].isna())
    if missing.any():
        raise DeclarationError(
            f"{subject}column {name!r} misses a value in row {int(np.argmax(missing))}; rows with missing "
            "values must be dropped or filled before"
        )


def describe_entry(shape: tuple[int, ...], flat: int) -> str:
    """Name an entry of an array for a message: ``[1, 2]``, or nothing for a scalar."""
    return f"[{', '.join(str(int(i)) for i in np.unravel_index(flat, shape))}]" if shape else ""


def as_numbers(data: Any, subject: str, *, infinite: bool = False) -> Array:
    """Read numbers into a fresh float array that the caller cannot change behind our back.

    Parameters
    ----------
    data : Any
        Anything numpy reads as an array of numbers.
    subject : str
        The name of the array in an error.
    infinite : bool, default False
        Whether infinite entries are allowed.

    Raises
    ------
    DeclarationError
        For entries that are not numbers, NaN, or infinite, naming the first such entry.
    """
    if isinstance(data, Mapping):
        raise DeclarationError(
            f"{subject} must be numbers in order, not a mapping; pass its values, or a pandas Series"
        )
    try:
        given = np.asarray(data)
        check_real(given.dtype, subject)
        if given.dtype == object and any(isinstance(entry, str | bytes) for entry in given.flat):
            raise DeclarationError(f"{subject} must be numbers, not strings")
        values = np.array(given, dtype=float)
    except DeclarationError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        hint = "; fo.stack makes one expression of several" if _holds_expressions(data) else ""
        raise DeclarationError(f"{subject} must be numbers: {error}{hint}") from None
    # min and max are NaN or infinite exactly if an entry is; they allocate nothing.
    if values.size and not (np.isfinite(values.min()) and np.isfinite(values.max())):
        bad = np.isnan(values) if infinite else ~np.isfinite(values)
        if bad.any():
            first = int(np.argmax(bad))
            rule = "a number" if infinite else "finite"
            refuse_entry(values.shape, first, values.flat[first], subject, rule)
    return values


def refuse_entry(shape: tuple[int, ...], flat: int, value: float, subject: str, rule: str) -> NoReturn:
    """Refuse one entry of an array.

    Raises
    ------
    DeclarationError
        Always; it names the entry, its value and the rule.
    """
    raise DeclarationError(f"{subject}{describe_entry(shape, flat)} is {value}; it must be {rule}")


def check_entries(values: Array, wrong: Array, subject: str, rule: str) -> None:
    """Refuse an array with wrong entries.

    Parameters
    ----------
    values : Array
        Any shape.
    wrong : Array
        Which entries are wrong, of the same shape.
    subject, rule : str
        The name of the array, and what all its entries obey, as a sentence.

    Raises
    ------
    DeclarationError
        If an entry is wrong; it names the first, its value and the rule.
    """
    if wrong.any():
        at = int(np.argmax(wrong))
        raise DeclarationError(f"{subject}{describe_entry(values.shape, at)} is {values.flat[at]:g}; {rule}")


def whole_number(value: Any, name: str, least: int | None = None) -> int:
    """Read a whole number.

    Parameters
    ----------
    value : Any
        A number, of any type.
    name : str
        The field, for the message.
    least : int, optional
        The least that it may be.

    Returns
    -------
    int
        The same number.

    Raises
    ------
    DeclarationError
        For a fraction or a smaller number; the message has the name and the value.

    Examples
    --------
    >>> whole_number(3.0, "size")
    3
    """
    number = not isinstance(value, bool) and isinstance(value, Real) and isfinite(value)
    bound = "" if least is None else f", at least {least}"
    fits = number and value == int(value) and (least is None or value >= least)
    require(fits, name, value, f"be a whole number{bound}")
    return int(value)


def least_whole(holds: Callable[[int], Any], low: int, high: int) -> int:
    """Give the least number from `low` on for which a rule holds that fails at first, by bisection.

    Parameters
    ----------
    holds : Callable[[int], Any]
        The rule; where it holds, it holds for all larger numbers.
    low, high : int
        Where to look: from `low` to ``high - 1``.

    Returns
    -------
    int
        The number; `high` if the rule holds for none.

    Examples
    --------
    >>> least_whole(lambda n: n * n >= 50, 1, 100)
    8
    """
    return low + bisect_left(range(low, high), True, key=holds)


def generator(seed: Seed) -> np.random.Generator:
    """Give the generator of a seed.

    Parameters
    ----------
    seed : int or numpy.random.Generator, optional
        A generator is given back as it is; without a seed, a new one.

    Returns
    -------
    numpy.random.Generator

    Raises
    ------
    DeclarationError
        For another value.

    Examples
    --------
    >>> generator(3).random() == generator(3).random()
    True
    """
    whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool) and seed >= 0
    fits = whole or seed is None or isinstance(seed, np.random.Generator)
    require(fits, "seed", seed, "be a whole number, at least 0, or a numpy.random.Generator")
    return np.random.default_rng(seed)


def one_seed(seed: Seed, rng: Seed) -> Seed:
    """Give the seed of an option with two names.

    Raises
    ------
    DeclarationError
        If both are given, or for a value that is no seed.

    Examples
    --------
    >>> one_seed(None, 3), one_seed(0, None)
    (3, 0)
    """
    if seed is not None and rng is not None:
        raise DeclarationError(f"seed is {seed!r} and rng is {rng!r}; they are one option: give one")
    found = rng if seed is None else seed
    generator(found)
    return found


def spread(values: Array, shape: tuple[int, ...], subject: str) -> Array:
    """Broadcast an array to a shape.

    Raises
    ------
    DeclarationError
        Naming the array and both shapes.
    """
    try:
        return np.broadcast_to(values, shape)
    except ValueError:
        raise DeclarationError(
            f"{subject} has shape {values.shape}, which does not broadcast to {shape}"
        ) from None


def check_shape(values: Array, shape: tuple[int, ...], subject: str) -> None:
    """Refuse an array of another shape.

    Raises
    ------
    DeclarationError
        Naming the array, its shape and the right one.
    """
    require(values.shape == shape, f"{subject}: the shape", values.shape, f"be {shape}")


def rounded_up(value: float) -> float:
    """Round a positive number up to six significant digits, so that a printed limit is sufficient.

    Examples
    --------
    >>> rounded_up(1 / 3), rounded_up(2.0), rounded_up(0.1 + 0.2)
    (0.333334, 2.0, 0.3)
    """
    digits = 5 - floor(log10(value))
    rounding = 1e-4  # of the last digit: the noise of floating-point numbers is not rounded up
    return round(ceil(value * 10.0**digits - rounding) / 10.0**digits, digits)


def check_real(dtype: np.dtype[Any], subject: str) -> None:
    """Refuse an array type that holds no real numbers.

    Raises
    ------
    DeclarationError
        Naming `subject` and the type.
    """
    if dtype.kind not in "biufO":
        raise DeclarationError(f"{subject} must be numbers, not {dtype}")


def _holds_expressions(data: Any) -> bool:
    return isinstance(data, list | tuple | np.ndarray) and any(hasattr(part, "linear_rows") for part in data)


def check_label_order(subject: str, columns: Mapping[str, Any]) -> None:
    """Refuse two columns with the same labels in another order, or with a part of them: both go by position.

    The labels of a series or frame are its index, also within a mapping, and those of a class of classifiers
    are of the frame that it was made from; those of a field ``names``, or ``..._names``, are its entries as
    text. A part counts if it holds text: numbers may stand for positions.

    Parameters
    ----------
    subject : str
        The declaration or function that takes the columns, for the message.
    columns : Mapping[str, Any]
        Anything by name; other values pass.

    Raises
    ------
    DeclarationError
        Naming the two columns.
    """
    flat: dict[str, Any] = {}
    for name, value in columns.items():
        own = {name: getattr(value, "_labelled", value)}
        flat |= {f"{name}.{key}": part for key, part in value.items()} if isinstance(value, Mapping) else own
    indices = [(name, column.index) for name, column in flat.items() if hasattr(column, "iloc")]
    for (name, index), (other, order) in combinations(indices, 2):
        if len(index) == len(order) and not index.equals(order):
            _refuse_part(subject, name, list(index), other, list(order))
            if set(index) == set(order):
                raise DeclarationError(
                    f"{subject}: {other} has the labels of {name} in another order; reorder them by "
                    f"{other}.loc[{name}.index], or pass .to_numpy() to go by position"
                )
    for name in (n for n in columns if n == "names" or n.endswith("_names")):
        if isinstance(columns[name], str) or not np.iterable(columns[name]):
            continue
        asked = list(map(str, columns[name]))
        for other, index in indices:
            found = list(map(str, index))
            if other == name or len(found) != len(asked) or found == asked:
                continue
            _refuse_part(subject, name, asked, other, list(index))
            if sorted(found) == sorted(asked):
                raise DeclarationError(
                    f"{subject}: {other} has the labels {found[0]!r}, ... in another order than {name}; "
                    f"reorder {name}, or pass .to_numpy() to go by position"
                )


def _refuse_part(subject: str, name: str, labels: list[Any], other: str, order: list[Any]) -> None:
    """Refuse labels of which only a part, with some text, are those of another column."""
    known = set(labels)
    strange = [label for label in order if label not in known]
    if strange and any(isinstance(label, str) for label in known.intersection(order)):
        raise DeclarationError(
            f"{subject}: {other} has the label {strange[0]!r}, which {name} lacks; give both the same "
            "labels, or pass .to_numpy() to go by position"
        )


def plain(value: Any) -> Any:
    """Convert any value for JSON: arrays to lists, objects to their fields, others to text."""
    if hasattr(value, "to_dict"):
        return plain(value.to_dict())
    if hasattr(value, "tolist"):  # numpy's arrays and scalars
        return plain(value.tolist())
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, str):
        return str(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else None
    return [plain(v) for v in value] if isinstance(value, Iterable) else str(value)


def lists_by_key(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """Collect the values of each key, in the order of the pairs.

    Examples
    --------
    >>> lists_by_key([("a", 1), ("b", 2), ("a", 3)])
    {'a': [1, 3], 'b': [2]}
    """
    found: dict[Key, list[Value]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def labels_of(*columns: Any) -> tuple[str, ...]:
    """Give the labels of the first series or frame as text; empty if none has labels of its own.

    Labels 0, 1, ... stand for positions; labels that occur twice name nothing.
    """
    for index in (column.index for column in columns if hasattr(column, "iloc")):
        labels = tuple(map(str, index))
        if list(index) != list(range(len(labels))) and len(set(labels)) == len(labels):
            return labels
    return ()


def by_label(data: Any, names: Sequence[str], subject: str) -> Any:
    """Give the values of a mapping or series in the order of names; other data pass unchanged.

    Parameters
    ----------
    data : Any
        A mapping or series with one value for each name, by its label as text; or a series with the labels
        0, 1, ..., or anything without labels, by position.
    names : Sequence[str]
        The names.
    subject : str
        The data, for the message.

    Raises
    ------
    DeclarationError
        Naming a label that is no name, or a name without a value.

    Examples
    --------
    >>> by_label({"south": 2, "north": 1}, ["north", "south"], "the sizes")
    [1, 2]
    """
    if not (isinstance(data, Mapping) or (hasattr(data, "iloc") and data.ndim == 1)):
        return data
    values = [(str(label), value) for label, value in data.items()]
    labels = [label for label, _ in values]
    if sorted(labels) == sorted(names):
        found = dict(values)
        return [found[name] for name in names]
    if not isinstance(data, Mapping) and not labels_of(data) and len(set(labels)) == len(labels):
        return data
    strange = next((label for label in labels if label not in names or labels.count(label) > 1), None)
    lacking = next((name for name in names if name not in labels), None)
    fault = f"have no value for {lacking!r}" if strange is None else f"are labelled {strange!r}"
    raise DeclarationError(
        f"{subject} {fault}; they must have one value for each of {', '.join(map(repr, names[:5]))}"
        f"{', ...' if len(names) > 5 else ''}"
    )


def as_bounds(lower: Any, upper: Any, subject: str) -> tuple[Array, Array]:
    """Read lower and upper bounds, which may be infinite, but not on the wrong side.

    Raises
    ------
    DeclarationError
        Naming the bound and its entry; see `as_numbers`.
    """
    low = as_numbers(lower, f"{subject}lower", infinite=True)
    high = as_numbers(upper, f"{subject}upper", infinite=True)
    for which, values, wrong in (("lower", low, np.inf), ("upper", high, -np.inf)):
        if (values == wrong).any():
            first = int(np.argmax(values == wrong))
            refuse_entry(values.shape, first, wrong, subject + which, f"a number or {-wrong}")
    return low, high


def check_order(lower: Array, upper: Array, shape: tuple[int, ...], subject: str) -> None:
    """Check that no lower bound is above its upper bound; both must broadcast to the shape.

    Raises
    ------
    DeclarationError
        Naming the first entry where one is.
    """
    if (lower > upper).any():
        low, high = np.broadcast_to(lower, shape), np.broadcast_to(upper, shape)
        at = int(np.argmax(low > high))
        entry = describe_entry(shape, at)
        raise DeclarationError(f"{subject}{entry}: lower {low.flat[at]:g} is above upper {high.flat[at]:g}")


def as_fraction(
    value: Any, reading: Literal["exact", "decimal", "simplest", "nearest"] = "exact", largest: int = 10**7
) -> Fraction:
    """Read a number as a fraction.

    Parameters
    ----------
    value : float, int, str or Fraction
        Finite.
    reading : {"exact", "decimal", "simplest", "nearest"}, default "exact"
        ``exact``: the rational number that a float is. ``decimal``: the decimal number that it prints as.
        ``simplest``: a fraction of small denominator that rounds to the float, if there is one, else exact.
        ``nearest``: the nearest fraction, which may round to another float.
    largest : int, default 10**7
        The largest denominator of ``simplest`` (a power of ten) and ``nearest``.

    Raises
    ------
    ValueError, OverflowError
        If the value is not finite.

    Examples
    --------
    >>> as_fraction(0.5), as_fraction(0.2, "decimal"), as_fraction(2 / 3, "simplest")
    (Fraction(1, 2), Fraction(1, 5), Fraction(2, 3))
    >>> as_fraction(0.1 + 0.2, "nearest", 10**9), as_fraction(0.1 + 0.2, "decimal")
    (Fraction(3, 10), Fraction(7500000000000001, 25000000000000000))
    """
    check_choice("reading", reading, "exact", "decimal", "simplest", "nearest")
    if reading == "decimal":
        return Fraction(str(value))
    exact = Fraction(value)
    if reading == "nearest":
        return exact.limit_denominator(largest)
    denominator = 10
    while reading == "simplest" and denominator <= largest:
        near = exact.limit_denominator(denominator)
        if float(near) == value:
            return near
        denominator *= 10
    return exact


def broadcast_shapes(shapes: Sequence[tuple[int, ...]], subject: str) -> tuple[int, ...]:
    """The shape that all broadcast to.

    Raises
    ------
    DeclarationError
        Showing all shapes, after `subject` needs them.
    """
    if len(set(shapes)) == 1:
        return shapes[0]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        listed = " and ".join(map(str, shapes))
        raise DeclarationError(f"{subject}: shapes {listed} do not broadcast") from None
