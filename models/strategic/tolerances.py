"""Tolerances of strategic classification: each with its unit and its reason."""

from __future__ import annotations

TOLERANCE = 1e-6
"""Costs and truth scores that differ by less count as equal, since solvers are no more accurate. Costs
count in units of the value of acceptance, truth scores in units of the gain of one such value of effort."""

ROUNDING = 1e-9
"""Weight of agents, or cost: sums of floats that differ by less are equal."""

POSITIVE = 1e-6
"""Probability: a criterion of the linear relaxation of a smaller one is closed."""

PROVED = 1e-6
"""Share of a bound: a classifier of a value this near attains it."""

REACHED = 1e-7
"""Share of a value, or of the largest multiplier: what differs by less, is a solver's."""

TIE_MARGIN = 1e-4
"""By how much a feature that would win a tie must weigh less (relative, per effort) than the one moved
along."""

PAIR_SECONDS = 4e-7
"""Seconds: a pair of an agent and a point takes at most about this long."""
