"""Installs the package in fresh environments, one for each extra, and tries what is there.

    python benchmarks/installs/run_installs.py --out benchmarks/installs/results.md

It needs pip, and `uv` on the path. The wheels are built first. Rows are `forcopt-core`, `forcopt`, each
extra, all of them, two versions of highspy beside ortools, and the oldest versions that the requirements
allow. Each environment runs `forcopt doctor`, the README's first two blocks, and those core tests of the
language, the compiler and games whose packages are there, against the installed package. The page and the
table in CONTRIBUTING are written after each row; `--only NAME...` makes these rows anew and keeps the others.
With `--quick` there is one row, and CONTRIBUTING stays.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from zipfile import ZipFile

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.report import ROOT, Page, parser, progress, table

TESTS = ("tests/language", "tests/compile", "tests/games")
HEAD = ["environment", "packages", "MB", "install s", "import s", "README s", "doctor", "tests"]
CLOCK = "import resource as r; u = r.getrusage(r.RUSAGE_SELF); print('spent', u.ru_utime + u.ru_stime)"
MARKS = ("<!-- installs -->\n", "<!-- end of installs -->\n")
LIMIT = 1800
"""Seconds for the tests of a row."""


class Wanted(NamedTuple):
    """An environment: the package with an extra, and versions that replace those of its requirements."""

    name: str
    extra: str = ""
    pins: tuple[str, ...] = ()
    oldest: bool = False


ROWS = (
    Wanted("forcopt-core"),
    Wanted("forcopt"),
    *(Wanted(f"forcopt[{e}]", e) for e in ("scip", "recom", "learn", "privacy", "maps", "dask", "all")),
    *(Wanted(f"forcopt, highspy {v}", "", (f"highspy=={v}",)) for v in ("1.13.1", "1.15.1")),
    Wanted("forcopt-core, oldest", oldest=True),
    Wanted("forcopt, oldest", oldest=True),
    Wanted("forcopt[all], oldest", "all", oldest=True),
)


def spent(python: Path, code: str) -> str:
    """CPU seconds of a script in a fresh process of an environment; why it failed, if it did."""
    done = subprocess.run(
        [python, "-c", f"{code}\n{CLOCK}"], cwd=python.parents[1], capture_output=True, text=True
    )
    found = re.search(r"spent ([\d.]+)", done.stdout)
    return f"{float(found[1]):.2f}" if found else done.stderr.strip().splitlines()[-1][:90]


def suited(python: Path) -> list[str]:
    """The files of tests that import nothing which the environment lacks."""
    files = [file for folder in TESTS for file in sorted((ROOT / folder).glob("test_*.py"))]
    imports: dict[Path, set[str]] = {}
    for file in files:
        names = set()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names.add((node.module or "").partition(".")[0])
        ours = {path.stem for path in (ROOT / "tests").glob("*.py")}
        imports[file] = names - ours
    every = sorted(set().union(*imports.values()))
    code = "import sys, importlib.util as u; print(*(n for n in sys.argv[1:] if not u.find_spec(n)))"
    lacking = set(subprocess.check_output([python, "-c", code, *every], text=True).split())
    return [str(file.relative_to(ROOT)) for file in files if not imports[file] & lacking]


def tests(python: Path, folder: Path) -> str:
    """How many tests ended how, of files that suit the environment."""
    report = folder / "tests.xml"
    command = [
        python.with_name("pytest"),
        *("-q", "-m", "core", "--tb=line", "-p", "no:cacheprovider", "-o", "pythonpath=tests"),
        *("--continue-on-collection-errors", f"--junitxml={report}", *suited(python)),
    ]
    try:  # the program, not `python -m pytest`, which would import the checkout's package
        subprocess.run(command, cwd=ROOT, capture_output=True, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return f"unfinished after {LIMIT} s"
    if not report.exists():
        return "pytest gave no report"
    counts = dict.fromkeys(("passed", "skipped", "name a missing package", "failed"), 0)
    for case in ET.parse(report).iter("testcase"):
        ends = [end for end in case if end.tag in ("failure", "error", "skipped")]
        said = " ".join(f"{end.get('message')} {end.text}" for end in ends)
        kind = "passed" if not ends else "skipped" if ends[0].tag == "skipped" else "failed"
        counts["name a missing package" if kind == "failed" and "NotInstalledError" in said else kind] += 1
    return ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)


def requirements(wheel: Path, extra: str) -> list[str]:
    """What a wheel and its extra require: uv lowers only what it is asked for, not what a wheel asks for."""
    with ZipFile(wheel) as packed:
        name = next(name for name in packed.namelist() if name.endswith(".dist-info/METADATA"))
        lines = packed.read(name).decode().partition("\n\n")[0].splitlines()
    parts = [
        line.removeprefix("Requires-Dist: ").partition(";") for line in lines if "Requires-Dist: " in line
    ]
    of = [(need.strip(), marker.partition("==")[2].strip(" \"'")) for need, _, marker in parts]
    others = {"", "test", "lint", "docs", "full"}
    return [
        need
        for need, part in of
        if not need.startswith("forcopt") and (part in ("", extra) or (extra == "all" and part not in others))
    ]


def row(wanted: Wanted, wheel: Path, folder: Path) -> list[str]:
    """Make an environment with a wheel and an extra, and try it."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python, package = folder / "bin" / "python", f"{wheel}[{wanted.extra}]" if wanted.extra else str(wheel)
    pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    uv = ["uv", "pip", "install", "-q", "--python", python]
    began = time.perf_counter()
    lowest = [*uv, "--resolution", "lowest-direct", package, *requirements(wheel, wanted.extra)]
    subprocess.run(lowest if wanted.oldest else [*pip, package], check=True)
    if wanted.pins:
        subprocess.run([*uv, "--no-deps", *wanted.pins], check=True)
    seconds = time.perf_counter() - began
    site = next(folder.glob("lib/python*/site-packages"))
    size = sum(f.stat().st_size for f in site.rglob("*") if f.is_file() and not f.is_symlink()) / 1e6
    listed = subprocess.run([python, "-m", "pip", "list", "--format=json"], capture_output=True, check=True)
    names = {p["name"].replace("_", "-") for p in json.loads(listed.stdout)}
    packages = len(names - {"pip", "setuptools", "forcopt", "forcopt-core"})
    doctor = subprocess.run([folder / "bin" / "forcopt", "doctor"], capture_output=True, text=True)
    blocks = re.findall(
        r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S
    )
    cells = [f"{packages}", f"{size:,.0f}", f"{seconds:.0f}", spent(python, "import forcopt")]
    cells += [
        spent(python, "\n".join(blocks[:2])),
        "passes" if not doctor.returncode else f"ends with {doctor.returncode}",
    ]
    subprocess.run([*uv, "pytest>=8", "hypothesis>=6.100"], check=True)
    return [wanted.name, *cells, tests(python, folder)]


def kept(page: Path) -> dict[str, list[str]]:
    """The rows that a page has."""
    if not page.exists():
        return {}
    lines = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines]
    return {cells[0]: cells for cells in rows if len(cells) == len(HEAD) and cells != HEAD}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--only", nargs="*", default=[], metavar="NAME", help="rows to make anew")
    given = options.parse_args()
    if unknown := set(given.only) - {wanted.name for wanted in ROWS}:
        options.error(f"no row is named {sorted(unknown)}; there are {[wanted.name for wanted in ROWS]}")
    page = Page("Fresh environments", given.out, note="Packages without forcopt itself, pip and setuptools.")
    rows = kept(given.out) if given.only else {}
    with TemporaryDirectory() as place:
        folder = Path(place)
        subprocess.run(
            [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, ROOT], check=True
        )
        subprocess.run([sys.executable, ROOT / ".github" / "build_core.py", folder], check=True)
        full, core = next(folder.glob("forcopt-*.whl")), next(folder.glob("forcopt_core-*.whl"))
        jobs = [w for w in ROWS if w.name in given.only] if given.only else ROWS
        for at, wanted in enumerate(jobs[:1] if given.quick else jobs):
            try:
                made = row(wanted, core if "core" in wanted.name else full, folder / f"e{at}")
            except Exception as failed:
                made = [wanted.name, *["-"] * 6, f"not tried: {failed}".replace("|", "/")[:120]]
            rows[wanted.name] = made
            progress(*made)
            write(page, [rows[w.name] for w in ROWS if w.name in rows], given.quick)


def write(page: Page, rows: list[list[str]], quick: bool) -> None:
    """The page, and the table of CONTRIBUTING between its marks."""
    shown = table(HEAD, rows)
    page.write(
        "Seconds of `import forcopt` and of the README's first two blocks are CPU seconds of one fresh "
        f"process, the first in that environment. Tests: `pytest -m core {' '.join(TESTS)}`, the files whose "
        f"packages are there, against the installed package.\n\n{shown}"
    )
    if quick:
        return
    guide = ROOT / "CONTRIBUTING.md"
    before, after = guide.read_text(encoding="utf-8").split(MARKS[0])
    guide.write_text(f"{before}{MARKS[0]}\n{shown}\n{MARKS[1]}{after.split(MARKS[1])[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()
