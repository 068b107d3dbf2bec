"""Jurisdictions like those of the determinations of 2016; and the library's instances."""

from __future__ import annotations

import numpy as np

from forcopt.arrays import Array
from forcopt.instance import by_name, family
from forcopt.models.fair_decisions.apportionment import Apportionment, Criterion
from forcopt.models.fair_decisions.coverage import CoverageDecision, CoverageRule, Nested
from forcopt.privacy import AdditiveMechanism, Laplace


def random_jurisdictions(covered: int = 175, uncovered: int = 5005, *, seed: int = 0) -> Array:
    """Draw nested counts, a given number of which are covered by the printed rule.

    Parameters
    ----------
    covered, uncovered : int
        How many.
    seed : int, default 0
        Of the draw.

    Returns
    -------
    Array
        Rows ``(base, limited, illiterate)``, shape ``(covered + uncovered, 3)``, the covered ones first.

    Notes
    -----
    Covered: the limited speakers are lognormal, their share of the base ``.05 + .45 Beta(1.3, 2)``, the
    illiterate binomial. Others: a lognormal base, and beta-binomial counts. Fitted to the sizes and rates
    that Pujol et al. (2020) report.
    """
    rng = np.random.default_rng(seed)
    rule, out = CoverageRule(), []
    for count, wanted in ((covered, True), (uncovered, False)):
        rows: list[Array] = []
        while len(rows) < count:
            n = 2 * count + 10
            if wanted:
                limited = np.maximum(3, np.round(1000 * np.exp(2.2 * rng.normal(size=n)))).astype(int)
                base = np.ceil(limited / (0.05 + 0.45 * rng.beta(1.3, 2, n))).astype(int)
                rate = np.minimum(0.08 * np.exp(0.8 * rng.normal(size=n)), 0.6)
                illiterate = np.maximum(1, rng.binomial(limited, rate))
            else:
                base = 20 + np.floor(np.exp(rng.normal(5.5, 1.6, n))).astype(int)
                limited = rng.binomial(base, rng.beta(0.5, 24.5, n))
                illiterate = rng.binomial(limited, rng.beta(0.6, 14, n))
            drawn = np.stack([base, limited, illiterate], axis=1)
            rows.extend(drawn[rule.decide(drawn) == wanted])
        out.append(np.array(rows[:count]).reshape(count, 3))
    return np.concatenate(out)


def _states(states: int, criterion: Criterion) -> Apportionment:
    """Lognormal populations, about nine seats a state."""
    populations = np.round(1e5 * np.random.default_rng(states).lognormal(0.0, 1.2, states))
    return Apportionment(populations, seats=9 * states, criterion=criterion)


def _tables(covered: int) -> CoverageDecision:
    """A fifth of the jurisdictions is covered; the least rate must hold for the given ones."""
    counts = random_jurisdictions(covered, 4 * covered, seed=covered)
    noise = Nested(AdditiveMechanism(Laplace(epsilon=1.0)))
    return CoverageDecision(counts, mechanism=noise, holds_for="given")


_SHIPPED: tuple[Criterion, ...] = ("hill", "total", "range")

INSTANCES = by_name(
    family("decisions/seats-{1}-{0}", _states, "milp", *((n, c) for c in _SHIPPED for n in (10, 50))),
    family("decisions/coverage-{}", _tables, "decision-table", [10], [100]),
)
