"""Models go to files and come back as they were."""

from __future__ import annotations

import bz2
import gzip
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import forcopt as fo


def random_model(seed: int, integers: bool = True) -> fo.Model:
    """A feasible, bounded model with every kind of bound, row and column."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 7)), int(rng.integers(1, 6))
    model = fo.Model("random")
    lower = rng.choice([-np.inf, -3.0, 0.0, 1.0, -2.0], n)
    above = np.where(np.isfinite(lower), lower, -1.0) + rng.integers(0, 4, n)
    upper = np.where(rng.random(n) < 0.4, np.inf, above)
    x = model.variable("x", n, lower=lower, upper=upper, integer=integers & (rng.random(n) < 0.5))
    y = model.variable("y", (2, 2), lower=-1, upper=1.5)
    inside = np.clip(np.round(rng.normal(size=n)), np.maximum(lower, -9), np.minimum(upper, 9))
    at = model.point({x: inside})
    rows = sp.random_array(
        (m, n), density=0.7, rng=rng, data_sampler=lambda size: rng.integers(-4, 5, size) / 4
    )
    body = rows @ x + y[0, 0] - y[1, 1]
    value = body.evaluate(at)
    kind = rng.integers(0, 4, m)
    low = np.where(kind == 0, -np.inf, np.where(kind == 3, value, value - 1.25))
    high = np.where(kind == 1, np.inf, np.where(kind == 3, value, value + 2.0))
    model.subject_to(body.between(low, high), name="body")
    model.subject_to(x.between(-20, 20), name="box")
    objective = rng.integers(-8, 9, n) / 8 @ x - y.sum() + 2.5
    (model.maximize if rng.random() < 0.5 else model.minimize)(objective)
    return model


def names(model: fo.Model) -> tuple[list[str], list[str]]:
    columns = [model.column_name(i) for i in range(model.column_count)]
    return columns, [model.row_name(i) for i in range(model.row_count)]


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.sampled_from([".mps", ".lp"]))
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, seed: int, suffix: str) -> None:
    path = tmp_path_factory.mktemp("exchange") / f"model{suffix}"
    model = random_model(seed)
    model.write(path)
    back = fo.read(path)
    ours, theirs = model.solve(gap=0), back.solve(gap=0)
    assert theirs.status == ours.status == "optimal"
    assert theirs.objective == pytest.approx(ours.objective, abs=1e-7)
    assert back.objective.stages[0].maximize == model.objective.stages[0].maximize
    columns, rows = names(back)
    if suffix == ".mps":
        assert (columns, rows) == names(model)
        a, b = model.columns(), back.columns()
        for field in ("lower", "upper", "integer"):
            np.testing.assert_array_equal(getattr(a, field), getattr(b, field))
    else:
        assert {name.replace("(", "[").replace(")", "]") for name in columns} == set(names(model)[0])
        kinds = dict(zip(columns, back.columns().integer, strict=True))
        for i, name in enumerate(names(model)[0]):
            kind = kinds.get(name, kinds.get(name.replace("[", "(").replace("]", ")")))
            assert kind == model.columns().integer[i]
    arrays = {v.name: v.shape for v in model.variables}
    assert {v.name: v.shape for v in back.variables if v.shape}.items() <= arrays.items()


@pytest.mark.parametrize("suffix", [".mps", ".lp"])
@pytest.mark.parametrize("sense", [1, -1])
def test_quadratic(tmp_path, suffix, sense):
    m = fo.Model()
    x = m.variable("x", 3, lower=-5, upper=5)
    m.subject_to(x.sum() >= 1, name="s")
    square = fo.quad_form(x[:2], [[2.0, -1.0], [-1.0, 3.0]]) + 3 * fo.sum_squares(x[1:] - 1) - x[2]
    (m.minimize if sense > 0 else m.maximize)(sense * square + 7)
    path = tmp_path / f"q{suffix}"
    m.write(path)
    back = fo.read(path)
    assert back.solve().objective == pytest.approx(m.solve().objective, abs=1e-6)
    assert back.objective.stages[0].maximize == (sense < 0)
    point = np.array([0.5, -1.0, 2.0])
    value = dict(zip(["x[0]", "x[1]", "x[2]"], point, strict=True))
    labels = [back.column_name(i).replace("(", "[").replace(")", "]") for i in range(back.variables[0].size)]
    ours = m.objective.stages[0].expression.evaluate(m.point({x: point}))
    there = back.point({back.variables[0]: [value.get(name, 0.0) for name in labels]})
    assert back.objective.stages[0].expression.evaluate(there) == pytest.approx(float(ours))


@pytest.mark.parametrize("sense", [1, -1])
def test_sparse_squares_stay_sparse(tmp_path, sense):
    n = 500
    m = fo.Model()
    x = m.variable("x", n, lower=0, upper=1)
    m.subject_to(x.sum() == 1)
    square = fo.sum_squares(x[:-1] - x[1:]) + fo.sum_squares(np.linspace(1, 2, n) * x - 0.5)
    (m.minimize if sense > 0 else m.maximize)(sense * square)
    m.write(tmp_path / "q.mps")
    back = fo.read(tmp_path / "q.mps")
    assert back.solve().objective == pytest.approx(m.solve().objective, rel=1e-6)
    (relation,) = back.relations
    assert relation.arguments[0].linear_rows().data.size <= 2 * n


def test_integers_and_squares_together(tmp_path):
    m = fo.Model()
    x = m.variable("x", 2, integer=True, lower=-3, upper=3)
    m.minimize(fo.sum_squares(x - 0.6))
    m.write(tmp_path / "miqp.lp")
    back = fo.read(tmp_path / "miqp.lp")
    assert (back.columns().integer == 1).sum() == 2
    s = back.solve("highs")  # by tangents
    assert s.status == "optimal" and s.objective == pytest.approx(2 * 0.4**2, abs=1e-6)
    with pytest.raises(fo.UnsupportedError, match="integer"):
        back.solve("osqp")


@pytest.mark.parametrize("suffix", [".mps", ".lp"])
def test_bridges_are_applied(tmp_path, suffix):
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=10)
    b = m.variable("b", binary=True)
    m.subject_to(fo.implies(b, x[0] + x[1] <= 3), fo.abs(x[0] - x[1]) <= 2)
    m.maximize(x.sum() + 5 * b - fo.maximum(x[0], 4))
    m.write(tmp_path / f"m{suffix}")
    assert fo.read(tmp_path / f"m{suffix}").solve().objective == pytest.approx(m.solve().objective)


def test_awkward_names(tmp_path):
    m = fo.Model()
    labels = ["free", "2x", "e5", "St", "a b", "a_b", "x+y", "é", "x[1]", "x(1)", "-", "", ".5", "3 e", "end"]
    x = m.variable("x", len(labels), lower=1, upper=9, labels=labels)
    rows = x.between(2, 5)
    rows.labels = [f"r {i % 2}" for i in range(len(labels))]
    m.subject_to(rows, name="rows")
    m.minimize(np.arange(1, len(labels) + 1) @ x)
    for suffix in (".lp", ".mps"):
        path = tmp_path / f"names{suffix}"
        m.write(path)
        back = fo.read(path)
        columns, rows_back = names(back)
        assert len(set(columns)) == len(labels)
        assert len(set(rows_back)) == len(labels) * (2 if suffix == ".lp" else 1)
        s = back.solve()
        assert s.objective == pytest.approx(2 * sum(range(1, len(labels) + 1)))
    assert columns[:6] == ["free", "2x", "e5", "St", "a_b", "a_b_2"]  # MPS minds only spaces


@pytest.mark.parametrize(
    "word",
    ["name", "NAME", "OBJSENSE", "QSECTION", "QCMATRIX", "CSECTION", "BOUND", "RHS_V", "'MARKER'", "rows"],
)
def test_names_that_are_words_of_a_format(tmp_path, word):
    """HiGHS's reader of MPS files took a column called ``name`` for a section and lost its entries."""
    m = fo.Model()
    x, y = m.variable(word, lower=1, upper=8), m.variable("y", upper=5, integer=True)
    r = m.variable(f"r{word}", lower=0, upper=1)
    m.subject_to(2 * x + 3 * y <= 12.5, x + y == 4, name=word if word == "rows" else "")
    m.subject_to((x - y + r).between(-3, 4.5), name=f"{word}s")
    m.subject_to(x + r <= 7, name="RHS_V" if word == "'MARKER'" else "'MARKER'")
    m.maximize(x + 2 * y + 7)
    for suffix in (".mps", ".lp"):
        path = tmp_path / f"words{suffix}"
        m.write(path)
        assert fo.read(path).solve().objective == pytest.approx(m.solve().objective)
        assert fo.read(path).solve().status == "optimal"


def test_a_column_with_the_name_of_a_section_is_refused(tmp_path):
    m = fo.Model()
    x = m.variable("xxxx", lower=1, upper=8)
    m.subject_to(x >= 3)
    m.minimize(x)
    m.write(tmp_path / "m.mps")
    text = (tmp_path / "m.mps").read_text()
    (tmp_path / "m.mps").write_text(text.replace("xxxx", "name"))
    with pytest.raises(fo.DeclarationError, match="takes the column name for the section of this name"):
        fo.read(tmp_path / "m.mps")


def test_no_objective_no_rows(tmp_path):
    m = fo.Model()
    x = m.variable("x", 2, lower=1, upper=2)
    m.write(tmp_path / "a.mps")
    assert fo.read(tmp_path / "a.mps").solve().objective == 0.0
    m.minimize(x.sum())
    m.write(tmp_path / "a.lp")
    assert fo.read(tmp_path / "a.lp").solve().objective == 2.0


def test_refusals(tmp_path):
    m = fo.Model("many")
    x = m.variable("x", 2, lower=0, upper=1)
    m.lexicographic([fo.minimize(x[0]), fo.maximize(x[1])])
    with pytest.raises(fo.UnsupportedError, match="2 objectives"):
        m.write(tmp_path / "m.mps")
    m.minimize(fo.norm(x - 3))
    with pytest.raises(fo.UnsupportedError, match="norm_2"):
        m.write(tmp_path / "m.mps")
    m = fo.Model("lazy")
    x = m.variable("x", 2, lower=0, upper=1)
    m.lazy(lambda value: [], name="family")
    with pytest.raises(fo.UnsupportedError, match="'family'"):
        m.write(tmp_path / "m.lp")
    with pytest.raises(fo.DeclarationError, match=r"\.mps or \.lp"):
        m.write(tmp_path / "m.txt")
    assert not list(tmp_path.iterdir())
    with pytest.raises(FileNotFoundError):
        fo.Model().write(tmp_path / "nowhere" / "m.lp")


MPS = """NAME small
ROWS
 N  cost
 G  need
COLUMNS
    bread  cost 3  need 1
    milk   cost 4  need 2
RHS
    rhs need 4
BOUNDS
{bounds}{after}ENDATA
"""


def test_what_cannot_be_read(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing\.lp"):
        fo.read(tmp_path / "nothing.lp")
    path = tmp_path / "m.mps"
    path.write_text("not a model\n")
    with pytest.raises(fo.DeclarationError, match=r"m\.mps.*Parser error"):
        fo.read(path)
    path.write_text(MPS.format(bounds="", after="QCMATRIX need\n    milk milk 1\n"))
    with pytest.raises(fo.DeclarationError, match="Quadratic rows not supported"):
        fo.read(path)
    path.write_text(MPS.format(bounds=" LO BOUND milk 3\n UP BOUND milk 2\n", after=""))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*inconsistent bounds")  # some versions say it, too
        with pytest.raises(fo.DeclarationError, match=r"m\.mps.*lower 3 is above upper 2"):
            fo.read(path)
    path.write_text(MPS.format(bounds="", after="").replace("RHS\n", "    bread cost 1\nRHS\n", 1))
    with pytest.raises(fo.DeclarationError, match=r"m\.mps: every column must have a name of its own.*bread"):
        fo.read(path)
    path.write_text(MPS.format(bounds="", after="QUADOBJ\n    milk milk -1\n    bread bread 1\n"))
    with pytest.raises(fo.CurvatureError, match="indefinite"):
        fo.read(path)


def test_what_the_reader_changes_is_told(tmp_path):
    path = tmp_path / "m.mps"
    plain = MPS.format(bounds="", after="")
    twice = plain.replace("need 2", "need 2\n    milk   need 5")
    for text in (twice, plain.replace("RHS\n", "RHS\n    rhs nedd 3\n")):
        assert text != plain
        path.write_text(text)
        with pytest.raises(
            fo.DeclarationError, match=r"an entry that stands twice or fits no row: .*ignored"
        ):
            fo.read(path)
    path.write_text(MPS.format(bounds="", after=""))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fo.read(str(path)).solve().objective == pytest.approx(8.0)


@pytest.mark.parametrize(
    ("objective", "repeated"),
    [
        ("min 3 x + 4 y + 2 x", "x 2 times"),
        ("maximize\n obj: a.1 + 2 b\n + a.1 \\ and a comment: b b\n - a.1", "a.1 3 times"),
        ("min cost: 3 x + 1e5 y + [ x ^ 2 + x * y + y ^ 2 ] / 2", None),
    ],
)
def test_costs_that_the_reader_would_lose_are_refused(tmp_path, objective, repeated):
    path = tmp_path / "file.lp"
    path.write_text(f"{objective}\nsubject to\n row: x + y + a.1 + b >= 1\nend\n")
    if repeated is None:
        fo.read(path)
    else:
        with pytest.raises(fo.DeclarationError, match=f"the objective names {repeated}"):
            fo.read(path)


@pytest.mark.parametrize("library", ["highs", "cvxpy", "pyomo", "mathopt"])
def test_objects_refuse_what_they_would_lose(library):
    m = fo.Model()
    x = m.variable("x", 2, lower=0, upper=10)
    m.lexicographic([fo.maximize(x[0]), fo.minimize(x[1])])
    give = getattr(m, f"to_{library}")
    with pytest.raises(fo.UnsupportedError, match="2 objectives in order of priority"):
        give()
    assert give(first_stage=True) is not None
    m.minimize(x.sum())
    m.lazy(lambda value: [x[0] >= 3] if value(x)[0] < 3 else [], name="floor")
    with pytest.raises(fo.UnsupportedError, match="lazy family 'floor' is a function"):
        give()


@pytest.mark.parametrize("ending", [".mps.gz", ".lp.gz"])
def test_compressed_files(tmp_path, ending):
    m = fo.Model()
    x = m.variable("x", 2, lower=0, integer=True)
    m.subject_to(x.sum() <= 3.5)
    m.maximize(x[0] + 2 * x[1])
    path = tmp_path / f"small{ending}"
    m.write(path)
    assert path.read_bytes()[:2] == b"\x1f\x8b"
    assert fo.read(path).solve().objective == pytest.approx(6)


@pytest.mark.parametrize("suffix", ["mps", "lp", "highs"])
def test_small_coefficients_are_kept_or_refused(tmp_path, suffix):
    def made(small):
        m = fo.Model()
        x = m.variable("x", lower=0, upper=5 / small)
        y = m.variable("y", lower=0, upper=3)
        m.subject_to(small * x + y >= 2.5, name="need")
        m.minimize(y)
        return m

    path = tmp_path / f"small.{suffix}"

    def taken(m):
        if suffix == "highs":
            highs = m.to_highs()
            return highs.getLp().a_matrix_.value_
        m.write(path)
        return fo.read(path).solve("highs").objective

    assert taken(made(5e-10)) == (pytest.approx(0, abs=1e-9) if suffix != "highs" else [5e-10, 1])
    with pytest.raises(fo.UnsupportedError, match=r"row need holds the coefficient 5e-13 of x"):
        taken(made(5e-13))
    assert not path.exists() or path.stat().st_size


@pytest.mark.parametrize("ending", [".mps", ".lp", ".mps.gz", ".lp.bz2"])
def test_unused_columns_and_empty_models_come_back(tmp_path, ending):
    path = tmp_path / f"m{ending}"
    m = fo.Model()
    x = m.variable("x", 3, lower=0)
    y, z = m.variable("y"), m.variable("z", lower=0, upper=5, integer=True)
    m.minimize(x[0] + fo.sum_squares(x[1:2] - 1) + 0 * y + 0 * z if ending == ".lp" else x[0])
    m.write(path)
    back = fo.read(path)
    shapes = {v.name: (v.shape, v.integer) for v in back.variables}
    assert {"x": ((3,), False), "y": ((), False), "z": ((), True)}.items() <= shapes.items()
    assert back.solve().objective == pytest.approx(0, abs=1e-5)
    for constant in (0.0, 3.0):
        empty = fo.Model()
        empty.minimize(empty.variable("none", 0).sum() + constant)
        empty.write(path)
        s = fo.read(path).solve()
        assert (s.status, s.objective) == ("optimal", constant)


def test_a_file_without_an_end_holds_no_model(tmp_path):
    path = tmp_path / "m.lp"
    path.write_text("")
    with pytest.raises(fo.DeclarationError, match="finds no model"):
        fo.read(path)


@pytest.mark.parametrize("integer", [False, True])
def test_semicontinuous_columns_are_read(tmp_path, integer):
    """0 or at least 3.5: y alone meets a need of 2; for 5 x has to run."""
    for need in (2, 5):
        path = tmp_path / "m.lp"
        whole = "general\n x\n" if integer else ""
        bounds = " 3.5 <= x <= 5\n y <= 4\n"
        head = f"min obj: x + 2 y\nst\n c: x + y >= {need}\nbounds\n{bounds}"
        path.write_text(f"{head}semi\n x\n{whole}end\n")
        m = fo.read(path)
        s = m.solve()
        best = min(
            a + 2 * b
            for a in ([0, 4, 5] if integer else [0, 3.5, 4, 5])
            for b in [max(need - a, 0)]
            if b <= 4
        )
        assert s.status == "optimal" and s.objective == pytest.approx(best, abs=1e-5)
        assert m.solve("scip").objective == pytest.approx(best, abs=1e-5)
    path = tmp_path / "m.mps"
    path.write_text(MPS.format(bounds=" SC BOUND milk 3\n LO BOUND milk 2.5\n", after=""))
    s = fo.read(path).solve()
    assert s["milk"].item() == pytest.approx(2.5) and s.objective == pytest.approx(10)


def test_a_bound_of_no_column_is_named(tmp_path):
    path = tmp_path / "m.mps"
    path.write_text(MPS.format(bounds=" UP BOUND mlik 3\n FR BOUND bread\n UP milk 3\n", after=""))
    with pytest.warns(UserWarning, match="a bound names mlik, which has no entry among the columns") as found:
        fo.read(path)
    assert len(found) == 1


@pytest.mark.parametrize(
    ("rows", "rest", "words"),
    [
        (" c: x + y >= 2\n c: x - y >= 0", "", "two rows are called c; each must"),
        (" c: x + y >= 2", "general\n x z\n", "z is declared whole, but no row and no objective has it"),
        (" c: x + y >= 2", "bounds\n x <= 4\nbinary\n mini\n", "mini is declared whole"),
    ],
)
def test_names_of_an_lp_file_that_fit_nothing_are_refused(tmp_path, rows, rest, words):
    path = tmp_path / "m.lp"
    path.write_text(f"minimize cost: x + 0 unused + y\nst\n{rows}\n{rest}end\n")
    with pytest.raises(fo.DeclarationError, match=words):
        fo.read(path)
    path.write_text("minimize cost: x + 0 z\nst\n c: x + y >= 2\nbounds\n q <= 3\ngeneral\n z\nend\n")
    with pytest.warns(UserWarning, match="a bound names q, which has no entry among the columns"):
        assert fo.read(path).solve().objective == 0


@pytest.mark.parametrize(("ending", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress)])
def test_compressed_files_are_read_and_damaged_ones_named(tmp_path, ending, pack):
    path = tmp_path / f"m.mps{ending}"
    whole = pack(MPS.format(bounds="", after="").encode())
    path.write_bytes(whole)
    assert fo.read(path).name == "m" and fo.read(path).solve().objective == 8
    for damaged in (whole[: len(whole) // 2], b"no such thing", whole[:-20] + bytes(20)):
        path.write_bytes(damaged)
        with pytest.raises(fo.DeclarationError, match=rf"m\.mps\{ending} is cut off or damaged"):
            fo.read(path)


@pytest.mark.parametrize("wrong", ["1,5", "one", "1O"])
@pytest.mark.parametrize("at", [7, 9, 11])
def test_a_word_in_place_of_a_number_is_refused(wrong, at, tmp_path):
    """HiGHS's reader takes the digits before the first other sign, and 0 for a word."""
    head = ["NAME x", "ROWS", " N obj", " G c", "COLUMNS", " x obj 1 c 1", " y obj 2 c 1", "RHS"]
    lines = [*head, " rhs c 4", "BOUNDS", " LO bnd x 3", " FR bnd y", "ENDATA"]
    (tmp_path / "good.mps").write_text("\n".join(lines))
    fo.read(tmp_path / "good.mps")
    lines[at - 1] = lines[at - 1][: lines[at - 1].rindex(" ")] + f" {wrong}"
    (tmp_path / "m.mps").write_text("\n".join(lines))
    with pytest.raises(fo.DeclarationError, match=rf"m.mps, line {at}: '{wrong}' is no number"):
        fo.read(tmp_path / "m.mps")


def test_a_fixed_format_is_read_by_its_columns(tmp_path):
    entry = " " * 4 + "a name    c" + " " * 13 + "{}\n"
    text = "NAME\nROWS\n N  obj\n G  c\nCOLUMNS\n" + entry + "RHS\n    rhs       c" + " " * 13 + "4\nENDATA\n"
    (tmp_path / "m.mps").write_text(text.format("2"))
    with pytest.warns(UserWarning, match="fixed format"):
        assert len(fo.read(tmp_path / "m.mps").variables) == 1
    (tmp_path / "m.mps").write_text(text.format("2,5"))
    with pytest.warns(UserWarning), pytest.raises(fo.DeclarationError, match="line 6: '2,5' is no number"):
        fo.read(tmp_path / "m.mps")
