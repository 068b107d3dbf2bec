"""Tolerances of allocation: each with its unit and its reason."""

from __future__ import annotations

ROUNDING = 1e-9
"""The relative excess over a limit that counts as rounding: three times 0.1 is more than 0.3."""

SUM = 1e-12
"""Share of a sum, a size or a target: floats of the same sum differ by less."""

PROVED = 1e-6
"""Share of the whole variance: a bound so near proves a decision; targets are met to it."""

FLAT, SLOPE = 1e-15, 1e-12
"""Relative change of a bound, and its slope, at which its best multipliers are found."""

LEAST_SCALE = 1e-9
"""Share of the scale that surely suffices: a smaller scale of noise counts as none."""
