"""Solvers on folders of files: counts, means, published optima, and claims that contradict them."""

from dataclasses import replace

import numpy as np
import pytest

import forcopt as fo
from forcopt.backends import registry
from forcopt.backends.highs import Highs
from forcopt.backends.registry import backends
from forcopt.loops.exchange import read_into
from forcopt.study import isolate, library
from forcopt.study.library import ModelFile
from forcopt.study.run import Job, measure
from forcopt.study.solver_benchmark import Known, published, solver_benchmark


@pytest.fixture
def folder(tmp_path):
    """A linear program, an integer one in a folder below, an infeasible one and an unbounded one."""
    (tmp_path / "below").mkdir()
    for name, integer in (("plan", False), ("below/whole", True)):
        m = fo.Model(name)
        x = m.variable("x", 2, lower=0, upper=3, integer=integer)
        m.subject_to(2 * x[0] + 2 * x[1] <= 5)
        m.maximize(x.sum())
        m.write(tmp_path / f"{name}.mps{'.gz' if integer else ''}")
    for name, sign in (("none", -1), ("ever", 1)):
        m = fo.Model(name)
        x = m.variable("x", lower=0)
        m.subject_to(sign * x >= 1)
        m.maximize(x)
        m.write(tmp_path / f"{name}.lp")
    (tmp_path / "all.solu").write_text(
        "=opt= plan 2.5\n=best= whole 2\n=inf= none\n=unbd= ever\n=unkn= other\n"
    )
    return tmp_path


def test_all_statuses_are_right(folder, tmp_path):
    assert published(folder)["whole"] == Known(fo.Status.FEASIBLE, 2.0)
    b = solver_benchmark(
        ["highs", "glop"], folder, time_limit=20, isolate=False, progress=False, store=tmp_path / "b.sqlite"
    )
    assert b.wrong == ()
    table = b.frame.groupby("backend")[["solved", "refused"]].sum()
    assert table.loc["highs"].tolist() == [4, 0] and table.loc["glop"].tolist() == [3, 1]  # no integers
    assert set(b.frame.loc[b.frame["instance"] == "whole", "class"]) == {"integer"}
    told = b.frame[~b.frame["refused"]]
    assert (told["solver"] <= told["call"] + 1e-3).all() and (told["wall"] >= told["call"]).all()
    assert (told["seconds"] == told["solver"]).all() and (told["compile"] > 0).all()
    again = solver_benchmark(
        ["highs", "glop"], folder, time_limit=20, isolate=False, progress=False, store=tmp_path / "b.sqlite"
    )
    assert [r.seconds for r in again.comparison.rows] == [r.seconds for r in b.comparison.rows]
    assert all(row.log for row in again.comparison.rows if row.backend == "highs")
    assert (again.frame["seconds"] == b.frame["seconds"]).all()
    assert "profile" in b.comparison.chart("profile").title.lower() or b.comparison.chart("profile")


@pytest.mark.parametrize(
    "line",
    ["=opt= plan 2.4", "=opt= plan 2.6", "=best= plan 2.6", "=inf= plan", "=unbd= plan", "=opt= none 1"],
)
def test_what_contradicts_the_published_is_wrong(folder, line):
    (folder / "all.solu").write_text(line + "\n")
    b = solver_benchmark(["highs"], folder, isolate=False, progress=False)
    assert len(b.wrong) == 1 and line.split()[1] in b.wrong[0]
    assert b.frame["solved"].sum() == 3 and b.frame["wrong"].sum() == 1


def test_proofs_are_counted_and_their_files_checked(folder, tmp_path):
    pytest.importorskip("flint")
    how = {"isolate": False, "progress": False, "certify": True, "store": tmp_path / "b.sqlite"}
    for _ in range(2):  # the second time from the store
        b = solver_benchmark(["highs"], folder, **how)
        proved = {r.instance: (r.proved_by, r.checked) for r in b.comparison.rows}
        assert proved["plan"] == proved["whole"] == proved["none"] == ("exact certificate", True)
        assert proved["ever"] == ("claim", False)  # unbounded: no file states that
    assert "exact certificate  yes" in b.comparison.table()


class Boastful(Highs):
    """Claims bounds that its own points refute."""

    def session(self, program):
        session = super().session(program)
        honest = session.solve

        def solve(options):
            result = honest(options)
            return replace(result, bound=result.objective + 1.0)

        session.solve = solve
        return session


def test_files_are_read_where_they_are_solved(folder, monkeypatch):
    read = []
    monkeypatch.setattr(ModelFile, "sense", property(lambda self: read.append(self) or "max"))
    b = solver_benchmark(["highs"], folder, instances=["plan", "whole"], progress=False)
    assert b.frame["objective"].tolist() == [2.0, 2.5] and {r.sense for r in b.comparison.rows} == {"max"}
    assert not read
    monkeypatch.setattr(isolate, "_STARTUP", 0.0)
    b = solver_benchmark(["highs"], folder, instances=["plan"], progress=False)
    assert b.frame["message"].tolist() == ["killed: not started after 0 s"] and [
        r.sense for r in b.comparison.rows
    ] == ["max"]
    assert len(read) == 1


def test_a_file_is_read_before_the_clock_of_its_run(folder, monkeypatch):
    read, at = [], []
    monkeypatch.setattr(library, "read_into", lambda *given: read.append(given) or read_into(*given))
    job = Job("plan", ModelFile(path=str(folder / "plan.mps")), "model", "highs", time_limit=10.0)
    assert measure(job, lambda: at.append(len(read))).status is fo.Status.OPTIMAL
    assert at == [len(read)] and read


def test_an_answer_that_failed_has_no_proof(monkeypatch):
    """A point of the model may be left and be optimal, but it is no answer."""
    pytest.importorskip("flint")
    backends()
    monkeypatch.setitem(registry._BACKENDS, "boastful", Boastful("boastful"))
    p = fo.load("postprocessing/two-groups")
    honest, boastful = fo.compare(p, ["lp@highs", "lp@boastful"], certify=True, isolate=False).rows
    assert (honest.proved_by, honest.certified) == ("exact certificate", True)
    assert boastful.status is fo.Status.FAILED and (boastful.proved_by, boastful.certified) == ("", False)


def test_refusals(folder, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(fo.DeclarationError, match="no file that ends in"):
        solver_benchmark(["highs"], tmp_path / "empty")
    with pytest.raises(fo.DeclarationError, match="no model 'plam'"):
        solver_benchmark(["highs"], folder, instances=["plam"])
    with pytest.raises(ValueError, match="backend"):
        solver_benchmark(["nope"], folder)
    with pytest.raises(fo.DeclarationError, match="needs a backend"):
        solver_benchmark([], folder)


def test_the_library_and_the_command(folder):
    b = solver_benchmark(
        ["highs"], instances=["strategic/max-cover-60-40-8"], isolate=False, progress=False, time_limit=30
    )
    assert [r.instance for r in b.comparison.rows] == ["strategic-max-cover-60-40-8"]
    assert len(b.known) == 1 and b.wrong == ()


def test_seeds_and_orders_are_variants_of_the_same_answer(folder):
    b = solver_benchmark(["highs"], folder, isolate=False, progress=False, seeds=2, orders=[0, 3])
    assert b.wrong == () and len(b.frame) == 4 * 2 * 2
    assert set(b.frame["variant"]) == {"0,0", "1,0", "0,3", "1,3"}
    assert b.frame.groupby("instance")["objective"].nunique(dropna=False).tolist() == [1] * 4
    assert len({row.fingerprint for row in b.comparison.rows}) == 4 * 2


def test_an_order_moves_rows_and_columns_and_keeps_the_model(tmp_path):
    rng = np.random.default_rng(1)
    m = fo.Model("many")
    x = m.variable("x", 12, lower=0, upper=rng.integers(1, 9, 12), integer=True)
    m.subject_to(rng.integers(0, 5, (8, 12)) @ x <= 40)
    m.maximize(rng.integers(1, 9, 12) @ x)
    m.write(tmp_path / "many.mps.xz")
    own, other = (
        ModelFile(path=str(tmp_path / "many.mps.xz"), order=k).solve(backend="highs") for k in (0, 7)
    )
    assert own.objective == other.objective == m.solve().objective
    assert list(own.decision) != list(other.decision) and sorted(own.decision) == sorted(other.decision)
    m.minimize(fo.sum_squares(x - 2.5) + x[0])  # a Hessian moves with its columns
    m.write(tmp_path / "square.mps")
    m = fo.read(tmp_path / "square.mps")
    values = [
        ModelFile(path=str(tmp_path / "square.mps"), order=k).solve(backend="scip").objective for k in (0, 7)
    ]
    assert values[0] == pytest.approx(values[1])


def test_a_process_is_bound_to_its_threads(folder):
    b = solver_benchmark(["highs"], folder, instances=["plan"], progress=False, threads=1)
    assert b.frame["solved"].all() and (b.frame["cpu"] > 0).all() and (b.frame["peak_memory"] > 0).all()


def test_a_backend_with_options():
    m = fo.Model()
    x = m.variable("x", 3, lower=0, upper=5, integer=True)
    m.subject_to(3 * x[0] + 5 * x[1] + 7 * x[2] <= 31)
    m.maximize(x @ [4.0, 6.0, 9.0])
    s = m.solve("highs[presolve=off]")
    assert s.objective == m.solve("highs").objective and s.backend == "highs[presolve=off]"
    assert "Presolve is switched off" in s.log
    with pytest.raises(fo.BackendError, match="refuses the option presolv"):
        m.solve("highs[presolv=off]")
    with pytest.raises(fo.DeclarationError, match=r"NAME\[OPTION=VALUE"):
        m.solve("highs[presolve]")
    with pytest.raises(ValueError, match="backend"):
        m.solve("hihgs[presolve=off]")
