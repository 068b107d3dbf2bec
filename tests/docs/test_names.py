"""Every public name has a line in the guide: the reference alone tells nobody what a name is for."""

import pkgutil
import re
from importlib import import_module
from pathlib import Path

import pytest

import forcopt

DOCS = Path(__file__).parents[2] / "docs"
PACKAGES = ["forcopt", *(m.name for m in pkgutil.walk_packages(forcopt.__path__, "forcopt.") if m.ispkg)]


@pytest.fixture(scope="module")
def words():
    """The words of all pages and notebooks."""
    pages = [page for kind in ("*.md", "*.ipynb") for page in DOCS.rglob(kind)]
    return set(re.findall(r"\w+", "\n".join(page.read_text(encoding="utf-8") for page in pages)))


@pytest.mark.parametrize("package", PACKAGES)
def test_each_public_name_stands_in_the_guide(package, words):
    missing = sorted(set(getattr(import_module(package), "__all__", ())) - words)
    assert not missing, f"a page of docs/ should say what they are for: {', '.join(missing)}"
