"""Seeded instances: the best joint noise on a lattice, and the best mechanism on a grid of counts."""

from __future__ import annotations

from forcopt.instance import by_name, family
from forcopt.models.counting_queries.lattice import LatticeNoise
from forcopt.models.counting_queries.private_mechanism import PrivateMechanism


def _lattice(queries: int, radius: int) -> LatticeNoise:
    return LatticeNoise(queries=queries, epsilon=1.0, delta=0.01, radius=radius)


def _counts(people: int, queries: int, delta: float) -> PrivateMechanism:
    return PrivateMechanism.counts(people, queries, epsilon=1.0, delta=delta)


INSTANCES = by_name(
    family("counting/lattice-{}-{}", _lattice, "lp", (1, 20), (2, 10), (2, 20), (3, 8)),
    family("counting/mechanism-{}-{}-{:g}", _counts, "lp", (10, 1, 0.0), (10, 1, 0.05), (3, 2, 0.05)),
)
