"""Seeded instances: the best joint noise on a lattice, and the best mechanism on a grid of counts."""

from __future__ import annotations

from functools import partial

from forcopt.instance import Instance, by_name
from forcopt.models.counting_queries.lattice import LatticeNoise
from forcopt.models.counting_queries.private_mechanism import PrivateMechanism

INSTANCES = by_name(
    (
        Instance(
            f"counting/lattice-{k}-{r}",
            partial(LatticeNoise, queries=k, epsilon=1.0, delta=0.01, radius=r),
            "lp",
        )
        for k, r in ((1, 20), (2, 10), (2, 20), (3, 8))
    ),
    (
        Instance(
            f"counting/mechanism-{n}-{k}-{delta:g}",
            partial(PrivateMechanism.counts, n, k, epsilon=1.0, delta=delta),
            "lp",
        )
        for n, k, delta in ((10, 1, 0.0), (10, 1, 0.05), (3, 2, 0.05))
    ),
)
