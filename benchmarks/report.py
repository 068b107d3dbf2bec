"""What the benchmarks share: options, data, the heading of a page, its tables, the headline beside it.

Imports the standard library only: processes that ``model_build`` measures start with their parent's memory.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
QUIET = 1.0
"""Load by other processes: a headline measured at a higher one is not for comparing."""

QUIET_ASKED = "BENCHMARK_QUIET"
"""The environment variable that refuses such a headline."""

Row = dict[str, str]
Part = Callable[[bool], tuple[str, list[Row]]]
"""Given whether to be quick: a section in Markdown, and its rows of the headline."""


def parser(text: str | None, *parts: str) -> argparse.ArgumentParser:
    """The options that every benchmark has; and which of its parts to run, if it has several."""
    made = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--out", type=Path, required=True, help="the page; all else goes beside it")
    made.add_argument("--quick", action="store_true", help="a small part, for checking that it runs")
    if parts:
        made.add_argument("--parts", nargs="*", choices=parts, default=parts, help="only these")
    return made


def data(name: str) -> Path:
    """A file of ../shared/data beside the repository."""
    path = ROOT.parent / "shared" / "data" / name
    if not path.exists():
        raise SystemExit(f"error: the benchmark needs {path}, which is missing")
    return path


def environment(script: str, packages: Mapping[str, str]) -> str:
    """The Python of an environment that holds peers, in the folder ``.peers`` beside the script."""
    python = Path(script).resolve().with_name(".peers") / "bin" / "python"
    if not python.exists():
        venv.create(python.parents[1], with_pip=True)
    wanted = [f"{name}=={number}" for name, number in packages.items()]
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted]
    subprocess.run(install, check=True)
    return str(python)


def progress(*words: object) -> None:
    """Say how far it is."""
    print(*words, file=sys.stderr, flush=True)


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A Markdown table, its first column to the left."""
    head = list(head)
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def row(subject: str, ours: str, peers: str = "-", ratio: str = "-") -> Row:
    """A row of a headline."""
    return {"what": subject, "ours": ours, "peers": peers, "ratio": ratio}


MEDIANS = "Seconds are the median of three runs, ours and those of the peers; one, if it takes over 30 s."


def middle(act: Callable[[], Any], seconds: Callable[[Any], float] = lambda s: s.seconds) -> Any:
    """Of three runs the one that takes the middle number of seconds; the first, if it takes over 30 s."""
    first = act()
    return first if seconds(first) > 30.0 else sorted((first, act(), act()), key=seconds)[1]


class Page:
    """A page of results; its heading says when, where and under what load it was measured.

    Written anew as results come, so that an interrupted run leaves what it has.
    """

    def __init__(self, title: str, out: Path, *packages: str, note: str = "") -> None:
        self.title, self.out, self.note = title, out, note
        self.out.parent.mkdir(parents=True, exist_ok=True)
        self.versions = {"Python": platform.python_version()} | {name: version(name) for name in packages}
        self.others = Others()

    def conditions(self) -> str:
        """Date, machine, and how much other processes computed meanwhile: the load."""
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        return (
            f"{datetime.date.today()}; {_processor()}, {cores} of {os.cpu_count()} cores; "
            f"load {self.others.load():.2f} by other processes."
        )

    def write(self, body: str) -> None:
        """Write heading and body."""
        used = ", ".join(f"{name} {number}" for name, number in self.versions.items())
        note = f" {self.note}" if self.note else ""
        made = os.path.relpath(sys.argv[0], ROOT)
        self.out.write_text(
            f"# {self.title}\n\n{self.conditions()} {used}.{note} Made by `python {made}`.\n\n{body}",
            encoding="utf-8",
        )

    def headline(self, rows: list[Row], title: str = "") -> None:
        """Write what the page of all benchmarks says of this one.

        Raises
        ------
        SystemExit
            If `QUIET_ASKED` is set, as ``forcopt benchmark --quiet`` does, and the load was above `QUIET`.
        """
        if os.environ.get(QUIET_ASKED) and (load := self.others.load()) > QUIET:
            raise SystemExit(
                f"error: {self.out.with_name('headline.json')} is not written: the load by other processes "
                f"was {load:.2f} during the run; --quiet asks for at most {QUIET:g}"
            )
        told = {
            "title": title or self.title,
            "conditions": f"{self.conditions()} {self.note}".strip(),
            "table": self.out.name,
            "rows": rows,
        }
        text = json.dumps(told, indent=1, ensure_ascii=False) + "\n"
        self.out.with_name("headline.json").write_text(text, encoding="utf-8")

    def run(self, parts: Mapping[str, Part], quick: bool) -> None:
        """Run parts, write the page after each, and the headline at the end."""
        body, rows = [], []
        for title, part in parts.items():
            began = time.perf_counter()
            text, told = part(quick)
            body.append(f"## {title}\n\n{text.rstrip()}\n")
            rows += told
            self.write("\n".join(body))
            progress(f"{title}: {time.perf_counter() - began:.0f} s")
        self.headline(rows)


def computed() -> float | None:
    """CPU seconds of all processes since the machine started; none where the system does not tell."""
    file = Path("/proc/stat")
    if not file.exists():
        return None
    user, nice, system, _, _, irq, softirq = map(int, file.read_text().split(maxsplit=8)[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


class Others:
    """A meter of how many cores the processes kept busy that are neither this one nor its ended children."""

    def __init__(self) -> None:
        self.began, self.used = time.perf_counter(), self._used()

    @staticmethod
    def _used() -> float:
        mine = sum(os.times()[:4])
        return (computed() or mine) - mine

    def load(self) -> float:
        """The mean number of cores since the meter was made."""
        return max(0.0, self._used() - self.used) / max(1e-9, time.perf_counter() - self.began)


def _processor() -> str:
    if Path("/proc/cpuinfo").exists():
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
