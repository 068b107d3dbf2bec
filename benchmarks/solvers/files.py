"""What solvers are given: the models of a folder, of a published list, or of a metadata file."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from benchmarks.cbf import CBF_SUFFIXES, ConicFile, read_cbf
from benchmarks.solvers.kinds import UNKNOWN, of_file, of_model
from forcopt.errors import DeclarationError, UnsupportedError, unknown
from forcopt.loops.exchange import MODEL_SUFFIXES
from forcopt.study.library import ModelFile

LISTS = Path(__file__).resolve().parents[1] / "instances" / "lists"
"""Published lists of instances, a file each: a name a line, and other names of its file after it."""

SUFFIXES = (*MODEL_SUFFIXES, *CBF_SUFFIXES)
"""How the names of files end that are solved."""


@dataclass(frozen=True)
class Chosen:
    """The files of a benchmark.

    Attributes
    ----------
    files : dict[str, Path]
        By their names without endings.
    labels : dict[str, str]
        Sizes, by the same names.
    notes : tuple[str, ...]
        What is missing or left out, in words.
    kinds : dict[str, str]
        What `kind` has found already.
    """

    files: dict[str, Path]
    labels: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    kinds: dict[str, str] = field(default_factory=dict)

    @property
    def problems(self) -> dict[str, ModelFile]:
        """The files as problems."""
        return {
            name: (ConicFile if self.conic(name) else ModelFile)(path=str(path))
            for name, path in self.files.items()
        }

    def kind(self, name: str) -> str:
        """The kind of the model of this name, see `benchmarks.solvers.kinds`."""
        if name not in self.kinds:
            self.kinds[name] = of_file(self.files[name]) if name in self.files else UNKNOWN
        return self.kinds[name]

    def conic(self, name: str) -> bool:
        """Whether the model of this name is in a conic file."""
        return name in self.files and self.files[name].name.lower().endswith(CBF_SUFFIXES)


def stem(name: str) -> str:
    """The name of a file without its ending; the whole name of another file.

    Examples
    --------
    >>> stem("air05.mps.gz"), stem("chainsing-50000-1.cbf.bz2"), stem("README.md")
    ('air05', 'chainsing-50000-1', 'README.md')
    """
    ends = [end for end in SUFFIXES if name.lower().endswith(end)]
    return name[: -len(max(ends, key=len))] if ends else name


def choose(source: Path, listed: str | None = None) -> Chosen:
    """The models of a folder, or those that a metadata file names of the folder that it is in.

    Parameters
    ----------
    source : Path
        A folder, or a ``.yaml`` file in the schema of open-energy-transition/solver-benchmark.
    listed : str, optional
        Only those of a list in `LISTS`.

    Returns
    -------
    Chosen
        Of files with one name in several formats, MPS is taken before LP and CBF.

    Raises
    ------
    UnknownNameError
        For a list that does not exist.
    DeclarationError
        If no file is left, or a metadata file has another schema.
    """
    folder = source if source.is_dir() else source.parent
    files: dict[str, Path] = {}
    every = [p for p in sorted(folder.rglob("*")) if p.is_file() and p.name.lower().endswith(SUFFIXES)]
    twice = []
    for path in sorted(every, key=_format):
        if files.setdefault(stem(path.name), path) != path:
            twice.append(str(path.relative_to(folder)))
    notes = []
    if twice:
        words = f"{len(twice)} files are left out, since another of the same name is taken: "
        notes.append(words + _first(twice))
    chosen = Chosen(files)
    if not source.is_dir():
        chosen = _described(source, files)
    if listed is not None:
        chosen = _of_list(listed, chosen)
    chosen = _readable(chosen)
    if not chosen.files:
        words = chosen.notes or (f"{folder} holds no file that ends in {', '.join(SUFFIXES)}",)
        raise DeclarationError("; ".join(words))
    return replace(chosen, notes=(*notes, *chosen.notes))


def _readable(chosen: Chosen) -> Chosen:
    """Without conic files that have cones or sections without a counterpart here."""
    files, notes, kinds = dict(chosen.files), [], {}
    for name in filter(chosen.conic, chosen.files):
        try:
            kinds[name] = of_model(read_cbf(files[name]))
        except (DeclarationError, UnsupportedError) as error:
            del files[name]
            notes.append(f"left out: {error}")
    return Chosen(files, chosen.labels, (*chosen.notes, *notes), kinds)


def _format(path: Path) -> int:
    return next(at for at, end in enumerate((".mps", ".lp", ".cbf")) if end in path.name.lower())


def read_list(name: str) -> list[list[str]]:
    """The names of a list, each with the other names of its file.

    Raises
    ------
    UnknownNameError
        If there is no such list.

    Examples
    --------
    >>> len(read_list("miplib2017-benchmark")), read_list("mittelmann-lp-2021")[2]
    (240, ['chrom1024-7', 'chromaticindex1024-7'])
    """
    lists = {path.stem: path for path in sorted(LISTS.glob("*.txt"))}
    if name not in lists:
        raise unknown("list", name, list(lists))
    lines = lists[name].read_text(encoding="utf-8").splitlines()
    return [line.split() for line in lines if line.strip() and not line.startswith("#")]


def _of_list(name: str, given: Chosen) -> Chosen:
    found: dict[str, Path] = {}
    missing = []
    entries = read_list(name)
    for words in entries:
        at = next((word for word in words if word in given.files), None)
        if at is None:
            missing.append(words[0])
        else:
            found[at] = given.files[at]
    note = f"{name}: {len(found)} of {len(entries)} instances are there{_those(missing)}"
    return Chosen(found, given.labels, (*given.notes, note))


def _those(missing: list[str]) -> str:
    """Words for the missing ones: the first of them by name."""
    return f"; missing: {_first(missing)}" if missing else ""


def _first(names: list[str], most: int = 10) -> str:
    """The first names of several."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def _described(path: Path, files: dict[str, Path]) -> Chosen:
    """The files that a metadata file names; both schemas, ``benchmarks`` with ``Sizes`` and ``problems``."""
    try:
        import yaml
    except ImportError:
        raise DeclarationError(f"{path} needs PyYAML: pip install pyyaml") from None
    try:
        told = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise DeclarationError(f"{path} is no YAML: {error}") from None
    found: dict[str, Path] = {}
    labels: dict[str, str] = {}
    missing: list[str] = []
    skipped = 0
    for name, entry in _entries(told, path):
        if entry.get("Skip because"):
            skipped += 1
            continue
        named = (stem(PurePosixPath(str(entry.get(key) or "")).name) for key in ("Path", "URL"))
        at = next((word for word in (name, *named) if word in files), None)
        if at is None:
            missing.append(name)
        else:
            found[at], labels[at] = files[at], str(entry.get("Size", ""))
    note = f"{path.name}: {len(found)} of {len(found) + len(missing)} instances are there{_those(missing)}"
    more = (f"{path.name}: {skipped} instances are marked as skipped",) if skipped else ()
    return Chosen(found, labels, (note, *more))


def _entries(told: Any, path: Path) -> list[tuple[str, dict[str, Any]]]:
    """Each instance with its fields."""
    known = told if isinstance(told, dict) else {}
    kind = "problems" if "problems" in known else "benchmarks"
    listed = known.get(kind)
    found = []
    for name, entry in listed.items() if isinstance(listed, dict) else ():
        fits = isinstance(entry, dict) and (kind == "problems" or isinstance(entry.get("Sizes"), list))
        rule = "a mapping" if kind == "problems" else "a mapping with Sizes, a list of instances"
        if not fits:
            raise DeclarationError(f"{path}: {kind}: {name} is {entry!r}; it must be {rule}")
        if kind == "problems":
            found.append((str(name), entry))
            continue
        for size in entry["Sizes"]:
            if not isinstance(size, dict) or "Name" not in size:
                raise DeclarationError(
                    f"{path}: {name}: Sizes holds {size!r}; it must be a mapping with a Name"
                )
            found.append((f"{name}-{size['Name']}", size))
    if not found:
        raise DeclarationError(
            f"{path} names no instances; it must have `benchmarks` with `Sizes`, or `problems`"
        )
    return found
