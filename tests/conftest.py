"""Data and solvers that a machine may lack: tests that need them skip, and say so."""

import signal
from collections.abc import Generator
from pathlib import Path

import pytest

from forcopt.errors import NotInstalledError


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of public data beside the repository; tests that need it skip where it is missing."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"there is no public data at {folder}")
    return folder


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, None, None]:
    """Skip a test whose solver is no Python package, such as GLPK or CBC, and is not there."""
    try:
        return (yield)
    except NotInstalledError as error:
        if "executable" not in str(error):
            raise
        pytest.skip(str(error))


# A shell starts background jobs with interrupts ignored, which their children inherit; tests interrupt runs.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
