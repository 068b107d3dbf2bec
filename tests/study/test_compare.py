import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import cohort_oracle  # noqa: F401  registers "brute-force"
import numpy as np
import pytest
from rucksack import BACKENDS, SMALL, WARM_UP, Bad, Rucksack

import forcopt as fo
from forcopt.backends import registry
from forcopt.study import Run, isolate
from forcopt.study.compare import expanded

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs signals")


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def dies(pid: int, seconds: float = 300.0) -> bool:
    end = time.monotonic() + seconds
    while alive(pid) and time.monotonic() < end:
        time.sleep(0.05)
    return not alive(pid)


@pytest.fixture
def told(tmp_path, monkeypatch):
    """Where a method leaves the number of a process."""
    path = tmp_path / "pid"
    monkeypatch.setenv("FORCOPT_TEST_PID", str(path))
    return path


@pytest.fixture(scope="module")
def rows():
    """Sound and misbehaving methods, in processes of their own, a few at a time."""
    methods = ["milp@broken", "milp@absent", "milp", "greedy", "crash", "leave", "raise", "quit"]
    methods += ["eat", "weigh", "keep"]
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(3) as executor:
        registry.backends()
        for name, backend in BACKENDS.items():
            patch.setitem(registry._BACKENDS, name, backend)
        problem = Bad(**SMALL)
        result = fo.compare(problem, methods, time_limit=60, memory_limit=10**9, executor=executor, seed=1)
    assert [row.method for row in result.rows] == [m.partition("@")[0] for m in methods]
    return {row.label: row for row in result.rows}


def test_sound_methods_survive_bad_neighbours(rows):
    milp, greedy = rows["milp@highs"], rows["greedy"]
    assert (milp.status, milp.objective, milp.bound, milp.gap) == ("optimal", 220, 220, 0)
    assert (greedy.status, greedy.objective, greedy.guarantee) == ("approximate", 160, 120)
    assert list(milp.decision) == [0, 1, 1]
    assert milp.exact and not greedy.exact and milp.sense == "max" and milp.instance == "Bad"
    assert milp.gap_to_best == 0 and greedy.gap_to_best == pytest.approx(60 / 220)
    assert milp.seconds == pytest.approx(milp.build_seconds + milp.solve_seconds)
    assert np.isnan(greedy.build_seconds) and greedy.seconds > 0
    assert set(milp.versions) == {"forcopt", "python", "system", "highs"}
    assert milp.versions["forcopt"] == fo.__version__


@pytest.mark.parametrize(
    ("label", "status", "words"),
    [
        ("crash", "failed", ["SIGSEGV", "rucksack.py", "in crash"]),
        ("milp@broken", "failed", ["SIGABRT", "rucksack.py", "in solve"]),
        ("milp@absent", "failed", ["NotInstalledError", "pip install broken"]),
        ("leave", "failed", ["exited with code 3", "the licence has expired"]),
        ("raise", "failed", ["ArithmeticError: <pivot> too small"]),
        ("quit", "failed", ["SystemExit: no licence"]),
        ("eat", "limit", ["the memory limit of"]),
    ],
)
def test_a_failure_is_a_row_in_its_own_words(rows, label, status, words):
    row = rows[label]
    assert row.status == status and np.isnan(row.objective) and row.decision is None
    assert [word for word in words if word not in row.message] == []


def test_a_method_that_does_not_fit_the_declaration_is_told_so():
    result = fo.compare("cohort/committee", ["brute-force", "cumulative"], isolate=False)
    refused, other = result.rows
    assert refused.status == "failed" and other.solved
    assert refused.message.startswith("not for this declaration: 'brute-force' finds one cohort")


def test_a_hang_is_killed_with_the_programs_it_started(told, monkeypatch):
    monkeypatch.setattr(isolate, "GRACE", 0.5)
    row = fo.compare(Bad(**SMALL), ["hang"], time_limit=0.5).rows[0]
    assert row.status == "limit" and "time limit of 0.5 s" in row.message
    assert dies(int(told.read_text()))


@pytest.mark.parametrize("isolate_it", [True, False])
def test_what_a_method_prepares_is_outside_the_clock(told, monkeypatch, isolate_it):
    monkeypatch.setattr(time, "perf_counter", time.perf_counter)  # is as before after the test
    row = fo.compare(Bad(**SMALL), ["prepared"], time_limit=1, isolate=isolate_it).rows[0]
    assert (row.status, row.message) == ("approximate", "warm, with 1 s")
    assert row.seconds < WARM_UP
    row = fo.compare(Bad(**SMALL), ["unprepared"], isolate=isolate_it).rows[0]
    assert (row.status, row.message) == ("failed", "ArithmeticError: no compiler")


def test_a_run_that_compiles_again_and_again_is_killed(monkeypatch):
    monkeypatch.setattr(isolate, "GRACE", 0.5)
    row = fo.compare(Bad(**SMALL), ["compile"], time_limit=0.5).rows[0]
    assert (row.status, row.message) == ("limit", "killed: still running 0.5 s after its time limit of 0.5 s")


def test_what_numba_compiles_is_outside_the_clock(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(isolate, "GRACE", 0.5)
    row = fo.compare("robustness/four-points", ["max-flow"], time_limit=1, memory_limit="2 GB").rows[0]
    assert row.status == "optimal" and row.seconds < 1 and list(tmp_path.rglob("*.nbi"))


def test_what_is_never_prepared_is_killed(told, monkeypatch):
    monkeypatch.setattr(isolate, "_STARTUP", 0.05)
    row = fo.compare(Bad(**SMALL), ["prepared"], time_limit=60).rows[0]
    assert (row.status, row.message) == ("limit", "killed: not started after 0.05 s")


def test_peak_memory_is_that_of_the_run_alone(rows):
    held = np.ones(100_000_000)  # 800 MB here must not count there
    assert held.sum() == 1e8
    assert 320e6 < rows["weigh"].peak_memory < 600e6
    assert 20e6 < rows["greedy"].peak_memory < 200e6
    assert rows["eat"].peak_memory < 1.2e9
    again = fo.compare(Bad(**SMALL), ["greedy"]).rows[0]
    assert again.peak_memory < 200e6


def test_a_decision_that_cannot_travel_is_told(rows):
    row = rows["keep"]
    assert row.status == "approximate" and row.objective == 0 and row.decision is None
    assert "cannot be pickled" in row.message


def test_a_decision_that_cannot_be_stored_costs_no_row(tmp_path):
    store = tmp_path / "runs.sqlite"
    found = fo.compare(Bad(**SMALL), ["keep", "greedy"], store=store, isolate=False)
    assert [row.status for row in found.rows] == ["approximate"] * 2
    first, second = fo.compare(Bad(**SMALL), ["keep", "greedy"], store=store, isolate=False).rows
    assert first.decision is None and first.objective == 0 and "cannot be pickled" in first.message
    assert second.decision is not None


INTERRUPTED = """
from concurrent.futures import ThreadPoolExecutor
import forcopt as fo
from rucksack import *
executor = ThreadPoolExecutor(1) if {workers} else None
c = fo.compare(Bad(**SMALL), ["greedy", "wait", "milp"], executor=executor)
if executor:
    executor.shutdown()
assert [row.status for row in c.rows] == ["approximate", None, None], c.rows
assert c.rows[2].message == "not run: interrupted" and c.best.method == "greedy"
assert "not run" in c.table()
print("kept")
"""


def started(told: Path, code: str) -> subprocess.Popen:
    """Run code in a process of its own until its method named ``wait`` is under way."""
    folders = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": folders}
    parent = subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE)
    while not told.exists() or not told.read_text():
        assert parent.poll() is None
        time.sleep(0.05)
    return parent


@pytest.mark.parametrize("workers", [0, 1])
def test_an_interrupt_keeps_what_is_finished_and_kills_the_rest(told, workers):
    parent = started(told, INTERRUPTED.format(workers=workers))
    parent.send_signal(signal.SIGINT)
    said, _ = parent.communicate(timeout=600)
    assert said.decode().endswith("kept\n")
    assert dies(int(told.read_text()))


def test_runs_end_with_a_parent_that_is_killed(told):
    parent = started(told, "import forcopt as fo; from rucksack import *; fo.compare(Bad(**SMALL), ['wait'])")
    child = int(told.read_text())
    assert alive(child)
    parent.kill()
    parent.communicate()
    assert dies(child)


SCRIPT = """
import forcopt as fo
from rucksack import Rucksack, SMALL

class Mine(Rucksack):
    pass

@Mine.algorithm("nothing", exact=False)
def nothing(problem):
    return fo.Outcome([0, 0, 0])

{guard}print(fo.compare(Mine(**SMALL), ["nothing"]).table())
"""


def test_a_script_may_define_its_own_problem(tmp_path):
    folders = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])

    def said(name, guard):
        path = tmp_path / name
        path.write_text(SCRIPT.format(guard=guard))
        environment = {**os.environ, "PYTHONPATH": folders}
        return subprocess.run([sys.executable, path], env=environment, text=True, capture_output=True).stdout

    assert "approximate" in said("guarded.py", "if __name__ == '__main__': ")
    assert "put its call of compare under" in said("bare.py", "")


def test_a_problem_that_cannot_be_imported_is_refused():
    class Local(Rucksack):
        pass

    with pytest.raises(fo.DeclarationError, match=r"Local cannot be sent to another process.*isolate=False"):
        fo.compare(Local(**SMALL), ["milp"])
    assert fo.compare(Local(**SMALL), ["milp"], isolate=False).best.objective == 220


def test_without_isolation_errors_still_become_rows():
    result = fo.compare(Bad(**SMALL), ["raise", "quit", "milp@absent", "milp"], isolate=False)
    assert [row.status for row in result.rows] == ["failed", "failed", "failed", "optimal"]
    assert result.rows[0].message == "ArithmeticError: <pivot> too small"


def test_a_pool_whose_worker_dies_gives_rows():
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        result = fo.compare(Bad(**SMALL), ["leave", "greedy"], isolate=False, executor=executor)
    assert [row.status for row in result.rows] == ["failed", "failed"]
    assert "the executor lost it: BrokenProcessPool" in result.rows[0].message


def test_all_methods_by_default_with_their_options_and_seed():
    result = fo.compare(Rucksack(**SMALL), isolate=False, options={"milp": {"cap": 2.0}}, seed=7)
    assert [row.label for row in result.rows] == ["milp@highs", "greedy"]
    assert result.rows[0].objective == 260  # the second item twice
    generator = np.random.default_rng(7)
    drawn = [
        fo.compare(Rucksack(**SMALL), ["greedy"], isolate=False, seed=s).rows[0].message
        for s in (generator, generator, 7)
    ]
    assert drawn[0] == drawn[1] == drawn[2] == result.rows[1].message


def test_a_star_stands_for_every_backend_that_can():
    found = expanded(Rucksack(**SMALL), ["greedy", "milp@*"])
    assert found[0] == ("greedy", "")
    assert ("milp", "highs") in found and ("milp", "broken") in found
    assert ("milp", "absent") not in found and ("milp", "highs:simplex") not in found


def test_a_star_for_a_method_that_refuses_the_declaration_gives_a_failed_row():
    result = fo.compare("calibrated/two-groups", ["polygon", "qp@*"], isolate=False, progress=False)
    assert [(row.label, str(row.status)) for row in result.rows] == [("polygon", "optimal"), ("qp", "failed")]
    assert "method 'qp' needs a relaxation" in result.rows[1].message


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"options": {"milp": 3}}, fo.DeclarationError, "options of milp is 3; it must be values by name"),
        ({"methods": ["mlip"]}, fo.UnknownNameError, "did you mean 'milp'"),
        ({"methods": ["highs"]}, fo.UnknownNameError, "for the backend of this name write '@highs'"),
        ({"methods": ["*"]}, fo.UnknownNameError, r"'@\*' means every backend"),
        ({"methods": ["milp@hihgs"]}, fo.UnknownNameError, "did you mean 'highs'"),
        ({"methods": ["milp@"]}, fo.DeclarationError, "'milp@'"),
        ({"methods": ["greedy@*"]}, fo.DeclarationError, "'greedy' is no formulation"),
        ({"methods": ["milp@highs", "milp@highs"]}, fo.DeclarationError, "milp@highs is named twice"),
        ({"methods": []}, fo.DeclarationError, "methods is empty"),
        ({"methods": "milp"}, fo.DeclarationError, "a list of names"),
        ({"problems": []}, fo.DeclarationError, "problems is empty"),
        ({"problems": ["a", "a"]}, FileNotFoundError, "no file, example or instance 'a'"),
        ({"repeats": 0}, fo.DeclarationError, "repeats is 0"),
        ({"repeats": 2, "seed": np.random.default_rng(1)}, fo.DeclarationError, "seed is a generator"),
        ({"time_limit": 0}, fo.DeclarationError, "time_limit is 0"),
        ({"memory_limit": -1}, fo.DeclarationError, "memory_limit is -1"),
        ({"options": {"milp": {"cup": 1}}}, fo.UnknownNameError, "did you mean 'cap'"),
        ({"options": {"mlip": {}}}, fo.UnknownNameError, "did you mean 'milp'"),
    ],
)
def test_bad_input_is_refused_before_anything_runs(arguments, error, words):
    with pytest.raises(error, match=words):
        fo.compare(**{"problems": Rucksack(**SMALL), **arguments})


def test_several_problems_have_their_own_rows_and_best():
    half = Rucksack(**{**SMALL, "capacity": 25})
    result = fo.compare({"full": Rucksack(**SMALL), "half": half}, isolate=False)
    assert [(row.instance, row.label) for row in result.rows] == [
        (name, label) for name in ("full", "half") for label in ("milp@highs", "greedy")
    ]
    assert [row.gap_to_best for row in result.rows] == pytest.approx([0, 60 / 220, 0, 0.4])
    assert [row.objective for row in result.winners] == [220, 100] and result.best is None
    assert result.table().splitlines()[0].startswith("instance")
    assert repr(result) == "<comparison of 4 runs on 2 instances>"
    assert not result.disagreements


def test_a_list_of_problems_is_numbered_and_methods_go_where_they_exist():
    result = fo.compare(
        [Rucksack(**SMALL), Bad(**SMALL), Rucksack(**SMALL)], ["greedy", "raise"], isolate=False
    )
    assert [(row.instance, row.method) for row in result.rows] == [
        ("Rucksack 1", "greedy"), ("Bad", "greedy"), ("Bad", "raise"), ("Rucksack 2", "greedy")
    ]  # fmt: skip
    assert "Bad: raise: ArithmeticError" in result.table()
    with pytest.raises(fo.DeclarationError, match=r"problem Rucksack lacks the methods raise"):
        fo.compare([Rucksack(**SMALL), Bad(**SMALL)], ["raise"])
    with pytest.raises(fo.UnknownNameError, match=r"method 'mlip' of Rucksack"):
        fo.compare([Rucksack(**SMALL), Bad(**SMALL)], ["greedy", "mlip"])


def test_repeats_have_seeds_of_their_own():
    result = fo.compare(Rucksack(**SMALL), ["greedy"], isolate=False, repeats=3, seed=4)
    assert [(row.repeat, row.seed) for row in result.rows] == [(0, 4), (1, 5), (2, 6)]
    assert len({row.message for row in result.rows}) == 3
    assert result.summary("seconds").runs.tolist() == [3]


def test_a_run_is_immutable():
    row = Run("toy", "lp", "highs", fo.Status.OPTIMAL, "min", True)
    with pytest.raises(AttributeError):
        row.objective = 1.0


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"repeats": 1.5}, "repeats is 1.5; it must be a whole number"),
        ({"time_limit": "5"}, "time_limit is '5'; it must be a number >= 0"),
        ({"methods": [3]}, r"methods is \[3\]; it must be a list of names"),
        ({"methods": "greedy"}, "methods is 'greedy'; it must be a list of names"),
        ({"problems": 3}, "problems is 3; it must be a problem"),
    ],
)
def test_options_of_a_comparison_are_refused_in_words(given, words):
    with pytest.raises(fo.DeclarationError, match=words):
        fo.compare(**{"problems": Bad(**SMALL), **given})
