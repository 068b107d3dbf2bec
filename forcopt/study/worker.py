"""The process of an isolated run: read the parcel, run the job, leave the answer."""

from __future__ import annotations

import faulthandler
import os
import pickle
import runpy
import signal
import sys
import threading
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType

from forcopt.study import isolate
from forcopt.study.isolate import Parcel
from forcopt.study.run import Job, Run, measure

__all__ = ["main"]


def main(folder: str) -> None:
    """Run the job that lies in `folder` and leave the answer there."""
    _end_with_parent()
    faulthandler.enable(all_threads=False)  # a crash names its place
    parcel = pickle.loads(Path(folder, "parcel").read_bytes())
    assert isinstance(parcel, Parcel)
    if parcel.main[0]:
        _import_main(*parcel.main)
    for name in parcel.modules:
        import_module(name)
    job = pickle.loads(parcel.job)
    assert isinstance(job, Job)

    def ready() -> None:
        Path(folder, "ready").touch()
        if parcel.memory_limit is not None:
            _limit_memory(parcel.memory_limit)

    run = measure(job, ready, killed=True)
    run = replace(run, peak_memory=_peak_memory())
    draft = Path(folder, "draft")
    draft.write_bytes(_pickled(run))
    draft.replace(Path(folder, "answer"))  # whole or not there


def _pickled(run: Run) -> bytes:
    try:
        return pickle.dumps(run)
    except Exception as error:  # pickle raises whatever an object's own code raises
        note = f"the decision is lost, since it cannot be pickled: {error}"
        message = f"{run.message}; {note}" if run.message else note
        return pickle.dumps(replace(run, decision=None, message=message))


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
    isolate.importing_main = True
    run = runpy.run_module if kind == "name" else runpy.run_path
    content = run(source, run_name="__mp_main__")
    module = ModuleType("__mp_main__")
    module.__dict__.update(content)
    sys.modules["__main__"] = sys.modules["__mp_main__"] = module
    isolate.importing_main = False


def _limit_memory(size: int) -> None:
    try:
        import resource
    except ImportError:  # not on Windows, where only searches keep the limit
        return
    # RLIMIT_AS would also count memory that is reserved but never used, such as 64 MB for each thread.
    kind = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
    resource.setrlimit(kind, (size, resource.getrlimit(kind)[1]))


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
    programs = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return float(unit * max(own, programs))
