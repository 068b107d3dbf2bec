import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from forcopt.cli import app
from forcopt.cli.benchmark import readme

ROOT = Path(__file__).resolve().parents[2]

RUN = """
import argparse, json, pathlib
parser = argparse.ArgumentParser()
parser.add_argument("--out", type=pathlib.Path)
parser.add_argument("--quick", action="store_true")
options = parser.parse_args()
options.out.write_text(f"measured, quick={options.quick}")
rows = [{"what": "a", "ours": "1 s", "peers": "peer 2 s", "ratio": "2"}]
told = {"title": "Test", "conditions": "Now.", "table": "results.md", "rows": rows}
options.out.with_name("headline.json").write_text(json.dumps(told))
"""


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A folder that looks like the repository, with a benchmark that works and one that fails."""
    monkeypatch.chdir(tmp_path)
    Path("forcopt").mkdir()
    for name, code in (("good", RUN), ("bad", "raise SystemExit(3)")):
        Path("benchmarks", name).mkdir(parents=True)
        Path("benchmarks", name, "run.py").write_text(code)
    return lambda *words: CliRunner().invoke(app, ["benchmark", *words])


def test_a_benchmark_rewrites_its_table_and_the_page(checkout):
    assert checkout("good").exit_code == 0
    assert Path("benchmarks/good/results.md").read_text() == "measured, quick=False"
    page = Path("benchmarks/README.md").read_text()
    assert "## Test" in page and "| a | 1 s | peer 2 s | 2 |" in page and "(good/results.md)" in page


def test_a_short_run_is_shown_and_changes_nothing(checkout):
    said = checkout("good", "--quick")
    assert said.exit_code == 0 and "measured, quick=True" in said.stdout
    assert sorted(path.name for path in Path("benchmarks/good").iterdir()) == ["run.py"]
    assert not Path("benchmarks/README.md").exists()


def test_one_that_fails_does_not_stop_the_others(checkout):
    said = checkout()
    assert said.exit_code == 1 and "failed: bad" in said.stderr
    assert Path("benchmarks/good/results.md").exists()


def test_they_are_listed_and_unknown_ones_refused(checkout):
    assert checkout("--list").stdout.split() == ["bad", "good"]
    said = checkout("god")
    assert said.exit_code == 2 and "did you mean 'good'" in said.stderr


def test_the_committed_page_is_that_of_the_committed_headlines():
    assert (ROOT / "benchmarks" / "README.md").read_text() == readme(ROOT / "benchmarks")
    for path in (ROOT / "benchmarks").glob("*/headline.json"):
        told = json.loads(path.read_text())
        assert path.with_name(told["table"]).is_file() and told["rows"]
        assert all(set(row) == {"what", "ours", "peers", "ratio"} for row in told["rows"])


def folders():
    """Those of benchmarks/ that hold a benchmark."""
    return sorted({path.parent.name for path in (ROOT / "benchmarks").glob("*/*.md")})


@pytest.mark.parametrize("name", folders())
def test_every_benchmark_has_a_headline_and_can_be_run(name):
    folder = ROOT / "benchmarks" / name
    assert (folder / "headline.json").is_file()
    said = subprocess.run(
        [sys.executable, folder / "run.py", "--help"], capture_output=True, text=True, check=True
    )
    assert "--out" in said.stdout and "--quick" in said.stdout


@pytest.fixture
def shared(monkeypatch):
    """Imports from benchmarks/, as its scripts do."""
    monkeypatch.syspath_prepend(ROOT)


def test_a_page_tells_the_load_from_its_start_to_its_end(shared, tmp_path, monkeypatch):
    from benchmarks.report import Page, row

    loads = iter([0.25, 7.5, 9.0])
    monkeypatch.setattr(os, "getloadavg", lambda: (next(loads), 0.0, 0.0))
    monkeypatch.setattr(sys, "argv", [str(ROOT / "benchmarks" / "test" / "run.py")])
    page = Page("Test", tmp_path / "results.md", "numpy", note="Noted.")
    page.run({"Part": lambda quick: (f"quick={quick}", [row("a", "1 s")])}, quick=True)
    text = (tmp_path / "results.md").read_text()
    assert "load average 0.2 at the start, 7.5 at the end" in text
    assert "Made by `python benchmarks/test/run.py`" in text and text.endswith("## Part\n\nquick=True\n")
    told = json.loads((tmp_path / "headline.json").read_text())
    assert "9.0 at the end. Noted." in told["conditions"] and told["table"] == "results.md"
    assert told["rows"] == [{"what": "a", "ours": "1 s", "peers": "-", "ratio": "-"}]


def test_data_that_is_missing_is_an_error(shared):
    from benchmarks.report import data

    with pytest.raises(SystemExit, match=r"no-such\.csv, which is missing"):
        data("tabular/no-such.csv")


def test_an_interrupted_run_goes_on_and_an_ended_one_begins_anew(shared, tmp_path):
    from benchmarks.districting.journal import Journal, read

    rows = tmp_path / "part.csv"
    Journal(tmp_path, "part", "n").add({"n": 1, "seconds": 2.0})
    assert read(rows) == []  # interrupted
    journal = Journal(tmp_path, "part", "n")
    assert (1,) in journal and (2,) not in journal
    journal.add({"n": 2, "seconds": 3.0})
    journal.finish()
    assert [r["n"] for r in read(rows)] == ["1", "2"] and "load" in read(rows)[0]
    journal = Journal(tmp_path, "part", "n")
    assert (1,) not in journal
    journal.add({"n": 3, "seconds": 4.0})
    assert len(read(rows)) == 2  # until it has ended
    journal.finish()
    assert [r["n"] for r in read(rows)] == ["3"]


def test_the_table_of_districting_is_that_of_its_committed_rows(shared):
    from benchmarks.districting import tables

    folder = ROOT / "benchmarks" / "districting"
    assert (folder / "results.md").read_text().endswith(tables.body(folder))
