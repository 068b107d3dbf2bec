"""The ten finished studies have all parts, and the gallery and the navigation name them."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
STUDIES = sorted((DOCS / "studies").glob("*.md"))


def test_there_are_ten_in_the_gallery_and_in_the_navigation():
    names = [path.name for path in STUDIES]
    assert len(names) == 10
    for page in (DOCS / "gallery.md", DOCS.parent / "mkdocs.yml"):
        text = page.read_text(encoding="utf-8")
        assert sorted(re.findall(r"studies/(\w+\.md)", text)) == names, page


@pytest.mark.parametrize("path", STUDIES, ids=lambda p: p.stem)
def test_a_study_is_finished(path):
    text = path.read_text(encoding="utf-8")
    parts = ["**Question.**", "**Answer.**", "## Model", "## Conclusion", "\nSource: "]
    places = [text.find(part) for part in parts]
    assert places == sorted(places) and places[0] > 0
    assert '"optimal"' in text or ".certify().optimal" in text or "proof.optimal" in text
    drawn = re.findall(r'"(study-\w+\.svg)"', text)
    assert drawn == re.findall(r"\]\(\.\./img/drawn/(.*)\)", text) != []
    assert f"(img/drawn/{drawn[0]})" in (DOCS / "gallery.md").read_text(encoding="utf-8")
