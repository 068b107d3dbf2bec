"""Hand a model over, to files and to other libraries' own objects, and take one from a file."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from forcopt.arrays import Array, as_bounds, check_order
from forcopt.backends.base import lacking
from forcopt.backends.highs import highs_of, silent_highs
from forcopt.backends.registry import all_capabilities, backends
from forcopt.compile.compiler import Capabilities, compile_model
from forcopt.compile.program import Program
from forcopt.errors import BackendError, DeclarationError, NotInstalledError, UnsupportedError
from forcopt.language.expression import Expression
from forcopt.language.model import Model
from forcopt.language.products import quad_form
from forcopt.language.relations import ParameterProduct
from forcopt.language.special_sets import semicontinuous
from forcopt.language.terms import Gather

if TYPE_CHECKING:
    import highspy


_PACKED: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}

MODEL_SUFFIXES = tuple(kind + packed for kind in (".mps", ".lp") for packed in ("", *_PACKED))
"""How the names of files end that `read` takes."""

READERS: dict[str, Callable[[Model, Path, int], tuple[Expression, Expression, bool]]] = {}
"""Readers of other formats by their ending, called as `read_into`."""

_FILE = Capabilities(frozenset({"rows", "integer", "quadratic"}))
"""The capabilities of the formats; unlike HiGHS itself they take integers and squares together."""

_LP_NAME = re.compile(r"[A-Za-df-z_#@(].*|[eE]([^0-9eE].*)?")
"""How a name may begin in an LP file: not as a number, nor as the exponent of one."""

_LP_WORD = re.compile(
    r"min(imize|imum)?|max(imize|imum)?|subject|st\.?|s\.t\.|bounds?|gen(erals?)?|int(egers?)?|bin(ary|aries)?|"
    r"semis?|sec|sin|sos|end|free|inf(inity)?|nan",
    re.IGNORECASE,
)
"""Words with a meaning of their own in an LP file."""


_LP_NUMBER = re.compile(r"inf|nan", re.IGNORECASE)
"""Beginnings that HiGHS's reader takes for a number."""

_MPS_SECTION = "name|objsense|qsection|qcmatrix|csection"
"""Words that HiGHS's reader takes for the head of a section, in any line."""

_MPS_WORD = re.compile(rf"{_MPS_SECTION}|bound|rhs_v|'marker'", re.IGNORECASE)
"""Words with a meaning of their own in an MPS file that HiGHS writes."""

_NATIVE = {"highs": "highs", "cvxpy": "clarabel", "mathopt": "glop", "pyomo": "pyomo:glpk"}
"""A backend of each library."""


def to_native(model: Model, library: str, *, first_stage: bool = False) -> Any:
    """Give the model as another library's own object, not solved.

    Parameters
    ----------
    model : Model
        Without lazy families; with one objective at most, unless `first_stage`.
    library : {"highs", "cvxpy", "mathopt", "pyomo"}
        See `Backend.native`.
    first_stage : bool, default False
        Of several objectives in order of priority, hand over the first alone.

    Raises
    ------
    UnsupportedError
        If the object cannot hold the model.
    NotInstalledError
        If the library cannot be used here.
    """
    backend = backends()[_NATIVE[library]]
    if lack := lacking(backend.through):
        raise NotInstalledError(f"the model cannot be handed over to {library}: {lack}")
    _refuse_losses(model, f"hand {model.name!r} over to {library}", first_stage)
    assert backend.native_capabilities is not None
    return backend.native(_compiled(model, backend.native_capabilities, library))


def _refuse_losses(model: Model, doing: str, first_stage: bool = False) -> None:
    """Refuse models of which an object or a file would lose parts: later objectives and lazy families.

    Raises
    ------
    UnsupportedError
        Naming them.
    """
    count = model.objective.count if model.objective else 0
    if count > 1 and not first_stage:
        raise UnsupportedError(
            f"cannot {doing}: {model.name!r} has {count} objectives in order of priority, and it "
            "holds one; fix the values of the earlier ones by constraints and pass the last"
        )
    if model.lazies:
        names = ", ".join(repr(family.name) for family in model.lazies)
        raise UnsupportedError(f"cannot {doing}: the lazy family {names} is a function; Model.solve calls it")


def _compiled(model: Model, capabilities: Capabilities, name: str) -> Program:
    """The program of a model, without the columns that nothing uses."""
    program = compile_model(model, capabilities, name, all_capabilities)
    if any(stage.leximin is not None for stage in program.stages):
        return program
    unseen = model.unused_columns()
    if model.parameters:
        products = [r.result_columns for r in model.relations if isinstance(r, ParameterProduct)]
        unseen = np.unique(np.concatenate([unseen, model.parameter_values()[0], *products]))
    return program.without(unseen)


def write(model: Model, path: str | Path) -> None:
    """Write a model as MPS or LP, by HiGHS's writer: numbers with 15 significant digits.

    Atoms and semantic constraints are written as the rows and columns that bridges give for them. Names are
    kept as far as the format allows: MPS has no spaces, and ``_`` precedes words of its own; LP has round
    brackets for square ones, ``_`` for other characters, and two rows, ``NAMElo`` and ``NAMEup``, for one
    with two different bounds.

    Parameters
    ----------
    model : Model
        Linear or convex quadratic, with or without integers; one objective at most.
    path : str or Path
        Ends in ``.mps`` or ``.lp``; with ``.gz``, ``.bz2`` or ``.xz`` after that it is compressed.

    Raises
    ------
    DeclarationError
        For another ending.
    UnsupportedError
        For models beyond the formats: cones, lazy families, several objectives; for coefficients up to 1e-12,
        which HiGHS drops, unless they are rounding dust.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import forcopt as fo, tempfile, os
    >>> m = fo.Model()
    >>> x = m.variable("x", shape=2, lower=0, integer=True)
    >>> _ = m.subject_to(fo.maximum(x[0] - x[1], 1) <= 2.5, name="near")
    >>> m.maximize(3 * x[0] - 4 * x[1])
    >>> path = os.path.join(tempfile.mkdtemp(), "near.mps")
    >>> m.write(path)
    >>> m.solve().objective, fo.read(path).solve().objective
    (6.0, 6.0)
    """
    path = Path(path)
    if not path.name.endswith(MODEL_SUFFIXES):
        raise DeclarationError(
            f"cannot write {path}: the name must end in .mps or .lp, .gz, .bz2 or .xz may follow"
        )
    if path.suffix in _PACKED:
        with TemporaryDirectory() as folder:
            plain = Path(folder) / path.stem
            write(model, plain)
            with _PACKED[path.suffix](path, "wb") as packed:
                packed.write(plain.read_bytes())
        return
    _refuse_losses(model, f"write {path}")
    try:
        program = _compiled(model, _FILE, f"a {path.suffix} file")
        out = highs_of(program)
    except UnsupportedError as error:
        raise UnsupportedError(f"cannot write {path}: {error}") from None
    path.open("w").close()  # HiGHS crashes on a file that it cannot open; Python gives the reason
    twice = np.isfinite(program.rows.lower) & np.isfinite(program.rows.upper)
    twice &= program.rows.lower < program.rows.upper
    for position, name in enumerate(_spell(map(program.column_name, range(program.columns)), path.suffix)):
        out.passColName(position, name)
    for position, name in enumerate(
        _spell(map(program.row_name, range(program.rows.count)), path.suffix, twice)
    ):
        out.passRowName(position, name)
    _with_warnings(out, lambda: out.writeModel(str(path)), f"writing {path}", BackendError)
    if path.suffix == ".lp":
        _name_unused_columns(path, program, list(out.getLp().col_names_))


def _name_unused_columns(path: Path, program: Program, names: list[str]) -> None:
    """Add columns without entries to the objective of an LP file, with 0: HiGHS's writer leaves some out."""
    stage = program.stages[0]
    unused = stage.cost == 0
    unused[program.rows.indices[program.rows.data != 0]] = False
    if stage.quadratic is not None:
        unused[np.unique(stage.quadratic.nonzero())] = False
    if unused.any():
        terms = "".join(f"\n +0 {names[j]}" for j in np.flatnonzero(unused).tolist())
        path.write_text(path.read_text().replace("\nst\n", f"{terms}\nst\n", 1))


def _spell(names: Iterable[str], suffix: str, twice: Any = None) -> list[str]:
    """Spell names as the format allows, each once; where `twice`, both LP rows get unused names."""
    taken: set[str] = set()
    out = []
    for position, name in enumerate(names):
        if suffix == ".lp":
            name = re.sub(r"[^A-Za-z0-9_.,()#@]", "_", name.replace("[", "(").replace("]", ")"))
            if _LP_WORD.fullmatch(name) or _LP_NUMBER.match(name) or not _LP_NAME.fullmatch(name):
                name = "_" + name
        else:
            name = re.sub(r"\s", "_", name) or "_"
            if _MPS_WORD.fullmatch(name):
                name = "_" + name
        ends = ("", "lo", "up") if twice is not None and twice[position] else ("",)
        spelled, again = name, 1
        while not taken.isdisjoint(spelled + end for end in ends):
            again += 1
            spelled = f"{name}_{again}"
        taken.update(spelled + end for end in ends)
        out.append(spelled)
    return out


def read(path: str | Path) -> Model:
    """Read a model from an MPS or LP file, by HiGHS's reader.

    Variables keep their names, and their shapes if the file has all columns ``name[0]``, ``name[1]``, ... of
    an array (round brackets in LP files); any other column is a scalar variable. There is one constraint
    ``rows`` with a label for each row; the semicontinuous columns get a condition ``semicontinuous``. What
    the reader changes (a tiny coefficient) and bounds of no column are named by a
    warning; rows of an MPS file that demand nothing are dropped.

    Parameters
    ----------
    path : str or Path
        A file that ends in ``.mps`` or ``.lp``, or in one of these and ``.gz``, ``.bz2`` or ``.xz``.

    Returns
    -------
    Model
        With the objective of the file, also if it is constant.

    Raises
    ------
    FileNotFoundError
        If there is none.
    DeclarationError
        If HiGHS cannot read it, with its words, or would lose a column or an entry, such as one that stands
        twice or is of no row; if bounds contradict each other; or if a compressed file is cut off or damaged.
    CurvatureError
        If the objective is quadratic and not convex.

    Examples
    --------
    >>> import forcopt as fo, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "diet.lp"
    >>> _ = path.write_text("min cost: 3 bread + 4 milk\\nst\\n need: bread + 2 milk >= 4\\nend")
    >>> m = fo.read(path)
    >>> s = m.solve()
    >>> s.objective, s["milk"].item()
    (8.0, 2.0)
    """
    model = Model((Path(path) if Path(path).suffix.lower() not in _PACKED else Path(Path(path).stem)).stem)
    _, objective, maximize = read_into(model, path)
    (model.maximize if maximize else model.minimize)(objective)
    return model


def _shuffle(source: highspy.Highs, seed: int) -> None:
    """Put the rows and columns of a model into another order."""
    whole = source.getModel()
    lp, hessian, rng = whole.lp_, whole.hessian_, np.random.default_rng(seed)
    rows, columns = rng.permutation(lp.num_row_), rng.permutation(lp.num_col_)
    read = lp.a_matrix_  # by columns, as HiGHS reads it
    matrix = sp.csc_array((read.value_, read.index_, read.start_), shape=(lp.num_row_, lp.num_col_))
    matrix = sp.csc_array(matrix[rows][:, columns])
    read.start_, read.index_, read.value_ = matrix.indptr, matrix.indices, matrix.data
    for names, order in ((("row_lower_", "row_upper_", "row_names_"), rows), (_BY_COLUMN, columns)):
        for name in names:
            values = list(getattr(lp, name))
            setattr(lp, name, [values[i] for i in order.tolist()] if values else values)
    if hessian.dim_:
        half = sp.csc_array((hessian.value_, hessian.index_, hessian.start_), shape=2 * (lp.num_col_,))
        square = sp.csc_array(sp.tril((half + sp.tril(half, -1).T)[columns][:, columns]))
        hessian.start_, hessian.index_, hessian.value_ = square.indptr, square.indices, square.data
    source.passModel(whole)


_BY_COLUMN = ("col_cost_", "col_lower_", "col_upper_", "integrality_", "col_names_")
"""The fields of a model in HiGHS with an entry for each column."""


def read_into(model: Model, path: str | Path, order: int = 0) -> tuple[Expression, Expression, bool]:
    """Write the content of a file into a model, as `read` does, but for the objective.

    Parameters
    ----------
    model : Model
        To write into.
    path : str or Path
        Of the file.
    order : int, default 0
        Of rows and columns: the file's own, or one that is drawn with this seed.

    Returns
    -------
    tuple[Expression, Expression, bool]
        All columns in the order of the file, the objective, and whether it is to be maximised.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}")
    ending = path.suffix.lower()
    if ending in _PACKED or ending != path.suffix:
        with TemporaryDirectory() as folder, _PACKED.get(ending, open)(path, "rb") as packed:
            plain = Path(folder) / (path.stem if ending in _PACKED else path.stem + ending)
            try:
                plain.write_bytes(packed.read())
            except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
                raise DeclarationError(f"{path} is cut off or damaged: {error}") from None
            try:
                return read_into(model, plain, order)
            except DeclarationError as error:
                raise DeclarationError(str(error).replace(str(plain), str(path))) from None
    if path.suffix in READERS:
        return READERS[path.suffix](model, path, order)
    if path.suffix == ".cbf":
        raise DeclarationError(f"{path}: the repository's benchmarks.cbf.read_cbf reads conic files")
    if path.suffix == ".lp":
        _refuse_repeated_costs(path)
    elif found := _SECTION_COLUMN.search(path.read_text(errors="replace")):
        raise DeclarationError(
            f"{path}: HiGHS's reader takes the column {found[1]} for the section of this name; rename it"
        )
    source = silent_highs()
    warned = _with_warnings(source, lambda: source.readModel(str(path)), f"reading {path}", DeclarationError)
    lp = source.getLp()
    for kind, names, count in (("column", lp.col_names_, lp.num_col_), ("row", lp.row_names_, lp.num_row_)):
        if len(names) != count:  # HiGHS drops them all if two are the same
            words = "; ".join(warned)
            raise DeclarationError(f"{path}: every {kind} must have a name of its own; HiGHS: {words}")
    if dropped := [words for words in warned if words.endswith(": ignored")]:
        raise DeclarationError(f"{path}: an entry that stands twice or fits no row: {'; '.join(dropped)}")
    for words in warned:
        warnings.warn(f"{path}: HiGHS: {words}", stacklevel=3)
    if path.suffix == ".mps":
        _refuse_other_numbers(path, fixed=any("fixed format" in words for words in warned))
    if not lp.num_col_ and not lp.num_row_ and not _END.search(path.read_text(errors="replace")):
        raise DeclarationError(f"{path}: HiGHS finds no model in it")
    if twice := [name for name, count in Counter(lp.row_names_).items() if count > 1]:
        raise DeclarationError(f"{path}: two rows are called {twice[0]}; each must have a name of its own")
    for name, whole in _columns_without_entry(path, source):
        if whole:
            raise DeclarationError(
                f"{path}: {name} is declared whole, but no row and no objective has it; correct the name"
            )
        warnings.warn(f"{path}: a bound names {name}, which has no entry among the columns", stacklevel=3)
    if order:
        _shuffle(source, order)
        lp = source.getLp()
    try:
        return take_highs(model, source, partial(declare_columns, model, list(lp.col_names_)), lp.row_names_)
    except DeclarationError as error:
        raise DeclarationError(f"{path}: {error}") from None


_INTEGER, _SEMICONTINUOUS = (1, 3), (2, 3)
"""HiGHS's numbers of the kinds of columns."""

_END = re.compile(r"^\s*end(ata)?\s*\Z", re.I | re.M)
"""The last line of a file."""

_ELEMENT = re.compile(r"(.+?)[\[(]([0-9]+(?:,[0-9]+)*)[\])]")
"""A column's name that has positions in an array."""


def take_highs(
    model: Model,
    highs: highspy.Highs,
    declare: Callable[[Array, Array, Array], Expression],
    rows: Sequence[str],
) -> tuple[Expression, Expression, bool]:
    """Write the content of a HiGHS object into a model, but for its objective.

    Parameters
    ----------
    model : Model
        The model to extend.
    highs : highspy.Highs
        The source.
    declare : Callable[[Array, Array, Array], Expression]
        Declares the columns with these lower and upper bounds, where they are integer, and gives them all.
    rows : Sequence[str]
        A name for each row.

    Returns
    -------
    tuple[Expression, Expression, bool]
        See `read_into`.
    """
    lp, hessian = highs.getLp(), highs.getModel().hessian_
    kinds = np.array([int(kind) for kind in lp.integrality_] or [0] * lp.num_col_, dtype=int)
    optional = np.isin(kinds, _SEMICONTINUOUS)
    low, high = as_bounds(lp.col_lower_, lp.col_upper_, "column ")
    check_order(low, high, low.shape, "column")
    least, most = np.where(optional, np.minimum(low, 0), low), np.where(optional, np.maximum(high, 0), high)
    x = declare(least, most, np.isin(kinds, _INTEGER))
    if lp.num_row_:
        body = (_matrix(lp) @ x).between(lp.row_lower_, lp.row_upper_)
        body.labels = list(rows)
        model.subject_to(body, name=model.unused_name("rows"))
    if optional.any():
        condition = semicontinuous(x[optional], low[optional], high[optional])
        model.subject_to(condition, name=model.unused_name("semicontinuous"))
    return x, np.array(lp.col_cost_) @ x + lp.offset_ + _square(x, hessian), int(lp.sense_) < 0


def declare_columns(model: Model, names: list[str], low: Array, high: Array, integer: Array) -> Expression:
    """Declare variables for columns, arrays where names show them; give all columns in their order."""
    columns = np.empty(len(names), dtype=np.int32)
    for name, shape, places in _arrays(names):
        columns[places] = model.column_count + np.arange(len(places))
        least, most, whole = (values[places].reshape(shape) for values in (low, high, integer))
        labels = None if shape else [names[places[0]]]
        model.declare_block(model.unused_name(name), least, most, whole, labels)
    return Expression(model, columns.shape, (Gather(columns[:, None], np.ones((1, 1)), True),), np.zeros(()))


def _arrays(names: list[str]) -> Iterator[tuple[str, tuple[int, ...], list[int]]]:
    """The variables that columns belong to, their shapes, and where their columns are in the file."""
    elements: dict[str, dict[tuple[int, ...], int]] = {}
    heads: list[str] = []
    for place, name in enumerate(names):
        match = _ELEMENT.fullmatch(name)
        heads.append(match[1] if match else "")
        if match:
            elements.setdefault(match[1], {})[tuple(map(int, match[2].split(",")))] = place
    counts = Counter(heads)
    whole: dict[str, tuple[tuple[int, ...], list[int]]] = {}
    for head, found in elements.items():
        if len({len(at) for at in found}) > 1:
            continue
        shape = tuple(max(n) + 1 for n in zip(*found, strict=True))
        if prod(shape) == len(found) == counts[head]:
            whole[head] = shape, [found[at] for at in np.ndindex(shape)]
    firsts = {min(places) for _, places in whole.values()}
    for place, (name, head) in enumerate(zip(names, heads, strict=True)):
        if head not in whole:
            yield name, (), [place]
        elif place in firsts:
            yield head, *whole[head]


_OBJECTIVE = re.compile(
    r"^\s*(?:min|max)[a-z]*\b(.*?)(?:^\s*(?:subject\s+to|such\s+that|st\b|s\.t\.)|\Z)", re.I | re.S | re.M
)
_NAME = re.compile(r"(?<![\w.])[^\W\d][\w.!\"#$%&(),;?@`'{}~|\[\]]*")


def _refuse_repeated_costs(path: Path) -> None:
    """HiGHS's reader of LP files silently keeps one of several coefficients in the objective."""
    text = re.sub(r"\\.*", "", path.read_text(errors="replace"))  # without comments
    found = _OBJECTIVE.search(text)
    if found is None:
        return
    linear = re.sub(r"\[.*?\]", "", re.sub(r"^[^:\n]*:", "", found[1].strip()), flags=re.S)
    counts = Counter(_NAME.findall(linear))
    repeated = [name for name, count in counts.items() if count > 1]
    if repeated:
        raise DeclarationError(
            f"{path}: the objective names {repeated[0]} {counts[repeated[0]]} times, of which HiGHS's reader "
            "keeps one coefficient; add them up"
        )


_TAIL = {
    ".mps": re.compile("^bounds", re.I | re.M),
    ".lp": re.compile(
        r"^[ \t]*(?:bounds?|gen(?:erals?)?|int(?:egers?)?|bin(?:ar(?:y|ies))?|semi|sec|sin)\b", re.I | re.M
    ),
}
"""Where the parts of a file begin that only name columns."""


def _columns_without_entry(path: Path, source: highspy.Highs) -> list[tuple[str, int]]:
    """The columns of no row and no objective, with their kinds: HiGHS's reader makes empty ones of them."""
    lp, square = source.getLp(), source.getModel().hessian_
    used = np.array(lp.col_cost_) != 0
    used[_matrix(lp).indices] = True
    used[list(square.index_)] = True
    empty = np.flatnonzero(~used).tolist()
    head = _TAIL[path.suffix].split(re.sub(r"\\.*", "", path.read_text(errors="replace")), maxsplit=1)[0]
    kinds = [int(kind) for kind in lp.integrality_] or [0] * lp.num_col_
    named = [(lp.col_names_[j], kinds[j]) for j in empty]
    return [(n, k) for n, k in named if not re.search(rf"(?<![\w.]){re.escape(n)}(?![\w.])", head)]


_SECTION_COLUMN = re.compile(rf"^[ \t]+({_MPS_SECTION})[ \t]+\S+[ \t]+\S", re.I | re.M)
"""An entry of a column with a section's name: three words, not at the beginning of the line.

HiGHS's reader of MPS files silently takes such entries for the head of a section.
"""


_MPS_NUMBER = re.compile(
    r"[+-]?([0-9]+\.?[0-9]*([ed][+-]?[0-9]+)?|\.[0-9]+([ed][+-]?[0-9]+)?|inf(inity)?)", re.I
)
_MPS_DATA = ("COLUMNS", "RHS", "RANGES", "BOUNDS")
_UNBOUNDED = ("FR", "MI", "PL", "BV")
"""Kinds of bounds in an MPS file that have no number."""


def _refuse_other_numbers(path: Path, fixed: bool) -> None:
    """HiGHS's reader of MPS files silently takes the first digits of ``1,5``, and 0 for a word."""
    section = ""
    with path.open(errors="replace") as lines:
        for at, line in enumerate(lines, 1):
            words = line.split()
            section = words[0].upper() if len(words) == 1 else section
            if len(words) < 2 or line[0] == "*" or section not in _MPS_DATA or "'MARKER'" in words:
                continue
            start = {"COLUMNS": 2, "BOUNDS": -1}.get(section, 1 + len(words) % 2)
            numbers = [line[24:36].strip(), line[49:61].strip() or "0"] if fixed else words[start::2]
            wrong = [number for number in numbers if not _MPS_NUMBER.fullmatch(number)]
            if wrong and not (section == "BOUNDS" and words[0].upper() in _UNBOUNDED):
                place = "; HiGHS takes the file for the fixed format, of names with blanks" if fixed else ""
                raise DeclarationError(f"{path}, line {at}: {wrong[0]!r} is no number, such as 1.5{place}")


def _matrix(lp: highspy.HighsLp) -> sp.csr_array:
    held = lp.a_matrix_
    make = sp.csc_array if "kColwise" in str(held.format_) else sp.csr_array
    return sp.csr_array(make((held.value_, held.index_, held.start_), shape=(lp.num_row_, lp.num_col_)))


def _square(x: Expression, hessian: highspy.HighsHessian) -> Any:
    """Half of ``x' Q x`` for the lower triangle of Q that HiGHS holds."""
    if not hessian.dim_ or not np.any(hessian.value_):
        return 0.0
    lower = sp.csc_array((hessian.value_, hessian.index_, hessian.start_), shape=(hessian.dim_,) * 2)
    full = sp.csr_array(lower + sp.tril(lower, -1).T)
    used = np.unique(full.nonzero())
    return 0.5 * quad_form(x[used], full[used][:, used])


def _with_warnings(
    highs: highspy.Highs, act: Callable[[], Any], doing: str, error: type[Exception]
) -> list[str]:
    """Let HiGHS do something and give its warnings, without their label; raise its errors."""
    import highspy

    with TemporaryDirectory() as folder:  # not every version of HiGHS calls back while it reads
        log = Path(folder) / "log"
        highs.setOptionValue("log_file", str(log))
        status = act()
        highs.setOptionValue("log_file", "")
        lines = log.read_text().splitlines()
    if status == highspy.HighsStatus.kError:
        words = [re.sub(r"^ERROR:\s*", "", line) for line in lines if line.startswith("ERROR")]
        raise error(f"HiGHS: error {doing}: {'; '.join(words)}")
    return [re.sub(r"^WARNING:\s*", "", line) for line in lines if line.startswith("WARNING")]
