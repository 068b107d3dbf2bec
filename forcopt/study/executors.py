"""Executors by address: several processes or threads of this machine, or a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager

from forcopt.errors import DeclarationError, NotInstalledError

__all__ = ["executor_at"]


@contextmanager
def executor_at(address: str) -> Iterator[Executor]:
    """Open the executor at an address, and close it at the end.

    Parameters
    ----------
    address : str
        ``processes:N`` or ``threads:N`` for N workers on this machine, or ``dask://HOST:PORT`` for the
        scheduler of a Dask cluster.

    Yields
    ------
    Executor
        For `compare`, `sweep` and `replicate`.

    Raises
    ------
    DeclarationError
        For another address, or fewer than one worker.
    NotInstalledError
        If Dask is missing.

    Examples
    --------
    >>> with executor_at("threads:2") as executor:
    ...     list(executor.map(abs, [-1, 2]))
    [1, 2]
    """
    kind, _, rest = address.partition(":")
    if kind == "dask":
        try:
            from distributed import Client
        except ImportError:
            raise NotInstalledError(
                "an executor dask://... needs Dask; install it with: pip install 'dask[distributed]'"
            ) from None
        with Client(f"tcp:{rest}") as client:  # type: ignore[no-untyped-call]
            yield client.get_executor(pure=False)
        return
    pools: dict[str, type[Executor]] = {"processes": ProcessPoolExecutor, "threads": ThreadPoolExecutor}
    if kind not in pools or not rest.isdecimal() or int(rest) < 1:
        raise DeclarationError(
            f"executor is {address!r}; it must be processes:N, threads:N or dask://HOST:PORT"
        )
    with pools[kind](int(rest)) as pool:  # type: ignore[call-arg]
        yield pool
