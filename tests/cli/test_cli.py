import json
import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import rucksack
from rucksack import SMALL, Rucksack
from typer.testing import CliRunner

import forcopt as fo
from forcopt.backends import registry
from forcopt.cli import app
from forcopt.cli.output import plain
from forcopt.study import library  # before a test replaces what it imports by name

STUDY = Path(rucksack.__file__).parent


@pytest.fixture
def forcopt(monkeypatch, tmp_path):
    """Run a command in an empty folder, with the rucksack as the only model."""
    library.instances()  # what it caches comes from the registered problems
    monkeypatch.setattr("forcopt.problem.registry.problem_classes", lambda: {"Rucksack": Rucksack})
    point = EntryPoint("Rucksack", "rucksack:Rucksack", "forcopt.models")
    monkeypatch.setattr("forcopt.problem.registry.entry_points", lambda group: [point])
    monkeypatch.chdir(tmp_path)

    def run(*words):
        result = CliRunner().invoke(app, [str(word) for word in words])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


def save(name="p.json", **changes):
    Path(name).write_text(json.dumps({"model": "Rucksack", **SMALL, **changes}))
    return name


# -- the catalogue -----------------------------------------------------------------------------------------


def test_help_at_each_level(forcopt):
    top = forcopt("--help")
    assert top.exit_code == 0 and "Exit codes" in top.stdout
    for command in (
        "models",
        "examples",
        "backends",
        "describe",
        "schema",
        "solve",
        "compare",
        "sweep",
        "export",
        "instances",
    ):
        assert command in top.stdout
        assert "Usage: root" in forcopt(command, "--help").stdout.replace("forcopt", "root")
    assert forcopt("--version").stdout == f"forcopt {fo.__version__}\n"


def test_models_and_examples(forcopt):
    said = forcopt("models").stdout
    assert "Choose items of the largest total value within a weight limit." in said and "milp, greedy" in said
    assert forcopt("examples").stdout.split()[-2:] == ["rucksack/small", "Rucksack"]


def test_backends_say_what_is_missing_and_how_to_install_it(forcopt):
    lines = {line.split()[0]: line for line in forcopt("backends").stdout.splitlines() if line.strip()}
    assert "LP, MILP, QP" in lines["highs"] and registry.backends()["highs"].version() in lines["highs"]
    assert "the package absent is missing; install it with: pip install broken" in lines["absent"]
    rows = {row["backend"]: row for row in json.loads(forcopt("backends", "--json").stdout)}
    assert rows["highs"]["missing"] is None and rows["highs"]["through"] == "highspy"
    assert rows["absent"]["version"] is None and rows["absent"]["install"] == "pip install broken"


def test_describe(forcopt):
    said = " ".join(forcopt("describe", "Rucksack").stdout.split())
    for part in (
        "Choose items of the largest total value",
        "values array of numbers, required Of the items.",
        "capacity number, > 0, required The largest total weight.",
        "milp default, formulation, exact, options: cap=1.0, least=0.0 Choose by integer programming.",
        "greedy alternative, algorithm, with a guarantee, takes seed Take by value",
        "Examples rucksack/small",
    ):
        assert part in said


def test_schema_is_that_of_a_file(forcopt):
    schema = json.loads(forcopt("schema", "Rucksack").stdout)
    assert schema["required"] == ["model", "values", "weights", "capacity"]
    assert schema["properties"]["model"] == {"const": "Rucksack"}
    assert schema["properties"]["capacity"]["exclusiveMinimum"] == 0
    assert schema["additionalProperties"] is False


# -- solving -----------------------------------------------------------------------------------------------


def test_solve_for_people(forcopt):
    said = forcopt("solve", "rucksack/small")
    assert said.exit_code == 0
    words = " ".join(said.stdout.split())
    assert "rucksack/small: Rucksack by milp@highs status optimal objective 220 bound 220" in words
    assert "[0. 1. 1.]" in words
    greedy = " ".join(forcopt("solve", "rucksack/small", "-m", "greedy").stdout.split())
    assert "status approximate objective 160 guarantee within 120 of the optimum" in greedy


def test_the_lines_of_a_certificate_are_aligned(forcopt):
    lines = forcopt("solve", "rucksack/small", "--certify").stdout.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("  certificate"))
    column = lines[first].index("feasible")
    names = ["feasible", "objective", "bound", "optimal", "how"]
    for line, name in zip(lines[first : first + 5], names, strict=True):
        assert line[column:].startswith(name)
    assert all(not line[:column].strip() for line in lines[first + 1 : first + 5])
    values = {len(line) - len(line[column:].split(maxsplit=1)[1]) for line in lines[first : first + 5]}
    assert len(values) == 1  # all values begin in one column, too


def test_solve_for_programs(forcopt):
    data = json.loads(forcopt("solve", save(), "--json", "-O", "cap=2", "--seed", 1).stdout)
    assert (data["spec"], data["model"], data["method"], data["backend"]) == (
        "p.json",
        "Rucksack",
        "milp",
        "highs",
    )
    assert data["objective"] == data["bound"] == 260 and data["status"] == "optimal" and data["gap"] == 0
    assert data["decision"] == [1, 2, 0] and data["violations"] == {} and data["guarantee"] is None
    greedy = json.loads(forcopt("solve", "p.json", "-m", "greedy", "--json").stdout)
    assert greedy["bound"] is None and greedy["gap"] is None and greedy["guarantee"] == 120


def test_solve_takes_toml(forcopt):
    Path("p.toml").write_text('model = "Rucksack"\nvalues = [1, 2]\nweights = [1, 1]\ncapacity = 1\n')
    assert json.loads(forcopt("solve", "p.toml", "--json").stdout)["objective"] == 2


def test_no_solution_is_exit_code_1_with_its_reason(forcopt):
    said = forcopt("solve", save(), "--option", "cap=4", "--option", "least=4")
    assert said.exit_code == 1
    assert "infeasible" in said.stdout
    data = json.loads(forcopt("solve", "p.json", "-O", "cap=4", "-O", "least=4", "--json").stdout)
    assert data["status"] == "infeasible" and data["objective"] is None and data["decision"] is None
    assert data["reason"].startswith("these constraints cannot hold together: capacity")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["solve", "nope.json"], "no file, example or instance 'nope.json'"),
        (["solve", "rucksack/smal"], "did you mean 'rucksack/small'?"),
        (["solve", "rucksack/small", "-m", "mlip"], "did you mean 'milp'?"),
        (["solve", "rucksack/small", "-m", "milp@hihgs"], "did you mean 'highs'?"),
        (["solve", "rucksack/small", "-b", "absent"], "install it with: pip install broken"),
        (["solve", "rucksack/small", "-O", "cup=1"], "did you mean 'cap'?"),
        (["solve", "rucksack/small", "-O", "cap"], "it must be NAME=VALUE"),
        (["solve", "rucksack/small", "-m", "greedy", "-b", "highs"], "uses no backend"),
        (["solve", "bad.json"], "bad.json: Rucksack: capacity is -1; input should be greater than 0"),
        (["solve", "broken.json"], "broken.json is not valid JSON"),
        (["solve", "binary.json"], "binary.json is not valid JSON"),
        (["solve", "."], ".: Is a directory"),
        (["solve", "x.mps", "-m", "milp"], "unknown method 'milp' of ModelFile"),
        (["solve", "rucksack/small", "--plot", "x.foo"], "must end in .png, .svg, .pdf"),
        (["compare", "rucksack/small", "--kind", "profil"], "did you mean 'profile'?"),
        (["compare", "rucksack/small", "--kind", "profile"], "--plot names no file"),
        (["compare", "rucksack/small", "--plot", "x.foo"], "must end in .png, .svg, .pdf"),
        (["compare", "rucksack/small", "--html", "absent/x.html"], "there is no folder absent"),
        (["describe", "Rucksak"], "did you mean 'Rucksack'?"),
        (["schema", "x"], "unknown model 'x'"),
        (["compare", "rucksack/small", "--methods", "mlip"], "did you mean 'milp'?"),
        (["export", "rucksack/small", "-o", "x.mps", "-m", "greedy"], "is no formulation"),
        (["export", "rucksack/small", "-o", "x.txt"], "must end in .mps or .lp"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(forcopt, words, said):
    save("bad.json", capacity=-1)
    Path("broken.json").write_text("{")
    Path("binary.json").write_bytes(b"\xff\xfe\x00")
    Path("x.mps").touch()
    result = forcopt(*words)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1 and said in result.stderr


def test_a_warning_is_one_line_and_said_once(forcopt):
    Path("twice.lp").write_text("min cost: x\nst\n need: x + x >= 4\nend\n")
    result = forcopt("solve", "twice.lp")
    assert result.exit_code == 0
    lines = result.stderr.splitlines()
    assert lines and all(line.startswith("warning: twice.lp: HiGHS: ") for line in lines)
    assert len(lines) == len({*lines})


def test_a_solver_that_fails_is_exit_code_1(forcopt, monkeypatch):
    def fail(self, options):
        raise fo.BackendError("broken: no licence")

    monkeypatch.setattr(rucksack.BrokenSession, "solve", fail)
    result = forcopt("solve", "rucksack/small", "-b", "broken")
    assert (result.exit_code, result.stderr) == (1, "error: broken: no licence\n")


# -- bare models -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["x.mps", "x.lp"])
def test_export_and_solve_a_bare_model(forcopt, name):
    assert forcopt("export", "rucksack/small", "-o", name).exit_code == 0
    said = forcopt("solve", name)
    assert said.exit_code == 0
    assert "status optimal objective 220" in " ".join(said.stdout.split())
    data = json.loads(forcopt("solve", name, "--json").stdout)
    assert sorted(data["decision"].values()) == [0, 1, 1] and data["violations"] == {}
    assert [name.startswith("take") for name in data["decision"]] == [True] * 3


def test_a_bare_model_without_a_solution_has_no_values(forcopt):
    m = fo.Model("none")
    x = m.variable("x", lower=0, upper=1)
    m.subject_to(x >= 2, name="high")
    m.minimize(x)
    m.write("none.mps")
    said = forcopt("solve", "none.mps")
    assert said.exit_code == 1 and "cannot hold together: high" in said.stdout
    assert "variable" not in said.stdout.replace("upper bound of variable", "")


def test_export_turns_one_format_into_the_other(forcopt):
    forcopt("export", "rucksack/small", "-o", "x.mps", "--method", "milp")
    assert forcopt("export", "x.mps", "-o", "y.lp").exit_code == 0
    assert json.loads(forcopt("solve", "y.lp", "--json").stdout)["objective"] == 220


# -- comparing ---------------------------------------------------------------------------------------------


def test_compare_writes_all_it_is_asked_for(forcopt):
    files = ["--html", "x.html", "--csv", "x.csv", "--plot", "x.png"]
    said = forcopt("compare", save(), "--methods", "milp, greedy", "--time-limit", 60, "--json", *files)
    assert said.exit_code == 0
    data = json.loads(said.stdout)
    assert [row["objective"] for row in data["rows"]] == [220, 160] and data["best"] == 0
    assert data["rows"][0]["instance"] == "p.json" and data["rows"][0]["versions"]["highs"]
    assert "milp@highs" in Path("x.html").read_text() and "milp" in Path("x.csv").read_text()
    assert Path("x.png").stat().st_size > 10_000


def test_compare_takes_several_files_and_keeps_the_runs(forcopt):
    files = [save(), save("q.json", capacity=25)]
    said = forcopt(
        "compare",
        *files,
        "-m",
        "greedy",
        "-r",
        2,
        "--store",
        "x.sqlite",
        "--json",
        "--seed",
        3,
        "--plot",
        "x.svg",
        "--kind",
        "cactus",
    )
    data = json.loads(said.stdout)
    assert [(row["instance"], row["seed"]) for row in data["rows"]] == [
        (name, seed) for name in files for seed in (3, 4)
    ]
    assert "tests solved" in Path("x.svg").read_text().replace("<!-- ", "")
    assert data["best"] is None and len(fo.Comparison.read("x.sqlite").rows) == 4


def test_compare_without_any_solution(forcopt):
    said = forcopt("compare", "rucksack/small", "-m", "milp@absent")
    assert said.exit_code == 1 and "milp@absent  failed" in said.stdout
    assert "install it with: pip install broken" in said.stdout


# -- the instance library ----------------------------------------------------------------------------------


@pytest.fixture
def instances(monkeypatch):
    from forcopt.instance import Instance, by_name

    made = by_name(
        Instance(f"rucksack/{c}", lambda c=c: Rucksack(**{**SMALL, "capacity": c}), "milp") for c in (25, 50)
    )
    monkeypatch.setattr(library, "instances", lambda: made)
    fact = {"fingerprint": "", "status": "optimal", "objective": 220, "certified": "agreed: a, b"}
    monkeypatch.setattr(library, "known", lambda: {"rucksack/50": fact})


def test_instances_are_listed_with_what_is_known(forcopt, instances):
    lines = {
        line.split()[0]: line for line in forcopt("instances", "list").stdout.splitlines() if line.strip()
    }
    assert "rucksack/25" in lines and "agreed: 2 methods" in lines["rucksack/50"]
    (row,) = json.loads(forcopt("instances", "list", "rucksack/5", "--json").stdout)
    assert (row["name"], row["formulation"]) == ("rucksack/50", "milp")
    assert row["objective"] == 220 and row["bound"] is None


def test_instances_are_exported_and_solved(forcopt, instances):
    said = forcopt("instances", "export", "files", "--format", "lp")
    assert said.stdout == "2 instances and manifest.json in files\n"
    assert json.loads(Path("files/manifest.json").read_text())[0]["file"] == "rucksack-25.lp"
    assert json.loads(forcopt("solve", "files/rucksack-50.lp", "--json").stdout)["objective"] == 220
    data = json.loads(
        forcopt("compare", "files/rucksack-50.lp", "rucksack/25", "-m", "@highs", "--json").stdout
    )
    assert [row["objective"] for row in data["rows"]] == [220, 100]
    assert json.loads(forcopt("solve", "rucksack/25", "--json").stdout)["objective"] == 100
    assert forcopt("export", "rucksack/25", "-o", "25.mps").exit_code == 0 and Path("25.mps").exists()
    assert forcopt("instances", "export", "files", "knapsack").exit_code == 2


# -- real processes ----------------------------------------------------------------------------------------


def real(*words, extra=()):
    folders = os.pathsep.join([*map(str, extra), *filter(None, sys.path)])
    command = [sys.executable, "-m", "forcopt", *words]
    environment = {**os.environ, "PYTHONPATH": folders}
    return subprocess.run(command, env=environment, text=True, capture_output=True, timeout=600)


def test_a_package_of_a_stranger_adds_its_model(tmp_path):
    metadata = tmp_path / "stranger-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[forcopt.models]\nRucksack = rucksack:Rucksack\n")
    said = real("solve", "rucksack/small", "--json", extra=[tmp_path, STUDY])
    assert json.loads(said.stdout)["objective"] == 220 and said.returncode == 0


def test_an_error_has_no_traceback():
    said = real("solve", "nope")
    assert said.returncode == 2 and said.stdout == ""
    assert (
        said.stderr.startswith("error: no file, example or instance 'nope'") and said.stderr.count("\n") == 1
    )


def test_help_imports_no_solver_and_no_drawing():
    heavy = "'highspy', 'cvxpy', 'ortools', 'pyomo', 'pandas', 'matplotlib', 'rich.table', 'pydantic'"
    code = f"import sys, forcopt.cli; print([m for m in ({heavy}) if m in sys.modules])"
    said = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=True)
    assert said.stdout == "[]\n"


# -- plain data --------------------------------------------------------------------------------------------


def test_plain_data():
    import numpy as np

    values = {
        1: np.array([1.0, np.nan]),
        "s": fo.Status.OPTIMAL,
        "n": np.int64(3),
        "t": (True, None, -np.inf),
    }
    assert plain(values) == {"1": [1.0, None], "s": "optimal", "n": 3, "t": [True, None, None]}
    assert plain(Rucksack(**SMALL))["capacity"] == 50
    assert plain(fo.Evaluation(1.0)) == {"objective": 1.0, "violations": {}, "metrics": {}}
    assert plain(object).startswith("<class")


# -- standard input, own problems, sweeps --------------------------------------------------------------------


def test_a_declaration_comes_from_standard_input(forcopt):
    text = json.dumps({"model": "Rucksack", **SMALL})
    result = CliRunner().invoke(app, ["solve", "-", "--json"], input=text)
    assert result.exit_code == 0 and json.loads(result.stdout)["status"] == "optimal"
    for wrong, message in (("{", "not valid JSON"), ("[1]", "no declaration"), ("{}", "the key 'model'")):
        result = CliRunner().invoke(app, ["compare", "-"], input=wrong)
        assert result.exit_code == 2 and message in result.stderr


def test_sweep(forcopt):
    save()
    words = ["sweep", "p.json", "--over", "capacity=1,2,5", "-m", "milp,greedy", "--seeds", "2"]
    result = forcopt(*words, "--json", "--store", "s.sqlite", "--csv", "s.csv")
    rows = json.loads(result.stdout)["rows"]
    assert result.exit_code == 0 and len(rows) == 3 * 2 * 2
    assert {row["parameters"]["capacity"] for row in rows} == {1, 2, 5}
    assert Path("s.csv").exists()
    assert (
        json.loads(forcopt(*words, "--json", "--store", "s.sqlite").stdout)["rows"] == rows
    )  # not run again
    drawn = forcopt(*words, "--plot", "s.png", "--kind", "pareto", "--x", "capacity", "--y", "objective")
    assert drawn.exit_code == 0 and Path("s.png").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--over", "capacity"], "must be NAME=V1,V2"),
        (["--over", "capacity=1", "--over", "capacity=2"], "names capacity twice"),
        (["--over", "capacty=1"], "did you mean 'capacity'"),
        (["--seeds", "0"], "--seeds is 0"),
        (["--x", "capacity"], "only --kind pareto has axes"),
    ],
)
def test_bad_sweeps(forcopt, words, message):
    save()
    result = forcopt("sweep", "p.json", *words)
    assert result.exit_code == 2 and message in result.stderr


def test_import_of_a_file(tmp_path):
    (tmp_path / "mine.py").write_text("print('imported')")
    said = real("--import", str(tmp_path / "mine.py"), "-q", "models")
    assert said.returncode == 0 and "imported" in said.stdout
    said = real("--import", "no_such_module", "models")
    assert said.returncode == 2 and "--import is 'no_such_module'" in said.stderr


def test_a_problem_of_an_imported_file_is_listed_and_described(tmp_path):
    (tmp_path / "own.py").write_text(
        "import forcopt as fo\n\n\nclass Own(fo.Problem):\n"
        '    """A problem of my own."""\n\n    size: int\n\n'
        "    def evaluate(self, decision):\n        return fo.Evaluation(1.0)\n\n\n"
        '@Own.algorithm("one", exact=False)\ndef one(problem):\n    """Take one."""\n'
        "    return fo.Outcome(1)\n"
    )
    said = real("--import", str(tmp_path / "own.py"), "describe", "Own")
    assert said.returncode == 0 and "A problem of my own." in said.stdout and "one" in said.stdout
    listed = json.loads(real("--import", str(tmp_path / "own.py"), "models", "--json").stdout)
    assert {"model": "Own", "summary": "A problem of my own.", "methods": {"one": "alternative"}} in listed


def test_piped_tables_are_not_folded_and_have_no_style():
    said = real("backends")
    assert "\x1b[" not in said.stdout
    assert any(line.split()[:1] == ["highs"] and "LP, MILP, QP" in line for line in said.stdout.splitlines())
