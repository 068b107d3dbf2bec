"""Tolerances of fair auctions: each with its unit and its reason."""

from __future__ import annotations

SLACK = 2e-7
"""Probability or value: a row is violated by more; solvers keep rows this exactly."""

SUM = 1e-6
"""Probability: sums of shares that a solver or a file gives are off by less."""

NEGATIVE = 1e-9
"""Probability: shares below 0 by less are rounding; so are sums of a prior that are off from 1."""

FALLS = 1e-9
"""Share of a user's clicks: a rule whose clicks fall by more when a bid rises is not monotone."""

EQUAL_RATIO = 1e-14
"""Logarithm: sums of logarithms of equal ratios differ by less."""

TIE = 1e-12
"""Share of a value: users whose values differ by less are tied."""

AREA, AREA_SHARE = 1e-12, 1e-11
"""Clicks times value, and its share: to which integrals of clicks are computed."""

ROOT = 1e-15
"""Ratio: the width to which roots of guarantees are enclosed."""

NOT_ZERO = 1e-300
"""Clicks: stands for 0 in a comparison with a share."""
