"""The report of a solver benchmark: text, pages, tables, logs, and what changed since an older one."""

from __future__ import annotations

import html
import json
import re
import shlex
import zlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.machine import machine
from benchmarks.solvers.files import Chosen
from benchmarks.solvers.kinds import UNKNOWN, able
from benchmarks.solvers.pictures import drawing, profile
from benchmarks.solvers.rules import classes, integrals, ranking, shifted_geometric_mean, wins, with_integrals
from forcopt.backends import backends
from forcopt.errors import DeclarationError
from forcopt.study.tolerances import TOLERANCE

if TYPE_CHECKING:
    from pandas import DataFrame

    from forcopt.study.run import Run
    from forcopt.study.solver_benchmark import SolverBenchmark

CAVEAT = (
    "A performance profile ranks two solvers. With more, the order of the others depends on which solver is "
    "the best one (Gould and Scott 2016): compare pairs, or leave the best out and draw it again."
)

SLOWER, SLOW_SECONDS = 2.0, 1.0
"""A run that takes more than so many times its seconds before, and more than so many seconds, is listed."""

PARTS = ["build", "compile", "call", "solver", "checks", "cpu", "wall"]


class Report:
    """What a benchmark says.

    Parameters
    ----------
    result : SolverBenchmark
        The runs.
    command : str
        That makes a run again, with ``{instance}``, ``{backend}`` and ``{variant}``.
    chosen : Chosen, optional
        The files, with labels and with notes on what is missing.
    load : float, optional
        Of the machine when the runs began.
    """

    def __init__(
        self,
        result: SolverBenchmark,
        command: str,
        chosen: Chosen | None = None,
        load: float | None = None,
    ) -> None:
        self.result, self.command = result, command
        self.machine, self.chosen = machine(load), chosen or Chosen({})

    @cached_property
    def runs(self) -> DataFrame:
        """A row a run, with its log, the command that makes it again, and the size where one is known.

        Conic models are classes of their own: a solver without cones is still ranked on the others.
        """
        rows = self.result.comparison.rows
        frame = with_integrals(self.result.frame, rows, self.result.known, self.result.time_limit)
        names = frame["instance"]
        untold = frame["class"] == UNKNOWN
        frame.loc[untold, "class"] = names[untold].map(self.chosen.kind)
        silent = [row.columns is None for row in rows]  # killed before it told the size: it refuses nothing
        unable = [not able(*pair, sure=False) for pair in zip(frame["backend"], frame["class"], strict=True)]
        frame["refused"] |= np.logical_and(silent, unable)
        frame["class"] = np.where(names.map(self.chosen.conic), "conic " + frame["class"], frame["class"])
        if self.chosen.labels:
            frame.insert(2, "size", names.map(self.chosen.labels).fillna(""))
        logs = [f"logs/{_log_name(row)}" for row in rows]
        named = frame[["instance", "backend", "variant"]].map(shlex.quote).to_dict("records")
        command = [self.command.format_map(row) for row in named]
        return frame.assign(log=logs, command=command)

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
        """The seconds of each solver: our reading and compiling, the call, its own clock, our checks, the
        processor, all; and the most memory that one of its processes held."""
        groups = self.runs.groupby("backend")
        return groups[PARTS].sum().assign(**{"peak MB": groups["peak_memory"].max() / 1e6}).reset_index()

    @cached_property
    def integrals(self) -> DataFrame:
        """See `benchmarks.solvers.rules.integrals`."""
        return integrals(self.runs)

    @cached_property
    def sizes(self) -> DataFrame:
        """How many runs of each size a solver solved; empty if no sizes are known."""
        if "size" not in self.runs:
            return self.runs.iloc[:0, :0]
        counts = self.runs.pivot_table(index="size", columns="backend", values="solved", aggfunc="sum")
        counts.insert(0, "instances", self.runs.groupby("size")["instance"].nunique())
        return counts.reset_index()

    def text(self) -> str:
        """All tables, the solvers that are left out of a class, failed runs and wrong claims."""
        tables = [self.ranking, self.pairs, self.spent, self.integrals, self.sizes]
        shown = [table for table in tables if not table.empty]
        parts = [table.to_string(index=False, float_format=lambda v: f"{v:.3f}") for table in shown]
        refused = self.runs[self.runs["refused"]].groupby("backend")["instance"].nunique()
        lines = [
            f"{name} cannot take {n} instances; it is left out of their class" for name, n in refused.items()
        ]
        unknown = self.runs.loc[self.runs["class"].str.endswith(UNKNOWN), "instance"].unique()
        lines += [f"{name}: no run and no file tells its size; it is in no class" for name in unknown]
        lines += self.failures
        lines += [f"wrong: {claim}" for claim in self.result.wrong]
        return "\n\n".join([*parts, "\n".join([CAVEAT, *lines])])

    @cached_property
    def failures(self) -> tuple[str, ...]:
        """For each solver how many runs failed, without those that it refused, and the first one's words."""
        own = self.runs[(self.runs["status"] == "failed") & ~self.runs["refused"]]
        told = []
        for name, rows in own.groupby("backend"):
            words = (rows["message"].iloc[0].splitlines() or ["no message"])[0]
            count = f"{len(rows)} run{'s' * (len(rows) > 1)}"
            told.append(f"{name}: {count} failed: {words}{_others(rows['instance'].unique()[1:])}")
        return tuple(told)

    def against(self, old: Path) -> tuple[str, bool]:
        """What changed since the results in a file that `write` made, solver by solver.

        Returns
        -------
        tuple[str, bool]
            The words, and whether something is worse: a run that was solved and is not, a new wrong claim, or
            another answer than before.

        Raises
        ------
        DeclarationError
            As `earlier`.
        """
        import pandas as pd

        told = earlier(old)
        before = pd.DataFrame(told["runs"], columns=None if told["runs"] else list(self.runs))
        lines, limit = [], self.result.time_limit
        if told["time_limit"] != limit:
            lines.append(f"time limit: {told['time_limit']:g} -> {limit:g} s")
        for column, what in (("instance", ""), ("backend", " solvers")):
            then, now = (set(frame[column]) for frame in (before, self.runs))
            for words, names in (("added", now - then), ("dropped", then - now)):
                if names:
                    lines.append(f"{words}{what}: {', '.join(sorted(names))}")
        both = self.runs.merge(before, on=["instance", "backend", "variant"], suffixes=("", " before"))
        if both.empty:
            lines.append(f"no run is also in {old}: no instance, solver and variant is in both")
        lost = both["solved before"].astype(bool) & ~both["solved"]
        lied = both["wrong"] & ~both["wrong before"].astype(bool)
        value, past = both["objective"].astype(float), both["objective before"].astype(float)
        far = (value - past).abs() > both["backend"].map(_tolerance) * value.abs().clip(lower=1.0)
        other = both["solved before"].astype(bool) & both["solved"]
        other &= far | (both["status"] != both["status before"])
        slow = (both["seconds"] > SLOWER * both["seconds before"]) & (both["seconds"] > SLOW_SECONDS)
        both = both.assign(lost=lost, lied=lied, other=other, slow=slow & both["solved"])
        for backend, own in both.groupby("backend"):
            versions = " -> ".join(own[column].max() for column in ("version before", "version"))
            solved = " -> ".join(str(int(own[column].sum())) for column in ("solved before", "solved"))
            times = (own[column].clip(upper=limit) for column in ("seconds before", "seconds"))
            means = " -> ".join(f"{shifted_geometric_mean(seconds):.3f}" for seconds in times)
            lines.append(f"{backend} {versions}: {len(own)} runs in both; solved {solved}; mean {means} s")
            for row in own.to_dict("records"):
                words = []
                if row["status"] != row["status before"]:
                    words.append(f"{row['status before']} -> {row['status']}")
                words += ["a new wrong claim"] if row["lied"] else []
                words += ["worse"] if row["lost"] else []
                if row["other"]:
                    words.append(f"{row['objective before']} -> {row['objective']}: one of the two is wrong")
                words += [f"{row['seconds before']:.3f} -> {row['seconds']:.3f} s"] if row["slow"] else []
                if words:
                    lines.append(f"  {row['instance']} ({row['variant']}): {'; '.join(words)}")
        worse = int((lost | lied | other).sum())
        if worse:
            lines.append(
                f"worse: {worse} runs were solved and are not, or have a new wrong claim or another answer"
            )
        return "\n".join(lines), bool(worse)

    def write(self, out: Path) -> None:
        """Write report.html, runs.html, runs.csv, results.json and the solvers' logs to a folder."""
        (out / "logs").mkdir(parents=True, exist_ok=True)
        for row in self.result.comparison.rows:
            (out / "logs" / _log_name(row)).write_text(row.log or row.message, encoding="utf-8")
        self.runs.to_csv(out / "runs.csv", index=False)
        told = {"machine": self.machine, "time_limit": self.result.time_limit, "wrong": self.result.wrong}
        told["runs"] = json.loads(self.runs.to_json(orient="records"))
        (out / "results.json").write_text(json.dumps(told, indent=1), encoding="utf-8")
        self.result.comparison.to_html(out / "runs.html")
        (out / "report.html").write_text(self.page(), encoding="utf-8")

    def page(self) -> str:
        """The page report.html."""
        facts = "".join(f"<p><b>{name}</b> {html.escape(text)}</p>" for name, text in self.machine.items())
        wrong, failed = (
            "<br>".join(map(html.escape, claims)) or "none" for claims in (self.result.wrong, self.failures)
        )
        titles = {"Ranking": self.ranking, "Pairs": self.pairs, "Seconds": self.spent}
        titles |= {"Integrals": self.integrals, "Solved by size": self.sizes}
        tables = {
            title: f"<h2>{title}</h2>{table.to_html(index=False, float_format=lambda v: f'{v:.3f}')}"
            for title, table in titles.items()
            if not table.empty
        }
        pictures = "".join(
            f"<h3>{kind}</h3>{drawing(profile(own, self.result.time_limit), f'Performance profile, {kind}')}"
            for kind, own in classes(self.runs)
        )
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.chosen.notes)
        return (
            "<!doctype html><meta charset=utf-8><title>Solvers</title>"
            "<style>td,th{padding:.2em .8em}table{border-collapse:collapse}.bad{color:#a00}</style>"
            f"<h1>Solvers</h1>{notes}{''.join(tables.values())}"
            f"<h2>Performance profiles</h2>{pictures}<p>{CAVEAT}</p>"
            f"<h2>Wrong claims</h2><p>{wrong}</p><h2>Failed runs</h2><p>{failed}</p>"
            f"<h2>Instances</h2>{self._instances()}"
            "<p>The title of a cell is the command that runs it again. <a href=runs.html>Sortable, with "
            "charts</a>, <a href=runs.csv>CSV</a>, <a href=results.json>JSON</a>, <a href=logs>logs</a></p>"
            f"<h2>Machine</h2>{facts}"
        )

    def _instances(self) -> str:
        """A row for each instance and variant, a column for each solver: seconds or status, with the log."""
        names = sorted(self.runs["backend"].unique())
        cells: dict[tuple[str, str], dict[str, str]] = {}
        for run in self.runs.to_dict("records"):
            said = f"{run['seconds']:.3f}" if run["solved"] else "wrong" if run["wrong"] else run["status"]
            said = "cannot" if run["refused"] else said
            mark = "" if run["solved"] else " class=bad"
            command, log = html.escape(run["command"]), html.escape(run["log"])
            row = cells.setdefault((run["instance"], run["variant"]), {})
            row[run["backend"]] = f'<td{mark} title="{command}"><a href="{log}">{said}</a>'
        head = "".join(f"<th>{html.escape(word)}" for word in ("instance", "seed, order", *names))
        rows = [
            f"<tr><td>{html.escape(name)}<td>{variant}{''.join(own.get(n, '<td>') for n in names)}"
            for (name, variant), own in cells.items()
        ]
        return f"<table><tr>{head}{''.join(rows)}</table>"


def earlier(path: Path) -> dict[str, Any]:
    """The results that `Report.write` has written to a file.

    Raises
    ------
    DeclarationError
        If there is no such file, or it holds something else.
    """
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        known = set(told["runs"][0]) if told["runs"] else _NEEDED
        if told["time_limit"] > 0 and known >= _NEEDED:
            return dict(told)
    except (OSError, ValueError, TypeError, LookupError) as error:
        raise DeclarationError(f"{path} is no results.json of an earlier benchmark: {error!r}") from None
    raise DeclarationError(f"{path} is no results.json of an earlier benchmark: its runs lack fields")


_NEEDED = {"instance", "backend", "variant", "version", "status", "objective", "solved", "wrong", "seconds"}


def _tolerance(backend: str) -> float:
    """How far two optima of a solver may be apart, relative to their size above 1."""
    known = backends().get(backend.partition("[")[0])
    return TOLERANCE + 2 * (known.accuracy if known else 0.0)


def _others(names: Sequence[str]) -> str:
    """The further instances on which a solver failed."""
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"; also {', '.join(names[:_MOST_NAMES])}{more}" if len(names) else ""


_MOST_NAMES = 10


def _log_name(row: Run) -> str:
    """The file of a run's log; names that only differ in signs that no file name has keep apart."""
    name = f"{row.instance}-{row.backend}-{row.seed or 0}"
    plain = re.sub(r"[^\w.,=~()\[\] -]", "-", name)
    return f"{plain}{'' if plain == name else f'-{zlib.crc32(name.encode()):08x}'}.log"
