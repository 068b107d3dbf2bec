"""The numeric tolerances of the room: each has a unit and a reason."""

ROUNDING = 1e-12
"""Relative: levels and budgets that are nearer are equal."""

EXCEEDED = 1e-9
"""Relative: a smaller excess of a budget or of a failure probability is rounding."""

RAISED = 1e-9
"""Relative: by how much a plan's epsilon and delta are raised, so that rounding breaks neither."""

DELTA_KEPT = 1e-6
"""Relative: by how much a plan's delta may miss what its noise needs, the accuracy of profiles."""

CHOSEN = 1e-6
"""Of a binary: smaller values of a relaxation are 0."""

SHOWN_EXCESS = 1e-5
"""Relative: an exact excess of one unit is shown as this much, above the tolerance for rounding."""

PLACE, HEIGHT = 1e-10, 1e-14
"""In logarithms of constants, and of an error: where the simplex search for a plan ends."""
