"""Seeded instances: states of very different sizes, ordered counts with steps, nested counts to decide on."""

from __future__ import annotations

from functools import partial

import numpy as np

from forcopt.instance import Instance, by_name
from forcopt.models.fair_decisions.apportionment import Apportionment, Criterion
from forcopt.models.fair_decisions.coverage import CoverageDecision, Nested
from forcopt.models.fair_decisions.dawa import IntervalPartition
from forcopt.models.fair_decisions.generators import random_jurisdictions
from forcopt.privacy import AdditiveMechanism, Laplace


def _states(states: int, criterion: Criterion) -> Apportionment:
    """Lognormal populations, about nine seats a state."""
    populations = np.round(1e5 * np.random.default_rng(states).lognormal(0.0, 1.2, states))
    return Apportionment(populations, seats=9 * states, criterion=criterion)


def _steps(counts: int) -> IntervalPartition:
    """Whole counts around a level that changes about every ten counts."""
    rng = np.random.default_rng(counts)
    levels = np.cumsum(rng.random(counts) < 0.1)
    return IntervalPartition(rng.poisson(rng.gamma(2.0, 20.0, counts)[levels]).astype(float), penalty=20.0)


def _tables(covered: int) -> CoverageDecision:
    """A fifth of the jurisdictions is covered; the least rate must hold for the given ones."""
    counts = random_jurisdictions(covered, 4 * covered, seed=covered)
    noise = Nested(AdditiveMechanism(Laplace(epsilon=1.0)))
    return CoverageDecision(counts, mechanism=noise, holds_for="given")


_SHIPPED: tuple[Criterion, ...] = ("hill", "total", "range")

INSTANCES = by_name(
    [
        Instance(f"decisions/seats-{criterion}-{states}", partial(_states, states, criterion), "milp")
        for criterion in _SHIPPED
        for states in (10, 50)
    ]
    + [Instance(f"decisions/partition-{n}", partial(_steps, n), "lp") for n in (30, 100)]
    + [Instance(f"decisions/coverage-{n}", partial(_tables, n), "decision-table") for n in (10, 100)]
)
