"""The report of a solver benchmark: text, pages, tables, logs, and what changed since an older one."""

from __future__ import annotations

import html
import json
import re
import shlex
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.machine import machine
from benchmarks.solvers.rules import ranking, shifted_geometric_mean, wins

if TYPE_CHECKING:
    from pandas import DataFrame

    from forcopt.study.solver_benchmark import SolverBenchmark

CAVEAT = (
    "A performance profile ranks two solvers. With more, the order of the others depends on which solver is "
    "the best one (Gould and Scott 2016): compare pairs, or leave the best out and draw it again."
)

PARTS = ["compile", "call", "solver", "checks", "cpu", "wall"]


class Report:
    """What a benchmark says.

    Parameters
    ----------
    result : SolverBenchmark
        The runs.
    folder : Path, optional
        Of the models; the instance library's if None.
    threads : int
        Of each solver; 0 if it was left to them.
    """

    def __init__(self, result: SolverBenchmark, folder: Path | None, threads: int) -> None:
        self.result, self.machine = result, machine()
        self.command = f"forcopt benchmark {shlex.quote(str(folder)) if folder else ''} {{instance}}"
        self.command += f" --solvers '{{backend}}' --only {{variant}} --threads {threads}"
        self.command += f" --time-limit {result.time_limit:g}"

    @cached_property
    def runs(self) -> DataFrame:
        """A row a run, with the command that makes it again."""
        frame = self.result.frame
        return frame.assign(command=[self.command.format_map(row) for row in frame.to_dict("records")])

    @cached_property
    def ranking(self) -> DataFrame:
        """See `benchmarks.solvers.rules.ranking`."""
        return ranking(self.runs, self.result.time_limit)

    @cached_property
    def pairs(self) -> DataFrame:
        """See `benchmarks.solvers.rules.wins`."""
        return wins(self.runs, self.result.time_limit)

    @cached_property
    def spent(self) -> DataFrame:
        """The seconds of each solver: our compiling, the call, its own clock, our checks, processor, all."""
        return self.runs.groupby("backend")[PARTS].sum().reset_index()

    def text(self) -> str:
        """Ranking, pairs, seconds, solvers that are left out of a class, and wrong claims."""
        tables = (self.ranking, self.pairs, self.spent)
        parts = [table.to_string(index=False, float_format=lambda v: f"{v:.3f}") for table in tables]
        refused = self.runs[self.runs["refused"]].groupby("backend")["instance"].nunique()
        lines = [
            f"{name} cannot take {n} instances; it is left out of their class" for name, n in refused.items()
        ]
        lines += [f"wrong: {claim}" for claim in self.result.wrong]
        return "\n\n".join([*parts, "\n".join([CAVEAT, *lines])])

    def against(self, old: Path) -> str:
        """What changed since the results in a file that `write` made, solver by solver.

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        """
        import pandas as pd

        before = pd.DataFrame(json.loads(old.read_text(encoding="utf-8"))["runs"])
        both = self.runs.merge(before, on=["instance", "backend", "variant"], suffixes=("", " before"))
        lines = []
        for backend, own in both.groupby("backend"):
            versions = " -> ".join(own[column].max() for column in ("version before", "version"))
            solved = " -> ".join(str(int(own[column].sum())) for column in ("solved before", "solved"))
            times = (
                own[column].clip(upper=self.result.time_limit) for column in ("seconds before", "seconds")
            )
            means = " -> ".join(f"{shifted_geometric_mean(seconds):.3f}" for seconds in times)
            lines.append(f"{backend} {versions}: {len(own)} runs in both; solved {solved}; mean {means} s")
            for row in own[own["status"] != own["status before"]].to_dict("records"):
                words = f"{row['status before']} -> {row['status']}"
                lines.append(f"  {row['instance']} ({row['variant']}): {words}")
        return "\n".join(lines)

    def write(self, out: Path) -> None:
        """Write report.html, runs.html, runs.csv, results.json and the solvers' logs to a folder."""
        (out / "logs").mkdir(parents=True, exist_ok=True)
        for row in self.result.comparison.rows:
            name = re.sub(r"[^\w.,=~-]+", "-", f"{row.instance}-{row.backend}-{row.seed or 0}")
            (out / "logs" / f"{name}.log").write_text(row.log or row.message, encoding="utf-8")
        self.runs.to_csv(out / "runs.csv", index=False)
        told = {"machine": self.machine, "time_limit": self.result.time_limit, "wrong": self.result.wrong}
        told["runs"] = json.loads(self.runs.to_json(orient="records"))
        (out / "results.json").write_text(json.dumps(told, indent=1), encoding="utf-8")
        self.result.comparison.to_html(out / "runs.html")
        facts = "".join(f"<p><b>{name}</b> {html.escape(text)}</p>" for name, text in self.machine.items())
        wrong = "<br>".join(map(html.escape, self.result.wrong)) or "none"
        tables = [
            f"<h2>{title}</h2>{table.to_html(index=False, float_format=lambda v: f'{v:.3f}')}"
            for title, table in (("Ranking", self.ranking), ("Pairs", self.pairs), ("Seconds", self.spent))
        ]
        (out / "report.html").write_text(
            "<meta charset=utf-8><title>Solvers</title><style>td,th{padding:.2em .8em}</style>"
            f"<h1>Solvers</h1>{''.join(tables)}<p>{CAVEAT}</p><h2>Wrong claims</h2><p>{wrong}</p>"
            "<h2>Runs</h2><p>"
            "<a href=runs.html>Sortable, with charts</a>, <a href=runs.csv>CSV</a>, "
            f"<a href=results.json>JSON</a>, <a href=logs>logs</a></p><h2>Machine</h2>{facts}",
            encoding="utf-8",
        )
