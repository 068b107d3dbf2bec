"""A process that lacks what Python lacks in a browser: `python browser.py` prints a line of JSON.

It runs the first three blocks of the README in one namespace, as a notebook does, and says what they print.
The differences are those of Pyodide 314 (Python 3.14, Emscripten), as its interpreter reports them. Those
requirements that its distribution lacks are missing. Numbers stay those of this machine; in Pyodide an index
has 32 bits.
"""

import builtins
import io
import json
import os
import re
import signal
import sys
import sysconfig
import threading
import time
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

PACKAGES = {"cvxpy", "clarabel", "scs", "osqp", "ortools", "pyomo", "pandas", "numba", "llvmlite", "flint"}
"""Requirements of the package that are not there; matplotlib is, as networkx brings it."""

MODULES = {"resource", "_multiprocessing", "grp", "pwd", "readline", "curses"}
"""Parts of the standard library that Pyodide has not."""

README = Path(__file__).resolve().parents[1] / "README.md"


class Without:
    """A finder of modules that does not find those that are missing."""

    def __init__(self, finder: Any) -> None:
        self.finder = finder

    def __getattr__(self, name: str) -> Any:
        return getattr(self.finder, name)

    def find_spec(self, name: str, *more: Any) -> Any:
        return None if name.partition(".")[0] in PACKAGES | MODULES else self.finder.find_spec(name, *more)


def refused(*_: Any, **__: Any) -> None:
    """Start a thread or a process."""
    raise RuntimeError("can't start new thread")


def enter() -> None:
    """Take from this process what a browser has not."""
    for name in [name for name in sys.modules if name.partition(".")[0] in PACKAGES | MODULES]:
        del sys.modules[name]
    sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]
    sysconfig.get_config_vars()  # read for the true platform
    sys.platform, sys.maxsize = "emscripten", 2**31 - 1
    threading.Thread.start = refused  # type: ignore[method-assign]
    os.cpu_count = lambda: 1
    for module, names in {
        signal: ("setitimer", "getitimer", "pthread_kill", "sigwait"),
        time: ("thread_time", "thread_time_ns"),
        os: ("fork", "posix_spawn", "sched_getaffinity", "sched_setaffinity"),
    }.items():
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    opened = builtins.open

    def open_elsewhere(file: Any, *more: Any, **named: Any) -> Any:
        if isinstance(file, str | os.PathLike) and os.fspath(file).startswith("/proc/"):
            raise FileNotFoundError(2, "no such file", str(file))
        return opened(file, *more, **named)

    builtins.open = io.open = open_elsewhere  # type: ignore[assignment]


def main() -> dict[str, Any]:
    """What each block prints, or why it fails."""
    enter()
    blocks = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.M | re.S)
    namespace: dict[str, Any] = {}
    said = []
    for block in blocks[:3]:
        with redirect_stdout(io.StringIO()) as out:
            try:
                exec(block, namespace)
            except Exception as error:
                print(f"{type(error).__name__}: {error}")
        said.append(out.getvalue())
    import forcopt as fo
    from forcopt.data import delaunay
    from forcopt.models import Districting

    problem = namespace["p"]
    compared = fo.compare(problem, ["as-predicted", "lp@highs", "lp@clarabel"], isolate=False)
    plan = Districting(delaunay(20, seed=1), districts=3, tolerance=0.1).solve("labels-separators")
    plan.plot("map.svg")
    named = {}
    calls = {
        "clarabel": lambda: namespace["m"].solve("clarabel"),
        "cp-sat": lambda: namespace["m"].solve("cp-sat"),
        "isolate": lambda: fo.compare(problem, ["as-predicted", "lp@highs"], isolate=True),
    }
    for name, call in calls.items():
        try:
            named[name] = str(call())
        except Exception as error:
            named[name] = f"{type(error).__name__}: {error}"
    return {
        "said": said,
        "plan": [plan.status, plan.objective, plan.bound],
        "picture": Path("map.svg").stat().st_size,
        "table": str(compared.table()),
        "named": named,
    }


if __name__ == "__main__":
    print(json.dumps(main()))
