"""Solvers on folders of files: counts, means, published optima, and claims that contradict them."""

from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import forcopt as fo
from forcopt.backends import registry
from forcopt.backends.highs import Highs
from forcopt.backends.registry import backends
from forcopt.cli import app
from forcopt.study.solver_benchmark import Known, published, shifted_geometric_mean, solver_benchmark


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


def test_shifted_geometric_mean():
    assert shifted_geometric_mean([2, 2, 2]) == pytest.approx(2)
    assert shifted_geometric_mean([0, 3], shift=1) == pytest.approx(1)
    assert np.isnan(shifted_geometric_mean([]))


def test_all_statuses_are_right(folder, tmp_path):
    assert published(folder)["whole"] == Known(fo.Status.FEASIBLE, 2.0)
    b = solver_benchmark(
        ["highs", "glop"], folder, time_limit=20, isolate=False, progress=False, store=tmp_path / "b.sqlite"
    )
    assert b.wrong == ()
    table = b.summary().set_index("backend")
    assert table.loc["highs"].solved == 4 and table.loc["glop"].solved == 3  # GLOP takes no integers
    assert table.loc["glop"].unsolved == 1 and table.ratio.min() == 1
    assert table.loc["glop"]["mean"] >= shifted_geometric_mean([0, 0, 0, 20])
    again = solver_benchmark(
        ["highs", "glop"], folder, time_limit=20, isolate=False, progress=False, store=tmp_path / "b.sqlite"
    )
    assert [r.seconds for r in again.comparison.rows] == [r.seconds for r in b.comparison.rows]
    assert table.agreed.tolist() == [3, 3] and table.certified.tolist() == [0, 0]
    assert "profile" in b.comparison.chart("profile").title.lower() or b.comparison.chart("profile")


@pytest.mark.parametrize(
    "line",
    ["=opt= plan 2.4", "=opt= plan 2.6", "=best= plan 2.6", "=inf= plan", "=unbd= plan", "=opt= none 1"],
)
def test_what_contradicts_the_published_is_wrong(folder, line):
    (folder / "all.solu").write_text(line + "\n")
    b = solver_benchmark(["highs"], folder, isolate=False, progress=False)
    assert len(b.wrong) == 1 and line.split()[1] in b.wrong[0]
    assert b.summary().loc[0].solved == 3 and b.summary().loc[0].wrong == 1


def test_proofs_are_counted_and_their_files_checked(folder, tmp_path):
    pytest.importorskip("flint")
    how = {"isolate": False, "progress": False, "certify": True, "store": tmp_path / "b.sqlite"}
    for _ in range(2):  # the second time from the store
        b = solver_benchmark(["highs"], folder, **how)
        proved = {r.instance: (r.proved_by, r.checked) for r in b.comparison.rows}
        assert proved["plan"] == proved["whole"] == proved["none"] == ("exact certificate", True)
        assert proved["ever"] == ("claim", False)  # unbounded: no file states that
        assert b.summary().loc[0].certified == b.summary().loc[0].checked == 3
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
    run = CliRunner().invoke(app, ["benchmark", "-b", "highs", str(folder), "plan"])
    assert run.exit_code == 0 and "highs" in run.output and "mean" in run.output
    (folder / "all.solu").write_text("=inf= plan\n")
    run = CliRunner().invoke(app, ["benchmark", "-b", "highs", str(folder), "plan"])
    words = "wrong: plan: published claims infeasible, but model@highs found 2.5"
    assert run.exit_code == 1 and words in run.output
