"""Seeded instances: states of very different sizes."""

from __future__ import annotations

from functools import partial

import numpy as np

from forcopt.instance import Instance, by_name
from forcopt.models.fair_decisions.apportionment import Apportionment, Criterion

__all__ = ["INSTANCES"]


def _states(states: int, criterion: Criterion) -> Apportionment:
    """Lognormal populations, about nine seats a state."""
    populations = np.round(1e5 * np.random.default_rng(states).lognormal(0.0, 1.2, states))
    return Apportionment(populations, seats=9 * states, criterion=criterion)


_SHIPPED: tuple[Criterion, ...] = ("hill", "total", "range")

INSTANCES = by_name(
    [
        Instance(f"decisions/seats-{criterion}-{states}", partial(_states, states, criterion), "milp")
        for criterion in _SHIPPED
        for states in (10, 50)
    ]
)
