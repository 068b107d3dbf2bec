"""Memory limits: the bytes that a run may take, asked for before tables grow and read from the system.

Linux grants memory that it does not have, and ends a process when the memory is used. So searches ask first.
"""

from __future__ import annotations

import ctypes
import gc
import math
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from numbers import Real
from pathlib import Path
from typing import cast

from forcopt.errors import require

_EVERY = 0.01
"""Seconds between two looks at the size of the process."""

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_UNITS |= {f"{name}i": 1024**power for power, name in enumerate("kmgt", 1)}

_SMALL = 10**6
"""For arrays of fewer bytes, the size of the process is not read each time."""

_UNLIMITED = 2**62
"""The first version of control groups writes a number of this size for no limit."""


def bytes_of(limit: float | str) -> int:
    """Read a number of bytes.

    Parameters
    ----------
    limit : float or str
        Bytes, or text with a unit: ``"800 MB"``, ``"4GB"``, ``"1.5 GiB"``.

    Returns
    -------
    int
        The bytes.

    Raises
    ------
    DeclarationError
        If it is no positive number of bytes.

    Examples
    --------
    >>> bytes_of("1.5 GB"), bytes_of("2 KiB"), bytes_of(10**6)
    (1500000000, 2048, 1000000)
    """
    size, given = math.nan, cast(object, limit)
    if isinstance(limit, str):
        match = re.fullmatch(r"\s*(\d+\.?\d*(?:e\d+)?)\s*([kmgt]i?|)b?\s*", limit.lower())
        if match:
            size = float(match[1]) * _UNITS[match[2]]
    elif not isinstance(given, bool) and isinstance(given, Real):
        size = float(given)
    rule = "be a positive number of bytes, or text such as '4 GB'"
    require(1 <= size < _UNLIMITED, "memory_limit", limit, rule)
    return int(size)


def resident() -> int:
    """Give the bytes of this process that lie in memory.

    Returns
    -------
    int
        On Linux the present size. On other systems with the module ``resource`` the largest size so far, and
        0 elsewhere, where only the sizes count that tables ask for.

    Examples
    --------
    >>> resident() >= 0
    True
    """
    with suppress(OSError):
        return int(Path("/proc/self/statm").read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    try:
        import resource
    except ImportError:  # not on Windows
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def available(root: str | Path = "/") -> int | None:
    """Give the bytes that this process can still take.

    Parameters
    ----------
    root : str or Path, default "/"
        Where the system's files lie.

    Returns
    -------
    int or None
        The least of what the machine has free, of what the control groups of the process (version 1 or 2,
        such as a container's) leave, and of what the limits of the process leave. Elsewhere than on Linux the
        memory of the machine less the size of the process; None if that is unknown.

    Examples
    --------
    >>> free = available()
    >>> free is None or free >= 0
    True
    """
    root = Path(root)
    found = []
    try:
        lines = (line.split() for line in (root / "proc/meminfo").read_text().splitlines())
        found.append(next(1024 * int(line[1]) for line in lines if line[0] == "MemAvailable:"))
    except (OSError, StopIteration):
        with suppress(AttributeError, OSError, ValueError):  # os.sysconf is not on Windows
            found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") - resident())
    return min([*found, *_left_by_groups(root), *_left_by_limits()], default=None)


def _left_by_groups(root: Path) -> Iterator[int]:
    """What each control group of the process leaves; pages of files can be given back."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        number, controllers, place = line.split(":", 2)
        if number == "0":
            top, limit, used, cache = root / "sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"
        elif "memory" in controllers.split(","):
            top, limit = root / "sys/fs/cgroup/memory", "memory.limit_in_bytes"
            used, cache = "memory.usage_in_bytes", "total_inactive_file"
        else:
            continue
        inner = top / place.strip("/")  # in a container, this group is often the top itself
        for folder in (inner, *inner.parents):
            with suppress(OSError, ValueError):  # "max" is no number
                most = int((folder / limit).read_text())
                if most < _UNLIMITED:
                    stat = dict(entry.split() for entry in (folder / "memory.stat").read_text().splitlines())
                    yield max(most - (int((folder / used).read_text()) - int(stat.get(cache, 0))), 0)
            if folder == top:
                break


def _left_by_limits() -> Iterator[int]:
    """What the limits of the process on its addresses and its data leave."""
    with suppress(ImportError, OSError):
        import resource

        sizes = Path("/proc/self/statm").read_bytes().split()
        for kind, place in ((resource.RLIMIT_AS, 0), (resource.RLIMIT_DATA, 5)):
            most = resource.getrlimit(kind)[0]
            if most != resource.RLIM_INFINITY:
                yield max(most - int(sizes[place]) * os.sysconf("SC_PAGE_SIZE"), 0)


class MemoryBudget:
    """The bytes that a run may take beyond those that its process holds when the run begins.

    Parameters
    ----------
    limit : float or str, optional
        See `bytes_of`. By default half of what is `available` when a search first asks.

    Raises
    ------
    DeclarationError
        If the limit is no positive number of bytes.

    Attributes
    ----------
    reached : bool
        Whether the limit was reached since the run began, even if memory was freed then.

    Notes
    -----
    A search asks `reserve` before a table grows, and `Deadline.passed`, which asks `passed`, while it runs.
    `reserve` raises `MemoryError`, so that a search can go on with less: with a shorter list, for instance.

    Examples
    --------
    >>> budget = MemoryBudget("1 TB")
    >>> budget.passed, budget.end
    (False, 'the memory limit of 1 TB is reached')
    >>> budget.reserve(2 * 10**12)
    Traceback (most recent call last):
    MemoryError: the memory limit of 1 TB is reached
    """

    def __init__(self, limit: float | str | None = None) -> None:
        self._given = None if limit is None else bytes_of(limit)
        self._most: float | None = None
        self._next = time.monotonic() + _EVERY  # a run that ends before costs no look
        self.reached = False
        if limit is not None:
            self._most = resident() + self.limit

    @property
    def limit(self) -> float:
        """The bytes that the run may take; infinite if that is unknown."""
        if self._given is None:
            free = available()
            self._given = _UNLIMITED if free is None else max(free // 2, 1)
        return math.inf if self._given >= _UNLIMITED else self._given

    @property
    def most(self) -> float:
        """The bytes that the process may hold; fixed when first asked for."""
        if self._most is None:
            self._most = resident() + self.limit
        return self._most

    @property
    def left(self) -> float:
        """The bytes that the run may still take."""
        return max(self.most - resident(), 0.0)

    def reserve(self, size: float) -> None:
        """Ask for bytes before a table grows.

        Parameters
        ----------
        size : float
            How many.

        Raises
        ------
        MemoryError
            If they exceed what is left.
        """
        if size > self.left:
            _give_back()
            if size > self.left:
                self.reached = True
                raise MemoryError(self.end)

    @property
    def passed(self) -> bool:
        """Whether the process holds more than it may; read from the system at most every 0.01 s."""
        now = time.monotonic()
        if now < self._next:
            return False
        if resident() > self.most:
            _give_back()
            if resident() > self.most:  # read again at the next question: a search may have freed memory
                self.reached = True
                return True
        self._next = now + _EVERY
        return False

    @property
    def end(self) -> str:
        """The reason of the end, for messages."""
        size, unit = self.limit, "B"
        for name in ("kB", "MB", "GB", "TB"):
            if size >= 1000:
                size, unit = size / 1000, name
        return f"the memory limit of {size:.4g} {unit} is reached"


def _give_back() -> None:
    """Return freed memory to the system, where the allocator keeps it."""
    gc.collect()
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # other C libraries have no such function
            ctypes.CDLL(None).malloc_trim(0)


_CURRENT: ContextVar[MemoryBudget | None] = ContextVar("memory", default=None)


def memory_budget() -> MemoryBudget:
    """Give the budget of the run around this call, or else a new one of the default size.

    Returns
    -------
    MemoryBudget
        One for all searches of a run.

    Examples
    --------
    >>> with memory_limited("2 GB") as budget:
    ...     memory_budget() is budget
    True
    """
    return _CURRENT.get() or MemoryBudget()


def claim_memory(size: float = 0.0) -> None:
    """Ask the budget of the run around this call, if there is one, while a model is built or compiled.

    Parameters
    ----------
    size : float, default 0.0
        The bytes of an array that is about to be made.

    Raises
    ------
    MemoryError
        If they exceed what is left.

    Examples
    --------
    >>> claim_memory(10**18)  # outside of runs the system decides
    >>> with memory_limited("2 GB"):
    ...     claim_memory(10**18)
    Traceback (most recent call last):
    MemoryError: the memory limit of 2 GB is reached
    """
    budget = _CURRENT.get()
    if budget is not None and size >= _SMALL:
        budget.reserve(size)
    elif budget is not None and budget.passed:
        raise MemoryError(budget.end)


def exempt_memory(size: float) -> None:
    """Take bytes that the process holds from now on, such as compiled code, off the run around this call.

    Parameters
    ----------
    size : float
        How many; nothing happens if it is negative.

    Examples
    --------
    >>> with memory_limited("1 MB") as budget:
    ...     exempt_memory(10**12)
    ...     budget.left > 10**11
    True
    """
    budget = _CURRENT.get()
    if budget is not None and budget._most is not None:
        budget._most += max(size, 0)


@contextmanager
def memory_limited(limit: float | str | None = None) -> Iterator[MemoryBudget]:
    """Give the runs of the body one budget of memory; a stricter one around it stays.

    Parameters
    ----------
    limit : float or str, optional
        See `MemoryBudget`.

    Yields
    ------
    MemoryBudget
        The budget.

    Raises
    ------
    DeclarationError
        If the limit is no positive number of bytes.
    """
    outer, budget = _CURRENT.get(), MemoryBudget(limit)
    if outer is not None and (limit is None or outer.most <= budget.most):
        budget = outer
    token = _CURRENT.set(budget)
    try:
        yield budget
    finally:
        _CURRENT.reset(token)
