"""Rules and reports of a benchmark of solvers: classes, profiles, integrals, changes since an older one."""

import json
from dataclasses import replace

import numpy as np
import pytest

import forcopt as fo
from benchmarks.__main__ import main
from benchmarks.solvers import kinds
from benchmarks.solvers.files import Chosen, choose
from benchmarks.solvers.kinds import of_file
from benchmarks.solvers.report import Report
from benchmarks.solvers.rules import classes, integral, integrals, ranking, targets, with_integrals
from forcopt.clock import Improvement
from forcopt.status import Status
from forcopt.study.comparison import Comparison
from forcopt.study.run import Run
from forcopt.study.solver_benchmark import Known, SolverBenchmark

pytest.importorskip("pandas")


def run(instance, backend, status=Status.OPTIMAL, objective=np.nan, seconds=1.0, **more):
    """A run of a model with a whole column and another one."""
    known = {"violation": 0.0, "seed": 0, "columns": 2, "integers": 1, "bound": objective}
    return Run(
        *(instance, "model", backend, status, "min", True, objective), seconds=seconds, **(known | more)
    )


def report(*rows, limit=5.0, known=None, chosen=None):
    """The report of runs."""
    return Report(SolverBenchmark(Comparison(rows), known or {}, limit), "{instance}", chosen)


KILLED = {"columns": None, "integers": None, "message": "killed: still running 5 s after its time limit"}
REFUSED = {"columns": None, "integers": None, "message": "UnsupportedError: backend 'glop' cannot take it"}


def test_each_class_has_a_profile_of_the_solvers_that_take_it():
    rows = [run("mix", "highs", objective=1.0), run("mix", "glop", Status.FAILED, **REFUSED)]
    rows += [run("plan", name, objective=1.0, integers=0) for name in ("highs", "glop")]
    page = report(*rows).page()
    mixed, plan = (
        page.index(f'aria-label="Performance profile, {kind}"') for kind in ("mixed", "continuous")
    )
    assert plan < mixed and ">glop</text>" in page[plan:mixed] and page.count("<polyline") == 3
    assert ">glop</text>" not in page[mixed:] and ">highs</text>" in page[mixed:]


@pytest.fixture
def folder(tmp_path):
    """Models of the three classes in both formats."""
    for name, whole in (("plan", [0, 0, 0]), ("mix", [1, 0, 0]), ("whole", [1, 1, 1])):
        m = fo.Model(name)
        x = m.variable("x", 3, lower=0, upper=[1, 4, 9], integer=np.array(whole) > 0)
        m.subject_to(x.sum() <= 7.5, 2 * x[0] + x[2] >= 1)
        m.maximize(x @ [1.0, 2.0, 0.0])
        m.write(tmp_path / f"{name}.mps.gz")
        m.write(tmp_path / f"{name}.lp.bz2")
    return tmp_path


def test_the_text_of_a_file_tells_its_class(folder, monkeypatch):
    for name, kind in (("plan", "continuous"), ("mix", "mixed"), ("whole", "integer")):
        assert of_file(folder / f"{name}.mps.gz") == of_file(folder / f"{name}.lp.bz2") == kind
    text = "NAME a\nROWS\n N c\nCOLUMNS\n x c 1\n y c 2\nBOUNDS\n BV b x\n{}ENDATA\n"
    (folder / "a.mps").write_text(text.format(""))
    (folder / "b.mps").write_text(text.format(" LI y 3\n"))
    assert (of_file(folder / "a.mps"), of_file(folder / "b.mps")) == ("mixed", "integer")
    (folder / "c.lp").write_text(
        "min\n o: 2 x + 1e3 y\nst\n r(1): x + y >= 2\nbounds\n x free\nbin\n y\nend\n"
    )
    assert of_file(folder / "c.lp") == "mixed"
    monkeypatch.setattr(kinds, "LARGEST", 3)
    assert of_file(folder / "c.lp") == "unknown"
    below = folder / "tier"
    below.mkdir()
    (below / "features.csv").write_text("name,rows,integers\nc,1,0.5\nd,1,1\n")
    (below / "manifest.json").write_text(json.dumps([{"file": "e.lp", "integers": 0, "columns": 4}]))
    assert [of_file(below / name) for name in ("c.lp", "d.mps", "e.lp")] == ["mixed", "integer", "continuous"]


def test_a_solver_is_not_asked_what_it_certainly_refuses(folder, capsys, monkeypatch):
    asked = []
    import benchmarks.solvers.solve as solve

    honest = solve.solver_benchmark
    monkeypatch.setattr(
        solve,
        "solver_benchmark",
        lambda group, own, **how: (
            asked.append((group, list(own))) or honest(group, own, isolate=False, **how)
        ),
    )
    words = ["--solvers", "glop,cp-sat,highs", "--permutations", "2", "--out", str(folder / "out")]
    assert main([str(folder), "--time-limit", "20", *words]) == 0
    told = json.loads((folder / "out" / "results.json").read_text())["runs"]
    refused = {(row["instance"], row["backend"]) for row in told if row["refused"]}
    assert {("mix", "glop"), ("whole", "glop"), ("plan", "cp-sat")} <= refused and len(told) == 3 * 3 * 2
    assert (("cp-sat", "highs"), ["mix", "whole"]) in asked and (("glop", "highs"), ["plan"]) in asked
    assert {row["class"] for row in told if row["instance"] == "whole"} == {"integer"}
    capsys.readouterr()


def test_a_killed_run_of_a_solver_that_cannot_take_the_model_does_not_count(folder):
    rows = [run("mix", name, Status.LIMIT, **KILLED) for name in ("highs", "glop", "cp-sat")]
    chosen = Chosen(dict(choose(folder).files))
    found = report(*rows, chosen=chosen).runs.set_index("backend")
    assert set(found["class"]) == {"mixed"} and found["refused"].to_dict() == {
        "highs": False,
        "glop": True,
        "cp-sat": True,
    }
    lost = report(*rows)  # nothing tells the class
    assert set(lost.runs["class"]) == {"unknown"} and not list(classes(lost.runs)) and lost.ranking.empty
    assert "mix: no run and no file tells its size" in lost.text()


def test_integrals_of_the_gap():
    steps = [Improvement(1.0, 20.0, -5.0), Improvement(3.0, 10.0, 10.0)]
    assert integral(steps, 4.0, 10.0) == pytest.approx(0.5)
    assert integral(steps, 4.0, 10.0, "bound") == pytest.approx(0.75)  # a bound of the other sign: gap 1
    assert integral([], 4.0, 10.0) == 1.0 and np.isnan(integral(steps, 4.0, np.nan))
    assert integral([Improvement(9.0, 10.0, 10.0)], 4.0, 10.0) == 1.0
    assert integral([Improvement(0.0, 1e-12, 0.0)], 4.0, 0.0) < 0.01


def test_integrals_count_the_end_of_a_run_and_runs_without_a_point():
    late = run("a", "highs", objective=10.0, seconds=0.87, trace=(Improvement(0.5, 20.0, 5.0),))
    rows = [
        late,
        run("a", "scip", Status.LIMIT, bound=5.0),
        run("b", "highs", Status.FEASIBLE, 30.0, bound=15.0),
        run(
            "b (order 1)",
            "scip",
            Status.FEASIBLE,
            15.0,
            bound=10.0,
            seconds=5.0,
            trace=(Improvement(2.5, 15.0, 1.0),),
        ),
        run("a", "glop", objective=10.0),  # reports no improvements
    ]
    found = with_integrals(report(*rows).result.frame, rows, {}, 5.0)
    assert found["primal integral"].round(4).tolist()[:2] == [round((0.5 + 0.37 * 0.5) / 5, 4), 1.0]
    assert found["gap integral"][0] == pytest.approx((0.5 + 0.37 * 0.5) / 5)
    assert found["primal integral"][2] == pytest.approx((1.0 + 4.0 * 0.5) / 5)  # to the best one in any order
    assert found["primal integral"][3] == pytest.approx(0.5) and np.isnan(found["primal integral"][4])
    quick = [replace(late, trace=()), run("b", "highs", objective=1.0, trace=(Improvement(0.1, 1.0, 1.0),))]
    found = with_integrals(report(*quick).result.frame, quick, {}, 5.0)
    assert found["primal integral"][0] == pytest.approx(0.174)


def test_targets_are_published_values_or_the_best_of_all_runs():
    rows = [run("a", "highs", objective=2.0), run("a (order 1)", "scip", objective=1.0)]
    rows += [run("b", "highs", objective=2.0), run("c", "highs", Status.INFEASIBLE)]
    rows += [run("a", "osqp", objective=0.0, violation=1.0)]
    frame = report(*rows).result.frame
    assert targets(frame, rows, {}) == {"a": 1.0, "b": 2.0}
    known = {"a": Known(Status.OPTIMAL, 2.0), "b": Known(Status.FEASIBLE, 3.0), "c": Known(Status.INFEASIBLE)}
    assert targets(frame, rows, known) == {"a": 2.0, "b": 2.0}


def test_mean_integrals_are_over_the_runs_that_all_solvers_have():
    step = (Improvement(0.5, 10.0, 10.0),)
    rows = [
        run("a", name, objective=10.0, seconds=t, trace=step) for name, t in (("highs", 1.0), ("scip", 2.0))
    ]
    rows += [run("b", "highs", objective=10.0, seconds=4.0)]  # scip's run was interrupted
    table = integrals(report(*rows).runs).set_index("backend")
    assert table["runs"].tolist() == [1, 1] and set(table["class"]) == {"mixed"}
    assert table["primal integral"].tolist() == pytest.approx([0.1, 0.1])


def test_what_changed_since_older_results(tmp_path):
    old = [run("a", "highs", objective=1.0), run("b", "highs", objective=1.0, seconds=0.8)]
    old += [run("c", "highs", objective=2.0), run("gone", "highs", objective=1.0)]
    report(*old).write(tmp_path)
    told, worse = report(*old).against(tmp_path / "results.json")
    assert told == "highs  -> : 4 runs in both; solved 4 -> 4; mean 0.948 -> 0.948 s" and not worse
    new = [run("a", "highs", Status.LIMIT), run("b", "highs", objective=1.0, seconds=2.0)]
    new += [run("c", "highs", objective=2.0), run("new", "highs", objective=1.0)]
    told, worse = report(*new, known={"c": Known(Status.OPTIMAL, 3.0)}, limit=4.0).against(
        tmp_path / "results.json"
    )
    assert worse and "worse: 2 runs" in told and "time limit: 5 -> 4 s" in told
    assert "added: new" in told and "dropped: gone" in told
    assert "a (0,0): optimal -> limit; worse" in told and "b (0,0): 0.800 -> 2.000 s" in told
    assert "c (0,0): a new wrong claim; worse" in told
    slower = [replace(row, seconds=2 * row.seconds + 0.5) for row in old]
    assert not report(*slower).against(tmp_path / "results.json")[1]
    told, worse = report(run("d", "highs", objective=1.0)).against(tmp_path / "results.json")
    assert "no run is also in" in told and not worse


def test_another_answer_than_before_is_worse(tmp_path):
    old = [
        run("a", "highs", objective=1.0),
        run("b", "highs", objective=2.0),
        run("b", "scip", objective=2.0),
    ]
    report(*old).write(tmp_path)
    new = [run("a", "highs", objective=1.5), run("b", "highs", Status.INFEASIBLE)]
    told, worse = report(*new).against(tmp_path / "results.json")
    assert worse and "worse: 2 runs" in told and "dropped solvers: scip" in told
    assert "a (0,0): 1.0 -> 1.5: one of the two is wrong" in told
    assert "b (0,0): optimal -> infeasible; 2.0 -> nan: one of the two is wrong" in told
    near = [replace(row, objective=row.objective + 1e-5) for row in old]
    assert not report(*near).against(tmp_path / "results.json")[1]
    for text in ("[]", "no JSON", '{"runs": [{"a": 1}], "time_limit": 3}'):
        (tmp_path / "other.json").write_text(text)
        with pytest.raises(ValueError, match=r"other\.json is no results\.json of an earlier benchmark"):
            report(*old).against(tmp_path / "other.json")
    with pytest.raises(ValueError, match=r"none\.json is no results\.json"):
        report(*old).against(tmp_path / "none.json")


def test_what_the_checks_refute_is_not_credited_to_the_solver():
    lie = "none; but a point satisfies all rows; solved again by scip: Optimal"
    doubt = (
        "Optimal; but its point violates a row by 2e-06; solved again by scip, with the same answer: Optimal"
    )
    rows = [run("a", "highs", objective=1.0, message=lie), run("a", "scip", objective=1.0, message=doubt)]
    made = report(*rows)
    assert made.result.frame[["solved", "wrong"]].to_numpy().tolist() == [[False, True], [True, False]]
    assert made.result.wrong == (f"a: model@highs: {lie}",)
    assert made.ranking.set_index("backend").loc["highs", "solved"] == 0
    assert made.runs["primal integral"].isna().all() or made.runs["primal integral"][0] == 1.0


def test_a_point_of_another_order_makes_a_claim_wrong():
    rows = [
        run("a", "highs", objective=2.0, bound=2.0, fingerprint="x"),
        run("a (order 1)", "scip", objective=1.0, bound=1.0, fingerprint="y"),
    ]
    result = report(*rows).result
    assert result.frame["wrong"].tolist() == [True, False] and len(result.wrong) == 1
    late = run("a", "highs", Status.FEASIBLE, objective=3.0, bound=2.0)
    assert report(late, rows[1]).result.frame["wrong"].tolist() == [True, False]


def test_logs_of_names_that_differ_in_signs_are_kept_apart(tmp_path):
    rows = [run(name, "highs", objective=1.0, log=name) for name in ("a b", "a-b", "a#b", "a%b")]
    report(*rows).write(tmp_path)
    assert sorted(path.read_text() for path in (tmp_path / "logs").iterdir()) == ["a b", "a#b", "a%b", "a-b"]


def test_the_virtual_best_takes_the_one_that_solved_it_at_the_limit():
    frame = report(
        run("a", "scip", Status.LIMIT, seconds=5.0), run("a", "highs", objective=1.0, seconds=7.0)
    ).runs
    for runs in (frame, frame[::-1]):
        assert ranking(runs, 5.0).set_index("backend").loc["virtual best", "solved"] == 1


def test_a_regression_ends_with_an_error(folder, tmp_path, capsys):
    words = [str(folder), "plan", "--solvers", "highs"]
    assert main([*words, "--out", str(tmp_path / "out")]) == 0
    path = tmp_path / "out" / "results.json"
    (folder / "all.solu").write_text("=opt= plan 3.0\n")
    path.write_text(path.read_text())
    assert main([*words, "--against", str(path)]) == 1
    assert "plan (0,0): a new wrong claim; worse" in capsys.readouterr().out
