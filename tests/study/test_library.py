import contextlib
import gzip
import hashlib
import io
import json
import os
import random
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import forcopt as fo
from forcopt import check
from forcopt.instance import Instance, by_name
from forcopt.problem import problem_classes
from forcopt.study import library
from forcopt.study.store import metadata

SMALL = [
    "allocation/precision-5-2",
    "allocation/budget-20",
    "allocation/private-20",
    "amplification/test-10",
    "amplification/design-10",
    "auctions/welfare-10-4-2",
    "calibrated/scores-2-10",
    "calibrated/transport-10",
    "cohort/lottery-50-10",
    "cohort/hitting-30-20-5",
    "districting/grid-4-2",
    "learning/thresholds-odds-200",
    "lexifair/stumps-200-3-4",
    "postprocessing/error-3",
    "strategic/max-cover-20-15-4",
    "strategic/plane-5",
    "robustness/sines-100",
    "robustness/network-5-5",
    "census/joint-40",
    "counting/mechanism-3-2-0.05",
    "decisions/seats-hill-10",
    "decisions/coverage-10",
    "queries/schedule-20-60",
    "ranking/parity-60-10",
]


WITHOUT_ROWS = {
    *("LexifairRegression", "BoundedLossRegression", "EcologicalRegression", "StableDistrict"),  # quadratic
    *("LevelBudget", "LinearQueries"),  # cones
    *(
        "CountingQueries",
        "AccuracyPlan",
        "FormulaGrant",
        "SecureSum",
    ),  # no formulation
}
"""Problems whose models linear rows cannot state."""

WITHOUT_INSTANCES = {"CountyClustering", "MulticlassPostprocessing"}
"""The problems of which the library has no instance yet."""


def test_there_are_many_of_every_problem_whose_models_files_can_hold():
    every = library.instances()
    assert len(every) >= 60
    classes = {type(instance.make()).__name__ for instance in every.values()}
    assert set(problem_classes()) - classes == WITHOUT_ROWS | WITHOUT_INSTANCES
    assert {name.partition("/")[0] for name in SMALL} == {name.partition("/")[0] for name in every}
    assert set(library.known()) <= set(every)


def test_of_each_something_is_known_and_how():
    for name in library.instances():
        fact = library.known()[name]
        assert fact["certified"] and fact["status"] in ("optimal", "infeasible", "feasible", "limit")
        if fact["status"] == "optimal":
            assert fact["bound"] == fact["objective"]
            assert fact["certified"].startswith(("exact: ", "agreed: ", "proved by one: "))
        elif fact["status"] != "infeasible":
            assert fact["bound"] is not None
            ideal, sense = (getattr(library.instances()[name].make(), k) for k in ("ideal", "sense"))
            assert ideal is None or (fact["bound"] - ideal) * (1 if sense == "min" else -1) >= 0


def test_the_page_says_what_is_known():
    folder = Path(__file__).parents[2] / "benchmarks" / "instances"
    rows = [line.strip("| \n").split(" | ") for line in (folder / "results.md").read_text().splitlines()]
    page = {row[0]: row[1:] for row in rows if row[0] in library.instances()}
    assert list(page) == list(library.instances())
    for name, (method, status, best, bound, _, certified) in page.items():
        fact = library.known()[name]
        shown = ["-" if fact[k] is None else f"{fact[k]:.8g}" for k in ("objective", "bound")]
        assert [best, bound] == [fact["exact"] or shown[0], shown[1]], name
        assert (method, status, certified) == (
            library.instances()[name].method, fact["status"], fact["certified"]
        )  # fmt: skip
    headline = json.loads((folder / "headline.json").read_text())["rows"][0]
    closed = [f for f in library.known().values() if f["status"] in ("optimal", "infeasible")]
    assert headline["what"].startswith(f"of {len(page)} instances,")
    assert headline["ours"].startswith(f"{len(closed)}: ")


@pytest.mark.parametrize("family", sorted({name.partition("/")[0] for name in library.instances()}))
def test_the_ten_fastest_of_a_family_have_the_optimum_that_is_known(family):
    """Each by a method that proved it: the problem's own algorithm where one did, else a solver."""
    facts = {
        n: f for n, f in library.known().items() if n.startswith(f"{family}/") and f["status"] == "optimal"
    }
    for name in sorted(facts, key=lambda n: facts[n]["seconds"])[:10]:
        fact, instance = facts[name], library.instances()[name]
        if fact["seconds"] > 0.5:
            continue
        problem = instance.make()
        # Some were proved by enumerations, which are oracles of other tests.
        proofs = [p for p in fact["proofs"].split() if p.partition("@")[0] in type(problem).methods]
        model, handles = problem.formulate(instance.method, **instance.options)
        label = next((p for p in proofs if "@" not in p), proofs[0])
        if handles.restricts:  # the file's optimum is one of the model alone
            found = model.solve(label.partition("@")[2]).objective * handles.unit
        else:
            own = instance.options if label.startswith(f"{instance.method}@") else {}
            found = problem.solve(label, **own).objective
        assert found == pytest.approx(fact["objective"], rel=1e-6, abs=1e-6), name


@pytest.mark.parametrize("name", SMALL)
def test_an_instance_is_drawn_as_it_was_when_it_was_solved(name):
    one, other = (library.instances()[name].make() for _ in range(2))
    assert metadata(one) == metadata(other)
    assert metadata(one)["fingerprint"] == library.known()[name]["fingerprint"]


def test_no_instance_depends_on_the_last_bits_of_a_processor():
    """The last bits of exponentials and products differ between processors, and with them a fingerprint."""
    drawn = {name: metadata(instance.make())["fingerprint"] for name, instance in library.instances().items()}
    assert drawn == {name: fact["fingerprint"] for name, fact in library.known().items()}


@pytest.mark.parametrize("form", ["mps", "lp"])
def test_the_files_have_the_optima_of_the_manifest(tmp_path, form):
    files = library.export(tmp_path / "new", form, SMALL)
    entries = json.loads(files[-1].read_text())
    assert files[-1].name == "manifest.json" and [e["name"] for e in entries] == sorted(
        SMALL, key=list(library.instances()).index
    )
    for path, entry in zip(files, entries, strict=False):
        assert path.name == entry["file"]
        assert hashlib.sha256(path.read_bytes()).hexdigest() == entry["sha256"]
        model = fo.read(path)
        assert (model.row_count, model.column_count) == (entry["rows"], entry["columns"])
        assert entry["status"] == "optimal"
        assert model.solve().objective == pytest.approx(entry["objective"], rel=1e-6, abs=1e-9)


def stored():
    """The instances with a proof."""
    return [i for i in library.instances().values() if library.proof(i) is not None]


def accepted(instance, folder):
    """Whether the checker accepts the stored proof of the file that is written now, and names the optimum."""
    files = library.export(folder, "mps", [instance.name])
    (entry,) = [e for e in json.loads(files[-1].read_text()) if e["name"] == instance.name]
    with contextlib.redirect_stdout(io.StringIO()) as said:
        code = check.main([str(folder / entry["proof"]), str(folder / entry["file"])])
    value = Fraction(said.getvalue().split("a point attains ")[1].split(";")[0])
    assert float(value) == pytest.approx(entry["objective"], rel=1e-6, abs=1e-9)
    return code == 0


def test_a_stored_proof_is_exported_and_accepted(tmp_path):
    assert accepted(library.instances()["districting/grid-4-2"], tmp_path)
    assert len(stored()) >= 15
    assert sum(len(library.proof(i)) for i in stored()) < 1e6
    packages = {type(i.make()).__module__.split(".")[2] for i in stored()}
    files = [f for p in packages for f in (Path(__file__).parents[2] / "models" / p / "proofs").iterdir()]
    assert {f.name for f in files} == {library.file_name(i, "vipr.gz") for i in stored()}  # none that is gone
    (entry,) = json.loads(library.export(tmp_path / "lp", "lp", ["districting/grid-4-2"])[-1].read_text())
    assert entry["proof"] is None  # of the MPS file


@pytest.mark.nightly
def test_a_tenth_of_the_stored_proofs_is_accepted(tmp_path):
    rng, every = random.Random(os.environ["FORCOPT_TEST_SEED"]), stored()
    for instance in rng.sample(every, len(every) // 10 + 1):
        assert accepted(instance, tmp_path / instance.name.replace("/", "-")), instance.name


def test_a_file_counts_in_its_own_units(tmp_path):
    (entry,) = json.loads(library.export(tmp_path, "mps", ["allocation/private-20"])[-1].read_text())
    fact = library.known()["allocation/private-20"]
    assert entry["unit"] != 1 and entry["objective"] * entry["unit"] == pytest.approx(fact["objective"])


def test_what_is_known_of_another_draw_is_not_said(tmp_path, monkeypatch):
    stale = {"amplification/test-10": {**library.known()["amplification/test-10"], "fingerprint": "other"}}
    monkeypatch.setattr(library, "known", lambda: stale)
    (entry,) = json.loads(library.export(tmp_path, "mps", ["amplification/test-10"])[-1].read_text())
    assert entry["objective"] is None and entry["certified"] is None and entry["rows"] == 36


def test_a_comparison_measures_against_the_best_known(monkeypatch):
    name = "strategic/max-cover-20-15-4"
    fact = library.known()[name]
    result = fo.compare(name, ["greedy-deletion", "milp"], isolate=False)
    assert [row.instance for row in result.rows] == [name] * 2
    assert result.rows[1].gap_to_best == 0
    better = {name: {**fact, "objective": 2 * fact["objective"]}}
    monkeypatch.setattr(library, "known", lambda: better)
    again = fo.compare(name, ["milp"], isolate=False)
    assert again.rows[0].gap_to_best == pytest.approx(0.5)


def test_bad_input_is_refused(tmp_path):
    with pytest.raises(fo.UnknownNameError, match="did you mean 'strategic/plane-5'"):
        library.export(tmp_path / "x", "mps", ["strategic/plan-5"])
    with pytest.raises(fo.DeclarationError, match="format is 'json'"):
        library.export(tmp_path / "x", "json")
    assert not (tmp_path / "x").exists()
    two = [Instance("a", lambda: None, "lp")] * 2
    with pytest.raises(ValueError, match="two instances are named a"):
        by_name(two)


# -- bare models from files ----------------------------------------------------------------------------------


@pytest.fixture
def bare(tmp_path):
    m = fo.Model()
    x = m.variable("x", 3, lower=0, upper=1, integer=True)
    m.subject_to(np.array([10, 20, 30]) @ x <= 50)
    m.maximize(np.array([60, 100, 120]) @ x)
    m.write(tmp_path / "sack.mps")
    return tmp_path / "sack.mps"


def test_backends_are_compared_on_a_file_beside_problems(bare):
    result = fo.compare([bare, "strategic/plane-5"], ["@highs", "@scip", "@cp-sat"], isolate=False)
    assert [(row.method, row.backend) for row in result.rows[:3]] == [
        ("model", b) for b in ("highs", "scip", "cp-sat")
    ]
    assert [row.objective for row in result.rows[:3]] == [220] * 3 and result.rows[0].sense == "max"
    assert {row.method for row in result.rows[3:]} == {"milp"} and not result.disagreements
    assert fo.compare(bare).rows[0].objective == 220  # in a process of its own


def test_a_point_of_a_file_is_judged_by_it(bare, tmp_path):
    problem = library.problem_of(bare)
    judged = problem.evaluate(np.array([1, 1, 1]))
    assert judged.objective == 280 and judged.violations == {"rows": pytest.approx(0.2)}
    bare.write_text(bare.read_text().replace("60", "61"))
    with pytest.raises(fo.DeclarationError, match="is not the file whose sha256"):
        type(problem).from_dict(problem.to_dict())
    with pytest.raises(FileNotFoundError):
        library.problem_of(tmp_path / "none.lp")


def test_a_quadratic_file_is_judged_too(tmp_path):
    m = fo.Model()
    x = m.variable("x", 2, lower=0)
    m.subject_to(x.sum() >= 2)
    m.minimize(fo.sum_squares(x) + x[0])
    m.write(tmp_path / "square.lp")
    row = fo.compare(tmp_path / "square.lp", isolate=False).rows[0]
    assert row.status == "optimal" and row.objective == pytest.approx(m.solve().objective, abs=1e-5)


@pytest.mark.parametrize("ending", ["lp", "lp.gz"])
def test_messages_name_the_file(tmp_path, ending):
    m = fo.Model()
    x = m.variable("x", lower=0, upper=9, integer=True)
    m.minimize((x - 2.5) ** 2)
    m.write(tmp_path / "square.lp")
    path = tmp_path / f"square.{ending}"
    if ending == "lp.gz":
        path.write_bytes(gzip.compress((tmp_path / "square.lp").read_bytes()))
    for source in (library.problem_of(path), fo.read(path)):
        with pytest.raises(fo.UnsupportedError, match="in model 'square'"):
            source.solve(backend="osqp")
