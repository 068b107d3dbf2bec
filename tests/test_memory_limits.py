"""Memory limits: what is free, budgets, searches that keep them, and one run of each exact method."""

import gc
import json
import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import networkx as nx
import numpy as np
import pytest

import forcopt as fo
from forcopt import memory
from forcopt.clock import Deadline, Trace
from forcopt.data import delaunay, grid
from forcopt.graphs.planar_dual import PlanarDual
from forcopt.graphs.weighted import WeightedGraph
from forcopt.graphs.window_cycles import WindowCycles
from forcopt.memory import MemoryBudget, available, bytes_of, memory_budget, memory_limited
from forcopt.models import Districting
from forcopt.problem import problem_classes
from forcopt.study import run as study_run
from forcopt.study.run import Job

GB = 10**9


@pytest.fixture
def held(monkeypatch):
    """The size of the process, in a list with one number, as the test sets it."""
    size = [GB]
    monkeypatch.setattr(memory, "resident", lambda: size[0])
    monkeypatch.setattr(memory, "_give_back", lambda: None)
    monkeypatch.setattr(memory, "_EVERY", 0.0)
    return size


# -- sizes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (5, 5), (2.5e9, 2_500_000_000), ("7", 7), ("7 B", 7), ("4 GB", 4 * GB), ("4gb", 4 * GB),
        ("1.5 GiB", 3 * 2**29), (" 800 MB ", 800 * 10**6), ("3k", 3000), ("2 TiB", 2**41), (np.int64(9), 9),
    ],
)  # fmt: skip
def test_bytes_have_units(text, size):
    assert bytes_of(text) == size


@pytest.mark.parametrize(
    "wrong", [0, -1, 0.5, math.nan, math.inf, True, "", "GB", "4 XB", "-1 GB", [4], None]
)
def test_what_is_no_size_is_refused_by_name(wrong):
    with pytest.raises(ValueError, match=r"memory_limit is .*; it must be a positive number of bytes"):
        bytes_of(wrong)


@pytest.mark.parametrize("wrong", [0, "4 XB"])
def test_every_door_refuses_it(wrong):
    p = fo.load("postprocessing/two-groups")
    m = fo.Model()
    x = m.variable("x", upper=1)
    m.maximize(x)
    for call in (p.solve, m.solve, lambda **o: fo.compare(p, **o), lambda **o: fo.sweep(p, **o)):
        with pytest.raises(ValueError, match="memory_limit is"):
            call(memory_limit=wrong)
    with pytest.raises(ValueError, match="did you mean 'memory_limit'"):
        m.solve(memory_limits=1)


def system(root, meminfo: int, groups: str, files: dict[str, str]):
    """A folder with the system's files."""
    for name, text in {"proc/meminfo": f"MemTotal: 1 kB\nMemAvailable: {meminfo} kB\n",
                       "proc/self/cgroup": groups, **files}.items():  # fmt: skip
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


SECOND = {
    "sys/fs/cgroup/memory.max": "max",
    "sys/fs/cgroup/job/memory.max": "6000000",
    "sys/fs/cgroup/job/memory.current": "3000000",
    "sys/fs/cgroup/job/memory.stat": "anon 1\ninactive_file 500000\n",
    "sys/fs/cgroup/job/step/memory.max": "max",
}
FIRST = {
    "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
    "sys/fs/cgroup/memory/job/memory.limit_in_bytes": "5000000",
    "sys/fs/cgroup/memory/job/memory.usage_in_bytes": "1000000",
    "sys/fs/cgroup/memory/job/memory.stat": "total_inactive_file 200000\n",
}
INSIDE = {"sys/fs/cgroup/memory.max": "2000", "sys/fs/cgroup/memory.current": "500",
          "sys/fs/cgroup/memory.stat": ""}  # fmt: skip


@pytest.mark.parametrize(
    ("meminfo", "groups", "files", "free"),
    [
        (8_000, "", {}, 8_192_000),
        (8_000, "0::/job/step\n", SECOND, 3_500_000),
        (2_000, "0::/job/step\n", SECOND, 2_048_000),
        (8_000, "5:cpu:/\n4:memory:/job\n0::/\n", FIRST, 4_200_000),
        (8_000, "0::/outside/this/container\n", INSIDE, 1500),
    ],
    ids=["machine", "second version", "busy machine", "first version", "container"],
)
def test_what_is_free_is_the_least_of_the_machine_and_its_groups(tmp_path, meminfo, groups, files, free):
    assert available(system(tmp_path, meminfo, groups, files)) == free


@pytest.mark.skipif(sys.platform != "linux", reason="limits of a process are read on Linux")
def test_the_limit_of_a_process_counts():
    code = (
        "import resource; from forcopt.memory import available\n"
        "resource.setrlimit(resource.RLIMIT_AS, (10**9,) * 2); print(available())"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 0 < int(found.stdout) < GB


# -- budgets -----------------------------------------------------------------------------------------------


def test_a_budget_is_that_of_its_run(held):
    with memory_limited("2 GB") as outer:
        assert memory_budget() is outer and outer.left == 2 * GB
        held[0] += GB
        with memory_limited() as inner:
            assert inner is outer
        with memory_limited("9 GB") as inner:
            assert inner is outer  # the stricter one
        with memory_limited("500 MB") as inner:
            assert inner.left == GB / 2 and memory_budget() is inner
        with pytest.raises(MemoryError, match=r"the memory limit of 2 GB is reached"):
            outer.reserve(GB + 1)
        outer.reserve(GB)
        assert not outer.passed and outer.reached
    assert memory_budget() is not outer


def test_the_default_is_half_of_what_is_free(held, monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 6 * GB)
    budget = MemoryBudget()
    assert budget.left == 3 * GB and budget.end == "the memory limit of 3 GB is reached"
    monkeypatch.setattr(memory, "available", lambda: None)
    assert MemoryBudget().left == math.inf and not MemoryBudget().passed


def test_a_deadline_that_has_passed_stays_so(held):
    with memory_limited(GB):
        one, two = Deadline(60.0), Deadline()
    assert not one.passed and two.left is None
    held[0] = 3 * GB
    with pytest.raises(MemoryError, match="memory limit"):
        two.check()
    assert one.passed and one.left == 0.0
    held[0] = GB  # the search may not go on as if it had been complete
    assert one.passed and one.end == "the memory limit of 1 GB is reached"
    assert not two.passed and two.left is None  # whoever caught the error has freed memory, and goes on
    two.check()
    assert not Trace(two).over and Trace(one).over


def test_freed_memory_is_given_back():
    memory._give_back()  # what earlier tests have freed
    budget = MemoryBudget("200 MB")
    blocks = [bytearray(50_000) for _ in range(8_000)]
    assert budget.passed
    del blocks
    gc.collect()
    assert not budget.passed


# -- searches ----------------------------------------------------------------------------------------------


def test_paths_ask_before_they_grow():
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(14, 14))
    weighted = WeightedGraph.of([1] * 196, graph.edges, [1] * graph.number_of_edges())
    search = WindowCycles(PlanarDual.of(weighted), 98, 98, symmetric=True)
    with memory_limited(1), pytest.raises(MemoryError, match="the memory limit of 1 B is reached"):
        list(search.search(60, every=True))


@pytest.mark.parametrize("method", ["frontier", "sphere-cut"])
def test_tables_of_states_ask_before_they_grow(method, monkeypatch):
    """A bound stands when the memory ends: the relaxations before."""
    p = Districting(grid(6, 6), 4, tolerance=0.25)
    best = p.solve(method)
    monkeypatch.setattr(MemoryBudget, "left", property(lambda budget: 100_000))
    s = p.solve(method, memory_limit="100 kB")
    assert s.status == "feasible" and s.message == "the memory limit of 100 kB is reached"
    assert 0 <= s.bound <= best.objective <= s.objective
    with pytest.raises(MemoryError, match="memory limit"):
        p.count(method=method).total


def test_lists_that_exceed_the_memory_leave_plan_and_bound(monkeypatch):
    from forcopt.models.districting.column_generation import _Run

    p = Districting(delaunay(50, seed=2), districts=4, tolerance=0.02)
    best, listing = p.solve("column-generation"), _Run.districts

    def scarce(self, threshold, prizes=None, *args):
        if prizes is self.prizes and prizes.any():  # the list for a plan
            memory_budget().reserve(10**18)
        yield from listing(self, threshold, prizes, *args)

    monkeypatch.setattr(_Run, "districts", scarce)
    s = p.solve("column-generation", memory_limit="1 TB")
    assert s.status == "feasible" and "the memory limit of 1 TB is reached" in s.message
    assert 0 < s.bound <= best.objective <= s.objective


def test_an_algorithm_that_asks_for_too_much_ends_at_a_limit():
    class Greedy(fo.Problem):
        default_method = "greedy"

        def evaluate(self, decision):
            return fo.Evaluation(0.0)

    @Greedy.algorithm("greedy", exact=True)
    def greedy(problem):
        return fo.Outcome(np.ones(10**15))

    s = Greedy().solve()
    assert s.status == "limit" and s.decision is None and "llocate" in s.message


TIGHT = """
import sys
from concurrent.futures import ThreadPoolExecutor
import numpy as np
import forcopt as fo
backend, thread = sys.argv[1:]
rng, m = np.random.default_rng(0), fo.Model()
x = m.variable("x", 200, binary=True)
rows = rng.integers(100, 1000, (30, 200))
m.subject_to(rows @ x <= rows.sum(1) // 2)
m.maximize(rng.integers(1, 100, 200) @ x)
with ThreadPoolExecutor(1) as pool:
    solve = m.solve if thread == "main" else lambda *a, **o: pool.submit(m.solve, *a, **o).result()
    s = solve(backend, memory_limit="2 MB", time_limit=120)
assert s.status in ("feasible", "limit") and "the memory limit of 2 MB is reached" in s.message, s
assert not s.objective > s.bound
"""


@pytest.mark.parametrize("thread", ["main", "other"])
@pytest.mark.parametrize("backend", ["highs", "scip", "gscip", "cp-sat"])
def test_a_solver_ends_at_the_memory_limit(backend, thread):
    """In a process of its own: one that has run other tests solves in the memory that they left."""
    pytest.importorskip({"highs": "highspy", "scip": "pyscipopt"}.get(backend, "ortools"))
    command = [sys.executable, "-c", TIGHT, backend, thread]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


# -- studies -----------------------------------------------------------------------------------------------


def test_the_runs_of_a_study_share_what_is_free(monkeypatch):
    monkeypatch.setattr(study_run, "available", lambda: 8 * GB)
    p = fo.load("postprocessing/two-groups")
    given = []
    monkeypatch.setattr(
        type(p), "solve", lambda self, *args, **options: given.append(options["memory_limit"]) or 1 / 0
    )
    fo.compare(p, ["lp"], isolate=False, repeats=3)
    with ThreadPoolExecutor(2) as executor:
        fo.compare(p, ["lp"], isolate=False, repeats=3, executor=executor)
    fo.compare(p, ["lp"], isolate=False, memory_limit="3 GB")
    assert given == [4 * GB] * 3 + [2 * GB] * 3 + [3 * GB]
    job = Job("", p, "lp", "", None, 3 * GB)
    assert study_run._memory_limit(job, True) == int(0.9 * 3 * GB)  # below the limit of its process


def test_a_run_in_its_own_process_keeps_plan_and_bound():
    p = Districting(delaunay(300, seed=1), districts=4, tolerance=0.01)
    (row,) = fo.compare(p, ["column-generation"], memory_limit="400 MB", time_limit=20).rows
    assert row.solved or "limit of" in row.message
    assert row.status in ("optimal", "feasible") and row.bound <= row.objective


# -- all exact methods -------------------------------------------------------------------------------------

CHILD = """
import json, pickle, resource, sys
from contextlib import suppress
import forcopt as fo
from forcopt.problem import examples, load
from forcopt.study.library import instances
from forcopt.study.run import warm_up

problems = [load(n) for n in examples()] + [i.make() for i in instances().values()]
problems.sort(key=lambda p: -len(pickle.dumps(p)))
largest = {}
for p in problems:
    for method in p.methods.values():
        if method.exact:
            largest.setdefault((type(p).__name__, method.name), []).append(p)
for backend in ("highs", "clarabel", "scip"):
    warm_up(backend)
used = int(open("/proc/self/statm").read().split()[5]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_DATA, (used + 4 * 10**9,) * 2)
for at, ((name, method), some) in enumerate(largest.items()):
    for p in some if at % 3 == int(sys.argv[1]) else ():
        with suppress(fo.DeclarationError, fo.UnsupportedError):
            s = p.solve(method, memory_limit="20 MB", time_limit=1)
            print(json.dumps([name, method, str(s.status), s.message]), flush=True)
            break
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of a process are set on Linux")
@pytest.mark.parametrize("part", ["0", pytest.param("1", marks=pytest.mark.nightly), "2"])
def test_no_exact_method_is_killed_for_memory(part):
    """Every third on the largest shipped problem that it takes, in a process with 4 GB more."""
    child = subprocess.run([sys.executable, "-c", CHILD, part], capture_output=True, text=True, check=False)
    rows = [json.loads(line) for line in child.stdout.splitlines() if line.startswith("[")]
    assert child.returncode == 0, (rows[-1], child.stderr[-2000:])
    run = {(name, method) for name, method, *_ in rows}
    exact = {(n, m.name) for n, cls in problem_classes().items() for m in cls.methods.values() if m.exact}
    assert len(run) > 0.8 * len(exact) / 3, exact - run  # some suit no shipped problem
    settled = ("optimal", "infeasible", "unbounded", "approximate")
    for name, method, status, message in rows:
        assert status in settled or (status in ("feasible", "limit") and message), (name, method, message)
