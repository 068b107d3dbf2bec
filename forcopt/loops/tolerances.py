"""The numbers that loops and checks compare with: name, unit and reason of each.

"Relative" is relative to the larger of 1 and the size of what is compared, unless a line says otherwise.
"""

from __future__ import annotations

import numpy as np

EPS = float(np.finfo(float).eps)
"""Relative; the rounding of one operation of floats."""

NOISE = 1e-9
"""Relative to the terms that a number is the difference of; a smaller number counts as zero."""

AT_TOLERANCE = 1.01
"""In multiples of a backend's accuracy. A solver stops at its tolerance, and the sums of a row, computed here
again, round differently."""

VERTICES = 1e-6
"""Backends of a larger accuracy are first-order methods."""

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

NODES = 1e4
"""Nodes times nonzeros of the rows: how long HiGHS may look for better integers without presolve."""

PASSES = 1e7
"""Passes times nonzeros of the rows: how far bounds of columns are derived from those of others."""

LARGEST_REPAIR = 2e5
"""Columns without a bound times rows; in larger programs multipliers are not repaired exactly: too slow."""

HIGHS_DUAL = 1e-10
"""In units of the objective per unit of a column: the reduced costs that HiGHS counts as optimal, the least
that it takes."""

FALLS = -NOISE
"""In units of the objective, over the unit box; an objective that falls by less along a ray does not fall."""

MOVES = 1e-7
"""In units of a column, over the unit box; a ray along which a variable moves by less does not name it."""

NO_MOVE = 1e-11
"""Relative to the fastest; a value of the basis that moves by less stands still up to rounding."""

REFINED = 1e-9
"""In units of a row or column; HiGHS's tolerances where exact arithmetic refines and optima are refuted."""

HUGE, FAR_BOUND = 1e9, 1e12
"""In units of the magnified program. Costs are cut to the first, lest they spoil the simplex method's
arithmetic; bounds beyond the second are left out of a run."""

DEPENDENT = 1e-10
"""Relative to the largest pivot; columns with smaller pivots depend on the others."""

LEAST_CUT = 1e-11
"""In units of the utilities; subset sums violated by less give no row, since later stages multiply these
violations."""

SUM_ROUNDING = 1e-14
"""Relative to the sum alone; the rounding of a sum of utilities."""

LEAST_SLACK, MOST_SLACK = 1e-12, 1e-4
"""Relative; the first slack of floors if the tolerance is 0, and the last."""

OFF_OUTCOME = 1e-4
"""Relative; the largest distance of a value from an outcome."""

ZERO_MULTIPLIER = 10.0
"""In multiples of a backend's accuracy; smaller multipliers and rises count as zero."""

LEAST_VALUE = 1e-9
"""In units of the objective; a gap is relative to at least this value, as solvers define it."""

AT_BOUND = 1e-6
"""Relative; a row whose activity is this near its bound is at the bound in a table of rows."""

OUTSIDE = 1e-9
"""By how much the optimum of some rows must violate another row, relative to its bounds, so that it joins."""
