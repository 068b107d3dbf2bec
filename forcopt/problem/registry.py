"""The registry: problem classes by name, shipped examples, and declarations in files."""

from __future__ import annotations

import inspect
import json
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from forcopt.errors import DeclarationError, UnknownNameError, similar
from forcopt.problem.problem import Problem


@cache
def problem_classes() -> dict[str, type[Problem]]:
    """Give all problem classes by name: the entry points of the group ``forcopt.models``.

    Returns
    -------
    dict[str, type[Problem]]
        Name to class.

    Raises
    ------
    DeclarationError
        If an entry point is not a problem class.
    """
    return {point.name: _class_of(point) for point in _entry_points()}


def _entry_points() -> Iterable[EntryPoint]:
    return entry_points(group="forcopt.models")


def _class_of(point: EntryPoint) -> type[Problem]:
    cls = point.load()
    if not (isinstance(cls, type) and issubclass(cls, Problem)):
        raise DeclarationError(
            f"entry point {point.name!r} of group forcopt.models is {cls!r}; it must be a Problem class"
        )
    return cls


def examples() -> dict[str, Path]:
    """Give the shipped examples.

    Returns
    -------
    dict[str, Path]
        Name, such as ``postprocessing/compas``, to file.

    Examples
    --------
    >>> "postprocessing/compas" in examples()
    True
    """
    found: dict[str, Path] = {}
    for cls in problem_classes().values():
        folder = Path(inspect.getfile(cls)).parent / "examples"
        for path in sorted(folder.glob("*.json")) + sorted(folder.glob("*.toml")):
            found[f"{cls.family}/{path.stem}"] = path
    return found


def example_file(name: str) -> Path | None:
    """Find a shipped example; only packages that have a file of this name are imported.

    Parameters
    ----------
    name : str
        Such as ``postprocessing/compas``.

    Returns
    -------
    Path or None
        The file; None if there is no such example.

    Examples
    --------
    >>> example_file("postprocessing/compas").name
    'compas.json'
    """
    family, _, stem = name.rpartition("/")
    for point in _entry_points():
        origin = getattr(find_spec(point.module), "origin", None)
        for suffix in (".json", ".toml") if origin and stem else ():
            path = Path(str(origin)).parent / "examples" / (stem + suffix)
            if path.exists() and _class_of(point).family == family:
                return path
    return None


def load(spec: str | Path, *, trusted: bool = False) -> Any:
    """Read a declaration from a JSON or TOML file, or a shipped example by name; or a policy from its file.

    Parameters
    ----------
    spec : str or Path
        A path, or the name of an example.
    trusted : bool, default False
        Whether the file of a policy may hold a pickle, which can run any code.

    Returns
    -------
    Problem or Policy
        The declared problem, or the policy that `Policy.save` wrote.

    Raises
    ------
    FileNotFoundError
        If there is no such file or example.
    DeclarationError
        If the file does not declare a problem; the message names the field, the value and the rule.

    Examples
    --------
    >>> import forcopt as fo
    >>> type(fo.load("postprocessing/two-groups")).__name__
    'FairPostprocessing'
    """
    path = Path(spec)
    if not path.exists():
        found = example_file(str(spec))
        if found is None:
            near = similar(str(spec), list(examples()), 3)
            hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ";"
            raise FileNotFoundError(
                f"no file or example {str(spec)!r}{hint} fo.examples() names them all; "
                "forcopt.study.library.problem_of makes an instance of the library"
            )
        path = found
    try:
        text = path.read_text(encoding="utf-8")
        data = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except ValueError as error:
        raise DeclarationError(
            f"{path} is not valid {'TOML' if path.suffix == '.toml' else 'JSON'}: {error}"
        ) from None
    if not isinstance(data, dict):
        raise DeclarationError(f"{path} holds no declaration: it must be a table of fields")
    if "policy" in data:
        from forcopt.problem.policy import Policy

        return Policy.load(path, trusted=trusted)
    try:
        return declared_problem(data)
    except UnknownNameError as error:
        raise UnknownNameError(f"{path}: {error}") from None
    except DeclarationError as error:
        raise DeclarationError(f"{path}: {error}") from None


def declared_problem(data: Mapping[str, Any]) -> Problem:
    """Read a declaration of any registered class from plain data.

    Parameters
    ----------
    data : Mapping[str, Any]
        The fields, and the class under the key ``model``; only its package is imported, if that suffices.

    Returns
    -------
    Problem
        The declared problem.

    Raises
    ------
    DeclarationError
        If the data do not declare a problem; the message names the field, the value and the rule.

    Examples
    --------
    >>> declared_problem({"model": "Apportionment", "populations": [5, 3], "seats": 4}).quotas.tolist()
    [2.5, 1.5]
    """
    if "model" not in data:
        raise DeclarationError("the key 'model' is missing; it must name the class of the problem")
    for point in _entry_points():
        if point.name == data["model"]:
            _class_of(point)
    try:
        return Problem.from_dict(data)
    except UnknownNameError:
        problem_classes()
        return Problem.from_dict(data)
