"""Checked intake of a user's table: every fault by row and column, with the nearest right value.

A table is read as text. What each column must hold is declared, and one function checks all tables. Nothing
is changed, dropped or guessed in silence: a fault is refused, a fix is stated by the user and noted, and what
is odd but may be right is a note in the report.
"""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from forcopt.arrays import is_missing
from forcopt.data.tolerances import FREQUENT, LONELY, MOST_CODES, OUTLIER, RARE, TINY_GROUP
from forcopt.errors import DeclarationError, required, similar

if TYPE_CHECKING:
    import pandas as pd

FIRST_ROW = 2
"""The number of the first row below the heading, as spreadsheets count."""

_ROWS = "row of the file"
"""The name of the index of a frame that was read."""

_MOST_SHOWN = 20
"""Faults that an error names; the report has all."""

Kind = Literal["key", "group", "unit", "count", "number", "share", "text"]

Fixes = Mapping[str, Any]
"""Right values by wrong value, ``{"Nort": "north"}``, or these by column. None drops the row; a value that
stands for itself is confirmed; a column's name stands for its right name."""


DOUBLED = "doubled rows"
"""What a fix names that confirms rows that are the same."""


class Finding(NamedTuple):
    """A fault of a file, or a note about it.

    Attributes
    ----------
    file : str
        What the table is called.
    row : int
        As spreadsheets count: the heading is row 1. 0 for the file as a whole.
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
        at = f", row {self.row}" if self.row else ""
        column = f", column {self.column}" if self.column else ""
        return f"{self.file}{at}{column}: {self.value!r} {self.rule}{near}"


@dataclass
class Findings:
    """All that was found in the files of a task.

    Attributes
    ----------
    faults : list of Finding
        What is wrong; a strict intake refuses the files.
    notes : list of Finding
        What is odd, or was changed by a stated fix.
    facts : dict[str, str]
        What was read, by file.
    rows : dict[str, list[int]]
        The numbers of the rows that no fix dropped, by file.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"sex": ["f", "mael", "f"], "age": ["31", "4,5", "70"]})
    >>> schema = {"sex": Expected("group", levels=("f", "male")), "age": Expected("number")}
    >>> print(check_table(people, "people", schema)[1])
    people, row 3, column sex: 'mael' is not among f, male; did you mean 'male'?
    people, row 3, column age: '4,5' is no plain number, such as 1234.5; did you mean '4.5'?
    """

    faults: list[Finding] = field(default_factory=list)
    notes: list[Finding] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)
    rows: dict[str, list[int]] = field(default_factory=dict)

    def fault(self, *cell: Any) -> None:
        """Add a fault, given as the fields of a `Finding`."""
        self.faults.append(Finding(*cell))

    def note(self, *cell: Any) -> None:
        """Add a note, given as the fields of a `Finding`."""
        self.notes.append(Finding(*cell))

    def refuse(self) -> None:
        """Raise an error if there is a fault.

        Raises
        ------
        IntakeError
            Which names the first faults by row, column and nearest right value.
        """
        if self.faults:
            raise IntakeError(self)

    def frame(self) -> pd.DataFrame:
        """All findings as a table; its column ``kind`` is ``fault`` or ``note``."""
        pd = required("pandas", "a table of findings")

        kinds = ["fault"] * len(self.faults) + ["note"] * len(self.notes)
        return pd.DataFrame([*self.faults, *self.notes], columns=list(Finding._fields)).assign(kind=kinds)

    def __str__(self) -> str:
        kinds = grouped(self.faults)
        more = len(kinds) - _MOST_SHOWN
        lines = [
            f"{fault} (and in {count - 1} more rows)" if count > 1 else str(fault)
            for fault, count in kinds[:_MOST_SHOWN]
        ]
        return "\n".join([*lines, f"and {more} more"] if more > 0 else lines)


def grouped(findings: Iterable[Finding]) -> list[tuple[Finding, int]]:
    """The first finding of each value with one fault in a column, and how many there are."""
    first: dict[Finding, Finding] = {}
    counts: Counter[Finding] = Counter()
    for finding in findings:
        kind = finding._replace(row=0)
        first.setdefault(kind, finding)
        counts[kind] += 1
    return [(finding, counts[kind]) for kind, finding in first.items()]


class IntakeError(DeclarationError):
    """Files have faults; `findings` has all of them."""

    def __init__(self, findings: Findings) -> None:
        super().__init__(str(findings))
        self.findings = findings


@dataclass(frozen=True)
class Expected:
    """What a column must hold.

    Attributes
    ----------
    kind : {"key", "group", "unit", "count", "number", "share", "text"}
        A name that stands once; a level; a unit, of which there may be many; a whole number from 0; a number;
        a number from 0 to 1; any text.
    levels : tuple of str
        All right levels of a group. Without them the levels of the column are compared with each other.
    blank : bool, default False
        Whether a cell may be empty.
    lower, upper : float
        The ends of the numbers.
    rule : str
        What is wrong with a level that is not listed.
    usual : bool, default True
        Whether a number that the other rows make unlikely is a fault.
    """

    kind: Kind
    levels: tuple[str, ...] = ()
    blank: bool = False
    lower: float = -np.inf
    upper: float = np.inf
    rule: str = ""
    usual: bool = True


# -- reading -------------------------------------------------------------------------------------------------


def read_rows(
    table: Any, file: str, findings: Findings | None = None, encoding: str | None = None
) -> pd.DataFrame:
    """Read a table as text, with all faults of its form.

    Parameters
    ----------
    table : DataFrame, str or Path
        A frame, or a CSV file with ``,``, ``;``, tabs or ``|``, or an Excel file.
    file : str
        What it is called in findings.
    findings : Findings, optional
        Takes the faults; without it they are an error.
    encoding : str, optional
        Of a CSV file; UTF-8, or UTF-16 with its mark, by default.

    Returns
    -------
    DataFrame
        All cells as text without spaces at the ends, the missing ones as empty text. The index has the
        numbers of the rows, as spreadsheets count.

    Raises
    ------
    DeclarationError
        For another type, and without `findings` for any fault.

    Examples
    --------
    >>> import pandas as pd
    >>> read_rows(pd.DataFrame({"name": [" Ann ", None], "seats": [2.0, 3.5]}), "people").to_dict("list")
    {'name': ['Ann', ''], 'seats': ['2', '3.5']}
    """
    pd = required("pandas", "a table of records")

    found = Findings() if findings is None else findings
    if isinstance(table, str | Path):
        excel = Path(table).suffix.lower() in (".xlsx", ".xls", ".ods")
        lines = _excel_rows(Path(table)) if excel else _csv_rows(Path(table), file, found, encoding)
    elif isinstance(table, pd.DataFrame):
        cells = [[cell_text(value) for value in table.iloc[:, i]] for i in range(table.shape[1])]
        lines = [[str(name) for name in table.columns], *map(list, zip(*cells, strict=True))]
    else:
        raise DeclarationError(f"{file} is a {type(table).__name__}; it must be a DataFrame or a CSV file")
    again = isinstance(table, pd.DataFrame) and table.index.name == _ROWS  # read before, and its form checked
    frame = _frame_of(lines, file, Findings() if again else found)
    if again and len(table) == len(frame):
        return frame.set_index(table.index)
    found.facts[file] = f"{len(frame):,} rows, {frame.shape[1]} columns" + found.facts.get(file, "")
    if findings is None:
        found.refuse()
    return frame


def cell_text(value: Any) -> str:
    """A cell as text: empty if it is missing, and a whole number without a point."""
    if is_missing(value):
        return ""
    if isinstance(value, float | np.floating) and float(value).is_integer() and abs(float(value)) < 2**53:
        return str(int(value))
    return str(value).strip()


def _excel_rows(path: Path) -> list[list[str]]:
    import pandas as pd

    try:
        sheet = pd.read_excel(path, header=None, dtype=object)
    except ImportError as error:
        raise DeclarationError(f"{path}: {error}; or save the sheet as CSV") from None
    except OSError:
        raise
    except Exception as error:  # each reader of spreadsheets has its own
        raise DeclarationError(f"{path} is no spreadsheet: {error}; save the sheet as CSV") from None
    return [[cell_text(value) for value in row] for row in sheet.itertuples(index=False)]


def _csv_rows(path: Path, file: str, found: Findings, encoding: str | None) -> list[list[str]]:
    text, words = _decoded(path.read_bytes(), file, found, encoding)
    first = next((line for line in text.splitlines() if line.strip()), "")
    marks = {mark: first.count(mark) for mark in ",;\t|"}
    mark = max(marks, key=marks.__getitem__)
    if mark != ",":
        words += f", separated by {mark!r}"
    found.facts[file] = words
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True))
    except csv.Error as error:
        rule = f"has an open or a misplaced quotation mark ({error}); close it, or double it within a cell"
        found.fault(file, 0, "", path.name, rule)
        return []
    return [[cell.strip() for cell in row] for row in rows]


_BROKEN = {
    "\0": "is no text; is it a spreadsheet or a picture? Save it as CSV in UTF-8",
    "\ufffd": "holds a lost letter; save the file as UTF-8 again",
    "\u00c3[\u0080-\u00bf]|\u00e2\u20ac": "was saved in a wrong encoding; export it again as UTF-8",
}
"""Signs that tell of a broken text, the last ones of UTF-8 that was read as Windows-1252."""


def read_json(path: str | Path) -> Any:
    """Read JSON in UTF-8, or in UTF-16 with its mark; a key that stands twice in one object is an error.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "schema.json"
    >>> _ = path.write_text('{"sex": ["f", "m"], "sex": ["f"]}')
    >>> try:
    ...     read_json(path)
    ... except DeclarationError as error:
    ...     print(str(error).rpartition("/")[2])
    schema.json is no JSON in UTF-8: the key 'sex' stands twice in one object
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            key, _ = Counter(key for key, _ in pairs).most_common(1)[0]
            raise ValueError(f"the key {key!r} stands twice in one object")
        return made

    data = Path(path).read_bytes()
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return json.loads(data.decode(encoding), object_pairs_hook=once)
    except ValueError as error:
        raise DeclarationError(f"{path} is no JSON in UTF-8: {error}") from None


def _decoded(data: bytes, file: str, found: Findings, encoding: str | None) -> tuple[str, str]:
    """The text of a file, and words about its encoding."""
    for mark, name in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if data.startswith(mark):
            encoding = name
    try:
        text = data.decode(encoding or "utf-8")
    except (UnicodeDecodeError, LookupError) as error:
        if not isinstance(error, UnicodeDecodeError):
            raise DeclarationError(f"encoding is {encoding!r}: {error}") from None
        text = data.decode("cp1252", errors="replace")
        row = data.count(b"\n", 0, error.start) + 1
        near = text.splitlines()[row - 1][:60]
        rule = f"is no {(encoding or 'utf-8').upper()}; save the file as UTF-8, or give encoding cp1252:"
        found.fault(file, row, "", f"byte {data[error.start]:#x}", f"{rule} {near!r}")
    for pattern, rule in _BROKEN.items():
        if broken := re.search(pattern, text):
            row = text.count("\n", 0, broken.start()) + 1
            found.fault(file, row, "", text[max(0, broken.start() - 9) :][:20], rule)
    return text.replace("\0", ""), f", {encoding or 'utf-8'}"


def _frame_of(lines: list[list[str]], file: str, found: Findings) -> pd.DataFrame:
    """The rows below the heading, and the faults of their form."""
    import pandas as pd

    while lines and not lines[-1]:
        lines.pop()
    head = lines[0] if lines else []
    if not any(head):
        rule = "has no heading: the first row must name the columns" if lines else "is empty"
        found.fault(file, 1, "", "", rule)
        return pd.DataFrame(index=pd.Index([], name=_ROWS))
    if len(lines) == 1:
        found.fault(file, 1, "", ", ".join(head)[:60], "is all there is: there are no rows")
    for name, count in Counter(head).items():
        filled = any(len(row) > head.index(name) and row[head.index(name)] for row in lines[1:])
        if not name and filled:
            found.fault(file, 1, f"number {head.index(name) + 1}", "", "is a column without a name")
        elif count > 1 and name:
            found.note(file, 1, name, name, f"is the name of {count} columns")
    rows, numbers = [], []
    (usual, count), *_ = Counter(map(len, lines[1:])).most_common(1) or [(0, 0)]
    if len(head) < usual and count > len(lines) / 2:
        rule = f"names {len(head)} columns, but the rows have {usual} cells; delete what is above the heading"
        found.fault(file, 1, "", ", ".join(head)[:60], rule)
        lines = lines[:1]
    for number, row in enumerate(lines[1:], FIRST_ROW):
        shown = ", ".join(row)[:60]
        if not row:
            continue  # a blank line
        if not any(row):
            found.fault(file, number, "", "", "is an empty row; delete it")
        elif len(row) != len(head):
            rule = f"has {len(row)} cells where the heading names {len(head)} columns; check the separators"
            found.fault(file, number, "", shown, rule)
        elif row == head:
            found.fault(file, number, "", shown, "is the heading again; delete it")
        else:
            rows.append(row)
            numbers.append(number)
    return pd.DataFrame(rows, columns=head, index=pd.Index(numbers, dtype=int, name=_ROWS), dtype=str)


# -- checking ------------------------------------------------------------------------------------------------


def check_table(
    table: Any,
    file: str,
    schema: Mapping[str, Expected],
    *,
    fixes: Fixes | None = None,
    findings: Findings | None = None,
    encoding: str | None = None,
) -> tuple[pd.DataFrame, Findings]:
    """Read a table and check the declared columns.

    Parameters
    ----------
    table, file, encoding
        See `read_rows`.
    schema : Mapping[str, Expected]
        What the columns must hold.
    fixes : mapping, optional
        What to change: see `Fixes`. Each change is noted; a fix that changes nothing is a fault.
    findings : Findings, optional
        To add to.

    Returns
    -------
    tuple[DataFrame, Findings]
        The rows as text, and the findings; `typed` makes numbers of the columns once there are no faults.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"region": ["north", "Nort", "south"]})
    >>> wanted = {"region": Expected("group", ("north", "south"))}
    >>> frame, found = check_table(table, "people.csv", wanted)
    >>> print(found.faults[0])
    people.csv, row 3, column region: 'Nort' is not among north, south; did you mean 'north'?
    >>> frame, found = check_table(table, "people.csv", wanted, fixes={"Nort": "north"})
    >>> len(found.faults), frame.region.tolist()
    (0, ['north', 'north', 'south'])
    """
    found = Findings() if findings is None else findings
    frame = read_rows(table, file, found, encoding)
    changes: dict[str, dict[str, Any]] = {}
    for wrong, right in dict(fixes or {}).items():
        if wrong in frame.columns and isinstance(right, str):
            frame = frame.rename(columns={wrong: right})
            found.note(file, 1, wrong, wrong, f"was renamed to {right!r}")
        elif wrong != DOUBLED:
            for column in [wrong] if isinstance(right, Mapping) else schema:
                changes.setdefault(column, {}).update(right if isinstance(right, Mapping) else {wrong: right})
    frame = _fixed(frame, file, changes, found)
    found.rows[file] = frame.index.tolist()
    names = [str(name) for name in frame.columns]
    for name in schema:
        if (count := names.count(name)) > 1:
            found.fault(file, 1, name, name, f"is the name of {count} columns; there must be one")
        if name not in names and names:
            near = nearest_level(name, names)
            words = "" if near else f"; the columns are {', '.join(names)}"
            found.fault(file, 1, name, name, f"is a column that is missing{words}", near)
    groups = {name: frame[name] for name, e in schema.items() if e.kind == "group" and names.count(name) == 1}
    for name, expected in schema.items():
        if names.count(name) == 1 and len(frame):
            own = {value for value, right in changes.get(name, {}).items() if value == right}
            others = {other: set(values) for other, values in groups.items() if other != name}
            _check_column(frame[name], file, expected, others, own, found)
    if DOUBLED not in (fixes or {}):
        _check_doubled_rows(frame, file, schema, found)
    return frame, found


def typed(frame: pd.DataFrame, schema: Mapping[str, Expected]) -> pd.DataFrame:
    """The declared columns: whole numbers, floats (NaN where a cell is empty), and others as text.

    Parameters
    ----------
    frame : DataFrame
        Of text without faults, as `check_table` gives it.
    schema : Mapping[str, Expected]
        What the columns hold.

    Returns
    -------
    DataFrame
        With the columns of the schema, in its order.

    Examples
    --------
    >>> import pandas as pd
    >>> schema = {"town": Expected("unit"), "people": Expected("count")}
    >>> frame, found = check_table(pd.DataFrame({"people": [3, 5], "town": ["A", "B"]}), "towns", schema)
    >>> typed(frame, schema).people.sum()
    np.int64(8)
    """
    kinds: dict[str, Any] = {"count": np.int64, "number": float, "share": float}
    columns = frame[list(schema)].copy()
    for name, expected in schema.items():
        if expected.kind in kinds:
            numbers = [float(text) if text else np.nan for text in frame[name]]
            columns[name] = np.array(numbers).astype(float if expected.blank else kinds[expected.kind])
    return columns


def take_table(
    table: Any, file: str, schema: Mapping[str, Expected], fixes: Fixes | None = None
) -> pd.DataFrame:
    """The declared columns of a table, as `typed` gives them; any fault is an error, see `check_table`."""
    frame, found = check_table(table, file, schema, fixes=fixes)
    found.refuse()
    return typed(frame, schema)


def _fixed(
    frame: pd.DataFrame, file: str, changes: dict[str, dict[str, Any]], found: Findings
) -> pd.DataFrame:
    """The table after the stated changes of each column, each of which is noted."""
    unused = {str(old) for by_value in changes.values() for old in by_value}
    for column, by_value in changes.items():
        if list(frame.columns).count(column) != 1:
            continue
        cells = frame[column]  # as given: a value that a change writes is not changed again
        for old, new in by_value.items():
            hit = (cells == old).to_numpy()
            if not hit.any():
                continue
            unused.discard(str(old))
            row, frame = int(frame.index[hit][0]), frame.copy()
            if new is None:
                rule, frame, cells = "was dropped with its row", frame[~hit], cells[~hit]
            elif old == new:
                rule = "was confirmed"
            else:
                rule = f"was changed to {new!r}"
                frame.loc[hit, column] = str(new)
            found.note(file, row, column, old, f"{rule}, in {int(hit.sum())} rows")
    for old in sorted(unused):
        found.fault(file, 0, "", old, "is fixed, but no cell or column has it")
    return frame


def _check_column(
    cells: pd.Series[str],
    file: str,
    expected: Expected,
    others: Mapping[str, set[str]],
    own: set[str],
    found: Findings,
) -> None:
    """Find the faults of one column."""
    counts = Counter(cells)
    wrong: dict[str, tuple[str, str]] = {}
    notes: dict[str, tuple[str, str]] = {}
    if expected.kind in ("count", "number", "share"):
        wrong, notes = _number_faults(counts, expected)
    elif expected.kind == "group" and expected.levels:
        rule = expected.rule or f"is not among {', '.join(expected.levels[:_MOST_SHOWN])}"
        wrong = {v: (rule, nearest_level(v, expected.levels)) for v in counts if v not in expected.levels}
        for level in expected.levels:
            if level not in counts:
                near = nearest_level(level, counts)
                found.note(file, 0, str(cells.name), level, "is a level of no row", near)
    elif expected.kind in ("group", "unit"):
        wrong, notes = _level_faults(counts, others, many=expected.kind == "unit")
        if expected.kind == "unit":
            notes |= _unlike(cells, runs=True)
    elif expected.kind == "key":
        wrong = {v: ("is a total, no record; delete the row", "") for v in counts if v.casefold() in _TOTALS}
        wrong |= _unlike(cells, runs=False)
        wrong |= {v: (_ROUNDED_RULE, "") for v in counts if _ROUNDED.fullmatch(v)}
        _check_doubles(cells, file, found)
    if expected.blank and "" in counts:
        wrong.pop("", None)
        notes[""] = ("is empty", "")
    elif "" in counts:
        wrong[""] = ("is empty; fill it in, or drop the row by a fix", "")
    for into, faults in ((found.faults, wrong), (found.notes, notes)):
        for value in own:
            faults.pop(value, None)
        if faults:
            hit = cells.isin(list(faults)).to_numpy()
            for row, value in zip(cells.index[hit].tolist(), cells[hit], strict=True):
                into.append(Finding(file, row, str(cells.name), value, *faults[value]))


# -- numbers -------------------------------------------------------------------------------------------------

_PLAIN = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_BEHIND_POINT = re.compile(r"[+-]?[1-9][0-9]{0,2}\.[0-9]{3}")
_ROUNDED = re.compile(r"[0-9](\.[0-9]+)?E\+?[0-9]+", re.IGNORECASE)
_ROUNDED_RULE = "was rounded by a spreadsheet; format the column as text, and export it again"
_CODES = (-1, -9, -99, -999, -9999, 99, 999, 9999, 99999, 999999)
"""Numbers that stand for a missing one in surveys."""


def near_number(text: str) -> str:
    """The number that a text was meant to be; empty if it is none.

    Examples
    --------
    >>> [near_number(text) for text in ("1,234", "4,5", "12%", "$ 30", "twelve")]
    ['1234', '4.5', '0.12', '30', '']
    """
    plain = unicodedata.normalize("NFKC", text).replace("\u2212", "-")
    share = plain.rstrip().endswith("%")
    if re.search(r"[0-9][a-df-z]|[a-z][0-9]", plain, re.IGNORECASE):  # 30k, f0001
        return ""
    plain = re.sub(r"[^0-9.,'eE+-]|(?<![0-9])[eE]", "", plain)
    if re.fullmatch(r"[+-]?[0-9]{1,3}([,'][0-9]{3})+(\.[0-9]+)?", plain):
        plain = plain.replace(",", "").replace("'", "")
    elif re.fullmatch(r"[+-]?[0-9]{1,3}(\.[0-9]{3})*,[0-9]+|[+-]?[0-9]{1,3}(\.[0-9]{3}){2,}", plain):
        plain = plain.replace(".", "").replace(",", ".")
    if not _PLAIN.fullmatch(plain):
        return ""
    return f"{float(plain) / 100:.12g}" if share else f"{float(plain):.15g}"


def is_number(text: str) -> bool:
    """Whether a text is a plain number."""
    return _PLAIN.fullmatch(text) is not None


def _number_faults(counts: Counter[str], expected: Expected) -> tuple[dict[str, Any], dict[str, Any]]:
    """Texts that are no number of the expected kind, and numbers unlike the others."""
    wrong: dict[str, tuple[str, str]] = {}
    numbers = {text: float(text) for text in counts if is_number(text)}
    for text in counts:
        if text and (text not in numbers or re.match("[+-]?0[0-9]", text)):
            wrong[text] = ("is no plain number, such as 1234.5", near_number(text))
    lower, upper = expected.lower, expected.upper
    if expected.kind in ("count", "share"):
        lower = max(lower, 0.0)
    if expected.kind == "share":
        upper = min(upper, 1.0)
    for text, value in numbers.items():
        if not np.isfinite(value) or abs(value) >= 2**53:
            wrong[text] = ("is too large for a number", "")
        elif expected.kind == "count" and value != round(value):
            near = text.replace(".", "") if _BEHIND_POINT.fullmatch(text) else f"{round(value)}"
            wrong[text] = ("is no whole number", near)
        elif expected.kind == "count" and _ROUNDED.fullmatch(text):
            wrong[text] = (_ROUNDED_RULE, "")
        elif value < lower:
            wrong[text] = (f"is below {lower:g}", text.lstrip("-") if -value >= lower else "")
        elif value > upper:
            percent = expected.kind == "share" and value <= 100
            wrong[text] = (f"is above {upper:g}", f"{value / 100:.12g}" if percent else "")
    wrong |= {text: fault for text, fault in _thousands(numbers).items() if text not in wrong}
    kept = {text: value for text, value in numbers.items() if text not in wrong and expected.usual}
    odd, notes = _odd_numbers(kept, counts)
    return wrong | odd, notes


def _thousands(numbers: Mapping[str, float]) -> dict[str, tuple[str, str]]:
    """Numbers such as 3.440 among others without a point: the point may mark thousands."""
    points = [text for text in numbers if "." in text]
    whole = any(value and text not in points for text, value in numbers.items())
    if not whole or not all(map(_BEHIND_POINT.fullmatch, points)) or not any(t.endswith("0") for t in points):
        return {}
    rule = "has three digits behind its point and other rows have no point; does it mark thousands?"
    return {text: (rule, text.replace(".", "")) for text in points}


def _odd_numbers(kept: Mapping[str, float], counts: Counter[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Numbers that the other rows make unlikely: codes of missing ones, other units, misplaced points."""
    wrong: dict[str, tuple[str, str]] = {}
    notes: dict[str, tuple[str, str]] = {}
    values = np.array([value for text, value in kept.items() for _ in range(counts[text])])
    if len(values) < FREQUENT:
        return wrong, notes
    low, middle, high = np.quantile(values, [0.05, 0.5, 0.95])
    spread = max(high - low, abs(middle), np.finfo(float).tiny)
    shares = (values >= 0) & (values <= 1)
    fractions = shares.mean() >= 1 - RARE and (values[shares] != np.round(values[shares])).any()
    rest = {value: values[values != value] for value in kept.values() if value in _CODES}
    below = int((values < 0).sum())
    for text, value in kept.items():
        others = rest.get(value, values)
        if value in rest and len(others) and (value < 0 <= others.min() or value > 2 * others.max() > 0):
            wrong[text] = ("stands for a missing number; empty the cell, or confirm it by a fix", "")
        elif value < 0 <= min(others[others != value], default=-1):
            wrong[text] = ("is the only number below 0; correct it, or confirm it by a fix", text.lstrip("-"))
        elif fractions and not 0 <= value <= 1:
            near = near_number(f"{text}%") if 1 < value <= 100 else ""
            wrong[text] = ("is no share, as the other rows are", near)
        elif value > high + OUTLIER * spread or value < low - OUTLIER * spread:
            rule = f"is far from the other rows, of which 90 % are from {low:g} to {high:g}; check it"
            lonely = len(values) and value > LONELY * max(values[values != value], default=value) > 0
            (wrong if lonely else notes)[text] = (f"{rule}, and confirm it by a fix", "")
        elif value < 0 and below <= RARE * len(values):
            notes[text] = (f"is one of {below} numbers below 0", text.lstrip("-"))
    return wrong, notes


# -- levels --------------------------------------------------------------------------------------------------

_MARKS = {"-", "--", "?", "."}
_MISSING = _MARKS | {"na", "n/a", "#n/a", "nan", "null", "none", "nil", "missing", "unknown", "k.a."}
_SHEET_ERROR = re.compile(r"#(N/A|[A-Z]+(/0)?[!?]|#+)")
_TOTALS = {"total", "totals", "sum", "subtotal", "grand total", "all", "insgesamt", "summe"}
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DATE = re.compile(
    rf"[0-9]{{1,2}}[-. /]?({'|'.join(_MONTHS)})[a-z]*([-. /][0-9]+)?"
    rf"|({'|'.join(_MONTHS)})[a-z]*[-. /]?[0-9]{{1,4}}"
    r"|[0-9]{4}[-/.][0-9]{1,2}[-/.][0-9]{1,2}([T ].*)?|[0-9]{1,2}[/.][0-9]{1,2}[/.][0-9]{2,4}",
    re.IGNORECASE,
)


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


def nearest_hint(level: str, known: Iterable[str]) -> str:
    """What a message adds on an unknown level: ``"; did you mean 'north'?"``, or nothing."""
    near = nearest_level(level, known)
    return f"; did you mean {near!r}?" if near else ""


_TRUTH = {
    **dict.fromkeys(("true", "t", "yes", "y", "1"), "true"),
    **dict.fromkeys(("false", "f", "no", "n", "0"), "false"),
}
"""What truth values are called; a table that has no other levels must not mix the names."""


def _plain_level(value: str) -> str:
    """A level without case and accents, with one space for other signs; + < > tell 60 and 60+ apart."""
    text = unicodedata.normalize("NFKD", value.replace("\u00df", "ss")).casefold()
    text = "".join(sign for sign in text if not unicodedata.combining(sign))
    return re.sub(r"[^\w+<>]+|_+", " ", text).strip() or text.strip()


def _plain_levels(levels: list[str], many: bool) -> dict[str, str]:
    """Levels by a form that spellings of one level share: 01 is 1, and words for truth values are one."""
    short = {v for v in levels if is_number(v) and not many and abs(float(v)) < 2**53}
    plain = {v: f"{float(v):.16g}" if v in short else _plain_level(v) for v in levels}
    if not many and all(word in _TRUTH or word in _MISSING for word in plain.values() if word):
        plain = {v: _TRUTH.get(word, word) for v, word in plain.items()}
    return plain


def _alphabets(word: str) -> set[str]:
    """The alphabets of the letters, of those that have letters which look alike."""
    known = {unicodedata.name(sign, "").partition(" ")[0] for sign in word if sign.isalpha()}
    return known & {"LATIN", "CYRILLIC", "GREEK"}


def _undated(value: str) -> str:
    """The range that a spreadsheet made a date of: 10-19 became Oct-19."""
    found = re.fullmatch(r"([A-Za-z0-9]+)[-. /]?([A-Za-z0-9]+)", value)
    parts = (
        [p if p.isdigit() else str(_MONTHS.index(p[:3].lower()) + 1) for p in found.groups()] if found else []
    )
    return "-".join(sorted(parts, key=int))


def _level_faults(
    counts: Counter[str], others: Mapping[str, set[str]], many: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Faults of levels that are not declared, by comparing them with each other; `many` for units."""
    wrong: dict[str, tuple[str, str]] = {}
    notes: dict[str, tuple[str, str]] = {}
    rows = counts.total()
    usual = [value for value, _ in counts.most_common()]
    first: dict[str, str] = {}
    plain = _plain_levels(usual, many)
    for value in usual:
        first.setdefault(plain[value], value)
    numeric = sum(n for value, n in counts.items() if is_number(value)) / rows
    if not many and len(counts) > (MOST_CODES if numeric > 0.5 else max(TINY_GROUP, rows / 3)):
        rule = f"is one of {len(counts)} values in {rows} rows; choose another column, or form classes"
        return {usual[0]: (rule, "")}, {}
    if not many and len(counts) == 1:
        return {usual[0]: ("is the only value; a group needs another one to be compared with", "")}, {}
    for value, count in counts.items():
        few = count <= max(1, RARE * rows) and not many
        if not value:
            continue
        if _SHEET_ERROR.fullmatch(value):
            wrong[value] = ("is an error of the spreadsheet; correct its formula, or empty the cell", "")
        elif any(len(_alphabets(word)) > 1 for word in value.split()):
            rule = f"mixes letters of {' and '.join(sorted(_alphabets(value)))} that look alike"
            wrong[value] = (rule, nearest_level(value, filter(str.isascii, usual)))
        elif value.casefold() in _MISSING:
            odd = ("stands for a missing value; empty the cell, or confirm it by a fix", "")
            (wrong if count < rows / FREQUENT else notes)[value] = odd
        elif value.casefold() in _TOTALS:
            wrong[value] = ("is a total, not a group; delete the row", "")
        elif first[plain[value]] != value:
            wrong[value] = ("is spelled in another way in most rows", first[plain[value]])
        elif _DATE.fullmatch(value):
            wrong[value] = ("is a date; spreadsheets make dates of ranges such as 10-19", _undated(value))
        elif few and (rare := _rare_level(value, counts, others, numeric > 0.5)):
            wrong[value] = rare
        elif not many and (near := _near_spelling(value, counts)):
            notes[value] = (f"is in {count} of {rows} rows, and spelled much like another level", near)
        elif count < TINY_GROUP and not many:
            notes[value] = (f"is a group of {count} rows only", "")
    return wrong, notes


def _rare_level(
    value: str, counts: Counter[str], others: Mapping[str, set[str]], numeric: bool
) -> tuple[str, str] | None:
    """The fault of a level that few rows have, with the nearest right one; None if it may be right."""
    rows = counts.total()
    if near := _near_spelling(value, counts):
        return f"is in {counts[value]} of {rows} rows", near
    if home := [name for name, known in others.items() if value in known]:
        return f"is a value of column {home[0]}; are the cells of this row in wrong columns?", ""
    if is_number(value) != numeric:
        kind = "a number among words" if is_number(value) else "a word among numbers"
        return f"is {kind}", nearest_level(value, [v for v, _ in counts.most_common() if v != value])
    if counts[value] == 1 and rows >= FREQUENT:
        return "is a group of one row; merge it into another one, or confirm it by a fix", ""
    return None


def _near_spelling(value: str, counts: Counter[str]) -> str:
    """A frequent level from which a rare one differs by a letter, not by a digit; else empty."""
    digits = re.sub(r"[^0-9]", "", value)
    frequent = [
        other
        for other, count in counts.items()
        if count >= FREQUENT * counts[value] and digits == re.sub(r"[^0-9]", "", other) and len(other) > 2
    ]
    near = nearest_level(value, frequent) if sum(map(str.isalpha, value)) > 1 else ""
    if near and set(value.casefold()) - set("0123456789") <= set("- +<>"):
        return ""
    return near


# -- doubles -------------------------------------------------------------------------------------------------


_ID = re.compile(r"(^|[_ -])(id|key|code|geoid|number|nr|email|e-mail)$", re.IGNORECASE)
"""Names of columns that name rows."""


def _check_doubles(cells: pd.Series[str], file: str, found: Findings) -> None:
    """Keys that stand in two rows, or that only case and spaces tell apart."""
    first: dict[str, tuple[int, str]] = {}
    for row, value in zip(cells.index.tolist(), cells, strict=True):
        key = " ".join(value.split()).casefold()
        if not key:
            continue
        at, other = first.setdefault(key, (row, value))
        if at != row:
            rule = f"is in row {at}, too" if other == value else f"is {other!r} of row {at}, spelt otherwise"
            found.fault(file, row, str(cells.name), value, f"{rule}; delete one, or rename it")


def _unlike(cells: pd.Series[str], runs: bool) -> dict[str, tuple[str, str]]:
    """Codes that are built unlike nearly all others; with `runs` any number of letters or digits is one."""
    end = "+" if runs else ""
    shapes = cells[cells != ""]
    for sign, kind in (("0", "[0-9]"), ("A", "[A-Z]"), ("a", "[a-z]")):
        shapes = shapes.str.replace(kind + end, sign, regex=True)
    usual = shapes.mode().iloc[0] if len(shapes) >= FREQUENT else ""
    odd = shapes[shapes != usual]
    if not cells.str.contains("(?<![0-9])0[0-9]").any():  # 10 follows 9, where no zeros fill the codes
        odd = odd[odd.str.replace("0+", "0", regex=True) != re.sub("0+", "0", usual)]
    if "0" not in usual or len(odd) > max(1, RARE * len(shapes)):  # names of people are no codes
        return {}
    like = cells[shapes.index[shapes == usual][0]]
    rule = f"is written unlike the other names, such as {like!r}; correct it, or confirm it by a fix"
    return {cells[row]: (rule, "") for row in odd.index}


def _check_doubled_rows(
    frame: pd.DataFrame, file: str, schema: Mapping[str, Expected], found: Findings
) -> None:
    """Doubled names in a column that is a key by its name, and rows that repeat others where that is rare."""
    keys = [name for name, e in schema.items() if e.kind == "key" and name in frame.columns]
    again = frame.drop(columns=keys).duplicated()
    for row in again.index[again] if keys and frame.shape[1] > 4 and again.mean() <= RARE else ():
        name = str(frame.loc[row, keys].iloc[0])
        found.note(file, row, keys[0], name, "is the only difference from an earlier row: the same one?")
    if keys or len(frame) < 2:
        return
    for name in frame.columns:
        cells = frame[name] if list(frame.columns).count(name) == 1 else None
        if cells is None or not _ID.search(name):
            continue
        filled = cells[cells != ""]
        if filled.nunique() > (1 - 5 * RARE) * len(frame) and name not in schema:
            _check_doubles(filled, file, found)
            odd = _unlike(filled, runs=False)
            for row, value in zip(cells.index.tolist(), cells, strict=True):
                if not value or value in odd:
                    rule = "is empty or written unlike the other names; correct it, or leave the column out"
                    found.fault(file, row, name, value, rule)
            return
    half, fix = len(frame) // 2, f"{DOUBLED}={DOUBLED}"
    if half >= FREQUENT and (frame.iloc[:half].to_numpy() == frame.iloc[-half:].to_numpy()).all():
        rule = f"stands twice: from this row on all rows are the earlier ones; confirm it by {fix}"
        found.fault(file, int(frame.index[-half]), "", "the table", rule)
        return
    again = frame.duplicated().to_numpy()
    if again.any() and frame.shape[1] > 2 and again.mean() <= RARE:
        for row, *values in frame[again].itertuples():
            rule = f"is the same as an earlier row; delete it, or confirm it by the fix {fix}"
            found.fault(file, row, "", ", ".join(map(str, values))[:60], rule)


def column_kinds(
    frame: pd.DataFrame, names: Sequence[str], say: Callable[[str, str], None]
) -> dict[str, Expected]:
    """Guess what columns hold that nobody declared: numbers, groups, or nothing that can be learnt from.

    Parameters
    ----------
    frame : DataFrame
        Of text, as `read_rows` gives it.
    names : Sequence[str]
        The columns.
    say : callable
        Is called with the column and the reason if it is left out.

    Returns
    -------
    dict[str, Expected]
        Columns of which most cells are numbers are numbers; cells may be empty.
    """
    found: dict[str, Expected] = {}
    for name in names:
        filled = frame[name][frame[name] != ""]
        told = filled[~filled.str.casefold().isin(_MISSING)]
        plain = told.str.fullmatch(r"[0-9.,'%\s+-]+").sum()
        near = sum(is_number(text) or near_number(text) != "" for text in told)
        numeric = plain > 0.5 * len(told) and near > 0.8 * len(told)
        if filled.nunique() < 2:
            say(name, "has the same value in all rows" if len(filled) else "is empty")
        elif numeric and not _ID.search(name):
            found[name] = Expected("number", blank=True)
        elif filled.nunique() > max(TINY_GROUP, len(filled) / 3):
            say(name, f"names rows rather than groups: {filled.nunique()} values in {len(filled)} rows")
        elif filled.str.fullmatch(_DATE).mean() > 0.8:
            say(name, "holds dates")
        else:
            found[name] = Expected("group", blank=True)
    return found
