"""What every problem, method and backend must keep, as checks that an author of a new one calls."""

from forcopt.testing.backend import check_backend
from forcopt.testing.method import check_method
from forcopt.testing.problem import check_problem

__all__ = ["check_backend", "check_method", "check_problem"]
