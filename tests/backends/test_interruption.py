"""Ctrl-C, threads and the terminal: what solvers must leave to the caller."""

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import forcopt as fo
from forcopt.clock import raising_interrupts, stop_on_interrupt, watches_interrupts
from forcopt.study.library import instances


def market_split(seed=0, rows=5, columns=40, slack=True):
    """Equations that take branch and bound very long; without slack no point is found."""
    rng = np.random.default_rng(seed)
    m = fo.Model("market split")
    x = m.variable("x", columns, binary=True)
    data = rng.integers(0, 100, size=(rows, columns))
    apart = m.variable("slack", (2, rows), lower=0, upper=int(data.sum()) if slack else 0, integer=True)
    m.subject_to(data @ x + apart[0] - apart[1] == data.sum(axis=1) // 2)
    m.minimize(apart.sum())
    return m


CHILD = """
import os, subprocess, sys
sys.path.insert(0, {folder!r})
from test_interruption import market_split
import forcopt as fo
m = fo.Model()
m.maximize(m.variable("x", upper=3, lower=0, integer=True))
assert m.solve({name!r}).objective == 3  # the solver is loaded
# SCIP holds Python's lock, so that no thread of this process could send it
subprocess.Popen(['sh', '-c', f'sleep 1; kill -INT {{os.getpid()}}'])
try:
    s = market_split(slack={slack}).solve({name!r}, time_limit=20, threads=1)
    print(s.status.value, s.point is not None, s.bound >= -1e-6, s.message)
except KeyboardInterrupt:
    print("raised")
assert m.solve({name!r}).objective == 3
"""


@pytest.mark.parametrize("slack", [True, False])
@pytest.mark.parametrize("name", ["highs", "cp-sat", "scip", "gscip"])
def test_ctrl_c_gives_the_best_point_or_is_raised(name, slack):
    """A process that sends itself the signal while a solver searches."""
    script = CHILD.format(folder=os.path.dirname(__file__), name=name, slack=slack)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    last = done.stdout.splitlines()[-1]  # SCIP says on a line before it that Ctrl-C was pressed
    # Without slack nothing was found that would be lost.
    assert last.startswith("feasible True True Ctrl-C asked to stop; ") if slack else last == "raised"


@pytest.mark.parametrize("name", ["cp-sat", "scip", "gscip"])
def test_loops_end_with_ctrl_c(name):
    small = fo.Model()
    small.maximize(small.variable("x", upper=3, lower=0, integer=True))
    assert small.solve(name).objective == 3  # the solver is loaded
    m = market_split()
    with (
        subprocess.Popen(
            [sys.executable, "-c", f"import os, time; time.sleep(2); os.kill({os.getpid()}, 2)"]
        ),
        pytest.raises(KeyboardInterrupt),
        raising_interrupts(),
    ):
        m.solve(name, time_limit=60, threads=1)
    assert fo.Model().solve("highs").status is fo.Status.OPTIMAL


def test_threads_are_at_most_those_of_the_machine():
    from forcopt.backends import SolveOptions

    assert SolveOptions(threads=100_000).threads == os.cpu_count()
    assert SolveOptions(threads=1).threads == 1
    for name in ("highs", "cp-sat", "glop", "clarabel"):
        m = fo.Model()
        x = m.variable("x", 3, lower=0, upper=2, integer=name in ("highs", "cp-sat"))
        m.subject_to(x.sum() <= 5)
        m.maximize(x.sum())
        assert m.solve(name, threads=100_000).objective == pytest.approx(5)


@pytest.mark.parametrize("name", ["scip", "gscip", "highs", "cp-sat"])
def test_nothing_is_printed(name, capfd):
    rng = np.random.default_rng(0)
    m = fo.Model()
    x = m.variable("x", 20, binary=True)
    m.subject_to(rng.integers(1, 40, (4, 20)) @ x <= 150)
    m.maximize(rng.integers(1, 40, 20) @ x)
    seen = []
    m.solve(name, on_improvement=lambda step: seen.append(step) and None, start={x: 0})
    m.solve(name, time_limit=0.001)
    told = capfd.readouterr()
    assert (told.out, told.err) == ("", "")


@pytest.mark.parametrize("method", ["local-ratio", "ledger", "max-flow"])
@pytest.mark.parametrize("limit", [None, 60.0])
def test_ctrl_c_is_the_reason_that_is_named(method, limit):
    name = "robustness/four-points" if method == "max-flow" else "queries/schedule-300-1000"
    p = fo.load(name) if method == "max-flow" else instances()[name].make()
    with stop_on_interrupt():
        signal.raise_signal(signal.SIGINT)
        s = p.solve(method, time_limit=limit)
    assert "time" not in s.message and "Ctrl-C asked to stop" in s.message


def test_solves_that_overlap_in_threads_leave_ctrl_c_as_it_was():
    inside, ended = threading.Barrier(2), threading.Event()

    def first():
        with raising_interrupts():
            inside.wait(60)
        ended.set()

    def second():
        with raising_interrupts():
            inside.wait(60)
            assert ended.wait(60)

    with ThreadPoolExecutor(2) as pool:
        for run in [pool.submit(first), pool.submit(second)]:
            run.result()
    with stop_on_interrupt():
        assert watches_interrupts()
