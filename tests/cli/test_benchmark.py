import json
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

import forcopt as fo
from benchmarks.__main__ import configured, main, readme
from benchmarks.history import record
from benchmarks.solvers.rules import ranking, shifted_geometric_mean, wins
from forcopt.backends import registry
from forcopt.cli import app

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
    return lambda *words: main(words, Path("benchmarks"))


def test_a_benchmark_rewrites_its_table_and_the_page(checkout):
    assert checkout("good") == 0
    assert Path("benchmarks/good/results.md").read_text() == "measured, quick=False"
    page = Path("benchmarks/README.md").read_text()
    assert "## Test" in page and "| a | 1 s | peer 2 s | 2 |" in page and "(good/results.md)" in page


def test_a_short_run_is_shown_and_changes_nothing(checkout, capsys):
    assert checkout("good", "--quick") == 0 and "measured, quick=True" in capsys.readouterr().out
    assert sorted(path.name for path in Path("benchmarks/good").iterdir()) == ["run.py"]
    assert not Path("benchmarks/README.md").exists()


def test_one_that_fails_does_not_stop_the_others(checkout, capsys):
    assert checkout() == 1 and "failed: bad" in capsys.readouterr().err
    assert Path("benchmarks/good/results.md").exists()


def test_they_are_listed_and_unknown_ones_refused(checkout, capsys):
    assert checkout("--list") == 0 and capsys.readouterr().out.split() == ["bad", "good"]
    with pytest.raises(ValueError, match="did you mean 'good'"):
        checkout("god")


def test_a_machine_that_is_not_quiet_is_refused(checkout, monkeypatch):
    monkeypatch.setattr("benchmarks.machine.load", lambda: 3.0)
    monkeypatch.setattr("benchmarks.machine.PATIENCE", 0.0)
    with pytest.raises(fo.DeclarationError, match=r"load is 3\.00"):
        checkout("good", "--quiet")


@pytest.fixture
def files(tmp_path):
    """A linear program, an integer one, and a published value."""
    for name, integer in (("plan", False), ("whole", True)):
        m = fo.Model(name)
        x = m.variable("x", 2, lower=0, upper=3, integer=integer)
        m.subject_to(2 * x[0] + 2 * x[1] <= 5)
        m.maximize(x.sum())
        m.write(tmp_path / f"{name}.mps")
    (tmp_path / "all.solu").write_text("=opt= plan 2.5\n")
    return tmp_path


def solved(told):
    """The runs of results.json that are solved."""
    return [row for row in told["runs"] if row["solved"]]


def test_solvers_are_ranked_from_the_command_line(files, capsys, tmp_path):
    out, store = tmp_path / "out", tmp_path / "runs.sqlite"
    words = [str(files), "--solvers", "highs,glop", "--seeds", "2", "--store", str(store), "--out", str(out)]
    run = CliRunner().invoke(app, ["benchmark", *words, "--options", "highs:presolve=off"])
    assert run.exit_code == 0, run.output
    told = json.loads((out / "results.json").read_text())
    assert {row["backend"] for row in told["runs"]} == {"highs[presolve=off]", "glop"}
    assert (
        told["machine"]["load"].count(" at the ") == 2
        and told["machine"]["processor"]
        and "highspy" in told["machine"]["versions"]
    )
    assert "  build" in run.output and "peak MB" in run.output and all(r["build"] >= 0 for r in solved(told))
    assert "Gould and Scott" in (out / "report.html").read_text() and "glop cannot take 1" in run.output
    assert len(list((out / "logs").iterdir())) == len(told["runs"]) == 2 * 2 * 2
    again = told["runs"][0]["command"].split()[2:]  # a row is made again by its command
    assert again[:2] == [str(files), "plan"] and main([w.strip("'") for w in again]) == 0
    capsys.readouterr()
    words[-1] = str(tmp_path / "second")
    assert main([*words, "--options", "highs:presolve=off", "--against", str(out / "results.json")]) == 0
    assert "4 runs in both; solved 4 -> 4" in capsys.readouterr().out
    (files / "all.solu").write_text("=inf= plan\n")
    assert main([str(files), "plan", "--solvers", "highs"]) == 1
    assert "wrong: plan: published claims infeasible, but model@highs found 2.5" in capsys.readouterr().out


def test_options_go_to_their_solver():
    assert configured("highs[a=1,b=2],scip", ["scip:c=3", "scip[c=3]:d=4"]) == [
        "highs[a=1,b=2]",
        "scip[c=3,d=4]",
    ]
    assert configured("highs,scip,highs[a=1]", ["highs:b=2", "highs:c=3"]) == [
        "highs[b=2,c=3]",
        "scip",
        "highs[a=1]",
    ]
    with pytest.raises(ValueError, match="did you mean 'scip'"):
        configured("scip", ["scp:c=3"])


@pytest.mark.parametrize("name", ["highs", "scip", "cp-sat", "glop"])
def test_an_option_that_a_solver_does_not_have_is_refused_before_anything_runs(name, files, monkeypatch):
    asked = []
    monkeypatch.setattr("benchmarks.solvers.solve.solver_benchmark", lambda *a, **k: asked.append(a))
    with pytest.raises(fo.UnknownNameError, match=f"solver '{name}.nope=1.': .* refuses .*nope"):
        main([str(files), "--solvers", name, "--options", f"{name}:nope=1"])
    assert not asked


def test_failed_runs_are_listed_and_end_with_an_error(files, capsys, tmp_path):
    (files / "broken.mps").write_text("no model")
    assert main([str(files), "--solvers", "highs", "--out", str(tmp_path / "out")]) == 1
    told = capsys.readouterr().out
    assert "highs: 1 run failed: " in told and "broken.mps" in told
    assert "highs: 1 run failed: " in (tmp_path / "out" / "report.html").read_text()
    assert "Empty DataFrame" not in told and "losses" not in told  # a solver alone has no pair


def test_a_tier_brings_its_published_optima(tmp_path, monkeypatch, capsys):
    tier = tmp_path / "instances" / "tiers" / "seconds"
    tier.mkdir(parents=True)
    m = fo.Model("plan")
    x = m.variable("x", lower=0, upper=3)
    m.maximize(x)
    m.write(tier / "plan-0.mps.gz")
    (tier / "features.csv").write_text("name,rows,columns,integers\nplan-0,0,1,0\n")
    (tmp_path / "instances" / "known-seconds.solu").write_text("=opt= plan-0 2.0\n")
    assert main(["--tier", "seconds", "--solvers", "highs"], tmp_path) == 1
    assert "wrong: plan-0: " in capsys.readouterr().out


def runs(**seconds):
    """The frame of solvers' seconds on instances; None is unsolved, 'no' refused."""
    pd = pytest.importorskip("pandas")
    known = {"class": "mixed", "variant": "0,0", "wrong": False}
    return pd.DataFrame(
        {
            **known,
            "instance": f"i{at}",
            "backend": name,
            "seconds": value if isinstance(value, float) else 60.0,
            "solved": isinstance(value, float),
            "refused": value == "no",
        }
        for name, values in seconds.items()
        for at, value in enumerate(values)
    )


def test_ranking_by_the_rules_of_the_field():
    frame = runs(a=[1.0, 7.0, None], b=[1.02, 3.0, 50.0], c=[0.5, 0.5, "no"])
    table = ranking(frame, 60.0).set_index("backend")
    assert table.index.tolist() == ["b", "a", "virtual best"]  # c refused one
    assert table.loc["a", "mean 1 s"] == pytest.approx((2 * 8 * 61) ** (1 / 3) - 1)
    assert table.loc["a", "PAR2"] == pytest.approx((1 + 7 + 120) / 3)
    assert table.loc["a", "PAR10"] == pytest.approx((1 + 7 + 600) / 3)
    assert table.loc["b", "first"] == 1.0 and table.loc["a", "first"] == pytest.approx(1 / 3)  # a tie
    assert table.loc["virtual best", "mean 1 s"] == pytest.approx((2 * 4 * 51) ** (1 / 3) - 1)
    assert table.loc["b", "ratio"] == 1.0 and table.loc["a", "solved"] == 2


def test_wins_have_ties_and_leave_out_refusals():
    table = wins(runs(a=[1.0, 7.0, None], b=[1.02, 3.0, 50.0], c=[0.5, None, "no"]), 60.0)
    found = {(row.solver, row.other): (row.wins, row.ties, row.losses) for row in table.itertuples()}
    assert found == {("a", "b"): (0, 1, 2), ("a", "c"): (1, 0, 1), ("b", "c"): (1, 0, 1)}


def test_shifted_geometric_mean():
    assert shifted_geometric_mean([2, 2, 2]) == pytest.approx(2)
    assert shifted_geometric_mean([0, 3], shift=1) == pytest.approx(1)
    assert shifted_geometric_mean([]) != shifted_geometric_mean([])


def test_the_committed_page_is_that_of_the_committed_headlines():
    assert (ROOT / "benchmarks" / "README.md").read_text() == readme(ROOT / "benchmarks")
    for path in (ROOT / "benchmarks").glob("*/headline.json"):
        told = json.loads(path.read_text())
        assert path.with_name(told["table"]).is_file() and told["rows"]
        assert all(set(row) == {"what", "ours", "peers", "ratio"} for row in told["rows"])


def test_the_front_page_has_the_figures_of_the_headlines():
    def rows(name):
        return json.loads((ROOT / "benchmarks" / name / "headline.json").read_text())["rows"]

    text = " ".join((ROOT / "docs" / "index.md").read_text().split())
    lies = rows("honesty")[0]
    models, solvers = re.findall(r"\d+", lies["what"])
    assert f"On {models} small models" in text and f" {solvers} solvers and versions" in text
    assert f"gave {lies['peers'].split()[0]} wrong answers" in text
    tree = next(row for row in rows("census_release") if row["what"].startswith("49,792 units, real"))
    ours, peer = (float(re.search(r"([\d.]+) s", tree[key])[1]) for key in ("ours", "peers"))
    assert f"in {ours:.2g} s. An interior-point solver through cvxpy takes {peer:.2g} s" in text
    assert f"and {len(list((ROOT / 'benchmarks').glob('*/headline.json'))) - 2} more such tables" in text


def folders():
    """Those of benchmarks/ that hold a benchmark."""
    return sorted({path.parent.name for path in (ROOT / "benchmarks").glob("*/run.py")})


@pytest.mark.parametrize("name", folders())
def test_every_benchmark_has_a_headline_and_can_be_run(name):
    folder = ROOT / "benchmarks" / name
    assert (folder / "headline.json").is_file()
    said = subprocess.run(
        [sys.executable, folder / "run.py", "--help"], capture_output=True, text=True, check=True
    )
    assert "--out" in said.stdout and "--quick" in said.stdout


@pytest.fixture
def shared():
    """Imports from benchmarks/, as its scripts do."""


def test_a_page_tells_how_much_others_computed(shared, tmp_path, monkeypatch):
    from benchmarks.report import Page, row

    seconds, others = iter([10.0, 11.0, 14.0, 15.0, 20.0]), iter([3.0, 4.0, 8.0])
    monkeypatch.setattr("benchmarks.report.time.perf_counter", lambda: next(seconds, 20.0))
    monkeypatch.setattr("benchmarks.report.Others._used", lambda self: next(others))
    monkeypatch.setattr(sys, "argv", [str(ROOT / "benchmarks" / "test" / "run.py")])
    page = Page("Test", tmp_path / "results.md", "numpy", note="Noted.")
    page.run({"Part": lambda quick: (f"quick={quick}", [row("a", "1 s")])}, quick=True)
    text = (tmp_path / "results.md").read_text()
    assert "load 0.25 by other processes" in text
    assert "Made by `python benchmarks/test/run.py`" in text and text.endswith("## Part\n\nquick=True\n")
    told = json.loads((tmp_path / "headline.json").read_text())
    assert "load 0.50 by other processes. Noted." in told["conditions"] and told["table"] == "results.md"
    assert told["rows"] == [{"what": "a", "ours": "1 s", "peers": "-", "ratio": "-"}]


@pytest.mark.parametrize(("asked", "load", "written"), [("1", 1.2, False), ("1", 0.9, True), ("", 1.2, True)])
def test_a_headline_of_a_loud_run_is_not_written(shared, tmp_path, monkeypatch, asked, load, written):
    from benchmarks.report import QUIET_ASKED, Page, row

    monkeypatch.setenv(QUIET_ASKED, asked)
    monkeypatch.setattr("benchmarks.report.Others.load", lambda self: load)
    page = Page("Test", tmp_path / "results.md")
    if written:
        page.headline([row("a", "1 s")])
    else:
        with pytest.raises(SystemExit, match=r"headline\.json is not written: .* was 1\.20 .* at most 1"):
            page.headline([row("a", "1 s")])
    assert (tmp_path / "headline.json").exists() == written


def test_runs_of_quiet_benchmarks_are_told_so(checkout, monkeypatch):
    from benchmarks.report import QUIET_ASKED

    monkeypatch.setattr("benchmarks.machine.load", lambda: 0.0)
    told = RUN + f"\nimport os\nassert os.environ.get({QUIET_ASKED!r})\n"
    Path("benchmarks/good/run.py").write_text(told)
    assert checkout("good") == 1 and checkout("good", "--quiet") == 0


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


def test_the_history_keeps_every_measured_time(tmp_path):
    def headline(day, ours, load):
        conditions = f"{day}; 2 cores; load average {load} at the start."
        rows = [
            {"what": "10 areas", "ours": ours, "peers": "-", "ratio": "2.5, 3"},
            {"what": "seats", "ours": "6 of 6", "peers": "-", "ratio": "-"},
        ]
        (tmp_path / "maps").mkdir(exist_ok=True)
        text = json.dumps({"title": "Maps", "conditions": conditions, "table": "results.md", "rows": rows})
        (tmp_path / "maps" / "headline.json").write_text(text)
        record(tmp_path)

    headline("2026-11-27", "flow 0.07 s", 2.0)
    headline("2026-11-28", "flow 50 ms, proved", 0.5)
    headline("2026-11-28", "flow 50 ms, proved", 0.5)
    assert (tmp_path / "history.csv").read_text().splitlines() == [
        "date,benchmark,measurement,seconds,ratio,load",
        "2026-11-27,maps,10 areas,0.07,2.5,2.0",
        "2026-11-28,maps,10 areas,0.05,2.5,0.5",
    ]
    picture = (tmp_path / "history.svg").read_text()
    assert "2026-11-27" in picture and "10 areas" in picture


def test_load_is_of_other_processes(shared, tmp_path):
    from benchmarks.machine import load
    from benchmarks.report import Page, computed

    if computed() is None:
        pytest.skip("the system does not tell what is computed")

    def added_by_own_work() -> float:
        before, page = load(1.0), Page("Test", tmp_path / "results.md")
        end = time.process_time() + 1.0
        while time.process_time() < end:
            pass
        return float(page.conditions().split("load ")[1].split()[0]) - before

    assert any(added_by_own_work() < 0.5 for _ in range(5))  # others may start to work meanwhile
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        assert load(1.0) > 0.3
    finally:
        busy.kill()
        busy.wait()


def test_a_solver_of_a_file_is_imported_by_the_processes_of_its_runs(files, tmp_path, monkeypatch):
    text = (ROOT / "docs" / "solvers.md").read_text()
    own = next(block for block in re.findall(r"```python\n(.*?)```", text, re.S) if "class Mine" in block)
    folder = tmp_path / "a solver's"
    folder.mkdir()
    (folder / "mine.py").write_text(own)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(registry, "_BACKENDS", registry.backends())
    out, limits = tmp_path / "out", ["--memory-limit", "4 GB", "--time-limit", "20"]
    words = [str(files), "plan", "--solvers", "highs,mine", *limits, "--certify", "--out", str(out)]
    first = ["--import", str(folder / "mine.py"), "benchmark"]
    run = CliRunner().invoke(app, [*first, *words])
    assert run.exit_code == 0, run.output
    told = json.loads((out / "results.json").read_text())["runs"]
    assert {(row["backend"], row["status"]) for row in told} == {("highs", "optimal"), ("mine", "optimal")}
    again = shlex.split(told[1]["command"])
    rest = ["--only", "0,0", "--threads", "1", "--time-limit", "20", "--memory-limit", "4 GB", "--certify"]
    assert again == ["forcopt", *first, str(files), "plan", "--solvers", told[1]["backend"], *rest]


def test_options_that_cannot_be_kept_are_refused_before_anything_runs(files, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("benchmarks.solvers.solve.solver_benchmark", lambda *a, **k: pytest.fail("it ran"))
    for words in (["--seeds", "0"], ["--permutations", "x"], ["--threads", "-1"]):
        with pytest.raises(SystemExit):
            main([str(files), "--solvers", "highs", *words])
        assert "it must be a whole number >= " in capsys.readouterr().err
    with pytest.raises(fo.DeclarationError, match="a file; it must be a folder"):
        main([str(files), "--solvers", "highs", "--out", str(files / "all.solu")])
    with pytest.raises(fo.DeclarationError, match=r"no results\.json of an earlier benchmark"):
        main([str(files), "--solvers", "highs", "--against", str(files / "all.solu")])
