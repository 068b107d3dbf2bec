"""Names of the last release stay: `public_names.txt` lists them, and a release writes it anew.

python tests/test_deprecated.py > tests/public_names.txt
"""

import pkgutil
from importlib import import_module
from pathlib import Path

import pytest

import forcopt
from forcopt import deprecated

LIST = Path(__file__).with_name("public_names.txt")


def public_names():
    """Every name of a package's `__all__`, with its package."""
    packages = ["forcopt", *(m.name for m in pkgutil.walk_packages(forcopt.__path__, "forcopt.") if m.ispkg)]
    return sorted(f"{p}.{name}" for p in packages for name in getattr(import_module(p), "__all__", ()))


def test_every_name_of_the_last_release_is_there_or_warns():
    lost = []
    for name in LIST.read_text(encoding="utf-8").split():
        package, _, last = name.rpartition(".")
        if name not in deprecated.RENAMED and not hasattr(import_module(package), last):
            lost.append(name)
    assert not lost, f"forcopt.deprecated.RENAMED should lead to what these are now: {lost}"


def test_an_old_name_works_and_warns(monkeypatch):
    monkeypatch.setitem(deprecated.RENAMED, "forcopt.Programme", "forcopt.Model")
    with pytest.warns(DeprecationWarning, match=r"forcopt\.Programme is now forcopt\.Model"):
        assert forcopt.Programme is forcopt.Model


@pytest.mark.parametrize("old", sorted(deprecated.RENAMED))
def test_an_old_name_leads_somewhere(old):
    package, _, name = old.rpartition(".")
    with pytest.warns(DeprecationWarning):  # a package needs a __getattr__ that asks RENAMED
        assert getattr(import_module(package), name) is not None


if __name__ == "__main__":
    print("\n".join(public_names()))
