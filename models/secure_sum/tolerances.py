"""The numeric tolerances of the room: each has a unit and a reason."""

ROUNDING = 1e-12
"""Relative: sums and roots of floats are off by less; comparisons err on the safe side by it."""

NEGLIGIBLE_LOSS = 1e-9
"""Relative: shares that leave less of the budget to the check are left out."""

COMPARED = 1e-9
"""Relative: gaps, norms and covariances that differ by less are equal."""

DECLARED = 1e-7
"""Relative: by how much shares of a protocol may break their sums, and a bound of a solver its limit."""

ROOT = 1e-14
"""Of the logarithm of the check's squared loss: the least step to the safe side of a root."""

CROSSING = 1e-12
"""The accuracy of a gap, in units of the norm, and of an epsilon: their tails are known to twelve digits."""

SHARES_NULL = 1e-12
"""Relative: smaller eigenvalues of the shares' covariance are 0."""

SHARES_SEEN = 1e-9
"""Relative: a mean along a null direction above this shows the vector."""

VIEW_NULL = 1e-13
"""Relative: smaller eigenvalues of a view's covariance are 0."""

VIEW_SEEN = 1e-7
"""Relative: a mean along a null direction above this shows the vector; views add up many terms."""

LAW_ENDS = 1e-15, 1e-30
"""Probability below and above the nodes of the integral over the chi-square law."""

LEAST_SHIFT = 1e-150
"""Stands for a mu of 0, whose delta is 0: its square is a float."""
