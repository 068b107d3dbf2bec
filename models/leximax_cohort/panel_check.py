"""All faults of a panel's two files, by row and column, with the nearest right value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from forcopt.data.dataset import nearest_level, read_table
from forcopt.models.leximax_cohort.panel import AS_TEXT, QUOTA_COLUMNS, level_name, quota_columns

if TYPE_CHECKING:
    from pathlib import Path

    from pandas import DataFrame

_FIRST_ROW = 2
"""The number of the first row below the heading, as spreadsheets count."""


class Finding(NamedTuple):
    """A fault of a file.

    Attributes
    ----------
    file : str
        ``"candidates"`` or ``"quotas"``.
    row : int
        As spreadsheets count: the heading is row 1.
    column, value : str
        The cell and what it holds.
    rule : str
        What is wrong with it.
    nearest : str
        The right value that is spelled most like it, or the number that would be right; else empty.
    """

    file: str
    row: int
    column: str
    value: str
    rule: str
    nearest: str = ""

    def __str__(self) -> str:
        near = f"; did you mean {self.nearest!r}?" if self.nearest else ""
        return f"{self.file}, row {self.row}, column {self.column}: {self.value!r} {self.rule}{near}"


def panel_findings(
    candidates: DataFrame | str | Path,
    quotas: DataFrame | str | Path,
    size: int,
    *,
    identifier: str | None = None,
    household: str | Sequence[str] | None = None,
) -> list[Finding]:
    """Find all faults of the files of a panel, of which `LeximaxCohort.from_candidates` names the first kind.

    Parameters
    ----------
    candidates, quotas, identifier, household
        See `LeximaxCohort.from_candidates`.
    size : int
        Of the panel.

    Returns
    -------
    list[Finding]
        Empty if every cell is right by itself, and the quotas of each feature leave room for the size. Quotas
        of several features may still contradict each other; see `LeximaxCohort.infeasibility_reason`.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"name": ["Ann", "Bo", "Ann"], "sex": ["f", "mael", "f"]})
    >>> quotas = pd.DataFrame([("sex", "f", 1, 1), ("sex", "male", 1, 1)])
    >>> for finding in panel_findings(people, quotas.set_axis(["feature", "value", "min", "max"], axis=1), 2,
    ...                               identifier="name"):
    ...     print(finding)
    candidates, row 4, column name: 'Ann' is in row 2, too
    candidates, row 3, column sex: 'mael' has no quota; did you mean 'male'?
    quotas, row 3, column min: '1' is more than the 0 candidates with this value; did you mean '0'?
    """
    people = read_table(candidates, "candidates", **AS_TEXT)
    table = quota_columns(read_table(quotas, "quotas", **AS_TEXT))
    address = [household] if isinstance(household, str) else list(household or ())
    found = _missing_columns("quotas", QUOTA_COLUMNS, table)
    if found:
        return found
    wanted: dict[str, list[str]] = {}
    for feature, value in zip(map(level_name, table.feature), map(level_name, table.value), strict=True):
        wanted.setdefault(feature, []).append(value)
    found += _missing_columns("candidates", filter(None, [identifier, *wanted, *address]), people)
    if identifier in people.columns:
        found += _doubles("candidates", str(identifier), map(level_name, people[identifier]))
    present = {feature: Counter(map(level_name, people[feature])) for feature in wanted if feature in people}
    for feature in present:
        for row, value in enumerate(map(level_name, people[feature]), _FIRST_ROW):
            if not value:
                found.append(Finding("candidates", row, feature, value, "is empty; the feature has quotas"))
            elif value not in wanted[feature]:
                near = nearest_level(value, wanted[feature])
                found.append(Finding("candidates", row, feature, value, "has no quota", near))
    pairs = zip(map(level_name, table.feature), map(level_name, table.value), strict=True)
    keys = [f"{feature} = {value}" if feature and value else "" for feature, value in pairs]
    return found + _doubles("quotas", "value", keys) + _wrong_numbers(table, present, size)


def _missing_columns(file: str, names: Iterable[str], table: DataFrame) -> list[Finding]:
    others = [str(column) for column in table.columns]
    return [
        Finding(file, _FIRST_ROW - 1, name, name, "is a column that is missing", nearest_level(name, others))
        for name in dict.fromkeys(names)
        if name not in table.columns
    ]


def _doubles(file: str, column: str, keys: Iterable[str]) -> list[Finding]:
    found, first = list[Finding](), dict[str, int]()
    for row, key in enumerate(keys, _FIRST_ROW):
        if not key:
            found.append(Finding(file, row, column, key, "is empty"))
        elif key in first:
            found.append(Finding(file, row, column, key, f"is in row {first[key]}, too"))
        first.setdefault(key, row)
    return found


def _wrong_numbers(table: DataFrame, present: dict[str, Counter[str]], size: int) -> list[Finding]:
    """Quotas that are no whole numbers, cross, or ask for more than the pool or the panel has."""
    found, ends = list[Finding](), dict[str, list[tuple[int, int]]]()
    for row, line in enumerate(table.itertuples(index=False), _FIRST_ROW):
        feature, value = level_name(line.feature), level_name(line.value)
        texts = {end: level_name(getattr(line, end)) for end in ("min", "max")}
        wrong = {end: text for end, text in texts.items() if not text.removesuffix(".0").isdecimal()}
        found += [
            Finding("quotas", row, end, text, "is no whole number of at least 0")
            for end, text in wrong.items()
        ]
        if wrong:
            continue
        least, most = (int(float(text)) for text in texts.values())
        ends.setdefault(feature, []).append((least, most))
        if least > most:
            found.append(Finding("quotas", row, "min", str(least), f"is more than max, {most}", str(most)))
        if feature in present and least > present[feature][value]:
            many = present[feature][value]
            rule = f"is more than the {many} candidates with this value"
            near = nearest_level(value, present[feature]) if not many else ""
            found.append(Finding("quotas", row, "min", str(least), rule, str(many)))
            if near:
                found.append(Finding("quotas", row, "value", value, "is a value of no candidate", near))
    for feature, pairs in ends.items():
        least, most = (sum(side) for side in zip(*pairs, strict=True))
        row = _FIRST_ROW + [level_name(name) for name in table.feature].index(feature)
        if least > size:
            rule = f"is the sum of the least numbers of {feature!r}, more than the {size} seats"
            found.append(Finding("quotas", row, "min", str(least), rule, str(size)))
        if most < size:
            rule = f"is the sum of the greatest numbers of {feature!r}, fewer than the {size} seats"
            found.append(Finding("quotas", row, "max", str(most), rule, str(size)))
    return found
