"""A room with a module of tolerances keeps all of them there, each with its reason."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TINY = 1e-5
"""A number below it, of no other module, is a tolerance."""
MODULES = sorted([*ROOT.glob("forcopt/*/tolerances.py"), *ROOT.glob("models/*/tolerances.py")])


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.parent.name)
def test_a_tolerance_has_a_reason(path):
    body = ast.parse(path.read_text()).body
    for constant, reason in zip(body, [*body[1:], None], strict=True):
        if isinstance(constant, ast.Assign) and ast.unparse(constant.targets[0]) != "__all__":
            text = reason.value.value if isinstance(reason, ast.Expr) else ""
            assert text.endswith("."), f"{path.parent.name}: {ast.unparse(constant)} has no reason"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.parent.name)
def test_no_tolerance_is_elsewhere_in_the_room(path):
    found = [
        f"{file.name}:{node.lineno}: {node.value}"
        for file in sorted(path.parent.glob("*.py"))
        if file != path
        for node in ast.walk(_without_options(ast.parse(file.read_text())))
        if isinstance(node, ast.Constant) and isinstance(node.value, float) and 0 < node.value <= TINY
    ]
    assert not found, f"name them in tolerances.py: {found}"


def _without_options(tree):
    """The code without options: fields of classes, defaults of parameters, named arguments of calls."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            node.body = [part for part in node.body if not isinstance(part, ast.AnnAssign)]
        elif isinstance(node, ast.arguments):
            node.defaults, node.kw_defaults = [], []
        elif isinstance(node, ast.Call):
            node.keywords = []
    return tree
