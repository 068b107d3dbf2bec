"""Functions that numba compiles: a module that has them can be imported without numba, but not call them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from forcopt.clock import STANDSTILL
from forcopt.errors import NotInstalledError, lack_of
from forcopt.version import __version__

__all__ = ["int64", "njit", "trailing_zeros", "uint64"]

F = TypeVar("F", bound=Callable[..., Any])

lack = ""
"""Why there is no numba, if so."""

try:
    from numba import int64, uint64
    from numba import njit as _njit
    from numba.core import event
    from numba.core.caching import FunctionCache
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.dispatcher import Dispatcher
    from numba.cpython.unsafe.numbers import trailing_zeros
except ImportError as error:
    lack = str(lack_of("numba", "this", error))
    int64 = uint64 = trailing_zeros = int
else:

    class _Kept(FunctionCache):  # type: ignore[misc]
        """Compiled code in a folder, used while no file of a kernel in it has changed.

        An error of the folder costs a compilation, and ends no run.
        """

        def __init__(self, function: Any) -> None:
            super().__init__(function)
            files = map(Path, sorted(_files(function.__globals__)))
            digests = [sha256(file.read_bytes()).digest() for file in files if file.exists()]
            self._cache_file._source_stamp = __version__, digests

        def load_overload(self, *of: Any) -> Any:
            with suppress(Exception):  # whatever a broken file makes pickle raise
                return super().load_overload(*of)
            with suppress(OSError):
                self.flush()
            return None

        def save_overload(self, *of: Any) -> None:
            with suppress(OSError):  # the disk is full, for instance
                super().save_overload(*of)

    def _files(names: dict[str, Any]) -> set[str]:
        """The file of a module, and those of kernels that it imports: their code becomes part of its own."""
        kernels = [kernel.py_func.__globals__ for kernel in names.values() if isinstance(kernel, Dispatcher)]
        others = {other["__file__"]: other for other in kernels if other is not names}
        return {names["__file__"]}.union(*map(_files, others.values()))

    class _Listener(event.Listener):  # type: ignore[misc]
        """Stops the clocks of a thread while numba compiles or loads code there, or waits for its lock.

        The first compilation of the library's own code in this process is announced.
        """

        told, kept = False, True

        def on_start(self, part: Any) -> None:
            if not global_compiler_lock.is_locked():  # by this thread: no part of another compilation
                STANDSTILL.begin()
            if not self.told and part.data and part.data["dispatcher"].__module__.startswith("forcopt."):
                self.told = True
                often = "once after an installation" if self.kept else "in each process, see forcopt doctor"
                logging.getLogger("forcopt").warning(f"compiling code, {often}; this may take two minutes")

        def on_end(self, _: Any) -> None:
            if not global_compiler_lock.is_locked():
                STANDSTILL.end()

    _listener = _Listener()
    for _kind in ("numba:compiler_lock", "numba:compile"):
        event.register(_kind, _listener)


def njit(**options: Any) -> Callable[[F], Callable[..., Any]]:
    """Compile a function at its first call, and keep the code in a folder where one can be written.

    Without numba, the function names the missing package.
    """

    def compiled(function: F) -> Callable[..., Any]:
        if lack:

            @wraps(function)
            def refused(*_: object, **__: object) -> None:
                raise NotInstalledError(lack)

            return refused
        kernel = _njit(**{**options, "cache": False})(function)
        if options.get("cache") and isinstance(kernel, Dispatcher):  # else NUMBA_DISABLE_JIT is set
            try:
                kernel._cache = _Kept(function)  # type: ignore[attr-defined]
            except RuntimeError:  # no folder can be written
                _listener.kept = False
        return kernel  # type: ignore[no-any-return]

    return compiled
