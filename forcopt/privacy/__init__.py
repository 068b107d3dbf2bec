"""Privacy mechanisms and channels: what is done to data first, and how to see through it."""

from forcopt.privacy.laplace import Laplace, add_laplace
from forcopt.privacy.randomized_response import ObservedGroups, RandomizedResponse

__all__ = ["Laplace", "ObservedGroups", "RandomizedResponse", "add_laplace"]
