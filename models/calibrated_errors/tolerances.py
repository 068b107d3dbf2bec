"""The tolerances of this room: each with its unit and its reason."""

from forcopt.problem import FEASIBILITY_TOLERANCE

ROUNDING = 1e-9
"""Scores closer than this are the same; a score this close below the cutoff reaches it. Probabilities too."""

MARGIN = 10 * FEASIBILITY_TOLERANCE
"""The default margin of scores. A solver that breaks a row by its tolerance must not use the margin up."""

MISSED = FEASIBILITY_TOLERANCE / 2
"""The error of calibration, an expected distance of scores, that a computed target may have."""

SEMIDEFINITE = 1e-12
"""An eigenvalue above minus this, relative to the largest entry, is no negative one but rounding."""
