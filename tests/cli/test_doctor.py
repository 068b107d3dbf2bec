"""`forcopt doctor` names what is broken in an installation."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from forcopt.backends import registry
from forcopt.cli import app, doctor

kept = dict(registry.backends())


def report(*options):
    ended = CliRunner().invoke(app, ["doctor", *options])
    return ended.exit_code, ended.stdout


def test_a_whole_installation(monkeypatch):
    ours = {name: backend for name, backend in kept.items() if backend.__module__.startswith("forcopt.")}
    monkeypatch.setattr(registry, "backends", lambda: ours)
    code, text = report("--json")
    found = json.loads(text)
    assert code == 0 and found["warnings"] == []
    assert {"highspy", "numpy", "cvxpy"} <= set(found["packages"]) and "ruff" not in found["packages"]
    answers = {row["solver"]: row["answer"] for row in found["solvers"]}
    assert answers["highs"] == "right" and set(answers) == set(ours)
    assert len(found["compiled"]) == 2 and all(found["compiled"].values())


def test_what_is_not_installed_keeps_its_order(monkeypatch):
    lacking = {name: SimpleNamespace(missing=lambda: "no file") for name in "zyxwvutsrq"}
    monkeypatch.setattr(registry, "backends", lambda: lacking)
    found = json.loads(report("--json")[1])
    assert [row["solver"] for row in found["solvers"]] == list("zyxwvutsrq")


@pytest.mark.parametrize("place", [None, "/no/such/folder"])
def test_code_that_numba_cannot_keep_is_named(place, monkeypatch):
    kernel = SimpleNamespace(stats=SimpleNamespace(cache_path=place))
    monkeypatch.setattr("forcopt.graphs.states.index", kernel)
    monkeypatch.setattr(doctor, "_self_test", list)
    code, text = report()
    told = place or "no folder can be written; set NUMBA_CACHE_DIR"
    assert code == 1 and f"warning: compiled code cannot be kept: {told}" in " ".join(text.split())


@pytest.mark.parametrize("version", ["1.14.0", "1.15.1"])
def test_an_excluded_version_is_named(version, monkeypatch):
    monkeypatch.setattr(doctor, "_version", lambda name: version if name == "highspy" else "1.0")
    monkeypatch.setattr(doctor, "_self_test", list)
    code, text = report()
    assert code == 1 and f"warning: highspy {version}: " in text


def test_a_wrong_solver_and_one_that_ends_the_process_are_named(monkeypatch):
    real = subprocess.run

    def run(command, **options):
        broken = "import os, forcopt as fo; from forcopt.cli.doctor import answers; right = fo.Model.solve;\n"
        broken += "def solve(m, name, **o):\n"
        broken += "    if name == 'glop': os.abort()\n"
        broken += "    found = right(m, name, **o); w = type('W', (), {'objective': 9.0})\n"
        broken += "    return w if name == 'scs' else found\n"
        broken += "fo.Model.solve = solve; answers()"
        return real([*command[:2], broken, *command[3:]], **options)

    monkeypatch.setattr(doctor.subprocess, "run", run)
    monkeypatch.setattr(registry, "backends", lambda: {n: kept[n] for n in ("highs", "scs", "glop", "osqp")})
    code, text = report("--json")
    answers = {row["solver"]: row["answer"] for row in json.loads(text)["solvers"]}
    assert code == 1 and answers["highs"] == answers["osqp"] == "right" and answers["scs"] == "9.0 for 8"
    assert answers["glop"].startswith("ended the process with -6")


def test_packages_that_cannot_be_imported_are_named(tmp_path):
    for name in ("numba", "pyomo"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"raise ImportError('{name} is for another system')")
    script = "from forcopt.cli import doctor, main; doctor._self_test = list; main()"
    lines = {}
    for command in ("doctor", "backends"):
        found = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]), "COLUMNS": "300"}
        ended = subprocess.run(
            [sys.executable, "-c", script, command], capture_output=True, text=True, check=False, env=found
        )
        assert not ended.stderr
        lines[command] = ended.stdout
    assert "this needs numba, which cannot be imported: numba is for another system" in lines["doctor"]
    assert "cannot be imported: pyomo is for another system" in lines["backends"]
