"""The command line: ``forcopt``, or ``python -m forcopt``.

Exit codes: 0 solved, 1 no solution (infeasible, unbounded, a limit, a failed solver), 2 bad input.
Commands import their modules when they run, so that help comes quickly.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from contextlib import suppress
from functools import partial
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from io import StringIO
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option
from typer.core import TyperGroup

from forcopt.cli import benchmark, catalogue, certify, check, compare, doctor, doors, panel, predict, solve
from forcopt.cli.output import Screen
from forcopt.errors import BackendError, DeclarationError, ForcoptError, package_of
from forcopt.version import __version__

__all__ = ["app", "main"]


_ANYWHERE = ("-q", "--quiet", "-v", "--verbose")
"""Options of the root that may also stand behind a command."""


class _Commands(TyperGroup):
    """Prints an error of the input in one line, instead of a traceback."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take ``-q`` and ``-v`` after the command as well as before it."""
        end = args.index("--") if "--" in args else len(args)
        flags = [word for word in args[:end] if word in _ANYWHERE]
        rest = [word for word in args[:end] if word not in _ANYWHERE]
        return super().parse_args(ctx, [*flags, *rest, *args[end:]])

    def invoke(self, ctx: Any) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = partial(_warn, set())
                return super().invoke(ctx)
        except BrokenPipeError:  # the reader, such as head, has seen enough
            raise
        except (ForcoptError, OSError) as error:
            if isinstance(error, OSError) and error.filename:
                text = f"{error.filename}: {error.strerror}"
            else:
                text = str(error)
            print(f"error: {text}", file=sys.stderr)
            raise typer.Exit(1 if isinstance(error, BackendError) else 2) from None
        except ImportError as error:
            package, text = package_of(error.name), str(error)
            if isinstance(error, ModuleNotFoundError):
                text = f"{package} is not installed: pip install {package}"
            print(f"error: {text}", file=sys.stderr)
            raise typer.Exit(2) from None


def _warn(said: set[str], message: Warning | str, *where: Any, **more: Any) -> None:
    """Print a warning about the input once, without the line of code that raised it."""
    if not Screen.quiet and str(message) not in said:
        said.add(str(message))
        print(f"warning: {message}", file=sys.stderr)


app = typer.Typer(
    cls=_Commands,
    name="forcopt",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"forcopt {__version__}")
        raise typer.Exit()


@app.callback(
    epilog="Exit codes: 0 solved, 1 no solution (infeasible, unbounded, a limit), 2 bad input. "
    "A start: forcopt examples; forcopt solve postprocessing/compas"
)
def _root(
    version: Annotated[
        bool, Option("--version", "-V", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
    modules: Annotated[
        list[str] | None,
        Option("--import", "-I", metavar="MODULE", help="A module or file that registers your problems."),
    ] = None,
    quiet: Annotated[bool, Option("--quiet", "-q", help="No progress bars and no warnings.")] = False,
    verbose: Annotated[
        bool, Option("--verbose", "-v", help="Show each improvement of 'solve' on the error output.")
    ] = False,
) -> None:
    """Optimization for responsible computing: declare a problem, solve it, compare the methods."""
    Screen.quiet, Screen.verbose = quiet, verbose
    logging.getLogger("forcopt").setLevel(logging.ERROR if quiet else logging.NOTSET)
    for module in modules or []:
        _import(module)


def _import(module: str) -> None:
    """Import a module by its name, or a file by its path; processes of runs find it in its folder."""
    sys.path.insert(0, os.path.dirname(os.path.abspath(module)))
    try:
        if not module.endswith(".py"):
            import_module(module)
            return
        spec = spec_from_file_location(Path(module).stem, module)
        assert spec is not None and spec.loader is not None
        loaded = module_from_spec(spec)
        sys.modules[spec.name] = loaded
        spec.loader.exec_module(loaded)
    except (ImportError, FileNotFoundError) as error:
        raise DeclarationError(f"--import is {module!r}: {error}") from None


app.command("models")(catalogue.models)
app.command("examples")(catalogue.examples)
app.command("backends")(catalogue.backends)
app.command("doctor")(doctor.doctor)
app.command("describe")(catalogue.describe)
app.command("schema")(catalogue.schema)
app.command("solve")(solve.solve)
app.command("predict")(predict.predict)
app.command("panel")(panel.panel)
app.command("districts")(doors.districts)
app.command("fair")(doors.fair)
app.command("check")(check.check)
app.command("release")(doors.release)
app.command("sample")(doors.sample)
app.command("certify")(certify.certify)
app.command("compare")(compare.compare)
app.command("sweep")(compare.sweep)
app.command("export")(catalogue.export)
_PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
app.command("benchmark", context_settings=_PASSED_ON)(benchmark.benchmark)
app.add_typer(catalogue.instances, name="instances")


def main() -> None:
    """Run the command line; what the output's encoding lacks is shown as a question mark."""
    sys.stdout = sys.stdout or StringIO()  # without a console, or closed by the caller
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError):  # None, or an object of a program that calls this
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    if os.environ.get("NO_COLOR"):
        from typer import rich_utils

        rich_utils.COLOR_SYSTEM = None  # no bold or dim text in the help either
    app(prog_name="forcopt")
