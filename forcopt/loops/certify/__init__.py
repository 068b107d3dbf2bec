"""Check a solution in exact rational arithmetic.

Every number of the model and of the point is a float, and is taken for exactly the rational number that it
is: 0.1 is 3602879701896397/36028797018963968 here, and an optimum that is 31/100 on paper comes out as 31/100
if the data are integers. The rows are the compiled program's, in which like terms are merged.

It proves:

- a point: that it satisfies all bounds, rows, integrality, products, implications and rational atoms (`abs`,
  `maximum`, `sum_largest`, `sum_squares`, the norms 1 and inf); `evaluation`. Other atoms are evaluated in
  floating point.
- the optimum of a linear program, by an optimal vertex and multipliers, both rational; `linear`. A point of
  the solver that is off by rounding is replaced by the exact optimum next to it.
- the levels of a leximin objective, each by the multipliers of a linear program.
- the optimum of an integer program, by branch and bound with such bounds at every leaf; `exact_milp`.
- the optimum of a convex quadratic program, by the conditions of Karush, Kuhn and Tucker; `convex`.
- a bound with second-order, semidefinite and exponential cones, by a dual inside their duals; `convex`.
- infeasibility by a Farkas certificate, of cones, too; unboundedness by a ray.
"""

from forcopt.loops.certify.certificate import Certificate
from forcopt.loops.certify.certify import certify_model, is_provable

__all__ = ["Certificate", "certify_model", "is_provable"]
