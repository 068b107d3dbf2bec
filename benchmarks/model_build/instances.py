"""Seeded data of the benchmark models.

Everything here is input data, as a modeller would read it from a file: generating it is never timed, and it
is done once in a process of its own, so that its memory does not hide that of the build.

    python -m benchmarks.model_build.instances CASE SIZE FILE.npz
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]


@dataclass(frozen=True)
class Dense:
    """min sum(2 x + y)  s.t.  x[i,j] - y[i,j] >= i,  x[i,j] + y[i,j] >= 0,  x, y >= 0, both n by n."""

    n: int


@dataclass(frozen=True)
class Transport:
    """Sources and sinks joined by a sparse, random set of arcs; arcs are sorted by tail, then by head.

    min sum(cost * flow)  s.t.  outflow(s) <= supply[s],  inflow(t) >= demand[t],  flow >= 0.
    """

    tail: IntArray
    head: IntArray
    cost: FloatArray
    supply: FloatArray
    demand: FloatArray

    @property
    def n_arcs(self) -> int:
        """Number of arcs."""
        return len(self.tail)

    @property
    def n_sources(self) -> int:
        """Number of sources."""
        return len(self.supply)

    @property
    def n_sinks(self) -> int:
        """Number of sinks."""
        return len(self.demand)


@dataclass(frozen=True)
class Hess:
    """The Hess districting model: unit i is assigned to the district centred at unit j when x[i,j] = 1.

    min sum(cost[i,j] x[i,j])  s.t.  sum_j x[i,j] = 1,  x[i,j] <= x[j,j] for i != j,
    lower x[j,j] <= sum_i population[i] x[i,j] <= upper x[j,j],  sum_j x[j,j] = districts,  x binary.
    """

    population: FloatArray
    cost: FloatArray
    districts: int
    lower: float
    upper: float

    @property
    def n(self) -> int:
        """Number of units."""
        return len(self.population)


@dataclass(frozen=True)
class Commitment:
    """Unit commitment, see docs/howto/three_models.md: limits, costs, ramps and least times of the units.

    Arrays of one number for each unit, and the load of each hour.
    """

    pmin: FloatArray
    pmax: FloatArray
    cost: FloatArray
    start: FloatArray
    ramp: FloatArray
    up: IntArray
    load: FloatArray


@dataclass(frozen=True)
class Network:
    """Goods through arcs that cost a fixed price to open, see docs/howto/three_models.md.

    The ends, capacity and price of each arc, shape ``(arcs,)``; costs, shape ``(arcs, goods)``; supply,
    shape ``(nodes, goods)``.
    """

    tail: IntArray
    head: IntArray
    cap: FloatArray
    fixed: FloatArray
    cost: FloatArray
    supply: FloatArray


@dataclass(frozen=True)
class JobShop:
    """Jobs of one task on each machine, see docs/howto/three_models.md.

    The machine and the length of each task, shape ``(jobs, steps)``.
    """

    machine: IntArray
    length: IntArray

    @property
    def horizon(self) -> int:
        """The time in which all tasks fit one after the other."""
        return int(self.length.sum())

    @property
    def pairs(self) -> tuple[IntArray, IntArray]:
        """All pairs of tasks on one machine, as positions in the flat arrays."""
        jobs, steps = self.machine.shape
        tasks = np.argsort(self.machine.ravel(), kind="stable").reshape(steps, jobs)
        first, second = np.triu_indices(jobs, 1)
        return tasks[:, first].ravel().astype(np.int32), tasks[:, second].ravel().astype(np.int32)


def jobshop(size: int) -> JobShop:
    """`size` jobs with a task on each of ten machines, in random order."""
    rng = np.random.default_rng(7)
    machine = rng.permuted(np.tile(np.arange(10), (size, 1)), axis=1)
    return JobShop(machine.astype(np.int32), rng.integers(1, 100, machine.shape).astype(np.int32))


def commitment(size: int) -> Commitment:
    """The units of `size` plants over a week of hours."""
    rng = np.random.default_rng(3)
    pmax = rng.integers(50, 200, size).astype(np.float64)
    pmin, ramp = np.floor(0.2 * pmax), np.ceil(0.4 * pmax)
    day = np.sin(np.arange(168) / 24 * 2 * np.pi)
    load = np.round(pmax.sum() * (0.5 + 0.2 * day))
    prices = rng.integers(10, 60, size).astype(np.float64), rng.integers(10, 500, size).astype(np.float64)
    return Commitment(pmin, pmax, *prices, ramp, rng.integers(1, 6, size).astype(np.int32), load)


def network(size: int) -> Network:
    """Two goods on `size` arcs: a cycle through all nodes, and random arcs."""
    rng = np.random.default_rng(5)
    n = math.isqrt(4 * size)  # a quarter of all pairs
    keys = np.arange(n) * n + (np.arange(n) + 1) % n
    while len(keys) < size:
        more = rng.integers(0, n * n, size - len(keys))
        keys = np.union1d(keys, more[more // n != more % n])
    supply = np.zeros((n, 2))
    supply[[0, n - 1], 0], supply[[1, n // 2], 1] = [6, -6], [4, -4]
    tail, head = (keys // n).astype(np.int32), (keys % n).astype(np.int32)
    prices = rng.integers(5, 30, len(keys)).astype(np.float64)
    cost = rng.integers(1, 9, (len(keys), 2)).astype(np.float64)
    return Network(tail, head, rng.integers(10, 20, len(keys)).astype(np.float64), prices, cost, supply)


def dense(size: int) -> Dense:
    """The dense model with two `size` by `size` variables."""
    return Dense(size)


def transport(size: int) -> Transport:
    """The transport model with `size` arcs, about a tenth of all pairs, every node having an arc."""
    rng = np.random.default_rng(20240229)
    n = math.isqrt(10 * size)
    keys = np.arange(n, dtype=np.int64) * (n + 1)  # the arcs (k, k): no node is without an arc
    while len(keys) < size:
        more = rng.integers(0, n * n, size=size - len(keys), dtype=np.int64)
        keys = np.union1d(keys, more)
    tail = (keys // n).astype(np.int32)
    head = (keys % n).astype(np.int32)
    del keys
    cost = rng.uniform(1.0, 100.0, size)
    flow = rng.uniform(0.0, 10.0, size)  # a feasible plan, from which supply and demand follow
    supply = np.ceil(1.2 * np.bincount(tail, flow, n))
    demand = np.floor(np.bincount(head, flow, n))
    return Transport(tail, head, cost, supply, demand)


def hess(size: int) -> Hess:
    """The districting model on a `size` by `size` grid of units."""
    rng = np.random.default_rng(19650101)
    n = size * size
    population = rng.integers(50, 151, n).astype(np.float64)
    row, col = np.divmod(np.arange(n), size)
    cost = (row[:, None] - row) ** 2.0
    cost += (col[:, None] - col) ** 2.0
    cost *= population[:, None]
    districts = max(2, size // 3)
    mean = population.sum() / districts
    return Hess(population, cost, districts, 0.9 * mean, 1.1 * mean)


Instance = Dense | Transport | Hess | Commitment | Network | JobShop
KINDS: dict[str, type[Instance]] = {
    "dense": Dense,
    "transport": Transport,
    "loop": Transport,
    "hess": Hess,
    "commitment": Commitment,
    "network": Network,
    "jobshop": JobShop,
}
GENERATORS: dict[str, Callable[[int], Instance]] = {
    "dense": dense,
    "transport": transport,
    "loop": transport,
    "hess": hess,
    "commitment": commitment,
    "network": network,
    "jobshop": jobshop,
}


def save(instance: Instance, path: str) -> None:
    """Write an instance to an .npz file."""
    arrays: dict[str, Any] = {field.name: getattr(instance, field.name) for field in fields(instance)}
    np.savez(path, **arrays)


def load(case: str, path: str) -> Instance:
    """Read an instance of a case."""
    with np.load(path) as content:
        values = {name: content[name] for name in content.files}
    return KINDS[case](**{name: value if value.ndim else value.item() for name, value in values.items()})


if __name__ == "__main__":
    save(GENERATORS[sys.argv[1]](int(sys.argv[2])), sys.argv[3])
