"""A file that keeps every finished run: an SQLite database, since that survives a kill at any moment."""

from __future__ import annotations

import hashlib
import json
import pickle
import re
import secrets
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from forcopt.arrays import Array
from forcopt.clock import Improvement
from forcopt.declaration import Declared
from forcopt.errors import DeclarationError
from forcopt.problem import Problem
from forcopt.status import Status
from forcopt.study.run import Job, Run, storable

_ENDINGS = (".sqlite", ".sqlite3", ".db")
_ASIDE = ("key", "decision", "gap_to_best", "gap_to_bound", "proved_by")
"""Columns that are no plain field of a run; the last two depend on the other runs."""


def declaration(problem: Problem) -> str:
    """The problem as one line of JSON, always the same for equal problems."""
    return json.dumps(problem.to_dict(), sort_keys=True, separators=(",", ":"))


def fingerprint(text: str) -> str:
    """A short name for a text that hardly any other has (64 bits of SHA-256)."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def job_key(job: Job) -> str:
    """The key under which one run can stand for another: everything that decides the run.

    Raises
    ------
    DeclarationError
        If an option has no lasting spelling.
    """
    seed = job.seed
    drawn = seed.bit_generator.state if isinstance(seed, np.random.Generator) else seed
    own = job.known["fingerprint"], job.method, job.backend, job.time_limit, job.memory_limit
    parts = [*own, drawn, job.known.get("repeat", 0), dict(job.options)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=_spelled).encode()).hexdigest()


def _spelled(value: Any) -> Any:
    if hasattr(value, "tolist"):  # numpy's arrays and scalars
        return value.tolist()
    if hasattr(value, "to_dict"):
        return value.to_dict()
    raise DeclarationError(
        f"a store cannot identify a run with the option {value!r}: it takes numbers, "
        "texts, arrays and declarations"
    )


def metadata(problem: Problem, private: bool = False) -> dict[str, Any]:
    """The part of a row about its problem: fingerprint and size.

    Fields that have their default value are no part of the fingerprint, so that it lasts when a class gets a
    new one. That of private data is random, since one of the data would tell two candidates apart: no run in
    a store stands for another of such a problem.
    """
    if private:
        return {"fingerprint": secrets.token_hex(8), "size": 0}
    text = json.dumps(_given(problem), sort_keys=True, separators=(",", ":"))
    return {"fingerprint": fingerprint(text), "size": len(_NUMBER.findall(text))}


def _given(declared: Declared) -> dict[str, Any]:
    out = declared.to_dict()
    for name, field in type(declared).model_fields.items():
        value = getattr(declared, name)
        if isinstance(value, Declared):
            out[name] = _given(value)
        elif isinstance(value, tuple) and any(isinstance(item, Declared) for item in value):
            out[name] = [
                _given(v) if isinstance(v, Declared) else w for v, w in zip(value, out[name], strict=True)
            ]
        elif isinstance(value, _SIMPLE) and not field.is_required() and value == field.default:
            del out[name]
    return out


_SIMPLE = (bool, int, float, str, tuple, type(None))

_NUMBER = re.compile(r"(?<=[\[:,])-?\d")
"""The beginning of a number in JSON without spaces; a text begins with a quote."""


class Store:
    """The runs in a file; each that is added is there for good before the next begins.

    The table ``runs`` has a column for each field of `Run`, which any SQLite tool can read (unknown values
    are NULL, objects with parts JSON); the table ``problems`` has the declarations by fingerprint,
    the table ``repetitions`` the metrics of repeated studies. Decisions
    are pickled: open only files that you trust.

    Parameters
    ----------
    path : str or Path
        Ends in ``.sqlite``, ``.sqlite3`` or ``.db``; made if it does not exist.

    Raises
    ------
    DeclarationError
        For another ending, or a file that holds something else.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if self.path.suffix not in _ENDINGS:
            raise DeclarationError(
                f"store is {str(path)!r}; it must end in {', '.join(_ENDINGS)}. Parquet files are "
                "written as a whole, so that a kill would lose finished rows; make one by to_pandas()"
            )

    def __enter__(self) -> Self:
        self._base = sqlite3.connect(self.path, timeout=60)  # others may be adding to it, too
        try:
            with self._base:
                self._base.execute("CREATE TABLE IF NOT EXISTS runs (key TEXT PRIMARY KEY)")
                self._base.execute(
                    "CREATE TABLE IF NOT EXISTS problems (fingerprint TEXT PRIMARY KEY, declaration TEXT)"
                )
                self._base.execute(
                    "CREATE TABLE IF NOT EXISTS repetitions "
                    "(study TEXT, repetition INTEGER, metrics TEXT, PRIMARY KEY (study, repetition))"
                )
                there = {row[1] for row in self._base.execute("PRAGMA table_info(runs)")}
                for name in self._names:  # all of them, or the ones that an older version lacked
                    if name not in there:
                        self._base.execute(f'ALTER TABLE runs ADD COLUMN "{name}"')
        except sqlite3.DatabaseError as error:
            self._base.close()
            raise DeclarationError(f"store {self.path} cannot be used: {error}") from None
        self._saved: set[str] = set()
        return self

    def __exit__(self, *_: object) -> None:
        self._base.close()

    @cached_property
    def _names(self) -> list[str]:
        return [*(f.name for f in fields(Run) if f.name not in _ASIDE), "decision"]

    def add(self, job: Job, run: Run) -> None:
        """Keep a finished run."""
        run = storable(run)
        values = [_written(getattr(run, name)) for name in self._names[:-1]]
        columns = ", ".join(f'"{name}"' for name in ("key", *self._names))
        marks = ", ".join("?" * (len(values) + 2))
        digest = run.fingerprint
        with self._base:  # one transaction: whole or not there
            if digest not in self._saved and not job.private:
                known = (digest, declaration(job.problem))
                self._base.execute("INSERT OR IGNORE INTO problems VALUES (?, ?)", known)
                self._saved.add(digest)
            self._base.execute(
                f"INSERT OR REPLACE INTO runs ({columns}) VALUES ({marks})",
                [job_key(job), *values, None if run.decision is None else pickle.dumps(run.decision)],
            )

    def find(self, jobs: Sequence[Job]) -> dict[int, Run]:
        """The runs that are there for these jobs, by position, under the names that the jobs give them."""
        found = {}
        for position, job in enumerate(jobs):
            rows = self._read("WHERE key = ?", job_key(job))
            if rows:
                parameters = job.known.get("parameters", {})
                found[position] = replace(rows[0], instance=job.instance, parameters=parameters)
        return found

    def all(self) -> list[Run]:
        """Every run in the file, in the order in which they ended."""
        return self._read("ORDER BY rowid")

    def declarations(self) -> dict[str, str]:
        """The declarations in the file, by fingerprint."""
        return dict(self._base.execute("SELECT fingerprint, declaration FROM problems"))

    def add_repetition(self, study: str, at: int, metrics: Mapping[str, Array]) -> None:
        """Keep the metrics of one repetition of a study."""
        text = json.dumps({name: value.tolist() for name, value in metrics.items()})
        with self._base:
            self._base.execute("INSERT OR REPLACE INTO repetitions VALUES (?, ?, ?)", (study, at, text))

    def repetitions(self, study: str) -> dict[int, dict[str, Array]]:
        """Give the metrics of the repetitions of a study that are there, by number."""
        rows = self._base.execute("SELECT repetition, metrics FROM repetitions WHERE study = ?", (study,))
        return {
            at: {name: np.array(value, dtype=float) for name, value in json.loads(text).items()}
            for at, text in rows
        }

    def _read(self, which: str, *values: str) -> list[Run]:
        columns = ", ".join(f'"{name}"' for name in self._names)
        rows = self._base.execute(f"SELECT {columns} FROM runs {which}", values)
        return [_run(dict(zip(self._names, row, strict=True))) for row in rows]


def _written(value: Any) -> Any:
    """Convert a value for SQLite: NaN to NULL, objects with parts to JSON."""
    if isinstance(value, Status):
        return str(value)
    if isinstance(value, Mapping):
        return json.dumps(dict(value), default=_spelled)
    if isinstance(value, tuple):
        return json.dumps([asdict(v) if isinstance(v, Improvement) else v for v in value])
    value = value.item() if isinstance(value, np.generic) else value
    return str(value) if isinstance(value, int) and abs(value) >= 2**63 else value  # a large seed


def _run(row: dict[str, Any]) -> Run:
    """The run of a row; NULL stands for the default value."""
    known = {name: value for name, value in row.items() if value is not None}
    known["status"] = Status(known["status"])
    known |= {name: bool(known.get(name)) for name in ("exact", "certified", "checked")}
    known["seed"] = None if known.get("seed") is None else int(known["seed"])
    for name in ("parameters", "metrics", "versions", "parts"):
        known[name] = json.loads(known.get(name, "{}"))
    known["bridges"] = tuple(json.loads(known.get("bridges", "[]")))
    known["trace"] = tuple(Improvement(**step) for step in json.loads(known.get("trace", "[]")))
    if "gap" not in known:
        known["gap"] = float("nan")
    if "decision" in known:
        try:
            known["decision"] = pickle.loads(known["decision"])
        except Exception as error:  # pickle raises whatever an object's own code raises
            note = f"the decision cannot be read: {type(error).__name__}: {error}"
            known |= {"decision": None, "message": "; ".join(filter(None, [known["message"], note]))}
    return Run(**known)
