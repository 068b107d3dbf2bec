"""Each row of the mutants fits the code and names tests that exist; the table is of these rows."""

import importlib.util
import re
from pathlib import Path

import pytest
from mutants.run import ROOT, line, mutants


@pytest.mark.parametrize("row", mutants(), ids=lambda row: f"{Path(row.file).stem}-{row.claim}")
def test_a_row_fits_the_code(row):
    assert (ROOT / row.file).read_text(encoding="utf-8").count(row.old) == 1
    assert row.old != row.new
    for test in row.tests:
        path, _, name = test.partition("::")
        source = (ROOT / path).read_text(encoding="utf-8")
        assert not name or re.search(rf"def {re.escape(name.partition('[')[0])}\(", source), test


def test_what_kills_a_mutant_runs_every_day():
    """In the root's `conftest`, no test that a row names is drawn or nightly."""
    spec = importlib.util.spec_from_file_location("tiers", ROOT / "conftest.py")
    tiers = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tiers)
    named = {test for row in mutants() for test in row.tests}
    assert not [test for test in named if test.startswith((*tiers.NIGHTLY, *tiers.DRAWN))]


def test_the_table_has_each_row_and_no_survivor():
    """After a change of a row: ``python tests/mutants/run.py --only TEXT``, and its line in the table."""
    table = Path(__file__).with_name("results.md").read_text(encoding="utf-8")
    lines = [text for text in table.splitlines() if text.startswith(("| forcopt/", "| models/"))]
    assert f"{len(lines)} mutants, 0 survive" in table
    for row, found in zip(mutants(), lines, strict=True):
        cells = row.file, row.claim, line(row.old), line(row.new)
        assert found.startswith("| " + " | ".join(cells) + " | tests/"), row.claim
