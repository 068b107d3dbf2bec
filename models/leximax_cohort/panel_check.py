"""All faults of a panel's two files, by row and column, with the nearest right value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from forcopt.data.intake import (
    Expected,
    Finding,
    Findings,
    Fixes,
    check_table,
    is_number,
    nearest_level,
    read_rows,
)
from forcopt.models.leximax_cohort.panel import QUOTA_COLUMNS, quota_columns

if TYPE_CHECKING:
    from pathlib import Path

    from pandas import DataFrame


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
    candidates, row 4, column name: 'Ann' is in row 2, too; delete one, or rename it
    candidates, row 3, column sex: 'mael' has no quota; did you mean 'male'?
    quotas, row 3, column min: '1' is more than the 0 candidates with this value; did you mean '0'?
    quotas, row 3, column value: 'male' is a value of no candidate; did you mean 'mael'?
    """
    return panel_intake(candidates, quotas, size, identifier=identifier, household=household)[2].faults


def panel_intake(
    candidates: Any,
    quotas: Any,
    size: int,
    *,
    identifier: str | None = None,
    household: str | Sequence[str] | None = None,
    fixes: Fixes | None = None,
    encoding: str | None = None,
) -> tuple[DataFrame, DataFrame, Findings]:
    """Read both files as text, after the stated fixes, with everything that was found in them.

    Parameters
    ----------
    candidates, quotas, size, identifier, household
        See `panel_findings`.
    fixes : mapping, optional
        Of the candidates, see `forcopt.data.intake.Fixes`.
    encoding : str, optional
        Of both files, see `forcopt.data.read_rows`.

    Returns
    -------
    tuple[DataFrame, DataFrame, Findings]
        The candidates, the quotas, and faults and notes.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"name": ["Ann", "Bo"], "sex": ["f", "mael"]})
    >>> quotas = pd.DataFrame([("sex", "f", 1, 1), ("sex", "m", 1, 1)])
    >>> quotas.columns = ["feature", "value", "min", "max"]
    >>> pool, table, found = panel_intake(people, quotas, 2, identifier="name", fixes={"mael": "m"})
    >>> pool.sex.tolist(), len(found.faults)
    (['f', 'm'], 0)
    """
    found = Findings()
    table = quota_columns(read_rows(quotas, "quotas", found, encoding))
    columns = {"feature": Expected("text"), "value": Expected("text"), "min": _SEATS, "max": _SEATS}
    table, _ = check_table(table, "quotas", columns, findings=found)
    if not set(QUOTA_COLUMNS) <= set(table.columns):
        return table, table, found
    wanted: dict[str, list[str]] = {}
    for feature, value in zip(table.feature, table.value, strict=True):
        wanted.setdefault(feature, []).append(value)
    schema = {
        feature: Expected("group", tuple(levels), rule="has no quota")
        for feature, levels in wanted.items()
        if feature
    }
    address = [household] if isinstance(household, str) else list(household or ())
    schema |= dict.fromkeys(address, Expected("unit", blank=True))
    if identifier is not None:
        schema = {identifier: Expected("key"), **schema}
    people, _ = check_table(candidates, "candidates", schema, fixes=fixes, findings=found, encoding=encoding)
    present = {feature: Counter(people[feature]) for feature in wanted if feature in people.columns}
    first: dict[str, int] = {}
    for row, feature, value in zip(table.index, table.feature, table.value, strict=True):
        key = f"{feature} = {value}"
        if key in first:
            found.fault("quotas", row, "value", key, f"is in row {first[key]}, too; delete one")
        first.setdefault(key, row)
    for into, findings in zip((found.faults, found.notes), _wrong_numbers(table, present, size), strict=True):
        into += findings
    return people.reset_index(drop=True), table, found


_SEATS = Expected("count")


def _wrong_numbers(
    table: DataFrame, present: dict[str, Counter[str]], size: int
) -> tuple[list[Finding], list[Finding]]:
    """Quotas that are no whole numbers, cross, or ask for more than the pool or the panel has."""
    found, notes, ends = list[Finding](), list[Finding](), dict[str, list[tuple[int, int]]]()
    for row, line in zip(table.index.tolist(), table.to_dict("records"), strict=True):
        feature, value, *texts = (line[name] for name in QUOTA_COLUMNS)
        if not all(is_number(text) for text in texts):
            continue
        least, most = (int(float(text)) for text in texts)
        ends.setdefault(feature, []).append((least, most))
        if least > most:
            found.append(Finding("quotas", row, "min", str(least), f"is more than max, {most}", str(most)))
        if most > size:
            notes.append(
                Finding("quotas", row, "max", str(most), f"is more than the {size} seats", str(size))
            )
        if feature in present and least > present[feature][value]:
            many = present[feature][value]
            rule = f"is more than the {many} candidates with this value"
            near = nearest_level(value, present[feature]) if not many else ""
            found.append(Finding("quotas", row, "min", str(least), rule, str(many)))
            if near:
                found.append(Finding("quotas", row, "value", value, "is a value of no candidate", near))
    for feature, pairs in ends.items():
        least, most = (sum(side) for side in zip(*pairs, strict=True))
        row = int(table.index[table.feature.tolist().index(feature)])
        if least > size:
            rule = f"is the sum of the least numbers of {feature!r}, more than the {size} seats"
            found.append(Finding("quotas", row, "min", str(least), rule, str(size)))
        if most < size:
            rule = f"is the sum of the greatest numbers of {feature!r}, fewer than the {size} seats"
            found.append(Finding("quotas", row, "max", str(most), rule, str(size)))
    return found, notes
