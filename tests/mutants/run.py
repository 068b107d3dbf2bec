"""Break the code where it proves or refuses something, and see that a test fails each time.

    python tests/mutants/run.py [--out tests/mutants/results.md] [--seed 0 --count N] [--only TEXT]

A row of `mutants.toml` names a file, a text that occurs in it once, the text in its place, and the tests that
must notice. The program copies the tracked files to a temporary folder, sees there that the named tests pass,
applies one row at a time, and runs its tests. It writes a table and exits with 1 if a mutant survives, or a
row no longer fits. With `--count`, a seed draws the rows.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROWS = Path(__file__).with_name("mutants.toml")
SECONDS = 900
"""After this time a run counts as ended by the mutant: it does not end by itself."""


@dataclass(frozen=True)
class Mutant:
    """A wrong text in the place of a right one."""

    file: str
    old: str
    new: str
    claim: str
    tests: tuple[str, ...]

    def apply(self, tree: Path) -> str:
        """Write the wrong text; return the right file."""
        path = tree / self.file
        right = path.read_text(encoding="utf-8")
        if right.count(self.old) != 1:
            raise SystemExit(f"{self.file}: {self.old!r} occurs {right.count(self.old)} times; it must once")
        path.write_text(right.replace(self.old, self.new), encoding="utf-8")
        return right


def mutants() -> list[Mutant]:
    """All rows."""
    rows = tomllib.loads(ROWS.read_text(encoding="utf-8"))["mutant"]
    return [Mutant(**{**row, "tests": tuple(row["tests"])}) for row in rows]


def copied(folder: Path) -> Path:
    """A copy of the tracked files, and of those that git does not ignore."""
    listed = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in filter(
        None, subprocess.run(listed, capture_output=True, check=True).stdout.decode().split("\0")
    ):
        target = folder / "tree" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_symlink() or (ROOT / name).exists():
            shutil.copy2(ROOT / name, target, follow_symlinks=False)
    if (ROOT.parent / "shared").is_dir():
        (folder / "shared").symlink_to((ROOT.parent / "shared").resolve())
    return folder / "tree"


def failed(tree: Path, tests: Iterable[str]) -> str:
    """The first test that fails; empty if none does."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--tb=no", *tests]
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        run = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        return "the run does not end"
    for line in run.stdout.splitlines():
        if line.startswith(("FAILED ", "ERROR ")):
            return line.split(" ", 1)[1].partition(" - ")[0]
    if run.returncode:
        raise SystemExit(f"pytest ended with {run.returncode}:\n{run.stdout}\n{run.stderr}")
    return ""


def line(text: str) -> str:
    """A text as a cell of a table."""
    shown = " ".join(text.split()).replace("|", "\\|")
    return f"`{shown}`"


def main() -> None:
    """Run, and write the table."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--out", type=Path, help="the table")
    options.add_argument("--only", default="", help="rows whose file or claim contains this text")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--count", type=int, help="draw so many rows")
    given = options.parse_args()
    chosen = [m for m in mutants() if given.only in m.file or given.only in m.claim]
    if given.count is not None:
        chosen = random.Random(given.seed).sample(chosen, min(given.count, len(chosen)))
    survivors, table = 0, []
    with tempfile.TemporaryDirectory() as folder:
        tree = copied(Path(folder))
        if wrong := failed(tree, sorted({test for m in chosen for test in m.tests})):
            raise SystemExit(f"{wrong} fails on the right code")
        for number, mutant in enumerate(chosen, 1):
            right = mutant.apply(tree)
            killer = failed(tree, mutant.tests)
            (tree / mutant.file).write_text(right, encoding="utf-8")
            survivors += not killer
            print(f"{number}/{len(chosen)} {mutant.file}: {killer or 'SURVIVES'}", flush=True)
            cells = mutant.file, mutant.claim, line(mutant.old), line(mutant.new), killer or "**none**"
            table.append("| " + " | ".join(cells) + " |\n")
    head = "| file | what stands on it | right | wrong | the test that fails |\n|---|---|---|---|---|\n"
    text = f"# Mutants\n\n{len(chosen)} mutants, {survivors} survive. Made by `make mutants`.\n\n{head}"
    if given.out:
        given.out.write_text(text + "".join(table), encoding="utf-8")
    if survivors:
        raise SystemExit(f"{survivors} of {len(chosen)} survive")


if __name__ == "__main__":
    main()
