"""What kind of model a file holds, told without a solver, and which solvers take that kind."""

from __future__ import annotations

import bz2
import csv
import gzip
import json
import lzma
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import forcopt as fo
from forcopt.backends import get_backend

UNKNOWN = "unknown"
KINDS = ("continuous", "mixed", "integer", UNKNOWN)

LARGEST = 10_000_000
"""Bytes of a file, packed or not: a larger one is not looked through, which takes seconds."""

_PACKED: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_WHOLE_BOUNDS = ("BV", "LI", "UI", "SI")
_WHOLE_SECTIONS = re.compile(r"(gen(erals?)?|int(egers?)?|bin(ary|aries)?)\s*$", re.I)
_OTHER_SECTIONS = re.compile(r"(semis?|semi-continuous|sec|sin|sos\d?|end)\s*$", re.I)
_LP_WORD = re.compile(
    r"min(imize|imum)?|max(imize|imum)?|subject|such|to|that|st\.?|s\.t\.?|bounds?|free|inf(inity)?", re.I
)


def kind(integers: float, columns: float) -> str:
    """The word for a model with so many integer columns.

    Examples
    --------
    >>> kind(0, 3), kind(1, 3), kind(3, 3)
    ('continuous', 'mixed', 'integer')
    """
    return "continuous" if not integers else "integer" if integers == columns else "mixed"


def able(backend: str, of: str, sure: bool = True) -> bool:
    """Whether a solver can take models of a kind: False if it certainly refuses them.

    Parameters
    ----------
    backend : str
        Its name.
    of : str
        Of `KINDS`.
    sure : bool, default True
        False also for solvers of integers and models that have other columns, too: such a solver takes a few.

    Examples
    --------
    >>> able("glop", "mixed"), able("cp-sat", "continuous"), able("cp-sat", "mixed"), able("highs", "mixed")
    (False, False, True, True)
    """
    takes = get_backend(backend).capabilities
    if "integer" not in takes.kinds:
        return of in ("continuous", UNKNOWN)
    return not takes.only_integer or of not in (("continuous",) if sure else ("continuous", "mixed"))


def of_model(model: fo.Model) -> str:
    """The kind of a model."""
    return kind(int((model.columns().integer == 1).sum()), model.column_count)


def of_file(path: Path) -> str:
    """The kind of model in a file: by the tables beside it, else by its text; else it is unknown."""
    from benchmarks.solvers.files import stem

    told = _beside(path.parent).get(stem(path.name))
    if told is not None:
        return told
    if path.stat().st_size > LARGEST:
        return UNKNOWN
    opened = _PACKED.get(path.suffix.lower(), open)
    scan = _mps if ".mps" in path.name.lower() else _lp
    try:
        with opened(path, "rt", errors="replace") as lines:
            whole, columns = scan(lines)
    except (OSError, EOFError, lzma.LZMAError):  # its reader says what is wrong with it
        return UNKNOWN
    return kind(len(whole & columns), len(columns)) if columns else UNKNOWN


@cache
def _beside(folder: Path) -> dict[str, str]:
    """By name: from ``features.csv`` of a tier and ``manifest.json`` of the instance library."""
    from benchmarks.solvers.files import stem

    found = {}
    if (folder / "features.csv").exists():
        with (folder / "features.csv").open(newline="") as lines, suppress(ValueError, TypeError, KeyError):
            found = {row["name"]: kind(float(row["integers"]), 1.0) for row in csv.DictReader(lines)}
    with suppress(OSError, ValueError, TypeError, KeyError):
        for entry in json.loads((folder / "manifest.json").read_text(encoding="utf-8")):
            found[stem(entry["file"])] = kind(entry["integers"], entry["columns"])
    return found


def _mps(lines: Iterable[str]) -> tuple[set[str], set[str]]:
    """The integer columns and all columns of an MPS file."""
    whole: set[str] = set()
    columns: set[str] = set()
    section, marked = "", False
    for line in lines:
        words = line.split()
        if not words or line[0] == "*":
            continue
        if not line[0].isspace():
            section = words[0].upper()
        elif section == "COLUMNS":
            if "'MARKER'" in words:
                marked = "'INTORG'" in words
                continue
            columns.add(words[0])
            if marked:
                whole.add(words[0])
        elif section == "BOUNDS" and words[0].upper() in _WHOLE_BOUNDS:
            whole.update(words[1:3])  # the name of the set of bounds may be left out
    return whole, columns


def _lp(lines: Iterable[str]) -> tuple[set[str], set[str]]:
    """The integer columns and all columns of an LP file."""
    whole: set[str] = set()
    columns: set[str] = set()
    section = columns
    for line in lines:
        text = line.partition("\\")[0].strip()
        if _WHOLE_SECTIONS.match(text):
            section = whole
        elif _OTHER_SECTIONS.match(text):
            section = set()
        elif re.match(r"bounds?\s*$", text, re.I):
            section = columns
        else:
            section.update(_names(text))
    return whole, columns


def _names(text: str) -> Iterator[str]:
    """The names of columns in a line of an LP file.

    Examples
    --------
    >>> list(_names("row(1): 3 x[2] + 2e5 y^2 - e >= -inf"))
    ['x[2]', 'y', 'e']
    """
    for word in re.split(r"[\s+*/^<>=-]+", re.sub(r"\S+\s*:", " ", text)):
        if word and not (word[0].isdigit() or word[0] in ".[]" or _LP_WORD.fullmatch(word)):
            yield word
