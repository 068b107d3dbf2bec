"""Both files of a panel: read, checked by row and column, and made the fields of a problem."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import ceil, floor
from typing import TYPE_CHECKING, Any

import numpy as np

from forcopt.data import intake
from forcopt.errors import DeclarationError, required

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

QUOTA_COLUMNS = ("feature", "value", "min", "max")
"""The columns of a table of quotas."""

_OTHER_NAMES = {"category": "feature", "name": "value", "least": "min", "most": "max"}
"""Names that other programs give them."""

_FLEXIBLE = ("min_flex", "max_flex")
"""Its columns with the ends to which a proposal may relax a quota; it has both or none."""

_SEATS = intake.Expected("count", usual=False)


def panel_findings(
    candidates: pd.DataFrame | str | Path,
    quotas: pd.DataFrame | str | Path,
    size: int,
    *,
    identifier: str | None = None,
    household: str | Sequence[str] | None = None,
) -> list[intake.Finding]:
    """Find all faults of the files of a panel.

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
    quotas, row 3, column value: 'male' is a value of no candidate, but min is 1; did you mean 'mael'?
    """
    return panel_intake(candidates, quotas, size, identifier=identifier, household=household)[1].faults


def panel_intake(
    candidates: Any,
    quotas: Any,
    size: int | None = None,
    *,
    identifier: str | None = None,
    household: str | Sequence[str] | None = None,
    fixes: intake.Fixes | None = None,
    encoding: str | None = None,
) -> tuple[dict[str, Any], intake.Findings]:
    """Read the fields of a panel from both files, with everything that was found in them.

    Parameters
    ----------
    candidates, quotas, identifier, household
        See `LeximaxCohort.from_candidates`.
    size : int, optional
        Of the panel; without it nobody looks whether quotas leave room for it, and are met by the pool.
    fixes : mapping, optional
        Of whichever file has the value or column, see `forcopt.data.intake.Fixes`.
    encoding : str, optional
        Of both files, see `forcopt.data.read_rows`.

    Returns
    -------
    tuple[dict, Findings]
        The fields of `LeximaxCohort` but for the size, empty if there are faults; and faults and notes.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"name": ["Ann", "Bo"], "sex": ["f", "mael"]})
    >>> quotas = {"sex": {"f": (1, 1), "m": (1, 1)}}
    >>> fields, found = panel_intake(people, quotas, 2, identifier="name", fixes={"mael": "m"})
    >>> fields["groups"], fields["features"], len(found.faults)
    (('Ann', 'Bo'), {'sex': ('f', 'm')}, 0)
    """
    pd = required("pandas", "panel_intake")

    found = intake.Findings()
    table = quota_columns(intake.read_rows(_quota_table(quotas), "quotas", found, encoding))
    pool = intake.read_rows(candidates, "candidates", found, encoding)
    if set(QUOTA_COLUMNS) <= set(quota_columns(pool).columns):
        rule = "are the columns of quotas; the file of the people comes first, then that of the quotas"
        found.faults = [intake.Finding("candidates", 1, "", ", ".join(QUOTA_COLUMNS), rule)]
        return {}, found
    cells, others = ({*f.columns, *f.to_numpy().ravel()} for f in (table, pool))
    own = {old: new for old, new in (fixes or {}).items() if old in cells}
    fixes = {old: new for old, new in (fixes or {}).items() if old in others or old not in own}
    table, wanted = check_quotas(table, found, own)
    if not wanted:
        return {}, found
    for feature, levels in wanted.items():
        if feature and feature not in pool.columns:
            rule, near = "is no column of the candidates (row 1)", intake.nearest_level(feature, pool.columns)
            found.fault("quotas", min(levels.values()), "feature", feature, rule, near)
    rule = "has no quota"
    schema = {f: intake.Expected("group", tuple(wanted[f]), rule=rule) for f in wanted if f in pool.columns}
    address = [household] if isinstance(household, str) else list(household or ())
    for name in address:
        schema[name] = intake.Expected("unit", blank=True)
        if list(pool.columns).count(name) == 1:
            pool[name] = pool[name].str.casefold()
    if identifier is not None:
        schema = {identifier: intake.Expected("key"), **schema}
    elif isinstance(candidates, pd.DataFrame):  # its rows are named by the index, and may be equal
        fixes = {**fixes, intake.DOUBLED: intake.DOUBLED}
    people, _ = intake.check_table(pool, "candidates", schema, fixes=fixes, findings=found, encoding=encoding)
    present = {feature: Counter(people[feature]) for feature in wanted if feature in people.columns}
    found.faults = [_in_seats(fault, size) for fault in found.faults]
    check_fit(table, present, size, found)
    if found.faults:
        return {}, found
    if identifier is not None:
        called = people[identifier]
    elif isinstance(candidates, pd.DataFrame):
        called = candidates.index[people.index - intake.FIRST_ROW].map(intake.cell_text)
    else:
        called = map(str, range(len(people)))
    ends = table.filter([*QUOTA_COLUMNS[2:], *_FLEXIBLE]).astype(float).to_numpy()
    fields: dict[str, Any] = {
        "utilities": np.eye(len(people)),
        "groups": tuple(called),
        "features": {feature: tuple(people[feature]) for feature in wanted},
    }
    for field, pairs in (("quotas", ends[:, :2]), ("flexible", ends[:, 2:])):
        given = fields.setdefault(field, {})
        for feature, value, pair in zip(table.feature, table.value, pairs.tolist(), strict=True):
            if pair:
                given.setdefault(feature, {})[value] = tuple(pair)
    if address:
        fields["households"] = household_names(people[address].to_numpy().tolist())
    return fields, found


def household_names(addresses: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """A name for each address, a line for each part, so that equal addresses alone have equal names.

    Parameters
    ----------
    addresses : iterable of sequence of str
        The parts of each; upper case and the number of blanks make no difference.

    Returns
    -------
    tuple of str
        Empty text, a household of one's own, for an address with a blank part.

    Examples
    --------
    >>> household_names([("1 Mill St", "Ulm"), ("1  mill st", "ULM"), ("", "Ulm")])
    ('1 mill st\\nulm', '1 mill st\\nulm', '')
    """
    parts = ([" ".join(part.split()).casefold() for part in address] for address in addresses)
    return tuple("\n".join(address) if all(address) else "" for address in parts)


def check_quotas(
    table: pd.DataFrame, found: intake.Findings, fixes: intake.Fixes | None = None
) -> tuple[pd.DataFrame, dict[str, dict[str, int]]]:
    """Check a table of quotas by itself; gives the row of each value by feature, none without the columns."""
    flexible = _FLEXIBLE if set(_FLEXIBLE) & set(table.columns) else ()
    names = (*QUOTA_COLUMNS, *flexible)
    schema = {name: intake.Expected("text") if name in QUOTA_COLUMNS[:2] else _SEATS for name in names}
    table, _ = intake.check_table(table, "quotas", schema, fixes=fixes, findings=found)
    wanted: dict[str, dict[str, int]] = {}
    if any(list(table.columns).count(name) != 1 for name in names):
        return table, wanted
    for row, feature, value in zip(table.index.tolist(), table.feature, table.value, strict=True):
        first = wanted.setdefault(feature, {}).setdefault(value, row)
        if first != row:
            rule = f"is in row {first}, too; delete one"
            found.fault("quotas", row, "value", f"{feature} = {value}", rule)
    return table, wanted


def _quota_table(quotas: Any) -> Any:
    """Quotas by value, by feature, as a table."""
    import pandas as pd

    if not isinstance(quotas, Mapping):
        return quotas
    try:
        rows = [(f, value, *map(float, ends)) for f, of in quotas.items() for value, ends in of.items()]
        return pd.DataFrame(rows).set_axis(QUOTA_COLUMNS, axis=1)
    except (AttributeError, TypeError, ValueError) as error:
        rule = "quotas must give a least and a greatest number by value, by feature"
        raise DeclarationError(f"{rule}: {error}") from None


def quota_columns(table: pd.DataFrame) -> pd.DataFrame:
    """Give the columns of a table of quotas our names, where it has those of another program."""
    if {"category", "feature"} <= set(table.columns) and not {"value", "name"} & set(table.columns):
        return table.rename(columns={"category": "feature", "feature": "value"})  # Panelot's names
    other = {old: new for old, new in _OTHER_NAMES.items() if new not in table.columns}
    return table.rename(columns=other)


def _in_seats(fault: intake.Finding, size: int | None) -> intake.Finding:
    """Of a quota that is a share the number of seats."""
    share = float(intake.near_number(fault.value) or 1) if fault.file == "quotas" else 1
    if fault.column not in QUOTA_COLUMNS[2:] or not 0 < share < 1:
        return fault
    near = str((floor if fault.column == "min" else ceil)(share * size)) if size else ""
    return fault._replace(rule="is a share; a quota is a number of people", nearest=near)


def check_fit(
    table: pd.DataFrame, present: Mapping[str, Counter[str]], size: int | None, found: intake.Findings
) -> None:
    """Find quotas that cross, of values that nobody has, or that ask for more than pool or panel have."""
    ends: dict[str, list[tuple[int, int]]] = {}
    for row, *line in table[[*QUOTA_COLUMNS]].itertuples():
        feature, value, *texts = line
        if not all(intake.is_number(text) and np.isfinite(float(text)) for text in texts):
            continue
        least, most = (int(float(text)) for text in texts)
        many = present[feature][value] if feature in present else least
        ends.setdefault(feature, []).append((least, most))
        if least > most:
            found.fault("quotas", row, "min", str(least), f"is more than max, {most}", str(most))
        if least and not many:
            rule = f"is a value of no candidate, but min is {least}"
            found.fault("quotas", row, "value", value, rule, intake.nearest_level(value, present[feature]))
        elif size is not None and least > many:
            rule = f"is more than the {many} candidates with this value"
            found.fault("quotas", row, "min", str(least), rule, str(many))
        if size is not None and most > size:
            found.note("quotas", row, "max", str(most), f"is more than the {size} seats", str(size))
    for feature, pairs in ends.items() if size is not None else ():
        least, most = (sum(side) for side in zip(*pairs, strict=True))
        row = int(table.index[table.feature.tolist().index(feature)])
        if least > size:
            rule = f"is the sum of the least numbers of {feature!r}, more than the {size} seats"
            found.fault("quotas", row, "min", str(least), rule, str(size))
        if most < size:
            rule = f"is the sum of the greatest numbers of {feature!r}, fewer than the {size} seats"
            found.fault("quotas", row, "max", str(most), rule, str(size))
