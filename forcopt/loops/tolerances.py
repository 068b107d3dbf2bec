"""The numbers that loops and checks compare with: name, unit and reason of each.

"Relative" is relative to the larger of 1 and the size of what is compared, unless a line says otherwise.
"""

from __future__ import annotations

import numpy as np

__all__ = [
    "APART",
    "AT_TOLERANCE",
    "BETTER",
    "EPS",
    "FAR",
    "HIGHS_DUAL",
    "HIGHS_GAP",
    "NOISE",
    "POOL",
    "PROOF",
    "QUADRATIC_PROOF",
    "REFUTED",
]

EPS = float(np.finfo(float).eps)
"""Relative; the rounding of one operation of floats."""

NOISE = 1e-9
"""Relative to the terms that a number is the difference of; a smaller number counts as zero."""

AT_TOLERANCE = 1.01
"""In multiples of a backend's accuracy. A solver stops at its tolerance, and the sums of a row, computed here
again, round differently."""

PROOF, QUADRATIC_PROOF = 2.0, 100.0
"""In multiples of a backend's accuracy: the largest relative distance of an optimum from the bound of its
multipliers, for a linear and for a quadratic objective."""

REFUTED = 100.0
"""In multiples of a backend's accuracy: a point that violates the model by more is an error of the backend,
and a value that is better by more refutes a bound."""

BETTER = 10.0
"""In multiples of a backend's accuracy: by how much another point must be better to refute an optimum."""

FAR = 1e15
"""In units of a column. Solvers do not compute with values this large: they show a ray, or a failure."""

APART = 1e-3
"""Relative; the largest distance of an optimum from its bound, if no larger gap was asked for."""

HIGHS_GAP = 1e-4
"""Relative; the gap at which HiGHS stops a search, unless another is asked for."""

HIGHS_DUAL = 1e-10
"""In units of the objective per unit of a column: the reduced costs that HiGHS counts as optimal, the least
that it takes."""

POOL = 1e-6
"""Relative; the largest violation of a point of the pool."""
