"""Problems, the methods that solve them, their solutions, and the registry that finds them.

`method` has `Method`, `Handles` and `Outcome`. `solution` has `Evaluation` and `Solution`. `problem` has
`Problem`. `registry` finds problem classes and examples. `progress` shows a running solve.
"""

from forcopt.problem.method import COMMON_OPTIONS, Handles, Method, Outcome
from forcopt.problem.problem import Problem
from forcopt.problem.registry import examples, load, problem_classes
from forcopt.problem.solution import FEASIBILITY_TOLERANCE, Evaluation, Solution

__all__ = [
    "COMMON_OPTIONS",
    "FEASIBILITY_TOLERANCE",
    "Evaluation",
    "Handles",
    "Method",
    "Outcome",
    "Problem",
    "Solution",
    "examples",
    "load",
    "problem_classes",
]
