import json
import signal
import sqlite3
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from rucksack import SMALL, Bad
from test_compare import dies, started

import forcopt as fo
from forcopt.clock import Improvement
from forcopt.declaration import Numbers
from forcopt.study import Comparison
from forcopt.study.store import metadata

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs signals")


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """Call it to see which runs of the method ``note`` took place since the last call."""
    path = tmp_path / "runs"
    monkeypatch.setenv("FORCOPT_TEST_RUNS", str(path))
    path.touch()

    def taken():
        lines = path.read_text().splitlines()
        path.write_text("")
        return lines

    return taken


def compare(store, *, problem=None, methods=("note",), **options):
    return fo.compare(problem or Bad(**SMALL), methods, isolate=False, store=store, **options)


def test_a_second_call_runs_only_what_is_missing(tmp_path, runs):
    store = tmp_path / "runs.sqlite"
    first = compare(store, repeats=2, seed=5)
    assert runs() == ["50 5 0", "50 6 0"]
    again = compare(store, repeats=3, seed=5, methods=["note", "greedy"])
    assert runs() == ["50 7 0"]
    assert [(row.method, row.repeat, row.seed) for row in again.rows] == [
        *(("note", i, 5 + i) for i in range(3)),
        *(("greedy", i, 5 + i) for i in range(3)),
    ]
    for a, b in zip(first.rows, again.rows[:2], strict=True):
        assert (a.objective, a.seconds, a.repeat) == (b.objective, b.seconds, b.repeat)
    compare(store, repeats=3, seed=5, methods=["note", "greedy"])
    assert runs() == []


@pytest.mark.parametrize(
    "change",
    [
        {"problem": Bad(**{**SMALL, "capacity": 40})},
        {"time_limit": 9.0},
        {"seed": 2},
        {"seed": np.random.default_rng(1)},
        {"options": {"note": {"extra": 3}}},
    ],
)
def test_what_decides_a_run_decides_whether_it_was_made(tmp_path, runs, change):
    store = tmp_path / "runs.db"
    compare(store, seed=1)
    assert len(runs()) == 1
    for expected in (1, 0):
        compare(store, **{"seed": 1, **change})
        assert len(runs()) == expected


def test_the_name_of_an_instance_does_not(tmp_path, runs):
    store = tmp_path / "runs.sqlite"
    assert compare(store).rows[0].instance == "Bad"
    assert compare(store, problem={"mine": Bad(**SMALL)}).rows[0].instance == "mine"
    assert len(runs()) == 1


def test_a_row_comes_back_as_it_was(tmp_path, runs):
    store = tmp_path / "runs.sqlite"
    methods = ["note", "milp", "raise"]
    options = {"note": {"extra": np.array([1, 2])}}
    first = compare(store, methods=methods, seed=3, options=options)
    runs()
    again = compare(store, methods=methods, seed=3, options=options)
    assert runs() == []
    for a, b in zip(first.rows, again.rows, strict=True):
        assert json.dumps(a.record()) == json.dumps(b.record())  # NaN is equal to itself
        assert a.trace == b.trace and np.array_equal(a.decision, b.decision)
    note, milp, failed = again.rows
    assert note.trace == (Improvement(0.5, 1.0, float("inf")), Improvement(1.0, 2.0, 9.0))
    assert note.bound == float("inf") and note.seed == 3
    assert (milp.rows, milp.columns, milp.nonzeros, milp.integers, milp.size) == (1, 3, 3, 3, 7)
    assert milp.versions["highs"] and list(milp.decision) == [0, 1, 1]
    assert failed.status == "failed" and "pivot" in failed.message
    for _ in range(2):
        assert compare(store, methods=["greedy"], seed=2**70).rows[0].seed == 2**70


def test_any_sqlite_tool_can_read_it(tmp_path, runs):
    store = tmp_path / "runs.sqlite"
    compare(store, methods=["milp", "greedy"])
    with sqlite3.connect(store) as base:
        rows = base.execute("SELECT method, status, objective FROM runs ORDER BY objective").fetchall()
        assert rows == [("greedy", "approximate", 160.0), ("milp", "optimal", 220.0)]
        (text,) = base.execute("SELECT declaration FROM problems").fetchone()
    assert json.loads(text) == Bad(**SMALL).to_dict()
    everything = Comparison.read(store)
    assert [row.label for row in everything.rows] == ["milp@highs", "greedy"]
    assert everything.problems[everything.rows[0].fingerprint] == text


def test_what_was_not_really_run_is_tried_again(tmp_path, runs):
    store = tmp_path / "runs.sqlite"
    compare(store, methods=["milp@absent"])
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        lost = compare(store, methods=["leave"], executor=executor)
    assert "the executor lost it" in lost.rows[0].message
    assert Comparison.read(store).rows == ()


KILLED = """
import forcopt as fo
from rucksack import *
fo.compare(Bad(**SMALL), ["greedy", "note", "wait", "milp"], store={store!r}, seed=1)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_kill_loses_nothing_that_is_finished(tmp_path, runs, monkeypatch, how):
    store, told = tmp_path / "runs.sqlite", tmp_path / "pid"
    monkeypatch.setenv("FORCOPT_TEST_PID", str(told))
    parent = started(told, KILLED.format(store=str(store)))
    parent.send_signal(how)
    parent.communicate(timeout=600)
    assert dies(int(told.read_text()))
    assert [row.method for row in Comparison.read(store).rows] == ["greedy", "note"]
    assert len(runs()) == 1
    result = compare(store, methods=["greedy", "note", "milp"], seed=1)
    assert runs() == [] and [row.method for row in result.rows] == ["greedy", "note", "milp"]
    assert result.best.objective == 220


def test_a_file_of_an_older_version_gets_the_new_columns(tmp_path, runs):
    store = tmp_path / "runs.sqlite"
    compare(store, methods=["greedy"])
    with sqlite3.connect(store) as base:
        base.execute("ALTER TABLE runs DROP COLUMN metrics")
        base.execute("ALTER TABLE runs DROP COLUMN nonzeros")
    assert compare(store, methods=["greedy", "milp"]).rows[1].nonzeros == 3
    assert Comparison.read(store).rows[0].metrics == {}


def test_a_decision_whose_class_is_gone_is_told(tmp_path, runs):
    store = tmp_path / "runs.sqlite"
    compare(store, methods=["greedy"])
    with sqlite3.connect(store) as base:
        base.execute("UPDATE runs SET decision = ?", (b"cgone\nThing\n.",))
    (row,) = Comparison.read(store).rows
    assert row.decision is None and row.objective == 160 and "cannot be read: ModuleNotFound" in row.message


def test_bad_stores_are_refused(tmp_path):
    with pytest.raises(fo.DeclarationError, match=r"runs\.parquet.*must end in \.sqlite"):
        compare("runs.parquet", methods=["greedy"])
    path = tmp_path / "text.db"
    path.write_text("no database, but long enough to look at" * 100)
    with pytest.raises(fo.DeclarationError, match=r"text\.db cannot be used"):
        compare(path, methods=["greedy"])
    with pytest.raises(FileNotFoundError, match="no file"):
        Comparison.read(tmp_path / "none.sqlite")
    with pytest.raises(fo.DeclarationError, match="cannot identify a run with the option"):
        compare(tmp_path / "a.db", options={"note": {"extra": object()}})


def test_a_fingerprint_lasts_when_a_class_gets_a_field():
    class Before(fo.Problem):
        a: int = 1
        values: Numbers

    class After(fo.Problem):
        a: int = 1
        values: Numbers
        b: float | None = None

    After.__name__ = "Before"
    values = [1.0, 2.0]
    one, other = Before(values=values), After(values=values)
    assert (
        metadata(one)["fingerprint"]
        == metadata(other)["fingerprint"]
        != metadata(Before(values=values, a=2))["fingerprint"]
    )
    assert metadata(other)["fingerprint"] != metadata(After(values=values, b=0.5))["fingerprint"]


def test_different_problems_of_one_name_are_not_averaged(tmp_path):
    store = tmp_path / "runs.sqlite"
    for capacity in (30, 50):
        compare(store, problem=Bad(**{**SMALL, "capacity": capacity}), methods=["greedy"], repeats=2, seed=1)
    both = Comparison.read(store)
    assert [row.instance for row in both.rows] == ["Bad 1", "Bad 1", "Bad 2", "Bad 2"]
    assert both.summary()["runs"].tolist() == [2, 2]
    assert "Bad 2" in both.table()


def test_problems_that_a_function_draws_keep_their_name(tmp_path):
    store = tmp_path / "runs.sqlite"

    def draw(seed, extra=0):
        return Bad(**{**SMALL, "capacity": 30 + seed + extra})

    fo.sweep(draw, methods=["greedy"], seeds=range(3), store=store)
    (line,) = Comparison.read(store).summary().itertuples()
    assert line.runs == 3 and line.instance == "Bad"
    fo.sweep(lambda seed: draw(seed, extra=10), methods=["greedy"], seeds=range(3), store=store)
    found = Comparison.read(store).summary()  # another function: means of their own
    assert found["runs"].tolist() == [3, 3] and found["instance"].tolist() == ["Bad 1", "Bad 2"]
