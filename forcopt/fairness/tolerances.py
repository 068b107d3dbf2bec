"""The tolerances of this room: each with its unit and its reason."""

SHARE = 1e-6
"""The share of a group that a solver's tolerance may move."""

SLACK = 2e-7
"""Violations of pairs up to this are not cut off: a usual solver could give the same point again."""

WHOLE = 1e-9
"""A share of a prefix, in candidates, that is this close to a whole number is whole."""

SAME_SCORE = 1e-12
"""Scores that differ by less, relatively, are equal: a ratio of scores rounds."""
