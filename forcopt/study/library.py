"""The instance library with its best known values, and bare models from files, compared as problems are."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import cache, lru_cache
from importlib import import_module, resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import PrivateAttr, model_validator

from forcopt.arrays import Array
from forcopt.errors import DeclarationError, require, similar, unknown
from forcopt.instance import Instance
from forcopt.language.expression import Expression
from forcopt.language.model import Model
from forcopt.language.relations import only_columns
from forcopt.loops.exchange import MODEL_SUFFIXES, read, read_into
from forcopt.loops.solution import ModelSolution
from forcopt.problem import Evaluation, Handles, Problem, examples, problem_classes
from forcopt.problem.registry import example_file
from forcopt.study.run import model_size
from forcopt.study.store import metadata


class Values(dict[str, float]):
    """The values of a bare model's variables by name."""

    def __str__(self) -> str:
        shown = [f"{name}  {value:.10g}" for name, value in self.items() if value]
        more = [f"and {len(shown) - _MOST_VALUES} more; --json has all"] if len(shown) > _MOST_VALUES else []
        return "\n".join([*shown[:_MOST_VALUES], *more, "variables that are not listed are 0"])


_MOST_VALUES = 40
"""How many values are printed."""


class ModelFile(Problem):
    """The model in an MPS or LP file; a decision is the values of its columns, shape ``(columns,)``.

    Attributes
    ----------
    path : str
        Of the file.
    sha256 : str, default ""
        Of the content; computed if left out.
    order : int, default 0
        Of rows and columns: the file's own, or one that is drawn with this seed.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    DeclarationError
        If the content does not fit `sha256`.
    """

    default_method = "model"
    family = "model"
    path: str
    sha256: str = ""
    order: int = 0

    @model_validator(mode="after")
    def _is_the_same(self) -> Self:
        found = hashlib.sha256(Path(self.path).read_bytes()).hexdigest()
        if self.sha256 and self.sha256 != found:
            raise DeclarationError(f"{self.path} is not the file whose sha256 is {self.sha256}")
        object.__setattr__(self, "sha256", found)
        return self

    _made: tuple[Model, Handles] | None = PrivateAttr(None)

    def _read_before(self) -> None:
        self._made = super().formulate()

    def formulate(self, method: str | None = None, **options: Any) -> tuple[Model, Handles]:
        """See `Problem.formulate`."""
        made, self._made = self._made, None
        return made or super().formulate(method, **options)

    @property
    def _model_name(self) -> str:
        """The name of the file, as in `fo.read`."""
        return re.sub(r"(?i)\.(gz|bz2|xz)$", "", Path(self.path).name).rpartition(".")[0]

    @property
    def sense(self) -> Literal["min", "max"]:  # type: ignore[override]
        """As in the file; ``min`` for one that cannot be read, which its run says."""
        with suppress(Exception):
            return "max" if _model(self.path, self.sha256, self.order)[3] else "min"
        return "min"

    def evaluate(self, decision: Values | Array) -> Evaluation:
        """Evaluate values of the columns."""
        model, x, objective, _ = _model(self.path, self.sha256, self.order)
        point = model.point({x: list(decision.values()) if isinstance(decision, Values) else decision})
        return Evaluation(float(objective.evaluate(point)), model.violations(point))


@lru_cache(maxsize=4)
def _model(path: str, sha256: str, order: int) -> tuple[Model, Expression, Expression, bool]:
    model = Model(Path(path).stem)
    return model, *read_into(model, path, order)


@ModelFile.formulation("model", exact=True)
def as_it_is(problem: ModelFile, model: Model) -> Handles:
    """The model as it is."""
    x, objective, _ = read_into(model, problem.path, problem.order)
    names = [model.column_name(int(column)) for column in only_columns(x)]

    def decision(result: ModelSolution) -> Values:
        return Values(zip(names, result[x].tolist(), strict=True))

    return Handles(objective=objective, decision=decision, x=x)


MANIFEST = "manifest.json"


def _packages() -> list[str]:
    """Give the packages of all registered problems, of whoever registered them."""
    return sorted({cls.__module__.rpartition(".")[0] for cls in problem_classes().values()} - {""})


@cache
def instances() -> dict[str, Instance]:
    """All instances by name, from each package of problems with a module ``instances``."""
    found: dict[str, Instance] = {}
    for package in _packages():
        if find_spec(f"{package}.instances") is not None:
            found |= import_module(f"{package}.instances").INSTANCES
    return found


def problem_of(spec: str | Path) -> Problem:
    """The problem that a text stands for: a declaration's file, a shipped example, an instance, a bare model.

    Raises
    ------
    FileNotFoundError
        If it is another object.
    DeclarationError
        If a file holds something else, or `spec` is no text and no path.
    """
    require(isinstance(spec, str | Path), "problem", spec, "be a problem, a file or a name")
    if str(spec).lower().endswith(MODEL_SUFFIXES):
        return ModelFile(path=str(spec))
    if Path(spec).exists() or example_file(str(spec)):
        return Problem.load(spec)
    every = instances()
    if str(spec) in every:
        return every[str(spec)].make()
    near = similar(str(spec), [*examples(), *every], 3)
    hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    raise FileNotFoundError(
        f"no file, example or instance {str(spec)!r}; {hint}"
        "'forcopt examples' and 'forcopt instances list' name them all"
    )


def find(names: Sequence[str]) -> list[Instance]:
    """The instances of these names; another text stands for all names that begin with it. All by default.

    Raises
    ------
    UnknownNameError
        If nothing begins like a name.
    """
    every = instances()
    for name in names:
        if not any(other.startswith(name) for other in every):
            raise unknown("instance", name, list(every))
    begins = tuple(name for name in names if name not in every)
    return [i for i in every.values() if not names or i.name in names or i.name.startswith(begins)]


@cache
def known() -> dict[str, dict[str, Any]]:
    """The known facts about each instance, by name: optimum or best bound, and their certificate.

    Each package of problems keeps it in a file ``known.json``, which ``benchmarks/instances/run.py`` writes.
    """
    found: dict[str, dict[str, Any]] = {}
    for package in _packages():
        path = resources.files(package) / "known.json"
        if path.is_file():
            found |= json.loads(path.read_text(encoding="utf-8"))
    return found


def file_name(instance: Instance, ending: str) -> str:
    """The name of a file of an instance."""
    return f"{instance.name.replace('/', '-')}.{ending}"


def proof(instance: Instance) -> bytes | None:
    """The proof of an instance's MPS file that is stored, compressed; None if none is."""
    packages = (resources.files(package) / "proofs" for package in _packages())
    files = (folder / file_name(instance, "vipr.gz") for folder in packages)
    return next((file.read_bytes() for file in files if file.is_file()), None)


def best_known(fingerprints: Iterable[str]) -> dict[str, float]:
    """The best known objectives of the declarations in the library."""
    wanted = set(fingerprints)
    values = {fact["fingerprint"]: fact["objective"] for fact in known().values()}
    return {name: value for name, value in values.items() if name in wanted and value is not None}


def export(folder: str | Path, form: Literal["mps", "lp"] = "mps", names: Sequence[str] = ()) -> list[Path]:
    """Write the models of instances as files, and the known facts about them as ``manifest.json``.

    Parameters
    ----------
    folder : str or Path
        Made if it does not exist.
    form : Literal["mps", "lp"], default "mps"
        Of the files.
    names : Sequence[str], optional
        Which, by name or by how the names begin; all if there are none.

    Returns
    -------
    list[Path]
        The files, the manifest last. Its entries have ``name``, ``file``, its ``sha256``, ``problem``,
        ``formulation``, ``sense``, ``rows``, ``columns``, ``nonzeros`` and ``integers`` (as written),
        ``fingerprint`` (of the declaration), ``unit`` (the worth of 1 of the file's objective in the
        problem's), ``proof`` (the file of a proof of the MPS file, for `forcopt.check`; null without one),
        and the known ``status``, ``objective`` (the best known, as the file counts),
        ``exact`` (as a fraction, where it was proved so), ``bound``, ``certified`` (how), ``seconds`` (of the
        quickest proof, or spent without one) and ``versions``; null where unknown.

    Raises
    ------
    UnknownNameError
        If nothing begins like a name.
    DeclarationError
        For another format.
    """
    from rich.console import Console
    from rich.progress import track

    require(form in ("mps", "lp"), "format", form, "be mps or lp")
    folder, chosen = Path(folder), find(names)
    folder.mkdir(parents=True, exist_ok=True)
    files, entries = [], []
    screen = Console(stderr=True)
    for instance in track(chosen, "writing", console=screen, transient=True, disable=not screen.is_terminal):
        problem = instance.make()
        path = folder / file_name(instance, form)
        model, handles = problem.formulate(instance.method, **instance.options)
        model.write(path)
        written = read(path)  # counts the content as another reader finds it
        digest = metadata(problem)["fingerprint"]
        fact = known().get(instance.name, {})
        if fact.get("fingerprint") != digest:  # drawn otherwise than when it was solved
            fact = {}
        in_file = {name: fact[name] / handles.unit for name in _VALUES if fact.get(name) is not None}
        if fact.get("exact") is not None:
            in_file["exact"] = str(Fraction(fact["exact"]) / Fraction(handles.unit))
        stored = proof(instance) if fact and form == "mps" else None
        if stored is not None:
            (folder / file_name(instance, "vipr.gz")).write_bytes(stored)
        entries.append(
            {
                "name": instance.name,
                "file": path.name,
                "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
                "problem": type(problem).__name__,
                "formulation": instance.method,
                "sense": problem.sense,
                **model_size(written),
                "fingerprint": digest,
                "unit": handles.unit,
                "proof": None if stored is None else file_name(instance, "vipr.gz"),
                **{name: fact.get(name) for name in KNOWN} | in_file,
            }
        )
        files.append(path)
    manifest = folder / MANIFEST
    manifest.write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")
    return [*files, manifest]


_VALUES = ("objective", "bound")

KNOWN = ("status", "objective", "exact", "bound", "certified", "seconds", "versions")
"""The known facts in a manifest."""
