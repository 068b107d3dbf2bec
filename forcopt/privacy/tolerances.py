"""The numeric tolerances of the room: each has a unit and a reason."""

LAW_SUM = 1e-9
"""Probability by which a law's sum may differ from 1: users print nine digits."""

ROUNDING = 1e-12
"""Relative, or in steps of a lattice: thousands of roundings of 2^-53 each stay below it."""

FEW_ROUNDINGS = 1e-15
"""Relative: a handful of roundings of 2^-53 each; nearer numbers count as equal."""

SMALLEST = 1e-300
"""Stands for 0 before a logarithm or a division: near the smallest normal float."""

FAR = 1e300
"""A loss in nats beyond every finite one: near the largest float."""

EXPONENT = 700.0
"""Nats: the exponential of a larger number may be no float (e^709 is the last), with room for factors."""

BELOW_ONE = 1 - 1e-16
"""The largest probability of a lost draw whose complement has a logarithm."""

TINY = 1e-60
"""Probability: a tail below it counts as infinite loss (above) or is dropped (below)."""

LEAST_LOG_DELTA = -1e6
"""Nats: logarithms of delta are cut off here, so that root finding sees finite numbers."""

CALIBRATED = 1e-11
"""Relative, of a calibrated size: below the ten digits that are shown."""

SPLIT = 1e-9
"""Relative, of the epsilon of one part of a split budget; the part is lowered by twice as much."""

LARGE_OUTPUT = 1e150
"""Larger outputs of an audited program are cut off: their means and squares are floats."""

LIGHT = 1e-20
"""Relative weight of a term of a moment that is left out: ten thousand of them are below rounding."""

FALLEN = 1e-14
"""Relative size of terms of the trapezoidal rule at which the sum ends."""

FADED_OUT = 1e-11
"""Relative: sums of the trapezoidal rule that fade out at three places have converged if they agree to it."""

SETTLED = 1e-8
"""The relative change that ends the halving; the error after a halving is about the square of the change."""

NOISE = 1e-6
"""The relative change below which changes that no longer fall are rounding, of 10^6 losses for instance."""

OVERSTATED = 1e-9
"""The part of delta that counting losses above a cap as infinite may add."""

RESOLUTION = 1e-12
"""Of an outcome, in units of the largest; nearer outcomes to an infinite loss count as of one."""

ON_LATTICE = 1e-9
"""Steps of a lattice: a loss that is nearer to a point of the lattice is on it."""

BEYOND_SPAN = 1e-20
"""Probability of losses beyond either end of a finite span."""

WRAPPED = 1e-11
"""Probability that may lie outside of the window of a transform; the bracket holds it."""

TRANSFORM = 1.2e-16
"""Relative rounding of one butterfly of a transform: above 2^-53, as its standard bound asks."""

MOST_TILT = 1e6
"""The largest tilt of a lattice, per nat."""

FADED = 1e-40
"""Absolute: a smaller power of a characteristic function counts as 0; the bracket holds it."""

NEAR_ROOT = 1e-13
"""Nats: how near an epsilon is found to where delta is met, before it moves to the safe side."""

SETTLED_ROOT = 1e-5
"""Nats: an epsilon that a finer lattice moves by less has settled, whose bracket atoms keep wide."""

AS_INFINITE = 1e-5
"""The part of delta that finite losses may add by counting as infinite, before more of them are resolved."""

NEXT_ROOT = 1e-3
"""Relative: where on a finer lattice the search for an epsilon begins, and how far one that settled holds."""

ZERO_LOSS = 1e-14
"""Nats: smaller losses, and smaller differences of two laws, are rounding."""

TABLE_END = 1e-22
"""Probability beyond the table of a noise on whole numbers, below 2^-63 for each entry."""

UNDECIDED = 2.0**-48
"""Distance of a uniform number to a probability, both floats, below which a draw compares fractions: a dozen
roundings of 2^-53 each stay below it."""

MAXIMUM_END = 1e-18
"""Probability beyond the reach of the sum for the largest of many draws."""

ROUND_END = 4e-16
"""The distance to an end, in units of the length, below which x is taken for the end: a probability of
order `ROUND_END`^(power + 1) would otherwise be multiplied by e^epsilon."""

BESIDE_ATOMS = 1e-9
"""Nats: the least margin beside the ends of a span, so that atoms at the ends are within."""

SHOWN_DELTA = 1e-6
"""Probability: the delta at which a release states its epsilon, besides the loss without a delta."""

FLAT = 1e-6
"""The width of a bracket of delta, relatively, at which its upper end is told, also where delta is flat."""
