"""``forcopt benchmark``: the benchmarks of a checkout, and solvers on files."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import typer

from forcopt.cli.output import Screen
from forcopt.errors import DeclarationError


def benchmark(context: typer.Context) -> None:
    """In a checkout: run benchmarks, or rank solvers on files: --solvers highs,scip FOLDER. See --help.

    Both need a checkout of the repository, or forcopt installed from it with ``pip install -e``.
    """
    for root in (Path.cwd(), Path(__file__).resolve().parents[2]):
        if (root / "benchmarks" / "__main__.py").is_file() and (root / "forcopt").is_dir():
            sys.path.insert(0, str(root))
            quiet = ["--quiet"] if Screen.quiet else []  # the root takes that option first
            main = import_module("benchmarks.__main__").main
            raise typer.Exit(main([*context.args, *quiet], imports=context.find_root().params["modules"]))
    raise DeclarationError("there are no benchmarks here: they are in the repository, not in the package")
