"""Integer programs over the rationals: branch and bound with exact bounds, and its proof as a file.

`prove` begins; `search` is the branch and bound, `relaxation` its simplex method in floating point, `system`
the integer arithmetic in which leaves are closed, `mir` the cuts, and `proof` the lines of the file.
"""

from forcopt.loops.exact_milp.prove import Tree, branch_and_bound

__all__ = ["Tree", "branch_and_bound"]
