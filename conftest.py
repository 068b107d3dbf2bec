"""Loads the package before pytest imports a module by its path: else that module exists twice."""

import forcopt  # noqa: F401
