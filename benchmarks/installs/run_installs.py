"""Installs the package in fresh environments, one for each extra, and tries what is there.

    python benchmarks/installs/run_installs.py --out benchmarks/installs/results.md

The wheels are built first. Rows are `forcopt-core`, `forcopt`, each extra, all of them, and the oldest
versions that the requirements allow (by `uv`, which must be on the path). Each environment runs `forcopt
doctor`, the README's first two blocks, and, if it has all requirements, the checkout's tests of the language.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import venv
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.report import ROOT, Page, parser, progress, table

EXTRAS = ("", "scip", "recom", "learn", "privacy", "maps", "dask", "all")
TESTS = ("tests/language", "tests/problem", "tests/games")
HEAD = ["environment", "packages", "MB", "install s", "import s", "README s", "doctor", "tests"]
CLOCK = "import resource as r; u = r.getrusage(r.RUSAGE_SELF); print('spent', u.ru_utime + u.ru_stime)"


def spent(python: Path, code: str) -> str:
    """CPU seconds of a script in a fresh process of an environment; why it failed, if it did."""
    done = subprocess.run(
        [python, "-c", f"{code}\n{CLOCK}"], cwd=python.parents[1], capture_output=True, text=True
    )
    found = re.search(r"spent ([\d.]+)", done.stdout)
    return f"{float(found[1]):.2f}" if found else done.stderr.strip().splitlines()[-1][:90]


def row(name: str, wheel: Path, extra: str, folder: Path, oldest: bool = False) -> list[str]:
    """Make an environment with a wheel and an extra, and try it."""
    venv.create(folder, with_pip=True)
    python, wanted = folder / "bin" / "python", f"{wheel}[{extra}]" if extra else str(wheel)
    pip, began = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"], time.perf_counter()
    lowest = ["uv", "pip", "install", "-q", "--python", python, "--resolution", "lowest-direct", wanted]
    subprocess.run(lowest if oldest else [*pip, wanted], check=True)
    seconds = time.perf_counter() - began
    site = next(folder.glob("lib/python*/site-packages"))
    size = sum(f.stat().st_size for f in site.rglob("*") if f.is_file() and not f.is_symlink()) / 1e6
    listed = subprocess.run([python, "-m", "pip", "list", "--format=json"], capture_output=True, check=True)
    packages = len({p["name"] for p in json.loads(listed.stdout)} - {"pip", "setuptools", "forcopt"})
    doctor = subprocess.run([folder / "bin" / "forcopt", "doctor"], capture_output=True, text=True)
    blocks = re.findall(
        r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S
    )
    cells = [f"{packages}", f"{size:,.0f}", f"{seconds:.0f}", spent(python, "import forcopt")]
    cells += [
        spent(python, "\n".join(blocks[:2])),
        "passes" if not doctor.returncode else f"ends with {doctor.returncode}",
    ]
    if "core" in name:
        return [name, *cells, "-"]
    subprocess.run([*pip, "pytest>=8", "hypothesis>=6.100"], check=True)
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=no", *TESTS]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    said = ran.stdout.strip().splitlines()[-1] if ran.stdout.strip() else ran.stderr.strip()[-90:]
    return [name, *cells, re.sub(r" in [\d.:() s]+$", "", said.strip("= "))]


def main() -> None:
    given = parser(__doc__).parse_args()
    page = Page("Fresh environments", given.out, note="Packages without forcopt itself, pip and setuptools.")
    rows: list[list[str]] = []
    with TemporaryDirectory() as place:
        folder = Path(place)
        subprocess.run(
            [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, ROOT], check=True
        )
        subprocess.run([sys.executable, ROOT / ".github" / "build_core.py", folder], check=True)
        full, core = next(folder.glob("forcopt-*.whl")), next(folder.glob("forcopt_core-*.whl"))
        jobs = [
            ("forcopt-core", core, "", False),
            *((f"forcopt[{e}]" if e else "forcopt", full, e, False) for e in EXTRAS),
        ]
        jobs += [("forcopt, oldest", full, "", True), ("forcopt-core, oldest", core, "", True)]
        for at, (name, wheel, extra, oldest) in enumerate(jobs[:1] if given.quick else jobs):
            try:
                rows.append(row(name, wheel, extra, folder / f"e{at}", oldest))
            except subprocess.CalledProcessError as failed:
                rows.append([name, *["-"] * 6, f"could not be installed: {failed}"[:120]])
            progress(*rows[-1])
            page.write(
                "Seconds of `import forcopt` and of the README's first two blocks are CPU seconds of one "
                f"fresh process, the first in that environment. Tests: `pytest {' '.join(TESTS)}`.\n\n"
                + table(HEAD, rows)
            )


if __name__ == "__main__":
    main()
