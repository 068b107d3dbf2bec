"""A small problem whose methods also misbehave, in a module that a run's process can import."""

import ctypes
import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from pydantic import Field

import forcopt as fo
from forcopt.backends import Backend, RawResult, Session, register_backend
from forcopt.clock import STANDSTILL, Improvement
from forcopt.compile import Capabilities
from forcopt.declaration import Numbers


class Rucksack(fo.Problem):
    """Choose items of the largest total value within a weight limit.

    Attributes
    ----------
    values, weights : Numbers
        Of the items.
    capacity : float
        The largest total weight.
    """

    sense = "max"
    default_method = "milp"
    family = "rucksack"
    values: Numbers
    weights: Numbers
    capacity: float = Field(gt=0)

    def evaluate(self, decision):
        over = float(self.weights @ decision) - self.capacity
        return fo.Evaluation(float(self.values @ decision), {"capacity": over} if over > 0 else {})


@Rucksack.formulation("milp", exact=True, cites="Dantzig (1957)")
def milp(problem, model, *, cap=1.0, least=0.0):
    """Choose by integer programming."""
    take = model.variable("take", len(problem.values), lower=least, upper=cap, integer=True)
    model.subject_to(problem.weights @ take <= problem.capacity, name="capacity")
    return fo.Handles(objective=problem.values @ take, decision=lambda s: s[take], take=take)


@Rucksack.algorithm("greedy", exact=False, guarantee=lambda p: float(p.values.max()), cites="Dantzig (1957)")
def greedy(problem, *, seed=None):
    """Take by value per weight while it fits."""
    order = np.argsort(-problem.values / problem.weights)
    fits = np.cumsum(problem.weights[order]) <= problem.capacity
    chosen = np.zeros(len(order))
    chosen[order[: np.argmin(np.append(fits, False))]] = 1
    drawn = "" if seed is None else f"drew {np.random.default_rng(seed).integers(10**6)}"
    return fo.Outcome(chosen, message=drawn)


class Bad(Rucksack):
    """The same, with methods that misbehave."""


@Bad.algorithm("crash", exact=True)
def crash(problem):
    os.kill(os.getpid(), signal.SIGSEGV)


@Bad.algorithm("leave", exact=True)
def leave(problem):
    print("the licence has expired", flush=True)
    os._exit(3)


@Bad.algorithm("raise", exact=True)
def throw(problem):
    raise ArithmeticError("<pivot> too small")


@Bad.algorithm("quit", exact=True)
def quits(problem):
    raise SystemExit("no licence")


def _tell(pid):
    """Leave the number of a process where the test looks for it."""
    with open(os.environ["FORCOPT_TEST_PID"], "w") as file:
        file.write(str(pid))


@Bad.algorithm("hang", exact=True)
def hang(problem):
    """Hang in C without ever giving the interpreter back, with a program of its own running."""
    _tell(os.posix_spawn("/bin/sleep", ["sleep", "1000"], os.environ))
    ctypes.PyDLL(None).sleep(1000)


@Bad.algorithm("compile", exact=False)
def compile_often(problem):
    """Compile something new again and again, in two threads."""
    for _ in range(100):
        STANDSTILL.begin()
        with ThreadPoolExecutor(1) as pool:
            pool.submit(STANDSTILL.begin).result()
        time.sleep(0.05)
        STANDSTILL.end()
        time.sleep(0.1)
    return fo.Outcome(np.zeros(len(problem.values)))


@Bad.algorithm("eat", exact=True)
def eat(problem):
    held = [np.ones(10_000_000) for _ in range(1000)]
    return fo.Outcome(np.zeros(len(held)))


@Bad.algorithm("weigh", exact=False)
def weigh(problem):
    np.ones(40_000_000)  # 320 MB
    return fo.Outcome(np.zeros(len(problem.values)))


@Bad.algorithm("keep", exact=False)
def unpicklable(problem):
    class Local(np.ndarray):
        pass

    return fo.Outcome(np.zeros(len(problem.values)).view(Local))


@Bad.algorithm("fell", exact=False)
def fell(problem, *, seed=None):
    """Kill the process that asked for the run, once for each name in the folder; then answer."""
    try:
        marker = next(Path(os.environ["FORCOPT_TEST_FELL"]).iterdir())
        marker.unlink()
    except (StopIteration, FileNotFoundError):
        return fo.Outcome(np.zeros(len(problem.values)))
    os.kill(os.getppid() if marker.name == "parent" else os.getpid(), signal.SIGKILL)
    return time.sleep(1000)


class Sent(Bad):
    """The same; it counts how often it is pickled."""

    def __reduce_ex__(self, protocol):
        with open(os.environ["FORCOPT_TEST_RUNS"], "a") as file:
            file.write(f"{os.getpid()}\n")
        return super().__reduce_ex__(protocol)


@Bad.algorithm("wait", exact=False)
def wait(problem):
    """Take long."""
    _tell(os.getpid())
    time.sleep(60)
    return fo.Outcome(np.zeros(len(problem.values)))


WARM_UP = 1e6
"""Seconds that the clock jumps while a method is prepared."""


def _warm_up():
    clock = time.perf_counter
    time.perf_counter = lambda: clock() + WARM_UP
    _tell("warm")


@Bad.algorithm("prepared", exact=False, prepare=_warm_up)
def prepared(problem, *, time_limit=None):
    with open(os.environ["FORCOPT_TEST_PID"]) as file:
        said = file.read()
    return fo.Outcome(np.zeros(len(problem.values)), message=f"{said}, with {time_limit} s")


def _stumble():
    raise ArithmeticError("no compiler")


@Bad.algorithm("unprepared", exact=False, prepare=_stumble)
def unprepared(problem):
    return fo.Outcome(np.zeros(len(problem.values)))


@Bad.algorithm("note", exact=False)
def note(problem, *, seed=None, extra=0, time_limit=None):
    """Take what a seed says, and leave a line for each run where the test counts them."""
    with open(os.environ["FORCOPT_TEST_RUNS"], "a") as file:
        file.write(f"{problem.capacity:g} {seed} {extra}\n")
    take = (np.random.default_rng(seed).random(len(problem.values)) < 0.5).astype(float)
    return fo.Outcome(take, trace=[Improvement(0.5, 1.0, float("inf")), Improvement(1.0, 2.0, 9.0)])


class Broken(Backend):
    """A solver that dies."""

    name, through, install = "broken", "nothing", "pip install broken"
    capabilities = Capabilities(frozenset({"rows", "integer"}))

    def missing(self):
        return None

    def version(self):
        return "0"

    def session(self, program):
        return BrokenSession(program)


class BrokenSession(Session):
    def solve(self, options):
        os.abort()
        return RawResult(fo.Status.FAILED)


class Absent(Broken):
    """A solver that is not installed."""

    name = "absent"

    def missing(self):
        return "the package absent is missing"


BACKENDS = {backend.name: backend for backend in (Broken(), Absent())}
if (
    "pytest" not in sys.modules
):  # in the process of a run; tests add them for themselves, and others have to stay sound
    for backend in BACKENDS.values():
        register_backend(backend)

SMALL = {"values": [60, 100, 120], "weights": [10, 20, 30], "capacity": 50}
