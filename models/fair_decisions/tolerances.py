"""The tolerances of this room: each with its unit and its reason."""

DUST = 1e-9
"""Probabilities below, whose wide range solvers report as imprecise, count as 0 in the program."""

RATE_ROOM = 1e-9
"""By how much the rates of a decider exceed the promised one, so that rounding does not break the promise."""

MARGIN = 1e-6
"""To how much moved thresholds are found, in standard deviations of the noise."""

OUTCOME = 1e-12
"""Expected outcomes that differ by less, relative to the largest, are in order: they come from long sums."""

TAIL = 1e-18
"""The probability of the values of a noise that are left out, and the share of an integral at its ends."""

POLE = 1e-15
"""The distance of a saddle point from the nearest pole, in units of that pole, and its accuracy."""

ORIGIN = 1e-12
"""The least saddle point, in the same unit, times one more than the value: nearer to 0, 1 / z rules."""

SINGULAR = 1e-12
"""Arguments below take the limit of a transform at its removable singularity."""

QUANTILE = 1e-9
"""The accuracy of a quantile, relative to an upper bound of it."""

ROOT = 1e-14
"""The relative accuracy of a root."""

LEAST = 1e-300
"""Stands in for 0 where a number above 0 is needed: a divisor, or an absolute accuracy that never decides."""
