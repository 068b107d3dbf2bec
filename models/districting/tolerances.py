"""Tolerances of districting: each with its unit and its reason."""

from __future__ import annotations

ROUNDING = 1e-6
"""Cost units of `Districting.arrays`: costs are whole, and sums of shadow prices are off by less."""

SAME_COST = 1e-6
"""The same units: a cost that a user names in decimals is the whole one within this."""

LIMIT = 1e-9
"""The same units: a limit that a user gives in decimals may fall short of a whole one by this."""

LESS = 1e-12
"""Share of a value: a sum of floats is smaller only if it is smaller by more."""

TIE = 1e-9
"""Violations, which are whole: all preferences among equally many weigh less together."""

NOT_ZERO = 1e-300
"""Any unit: stands for 0 in a denominator."""

RULE = 1e-9
"""Share of a bound: a rule that is not linear in sums over nodes holds up to this, since floats add it up."""
