"""``forcopt panel``: the files, the page, the draw, and what is wrong with a file."""

import csv
import hashlib
import json
import re

import pytest
from typer.testing import CliRunner

from forcopt.cli import app
from forcopt.models import LeximaxCohort
from forcopt.models.leximax_cohort import verify_lottery

QUOTAS = "feature,value,min,max\nsex,f,2,2\nsex,m,1,2\nage,young,1,2\nage,old,1,2\narea,N,1,2\narea,S,1,2\n"


@pytest.fixture
def panel(monkeypatch, tmp_path):
    """Run the command in a folder with the files of 12 people and six quotas."""
    monkeypatch.chdir(tmp_path)
    rows = [
        f"P{i:02},{'fm'[i % 2]},{'young' if i % 3 else 'old'},{'NS'[i % 4 > 1]},{i // 2}" for i in range(12)
    ]
    (tmp_path / "people.csv").write_text("id,sex,age,area,home\n" + "\n".join(rows) + "\n")
    (tmp_path / "quotas.csv").write_text(QUOTAS)

    def run(*words):
        files = ["people.csv", "quotas.csv", "--size", "3", "--id", "id", "--panels", "100"]
        return CliRunner().invoke(app, ["panel", *files, *words])

    return run


def test_the_whole_job(panel, tmp_path):
    done = panel("-o", "report.html", "--household", "home", "--thrown", "47", "--reserves", "2", "--json")
    assert done.exit_code == 0, done.output
    known = json.loads(done.stdout)
    problem = LeximaxCohort.from_candidates("people.csv", "quotas.csv", 3, identifier="id", household="home")
    for ending in ("csv", "json"):
        lottery = verify_lottery(problem, tmp_path / f"report.{ending}")
        assert len(lottery.panels) == 100 and known["members"] == ", ".join(lottery.members(47))
    assert known["status"] == "optimal" and not set(known["reserves"].split(", ")) & set(lottery.members(47))
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Panel 47 was drawn" in page and known["reserves"] in page
    assert hashlib.sha256((tmp_path / "report.csv").read_bytes()).hexdigest() in page
    # the page needs no network, and every picture has a text
    assert "<script" not in page and not re.search(r'(src|href)="http', page)
    assert page.count('role="img" aria-label="') == 2
    for value, count in (("sex = f", 6), ("age = old", 4)):
        assert re.search(rf'{value}</th><td class="number">[\d–]+</td><td class="number">{count}</td>', page)


def test_a_drawn_panel_is_one_of_the_published_ones(panel, tmp_path):
    known = json.loads(panel("--draw", "--json").stdout)
    with (tmp_path / "panel.csv").open() as file:
        rows = {row[0]: ", ".join(row[1:]) for row in csv.reader(file)}
    assert rows[known["drawn"]] == known["members"]
    parts = [list(csv.reader((tmp_path / f"panel-{word}.csv").open())) for word in ("selected", "remaining")]
    assert {row[0] for row in parts[0][1:]} == set(known["members"].split(", "))
    pool = list(csv.reader((tmp_path / "people.csv").open()))
    assert parts[0][0] == parts[1][0] == pool[0] and sorted(parts[0][1:] + parts[1][1:]) == sorted(pool[1:])


def test_a_fix_that_drops_a_row_and_a_draw(panel, tmp_path):
    """The people of both files are those that the draw names, without the dropped one."""
    done = panel("--thrown", "7", "--json", "--fix", "P05=")
    assert done.exit_code == 0, done.output
    parts = [list(csv.reader((tmp_path / f"panel-{w}.csv").open())) for w in ("selected", "remaining")]
    chosen, others = ([row[0] for row in part[1:]] for part in parts)
    assert json.loads(done.stdout)["members"] == ", ".join(chosen)
    assert sorted(chosen + others) == [f"P{i:02}" for i in range(12) if i != 5]


def test_members_stay_and_others_fill_the_places(panel):
    known = json.loads(panel("--thrown", "05", "--keep", "P00", "--drop", "P01", "--json").stdout)
    assert "P00" in known["members"] and "P01" not in known["members"]


def test_faults_are_listed_by_row_and_column(panel, tmp_path):
    text = (tmp_path / "people.csv").read_text().replace("P03,m,old", "P03,m,olld").replace("P05,m", "P04,m")
    (tmp_path / "people.csv").write_text(text)
    done = panel("--json")
    assert done.exit_code == 2
    cells = [tuple(f.values()) for f in json.loads(done.stdout)["findings"]]
    assert ("candidates", 5, "age", "olld", "has no quota", "old") in cells
    assert ("candidates", 7, "id", "P04", "is in row 6, too; delete one, or rename it", "") in cells
    lines = panel().stdout.splitlines()
    assert len(lines) == 2 + len(cells) and "olld" in "".join(lines)
    assert not (tmp_path / "panel.html").exists()


def test_quotas_that_contradict_each_other_propose_the_least_relaxation(panel, tmp_path):
    both = QUOTAS.replace("sex,f,2,2", "sex,f,3,3").replace("sex,m,1,2", "sex,m,0,2")
    rows = (tmp_path / "people.csv").read_text().replace(",f,young", ",f,old")
    (tmp_path / "people.csv").write_text(rows)
    (tmp_path / "quotas.csv").write_text(both.replace("young,1,2", "young,1,3"))
    done = panel()
    assert done.exit_code == 1 and "the least relaxation: 1 fewer of" in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--draw", "--thrown", "3"), "--thrown is 3; --draw draws a number itself"),
        (("--reserves", "2"), "they are of a drawn panel"),
        (("--thrown", "100"), "number is '100'; it must be one of 00 to 99"),
        (("-o", "page.txt"), "the name must end in .html"),
        (("--keep", "P99"), "'P99' is no candidate"),
        (("--id", "name"), "name"),
    ],
)
def test_bad_options_are_refused(panel, words, message):
    done = panel(*words)
    assert done.exit_code == 2 and message in done.stderr + done.stdout
