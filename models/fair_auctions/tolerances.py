"""Tolerances of fair auctions: each with its unit and its reason."""

from __future__ import annotations

SLACK = 2e-7
"""Probability or value: a row is violated by more; solvers keep rows this exactly."""

SUM = 1e-6
"""Probability: sums of shares that a solver or a file gives are off by less."""

TIE = 1e-12
"""Share of a value: users whose values differ by less are tied."""

ROOT = 1e-15
"""Ratio: the width to which roots of guarantees are enclosed."""
