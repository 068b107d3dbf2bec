"""The tolerances of this room: each with its unit and its reason."""

# -- lengths -----------------------------------------------------------------------------------------------

TOLERANCE = 1e-6
"""A ball whose radius exceeds the room it has by at most this share of the extent of the points is safe."""

STRICT = 10 * TOLERANCE
"""The room that points of label 0 need at least, in units of the extent: the border belongs to label 1."""

APART = 1e-9
"""The room that each ball lacks in a program, in units of the extent, so that touching balls come apart."""

TOUCH = 1e-12
"""Balls whose centers are nearer than the sum of radii by less, relative to coordinates, only touch."""

SAME_RADIUS = 1e-9
"""Radii that differ by less, relatively, are equal: they come from square roots of sums of squares."""

LEAST_MOVE = 1e-9
"""The least move of an input that a search begins with, in units of its coordinates."""

LEAST_UNIT = 1e-12
"""The least unit of length of a program, so that it can be divided by a box of one point."""

# -- nearest neighbours: rows of quadratic programs --------------------------------------------------------

EDGE = 1e-10
"""A cell is violated if the point is nearer to its atom by more than this, relative to the distances."""

EDGE_AGAIN = 1e-8
"""The same for a cell that has a row already: a projection meets its rows only so nearly."""

DEPENDENT = 1e-10
"""A shorter residual means that no vector, or none shorter than 1e10, satisfies all rows of length 1."""

# -- networks ----------------------------------------------------------------------------------------------

SUMS = 1e-9
"""By how much bounds on a network's sums are widened, relative to them and to 1, against rounding."""

KNOWN = 1e-6
"""By how much, relatively, a program may exceed the length of a known move, so that it keeps that move."""

STEPS = (1e-15, 1e-3, 25)
"""The least and the largest distance, relative to the move, at which points beside it are tried; how many."""

BACK = 1e-10
"""The relative step back over the border, if rounding has the label unchanged on it."""

LEAST_STEP = 1e-3
"""The least step of the descent, and the first radius of the draws, relative to the radius or extent."""

# -- masses and losses -------------------------------------------------------------------------------------

MASS_TOLERANCE = 1e-9
"""By how much the masses of a law may miss 1 in sum, for each point."""

MASS = 1e-15
"""Masses that differ by less are equal: the rounding of a sum of shares of 1."""

TIED = 1e-12
"""Sums of masses that differ by less, absolutely or relatively, are equal: longer sums round more."""

WHOLE = 1e-9
"""A sample size or a number of cells that exceeds a whole number by less is that number."""

HALF = 1e-3
"""A value of a linear program that is nearer to 1/2 is 1/2, where all vertices are halves."""
