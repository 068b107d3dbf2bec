import os
import signal
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from rucksack import SMALL, Bad, Rucksack, Sent
from scipy import stats
from test_compare import dies, started

import forcopt as fo
from forcopt.fairness import DemographicParity
from forcopt.models import FairPostprocessing
from forcopt.study import Comparison
from forcopt.study.solver_benchmark import solver_benchmark


def drawn(*, items=3, seed=None):
    """A random rucksack, for processes to import."""
    rng = np.random.default_rng(seed)
    return Rucksack(values=rng.integers(1, 50, items), weights=rng.integers(1, 50, items), capacity=60)


@pytest.fixture(autouse=True)
def counted(tmp_path, monkeypatch):
    path = tmp_path / "count"
    monkeypatch.setenv("FORCOPT_TEST_RUNS", str(path))
    path.touch()
    return lambda: len(path.read_text().splitlines())


def test_a_grid_is_run_at_every_point_with_every_seed():
    result = fo.sweep(Bad(**SMALL), {"capacity": [20, 50], "extra": [1, 2]}, ["note"], seeds=range(3))
    assert [(r.parameters["capacity"], r.parameters["extra"], r.seed) for r in result.rows] == [
        (c, e, s) for c in (20, 50) for e in (1, 2) for s in range(3)
    ]
    assert result.rows[0].instance == "Bad capacity=20 extra=1" and len(result.instances) == 4
    frame = result.to_pandas()
    assert frame["capacity"].tolist() == [20] * 6 + [50] * 6 and frame["extra"].tolist()[:4] == [1, 1, 1, 2]
    assert result.table().splitlines()[0].split()[:4] == ["capacity", "extra", "seed", "method"]


def test_a_parameter_may_be_a_field_of_what_a_field_holds():
    counts = [[[36, 4], [9, 5]], [[4, 16], [6, 20]]]
    p = FairPostprocessing(counts=counts, constraint=DemographicParity(0.1))
    result = fo.sweep(p, {"constraint.tolerance": [0.0, 0.2]})
    alone = [
        FairPostprocessing(counts=counts, constraint=DemographicParity(t)).solve().objective
        for t in (0.0, 0.2)
    ]
    assert [row.objective for row in result.rows] == pytest.approx(alone)
    whole = fo.sweep(p, {"constraint": [DemographicParity(0.0), DemographicParity(0.2)]})
    assert [row.objective for row in whole.rows] == pytest.approx(alone)
    assert whole.rows[0].parameters["constraint"] == "DemographicParity(tolerance=0.0)"


def test_a_function_draws_a_problem_for_each_seed():
    result = fo.sweep(drawn, {"items": [4, 6]}, ["milp", "greedy"], seeds=range(5))
    assert len(result.rows) == 20 and len(result.instances) == 10
    for milp, greedy in zip(result.rows[::2], result.rows[1::2], strict=True):
        problem = drawn(items=milp.parameters["items"], seed=milp.seed)
        assert milp.objective == problem.solve().objective and milp.fingerprint == greedy.fingerprint
        assert milp.gap_to_best == 0 <= greedy.gap_to_best
    assert not result.disagreements and len(result.winners) == 10


def test_intervals_are_students():
    result = fo.sweep(drawn, {"items": [4, 6]}, ["milp", "greedy"], seeds=range(8))
    table = result.summary("objective", level=0.9)
    assert table[["items", "method", "runs", "known"]].values.tolist() == [
        [4, "milp", 8, 8], [4, "greedy", 8, 8], [6, "milp", 8, 8], [6, "greedy", 8, 8]
    ]  # fmt: skip
    values = [drawn(items=6, seed=s).solve().objective for s in range(8)]
    row = table.iloc[2]
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.9)
    assert (row.low, row.high) == pytest.approx((expected.low, expected.high))
    assert (row["mean"], row["median"]) == pytest.approx((np.mean(values), np.median(values)))
    assert (row.least, row.greatest) == (min(values), max(values))


def test_intervals_hold_the_mean_as_often_as_they_say():
    """Of 400 intervals at 80 %, fewer than 280 or more than 360 hold it with probability below 1e-5."""
    rng = np.random.default_rng(7)
    from forcopt.study import Run

    rows = [
        Run(
            f"i{i}", "m", "", fo.Status.APPROXIMATE, "min", False, objective=rng.normal(3), fingerprint=str(i)
        )
        for i in range(400)
        for _ in range(6)
    ]
    table = Comparison(rows).summary(level=0.8)
    assert 280 <= ((table.low <= 3) & (table.high >= 3)).sum() <= 360


def test_runs_without_a_number_are_left_out_and_one_value_has_no_interval():
    result = fo.compare(Bad(**SMALL), ["raise", "greedy"], isolate=False)
    table = result.summary()
    assert table["known"].tolist() == [0, 1] and table["mean"].tolist()[1] == 160
    assert table[["low", "high", "deviation"]].isna().all().all()


@pytest.mark.parametrize("isolate", [False, True])
def test_processes_give_the_same(isolate):
    here = fo.sweep(drawn, {"items": [5]}, seeds=range(4 if not isolate else 2))
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        there = fo.sweep(
            drawn, {"items": [5]}, seeds=range(len(here.rows)), executor=executor, isolate=isolate
        )
    assert [r.objective for r in there.rows] == [r.objective for r in here.rows]
    assert all(np.array_equal(a.decision, b.decision) for a, b in zip(here.rows, there.rows, strict=True))


def test_dasks_executor_gives_the_same(tmp_path, counted):
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    here = fo.sweep(drawn, {"items": [4, 5]}, ["milp", "greedy"], seeds=range(3))
    store = tmp_path / "runs.sqlite"
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=2, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        executor = client.get_executor(pure=False)
        there = fo.sweep(
            drawn, {"items": [4, 5]}, ["milp", "greedy"], seeds=range(3), executor=executor, store=store
        )
        alone = fo.sweep(drawn, seeds=range(1), executor=executor, isolate=True)
        failed = fo.compare(Bad(**SMALL), ["crash"], executor=executor)
    assert [r.objective for r in there.rows] == [r.objective for r in here.rows]
    assert [r.objective for r in alone.rows] == [drawn(seed=0).solve().objective]
    assert "SIGSEGV" in failed.rows[0].message
    assert len(Comparison.read(store).rows) == 12


def _noisy(data, generator):
    return data + generator.laplace(size=data.shape)


def _total(outcome, data):
    folder = Path(os.environ["FORCOPT_TEST_FELL"])
    with suppress(FileNotFoundError):
        (folder / "self").unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return float(outcome.sum())


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_a_killed_worker_of_a_cluster_loses_nothing(tmp_path, monkeypatch, counted):
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    marks = tmp_path / "marks"
    marks.mkdir()
    monkeypatch.setenv("FORCOPT_TEST_FELL", str(marks))
    store = tmp_path / "runs.sqlite"
    problem = Sent(**SMALL)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        executor = client.get_executor(pure=False)
        for runs, isolate, mark in ((4, True, "parent"), (8, False, "self")):
            (marks / mark).touch()
            result = fo.sweep(
                problem, {}, ["fell"], seeds=range(runs), executor=executor, store=store, isolate=isolate
            )
            assert [r.status.value for r in result.rows] == ["approximate"] * runs
            assert list(marks.iterdir()) == [] and len(Comparison.read(store).rows) == runs
            store.unlink()
        (marks / "self").touch()
        data = np.arange(4.0)
        there = fo.replicate(data, _noisy, None, {"sum": _total}, 20, 1, executor=executor)
        assert list(marks.iterdir()) == []
        m = fo.Model("tiny")
        m.maximize(m.variable("x", lower=0, upper=3))
        (tmp_path / "models").mkdir()
        m.write(tmp_path / "models" / "tiny.mps")
        table = solver_benchmark(
            ["highs", "highs:ipm"], tmp_path / "models", isolate=False, executor=executor
        )
        assert table.frame["solved"].tolist() == [True, True] and table.wrong == ()
    here = fo.replicate(data, _noisy, None, {"sum": _total}, 20, 1)
    assert np.array_equal(there.values["sum"], here.values["sum"])
    assert 2 <= counted() <= 8  # not once for each of 12 runs; a worker may pass it on to another


def test_more_values_and_seeds_run_only_those(tmp_path, counted):
    store = tmp_path / "runs.sqlite"
    fo.sweep(Bad(**SMALL), {"capacity": [20]}, ["note"], seeds=range(3), store=store)
    result = fo.sweep(Bad(**SMALL), {"capacity": [20, 50]}, ["note"], seeds=range(4), store=store)
    assert counted() == 8 == len(result.rows)


INTERRUPTED = """
import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
import forcopt as fo
from rucksack import *
if __name__ == "__main__":
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as executor:
        fo.sweep(Bad(**SMALL), {{"capacity": [20, 30, 40, 50]}}, ["note", "wait"], store={store!r},
                 executor=executor if {pool} else None)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
@pytest.mark.parametrize("pool", [False, True])
def test_a_sweep_that_is_killed_goes_on_where_it_was(tmp_path, monkeypatch, counted, pool):
    store, told = tmp_path / "runs.sqlite", tmp_path / "pid"
    monkeypatch.setenv("FORCOPT_TEST_PID", str(told))
    parent = started(told, INTERRUPTED.format(store=str(store), pool=pool))
    end = time.monotonic() + 300
    while (not store.exists() or not Comparison.read(store).rows) and time.monotonic() < end:
        time.sleep(0.1)  # the row is written beside the run that waits
    parent.kill()
    os.kill(int(told.read_text()), signal.SIGKILL) if pool else None
    parent.communicate(timeout=600)
    assert dies(int(told.read_text()))
    assert [row.method for row in Comparison.read(store).rows] == ["note"] and counted() == 1
    fo.sweep(Bad(**SMALL), {"capacity": [20, 30]}, ["note"], store=store)
    assert counted() == 2


def test_a_method_registered_elsewhere_reaches_other_processes():
    """A pool's worker that has seen only the problem's class must import the method's module, too."""
    import pickle

    from forcopt.study.run import Job

    job = Job("x", Rucksack(**SMALL), "milp", "highs", known={"fingerprint": ""})
    assert b"rucksack" in pickle.dumps(job) and pickle.loads(pickle.dumps(job)) == job


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"over": {"capacty": [1]}}, fo.UnknownNameError, "did you mean 'capacity'"),
        ({"over": {"capacity": [-1]}}, fo.DeclarationError, "capacity is -1"),
        ({"over": {"capacity": []}}, fo.DeclarationError, "capacity has no values"),
        ({"over": {"capacity.x": [1]}}, fo.DeclarationError, "has no fields"),
        ({"over": {"capacity": 3}}, fo.DeclarationError, "capacity is 3; it must be a list of values"),
        ({"over": {"capacity": "34"}}, fo.DeclarationError, "capacity is '34'; it must be a list"),
        ({"over": {1: [1]}}, fo.DeclarationError, r"over is \{1: \[1\]\}; it must give a list of values"),
        ({"over": 3}, fo.DeclarationError, "over is 3; it must give a list of values"),
        ({"time_limit": True}, fo.DeclarationError, "time_limit is True; it must be a number"),
        ({"problem": 3}, fo.DeclarationError, "problem is 3; it must be a problem, a file or a name"),
        ({"seeds": []}, fo.DeclarationError, "seeds has no values"),
        ({"seeds": 5}, fo.DeclarationError, "seeds is 5; it must be a list of values"),
        ({"methods": ["mlip"]}, fo.UnknownNameError, "did you mean 'milp'"),
        ({"over": {"cap": [1]}, "methods": ["milp", "greedy"]}, fo.UnknownNameError, "method 'greedy'"),
        ({"problem": lambda seed: 3}, fo.DeclarationError, "draws 3"),
    ],
)
def test_bad_input_is_refused_before_anything_runs(arguments, error, words):
    with pytest.raises(error, match=words):
        fo.sweep(**{"problem": Rucksack(**SMALL), **arguments})


def test_an_unknown_number_is_named():
    result = fo.sweep(Rucksack(**SMALL), {"capacity": [20, 50]}, executor=ThreadPoolExecutor(1))
    assert result.numbers("capacity").tolist() == [20, 50] and np.isnan(result.numbers("guarantee")).all()
    with pytest.raises(fo.UnknownNameError, match="did you mean 'objective'"):
        result.numbers("objectve")
    with pytest.raises(fo.DeclarationError, match="level is 1"):
        result.summary(level=1)
