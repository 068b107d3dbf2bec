"""``forcopt solve``: a problem, or a bare model from a file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from forcopt.cli import output
from forcopt.clock import Improvement, interrupted, stop_on_interrupt
from forcopt.errors import require

if TYPE_CHECKING:
    from forcopt.problem import Solution


def solve(
    spec: output.SpecArgument,
    method: Annotated[
        str | None, Option("--method", "-m", help="NAME or NAME@BACKEND; see 'forcopt describe'.")
    ] = None,
    backend: Annotated[
        str | None,
        Option("--backend", "-b", help="See 'forcopt backends'.", autocompletion=output.complete_backend),
    ] = None,
    time_limit: output.TimeLimitOption = None,
    memory_limit: output.MemoryLimitOption = None,
    gap: Annotated[float | None, Option("--gap", metavar="SHARE", help="Stop at this relative gap.")] = None,
    threads: Annotated[int | None, Option("--threads", metavar="N", help="Of the solver.")] = None,
    log: Annotated[bool, Option("--log", help="Show the solver's own output.")] = False,
    seed: output.SeedOption = None,
    option: Annotated[
        list[str] | None,
        Option("--option", "-O", metavar="NAME=VALUE", help="An option of the method; repeat for more."),
    ] = None,
    certify: output.CertifyOption = False,
    plot: Annotated[Path | None, Option(metavar="FILE", help="Draw the decision.")] = None,
    as_json: output.JsonOption = False,
) -> None:
    """Solve a problem or a bare model, and show the decision as the problem itself evaluates it.

    Ctrl-C stops the search; the best decision, its bound and its gap are shown. A second one ends it.
    """
    output.check_target(plot, *output.DRAWN)
    own = dict(_parsed(text) for text in option or [])
    common: dict[str, Any] = {"backend": backend, "time_limit": time_limit, "seed": seed}
    common |= {"memory_limit": memory_limit, "gap": gap, "threads": threads, "log": log, "certify": certify}
    progress = sys.stderr.isatty() and output.progress_wanted() is None
    problem = output.problem_from(spec)
    chosen = problem.method((method or "").partition("@")[0] or None)
    if output.Screen.verbose and "on_improvement" in chosen.common:
        common["on_improvement"] = _report
    with stop_on_interrupt():
        solution = problem.solve(method, **common, progress=progress, **own)
        stopped = interrupted()
    known = _record(spec, solution) | {"model": type(problem).__name__}
    if solution.certificate is not None:
        known["certificate"] = str(solution.certificate)
    if as_json:
        output.print_json(known)
    else:
        _show(known)
    if plot is not None and solution.status.has_solution:
        solution.plot(plot)
    if stopped:
        print("stopped by Ctrl-C; this is the best that was found", file=sys.stderr)
        raise typer.Exit(130)
    if not solution.status.has_solution:
        raise typer.Exit(1)


def _report(step: Improvement) -> None:
    """Write an improvement to the error output, for ``forcopt -v``."""
    from forcopt.problem.progress import known_values

    print(f"{step.seconds:8.2f} s  {'  '.join(known_values(step))}", file=sys.stderr)


def _parsed(text: str) -> tuple[str, Any]:
    """Read ``NAME=VALUE``; a value that is no JSON is text."""
    name, given, value = text.partition("=")
    require(given, "--option", text, "be NAME=VALUE")
    return name, output.parsed(value)


def _record(spec: str, s: Solution) -> dict[str, Any]:
    """The fields of the JSON output for a problem."""
    evaluation = None if s.private else s.evaluation  # a release shows nothing else of the data
    plain = ("backend", "objective", "bound", "gap", "seconds", "iterations", "message", "reason")
    own = {"objective": float("nan"), "gap": float("nan")} if s.private else {}
    return {
        "spec": spec,
        "method": s.method,
        "status": str(s.status),
        "bridges": list(s.bridges),
        **{name: getattr(s, name) for name in plain},
        **own,
        "guarantee": s.guarantee,
        "violations": dict(evaluation.violations) if evaluation else {},
        "metrics": dict(evaluation.metrics) if evaluation else {},
        "decision": s.decision,
    }


def _show(known: dict[str, Any]) -> None:
    screen = output.console()
    where = "@".join(filter(None, (known["method"], known["backend"])))
    screen.print(f"[bold]{known['spec']}[/bold]: {known['model']} by {where}")
    width = max(map(len, rows := _lines(known)))
    for name, text in rows.items():
        text = text.replace("\n", "\n" + " " * (width + 4))
        screen.print(f"  {name:{width}}  {text}", markup=False, soft_wrap=True)
    if known["decision"] is not None:
        screen.print()
        screen.print(str(known["decision"]), markup=False, soft_wrap=True)


def _lines(known: dict[str, Any]) -> dict[str, str]:
    """The facts about a solution that are shown, by name."""
    from forcopt.problem import FEASIBILITY_TOLERANCE

    lines: dict[str, str] = {"status": known["status"]}
    for name in ("objective", "bound"):
        if abs(known[name]) < float("inf"):
            lines[name] = f"{known[name]:.10g}"
    if known["status"] == "feasible" and abs(known["gap"]) < float("inf"):
        lines["gap"] = f"{known['gap']:.2%}"
    if known.get("guarantee") is not None:
        lines["guarantee"] = f"within {known['guarantee']:.6g} of the optimum"
    lines["seconds"] = f"{known['seconds']:.3g}"
    lines |= {name: known[name] for name in ("reason", "message", "certificate") if known.get(name)}
    if known["bridges"]:
        lines["bridges"] = ", ".join(known["bridges"])
    lines |= {name: f"{value:.6g}" for name, value in known["metrics"].items()}
    broken = {name: value for name, value in known["violations"].items() if value > FEASIBILITY_TOLERANCE}
    return lines | {f"violates {name}": f"by {value:.3g}" for name, value in broken.items()}
