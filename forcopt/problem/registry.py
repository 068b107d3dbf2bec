"""The registry: problem classes by name, shipped examples, and declarations in files."""

from __future__ import annotations

import inspect
import json
import tomllib
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

from forcopt.errors import DeclarationError, UnknownNameError, similar
from forcopt.problem.problem import Problem

__all__ = ["examples", "load", "problem_classes"]


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
    found: dict[str, type[Problem]] = {}
    for point in entry_points(group="forcopt.models"):
        cls = point.load()
        if not (isinstance(cls, type) and issubclass(cls, Problem)):
            raise DeclarationError(
                f"entry point {point.name!r} of group forcopt.models is {cls!r}; it must be a Problem class"
            )
        found[point.name] = cls
    return found


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


def load(spec: str | Path) -> Problem:
    """Read a declaration from a JSON or TOML file, or a shipped example by name.

    Parameters
    ----------
    spec : str or Path
        A path, or the name of an example.

    Returns
    -------
    Problem
        The declared problem.

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
        known = examples()
        if str(spec) not in known:
            near = similar(str(spec), list(known), 3)
            hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ";"
            raise FileNotFoundError(
                f"no file or example {str(spec)!r}{hint} fo.examples() names them all; "
                "forcopt.study.library.problem_of makes an instance of the library"
            )
        path = known[str(spec)]
    try:
        text = path.read_text(encoding="utf-8")
        data = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except ValueError as error:
        raise DeclarationError(
            f"{path} is not valid {path.suffix.lstrip('.').upper() or 'JSON'}: {error}"
        ) from None
    if not isinstance(data, dict) or "model" not in data:
        raise DeclarationError(f"{path} has no key 'model'; this key must name the class of the problem")
    problem_classes()
    try:
        return Problem.from_dict(data)
    except UnknownNameError as error:
        raise UnknownNameError(f"{path}: {error}") from None
    except DeclarationError as error:
        raise DeclarationError(f"{path}: {error}") from None
