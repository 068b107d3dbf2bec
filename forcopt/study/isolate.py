"""Run a job in a process of its own: a crash, a hang or a greedy solver costs one row and nothing else."""

from __future__ import annotations

import faulthandler
import os
import pickle
import re
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

from forcopt.clock import Standstill
from forcopt.errors import DeclarationError
from forcopt.status import Status
from forcopt.study.run import Job, Run, measure, storable

GRACE = 5.0
"""The seconds by which a run may exceed its time limit before its process is killed."""

_STARTUP = 600.0
"""The seconds that a process may take to import and prepare; the time limit counts from then on."""

importing_main = False
"""Whether this is the process of a run that is importing the script which asked for it."""

_LIVE: set[subprocess.Popen[bytes]] = set()

# The child sees the modules that this process sees, without running the main module again.
_BOOT = "import sys; sys.path[:] = sys.argv[2:]; from forcopt.study.isolate import main; main(sys.argv[1])"


@dataclass(frozen=True)
class Parcel:
    """A job ready to be sent.

    Attributes
    ----------
    main : tuple[str, str]
        Where the main module comes from, if it is among those of the job: a module name or a path.
    job : bytes
        Pickled, because it can only be read once the main module is there; without the problem.
    problem : bytes
        Pickled; one object for all jobs on the same problem.
    memory_limit : int
        Bytes, or None.
    time_limit : float
        Seconds, or None.
    failed : Run
        The row if the run dies.
    """

    main: tuple[str, str]
    job: bytes
    problem: bytes
    memory_limit: int | None
    time_limit: float | None
    failed: Run


def pack(job: Job, pickled: dict[int, bytes]) -> Parcel:
    """Make a job ready to be sent to another process; `pickled` holds the problems of earlier jobs.

    Raises
    ------
    DeclarationError
        If another process could not read the problem.
    """
    main = _main_module() if "__main__" in job.modules else ("", "")
    try:
        if id(job.problem) not in pickled:
            pickled[id(job.problem)] = pickle.dumps(job.problem)
        own = pickle.dumps(job.of)
    except Exception as error:  # pickle raises whatever an object's own code raises
        name = type(job.problem).__name__
        raise DeclarationError(
            f"{name} cannot be sent to another process: {error}; define it in a module, or use isolate=False"
        ) from None
    failed = job.row(Status.FAILED, "", sense="")  # that of a file is slow to read
    return Parcel(main, own, pickled[id(job.problem)], job.memory_limit, job.time_limit, failed)


def _main_module() -> tuple[str, str]:
    main = sys.modules["__main__"]
    spec, path = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    if spec is not None:
        return "name", str(spec.name)
    if path is None:
        raise DeclarationError(
            "the problem or its method is defined at the prompt, where another process cannot find it; "
            "define it in a module, or use isolate=False"
        )
    return "path", os.path.abspath(path)


def run_isolated(parcel: Parcel) -> Run:
    """Run a job in a new process; however that ends, there is a row."""
    with tempfile.TemporaryDirectory(prefix="forcopt-") as name:
        folder = Path(name)
        (folder / "parcel").write_bytes(pickle.dumps(parcel))
        began = time.monotonic()
        with (folder / "output").open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-c", _BOOT, name, *sys.path],
                stdin=subprocess.PIPE,  # the child ends when this end closes: no orphans
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a group of its own: can be killed with the solvers that it started
            )
        _LIVE.add(process)
        try:
            overdue = _wait(process, folder, parcel.time_limit)
        finally:
            _LIVE.discard(process)
            _kill(process)
        if (folder / "answer").exists():
            run = pickle.loads((folder / "answer").read_bytes())
            assert isinstance(run, Run)
            return run
        died = replace(parcel.failed, seconds=time.monotonic() - began)
        if overdue:
            return replace(died, status=Status.LIMIT, message=overdue)
        text = (folder / "output").read_text(errors="replace")
        return replace(died, message=_cause(process.returncode, text, parcel.memory_limit))


def stop_all() -> None:
    """Kill all runs of this process, whatever thread waits for them."""
    for process in list(_LIVE):
        _kill(process)


def _wait(process: subprocess.Popen[bytes], folder: Path, limit: float | None) -> str:
    """Wait for the answer or the end; report a run that took too long."""
    deadline, left = time.monotonic() + _STARTUP, float("inf") if limit is None else limit + GRACE
    begun = answered = False
    while process.poll() is None:
        now = time.monotonic()
        if not answered and begun != (folder / "ready").exists():  # it begins or goes on, or compiles code
            left = deadline - now if begun else left
            begun = not begun
            deadline = now + (left if begun else _STARTUP)
        if not answered and (folder / "answer").exists():
            answered, deadline = True, now + GRACE
        if now > deadline:
            if begun:
                return f"killed: still running {GRACE:g} s after its time limit of {limit} s"
            return f"killed: not started after {_STARTUP:g} s"
        time.sleep(0.02)
    return ""


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a child and every solver that it started."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):  # nothing is left; macOS raises the second
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()
    assert process.stdin is not None
    process.stdin.close()


def _cause(code: int, output: str, memory_limit: int | None) -> str:
    """Describe how a child died, from its exit code and its last output."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    if code < 0:
        text = f"killed by {signal.Signals(-code).name}"
        place = re.search(r'most recent call first\):\s+File "(.+)", line (\d+) in (\S+)', output)
        if place:
            text += f" at {Path(place[1]).name}:{place[2]} in {place[3]}"
        words = [line for line in lines if line.startswith(("terminate called", "what():", "Fatal"))]
    else:
        text = f"exited with code {code} and no answer"
        words = lines[-1:]
    if words:
        text += ": " + " ".join(words)
    if code < 0 and memory_limit is not None:
        text += f" (memory limit {memory_limit / 1e6:g} MB)"
    elif code == -signal.SIGKILL:
        text += ", which the system does when memory runs out"
    return text


def main(folder: str) -> None:
    """Run the job that lies in `folder` and leave the answer there."""
    _end_with_parent()
    faulthandler.enable(all_threads=False)  # a crash names its place
    parcel = pickle.loads(Path(folder, "parcel").read_bytes())
    assert isinstance(parcel, Parcel)
    if parcel.main[0]:
        _import_main(*parcel.main)
    job = pickle.loads(parcel.job)(pickle.loads(parcel.problem))
    assert isinstance(job, Job)

    def ready(runs: bool = True) -> None:
        mark, Standstill.watch = Path(folder, "ready"), ready
        mark.touch() if runs else mark.unlink(missing_ok=True)  # two threads may compile
        if parcel.memory_limit is not None:
            _limit_memory(parcel.memory_limit if runs else -1)

    threads = job.options.get("threads")
    if threads and hasattr(os, "sched_setaffinity"):  # of a solver that takes more than it was given, too
        cores = sorted(os.sched_getaffinity(0))
        first = os.getpid() % len(cores)  # runs side by side shall not all be bound to one core
        os.sched_setaffinity(0, (cores + cores)[first : first + threads])
    run = measure(job, ready, killed=True)
    run = replace(run, peak_memory=_peak_memory())
    draft = Path(folder, "draft")
    draft.write_bytes(pickle.dumps(storable(run)))
    draft.replace(Path(folder, "answer"))  # whole or not there


def _end_with_parent() -> None:
    """End this process and its solvers when the other end of the pipe closes, however the parent died."""
    pipe = os.dup(0)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)

    def watch() -> None:
        os.read(pipe, 1)
        if hasattr(os, "killpg"):
            os.killpg(0, signal.SIGKILL)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _import_main(kind: str, source: str) -> None:
    """Import the parent's main module, not as the main program, as multiprocessing does."""
    global importing_main
    importing_main = True
    run = runpy.run_module if kind == "name" else runpy.run_path
    module = ModuleType("__mp_main__")
    module.__dict__.update(run(source, run_name="__mp_main__"))
    sys.modules["__main__"] = sys.modules["__mp_main__"] = module
    importing_main = False


def _limit_memory(size: int) -> None:
    """Let the system refuse more than this size; nothing, if it is negative."""
    try:
        import resource
    except ImportError:  # not on Windows, where only searches keep the limit
        return
    # RLIMIT_AS would also count memory that is reserved but never used, such as 64 MB for each thread.
    kind = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
    most = resource.getrlimit(kind)[1]
    resource.setrlimit(kind, (most if size < 0 else size, most))


def _peak_memory() -> float:
    """Bytes: the most that this process, or a program that it ran, has held in memory at once."""
    try:
        import resource
    except ImportError:  # not on Windows
        return float("nan")
    unit = 1 if sys.platform == "darwin" else 1024
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    status = Path("/proc/self/status")
    if status.exists():  # on Linux the figure above starts from the size of the parent
        own = next(int(line.split()[1]) for line in status.open() if line.startswith("VmHWM"))
    return float(unit * max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
