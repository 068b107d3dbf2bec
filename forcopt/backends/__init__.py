"""Solvers behind one interface: a backend only translates a program to its solver and back."""

from forcopt.backends.base import Backend, RawResult, Session, SolveOptions
from forcopt.backends.registry import backends, get_backend, register_backend
from forcopt.clock import Improvement

__all__ = [
    "Backend",
    "Improvement",
    "RawResult",
    "Session",
    "SolveOptions",
    "backends",
    "get_backend",
    "register_backend",
]
