"""The tolerances of this room: each with its unit and its reason."""

SLACK = 1e-6
"""Sums of prizes, which are floats, are compared with thresholds with this to spare, in units of cost."""

LEAST_PRICE = 1e-9
"""The largest price or capacity is taken to be at least this, so that nothing is divided by 0."""

NO_GAIN = 1e-12
"""A packing that gains up to this, relative to the distances, gains rounding errors only."""

LEAST_LENGTH = 1e-300
"""Stands in for the largest length of a walk if all are 0, which then are divided by it."""

FIEDLER = 1e-6
"""Entries of a Fiedler vector up to this do not decide its sign: they may be rounded zeros."""

ROUNDED = 1e-12
"""The share by which floating-point sums above 2**53 may be too large."""
