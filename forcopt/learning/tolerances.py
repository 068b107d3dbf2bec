"""The tolerances of this room: each with its unit and its reason."""

NEGLIGIBLE = 1e-9
"""Probabilities up to this, which solvers leave by their tolerance, are 0."""

SUM = 1e-6
"""By how much probabilities may miss 1 in sum, as solvers leave them and files print them."""

EXACT_SUM = 1e-12
"""Probabilities that miss 1 in sum by less are left as they are, so that a law from a file has its digits."""

ROUNDING = 1e-12
"""Scores that a learner computes are equal if they differ by less, relative to their size: the same record
has another last digit in another batch."""

SAME_ANGLE = 1e-9
"""Lines closer than this are one: decimals that are collinear on paper are off by rounding. In radians."""

RANK = 1e-11
"""Relative: what is left of a row once others are taken off counts as 0 up to this."""

INSIDE = 1e-9
"""A point this near to the hull of some points is in it, in units of the range of a coordinate; a member that
is better than these by a tenth of it is another one."""

WORTH_A_MEMBER = 1e-4
"""By how much, in the same unit, the answer of an oracle that is not exact must be better than the members to
join them: less is within the sampling error of most tables, and would cost many fits."""

LEAST = 1e-300
"""Stands in for 0 where a logarithm is taken or something is divided."""
