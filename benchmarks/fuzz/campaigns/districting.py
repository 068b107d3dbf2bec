"""Districting plans of small graphs, against all partitions into connected parts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations
from typing import Any

import networkx as nx
import numpy as np
from scipy.spatial import Delaunay

from benchmarks.fuzz.case import ProblemCase
from forcopt.models import Districting
from forcopt.models.districting import CannotLink, CutLimit, Fixed, MustLink, Share, SplitLimit


def random_graph(rng: np.random.Generator) -> nx.Graph[int]:
    """Planar and other graphs of up to 8 nodes, with bridges, cut nodes, components and parallel edges."""
    n = int(rng.integers(2, 9))
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(n))
    kind = rng.choice(["triangles", "tree", "any"], p=[0.7, 0.15, 0.15])
    spots = rng.random((n, 2))
    if kind == "triangles" and n >= 4:
        for triangle in Delaunay(spots).simplices:
            nx.add_cycle(graph, [int(v) for v in triangle])
        share = rng.random() * 0.5
        graph.remove_edges_from([e for e in list(graph.edges) if rng.random() < share])
    elif kind == "any":
        graph.add_edges_from(nx.gnp_random_graph(n, 0.6, seed=int(rng.integers(10**6))).edges)
    else:
        graph.add_edges_from((v, int(rng.integers(v))) for v in range(1, n))
    if rng.random() < 0.9:
        pieces = [min(piece) for piece in nx.connected_components(graph)]
        nx.add_path(graph, pieces)
    populations = rng.choice(["ones", "small", "zeros", "large"])
    for v in graph:
        people = {"ones": (1, 2), "small": (1, 9), "zeros": (0, 3), "large": (10**5, 10**6)}[populations]
        graph.nodes[v].update(population=int(rng.integers(*people)), x=spots[v, 0], y=spots[v, 1])
        graph.nodes[v].update(county=int(rng.integers(3)), vap=int(rng.integers(20)))
        graph.nodes[v]["black"] = int(rng.integers(200)) / 10
    if rng.random() < 0.5:
        for e in graph.edges:
            graph.edges[e]["cost"] = int(rng.integers(0, 6)) / (2 if rng.random() < 0.3 else 1)
    if rng.random() < 0.15 and graph.edges:
        graph = nx.MultiGraph(graph)
        graph.add_edge(*next(iter(graph.edges(keys=False))), cost=2)
        graph.add_edge(0, 0)
    return graph


def parts_of(near: list[int], people: list[int], parts: int, high: int) -> Iterator[tuple[int, ...]]:
    """All partitions into connected parts of at most a population, as bit masks."""
    n = len(near)

    def connected(part: int) -> bool:
        met = grow = part & -part
        while grow:
            v = (grow & -grow).bit_length() - 1
            new = near[v] & part & ~met
            met, grow = met | new, (grow & (grow - 1)) | new
        return met == part

    fits = [
        part > 0 and sum(people[v] for v in range(n) if part >> v & 1) <= high and connected(part)
        for part in range(1 << n)
    ]

    def cover(left: int, missing: int) -> Iterator[tuple[int, ...]]:
        if not left or not missing:
            if not left and not missing:
                yield ()
            return
        first, rest = left & -left, left & (left - 1)
        some = rest
        while True:
            if fits[some | first]:
                for others in cover(left & ~(some | first), missing - 1):
                    yield (some | first, *others)
            if not some:
                return
            some = (some - 1) & rest

    yield from cover((1 << n) - 1, parts)


def side_constraints(rng: np.random.Generator, n: int, parts: int) -> list[Any]:
    """Up to three, which may contradict each other."""
    found: list[Any] = []
    for _ in range(int(rng.choice([0, 1, 2, 3], p=[0.4, 0.3, 0.2, 0.1]))):
        kind = rng.integers(6)
        pair = [int(v) for v in rng.choice(n, 2, replace=False)]
        if kind == 0:
            found.append(MustLink(pair))
        elif kind == 1:
            found.append(CannotLink(pair))
        elif kind == 2 and not any(isinstance(item, Fixed) and item.node == pair[0] for item in found):
            found.append(Fixed(pair[0], int(rng.integers(parts))))
        elif kind == 3:
            found.append(CutLimit(int(rng.integers(10))))
        elif kind == 4:
            least = float(rng.choice([0.3, 0.5, 0.75]))
            many = int(rng.integers(1, parts + 1))
            found.append(Share(attribute="black", total="vap", at_least=least, districts=many))
        elif kind == 5:
            found.append(SplitLimit(limit=int(rng.integers(4))))
    return found


def inertia(part: list[int], data: list[dict[str, Any]]) -> float:
    """The sum of population times squared distance to the best center node of a part."""

    def about(c: int) -> float:
        return float(
            sum(
                data[v]["population"]
                * ((data[v]["x"] - data[c]["x"]) ** 2 + (data[v]["y"] - data[c]["y"]) ** 2)
                for v in part
            )
        )

    return min(about(c) for c in part)


def instance(rng: np.random.Generator) -> ProblemCase:
    """A graph with all features, and the least objective of all its plans."""
    graph = random_graph(rng)
    n = len(graph)
    k = int(min(n, rng.choice([1, 2, 3, 4], p=[0.05, 0.5, 0.3, 0.15])))
    total = sum(graph.nodes[v]["population"] for v in graph)
    seats = tuple(int(s) for s in rng.integers(1, 4, size=k)) if rng.random() < 0.2 else (1,) * k
    means = [Fraction(total * s, sum(seats)) for s in seats]
    bounds: dict[str, Any] = {}
    if rng.random() < 0.7:
        bounds["tolerance"] = float(rng.choice([0.0, 0.1, 0.3, 0.5, 0.7, 1.0]))
        t = Fraction(str(bounds["tolerance"]))
        windows = [(max(0, math.ceil((1 - t) * m)), math.floor((1 + t) * m)) for m in means]
    else:
        low = int(rng.integers(total // (2 * k) + 1))
        bounds["bounds"] = (low, low + int(rng.integers(total + 1)))
        windows = [(low * s, bounds["bounds"][1] * s) for s in seats]
    sides = side_constraints(rng, n, k)
    objective = str(rng.choice(["cut", "inertia", "deviation", "splits"], p=[0.7, 0.08, 0.08, 0.14]))
    problem = Districting(
        graph=graph, districts=k, objective=objective, seats=seats, side_constraints=sides, **bounds
    )

    nodes = list(graph)
    data = [graph.nodes[v] for v in nodes]
    place = {v: i for i, v in enumerate(nodes)}
    near, cost = [0] * n, {}
    for u, v, edge in graph.edges(data=True):
        a, b = sorted((place[u], place[v]))
        if a != b:
            near[a], near[b] = near[a] | 1 << b, near[b] | 1 << a
            cost[a, b] = cost.get((a, b), Fraction(0)) + Fraction(str(edge.get("cost", 1)))
    people = [d["population"] for d in data]
    best = float("inf")
    for plan in parts_of(near, people, k, max(high for _, high in windows)):
        members = [[v for v in range(n) if part >> v & 1] for part in plan]
        label = [next(d for d, part in enumerate(plan) if part >> v & 1) for v in range(n)]
        held = [sum(people[v] for v in part) for part in members]
        cut = [e for e in cost if label[e[0]] != label[e[1]]]
        splits = len({(d["county"], label[v]) for v, d in enumerate(data)}) - len({d["county"] for d in data})
        fixed: list[tuple[int, int]] = []
        good = True
        for item in sides:
            if isinstance(item, MustLink):
                good &= len({label[place[v]] for v in item.nodes}) == 1
            elif isinstance(item, CannotLink):
                good &= len({label[place[v]] for v in item.nodes}) == len(item.nodes)
            elif isinstance(item, Fixed):
                fixed.append((label[place[item.node]], item.district))
            elif isinstance(item, CutLimit):
                good &= len(cut) <= item.limit
            elif isinstance(item, SplitLimit):
                good &= splits <= item.limit
            elif isinstance(item, Share):
                sums = [
                    sum(
                        Fraction(str(data[v]["black"])) - Fraction(str(item.at_least)) * data[v]["vap"]
                        for v in part
                    )
                    for part in members
                ]
                good &= sum(x >= 0 for x in sums) >= item.districts
        orders = [
            order
            for order in permutations(range(k))
            if all(windows[order[d]][0] <= held[d] <= windows[order[d]][1] for d in range(k))
            and all(order[d] == wanted for d, wanted in fixed)
        ]
        if not good or not orders:
            continue
        if objective == "cut":
            value = sum(cost[e] for e in cut)
        elif objective == "splits":
            value = splits
        elif objective == "deviation":
            value = min(max(abs(held[d] - means[o[d]]) for d in range(k)) for o in orders)
        else:
            value = sum(inertia(part, data) for part in members)
        best = min(best, float(value))
    status = "infeasible" if best == float("inf") else "optimal"
    return ProblemCase(problem, status, best, {"recom": {"steps": 20}, "local-search": {"restarts": 2}})


CAMPAIGNS = {"districting": instance}
