"""Tolerances of fair rankings: each with its unit and its reason."""

from __future__ import annotations

COUNT = 1e-9
"""Members: a bound on a count may fall short of a whole number by this."""

SHARE = 1e-12
"""Share of the whole: sums of floats differ by less, and a smaller part counts as 0."""

NOISE = 1e-9
"""Probability: what a solver gives beside 0."""

LEFT_OUT = 1e-6
"""Share of positions or exposure: a decision that lacks more ranks somebody who is left out."""

NOT_ZERO = 1e-300
"""Any unit: stands for 0 where a logarithm or a level must be positive."""
