"""Proofs and their checker: what is proved agrees with enumeration, and a damaged proof is refused."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from fractions import Fraction
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("flint")

from flint import fmpq

import forcopt as fo
from benchmarks.proofs.mutations import KINDS, mutated
from forcopt import check
from forcopt.clock import Deadline
from forcopt.loops.certify.convex import _in_dual as in_dual
from forcopt.loops.diagnose import IrreducibleSubset
from forcopt.loops.exact_lp import LinearProgram, rational
from forcopt.loops.exact_milp.prove import branch_and_bound

COMPILER = shutil.which("g++")


@pytest.fixture(scope="session")
def viprchk(shared_data, tmp_path_factory):
    """The program ``viprchk`` of others: the installed one, or built from its source."""
    program, source = shutil.which("viprchk"), shared_data.parent / "peers" / "vipr" / "viprchk.cpp"
    if program is None and COMPILER is not None and source.exists():
        made = tmp_path_factory.mktemp("vipr") / "viprchk"
        command = [COMPILER, "-O1", "-o", made, source, "-lgmpxx", "-lgmp"]
        if subprocess.run(command, capture_output=True, check=False).returncode == 0:
            program = str(made)
    if program is None:
        pytest.skip("viprchk is neither installed nor can it be built")
    return lambda path: subprocess.run([program, path], capture_output=True, check=False).returncode == 0


def instance(seed):
    """A mixed-integer program, and its optimum: the best of a linear program for each integer point.

    Columns are a box of integers and one continuous column, which may be free; data have several sizes.
    """
    rng = random.Random(seed)
    size = 10 ** rng.choice((-6, -1, 0, 0, 3, 6))
    n, rows = rng.randint(2, 4), rng.randint(1, 4)
    number = lambda: fmpq(rng.randint(-9, 9) * max(size, 1), max(1, round(1 / size)))  # noqa: E731
    cost = [number() for _ in range(n)] + [fmpq(rng.choice((0, 0, 1, 3)))]
    free = rng.random() < 0.5
    lower = [fmpq(rng.choice((-1, 0)))] * n + [None if free else fmpq(0)]
    upper = [fmpq(rng.choice((1, 2)))] * n + [None if free else fmpq(rng.randint(1, 9), 2)]
    forms = [{j: number() for j in range(n)} | {n: fmpq(rng.choice((0, 1, -2)))} for _ in range(rows)]
    forms = [{j: a for j, a in form.items() if a} for form in forms]
    ends = [(number(), rng.choice("LGE") if rng.random() < 0.3 else "L") for _ in range(rows)]
    if free:
        forms.append({0: fmpq(1), n: fmpq(1)})
        ends.append((fmpq(-7), "G"))
    low = [None if sense == "L" else end for end, sense in ends]
    high = [None if sense == "G" else end for end, sense in ends]
    return LinearProgram(cost, fmpq(0), lower, upper, forms, low, high), list(range(n))


def optimum(lp, integer):
    """Enumerate the integer points; the continuous column is then an interval."""
    (last,) = set(range(len(lp.cost))) - set(integer)
    best = None
    for point in product(*(range(int(lp.lower[j].p), int(lp.upper[j].p) + 1) for j in integer)):
        low, high, holds = lp.lower[last], lp.upper[last], True
        for form, least, most in zip(lp.rows, lp.row_lower, lp.row_upper, strict=True):
            rest = sum((form.get(j, 0) * v for j, v in zip(integer, point, strict=True)), fmpq(0))
            a = form.get(last)
            for end, sign in ((least, 1), (most, -1)):
                if end is None:
                    continue
                if not a:
                    holds &= bool(sign * rest >= sign * end)
                elif sign * a > 0:
                    low = (end - rest) / a if low is None else max(low, (end - rest) / a)
                else:
                    high = (end - rest) / a if high is None else min(high, (end - rest) / a)
        if not holds or (low is not None and high is not None and low > high):
            continue
        c = lp.cost[last]
        end = low if c > 0 else high if c < 0 else fmpq(0)
        if end is None:
            return "unbounded"
        value = sum((lp.cost[j] * v for j, v in zip(integer, point, strict=True)), c * end)
        best = value if best is None else min(best, value)
    return best


@pytest.mark.parametrize("start", range(0, 150, 30))
def test_random_programs_agree_with_enumeration_and_their_files_are_accepted(start, tmp_path):
    path = tmp_path / "proof.vipr"
    for seed in range(start, start + 30):
        lp, integer = instance(seed)
        best = optimum(lp, integer)
        if best == "unbounded":
            continue
        names = [f"x{j}" for j in range(len(lp.cost))]
        path.unlink(missing_ok=True)
        tree = branch_and_bound(lp, integer, None, Deadline(30.0), names=names, save=path)
        if best is None:
            assert tree.exhausted and tree.better is None, seed
            assert check.check_vipr(str(path), None) == "no point satisfies the program"
            continue
        assert tree.better is not None and lp.holds(tree.better) and lp.value(tree.better) >= best, seed
        found = tree.better
        tree = branch_and_bound(
            lp, integer, lp.value(found), Deadline(30.0), point=found, names=names, save=path
        )
        assert tree.exhausted, seed
        assert tree.bound == best, seed
        assert lp.value(tree.better or found) == best, seed
        assert "it is optimal" in check.check_vipr(str(path), None), seed


def test_viprchk_accepts_proofs(viprchk, shop, tmp_path):
    assert viprchk(shop[0] / "shop.vipr")
    claim = next(at for at in (shop[0] / "shop.vipr").read_text().splitlines() if at.startswith("RTP range"))
    better = f"RTP range {shop[1].objective + 1} {shop[1].objective + 1}"
    (tmp_path / "false.vipr").write_text((shop[0] / "shop.vipr").read_text().replace(claim, better))
    assert not viprchk(tmp_path / "false.vipr")
    for seed in range(40):
        lp, integer = instance(seed)
        if optimum(lp, integer) == "unbounded":
            continue
        path, names = tmp_path / f"{seed}.vipr", [f"x{j}" for j in range(len(lp.cost))]
        found = branch_and_bound(lp, integer, None, Deadline(30.0), names=names, save=path).better
        if found is not None:
            value = lp.value(found)
            branch_and_bound(lp, integer, value, Deadline(30.0), point=found, names=names, save=path)
        assert viprchk(path), seed


MPS = """NAME shop
ROWS
 N cost
 G need
 L room
 E pair
COLUMNS
 m1 'MARKER' 'INTORG'
 x cost 3.1 need 2
 x room 1.7
 y cost 2.3 need 1.1
 y room 0.9 pair 1
 m2 'MARKER' 'INTEND'
 z cost 0.5 pair -0.5
 z need 0.3
RHS
 R need 7.3 room 8
BOUNDS
 UP B x 6
 UP B y 6
 UP B z 20
ENDATA
"""


@pytest.fixture
def shop(tmp_path):
    (tmp_path / "shop.mps").write_text(MPS)
    m = fo.read(tmp_path / "shop.mps")
    c = m.solve("highs", gap=0).certify(decimals=True, save=tmp_path / "shop.vipr")
    assert c.optimal and str(tmp_path / "shop.vipr") in c.how
    return tmp_path, c


def test_a_file_proves_the_optimum_of_a_model_that_is_read_again(shop):
    folder, c = shop
    model = check.read_mps(str(folder / "shop.mps"))
    said = check.check_vipr(str(folder / "shop.vipr"), model)
    assert said == f"every objective is at least {c.objective}; a point attains {c.objective}; it is optimal"


def test_what_follows_the_last_section_is_not_read(shop):
    folder, _ = shop
    (folder / "long.mps").write_text(MPS + "IMPORTANCES\n x 2\n" + MPS)
    long, short = (check.read_mps(str(folder / f"{name}.mps")) for name in ("long", "shop"))
    assert vars(long) == vars(short)


def test_no_damaged_proof_is_accepted(shop):
    folder, _ = shop
    model, text = check.read_mps(str(folder / "shop.mps")), (folder / "shop.vipr").read_text()
    rng, seen = random.Random(7), set()
    for _ in range(300):
        damage = mutated(text, rng)
        if damage is None:
            continue
        kind, damaged = damage
        seen.add(kind)
        (folder / "damaged.vipr").write_text(damaged)
        with pytest.raises((check.Refused, ValueError, IndexError)):
            check.check_vipr(str(folder / "damaged.vipr"), model)
    assert seen == set(KINDS)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x cost 3.1", "x cost 3.2"),
        ("UP B x 6", "UP B x 7"),
        ("R need 7.3", "R need 7.2"),
        (" L room", " G room"),
    ],
)
def test_a_proof_of_another_model_is_refused(shop, old, new):
    folder, _ = shop
    (folder / "other.mps").write_text(MPS.replace(old, new))
    assert check.main([str(folder / "shop.vipr"), str(folder / "other.mps")]) == 1


def test_a_solution_and_a_cutoff_do_not_prove_infeasibility(tmp_path):
    """The constraint below the best solution contradicts itself; it proves nothing about other points."""
    head = "VER 1.0\nVAR 1\nx\nINT 1\n0\nOBJ min\n1 0 1\nCON 1 1\nb G 0 1 0 1\n"
    lines = "SOL 1\np 0\nDER 2\nc L -1 OBJ { sol } -1\nf G 1 0 { lin 2 0 1 1 -1 } -1\n"
    for claim in ("RTP infeas", "RTP range 5 5", "RTP range 5 inf"):
        (tmp_path / "p.vipr").write_text(f"{head}{claim}\n{lines}")
        with pytest.raises(check.Refused):
            check.check_vipr(str(tmp_path / "p.vipr"), None)
    (tmp_path / "p.vipr").write_text(f"{head}RTP range 0 0\n{lines}")
    assert "optimal" in check.check_vipr(str(tmp_path / "p.vipr"), None)


@pytest.mark.parametrize(
    "line",
    [
        "d G 1 1 0 1 { rnd 1 0 2 } -1",  # half of x
        "d G 1 1 1 1 { rnd 1 2 1 } -1",  # a continuous column is rounded
        "d G 1 1 0 1 { lin 2 0 1 1 1 } -1",  # senses disagree
        "d G 1 1 0 1 { lin 1 7 1 } -1",  # a later line
        "d G 1 1 0 1 { uns 0 0 1 1 } -1",  # no two cases
        "d G 1 1 0 1 { asm } -1",  # an assumption is left
        "d L 0 OBJ { sol } -1",  # no solution is known
    ],
)
def test_lines_that_do_not_follow_are_refused(line, tmp_path):
    head = "VER 1.0\nVAR 2\nx y\nINT 1\n0\nOBJ min\n1 0 1\n"
    head += "CON 3 3\na G 1/2 1 0 1\nb L 3 1 0 1\nc G 1/2 1 1 1\n"
    (tmp_path / "p.vipr").write_text(f"{head}RTP range 1 inf\nSOL 0\nDER 1\n{line}\n")
    with pytest.raises(check.Refused):
        check.check_vipr(str(tmp_path / "p.vipr"), None)
    good = "d G 1 OBJ { rnd 1 0 1 } -1"
    (tmp_path / "p.vipr").write_text(f"{head}RTP range 1 inf\nSOL 0\nDER 1\n{good}\n")
    assert check.check_vipr(str(tmp_path / "p.vipr"), None) == "every objective is at least 1"


PROGRAM = {
    "columns": [["x", "0", None], ["y", "0", None]],
    "rows": [
        ["a", {"x": 3, "y": 1}, "1", None],
        ["b", {"x": 1, "y": 3}, "1", None],
        ["c", {"x": 1, "y": 1}, None, "1/3"],
    ],
    "cost": {"x": 1, "y": 1},
    "offset": 0,
    "maximize": False,
}
GOOD = [
    {"kind": "bound", "program": PROGRAM, "rows": {"a": "1/4", "b": "1/4"}, "bound": "1/2"},
    {"kind": "infeasible", "program": PROGRAM, "rows": {"a": "1/4", "b": "1/4", "c": -1}},
    {
        "kind": "irreducible",
        "program": PROGRAM,
        "rows": {"a": "1/4", "b": "1/4", "c": -1},
        "members": ["a", "b", "c"],
        "points": {"a": {"y": "1/3"}, "b": {"x": "1/3"}, "c": {"x": 1, "y": 1}},
    },
    {
        "kind": "privacy",
        "probabilities": {"0": {"no": "3/4", "yes": "1/4"}, "1": {"no": "1/4", "yes": "3/4"}},
        "neighbours": [["0", "1"]],
        "epsilon": "11/10",
        "delta": 0,
    },
    {
        "kind": "rates",
        "table": [["f", 1, 1], ["f", 0, "1/2"], ["m", 1, 0]],
        "rates": [["acceptance", "f", "3/4"], ["true positive", "m", 0], ["false positive", "f", "1/2"]],
    },
]
BAD = [
    (0, {"bound": "51/100"}),
    (0, {"rows": {"a": "1/2", "b": "1/4"}}),
    (0, {"rows": {"a": 0.25, "b": "1/4"}}),
    (0, {"point": {"x": "1/4", "y": "1/5"}}),
    (1, {"rows": {"a": "1/4", "b": "1/4", "c": "-1/2"}}),
    (2, {"points": {"a": {"y": "1/3"}, "b": {"x": "1/3"}, "c": {"x": "1/2"}}}),
    (2, {"members": ["a", "b"], "points": {"a": {}, "b": {}}}),
    (3, {"epsilon": "109/100"}),
    (3, {"probabilities": {"0": {"no": "3/4"}, "1": {"no": "1/4", "yes": "3/4"}}}),
    (4, {"rates": [["acceptance", "f", "1/2"]]}),
]


@pytest.mark.parametrize("data", GOOD, ids=lambda d: d["kind"])
def test_certificates_are_accepted(data, tmp_path):
    (tmp_path / "c.json").write_text(json.dumps(data))
    assert check.main([str(tmp_path / "c.json")]) == 0


@pytest.mark.parametrize(("which", "change"), BAD)
def test_wrong_certificates_are_refused(which, change, tmp_path):
    (tmp_path / "c.json").write_text(json.dumps(GOOD[which] | change))
    assert check.main([str(tmp_path / "c.json")]) == 1


def test_cones_and_their_duals(tmp_path):
    """norm(x, y) <= t, x + 2 y >= 5: the least t is the root of 5."""
    program = {
        "columns": [["t", None, None], ["x", None, None], ["y", None, None]],
        "rows": [["r", {"x": 1, "y": 2}, 5, None]],
        "cones": [["second_order", [[0, {"t": 1}], [0, {"x": 1}], [0, {"y": 1}]]]],
        "cost": {"t": 1},
        "offset": 0,
        "maximize": False,
    }
    data = {
        "kind": "bound",
        "program": program,
        "rows": {"r": "2/5"},
        "cones": [[1, "-2/5", "-4/5"]],
        "bound": 2,
    }
    (tmp_path / "c.json").write_text(json.dumps(data))
    assert check.main([str(tmp_path / "c.json")]) == 0
    data["rows"], data["cones"] = {"r": "1/2"}, [[1, "-1/2", "-1"]]  # outside the dual cone
    (tmp_path / "c.json").write_text(json.dumps(data))
    assert check.main([str(tmp_path / "c.json")]) == 1
    assert check.in_cone("semidefinite_cone", [1, 2, 4]) and not check.in_cone("semidefinite_cone", [1, 2, 3])


def test_the_checker_runs_without_other_packages_and_has_at_most_400_lines(shop):
    folder, _ = shop
    block = (
        "import sys, runpy\n"
        "class No:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        top = name.partition('.')[0]\n"
        "        if top not in sys.stdlib_module_names and top != 'forcopt': raise ImportError(name)\n"
        "sys.meta_path.insert(0, No())\n"
        "runpy.run_module('forcopt.check', run_name='__main__')\n"
    )
    files = [str(folder / "shop.vipr"), str(folder / "shop.mps")]
    done = subprocess.run([sys.executable, "-c", block, *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.startswith("accepted"), done.stderr
    alone = Path(shutil.copy(check.__file__, folder / "alone.py"))
    done = subprocess.run([sys.executable, "-I", alone, *files], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("accepted")
    assert len(Path(check.__file__).read_text().splitlines()) <= 400


def test_the_command_writes_and_checks_a_proof(tmp_path):
    (tmp_path / "shop.mps").write_text(MPS)
    command = [sys.executable, "-m", "forcopt", "certify", tmp_path / "shop.mps", "-o", tmp_path / "p.vipr"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "accepted" in done.stdout, done.stderr
    (tmp_path / "bad.sol").write_text("x 6\ny 6\nz 12\n")
    done = subprocess.run(
        [*command, "--solution", tmp_path / "bad.sol"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and "feasible   no" in done.stdout


def test_answers_of_models_and_problems_are_proved_and_saved(tmp_path):
    m = fo.Model()
    x = m.variable("x", 2, integer=True, lower=0)
    m.subject_to(3 * x[0] + 5 * x[1] >= 7)
    m.minimize(2 * x[0] + 3 * x[1])
    s = m.solve("highs", certify=True, gap=0)
    assert s.certificate.optimal and s.certificate.objective == 5
    assert m.solve("highs").certificate is None
    m.subject_to(x[0] + x[1] <= 1)
    assert m.solve("highs", certify=True).certificate.feasible is False
    p = fo.load("postprocessing/two-groups")
    s = p.solve()
    for save, certify in (("a", s.certify), ("b", lambda **how: p.certify(s.decision, **how))):
        assert certify(save=tmp_path / save).optimal
        assert check.main([str(tmp_path / save)]) == 0


def test_conditions_and_free_columns_are_proved():
    rng = np.random.default_rng(3)
    for _ in range(40):
        m = fo.Model()
        b, x = (
            m.variable("b", binary=True),
            m.variable("x", 2, lower=0, upper=rng.uniform(0.3, 3, 2).round(1)),
        )
        a = rng.uniform(0.1, 3, 8).round(1)
        m.subject_to(a[0] * x[0] + a[1] * x[1] - a[2] * b <= a[3], fo.implies(b, x[0] <= a[4]))
        m.maximize(a[5] * x[0] + a[6] * x[1] + (a[7] - 1) * b)
        c = m.solve(gap=0).certify()
        assert c.optimal is True and c.objective == c.bound


def test_printed_decimals_of_many_digits_count(tmp_path):
    from forcopt.cli.certify import printed_numbers

    (tmp_path / "a.mps").write_text("x 0.12345678901234567890123")
    assert printed_numbers(tmp_path / "a.mps")(float("0.12345678901234567890123")) == fmpq(
        Fraction("0.12345678901234567890123").numerator, Fraction("0.12345678901234567890123").denominator
    )


@pytest.mark.parametrize("right", [3, 5])
def test_a_row_without_integer_points_is_proved_by_divisibility(right, tmp_path):
    m = fo.Model()
    x = m.variable("x", 2, integer=True)
    m.subject_to(2 * x[0] + 4 * x[1] == right)
    m.minimize(0 * x.sum())
    s = m.solve(time_limit=5)
    s.point, s.status = None, fo.Status.INFEASIBLE
    path = tmp_path / "p.vipr"
    c = s.certify(save=path)
    assert c.feasible is False and "infeasibility proved" in c.how
    assert check.check_vipr(str(path), None) == "no point satisfies the program"


@pytest.mark.parametrize("less", [1e-9, 2e-10])
def test_a_form_that_is_not_convex_is_not_proved(less, tmp_path):
    m = fo.Model()
    x = m.variable("x", 2, lower=-1e6, upper=1e6)
    m.minimize(fo.quad_form(x, np.array([[1.0, 1], [1, 1 - less]])))
    c = m.solve().certify(save=tmp_path / "p.json")  # the minimum is below -900 * 1e9 * less
    assert not (tmp_path / "p.json").exists()
    assert c.optimal is None and "not proved to be convex" in c.how


def conic(kind):
    m = fo.Model()
    x = m.variable("x", 3, lower=-np.inf)
    if kind == "norm":
        m.subject_to(x.sum() >= 1)
        m.minimize(fo.norm(x, 2) + 0.1 * x[0])
    elif kind == "squares":
        m.minimize(fo.sum_squares(x - np.array([0.1, 0.2, 0.3])))
    elif kind == "quadratic":
        m.subject_to(x.sum() == 1, x[0] >= 0.7)
        m.minimize(fo.sum_squares(x) + x[1])
    elif kind == "far cone":
        m.subject_to(fo.norm(x, 2) <= 1, x.sum() >= 2)
    elif kind == "small ball":
        m.subject_to(x.sum() == 1, fo.sum_squares(x) <= 0.2)
    elif kind == "rows":
        m.subject_to(fo.norm(x, 2) <= 9, x.sum() >= 1, x.sum() <= 0)
    return m


@pytest.mark.parametrize("kind", ["norm", "squares", "quadratic"])
def test_multipliers_of_cones_and_squares_are_a_file(kind, tmp_path, capsys):
    path = tmp_path / "proof.json"
    c = conic(kind).solve().certify(save=path)
    assert kind == "norm" or c.optimal is True
    assert 0 <= c.objective - c.bound < 1e-6 and f"the proof is in {path}" in c.how
    assert check.main([str(path)]) == 0
    assert f"every objective is at least {c.bound}" in capsys.readouterr().out
    data = json.loads(path.read_text())
    path.write_text(json.dumps(data | {"bound": str(c.bound + Fraction(1, 10**12))}))
    assert check.main([str(path)]) == 1


@pytest.mark.parametrize("kind", ["far cone", "small ball", "rows"])
def test_conic_infeasibility_is_proved_by_multipliers(kind, tmp_path):
    m, path = conic(kind), tmp_path / "proof.json"
    m.minimize(m.variables[0][0])
    s = m.solve()
    assert s.status == "infeasible"
    c = s.certify(save=path)
    assert c.feasible is False and c.dual is not None and "multipliers" in c.how
    assert check.main([str(path)]) == 0
    data = json.loads(path.read_text())
    data["program"]["rows"] = [[*row[:2], None, None] for row in data["program"]["rows"]]
    path.write_text(json.dumps(data))
    assert check.main([str(path)]) == 1


@pytest.mark.parametrize("seed", range(12))
def test_optima_of_convex_quadratic_programs_are_exact(seed, tmp_path):
    """Flat directions, tight and redundant rows; the file is refused after a change of its square."""
    rng, path = np.random.default_rng(seed), tmp_path / "proof.json"
    n = int(rng.integers(2, 9))
    m = fo.Model()
    x = m.variable("x", n, lower=0, upper=rng.choice([0.3, 1.0, np.inf]))
    root = rng.integers(-3, 4, (int(rng.integers(1, n + 2)), n)).astype(float)
    m.subject_to(x.sum() == 1 if seed % 2 else x.sum() <= 1, x[0] + x[1] <= 0.5, x[0] + x[1] <= 0.75)
    m.minimize(fo.sum_squares(root @ x - rng.integers(0, 3, len(root))) + rng.integers(-2, 3, n) @ x)
    s = m.solve()
    c = s.certify(save=path)
    if s.status == "infeasible":
        return
    assert c.optimal is True and abs(float(c.objective) - s.objective) < 1e-6
    assert check.main([str(path)]) == 0
    data = json.loads(path.read_text())
    for change in ({"square": [["x[0]", "x[0]", -1]]}, {"cost": {"x[0]": "-99"}}):
        path.write_text(json.dumps(data | {"program": data["program"] | change}))
        assert check.main([str(path)]) == 1


@pytest.mark.parametrize("seed", range(8))
def test_bounds_of_exponential_cones_hold(seed, tmp_path):
    """Least sum of c exp(a x) with sum x = s: known by its multiplier, in closed form."""
    rng = np.random.default_rng(seed)
    a, c, s = rng.uniform(0.3, 2, 3), rng.uniform(0.2, 3, 3), rng.uniform(-1, 2)
    m = fo.Model()
    x = m.variable("x", 3)
    m.subject_to(x.sum() == s)
    m.minimize(c @ fo.exp(x * a))  # c a exp(a x) = y, so that x = log(y / (c a)) / a
    y = np.exp((s + (np.log(c * a) / a).sum()) / (1 / a).sum())
    best = (y / a).sum()
    found = m.solve().certify(save=tmp_path / "p.json")
    assert best * (1 - 1e-5) < found.bound < best * (1 + 1e-12) and found.optimal is None
    assert not (tmp_path / "p.json").exists()


@pytest.mark.parametrize(
    ("dual", "inside"),
    [
        ([-1.0, 0.0, 0.368], True),  # exp(-1) is .36788
        ([-1.0, 0.0, 0.3678], False),
        ([0.0, 1.0, 1.0], True),
        ([0.0, -1.0, 1.0], False),
        ([1.0, 0.0, 9.0], False),
    ],
)
def test_the_dual_exponential_cone(dual, inside):
    cone = SimpleNamespace(kind="exponential", size=3)
    assert in_dual(cone, [rational(v) for v in dual]) == inside


def saved_subset(path):
    m = fo.Model()
    x = m.variable("x", 3, lower=0, upper=[0.1, 0.7, 5])
    m.subject_to(x[:2].sum() >= 1, name="need")
    m.subject_to(x <= np.array([0.2, 0.3, 4]), name="caps")
    m.subject_to(3 * x[0] + x[2] <= 0.3, name="more")
    m.irreducible_subset().save_proof(path)
    return "rows", {"need": "1", "caps[1]": "-1/2"}


def saved_matrix(path):
    from forcopt.models import PrivateMechanism

    p = PrivateMechanism.counts(3, 1, epsilon=0.7, delta=0.05)
    assert p.save_proof(p.solve().decision, path) < 0.05 + 1e-9
    return "delta", "1/21"


def saved_rates(path):
    from forcopt.fairness import GroupReport

    rng = np.random.default_rng(2)
    drawn, truth = rng.integers(0, 2, (2, 60))
    table = GroupReport.from_predictions(drawn, rng.choice(["a", "b"], 60), truth)
    table.save_proof(path)
    assert len(json.loads(path.read_text())["rates"]) == 6
    return "table", [["a", 1, 1], ["b", 1, 1], ["a", 0, 1], ["b", 0, 0]]


@pytest.mark.parametrize("saved", [saved_subset, saved_matrix, saved_rates])
def test_other_certificates_are_files_too(saved, tmp_path):
    path = tmp_path / "proof.json"
    field, wrong = saved(path)
    assert check.main([str(path)]) == 0
    path.write_text(json.dumps(json.loads(path.read_text()) | {field: wrong}))
    assert check.main([str(path)]) == 1


def test_what_no_file_states_is_refused(tmp_path):
    m = fo.Model()
    x = m.variable("x", 2, binary=True)
    m.subject_to(x.sum() == 0.5, name="half")
    with pytest.raises(fo.DeclarationError, match="integers"):
        m.irreducible_subset().save_proof(tmp_path / "p.json")
    with pytest.raises(fo.DeclarationError, match="no constraint"):
        IrreducibleSubset(()).save_proof(tmp_path / "p.json")
    from forcopt.fairness import ERROR, GroupReport

    with pytest.raises(fo.DeclarationError, match="rates"):
        GroupReport.from_predictions([1], ["a"], [1], metrics=ERROR).save_proof(tmp_path / "p.json")


def test_a_feasible_conic_model_is_not_proved_infeasible():
    m = conic("norm")
    s = m.solve()
    s.point, s.status = None, fo.Status.INFEASIBLE
    assert s.certify().feasible is None
