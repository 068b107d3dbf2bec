"""The tolerances of this room: each with its unit and its reason."""

NOISE = 1e-9
"""By how much, relative to its size above 1, rounding errors may have moved a number."""

SUM_NOISE = 1e-12
"""The same for a sum, relative to the sum of sizes."""

STAGED = 1e-9
"""How far linear programs that HiGHS solves in stages may be off: later stages build on earlier ones."""

DROPPED = 1e-9
"""HiGHS by its option `small_matrix_value`, SCIP by its epsilon and others drop matrix entries up to this."""

LEAST_ENTRY = 1e-12
"""The least value of the option `small_matrix_value` of HiGHS."""

LEAST_RAY = 1e-7
"""First-order and interior-point methods read every entry, but mistake rays that rest on smaller ones."""

FIRST_ORDER = 1e-6
"""The accuracy asked of SCS and OSQP, absolute and relative."""

OFF_OSQP = 1e-5
"""How far answers of OSQP, and of solvers that nobody measured, may be off."""

TIGHT = 1e-12
"""The accuracy asked of Clarabel for linear programs, also of rays, for which it takes large costs."""

REDUCED = 1e-8
"""The accuracy at which Clarabel may end such a program when it makes no progress."""

CAREFUL = 1e-13
"""The accuracy asked of Clarabel a second time, after an answer that was refused."""

CONES = 1e-8
"""SCIP's feasibility tolerance for programs with cones: its own holds for each nonlinear row alone."""

ACCURATE = 1e-6
"""Cones are only cut for solvers whose points of linear rows are off by at most this."""

INSIDE = 1e-7
"""In units of the entries of a cone, see `outside`: tangents end where a point is outside by at most this,
since solvers violate rows by as much; or by the solver's accuracy, if a round brings it no nearer."""

MEETS = 1e-6
"""Relative to the objective where that is above 1: the gap at which proposals of integers end."""

FALLS = -1e-4
"""Relative to the largest cost, over the unit box: an objective that falls by more falls forever."""

REGULARIZATION = 1e-7
"""Diagonal of a quadratic objective: what HiGHS adds by default; where it cycles, a hundredth."""

LOST = 1e-6
"""Relative difference of a point's value and the one that HiGHS tells, beyond which the point is another."""
