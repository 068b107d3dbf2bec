"""The machine that runs a benchmark: what it is, and whether it is quiet."""

from __future__ import annotations

import os
import platform
import time
from importlib import metadata
from pathlib import Path

from benchmarks.report import computed
from forcopt.errors import DeclarationError
from forcopt.memory import available

QUIET = 0.5
"""Cores; if others keep fewer busy, nothing else takes part in a measurement."""


def machine(before: float | None = None) -> dict[str, str]:
    """What a reader needs to judge seconds: processor, caches, load, frequency governor, versions.

    Parameters
    ----------
    before : float, optional
        The load when the runs began, see `now`.

    Returns
    -------
    dict[str, str]
        Empty texts for what the system does not tell.
    """
    cpu = Path("/sys/devices/system/cpu/cpu0")
    caches = {_text(p / "level"): _text(p / "size") for p in sorted(cpu.glob("cache/index*"))}
    told = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    models = [line.partition(":")[2].strip() for line in told.splitlines() if line.startswith("model name")]
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    libraries = {d.metadata["Name"]: d.version for d in metadata.distributions()}
    return {
        "processor": models[0] if models else platform.processor(),
        "cores": f"{usable} of {os.cpu_count()}",
        "caches": ", ".join(f"L{level} {size}" for level, size in caches.items()),
        "memory": f"{(available() or 0) / 1e9:.1f} GB free",
        "governor": _text(cpu / "cpufreq" / "scaling_governor"),
        "load": f"{now():.2f}" if before is None else f"{before:.2f} at the start, {now():.2f} at the end",
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": ", ".join(f"{name} {libraries[name]}" for name in sorted(libraries, key=str.lower)),
    }


def now() -> float:
    """The load average of the last minute."""
    return os.getloadavg()[0]


def _text(path: Path) -> str:
    return path.read_text().strip() if path.exists() else ""


PATIENCE = 600.0
"""Seconds to wait for it."""


def load(seconds: float = 3.0) -> float:
    """How many cores are busy while this process sleeps; the load average where the system does not tell."""
    began, before = time.perf_counter(), computed()
    if before is None:
        return os.getloadavg()[0]
    time.sleep(seconds)
    return ((computed() or before) - before) / (time.perf_counter() - began)


def wait_until_quiet() -> None:
    """Wait until the load is below `QUIET`.

    Raises
    ------
    DeclarationError
        If it is not after `PATIENCE` seconds.
    """
    end = time.monotonic() + PATIENCE
    while (busy := load()) >= QUIET:
        if time.monotonic() > end:
            raise DeclarationError(
                f"the load is {busy:.2f} after {PATIENCE:g} s; --quiet asks for less than {QUIET:g}"
            )
