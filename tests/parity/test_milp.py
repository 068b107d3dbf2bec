"""Every backend for integer programs finds what enumeration finds, through every bridge for integers."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import forcopt as fo
from forcopt.arrays import Array
from forcopt.backends import backends, get_backend
from forcopt.language.model import Model

# All that are ready and take integers; `pyscipopt` is left out, since `scip` is the same.
NAMES = [
    name
    for name, backend in backends().items()
    if backend.missing() is None and "integer" in backend.capabilities.kinds and name != "pyscipopt"
]
QUICK = [name for name in NAMES if not name.startswith("pyomo:")]
SLOW = [name for name in NAMES if name.startswith("pyomo:")]


@dataclass
class Instance:
    """A model over ``x`` (integers) and ``b`` (binaries), and its meaning on all points of their grid."""

    model: Model
    x: Any
    b: Any
    grid_x: Array
    grid_b: Array
    allowed: Array
    names: list[str] = field(default_factory=list)
    convex: Any = 0.0  # the convex part of the objective ...
    values: Any = 0.0  # ... and its values on the grid

    @classmethod
    def start(cls, rng: np.random.Generator) -> Instance:
        m = fo.Model()
        low = rng.integers(-2, 2, 3)
        high = low + rng.integers(1, 4, 3)
        x = m.variable("x", 3, lower=low, upper=high, integer=True)
        b = m.variable("b", 4, binary=True)
        axes = [range(lo, hi + 1) for lo, hi in zip(low, high, strict=True)] + [range(2)] * 4
        grid = np.array(list(itertools.product(*axes)), dtype=float)
        return cls(m, x, b, grid[:, :3], grid[:, 3:], np.ones(len(grid), dtype=bool))

    def row(self, rng: np.random.Generator, whole: bool = False) -> tuple[Any, Array, float]:
        """A random affine expression, its values, and the value at some point."""
        divisor = 1 if whole else rng.choice([1, 2, 3, 10])
        a, c = rng.integers(-3, 4, 3) / divisor, rng.integers(-3, 4, 4) / divisor
        values = self.grid_x @ a + self.grid_b @ c
        return a @ self.x + c @ self.b, values, float(rng.choice(values))

    def allow(self, mask: Array) -> None:
        self.allowed &= mask


NOISE = 1e-9


def linear(i: Instance, rng: np.random.Generator) -> None:
    for _ in range(2):
        expression, values, at = i.row(rng)
        kind = rng.integers(0, 4)
        if kind == 0:
            i.model.subject_to(expression <= at)
            i.allow(values <= at + NOISE)
        elif kind == 1:
            at += 2 * rng.integers(0, 2)  # may leave nothing
            i.model.subject_to(expression >= at)
            i.allow(values >= at - NOISE)
        elif kind == 2:
            i.model.subject_to(expression.between(at - 1, at + 1.5))
            i.allow((values >= at - 1 - NOISE) & (values <= at + 1.5 + NOISE))
        else:
            i.model.subject_to(expression.between(-np.inf, np.inf))


def implication(i: Instance, rng: np.random.Generator) -> None:
    expression, values, at = i.row(rng)
    i.model.subject_to(fo.implies(i.b[0], expression <= at))
    i.allow((i.grid_b[:, 0] == 0) | (values <= at + NOISE))
    expression, values, at = i.row(rng)
    i.model.subject_to(fo.implies(1 - i.b[1], expression.between(at - 1, at)))
    i.allow((i.grid_b[:, 1] == 1) | ((values >= at - 1 - NOISE) & (values <= at + NOISE)))
    value = int(rng.choice(i.grid_x[:, 2]))
    i.model.subject_to(fo.implies(i.b[2:], i.x[:2] - i.x[2] == i.x[:2] - value))
    i.allow((i.grid_b[:, 2:].max(axis=1) == 0) | (i.grid_x[:, 2] == value))


def products(i: Instance, rng: np.random.Generator) -> None:
    weights = rng.integers(-3, 4, 3)
    z = fo.product(i.b[:3], i.x)
    values = i.grid_b[:, :3] * i.grid_x
    i.convex = i.convex + weights @ z
    i.values = i.values + values @ weights
    at = float(rng.choice(values.sum(axis=1)))
    i.model.subject_to(z.sum() + fo.product(1 - i.b[3], i.x[0] + i.x[1]) >= at)
    i.allow(values.sum(axis=1) + (1 - i.grid_b[:, 3]) * i.grid_x[:, :2].sum(axis=1) >= at - NOISE)


def connected(i: Instance, rng: np.random.Generator) -> None:
    graph = nx.Graph()
    graph.add_nodes_from(range(4))
    graph.add_edges_from(e for e in itertools.combinations(range(4), 2) if rng.random() < 0.5)
    i.model.subject_to(fo.connected(graph, i.b))
    fine = {
        chosen: sum(chosen) == 0 or nx.is_connected(graph.subgraph(np.flatnonzero(chosen).tolist()))
        for chosen in itertools.product((0, 1), repeat=4)
    }
    i.allow(np.array([fine[tuple(row.astype(int).tolist())] for row in i.grid_b]))


def maximum(i: Instance, rng: np.random.Generator) -> None:
    first, first_values, _ = i.row(rng, whole=True)  # cp-sat takes no maximum of fractions
    second, second_values, _ = i.row(rng, whole=True)
    i.convex = i.convex + 2 * fo.maximum(i.x[0] - i.b[0], i.x[1], 1) + fo.maximum(first, second)
    whole = np.maximum.reduce([i.grid_x[:, 0] - i.grid_b[:, 0], i.grid_x[:, 1], np.ones(len(i.allowed))])
    i.values = i.values + 2 * whole + np.maximum(first_values, second_values)


def sum_largest(i: Instance, rng: np.random.Generator) -> None:
    k = int(rng.integers(1, 4))
    i.convex = i.convex + fo.sum_largest(i.x, k) - fo.sum_smallest(i.x - 2 * i.b[:3], 2)
    ordered = np.sort(i.grid_x, axis=1)
    i.values = i.values + ordered[:, 3 - k :].sum(axis=1)
    i.values = i.values - np.sort(i.grid_x - 2 * i.grid_b[:, :3], axis=1)[:, :2].sum(axis=1)


def norms(i: Instance, rng: np.random.Generator) -> None:
    centre = rng.integers(-1, 3, 3)
    i.convex = i.convex + fo.norm(i.x - centre, 1) + fo.norm(i.x - centre, float("inf"))
    away = np.abs(i.grid_x - centre)
    i.values = i.values + away.sum(axis=1) + away.max(axis=1)
    at = float(rng.choice(away[:, :2].sum(axis=1)))
    i.model.subject_to(fo.abs(i.x[:2] - centre[:2]).sum() <= at)
    i.allow(away[:, :2].sum(axis=1) <= at + NOISE)


PARTS = [linear, implication, products, connected, maximum, sum_largest, norms]


def random_instance(seed: int) -> tuple[Instance, float]:
    """An instance of several parts, and its optimum (NaN if it is infeasible)."""
    rng = np.random.default_rng(seed)
    i = Instance.start(rng)
    for part in PARTS:
        if rng.random() < 0.5:
            part(i, rng)
            i.names.append(part.__name__)
    expression, values, _ = i.row(rng)
    convex, values = i.convex + expression + 1.5, i.values + values + 1.5
    if rng.random() < 0.5:
        i.model.maximize(-convex)
        values = -values
        best = values[i.allowed].max() if i.allowed.any() else np.nan
    else:
        i.model.minimize(convex)
        best = values[i.allowed].min() if i.allowed.any() else np.nan
    return i, float(best)


def check(name: str, seed: int) -> None:
    i, best = random_instance(seed)
    s = i.model.solve(name, time_limit=60, threads=1, seed=1)
    words = f"{name} on {i.names}: {s.message}"
    if np.isnan(best):
        assert s.status is fo.Status.INFEASIBLE, words
        return
    assert s.status is fo.Status.OPTIMAL, words
    assert s.objective == pytest.approx(best, abs=1e-5), words
    assert s.bound == pytest.approx(best, abs=1e-3), words
    where = (i.grid_x == s[i.x]).all(axis=1) & (i.grid_b == s[i.b]).all(axis=1)
    assert i.allowed[where].all(), words


def random_mixed(seed: int) -> tuple[Model, Any, float]:
    """A model with integer and continuous columns and rows of every kind, and its optimum by enumeration.

    The optimum is NaN for an infeasible model; none is unbounded.
    """
    rng = np.random.default_rng(seed)
    columns, rows = int(rng.integers(2, 6)), int(rng.integers(1, 6))
    integers = int(rng.integers(1, min(columns, 3) + 1))
    matrix = rng.integers(-4, 6, (rows, columns)) * (rng.random((rows, columns)) < 0.7)
    low = rng.integers(-2, 2, columns)
    high = low + rng.integers(1, 4, columns)
    activity = matrix @ rng.uniform(low, high).round(1) + 6 * (rng.random(rows) < 0.1)
    kind = rng.integers(0, 4, rows)
    lower = np.where(kind == 0, -np.inf, activity - (kind == 3))
    upper = np.where(kind == 1, np.inf, activity + (kind == 3))
    cost = rng.integers(-5, 6, columns)

    def build(lower_x: Array, upper_x: Array, integer: bool) -> tuple[Model, Any]:
        m = fo.Model()
        x = m.variable("x", integers, lower=lower_x, upper=upper_x, integer=integer)
        y = m.variable("y", columns - integers, lower=low[integers:], upper=high[integers:])
        z = fo.concatenate([x, y])
        m.subject_to((matrix @ z).between(lower, upper))
        m.minimize(cost @ z + 0.25)
        return m, x

    best = np.nan
    grid = [range(a, b + 1) for a, b in zip(low[:integers], high[:integers], strict=True)]
    for point in itertools.product(*grid):
        s = build(np.array(point), np.array(point), False)[0].solve("highs:simplex")
        if s.status is fo.Status.OPTIMAL:
            best = np.fmin(best, s.objective)
    return *build(low[:integers], high[:integers], True), float(best)


def check_mixed(name: str, seed: int) -> None:
    m, x, best = random_mixed(seed)
    s = m.solve(name, time_limit=60, threads=1, seed=1)
    if np.isnan(best):
        assert s.status is fo.Status.INFEASIBLE, s.message
    else:
        assert s.status is fo.Status.OPTIMAL, s.message
        assert s.objective == pytest.approx(best, abs=1e-4)
        assert s.bound == pytest.approx(best, abs=1e-2)
        assert (s[x] == np.round(s[x])).all()


@pytest.mark.parametrize("name", QUICK)
@settings(max_examples=20, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000))
def test_agree_with_enumeration(name: str, seed: int) -> None:
    check(name, seed)


@pytest.mark.parametrize("name", [name for name in QUICK if not get_backend(name).capabilities.only_integer])
@settings(max_examples=15, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000))
def test_mixed_agree_with_enumeration(name: str, seed: int) -> None:
    check_mixed(name, seed)


@pytest.mark.parametrize("name", SLOW)
@pytest.mark.parametrize("seed", range(6))
def test_agree_with_enumeration_slowly(name: str, seed: int) -> None:
    check(name, seed)
    check_mixed(name, seed)


def test_instances_have_every_part_and_status() -> None:
    seen = [random_instance(seed) for seed in range(40)]
    assert {name for i, _ in seen for name in i.names} == {part.__name__ for part in PARTS}
    infeasible = sum(np.isnan(best) for _, best in seen)
    assert 2 <= infeasible <= 20


def test_enough_backends() -> None:
    if {"scip", "pyomo:glpk"} <= set(NAMES):
        assert len(NAMES) >= 5, NAMES
