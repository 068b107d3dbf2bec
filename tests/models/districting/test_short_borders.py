"""Small maps are solved by lists of districts, without compiled code, and as well as by any other search."""

import os
import re
import subprocess
import sys
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from districting_oracle import brute_histogram

from forcopt.clock import Deadline, Trace
from forcopt.data import delaunay, grid
from forcopt.models import Districting
from forcopt.models.districting import MustLink
from forcopt.models.districting.short_borders import fewest_cuts

README = Path(__file__).parents[3] / "README.md"
COUNT = """
import gc
from numba.core.dispatcher import Dispatcher
print([f.py_func.__name__ for f in gc.get_objects() if isinstance(f, Dispatcher) and f.signatures])
"""


LIMITED = """
import forcopt as fo
for method in ("portfolio", "set-partitioning"):
    solution = fo.load("districting/grid-3x7").solve(method, time_limit=60, memory_limit="1 GB")
    assert (solution.status, solution.objective) == ("optimal", 6)
solution.plot("map.svg")
"""


@pytest.mark.parametrize(
    "code",
    [re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)[2], LIMITED],
    ids=["readme", "limited"],
)
def test_a_small_map_compiles_nothing(code, tmp_path):
    paths = os.pathsep.join([str(README.parent), os.environ.get("PYTHONPATH", "")])
    variables = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": paths}
    command = [sys.executable, "-c", code + COUNT]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=tmp_path, env=variables, timeout=60
    )
    assert done.stdout.strip() == "[]"
    assert (tmp_path / "map.svg").exists() and not list(tmp_path.rglob("*.nbi"))


def drawn(seed):
    """A random graph, connected or not, with weights from 0 to 3."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 10))
    graph = nx.gnp_random_graph(n, float(rng.choice([0.2, 0.4, 0.7])), seed=seed)
    nx.set_node_attributes(graph, {v: int(rng.integers(0, 4)) for v in graph}, "population")
    return Districting(graph, int(rng.integers(1, n + 1)), bounds=(int(rng.integers(0, 3)), 9))


@pytest.mark.parametrize("seed", range(40))
def test_the_fewest_cuts_are_those_of_all_plans(seed):
    problem = drawn(seed)
    found, plans = fewest_cuts(problem, Trace(Deadline())), brute_histogram(problem)
    if not plans:
        assert found.decision is None and found.status == "infeasible"
        return
    evaluation = problem.evaluate(found.decision)
    assert evaluation.feasible and evaluation.objective == min(plans)


@pytest.mark.parametrize(
    ("graph", "districts"), [(delaunay(40, seed=2), 4), (grid(6, 6), 6), (delaunay(64, seed=5), 2)]
)
def test_larger_maps_agree_with_the_compiled_search(graph, districts):
    problem = Districting(graph, districts, tolerance=0.1)
    trace = Trace(Deadline())
    found, compiled = fewest_cuts(problem, trace), problem.solve("column-generation")
    assert problem.evaluate(found.decision).objective == compiled.objective == trace.steps[-1].objective
    again = fewest_cuts(problem, Trace(Deadline()), compiled.decision)
    assert again.decision is compiled.decision  # no plan is better than the start
    worse = Districting(graph, districts, tolerance=0.1).solve("local-search", restarts=1, steps=500, seed=1)
    if worse.decision is not None:
        better = fewest_cuts(problem, Trace(Deadline()), worse.decision)
        assert problem.evaluate(better.decision).objective == compiled.objective


def test_what_takes_longer_is_left_to_compiled_code():
    assert fewest_cuts(Districting(delaunay(60, seed=1), 8, tolerance=0.1), Trace(Deadline())) is None
    assert fewest_cuts(Districting(grid(4, 4), 4, tolerance=0), Trace(Deadline(0.0))) is None
    linked = Districting(grid(4, 4), 4, tolerance=0, side_constraints=[MustLink([0, 1])])
    assert fewest_cuts(linked, Trace(Deadline())) is None
    assert fewest_cuts(Districting(grid(4, 4), 4, tolerance=0, seats=(1, 1, 1, 1)), Trace(Deadline()))
    assert fewest_cuts(Districting(grid(8, 9), 8, tolerance=0), Trace(Deadline())) is None
