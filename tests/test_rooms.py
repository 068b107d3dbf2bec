"""How large a function may be: arguments of kernels, branches, lines."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
BRANCHES = ast.If | ast.For | ast.While | ast.IfExp | ast.ExceptHandler | ast.comprehension | ast.Assert
MAXIMUM = {"arguments of a kernel": 8, "complexity": 30, "lines of code": 100}


def sources():
    """The files of the library, with the problems' packages at the top level."""
    return sorted(path for room in ("forcopt", "models") for path in (ROOT / room).rglob("*.py"))


def is_kernel(function):
    """Whether numba compiles the function."""
    return any("njit" in ast.unparse(decorator) for decorator in function.decorator_list)


def own_nodes(function):
    """The nodes of a function without those of the functions inside it."""
    stack = list(ast.iter_child_nodes(function))
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            stack.extend(ast.iter_child_nodes(node))


def measure(function, lines):
    """What MAXIMUM limits, for one function."""
    nodes = list(own_nodes(function))
    first = function.body[0]
    text = set(range(first.lineno, first.end_lineno + 1)) if ast.get_docstring(function) else set()
    code = [
        n
        for n in range(function.lineno, function.end_lineno + 1)
        if n not in text and lines[n - 1].strip() and not lines[n - 1].strip().startswith("#")
    ]
    arguments = function.args
    found = {
        "complexity": 1
        + sum(isinstance(n, BRANCHES) for n in nodes)
        + sum(len(n.values) - 1 for n in nodes if isinstance(n, ast.BoolOp)),
        "lines of code": len(code),
    }
    if is_kernel(function):
        found["arguments of a kernel"] = len(arguments.posonlyargs + arguments.args + arguments.kwonlyargs)
    return found


def excesses():
    """Each excess as (file, function, rule, value)."""
    for path in sources():
        text = path.read_text()
        lines = text.splitlines()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for rule, value in measure(node, lines).items():
                    if value > MAXIMUM[rule]:
                        yield path.relative_to(ROOT).as_posix(), node.name, rule, value


def test_no_function_is_too_large():
    found = list(excesses())
    assert not found, "\n".join(
        f"{path} {name}: {rule} {value}, at most {MAXIMUM[rule]}" for path, name, rule, value in found
    )
