"""Build forcopt-core: the same code, which requires what a model on HiGHS uses and nothing else.

    python .github/build_core.py FOLDER

The wheel's packages are those of forcopt, so an environment has one of the two. A call that needs a package
which is not there names it.
"""

import re
import subprocess
import sys
from pathlib import Path
from shutil import copytree, ignore_patterns
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
HEAVY = ("cvxpy", "ortools", "pyomo", "numba", "python-flint", "pandas", "matplotlib")
"""Requirements of forcopt that forcopt-core has as the extra ``full``."""


def core(text: str) -> str:
    """The description of the package, under its other name and with fewer requirements."""
    text = text.replace('name = "forcopt"', 'name = "forcopt-core"', 1)
    left = [
        line for line in text.splitlines() if line.strip().startswith(tuple(f'"{name}>=' for name in HEAVY))
    ]
    for line in left:
        text = text.replace(line + "\n", "", 1)
    extra = "full = [\n" + "\n".join(left) + "\n]\n"
    text = text.replace("[project.optional-dependencies]\n", "[project.optional-dependencies]\n" + extra, 1)
    return re.sub(r'"forcopt\[', '"forcopt-core[', text)


def main(folder: str) -> None:
    """Write the wheel into a folder."""
    with TemporaryDirectory() as place:
        tree = Path(place) / "tree"
        names = ["forcopt", "models", "setup.py", "README.md", "LICENSE"]
        tree.mkdir()
        for name in names:
            if (ROOT / name).is_dir():
                copytree(ROOT / name, tree / name, ignore=ignore_patterns("__pycache__"))
            else:
                (tree / name).write_bytes((ROOT / name).read_bytes())
        text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
        (tree / "pyproject.toml").write_text(core(text), encoding="utf-8")
        command = [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "-q",
            "--no-deps",
            "-w",
            Path(folder).resolve(),
            tree,
        ]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
