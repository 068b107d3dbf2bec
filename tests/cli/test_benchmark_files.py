"""What benchmarks read, write and select: conic files, tiers of instances, verdicts on answers."""

import bz2
import json
import lzma
from fractions import Fraction

import numpy as np
import pytest

import forcopt as fo
from benchmarks.__main__ import main
from benchmarks.cbf import ConicFile, read_cbf, write_cbf
from benchmarks.honesty.run import judged, verdict
from benchmarks.honesty.worker import check_claim, declared, program_of
from benchmarks.instances import tiers
from benchmarks.instances.tiers import features, spread
from benchmarks.solvers.files import choose, read_list
from benchmarks.solvers.pictures import profile
from forcopt.study.solver_benchmark import published


def conic(seed):
    """A random model with rows of all kinds, a norm, and every second time exponentials and integers."""
    rng = np.random.default_rng(seed)
    m = fo.Model("conic")
    x = m.variable("x", 4, lower=rng.integers(-3, 1, 4), upper=rng.integers(2, 6, 4))
    m.subject_to(rng.integers(-2, 3, (2, 4)) @ x <= 7, x.sum() >= 0.5, (x[0] - x[1]).between(-2, 3))
    m.subject_to(fo.norm(x[:3] - 0.5) <= x[3] + 4)
    if seed % 2:
        y = m.variable("y", 2, lower=0, upper=3)
        m.subject_to(y.sum() == 2)
        m.minimize(fo.exp(x[0]) + fo.sum_squares(x) - 2 * x[1] + fo.kl_div(y[0] + 0.1, y[1] + 0.2))
    else:
        m.maximize(rng.integers(-3, 4, 4) @ x + 2.5)
    return m


@pytest.mark.parametrize("seed", range(6))
def test_a_conic_file_holds_the_same_model(seed, tmp_path):
    m = conic(seed)
    write_cbf(m, tmp_path / "a.cbf")
    again = read_cbf(tmp_path / "a.cbf")
    value = m.solve("clarabel").objective
    assert again.solve("clarabel").objective == pytest.approx(value, abs=1e-5)
    write_cbf(again, tmp_path / "b.cbf")
    assert read_cbf(tmp_path / "b.cbf").solve("scs").objective == pytest.approx(value, abs=1e-2)
    cp = pytest.importorskip("cvxpy")
    problem = m.to_cvxpy()
    assert problem.solve(solver=cp.CLARABEL) == pytest.approx(value, abs=1e-5)


def test_integers_and_rotated_cones_of_a_file(tmp_path):
    m = fo.Model("whole")
    x = m.variable("x", 3, lower=0, upper=4, integer=True)
    m.subject_to(fo.norm(x) <= 5.2)
    m.maximize(x @ [1.0, 2.0, 1.5])
    write_cbf(m, tmp_path / "a.cbf")
    assert read_cbf(tmp_path / "a.cbf").solve("scip").objective == pytest.approx(13.5)
    text = "VER\n2\n\nOBJSENSE\nMIN\n\nVAR\n3 1\nQR 3\n\nCON\n2 1\nL= 2\n\nOBJACOORD\n1\n0 1.0\n\n"
    text += "ACOORD\n2\n0 1 1.0\n1 2 1.0\n\nBCOORD\n2\n0 -2.0\n1 -3.0\n"  # 2 x 2 >= 9
    (tmp_path / "b.cbf").write_text(text)
    assert read_cbf(tmp_path / "b.cbf").solve("clarabel").objective == pytest.approx(9 / 4, abs=1e-6)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("VER\n2\n\nPSDVAR\n1\n3\n", "the section PSDVAR has no counterpart"),
        ("VER\n3\n\nVAR\n3 1\nGMEANABS 3\n\nOBJACOORD\n1\n0 1\n", "the cone GMEANABS has no counterpart"),
        ("VER\n9\n", "version 9"),
        ("VER\n2\n\nVAR\n3 2\nF 3\n", "cut off or no CBF"),
        ("NAME lp\nROWS\n", "cut off or no CBF"),
        ("VER\n3\n\nVAR\n2 2\nF 1\nL+ 2\n", "the cones of VAR have 3 entries, not 2"),
        ("VER\n3\n\nVAR\n1 1\nF 1\n\nCON\n2 1\nL+ 1\n", "the cones of CON have 1 entries, not 2"),
        ("VER\n3\n\nVAR\n2 1\nEXP 2\n", "a cone EXP has 2 entries"),
        ("VER\n3\n\nVAR\n1 1\nF 1\n\nINT\n1\n-1\n", "INT names the index -1"),
        ("VER\n3\n\nVAR\n1 1\nF 1\n\nOBJACOORD\n1\n1 2.0\n", "OBJACOORD names the index 1"),
        ("VER\n3\n\nOBJSENSE\nBEST\n\nVAR\n1 1\nF 1\n", "OBJSENSE is 'BEST'"),
    ],
)
def test_conic_files_that_are_refused(tmp_path, text, words):
    (tmp_path / "a.cbf").write_text(text)
    with pytest.raises(ValueError, match=words):
        read_cbf(tmp_path / "a.cbf")


def test_a_semidefinite_cone_is_not_written(tmp_path):
    m = fo.Model()
    x = m.variable("x", (2, 2))
    m.subject_to(fo.semidefinite(x), x[0, 0] + x[1, 1] == 1, x[0, 1] == x[1, 0])
    m.maximize(x[0, 1])
    with pytest.raises(fo.UnsupportedError, match="semidefinite"):
        write_cbf(m, tmp_path / "a.cbf")


def test_no_objective_and_no_family_is_lost_in_a_conic_file(tmp_path):
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=1)
    m.lexicographic([fo.minimize(x.sum()), fo.maximize(x[0])])
    with pytest.raises(fo.UnsupportedError, match="2 objectives in order of priority"):
        write_cbf(m, tmp_path / "a.cbf")
    m.leximin(x)
    with pytest.raises(fo.UnsupportedError, match="2 objectives in order of priority"):
        write_cbf(m, tmp_path / "a.cbf")
    m.minimize(fo.power(x[0], 3))
    with pytest.raises(fo.UnsupportedError, match=r"convex_power.*able: .*clarabel"):
        write_cbf(m, tmp_path / "a.cbf")
    m.minimize(x.sum())
    m.lazy(lambda values: [], name="cuts")
    with pytest.raises(fo.UnsupportedError, match="lazy family 'cuts'"):
        write_cbf(m, tmp_path / "a.cbf")


def test_a_folder_of_a_stranger(tmp_path, capsys):
    """Endings in capitals, names with blanks and tildes, twice the same name, foreign tables beside them."""
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=3)
    m.subject_to(2 * x[0] + 2 * x[1] <= 5, fo.norm(x) <= 9)
    m.maximize(x.sum())
    write_cbf(m, tmp_path / "CONE.CBF")
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=3)
    m.subject_to(2 * x[0] + 2 * x[1] <= 5)
    m.maximize(x.sum())
    (tmp_path / "below").mkdir()
    for name, after in (
        ("plan.mps", "PLAN~1.MPS"),
        ("plan.lp.gz", "ä b.LP.GZ"),
        ("PLAN.mps", "PLAN.mps"),
        ("below/PLAN.mps", "below/PLAN.mps"),
    ):
        m.write(tmp_path / name)
        (tmp_path / name).rename(tmp_path / after)
    (tmp_path / "manifest.json").write_text('{"name": "another program\'s"}')
    (tmp_path / "features.csv").write_text("a,b\n1,2\n")
    (tmp_path / "all.solu").write_text("=opt= ä b 2.5\n=opt= PLAN~1 2.5\n=unkn= PLAN\n")
    with pytest.warns(UserWarning, match=r"manifest\.json gives no optima: it is no list of instances"):
        assert published(tmp_path)["ä b"].objective == 2.5
    out = tmp_path / "out"
    words = ["--solvers", "highs", "--permutations", "2", "--out", str(out)]
    assert main([str(tmp_path), "PLAN~1", "ä b", *words]) == 0
    assert (
        "1 files are left out, since another of the same name is taken: below/PLAN.mps"
        in capsys.readouterr().err
    )
    told = json.loads((out / "results.json").read_text())["runs"]
    assert {(row["instance"], row["order"]) for row in told} == {
        (n, o) for n in ("PLAN~1", "ä b") for o in (0, 1)
    }
    assert all(row["solved"] and row["objective"] == pytest.approx(2.5) for row in told)
    assert choose(tmp_path).kind("CONE") == "continuous" and set(choose(tmp_path).files) == {
        "PLAN",
        "PLAN~1",
        "ä b",
        "CONE",
    }
    assert fo.read(tmp_path / "ä b.LP.GZ").solve().objective == pytest.approx(2.5)
    assert fo.read(tmp_path / "CONE.CBF").solve("clarabel").objective == pytest.approx(2.5)
    with pytest.raises(fo.DeclarationError, match=r"PLAN~1\.MPS is no folder; write .* PLAN~1"):
        main([str(tmp_path / "PLAN~1.MPS"), "--solvers", "highs"])
    (tmp_path / "all.solu").write_text("=opt= PLAN 2,5\n")
    with pytest.raises(fo.DeclarationError, match=r"all\.solu: '=opt= PLAN 2,5' must end in a number"):
        published(tmp_path)


def test_features_tell_symmetry_trivial_models_and_equals():
    rng = np.random.default_rng(3)
    m = fo.Model()
    x = m.variable("x", 20, lower=0, upper=3, integer=True)
    rows = rng.integers(1, 90, (6, 20))
    rows[:, 1] = rows[:, 0]
    m.subject_to(rows @ x <= 400)
    m.maximize(rng.integers(1, 90, 20) @ x)
    found, digest, trivial = features(m)
    assert (found["rows"], found["columns"], found["entries"], found["integers"]) == (6, 20, 120, 1.0)
    assert found["symmetry"] == pytest.approx(1 / 20) and found["degeneracy"] == pytest.approx(5 / 6)
    assert features(m)[1] == digest
    m.maximize(x.sum())
    assert features(m)[1] != digest
    m = fo.Model()
    y = m.variable("y", lower=0, upper=1)
    m.subject_to(y <= 5)
    m.maximize(y)
    assert features(m)[2] and not trivial  # presolve leaves nothing of this one


def test_instances_are_chosen_far_apart():
    points = np.array([[0.0, 0.0], [0.1, 0.0], [5.0, 5.0], [5.1, 5.0], [0.0, 9.0]])
    assert spread(points, 3) in ([0, 3, 4], [0, 2, 4]) and spread(points, 9) == [0, 1, 2, 3, 4]
    assert spread(np.zeros((3, 2)), 3) == [0, 1, 2]


DATA = {
    "cost": [1.0, 2.0], "lower": [0.0, 8.0], "upper": [20.0, 20.0], "integer": [1, 0], "rows": [[1.0, 1.0]],
    "low": [20.1], "high": [float("inf")], "square": None, "maximize": False,
}  # fmt: skip
"""ERGO-Code/HiGHS#2957: 28.2 is the optimum, 29 was claimed."""


def test_a_wrong_claim_of_another_version_is_mended():
    program = program_of(declared(DATA))
    assert program["integer"] == [1, 0] and program["low"] == [20.1]
    for x, fate in (([12.0, 8.1], "right"), ([13.0, 8.0], "mended"), ([12.0, 8.0], "mended")):
        answer = check_claim(DATA, {"status": "kOptimal", "x": x, "bound": x[0] + 2 * x[1]})
        assert judged(answer, ("optimal", "141/5"), 1e-6) == (fate, True)
    answer = check_claim(DATA, {"status": "kInfeasible", "bound": 0.0})
    assert judged(answer, ("optimal", "141/5"), 1e-6) == ("mended", True)
    crash = check_claim(DATA, {"status": "crashed", "bound": 0.0})
    assert crash["own"]["status"] == "failed"


def test_verdicts():
    def told(**answer):
        return verdict({"status": "optimal", "violation": 0.0, **answer}, "optimal", Fraction(10), 1e-6)

    assert told(**{"objective": 10.0, "at point": 10.0}) == "right"
    assert told(**{"objective": 10.0, "at point": 10.1}) == "wrong"
    assert told(**{"objective": 10.0, "at point": 10.0, "violation": 1e-4}) == "wrong"
    assert verdict({"status": "infeasible"}, "optimal", Fraction(1), 1e-6) == "wrong"
    assert verdict({"status": "infeasible", "either": True}, "unbounded", None, 1e-6) == "no answer"
    assert verdict({"status": "limit"}, "optimal", Fraction(1), 1e-6) == "no answer"


@pytest.fixture
def folder(tmp_path):
    """Conic files, packed ones, one with a matrix that nobody takes, and a published value."""
    m = fo.Model("cone")
    x = m.variable("x", 3, lower=0, upper=4)
    m.subject_to(fo.norm(x) <= 5.2)
    m.maximize(x @ [1.0, 2.0, 1.5])
    write_cbf(m, tmp_path / "cone.cbf")
    for name, pack in (("packed.cbf.xz", lzma.compress), ("second.cbf.bz2", bz2.compress)):
        (tmp_path / name).write_bytes(pack((tmp_path / "cone.cbf").read_bytes()))
    m = fo.Model("plan")
    x = m.variable("x", 2, lower=0, upper=3)
    m.subject_to(2 * x[0] + 2 * x[1] <= 5)
    m.maximize(x.sum())
    m.write(tmp_path / "air05.lp.bz2")
    m.write(tmp_path / "air05.mps.gz")
    (tmp_path / "matrix.cbf").write_text("VER\n2\n\nPSDVAR\n1\n3\n")
    (tmp_path / "all.solu").write_text("=opt= air05 2.5\n")
    return tmp_path


def test_conic_files_of_a_folder_are_ranked_and_solvers_left_out(folder, capsys):
    m = fo.Model("whole")
    x = m.variable("x", 3, lower=0, upper=4, integer=True)
    m.subject_to(fo.norm(x) <= 5.2)
    m.maximize(x @ [1.0, 2.0, 1.5])
    write_cbf(m, folder / "whole.cbf")
    words = ["--solvers", "clarabel,highs", "--out", str(folder / "out")]
    assert main([str(folder), "cone", "whole", *words]) == 0
    told = capsys.readouterr()
    assert "clarabel cannot take 1" in told.out and "section PSDVAR" in told.err
    pd = pytest.importorskip("pandas")
    runs = pd.read_csv(folder / "out" / "runs.csv").set_index(["instance", "backend"])
    assert runs.loc["cone", "clarabel"]["class"] == "conic continuous"
    assert runs.loc["cone", "clarabel"]["objective"] == pytest.approx(CONE, rel=1e-5)
    assert runs.loc["whole", "highs"]["objective"] == pytest.approx(13.5)
    assert runs.loc["whole", "clarabel"]["refused"] and runs.loc["cone", "clarabel"]["solved"]
    page = (folder / "out" / "report.html").read_text()
    assert "<polyline" in page and "PSDVAR" in page and "Machine" in page
    assert all((folder / "out" / log).is_file() and log in page for log in runs["log"])


CONE = 5.2 * np.linalg.norm([1.0, 2.0, 1.5])
"""The bound of Cauchy and Schwarz; the point that attains it is within the bounds."""


@pytest.mark.parametrize("order", [0, 1, 2])
def test_a_conic_file_in_another_order(folder, order):
    problem = ConicFile(path=str(folder / "cone.cbf"), order=order)
    assert problem.sense == "max" and problem.solve(backend="clarabel").objective == pytest.approx(
        CONE, rel=1e-6
    )


def test_packed_conic_files_and_the_words_of_the_plain_reader(folder, monkeypatch):
    for name in ("packed.cbf.xz", "second.cbf.bz2"):
        assert fo.read(folder / name).solve("clarabel").objective == pytest.approx(CONE, rel=1e-5)
    assert set(choose(folder).files) == {"air05", "cone", "packed", "second"}
    assert choose(folder).files["air05"].name == "air05.mps.gz"
    (folder / "packed.cbf.xz").write_bytes((folder / "packed.cbf.xz").read_bytes()[:40])
    with pytest.raises(fo.DeclarationError, match="cut off or damaged"):
        read_cbf(folder / "packed.cbf.xz")
    monkeypatch.setattr("forcopt.loops.exchange.READERS", {})
    with pytest.raises(fo.DeclarationError, match=r"benchmarks\.cbf\.read_cbf reads conic files"):
        fo.read(folder / "cone.cbf")


def test_a_published_list_chooses_files_and_says_what_is_missing(folder):
    sizes = {"miplib2017-benchmark": 240, "mittelmann-lp": 49, "mittelmann-network": 25}
    for name, count in (sizes | {"mittelmann-lp-2021": 56}).items():
        words = [word for entry in read_list(name) for word in entry]
        assert len(read_list(name)) == count and len(set(words)) == len(words)
    chosen = choose(folder, "miplib2017-benchmark")
    assert (
        list(chosen.files) == ["air05"]
        and "1 of 240 instances are there; missing: 30n20b8" in chosen.notes[-1]
    )
    (folder / "chromaticindex1024-7.lp").write_text("min x\nst\n x >= 1\nend")
    assert list(choose(folder, "mittelmann-lp-2021").files) == ["chromaticindex1024-7"]
    with pytest.raises(fo.DeclarationError, match="0 of 25"):
        choose(folder, "mittelmann-network")
    with pytest.raises(ValueError, match="did you mean 'mittelmann-lp'"):
        choose(folder, "mittelman-lp")


METADATA = """
benchmarks:
  energy-plan:
    Short description: A plan.
    Problem class: LP
    Sizes:
    - Name: 2-24h
      Size: S
      URL: https://storage.googleapis.com/solver-benchmarks/instances/air05.lp.gz
      Realistic: false
      Num. constraints: 1
    - Name: 9-1h
      Size: L
      URL: https://storage.googleapis.com/solver-benchmarks/instances/energy-plan-9-1h.lp.gz
    - Name: 99-1h
      Size: L
      URL: https://example.org/a.lp.gz
      Skip because: too large
"""


def test_the_metadata_of_a_benchmark_of_energy_models(folder, capsys):
    path = folder / "metadata.yaml"
    path.write_text(METADATA)
    assert main([str(path), "--solvers", "highs", "--out", str(folder / "out")]) == 0
    told = capsys.readouterr()
    assert (
        "1 of 2 instances are there; missing: energy-plan-9-1h" in told.err
        and "1 instances are marked" in told.err
    )
    assert "size" in (folder / "out" / "runs.csv").read_text().splitlines()[0]
    assert choose(path).labels == {"air05": "S"}
    path.write_text("problems:\n  one:\n    Size: M\n    Path: files/air05.lp\n")
    assert choose(path).labels == {"air05": "M"}
    for text, words in (
        ("a: 1", "names no instances"),
        ("benchmarks: [b]", "names no instances"),
        ("benchmarks:\n  b: {}", "b is {}; it must be a mapping with Sizes"),
        ("benchmarks:\n  b: {Sizes: [3]}", "b: Sizes holds 3; it must be a mapping with a Name"),
        ("problems:\n  p:", "problems: p is None; it must be a mapping"),
        ("a: [", "no YAML"),
    ):
        path.write_text(text)
        with pytest.raises(fo.DeclarationError, match=words):
            choose(path)


def test_a_profile_counts_shares_within_factors():
    pd = pytest.importorskip("pandas")
    cells = [("a", "x", 0.99, True), ("a", "y", 3.99, True), ("b", "x", 1.99, True), ("b", "y", 9.0, False)]
    known = {"variant": "0,0"}
    runs = pd.DataFrame(
        [{"backend": b, "instance": i, "seconds": t, "solved": s, **known} for b, i, t, s in cells]
    )
    assert profile(runs, 60.0) == {"a": [(1.0, 1.0)], "b": [(2.0, 0.5)]}


@pytest.mark.parametrize(
    ("family", "size", "solver"),
    [
        ("allocation-cones", (5,), "highs"),
        ("allocation-real", (5,), "clarabel"),
        ("cohort-nash", (12, 4), "clarabel"),
        ("census-squares", ((3, 9),), "clarabel"),
    ],
)
def test_models_with_cones_have_the_optima_of_their_problems(family, size, solver, tmp_path, monkeypatch):
    make, method, _ = tiers.FAMILIES[family]
    monkeypatch.setitem(tiers.FAMILIES, family, (make, method, (size,)))
    problem, model, unit = tiers.model_of(family, "seconds", 2)
    found, _, trivial = features(model, conic=True)
    assert found["cones"] >= 1 and not trivial and tuple(found) == tiers.FEATURES
    write_cbf(model, tmp_path / "a.cbf")
    own = problem.solve(tiers.OWN[family])
    assert own.status is fo.Status.OPTIMAL and problem.method(tiers.OWN[family]).exact
    s = fo.read(tmp_path / "a.cbf").solve(solver)
    assert s.objective * unit == pytest.approx(own.objective, rel=1e-5, abs=1e-6)


def test_a_fifth_of_a_tier_has_cones(tmp_path, monkeypatch):
    small = {"ranking": (12, 4), "cohort-whole": (10, 4), "allocation-real": (4,), "cohort-nash": (12, 4)}
    chosen = {name: (*tiers.FAMILIES[name][:2], (size,)) for name, size in small.items()}
    monkeypatch.setattr(tiers, "FAMILIES", chosen)
    monkeypatch.setattr(tiers, "CONIC", ("allocation-real", "cohort-nash"))
    monkeypatch.setattr(tiers, "SEEDS", 3)
    names = tiers.write("seconds", tmp_path, 5)
    conic = [name for name in names if name.rpartition("-")[0] in tiers.CONIC]
    assert len(names) == 5 and len(conic) == 1
    for name in names:
        assert (tmp_path / f"{name}.cbf").exists() and (tmp_path / f"{name}.mps.gz").exists() == (
            name not in conic
        )
    taken = choose(tmp_path)
    assert set(taken.files) == set(names) and [n for n in names if taken.conic(n)] == conic


@pytest.mark.parametrize("tier", ["seconds", "minutes"])
def test_the_committed_tiers_have_60_instances_of_which_12_have_cones(tier):
    head, *rows = tiers._committed("features.csv", tier).read_text().splitlines()
    assert head == f"name,{','.join(tiers.FEATURES)}" and len(rows) == tiers.COUNT == 60
    cones = {row.split(",")[0]: float(row.split(",")[-1]) for row in rows}
    assert sum(count > 0 for count in cones.values()) == 12
    assert all((count > 0) == (name.rpartition("-")[0] in tiers.CONIC) for name, count in cones.items())


def test_what_separates_two_solvers():
    def told(**runs):
        return {"runs": {name: {"proved": p, "seconds": t} for name, (p, t) in runs.items()}}

    known = {
        "one proves": told(highs=(True, 1.0), scip=(False, 5.0)),
        "neither": told(highs=(False, 5.0), scip=(False, 5.0)),
        "alike": told(highs=(True, 1.0), scip=(True, 1.9)),
        "twice": told(highs=(True, 1.0), scip=(True, 2.1)),
        "clocks": told(highs=(True, 0.01), scip=(True, 0.09)),
        "others": told(clarabel=(True, 1.0), scs=(False, 2.0)),
    }
    assert tiers.discrimination(known) == [("highs", "scip", 5, 2), ("clarabel", "scs", 1, 1)]


def test_a_tier_is_solved_by_solvers_and_by_own_methods_and_goes_on(tmp_path, monkeypatch):
    make, method, _ = tiers.FAMILIES["ranking"]
    monkeypatch.setitem(tiers.FAMILIES, "ranking", (make, method, ((12, 4),)))
    make(12, 4, seed=3).to_model(method).write(tmp_path / "ranking-3.mps.gz")
    tiers.solve("seconds", tmp_path, 20.0)
    known = json.loads((tmp_path / "known.json").read_text())["ranking-3"]
    assert known["status"] == "optimal" and known["proof"] == "agreed: highs, scip, dynamic-programme"
    assert (tmp_path / "known.solu").read_text() == f"=opt= ranking-3 {known['objective']!r}\n"
    assert "agreed" in (tmp_path / "known.csv").read_text().splitlines()[1]
    known["runs"].pop("scip")  # as if it had been killed there
    (tmp_path / "known.json").write_text(json.dumps({"ranking-3": known}))
    asked = []
    monkeypatch.setattr(tiers, "_attempt", lambda f, way, *more: asked.append(way) or known["runs"]["highs"])
    tiers.solve("seconds", tmp_path, 20.0)
    assert asked == ["scip"]


def test_a_method_that_refuses_an_instance_ends_no_run(tmp_path, monkeypatch):
    make, method, _ = tiers.FAMILIES["cohort-whole"]
    monkeypatch.setitem(tiers.FAMILIES, "cohort-whole", (make, method, ((10, 3),)))
    monkeypatch.setitem(tiers.OWN, "cohort-whole", "column-generation")  # for lotteries alone
    tiers.model_of("cohort-whole", "seconds", 1)[1].write(tmp_path / "cohort-whole-1.mps.gz")
    tiers.solve("seconds", tmp_path, 10.0)
    known = json.loads((tmp_path / "known.json").read_text())["cohort-whole-1"]
    assert known["runs"]["column-generation"]["status"] == "failed"
    assert known["proof"] == "agreed: highs, scip"
    lines = (tmp_path / "discrimination.csv").read_text().splitlines()
    assert lines[0] == "solver,other,instances,separated,share" and lines[1].startswith("highs,scip,1,")


def test_a_first_order_method_settles_no_optimum():
    def run(objective, bound, proved):
        return {"objective": objective, "bound": bound, "proved": proved}

    runs = {"clarabel": run(3.0, 3.0, True), "scs": run(2.999, 2.999, True)}
    assert tiers._judged(runs, False)["proof"] == "claimed by clarabel alone"
    assert tiers._judged(runs | {"neyman": run(3.0, 3.0, True)}, False)["proof"] == "agreed: clarabel, neyman"


def test_what_runs_prove_together():
    def run(objective, bound, proved):
        return {"objective": objective, "bound": bound, "proved": proved}

    alone = tiers._judged({"highs": run(3.0, 3.0, True), "scip": run(4.0, 1.0, False)}, False)
    assert (alone["status"], alone["proof"]) == ("open", "claimed by highs alone")
    own = tiers._judged({"highs": run(4.0, 1.0, False), "greedy": run(3.0, 3.0, True)}, False)
    assert (own["status"], own["objective"]) == ("optimal", 3.0) and own["proof"].startswith(
        "proved by greedy"
    )
    wrong = tiers._judged({"highs": run(2.0, 1.0, False), "greedy": run(3.0, 3.0, True)}, False)
    assert wrong["status"] == "contradiction"
    most = tiers._judged({"highs": run(2.0, 4.0, False), "greedy": run(3.0, 3.0, True)}, True)
    assert (most["status"], most["objective"], most["bound"]) == ("optimal", 3.0, 3.0)
