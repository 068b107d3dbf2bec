"""The docstrings of the public names describe their signatures."""

import inspect
import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("mkdocstrings")
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs" / "hooks"))
import reference

TITLE = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)
OF_FILES = {"load_adult", "load_communities", "load_compas", "load_lawschool"}
"""Readers of files that the package does not hold: they have no runnable example."""
ANALYSTS = {"across_blocks", "best_pairs", "membership"}
"""Analysts of adaptive queries: the guide runs them."""


def sections(text):
    parts = TITLE.split(inspect.cleandoc(text or ""))
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def described(text):
    """The names that the parameters and attributes of a docstring describe."""
    found = sections(text)
    lines = "\n".join(found.get(title, "") for title in ("Parameters", "Attributes")).split("\n")
    heads = [line.partition(" :")[0] for line in lines if line and not line[0].isspace()]
    return {name.strip().lstrip("*") for head in heads for name in head.split(",")}


def parameters(thing):
    """The names that a caller passes, and the names of ``*args`` and ``**kwargs``."""
    try:
        found = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return set(), set()
    packed = {p.name for p in found if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
    return {p.name for p in found if p.name not in ("self", "cls") and p.name[0] != "_"} - packed, packed


def public(kind):
    found = {}
    for module in reference.modules():
        for entry in reference.exported(module):
            if kind(entry.value):
                found[reference.homes()[entry.path]] = entry.value
    return found


@pytest.mark.parametrize(
    ("path", "function"),
    [pytest.param(path, found, id=path) for path, found in public(inspect.isfunction).items()],
)
def test_a_public_function_describes_its_parameters_and_result_and_has_an_example(path, function):
    found, listed = sections(function.__doc__), described(function.__doc__)
    named, packed = parameters(function)
    assert named <= listed <= named | packed, path
    returned = inspect.signature(function).return_annotation
    assert returned in (None, "None") or {"Returns", "Yields"} & set(found), path
    assert "Examples" in found or function.__name__ in OF_FILES | ANALYSTS, path


@pytest.mark.parametrize(
    ("path", "cls"), [pytest.param(path, found, id=path) for path, found in public(inspect.isclass).items()]
)
def test_a_public_class_describes_its_fields_and_its_methods_no_other_parameters(path, cls):
    if not issubclass(cls, BaseException | str):
        listed = set().union(*(described(c.__dict__.get("__doc__")) for c in cls.__mro__))
        assert parameters(cls)[0] <= listed, path
    for name in reference.members(cls):
        member = inspect.getattr_static(cls, name)
        member = getattr(member, "__func__", member)
        if inspect.isfunction(member):
            named, packed = parameters(member)
            assert described(member.__doc__) <= named | packed or "options" in packed, f"{path}.{name}"
