import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The built site, one for all processes of a test run; the build has no network."""
    pytest.importorskip("mkdocs")
    pytest.importorskip("mkdocstrings")
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
    folder = shared / "site"
    with (shared / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "index.html").exists():
            built = subprocess.run(
                [sys.executable, "-c", OFFLINE, "build", "--quiet", "--strict", "--site-dir", str(folder)],
                cwd=ROOT,
                env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "MPLBACKEND": "Agg"},
                capture_output=True,
                text=True,
                timeout=600,
            )
            assert built.returncode == 0, built.stdout + built.stderr
    return folder


OFFLINE = """
import socket, sys

def refuse(self, address):
    raise OSError(f"the build of the site asks the network for {address}")

if hasattr(socket, "AF_INET"):
    socket.socket.connect = lambda self, address: refuse(self, address)
from mkdocs.__main__ import cli
cli(sys.argv[1:])
"""
"""MkDocs without a way to the network."""
