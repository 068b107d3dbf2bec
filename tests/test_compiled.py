"""What numba compiles takes neither time nor memory of a run."""

import logging
import os
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

import forcopt.compiled
from forcopt import memory
from forcopt.clock import Deadline
from forcopt.compiled import njit
from forcopt.memory import memory_limited


def test_the_clock_stands_still_while_numba_compiles():
    from numba.core import event

    memory._give_back()  # what earlier tests have freed
    with memory_limited("20 MB"):
        deadline = Deadline(0.2)
        for _ in range(2):  # parts of numba's work lie within each other
            event.start_event("numba:compiler_lock")
        held = np.ones(10**7)
        time.sleep(0.3)
        for _ in range(2):
            event.end_event("numba:compiler_lock")
        assert not deadline.passed and deadline.left > 0.1
        more = np.ones(10**7)
        time.sleep(0.02)
        assert deadline.passed and len(held) == len(more)
    later = Deadline(0.05)
    time.sleep(0.1)
    assert later.passed


def test_a_compilation_is_outside_of_the_clock():
    @njit()
    def sum_of_squares(n):
        total = 0
        for i in range(n):
            total += i * i
        return total

    deadline, began = Deadline(60), time.perf_counter()
    assert sum_of_squares(4) == 14
    took = time.perf_counter() - began
    assert deadline.seconds < 0.5 * took


def test_clocks_of_other_threads_go_on_and_none_goes_back():
    from numba.core import event
    from numba.core.compiler_lock import global_compiler_lock

    inside, read = threading.Barrier(2), threading.Event()

    def compile_it():
        with global_compiler_lock:
            inside.wait(60)
            time.sleep(0.1)
            assert read.wait(60)

    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(compile_it)
        inside.wait(60)
        deadline = Deadline(0.05)  # in the midst of a compilation elsewhere
        time.sleep(0.06)
        assert deadline.passed
        read.set()
        run.result()
    assert deadline.seconds >= 0.06 and deadline.passed
    for _ in range(2):  # what Ctrl-C keeps from its end leaves the next part alone
        event.start_event("numba:compiler_lock")
        began, deadline = time.perf_counter(), Deadline(60)
    with global_compiler_lock, global_compiler_lock:
        time.sleep(0.05)
    assert deadline.seconds <= time.perf_counter() - began - 0.05


def test_the_first_compilation_of_the_library_is_announced_once(monkeypatch, caplog):
    from numba.core import event

    monkeypatch.setattr(forcopt.compiled._listener, "told", False)
    caplog.set_level(logging.WARNING, logger="forcopt")
    for module in ("__main__", "forcopt.graphs.states", "forcopt.graphs.states"):
        assert not caplog.messages or module != "__main__"
        with event.trigger_event("numba:compile", {"dispatcher": SimpleNamespace(__module__=module)}):
            assert len(caplog.messages) == (module != "__main__")
    assert caplog.messages[0].startswith("compiling code, once after an installation")


@pytest.fixture
def kernels(tmp_path, monkeypatch):
    """Two modules with kernels, of which one calls the other, each run in a process of its own."""
    head = "from forcopt.compiled import njit\n"
    (tmp_path / "below.py").write_text(head + "@njit(cache=True)\ndef step(n): return n + 1\n")
    text = "from below import step\n@njit(cache=True)\ndef double(n): return 2 * step(n)\n"
    (tmp_path / "above.py").write_text(head + text)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kept"))

    def run(before=""):
        script = f"{before}\nimport above; print(above.double(1), *above.double.stats.cache_hits.values())"
        ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        return ended.stdout.split()

    return run


def test_code_of_an_older_kernel_in_another_file_is_not_used(kernels, tmp_path):
    assert (kernels(), kernels()) == (["4"], ["4", "1"])
    below = tmp_path / "below.py"
    below.write_text(below.read_text().replace("n + 1", "n + 100"))
    assert (kernels(), kernels()) == (["202"], ["202", "1"])
    # Another version of the library may have other constants.
    assert kernels("import forcopt.version; forcopt.version.__version__ = 'next'") == ["202"]


def test_code_that_cannot_be_read_or_written_is_compiled(kernels, tmp_path):
    assert kernels() == ["4"]
    for file in tmp_path.glob("kept/*/*.nbi"):
        file.write_bytes(b"")
    assert (kernels(), kernels()) == (["4"], ["4", "1"])
    shutil.rmtree(tmp_path / "kept")
    full = "def full(*_): raise OSError(28, 'No space left on device')\n"
    assert kernels(full + "from numba.core import caching; caching.IndexDataCacheFile.save = full") == ["4"]


def test_kernels_are_compiled_where_no_folder_can_be_written(monkeypatch):
    def refuse(self, function):
        raise RuntimeError("no locator available")

    monkeypatch.setattr(forcopt.compiled._Kept, "__init__", refuse)
    monkeypatch.setattr(forcopt.compiled._listener, "kept", True)
    kernel = njit(cache=True)(lambda n: n + 1)
    assert kernel(1) == 2 and kernel.stats.cache_path is None and not forcopt.compiled._listener.kept
