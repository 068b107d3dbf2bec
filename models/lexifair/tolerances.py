"""The tolerances of this room: each with its unit and its reason."""

HELD = (1e-9, 1e-8, 1e-7, 1e-6)
"""By how much, relative to the largest loss of the first model, a level may exceed its limit: the
least at which the solver's rounding leaves a proof."""

PRICED = 1e-7
"""The gap of column generation that ends an audit, in the same unit; less is the solver's rounding."""

AUDITED = 1e-3
"""The same with a learner, whose fits are no minima: less is within the sampling error of most tables."""

PROVED = 1e-5
"""How far a level, relative to the largest loss of the first model, may be from its bound to be optimal."""

FITTED = 1e-24
"""Losses up to this, relative to the largest squared label, are the rounding of a perfect fit."""

UNIT = 1e-20
"""Losses up to this, relative to the unit of the program, count as a perfect fit of all records."""

LEAST_LOSS = 1e-12
"""Stands in for a loss of 0, so that ranges and steps stay positive."""

NEGLIGIBLE = 1e-12
"""Probabilities, and entries of directions of length 1, up to this are 0."""

RANK = 1e-13
"""Singular values up to this, relative to the largest, are 0."""

PENALTY = (1e-15, 1e-14)
"""The accuracy of a ridge penalty: relative to the largest possible one, and relative to itself."""

LEAST_NORM = 1e-300
"""Stands in for the norm 0, by which something is divided."""

DECREASE = 1e-14
"""Newton's method ends once a step promises to lower the weighted loss by less than this share of it."""

SMALLEST = 1e-10
"""A step of Newton's method is not halved below this share of the whole one."""
