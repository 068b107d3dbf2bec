"""Every Python block of the README, CONTRIBUTING and the guide runs, in order, a namespace a page."""

import re
import sys
import types
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # pages may write files
    monkeypatch.setenv("MPLBACKEND", "Agg")
    text = page.read_text()
    assert not re.search(r"^```py$", text, re.MULTILINE), "a block that does not run"
    blocks = [(m.group(1), text[: m.start()].count("\n") + 2) for m in BLOCK.finditer(text)]
    module = types.ModuleType(f"page_{page.stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # classes of the page go into pickles
    for code, line in blocks:
        exec(compile("\n" * (line - 1) + code, str(page), "exec"), vars(module))
