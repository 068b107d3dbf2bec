"""The numeric tolerances of the room: each has a unit and a reason."""

DELTA_SLACK = 1e-9
"""Relative: by how much delta may be missed, the accuracy of profiles."""

SIZE = 1e-11
"""Of a size's logarithm: the exact profile is met to ten digits."""

WHOLE_SIZE = 1e-9
"""Of a size's logarithm for whole noise, whose table is slower."""

FISHER_SIZE = 1e-8
"""Of a size's logarithm for a table of up to 200,000 entries."""

TRIED_POWER = 1e-6
"""Of a size's logarithm while powers of bounded noise are compared."""

TRIED_SHAPE = 1e-7
"""Of a size's logarithm while shapes are compared."""

LEAST_LOG_DELTA = -1e3
"""Nats: logarithms of delta are cut off here, so that root finding sees finite numbers."""

DOMINATED = 1e-12
"""Relative to the largest weight: dominated queries keep that much."""

MISSED = 1e-9
"""Relative to the largest entry of W: by how much B A may miss W."""

BOUND_ROUNDING = 1e-9
"""Relative: by how much the rounding of a decomposition may lift a lower bound; it is lowered."""

RIDGE = 1e-9
"""Relative to the largest diagonal entry: added to the Gram matrix of A, so that it has an inverse."""

BALANCED = 1e-8
"""Relative: least over largest weight, from which on the Gram matrix resolves all singular values."""

GRAM_RANK = 1e-13
"""Relative: smaller eigenvalues of a Gram matrix are rounding."""

RANK = 1e-14
"""Relative: smaller singular values or entries are rounding."""

TABLE_END = 1e-30
"""Relative to the density at 0: the table of a law ends there."""

DUST = 1e-12
"""Relative: smaller shares of the mass are left out of a model: solvers cannot tell them from 0."""

DELTA_LEFT = 1e-10
"""Probability: an excess of delta that a repair leaves."""

MIXED = 1e-4
"""The most of the uniform matrix that a repair mixes in."""

INERT = 1e-9
"""Probability: a smaller chance of any correction counts as 0."""

SAFE_STEP = 1e-15
"""Relative: the first step by which a scale is raised, until rounding is on the safe side."""

RESCALED = 1e-250
"""The first term of a recurrence, and the factor that brings its terms back from the largest floats."""
