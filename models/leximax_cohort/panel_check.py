"""The two files of a panel: what they hold, and all their faults by row and column."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from forcopt.arrays import is_missing
from forcopt.data.dataset import check_columns, nearest_level, read_table
from forcopt.errors import DeclarationError

if TYPE_CHECKING:
    from pathlib import Path

    from pandas import DataFrame

QUOTA_COLUMNS = ("feature", "value", "min", "max")
"""The columns of a table of quotas."""

_OTHER_NAMES = {"category": "feature", "name": "value", "least": "min", "most": "max"}
"""Names that other programs give them."""

_FLEXIBLE = ("min_flex", "max_flex")
"""Its columns with the ends to which a proposal may relax a quota; it has both or none."""

AS_TEXT: dict[str, Any] = {"dtype": str, "keep_default_na": False}
"""How files are read: 007 and NA are names."""

_FIRST_ROW = 2
"""The number of the first row below the heading, as spreadsheets count."""

_SHOWN = 5
"""So many faults stand in an error."""


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


class PanelFiles:
    """Candidates and quotas as they are read; see `LeximaxCohort.from_candidates`.

    Attributes
    ----------
    found : list[Finding]
        The faults that need no size of the panel.
    idle : list[Finding]
        Quotas of levels that no candidate has, which ask for nobody.
    quotas : list
        Feature, value and numbers of each row of quotas; no numbers if one cell holds none.
    levels : dict[str, tuple[str, ...]]
        The value of each candidate by feature with quotas.
    """

    def __init__(
        self, candidates: Any, quotas: Any, identifier: str | None, household: str | Sequence[str] | None
    ) -> None:
        self.people = people = read_table(candidates, "candidates", **AS_TEXT)
        table = _quota_table(quotas)
        self.address = [household] if isinstance(household, str) else list(household or ())
        ends = ["min", "max", *(_FLEXIBLE if set(_FLEXIBLE) & set(table.columns) else ())]
        self.found = found = _missing_columns("quotas", ["feature", "value", *ends], table)
        self.idle: list[Finding] = []
        self.quotas: list[tuple[str, str, list[float]]] = []
        self.levels: dict[str, tuple[str, ...]] = {}
        if found:
            return
        lines = zip(*(map(level_name, table[c]) for c in ("feature", "value", *ends)), strict=True)
        for row, (feature, value, *texts) in enumerate(lines, _FIRST_ROW):
            wrong = [(end, text) for end, text in zip(ends, texts, strict=True) if not _is_number(text)]
            found += [Finding("quotas", row, *cell, "is no number") for cell in wrong]
            self.quotas.append((feature, value, [] if wrong else list(map(float, texts))))
        keys = [f"{feature} = {value}" if feature and value else "" for feature, value, _ in self.quotas]
        found += _doubles("quotas", "value", keys)
        wanted = {feature: [v for f, v, _ in self.quotas if f == feature] for feature, *_ in self.quotas}
        found += _missing_columns("candidates", filter(None, [identifier, *wanted, *self.address]), people)
        names = people.index if identifier is None else people.get(identifier, ())
        self.names = tuple(map(level_name, names))
        found += _doubles("candidates", identifier or "index", self.names)
        self.levels = {f: tuple(map(level_name, people[f])) for f in wanted if f in people}
        for feature, of_all in self.levels.items():
            for row, value in enumerate(of_all, _FIRST_ROW):
                if not value:
                    rule = "is empty; the feature has quotas"
                    found.append(Finding("candidates", row, feature, value, rule))
                elif value not in wanted[feature]:
                    near = nearest_level(value, wanted[feature])
                    found.append(Finding("candidates", row, feature, value, "has no quota", near))
        for row, (feature, value, numbers) in enumerate(self.quotas, _FIRST_ROW):
            if value and feature in self.levels and value not in self.levels[feature]:
                near = nearest_level(value, self.levels[feature])
                into = self.idle if numbers[:1] == [0.0] else found
                into.append(Finding("quotas", row, "value", value, "is a value of no candidate", near))

    def fields(self) -> dict[str, Any]:
        """The fields of the problem.

        Raises
        ------
        DeclarationError
            With the first faults.

        Warns
        -----
        UserWarning
            For quotas that have no effect.
        """
        if self.found:
            more = f"; and {len(self.found) - _SHOWN} more" if len(self.found) > _SHOWN else ""
            raise DeclarationError("; ".join(map(str, self.found[:_SHOWN])) + more)
        if self.idle:
            words = "; ".join(map(str, self.idle))
            warnings.warn(f"{words}; the least is 0, so that it has no effect", UserWarning, stacklevel=3)
        fields: dict[str, Any] = {"utilities": np.eye(len(self.people)), "groups": self.names}
        fields |= {"features": self.levels, "quotas": {}, "flexible": {}}
        for feature, value, numbers in self.quotas:
            for field, pair in (("quotas", numbers[:2]), ("flexible", numbers[2:])):
                if pair:
                    fields[field].setdefault(feature, {})[value] = tuple(pair)
        if self.address:
            parts = zip(*(map(level_name, self.people[column]) for column in self.address), strict=True)
            fields["households"] = tuple("\n".join(lines).strip().casefold() for lines in parts)
        return fields


def level_name(value: Any) -> str:
    """A candidate's level as text; empty if it is missing."""
    return "" if is_missing(value) else str(value).strip()


def _is_number(text: str) -> bool:
    try:
        return float(text) == float(text)
    except ValueError:
        return False


def _quota_table(quotas: Any) -> DataFrame:
    """The table of quotas, of a mapping too, with our names of its columns."""
    from pandas import DataFrame

    if isinstance(quotas, Mapping):
        try:
            listed = [
                (feature, value, float(low), float(high))
                for feature, levels in quotas.items()
                for value, (low, high) in levels.items()
            ]
        except (AttributeError, TypeError, ValueError) as error:
            raise DeclarationError(
                f"quotas must give a least and a greatest number by value, by feature: {error}"
            ) from None
        return DataFrame(listed, columns=list(QUOTA_COLUMNS))
    return quota_columns(read_table(quotas, "quotas", **AS_TEXT))


def quota_columns(table: DataFrame) -> DataFrame:
    """Give the columns of a table of quotas our names, where it has those of another program."""
    if {"category", "feature"} <= set(table.columns) and not {"value", "name"} & set(table.columns):
        return table.rename(columns={"category": "feature", "feature": "value"})  # Panelot's names
    return table.rename(columns={old: new for old, new in _OTHER_NAMES.items() if new not in table.columns})


def panel_findings(
    candidates: DataFrame | str | Path,
    quotas: DataFrame | str | Path,
    size: int,
    *,
    identifier: str | None = None,
    household: str | Sequence[str] | None = None,
) -> list[Finding]:
    """Find all faults of the files of a panel; `LeximaxCohort.from_candidates` refuses most of them.

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
    quotas, row 3, column value: 'male' is a value of no candidate; did you mean 'mael'?
    quotas, row 3, column min: '1' is more than the 0 candidates with this value; did you mean '0'?
    """
    files = PanelFiles(candidates, quotas, identifier, household)
    return files.found + _wrong_numbers(files, size)


def _missing_columns(file: str, names: Iterable[str], table: DataFrame) -> list[Finding]:
    """The names that are no columns; columns that stand twice are refused."""
    others, asked = [str(column) for column in table.columns], dict.fromkeys(names)
    check_columns(table, [name for name in asked if name in table.columns], file)
    return [
        Finding(file, _FIRST_ROW - 1, name, name, "is a column that is missing", nearest_level(name, others))
        for name in asked
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


def _wrong_numbers(files: PanelFiles, size: int) -> list[Finding]:
    """Quotas that are no whole numbers, cross, or ask for more than the pool or the panel has."""
    found, ends = list[Finding](), dict[str, list[tuple[int, int, int]]]()
    present = {feature: Counter(of_all) for feature, of_all in files.levels.items()}
    for row, (feature, value, numbers) in enumerate(files.quotas, _FIRST_ROW):
        wrong = [(end, n) for end, n in zip(("min", "max"), numbers, strict=False) if n < 0 or n % 1]
        found += [
            Finding("quotas", row, end, f"{number:g}", "is no whole number of at least 0")
            for end, number in wrong
        ]
        if wrong or not numbers:
            continue
        least, most = map(int, numbers[:2])
        ends.setdefault(feature, []).append((least, most, row))
        if least > most:
            found.append(Finding("quotas", row, "min", str(least), f"is more than max, {most}", str(most)))
        if feature in present and least > present[feature][value]:
            many = present[feature][value]
            rule = f"is more than the {many} candidates with this value"
            found.append(Finding("quotas", row, "min", str(least), rule, str(many)))
    for feature, rows in ends.items():
        least, most, _ = map(sum, zip(*rows, strict=True))
        row = rows[0][2]
        if least > size:
            rule = f"is the sum of the least numbers of {feature!r}, more than the {size} seats"
            found.append(Finding("quotas", row, "min", str(least), rule, str(size)))
        if most < size:
            rule = f"is the sum of the greatest numbers of {feature!r}, fewer than the {size} seats"
            found.append(Finding("quotas", row, "max", str(most), rule, str(size)))
    return found
