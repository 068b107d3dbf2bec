"""Functions that numba compiles: a module that has them can be imported without numba, but not call them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from forcopt.clock import STANDSTILL
from forcopt.errors import NotInstalledError

__all__ = ["int64", "njit", "trailing_zeros", "uint64"]

F = TypeVar("F", bound=Callable[..., Any])

try:
    from numba import int64, njit, uint64
    from numba.core import event
    from numba.core.compiler_lock import global_compiler_lock
    from numba.cpython.unsafe.numbers import trailing_zeros
except ImportError:

    def njit(**_: object) -> Callable[[F], Callable[..., Any]]:
        """Replace a function by one that names the missing package."""

        def refuse(function: F) -> Callable[..., Any]:
            @wraps(function)
            def refused(*_: object, **__: object) -> None:
                raise NotInstalledError("this needs numba, which is not installed: pip install numba")

            return refused

        return refuse

    int64 = uint64 = trailing_zeros = int
else:

    class _Listener(event.Listener):  # type: ignore[misc]
        """Stops the clocks of a thread while numba compiles or loads code there, or waits for its lock.

        The first compilation of the library's own code in this process is announced.
        """

        told = False

        def on_start(self, part: Any) -> None:
            if not global_compiler_lock.is_locked():  # by this thread: no part of another compilation
                STANDSTILL.begin()
            if not self.told and part.data and part.data["dispatcher"].__module__.startswith("forcopt."):
                self.told = True
                text = "compiling code, once after an installation; this may take two minutes"
                logging.getLogger("forcopt").warning(text)

        def on_end(self, _: Any) -> None:
            if not global_compiler_lock.is_locked():
                STANDSTILL.end()

    _listener = _Listener()
    for _kind in ("numba:compiler_lock", "numba:compile"):
        event.register(_kind, _listener)
