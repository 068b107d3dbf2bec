"""The tolerances of this room: each with its unit and its reason."""

BAND = 1e-9
"""Priorities this close, relative, are compared in exact arithmetic."""

NO_ENTRY = 1e-13
"""Entries and slacks of a doubly stochastic matrix up to this count as zero: its sums are 1."""

NO_SLACK = 1e-12
"""Slacks of a point of a polytope up to this, relative to its scale, count as zero: sums of doubles round."""

MARGINAL = 1e-9
"""By how much marginal probabilities may lie outside of 0 and 1, as solvers leave them."""

CLOSE = 1e-9
"""Fractions this close to 0 or 1 count as 0 or 1, as solvers leave them."""

ROUNDING = 1e-9
"""A limit or a total may be exceeded by this much, relative: three times 0.1 is more than 0.3."""

LEAST_DECREASE = 1e-15
"""The search for prices ends when a step lowers its value by less, relative: a few last digits."""

LEAST_GRADIENT = 1e-12
"""The search for prices ends at slopes up to this, in units of the scaled value."""
