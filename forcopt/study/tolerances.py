"""The tolerances of this room: each with its unit and its reason."""

TOLERANCE = 1e-4
"""How far solvers' tolerances let objectives differ, relative to max(1, value), and demands be violated."""

EQUAL = 1e-6
"""Objectives that differ by less, relative to their size above 1, differ by rounding only."""

SAME = 1e-9
"""Objectives this close are equal and shares this small are 0: rounding is no share of a best near 0."""
