"""Loops around a backend: lexicographic objectives, cutting planes, column generation, certificates."""

from forcopt.loops.solution import ModelSolution
from forcopt.loops.solve import solve_model

__all__ = ["ModelSolution", "solve_model"]
