"""Tolerances of cohorts: each with its unit and its reason."""

from __future__ import annotations

WHOLE = 1e-6
"""Probability: one so near to 0 or 1 is shown as certain; sums are off by less."""

CLOSE = 1e-7
"""Probability: one so near to 0 or 1 is a solver's, and counts as 0 or 1."""

LEVEL = 1e-8
"""Share of the largest utility: by which a lottery may miss the utilities of an outer program."""

CONIC = 1e-7
"""Share of an objective: between a lottery and the bound of a program that may be conic."""

SHORT = 1e-9
"""Sum of utilities: by which a lottery in a master may miss its target, or a cut may be violated."""

GAP = 1e-9
"""Share of a sum of utilities: to which a level of a program is solved."""

UNUSED = 1e-12
"""Probability: a cohort of a smaller one is not in the lottery."""

SAME = 1e-3
"""Of the last digit of a quota: the rounding of a solver."""

RIDGE = 1e-13
"""Share of the trace of a Gram matrix: added to its diagonal, since equal quotas make its rows dependent."""
