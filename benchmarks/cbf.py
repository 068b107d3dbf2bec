"""Reads and writes models in the Conic Benchmark Format, version 3.

References
----------
H. A. Friberg, "CBLIB 2014: a benchmark library for conic mixed-integer and continuous optimization",
Mathematical Programming Computation 8, 2016; the format's report, version 3.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import forcopt as fo
from forcopt.backends.registry import all_capabilities
from forcopt.compile.compiler import Capabilities, compile_model
from forcopt.loops import exchange
from forcopt.study.library import ModelFile

_PACKED = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}

CBF_SUFFIXES = (".cbf", *(f".cbf{packed}" for packed in _PACKED))
"""How the names of the files end."""

TAKES = Capabilities(frozenset({"rows", "integer", "second_order", "exponential"}))
"""What is written: rows, integers, second-order and exponential cones; squares become cones."""


def write_cbf(model: fo.Model, path: str | Path) -> None:
    """Write a model.

    Parameters
    ----------
    model : Model
        Convex, with one objective; cones of second order and of the exponential.
    path : str or Path
        Of the file.

    Raises
    ------
    UnsupportedError
        For power and semidefinite cones, products that are not convex, lazy families and several objectives,
        by their names.
    """
    exchange._refuse_losses(model, f"write {path}")
    try:
        program = compile_model(model, TAKES, "a .cbf file", all_capabilities)
    except fo.UnsupportedError as error:
        raise fo.UnsupportedError(f"cannot write {path}: {error}") from None
    if program.stages[0].leximin is not None:
        raise fo.UnsupportedError(f"cannot write {path}: it holds no leximin objective")
    stage, rows, n = program.stages[0], program.rows, program.columns
    matrix = rows.matrix(n)
    blocks: list[tuple[str, int]] = []
    parts: list[sp.csr_array] = []
    offsets: list[np.ndarray[Any, Any]] = []

    def block(cone: str, part: sp.csr_array, offset: np.ndarray[Any, Any]) -> None:
        if part.shape[0]:
            blocks.append((cone, part.shape[0]))
            parts.append(sp.csr_array(part))
            offsets.append(offset)

    eye = sp.csr_array(sp.identity(n, format="csr"))
    for all_rows, lower, upper in ((matrix, rows.lower, rows.upper), (eye, program.lower, program.upper)):
        equal = np.isfinite(lower) & (lower == upper)
        for cone, which, end in (
            ("L=", equal, lower),
            ("L+", np.isfinite(lower) & ~equal, lower),
            ("L-", np.isfinite(upper) & ~equal, upper),
        ):
            block(cone, all_rows[which], -end[which])
    for cone in program.cones:
        order = np.arange(len(cone.offset)).reshape(-1, cone.size)
        if cone.kind == "exponential":  # (x, y, z) with y exp(x / y) <= z is EXP's (z, y, x)
            order = order[:, ::-1]
        for entries in order:
            block("Q" if cone.kind == "second_order" else "EXP", cone.matrix[entries], cone.offset[entries])
    whole = np.flatnonzero(program.integer == 1)
    lines = [
        "VER",
        "3",
        "",
        "OBJSENSE",
        "MAX" if stage.maximize else "MIN",
        "",
        "VAR",
        f"{n} 1",
        f"F {n}",
        "",
    ]
    if whole.size:
        lines += ["INT", str(whole.size), *map(str, whole), ""]
    if blocks:
        lines += ["CON", f"{sum(size for _, size in blocks)} {len(blocks)}"]
        lines += [f"{cone} {size}" for cone, size in blocks] + [""]
    cost = stage.sign * stage.cost
    lines += _entries("OBJACOORD", [(f"{j}", cost[j]) for j in np.flatnonzero(cost)])
    lines += ["OBJBCOORD", repr(float(stage.sign * stage.offset)), ""] if stage.offset else []
    if blocks:
        a, b = sp.coo_array(sp.vstack(parts)), np.concatenate(offsets)
        found = zip(a.row.tolist(), a.col.tolist(), a.data.tolist(), strict=True)
        lines += _entries("ACOORD", [(f"{i} {j}", value) for i, j, value in found if value])
        lines += _entries("BCOORD", [(f"{i}", b[i]) for i in np.flatnonzero(b)])
    Path(path).write_text("\n".join(lines), encoding="ascii")


def _entries(keyword: str, entries: list[tuple[str, float]]) -> list[str]:
    if not entries:
        return []
    return [keyword, str(len(entries)), *(f"{at} {float(value)!r}" for at, value in entries), ""]


def read_cbf(path: str | Path) -> fo.Model:
    """Read a model.

    Parameters
    ----------
    path : str or Path
        Of the file; ``.gz``, ``.bz2`` or ``.xz`` may follow ``.cbf``.

    Returns
    -------
    Model
        With one variable ``x``.

    Raises
    ------
    UnsupportedError
        For a cone or a section without a counterpart here, by its name.
    DeclarationError
        For a file that is cut off, or no CBF.
    """
    path = Path(path)
    model = fo.Model(path.name.partition(".")[0])
    _, objective, maximize = read_cbf_into(model, path)
    (model.maximize if maximize else model.minimize)(objective)
    return model


def read_cbf_into(model: fo.Model, path: Path, order: int = 0) -> tuple[Any, Any, bool]:
    """Write the content of a file into a model, but for the objective, as `exchange.read_into` does.

    Parameters
    ----------
    model : Model
        To write into.
    path : Path
        Of the file.
    order : int, default 0
        Of rows and columns: the file's own, or one that is drawn with this seed. Cones stay whole.

    Returns
    -------
    tuple[Expression, Expression, bool]
        All columns, the objective, and whether it is to be maximised.
    """
    opened = _PACKED.get(path.suffix.lower(), open)
    with opened(path, "rt") as file:
        entries = (line.split() for line in file if line.strip() and not line.startswith("#"))
        try:
            return _write_into(model, _content(entries, path), order, path)
        except fo.UnsupportedError:
            raise
        except (EOFError, OSError, lzma.LZMAError, zlib.error, MemoryError) as error:
            raise fo.DeclarationError(f"{path} is cut off or damaged: {error}") from None
        except (StopIteration, IndexError, ValueError) as error:
            raise fo.DeclarationError(
                f"{path} is cut off or no CBF: {error or 'its end is missing'}"
            ) from None


exchange.READERS[".cbf"] = read_cbf_into


class ConicFile(ModelFile):
    """The model in a CBF file, as `forcopt.study.library.ModelFile` has that of an MPS file.

    A process of its own imports this module for it, which registers the reader.
    """


@dataclass
class _Content:
    """What a file says."""

    sense: str = "MIN"
    columns: int = 0
    rows: int = 0
    domains: list[tuple[str, int]] = field(default_factory=list)
    cones: list[tuple[str, int]] = field(default_factory=list)
    whole: np.ndarray[Any, Any] = field(default_factory=lambda: np.zeros(0, int))
    cost: list[tuple[float, ...]] = field(default_factory=list)
    a: list[tuple[float, ...]] = field(default_factory=list)
    b: list[tuple[float, ...]] = field(default_factory=list)
    offset: float = 0.0


def _content(words: Iterator[list[str]], path: Path) -> _Content:
    told = _Content()

    def listed(count: int) -> list[tuple[float, ...]]:
        return [tuple(map(float, next(words))) for _ in range(count)]

    def blocks(count: int) -> list[tuple[str, int]]:
        entries = [next(words) for _ in range(count)]  # no generator: it would hide the end of the file
        return [(entry[0], int(entry[1])) for entry in entries]

    for (keyword,) in words:
        first = next(words)
        if keyword == "VER":
            if int(first[0]) > 4:
                raise fo.UnsupportedError(f"{path}: version {first[0]} of the format is not known")
        elif keyword == "OBJSENSE":
            told.sense = first[0]
        elif keyword == "VAR":
            told.columns, told.domains = int(first[0]), blocks(int(first[1]))
        elif keyword == "CON":
            told.rows, told.cones = int(first[0]), blocks(int(first[1]))
        elif keyword == "INT":
            told.whole = np.array(listed(int(first[0]))).ravel()
        elif keyword == "OBJACOORD":
            told.cost = listed(int(first[0]))
        elif keyword == "OBJBCOORD":
            told.offset = float(first[0])
        elif keyword == "ACOORD":
            told.a = listed(int(first[0]))
        elif keyword == "BCOORD":
            told.b = listed(int(first[0]))
        else:
            raise fo.UnsupportedError(f"{path}: the section {keyword} has no counterpart here")
    return told


_LINEAR = ("L=", "L+", "L-", "F")

_LEAST = {"Q": 1, "QR": 2, "EXP": 3}
"""How many entries a cone has at least."""


def _write_into(m: fo.Model, told: _Content, order: int, path: Path) -> tuple[Any, Any, bool]:
    n, rows = told.columns, told.rows
    for section, cones, count in (("VAR", told.domains, n), ("CON", told.cones, rows)):
        if (total := sum(size for _, size in cones)) != count:
            raise ValueError(f"the cones of {section} have {total} entries, not {count}")
        for cone, size in cones:
            if size < _LEAST.get(cone, 0) or (cone == "EXP" and size != 3):
                raise ValueError(f"a cone {cone} has {size} entries")
    if told.sense not in ("MIN", "MAX"):
        raise ValueError(f"OBJSENSE is {told.sense!r}; it must be MIN or MAX")
    i, j, v = np.array(told.a).reshape(-1, 3).T
    by_row, by_column = [entry[0] for entry in told.b], [entry[0] for entry in told.cost]
    for section, places, count in (
        ("INT", told.whole, n),
        ("OBJACOORD", by_column, n),
        ("ACOORD", i, rows),
        ("ACOORD", j, n),
        ("BCOORD", by_row, rows),
    ):
        wrong = [place for place in places if not (0 <= place < count and place == int(place))]
        if wrong:
            raise ValueError(f"{section} names the index {wrong[0]:g}; there are {count}, counted from 0")
    matrix = sp.csr_array((v, (i.astype(int), j.astype(int))), shape=(rows, n))
    right, price = np.zeros(rows), np.zeros(n)
    for vector, entries in ((right, told.b), (price, told.cost)):
        for at, number in entries:
            vector[int(at)] += number
    rng = np.random.default_rng(order)
    columns = rng.permutation(n) if order else np.arange(n)
    place = np.argsort(columns)
    signs = np.repeat([cone for cone, _ in told.domains], [size for _, size in told.domains])[columns]
    x = m.variable(
        m.unused_name("x"),
        n,
        lower=np.where(np.isin(signs, ("L=", "L+")), 0.0, -np.inf),
        upper=np.where(np.isin(signs, ("L=", "L-")), 0.0, np.inf),
        integer=np.isin(columns, told.whole),
    )
    affine = matrix[:, columns] @ x + right
    held = [(cone, x[place[at]]) for cone, at in _blocks(told.domains) if cone not in _LINEAR]
    for cone, at in _blocks(told.cones):
        held.append((cone, affine[rng.permutation(at) if order and cone in _LINEAR else at]))
    for at in rng.permutation(len(held)) if order else range(len(held)):
        _constrain(m, *held[at], path)
    return x, price[columns] @ x + told.offset, told.sense == "MAX"


def _blocks(cones: list[tuple[str, int]]) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """Cones with the positions of their entries."""
    start = 0
    for cone, size in cones:
        yield cone, np.arange(start, start + size)
        start += size


def _constrain(m: fo.Model, cone: str, y: Any, path: Path) -> None:
    """Hold values in a cone."""
    if cone == "L=":
        m.subject_to(y == 0)
    elif cone == "L+":
        m.subject_to(y >= 0)
    elif cone == "L-":
        m.subject_to(y <= 0)
    elif cone == "Q":
        m.subject_to(fo.norm(y[1:]) <= y[0])
    elif cone == "QR":  # 2 y0 y1 >= |rest|^2
        m.subject_to(fo.norm(fo.concatenate([np.sqrt(2) * y[2:], (y[0] - y[1]).reshape(1)])) <= y[0] + y[1])
        m.subject_to(y[:2] >= 0)
    elif cone == "EXP":  # y0 >= y1 exp(y2 / y1)
        m.subject_to(fo.kl_div(y[1], y[0]) + y[1] - y[0] + y[2] <= 0)
    elif cone != "F":
        raise fo.UnsupportedError(f"{path}: the cone {cone} has no counterpart here")
