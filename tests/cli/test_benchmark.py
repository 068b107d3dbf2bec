import json
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
