"""The numeric tolerances of the room: each has a unit and a reason."""

LEAST_SHARE = 1e-9
"""Of the budget: the least share of a level that variances are computed for."""

SUM_ROUNDING = 1e-12
"""Relative: sums of a million floats are off by less."""

NO_EFFECT = 1e-12
"""Squared weight: stands for the effect of regions that no level moves."""

WHOLE = 1e-9
"""People: a real count that is nearer to a whole one is whole but for rounding."""

BEYOND = 1e-3
"""People: solvers' counts may be off by this much, as their tolerances of 1e-6 are in units of squares."""

SQUARES_KEPT = 1e-6
"""Relative: by how much a cone may lose a level's squares; tighter ones stop conic solvers."""

STEPS_KEPT = 1e-9
"""Relative: the same for linear stages, whose vertices are exact."""

NO_SPREAD = 1e-9
"""Squared support by weight: the least unit of a regression, if all units agree."""

FREE = 5.0
"""Standard deviations above 0 from which a count is free of its bound: noise goes so far once in 3e6."""
