"""The tolerances of this room: each with its unit and its reason."""

PROBABILITY = 1e-9
"""A prediction outside of [0, 1] by at most this is a probability, and a weight up to this is 0."""

GAP = 1e-9
"""Relative: nearer than this, error and bound are the same."""

WORTH_RECALLING = 1e-6
"""By how much a classifier that the oracle remembers must improve the error to be taken up."""

LEAST_BOUND = 1e-3
"""The least budget of an auditor: a step and a number of rounds are computed from it."""

DUST = 1e-12
"""Prices of a record, in shares of the error, up to this are 0: they are left from sums that cancel."""

LOUDER = 1e-9
"""A variance of the noise that exceeds the planned one by less, relatively, is the planned one."""
