"""Every notebook runs from its first cell to its last and shows its pictures; the site has the outputs."""

import json
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "docs" / "notebooks").glob("*.ipynb"))


def test_there_are_six_without_outputs():
    assert len(NOTEBOOKS) == 6
    for path in NOTEBOOKS:
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            assert cell.get("outputs", []) == [] and cell.get("execution_count") is None


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_runs(path, tmp_path):
    client = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    if path.stem == "fair_classifier":
        pytest.importorskip("sklearn")
    book = nbformat.read(path, as_version=4)
    client.NotebookClient(
        book, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    cells = [cell for cell in book.cells if cell.cell_type == "code"]
    drawn = [cell for cell in cells if ".plot(" in cell.source]
    assert drawn
    for cell in drawn:
        assert any("image/png" in output.get("data", {}) for output in cell.outputs), cell.source
