import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))  # the rucksack problem, which the runs import too
collect_ignore = ["rucksack.py"]


@pytest.fixture(autouse=True)
def bad_backends(monkeypatch):
    from rucksack import BACKENDS

    from forcopt.backends import registry

    registry.backends()  # all sound ones first
    for name, backend in BACKENDS.items():
        monkeypatch.setitem(registry._BACKENDS, name, backend)
