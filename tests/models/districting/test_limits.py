"""The clock: every stage looks at it, and budgets count work; code is compiled once."""

import importlib
import pkgutil
from contextlib import suppress

import networkx as nx
import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher
from numba.core.types import unliteral

import forcopt.graphs
import forcopt.models.districting as districting
from forcopt.data import delaunay, grid
from forcopt.errors import DeclarationError
from forcopt.graphs import window_cycles
from forcopt.graphs.planar_dual import PlanarDual
from forcopt.graphs.window_cycles import WindowCycles
from forcopt.models import Districting
from forcopt.models.districting import CannotLink, CutLimit, MustLink, Share, SplitLimit

METHODS = ["portfolio", "set-partitioning", "column-generation", "labels-separators"]


def kernels():
    """All compiled functions of the packages."""
    for package in (forcopt.graphs, districting):
        for module in pkgutil.iter_modules(package.__path__):
            inside = vars(importlib.import_module(f"{package.__name__}.{module.name}"))
            yield from (f for f in inside.values() if isinstance(f, Dispatcher))


def problems():
    """Planar and other graphs, all objectives, and the features of which kernels learn."""
    graph = delaunay(20, seed=3)
    for v in graph:
        graph.nodes[v].update(county=v % 4, all=3, some=v % 3)
    planar = Districting(graph, 4, tolerance=0.3)
    share = Share(attribute="some", total="all", at_least=0.3)
    yield planar
    yield planar.replace(districts=2)
    yield planar.replace(side_constraints=[MustLink([0, 1]), CannotLink([2, 3]), CutLimit(40)])
    yield planar.replace(side_constraints=[share, SplitLimit(limit=14)])
    yield planar.replace(seats=(1, 2, 1, 2))
    for objective in ("inertia", "deviation", "splits"):
        yield planar.replace(objective=objective)
    costs = grid(4, 4)
    nx.set_edge_attributes(costs, {e: 0.5 + i % 3 for i, e in enumerate(costs.edges)}, "cost")
    yield Districting(costs, 3, tolerance=0.3)
    other = nx.random_regular_graph(5, 18, seed=2)
    nx.set_node_attributes(other, 1, "population")
    yield Districting(other, 3, tolerance=0)
    yield Districting(delaunay(60, seed=2), 5, tolerance=0.05)


def kinds(kernel):
    """For how many types of arguments it is compiled; a constant in an outer kernel makes no new one."""
    return len({tuple(map(unliteral, signature)) for signature in kernel.signatures})


def test_kernels_are_compiled_once_for_all_problems():
    before = {f: kinds(f) for f in kernels()}
    for problem in problems():
        for method in ("portfolio", "column-generation", "local-search"):
            with suppress(DeclarationError):  # it does not take a feature
                problem.solve(method, time_limit=3)
    counts = {f.py_func.__qualname__: kinds(f) - n for f, n in before.items()}
    assert sum(bool(f.signatures) for f in before) > 10
    twice = {"_sum_over", "from_tree"}  # of whole numbers, and of floats
    assert {name for name, n in counts.items() if n > 1 + (name in twice)} == set()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("limit", [0.0, 0.05, 0.3])
def test_a_stopped_method_keeps_a_valid_bound(method, limit):
    problem = Districting(delaunay(60, seed=2), 5, tolerance=0.05)
    optimum = 28.0
    solution = problem.solve(method, time_limit=limit)
    assert solution.status in ("optimal", "feasible", "limit")
    assert solution.bound is None or solution.bound <= optimum
    if solution.decision is not None:
        assert problem.evaluate(solution.decision).feasible and solution.objective >= optimum


def test_joins_that_pause_give_every_cycle_once(monkeypatch):
    graph = Districting(delaunay(14, seed=1), 2, tolerance=0.5).arrays
    search = WindowCycles(PlanarDual.of(graph), graph.total // 4, graph.total // 2)

    def listed():
        return sorted(s.tobytes() for sets, _ in search.sets(12) for s in sets)

    def cheapest():
        return [cost for cost, _ in search.search(20)][-1]

    whole, least = listed(), cheapest()
    pauses = []
    monkeypatch.setattr(window_cycles, "_JOINS", 1)
    monkeypatch.setattr(window_cycles, "_BATCH", 1)
    monkeypatch.setattr(window_cycles, "_SORTED", 1)
    assert len(whole) > 20 and listed() == whole and cheapest() == least
    list(search.sets(12, pause=lambda: pauses.append(1)))
    assert len(pauses) > len(whole)


def test_a_budget_counts_work_and_repeats():
    problem = Districting(delaunay(70, seed=4), 5, tolerance=0.02)
    first, second = (problem.solve("set-partitioning", budget=1_000_000, seed=0) for _ in range(2))
    assert first.status == "feasible" and first.iterations == second.iterations == 1_000_000
    assert first.decision.assignment == second.decision.assignment
    assert "stopped by the budget of 1000000 partial districts" in first.message


@pytest.mark.parametrize("method", ["column-generation", "portfolio", "set-partitioning"])
@pytest.mark.parametrize("bounds", [(0, 1), (1, 1), (2, 3)])
def test_a_graph_of_one_node(method, bounds):
    graph = nx.Graph()
    graph.add_node("a", population=1)
    problem = Districting(graph, 1, bounds=bounds)
    for one in (problem, problem.replace(side_constraints=[CutLimit(0)])):
        solution = one.solve(method)
        if bounds[0] > 1:
            assert solution.status == "infeasible" and solution.reason
        else:
            assert solution.status == "optimal" and solution.objective == solution.bound == 0
            assert solution.decision.assignment == {"a": 0}


def test_a_refusal_names_the_methods_that_take_the_feature():
    graph = grid(2, 4)
    for v in graph:
        graph.nodes[v].update(county=v % 4, some=1, all=1)
    plain = Districting(graph, 2, tolerance=0.5)
    share = Share(attribute="some", total="all", at_least=0.5)
    for problem in (
        plain.replace(side_constraints=[share]),
        plain.replace(side_constraints=[SplitLimit(limit=4)]),
    ):
        for method in ("frontier", "sphere-cut"):
            with pytest.raises(DeclarationError, match=r"'portfolio', 'flow', .*'column-generation'"):
                problem.solve(method)
            with pytest.raises(DeclarationError, match="'ensemble' draws plans with it"):
                problem.count(method=method)
        values = {problem.solve(method).objective for method in METHODS}
        assert len(values) == 1
    splits = plain.replace(objective="splits")
    for method in ("frontier", "column-generation"):
        with pytest.raises(DeclarationError, match="'portfolio' and 'local-search' take every"):
            splits.solve(method)
    assert np.isfinite(splits.solve("set-partitioning").objective)
